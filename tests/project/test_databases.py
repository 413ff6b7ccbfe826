"""DATABASE_URL, and the detection of dead connections."""

from __future__ import annotations

import uuid

import pytest
from django.db import OperationalError, connection

from project import databases
from project.env import BadSetting
from project.postgres import session
from project.postgres.base import is_dead
from project.startup import _why_no_database

embedded_only = pytest.mark.skipif(
    not connection.settings_dict.get("EMBEDDED"), reason="DATABASE_URL names a server"
)


@pytest.fixture
def other(db):
    """A second connection to the test database, as another thread would have it."""
    wrapper = connection.copy()
    wrapper.connect()
    yield wrapper
    wrapper.close()


def terminate(wrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(%s, 5000)", [wrapper.connection.info.backend_pid]
        )
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hunter2@localhost/db",
        "postgresql://me:hunter2@localhost:port/db",
        "postgresql://me:hunter2@localhost:0/db",
        "postgresql://me:hunter2@localhost:65536/db",
        "postgresql://me:hunter2@db1,db2:0/db",
        "postgresql://me:hunter2%zz@localhost/db",
        "host=localhost password=hunter2",
        "hunter2",
        "",
    ],
)
def test_from_url__not_a_postgresql_url__is_one_sentence_without_the_password(url):
    with pytest.raises(BadSetting) as caught:
        databases.from_url(url)

    assert "DATABASE_URL is not a PostgreSQL URL" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("postgresql://me:hunter2@localhost/db?sslmod=require", "did you mean sslmode?"),
        ("postgresql://localhost/db?ssl=true&conect_timeout=2", "did you mean connect_timeout?"),
        ("postgresql://me:se/cret?hunter2=1@localhost/db", "use those of libpq"),
    ],
)
def test_from_url__unknown_parameter__is_named_as_the_problem(url, advice):
    with pytest.raises(BadSetting) as caught:
        databases.from_url(url)

    expected = f"DATABASE_URL has an unknown parameter after the question mark; {advice}"
    assert str(caught.value) == expected


def test_replicas_from_urls__two_hosts_in_a_url__says_that_each_url_names_one():
    with pytest.raises(BadSetting, match="separated by commas; each names one host") as caught:
        databases.replicas_from_urls(["postgresql://me:hunter2@h1", "h2/db"])

    assert "hunter2" not in str(caught.value)


def test_from_url__every_part__is_kept():
    url = "postgresql://me:p%40ss@db.example:6432/state?sslmode=verify-full&connect_timeout=2"

    found = databases.from_url(url)

    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("me", "p@ss", "state")
    assert (found["HOST"], found["PORT"]) == ("db.example", "6432")
    assert found["OPTIONS"]["sslmode"] == "verify-full"
    assert found["OPTIONS"]["connect_timeout"] == "2"


@pytest.mark.parametrize(
    ("hosts", "ports"),
    [
        ("db1,db2,db3", ",,"),
        ("db1:5432,db2", "5432,"),
        ("db1:5432,db2:6432", "5432,6432"),
        ("", ""),
    ],
)
def test_from_url__several_hosts__are_kept_with_their_ports(hosts, ports):
    url = f"postgresql://me@{hosts}/state?target_session_attrs=read-write"

    found = databases.from_url(url)

    assert found["HOST"] == ",".join(host.partition(":")[0] for host in hosts.split(","))
    assert found["PORT"] == ports
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"


def test_unreachable_server__password_in_the_reason__is_hidden(settings):
    where = {"HOST": "h", "PORT": "", "NAME": "n", "USER": "u", "PASSWORD": "hunter2"}
    before = connection.settings_dict
    connection.settings_dict = {**before, **where, "EMBEDDED": False}
    try:
        sentence = _why_no_database("connection failed: bad hunter2\nHINT: none\n")
        crowded = _why_no_database("connection failed: FATAL:  sorry, too many clients already\n")
    finally:
        connection.settings_dict = before

    assert sentence == "Cannot reach the database n at h:5432 as u: bad …. Check DATABASE_URL."
    assert crowded.endswith(" as u: FATAL:  sorry, too many clients already.")


def test_connection__alive__is_kept(other):
    raw = other.connection

    other.close_if_unusable_or_obsolete()

    assert other.connection is raw
    assert not is_dead(raw)


def test_connection__ended_by_the_server__is_dropped_before_its_next_use(other):
    terminate(other)

    other.close_if_unusable_or_obsolete()

    assert other.connection is None
    with other.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_connection__ended_in_a_transaction__is_kept_until_its_end(other):
    other.set_autocommit(False)
    other.in_atomic_block = True
    terminate(other)

    other.close_if_unusable_or_obsolete()

    assert other.connection is not None
    other.in_atomic_block = False


@embedded_only
def test_embedded__database_missing__is_created(other):
    name = f"made_{uuid.uuid4().hex}"
    other.close()
    other.settings_dict = {**other.settings_dict, "NAME": name}

    with other.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == (name,)

    other.close()
    with other._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


@embedded_only
def test_embedded__test_database_missing__is_not_created(other):
    other.close()
    other.settings_dict = {**other.settings_dict, "NAME": f"test_{uuid.uuid4().hex}"}

    with pytest.raises(OperationalError, match="does not exist"):
        other.ensure_connection()


def test_embedded__hangs__connecting_fails_in_seconds() -> None:
    assert databases.from_url(None)["OPTIONS"]["connect_timeout"] == 5


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("web", ("4s", "5s", "3s")),
        ("worker", ("20s", "5s", "3s")),
        ("", ("20s", "5s", "1min")),
    ],
)
def test_connect__each_role__has_its_timeouts(db, monkeypatch, role, expected):
    monkeypatch.setenv("COMMONHOLD_ROLE", role)
    monkeypatch.setenv("STATEMENT_TIMEOUT_MS", "20000")
    monkeypatch.setenv("WEB_STATEMENT_TIMEOUT_MS", "4000")
    monkeypatch.setenv("IDLE_IN_TRANSACTION_TIMEOUT_MS", "3000")
    session._set_up.cache_clear()
    wrapper = connection.copy()
    # The tests have timeouts of their own, and the options of a URL take precedence.
    del wrapper.settings_dict["OPTIONS"]["options"]
    try:
        with wrapper.cursor() as cursor:
            names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
            cursor.execute(f"SELECT {', '.join(f'current_setting({name!r})' for name in names)}")
            assert cursor.fetchone() == expected
    finally:
        wrapper.close()
        session._set_up.cache_clear()


def test_statement_timeout__of_web_not_set__is_that_of_all(monkeypatch):
    monkeypatch.setenv("COMMONHOLD_ROLE", "web")
    monkeypatch.setenv("STATEMENT_TIMEOUT_MS", "20000")
    assert session.statement_timeout_ms() == 20_000
