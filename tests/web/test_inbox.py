"""The inbox: tickets, the generated form, mistakes at their fields, lost races."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from state_admin.domain.access import Role
from state_admin.models import Run, Ticket
from state_admin.services import runs
from state_admin.services.compactions import request_compaction
from state_admin.services.runs import RunChange
from state_admin.services.webhooks import create_webhook
from state_admin.web import inbox
from tests.builders import Person, make_person, make_run, make_thread
from tests.domain.test_schema_forms import REFUND
from tests.web.conftest import CheckQueries
from tests.web.stories import HOSTILE, create_story
from tests.web.test_threads import htmx, page

FORM = {"from": "inbox", "action": "resume", "reason": "fine"}
GOOD = {"answer/approved": "true", "answer/amount": "12.50", "answer/to/iban~1bic": "DE1"}


def ask(
    person: Person, *tickets: dict[str, Any], run: str = "r1", agent: str = "helper", **more: str
) -> None:
    """A run that waits for these tickets."""
    make_thread(person.actor, f"t-{run}", title="Refund of order 9921")
    make_run(person.actor, f"t-{run}", run, agent_id=agent)
    waiting = {"reason": "tool_permission", "tickets": list(tickets)} | more
    change = RunChange(status="waiting", waiting=waiting)
    runs.change_run(actor=person.actor, run_id=run, change=change)


def refund(number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "ticket_id": f"k{number}",
        "tool_call_id": f"c{number}",
        "tool_name": "issue_refund",
        "arguments": {"order": 9921},
        "response_schema": REFUND,
        **more,
    }


def test_inbox__pending__shows_tool_run_and_deadline(admin: Client, alice: Person) -> None:
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    ask(alice, refund(reason="Above 100", expires_at=until, on_expiry="cancel"), refund(2))
    shown = page(admin, "/inbox")
    for said in (
        "issue_refund", "requested by <strong>helper</strong>", "9921", "Above 100", 'href="/runs/r1"',
        'href="/threads/t-r1"', "the call is then refused",
    ):  # fmt: skip
        assert said in shown
    assert shown.count("data-ticket") == 2
    assert [item["id"] for item in admin.get("/inbox.json").json()["items"]] == ["k1", "k2"]


def test_inbox__unsupported_schema__is_a_json_field(admin: Client, alice: Person) -> None:
    ask(alice, refund(response_schema={"oneOf": [{"type": "string"}, {"type": "null"}]}))
    shown = page(admin, "/inbox")
    assert 'name="payload"' in shown
    admin.post("/ticket/k1", FORM | {"payload": '"yes"'})
    assert Ticket.objects.get().payload == '"yes"'


def test_inbox__empty__shows_how_a_run_opens_a_ticket(admin: Client) -> None:
    assert "No pending tickets" in page(admin, "/inbox")


def test_inbox__viewer__can_read_but_not_decide(viewer: Client, alice: Person) -> None:
    ask(alice, refund())
    assert "Only editors and admins can decide" in page(viewer, "/inbox")
    assert viewer.post("/ticket/k1", FORM | GOOD).status_code == 403
    assert Ticket.objects.get().status == "pending"


def test_inbox__another_workspace__is_empty_and_its_tickets_are_404(
    stranger: Client, alice: Person
) -> None:
    ask(alice, refund())
    assert "issue_refund" not in page(stranger, "/inbox")
    assert stranger.post("/ticket/k1", FORM | GOOD).status_code == 404


@pytest.mark.parametrize(("query", "found"), [("tool=issue_refund", 1), ("agent=other", 0)])
def test_inbox__filtered__contains_only_matches(
    query: str, found: int, admin: Client, alice: Person
) -> None:
    ask(alice, refund())
    assert len(admin.get(f"/inbox.json?{query}").json()["items"]) == found


def test_inbox__more_than_a_page__has_a_next_page(admin: Client, alice: Person) -> None:
    ask(alice, *(refund(number) for number in range(23)))
    first = admin.get("/inbox.json").json()
    rest = admin.get(first["next"]).json()
    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [20, 3, None]
    for url in ("/inbox", first["next"].replace(".json", "")):
        assert ">23 pending tickets<" in page(admin, url)
    assert ">1 pending ticket<" not in page(admin, "/inbox?tool=other")


def test_form__filled_in__resumes_with_the_answer_and_stays_in_the_inbox(
    admin: Client, alice: Person
) -> None:
    ask(alice, refund())
    response = admin.post("/ticket/k1", FORM | GOOD)
    assert response["Location"] == "/inbox"
    assert Run.objects.get().status == "running"
    given = '{"approved":true,"amount":12.50,"to":{"iban/bic":"DE1"}}'
    assert Ticket.objects.get().payload == given


def test_form__decided__says_what_the_run_waits_for(admin: Client, alice: Person) -> None:
    ask(alice, refund(1), refund(2))
    ask(alice, refund(3), run="r2", wake="dispatch")

    def decide(ticket: str, action: str = "resume") -> str:
        admin.post(f"/ticket/{ticket}", FORM | GOOD | {"action": action})
        (text,) = re.findall(r"<span data-text>([^<]+)</span>", page(admin, "/inbox"))
        return str(text)

    assert decide("k1") == "Approved: issue_refund. Its run waits for 1 more decision."
    assert decide("k2", "cancel") == (
        "Refused: issue_refund. Its run is running again: a worker has to continue it."
    )
    assert decide("k3") == (
        "Approved: issue_refund. A dispatch in the mailbox tells a worker to continue its run."
    )


def test_form__filtered_inbox__returns_to_the_same_filters(admin: Client, alice: Person) -> None:
    ask(alice, refund(1), refund(2, tool_name="other"))
    shown = page(admin, "/inbox?tool=issue_refund&agent=helper")
    query = "?tool=issue_refund&amp;agent=helper"
    assert f'action="/ticket/k1{query}" hx-post="/ticket/k1{query}"' in shown
    url = "/ticket/k1?tool=issue_refund&agent=helper"
    wrong = admin.post(url, FORM | GOOD | {"answer/approved": ""})
    assert 'value="issue_refund"' in wrong.content.decode()
    assert wrong.content.decode().count("data-ticket>") == 1
    assert admin.post(url, FORM | GOOD)["Location"] == "/inbox?tool=issue_refund&agent=helper"


def test_ticket__opened_from_the_overview__is_decided_on_its_page(
    admin: Client, viewer: Client, alice: Person
) -> None:
    ask(alice, refund(1), refund(2))
    assert 'href="/ticket/k2"' in page(admin, "/")
    shown = page(admin, "/ticket/k2")
    assert shown.count("data-ticket>") == 1
    assert 'href="/runs/r1"' in shown
    assert "Only editors and admins can decide" in page(viewer, "/ticket/k2")
    sent = FORM | GOOD | {"from": "ticket"}
    assert viewer.post("/ticket/k2", sent).status_code == 403
    wrong = admin.post("/ticket/k2", sent | {"answer/approved": ""})
    assert (wrong.status_code, b"A value is required" in wrong.content) == (422, True)
    assert admin.post("/ticket/k2", sent)["Location"] == "/ticket/k2"
    decided = page(viewer, "/ticket/k2")
    assert "by alice" in decided
    assert "DE1" in decided
    assert "data-ticket>" not in decided
    late = admin.post("/ticket/k2", sent)
    assert (late.status_code, b"already decided" in late.content) == (409, True)
    assert admin.get("/ticket/none").status_code == 404


def test_form__enter_without_a_button__approves(admin: Client, alice: Person) -> None:
    ask(alice, refund())
    admin.post("/ticket/k1", {"from": "inbox"} | GOOD)
    assert Ticket.objects.get().status == "resumed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answer/approved": ""}, "A value is required"),
        ({"answer/amount": "many"}, "Must be a number"),
        ({"answer/amount": "501"}, "greater than the maximum"),
        ({"answer/days": "1.5"}, "is not of type"),
        ({"answer/tags": "a\nb\nc"}, "has more than 2 items"),
        ({"answer/on": "soon"}, "Must be a date"),
    ],
)
def test_form__mistake__is_reported_at_its_field_and_typed_text_is_kept(
    changes: dict[str, str], said: str, admin: Client, alice: Person
) -> None:
    ask(alice, refund())
    response = admin.post("/ticket/k1", FORM | GOOD | changes)
    shown = response.content.decode()
    assert response.status_code == 422
    error = shown.index('class="error"')
    assert said in shown[error : error + 200]
    assert ">\nDE1</textarea>" in shown
    assert 'name="reason" maxlength="500" value="fine"' in shown
    assert Ticket.objects.get().status == "pending"


def test_form__length_of_a_text__is_said_and_checked_by_the_server(
    admin: Client, alice: Person
) -> None:
    rules = {"minLength": 2, "maxLength": 10, "pattern": "^[a-z ]+$", "description": "Why"}
    schema = {"type": "object", "properties": {"why": {"type": "string", **rules}}}
    ask(alice, refund(response_schema=schema))
    shown = admin.get("/inbox").content.decode()
    field = re.search(r'<input[^>]*name="answer/why"[^>]*>', shown)
    assert field
    assert "length" not in field[0]
    hint = "Why. At least 2 characters. At most 10 characters. Must match ^[a-z ]+$"
    assert f'<p class="help">{hint}</p>' in shown
    refused = admin.post("/ticket/k1", {"action": "resume", "answer/why": "it is too long"})
    assert refused.status_code == 422
    assert 'value="it is too long"' in refused.content.decode()
    assert Ticket.objects.get().status == "pending"


def test_form__refused__requires_no_answer(admin: Client, alice: Person) -> None:
    ask(alice, refund())
    admin.post("/ticket/k1", FORM | {"action": "cancel", "reason": "too much"})
    assert Ticket.objects.get().status == "cancelled"


def test_form__hostile_schema__is_escaped(admin: Client, alice: Person) -> None:
    properties = {text: {"type": "string", "description": text} for text in HOSTILE}
    schema = {"type": "object", "title": HOSTILE[0], "properties": properties}
    ask(alice, refund(response_schema=schema, tool_name=HOSTILE[0], reason=HOSTILE[1]))
    shown = page(admin, "/inbox")
    for tag in ("<script>alert", "<img src=x", "<svg onload", "onmouseover=alert(1) x='"):
        assert tag not in shown.replace("&#x27;", "")


@pytest.mark.parametrize("origin", ["inbox", "run"])
@pytest.mark.parametrize(("action", "said"), [("resume", "approved"), ("cancel", "refused")])
def test_race__lost__shows_who_decided(
    action: str, said: str, origin: str, admin: Client, alice: Person
) -> None:
    ask(alice, refund(), refund(2))
    erin = make_person("erin", "acme", Role.EDITOR).browser()
    erin.post("/ticket/k1", FORM | GOOD | {"action": action})
    response = admin.post("/ticket/k1", FORM | GOOD | {"from": origin})
    shown = response.content.decode()
    assert response.status_code == 409
    assert "Ticket already decided: k1" in shown
    assert f"erin {said} it at" in shown
    assert 'action="/ticket/k1"' not in shown
    assert 'action="/ticket/k2"' in shown


def test_race__run_cancelled_meanwhile__reports_it(admin: Client, alice: Person) -> None:
    ask(alice, refund())
    runs.cancel_run(actor=alice.actor, run_id="r1")
    response = admin.post("/ticket/k1", FORM | GOOD)
    assert "Its run ended or continued without a decision" in response.content.decode()


def test_decision__on_a_later_page__stays_there(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "PAGE", 2)
    ask(alice, *(refund(number) for number in range(1, 5)))
    second = f"/inbox?after={Ticket.objects.get(public_id='k2').pk}"
    shown = page(admin, second)
    action = second.replace("/inbox", "/ticket/k3")
    assert f'action="{action}"' in shown
    refused = admin.post(action, FORM | {"from": "inbox"})
    assert re.findall(r'action="/ticket/(k\d)', refused.content.decode()) == ["k3", "k4"]
    for number in (3, 4):
        url = second.replace("/inbox", f"/ticket/k{number}")
        assert admin.post(url, FORM | {"action": "cancel"})["Location"] == second
    assert "No pending tickets on this page" in page(admin, second)
    assert "k1" in page(admin, "/inbox")


def test_poll__new_tickets__shows_a_notice_and_keeps_forms(admin: Client, alice: Person) -> None:
    ask(alice, refund(), refund(2))
    first, last = Ticket.objects.order_by("pk")
    at = f"/inbox?newest={last.pk}&oldest={first.pk}&count=2"
    assert "show" not in page(admin, at, headers=htmx("inbox-now"))
    admin.post("/ticket/k1", FORM | {"action": "cancel"})
    ask(alice, refund(3), run="r2")
    part = page(admin, at, headers=htmx("inbox-now"))
    assert "1 new ticket, 1 ticket decided: refresh" in part
    assert "<form" not in part


def test_inbox__number_of_queries__does_not_depend_on_tickets(
    admin: Client, alice: Person, check_queries: CheckQueries
) -> None:
    create_story(alice.actor)
    check_queries("inbox", admin, "/inbox")
    ask(alice, *(refund(number) for number in range(9)), run="r9")
    check_queries("inbox", admin, "/inbox")
    check_queries("inbox as JSON", admin, "/inbox.json")


def test_ids__of_detail_pages__have_a_button_that_copies_them(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    make_thread(alice.actor, "long")
    job = request_compaction(actor=alice.actor, thread_id="long").public_id
    hook, _ = create_webhook(actor=alice.actor, name="billing", url="https://example.com/hook")
    pages = {
        "tk1": "/ticket/tk1",
        job: f"/compactions/{job}",
        hook.public_id: f"/webhooks/{hook.public_id}",
    }
    for identifier, path in pages.items():
        assert f'data-copy-text="{identifier}"' in admin.get(path).content.decode()
