"""Every page: permissions, number of queries, what non-members see."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.http import HttpRequest
from django.template import Engine
from django.test import Client

from tests.builders import Person, make_namespace, put
from tests.web.conftest import CheckQueries

PAGES = {
    "overview": "/",
    "overview, with charts": "/?hours=24&charts=1",
    "state browser": "/state",
    "state browser, one namespace": "/state?namespace=notes",
    "state browser, by tag and writer": "/state?namespace=notes&tag=vip&actor=alice",
    "state browser, searched": "/state?namespace=notes&text=a",
    "state browser, one scope": "/state?namespace=notes&scope=thread",
    "state browser, filtered": "/state?prefix=thread::&scope=thread&since=day&show=invalid",
    "entry": "/state/notes/thread::t1",
    "entry, text": "/state/notes/thread::t1?tab=text",
    "entry, history": "/state/notes/thread::t1?tab=history",
    "entry, blame": "/state/notes/thread::t1?tab=blame",
    "entry, code": "/state/notes/thread::t1?tab=code",
    "entry, past": "/state/notes/thread::t1?version=1",
    "entry, history of a path": "/state/notes/thread::t1?tab=history&path=/a",
    "entry, difference": "/state/notes/thread::t1?tab=history&old=1&new=3",
    "entry, missing": "/state/notes/nobody",
    "entry, part": "/entry/tree/notes/thread::t1?pointer=/steps",
    "entry, as stored": "/entry/raw/notes/thread::t1",
    "entry, edit": "/entry/edit/notes/thread::t1",
    "entry, delete": "/entry/delete/notes/thread::t1",
    "entry, restore": "/entry/restore/notes/thread::t1?version=1",
    "new entry": "/entries/new?namespace=notes",
    "namespaces": "/namespaces",
    "namespace": "/namespaces/notes",
    "namespace, edit": "/namespaces/notes/edit",
    "namespace, unregister": "/namespaces/notes/unregister",
    "namespace, compact": "/namespaces/notes/compact",
    "new namespace": "/namespaces/+new",
    "search": "/go?q=no",
    "system": "/system",
    "password": "/password",
    "workspaces": "/workspaces",
    "how one signs in": "/sign-in",
    "authenticator, set up": "/sign-in/totp",
    "authenticator, off": "/sign-in/totp/remove",
    "state as JSON": "/state.json?namespace=notes",
    "namespaces as JSON": "/namespaces.json",
}
EDITORS_ONLY = {"entry, edit", "entry, delete", "entry, restore", "new entry"}
ADMINS_ONLY = {"namespace, edit", "namespace, unregister", "namespace, compact", "new namespace"}


@pytest.fixture
def notes(alice: Person) -> None:
    """A namespace with an entry of three versions."""
    make_namespace(alice.actor, "notes", default={"steps": []})
    for count in range(3):
        put(alice.actor, "notes", "thread::t1", {"steps": ["a"] * count, "count": count})


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("notes")
def test_page__member__uses_a_bounded_number_of_queries(
    name: str, admin: Client, check_queries: CheckQueries
) -> None:
    check_queries(name, admin, PAGES[name])


@pytest.mark.parametrize("name", PAGES)
def test_page__anonymous__redirects_to_login(name: str, client: Client, db: None) -> None:
    response = client.get(PAGES[name])
    assert response.status_code == 302
    assert response["Location"].startswith("/login?next=/")


@pytest.mark.parametrize("path", ["/threads/nowhere", "/state/nowhere/k"])
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true", "HX-Request-Type": "partial"}])
def test_page__of_something_unknown__names_no_request_of_the_api(
    path: str, headers: dict[str, str], admin: Client
) -> None:
    response = admin.get(path, headers=headers)
    assert response.status_code == 404
    shown = response.content.decode()
    assert "nowhere" in shown
    assert not re.search(r"(POST|PUT) /api/v1", shown)


@pytest.mark.parametrize("name", PAGES)
def test_page__anonymous_htmx__redirects_the_whole_page(
    name: str, client: Client, db: None
) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/state?prefix=x"}
    response = client.get(PAGES[name], headers=headers)
    assert response["HX-Redirect"] == "/login?next=%2Fstate%3Fprefix%3Dx"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("notes")
def test_page__viewer__can_read_but_not_edit(name: str, viewer: Client) -> None:
    refused = name in EDITORS_ONLY | ADMINS_ONLY
    assert viewer.get(PAGES[name]).status_code == (403 if refused else 200)


@pytest.mark.parametrize("name", sorted(ADMINS_ONLY))
@pytest.mark.usefixtures("notes")
def test_page__editor__cannot_change_namespaces(name: str, editor: Client) -> None:
    assert editor.get(PAGES[name]).status_code == 403


@pytest.mark.parametrize("name", [name for name in PAGES if "notes" in PAGES[name]])
@pytest.mark.usefixtures("notes")
def test_page__other_workspace__appears_absent(name: str, stranger: Client) -> None:
    response = stranger.get(PAGES[name])
    if name in ("new entry", "state as JSON"):
        assert b"thread::t1" not in response.content
    else:
        assert response.status_code == 404


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("notes")
def test_page__any__is_private_and_not_stored(name: str, admin: Client) -> None:
    response = admin.get(PAGES[name])
    assert "no-store" in response["Cache-Control"]
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert b" style=" not in response.content
    assert b"<script>" not in response.content


@pytest.mark.usefixtures("notes")
def test_page__htmx__returns_only_the_part(admin: Client) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#entry"}
    response = admin.get("/state/notes/thread::t1", headers=headers)
    assert b"<html" not in response.content
    assert b'id="entry"' in response.content


@pytest.mark.usefixtures("notes")
def test_page__htmx__part_with_the_heading_has_the_title_of_the_page(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[HttpRequest] = []
    shell = Engine.get_default().template_context_processors[-1]

    def count(request: HttpRequest) -> dict[str, Any]:
        contexts.append(request)
        return shell(request)

    processors = (*Engine.get_default().template_context_processors[:-1], count)
    monkeypatch.setattr(Engine.get_default(), "template_context_processors", processors)
    for path, part in (
        ("/state/notes/thread::t1", "entry"),
        ("/state?namespace=notes", "entry-browser"),
    ):
        title = re.search("<title>.*</title>", admin.get(path).content.decode())
        assert title is not None
        assert title[0].endswith(" · acme</title>")
        headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": f"div#{part}"}
        assert admin.get(path, headers=headers).content.decode().startswith(title[0])
    assert len(contexts) == 4  # one for each page, and one for each part with its title
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#dialog"}
    dialog = admin.get("/entry/delete/notes/thread::t1", headers=headers).content
    assert b"<dialog" in dialog
    assert b"<title>" not in dialog


@pytest.mark.usefixtures("notes")
def test_page__htmx_history_restore__returns_the_whole_page(admin: Client) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "full"}
    assert b"<html" in admin.get("/state/notes/thread::t1", headers=headers).content


def test_page__user_without_workspace__says_so(client: Client, alice: Person) -> None:
    from state_admin.services.users import ensure_user

    client.force_login(ensure_user("dave")[0])
    response = client.get("/")
    assert response.status_code == 403
    assert b"not a member of a workspace" in response.content


def test_page__unknown_path__is_a_404_page(admin: Client) -> None:
    response = admin.get("/nothing/here")
    assert response.status_code == 404
    assert b"Page not found" in response.content
    assert (
        b'<ol class="crumbs" aria-label="Breadcrumb"><li><a href="/">Overview' in response.content
    )
    anonymous = Client().get("/nothing/here")
    assert anonymous.status_code == 404
    assert b"Page not found" in anonymous.content
    assert b"crumbs" not in anonymous.content


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_page__called_with_a_token__says_where_the_api_is(method: str) -> None:
    response = Client().generic(
        method,
        "/state/notes/k",
        b"{}",
        "application/json",
        headers={"Authorization": "Bearer ch_x"},
    )
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert "/api/v1" in response.json()["hint"]


@pytest.mark.parametrize("path", ["/problems/not-found", "/problems/", "/api/docs"])
def test_documentation__requested_with_a_token__is_shown(path: str) -> None:
    """Problem documents link these pages, and a client follows links with its usual headers."""
    response = Client().get(path, headers={"Authorization": "Bearer ch_x", "Accept": "*/*"})
    assert response.status_code == 200


def test_page__token_of_a_reverse_proxy__is_ignored(admin: Client) -> None:
    assert admin.get("/state", headers={"Authorization": "Bearer eyJhbGciOi"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/state/notes/a?version=x", "State browser"),
        ("/namespaces/nothing", "Namespaces"),
        ("/threads/nothing", "Threads"),
        ("/webhooks/nothing", "Webhooks"),
        ("/entries/new", "State browser"),
        ("/sign-in/totp", "Sign-in methods"),
    ],
)
@pytest.mark.usefixtures("notes")
def test_page__error_or_form__has_a_breadcrumb(path: str, section: str, admin: Client) -> None:
    page = admin.get(path).content.decode()
    assert re.search(rf'<ol class="crumbs"[^>]*><li><a href="/[^"]*">{section}</a>', page)
