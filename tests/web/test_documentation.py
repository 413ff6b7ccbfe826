"""/docs: the site that `make docs` built, public."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings


@pytest.fixture
def site(tmp_path: Path, settings: Settings) -> Path:
    (tmp_path / "outside.txt").write_text("secret")
    folder = tmp_path / "site"
    (folder / "guides").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>Commonhold</h1>")
    (folder / "guides" / "index.html").write_text("<h1>Guides</h1>")
    (folder / "theme.js").write_text("1")
    settings.DOCUMENTATION_ROOT = folder
    return folder


@pytest.mark.usefixtures("site")
def test_documentation__built__is_served_with_the_headers_of_the_pages() -> None:
    assert Client().get("/docs").headers["Location"] == "/docs/"
    answer = Client().get("/docs/")
    assert answer.content == b"<h1>Commonhold</h1>"
    assert answer["Content-Type"].startswith("text/html")
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert Client().get("/docs/guides/").status_code == 200
    assert Client().get("/docs/theme.js")["Content-Type"].startswith("text/javascript")
    modified = answer["Last-Modified"]
    assert Client().get("/docs/", headers={"If-Modified-Since": modified}).status_code == 304


def test_documentation__address_in_a_command__is_that_of_this_server(
    site: Path, settings: Settings
) -> None:
    settings.SITE_URL = "https://state.example.com"
    (site / "guides" / "index.html").write_text("URL=http://127.0.0.1:8000 api=$URL/api/v1")
    (site / "theme.js").write_text("'http://127.0.0.1:8000'")
    answer = Client().get("/docs/guides/")
    assert answer.content == b"URL=https://state.example.com api=$URL/api/v1"
    assert answer["Content-Length"] == str(len(answer.content))
    script = Client().get("/docs/theme.js")
    assert b"".join(script) == b"'http://127.0.0.1:8000'"


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("path", ["gone.html", "guides", "../outside.txt", "%2e%2e/outside.txt"])
def test_documentation__missing_file__is_404(path: str) -> None:
    assert Client().get(f"/docs/{path}").status_code == 404


def test_documentation__post__is_405() -> None:
    assert Client().post("/docs/").status_code == 405


def test_documentation__not_built__shows_how_to_build_it_and_reloads(
    tmp_path: Path, settings: Settings
) -> None:
    settings.DOCUMENTATION_ROOT = tmp_path
    answer = Client().get("/docs/guides/python.html")
    assert answer.status_code == 200
    assert answer["Refresh"] == "3"
    assert "make docs" in answer.content.decode()
