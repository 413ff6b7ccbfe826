"""Every page in a real browser: no error in the console, no finding of axe, nothing wider than the
window."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.urls import resolve
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.web.addresses import thread_url
from tests.builders import Person

from .conftest import Errors, sign_in
from .pages import ANONYMOUS_PAGES, EMPTY_PAGES, PAGES, fill

pytestmark = pytest.mark.timeout(1800)  # more than a hundred pages in each

WIDEST: Final[ViewportSize] = {"width": 1440, "height": 900}
WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
NARROW: Final[ViewportSize] = {"width": 360, "height": 740}
# The visible part of a window of 1280 by 800 at a zoom of 200 %.
ZOOMED: Final[ViewportSize] = {"width": 640, "height": 400}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SET_THEME = "theme => { document.documentElement.dataset.theme = theme }"
# What a page loads later has arrived: until then, it is faded.
IS_COMPLETE = "() => !document.querySelector('.htmx-request, [aria-busy=true]')"
RUN_AXE = "options => axe.run(document, options)"

# Buttons that send no form. What they open or change is gone with the page.
CLICK_BUTTONS = """() => {
    for (const button of document.querySelectorAll("button[type=button]")) button.click();
}"""

# The forms of a page and the links to forms in dialogs: their selectors, and the paths they send to.
LIST_FORMS = """(root) => [...root.querySelectorAll("main form, main a[hx-target='#dialog']")]
    .map((each, index) => { each.id ||= `form-${index}`; return each })
    .filter((each) => !each.matches("[data-download]"))
    .map((each) => [each.id, new URL(each.getAttribute("action") ?? each.href, location).pathname])"""
# Those of a page without opening it, which takes several times as long.
FETCH_FORMS = f"""async (path) => {{
    const text = await (await fetch(path)).text();
    return ({LIST_FORMS})(new DOMParser().parseFromString(text, "text/html"));
}}"""
# Marks the document as busy until all requests of htmx that begin now have ended; requests from before may
# still be running. A new document is not busy.
SUBMIT = """form => {
    const pending = (window.pending = new Set([form]));
    document.addEventListener("htmx:before:request", ({ detail }) => pending.add(detail.ctx));
    document.addEventListener("htmx:finally:request", ({ detail }) => {
        if (pending.delete(detail.ctx)) setTimeout(() => pending.size === 1 && pending.clear());
    });
    for (const field of form.querySelectorAll("input:required:is([type=text], [type=number])")) field.value ||= "1";
    form.noValidate = true;
    form.requestSubmit(form.querySelector("button:not([type=button])"));
}"""


class Look(NamedTuple):
    """How a page is shown. `rules`: the rules of axe to check, None for all. Only colours depend on
    the theme, and only the width on the zoom."""

    name: str
    viewport: ViewportSize
    theme: str
    rules: tuple[str, ...] | None = None


ALL_LOOKS: Final = (
    Look("widest", WIDEST, "light"),
    Look("widest and dark", WIDEST, "dark", ("color-contrast",)),
    Look("wide", WIDE, "light"),
    Look("wide and dark", WIDE, "dark", ("color-contrast",)),
    Look("zoomed", ZOOMED, "light", ()),
    Look("narrow and dark", NARROW, "dark", ("color-contrast",)),
    Look("narrow", NARROW, "light"),
)
# Axe takes most of the time. Here, it checks one look of each page, and pages take turns, so that what all
# of them show is checked in every look. `make exhaustive` checks ALL_LOOKS of each page.
FEW_LOOKS: Final = (
    (Look("wide", WIDE, "light"), Look("narrow", NARROW, "light", ())),
    (Look("narrow and dark", NARROW, "dark"), Look("zoomed", ZOOMED, "dark", ())),
    (Look("widest and dark", WIDEST, "dark"), Look("narrow", NARROW, "dark", ())),
    (Look("narrow", NARROW, "light"), Look("zoomed", ZOOMED, "light", ())),
)


def sweep(
    context: BrowserContext,
    errors: Errors,
    paths: Sequence[str],
    looks_in_turn: Sequence[Sequence[Look]] = FEW_LOOKS,
) -> list[str]:
    """The errors of the pages, one line each. Each page is loaded once."""
    found = []
    page = context.new_page()
    for path, looks in zip(paths, itertools.cycle(looks_in_turn), strict=False):
        page.set_viewport_size(looks[0].viewport)
        response = page.goto(path)
        assert response is not None
        if response.status != 200:
            found.append(f"{path}: {response.status}")
        page.wait_for_function(IS_COMPLETE)
        page.evaluate(AXE_SCRIPT)
        for look in looks:
            found += [f"{path}, {look.name}: {wrong}" for wrong in inspect(page, look)]
        page.evaluate(CLICK_BUTTONS)
        page.wait_for_function("() => true")  # errors until now have arrived
        # As late as possible, so that errors of scripts after loading are assigned to their own
        # page.
        found += [f"{path}: {error}" for error in errors.found]
        errors.found.clear()
    page.close()
    return found


def inspect(page: Page, look: Look) -> list[str]:
    page.set_viewport_size(look.viewport)
    page.evaluate(SET_THEME, look.theme)
    found = []
    if (wider := page.evaluate(OVERFLOW)) > 0:
        found.append(f"{wider}px wider than the window")
    if look.rules == ():
        return found
    # The only rule of WCAG 2.2 AA, which axe does not check by default.
    options: dict[str, Any] = {
        "resultTypes": ["violations"],
        "rules": {"target-size": {"enabled": True}},
    }
    if look.rules is not None:
        options["runOnly"] = list(look.rules)
    violations = page.evaluate(RUN_AXE, options)["violations"]
    return found + [f"axe {each['id']} at {each['nodes'][0]['html'][:120]}" for each in violations]


def submit_forms(
    context: BrowserContext, alice: Person, errors: Errors, paths: Sequence[str]
) -> list[str]:
    """Submit each form of the pages and of their dialogs as it is. Returns the errors, one line
    each. A page of a resource that an earlier form deleted is skipped."""
    found = []
    done: set[tuple[str, str]] = set()
    page = context.new_page()
    page.goto(paths[0])
    for path in paths:
        view = resolve(urlsplit(path).path).view_name
        fetched = {resolve(action).view_name for _, action in page.evaluate(FETCH_FORMS, path)}
        if done.issuperset((view, each) for each in fetched):
            continue
        page.goto(path)
        if urlsplit(page.url).path == "/login":  # a form has ended the session
            sign_in(context, page.url, alice)
            page.goto(path)
        is_fresh = True
        for element, action in page.evaluate(f"() => ({LIST_FORMS})(document)"):
            form = (view, resolve(action).view_name)
            if form in done:
                continue
            done.add(form)
            if not is_fresh:
                page.goto(path)
                page.evaluate(f"() => ({LIST_FORMS})(document)")
            is_fresh = False
            opener = page.locator(f"[id='{element}']")
            if opener.count() == 0:
                continue
            if opener.evaluate("each => each.matches('a')"):
                opener.evaluate("each => each.click()")
                opener = page.locator("#dialog form")
                opener.wait_for()
            opener.evaluate(SUBMIT)
            page.wait_for_function("() => !window.pending?.size")
            page.wait_for_load_state()
            page.wait_for_function("() => true")  # errors until now have arrived
            found += [f"{form} on {path}: {error}" for error in errors.found]
            errors.found.clear()
    page.close()
    return found


@pytest.mark.parametrize("part", [0, 1], ids=["even", "odd"])  # one for each worker
@pytest.mark.browser_context_args(reduced_motion="reduce")
def test_pages__with_data__have_no_errors(
    part: int, alice: Person, errors: Errors, context: BrowserContext
) -> None:
    fill(alice)
    assert sweep(context, errors, PAGES[part::2]) == []


@pytest.mark.exhaustive
@pytest.mark.browser_context_args(reduced_motion="reduce")
def test_pages__with_data_in_all_looks__have_no_errors(
    alice: Person, errors: Errors, context: BrowserContext
) -> None:
    fill(alice)
    assert sweep(context, errors, PAGES, [ALL_LOOKS]) == []


@pytest.mark.browser_context_args(viewport=NARROW)
def test_pages__of_a_narrow_window__align_their_columns(alice: Person, page: Page) -> None:
    fill(alice)

    def edges(selector: str, edge: str = "left") -> set[int]:
        edge_of = f"each => Math.round(each.getBoundingClientRect().{edge})"
        return set(page.locator(selector).evaluate_all(f"all => all.map({edge_of})"))

    page.goto("/")
    assert len(edges(".stats strong")) == 1
    # The text of a status is on the line of the words beside it.
    baseline = """each => {
        const mark = document.createElement("img"); // its bottom is on the baseline of the line
        const text = document.createElement("span");
        text.append(each.lastChild, mark);
        each.append(text);
        return Math.round(mark.getBoundingClientRect().bottom);
    }"""
    label, count = page.locator(".strip a").first.locator(".pill, strong").all()[:2]
    assert label.evaluate(baseline) == count.evaluate(baseline)
    page.goto("/mailbox")
    assert len(edges(".table-bar dt")) == 3
    assert len(edges("tbody details")) == 1
    assert len(edges("tbody td > .btn, tbody td > form > .btn", "right")) == 1
    for path in ("/runs/r1", thread_url("t1")):
        page.goto(path)
        assert len(edges(".facts > div")) == 2
    page.goto("/system")
    expect(page.locator("#live")).to_have_text("live, every 10 s")
    clipped = "each => each.scrollWidth - each.clientWidth"
    assert page.locator(".search span").first.evaluate(clipped) == 0


@pytest.mark.browser_context_args(reduced_motion="reduce")
def test_pages__without_data__have_no_errors(errors: Errors, context: BrowserContext) -> None:
    assert sweep(context, errors, EMPTY_PAGES, [ALL_LOOKS[:1]]) == []


def test_pages__anonymous__have_no_errors(
    browser: Browser, server: LiveServer, errors: Errors
) -> None:
    context = browser.new_context(base_url=server.url, reduced_motion="reduce")
    assert sweep(context, errors, ANONYMOUS_PAGES, [ALL_LOOKS]) == []
    context.close()


@pytest.mark.browser_context_args(reduced_motion="reduce")
def test_forms__submitted__have_no_errors(
    alice: Person, errors: Errors, context: BrowserContext
) -> None:
    fill(alice)
    errors.expected |= set(range(400, 500))
    assert submit_forms(context, alice, errors, PAGES) == []
