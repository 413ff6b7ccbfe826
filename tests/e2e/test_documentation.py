"""The documentation, built in strict mode and opened in a real browser under the
Content-Security-Policy of the pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from project.env import BASE_DIR


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation")
    options = ["--quiet", "--fail-on-warning", "--doctree-dir", str(folder / "doctrees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(BASE_DIR / "docs"), str(folder / "site")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "site"


def test_documentation__built__has_search_and_themes_without_other_servers(
    browser: Browser, server: LiveServer, settings: Settings, site: Path
) -> None:
    settings.DOCUMENTATION_ROOT = site
    context = browser.new_context(base_url=server.url, color_scheme="light")
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto("/docs/")
    expect(page.get_by_role("heading", name="Commonhold", level=1)).to_be_visible()

    page.get_by_placeholder("Search").first.fill("fencing token")
    page.get_by_placeholder("Search").first.press("Enter")
    page.get_by_role("link", name="People and workers").last.click()
    expect(page.get_by_role("heading", name="Fencing token")).to_be_visible()

    body = page.locator("body")
    expect(body).to_have_attribute("data-theme", "auto")
    page.locator(".content-icon-container .theme-toggle").click()
    expect(body).not_to_have_attribute("data-theme", "auto")
    chosen = str(body.get_attribute("data-theme"))
    page.goto("/docs/concepts/choosing.html")
    expect(body).to_have_attribute("data-theme", chosen)
    context.close()
    assert {url for url in requests if not url.startswith(f"{server.url}/docs/")} == set()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("webhook private address", "Webhooks: be notified of changes"),
        ("webhook localhost", "Webhooks: be notified of changes"),
        ("create only if it does not exist", "Conflicts and merge"),
        ("compare-and-set", "Conflicts and merge"),
        ("restore old version", "History and restore"),
        ("create login link", "Operations"),
        ("If-Match", "Conflicts and merge"),
        ("410", "Problem types"),
    ],
)
def test_search__words_of_a_task__first_result_is_its_page(
    browser: Browser, server: LiveServer, settings: Settings, site: Path, query: str, first: str
) -> None:
    settings.DOCUMENTATION_ROOT = site
    page = browser.new_page(base_url=server.url)
    page.goto("/docs/")
    page.get_by_placeholder("Search").first.fill(query)
    page.get_by_placeholder("Search").first.press("Enter")
    expect(page.locator("#search-results li > a").first).to_contain_text(first)
    page.close()
