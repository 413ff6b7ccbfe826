"""Job notifications and their jobs, with real workers where the test is about workers."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction
from django.test import override_settings
from kombu import Connection, Exchange, Queue
from kombu.transport import pgmq
from structlog.testing import capture_logs

from project import broker, job_notifications
from project.beat import Scheduler
from project.celery import app
from project.env import BadSetting
from project.postgres.cluster import Cluster
from state_admin.tasks.sweeps import BEAT_SCHEDULE, CONDITIONS
from tests.project.running import Running, free_port, wait_for

SAMPLE = {"DJANGO_SETTINGS_MODULE": "tests.project.sample"}
MODULE = ("-m", "tests.project.sample_worker")


def notes(folder: Path) -> list[str]:
    try:
        return (folder / "notes").read_text().splitlines()
    except FileNotFoundError:
        return []


@pytest.fixture
def cluster(folder: Path):
    """Keeps the server running between the processes of a test."""
    made = Cluster(folder / "data" / "postgres")
    made.acquire()
    yield made
    made.release()


@pytest.fixture
def worker(start: Callable[..., Running], folder: Path, cluster: Cluster):
    def begin(**env: str) -> Running:
        return start(*MODULE, NOTES=str(folder / "notes"), **SAMPLE, **env)

    return begin


@pytest.fixture
def ring(start: Callable[..., Running], cluster: Cluster):
    def begin(*arguments: str) -> None:
        ringer = start(*MODULE, "ring", *arguments, **SAMPLE)
        assert ringer.wait() == 0, ringer.output()
        assert "job.notification_failed" not in ringer.output()

    return begin


def test_notify_worker__worker_runs__job_is_executed(worker, ring, folder):
    worker()
    ring("hello")

    wait_for(lambda: len(notes(folder)) == 2, "the job ran")
    assert [line.rpartition(" by")[0] for line in notes(folder)] == ["hello started", "hello ended"]


def test_notify_worker__worker_starts_later__job_is_executed(worker, ring, folder):
    ring("early")
    worker()

    wait_for(lambda: len(notes(folder)) == 2, "the job ran")


def test_worker__killed_during_a_job__job_runs_again(worker, ring, folder):
    flag = folder / "flag"
    first = worker(BROKER_VISIBILITY_SECONDS="2")
    ring("unlucky", str(flag))
    wait_for(lambda: notes(folder), "the job started")
    first.signal(signal.SIGKILL)
    first.wait()
    flag.touch()

    second = worker(BROKER_VISIBILITY_SECONDS="2")

    wait_for(lambda: len(notes(folder)) == 3, "the job ran again")
    assert notes(folder)[1:] == [
        f"unlucky started by {second.pid}",
        f"unlucky ended by {second.pid}",
    ]


def test_worker__sigterm__finishes_what_it_has_fetched(worker, ring, folder):
    flag = folder / "flag"
    # A message that arrives with the signal may be received and not executed: it becomes visible
    # again after the timeout.
    running = worker(WORKER_THREADS="1", BROKER_VISIBILITY_SECONDS="10")
    ring("first", str(flag))
    wait_for(lambda: notes(folder), "the first job started")
    ring("second")
    running.signal(signal.SIGTERM)
    flag.touch()

    assert running.wait() == 0
    ended = [line for line in notes(folder) if "ended" in line]
    assert ended[0] == f"first ended by {running.pid}"
    if not any("second" in line for line in ended):  # it is still in the queue
        worker(BROKER_VISIBILITY_SECONDS="10")
        wait_for(
            lambda: any("second ended" in line for line in notes(folder)), "the second job ran"
        )


def test_worker__database_restarts__goes_on(worker, ring, folder, cluster):
    running = worker()
    ring("before")
    wait_for(lambda: len(notes(folder)) == 2, "the first job ran")
    os.kill(cluster.postmaster(), signal.SIGKILL)
    wait_for(lambda: cluster.postmaster() is None, "the server is dead")
    cluster.acquire()

    ring("after")

    # The first job runs again if the server died before its acknowledgement.
    wait_for(
        lambda: f"after ended by {running.pid}" in notes(folder),
        lambda: (
            f"the second job ran; {notes(folder)}; {running.process.poll()}; {running.output()}"
        ),
    )


@pytest.mark.django_db(transaction=True)
def test_prepare__ten_at_once__installs_once():
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS pgmq CASCADE")

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: broker.prepare(), range(10)))

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_type WHERE typname = 'message_record'")
        assert cursor.fetchone() == (1,)
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pgmq.q_commonhold'::regclass"
        )
        assert cursor.fetchone() == (1,)


@pytest.fixture
def consumer(fresh_broker, monkeypatch):
    """A worker's consumer in this process, which counts its polls and never polls by time."""
    monkeypatch.setattr(broker, "_POLL_SECONDS", 3600.0)
    polls: list[str] = []
    get_bulk = pgmq.Channel._get_bulk

    def poll(self: pgmq.Channel, queue: str, *args: object, **options: object) -> None:
        polls.append(queue)
        get_bulk(self, queue, *args, **options)

    monkeypatch.setattr(pgmq.Channel, "_get_bulk", poll)
    broker.prepare()
    received: list[str] = []
    with Connection(broker.url(), transport_options=broker.transport_options()) as client:
        queue = Queue("commonhold", Exchange("commonhold"), routing_key="commonhold")
        messages = client.Consumer(queue, callbacks=[lambda body, message: received.append(body)])
        with messages:
            yield client, polls, received
    with connection.cursor() as cursor:
        cursor.execute("SELECT pgmq.drop_queue('commonhold')")


def drain(client: Connection, most: int) -> None:
    for _ in range(most):
        with suppress(TimeoutError):
            client.drain_events(timeout=1)
            return


@pytest.mark.django_db(transaction=True)
def test_worker__nothing_to_do__polls_once(consumer):
    client, polls, _ = consumer

    drain(client, 5)

    assert len(polls) == 1


@pytest.mark.django_db(transaction=True)
def test_worker__idle__is_woken_by_the_notification(consumer):
    client, polls, received = consumer
    drain(client, 1)

    job_notifications.notify_worker("tests.note", "a")

    drain(client, 20)
    assert len(received) == 1
    assert len(polls) == 2


@pytest.mark.django_db(transaction=True)
def test_notify_worker__in_a_transaction__is_sent_after_the_commit_only(fresh_broker, monkeypatch):
    notified: list[str] = []
    monkeypatch.setattr(job_notifications, "_send", lambda task, args: notified.append(task))

    with transaction.atomic():
        job_notifications.notify_worker("committed")
        assert notified == []
    with transaction.atomic():
        job_notifications.notify_worker("rolled back")
        transaction.set_rollback(True)

    assert notified == ["committed"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_notify_worker__broker_is_down__warns_once_and_returns(fresh_broker, scheme):
    with (
        override_settings(BROKER_URL=f"{scheme}://127.0.0.1:{free_port()}"),
        capture_logs() as logs,
    ):
        job_notifications.notify_worker("tests.note", "a")
        job_notifications.notify_worker("tests.note", "b")

    assert [entry["event"] for entry in logs] == ["job.notification_failed"]
    assert logs[0]["task"] == "tests.note"


@pytest.mark.django_db(transaction=True)
def test_notify_worker__broker_is_down__keeps_the_pool_of_the_process_open(fresh_broker):
    """A worker starts deliveries of webhooks through it until it ends."""
    pool = app.producer_pool
    with override_settings(BROKER_URL=f"redis://127.0.0.1:{free_port()}"):
        job_notifications.notify_worker("tests.note", "a")
    pool.acquire(block=True, timeout=5).release()


@pytest.mark.django_db(transaction=True)
def test_notify_worker__queue_is_gone__warns_once_and_creates_it_again(fresh_broker):
    broker.prepare()
    job_notifications.notify_worker("tests.note", "a")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pgmq.drop_queue('commonhold')")

    with capture_logs() as logs:
        job_notifications.notify_worker("tests.note", "b")
        job_notifications._paused_until = 0.0
        job_notifications.notify_worker("tests.note", "c")

    assert [entry["event"] for entry in logs] == ["job.notification_failed"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pgmq.q_commonhold")
        assert cursor.fetchone() == (1,)
        cursor.execute("SELECT pgmq.drop_queue('commonhold')")


def test_check__broker_unreachable__names_it_without_its_password():
    url = f"redis://user:secret@127.0.0.1:{free_port()}/0"
    with override_settings(BROKER_URL=url), pytest.raises(BadSetting) as caught:
        broker.check()

    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


# Beat ----------------------------------------------------------------------------------------


def test_schedule__every_entry__names_a_job_that_exists():
    app.loader.import_default_modules()

    assert {entry["task"] for entry in BEAT_SCHEDULE.values()} <= set(app.tasks)
    assert set(CONDITIONS) <= set(BEAT_SCHEDULE)


def test_schedule__every_entry__has_no_time_that_a_worker_compares_with_its_clock():
    options = [entry["options"] for entry in BEAT_SCHEDULE.values()]
    assert all(each.keys() == {"expiration"} and each["expiration"] >= 5 for each in options)


def test_beat__condition_is_false__starts_nothing(beat, monkeypatch):
    started: list[str] = []
    monkeypatch.setattr(
        Scheduler, "apply_async", lambda self, entry, **_: started.append(entry.name)
    )
    scheduler = beat()
    entry = scheduler.schedule["daily"]

    monkeypatch.setattr(Scheduler, "conditions", {"daily": lambda: False})
    scheduler.apply_entry(entry)
    assert started == []

    monkeypatch.setattr(Scheduler, "conditions", {"daily": lambda: True})
    scheduler.apply_entry(entry)
    assert started == ["daily"]


def test_beat__nothing_due__sleeps_until_the_next_entry(beat, monkeypatch):
    """Celery's own scheduler returns 0 for the last 10 ms before an entry is due, which is a busy
    loop."""
    monkeypatch.setattr(Scheduler, "producer", None)
    clock = [1_900_000_000.0]
    app.conf.beat_schedule = {"tick": {"task": "tests.note", "schedule": timedelta(seconds=1)}}
    scheduler = beat()
    started: list[float] = []
    monkeypatch.setattr(Scheduler, "apply_async", lambda self, entry, **_: started.append(clock[0]))
    monkeypatch.setattr("project.beat._now", lambda: datetime.fromtimestamp(clock[0], UTC))
    for entry in scheduler.schedule.values():
        entry.schedule.nowfun = lambda: datetime.fromtimestamp(clock[0], UTC)
        entry.last_run_at = datetime.fromtimestamp(clock[0], UTC)
    ticks = 0
    while len(started) < 3:
        clock[0] += scheduler.tick() or 0
        ticks += 1
        assert ticks < 20, "it spins"


def test_beat__clock_is_set_back__starts_each_job_after_its_interval(beat, monkeypatch):
    monkeypatch.setattr(Scheduler, "producer", None)
    clock = [1_900_000_000.0]
    monkeypatch.setattr("project.beat._now", lambda: datetime.fromtimestamp(clock[0], UTC))
    started: list[tuple[str, float]] = []
    monkeypatch.setattr(
        Scheduler, "apply_async", lambda self, entry, **_: started.append((entry.name, clock[0]))
    )
    app.conf.beat_schedule = {
        name: {"task": "tests.note", "schedule": timedelta(seconds=seconds)}
        for name, seconds in (("often", 1), ("seldom", 60))
    }

    def run(scheduler: Scheduler, seconds: float) -> Counter[str]:
        """The jobs that are started within so many seconds."""
        until = clock[0] + seconds
        started.clear()
        while clock[0] < until:
            clock[0] += min(scheduler.tick() or 0.01, 1.0)
        return Counter(name for name, _ in started)

    scheduler = beat()
    for entry in scheduler.schedule.values():
        vars(entry.schedule)["nowfun"] = lambda: datetime.fromtimestamp(clock[0], UTC)
        entry.last_run_at = datetime.fromtimestamp(clock[0], UTC)
    assert run(scheduler, 90)["seldom"] == 1
    clock[0] -= 3600
    found = run(scheduler, 90)
    assert found["seldom"] == 1
    assert found["often"] > 60

    scheduler.sync()
    clock[0] -= 3600
    assert run(beat(), 90)["seldom"] == 1  # from a file with times in the future


def test_beat__database_unavailable__starts_the_job(beat, monkeypatch):
    started: list[str] = []
    monkeypatch.setattr(
        Scheduler, "apply_async", lambda self, entry, **_: started.append(entry.name)
    )

    def unreachable() -> bool:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(Scheduler, "conditions", {"daily": unreachable})
    scheduler = beat()
    scheduler.apply_entry(scheduler.schedule["daily"])

    assert started == ["daily"]


@pytest.fixture
def beat(tmp_path, monkeypatch, transactional_db):
    monkeypatch.setenv("COMMONHOLD_DATA_DIR", str(tmp_path))
    app.conf.beat_schedule = {"daily": {"task": "tests.note", "schedule": timedelta(days=1)}}
    yield lambda: Scheduler(app=app)
    app.conf.beat_schedule = {}


def test_beat__restarted__remembers_when_a_job_ran(beat):
    yesterday = datetime.now(UTC) - timedelta(hours=23)
    first = beat()
    first.schedule["daily"].last_run_at = yesterday
    first.sync()

    assert beat().schedule["daily"].last_run_at == yesterday


@pytest.mark.parametrize("content", ["", "{", "[]", '{"daily": "soon"}', '{"daily": 1}', "\0"])
def test_beat__file_is_malformed__starts_with_an_empty_one(beat, tmp_path, content):
    (tmp_path / "beat.json").write_text(content)

    scheduler = beat()

    scheduler.sync()
    assert beat().schedule["daily"].task == "tests.note"


def test_beat__disk_is_full__warns_and_keeps_the_file_before(beat, tmp_path):
    scheduler = beat()
    scheduler.sync()
    before = (tmp_path / "beat.json").read_text()
    (tmp_path / f".beat.{os.getpid()}").symlink_to("/dev/full")

    with capture_logs() as logs:
        scheduler.sync()

    assert logs == [
        {
            "event": "beat.times_not_stored",
            "error": "OSError: No space left on device",
            "log_level": "warning",
        }
    ]
    assert (tmp_path / "beat.json").read_text() == before


def test_beat__job_dropped_from_the_schedule__is_forgotten(beat, tmp_path):
    (tmp_path / "beat.json").write_text('{"gone": "2026-01-01T00:00:00+00:00"}')
    beat().sync()

    assert "gone" not in (tmp_path / "beat.json").read_text()


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


@pytest.mark.parametrize("role", ["worker", "beat"])
def test_process__migrations_due__waits_for_setup(
    role: str, folder: Path, start: Callable[..., Running], cluster: Cluster
) -> None:
    running = start("manage.py", role)
    running.wait_for_output("database.migrations_due")
    setup = start("manage.py", "setup")

    running.wait_for_output("process.started")

    assert setup.wait() == 0
    assert "Traceback" not in running.output()
    assert running.output().count("database.migrations_due") == 1
    wait_for(lambda: handles(running.pid, signal.SIGTERM), "Celery handles SIGTERM")
    running.signal(signal.SIGTERM)
    assert running.wait() == 0


def test_worker__broker_unreachable__log_has_the_event_that_the_runbook_names(worker):
    running = worker(BROKER_URL="redis://:hunter2@127.0.0.1:1/0")

    running.wait_for_output("broker.unreachable")

    assert "errors=['ConnectionError']" in running.output()
    assert "hunter2" not in running.output()
    assert "%s" not in running.output()
