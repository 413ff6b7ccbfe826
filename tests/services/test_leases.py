"""Leases and fencing tokens: a replaced worker can change nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_admin.domain.lifecycle import stuck_reason
from state_admin.models import AuditRow, Change, Revision, Run
from state_admin.services import leases, maintenance, recoveries, runs
from state_admin.services.errors import Conflict, Forbidden, NotFound, Superseded
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_run, make_thread
from tests.services.racing import race, split

HI = {"role": "user", "content": "hi"}


@pytest.fixture
def run(alice: Person) -> Person:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    return alice


def take(person: Person, **options: Any) -> Run:
    return leases.take_lease(actor=person.actor, run_id="r1", **options)


def release(person: Person, **options: Any) -> Run:
    return leases.release_lease(actor=person.actor, run_id="r1", **options)


def commit(person: Person, token: int | None) -> Any:
    return builders.commit(person.actor, "r1", messages=[HI], fencing_token=token)


WORKS: dict[str, Callable[[Person, int], Any]] = {
    "commit": commit,
    "empty commit": lambda p, token: builders.commit(p.actor, "r1", fencing_token=token),
    "heartbeat": lambda p, token: runs.heartbeat(
        actor=p.actor, run_id="r1", fencing_token=token
    ),
    "change": lambda p, token: runs.change_run(
        actor=p.actor, run_id="r1", change=RunChange(input_tokens=9), fencing_token=token
    ),
    "take": lambda p, token: take(p, fencing_token=token),
    "release": lambda p, token: release(p, fencing_token=token),
    "resume": lambda p, token: recoveries.resume_run(
        actor=p.actor, run_id="r1", fencing_token=token
    ),
}  # fmt: skip


def test_heartbeat__lease_is_taken_before_the_run_is_read__is_refused(
    run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_run, seen = runs.find_run, []

    def find_after_the_takeover(*args: Any) -> Run:
        seen.append(args)
        if len(seen) == 2:
            take(run)
        return find_run(*args)

    monkeypatch.setattr(runs, "find_run", find_after_the_takeover)
    with pytest.raises(Superseded):
        runs.heartbeat(actor=run.actor, run_id="r1", fencing_token=1)


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("superseding", ["take", "release", "resume"])
def test_token__superseded__is_refused_with_the_exact_text_and_nothing_changes(
    run: Person, work: str, superseding: str
) -> None:
    WORKS[superseding](run, 1)
    before = (Run.objects.values().get(), Revision.objects.count(), AuditRow.objects.count())
    with pytest.raises(Superseded) as refused:
        WORKS[work](run, 1)
    assert refused.value.detail == "fencing token superseded: 1, current 2"
    assert (refused.value.data["given"], refused.value.data["current"]) == (1, 2)
    after = (Run.objects.values().get(), Revision.objects.count(), AuditRow.objects.count())
    assert after == before
    WORKS[work](run, 2)


def test_token__absent__is_not_checked(run: Person) -> None:
    take(run)
    assert commit(run, None).revision == 2


def test_take__any__is_a_new_lease_with_audit_and_feed_and_no_revision(run: Person) -> None:
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1), flagged_at=Now())
    taken = take(run, reason="the worker is gone")
    assert (taken.fencing_token, taken.flagged_at) == (2, None)
    assert not Run.objects.stuck().exists()
    assert Revision.objects.count() == 1
    row = AuditRow.objects.get(action="run.lease")
    assert (row.reason, row.detail) == ("the worker is gone", {"fencing_token": 2})
    assert Change.objects.filter(kind="run.lease", run="r1", thread="t1").count() == 1


def test_take__only_if_free__keeps_an_active_lease(run: Person) -> None:
    with pytest.raises(Conflict) as refused:
        take(run, only_if_free=True)
    assert refused.value.detail.startswith("lease is held until ")
    assert refused.value.detail.endswith("Z")
    assert commit(run, 1).revision == 2
    Run.objects.update(lease_expires_at=Now())
    assert take(run, only_if_free=True).fencing_token == 2


def test_take__only_if_free_over_the_api__is_409_with_the_expiry(run: Person) -> None:
    held = run.api("GET", "/runs/r1").json()["lease_expires_at"]
    answer = run.api("POST", "/runs/r1/lease", {"only_if_free": True})
    assert (answer.status_code, answer.json()["until"]) == (409, held)


def test_release__running__is_stuck_until_it_is_taken_over(run: Person) -> None:
    released = release(run)
    assert (released.status, released.lease_expires_at) == ("running", None)
    assert "its lease was released" in released.stuck_reason(released.lease_released_at)  # type: ignore[arg-type]
    assert maintenance.flag_stuck_runs() == {"flagged": 1}
    detail = AuditRow.objects.get(action="run.stuck").detail
    assert "no worker has taken it over" in detail["reason"]
    taken = take(run, only_if_free=True)
    assert taken.fencing_token == 3
    assert not Run.objects.stuck().exists()


def test_stuck_reason__lease_released_but_commit_since__is_empty(run: Person) -> None:
    release(run)
    commit(run, None)
    held = Run.objects.get()
    assert held.lease_expires_at is not None
    assert held.stuck_reason(held.updated_at) == ""
    assert stuck_reason(status="waiting", now=held.updated_at, lease_released_at=Now()) == ""  # type: ignore[arg-type]


def test_lease__waiting__has_a_token_and_does_not_expire(run: Person) -> None:
    runs.change_run(actor=run.actor, run_id="r1", change=RunChange(status="waiting"))
    assert take(run).lease_expires_at is None
    assert release(run).fencing_token == 3
    assert not Run.objects.stuck().exists()


def test_lease__done_or_inaccessible__is_refused(run: Person, bob: Person, mallory: Person) -> None:
    for verb in (take, release):
        with pytest.raises(Forbidden):
            verb(bob)
        with pytest.raises(NotFound):
            verb(mallory)
    runs.cancel_run(actor=run.actor, run_id="r1")
    for verb in (take, release):
        with pytest.raises(Conflict) as refused:
            verb(run)
        assert refused.value.detail == "run is done: r1"


def test_api__token__is_in_every_response_and_accepted_in_the_body(run: Person) -> None:
    make_thread(run.actor, "t2")
    started = run.api("POST", "/threads/t2/runs", {"id": "r2"}).json()
    assert started["fencing_token"] == 1
    assert run.api("POST", "/runs/r2/heartbeat", {"fencing_token": 1}).status_code == 200
    assert run.api("POST", "/runs/r2/heartbeat").status_code == 200
    assert run.api("POST", "/runs/r2/lease").json()["fencing_token"] == 2
    old = {"fencing_token": 1}
    for method, path, body in (
        ("POST", "/runs/r2/commits", {"messages": [HI], **old}),
        ("POST", "/runs/r2/heartbeat", old),
        ("PATCH", "/runs/r2", {"step_count": 1, **old}),
        ("POST", "/runs/r2/lease", old),
        ("POST", "/runs/r2/resume", old),
        ("DELETE", "/runs/r2/lease?fencing_token=1", None),
    ):
        answer = run.api(method, path, body)
        assert answer.status_code == 409, path
        problem = answer.json()
        assert problem["detail"] == "fencing token superseded: 1, current 2"
        assert (problem["given"], problem["current"]) == (1, 2)
    assert run.api("GET", "/threads/t2").json()["revision"] == 1
    assert run.api("DELETE", "/runs/r2/lease").json()["fencing_token"] == 3
    assert "lease was released" in run.api("GET", "/runs/r2").json()["stuck_reason"]
    fault = run.api("POST", "/runs/r2/lease", {"fencing_token": "3"})
    assert fault.status_code == 422
    assert fault.json()["errors"][0]["pointer"] == "/fencing_token"
    assert run.api("POST", "/runs/r2/lease", {"token": 3}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_race__takeovers_with_one_token__exactly_one_succeeds(run: Person) -> None:
    won, lost = split(race([partial(take, run, fencing_token=1)] * 8))
    assert [taken.fencing_token for taken in won] == [2]
    assert {p.detail for p in lost} == {"fencing token superseded: 1, current 2"}


@pytest.mark.django_db(transaction=True)
def test_race__commits_of_the_old_worker__none_is_stored_after_the_new_token(run: Person) -> None:
    won, lost = split(race([partial(commit, run, 1)] * 6 + [partial(take, run)]))
    taken = next(each for each in won if isinstance(each, Run))
    assert {p.detail for p in lost} <= {"fencing token superseded: 1, current 2"}
    assert Revision.objects.count() == 1 + len(won) - 1
    order = list(
        Change.objects.filter(run="r1").order_by("xid", "id").values_list("kind", flat=True)
    )
    assert order.index("run.lease") == len(order) - 1
    assert Run.objects.get().fencing_token == taken.fencing_token == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["take", "release", "resume", "commit", "heartbeat", "change"]),
            st.sampled_from([None, -1, 0]),
        ),
        max_size=12,
    )
)
def test_tokens__any_sequence__increase_and_only_the_newest_is_accepted(
    run: Person, steps: list[tuple[str, int | None]]
) -> None:
    for verb, back in steps:
        current = Run.objects.get().fencing_token
        token = None if back is None else current + back
        grows = verb in ("take", "release", "resume")
        if token is not None and token != current:
            with pytest.raises(Superseded):
                WORKS[verb](run, token)
            assert Run.objects.get().fencing_token == current
        else:
            WORKS[verb](run, token)  # type: ignore[arg-type]
            assert Run.objects.get().fencing_token == current + grows
