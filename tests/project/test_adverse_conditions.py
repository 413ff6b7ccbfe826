"""A server under load while its disk is full, its clock jumps, or there are more clients than it can serve: no
acknowledged write is lost, no version is missing, and the change feed has each change once."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from project.postgres.cluster import Cluster
from tests.availability.traffic import WRITERS, Record, Traffic, check_history
from tests.project.conftest import Start, end_postgresql
from tests.project.running import Running, call_api, children, free_port, wait_for
from tests.project.sites import SETTINGS, Notes, Site, connect, url_of
from tests.receiving import Receiver, receiving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


@contextmanager
def running(folder: Path, **env: str) -> Iterator[tuple[Site, Traffic]]:
    """A server and its clients."""
    site = Site(folder, **env)
    traffic = None
    try:
        traffic = Traffic(site.running.port, site.token)
        traffic.wait_for_more()
        yield site, traffic
    finally:
        if traffic:
            traffic.stop(follow=False)
        site.running.kill_all()
        end_postgresql(folder)


# Disk ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system in memory, of which the server fills a third."""
    disk = folder / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or _mount("-t", "tmpfs", "-o", "size=600m,mode=755", "tmpfs", disk):
        pytest.skip("needs the permission to mount a file system")
    try:
        yield disk
    finally:
        subprocess.run(["/bin/umount", "--lazy", disk], check=True)


def _mount(*arguments: str | Path) -> int:
    return subprocess.run(["/bin/mount", *arguments], check=False, capture_output=True).returncode


def test_disk__full_under_load__refuses_writes_until_there_is_room(
    small_disk: Path, record_property: Record
) -> None:
    with running(small_disk) as (_, traffic):
        filler = small_disk / "filler"
        since = time.monotonic()
        fill(filler)
        wait_for(lambda: traffic.refused.total() > 2 * WRITERS, "writes are refused")
        while_full = Counter(traffic.refused)
        filler.unlink()
        traffic.wait_for_more()
        record_property("seconds without writes", round(traffic.longest_pause(since), 1))
        record_property("refused, by status", dict(while_full))
        # 0: PostgreSQL restarts, because it cannot write its log.
        assert while_full.keys() <= {0, 503}
        check_history(traffic, record_property)


def fill(filler: Path) -> None:
    """Fill the file system, also what the server frees meanwhile."""
    for size in (1 << 20, 1 << 12):
        with filler.open("ab", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * size) == size:
                pass


# Clock ---------------------------------------------------------------------------------------


def test_clock__jumps_under_load__changes_no_order(folder: Path, record_property: Record) -> None:
    """The clock of PostgreSQL, which decides what is due: an hour ahead, two hours back, and right again."""
    if not _FAKETIME.exists():
        pytest.skip("faketime is not installed")
    clock = folder / "clock"
    clock.write_text("+0s")
    cluster = Cluster(folder / "database")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in with_clock(clock).items():
            patch.setenv(name, value)
        cluster.acquire()
    with connect(cluster, "postgres") as database:
        database.execute("CREATE DATABASE commonhold")
    try:
        with running(folder / "site", DATABASE_URL=url_of(cluster)) as (site, traffic):
            for seconds in (3600, -3600, 0):
                clock.write_text(f"{seconds:+}s")
                wait_for(lambda s=seconds: jumped(site, s), "the clock of PostgreSQL jumps")
                traffic.wait_for_more(200)
                done = count_sweeps(site)
                wait_for(lambda n=done: count_sweeps(site) > n + 1, "beat and worker continue")
            record_property("refused, by status", dict(traffic.refused))
            check_history(traffic, record_property)
    finally:
        cluster.release()


def with_clock(file: Path) -> dict[str, str]:
    """The environment of processes whose clock differs from the right one as `file` says."""
    return {
        "LD_PRELOAD": str(_FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DISABLE_SHM": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(Path(__file__).parent / "faketime"),
    }


def test_clock__of_a_web_process_jumps_under_load__decides_nothing(
    folder: Path, record_property: Record
) -> None:
    """Two days ahead, two days back, and right again, while PostgreSQL's clock is right: it alone decides
    about leases, expiry, TTL, rate limits and idempotency records."""
    if not _FAKETIME.exists():
        pytest.skip("faketime is not installed")
    clock = folder / "clock"
    clock.write_text("+0s")
    site = Site(folder / "site")
    env = {"DATABASE_URL": site.url, "PORT": str(free_port()), **SETTINGS, **with_clock(clock)}
    web = Running(folder / "site", "manage.py", "web", **env)
    traffic = None
    try:
        web.wait_until_it_answers("/readyz")
        traffic = Traffic(web.port, site.token)
        jumping = Jumping(web, site.token)
        valid, expired, limited = prepare_deadlines(jumping)
        for seconds in (2 * 86_400, -2 * 86_400, 0):
            clock.write_text(f"{seconds:+}s")
            wait_for(lambda s=seconds: jumping.jumped(s), "the clock of the web process jumps")
            traffic.wait_for_more(200)
            check_deadlines(jumping, valid, expired, limited)
        record_property("refused, by status", dict(traffic.refused))
        check_history(traffic, record_property)
    finally:
        if traffic:
            traffic.stop(follow=False)
        web.kill_all()
        site.running.kill_all()
        end_postgresql(folder / "site")


def test_clocks__of_worker_and_beat_jump_under_load__jobs_continue_and_end_nothing_early(
    cluster: Cluster, start: Start, folder: Path, record_property: Record
) -> None:
    """Two days apart in both directions, both ahead, and right again. Beat puts no time into a message that
    a worker compares with its own clock, and PostgreSQL's clock decides what is due."""
    if not _FAKETIME.exists():
        pytest.skip("faketime is not installed")
    env = {"DATABASE_URL": url_of(cluster), **SETTINGS}
    setup = start("manage.py", "setup", **env)
    assert setup.wait() == 0, setup.output()
    (token,) = re.findall(r"API token +(ch_\S+)", setup.output())
    web = start("manage.py", "web", PORT=str(free_port()), **env)
    web.wait_until_it_answers("/readyz")
    clocks = {role: folder / f"clock of {role}" for role in ("worker", "beat")}
    for clock in clocks.values():
        clock.write_text("+0s")
    worker, _ = (start("manage.py", role, **env, **with_clock(clocks[role])) for role in clocks)
    traffic = Traffic(web.port, token)
    try:
        with receiving() as receiver:
            jobs = Jobs(web.port, token, receiver)
            valid, expired, limited = prepare_deadlines(jobs)
            jobs.begin()
            for number, days in enumerate(((2, -2), (-2, 2), (2, 2), (0, 0))):
                for clock, ahead in zip(clocks.values(), days, strict=True):
                    clock.write_text(f"{ahead * 86_400:+}s")
                worker_ahead, beat_ahead = (each * 86_400 for each in days)
                jobs.check_done(number)
                wait_for(lambda s=worker_ahead: log_jumped(worker, s), "the worker's clock jumps")
                wait_for(lambda s=beat_ahead: beat_jumped(folder, s), "the clock of beat jumps")
                traffic.wait_for_more(200)
                check_deadlines(jobs, valid, expired, limited)
                jobs.check_not_ended()
        record_property("refused, by status", dict(traffic.refused))
        check_history(traffic, record_property)
    finally:
        traffic.stop(follow=False)


def log_jumped(worker: Running, seconds: int) -> bool:
    """Whether its newest line has a time that is so many seconds ahead."""
    times = re.findall(r"^(\d{4}-\S+)", worker.output(), re.MULTILINE)
    return abs(datetime.fromisoformat(times[-1]).timestamp() - time.time() - seconds) < 60


def beat_jumped(folder: Path, seconds: int) -> bool:
    """Whether it has stored that it started a job so many seconds ahead."""
    stored = json.loads((folder / "data" / "beat.json").read_text()).values()
    newest = max(datetime.fromisoformat(each).timestamp() for each in stored)
    return abs(newest - time.time() - seconds) < 60


class Jobs(Notes):
    """Work of each kind of background job, and work that none of them may end."""

    def __init__(self, port: int, token: str, receiver: Receiver) -> None:
        super().__init__(port, token)
        self.receiver = receiver

    def request(self, method: str, path: str, body: Any = None) -> Any:
        status, found = self.call(method, path, body)
        assert status < 300, found
        return found

    def begin(self) -> None:
        """A webhook, a thread to compact, and a claimed dispatch whose lease lasts an hour."""
        self.request("PUT", "/namespaces/notes", {"schema": True})
        filters = {"kinds": ["entry.put"], "namespaces": ["notes"]}
        hook = {"name": "hook", "url": self.receiver.url, "filter": filters}
        self.request("POST", "/webhooks", hook)
        self.claimed = self.claim("held", 3600)

    def claim(self, thread: str, seconds: int) -> str:
        """The id of a dispatch that is claimed for so long."""
        if self.call("GET", f"/threads/{thread}")[0] == 404:
            self.request("POST", "/threads", {"id": thread})
        self.request("POST", f"/threads/{thread}/dispatches", {})
        body = {"thread_id": thread, "lease_seconds": seconds}
        (claimed,) = self.request("POST", "/dispatches/claim", body)["items"]
        return str(claimed["id"])

    def check_done(self, number: int) -> None:
        """Each kind of job is done: a delivery, a lease that ends, a TTL, a compaction."""
        self.request("PUT", f"/state/notes/k{number}", {"value": 1})
        self.request("PUT", f"/state/notes/gone{number}", {"value": 1, "ttl_seconds": 1})
        dispatch = self.claim(f"lost{number}", 1)
        compaction = self.request("POST", "/threads/clocks/compactions", {})["id"]
        wait_for(lambda: f"k{number}" in self.receiver.keys, "the webhook is delivered")
        wait_for(lambda: self.status(f"/dispatches/{dispatch}") == "Queued", "a lease ends")
        wait_for(
            lambda: self.status(f"/compactions/{compaction}") in ("done", "skipped"),
            "a compaction is done",
        )
        wait_for(lambda: self.is_expired(f"gone{number}"), "an expired entry is deleted")

    def check_not_ended(self) -> None:
        """No job has ended what is not due, by the events in the feed and by the lease."""
        assert self.status(f"/dispatches/{self.claimed}") == "Claimed"
        page = self.request("GET", "/changes?kind=run.stuck")
        assert page["items"] == []

    def status(self, path: str) -> str:
        return str(self.request("GET", path)["status"])

    def is_expired(self, key: str) -> bool:
        versions = self.request("GET", f"/history/notes/{key}")["items"]
        return any(version["operation"] == "expire" for version in versions)


class Jumping(Notes):
    """The web process whose clock jumps."""

    def __init__(self, web: Running, token: str) -> None:
        super().__init__(web.port, token)
        self.web = web

    def jumped(self, seconds: int) -> bool:
        """Whether its log shows it. (The header Date is not Python's.)"""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            client.request("GET", "/login", headers={"Host": "clock.example"})
            assert client.getresponse().status == 421
        finally:
            client.close()
        line = [each for each in self.web.output().splitlines() if "host_refused" in each][-1]
        shown = datetime.fromisoformat(line.partition(" ")[0]).timestamp()
        return abs(shown - time.time() - seconds) < 60


def prepare_deadlines(site: Notes) -> tuple[str, str, str]:
    """One of each thing with a deadline that has not passed, and of some with one that has. Returns tokens:
    valid for an hour, expired, and one whose requests of the next minutes are spent."""

    def create_token(name: str, **options: int) -> str:
        status, token = site.call("POST", "/tokens", {"name": name, "role": "viewer", **options})
        assert status == 201, token
        return str(token["secret"])

    def limit_is_reached() -> bool:
        return call_api(site.port, limited, "GET", "/version")[0] == 429

    valid = create_token("valid", expires_in_seconds=3600)
    expired = create_token("expired", expires_in_seconds=1)
    limited = create_token("limited", rate_per_minute=1)
    assert site.call("PUT", "/namespaces/deadlines", {"schema": True})[0] == 201
    for key, seconds in (("kept", 3600), ("gone", 1)):
        body = {"value": key, "ttl_seconds": seconds}
        assert site.call("PUT", f"/state/deadlines/{key}", body)[0] == 201
    assert site.call("POST", "/threads", {"id": "clocks"})[0] == 201
    run = {"id": "clocks", "agent_id": "clock", "lease_seconds": 3600}
    assert site.call("POST", "/threads/clocks/runs", run)[0] == 201
    assert append(site)[0] == 201
    wait_for(lambda: call_api(site.port, expired, "GET", "/version")[0] == 401, "a token expires")
    wait_for(lambda: not exists(site, "gone"), "an entry expires")
    wait_for(limit_is_reached, "the limit of requests is reached")
    return valid, expired, limited


def check_deadlines(site: Notes, valid: str, expired: str, limited: str) -> None:
    assert call_api(site.port, valid, "GET", "/version")[0] == 200
    assert call_api(site.port, expired, "GET", "/version")[0] == 401
    assert exists(site, "kept")
    assert not exists(site, "gone")
    # The lease is alive: nobody takes it over, and the run is not stuck.
    assert site.call("POST", "/runs/clocks/lease", {"only_if_free": True})[0] == 409
    assert site.call("GET", "/runs/clocks")[1]["stuck_reason"] is None
    assert append(site)[0] == 201
    assert len(site.call("GET", "/threads/clocks/messages")[1]["items"]) == 1
    # A jump of the clock refills nothing: of these calls, some come before the next full minute.
    spent = [call_api(site.port, limited, "GET", "/version")[0] for _ in range(3)]
    assert spent.count(200) <= 1
    assert set(spent) <= {200, 429}


def exists(site: Notes, key: str) -> bool:
    status, entry = site.call("GET", f"/state/deadlines/{key}")
    assert status == 200, entry
    return bool(entry["exists"])


def append(site: Notes) -> tuple[int, Any]:
    """Append a message with an Idempotency-Key: only the first call has an effect."""
    body = {"messages": [{"role": "user", "content": "Which time is it?"}]}
    key = {"Idempotency-Key": "clocks"}
    return site.call("POST", "/threads/clocks/messages", body, **key)


def jumped(site: Site, seconds: int) -> bool:
    with site.connect() as database:
        found = database.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    assert found
    return abs(float(found[0]) - time.time() - seconds) < 60


def count_sweeps(site: Site) -> int:
    """How many sweeps workers have started."""
    with site.connect() as database:
        found = database.execute("SELECT coalesce(sum(runs), 0)::int FROM sweeps").fetchone()
    assert found
    return int(found[0])


# Clients -------------------------------------------------------------------------------------

# Of every second client of the crowd.
RATE_PER_MINUTE = 300
# The first is read on the event loop, the second in a thread.
READS = ("/state/counters/writer-0", "/history/counters/writer-0?limit=1")


def test_clients__more_than_can_be_served__are_refused_and_reads_continue(
    folder: Path, record_property: Record
) -> None:
    """No read is refused. How long the slowest one takes also depends on the machine, which the clients
    share with the server: it is recorded. Before reads had a queue of their own, it took seconds."""
    with running(folder / "site", WEB_WORKERS="1") as (site, traffic):
        limited = {"name": "limited", "role": "editor", "rate_per_minute": RATE_PER_MINUTE}
        status, created = site.call("POST", "/tokens", limited)
        assert status == 201, created
        program = [sys.executable, "-m", "tests.project.crowd"]
        crowd = subprocess.Popen(
            [*program, str(site.port), site.token, created["secret"]], stdout=subprocess.PIPE
        )
        reads, times = Counter[int](), list[float]()

        def read(path: str) -> None:
            while crowd.poll() is None:
                began = time.monotonic()
                reads[traffic.call("GET", path)[0]] += 1
                times.append(time.monotonic() - began)

        try:
            in_parallel([partial(read, path) for path in READS])
        finally:
            crowd.kill()
            output, _ = crowd.communicate()
        assert output, "the crowd ended with an error"
        writes = {int(status): count for status, count in json.loads(output).items()}

        record_property("writes, by status", writes)
        record_property("reads, by status", dict(reads))
        share = sum(seconds < 1 for seconds in times) / len(times)
        record_property("reads within a second", f"{share:.1%}")
        record_property("median of reads, in seconds", round(statistics.median(times), 3))
        record_property("slowest read, in seconds", round(max(times), 2))
        assert {200, 429, 503} <= writes.keys() <= {200, 201, 429, 503}
        assert reads.keys() == {200}
        assert statistics.median(times) < 1
        traffic.wait_for_more()
        check_history(traffic, record_property)


def in_parallel(works: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# Time ----------------------------------------------------------------------------------------

MINUTES = float(os.environ.get("SOAK_MINUTES", "1"))
# Two web processes of four threads, with eight more each; a worker of four threads, beat, and this test.
MOST_CONNECTIONS = 2 * (4 + 8) + 4 + 8
# Those of the PostgreSQL process behind it, and of this process.
FILES_OF_CONNECTION = 100
MEGABYTES_OF_CONNECTION = 10


@pytest.mark.timeout(MINUTES * 60 + 1800)
def test_server__under_load_for_minutes__needs_no_more_memory_files_or_connections(
    folder: Path, record_property: Record
) -> None:
    """SOAK_MINUTES: how long; an hour before a release."""
    with running(folder / "site", WEB_WORKERS="2") as (site, traffic):
        stopped = threading.Event()
        found: list[dict[str, int]] = []

        def observe() -> None:
            for part in (1, 2):
                stopped.wait(MINUTES * 60 * part / 3)
                found.append(measure(site))
            stopped.set()

        def work() -> None:
            try:
                mix(site, stopped)
            finally:
                stopped.set()

        in_parallel([observe, work])
        early, late = found
        for name in early:
            record_property(name, f"{early[name]:,} after a third, {late[name]:,} at the end")
        # Pools open their connections when they need them, on a busy machine also late.
        opened = max(0, late["connections"] - early["connections"])
        assert late["connections"] <= MOST_CONNECTIONS
        assert late["files"] <= early["files"] * 1.2 + opened * FILES_OF_CONNECTION
        assert late["megabytes"] <= early["megabytes"] * 1.2 + opened * MEGABYTES_OF_CONNECTION
        check_history(traffic, record_property)


def mix(site: Site, stopped: threading.Event) -> None:
    """Runs with commits, batches, searches, streams that end, and pages, besides the writes of the traffic."""
    for number in itertools.takewhile(lambda _: not stopped.is_set(), itertools.count()):
        thread = f"soak-{number}"
        puts = [
            {"op": "put", "namespace": "counters", "key": f"batch-{n}", "value": number}
            for n in range(20)
        ]
        for method, path, body in (
            ("POST", "/threads", {"id": thread}),
            ("POST", f"/threads/{thread}/runs", {"id": thread}),
            ("POST", f"/runs/{thread}/commits", {"label": "step"}),
            ("POST", f"/runs/{thread}/cancel", {}),
            ("POST", "/state/batch", {"operations": puts}),
            ("POST", "/search", {"text": "batch"}),
            ("GET", "/changes?limit=200", None),
            ("DELETE", f"/threads/{thread}", None),
        ):
            status, answer = site.call(method, path, body)
            assert status < 300, (method, path, answer)
        client = http.client.HTTPConnection("127.0.0.1", site.running.port, timeout=30)
        client.request(
            "GET", "/api/v1/changes/stream", headers={"Authorization": f"Bearer {site.token}"}
        )
        client.getresponse().read(1)
        client.close()
        site.running.get("/login")


def measure(site: Site) -> dict[str, int]:
    """The open files of the server's processes, their memory that they share with no other, and
    the connections to PostgreSQL."""
    files = kilobytes = 0
    for pid in [site.running.pid, *children(site.running.pid)]:
        try:
            files += len(os.listdir(f"/proc/{pid}/fd"))
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes += sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))
    with site.connect() as database:
        counted = database.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
    assert counted
    return {"files": files, "megabytes": kilobytes // 1024, "connections": counted[0]}
