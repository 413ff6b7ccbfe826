"""The processes of deploy/ha on this machine, with its configuration files: three etcd, three
PostgreSQL under Patroni, HAProxy, Redis, two web, two workers and one beat."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from project.env import BASE_DIR
from project.postgres import binaries
from tests.availability.network import LOOPBACK, Network
from tests.project.running import Process, Running, children, free_port, wait_for

DEPLOY = BASE_DIR / "deploy" / "ha"
PATRONI = BASE_DIR / ".compat" / "ha" / "bin" / "patroni"
# Debian installs HAProxy in a folder that is only in root's PATH.
PATH = f"{os.environ['PATH']}:/usr/sbin"
NODES = (1, 2, 3)
PASSWORD = "secret"


def find(program: str) -> str:
    found = shutil.which(program, path=PATH)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian: etcd-server, haproxy, redis-server)")
    return found


def skip_without_programs() -> None:
    if not PATRONI.exists():
        pytest.skip("Patroni is not installed: make chaos installs it")
    if binaries.identity().uid is not None:
        pytest.skip("PostgreSQL does not run as root, and user namespaces are not permitted")


class Node:
    """One PostgreSQL under Patroni."""

    def __init__(self, cell: Cell, number: int) -> None:
        self.cell, self.number, self.name = cell, number, f"db{number}"
        self.machine = cell.network.machines[number - 1]
        self.port, self.rest = free_port(), free_port()
        self.data = cell.folder / self.name / "pg"
        self.process: Process | None = None

    def start(self) -> None:
        who, programs = binaries.identity(), binaries.find()
        log = self.cell.folder / f"{self.name}.log"
        sockets = self.cell.folder / f"{self.name}-run"
        sockets.mkdir(exist_ok=True)
        env = {
            "PATH": f"{programs}:{PATH}",
            "PATRONI_SCOPE": "commonhold",
            "PATRONI_NAME": self.name,
            "PATRONI_ETCD3_HOSTS": ",".join(self.cell.etcd_clients.values()),
            "PATRONI_RESTAPI_LISTEN": f"{self.machine.listens}:{self.rest}",
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"{self.machine.inner}:{self.rest}",
            "PATRONI_POSTGRESQL_LISTEN": f"{self.machine.listens}:{self.port}",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": f"{self.machine.inner}:{self.port}",
            "PATRONI_POSTGRESQL_DATA_DIR": str(self.data),
            "PATRONI_POSTGRESQL_BIN_DIR": str(programs),
            "PATRONI_POSTGRESQL_PGPASS": str(self.cell.folder / f"{self.name}.pgpass"),
            "PATRONI_SUPERUSER_USERNAME": "commonhold",
            "PATRONI_SUPERUSER_PASSWORD": PASSWORD,
            "PATRONI_REPLICATION_USERNAME": "replicator",
            "PATRONI_REPLICATION_PASSWORD": PASSWORD,
        }
        config = str(self.cell.patroni_config(sockets))
        command = [*self.machine.command, *who.prefix, str(PATRONI), config]
        self.process = Process(log, *command, env=env, cwd="/")

    def pids(self) -> list[int]:
        """Patroni, then all processes of its PostgreSQL, which continue if Patroni is killed."""
        assert self.process
        found = [self.process.pid, *children(self.process.pid)]
        pidfile = self.data / "postmaster.pid"
        if pidfile.exists() and (lines := pidfile.read_text().splitlines()):
            postmaster = int(lines[0])
            found += [postmaster, *children(postmaster)]
        return list(dict.fromkeys(found))

    def signal(self, number: signal.Signals, *pids: int) -> None:
        for pid in pids or self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def kill_postgres(self) -> None:
        self.signal(signal.SIGKILL, int((self.data / "postmaster.pid").read_text().split()[0]))

    def kill_patroni(self) -> None:
        assert self.process
        self.process.process.kill()
        self.process.process.wait()

    def status(self) -> dict[str, Any]:
        client = http.client.HTTPConnection(self.machine.outer, self.rest, timeout=2)
        try:
            client.request("GET", "/cluster")
            found: dict[str, Any] = json.loads(client.getresponse().read())
            return found
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        finally:
            client.close()


class Cell:
    """Started when constructed; `stop` kills everything. Each node of PostgreSQL and one of etcd are on
    a machine of `network`, everything else is on this one. If not `synchronous`, no commit waits for a
    standby."""

    def __init__(
        self, folder: Path, network: Network = LOOPBACK, *, synchronous: bool = True
    ) -> None:
        self.folder, self.network, self.synchronous = folder, network, synchronous
        self.processes: list[Process] = []
        self.etcd: dict[str, Process] = {}
        self._machines = {f"etcd{n}": network.machines[n - 1] for n in NODES}
        inner = {name: machine.inner for name, machine in self._machines.items()}
        self._peers = {name: f"http://{host}:{free_port()}" for name, host in inner.items()}
        self.etcd_clients = {name: f"{host}:{free_port()}" for name, host in inner.items()}
        self.nodes = [Node(self, n) for n in NODES]
        self.web_port, self.database_port, self.redis_port = free_port(), free_port(), free_port()
        for name in self._peers:
            self.start_etcd(name)
        for node in self.nodes:
            node.start()
        self.wait_for_leader()
        web_ports = [free_port(), free_port()]
        self._start_haproxy(web_ports)
        self.start_redis()
        self.wait_for_database()
        setup = self.run("setup")
        assert setup.wait() == 0, setup.output()
        (self.token,) = re.findall(r"API token +(ch_\S+)", setup.output())
        self.web = [self.run("web", PORT=str(port)) for port in web_ports]
        self.workers = [self.run("worker") for _ in range(2)]
        self.beat = self.run("beat")
        for web in self.web:
            web.wait_until_it_answers("/readyz")
        wait_for(self.serves, "HAProxy serves the web processes")

    def start_etcd(self, name: str) -> None:
        peer, client = self._peers[name], f"http://{self.etcd_clients[name]}"
        cluster = ",".join(f"{each}={url}" for each, url in self._peers.items())
        self.etcd[name] = self.start(
            name,
            *self._machines[name].command,
            *(find("etcd"), "--name", name, "--data-dir", str(self.folder / name)),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--initial-cluster", cluster, "--initial-cluster-token", "commonhold"),
        )

    def start_redis(self) -> None:
        self.redis = self.start(
            "redis",
            *(find("redis-server"), "--port", str(self.redis_port), "--bind", "127.0.0.1"),
            *("--appendonly", "yes", "--dir", str(self.folder)),
        )

    def _start_haproxy(self, web_ports: list[int]) -> None:
        env = {
            "BIND": "127.0.0.1",
            "POSTGRES_PORT": str(self.database_port),
            "WEB_PORT": str(self.web_port),
            "STATUS_PORT": str(free_port()),
            "WEB1": f"127.0.0.1:{web_ports[0]}",
            "WEB2": f"127.0.0.1:{web_ports[1]}",
        }
        for node in self.nodes:
            env[node.name.upper()] = f"{node.machine.outer}:{node.port}"
            env[f"{node.name.upper()}_REST"] = str(node.rest)
        self.start("haproxy", find("haproxy"), "-f", str(DEPLOY / "haproxy.cfg"), **env)

    def patroni_config(self, sockets: Path) -> Path:
        """A copy of the configuration in deploy/ha, with a socket folder of its own for this node."""
        text = (DEPLOY / "patroni.yml").read_text()
        if not self.synchronous:
            text, changed = re.subn(r"(synchronous_mode(?:_strict)?): \w+", r"\1: false", text)
            assert changed == 2
        text += f"    unix_socket_directories: {sockets}\n"
        path = self.folder / f"{sockets.name}.yml"
        path.write_text(text)
        return path

    def start(self, name: str, *command: str, **env: str) -> Process:
        own = {"PATH": PATH, "LANG": "C.UTF-8", **env}
        process = Process(self.folder / f"{name}.log", *command, env=own, cwd="/")
        self.processes.append(process)
        return process

    def run(self, command: str, **env: str) -> Running:
        running = Running(
            self.folder,
            "manage.py",
            command,
            DATABASE_URL=self.database_url,
            BROKER_URL=f"redis://127.0.0.1:{self.redis_port}/0",
            SECRET_KEY="the same for all processes",
            STANDBY_TIMEOUT_MS="5000",
            **env,
        )
        self.processes.append(running)
        return running

    @property
    def database_url(self) -> str:
        return f"postgresql://commonhold:{PASSWORD}@127.0.0.1:{self.database_port}/commonhold"

    def leader(self, *nodes: Node) -> Node | None:
        """The leader, according to the first of `nodes` (default: all) that responds."""
        for node in nodes or self.nodes:
            for member in node.status().get("members", ()):
                if member["role"] == "leader" and member["state"] == "running":
                    return next(each for each in self.nodes if each.name == member["name"])
        return None

    def switch_over(self, leader: Node) -> None:
        """Request a switchover. Patroni responds when it is complete."""
        client = http.client.HTTPConnection(leader.machine.outer, leader.rest, timeout=60)
        try:
            client.request("POST", "/switchover", json.dumps({"leader": leader.name}))
            response = client.getresponse()
            assert response.status == 200, response.read()
        finally:
            client.close()

    def is_whole(self) -> bool:
        """Whether all nodes replicate and, if synchronous, commits wait for one of two standbys."""
        standby = "quorum_standby" if self.synchronous else "replica"
        members = [node.status().get("members", ()) for node in self.nodes]
        return all(
            sorted(member["role"] for member in each) == ["leader", standby, standby]
            and all(member["state"] in ("running", "streaming") for member in each)
            for each in members
        )

    def wait_for_leader(self) -> Node:
        return wait_for(self.leader, lambda: f"a leader; {self.outputs()}")

    def wait_for_another_leader(self, old: Node) -> Node:
        """Wait until the other nodes have replaced it."""
        others = [node for node in self.nodes if node is not old]

        def found() -> Node | None:
            leader = self.leader(*others)
            return None if leader is old else leader

        return wait_for(found, lambda: f"a leader besides {old.name}; {self.outputs()}")

    def wait_until_whole(self) -> None:
        wait_for(self.is_whole, lambda: f"all nodes replicate: {self.nodes[0].status()}")

    def wait_for_database(self) -> None:
        def answers() -> bool:
            try:
                psycopg.connect(self.database_url, connect_timeout=2).close()
            except psycopg.OperationalError:
                return False
            return True

        wait_for(answers, lambda: f"HAProxy leads to the database; {self.outputs()}")
        self.wait_until_whole()

    def serves(self) -> bool:
        """Whether HAProxy has a web process that reaches the database."""
        client = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=2)
        try:
            client.request("GET", "/readyz")
            return client.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            client.close()

    def outputs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs)

    def stop(self) -> None:
        for process in self.processes:
            process.kill_all()
        for node in self.nodes:
            if node.process:
                node.signal(signal.SIGKILL)
                node.process.process.wait()
