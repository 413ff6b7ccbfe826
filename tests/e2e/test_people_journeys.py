"""What users with more permissions do: decide, resume, add and remove members."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.domain.access import Role
from state_admin.models import Run, Ticket
from state_admin.services.actors import actor_of_token
from state_admin.services.tickets import decide_ticket
from tests.builders import Person, commit, make_person, make_run, make_thread, raw
from tests.web.stories import create_story
from tests.web.test_inbox import ask, refund

from .conftest import Errors, click, press


@pytest.fixture
def open_tickets(server: LiveServer, alice: Person) -> None:
    ask(alice, refund(1, reason="Refunds above 100 need a person."), refund(2))


@pytest.mark.usefixtures("open_tickets")
def test_inbox__generated_form__shows_a_mistake_then_approves(page: Page, errors: Errors) -> None:
    errors.expected.add(422)
    page.goto("/")
    press(page, "g", "i")
    first = page.locator("[data-ticket]").first
    expect(first).to_contain_text("Refunds above 100 need a person.")
    first.get_by_label("yes").check()
    first.get_by_label("Amount").fill("120")
    first.get_by_label("To / Iban/bic").fill("DE1")
    first.get_by_label("Tags").fill("a\nb\nc")
    first.get_by_role("button", name="Approve").click()
    expect(first.locator(".error")).to_contain_text("has more than 2 items")
    expect(first.get_by_label("Amount")).to_have_value("120")
    first.get_by_label("Tags").fill("vip")
    first.get_by_role("button", name="Approve").click()
    expect(page.locator("[data-toast]")).to_contain_text("Approved: issue_refund")
    expect(page.locator("[data-ticket]")).to_have_count(1)
    payload = Ticket.objects.get(public_id="k1").payload
    assert payload is not None
    assert '"amount":120' in payload
    assert '"tags":["vip"]' in payload


@pytest.mark.usefixtures("open_tickets")
def test_inbox__keyboard_only__approving_requires_answers_and_refusing_does_not(page: Page) -> None:
    page.goto("/inbox")
    expect(page.locator("[data-ticket]")).to_have_count(2)
    press(page, "a")  # no ticket is selected yet
    press(page, "j")
    expect(page.locator("[data-ticket]").first.locator("[data-row]")).to_be_focused()
    ticket = page.locator("[data-ticket]").first
    press(page, "a")
    expect(ticket.get_by_role("button", name="Approve")).to_be_focused()
    press(page, "Enter")  # the browser marks the first field that is not filled in
    expect(ticket.get_by_label("yes")).to_be_focused()
    press(page, "r")
    expect(ticket.get_by_role("button", name="Refuse")).to_be_focused()
    assert not Ticket.objects.exclude(status="pending").exists()
    press(page, "Enter")
    expect(page.locator("[data-toast]")).to_contain_text("Refused: issue_refund")
    expect(page.locator("[data-ticket]")).to_have_count(1)
    assert Ticket.objects.get(public_id="k1").status == "cancelled"


def test_inbox__keyboard_only__decides_several_tickets_at_once(page: Page, alice: Person) -> None:
    ask(alice, *(refund(number, response_schema=None) for number in range(1, 4)))
    page.goto("/inbox")
    expect(page.locator("[data-ticket]")).to_have_count(3)
    bar = page.get_by_role("toolbar", name="Actions on selected tickets")
    expect(bar).to_be_hidden()
    press(page, "j", "x", "j", "x")
    expect(bar).to_contain_text("2 selected")
    press(page, "b")
    expect(bar.get_by_role("button", name="Approve…")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("dialog", name="Approve 2 tickets?")).to_be_visible()
    press(page, "Enter")
    expect(page.locator("[data-toast]")).to_contain_text("Approved 2 tickets")
    expect(page.locator("[data-ticket]")).to_have_count(1)
    decided = Ticket.objects.filter(status="resumed").order_by("pk")
    assert list(decided.values_list("public_id", flat=True)) == ["k1", "k2"]


def test_inbox__decided_meanwhile__is_listed_with_the_reason(page: Page, alice: Person) -> None:
    ask(alice, *(refund(number) for number in range(1, 4)))
    page.goto("/inbox")
    page.get_by_role("checkbox", name="Select all").check()
    page.get_by_role("button", name="Refuse…").press("Enter")
    dialog = page.get_by_role("dialog", name="Refuse 3 tickets?")
    expect(dialog).to_be_visible()
    erin = make_person("erin", "acme", Role.EDITOR)
    decide_ticket(actor=erin.actor, ticket_id="k2", action="cancel", payload=raw(None))
    press(page, "Enter")
    result = page.get_by_role("region", name="Refused 2 tickets")
    expect(result.get_by_role("row", name="k2")).to_contain_text("erin refused it at")
    expect(page.locator("main")).to_be_focused()  # the button that opened the dialog is gone
    left = "each => each.getBoundingClientRect().left"
    headings = result.get_by_role("heading").all()
    assert len({heading.evaluate(left) for heading in headings}) == 1
    result.get_by_role("link", name="Back to the list").click()
    expect(page.locator("main")).to_contain_text("No pending tickets")


def test_inbox__one_decided__the_others_keep_what_was_typed_and_selected(
    page: Page, alice: Person
) -> None:
    ask(alice, *(refund(number) for number in range(1, 4)))
    page.goto("/inbox")
    first, second, third = page.locator("[data-ticket]").all()
    second.get_by_label("yes").check()
    second.get_by_label("Amount").fill("12")
    second.get_by_label("Reason").fill("half typed")
    third.get_by_role("checkbox", name="Select").check()
    first.get_by_role("button", name="Refuse").click()
    expect(page.locator("[data-ticket]")).to_have_count(2)
    first, second = page.locator("[data-ticket]").all()
    expect(first.get_by_label("yes")).to_be_checked()
    expect(first.get_by_label("Amount")).to_have_value("12")
    expect(first.get_by_label("Reason")).to_have_value("half typed")
    expect(second.get_by_role("checkbox", name="Select")).to_be_checked()
    expect(page.get_by_role("toolbar")).to_contain_text("1 selected")


@pytest.mark.usefixtures("open_tickets")
def test_inbox__decided_on_a_phone__shows_what_comes_next_below_the_top_bar(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto("/inbox")
    bar = page.locator(".top").bounding_box()
    assert bar is not None
    for tickets_left in (1, 0):
        page.locator("[data-ticket]").first.get_by_role("button", name="Refuse").click()
        expect(page.locator("[data-ticket]")).to_have_count(tickets_left)
        shown = page.locator("[data-ticket] h2" if tickets_left else "h1")
        expect(shown).to_be_in_viewport()
        box = shown.bounding_box()
        assert box is not None
        assert box["y"] >= bar["height"]


@pytest.mark.usefixtures("open_tickets")
def test_inbox__already_decided__shows_who_decided(page: Page, errors: Errors) -> None:
    errors.expected.add(409)
    erin = make_person("erin", "acme", Role.EDITOR)
    page.goto("/inbox")
    first = page.locator("[data-ticket]").first
    expect(first).to_be_visible()
    decide_ticket(actor=erin.actor, ticket_id="k1", action="cancel", payload=raw(None))
    expect(page.locator("#inbox-now")).to_contain_text("1 ticket decided")
    first.get_by_role("button", name="Refuse").click()
    expect(page.get_by_role("alert").filter(has_text="k1")).to_contain_text("erin refused it at")
    expect(page.locator("[data-ticket]")).to_have_count(1)


@pytest.mark.usefixtures("open_tickets")
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_inbox__without_javascript__can_decide(page: Page) -> None:
    page.goto("/inbox")
    first = page.locator("[data-ticket]").first
    first.get_by_label("no", exact=True).check()
    first.get_by_label("Amount").fill("1")
    first.get_by_label("To / Iban/bic").fill("DE1")
    first.get_by_role("button", name="Approve").click()
    expect(page.locator("[data-toast]")).to_contain_text("Approved")
    expect(page).to_have_url(re.compile("/inbox$"))
    page.locator("[data-ticket]").get_by_role("button", name="Refuse").click()
    expect(page.locator("main")).to_contain_text("No pending tickets")
    assert Run.objects.get().status == "running"


def test_stuck_run__opened_from_the_overview__is_resumed(page: Page, alice: Person) -> None:
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r2")
    silent_since = timezone.now() - timedelta(minutes=13)
    Run.objects.filter(public_id="r2").update(lease_expires_at=silent_since)
    page.goto("/")
    page.locator("a.stat").filter(has_text="stuck runs").click()
    expect(page).to_have_url(re.compile(r"/runs\?"))
    click(page, page.get_by_role("link", name="r2").first)
    expect(page.locator("#run-now")).to_contain_text("silent for 14 min")
    expect(page.locator("#run-now").get_by_role("link", name="Release lease…")).to_be_visible()
    click(page, page.get_by_text("Origin and metadata"))
    click(page, page.get_by_role("button", name="Actions"))
    click(page, page.get_by_role("link", name="Resume run…"))
    dialog = page.get_by_role("dialog", name="Resume this run?")
    dialog.get_by_label("Reason").fill("the worker is back")
    dialog.get_by_role("button", name="Resume run").click()
    expect(page.locator("[data-toast]")).to_contain_text("Run resumed")
    expect(page.locator("#run-now")).not_to_contain_text("Stuck")
    expect(page.locator("#run-origin")).to_have_attribute("open", "")
    expect(page.locator("#run-origin")).to_contain_text(re.compile(r"Fencing token\s*2"))
    assert not Run.objects.all().stuck().exists()


def test_run__value_with_direction_controls__leaves_the_words_around_it(
    page: Page, alice: Person
) -> None:
    create_story(alice.actor)
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r2")
    commit(alice.actor, "r2", {"plan": {"count": "one \u202e"}})
    page.goto("/runs/r2")
    place = """line => {
      const added = [...line.childNodes].find(({ nodeType, data }) => nodeType === 3 && data.includes("added"));
      const range = document.createRange();
      range.selectNodeContents(added);
      return range.getBoundingClientRect().left - line.querySelector("ins").getBoundingClientRect().right;
    }"""
    line = page.locator(".state-lines li").filter(has_text="added").first
    assert line.evaluate(place) >= -1  # " added" is to the right of the value


def test_thread__labelled_pinned_and_forked__is_in_the_tree(page: Page, alice: Person) -> None:
    create_story(alice.actor)
    page.goto("/threads/t1?tab=state&at=3")
    page.get_by_label("Label", exact=True).fill("before the refund")
    page.get_by_label("Pin").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-toast]")).to_contain_text("Revision 3 is kept by compaction")
    page.get_by_role("link", name="Fork…").click()
    dialog = page.get_by_role("dialog", name="Fork at revision 3?")
    dialog.get_by_label("Reason").fill("try another way")
    dialog.get_by_role("button", name="Fork").click()
    lineage = page.get_by_role("navigation", name="Lineage")
    expect(lineage).to_contain_text("forked from t1 at revision 3")
    lineage.get_by_role("link", name="t1", exact=True).click()
    expect(lineage).to_contain_text("fork at revision 3")
    expect(lineage).to_contain_text("t1-child child")


def test_token__created_and_rotated__is_revoked(page: Page, alice: Person) -> None:
    page.goto("/tokens/+new")
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_role("button", name="Create token").click()
    made = page.get_by_role("region", name="Token “nightly” created")
    first = made.locator("code").first.inner_text()
    page.get_by_role("link", name="Rotate nightly").click()
    dialog = page.get_by_role("dialog", name="Rotate the token “nightly”?")
    dialog.get_by_label("for an hour").check()
    dialog.get_by_role("button", name="Rotate token").click()
    expect(made.locator("code").first).not_to_have_text(first)
    second = made.locator("code").first.inner_text()
    assert actor_of_token(first)
    assert actor_of_token(second)
    expect(page.locator("tr").filter(has_text="rotated")).to_have_count(1)
    for count in (1, 2):
        page.get_by_role("link", name="Revoke nightly").first.click()
        revoke = page.get_by_role("dialog", name="Revoke the token “nightly”?")
        revoke.get_by_role("button", name="Revoke token").click()
        expect(page.locator("tr").filter(has_text="revoked")).to_have_count(count)
    assert actor_of_token(first) is None
    assert actor_of_token(second) is None


def test_member__added__signs_in_by_link_and_is_signed_out(
    browser: Browser, server: LiveServer, page: Page, errors: Errors
) -> None:
    errors.expected.add(401)  # the change stream of a page whose session has ended
    page.goto("/members")
    page.get_by_role("link", name="New member").click()
    form = page.get_by_role("region", name="New member")
    form.get_by_label("Name", exact=True).fill("carol")
    form.get_by_label("Role", exact=True).select_option("editor")
    page.get_by_role("button", name="Add member").click()
    made = page.get_by_role("region", name="A login link for carol")
    link = made.locator("code").inner_text()
    other = browser.new_context(base_url=server.url)
    carol = other.new_page()
    carol.goto(link)
    carol.get_by_role("button", name="Sign in").click()
    expect(carol.get_by_role("heading", name="Set a password")).to_be_visible()
    carol.goto("/sessions")
    expect(carol.locator("main")).to_contain_text("this browser")
    page.get_by_role("link", name="End the sessions of carol").click()
    dialog = page.get_by_role("dialog", name="End the sessions of carol?")
    dialog.get_by_label("Reason").fill("lost laptop")
    dialog.get_by_role("button", name="End sessions").click()
    expect(page.locator("[data-toast]")).to_contain_text("1 session of carol ended")
    carol.reload()
    expect(carol).to_have_url(re.compile("/login"))
    other.close()
    page.get_by_label("Role of carol", exact=True).select_option("viewer")
    page.get_by_role("button", name="Save the role of carol").click()
    expect(page.locator("[data-toast]").last).to_contain_text("carol is now viewer")
    page.get_by_role("link", name="carol", exact=True).click()
    expect(page.locator("#verdict")).to_contain_text("carol is a member as viewer")


def test_members__choices_of_roles__hide_neither_count_nor_files(page: Page) -> None:
    """The chosen option of a select is :checked, as a selected row is."""
    page.goto("/members")
    expect(page.get_by_text("1 member", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="CSV")).to_be_visible()
