"""Which replica may be used, and what is repeated on the primary."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import OperationalError, connections
from django.http import HttpResponse
from django.test import RequestFactory

from state_admin.models import Sweep, WritePosition, write_positions
from state_admin.models.write_positions import EVERYONE, Primary, Replica
from state_admin.rest import replica_reads
from state_admin.services import replicas
from state_admin.services.errors import NotFound

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ERA = [3, 42, 1, 0]
PRIMARY = Primary(NOW, 1000, ERA, 500)
STANDBY = Replica(True, 42, 900, NOW - timedelta(seconds=2), ERA)


@pytest.mark.parametrize(
    ("replica", "reason"),
    [
        (STANDBY, ""),
        (STANDBY._replace(is_standby=False), "it is not a standby"),
        (STANDBY._replace(system=43), "it is a standby of another server"),
        (STANDBY._replace(position=2000, era=[2, 42, 1, 0]), "it has not followed the primary"),
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


def test_setting__no_replicas__reads_cost_no_statement(
    django_assert_num_queries: Callable[[int], object], db: None
) -> None:
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        response = replica_reads.read(RequestFactory().get("/"), HttpResponse)
    assert replica_reads.HEADER not in response.headers
