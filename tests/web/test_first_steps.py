"""The first steps on the overview of a workspace without state."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from state_admin.models import ApiToken
from tests.builders import Person, make_namespace, make_thread, put
from tests.web.test_threads import page

STEP = re.compile(
    r'<span class="pill" data-state="\w*">(to do|done)</span>\s*<span class="what"><strong>([^<]+)</strong>'
    r'.*?</span></span>\s*(?:<a class="btn"[^>]*href="([^"]+)">)?',
    re.S,
)
NAMESPACE, TOKEN = "Register a namespace", "Create a token for an agent"
ENTRY = "Write an entry, and watch it arrive"


def steps(client: Client) -> dict[str, tuple[str, str]]:
    """Whether each step is done, and the URL of its link."""
    section = page(client, "/").partition('id="first-steps"')[2].partition("</section>")[0]
    return {title: (state, html.unescape(url)) for state, title, url in STEP.findall(section)}


def curl(client: Client) -> str:
    found = re.search(r"<code>(curl -X PUT.*?)</code>", page(client, "/"), re.S)
    return html.unescape(found[1]) if found else ""


def test_first_steps__empty_workspace__asks_for_a_namespace_first(admin: Client) -> None:
    assert steps(admin) == {
        NAMESPACE: ("to do", "/namespaces/+new"),
        TOKEN: ("done", "/tokens"),
        ENTRY: ("to do", ""),
    }
    assert curl(admin) == ""


def test_first_steps__namespace_without_token__limits_the_new_token_to_it(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    ApiToken.objects.all().delete()
    assert steps(admin) == {
        NAMESPACE: ("done", "/namespaces"),
        TOKEN: ("to do", "/tokens/+new?namespaces=notes"),
        ENTRY: ("to do", "/entries/new?namespace=notes&at=global"),
    }
    assert (
        page(admin, "/tokens/+new?namespaces=notes").count('name="namespaces" value="notes"') == 1
    )
    editor = admin.get("/entries/new?namespace=notes&at=global")
    assert (editor.status_code, editor.headers["Location"]) == (302, "/entry/edit/notes/global")


@pytest.mark.parametrize(
    ("default", "value"), [(None, '{"goal": "Ship the feature"}'), ({"a": [1]}, '{"a": [1]}')]
)
def test_first_steps__command__writes_the_default_of_the_namespace(
    default: object, value: str, admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "notes", default=default)
    assert f"-d '{{\"value\": {value}}}'" in curl(admin)
    assert curl(admin).endswith("/api/v1/state/notes/global")


def test_first_steps__first_entry_written__are_done_until_there_is_a_second(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "global", 1)
    assert steps(admin)[ENTRY] == ("done", "/state")
    assert curl(admin) == ""
    put(alice.actor, "notes", "other", 1)
    assert steps(admin) == {}


def test_first_steps__workspace_of_threads__are_not_shown(admin: Client, alice: Person) -> None:
    make_thread(alice.actor)
    assert steps(admin) == {}


def test_first_steps__roles__link_to_what_they_may_do(
    editor: Client, viewer: Client, alice: Person
) -> None:
    assert steps(viewer) == {NAMESPACE: ("to do", ""), ENTRY: ("to do", "")}
    assert "Ask an admin of this workspace" in page(viewer, "/")
    make_namespace(alice.actor, "notes")
    assert steps(viewer)[ENTRY] == ("to do", "")
    assert steps(editor)[ENTRY] == ("to do", "/entries/new?namespace=notes&at=global")


def test_first_steps__state_of_another_workspace__does_not_count(
    stranger: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "global", 1)
    make_thread(alice.actor)
    assert steps(stranger)[NAMESPACE] == ("to do", "/namespaces/+new")


@pytest.mark.parametrize(
    ("path", "action", "url"),
    [
        ("/namespaces", "Register the first namespace", "/namespaces/+new"),
        ("/state", "Write an entry", "/entries/new"),
    ],
)
def test_empty_list__of_what_can_be_created_here__offers_it_to_those_permitted(
    path: str, action: str, url: str, admin: Client, viewer: Client
) -> None:
    shown = page(admin, path)
    assert re.search(rf'href="{re.escape(url)}"[^>]*>(<svg.*?</svg>)?{action}<', shown, re.DOTALL)
    assert action not in page(viewer, path)
