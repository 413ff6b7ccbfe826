"""Which replica may be used, and what is repeated on the primary."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import structlog
from django.db import OperationalError, ProgrammingError, connections, transaction
from django.http import HttpResponse
from django.test import RequestFactory

from state_admin.models import Sweep, WritePosition, hot, write_positions
from state_admin.models.write_positions import EVERYONE, Primary, Replica
from state_admin.rest import replica_reads
from state_admin.services import replicas
from state_admin.services.errors import NotFound
from tests.loops import closing
from tests.patience import PATIENCE
from tests.project.running import wait_for

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ERA = [3, 42, 1, 0, 16384]
PRIMARY = Primary(NOW, 1000, ERA, 500)
STANDBY = Replica(True, 42, 900, NOW - timedelta(seconds=2), ERA)


@pytest.mark.parametrize(
    ("replica", "reason"),
    [
        (STANDBY, ""),
        (STANDBY._replace(is_standby=False), "it is not a standby"),
        (STANDBY._replace(system=43), "it is a standby of another server"),
        (STANDBY._replace(era=[3, 42, 1, 0, 16385]), "it is another database of this server"),
        (
            STANDBY._replace(position=2000, era=[2, 42, 1, 0, 16384]),
            "it has not followed the primary",
        ),
        (STANDBY._replace(replayed_at=NOW - timedelta(seconds=11)), "it is too far behind"),
        (STANDBY._replace(position=1000, replayed_at=NOW - timedelta(days=1)), ""),
        (STANDBY._replace(replayed_at=None), "its lag is unknown"),
    ],
)
def test_replica__state__decides_whether_it_is_used(
    replica: Replica, reason: str, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    monkeypatch.setattr(write_positions, "read_replica", lambda: replica)
    state, _ = replicas._inspect("default", PRIMARY)
    assert state.reason.startswith(reason)
    assert bool(state.reason) == bool(reason)


@pytest.mark.parametrize(
    "error", [psycopg.errors.SerializationFailure, psycopg.errors.AdminShutdown]
)
def test_read__replica_cancels_it__is_repeated_once_on_the_primary(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    failure = OperationalError()
    failure.__cause__ = error()
    assert _answer(monkeypatch, [failure]) == (2, "")
    assert _answer(monkeypatch, []) == (1, "replica")
    assert _answer(monkeypatch, [NotFound("x")]) == (2, "")
    # The replica does not have the newest column or row yet.
    assert _answer(monkeypatch, [ProgrammingError()]) == (2, "")
    assert _answer(monkeypatch, [Sweep.DoesNotExist()]) == (2, "")
    with pytest.raises(ProgrammingError):  # not due to the replica
        _answer(monkeypatch, [ProgrammingError(), ProgrammingError()])
    late = OperationalError()
    late.__cause__ = psycopg.errors.QueryCanceled()
    with pytest.raises(OperationalError):
        _answer(monkeypatch, [late])


def _answer(monkeypatch: pytest.MonkeyPatch, failures: list[Exception]) -> tuple[int, str]:
    """The number of calls, and the header of the response."""
    calls = []

    def work() -> HttpResponse:
        calls.append(1)
        if failures:
            raise failures.pop()
        return HttpResponse()

    monkeypatch.setattr(replicas, "ALIASES", ("default",))
    monkeypatch.setattr(replicas, "_choose", lambda client: "default")
    monkeypatch.setattr(type(connections["default"]), "close", lambda self: None)
    monkeypatch.setattr(replicas, "_troubles", {})
    response = replica_reads.read(RequestFactory().get("/"), work)
    return len(calls), response.headers.get(replica_reads.HEADER, "")


def test_position__of_a_client__is_at_least_that_of_everyone(db: None) -> None:
    assert write_positions.read_primary("a").required is None  # as after a crash
    write_positions.record([EVERYONE])
    first = write_positions.read_primary("a").required
    Sweep.objects.create(name="writes to the log")
    write_positions.record(["b", "a"])
    second = write_positions.read_primary("a").required
    assert write_positions.read_primary("a").era == write_positions.read_replica().era
    assert first is not None
    assert second is not None
    assert second > first
    assert write_positions.read_primary("c").required == first
    WritePosition.objects.filter(client="a").update(written_at=NOW - timedelta(days=9000))
    assert write_positions.purge() == 1
    purged = write_positions.read_primary("a").required
    assert purged is not None
    assert purged >= second
    # A position of another server, which a restored dump contains, is not waited for.
    WritePosition.objects.filter(client="b").update(position=2**60)
    restored = write_positions.read_primary("b").required
    assert restored is not None
    assert restored < 2**60


@pytest.mark.django_db(transaction=True)
def test_expiry__of_older_states__is_part_of_the_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replicas, "ALIASES", ("default",))
    monkeypatch.setattr(transaction, "on_commit", lambda work: None)  # the process is killed
    write_positions.record([EVERYONE, "a"])
    with transaction.atomic():
        replicas.expire_older_states()
        transaction.set_rollback(True)
    assert write_positions.read_primary("a").required is not None
    with transaction.atomic():
        replicas.expire_older_states()
    # Unknown to everyone, until a reader has stored the position after the commit.
    assert write_positions.read_primary("a").required is None
    committed = _position()
    assert replicas._choose("a") is None
    required = write_positions.read_primary("b").required
    assert required is not None
    assert required >= committed


@pytest.mark.django_db(transaction=True)
def test_expiry__reader_stores_a_position_meanwhile__is_the_one_after_the_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replicas, "ALIASES", ("default",))
    with transaction.atomic():
        replicas.expire_older_states()  # the table was empty
        reader = threading.Thread(target=closing(lambda: write_positions.record([EVERYONE])))
        reader.start()
        wait_for(_is_waiting, "the reader waits for the transaction")
        Sweep.objects.create(name="writes to the log")
        written = _position()
    reader.join(PATIENCE)
    required = write_positions.read_primary("a").required
    assert required is not None
    assert required > written


def _position() -> int:
    """The current position of the log, as it is stored."""
    return int(hot.fetch_all(f"SELECT {write_positions._CURRENT}", {})[0][0])


def _is_waiting() -> bool:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
        return cursor.fetchone() is not None


@pytest.mark.django_db(transaction=True)
def test_reader__position_of_everyone_cannot_be_stored__is_answered_by_the_primary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(clients: object) -> None:
        raise OperationalError

    monkeypatch.setattr(replicas, "ALIASES", ("default",))
    monkeypatch.setattr(write_positions, "record", fail)
    assert replicas.read("a", lambda: "answer") == ("answer", None)


def test_log__replica_is_late_again_and_again__has_one_line_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replicas, "_troubles", {})
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            replicas._note("replica1", "it is too far behind")
            replicas._note_use("replica1")
        replicas._note("replica1", "it is not a standby")
    events = [(line["event"], line.get("reason", "")) for line in lines]
    assert events == [
        ("replica.not_used", "it is too far behind"),
        ("replica.used_again", ""),
        ("replica.not_used", "it is not a standby"),
    ]


def test_setting__no_replicas__reads_cost_no_statement(
    django_assert_num_queries: Callable[[int], object], db: None
) -> None:
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        response = replica_reads.read(RequestFactory().get("/"), HttpResponse)
    assert replica_reads.HEADER not in response.headers
