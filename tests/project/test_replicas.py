"""Reads on a real streaming standby: which server answers, and what a client may see there."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from project.postgres.server import PORT
from state_admin.contract import OPERATIONS
from tests.patience import PATIENCE
from tests.project.conftest import temporary_folder
from tests.project.running import Running, children, wait_for
from tests.project.sites import Site, address, run

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

LIST = "/api/v1/state/notes"
ORIGIN = "https://app.example"
LAG_SECONDS = "3600"  # of tests that pause the replay


class Response(NamedTuple):
    status: int
    body: str
    headers: Any

    @property
    def is_from_replica(self) -> bool:
        return bool(self.headers["Read-From"] == "replica")

    @property
    def keys(self) -> list[str]:
        return [item["key"] for item in json.loads(self.body)["items"]]


class Standby:
    """A streaming standby on a Unix socket in its folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.url = f"postgresql://postgres@/commonhold?host={data}&port={PORT}"

    def copy(self, site: Site) -> None:
        run("pg_basebackup", *address(site.cluster), "-D", self.data, "-c", "fast", "-R")

    def start(self) -> None:
        options = f"-k {self.data} -p {PORT} -c listen_addresses="
        run("pg_ctl", "-D", self.data, "-w", "-l", self.data / "log", "-o", options, "start")

    def stop(self) -> None:
        run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def execute(self, statement: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as database:
            return database.execute(statement).fetchone()

    def pause(self) -> None:
        self.execute("SELECT pg_wal_replay_pause()")
        state = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
        wait_for(lambda: self.execute(state) == (True,), "the replay is paused")

    def resume(self) -> None:
        self.execute("SELECT pg_wal_replay_resume()")


class Pair:
    """A server with two web processes and a standby."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.standby = Standby(folder / "s" / "pg")
        self.env = {
            "DATABASE_REPLICA_URLS": self.standby.url,
            "DATABASE_REPLICA_MAX_LAG_SECONDS": LAG_SECONDS,
            "METRICS_TOKEN": "metrics",
            "CORS_ORIGINS": ORIGIN,
            "DEBUG": "true",  # pages without collected files
            **env,
        }
        self.site = Site(folder, **self.env)
        assert self.site.call("PUT", "/namespaces/notes", {"schema": True})[0] in (200, 201)
        body = {"name": "other", "role": "admin"}
        status, token = self.site.call("POST", "/tokens", body)
        assert status == 201, token
        self.other = token["secret"]

    def start_standby(self) -> None:
        self.standby.copy(self.site)
        self.standby.start()
        self.wait_for_replica()

    def get(self, path: str, token: str = "", method: str = "GET", **headers: str) -> Response:
        """A response over a connection of its own, so from either web process."""
        client = http.client.HTTPConnection("127.0.0.1", self.site.running.port, timeout=PATIENCE)
        if "Cookie" not in headers:
            headers["Authorization"] = f"Bearer {token or self.site.token}"
        try:
            client.request(method, path, headers=headers)
            answer = client.getresponse()
            return Response(answer.status, answer.read().decode(), answer.headers)
        finally:
            client.close()

    def wait_for_replica(self, token: str = "") -> None:
        """Until both web processes use it."""

        def is_used() -> bool:
            return all(self.get(LIST, token).is_from_replica for _ in range(8))

        wait_for(is_used, self.site.running.output)

    @contextmanager
    def failing_positions(self, body: str) -> Iterator[None]:
        """Run `body` (PL/pgSQL) before a position is stored. It can count with the sequence `tries`."""
        with self.site.connect() as database:
            database.execute("CREATE SEQUENCE tries")
            database.execute(
                f"CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN {body} RETURN NEW; END $$"
                " LANGUAGE plpgsql"
            )
            database.execute(
                "CREATE TRIGGER fail BEFORE INSERT ON write_positions FOR EACH ROW"
                " EXECUTE FUNCTION fail()"
            )
            try:
                yield
            finally:
                database.execute("DROP FUNCTION fail CASCADE")
                database.execute("DROP SEQUENCE tries")

    def manage(self, *command: str) -> str:
        """The output of a command of manage.py."""
        running = Running(self.site.running.folder, "manage.py", *command, **self.env)
        running.wait()
        return running.output()

    def diagnose(self) -> str:
        return self.manage("doctor")

    def metrics(self) -> str:
        return self.get("/metrics", "metrics").body


@pytest.fixture(scope="module")
def shared() -> Iterator[Pair]:
    with temporary_folder() as folder:
        pair = Pair(folder)
        try:
            # No standby yet: the primary answers.
            for _ in range(8):
                response = pair.get(LIST)
                assert (response.status, response.is_from_replica) == (200, False)
            assert "replica.not_used" in pair.site.running.output()
            pair.start_standby()
            yield pair
        finally:
            pair.site.running.kill_all()


@pytest.fixture
def pair(shared: Pair) -> Iterator[Pair]:
    shared.wait_for_replica()
    shared.wait_for_replica(shared.other)
    yield shared
    shared.standby.resume()


def test_list__writer_and_other_client__see_own_write_or_older_state(pair: Pair) -> None:
    pair.site.write("before")
    pair.wait_for_replica()
    pair.standby.pause()
    pair.site.write("lane")
    assert pair.site.call("POST", "/threads", {"id": "t-new"})[0] == 201  # by Django
    for _ in range(8):  # from both web processes
        own, others = pair.get(LIST), pair.get(LIST, pair.other)
        assert not own.is_from_replica
        assert "lane" in own.keys
        assert "t-new" in pair.get("/api/v1/threads").body
        assert others.is_from_replica
        assert "before" in others.keys
        assert "lane" not in others.keys
        assert "t-new" not in pair.get("/api/v1/threads", pair.other).body
        newest = pair.get(LIST, pair.other, **{"Cache-Control": "no-cache"})
        assert not newest.is_from_replica
        assert "lane" in newest.keys
        # One entry, which is not declared a replica read, is always current.
        assert pair.get(f"{LIST}/lane", pair.other).status == 200
        # A refusal is never due to the older state.
        assert pair.get("/api/v1/history/notes/lane", pair.other).status == 200

    pair.standby.resume()
    pair.wait_for_replica()
    assert "lane" in pair.get(LIST).keys


def test_position__lost_in_a_crash__writer_sees_own_writes(pair: Pair) -> None:
    pair.standby.pause()
    pair.site.write("crash-lane")
    assert pair.site.call("POST", "/threads", {"id": "t-crash"})[0] == 201
    with pair.site.connect() as database:
        database.execute("TRUNCATE write_positions")  # as a crash does with an unlogged table
    for _ in range(8):
        for token in ("", pair.other):
            response = pair.get(LIST, token)
            assert not response.is_from_replica
            assert "crash-lane" in response.keys
            assert "t-crash" in pair.get("/api/v1/threads", token).body
    pair.standby.resume()
    pair.wait_for_replica()


def test_position__connection_is_lost_while_it_is_stored__write_succeeds_and_is_seen(
    pair: Pair,
) -> None:
    pair.standby.pause()
    lost = (
        "IF nextval('tries') % 2 = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
    )
    with pair.failing_positions(lost):
        pair.site.write("stored-lane")
        assert pair.site.call("POST", "/threads", {"id": "t-stored"})[0] == 201
        with pair.site.connect() as database:
            assert database.execute("SELECT last_value FROM tries").fetchone() == (4,)
    for _ in range(8):
        assert "stored-lane" in pair.get(LIST).keys
        assert "t-stored" in pair.get("/api/v1/threads").body


def test_position__cannot_be_stored__write_says_what_to_do_and_reads_succeed(pair: Pair) -> None:
    pair.standby.pause()
    writes = (
        ("POST", "/threads", {"id": "t-full"}, "/threads/t-full"),
        ("PUT", "/state/notes/full", {"value": 1}, "/state/notes/full"),
    )
    with pair.failing_positions("RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full';"):
        for method, path, body, result in writes:
            status, problem = pair.site.call(method, path, body, **{"Idempotency-Key": result})
            assert status == 503, problem
            assert "read replicas may answer this client from an older state" in problem["detail"]
            assert "same Idempotency-Key" in problem["hint"]
            assert pair.site.call("GET", result)[0] == 200
        with pair.site.connect() as database:
            database.execute("TRUNCATE write_positions")
        assert "t-full" in pair.get("/api/v1/threads").body
        # A browser of another origin can read it.
        response = pair.get("/api/v1/threads", method="POST", Origin=ORIGIN)
        assert response.status == 503
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    for method, path, body, result in writes:
        assert pair.site.call(method, path, body, **{"Idempotency-Key": result})[0] == 201
    for _ in range(8):
        assert "t-full" in pair.get("/api/v1/threads").body


def test_position__of_unknown_credentials__is_not_stored(pair: Pair) -> None:
    count = "SELECT count(*) FROM write_positions"
    with pair.site.connect() as database:
        before = database.execute(count).fetchone()
        for number in range(3):
            token = f"ch_{number}"
            assert pair.get("/api/v1/threads", token, method="POST").status == 401
            assert pair.get(f"{LIST}/k", token, method="PUT").status == 401
            cookie = f"commonhold_session={number}"
            assert post(pair, "/threads", cookie).status in (302, 403, 404, 405)
            assert post(pair, "/sign-in/nowhere", cookie).status in (302, 403, 404, 405)
        assert database.execute(count).fetchone() == before


def test_no_cache__browser_of_another_origin__may_send_it(pair: Pair) -> None:
    headers = {"Access-Control-Request-Method": "GET", "Origin": ORIGIN}
    headers["Access-Control-Request-Headers"] = "authorization,cache-control"
    response = pair.get(LIST, method="OPTIONS", **headers)
    assert "cache-control" in response.headers["Access-Control-Allow-Headers"]


def test_token__revoked_while_replay_is_paused__is_refused_at_once(pair: Pair) -> None:
    status, token = pair.site.call("POST", "/tokens", {"name": "short", "role": "viewer"})
    assert status == 201
    pair.wait_for_replica(token["secret"])
    pair.standby.pause()
    path = f"/api/v1/tokens/{token['token']['id']}"
    assert pair.get(path, method="DELETE").status in (200, 204)
    wait_for(
        lambda: all(pair.get(LIST, token["secret"]).status == 401 for _ in range(8)),
        "the token is refused by both web processes",
    )


def test_redaction__replay_is_paused__is_seen_by_everyone(pair: Pair) -> None:
    assert pair.site.call("PUT", "/state/notes/secret", {"value": "hunter2"})[0] == 201
    pair.wait_for_replica()
    pair.wait_for_replica(pair.other)
    path = "/api/v1/history/notes/secret"
    assert pair.get(path, pair.other).is_from_replica
    pair.standby.pause()
    status, answer = pair.site.call("POST", "/redact/notes/secret", {"reason": "leaked"})
    assert status in (200, 201), answer
    for _ in range(8):
        response = pair.get(path, pair.other)
        assert not response.is_from_replica
        assert '"operation":"redact"' in response.body


def test_page__of_writer_and_of_other_browser__differ_while_replay_is_paused(pair: Pair) -> None:
    cookie = sign_in(pair)
    wait_for(lambda: pair.get("/threads", Cookie=cookie).is_from_replica, "the replica is used")
    assert not pair.get("/threads", Cookie=cookie, **{"HX-Request": "true"}).is_from_replica
    pair.standby.pause()
    assert pair.site.call("POST", "/threads", {"id": "t-paused"})[0] == 201
    page = pair.get("/threads", Cookie=cookie)
    assert (page.status, page.is_from_replica) == (200, True)
    assert "t-paused" not in page.body
    export = pair.get("/threads.csv", Cookie=cookie)
    assert (export.status, export.is_from_replica) == (200, True)
    assert "t-paused" not in export.body
    # Choosing a theme or workspace is a write of this browser, too.
    post(pair, "/sign-in/nowhere", cookie)
    wait_for(lambda: "t-paused" in pair.get("/threads", Cookie=cookie).body, "the page is current")


def test_replica__is_killed__primary_answers_until_it_is_back(pair: Pair) -> None:
    pair.standby.stop()
    for _ in range(8):
        response = pair.get(LIST)
        assert (response.status, response.is_from_replica) == (200, False)
    assert "replica.not_used" in pair.site.running.output()
    assert "read replica 1: not used: " in pair.diagnose()
    assert 'commonhold_replica_used{replica="replica1"} 0' in pair.metrics()
    pair.standby.start()
    pair.wait_for_replica()
    assert "replica.used_again" in pair.site.running.output()
    assert "read replica 1: " in pair.diagnose()
    assert 'commonhold_replica_used{replica="replica1"} 1' in pair.metrics()


def test_operations_and_pages__declared_for_replicas__write_nothing(pair: Pair) -> None:
    pair.site.write("read-only")
    for path, body in (
        ("/threads", {"id": "t1"}),
        ("/threads/t1/runs", {"id": "r1"}),
        ("/runs/r1/commits", {"messages": [{"role": "user", "content": "hello"}]}),
        ("/webhooks", {"name": "hook", "url": "http://127.0.0.1:9/"}),
    ):
        status, answer = pair.site.call("POST", path, body)
        assert status in (200, 201), answer
    hook = answer["id"]
    ids = {"namespace": "notes", "key": "read-only", "thread_id": "t1", "run_id": "r1"}
    ids |= {"kind": "providers"}
    pair.wait_for_replica()
    served = set()
    for operation in OPERATIONS.values():
        if operation.replica:
            query = "?from=1&to=1" if operation.id.startswith("diff") else ""
            path = re.sub(r"{(\w+)}", lambda found: ids.get(found[1], "1"), operation.path)
            response = pair.get(f"/api/v1{path}{query}")
            assert response.status in (200, 404, 422), (operation.id, response)
            assert response.is_from_replica == (response.status == 200), operation.id
            served |= {operation.id} if response.status == 200 else set()
    assert len(served) > 15, served
    cookie = sign_in(pair)
    lists = ("threads", "runs", "state", "changes", "audit", "compactions")
    tabs = ("conversation", "state", "runs", "compactions", "context", "lineage")
    details = (
        *("/namespaces/notes", "/state/notes/read-only", "/state/notes/read-only?tab=history"),
        *("/entry/raw/notes/read-only", "/entry/readers/notes/read-only"),
        *(f"/threads/t1?tab={tab}" for tab in tabs),
        *("/thread/message/1/t1", "/runs/r1", "/run/lineage/r1", "/run/knowledge/r1"),
        *("/policies", "/state-keys", "/webhooks", f"/webhooks/{hook}", "/config"),
        *("/reverts",),
    )
    pages = ["/", "/namespaces", *(f"/{name}" for name in lists), *details]
    for path in [*pages, *(f"/{name}.{kind}" for name in lists for kind in ("csv", "json"))]:
        for headers in ({}, {"Sec-Fetch-Dest": "document"}):
            wait_for(lambda: pair.get("/threads", Cookie=cookie).is_from_replica, "it is used")
            response = pair.get(path, Cookie=cookie, **headers)
            assert (response.status, response.is_from_replica) == (200, True), (path, response)
    assert "read replica" in pair.get("/system", Cookie=cookie).body.lower()


def test_export__from_a_late_replica__has_its_state(pair: Pair) -> None:
    pair.site.write("replayed")
    pair.wait_for_replica()
    pair.standby.pause()
    try:
        pair.site.write("not-replayed")
        exported = pair.manage("export_workspace", "default", "--replica")
        assert '"replayed"' in exported
        assert '"not-replayed"' not in exported
        assert '"not-replayed"' in pair.manage("export_workspace", "default")
    finally:
        pair.standby.resume()


def test_export__no_replica_can_be_used__says_why(pair: Pair) -> None:
    pair.standby.stop()
    try:
        assert "no read replica can be used: replica1: " in pair.manage(
            "export_workspace", "default", "--replica"
        )
    finally:
        pair.standby.start()
        pair.wait_for_replica()


def test_replica__is_promoted__is_neither_read_nor_written(folder: Path) -> None:
    pair = Pair(folder, DATABASE_REPLICA_MAX_LAG_SECONDS="1")
    try:
        pair.start_standby()
        pair.standby.pause()
        pair.site.write("late")

        def is_late() -> bool:
            return not pair.get(LIST, pair.other).is_from_replica

        wait_for(lambda: all(is_late() for _ in range(8)), "the bound of the lag is reached")
        assert "it is too far behind" in pair.site.running.output()
        assert "late" in pair.get(LIST, pair.other).keys
        pair.standby.resume()
        pair.wait_for_replica(pair.other)

        run("pg_ctl", "-D", pair.standby.data, "-w", "promote")
        for number in range(8):
            pair.site.write(f"after-{number}")
            response = pair.get(LIST, pair.other)
            assert not response.is_from_replica
            assert f"after-{number}" in response.keys
        assert "it is not a standby" in pair.site.running.output()
        count = "SELECT count(*) FROM entries WHERE key LIKE 'after-%'"
        assert pair.standby.execute(count) == (0,)
    finally:
        pair.site.running.kill_all()


def test_replicas__one_is_late_and_one_is_down__another_or_the_primary_answers(
    folder: Path,
) -> None:
    second = Standby(folder / "s2" / "pg")
    first_url = Standby(folder / "s" / "pg").url
    pair = Pair(folder, DATABASE_REPLICA_URLS=f"{first_url},{second.url}")
    try:
        second.copy(pair.site)
        second.start()
        pair.start_standby()
        metrics = 'commonhold_replica_used{{replica="replica{}"}} {}'
        wait_for(lambda: metrics.format(2, 1) in pair.metrics(), "both are used")

        pair.standby.pause()
        pair.site.write("on-one")
        wait_for(lambda: pair.get(LIST).is_from_replica, "the second has the write")
        for _ in range(8):  # never from the first, and never older
            response = pair.get(LIST)
            assert response.is_from_replica
            assert "on-one" in response.keys
        assert any("on-one" not in pair.get(LIST, pair.other).keys for _ in range(100))

        second.stop()
        for _ in range(8):
            own, others = pair.get(LIST), pair.get(LIST, pair.other)
            assert not own.is_from_replica
            assert "on-one" in own.keys
            assert others.is_from_replica
        assert metrics.format(1, 1) in pair.metrics()
        assert metrics.format(2, 0) in pair.metrics()
        assert "read replica 2: not used: " in pair.diagnose()
    finally:
        pair.site.running.kill_all()


def test_replica__hangs__primary_answers(pair: Pair) -> None:
    postmaster = int((pair.standby.data / "postmaster.pid").read_text().split()[0])
    processes = [postmaster, *children(postmaster)]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(8):
            response = pair.get(LIST)
            assert (response.status, response.is_from_replica) == (200, False)
        assert "the replica does not respond" in pair.site.running.output()
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)
    pair.wait_for_replica()


def sign_in(pair: Pair) -> str:
    """The cookie of a new browser session of the first admin."""
    link = Running(pair.site.running.folder, "manage.py", "create_login_link", "--user", "admin")
    link.wait()
    found = re.search(r"/login/once/(\S+)", link.output())
    assert found, link.output()
    response = post(pair, f"/login/once/{found[1]}", "")
    cookies = re.findall(r"commonhold_session=([^;]+)", str(response.headers))
    assert cookies, response
    return f"commonhold_session={cookies[0]}"


def post(pair: Pair, path: str, cookie: str) -> Response:
    csrf = "a" * 32
    headers = {"Cookie": f"{cookie}; commonhold_csrf={csrf}".strip("; "), "X-CSRFToken": csrf}
    return pair.get(path, method="POST", **headers)
