"""`manage.py serve` as an operator uses it: it starts, refuses, survives kills, stops
everything."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from project.env import BASE_DIR
from project.postgres.cluster import Cluster
from tests.patience import PATIENCE
from tests.project.conftest import temporary_folder
from tests.project.running import Process, Running, children, free_port, is_alive, wait_for

ROLES = ("web", "worker", "beat")
Serve = Callable[..., Running]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One installation for the whole file: each test must cope with what previous ones left."""
    with temporary_folder() as path:
        yield path


@pytest.fixture
def serve(start: Serve) -> Serve:
    def begin(*options: str, **env: str) -> Running:
        env.setdefault("PORT", str(free_port()))
        return start("manage.py", "serve", *options, **env)

    return begin


@pytest.fixture
def ready(serve: Serve) -> Serve:
    def begin(*options: str, **env: str) -> Running:
        running = serve(*options, **env)
        running.wait_for_output("Ctrl-C stops it.")
        return running

    return begin


def role_pids(running: Running) -> dict[str, int]:
    """The direct children by role."""
    found = {}
    for pid in children(running.pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if "project.processes" in words and parent == running.pid:
            found[words[words.index("project.processes") + 1]] = pid
    return found


def all_roles(running: Running) -> dict[str, int]:
    wait_for(lambda: set(role_pids(running)) == set(ROLES), "web, worker and beat run")
    return role_pids(running)


def refusal(running: Running) -> str:
    """The one line of a start that is refused, with exit code 1."""
    assert running.wait() == 1, running.output()
    lines = running.output().splitlines()
    assert len(lines) == 1, running.output()
    return lines[0]


def status(port: int) -> int:
    """The status of /healthz, or 0 without a response."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        client.request("GET", "/healthz")
        return client.getresponse().status
    except OSError:
        return 0
    finally:
        client.close()


def postmaster(folder: Path) -> int | None:
    return Cluster(folder / "data" / "postgres").postmaster()


def test_serve__first_start__prints_token_once_and_keeps_the_data(ready):
    with temporary_folder() as path:
        data = {"COMMONHOLD_DATA_DIR": str(path)}
        first = ready(**data)
        token = re.search(r"API token +(ch_\S+)", first.output())
        login = re.search(r"http://127.0.0.1:\d+/login/once/\S+", first.output())
        assert token is not None
        assert login is not None
        assert first.get("/healthz")[0] == 200
        first.signal(signal.SIGINT)
        assert first.wait() == 0

        second = ready(**data)
        location = f"COMMONHOLD_DATA_DIR={path} PORT={second.port}"
        command = ".venv/bin/python manage.py create_token --role admin"
        assert f"run {location} {command}" in second.output()
        assert "/login/once/" in second.output()  # nobody has signed in yet
        assert token[1] not in second.output()
        status, _ = second.get("/api/v1/namespaces", Authorization=f"Bearer {token[1]}")
        assert status == 200
        second.signal(signal.SIGTERM)
        assert second.wait() == 0
        assert not (path / "postgres/pg/postmaster.pid").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_serve__sigterm__stops_every_process(ready, folder, number):
    running = ready()
    all_roles(running)
    family = children(running.pid)
    server = postmaster(folder)
    assert server is not None

    running.signal(number)

    assert running.wait() == 0
    assert [pid for pid in {*family, server} if is_alive(pid)] == []
    assert "Traceback" not in running.output()


@pytest.mark.slow
def test_serve__ctrl_c_to_the_whole_group__stops_in_order(ready, folder):
    running = ready()
    all_roles(running)
    family = children(running.pid)

    os.killpg(running.pid, signal.SIGINT)

    assert running.wait() == 0
    assert not any(is_alive(pid) for pid in family)
    assert postmaster(folder) is None


@pytest.mark.slow
def test_serve__ctrl_c_during_the_start__stops_every_process(serve, folder):
    running = serve()
    lock = folder / "data/serve.lock"  # it remains from the tests before
    wait_for(lambda: lock.exists() and lock.read_text() == str(running.pid), "it has begun")
    running.signal(signal.SIGINT)

    running.wait()

    assert postmaster(folder) is None


@pytest.mark.slow
def test_serve__second_ctrl_c__does_not_wait_for_a_request(ready):
    running = ready()
    all_roles(running)
    family = children(running.pid)
    with socket.create_connection(("127.0.0.1", running.port)) as stuck:
        stuck.sendall(b"POST /api/v1/state HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
        running.signal(signal.SIGINT)
        running.wait_for_output("Stopping")
        running.signal(signal.SIGINT)

        assert running.wait() == 0
    assert not any(is_alive(pid) for pid in family)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_child__killed__is_restarted(ready, role):
    running = ready()
    victim = all_roles(running)[role]
    orphans = children(victim)

    os.kill(victim, signal.SIGKILL)

    wait_for(lambda: role_pids(running).get(role, victim) != victim, f"{role} runs again")
    running.wait_until_it_answers("/healthz")
    wait_for(lambda: not any(is_alive(pid) for pid in orphans), "what it started is gone")
    assert f"child={role}" in running.output()


@pytest.mark.slow
def test_postgresql__killed__is_restarted(ready, folder):
    running = ready()
    victim = postmaster(folder)
    assert victim is not None

    os.kill(victim, signal.SIGKILL)

    wait_for(lambda: postmaster(folder) not in (None, victim), "PostgreSQL runs again")
    wait_for(lambda: running.answers("/readyz"), "/readyz is green again")


def test_supervisor__killed__children_end_and_the_next_start_recovers(ready, folder):
    first = ready()
    all_roles(first)
    family = [pid for role in role_pids(first).values() for pid in [role, *children(role)]]
    server = postmaster(folder)

    first.signal(signal.SIGKILL)
    first.wait()

    second = ready(PORT=str(first.port))
    assert postmaster(folder) == server  # used again, not started a second time
    wait_for(lambda: not any(is_alive(pid) for pid in family), "no child lingers")
    second.signal(signal.SIGINT)
    assert second.wait() == 0
    assert postmaster(folder) is None


def test_serve__second_instance__error_names_process_and_folder(ready, serve, folder):
    first = ready()

    line = refusal(serve())

    assert f"process {first.pid}" in line
    assert str(folder / "data") in line


def test_serve__port_in_use__error_names_it_and_the_setting(serve):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refusal(serve(PORT=str(port)))

    assert line == f"Port {port} is in use; stop the other program or set PORT={port + 1}"


def test_serve_check__port_or_folder_in_use__is_one_sentence(ready, serve, folder):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refusal(serve("--check", PORT=str(port)))
    assert line == f"Port {port} is in use; stop the other program or set PORT={port + 1}"

    checked = serve("--check")
    assert checked.wait() == 0
    assert postmaster(folder) is None

    first = ready()
    assert f"process {first.pid}" in refusal(serve("--check"))


def test_web__port_in_use__is_one_sentence_and_shares_no_port(ready, start):
    """Without the check, the web workers would share the port with the other server (SO_REUSEPORT)."""
    first = ready()

    line = refusal(start("manage.py", "web", PORT=str(first.port)))

    assert (
        line == f"Port {first.port} is in use; stop the other program or set PORT={first.port + 1}"
    )


def test_web__address_of_another_machine__is_one_sentence(start):
    line = refusal(start("manage.py", "web", HOST="192.0.2.1", PORT=str(free_port())))

    assert line.startswith("Cannot listen on 192.0.2.1")


def test_web__workers_are_new_interpreters__serves(ready, start):
    """As on macOS: such a worker has not imported Django before it imports the application."""
    ready()
    program = "from project import processes, server; server.START_METHOD = 'spawn'"

    web = start("-c", f"{program}; processes.main('web')", PORT=str(free_port()))

    web.wait_until_it_answers("/healthz")
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children(web.pid)]
    assert any("spawn_main" in command for command in commands)


def test_web__shell_that_started_it_exits__continues(folder):
    """As after `nohup manage.py web &` and a logout."""
    port = free_port()
    env = {
        **os.environ,
        "COMMONHOLD_DATA_DIR": str(folder / "data"),
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "PORT": str(port),
    }
    with subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            f"{sys.executable} manage.py web >{folder}/web.log 2>&1 & echo $!; read line",
        ],
        cwd=BASE_DIR,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as shell:
        assert shell.stdout
        pid = int(shell.stdout.readline())
        try:
            wait_for(lambda: status(port) == 200, "the web process responds")
            assert shell.stdin
            shell.stdin.close()  # `read` returns
            shell.wait(PATIENCE)
            assert {status(port) for _ in range(300)} == {200}
        finally:
            os.kill(pid, signal.SIGINT)  # like Ctrl-C
            wait_for(lambda: not is_alive(pid), "SIGINT ends it")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another group")
def test_worker__group_without_a_name__warns_of_nothing(folder):
    log = folder / "group.log"
    env = {**os.environ, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    env["COMMONHOLD_DATA_DIR"] = str(folder / "data")
    worker = Process(log, sys.executable, "manage.py", "worker", env=env, cwd=BASE_DIR, group=54321)
    try:
        worker.wait_for_output("database.unreachable")
        assert "Warning" not in worker.output()
    finally:
        worker.kill_all()


@pytest.mark.parametrize("role", ROLES)
def test_process__database_unreachable__log_says_why(start, role):
    url = "postgresql://me:hunter2@127.0.0.1:1/db"
    running = start("manage.py", role, DATABASE_URL=url, PORT=str(free_port()))

    running.wait_for_output("Connection refused")

    line = next(each for each in running.output().splitlines() if "Connection refused" in each)
    assert "database.unreachable" in line
    assert '"127.0.0.1", port 1 ' in line
    assert "hunter2" not in running.output()


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"DATABASE_URL": "postgresql://me:hunter2@127.0.0.1:1/db"}, "127.0.0.1:1 as me"),
        ({"DATABASE_URL": "mysql://me:hunter2@localhost/db"}, "not a PostgreSQL URL"),
        ({"BROKER_URL": "http://me:hunter2@localhost"}, "BROKER_URL must start with"),
        ({"BROKER_URL": "redis://me:hunter2@127.0.0.1:1/0"}, "Cannot reach the broker"),
        ({"PORT": "many"}, "PORT"),
        ({"HOST": "192.0.2.1"}, "Cannot listen on 192.0.2.1"),
        ({"COMMONHOLD_DATA_DIR": "/proc/nowhere"}, "COMMONHOLD_DATA_DIR"),
    ],
)
def test_serve__invalid_setting__is_one_sentence_without_secrets(serve, env, says):
    line = refusal(serve(**env))

    assert says in line
    assert "hunter2" not in line


def test_manage__malformed_database_url__is_one_sentence_for_every_command(start):
    line = refusal(start("manage.py", "check", DATABASE_URL="mysql://me:hunter2@localhost/db"))

    assert "not a PostgreSQL URL" in line
