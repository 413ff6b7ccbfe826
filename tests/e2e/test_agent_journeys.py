"""What users do with agents: resume a run, undo a compaction, restore a thread, create a token."""

from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import ApiToken, Run
from state_admin.services.actors import actor_of_token
from state_admin.services.contexts import read_context
from state_admin.services.snapshots import read_snapshot
from tests.builders import Person, append, make_namespace, make_run, make_thread
from tests.web.stories import create_story

from .conftest import press


@pytest.fixture
def story(server: LiveServer, alice: Person) -> None:
    create_story(alice.actor)
    make_thread(alice.actor, "t2", title="Where is my parcel?")
    make_run(alice.actor, "t2", "r2", agent_id="courier")
    silent_since = timezone.now() - timedelta(minutes=13)
    Run.objects.filter(public_id="r2").update(lease_expires_at=silent_since)


def plan(alice: Person) -> object:
    return read_snapshot(actor=alice.actor, thread_id="t1").parsed()["plan"]


@pytest.mark.usefixtures("story")
def test_menu__its_dialog_closed__has_the_focus(page: Page) -> None:
    page.goto("/runs/r2")
    actions = page.get_by_role("button", name="Actions")
    actions.press("Enter")
    page.get_by_role("link", name="Cancel run…").press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(actions).to_be_focused()


@pytest.mark.usefixtures("story")
def test_stuck_run__keyboard_only__can_be_resumed(page: Page) -> None:
    page.goto("/")
    press(page, "g", "r")
    expect(page.locator("#run-table")).to_contain_text("Silent for 14 min: no commit or heartbeat")
    press(page, "j", "Enter")
    expect(page.get_by_role("heading", name="r2")).to_be_visible()
    for name in ("Actions", "Cancel run…"):
        for _ in range(40):
            press(page, "Tab")
            if page.evaluate("document.activeElement.textContent.trim()") == name:
                break
        press(page, "Enter")
    dialog = page.get_by_role("dialog", name="Cancel this run?")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("the worker is gone")
    press(page, "Enter")
    expect(page.locator("#run-now")).to_contain_text("cancelled")
    expect(page.locator("[data-toast]")).to_contain_text("Run cancelled")
    run = Run.objects.get(public_id="r2")
    assert run.termination_reason == {"type": "cancelled"}


@pytest.mark.usefixtures("story")
def test_run_context__arrow_keys__walk_through_the_steps(page: Page) -> None:
    page.goto("/run/knowledge/r1?step=3")
    press(page, "ArrowLeft")
    expect(page.locator("#step-shown")).to_have_text("2")
    press(page, "ArrowRight")
    expect(page.locator("#step-shown")).to_have_text("3")
    press(page, "ArrowRight")
    expect(page).to_have_url(re.compile(r"step=4$"))
    page.get_by_role("link", name="Timeline").click()
    page.get_by_text("internal change").first.click()
    expect(page.locator(".internal .state-lines").first).to_contain_text("__runtime")


@pytest.mark.usefixtures("story")
def test_run_slider__by_keyboard__moves_the_context_and_the_marks(page: Page) -> None:
    page.goto("/runs/r1")
    page.get_by_role("link", name="Step through").press("Enter")
    slider = page.get_by_role("slider", name="Step")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^Step 1 of \d+, \d{4}-"))
    current = page.locator("#waterfall [aria-current=step]")
    slider.focus()
    for step in (2, 3):
        press(page, "ArrowRight")
        expect(current).to_contain_text(f"Step {step}")
        expect(page).to_have_url(re.compile(f"step={step}$"))
        expect(page.locator(".trace")).to_contain_text(f"Step {step}")
        expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^Step {step} of .* UTC$"))
        expect(slider).to_be_focused()
    later = page.locator("#waterfall [data-later]:not([data-event])")
    expect(later.first).to_be_attached()
    press(page, "End")
    expect(later).to_have_count(0)
    expect(page.locator(".trace")).to_contain_text(f"Step {slider.get_attribute('max')}")
    page.reload()
    expect(later).to_have_count(0)
    press(page, "j", "Enter")
    expect(current).to_contain_text("Step 1")
    expect(slider).to_have_value("1")


@pytest.mark.usefixtures("story")
def test_run_slider__played__shows_each_step_until_the_last(page: Page) -> None:
    page.goto("/run/knowledge/r1")
    slider, play = page.get_by_role("slider", name="Step"), page.locator("[data-play]")
    last = slider.get_attribute("max")
    expect(slider).to_have_value(str(last))
    shown: list[str] = []
    page.route(
        "**/knowledge/**", lambda route: (time.sleep(1.5), route.continue_())
    )  # slower than it plays
    page.on("response", lambda answer: shown.append(answer.url.rpartition("step=")[2]))
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#step-shown")).to_have_text("1")
    expect(play).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#waterfall [aria-current=step]")).to_contain_text(f"Step {last}")
    assert [step for step in shown if step.isdigit()] == list(
        map(str, range(1, int(last or 0) + 1))
    )
    expect(page).to_have_url(re.compile(f"step={last}$"))

    page.goto("/run/knowledge/r1?step=1")
    page.locator("[data-play]").click()
    expect(page.locator("#step-shown")).to_have_text("2")
    page.locator("[data-play]").click()  # stops it
    expect(page.locator("[data-play]")).to_have_attribute("aria-pressed", "false")


@pytest.mark.usefixtures("story")
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_run_slider__without_javascript__is_a_form_and_links(page: Page) -> None:
    page.goto("/run/knowledge/r1?step=1")
    page.get_by_role("slider", name="Step").press("ArrowRight")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#waterfall [aria-current=step]")).to_contain_text("Step 2")
    page.locator("#waterfall").get_by_role("link", name="Step 3").click()
    expect(page).to_have_url(re.compile("step=3$"))


@pytest.mark.usefixtures("story")
def test_waiting_run__answered__continues(page: Page) -> None:
    page.goto("/runs/r1")
    form = page.locator("[data-ticket]")
    form.get_by_role("button", name="Approve").click()
    expect(form.get_by_label("yes")).to_be_focused()  # the browser reports a missing answer
    form.get_by_label("yes").check()
    form.get_by_role("button", name="Approve").click()
    expect(page.locator("#run-now")).to_contain_text("running")
    expect(form).to_have_count(0)
    expect(page.locator("[data-event]").first).to_contain_text('by alice: {"approved":true}')
    assert Run.objects.get(public_id="r1").status == "running"


@pytest.mark.usefixtures("story")
def test_compaction__undone__the_model_sees_everything_again(page: Page, alice: Person) -> None:
    page.goto("/threads/t1")
    page.get_by_role("link", name="Compactions").last.click()
    expect(page).to_have_url(re.compile(r"tab=compactions"))
    expect(page.locator("#thread")).to_contain_text("Current summary")
    page.get_by_role("link", name="Undo…").click()
    dialog = page.get_by_role("dialog", name="Undo this compaction?")
    dialog.get_by_label("Reason").fill("it lost the amounts")
    dialog.get_by_role("button", name="Undo compaction").click()
    expect(page.locator("#thread-jobs")).to_contain_text("undone")
    expect(page.locator("#thread")).not_to_contain_text("Current summary")
    assert read_context(actor=alice.actor, thread_id="t1").folded_to_seq is None


@pytest.mark.usefixtures("story")
def test_thread__slider_then_restore_then_undo(page: Page, alice: Person) -> None:
    page.goto("/threads/t1?tab=state")
    newest = int(page.locator("#at").input_value())
    page.locator("#at").focus()
    for _ in range(newest - 3):
        press(page, "ArrowLeft")
    expect(page.locator("#state-at")).to_contain_text("Revision 3")
    expect(page).to_have_url(re.compile(r"at=3$"))
    expect(page.locator("#at")).to_be_focused()
    expect(page.locator(".state-value[data-lit]").first).to_contain_text("plan")
    page.get_by_role("link", name="Restore…").click()
    dialog = page.get_by_role("dialog", name="Restore revision 3?")
    expect(dialog).to_contain_text("/plan/count changed")
    dialog.get_by_label("Reason").fill("it went wrong")
    dialog.get_by_role("button", name="Restore").click()
    expect(page.locator("#state-at")).to_contain_text(f"Revision {newest + 1}")
    expect(page.locator("#state-at")).to_contain_text("it went wrong")
    assert plan(alice) == {"count": 1}
    page.locator("[data-undo] button").click()
    expect(page).to_have_url(re.compile(rf"at={newest + 2}$"))
    assert plan(alice) == {"count": 3}


@pytest.mark.usefixtures("story")
def test_token__created_and_copied__is_used_and_revoked(page: Page) -> None:
    page.goto("/tokens")
    page.get_by_role("link", name="New token").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("ci")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="Token “ci” created")).to_be_focused()
    expect(page).to_have_url(re.compile("/tokens$"))
    expect(page).to_have_title("Tokens · acme")
    page.get_by_role("button", name="Copy Token").click()
    expect(page.locator("[data-toast]").last).to_contain_text("Copied")
    secret = page.evaluate("navigator.clipboard.readText()")
    assert actor_of_token(secret) is not None
    page.reload()
    expect(page.locator("main")).not_to_contain_text(secret)
    page.get_by_role("link", name="Revoke ci").click()
    dialog = page.get_by_role("dialog", name="Revoke the token")
    dialog.get_by_label("Reason").fill("leaked")
    dialog.get_by_role("button", name="Revoke token").click()
    expect(page.locator("#tokens tbody")).to_contain_text("revoked")
    assert actor_of_token(secret) is None


@pytest.mark.usefixtures("story")
def test_conversation__new_message__shows_a_notice_without_scrolling(
    page: Page, alice: Person
) -> None:
    page.goto("/threads/t1")
    append(alice.actor, "t1", {"role": "user", "content": "one more thing"})
    more = page.get_by_role("link", name="1 new message")
    expect(more).to_be_visible()
    expect(page.locator(".messages")).not_to_contain_text("one more thing")
    more.click()
    expect(page.locator(".messages")).to_contain_text("one more thing")


@pytest.mark.usefixtures("story")
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_javascript__filter_read_compare_cancel_create__work(page: Page) -> None:
    page.goto("/threads")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Id begins with").fill("t1")
    page.get_by_role("button", name="Apply filters").click()
    page.get_by_role("link", name="Refund of order 9921").click()
    page.get_by_role("link", name="State", exact=True).click()
    page.get_by_role("link", name="Previous revision").click()
    expect(page).to_have_url(re.compile(r"tab=state&at=\d+$"))
    page.get_by_label("Compare", exact=True).fill("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("main")).to_contain_text("From revision 2 to")
    page.goto("/runs/r2")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("link", name="Cancel run…").click()
    page.get_by_label("Reason").fill("plain")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator("main")).to_contain_text("cancelled")
    page.goto("/tokens")
    page.get_by_role("link", name="New token").click()
    page.get_by_role("button", name="Create token").click()
    page.get_by_label("Name", exact=True).fill("plain")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("main")).to_contain_text("Copy the token now")


def test_token__names_chosen_from_the_lists__limit_it(page: Page, alice: Person) -> None:
    for name in ("order_lines", "order_notes", "people"):
        make_namespace(alice.actor, name)
    make_thread(alice.actor, "trip-1", title="Lisbon")
    page.goto("/tokens/+new")
    page.get_by_label("Name", exact=True).fill("limited")
    namespaces = page.get_by_label("Namespaces", exact=True)
    namespaces.fill("ord")
    page.get_by_role("button", name="Add order_*").click()
    expect(namespaces).to_have_value("order_* ")
    expect(namespaces).to_be_focused()
    matches = page.get_by_role("status").filter(has_text="Matches 2 namespaces")
    expect(matches).to_have_text("Matches 2 namespaces: order_lines, order_notes")
    page.get_by_label("Thread prefixes").fill("lis")
    page.get_by_role("button", name="Add trip-1").press("Enter")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="Token “limited” created")).to_be_visible()
    token = ApiToken.objects.get(name="limited")
    assert (token.namespaces, token.thread_prefixes) == (["order_*"], ["trip-1"])


def test_webhook__thread_chosen_from_the_list__is_the_only_id(page: Page, alice: Person) -> None:
    for name in ("trip-1", "trip-2"):
        make_thread(alice.actor, name)
    page.goto("/webhooks/+new")
    thread = page.get_by_label("Thread", exact=True)
    thread.fill("trip")
    page.get_by_role("button", name="Choose trip-2").click()
    expect(thread).to_have_value("trip-2")
    expect(page.get_by_role("button", name="Choose")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="Matches one thread.")).to_be_visible()
