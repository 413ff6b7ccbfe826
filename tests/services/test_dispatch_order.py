"""Which dispatch is claimed next, and that a thread has at most one claimed dispatch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection

from state_admin.models import Dispatch, dispatches_sql
from state_admin.services import dispatches
from state_admin.services.errors import Forbidden, NotFound
from tests.builders import Person, make_run, make_thread, make_token
from tests.services.dispatching import fill
from tests.services.test_dispatches import (
    ack,
    box,
    claim,
    claimed,
    enqueue,
    shift,
    status,
    take,
)

__all__ = ["box"]


def test_claim__of_a_thread__is_by_priority_then_age(box: Person) -> None:
    late, low, first, second = (enqueue(box, priority=n) for n in (200, 255, 7, 7))
    order = []
    while got := claim(box, limit=10).dispatches:
        (row,) = got
        order.append(row.public_id)
        Dispatch.objects.filter(pk=row.pk).update(status="Acked")
        dispatches_sql.refresh([row.thread_id], "test")
    assert order == [first, second, late, low]


def test_claim__of_several_threads__takes_the_first_of_each_in_order(box: Person) -> None:
    make_thread(box.actor, "t3")
    ids = [enqueue(box, thread=t, priority=p) for t, p in (("t1", 9), ("t2", 3), ("t3", 6))]
    for thread in ("t1", "t2", "t3"):
        enqueue(box, thread=thread, priority=200)
    assert claimed(box, limit=2) == [ids[1], ids[2]]
    assert claimed(box, limit=10) == [ids[0]]
    assert claimed(box, limit=10) == []


def test_claim__thread_with_a_claimed_one__is_skipped_regardless_of_the_limit(box: Person) -> None:
    first, second = enqueue(box), enqueue(box)
    got = claim(box, limit=100)
    assert [row.public_id for row in got.dispatches] == [first]
    assert claimed(box, thread_id="t1", limit=100) == []
    ack(box, first, got.token)
    assert claimed(box, limit=100) == [second]


def test_database__second_claimed_of_a_thread__is_refused_by_the_index(box: Person) -> None:
    enqueue(box), enqueue(box)
    with pytest.raises(IntegrityError, match="dispatches_one_claimed_per_thread"):
        Dispatch.objects.update(status="Claimed")


def test_claim__not_yet_available__is_skipped_until_its_time(box: Person) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    later = enqueue(box, priority=0, available_at=soon)
    now = enqueue(box, priority=255)
    assert claimed(box) == [now]
    shift(later, 3601)
    assert claimed(box, thread_id="t1") == []  # t1 is busy
    assert dispatches.cancel_dispatch(actor=box.actor, dispatch_id=later).status == "Cancelled"


def test_claim__delayed_one_that_is_due__is_ordered_by_its_priority(box: Person) -> None:
    later = enqueue(box, priority=0, available_at=datetime.now(UTC) + timedelta(hours=1))
    enqueue(box, priority=255)
    shift(later, 3601)
    assert claimed(box) == [later]


def test_claim__for_an_agent__is_from_threads_whose_next_dispatch_is_its(box: Person) -> None:
    make_run(box.actor, "t2", "r2", agent_id="writer")
    enqueue(box, thread="t1", agent_id="planner")
    mine = enqueue(box, thread="t1", agent_id="writer", priority=200)
    of_run = enqueue(box, thread="t2", run_id="r2", priority=250)
    assert claimed(box, agent_id="writer", limit=10) == [of_run]
    first, token = take(box, agent_id="planner")
    ack(box, first, token)
    assert claimed(box, agent_id="writer", limit=10) == [mine]


def test_claim__restricted_token__gets_permitted_threads_only(box: Person) -> None:
    enqueue(box, thread="t1")
    mine = enqueue(box, thread="t2", priority=255)
    _, narrow = make_token(box, thread_prefixes=["t2"])
    got = dispatches.claim_dispatches(actor=narrow, limit=10)
    assert [row.public_id for row in got.dispatches] == [mine]
    with pytest.raises(NotFound):
        dispatches.claim_dispatches(actor=narrow, thread_id="t1")


def test_claim__non_member__gets_nothing_and_viewer_is_refused(
    box: Person, bob: Person, mallory: Person
) -> None:
    made = enqueue(box)
    assert claimed(mallory, limit=10) == []
    with pytest.raises(NotFound):
        dispatches.find_dispatch(mallory.actor, made)
    for refused in (partial(claim, bob), partial(enqueue, bob)):
        with pytest.raises(Forbidden):
            refused()


@pytest.mark.parametrize("agent", ["", "planner"])
def test_claim__ten_thousand_queued__uses_an_index(box: Person, agent: str) -> None:
    fill(box, threads=5000, each=2)
    parameters = {
        "workspace": box.actor.workspace_id,
        "limit": 10,
        "most": 1 << 20,
        "agent": agent,
        "lease": timedelta(seconds=30),
        "digest": "x",
        "consumer": "w1",
    }
    narrowing = " AND m.next_agent = %(agent)s" if agent else ""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE mailboxes, dispatches")
        cursor.execute("EXPLAIN " + dispatches_sql._CLAIM.format(narrowing=narrowing), parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    index = "mailboxes_next_of_agent" if agent else "mailboxes_next"
    assert f"using {index} on mailboxes" in plan, plan
    # What was picked is sorted, at most `limit` rows.
    for costly in ("Sort Key: m.", "Seq Scan on mailboxes", "Seq Scan on dispatches"):
        assert costly not in plan, plan


def test_claim__thousands_after_a_claimed_one__are_not_read(box: Person) -> None:
    """Head-of-line blocking: the rows that a claim reads do not increase with the queue of a busy
    thread."""
    fill(box, threads=1, each=3000, prefix="busy-", priority=0)
    held = claimed(box)
    other = enqueue(box, thread="t2", priority=255)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE mailboxes, dispatches")
        cursor.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON) " + dispatches_sql._CLAIM.format(narrowing=""),
            {
                "workspace": box.actor.workspace_id,
                "limit": 10,
                "most": 1 << 20,
                "lease": timedelta(seconds=30),
                "digest": "x",
                "consumer": "w1",
            },
        )
        (plan,) = cursor.fetchone()
    assert rows_read(plan[0]["Plan"]) < 30
    assert [status(one) for one in (*held, other)] == ["Claimed", "Claimed"]


def rows_read(node: dict[str, Any]) -> float:
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return own + sum(rows_read(part) for part in node.get("Plans", ()))
