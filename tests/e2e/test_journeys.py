"""Complete tasks of users in a real browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.domain.access import Role
from state_admin.services import search
from state_admin.services.entry_views import read_entry
from state_admin.services.logins import set_password
from state_admin.services.workspaces import add_member, ensure_workspace
from state_admin.web import entry_list
from tests.builders import Person, make_namespace, make_thread, put
from tests.web.stories import create_story

from .conftest import Errors, press, take_held
from .pages import BIG


@pytest.fixture
def team(server: LiveServer, alice: Person) -> None:
    make_namespace(
        alice.actor, "team", schema={"properties": {"goal": {"type": "string"}}}, default={}
    )
    put(alice.actor, "team", "thread::t1", {"goal": "ship", "steps": ["a"]}, tags=["vip"])
    put(alice.actor, "team", "thread::t2", {"goal": "rest"})


def value(alice: Person, key: str = "thread::t1") -> object:
    entry = read_entry(actor=alice.actor, namespace="team", key=key)
    return json.loads(entry.value) if entry.exists else None


@pytest.mark.usefixtures("team")
def test_journey__keyboard_only__find_edit_undo_decide(
    browser: Browser, server: LiveServer, alice: Person
) -> None:
    create_story(alice.actor)
    set_password(user=alice.user, password="correct horse battery")
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.goto("/")
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("alice")
    press(page, "Tab")
    page.keyboard.type("correct horse battery")
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    press(page, "Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("thread::t1")
    expect(page.locator("#palette-results [aria-selected=true]")).to_contain_text("thread::t1")
    press(page, "Enter")
    expect(page.get_by_role("heading", name="thread::t1")).to_be_visible()
    press(page, "e")
    expect(page.locator(".cm-content")).to_be_focused()
    press(page, "Control+a")
    page.keyboard.type('{"goal": "rest"}')
    press(page, "Control+Enter")
    toast = page.locator("[data-toast]")
    expect(toast).to_contain_text("Saved version 2")
    expect(page).to_have_url(re.compile("/state/team/thread"))
    assert value(alice) == {"goal": "rest"}
    press(page, "u")
    expect(page.locator("[data-toast]")).to_contain_text("Undone")
    assert value(alice) == {"goal": "ship", "steps": ["a"]}
    press(page, "g", "s")
    expect(page.get_by_role("heading", name="State browser")).to_be_visible()
    press(page, "j", "j")
    expect(page.get_by_role("link", name="thread::t2")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="thread::t2")).to_be_visible()
    press(page, "?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_be_visible()
    expect(keys.get_by_role("button", name="Close")).to_be_focused()
    press(page, "Escape")
    expect(keys).to_be_hidden()
    press(page, "g", "i")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    press(page, "j")
    ticket = page.locator("[data-ticket]")
    expect(ticket.locator("[data-row]")).to_be_focused()
    press(page, "a", "Enter")  # the browser marks the field that is not filled in
    expect(ticket.get_by_label("yes")).to_be_focused()
    press(page, "Space", "a", "Enter")
    expect(page.locator("[data-toast]").last).to_contain_text("Approved: issue_refund")
    expect(ticket).to_have_count(0)
    expect(page.locator("#main")).to_be_focused()  # in place of the ticket
    context.close()


@pytest.mark.usefixtures("team")
def test_focus__after_each_swap__is_kept(page: Page, alice: Person) -> None:
    for number in range(3, 6):
        put(alice.actor, "team", f"thread::t{number}", {"goal": "rest"})
    page.goto("/state?namespace=team")
    page.get_by_role("link", name="thread::t2").focus()
    press(page, "Tab")
    press(page, "Space")  # selects the row below
    expect(page.get_by_label("Select thread::t3")).to_be_focused()
    page.get_by_role("button", name="Delete…").press("Enter")
    dialog = page.get_by_role("dialog", name="Delete 1 entry?")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    press(page, "Escape")
    expect(page.get_by_role("button", name="Delete…")).to_be_focused()
    press(page, "Enter")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("link", name="thread::t3")).to_have_count(0)
    expect(page.locator("#main")).to_be_focused()
    press(page, "u")
    expect(page.get_by_role("link", name="thread::t3")).to_be_visible()


@pytest.mark.usefixtures("team")
def test_focus__on_a_swapped_tab__is_kept(page: Page) -> None:
    page.goto("/state/team/thread::t1")
    page.get_by_role("link", name="History", exact=True).press("Enter")
    expect(page.get_by_role("region", name="Versions")).to_be_visible()
    expect(page.get_by_role("link", name="History", exact=True)).to_be_focused()


@pytest.mark.usefixtures("team")
def test_focus__part_loads_later__first_tab_reaches_skip_to_content(page: Page) -> None:
    page.goto("/")
    expect(page.locator("div#overview-charts")).to_be_visible()
    press(page, "Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()


@pytest.mark.usefixtures("team")
def test_filter__left_with_escape__is_kept(page: Page) -> None:
    page.goto("/state?namespace=team")
    press(page, "/")
    page.keyboard.type("rest")
    expect(page.get_by_role("link", name="thread::t1")).to_have_count(0)
    press(page, "Escape")
    expect(page.locator("#text")).not_to_be_focused()
    expect(page.locator("#text")).to_have_value("rest")
    press(page, "j", "Enter")
    expect(page.get_by_role("heading", name="thread::t2")).to_be_visible()


@pytest.mark.usefixtures("team")
def test_offline__message__is_about_the_request_and_removed_by_the_next_one(
    page: Page, errors: Errors
) -> None:
    page.goto("/state/team/thread::t1")
    toast = page.locator("[data-toast]")
    history = page.get_by_role("link", name="History")
    page.route("**/state/team/**", lambda route: route.abort())
    history.click()
    expect(toast).to_contain_text(
        "The server did not respond. The page was not updated. Try again."
    )
    page.unroute("**/state/team/**")
    history.click()
    expect(page.get_by_label("Changes at a path")).to_be_visible()
    expect(toast).to_have_count(0)
    page.get_by_role("link", name="Delete…").click()
    page.route("**/entry/delete/**", lambda route: route.abort())
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(toast).to_contain_text("Check whether the change was saved, then try again.")
    assert all("Failed to fetch" in error for error in errors.found)
    errors.found.clear()


@pytest.mark.usefixtures("team")
def test_filter__error_page_of_a_proxy__replaces_nothing(page: Page, errors: Errors) -> None:
    errors.expected.add(502)
    page.goto("/state?namespace=team")
    page.route("**/state?*", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    press(page, "/")
    page.keyboard.type("rest")
    expect(page.locator("[data-toast]").last).to_contain_text("The server is not available (502)")
    expect(page.locator("main")).not_to_contain_text("Bad Gateway")
    expect(page.get_by_role("link", name="thread::t1")).to_be_visible()
    page.unroute("**/state?*")
    page.keyboard.type("0")
    expect(page.get_by_role("link", name="thread::t1")).to_have_count(0)


@pytest.mark.usefixtures("team")
def test_navigation__longest_counts__stay_within_their_items(page: Page) -> None:
    page.goto("/compactions")
    page.locator("[data-go] .count").evaluate_all(
        "counts => counts.forEach((each) => (each.textContent = '10,000+ failed'))"
    )
    wider = "menu => menu.scrollWidth - menu.clientWidth"
    assert page.get_by_role("navigation", name="Main").evaluate(wider) == 0
    overflows = "items => items.filter((each) => each.scrollWidth > each.clientWidth).length"
    assert page.locator("[data-go]").evaluate_all(overflows) == 0


@pytest.mark.usefixtures("team")
def test_shortcut_x__pressed__opens_the_actions_of_the_page(page: Page) -> None:
    page.goto("/state/team/thread::t1")
    press(page, "x")
    expect(page.get_by_role("link", name="Delete…")).to_be_focused()
    press(page, "x", "Enter")
    expect(page.get_by_role("dialog", name="Delete thread::t1?")).to_be_visible()


@pytest.mark.usefixtures("team")
def test_toast__delivered_by_two_responses__is_shown_once(page: Page) -> None:
    page.goto("/state/team/thread::t1")
    once = [{"id": "1", "text": "Run resumed", "kind": "done", "undo": None}]
    for said in (once, once, [once[0] | {"id": "2"}]):
        page.evaluate(
            "toasts => document.dispatchEvent(new CustomEvent('toast', {detail: {toasts}}))", said
        )
    expect(page.locator("[data-toast]")).to_have_count(2)


@pytest.mark.usefixtures("team")
def test_edit__invalid__keeps_the_text_and_marks_the_place(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(422)
    page.goto("/entry/edit/team/thread::t1")
    page.locator(".cm-content").fill('{\n  "goal": 7\n}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="does not satisfy")).to_contain_text("line 2")
    expect(page.locator("#value")).to_have_value('{\n  "goal": 7\n}')
    assert value(alice) == {"goal": "ship", "steps": ["a"]}


@pytest.mark.usefixtures("team")
def test_edit__concurrent_write__shows_the_merge_in_place(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    page.goto("/entry/edit/team/thread::t1")
    put(alice.actor, "team", "thread::t1", {"goal": "ship", "steps": ["a", "theirs"]})
    page.locator(".cm-content").fill('{"goal": "mine", "steps": ["a"]}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="changed while you were editing")).to_be_visible()
    expect(page.locator("main")).to_contain_text("No conflicts")
    page.get_by_role("button", name="Save merged").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 3")
    assert value(alice) == {"goal": "mine", "steps": ["a", "theirs"]}


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("address", ["/state/team/thread::t1", "/entry/edit/team/thread::t1"])
def test_entry__concurrent_write__shows_a_notice_without_moving_content(
    address: str, page: Page, alice: Person
) -> None:
    page.goto(address)
    put(alice.actor, "team", "thread::t1", {"goal": "theirs"})
    expect(page.locator("#newer")).to_contain_text("alice wrote version 2")
    expect(page.locator("#entry")).not_to_contain_text("theirs")


@pytest.mark.usefixtures("team")
def test_undo__entry_changed_since__refuses(page: Page, alice: Person) -> None:
    page.goto("/entry/edit/team/thread::t1")
    page.locator(".cm-content").fill('{"goal": "oops"}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    put(alice.actor, "team", "thread::t1", {"goal": "later"})
    page.locator("[data-undo] button").click()
    expect(page.locator("[data-toast]")).to_contain_text("Not undone")
    assert value(alice) == {"goal": "later"}


@pytest.mark.usefixtures("team")
def test_delete__confirmed__is_restored_by_undo(page: Page, alice: Person) -> None:
    page.goto("/state/team/thread::t1")
    page.get_by_role("link", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete thread::t1?")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    press(page, "Escape")
    expect(dialog).to_have_count(0)
    assert value(alice)
    page.get_by_role("link", name="Delete…").click()
    dialog.get_by_label("Reason").fill("not needed")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("#entry")).to_contain_text("was deleted or has expired")
    assert value(alice) is None
    page.locator("[data-undo] button").click()
    expect(page.locator("[data-toast]")).to_contain_text("Undone")
    assert value(alice) == {"goal": "ship", "steps": ["a"]}


@pytest.mark.usefixtures("team")
def test_list__delete_selected__is_confirmed_and_undone(page: Page, alice: Person) -> None:
    page.goto("/state?namespace=team")
    expect(page.get_by_role("button", name="Delete…")).to_be_hidden()
    page.get_by_label("Select all").check()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete 2 entries?")
    expect(dialog).to_contain_text("team/thread::t2")
    dialog.get_by_role("button", name="Delete 2 entries").click()
    expect(page.locator("#entry-browser")).to_contain_text("No entries")
    assert value(alice) is None
    page.locator("[data-undo] button").click()
    expect(page.locator("[data-row]")).to_have_count(2)


@pytest.mark.usefixtures("team")
def test_list__typing_a_filter__keeps_focus_and_updates_the_url(page: Page) -> None:
    page.goto("/state")
    press(page, "/")
    page.keyboard.type("rest")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/state\?text=rest$"))
    expect(page.locator("#text")).to_be_focused()
    page.locator(".keytree").get_by_role("link", name="team").click()
    expect(page).to_have_url(re.compile(r"/state\?namespace=team$"))
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("#text")).to_have_value("rest")


@pytest.mark.usefixtures("team")
def test_list__typed_on_before_the_response__keeps_the_text_and_searches_for_it(page: Page) -> None:
    page.clock.install()
    page.goto("/state")
    expect(page.locator("[data-row]")).to_have_count(2)
    field = page.locator("#text")
    typed: list[str] = []

    def type_on(route: Route) -> None:
        answer = route.fetch()
        if not typed:
            # No search for the next characters yet.
            page.clock.pause_at(page.evaluate("Date.now() / 1000 + 20"))
            page.keyboard.type("xst")
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("Backspace")
            typed.append(field.input_value())
        route.fulfill(response=answer)

    page.route("**/state?*text=*", type_on)
    press(page, "/")
    page.keyboard.insert_text("re")  # at once, so that there is no search for the first letter
    expect(page).to_have_url(re.compile(r"/state\?text=re$"))
    expect(field).to_have_value("rest")
    expect(field).to_be_focused()
    assert typed == ["rest"]
    page.clock.resume()
    expect(page).to_have_url(re.compile(r"/state\?text=rest$"))
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(field).to_be_focused()
    assert field.evaluate("field => field.selectionStart") == 2


@pytest.mark.usefixtures("team")
def test_list__back_while_typing__shows_the_search_of_that_page(page: Page) -> None:
    page.goto("/state")
    page.locator(".keytree").get_by_role("link", name="team").click()
    expect(page).to_have_url(re.compile(r"/state\?namespace=team$"))
    press(page, "/")
    page.keyboard.type("rest")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(2)
    expect(page.locator("#text")).to_have_value("")


@pytest.mark.usefixtures("team")
def test_list__part_of_a_word__is_found_inside_words_of_older_entries(
    page: Page, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(alice.actor, "team", f"thread::later{number}", {"goal": "wait"})
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(search, "MOST_OPENED", 1)
    page.goto("/state")
    press(page, "/")
    page.keyboard.type("hip ")
    page.get_by_role("link", name="Search inside words").click()
    expect(page).to_have_url(re.compile(r"/state\?text=%2Ahip"))
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("[data-row]")).to_contain_text("thread::t1")
    press(page, "/")
    page.keyboard.press("End")
    page.keyboard.type(" goa ")
    expect(page).to_have_url(re.compile(r"/state\?text=%2Ahip\+goa"))
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("#text")).to_have_value("*hip goa ")
    expect(page.locator("#text")).to_be_focused()


@pytest.mark.usefixtures("team")
def test_history__two_versions__compare_and_restore(page: Page, alice: Person) -> None:
    put(alice.actor, "team", "thread::t1", {"goal": "worse"})
    page.goto("/state/team/thread::t1")
    page.get_by_role("link", name="History", exact=True).click()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#changes")).to_contain_text("/steps")
    page.get_by_role("link", name="Value of version 1").click()
    expect(page.locator("#entry")).to_contain_text("This is version 1")
    page.get_by_role("link", name="Restore…").click()
    dialog = page.get_by_role("dialog", name="Restore version 1?")
    dialog.get_by_role("button", name="Restore version 1").click()
    expect(page.locator("[data-toast]")).to_contain_text("Restored version 1 as 3")
    assert value(alice) == {"goal": "ship", "steps": ["a"]}


@pytest.mark.usefixtures("team")
def test_tree__large__loads_nodes_on_demand(page: Page, alice: Person) -> None:
    put(alice.actor, "team", "big", BIG)
    page.goto("/state/team/big")
    expect(page.locator(".tree")).not_to_contain_text("199")
    page.locator(".tree summary").filter(has_text="items").last.click()
    expect(page.locator(".tree")).to_contain_text("199")
    page.get_by_role("button", name="200 more").click()
    expect(page.locator(".tree")).to_contain_text("399")


def test_theme__selected__is_kept(page: Page) -> None:
    page.goto("/namespaces")
    page.get_by_role("button", name="Account and appearance").click()
    for choice in ("Dark", "Compact"):
        with page.expect_response("**/preferences"):
            page.get_by_role("button", name=choice).click()
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    expect(root).to_have_attribute("data-density", "compact")


@pytest.mark.usefixtures("team")
def test_shortcuts__turned_off__ignore_single_keys_only(page: Page) -> None:
    page.goto("/namespaces")
    page.get_by_role("button", name="Account and appearance").click()
    shortcuts = page.get_by_role("group", name="Single-key shortcuts")
    with page.expect_response("**/preferences"):
        shortcuts.get_by_role("button", name="Off").click()
    page.goto("/state")
    for key in ("j", "x", "?"):
        page.keyboard.press(key)
    expect(page.locator("main [data-row]:focus")).to_have_count(0)
    expect(page.locator("main tbody input:checked")).to_have_count(0)
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()
    page.keyboard.type("Single-key shortcuts: on")
    page.get_by_role("option", name="Single-key shortcuts: on action").click()
    expect(page.locator("#palette :focus")).to_have_count(0)  # it leaves a moment after the click
    page.keyboard.press("j")
    expect(page.locator("main [data-row]:focus")).to_have_count(1)


@pytest.mark.usefixtures("team")
def test_code__copied__is_in_the_clipboard(page: Page) -> None:
    page.goto("/state/team/thread::t1?tab=code")
    page.get_by_role("button", name="Copy Read with curl").click()
    expect(page.locator("[data-toast]")).to_contain_text("Copied")
    assert "/api/v1/state/team/thread::t1" in page.evaluate("navigator.clipboard.readText()")


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize(
    ("path", "name", "copied"),
    [
        ("/namespaces/team", "Copy the schema", "{"),
        ("/threads/thread-1", "Copy the thread id", "thread-1"),
    ],
)
def test_button__clicked__copies(
    page: Page, alice: Person, path: str, name: str, copied: str
) -> None:
    make_thread(alice.actor, "thread-1")
    page.goto(path)
    page.get_by_role("button", name=name).click()
    expect(page.locator("[data-toast]")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith(copied)


@pytest.mark.usefixtures("team")
@pytest.mark.browser_context_args(viewport={"width": 360, "height": 740})
def test_narrow_window__menu__opens_and_navigates(page: Page) -> None:
    page.goto("/")
    navigation = page.get_by_role("navigation", name="Main")
    expect(navigation).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    navigation.get_by_role("link", name="Namespaces").click()
    expect(page.get_by_role("heading", name="Namespaces", exact=True)).to_be_visible()


@pytest.mark.usefixtures("team")
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_javascript__read_filter_edit_delete__work(alice: Person, page: Page) -> None:
    page.goto("/state")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Key begins with").fill("thread::t1")
    page.get_by_role("button", name="Apply filters").click()
    expect(page).to_have_url(re.compile(r"/state\?prefix=thread%3A%3At1$"))
    page.get_by_role("link", name="team/thread::t1").click()
    page.get_by_role("link", name="Edit").click()
    page.fill("#value", '{"goal": "plain"}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == {"goal": "plain"}
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-toast]")).to_contain_text("Undone")
    assert value(alice) == {"goal": "ship", "steps": ["a"]}
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#entry")).to_contain_text("was deleted or has expired")
    assert value(alice) is None


@pytest.mark.usefixtures("team")
def test_two_tabs__workspace_switched_in_one__other_one_changes_nothing(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    second, _ = ensure_workspace("second")
    add_member(workspace=second, user=alice.user, role=Role.ADMIN)
    other = replace(alice.actor, workspace_id=second.pk, workspace=second.slug)
    make_namespace(other, "team")
    put(other, "team", "thread::t1", {"goal": "other"})
    page.goto("/entry/edit/team/thread::t1")
    page.locator(".cm-content").fill('{"goal": "mine"}')
    dialog = page.context.new_page()
    dialog.goto("/state/team/thread::t1")
    dialog.get_by_role("link", name="Delete…").click()
    expect(dialog.get_by_role("dialog")).to_be_visible()
    tab = page.context.new_page()
    tab.goto("/workspaces")
    tab.get_by_role("button", name="Switch").click()
    expect(tab).to_have_title(re.compile("second"))
    refusal = "This tab shows the workspace acme, but you have switched to second"
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#problem")).to_contain_text(refusal)
    expect(page.locator(".cm-content")).to_have_text('{"goal": "mine"}')
    dialog.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(dialog.locator("#problem")).to_contain_text(refusal)
    assert value(alice) == {"goal": "ship", "steps": ["a"]}
    stored = read_entry(actor=other, namespace="team", key="thread::t1")
    assert json.loads(stored.value) == {"goal": "other"}


@pytest.mark.usefixtures("team")
def test_slow_answer__marks_the_part_that_waits(page: Page, errors: Errors) -> None:
    errors.expected.add(502)
    page.emulate_media(reduced_motion="reduce")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/state/team/**tab=history*", hold)
    page.route("**/entry/delete/**", hold)
    page.goto("/state/team/thread::t1")
    entry = page.locator("#entry")
    page.get_by_role("link", name="History").press("Enter")
    expect(entry).to_have_attribute("aria-busy", "true")
    bar = "getComputedStyle(document.body, '::before')"
    assert page.evaluate(f"{bar}.content") != "none"
    assert page.evaluate(f"{bar}.animationName") == "none"
    take_held(page, held).continue_()
    expect(page.get_by_label("Changes at a path")).to_be_visible()
    expect(page.locator("[aria-busy]")).to_have_count(0)
    delete = page.get_by_role("link", name="Delete…")
    delete.click()
    expect(delete).to_have_attribute("aria-busy", "true")
    take_held(page, held).fulfill(status=502, body="<h1>Bad Gateway</h1>")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.locator("[data-toast]")).to_contain_text("The server is not available (502)")


def test_preference__not_saved__is_reverted(page: Page) -> None:
    page.goto("/")
    page.route("**/preferences", lambda route: route.abort())
    page.get_by_role("button", name="Account and appearance").click()
    density = page.get_by_role("button", name="Compact")
    density.click()
    expect(page.locator("[data-toast]")).to_contain_text("The preference was not saved")
    expect(density).to_have_attribute("aria-pressed", "false")
    expect(page.locator("html")).to_have_attribute("data-density", "comfortable")
    page.unroute("**/preferences")
    with page.expect_response("**/preferences"):
        density.click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-density", "compact")
