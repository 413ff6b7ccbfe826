"""Redis and RabbitMQ as brokers: they are emptied and killed during the work, and nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from project.postgres.cluster import Cluster
from tests.patience import PATIENCE
from tests.project.running import Process, Running, call_api, free_port, wait_for
from tests.project.sites import url_of
from tests.receiving import Receiver, receiving

PATH = f"{os.environ['PATH']}:/usr/sbin:/usr/lib/rabbitmq/bin"


def find(program: str, package: str) -> str:
    found = shutil.which(program, path=PATH)
    if found is None:
        pytest.skip(f"Debian: apt install {package}")
    return found


class Redis:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.program = find("redis-server", "redis-server")
        self.start()

    def start(self) -> None:
        command = [self.program, "--port", str(self.port), "--save", "", "--dir", str(self.folder)]
        self.process = Process(self.folder / "redis.log", *command, env={"PATH": PATH})
        wait_for(lambda: is_reachable(self.url), self.process.output)

    def empty(self) -> None:
        with Connection(self.url) as connection:
            connection.default_channel.client.flushall()

    def kill(self) -> None:
        self.process.kill_all()

    stop = kill


class RabbitMQ:
    """With a port mapper of its own, so that it shares nothing with another one on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.env = {
            "PATH": PATH,
            "HOME": str(folder),
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_NODENAME": f"{folder.name}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_PID_FILE": str(folder / "rabbitmq.pid"),
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_CRASH_DUMP_SECONDS": "0",  # none
        }
        # Not the script of the same name in /usr/sbin, which changes to another user.
        self.program = find("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
        self.mapper = Process(folder / "epmd.log", find("epmd", "erlang-base"), env=self.env)
        self.start()

    def start(self) -> None:
        log = self.folder / "rabbitmq.log"
        self.process = Process(log, self.program, env=self.env, cwd=self.folder)
        wait_for(lambda: is_reachable(self.url), self.process.output)

    def empty(self) -> None:
        with Connection(self.url) as connection:
            connection.default_channel.queue_purge("commonhold")

    def kill(self) -> None:
        self.process.kill_all()

    def stop(self) -> None:
        self.kill()
        self.mapper.kill_all()


def is_reachable(url: str) -> bool:
    try:
        with Connection(url, connect_timeout=1) as connection:
            connection.ensure_connection(max_retries=0)
    except (OperationalError, OSError):
        return False
    return True


@pytest.fixture(params=[Redis, RabbitMQ])
def external(request: pytest.FixtureRequest, folder: Path) -> Iterator[Redis | RabbitMQ]:
    broker = request.param(folder)
    yield broker
    broker.stop()


@pytest.fixture
def url(cluster: Cluster) -> str:
    return url_of(cluster)


def test_jobs__broker_emptied_and_killed_during_the_work__are_all_done(
    external: Redis | RabbitMQ, url: str, start: Callable[..., Running]
) -> None:
    settings = {
        "DATABASE_URL": url,
        "BROKER_URL": external.url,
        "WEBHOOK_ALLOW_PRIVATE": "true",
    }
    setup = start("manage.py", "setup", **settings)
    assert setup.wait() == 0, setup.output()
    (token,) = re.findall(r"API token +(ch_\S+)", setup.output())
    web = start("manage.py", "web", PORT=str(free_port()), **settings)
    for role in ("worker", "beat"):
        start("manage.py", role, **settings)
    web.wait_until_it_answers("/readyz")

    def call(method: str, path: str, body: Any = None) -> Any:
        status, found = call_api(web.port, token, method, path, body)
        assert status < 300, found
        return found

    with receiving() as receiver:
        call("PUT", "/namespaces/notes", {"schema": True})
        filters = {"kinds": ["entry.*"]}
        call("POST", "/webhooks", {"name": "hook", "url": receiver.url, "filter": filters})
        written = Writer(call, receiver)
        try:
            check_continues(written, receiver)
            external.empty()
            check_continues(written, receiver)
            for _ in range(2):
                external.kill()
                check_continues(written, None)
                external.start()
                check_continues(written, receiver)
        finally:
            written.stop()
        receiver.wait_for(len(written.keys), PATIENCE)

        assert list(dict.fromkeys(receiver.keys)) == written.keys


class Writer:
    """Writes one entry after another, and remembers the keys. On a busy machine deliveries are slower
    than writes: it waits while too many are missing."""

    MOST_MISSING = 200

    def __init__(self, call: Callable[[str, str, Any], Any], receiver: Receiver) -> None:
        self.keys: list[str] = []
        self._receiver = receiver
        self._call, self._stopped = call, threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        while not self._stopped.wait(0.02):
            if len(self.keys) - len(self._receiver.keys) > self.MOST_MISSING:
                continue
            key = f"k{len(self.keys)}"
            self._call("PUT", f"/state/notes/{key}", {"value": 1})
            self.keys.append(key)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


def check_continues(written: Writer, receiver: Receiver | None) -> None:
    """Twenty more entries are written, and their events sent if there is a receiver."""
    enough = len(written.keys) + 20
    wait_for(lambda: len(written.keys) >= enough, "20 more writes")
    if receiver is not None:
        receiver.wait_for(enough, PATIENCE)
