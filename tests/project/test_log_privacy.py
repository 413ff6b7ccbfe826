"""No log contains a value: a canary in every kind of value, in slow, failed and cancelled
statements.

All output of real processes is read: PostgreSQL's log, and stdout and stderr.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from tests.project.conftest import Start
from tests.project.running import Running, free_port, wait_for

CANARY = "canary5d0c3f7e"
SAMPLE = {
    "DJANGO_SETTINGS_MODULE": "project.settings",
    "COMMONHOLD_ROLE": "sample",
    "LOG_LEVEL": "DEBUG",
}
FAILURES = (
    "orm_duplicate",
    "invalid_json",
    "invalid_number",
    "raised_by_a_function",
    "copy",
    "cancelled",
    "python_error",
)


class Deployment:
    """A server as `manage.py serve` starts it, with the most verbose settings."""

    def __init__(self, folder: Path, start: Start) -> None:
        self.folder = folder
        self.running = start(
            "manage.py",
            "serve",
            PORT=str(free_port()),
            LOG_LEVEL="DEBUG",
            LOCK_TIMEOUT_MS="60000",
            STATEMENT_TIMEOUT_MS="2000",
        )
        self.running.wait_for_output("Ctrl-C stops it.")
        token = re.search(r"API token +(ch_\S+)", self.running.output())
        login = re.search(r"/login/once/(\S+)", self.running.output())
        assert token is not None
        assert login is not None
        self.token, self.link = token[1], login[1]
        self.printed = self.running.output()  # the token and the link, shown once
        self.secrets: list[str] = []

    def database(self) -> psycopg.Connection[Any]:
        socket = Cluster(self.folder / "data" / "postgres").socket_folder
        return psycopg.connect(host=str(socket), port=PORT, user="postgres", dbname="commonhold")

    def call(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> int:
        sent = {"Authorization": f"Bearer {token or self.token}", **headers}
        data = body if isinstance(body, bytes) else b""
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            data = data or json.dumps(body).encode()
        return self.send(method, path, data, sent)[0]

    def send(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage]:
        client = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=60)
        try:
            client.request(method, path, body, headers)
            answer = client.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            client.close()

    def logs(self) -> dict[Path, str]:
        """All logs: the output of each process, and the files of the data folder."""
        in_data = [p for p in (self.folder / "data").rglob("*log*") if p.is_file()]
        ours = [p for p in in_data if "pg" not in p.relative_to(self.folder / "data").parts]
        by_collector = (self.folder / "data/postgres/pg/log").glob("*")
        found = [*self.folder.glob("*.log"), *ours, *by_collector]
        return {path: path.read_text(errors="replace") for path in found}


@pytest.fixture
def deployment(folder: Path, start: Start) -> Iterator[Deployment]:
    made = Deployment(folder, start)
    yield made
    made.running.signal(signal.SIGINT)
    made.running.wait()


def write_values(at: Deployment) -> None:
    """The canary in values, messages, state, secrets, passwords and tokens."""
    text = {"text": CANARY}
    api = "/api/v1"
    assert at.call("PUT", f"{api}/namespaces/notes", {"default": text}) == 201
    assert at.call("PUT", f"{api}/state/notes/k", {"value": text}) == 201
    assert at.call("POST", f"{api}/threads", {"id": "t1", "metadata": text}) == 201
    message = {"role": "user", "content": CANARY}
    assert at.call("POST", f"{api}/threads/t1/messages", {"messages": [message]}) == 201
    assert at.call("PUT", f"{api}/state-keys/plan", {"default": None}) in (200, 201)
    assert at.call("POST", f"{api}/threads/t1/runs", {"id": "r1"}) == 201
    step = {"updates": [{"key": "plan", "update": CANARY}]}
    assert at.call("POST", f"{api}/runs/r1/commits", step) in (200, 201)
    provider = {"adapter": "openai", "api_key": CANARY}
    assert at.call("PUT", f"{api}/config/providers/p", {"value": provider}) == 201
    assert at.call("POST", f"{api}/search", {"text": CANARY}) == 200
    # Refused requests.
    assert at.call("PUT", f"{api}/state/notes/k", b'{"value": "' + CANARY.encode()) == 400
    assert at.call("PUT", f"{api}/state/notes/k", f'"\\u0000{CANARY}"'.encode()) in (400, 422)
    assert at.call("GET", f"{api}/me", token=f"ch_{CANARY}_{CANARY}") == 401
    call = {"name": "put_state", "arguments": {"namespace": "notes", "key": 1, "value": CANARY}}
    for arguments in (call, {"name": CANARY}, CANARY):
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
        at.call("POST", "/mcp", request, Accept="application/json, text/event-stream")


def sign_in(at: Deployment) -> None:
    """By link, with a wrong password, and by setting one; the cookie is a secret too."""
    _, headers = at.send("GET", "/login", b"", {})
    csrf = re.search(r"commonhold_csrf=(\w+)", str(headers))
    assert csrf is not None
    cookies = {"Cookie": f"commonhold_csrf={csrf[1]}", "Referer": "http://127.0.0.1/"}

    def post(path: str, **form: str) -> tuple[int, str]:
        sent = {"Content-Type": "application/x-www-form-urlencoded", **cookies}
        form["csrfmiddlewaretoken"] = csrf[1]
        status, answer = at.send("POST", path, urlencode(form).encode(), sent)
        return status, str(answer)

    assert post("/login", username="admin", password=CANARY)[0] == 422
    status, answer = post(f"/login/once/{at.link}")
    assert status == 302
    session = re.search(r"commonhold_session=(\w+)", answer)
    assert session is not None
    cookies["Cookie"] += f"; commonhold_session={session[1]}"
    at.secrets += [at.token, at.link, session[1]]
    assert post("/password", password=f"{CANARY} {CANARY}", again=f"{CANARY} {CANARY}")[0] == 302
    assert post("/password", old_password=CANARY, password=CANARY, again=CANARY)[0] in (302, 422)


TRIGGERS = {
    "unique violation": "CREATE UNIQUE INDEX broken ON entries ((value::text))",
    "check violation": f"""
        ALTER TABLE entries ADD CONSTRAINT broken
        CHECK (value::text NOT LIKE '%{CANARY}2%') NOT VALID""",
    "error of a function": """
        CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'broken by %', NEW.value USING DETAIL = NEW.value; END $$;
        CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON entries
        FOR EACH ROW EXECUTE FUNCTION broken()""",
}


def break_entries(at: Deployment) -> None:
    """Writes fail in the database, each in another way. Response and log must not contain the
    value."""
    with at.database() as database:
        database.execute(TRIGGERS["unique violation"].encode())
    assert at.call("PUT", "/api/v1/state/notes/twin", {"value": {"text": CANARY}}) == 500
    with at.database() as database:
        database.execute(b"DROP INDEX broken")
        database.execute(TRIGGERS["check violation"].encode())
    assert at.call("PUT", "/api/v1/state/notes/k2", {"value": f"{CANARY}2"}) == 500
    with at.database() as database:
        database.execute(b"ALTER TABLE entries DROP CONSTRAINT broken")
        database.execute(TRIGGERS["error of a function"].encode())
    assert at.call("PUT", "/api/v1/state/notes/k3", {"value": CANARY}) == 500
    assert at.call("DELETE", "/api/v1/state/notes/k") == 500
    with at.database() as database:
        database.execute(b"DROP TRIGGER broken ON entries; DROP FUNCTION broken")


def wait_too_long(at: Deployment) -> None:
    """A write waits for a lock until its statement is cancelled; another one until it gets the
    lock."""

    def put() -> int:
        return at.call("PUT", "/api/v1/state/notes/k", {"value": {"text": f"{CANARY} again"}})

    with ThreadPoolExecutor() as pool, at.database() as database:
        database.execute(b"SELECT FROM entries WHERE key = 'k' FOR UPDATE")
        assert put() == 503
        late = pool.submit(put)
        with at.database() as watcher:
            watcher.autocommit = True
            waiting = (
                b"SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                b" AND clock_timestamp() - query_start > interval '1.1 s'"
            )
            wait_for(lambda: watcher.execute(waiting).rowcount, "it has waited for over a second")
        database.rollback()
        assert late.result() == 200


def break_the_worker(at: Deployment) -> None:
    """Its next jobs fail, with the canary in the error."""
    with at.database() as database:
        function = (
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$"
            f" BEGIN RAISE EXCEPTION 'broken by {CANARY}'; END $$;"
            " CREATE TRIGGER broken BEFORE UPDATE ON sweeps"
            " FOR EACH ROW EXECUTE FUNCTION broken()"
        )
        database.execute(function.encode())
    at.running.wait_for_output("task.failed")


def run_beside(at: Deployment, start: Start) -> list[Running]:
    """A process in which everything fails, and a command that prints a new token."""
    failures = start("-m", "tests.project.sample_failures", CANARY=CANARY, **SAMPLE)
    assert failures.wait() == 1
    assert "process.crashed" in failures.output(), failures.output()
    options = {"workspace": "default", "role": "viewer", "name": "x"}
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    created = start("manage.py", "create_token", *arguments)
    assert created.wait() == 0
    (token,) = re.findall(r"ch_\w+", created.output())
    at.secrets.append(token)
    created.log.unlink()  # it prints the token, as it should
    assert at.call("GET", "/api/v1/state/notes/k", token=token) == 200
    return [failures]


def test_logs__of_every_kind_of_failure__contain_no_value(
    deployment: Deployment, start: Start
) -> None:
    at = deployment
    write_values(at)
    sign_in(at)
    break_entries(at)
    wait_too_long(at)
    break_the_worker(at)
    (failures,) = run_beside(at, start)

    logs = at.logs()
    assert {"postgres.log", at.running.log.name, failures.log.name} <= {p.name for p in logs}
    # The logs do report what happened.
    for event in ("UniqueViolation", "CheckViolation", "database.unavailable", "57014", "broken"):
        assert event in logs[at.running.log], event
    for fail in FAILURES:
        assert f"of={fail}" in logs[failures.log], fail
    # Also search for the secret part of a token. A login link may end with "_" and one letter.
    tokens = [secret for secret in at.secrets if secret.startswith("ch_")]
    assert len(tokens) == 2
    forbidden = [CANARY, *at.secrets, *(token.rpartition("_")[2] for token in tokens)]
    for path, text in logs.items():
        lines = text.replace(at.printed, "").splitlines()
        assert [line for line in lines if any(each in line for each in forbidden)] == [], path


def test_log_files__of_the_data_folder__are_readable_by_their_owner_only(
    deployment: Deployment,
) -> None:
    data = deployment.folder / "data"
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / "postgres").stat().st_mode & 0o777 == 0o700
    assert (data / "postgres/postgres.log").stat().st_mode & 0o777 == 0o600
