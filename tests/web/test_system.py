"""The page System: its content by role, and that it contains no secret."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from project import beat, broker
from project.audit_stream import Destination
from project.env import list_settings
from state_admin import __version__
from state_admin.models import AuditRow, AuditStream, Dispatch, User, database
from state_admin.services.access import administers_all
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.workspaces import ensure_workspace
from state_admin.templatetags.ui import effects, period
from tests.builders import Person, make_thread, raw
from tests.project.running import wait_for
from tests.web.test_threads import page

SECRET = "hunter2-and-more"


def test_system__admin__sees_every_part(admin: Client) -> None:
    shown = page(admin, "/system")
    for words in ("broker", "beat", "Queues", "statements", "Settings", "/metrics", "OpenAPI"):
        assert words in shown, words
    assert 'href="/api/docs"' in shown
    assert f"<strong>{__version__}</strong>" in shown


@pytest.mark.parametrize(
    ("token", "says"), [("", "off until METRICS_TOKEN is set"), (SECRET, "requires METRICS_TOKEN")]
)
def test_system__metrics__are_no_link(
    admin: Client, settings: Settings, token: str, says: str
) -> None:
    settings.METRICS_TOKEN = token
    shown = page(admin, "/system")
    assert says in shown
    assert 'href="/metrics"' not in shown


def test_system__viewer__sees_no_settings(viewer: Client) -> None:
    shown = page(viewer, "/system")
    assert "Queues" in shown
    assert "SITE_URL" not in shown


def test_system__secrets__are_not_shown(admin: Client, settings: Settings) -> None:
    settings.BROKER_URL = f"redis://:{SECRET}@127.0.0.1:1/0"
    settings.METRICS_TOKEN = SECRET
    settings.CONFIG_SECRET_KEYS = [SECRET]
    settings.SECRET_KEY_FALLBACKS = [SECRET]
    settings.DATABASE_URL = f"postgresql://u:{SECRET}@db/x"
    shown = page(admin, "/system")
    assert SECRET not in shown
    assert settings.SECRET_KEY not in shown
    assert "the broker does not respond: Error 111 connecting to 127.0.0.1:1" in shown


def test_system__settings_shown__are_documented(admin: Client) -> None:
    documented = {each.name for each in list_settings()}
    names = re.findall(r'<td class="mono">([A-Z_]+)</td>', page(admin, "/system"))
    assert len(names) > 20
    assert [name for name in names if name != "OIDC" and name not in documented] == []


def test_system__audit_stream__shows_its_state(admin: Client, settings: Settings) -> None:
    assert "audit stream" not in page(admin, "/system")
    settings.AUDIT_STREAM = Destination("file:///logs", "file", "", 0, "/logs")
    AuditRow.objects.all().delete()
    row = AuditRow(workspace_id=1, action="entry.put", actor_kind="user")
    row.save(force_insert=True)
    assert '<td>audit stream</td><td>unsent</td><td class="num">1</td>' in page(admin, "/system")
    stream = AuditStream.objects.create(destination="file:///logs", last_error="No space left")
    assert "No space left" in page(admin, "/system")
    AuditStream.objects.filter(pk=stream.pk).update(
        position=row.pk, last_error="", sent_at=datetime.now(UTC)
    )
    shown = page(admin, "/system")
    assert "last sent <relative-time" in shown
    assert "file:///logs" in shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:p%40ss@cache:6379/0", "redis://cache:6379"),
        ("amqp://me:pass@mq", "amqp://mq"),
        ("amqp://a:one@mq1:5672;amqp://b:two@mq2", "amqp://mq1:5672, amqp://mq2"),
        ("redis://cache/0?password=pass", "redis://cache"),
        ("redis://:pa/ss@cache:6379/0", "redis://…"),
        ("redis://:pa?ss@cache:6379/0", "redis://…"),
        ("redis://me:pa#ss@cache:6379/0", "redis://…"),
        (None, "queues in PostgreSQL"),
    ],
)
def test_broker__address__contains_no_secret(
    url: str | None, shown: str, settings: Settings
) -> None:
    settings.BROKER_URL = url
    assert broker.address() == shown


def test_broker__unavailable__is_reported_and_cached(settings: Settings, db: None) -> None:
    settings.BROKER_URL = "redis://127.0.0.1:1/0"
    assert broker.ping().problem.startswith("the broker does not respond: ")
    assert "Connection refused" in broker.ping().problem
    assert broker._last_status[1] is broker.ping()
    settings.BROKER_URL = "memory://here"
    assert broker.ping() == ("memory://here", "")


def test_broker__password_that_splits_the_url__is_not_quoted(settings: Settings, db: None) -> None:
    settings.BROKER_URL = "redis://:pa/ss@127.0.0.1:1/0"
    assert broker.ping() == ("redis://…", "the broker does not respond: ValueError")


def test_broker__in_the_database__is_healthy_once_a_worker_created_its_queue(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS pgmq CASCADE")  # another test may have created it
        assert broker.ping() == ("queues in PostgreSQL", "no worker has created the queue")
        cursor.execute("CREATE SCHEMA pgmq")
        cursor.execute("CREATE TABLE pgmq.q_commonhold ()")
    assert broker.ping().problem == ""


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"a": 7}', '{"a": "soon"}', '{"a": "2026-01-01"}']
)
def test_beat__unreadable_state_file__is_none(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONHOLD_DATA_DIR", str(tmp_path))
    beat.memory().write_text(content)
    assert beat.newest() is None


def test_system__beat__is_on_schedule_while_it_starts_jobs(
    admin: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONHOLD_DATA_DIR", str(tmp_path))
    assert "never seen: start beat" in page(admin, "/system")
    for age, words in (
        (timedelta(), "on schedule"),
        (timedelta(minutes=5), "last seen <relative-time"),
    ):
        moment = (datetime.now(UTC) - age).isoformat()
        beat.memory().write_text(f'{{"a": "2026-01-01T00:00:00+00:00", "b": "{moment}"}}')
        assert words in page(admin, "/system")
    assert "on schedule" not in page(admin, "/system")


def test_system__queues__are_counted_over_all_workspaces(
    admin: Client, alice: Person, mallory: Person
) -> None:
    for person in (alice, mallory):
        make_thread(person.actor, "t1")
        enqueue_dispatch(actor=person.actor, thread_id="t1", payload=raw(1))
    enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw(1))
    Dispatch.objects.filter(thread__workspace=mallory.workspace).update(status="DeadLetter")
    shown = page(admin, "/system")
    for status, depth in (("queued", 2), ("claimed", 0), ("dead letter", 1)):
        line = f'<td>dispatches</td><td>{status}</td><td class="num">{depth}</td>'
        assert line in shown, status


@pytest.fixture
def sleeper(transactional_db: None) -> Iterator[None]:
    """A statement that runs as long as the test, with a text that only some users may see."""
    thread = threading.Thread(target=_sleep)
    thread.start()
    wait_for(_is_sleeping, "the statement runs")
    yield
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE '%%pg_sleep(600)%%' AND pid <> pg_backend_pid()"
        )
    thread.join()


def _sleep() -> None:
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(f"SELECT pg_sleep(600) /* {SECRET} */")
    connection.close()


def _is_sleeping() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity"
            " WHERE query LIKE 'SELECT pg_sleep(600)%%' AND state = 'active'"
        )
        return cursor.fetchone() is not None


def test_system__running_statements__show_text_to_admins_of_all_workspaces_only(
    sleeper: None, alice: Person, bob: Person
) -> None:
    alone = page(alice.browser(), "/system")
    assert f"SELECT pg_sleep(600) /* {SECRET} */" in alone
    assert SECRET not in page(bob.browser(), "/system")
    ensure_workspace("another")
    shown = page(alice.browser(), "/system")
    assert SECRET not in shown
    assert "SELECT …" in shown
    User.objects.filter(username="alice").update(is_superuser=True)
    assert SECRET in page(alice.browser(), "/system")


def test_administers_all__user__requires_each_workspace(alice: Person, bob: Person) -> None:
    assert administers_all(alice.actor)
    assert not administers_all(bob.actor)
    assert not administers_all(replace(alice.actor, kind="token"))
    ensure_workspace("another")
    assert not administers_all(alice.actor)


def test_slow_statements__from_pg_stat_statements__are_those_with_the_most_time(db: None) -> None:
    """A table replaces the extension's view, which the embedded PostgreSQL does not have."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE pg_stat_statements (dbid oid, query text, calls bigint,"
            " total_exec_time float8, mean_exec_time float8)"
        )
        cursor.execute(
            "INSERT INTO pg_stat_statements SELECT d.oid, s.query, 2, s.total, s.total / 2"
            " FROM pg_database d, (VALUES ('SELECT   1', 5.0), ('UPDATE x', 9.0)) s(query, total)"
            " WHERE datname = current_database()"
        )
        assert database.slow_statements(with_text=True).kept is False  # the library is not loaded
        cursor.execute("SELECT set_config('pg_stat_statements.max', '5000', true)")
    slow = database.slow_statements(with_text=True)
    assert slow.kept
    assert [(each.text, each.calls, each.mean_ms) for each in slow.statements] == [
        ("UPDATE x", 2, 4.5),
        ("SELECT 1", 2, 2.5),
    ]
    verbs = [each.text for each in database.slow_statements(with_text=False).statements]
    assert verbs == ["UPDATE …", "SELECT …"]


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ({"expired": 3, "tickets": 0}, "3 expired"),
        ({"workspaces": 1, "mailboxes": 1, "entries": 1}, "1 workspace, 1 mailbox, 1 entry"),
        ({"login_links": 1_000, "forgotten": 1}, "1,000 login links, 1 forgotten"),
        ({}, ""),
    ],
)
def test_effects__of_a_sweep__are_text_without_zeros(report: dict[str, int], text: str) -> None:
    assert effects(report) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(90, "90 s"), (120, "2 min"), (10_800, "3 h"), (86_400, "1 day"), (604_800, "7 days")],
)
def test_period__seconds__is_exact_in_the_largest_unit(seconds: int, text: str) -> None:
    assert period(seconds) == text
