"""Live pages on a real server process that streams: what is updated, what waits, what the status
shows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Request, Route, expect

from state_admin.domain.access import Role
from state_admin.models import Compaction, UserSession
from state_admin.models.feed_sql import Position
from state_admin.services.compaction_jobs import run_compaction
from state_admin.services.compactions import undo_compaction
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.runs import RunChange, change_run
from state_admin.services.tickets import decide_ticket
from state_admin.streams import cursors
from tests.builders import (
    Person,
    append,
    conversation,
    make_namespace,
    make_person,
    make_run,
    make_thread,
    put,
    raw,
)
from tests.project.conftest import folder, start
from tests.project.running import Running
from tests.streams.listening import web_on_this_database

from .conftest import Errors, press

__all__ = ["folder", "start"]


@dataclass
class Served:
    """A web process on the test's database that can be killed and restarted."""

    begin: Any
    running: Running

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.running.port}"

    def kill(self) -> None:
        self.running.kill_all()

    def start(self) -> None:
        port = str(self.running.port)
        self.running = web_on_this_database(self.begin, PORT=port, **_ENV)


# Static files under their own names.
_ENV = {"DEBUG": "true", "WEB_WORKERS": "1"}


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Served]:
    """One process for all tests that do not stop it."""

    def begin(*arguments: str, **env: str) -> Running:
        return Running(tmp_path_factory.mktemp("web"), *arguments, **env)

    with django_db_blocker.unblock():
        shared = Served(begin, web_on_this_database(begin, **_ENV))
    yield shared
    shared.kill()


@pytest.fixture
def own_server(transactional_db: None, start: Any) -> Served:
    """A process for one test."""
    return Served(start, web_on_this_database(start, **_ENV))


@pytest.fixture
def served(request: pytest.FixtureRequest, transactional_db: None) -> Served:
    name = "own_server" if "own_server" in request.fixturenames else "shared"
    found: Served = request.getfixturevalue(name)
    return found


@pytest.fixture
def server(served: Served) -> Served:
    return served


@pytest.fixture
def erin(alice: Person) -> Person:
    """Another user who writes."""
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "first", 1)
    return make_person("erin", "acme", Role.EDITOR)


def wait_for(person: Person, run_id: str, ticket: dict[str, Any]) -> None:
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    change_run(
        actor=person.actor, run_id=run_id, change=RunChange(status="waiting", waiting=waiting)
    )


def visit(page: Page, path: str) -> None:
    page.goto(path)
    expect(page.locator("#live")).to_have_text("live")


def test_pill__server_killed_and_restarted__misses_no_change(
    page: Page, own_server: Served, erin: Person
) -> None:
    visit(page, "/changes")
    own_server.kill()
    expect(page.locator("#live")).to_have_text("reconnecting")
    expect(page.locator("#live-status")).to_have_text("reconnecting")
    put(erin.actor, "team", "meanwhile", 1)
    own_server.start()
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#updates")).to_have_text("1 new change — show")


def test_pill__cursor_expired__offers_to_reload_all_regions(
    page: Page, erin: Person, errors: Errors
) -> None:
    """As in a tab that was offline for longer than changes are kept."""
    errors.expected.add(410)
    expired = cursors.seal(Position(1, 1), timezone.now() - timedelta(days=30))

    def age(route: Route) -> None:
        response = route.fetch()
        body = re.sub('data-cursor="[^"]*"', f'data-cursor="{expired}"', response.text())
        route.fulfill(response=response, body=body)

    page.route("**/changes", age)
    visit(page, "/changes")
    news = page.locator("#updates")
    expect(news).to_have_text("New changes — show")
    put(erin.actor, "team", "later", 1)
    expect(news).to_have_text("1 new change — show")


def test_pill__session_ended__says_so_and_links_to_the_login(page: Page, erin: Person) -> None:
    visit(page, "/changes")
    UserSession.objects.all().delete()
    pill = page.locator("#live")
    expect(pill).to_have_text("ended")
    pill.click()
    expect(page).to_have_url(re.compile("/login"))


def test_session__unused__is_not_kept_by_the_refreshes_of_its_page(
    page: Page, errors: Errors, erin: Person
) -> None:
    errors.expected.add(
        401
    )  # the stream of a page, if it connects again when the session has ended

    def is_unused() -> bool:
        return UserSession.objects.get().active_at < timezone.now() - timedelta(days=1)

    page.goto("/system")
    expect(page.locator("#live")).to_have_text("live, every 10 s")
    UserSession.objects.update(active_at=timezone.now() - timedelta(days=2))
    with page.expect_response("**/system") as refreshed:  # every 10 s
        pass
    assert refreshed.value.status == 200
    with page.expect_response("**/live?*") as status:
        page.evaluate("dispatchEvent(new Event('offline'))")
        page.evaluate("dispatchEvent(new Event('offline'))")
    assert status.value.status == 200
    assert is_unused()
    page.get_by_role("link", name="Namespaces").first.click()
    expect(page).to_have_url(re.compile("/namespaces"))
    assert not is_unused()
    UserSession.objects.update(active_at=timezone.now() - timedelta(days=4))
    expect(page.locator("#live")).to_have_text("ended")


def test_pill__session_ended_while_the_server_was_down__says_ended(
    page: Page, own_server: Served, erin: Person
) -> None:
    visit(page, "/changes")
    own_server.kill()
    UserSession.objects.all().delete()
    own_server.start()
    expect(page.locator("#live")).to_have_text("ended")


def test_new_changes__written__are_loaded_on_request(page: Page, erin: Person) -> None:
    visit(page, "/changes")
    first = page.locator("#change-table li").first
    before, place = first.inner_text(), first.bounding_box()
    for number in range(3):
        put(erin.actor, "team", f"new-{number}", 1)
    news = page.locator("#updates")
    expect(news).to_have_text("3 new changes — show")
    expect(page.locator("#live-status")).to_contain_text("new change")
    assert (first.inner_text(), first.bounding_box()) == (before, place)
    news.click()
    expect(first).to_contain_text("team/new-2")
    expect(news).to_be_hidden()
    put(erin.actor, "team", "new-3", 1)
    expect(news).to_have_text("1 new change — show")
    press(page, ".")
    expect(first).to_contain_text("team/new-3")


def test_first_steps__entry_written_elsewhere__are_done_at_once(page: Page, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    visit(page, "/")
    step = page.locator("#overview li", has_text="watch it arrive")
    expect(step).to_contain_text("to do")
    put(alice.actor, "team", "global", 1)
    expect(step).to_contain_text("done")
    expect(page.get_by_role("link", name="global")).to_be_visible()


def test_new_changes__outside_the_filters__are_not_announced(page: Page, erin: Person) -> None:
    visit(page, "/changes?namespace=team&prefix=wanted&kind=entry&actor=erin")
    make_thread(erin.actor, "other")
    put(erin.actor, "team", "unwanted", 1)
    put(erin.actor, "team", "wanted/1", 1)
    news = page.locator("#updates")
    expect(news).to_have_text("1 new change — show")
    news.click()
    expect(page.locator("#change-table")).to_contain_text("team/wanted/1")
    expect(page.locator("#change-table")).not_to_contain_text("unwanted")


def test_pause__key_p__stops_updates_until_resumed(page: Page, erin: Person) -> None:
    visit(page, "/changes")
    press(page, "p")
    pill = page.locator("#live")
    expect(pill).to_have_text("paused")
    expect(pill).to_have_attribute("aria-pressed", "true")
    put(erin.actor, "team", "unseen", 1)
    page.reload()
    expect(pill).to_have_text("paused")
    put(erin.actor, "team", "later", 1)
    expect(page.locator("#updates")).to_be_hidden()
    pill.click()
    expect(pill).to_have_text("live")
    expect(page.locator("#updates")).to_have_text("1 new change — show")


def test_hidden_tab__visible_again__reconnects(page: Page, erin: Person) -> None:
    visit(page, "/changes")
    show = "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
    show += " document.dispatchEvent(new Event('visibilitychange')) }"
    page.evaluate(show, True)
    put(erin.actor, "team", "meanwhile", 1)
    with page.expect_request("**/changes/stream*"):
        page.evaluate(show, False)
    expect(page.locator("#updates")).to_have_text("1 new change — show")


def test_numbers__thread_grows__are_updated_in_place(page: Page, erin: Person) -> None:
    make_thread(erin.actor, "t1", title="Where is my parcel?")
    append(erin.actor, "t1", {"role": "user", "content": "hello"})
    visit(page, "/threads/t1")
    append(erin.actor, "t1", {"role": "user", "content": "anybody there?"})
    expect(page.locator("#thread-now")).to_contain_text("1 new message")
    expect(page.locator("main")).not_to_contain_text("anybody there?")


def test_inbox__new_ticket__shows_a_notice_and_keeps_forms(page: Page, erin: Person) -> None:
    make_thread(erin.actor, "t1")
    make_run(erin.actor, "t1", "r1")
    asked = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund", "arguments": {}}
    wait_for(erin, "r1", asked)
    visit(page, "/inbox")
    reason = page.get_by_label("Reason")
    reason.fill("half a sente")
    make_thread(erin.actor, "t2")
    make_run(erin.actor, "t2", "r2")
    wait_for(erin, "r2", asked | {"ticket_id": "k2", "tool_call_id": "c2"})
    expect(page.locator("#inbox-now")).to_contain_text("1 new ticket: refresh")
    decide_ticket(actor=erin.actor, ticket_id="k1", action="cancel", payload=raw(None))
    expect(page.locator("#inbox-now")).to_contain_text("1 ticket decided: refresh")
    expect(reason).to_have_value("half a sente")


def test_pill__polled_page__shows_the_interval(page: Page, erin: Person) -> None:
    page.goto("/system")
    pill = page.locator("#live")
    expect(pill).to_have_text("live, every 10 s")
    press(page, "p")
    expect(pill).to_have_text("paused")


def test_navigation__run_starts__updates_counts_over_one_connection(
    page: Page, erin: Person
) -> None:
    streams: list[str] = []
    page.on("request", lambda asked: streams.append(asked.url) if "/stream" in asked.url else None)
    visit(page, "/namespaces")
    runs = page.locator('[data-go="r"] .count')
    expect(runs).to_be_empty()
    make_thread(erin.actor, "t1")
    make_run(erin.actor, "t1", "r1")
    expect(runs).to_have_text("1")
    assert len(streams) == 1


def test_own_write__in_this_tab__is_shown_immediately(page: Page, erin: Person) -> None:
    make_thread(erin.actor, "t1")
    enqueue_dispatch(actor=erin.actor, thread_id="t1", payload=raw({}))
    visit(page, "/mailbox")
    waiting = page.locator('[data-go="m"] .count')
    expect(waiting).to_have_text("1")
    page.get_by_role("link", name="Cancel …").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("#mailbox tbody")).to_contain_text("cancelled")
    expect(waiting).to_be_empty()  # the change has arrived
    expect(page.locator("#updates")).to_be_hidden()


def test_compaction__finished__shows_its_summary_and_no_finished_plan(
    page: Page, erin: Person
) -> None:
    make_thread(erin.actor, "t1")
    append(erin.actor, "t1", *conversation(8))
    visit(page, "/threads/t1?tab=compactions")
    plan = page.get_by_role("region", name="Compaction preview")
    expect(plan).to_contain_text("Summarizes messages 1 to")
    page.get_by_role("button", name="Compact now").click()
    jobs = page.locator("#thread-jobs tbody tr")
    expect(jobs).to_contain_text("queued")
    run_compaction(Compaction.objects.get().public_id)
    expect(jobs).to_contain_text("done")
    expect(page.get_by_role("region", name="Text of the summary")).to_be_visible()
    expect(plan).not_to_contain_text("Summarizes messages 1 to")
    undo = page.get_by_role("link", name="Undo…")
    undo_compaction(actor=erin.actor, compaction_id=Compaction.objects.get().public_id)
    expect(jobs).to_contain_text("undone")
    expect(undo).to_have_count(0)
    expect(plan).to_contain_text("Summarizes messages 1 to")


def test_compaction__finished_before_its_page_arrives__is_shown_as_finished(
    page: Page, erin: Person
) -> None:
    make_thread(erin.actor, "t1")
    append(erin.actor, "t1", *conversation(8))
    visit(page, "/threads/t1?tab=compactions")
    unfinished = page.locator('[data-go="c"] .count')
    late: list[Request] = []

    def finish_first(route: Route) -> None:
        # Not a refresh of the jobs: the request that follows the write would abort it.
        if late or route.request.headers["hx-source"] != "body":
            route.continue_()
            return
        late.append(route.request)
        answer = route.fetch()
        expect(unfinished).to_have_text("1")
        run_compaction(Compaction.objects.get().public_id)
        expect(unfinished).to_be_empty()  # the change has arrived, the page has not
        route.fulfill(response=answer, body=answer.text() + "<!-- late -->")

    page.route("**/threads/t1?tab=compactions", finish_first)
    page.evaluate(
        """() => document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
            if (ctx.text?.includes("<!-- late -->")) window.late = true;
        })"""
    )
    page.get_by_role("button", name="Compact now").click()
    page.wait_for_function("() => window.late")
    expect(page.locator("#thread-jobs tbody tr")).to_contain_text("done")


def test_own_write__slow__is_not_announced_to_its_author(page: Page, erin: Person) -> None:
    make_thread(erin.actor, "t1")
    enqueue_dispatch(actor=erin.actor, thread_id="t1", payload=raw({}))
    page.clock.install()
    visit(page, "/mailbox")
    waiting = page.locator('[data-go="m"] .count')
    expect(waiting).to_have_text("1")

    news: list[bool] = []

    def answer_late(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        page.clock.fast_forward(10_000)
        answer = route.fetch(max_redirects=0)
        expect(waiting).to_be_empty()  # the change has arrived, the response has not
        news.append(page.locator("#updates").is_visible())
        route.fulfill(response=answer)

    page.route("**/mailbox/**", answer_late)
    page.get_by_role("link", name="Cancel …").click()
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("#mailbox tbody")).to_contain_text("cancelled")
    expect(page.locator("#updates")).to_be_hidden()
    assert news == [False]


@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_script__reload_link__works(erin: Person, page: Page) -> None:
    page.goto("/changes?namespace=team")
    expect(page.locator("#live")).to_be_hidden()
    put(erin.actor, "team", "unseen", 1)
    page.get_by_role("link", name="Reload").click()
    expect(page).to_have_url(re.compile(r"/changes\?namespace=team$"))
    expect(page.locator("#change-table")).to_contain_text("team/unseen")


def test_audit__one_request__is_one_group_with_a_difference_in_place(
    page: Page, erin: Person
) -> None:
    batch = replace(erin.actor, request_id="one-request")
    put(batch, "team", "first", {"goal": "new"})
    put(batch, "team", "second", 2)
    visit(page, "/audit?actor=erin")
    card = page.locator("#audit-table details.request").filter(has_text="one-request")
    card.locator("summary").first.click()
    expect(card.locator(".acts > li")).to_have_count(2)
    opened = card.locator(".acts > li").filter(has_text="team/first")
    opened.get_by_text("What changed", exact=True).click()
    expect(opened.locator("ins").first).to_contain_text("new")
    put(erin.actor, "team", "third", 3)
    page.locator("#updates").click()
    expect(page.locator("#audit-table")).to_contain_text("team/third")
    expect(card.locator(".acts")).to_be_visible()
    card.get_by_role("link", name="one-request").click()
    expect(page).to_have_url(re.compile("request=one-request"))


def test_palette__action_by_keyboard__is_performed(page: Page, erin: Person) -> None:
    visit(page, "/changes")

    def do(words: str, chosen: str) -> None:
        expect(page.locator("#live")).to_be_visible()  # the scripts run
        press(page, "Control+k", "Control+a")
        page.keyboard.type(words)
        expect(page.locator("#palette-results [aria-selected=true]")).to_contain_text(chosen)
        press(page, "Enter")

    do("dark", "Theme: dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("#palette")).to_be_hidden()
    do("pause", "Pause or resume live updates")
    expect(page.locator("#live")).to_have_text("paused")
    do("shortcuts", "Keyboard shortcuts")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    press(page, "Escape")
    do("new entry", "New entry")
    expect(page).to_have_url(re.compile("/entries/new"))
    do("team/fi", "team/first")
    expect(page.get_by_role("heading", name="first")).to_be_visible()
    do("sign", "Sign out")
    expect(page).to_have_url(re.compile("/login"))


def test_csv__downloaded__contains_the_filtered_list(page: Page, erin: Person) -> None:
    put(erin.actor, "team", "=cmd()", 1)
    visit(page, "/changes?namespace=team&kind=entry")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "changes.csv"
    with open(download.value.path(), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows] == ["'=cmd()", "first"]
