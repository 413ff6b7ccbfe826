"""A live server, a Chromium, a signed-in user. Without a Chromium these tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_cache_control
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Response,
    Route,
    expect,
)
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.builders import Person
from tests.patience import PATIENCE
from tests.project.running import wait_for

# Playwright runs an event loop in this thread; the ORM calls of a test are not in it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

# Playwright counts milliseconds.
BROWSER_PATIENCE = PATIENCE * 1000
expect.set_options(timeout=BROWSER_PATIENCE)

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name != "e2e":
            continue
        item.add_marker(pytest.mark.e2e)
        if CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


# The name of the property of a test that counts the interactions of its user (test_budgets.py).
INTERACTIONS = "interactions"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The interactions of each journey. Properties of a test are complete when it is torn down."""
    reports = [
        report
        for outcome in ("", "error")
        for report in terminalreporter.getreports(outcome)
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
    ]
    counts = [
        (count, report.nodeid.rpartition("::")[2])
        for report in reports
        for name, count in report.user_properties
        if name == INTERACTIONS
    ]
    if counts:
        terminalreporter.section("interactions of the journeys")
    for count, journey in sorted(counts, key=lambda each: each[1]):
        terminalreporter.line(f"{count}  {journey}")


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}


@pytest.fixture(scope="session", autouse=True)
def cached_static_files() -> Iterator[None]:
    """A browser context requests each static file once, as in the deployment, where their names
    contain hashes. Without an expiry, a browser guesses one from the age of the file, and each page
    of a fresh checkout requests all its files again."""
    serve = StaticFilesHandler.serve

    def serve_cached(self: StaticFilesHandler, request: HttpRequest) -> HttpResponseBase:
        response = serve(self, request)
        patch_cache_control(response, max_age=3600)
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesHandler, "serve", serve_cached)
        yield


@pytest.fixture
def server(live_server: LiveServer, settings: Settings) -> LiveServer:
    settings.SITE_URL = live_server.url
    return live_server


# htmx reports what it cannot do as an event only, and the pages show a toast.
REPORT_HTMX_ERRORS = """document.addEventListener("htmx:error", ({ detail: { error } }) => {
    if (error?.message !== "Failed to fetch") console.error(`htmx: ${error}`)
})"""


# Responses with an error are found by their status. On a slow machine, a page may use its font later
# than the browser expects after a preload.
NO_ERRORS = ("Failed to load resource", "was preloaded using link preload but not used within")


class Errors:
    """The errors of all pages of a test. Statuses in `expected` are not errors."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.expected: set[int] = set()

    def watch(self, context: BrowserContext) -> None:
        context.add_init_script(REPORT_HTMX_ERRORS)
        context.on("console", self._console)
        context.on("weberror", lambda error: self.found.append(f"page error: {error.error}"))
        context.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        known = any(text in message.text for text in NO_ERRORS)
        if message.type in ("error", "warning") and not known:
            self.found.append(f"console {message.type}: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.found.append(f"{response.status} {response.url}")


@pytest.fixture(autouse=True)
def errors(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> Iterator[Errors]:
    """Fails the test if an error occurred in any page of any context. Each of them is patient."""
    errors = Errors()
    new_context = browser.new_context

    def new_watched_context(**options: Any) -> BrowserContext:
        context = new_context(**options)
        context.set_default_timeout(BROWSER_PATIENCE)
        errors.watch(context)
        return context

    monkeypatch.setattr(browser, "new_context", new_watched_context)
    yield errors
    assert errors.found == []


class Site(Protocol):
    """The server that a browser visits: the live server, or a separate process."""

    @property
    def url(self) -> str: ...


def open_context(browser: Browser, server: Site, person: Person, **options: Any) -> BrowserContext:
    """A browser in which `person` is signed in."""
    context = browser.new_context(base_url=server.url, **options)
    sign_in(context, server.url, person)
    return context


def sign_in(context: BrowserContext, url: str, person: Person) -> None:
    session = person.browser().cookies["commonhold_session"]
    context.add_cookies([{"name": "commonhold_session", "value": session.value, "url": url}])


def press(page: Page, *keys: str) -> None:
    """Press one key after the other, once the page has loaded and handles them."""
    for key in keys:
        page.wait_for_load_state()
        page.keyboard.press(key)


def click(page: Page, what: Locator) -> None:
    """Click something on a page after a navigation, once it has loaded and handles clicks."""
    page.wait_for_load_state()
    what.click()


def take_held(page: Page, held: list[Route]) -> Route:
    """The request that a route of the test holds. The page is busy a moment before."""

    def is_held() -> bool:
        page.wait_for_timeout(10)  # lets Playwright call the route
        return bool(held)

    wait_for(is_held, "the page has sent the request")
    return held.pop()


@pytest.fixture
def context(
    request: pytest.FixtureRequest, browser: Browser, server: Site, alice: Person
) -> Iterator[BrowserContext]:
    """A browser of alice with a window of 1280 by 800, unless pytest-playwright's marker
    browser_context_args changes it."""
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
    if marker := request.node.get_closest_marker("browser_context_args"):
        options |= marker.kwargs
    context = open_context(browser, server, alice, **options)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
