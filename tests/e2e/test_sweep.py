"""Every page in a real browser: no error in the console, no finding of axe, nothing wider than the
window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize
from pytest_django.live_server_helper import LiveServer

from tests.builders import Person

from .conftest import Watched, open_context
from .pages import ANONYMOUS_PAGES, EMPTY_PAGES, PAGES, fill

pytestmark = pytest.mark.timeout(900)  # more than a hundred pages in each

WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
NARROW: Final[ViewportSize] = {"width": 360, "height": 740}
# The visible part of a window of 1280 by 800 at a zoom of 200 %.
ZOOMED: Final[ViewportSize] = {"width": 640, "height": 400}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SET_THEME = "theme => { document.documentElement.dataset.theme = theme }"
RUN_AXE = "options => axe.run(document, options)"


class Look(NamedTuple):
    """How a page is shown. `rules`: the rules of axe to check, None for all. Only colours depend on
    the theme, and only the width on the zoom."""

    name: str
    viewport: ViewportSize
    theme: str
    rules: tuple[str, ...] | None = None


LOOKS: Final = (
    Look("wide", WIDE, "light"),
    Look("wide and dark", WIDE, "dark", ("color-contrast",)),
    Look("zoomed", ZOOMED, "light", ()),
    Look("narrow and dark", NARROW, "dark", ("color-contrast",)),
    Look("narrow", NARROW, "light"),
)


def sweep(
    context: BrowserContext, paths: Sequence[str], looks: Sequence[Look] = LOOKS
) -> list[str]:
    """The errors of the pages, one line each. Each page is loaded once."""
    found = []
    watched = Watched(context.new_page())
    for path in paths:
        watched.page.set_viewport_size(looks[0].viewport)
        response = watched.page.goto(path)
        assert response is not None
        if response.status != 200:
            found.append(f"{path}: {response.status}")
        watched.page.evaluate(AXE_SCRIPT)
        for look in looks:
            found += [f"{path}, {look.name}: {wrong}" for wrong in inspect(watched.page, look)]
        # As late as possible, so that errors of scripts after loading are assigned to their own
        # page.
        found += [f"{path}: {error}" for error in watched.errors]
        watched.errors.clear()
    watched.page.close()
    return found + [f"at the end: {error}" for error in watched.errors]


def inspect(page: Page, look: Look) -> list[str]:
    page.set_viewport_size(look.viewport)
    page.evaluate(SET_THEME, look.theme)
    found = []
    if (wider := page.evaluate(OVERFLOW)) > 0:
        found.append(f"{wider}px wider than the window")
    if look.rules == ():
        return found
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if look.rules is not None:
        options["runOnly"] = list(look.rules)
    violations = page.evaluate(RUN_AXE, options)["violations"]
    return found + [f"axe {each['id']} at {each['nodes'][0]['html'][:120]}" for each in violations]


@pytest.mark.parametrize("part", [0, 1], ids=["even", "odd"])  # one for each worker
def test_pages__with_data__have_no_errors(
    part: int, browser: Browser, server: LiveServer, alice: Person
) -> None:
    fill(alice)
    context = open_context(browser, server, alice, reduced_motion="reduce")
    assert sweep(context, PAGES[part::2]) == []
    context.close()


def test_pages__without_data__have_no_errors(
    browser: Browser, server: LiveServer, alice: Person
) -> None:
    context = open_context(browser, server, alice)
    assert sweep(context, EMPTY_PAGES, LOOKS[:1]) == []
    context.close()


def test_pages__anonymous__have_no_errors(browser: Browser, server: LiveServer) -> None:
    context = browser.new_context(base_url=server.url)
    assert sweep(context, ANONYMOUS_PAGES) == []
    context.close()
