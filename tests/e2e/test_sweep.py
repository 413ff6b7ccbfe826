"""Every page in a real browser: no error in the console, nothing for axe, nothing too wide."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext
from pytest_django.live_server_helper import LiveServer

from tests.builders import Person

from .conftest import Watched, open_context
from .pages import ANONYMOUS_PAGES, EMPTY_PAGES, PAGES, fill

pytestmark = pytest.mark.timeout(900)  # more than a hundred pages in each

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# What a window of 1280 by 800 shows at a zoom of 200 %.
ZOOMED = {"width": 640, "height": 400}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def sweep(context: BrowserContext, paths: Sequence[str]) -> list[str]:
    """What is wrong on the pages, one line each."""
    axe, found = Axe(), []
    watched = Watched(context.new_page())
    for path in paths:
        response = watched.page.goto(path)
        assert response is not None
        if response.status != 200:
            found.append(f"{path}: {response.status}")
        if (wider := watched.page.evaluate(OVERFLOW)) > 0:
            found.append(f"{path}: {wider}px wider than the window")
        for violation in axe.run(watched.page).response["violations"]:
            where = violation["nodes"][0]["html"][:120]
            found.append(f"{path}: axe {violation['id']} at {where}")
        # As late as can be, so that what scripts do after loading counts for their own page.
        found += [f"{path}: {error}" for error in watched.errors]
        watched.errors.clear()
    watched.page.close()
    return found + [f"at the end: {error}" for error in watched.errors]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pages__full__are_clean(
    theme: str, viewport: dict[str, int], browser: Browser, server: LiveServer, alice: Person
) -> None:
    fill(alice)
    context = open_context(browser, server, alice, viewport=viewport)
    context.add_cookies([{"name": "commonhold_theme", "value": theme, "url": server.url}])
    assert sweep(context, PAGES) == []
    context.close()


def test_pages__at_200_percent__scroll_only_downwards(
    browser: Browser, server: LiveServer, alice: Person
) -> None:
    fill(alice)
    context = open_context(browser, server, alice, viewport=ZOOMED, device_scale_factor=2)
    page = context.new_page()
    wide = {}
    for path in (path for path in PAGES if "?" not in path):
        page.goto(path)
        wide[path] = page.evaluate(OVERFLOW)
    assert {path: wider for path, wider in wide.items() if wider > 0} == {}
    context.close()


def test_pages__empty__are_clean(browser: Browser, server: LiveServer, alice: Person) -> None:
    context = open_context(browser, server, alice, viewport=WIDE)
    assert sweep(context, EMPTY_PAGES) == []
    context.close()


def test_pages__anonymous__are_clean(browser: Browser, server: LiveServer) -> None:
    context = browser.new_context(base_url=server.url, viewport=NARROW)  # type: ignore[arg-type]
    assert sweep(context, ANONYMOUS_PAGES) == []
    context.close()
