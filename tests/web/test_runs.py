"""The pages of runs: stuck reasons as text, recovery, tickets."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from state_admin.contract.webhooks import WebhookFilter as Filter
from state_admin.domain.lifecycle import format_duration, stuck_reason
from state_admin.models import Dispatch, Run, Ticket
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.leases import take_lease
from state_admin.services.runs import RunChange, change_run, heartbeat
from state_admin.services.tickets import decide_ticket
from state_admin.services.webhooks import create_webhook
from state_admin.templatetags.threads import explain_end, run_state
from state_admin.web.run_actions import actions_of, suggest
from state_admin.web.tickets import draft
from tests.builders import Person, commit, make_run, make_thread, raw
from tests.web.stories import TICKET, create_story
from tests.web.test_threads import htmx, page

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def minutes(count: float) -> datetime:
    """The time so many minutes before NOW."""
    return NOW - timedelta(minutes=count)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"status": "running", "lease_expires_at": minutes(-1)}, ""),
        ({"status": "running"}, ""),
        (
            {"status": "running", "lease_expires_at": minutes(13), "lease_seconds": 60},
            "silent for 14 min: no commit or heartbeat since 2026-01-31 11:46:00 UTC",
        ),
        ({"status": "waiting", "lease_expires_at": minutes(13)}, ""),
        (
            {"status": "waiting", "deadline_at": minutes(150)},
            "waiting 2 h past its deadline of 2026-01-31 09:30:00 UTC",
        ),
        ({"status": "waiting", "deadline_at": minutes(-5)}, ""),
        (
            {"status": "running", "lease_released_at": minutes(3)},
            "its lease was released 3 min ago and no worker has taken it over",
        ),
        ({"status": "waiting", "lease_released_at": minutes(3)}, ""),
        (
            {"status": "waiting", "ticket_due_at": minutes(150)},
            "a ticket expired undecided at 2026-01-31 09:30:00 UTC",
        ),
        ({"status": "waiting", "ticket_due_at": minutes(-5)}, ""),
        (
            {"status": "running", "step_count": 20, "max_rounds": 20},
            "all of its 20 rounds are used: it has taken 20 steps",
        ),
        ({"status": "running", "step_count": 20, "max_rounds": 0}, ""),
        ({"status": "created", "times_out_at": minutes(0.5)}, "30 s over its time limit"),
        ({"status": "done", "lease_expires_at": minutes(99), "times_out_at": minutes(99)}, ""),
    ],
)
def test_stuck_reason__each_condition__has_a_text(run: dict[str, object], said: str) -> None:
    assert stuck_reason(now=NOW, **run) == said  # type: ignore[arg-type]


def test_stuck_reason__several__lists_all() -> None:
    said = stuck_reason(
        status="running", now=NOW, lease_expires_at=minutes(2), times_out_at=minutes(1)
    )
    assert said.count(";") == 1


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0 s"), (59, "59 s"), (3599, "59 min"), (172799, "47 h"), (172800, "2 days")],
)
def test_format_duration__any_length__is_in_its_largest_unit(seconds: int, said: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    "change",
    [
        {"status": "running", "lease_expires_at": minutes(0)},
        {"status": "waiting", "deadline_at": minutes(0), "lease_expires_at": None},
        {"lease_expires_at": None, "lease_released_at": minutes(0)},
        {"lease_expires_at": None},
        {"status": "waiting", "ticket_due_at": minutes(0), "lease_expires_at": None},
        {"max_rounds": 3, "step_count": 3},
        {"times_out_at": minutes(0)},
        {"status": "done", "times_out_at": minutes(0)},
    ],
)
def test_stuck_reason__database__agrees_with_the_query(
    change: dict[str, object], alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    Run.objects.update(**change)
    run = Run.objects.get()
    assert bool(run.stuck_reason(datetime.now(UTC))) == Run.objects.all().stuck().exists()


def make_stuck(alice: Person) -> None:
    make_thread(alice.actor, "t1", title="Parcel")
    make_run(alice.actor, agent_id="courier")
    Run.objects.update(lease_expires_at=datetime.now(UTC) - timedelta(minutes=13))
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r2")


def test_runs__stuck_one__is_first_with_the_reason(admin: Client, alice: Person) -> None:
    make_stuck(alice)
    shown = page(admin, "/runs")
    assert "1 run needs attention" in shown
    assert "Silent for 14 min: no commit or heartbeat since" in shown
    assert shown.index("/runs/r1") < shown.index("/runs/r2")
    assert shown.count('href="/runs/r1"') == 1


def test_run__stuck__refreshes_the_durations_that_it_shows(admin: Client, alice: Person) -> None:
    make_stuck(alice)
    assert 'hx-trigger="live, every 10s"' in page(admin, "/runs/r1")
    assert 'hx-trigger="live"' in page(admin, "/runs/r2")


def test_run__stuck__shows_the_actions_of_an_editor(
    admin: Client, viewer: Client, alice: Person
) -> None:
    make_stuck(alice)
    shown = page(admin, "/runs/r1")
    # The suggested action, its reason, then the rest.
    words = ("Stuck:", 'href="/run/release/r1"', "Another worker can then", "If the silent worker")
    banner = shown[shown.index('class="banner"') :]
    assert sorted(words, key=banner.index) == list(words)
    for verb in ("Renew lease…", "Release lease…", "Resume run…", "End as failed…", "Cancel run…"):
        assert verb in shown
    shown = page(viewer, "/runs/r1")
    assert "Stuck:" in shown
    assert "/run/release/r1" not in shown
    assert "Actions" not in shown


@pytest.mark.parametrize(
    ("change", "action"),
    [
        ({"lease_expires_at": minutes(0)}, "release"),
        ({"lease_expires_at": None, "lease_released_at": minutes(0)}, "fail"),
        ({"lease_expires_at": minutes(0), "times_out_at": minutes(0)}, "fail"),
        ({"lease_expires_at": minutes(0), "max_rounds": 3, "step_count": 3}, "fail"),
        ({"status": "waiting", "lease_expires_at": None, "deadline_at": minutes(0)}, "resume"),
        ({"lease_expires_at": None}, None),
    ],
)
def test_suggestion__each_condition__is_an_action_that_is_possible(
    change: dict[str, object], action: str | None, admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    Run.objects.update(**change)
    run = Run.objects.timed().get()
    suggestion = suggest(run, can_decide=False)
    if action is None:
        assert suggestion is None
        return
    assert suggestion
    assert suggestion.url == f"/run/{action}/r1"
    assert action in [name for name, _, _ in actions_of(run)]
    assert admin.post(suggestion.url, {"reason": "tried"}).status_code == 302


def test_suggestion__open_ticket__is_to_decide_it(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    Run.objects.update(deadline_at=minutes(0))
    assert 'href="#tickets"' in page(admin, "/runs/r1")
    Ticket.objects.update(expires_at=minutes(0))
    assert "What it waits for did not come in time." in page(admin, "/runs/r1")


def test_suggestion__one_of_several_tickets_expired__is_to_resume_without_them(
    admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    late = TICKET | {
        "ticket_id": "tk2",
        "tool_call_id": "c10",
        "expires_at": f"{minutes(1):%FT%TZ}",
    }
    waiting = {"reason": "tool_permission", "tickets": [late]}
    change_run(actor=alice.actor, run_id="r1", change=RunChange(status="waiting", waiting=waiting))
    assert Ticket.objects.filter(status="pending").count() == 2
    shown = page(admin, "/runs/r1")
    assert "What it waits for did not come in time." in shown
    assert 'href="#tickets"' not in shown


def let_pass(seconds: float) -> None:
    """Move the run, its revisions and its audit rows into the past."""
    with connection.cursor() as cursor:
        ago = f"- interval '{seconds} seconds'"
        for table in ("revisions", "audit"):
            cursor.execute(f"UPDATE {table} SET at = at {ago}")
        cursor.execute(
            f"UPDATE runs SET lease_expires_at = lease_expires_at {ago},"
            f" lease_released_at = lease_released_at {ago}"
        )


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("release", "its lease was released by alice, and no worker has taken it over."),
        ("resume", "resumed by alice, but no worker has taken it."),
    ],
)
def test_run__handed_on__waits_for_a_worker_before_an_end_is_suggested(
    action: str, said: str, admin: Client, alice: Person
) -> None:
    make_stuck(alice)
    admin.post(f"/run/{action}/r1", {"reason": "hung"})
    for seconds in (0, 70):  # the lease of a resumed run ends after 60 s
        let_pass(seconds)
        shown = page(admin, "/runs/r1")
        assert "Waiting for a worker</strong> since" in shown
        assert said in shown
        assert "No active webhook receives this event" in shown
        assert 'class="suggestion"' not in shown
    let_pass(400)
    shown = page(admin, "/runs/r1")
    assert said in shown
    suggestion = shown.partition('class="suggestion"')[2].partition("</div>")[0]
    assert 'href="/run/fail/r1"' in suggestion


@pytest.mark.parametrize("work", [take_lease, heartbeat])
def test_run__resumed_and_taken_by_a_worker__is_silent_when_its_lease_ends(
    work: Callable[..., Run], admin: Client, alice: Person
) -> None:
    make_stuck(alice)
    admin.post("/run/resume/r1")
    work(actor=alice.actor, run_id="r1")
    assert "Waiting for a worker" not in page(admin, "/runs/r1")
    let_pass(70)
    shown = page(admin, "/runs/r1")
    assert "Stuck:</strong> silent for" in shown
    assert 'href="/run/release/r1"' in shown.partition('class="suggestion"')[2]


def test_run__released_at_its_limit__is_to_be_ended(admin: Client, alice: Person) -> None:
    make_stuck(alice)
    admin.post("/run/release/r1")
    Run.objects.update(max_rounds=1, step_count=1)
    shown = page(admin, "/runs/r1")
    assert "all of its 1 rounds are used" in shown
    assert "It has reached its limit" in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["r2", "r1"]),
        ("status=stuck", ["r1"]),
        ("status=active", ["r2", "r1"]),
        ("status=done", []),
        ("agent=courier", ["r1"]),
        ("age=1d", []),
        ("age=nonsense", ["r2", "r1"]),
    ],
)
def test_runs__filtered__contains_only_matches(
    query: str, found: list[str], admin: Client, alice: Person
) -> None:
    make_stuck(alice)
    assert [item["id"] for item in admin.get(f"/runs.json?{query}").json()["items"]] == found


@pytest.mark.parametrize(
    ("end", "colour"),
    [("natural_end", "done"), ("cancelled", ""), ("error", "failed")],
)
def test_run_state__ended__only_success_is_green(end: str, colour: str) -> None:
    assert run_state(Run(status="done", termination_reason={"type": end}))[0] == colour


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (None, ""),
        ({"type": "error"}, ""),
        ({"type": "error", "value": "timeout"}, "timeout"),
        ({"type": "error", "message": "timeout"}, "timeout"),
        ({"type": "stopped", "value": {"code": "budget", "detail": "5 USD"}}, "budget 5 USD"),
        ({"type": "stopped", "code": "budget", "detail": None}, "budget"),
    ],
)
def test_end__with_texts__shows_them(reason: Any, text: str) -> None:
    assert explain_end(Run(status="done", termination_reason=reason)) == text


def test_runs__none__shows_how_to_start_one(admin: Client) -> None:
    assert "No runs yet" in page(admin, "/runs")


def test_run__waiting__shows_the_reason_and_its_revisions(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    shown = page(admin, "/runs/r1")
    assert "Waiting for permission for a tool call" in shown
    assert "May I?" in shown
    assert "revision 5<" in shown
    assert "/threads/t1?message=34#m34" in shown
    assert "issue_refund" in shown


def test_run__poll__returns_the_numbers_only(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    part = page(admin, "/runs/r1", headers=htmx("run-now"))
    assert part.lstrip().startswith('<div class="stack" id="run-now"')
    assert "<textarea" not in part


def test_run__deadlines__say_what_happens_then(admin: Client, alice: Person) -> None:
    make_stuck(alice)

    def shown(run_id: str) -> str:
        return " ".join(re.sub(r"<[^>]+>", " ", page(admin, f"/runs/{run_id}")).split())

    moment = r"[-0-9: ]+ UTC"
    assert re.search(rf"Lease expired {moment} \(60 s lease\)", shown("r1"))
    assert re.search(rf"Lease expires {moment} \(60 s lease\)", shown("r2"))
    waiting = {"reason": "tool_permission", "tickets": [TICKET]}
    change_run(actor=alice.actor, run_id="r2", change=RunChange(status="waiting", waiting=waiting))
    for ahead, on_expiry, said in (
        (1, "keep", rf"expires {moment} ; the run then counts as stuck"),
        (-1, "keep", rf"expired {moment} ; the run counts as stuck"),
        (1, "cancel", rf"expires {moment} ; the call is then refused"),
    ):
        ends = datetime.now(UTC) + timedelta(hours=ahead)
        Ticket.objects.update(expires_at=ends, on_expiry=on_expiry)
        assert re.search(said, shown("r2")), said


def test_run__poll__has_its_origin_and_metadata(admin: Client, alice: Person) -> None:
    make_stuck(alice)
    assert page(admin, "/runs/r1").count("Origin and metadata") == 1
    admin.post("/run/release/r1")
    part = page(admin, "/runs/r1", headers=htmx("run-now"))
    assert "<dt>Fencing token</dt><dd>2</dd>" in part


@pytest.mark.parametrize(
    ("action", "status", "reason"),
    [("cancel", "done", "cancelled"), ("fail", "done", "error"), ("renew", "running", None)],
)
def test_run__stuck__can_be_ended_or_resumed(
    action: str, status: str, reason: str | None, admin: Client, alice: Person
) -> None:
    make_stuck(alice)
    assert "now running" in page(admin, f"/run/{action}/r1")
    response = admin.post(f"/run/{action}/r1", {"reason": "nobody there"})
    assert response["Location"] == "/runs/r1"
    run = Run.objects.get(public_id="r1")
    assert run.status == status
    assert (run.termination_reason or {}).get("type") == reason
    assert run.stuck_reason(datetime.now(UTC)) == ""
    if action == "fail":
        assert run.termination_reason == {"type": "error", "value": "nobody there"}
        assert "nobody there" in page(admin, "/runs/r1")


@pytest.mark.parametrize("action", ["resume", "release"])
def test_run__handed_on__names_who_is_notified(action: str, admin: Client, alice: Person) -> None:
    make_stuck(alice)

    def shown() -> str:
        return page(admin, f"/run/{action}/r1")

    assert (
        "No active webhook receives this event, and no client waits for it in a stream or long poll."
        in shown()
    )
    for name, filters in {
        "other kind": Filter(kinds=("run.start",)),
        "other thread": Filter(thread_id="t2"),
        "of entries": Filter(namespaces=("*",)),
    }.items():
        create_webhook(
            actor=alice.actor, name=name, url="https://example.com/hook", filters=filters
        )
    assert "No active webhook receives this event" in shown()
    alert = Filter(kinds=("run.*",), thread_id="t1")
    create_webhook(actor=alice.actor, name="alert", url="https://example.com/hook", filters=alert)
    assert "1 webhook will receive the event: “alert”." in shown()
    enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw({}))
    Dispatch.objects.update(status="Claimed")
    assert "A worker has claimed" not in shown()  # it may be the silent one
    Run.objects.update(status="waiting", waiting={"reason": "manual_pause"})
    assert "A worker has claimed a dispatch of this thread." in shown()
    assert "will receive the event" not in page(admin, "/run/cancel/r1")


def test_run__stuck__says_who_listens_for_the_resumed_run(admin: Client, alice: Person) -> None:
    make_stuck(alice)
    taken = "claimed a dispatch for the agent courier or without an agent"
    nobody = f"No worker has {taken} among the newest 200 dispatches."
    assert nobody in page(admin, "/runs/r1")
    make_thread(alice.actor, "t2")
    for agent_id in ("other", ""):
        enqueue_dispatch(actor=alice.actor, thread_id="t2", payload=raw({}), agent_id=agent_id)
    hour_ago = datetime.now(UTC) - timedelta(minutes=61)
    rows = Dispatch.objects.filter(agent_id="other")
    rows.update(claimed_by="stranger", claimed_at=datetime.now(UTC))
    assert nobody in page(admin, "/runs/r1")
    Dispatch.objects.filter(agent_id="").update(claimed_by="worker-1", claimed_at=hour_ago)
    last = f"The last worker that {taken} is worker-1, 1 h ago."
    assert last in page(admin, "/runs/r1")


def test_run__paused_manually__can_be_resumed(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    Run.objects.update(status="waiting", waiting={"reason": "manual_pause"})
    assert "Resume run…" in page(admin, "/runs/r1")
    admin.post("/run/resume/r1")
    assert Run.objects.get().status == "running"


def test_run__done__offers_no_action_and_refuses(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    admin.post("/run/cancel/r1")
    shown = page(admin, "/runs/r1")
    assert "Cancel run…" not in shown
    assert 'id="run-now" data-live' not in shown
    assert admin.post("/run/renew/r1").status_code == 409
    assert admin.get("/run/explode/r1").status_code == 404


def confirmation(client: Client, action: str) -> dict[str, str]:
    """The fields of an open confirmation."""
    shown = page(client, f"/run/{action}/r1").partition('class="confirm"')[2]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', shown))


CHANGED = b"The run has changed since this confirmation was opened"


@pytest.mark.parametrize("action", ["cancel", "fail", "resume", "release", "renew"])
def test_run__taken_over_since_the_confirmation__is_not_changed(
    action: str, admin: Client, alice: Person
) -> None:
    make_stuck(alice)
    opened = confirmation(admin, action)
    run = take_lease(actor=alice.actor, run_id="r1")
    refused = admin.post(f"/run/{action}/r1", opened)
    assert (refused.status_code, CHANGED in refused.content) == (409, True)
    assert b"Nothing was changed" in refused.content
    run.refresh_from_db()
    assert (run.status, run.fencing_token) == ("running", 2)
    assert run.lease_expires_at is not None
    assert admin.post(f"/run/{action}/r1", confirmation(admin, action)).status_code == 302


@pytest.mark.parametrize("action", ["cancel", "fail", "resume"])
def test_run__waited_or_stuck__is_not_changed_after_it_continues(
    action: str, admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    opened = confirmation(admin, action)
    decide_ticket(
        actor=alice.actor, ticket_id="tk1", action="resume", payload=raw({"approved": True})
    )
    refused = admin.post(f"/run/{action}/r1", opened)
    assert (refused.status_code, CHANGED in refused.content) == (409, True)
    assert Run.objects.get().status == "running"
    Run.objects.update(lease_expires_at=datetime.now(UTC) - timedelta(minutes=13))
    opened = confirmation(admin, action)
    commit(alice.actor, "r1", run=RunChange(step_count=9))
    assert admin.post(f"/run/{action}/r1", opened).status_code == 409
    assert Run.objects.get().status == "running"


@pytest.mark.parametrize("action", ["cancel", "fail"])
def test_run__commits_while_the_confirmation_is_open__is_ended(
    action: str, admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    opened = confirmation(admin, action)
    commit(alice.actor, "r1", run=RunChange(step_count=1))
    assert admin.post(f"/run/{action}/r1", opened).status_code == 302
    assert Run.objects.get().status == "done"


def test_run__ended_since_the_confirmation__is_not_reported_as_cancelled(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    opened = confirmation(admin, "cancel")
    change_run(actor=alice.actor, run_id="r1", change=RunChange(status="done"))
    refused = admin.post("/run/cancel/r1", opened)
    assert refused.status_code == 409
    assert b"The run has already ended" in refused.content


def test_ticket__valid_answer__resumes_the_run(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert 'name="answer/approved"' in page(admin, "/runs/r1")
    response = admin.post(
        "/ticket/tk1", {"action": "resume", "payload": '{"approved": true}', "reason": "fine"}
    )
    assert response["Location"] == "/runs/r1"
    assert Run.objects.get().status == "running"
    assert Ticket.objects.get().payload == '{"approved": true}'


@pytest.mark.parametrize(
    "typed", ['{"approved": "yes"}', "{", "[1,", '{"a": 1, "a": 2}', '{"approved": "\\u0000"}', ""]
)
def test_ticket__invalid_answer__keeps_the_typed_text(
    typed: str, admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    response = admin.post("/ticket/tk1", {"action": "resume", "payload": typed})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert Ticket.objects.get().status == "pending"


def test_ticket__refused__cancels_the_call(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    admin.post("/ticket/tk1", {"action": "cancel", "payload": "not even JSON"})
    assert Ticket.objects.get().status == "cancelled"
    assert "issue_refund" in page(admin, "/runs/r1")


def test_ticket__decided_twice__first_decision_is_kept(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    admin.post("/ticket/tk1", {"action": "cancel"})
    assert admin.post("/ticket/tk1", {"action": "resume", "payload": "{}"}).status_code == 409


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        (None, None),
        ({"type": "string"}, ""),
        ({"enum": ["a", "b"]}, "a"),
        ({"default": 3}, 3),
        ({"type": ["integer", "null"]}, 0),
        (
            {"type": "object", "properties": {"ok": {"type": "boolean"}, "x": True}},
            {"ok": True, "x": None},
        ),
        ({"type": "object"}, {}),
        ({"type": "array"}, []),
    ],
)
def test_draft__schema__has_its_structure_with_empty_leaves(schema: object, answer: object) -> None:
    assert draft(schema) == answer


def test_run__steps__are_those_of_the_timeline_and_those_that_the_agent_reports(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t9")
    make_run(alice.actor, "t9", "r9")
    for count in range(3):
        commit(alice.actor, "r9", run=RunChange(step_count=count))
    shown = page(admin, "/runs/r9")
    steps = [int(number) for number in re.findall(r">Step (\d+)<", shown)]
    assert f"<dt>Steps</dt><dd>{max(steps)}</dd>" in shown
    assert "<dt>Steps reported by the agent</dt><dd>2</dd>" in shown
    assert f'data-label="steps">{max(steps)}<' in page(admin, "/runs")


def test_run__stuck_while_running__can_be_resumed(admin: Client, alice: Person) -> None:
    make_stuck(alice)
    assert "Resume run…" in page(admin, "/runs/r1")
    assert "Resume run…" not in page(admin, "/runs/r2")
    admin.post("/run/resume/r1", {"reason": "a worker is back"})
    run = Run.objects.get(public_id="r1")
    assert (run.status, run.stuck_reason(datetime.now(UTC))) == ("running", "")
