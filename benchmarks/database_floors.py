"""Reference points without HTTP: pgbench with the equivalent statements, and Redis."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from benchmarks.own_server import CAS, KEYS, READ, STEP, WRITE, free_port, make_text
from benchmarks.tables import Measurement, summarize

# What any such server stores for a write: the entry, its version, an audit row and a change.
_TABLES = f"""
CREATE TABLE entries (key int PRIMARY KEY, value jsonb NOT NULL, version int NOT NULL);
CREATE TABLE versions (key int, version int, value jsonb NOT NULL, PRIMARY KEY (key, version));
CREATE TABLE trail (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL,
    actor text NOT NULL, target text NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE changes (LIKE trail INCLUDING ALL);
CREATE TABLE threads (id int PRIMARY KEY, revision int NOT NULL, messages int NOT NULL);
CREATE TABLE state (thread int, key text, revision int, value jsonb, PRIMARY KEY (thread, key, revision));
CREATE TABLE messages (thread int, seq int, body jsonb NOT NULL, PRIMARY KEY (thread, seq));
INSERT INTO entries SELECT n, '{{"text": "{make_text(1000)}"}}', 1 FROM generate_series(0, {KEYS - 1}) n;
INSERT INTO threads SELECT n, 0, 0 FROM generate_series(0, 63) n;
"""
_TRAIL = """audit_row AS (
    INSERT INTO trail (kind, actor, target) SELECT 'put', 'bench', target FROM done),
change AS (
    INSERT INTO changes (kind, actor, target) SELECT 'put', 'bench', target FROM done)"""


def _write(condition: str) -> str:
    value = f"""jsonb_build_object('n', :n::int, 'text', '{make_text(1000)}')"""
    return f"""
\\set key :client_id + 32 * random(0, 31)
\\set n random(0, 1000000)
WITH done AS (
    UPDATE entries SET value = {value}, version = version + 1 WHERE key = :key::int{condition}
    RETURNING key, version, value, key::text AS target),
history AS (INSERT INTO versions SELECT key, version, value FROM done),
{_TRAIL}
SELECT version FROM done;
"""


def _write_scripts() -> dict[str, str]:
    step = ", ".join(f"('{name}', '{{\"text\": \"{make_text(100)}\"}}'::jsonb)" for name in "abc")
    messages = ", ".join(
        f'({place}, \'{{"content": "{make_text(length)}"}}\'::jsonb)'
        for place, length in ((1, 70), (2, 270))
    )
    return {
        READ: "\\set key random(0, 1023)\nSELECT value, version FROM entries WHERE key = :key::int;",
        WRITE: _write(""),
        # The cost of the condition does not depend on the value compared.
        CAS: _write(" AND version >= 1"),
        STEP: f"""
WITH done AS (
    UPDATE threads SET revision = revision + 1, messages = messages + 2 WHERE id = :client_id::int
    RETURNING id, revision, messages, id::text AS target),
state_rows AS (
    INSERT INTO state SELECT id, key, revision, value FROM done, (VALUES {step}) AS s (key, value)),
message_rows AS (
    INSERT INTO messages SELECT id, done.messages + place, body
    FROM done, (VALUES {messages}) AS m (place, body)),
{_TRAIL}
SELECT revision FROM done;
""",
    }


@dataclass(frozen=True)
class Database:
    """The PostgreSQL server of Commonhold."""

    host: str
    user: str = "postgres"

    def connect(self, name: str) -> psycopg.Connection:
        return psycopg.connect(host=self.host, user=self.user, dbname=name, autocommit=True)

    def create(self, name: str, statements: str = "") -> None:
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with self.connect(name) as connection:
            connection.execute(statements)

    def version(self) -> str:
        with self.connect("postgres") as connection:
            row = connection.execute("SHOW server_version").fetchone()
        assert row is not None
        return str(row[0])


class Pgbench:
    """Runs the statements in a separate database on Commonhold's server."""

    rows = (READ, WRITE, CAS, STEP)

    def __init__(self, binaries: Path, database: Database, folder: Path) -> None:
        self._env = {"PGHOST": database.host, "PGUSER": database.user, "PGDATABASE": "floor"}
        database.create("floor", _TABLES)
        self._program = binaries / "pgbench"
        self._scripts = {}
        for number, (row, script) in enumerate(_write_scripts().items()):
            self._scripts[row] = folder / f"{number}.sql"
            self._scripts[row].write_text(script)

    def measure(self, row: str, connections: int, seconds: float) -> Measurement:
        with TemporaryDirectory() as folder:
            command = [
                *(str(self._program), "-n", "-M", "prepared", "-j", "1", "-l"),
                *("-c", str(connections), "-T", str(max(1, round(seconds)))),
                *("-f", str(self._scripts[row])),
            ]
            run = subprocess.run(
                command, cwd=folder, env=self._env, capture_output=True, text=True, check=False
            )
            if run.returncode:
                raise RuntimeError(run.stderr[-1000:])
            took = [
                int(line.split()[2]) / 1e6
                for log in Path(folder).glob("pgbench_log.*")
                for line in log.read_text().splitlines()
            ]
        rate = re.search(r"tps = ([\d.]+)", run.stdout)
        assert rate is not None, run.stdout
        return summarize(took, 1.0)._replace(per_second=float(rate[1]))


# Redis ---------------------------------------------------------------------------------------


class Redis:
    """redis-benchmark against a server that keeps all data in memory, or one that flushes each
    write."""

    rows = (READ, WRITE)

    def __init__(self, port: int) -> None:
        self.port = port
        self._rates: dict[tuple[str, int], float] = {}
        self._run("set", 8, 10 * KEYS)

    def measure(self, row: str, connections: int, seconds: float) -> Measurement:
        name = "get" if row == READ else "set"
        # It takes a number of requests and not a duration, so the previous rate determines how many
        # fit.
        rate = self._rates.get((name, connections)) or self._run(name, connections, 2000).per_second
        found = self._run(name, connections, int(rate * seconds))
        self._rates[name, connections] = found.per_second
        return found

    def _run(self, name: str, connections: int, calls: int) -> Measurement:
        command = [
            *("redis-benchmark", "-p", str(self.port), "-c", str(connections), "-d", "1024"),
            *("-r", str(KEYS), "-n", str(calls), "-t", name, "--csv"),
        ]
        lines = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=120
        ).stdout
        # "test","rps","avg","min","p50","p95","p99","max"
        cells = [cell.strip('"') for cell in lines.splitlines()[1].split(",")]
        return Measurement(float(cells[1]), float(cells[4]), float(cells[6]))


@contextmanager
def run_redis(*, flush: bool) -> Iterator[Redis]:
    program = shutil.which("redis-server")
    if program is None:
        raise FileNotFoundError("redis-server is not installed")
    port = free_port()
    with TemporaryDirectory() as folder:
        options = ["--appendonly", "yes", "--appendfsync", "always"] if flush else []
        client = str(Path(program).with_name("redis-cli"))
        child = subprocess.Popen(
            [program, "--port", str(port), "--dir", folder, "--save", "", *options],
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 10
            while subprocess.run(
                [client, "-p", str(port), "ping"], capture_output=True, check=False
            ).returncode:
                if time.monotonic() > deadline:
                    raise RuntimeError("redis-server does not start")
                time.sleep(0.1)
            yield Redis(port)
        finally:
            child.terminate()
            child.wait(20)
