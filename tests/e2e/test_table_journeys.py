"""The state browser as a table, in a real browser: keys, selection, columns, the pane."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Request, Route, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import Dispatch, Entry
from state_admin.services import search
from state_admin.services.dispatches import claim_dispatches
from state_admin.services.entry_views import read_entry
from state_admin.services.runs import cancel_run
from state_admin.templatetags.ui import clock
from state_admin.web import entry_list, paging
from tests.builders import Person, make_namespace, make_run, make_thread, put
from tests.services.test_dead_letters import make_dead_letter
from tests.services.test_dispatches import enqueue

from .conftest import Errors, press, take_held

SCHEMA = {"properties": {"goal": {"type": "string"}, "price": {"type": "number"}}}
# The width of a window of 1280 px, less the scrollbars of the page and of a list.
LAPTOP = 1280 - 15 - 11


@pytest.fixture(autouse=True)
def plans(server: LiveServer, alice: Person) -> None:
    make_namespace(alice.actor, "plans", schema=SCHEMA, default={})
    for number in range(1, 6):
        put(alice.actor, "plans", f"k{number}", {"goal": f"goal {number}", "price": number})


def test_selection__keys_and_ranges__show_the_bulk_bar(page: Page) -> None:
    page.goto("/state?namespace=plans")
    bar = page.get_by_role("toolbar", name="Actions on selected entries")
    press(page, "j", "j", "x")
    expect(page.get_by_label("Select k2")).to_be_checked()
    expect(bar).to_contain_text("1 selected")
    page.get_by_label("Select k4").click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 selected")
    press(page, "Escape")
    expect(bar).to_be_hidden()
    expect(page.locator("tbody :checked")).to_have_count(0)
    press(page, "g", "x")
    expect(page).to_have_url(re.compile("/access$"))


def test_search__no_match_yet__continues_a_few_times_and_then_waits_for_a_person(
    page: Page, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6, 10):
        put(alice.actor, "plans", f"k{number}", {})
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(search, "MOST_OPENED", 1)
    monkeypatch.setattr(paging, "MOST_CONTINUED", 2)
    created = dict(Entry.objects.values_list("key", "created_at"))
    page.goto("/state")
    page.get_by_role("searchbox", name="Search keys and values").press_sequentially("*k1")
    progress = page.locator("#entry-progress").get_by_role("status")
    expect(progress).to_have_text(re.compile(r"^No match yet\. .* Searching older entries…$"))
    for locator in (progress, page.locator(".keytree")):
        locator.evaluate("each => each.isSame = true")
    stopped = f"No match yet. Searched back to entries created at {clock(created['k4'])}."
    expect(progress).to_have_text(stopped)
    expect(page).to_have_url(re.compile(r"/state\?text=%2Ak1&after=\d+$"))
    assert all(
        locator.evaluate("each => each.isSame") for locator in (progress, page.locator(".keytree"))
    )
    page.get_by_role("link", name="Search older entries").press("Enter")
    expect(page.locator("tbody a[data-row]")).to_have_text("plans/k1")
    expect(page).to_have_url(re.compile(r"/state\?text=%2Ak1&after=\d+$"))


def test_key__in_a_namespace_with_a_long_name__is_not_cut(page: Page, alice: Person) -> None:
    name = "plans_of_all_the_departments_that_take_part_in_the_pilot"
    make_namespace(alice.actor, name, default={})
    put(alice.actor, name, "march", 1)
    page.set_viewport_size({"width": LAPTOP, "height": 800})
    page.goto("/state")
    link = page.get_by_role("link", name="march")
    expect(link).to_have_attribute("title", f"{name}/march")
    cell = page.get_by_role("cell").filter(has=link)
    assert cell.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_columns__menu__chooses_and_orders_them(page: Page) -> None:
    page.goto("/state?namespace=plans")
    page.get_by_role("button", name="Columns").click()
    menu = page.locator("#columns-menu")
    menu.get_by_role("checkbox", name="Changed").uncheck()
    menu.get_by_role("checkbox", name="Version").check()
    menu.get_by_role("button", name="Move price to the left").press("Enter")
    titles = ["Key", "price", "goal", "Version"]
    expect(page.get_by_role("columnheader").filter(has_text=re.compile("."))).to_have_text(titles)
    expect(menu).to_be_visible()
    expect(page).to_have_url(re.compile("columns=%2Fprice%2C%2Fgoal%2Cversion$"))
    press(page, "Escape")
    expect(menu).to_be_hidden()


def test_columns__of_any_list__are_chosen_with_the_keyboard(page: Page) -> None:
    page.goto("/namespaces?sort=-name")
    button = page.get_by_role("button", name="Columns")
    button.focus()
    press(page, "Enter", "Tab", "Space")
    state = page.locator("#columns-menu").get_by_role("checkbox", name="State")
    expect(state).not_to_be_checked()
    expect(state).to_be_focused()
    expect(page.get_by_role("columnheader", name="State")).to_have_count(0)
    press(page, "Escape")
    expect(button).to_be_focused()
    page.get_by_role("searchbox", name="Name begins with").fill("pla")
    expect(page).to_have_url(
        re.compile(r"/namespaces\?prefix=pla&sort=-name&columns=entries%2Cbytes")
    )
    expect(page.get_by_role("columnheader", name="State")).to_have_count(0)


def test_pane__arrow_keys_and_escape__show_and_close_the_entry(page: Page) -> None:
    page.goto("/state?namespace=plans")
    pane = page.get_by_role("region", name="Entry")
    page.get_by_role("link", name="k2").click()
    expect(pane).to_contain_text("goal 2")
    expect(page).to_have_url(re.compile("open=plans%2Fk2$"))
    press(page, "ArrowDown")
    expect(pane).to_contain_text("goal 3")
    press(page, "k", "k")
    expect(pane).to_contain_text("goal 1")
    page.reload()
    expect(pane).to_contain_text("goal 1")
    press(page, "Escape")
    expect(pane).to_be_hidden()
    expect(page.get_by_role("link", name="k1")).to_be_focused()
    press(page, "Space")
    expect(pane).to_contain_text("goal 1")
    press(page, "Enter")
    expect(page).to_have_url(re.compile("/state/plans/k1$"))


def test_pane__back_and_forward__close_and_open_it(page: Page) -> None:
    page.goto("/namespaces")
    page.goto("/state?namespace=plans")
    pane = page.get_by_role("region", name="Entry")
    page.get_by_role("link", name="k2").click()
    expect(pane).to_contain_text("goal 2")
    press(page, "ArrowDown")
    expect(pane).to_contain_text("goal 3")
    lists: list[Request] = []
    page.on("request", lambda request: "/state?" in request.url and lists.append(request))
    page.go_back()
    expect(pane).to_be_hidden()
    expect(page).to_have_url(re.compile("namespace=plans$"))
    expect(page.get_by_role("link", name="k3")).to_be_focused()
    page.go_forward()
    expect(pane).to_contain_text("goal 3")
    press(page, "Escape")
    expect(pane).to_be_hidden()
    expect(page).to_have_url(re.compile("namespace=plans$"))
    assert lists == []
    page.go_back()
    expect(page).to_have_url(re.compile("/namespaces$"))


def test_pane__back_while_it_loads__stays_closed(page: Page) -> None:
    page.goto("/state?namespace=plans")
    held: list[Route] = []
    page.route("**/state/plans/k2*", lambda route: held.append(route))
    row = page.get_by_role("row", name="k2")
    with page.expect_request("**/state/plans/k2*"):
        row.get_by_role("link", name="k2").click()
    expect(row).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(row).not_to_have_attribute("aria-current", "true")
    for route in held:
        route.continue_()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("region", name="Entry")).to_be_hidden()
    expect(page.locator("[data-toast]")).to_have_count(0)


def test_state_browser__laptop__fits_without_scrolling_sideways(page: Page, alice: Person) -> None:
    schema = {"properties": {"price_eur": {"type": "number"}, "airline": {"type": "string"}}}
    make_namespace(alice.actor, "fare_quotes", schema=schema, default={})
    for key in ("HAM-LIS", "agent_type::planner"):
        value = {"price_eur": 180.5, "airline": "Otter Sky"}
        put(alice.actor, "fare_quotes", key, value, tags=["june", "direct"])
    Entry.objects.filter(key="HAM-LIS").update(pinned=True)
    page.set_viewport_size({"width": LAPTOP, "height": 800})
    for url in ("/state", "/state?namespace=fare_quotes"):
        page.goto(url)
        frame = page.get_by_role("region", name="Entries")
        expect(frame.get_by_role("columnheader", name="Changed")).to_be_visible()
        assert frame.evaluate("each => each.scrollWidth <= each.clientWidth"), url


def test_state_browser__long_keys_and_many_tags__leave_room_for_the_value(
    page: Page, alice: Person
) -> None:
    tags = ["vip", "europe", "renewal-2026-q4"]
    key = "agent_type::planner-of-long-journeys-by-train"
    put(alice.actor, "plans", key, {"goal": "x" * 90}, tags=tags)
    Entry.objects.filter(key="k1").update(pinned=True)
    frame = page.get_by_role("region", name="Entries")
    for width in (LAPTOP, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/state")
        expect(frame.locator("td.tags[title]").first).to_have_attribute("title", ", ".join(tags))
        assert frame.evaluate("each => each.scrollWidth <= each.clientWidth"), width
        value = frame.locator("td.peek").first
        assert value.evaluate("each => each.clientWidth") > 100, width


def test_cell__narrow_column__is_as_wide_as_its_form(page: Page) -> None:
    page.goto("/state?namespace=plans")
    press(page, "j", "ArrowRight", "Enter")
    form = page.locator(".cell form")
    expect(form).to_be_visible()
    overflow = "each => each.getBoundingClientRect().right - each.closest('td').getBoundingClientRect().right"
    assert form.evaluate(overflow) <= 0


def test_pane__open__leaves_room_for_the_columns_that_it_does_not_show(
    page: Page, alice: Person
) -> None:
    value = {"goal": "reach the harbour", "price": 180.5, "airline": "Otter Sky"}
    put(
        alice.actor,
        "plans",
        "agent_type::planner-of-journeys",
        value,
        tags=["june", "direct"],
    )
    Entry.objects.filter(key="k1").update(pinned=True)
    frame = page.get_by_role("region", name="Entries")
    pane = page.get_by_role("region", name="Entry", exact=True)
    for width, url, titles in (
        (LAPTOP + 26, "/state?open=plans/k2", ["Key", "Value", "State"]),
        (LAPTOP + 26, "/state?namespace=plans&open=plans/k2", ["Key", "goal", "price", "State"]),
        (1440, "/state?namespace=plans&open=plans/k2", ["Key", "goal", "price", "State"]),
    ):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(url)
        expect(pane).to_contain_text("goal 2")
        shown = frame.get_by_role("columnheader").filter(has_text=re.compile("."))
        expect(shown).to_have_text(titles)
        assert frame.evaluate("each => each.scrollWidth <= each.clientWidth"), (width, url)
        tops = [
            page.locator(each).evaluate("each => each.getBoundingClientRect().top")
            for each in ("#columns-button", ".formats")
        ]
        assert abs(tops[0] - tops[1]) < 16, "the bar has one line"
    page.get_by_label("Select k4").check()
    expect(page.get_by_role("toolbar", name="Actions on selected entries")).to_be_in_viewport()
    press(page, "Escape", "Escape")
    expect(pane).to_be_hidden()
    expect(frame.get_by_role("columnheader", name="Tags")).to_be_visible()


def test_mailbox__errors_and_leases__fit_without_scrolling_sideways(
    page: Page, alice: Person
) -> None:
    make_thread(alice.actor, "t1", title="Is the plan for the journey to Lisbon any good?")
    make_dead_letter(alice)
    Dispatch.objects.update(last_error="the airline answered 503 Service Unavailable")
    enqueue(alice, agent_id="critic")
    claim_dispatches(actor=alice.actor, consumer="worker-2-of-the-travel-desk", lease_seconds=3600)
    enqueue(alice, agent_id="critic")
    frame = page.get_by_role("region", name="Dispatches")
    for width in (LAPTOP, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/mailbox")
        expect(page.get_by_text("lease ends")).to_be_visible()
        due = page.locator("td > div", has_text="due ")
        expect(due).to_be_visible()
        height = due.evaluate("each => each.clientHeight")
        assert height < 30, "one line"
        assert frame.evaluate("each => each.scrollWidth <= each.clientWidth"), width


def test_pane__narrow_window__opens_the_page(page: Page) -> None:
    page.set_viewport_size({"width": 900, "height": 700})
    page.goto("/state?namespace=plans")
    page.get_by_role("link", name="k2").click()
    expect(page).to_have_url(re.compile("/state/plans/k2$"))


def test_list__narrow_window__marks_invalid_entries(page: Page, alice: Person) -> None:
    put(alice.actor, "plans", "k6", {"price": 6})
    make_namespace(
        alice.actor, "plans", schema={**SCHEMA, "required": ["goal"]}, default={"goal": ""}
    )
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/state?namespace=plans")
    row = page.locator("tbody tr", has_text="k6")
    expect(row.get_by_text("invalid", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_cell__keyboard_only__is_edited_and_undone(
    page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected |= {409, 422}
    page.goto("/state?namespace=plans")
    press(page, "j", "ArrowRight", "ArrowRight", "Enter")
    field = page.get_by_role("textbox", name="Price")
    expect(field).to_be_focused()
    page.keyboard.type("cheap")
    press(page, "Enter")
    expect(page.get_by_role("alert").filter(has_text="Must be a number")).to_be_visible()
    expect(field).to_be_focused()
    page.keyboard.type("12")
    put(alice.actor, "plans", "k1", {"goal": "theirs", "price": 7})
    press(page, "Enter")
    expect(page.get_by_role("alert").filter(has_text="alice wrote version 2")).to_be_visible()
    page.get_by_role("button", name="Overwrite").click()
    cell = page.locator("tbody tr").first.locator(".cell").nth(1)
    expect(cell).to_have_text("12")
    expect(cell).to_be_focused()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 3 of k1")
    press(page, "ArrowDown", "e")
    expect(field).to_have_value("2")
    press(page, "Escape")
    expect(field).to_have_count(0)
    page.locator("[data-undo] button").click()
    expect(page.locator("tbody tr").first.locator(".cell").nth(1)).to_have_text("7")


def test_cell__of_the_entry_in_the_pane__is_edited_in_both(page: Page) -> None:
    page.goto("/state?namespace=plans&open=plans/k2")
    pane = page.get_by_role("region", name="Entry")
    expect(pane).to_contain_text("goal 2")
    page.get_by_role("cell", name="goal 2").first.dblclick()
    expect(page.get_by_role("textbox", name="Goal")).to_be_focused()
    page.keyboard.type("sail")
    press(page, "Enter")
    expect(page.get_by_role("cell", name="sail").first).to_be_focused()
    expect(pane).to_contain_text("sail")


def test_threads__keyboard_only__are_searched_filtered_ordered_and_opened(
    page: Page, alice: Person
) -> None:
    for name in ("trip-1", "trip-2", "trip-3"):
        make_thread(alice.actor, name, title=f"Trip {name[-1]}")
    make_run(alice.actor, "trip-3", "r3")
    page.goto("/threads")
    rows = page.locator("tbody [data-row]")
    press(page, "/")
    page.keyboard.type("trip")
    expect(page).to_have_url(re.compile(r"/threads\?text=trip$"))
    press(page, "Tab", "Enter")
    expect(page.get_by_role("combobox", name="Run")).to_be_focused()
    page.keyboard.type("idle")
    expect(rows).to_have_count(2)
    press(page, *["Tab"] * 4)
    page.keyboard.type("last hour")
    page.get_by_role("button", name="Apply filters").press("Enter")
    expect(page.locator("#filter-menu")).to_be_hidden()
    expect(page.get_by_role("button", name="Filter", exact=True)).to_be_focused()
    expect(page.locator(".chip")).to_have_text(["Run idle", "Created last hour"])
    expect(page).to_have_url(re.compile(r"/threads\?text=trip&status=idle&since=hour$"))
    page.get_by_role("searchbox").fill("")
    expect(page).to_have_url(re.compile(r"/threads\?status=idle&since=hour$"))
    page.get_by_role("link", name="Created", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("sort=oldest$"))
    expect(rows).to_have_text(["Trip 1", "Trip 2"])
    expect(page.get_by_role("link", name="Created", exact=True)).to_be_focused()
    press(page, "j", "ArrowDown", "Enter")
    expect(page.get_by_role("heading", name="Trip 2")).to_be_visible()


def test_runs__keyboard_only__are_selected_and_cancelled(page: Page, alice: Person) -> None:
    for number in range(1, 6):
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}")
    page.goto("/runs")
    expect(page.locator("#live")).to_have_text("live")
    bar = page.get_by_role("toolbar", name="Actions on selected runs")
    press(page, "j", "x", "j", "j", "j", "Shift+X")
    expect(bar).to_contain_text("4 selected")
    cancel_run(actor=alice.actor, run_id="r5")
    press(page, "b", "Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 3 runs?")
    expect(dialog).to_contain_text("Of the 4 selected runs, 1 is skipped")
    page.keyboard.type("not needed")
    press(page, "Enter")
    expect(page.locator("[data-toast]")).to_contain_text("Cancelled 3 runs")
    expect(page.get_by_label("Select r1")).to_be_visible()
    expect(page.locator("tbody input")).to_have_count(1)


def test_selection__live_update__stays(page: Page, alice: Person) -> None:
    for number in (1, 2):
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}")
    page.goto("/runs")
    expect(page.locator("#live")).to_have_text("live")
    page.get_by_label("Select r1").check()
    make_thread(alice.actor, "t3")
    make_run(alice.actor, "t3", "r3")
    page.locator("#updates").click()
    expect(page.get_by_label("Select r3")).not_to_be_checked()
    expect(page.get_by_label("Select r1")).to_be_checked()
    expect(page.locator("[data-count-selected]")).to_have_text("1 selected")


def test_lineage__keyboard_only__is_walked_to_another_thread(page: Page, alice: Person) -> None:
    make_thread(alice.actor, "root")
    for number in range(30):
        make_thread(alice.actor, f"child-{number:02}", parent_thread_id="root")
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto("/threads/root")
    page.get_by_role("link", name="Lineage", exact=True).press("Enter")
    expect(page).to_have_url(re.compile(r"/threads/root\?tab=lineage$"))
    graph = page.get_by_role("region", name="Lineage of the thread")
    expect(graph.get_by_role("link", name="root, idle")).to_have_attribute("aria-current", "true")
    press(page, *["j"] * 25)
    there = graph.get_by_role("link", name="child-23, idle · child, from root")
    expect(there).to_be_focused()
    expect(there).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    press(page, "Enter")
    expect(page.get_by_role("heading", name="child-23")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/threads/child-23\?tab=lineage$"))


def test_lineage__new_child__is_drawn_on_request(page: Page, alice: Person) -> None:
    make_thread(alice.actor, "root")
    make_thread(alice.actor, "first", parent_thread_id="root")
    page.goto("/threads/root?tab=lineage")
    expect(page.locator("#live")).to_have_text("live")
    make_thread(alice.actor, "second", parent_thread_id="root")
    page.locator("#updates").click()
    expect(page.locator("#lineage").get_by_role("link")).to_have_count(3)
    expect(page.locator("#lineage #lineage")).to_have_count(0)


def test_history__keyboard_only__is_compared_side_by_side_and_restored(page: Page) -> None:
    page.goto("/state/plans/k2")
    page.locator("[data-edit]").press("Enter")
    page.locator(".cm-content").fill('{"goal": "sail", "price": 2}')
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name="History", exact=True).press("Enter")
    expect(page.get_by_role("columnheader", name="Version")).to_be_visible()
    press(page, "j", "Enter")
    expect(page).to_have_url(re.compile(r"tab=history&diff=1\.\.2$"))
    expect(page.locator("#changes")).to_contain_text("/goal")
    page.get_by_role("link", name="Side by side").press("Enter")
    expect(page.locator("#changes del")).to_have_text('"goal": "goal 2",')
    expect(page.locator("#changes ins")).to_have_text('"goal": "sail",')
    page.reload()
    expect(page.locator("#changes ins")).to_have_text('"goal": "sail",')
    expect(page.locator("#live")).to_have_text("live")
    press(page, "j", "j", "x")
    expect(page.get_by_role("link", name="Restore version 1…")).to_be_focused()
    press(page, "Enter")
    page.get_by_role("dialog").get_by_role("button", name="Restore").press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("estored")
    expect(page.locator("main")).to_contain_text("goal 2")


def test_cell__saved__is_shown_at_once_and_reverted_without_a_response(
    page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected.add(502)
    held: list[Route] = []
    page.route(
        "**/entry/cell/**",
        lambda route: held.append(route) if route.request.method == "POST" else route.continue_(),
    )
    page.goto("/state?namespace=plans")
    cell = page.locator("tbody tr").first.locator(".cell").first
    cell.dblclick()
    field = page.get_by_role("textbox", name="Goal")
    expect(field).to_be_focused()
    page.keyboard.type("sail")
    press(page, "Enter")
    expect(field).to_be_hidden()
    expect(cell.locator(".saving")).to_have_text("sail")
    expect(cell).to_be_focused()
    assert (
        json.loads(read_entry(actor=alice.actor, namespace="plans", key="k1").value)["goal"]
        == "goal 1"
    )
    take_held(page, held).fulfill(status=502, body="<h1>Bad Gateway</h1>")
    expect(page.locator("[data-toast]")).to_contain_text("The server is not available (502)")
    expect(field).to_be_focused()
    expect(field).to_have_value("sail")
    press(page, "Enter")
    expect(cell.locator(".saving")).to_have_text("sail")
    take_held(page, held).continue_()
    expect(page.locator("[data-toast]").last).to_contain_text("Saved version 2 of k1")
    expect(cell).to_have_text("sail")


def test_state_browser__on_a_phone__begins_with_the_entries(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/state?namespace=plans")
    all_namespaces = page.locator(".keytree details a").first
    expect(page.get_by_role("link", name="k1")).to_be_in_viewport()
    expect(all_namespaces).to_be_hidden()
    page.locator(".keytree summary").first.click()
    all_namespaces.click()
    expect(page).to_have_url(re.compile("/state$"))
    expect(all_namespaces).to_be_hidden()


def test_restore__very_large_value__is_compared_while_the_dialog_is_open(
    page: Page, server: LiveServer, alice: Person
) -> None:
    make_namespace(alice.actor, "team")
    for goal in ("ship", "rest"):
        put(alice.actor, "team", "k", {"goal": goal, "text": "word " * 110_000})
    page.goto("/state/team/k?tab=history")
    page.get_by_role("link", name="v2", exact=True).click()
    expect(page.locator("#changes")).to_contain_text("/goal")
    page.get_by_role("link", name="Side by side").click()
    expect(page.locator("#changes .sides del")).to_contain_text("ship")
    page.get_by_role("link", name="Restore version 1…").click()
    dialog = page.get_by_role("dialog", name="Restore version 1?")
    dialog.get_by_label("Reason").fill("as before")
    expect(dialog.get_by_role("status")).to_contain_text("1 difference:")
    expect(dialog.get_by_role("status")).to_contain_text("/goal: rest → ship")
    expect(dialog.get_by_label("Reason")).to_have_value("as before")
    dialog.get_by_role("button", name="Restore version 1").click()
    expect(page.locator("[data-toast]")).to_contain_text("Restored version 1 as 3")
