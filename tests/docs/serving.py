"""A server for the pages: everything that `make run` starts, with a data folder of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Playwright

from tests.docs.sessions import Server
from tests.e2e.conftest import BROWSER_PATIENCE, CHROMIUM
from tests.project.conftest import temporary_folder
from tests.project.running import Running, free_port

# Settings that pages require of their server.
SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": "true"}


@contextmanager
def serve(playwright: Playwright | None) -> Iterator[Server]:
    """`manage.py serve` until the end of the block, stopped as by Ctrl-C.

    Without `playwright` it opens no pages.
    """
    with temporary_folder() as folder:
        running = Running(folder, "manage.py", "serve", PORT=str(free_port()), **SETTINGS)
        try:
            running.wait_for_output("Ctrl-C stops it")
            (token,) = re.findall(r"API token +(ch_\S+)", running.output())
            (login,) = re.findall(r"Log in +(http\S+)", running.output())
            url = f"http://127.0.0.1:{running.port}"
            with ExitStack() as exits:
                browser = AdminBrowser(playwright, login, exits) if playwright else None
                yield Server(url, token, folder / "data", browser and browser.open_page)
            running.signal(signal.SIGINT)
            running.wait()
        finally:
            running.kill_all()


class AdminBrowser:
    """A Chromium in which the first user is signed in. It starts with the first page."""

    def __init__(self, playwright: Playwright, login: str, exits: ExitStack) -> None:
        self._playwright = playwright
        self._login = login
        self._exits = exits
        self._context: Any = None

    def open_page(self) -> Any:
        if self._context is None:
            browser = self._playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox"]
            )
            self._exits.callback(browser.close)
            self._context = browser.new_context()
            self._context.set_default_timeout(BROWSER_PATIENCE)
            page = self._context.new_page()
            page.goto(self._login)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("navigation").first.wait_for()
        page = self._context.new_page()
        page.goto(self._login.partition("/login/")[0])
        return page
