"""Calls per minute: how they are classified, and that none is lost or visible to others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from state_admin.api import threads as threads_api
from state_admin.models import Traffic, WebhookDelivery, hot
from state_admin.models.traffic import Span, measure_queues, read_spans
from state_admin.rest import authentication, endpoint
from state_admin.services import batching, idempotency, maintenance, traffic
from state_admin.services.compactions import request_compaction
from state_admin.services.dispatches import claim_dispatches, enqueue_dispatch
from state_admin.services.traffic import CallKind, Counter
from state_admin.services.webhooks import create_webhook
from tests.builders import Person, call, make_namespace, make_thread, put, raw
from tests.project.running import wait_for


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch, db: None) -> Counter:
    """A counter with a constant clock, so that no test crosses the end of a minute."""
    made = Counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM now())::float8")
        (now,) = cursor.fetchone()
    monkeypatch.setattr("state_admin.services.traffic.time.time", lambda: now)
    for module in (endpoint,):
        monkeypatch.setattr(module, "counter", made)
    return made


def read_hour(person: Person) -> Span:
    return read_spans(person.actor, width=1, count=60)[0]


def counted(counter: Counter, person: Person) -> tuple[int, int, int]:
    """Reads, writes and conflicts of a workspace after a flush."""
    counter.flush()
    rows = Traffic.objects.timed().filter(workspace=person.workspace)
    found = list(rows.values_list("reads", "writes", "conflicts"))
    return tuple(map(sum, zip(*found, strict=True))) or (0, 0, 0)  # type: ignore[return-value]


def test_counting__by_result__distinguishes_reads_writes_and_conflicts(
    alice: Person, counter: Counter
) -> None:
    make_namespace(alice.actor)
    written = alice.api("PUT", "/state/notes/k", {"value": 1})
    assert written.status_code == 201
    assert alice.api("GET", "/state/notes/k").status_code == 200
    known = alice.api("GET", "/state/notes/k", If_None_Match=written["ETag"])
    assert known.status_code == 304
    assert alice.api("PUT", "/state/notes/k", {"value": 2}, If_Match='"7"').status_code == 412
    make_thread(alice.actor, "t1")
    other = {"id": "t1", "title": "not the one there is"}
    assert alice.api("POST", "/threads", other).status_code == 409
    assert counted(counter, alice) == (2, 1, 2)


def test_counting__call_that_fails__is_a_failure(
    alice: Person, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(threads_api.threads, "create_thread", fail)
    assert alice.api("POST", "/threads", {"id": "t1"}).status_code == 503
    assert counted(counter, alice) == (0, 0, 0)
    (row,) = Traffic.objects.timed().filter(workspace=alice.workspace)
    assert row.failures == 1
    # The caller is unknown.
    monkeypatch.setattr(authentication.actors, "admit_token", fail)
    assert alice.api("GET", "/me").status_code == 503
    counter.flush()
    assert Traffic.objects.timed().get(workspace=alice.workspace).failures == 1


def test_counting__dry_run__is_a_read(alice: Person, counter: Counter) -> None:
    make_namespace(alice.actor)
    assert alice.api("PUT", "/state/notes/k?dry_run=true", {"value": 1}).status_code == 200
    assert counted(counter, alice) == (1, 0, 0)


def test_counting__calls_of_a_protocol__count_too(alice: Person, counter: Counter) -> None:
    item = {"namespace": ["notes"], "key": "k", "value": {"a": 1}}
    assert alice.api("PUT", "/agent-protocol/store/items", item).status_code < 300
    found = alice.api("GET", "/agent-protocol/store/items?namespace=notes&key=k")
    assert found.status_code == 200
    assert call("ch_no_token", "GET", "/agent-protocol/store/items").status_code == 401
    assert counted(counter, alice) == (1, 1, 0)


def test_counting__admin_page__is_not_a_call(alice: Person, counter: Counter) -> None:
    own = {"Sec-Fetch-Site": "same-origin"}
    assert alice.browser().get("/api/v1/changes/stream", headers=own).status_code == 200
    assert counted(counter, alice) == (0, 0, 0)
    assert alice.api("GET", "/changes/stream").status_code == 200
    assert counted(counter, alice) == (1, 0, 0)


def test_counting__refused_calls__are_not_counted(alice: Person, counter: Counter) -> None:
    assert call("ch_no_token", "GET", "/me").status_code == 401
    assert alice.api("GET", "/nowhere").status_code == 404
    assert alice.api("PUT", "/state/never/k", b"{").status_code == 400
    assert counted(counter, alice) == (0, 0, 0)


def test_counting__repeat_with_a_stored_response__is_not_a_second_write(
    alice: Person, counter: Counter
) -> None:
    make_namespace(alice.actor)
    for _ in range(2):
        alice.api("PUT", "/state/notes/k", {"value": 1}, Idempotency_Key="once")
    assert counted(counter, alice) == (0, 1, 0)


@pytest.mark.parametrize("step", ["claim", "keep", "confirm"])
def test_counting__error_around_the_handler_of_a_keyed_call__is_a_failure(
    alice: Person, counter: Counter, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is lost")

    make_namespace(alice.actor)
    monkeypatch.setattr(idempotency, step, fail)
    response = alice.api("PUT", "/state/notes/k", {"value": 1}, Idempotency_Key="once")
    assert response.status_code == 503
    assert counted(counter, alice) == (0, 0, 0)
    assert Traffic.objects.timed().get(workspace=alice.workspace).failures == 1


def test_counting__unconfirmed_write_without_a_key__is_a_failure(
    alice: Person, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OperationalError("no standby confirmed the commit")

    make_namespace(alice.actor)
    monkeypatch.setattr(idempotency, "confirm", fail)
    assert alice.api("PUT", "/state/notes/k", {"value": 1}).status_code == 503
    assert counted(counter, alice) == (0, 0, 0)
    assert Traffic.objects.timed().get(workspace=alice.workspace).failures == 1


def test_counting__long_poll_that_checks_again__is_one_read(
    alice: Person, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.api("GET", "/changes")
    monkeypatch.setattr(endpoint, "is_repeated", lambda request: True)
    alice.api("GET", "/changes")
    assert counted(counter, alice) == (1, 0, 0)


def test_counting__between_flushes__uses_no_statement(
    alice: Person, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("asked the database")

    monkeypatch.setattr(hot, "fetch_all", refuse)
    with CaptureQueriesContext(connection) as captured:
        counter.count(alice.workspace.pk, CallKind.READ)
    assert not captured.captured_queries


def test_flush__two_processes_in_one_minute__add_up(
    alice: Person, mallory: Person, counter: Counter
) -> None:
    other = Counter()
    for process in (counter, other):
        for _ in range(3):
            process.count(alice.workspace.pk, CallKind.WRITE)
        process.count(mallory.workspace.pk, CallKind.READ)
    other.flush()
    assert counted(counter, alice) == (0, 6, 0)
    assert counted(counter, mallory) == (2, 0, 0)
    assert counted(counter, alice) == (0, 6, 0), "a second flush adds nothing"
    assert Traffic.objects.timed().count() == 2


def test_flush__that_fails__keeps_the_counts_and_does_not_raise(
    alice: Person, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        counter.count(alice.workspace.pk, CallKind.READ)  # meanwhile
        raise OSError("gone")

    counter.count(alice.workspace.pk, CallKind.READ)
    with monkeypatch.context() as broken:
        broken.setattr(traffic, "add_calls", fail)
        counter.flush()
    assert counted(counter, alice) == (2, 0, 0)


def test_flush__deleted_workspace__is_skipped(alice: Person, counter: Counter) -> None:
    counter.count(alice.workspace.pk, CallKind.READ)
    counter.count(0, CallKind.READ)
    assert counted(counter, alice) == (1, 0, 0)
    assert Traffic.objects.timed().count() == 1


def test_hour__another_workspace__sees_nothing(
    alice: Person, mallory: Person, counter: Counter
) -> None:
    counter.count(alice.workspace.pk, CallKind.WRITE)
    counter.flush()
    assert sum(read_hour(alice).writes) == 1
    assert not any(map(any, read_hour(mallory)))


def test_hour__minutes__are_in_order_and_end_now(alice: Person) -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    for ago, reads, queued in ((70, 9, 9), (50, 5, 4), (10, 1, None), (5, 2, 0)):
        Traffic.objects.create(
            workspace=alice.workspace,
            minute=now - timedelta(minutes=ago),
            reads=reads,
            queued=queued,
        )
    hour = read_hour(alice)
    assert [len(line) for line in hour] == [60] * 5
    assert [count for count in hour.reads if count] == [5, 1, 2]
    assert hour.queued[-1] == 0
    assert hour.queued.count(4) == 45, "a minute without a measurement is as the one before"


def test_spans__hours__are_sums_of_calls_and_the_longest_queue_of_both_days(alice: Person) -> None:
    # Later in a minute, it could end before the spans are read.
    wait_for(lambda: timezone.now().second < 55, "the next minute begins")
    now = timezone.now().replace(second=0, microsecond=0)
    for ago, reads, queued in ((0, 1, 2), (59, 2, 7), (60, 4, None), (1440, 8, 3), (1560, 16, 9)):
        Traffic.objects.create(
            workspace=alice.workspace,
            minute=now - timedelta(minutes=ago),
            reads=reads,
            queued=queued,
        )
    today, earlier = read_spans(alice.actor, width=60, count=24)
    assert (today.reads[-2:], sum(today.reads)) == ([4, 3], 7)
    assert (today.queued[-2:], max(today.queued)) == ([0, 7], 7)
    assert (earlier.reads[-3:], earlier.queued[-3:]) == ([16, 0, 8], [9, 9, 3])


def test_sweep__queues__are_measured_for_each_workspace(alice: Person, mallory: Person) -> None:
    make_namespace(alice.actor)
    for thread_id in ("t1", "t2"):
        make_thread(alice.actor, thread_id)
        enqueue_dispatch(actor=alice.actor, thread_id=thread_id, payload=raw(1))
    claim_dispatches(actor=alice.actor, thread_id="t1", consumer="w")
    request_compaction(actor=alice.actor, thread_id="t2")
    hook, _ = create_webhook(actor=alice.actor, name="h", url="https://desk.example/h")
    for status in ("queued", "failed", "delivering", "delivered", "dead"):
        WebhookDelivery.objects.create(
            webhook=hook, public_id=status, status=status, change_xid=1, change_id=1
        )
    measure_queues()
    assert Traffic.objects.timed().get().queued == 1 + 1 + 2
    assert Traffic.objects.timed().get().workspace == alice.workspace
    assert read_hour(alice).queued[-1] == 4


def test_sweep__emptied_queue__is_measured_for_an_hour(alice: Person, counter: Counter) -> None:
    def age(**by: float) -> None:
        for row in Traffic.objects.timed().order_by("minute"):
            Traffic.objects.filter(pk=row.pk).update(minute=row.minute - timedelta(**by))

    counter.count(alice.workspace.pk, CallKind.READ)
    counter.flush()
    age(minutes=2)
    measure_queues()
    assert sorted(Traffic.objects.timed().values_list("reads", "queued")) == [(0, 0), (1, None)]
    age(hours=1)
    measure_queues()
    assert Traffic.objects.timed().count() == 2, "nothing happened for an hour: no row"


def test_sweep__just_after_another__measures_the_queues_only(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_usage_rest", batching.Rest())
    monkeypatch.setattr(batching, "rest_after", lambda _: 60.0)
    make_thread(alice.actor, "t1")
    assert maintenance.sweep_usage()["workspaces"] == 1
    assert not Traffic.objects.timed().exists()
    enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw(1))
    assert maintenance.sweep_usage() == {}
    assert Traffic.objects.timed().get().queued == 1


def test_sweep__measurement_and_calls_of_one_minute__share_a_row(
    alice: Person, counter: Counter
) -> None:
    make_thread(alice.actor, "t1")
    enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw(1))
    measure_queues()
    Traffic.objects.timed().update(reads=3)
    measure_queues()
    found = Traffic.objects.timed().values_list("reads", "queued")
    assert {reads for reads, _ in found} >= {3}
    assert {queued for _, queued in found} == {1}


def test_purge__traffic__is_deleted_after_48_hours(alice: Person) -> None:
    for hours in (47, 49):
        Traffic.objects.create(
            workspace=alice.workspace, minute=Now() - timedelta(hours=hours), reads=hours
        )
    assert maintenance.purge_leftovers()["traffic_minutes"] == 1
    assert Traffic.objects.timed().get().reads == 47


def test_counting__write_of_a_service__is_not_a_call(alice: Person, counter: Counter) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    assert counted(counter, alice) == (0, 0, 0)
