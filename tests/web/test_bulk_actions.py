"""Actions on the selected rows of a list: who sees them, the confirmation, a result per item."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from state_admin.models import (
    ApiToken,
    AuditRow,
    Dispatch,
    Run,
    Thread,
    Ticket,
    WebhookDelivery,
)
from state_admin.services.recoveries import resume_run
from state_admin.services.runs import cancel_run
from state_admin.services.tickets import decide_ticket
from state_admin.web import confirm, inbox
from tests.builders import Person, append, make_run, make_thread, make_token, raw
from tests.e2e.pages import fill
from tests.services.test_dead_letters import make_dead_letter
from tests.services.test_dispatches import enqueue, take
from tests.web.test_inbox import ask, refund
from tests.web.test_threads import htmx, page

# The checkboxes of the rows: their values.
BOX = re.compile(r'type="checkbox" name="item" value="([^"]*)"')


def boxes(client: Client, path: str) -> list[str]:
    return [html.unescape(value) for value in BOX.findall(page(client, path))]


def confirm_of(client: Client, url: str, **data: Any) -> str:
    answer = client.post(url, data)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def send(client: Client, url: str, **data: Any) -> Any:
    """What the form of the confirmation sends."""
    sent = fields_of(confirm_of(client, url, **data))
    extra = {name: data[name] for name in ("reason", "choice") if name in data}
    return client.post(url, {**sent, **extra})


def fields_of(shown: str) -> dict[str, list[str]]:
    """The hidden fields of a confirmation."""
    sent: dict[str, list[str]] = {}
    for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', shown):
        sent.setdefault(name, []).append(html.unescape(value))
    assert sent["confirmed"] == ["yes"]
    return sent


def audited(action: str) -> list[tuple[str, str, str]]:
    rows = AuditRow.objects.filter(action=action).order_by("pk")
    return [(row.thread or row.key or "", row.actor_name, row.reason) for row in rows]


# Runs


@pytest.fixture
def runs(alice: Person) -> list[str]:
    """r1 and r2 are active, r3 has ended."""
    for number in (1, 2, 3):
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}")
    cancel_run(actor=alice.actor, run_id="r3")
    return ["r1", "r2", "r3"]


@pytest.mark.usefixtures("runs")
def test_runs__list__offers_the_active_ones_to_editors(editor: Client, viewer: Client) -> None:
    assert boxes(editor, "/runs") == ["r2", "r1"]
    assert 'action="/run/bulk"' in page(editor, "/runs")
    assert boxes(viewer, "/runs") == []
    assert "/run/bulk" not in page(viewer, "/runs")
    assert "data-check-all" not in page(viewer, "/runs")
    assert boxes(editor, "/threads/t1?tab=runs") == []


def test_runs__cancel__is_confirmed_and_cancels_the_active_ones(
    editor: Client, runs: list[str]
) -> None:
    back = "/runs?agent=a1"
    shown = confirm_of(editor, "/run/bulk", action="cancel", item=[*runs, "r1", "r9"], back=back)
    assert "Cancel 2 runs?" in shown
    assert ">Close</a>" in shown  # not another Cancel
    assert "Of the 4 selected runs, 2 are skipped: only runs that have not ended" in shown
    assert "r1: running, thread t1" in shown
    assert Run.objects.active().count() == 2
    answer = send(editor, "/run/bulk", action="cancel", item=runs, back=back, reason="cleanup")
    assert answer["Location"] == back
    assert "Cancelled 2 runs" in page(editor, "/runs")
    assert Run.objects.active().count() == 0
    assert [row[0::2] for row in audited("run.done")][-2:] == [("t2", "cleanup"), ("t1", "cleanup")]


def test_runs__ended_since_the_confirmation__is_reported(
    editor: Client, alice: Person, runs: list[str]
) -> None:
    sent = {"action": "fail", "item": runs, "confirmed": "yes", "back": "/runs"}
    cancel_run(actor=alice.actor, run_id="r2")
    shown = editor.post("/run/bulk", sent).content.decode()
    assert "Ended as failed: 1 run</h2>" in shown
    assert '<th scope="col">Run</th><th scope="col">Reason</th>' in shown
    assert re.findall(r'href="/runs/(r\d)">', shown) == ["r2", "r3"]
    assert shown.count("the run has already ended (cancelled)") == 2
    assert Run.objects.get(public_id="r1").termination_reason == {
        "type": "error",
        "value": "failed by erin",
    }


def test_runs__resumed_since_the_confirmation__are_left_alone(
    editor: Client, alice: Person, runs: list[str]
) -> None:
    Run.objects.active().update(status="waiting", waiting={"reason": "manual_pause"})
    asked = {"action": "cancel", "item": runs, "back": "/runs"}
    sent = fields_of(confirm_of(editor, "/run/bulk", **asked))
    resume_run(actor=alice.actor, run_id="r2")
    shown = editor.post("/run/bulk", sent).content.decode()
    assert "Cancelled 1 run</h2>" in shown
    assert "the run has changed since this confirmation was opened" in shown
    assert Run.objects.get(public_id="r2").status == "running"


def test_runs__htmx__replaces_the_rows(editor: Client, runs: list[str]) -> None:
    sent = {"action": "cancel", "item": runs, "confirmed": "yes", "back": "/runs"}
    headers = htmx("run-table")
    answer = editor.post("/run/bulk", sent, headers=headers)
    assert answer.content.decode().count('id="run-table"') == 1
    assert "<html" not in answer.content.decode()
    assert "Cancelled 2 runs; skipped 1" in answer["HX-Trigger"]


# Tickets


@pytest.fixture
def tickets(alice: Person) -> list[str]:
    """k3 needs an answer, and the arguments of k4 are long."""
    plain: dict[str, Any] = {"response_schema": None}
    ask(alice, refund(1, **plain), refund(2, **plain, arguments={"to": "DE1 \u0434"}), run="r1")
    ask(alice, refund(3), refund(4, **plain, arguments=["x" * 1_100]), run="r2")
    return ["k1", "k2", "k3", "k4"]


def test_tickets__list__offers_them_to_editors(
    editor: Client, viewer: Client, tickets: list[str]
) -> None:
    assert boxes(editor, "/inbox") == tickets
    assert 'action="/inbox/bulk"' in page(editor, "/inbox")
    assert boxes(viewer, "/inbox") == []
    assert "/inbox/bulk" not in page(viewer, "/inbox")
    assert inbox.PAGE <= confirm.PREVIEW  # a confirmation shows all tickets of a page


def test_tickets__approve__shows_the_calls_and_records_each_decision(
    editor: Client, tickets: list[str]
) -> None:
    back = "/inbox?tool=issue_refund"
    shown = confirm_of(editor, "/inbox/bulk", action="resume", item=tickets, back=back)
    assert "Approve 2 tickets?" in shown
    assert "Of the 4 selected tickets, 2 are skipped: only pending tickets that need no" in shown
    calls = [html.unescape(each) for each in re.findall(r'<li class="mono">(.*?)</li>', shown)]
    assert calls == [
        'issue_refund {"order":9921} (helper, run r1)',
        'issue_refund {"to":"DE1 \u0434"} (helper, run r1)',
    ]
    assert not Ticket.objects.exclude(status="pending").exists()
    answer = send(editor, "/inbox/bulk", action="resume", item=tickets, back=back, reason="checked")
    assert answer["Location"] == back
    assert "Approved 2 tickets" in page(editor, back)
    rows = AuditRow.objects.filter(action="ticket.resume").order_by("pk")
    assert [(row.key, row.actor_name, row.reason) for row in rows] == [
        ("k1", "erin", "checked"), ("k2", "erin", "checked"),
    ]  # fmt: skip
    assert boxes(editor, "/inbox") == ["k3", "k4"]
    assert Run.objects.get(public_id="r1").status == "running"
    assert Run.objects.get(public_id="r2").status == "waiting"


def test_tickets__refuse__needs_no_answers(editor: Client, tickets: list[str]) -> None:
    shown = confirm_of(editor, "/inbox/bulk", action="cancel", item=tickets)
    assert "x" * 900 in shown
    assert "x" * 1_100 not in shown
    send(editor, "/inbox/bulk", action="cancel", item=tickets)
    assert set(Ticket.objects.values_list("status", flat=True)) == {"cancelled"}
    assert "No pending tickets" in page(editor, "/inbox")


def test_tickets__changed_since_the_confirmation__are_left_alone(
    editor: Client, alice: Person, tickets: list[str]
) -> None:
    """k1 was refused by another person; k2 was replaced by another ticket with its id; k4 expired."""
    asked = {"action": "cancel", "item": tickets, "back": "/inbox"}
    sent = fields_of(confirm_of(editor, "/inbox/bulk", **asked))
    decide_ticket(actor=alice.actor, ticket_id="k1", action="cancel", payload=raw(None))
    sent["seen"][1] = str(int(sent["seen"][1]) + 1_000)
    Ticket.objects.filter(public_id="k4").update(expires_at=timezone.now() - timedelta(hours=1))
    shown = editor.post("/inbox/bulk", sent).content.decode()
    assert "Refused 1 ticket</h2>" in shown
    assert re.findall(r'href="/ticket/(k\d)">', shown) == ["k1", "k2", "k4"]
    assert "alice refused it at" in shown
    assert "another ticket has its id" in shown
    assert "The ticket can no longer be decided" in shown
    pending = Ticket.objects.filter(status="pending").order_by("pk")
    assert list(pending.values_list("public_id", flat=True)) == ["k2", "k4"]


def test_tickets__not_shown_in_a_confirmation__are_not_decided(
    editor: Client, tickets: list[str]
) -> None:
    editor.post("/inbox/bulk", {"action": "resume", "item": tickets, "confirmed": "yes"})
    assert not Ticket.objects.exclude(status="pending").exists()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"action": "nothing", "item": ["r1"]}, 400),
        ({"action": "cancel", "item": [f"r{number}" for number in range(201)]}, 400),
        ({"action": "cancel"}, 302),
        ({"action": "cancel", "item": ["\0"]}, 400),
    ],
)
def test_bulk__malformed_selection__is_refused(
    sent: dict[str, Any], status: int, editor: Client, runs: list[str]
) -> None:
    answer = editor.post("/run/bulk", {**sent, "confirmed": "yes"})
    assert answer.status_code == status
    assert Run.objects.active().count() == 2


def test_bulk__back_to_another_site__is_replaced(editor: Client, runs: list[str]) -> None:
    sent = {"action": "cancel", "item": ["r1"], "confirmed": "yes"}
    for back in ("https://example.com/", "//example.com/runs", "/runsomewhere", "/tokens"):
        answer = editor.post("/run/bulk", {**sent, "item": ["r1"], "back": back})
        assert 'href="/runs"' in answer.content.decode() or answer["Location"] == "/runs"


def test_bulk__nothing_possible__offers_no_button(editor: Client, runs: list[str]) -> None:
    shown = confirm_of(editor, "/run/bulk", action="cancel", item=["r3"])
    assert "Nothing to cancel" in shown
    assert "Only runs that have not ended can be cancelled." in shown
    assert 'name="reason"' not in shown


# Threads


@pytest.fixture
def family(alice: Person) -> None:
    """The parent with a child, and a thread with a run and messages."""
    make_thread(alice.actor, "parent", title="Trip")
    make_thread(alice.actor, "child", parent_thread_id="parent")
    make_thread(alice.actor, "busy")
    make_run(alice.actor, "busy", "r1")
    append(alice.actor, "busy", {"role": "user", "content": "a"}, {"role": "user", "content": "b"})


def thread_ids() -> list[str]:
    return list(Thread.objects.order_by("public_id").values_list("public_id", flat=True))


@pytest.mark.usefixtures("family")
def test_threads__list__offers_deletion_to_admins(admin: Client, editor: Client) -> None:
    assert boxes(admin, "/threads") == ["busy", "child", "parent"]
    assert boxes(admin, "/threads?text=trip") == ["parent"]
    assert boxes(editor, "/threads") == []
    answer = editor.post("/thread/bulk", {"action": "delete", "item": ["busy"], "confirmed": "yes"})
    assert answer.status_code == 403
    assert len(thread_ids()) == 3


@pytest.mark.usefixtures("family")
def test_threads__delete__says_how_much_and_deletes_it(admin: Client) -> None:
    sent = {"action": "delete", "item": ["parent", "child", "busy"]}
    shown = confirm_of(admin, "/thread/bulk", **sent)
    assert "Delete 3 threads?" in shown
    assert "This removes 3 threads, 2 messages, 1 run" in shown
    assert "1 thread has an active run" in shown
    assert "parent: Trip" in shown
    assert 'name="choice"' not in shown
    answer = send(admin, "/thread/bulk", **sent, reason="old", back="/threads?size=10")
    assert answer["Location"] == "/threads?size=10"
    assert "Deleted 3 threads" in page(admin, "/threads")
    assert thread_ids() == []
    assert sorted(row[0] for row in audited("thread.delete")) == ["busy", "child", "parent"]
    assert {row[2] for row in audited("thread.delete")} == {"old"}


@pytest.mark.parametrize(
    ("choice", "text", "left"),
    [
        ("reject", "has child threads", ["child", "parent"]),
        ("detach", "", ["child"]),
        ("cascade", "", []),
        ("", "has child threads", ["child", "parent"]),
        ("nothing", "children must be detach, reject or cascade", ["busy", "child", "parent"]),
    ],
)
@pytest.mark.usefixtures("family")
def test_threads__with_other_children__are_deleted_as_chosen(
    choice: str, text: str, left: list[str], admin: Client
) -> None:
    sent = {"action": "delete", "item": ["parent", "busy"]}
    assert "1 thread has child threads that are not selected" in confirm_of(
        admin, "/thread/bulk", **sent
    )
    answer = send(admin, "/thread/bulk", **sent, choice=choice)
    assert text in answer.content.decode()
    assert thread_ids() == left


# Mailbox


@pytest.fixture
def box(alice: Person) -> dict[str, str]:
    """A dead letter on t1, a claimed dispatch on t2, a queued one on t3."""
    for number in (1, 2, 3):
        make_thread(alice.actor, f"t{number}")
    ids = {"dead": make_dead_letter(alice), "claimed": enqueue(alice, thread="t2")}
    take(alice, thread_id="t2")
    return ids | {"queued": enqueue(alice, thread="t3")}


@pytest.mark.parametrize(
    ("action", "which", "past", "status"),
    [
        ("cancel", "queued", "Cancelled", "Cancelled"),
        ("replay", "dead", "Requeued", "Queued"),
    ],
)
def test_mailbox__action__changes_the_dispatches_that_it_applies_to(
    action: str, which: str, past: str, status: str, editor: Client, box: dict[str, str]
) -> None:
    assert boxes(editor, "/mailbox") == [box["queued"], box["dead"]]
    sent = {"action": action, "item": list(box.values()), "back": "/mailbox?agent="}
    shown = confirm_of(editor, "/mailbox/bulk", **sent)
    assert "1 dispatch?" in shown
    assert "Of the 3 selected dispatches, 2 are skipped" in shown
    send(editor, "/mailbox/bulk", **sent, reason="why")
    assert f"{past} 1 dispatch" in page(editor, "/mailbox")
    assert Dispatch.objects.get(public_id=box[which]).status == status
    assert [row[2] for row in audited(f"dispatch.{action}")] == ["why"]


def test_mailbox__claimed_since__is_reported(
    editor: Client, alice: Person, box: dict[str, str]
) -> None:
    take(alice, thread_id="t3")
    sent = {"action": "cancel", "item": [box["queued"]], "confirmed": "yes"}
    shown = editor.post("/mailbox/bulk", sent, headers=htmx("mailbox")).content.decode()
    assert "Cancelled 0 dispatches</h2>" in shown
    assert f"dispatch is not queued: {box['queued']}" in shown


# Tokens


def test_tokens__revoke__revokes_the_live_ones(admin: Client, alice: Person, bob: Person) -> None:
    for _ in range(2):
        make_token(alice)
    mine = ApiToken.objects.filter(workspace=alice.workspace)
    dead = mine.earliest("pk")
    mine.filter(pk=dead.pk).update(revoked_at="2020-01-01T00:00Z")
    live = boxes(admin, "/tokens")
    assert len(live) == mine.filter(revoked_at=None).count() >= 2
    sent = {"action": "revoke", "item": [*live, str(dead.pk), "x", "99999999"]}
    shown = confirm_of(admin, "/tokens/bulk", **sent)
    assert f"Revoke {len(live)} tokens?" in shown
    assert "3 are skipped: only live and rotated tokens can be revoked" in shown
    send(admin, "/tokens/bulk", **sent, reason="leak")
    assert f"Revoked {len(live)} tokens" in page(admin, "/tokens")
    assert not mine.filter(revoked_at=None).exists()
    assert [row[2] for row in audited("token.revoke")] == ["leak"] * len(live)
    bad = admin.post("/tokens/bulk", {**sent, "item": ["x"], "confirmed": "yes"})
    assert "item must be a whole number" in bad.content.decode()


# Deliveries


def test_deliveries__redeliver__requeues_finished_ones(
    admin: Client, editor: Client, alice: Person
) -> None:
    fill(alice)
    where = "/webhooks/hook1"
    rows = WebhookDelivery.objects.filter(webhook__public_id="hook1")
    assert boxes(editor, where) == []
    selected = boxes(admin, where)
    assert selected
    sent = {"action": "redeliver", "item": selected, "back": f"{where}?status=dead"}
    shown = confirm_of(admin, f"{where}/deliveries/bulk", **sent)
    assert f"Redeliver {len(selected)} deliver" in shown
    answer = send(admin, f"{where}/deliveries/bulk", **sent)
    assert answer["Location"] == f"{where}?status=dead"
    assert f"Requeued {len(selected)} deliver" in page(admin, where)
    for each in rows.filter(public_id__in=selected):
        assert each.status in ("queued", "failed")
