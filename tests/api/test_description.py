"""/api/schema and /api/docs: public, and cheap to serve."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from state_admin.contract import openapi

pytestmark = pytest.mark.django_db


def test_schema__requested__is_the_committed_document_and_not_generated(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("generated")

    monkeypatch.setattr(openapi, "document", refuse)
    for path in ("/api/schema", "/api/schema?format=json"):
        answer = client.get(path)
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
        assert answer.content == settings.API_DOCUMENT.read_bytes()


def test_schema__requested_with_its_etag__is_304(client: Client) -> None:
    first = client.get("/api/schema")
    assert first["Cache-Control"] == "no-cache"
    for tags in (first["ETag"], f'"other", W/{first["ETag"]}', "*"):
        again = client.get("/api/schema", headers={"If-None-Match": tags})
        assert (again.status_code, again.content) == (304, b"")
        assert again["ETag"] == first["ETag"]
    changed = client.get("/api/schema", headers={"If-None-Match": '"other"'})
    assert (changed.status_code, changed.content) == (200, first.content)


@pytest.mark.parametrize(
    ("method", "query", "status"),
    [
        ("POST", "", 405),
        ("DELETE", "", 405),
        ("GET", "?format=yaml", 400),
        ("GET", "?lang=de", 400),
        ("GET", "?format=json&format=json&x=1", 400),
    ],
)
def test_schema__unsupported_method_or_query__is_a_problem(
    client: Client, method: str, query: str, status: int
) -> None:
    answer = client.generic(method, f"/api/schema{query}")
    assert (answer.status_code, answer.json()["status"]) == (status, status)


def test_docs__anonymous__has_the_headers_of_pages_and_no_inline_code(client: Client) -> None:
    answer, page = client.get("/api/docs"), client.get("/login")
    assert answer.status_code == 200
    for name in (
        "Content-Security-Policy",
        "X-Frame-Options",
        "X-Content-Type-Options",
        "Referrer-Policy",
        "Cross-Origin-Opener-Policy",
    ):
        assert answer[name] == page[name]
    html = answer.content.decode()
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on\w+=", html) == []
    assert re.findall(r'(?:src|href)="(?!/)', html) == []  # nothing from other hosts


@pytest.mark.parametrize(
    "accept", ["text/html", "text/html,*/*;q=0.8", "application/json", "image/png"]
)
def test_docs__any_accept__is_html(client: Client, accept: str) -> None:
    answer = client.get("/api/docs", headers={"Accept": accept})
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.parametrize("path", ["/api/docs", "/api/schema"])
@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_description__another_method__is_405(client: Client, method: str, path: str) -> None:
    answer = client.generic(method, path, headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
