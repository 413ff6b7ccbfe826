"""The pages that the `type` of a problem document links to."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.test import Client

from project.env import BASE_DIR
from state_admin.management.commands import write_docs
from state_admin.services.errors import Problem, problem_types
from state_admin.services.problem_examples import example_of

KINDS = sorted(problem_types(), key=lambda kind: kind.slug)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.slug)
def test_page__every_type__is_public_and_explains_the_type(kind: type[Problem]) -> None:
    example = example_of(kind)
    response = Client().get(example["type"])
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/html")
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY"
    page = response.content.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)", page), "no inline script"
    plain = html.unescape(re.sub(r"</?code>", "", page))
    wanted = [f"HTTP {kind.status}", kind.title, kind.meaning, *kind.causes, kind.remedy]
    assert [text for text in wanted if text.replace("`", "") not in plain] == []
    shown = re.search(r'<pre[^>]*aria-label="Example document">(.*?)</pre>', page, re.DOTALL)
    assert shown
    assert json.loads(html.unescape(shown[1])) == example


def test_index__of_types__links_to_each() -> None:
    response = Client().get("/problems/")
    assert response.status_code == 200
    page = response.content.decode()
    assert [kind.slug for kind in KINDS if f'href="/problems/{kind.slug}"' not in page] == []


def test_page__unknown_type__is_404() -> None:
    assert Client().get("/problems/no-such-type").status_code == 404


def test_types__each__has_its_own_text_and_documents_the_members_of_its_example() -> None:
    standard = {"type", "title", "status", "detail", "hint", "instance"}
    for kind in KINDS:
        assert {"slug", "title", "meaning", "causes", "remedy"} <= vars(kind).keys(), kind
        assert example_of(kind)["type"] == f"/problems/{kind.slug}"
        assert example_of(kind).keys() - standard <= kind.all_members().keys(), kind


def test_docs__problem_types__are_current() -> None:
    written = (BASE_DIR / "docs" / "problems.md").read_text()
    assert written == write_docs.problems(), "run `make docs`"


@pytest.mark.parametrize("path", ["/policy/undo", "/thread/compact/t1", "/entry/check/notes/k"])
def test_form_address__opened_in_a_browser__is_explained(admin: Client, path: str) -> None:
    response = admin.get(path)
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert "This address is not a page" in response.content.decode()
    assert "Go to the overview" in response.content.decode()
    assert 'class="crumbs"' in response.content.decode()
    assert 'href="/audit"' in response.content.decode()  # the navigation
    assert 'href="/audit"' not in Client().get(path).content.decode()
    assert admin.delete("/api/v1/namespaces").headers["Content-Type"] == "application/problem+json"
