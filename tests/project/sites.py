"""A whole server in a folder, and the programs of its PostgreSQL."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import psycopg

from project.env import BASE_DIR
from project.postgres import binaries
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from tests.project.running import Running, call_api, free_port, wait_for

SETTINGS = {"SECRET_KEY": "the same on every server", "WEBHOOK_ALLOW_PRIVATE": "true"}


class Notes:
    """The entries of the namespace `notes` of a server, and their changes."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return call_api(self.port, self.token, method, path, body, **headers)

    def write(self, *keys: str) -> None:
        for key in keys:
            status, _ = self.call("PUT", f"/state/notes/{key}", {"value": {"word": key}})
            assert status == 201

    def follow(self, cursor: str = "") -> tuple[list[str], str]:
        """The keys written after a cursor, and the next cursor."""
        after = f"&cursor={cursor}" if cursor else ""
        status, page = self.call("GET", f"/changes?namespace=notes{after}")
        assert status == 200, page
        keys = [item["key"] for item in page["items"] if item["kind"] == "entry.put"]
        return keys, page["next_cursor"]

    def follow_all(self, keys: list[str]) -> str:
        """The cursor after `keys`, which are all there are."""
        wait_for(lambda: self.follow()[0] == keys, f"{keys} are in the feed")
        return self.follow()[1]

    def check_lost(self, cursor: str) -> None:
        """A reader of lost changes gets 410."""
        status, problem = self.call("GET", f"/changes?cursor={cursor}")
        assert status == 410
        assert problem["detail"] == "the cursor is newer than the database"


class Site(Notes):
    """`manage.py serve` with the data folder in `folder`, on its embedded PostgreSQL or the one of
    DATABASE_URL."""

    def __init__(self, folder: Path, token: str = "", cwd: Path = BASE_DIR, **env: str) -> None:
        folder.mkdir(exist_ok=True)
        self.cluster = Cluster(folder / "data" / "postgres")
        self.url = env.get("DATABASE_URL") or url_of(self.cluster)
        self.running = Running(
            folder,
            *("manage.py", "serve"),
            cwd=cwd,
            **{"PORT": str(free_port()), **SETTINGS, **env},
        )
        try:
            self.running.wait_for_output("Ctrl-C stops it")
        except BaseException:
            self.running.kill_all()
            raise
        found = re.findall(r"API token +(ch_\S+)", self.running.output())
        super().__init__(self.running.port, token or found[0])

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def stop(self) -> None:
        self.running.signal(signal.SIGINT)
        self.running.wait()


def connect(cluster: Cluster, name: str = "commonhold") -> psycopg.Connection[Any]:
    where = {"host": str(cluster.socket_folder), "port": PORT, "user": "postgres"}
    return psycopg.connect(**where, dbname=name, autocommit=True)


def url_of(cluster: Cluster) -> str:
    """The DATABASE_URL of its database `commonhold`."""
    return f"postgresql://postgres@/commonhold?host={cluster.socket_folder}&port={PORT}"


def run(*command: str | Path) -> None:
    """Run a program of PostgreSQL as the user of the clusters."""
    program, *arguments = command
    done = binaries.identity().run(binaries.find() / program, *arguments)
    assert done.returncode == 0, done.stdout


def address(cluster: Cluster) -> list[str | Path]:
    return ["-h", cluster.socket_folder, "-p", str(PORT), "-U", "postgres"]
