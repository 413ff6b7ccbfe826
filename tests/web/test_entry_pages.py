"""Pages of entries: any key, any value, the past, the list and its filters."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.access import Role
from state_admin.services import blame
from state_admin.services.entries import delete_entry
from state_admin.services.namespaces import unregister_namespace
from state_admin.web import blame_lines, entry_detail, entry_list
from state_admin.web.addresses import entry_url
from tests.builders import Person, make_namespace, make_token, put

ODD_KEYS = [
    "a/b//c",
    "a/../b",
    "..",
    ".",
    "/",
    "//",
    "100%",
    "%2F",
    "%252F",
    "with space",
    " ",
    "x?y#z&w=1",
    "thread::<script>alert(1)</script>",
    "{{ 7*7 }}{% debug %}",
    "quotes\"'`",
    "émoji 🚀",
    "a\\b",
    "+",
    "x" * 512,
    "new",
    "a.json",
]
EVIL = {
    "<img src=x onerror=alert(1)>": "</script><script>alert(2)</script>",
    "template": "{{ csrf_token }}{% debug %}",
    "hx": '" hx-get="/logout" hx-trigger="load',
    "partial": "<hx-partial hx-target='#main'>x</hx-partial>",
    "long": "<b>" * 500,
}


@pytest.mark.parametrize("key", ODD_KEYS)
def test_entry__any_valid_key__has_a_page_and_can_be_edited(
    key: str, admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "odd")
    put(alice.actor, "odd", key, {"mark": "here it is"})
    listed = admin.get("/state?namespace=odd").content.decode()
    (url,) = re.findall(r'data-row href="([^"]+)"', listed)
    url = url.replace("&amp;", "&").replace("&#x27;", "'")
    assert url == entry_url("odd", key)
    assert b"here it is" in admin.get(url).content
    edit = url.replace("/state/", "/entry/edit/", 1)
    data = {"value": '"changed"', "base": 1, "lifetime": "keep"}
    assert admin.post(edit, data).status_code == 302
    assert b"changed" in admin.get(url).content


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(
        lambda key: len(key.encode()) <= 512
    )
)
def test_entry_url__any_key__resolves_to_that_key(key: str) -> None:
    from urllib.parse import parse_qs, unquote, urlsplit

    parts = urlsplit(entry_url("ns", key))
    match = resolve(unquote(parts.path))
    given_key = match.kwargs.get("key") or parse_qs(parts.query)["key"][0]
    assert (match.url_name, match.kwargs["namespace"], given_key) == ("entry-detail", "ns", key)


def blamed_lines(page: str) -> list[tuple[str, str]]:
    """The lines of the tab, each with its version if that is not the one of the line above."""
    rows = re.findall(r"<code>(.*?)</code></a></td>(.*?)</tr>", page, re.DOTALL)
    versions = [re.findall(r">(v\d+)</a>", rest) for _, rest in rows]
    return [(unescape(rows[i][0]), "".join(found)) for i, found in enumerate(versions)]


def test_blame__inserted_item__shows_each_line_with_its_version(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", {"a/b": 1, "stops": ["<b>Lisbon</b>", {}], "last": None})
    put(alice.actor, "n", "k", {"a/b": 2, "stops": ["Madrid", "<b>Lisbon</b>", {}], "last": None})
    page = admin.get("/state/n/k?tab=blame").content.decode()
    assert blamed_lines(page) == [
        ("{", "v1"),
        ('  "a/b": 2,', "v2"),
        ('  "stops": [', ""),
        ('    "Madrid",', ""),
        ('    "<b>Lisbon</b>",', "v1"),
        ("    {}", ""),
        ("  ],", "v2"),
        ('  "last": null', "v1"),
        ("}", ""),
    ]
    assert "<b>Lisbon" not in page
    assert 'title="/a~1b"' in page


def path_rows(page: str) -> list[tuple[str, str]]:
    """The versions that changed a path, each with the change as text."""
    rows = re.findall(r">v(\d+)</a></td>\s*<td class=\"delta\">(.*?)</td>", page, re.DOTALL)
    return [(version, unescape(re.sub(r"<[^>]+>", " ", text))) for version, text in rows]


def test_path_history__line_of_blame__lists_the_versions_that_changed_it(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "n")
    versions: list[Any] = [{"stops": ["<b>Rome</b>"]}, {"stops": ["<b>Oslo</b>"]}]
    versions += [{"stops": ["Madrid", "<b>Oslo</b>"]}, {"stops": ["Madrid", "Porto"]}]
    for value in versions:
        put(alice.actor, "n", ".", value, reason="<i>why</i>")
    delete_entry(actor=alice.actor, namespace="n", key=".")
    put(alice.actor, "n", ".", versions[-1])
    lines = admin.get("/state/n/?key=.&tab=blame").content.decode()
    (link,) = re.findall(r'title="/stops/1"><a data-row href="([^"]+)"', lines)
    page = admin.get("/state/n/" + unescape(link)).content.decode()
    rows = path_rows(page)
    assert [version for version, _ in rows] == ["6", "5", "4", "2", "1"]
    assert [
        next(word for word in ("added", "removed", "→") if word in text) for _, text in rows
    ] == ["added", "removed", "→", "→", "added"]
    assert "<b>Rome</b>" in rows[-1][1]
    assert "/stops/0" in rows[-1][1]
    assert "/stops/0" not in rows[0][1]
    assert "<b>Rome" not in page
    assert "&lt;i&gt;why" in page
    assert "/entry/restore/n/?version=4&amp;key=." in page
    assert "/entry/restore/n/?version=6" not in page
    assert "/entry/restore/n/?version=5" not in page


def test_path_history__more_versions_than_a_page__has_a_link_to_search_further(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blame, "MOST_VERSIONS", 2)
    make_namespace(alice.actor, "n")
    for value in range(4):
        put(alice.actor, "n", "k", {"a": [value]})
    page = admin.get("/state/n/k?tab=history&path=/a/0").content.decode()
    assert [version for version, _ in path_rows(page)] == ["4", "3"]
    assert "Searched back to v2" in page
    (link,) = re.findall(r'href="([^"]+)" rel="next"', page)
    page = admin.get(unescape(link)).content.decode()
    assert [version for version, _ in path_rows(page)] == ["2", "1"]
    assert 'rel="next"' not in page


def test_path_history__nothing_found__says_why(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", {"a": 1})
    assert (
        b"No version has a value at this path"
        in admin.get("/state/n/k?tab=history&path=/A").content
    )
    assert b"No versions are stored" in admin.get("/state/n/no?tab=history&path=/a").content
    response = admin.get("/state/n/k?tab=history&path=a")
    assert response.status_code == 400
    assert b"ath must be a JSON Pointer such as /a/b" in response.content
    assert admin.get("/state/n/k?tab=history&path=/a&since=x").status_code == 400


def test_path_history__viewer_and_stranger__cannot_restore_or_see(
    viewer: Client, stranger: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "n")
    for value in ("one", "two"):
        put(alice.actor, "n", "k", {"a": value})
    page = viewer.get("/state/n/k?tab=history&path=/a").content.decode()
    assert len(path_rows(page)) == 2
    assert "/entry/restore" not in page
    assert stranger.get("/state/n/k?tab=history&path=/a").status_code == 404


def test_blame__long_value__has_pages(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (blame_lines, entry_detail):
        monkeypatch.setattr(module, "MOST_LINES", 3)
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", [1])
    page = admin.get("/state/n/k?tab=blame").content.decode()
    assert len(blamed_lines(page)) == 3
    assert "Next page" not in page
    for start in ("999999999999999999", "-1", "x"):
        shown = blamed_lines(admin.get(f"/state/n/k?tab=blame&start={start}").content.decode())
        assert [text.strip() for text, _ in shown] == ["[", "1", "]"]
    put(alice.actor, "n", "k", [1, 2, 3, 4, 5])
    for whole in ("", "&whole=yes"):
        monkeypatch.setattr(entry_detail, "BLAMED", 0 if whole else 200)
        url, shown = "/state/n/k?tab=blame", []
        while url:
            if whole:  # the page loads its lines afterwards
                (url,) = re.findall(r'hx-get="([^"]+whole=yes)"', admin.get(url).content.decode())
            page = admin.get(unescape(url)).content.decode()
            shown += blamed_lines(page)
            assert ("First page" in page) is ("start=" in url)
            url = unescape("".join(re.findall(r'href="([^"]+)" rel="next"', page)))
        assert [text.strip() for text, *_ in shown] == ["[", "1,", "2,", "3,", "4,", "5", "]"]


@pytest.mark.parametrize(
    "path", ["/state/x/{}", "/state/x/{}?tab=text", "/state/x/{}?tab=history", "/state", "/"]
)
def test_entry__hostile_key_and_value__are_escaped(path: str, admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "x", description="<script>alert(0)</script>")
    key = "thread::<script>alert(1)</script>\"'"
    put(alice.actor, "x", key, 1, reason="<script>alert(3)</script>")
    put(alice.actor, "x", key, EVIL, tags=["<i>tag</i>"], reason="<script>alert(3)</script>")
    page = admin.get(path.format(entry_url("x", key)[len("/state/x/") :])).content.decode()
    assert "alert(1)" in page
    for raw in (
        "<script>alert",
        "<img src=x",
        "<i>tag",
        "<hx-partial",
        "<b><b>",
        ' hx-get="/logout',
    ):
        assert raw not in page


def test_entry__large_value__is_loaded_in_parts(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "big")
    value = {"items": [{"id": i, "tags": ["a", "b"]} for i in range(1000)], "small": [1]}
    put(alice.actor, "big", "k", value)
    page = admin.get("/state/big/k").content.decode()
    assert 'hx-get="/entry/tree/big/k?pointer=%2Fitems"' in page
    assert len(page) < 120_000
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    piece = admin.get("/entry/tree/big/k?pointer=%2Fitems", headers=headers).content.decode()
    assert "<html" not in piece
    assert "pointer=%2Fitems&amp;start=200" in piece
    last = admin.get("/entry/tree/big/k?pointer=%2Fitems&start=800", headers=headers)
    assert b"999" in last.content
    assert admin.get("/entry/tree/big/k?pointer=%2Fnope").status_code == 404
    assert b"<html" in admin.get("/entry/tree/big/k?pointer=%2Fitems%2F5").content


def test_entry__past_version__is_marked_and_can_be_restored(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", {"v": "first"})
    put(alice.actor, "n", "k", {"v": "second"})
    page = admin.get("/state/n/k?version=1").content.decode()
    assert "This is <strong>version 1</strong>" in page
    assert "first" in page
    assert "/entry/restore/n/k?version=1" in page
    assert admin.get("/state/n/k?version=9").status_code == 404
    assert admin.get("/state/n/k?version=x").status_code == 400
    assert admin.get("/state/n/k?at=2001-01-01T00:00").status_code == 404
    assert admin.get("/state/n/k?at=never").status_code == 400
    assert b"second" in admin.get("/state/n/k?at=2999-01-01T00:00").content


def test_entry__two_versions__show_their_differences(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", {"a": 1, "b": 2})
    put(alice.actor, "n", "k", {"a": 1, "c": 3})
    page = admin.get("/state/n/k?tab=history&old=1&new=2").content.decode()
    assert re.findall(r'class="path">([^<]+)<', page) == ["/b", "/c"]
    assert admin.get("/state/n/k?tab=history&old=1&new=7").status_code == 404
    assert admin.get("/state/n/k?diff=x").status_code == 400


def test_entry__deleted__is_marked_and_has_its_history(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n", default={"fallback": True})
    put(alice.actor, "n", "k", {"v": 1})
    delete_entry(actor=alice.actor, namespace="n", key="k")
    page = admin.get("/state/n/k").content.decode()
    assert "was deleted or has expired" in page
    assert "fallback" in page
    assert "v1</a>" in page


def test_entry__unregistered_namespace__is_shown_read_only(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", {"v": "orphan value"})
    unregister_namespace(actor=alice.actor, name="n", entries="retain")
    page = admin.get("/state/n/k").content.decode()
    assert "is not registered" in page
    assert "orphan value" in page
    assert "/entry/edit/" not in page
    assert admin.get("/state/n/other").status_code == 404
    absent = admin.get("/state/nobody/k")
    assert (absent.status_code, absent.context["message"]) == (
        404,
        "Namespace not registered: nobody",
    )


def test_entry__invalid_under_the_current_schema__is_marked(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "bad", {"v": "x"})
    put(alice.actor, "n", "good", {"v": 1})
    schema = {"properties": {"v": {"type": "integer"}}}
    make_namespace(alice.actor, "n", schema=schema)
    page = admin.get("/state/n/bad").content.decode()
    assert "This value does not match the current schema" in page
    assert "<code>/v</code>" in page
    edit = admin.get("/entry/edit/n/bad").content.decode()
    assert 'id="value-errors"' in edit
    assert "<code>/v</code>" in edit
    assert "data-unsaved" not in edit
    listed = admin.get("/state?namespace=n&show=invalid").content.decode()
    assert re.findall(r'aria-label="Select (\w+)', listed) == ["all", "bad"]
    assert "<code>" not in listed or "bad" in listed


def test_list__filters__are_applied(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    make_namespace(alice.actor, "m")
    for key in ("global", "thread::a", "thread::b", "thread::", "agent_type::p", "zzz"):
        put(alice.actor, "n", key, 1)
    put(alice.actor, "m", "thread::a", 1)

    def keys(query: str) -> list[str]:
        return [
            f"{item['namespace']}/{item['key']}"
            for item in admin.get(f"/state.json?{query}").json()["items"]
        ]

    assert keys("")[:2] == ["m/thread::a", "n/agent_type::p"]
    assert keys("namespace=n&scope=thread") == ["n/thread::a", "n/thread::b"]
    assert keys("scope=custom") == ["n/thread::", "n/zzz"]
    assert keys("prefix=thread::") == ["m/thread::a", "n/thread::", "n/thread::a", "n/thread::b"]
    assert keys("show=orphans") == []
    assert len(keys("since=hour")) == 7
    assert admin.get("/state?namespace=nobody").status_code == 404


def test_list__more_than_a_page__contains_each_entry_once(admin: Client, alice: Person) -> None:
    for namespace in ("a", "b"):
        make_namespace(alice.actor, namespace)
        for number in range(60):
            put(alice.actor, namespace, f"k{number:03}", number)
    url, seen = "/state.json", []
    while url:
        page = admin.get(url).json()
        seen += [(item["namespace"], item["key"]) for item in page["items"]]
        url = page["next"]
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen) == 120
    html = admin.get("/state").content.decode()
    assert 'rel="next"' in html


def test_list__empty__shows_how_to_begin(admin: Client, alice: Person) -> None:
    page = admin.get("/state").content.decode()
    assert "<h2>No entries</h2>" in page
    make_namespace(alice.actor, "empty")
    assert "Show deleted entries" in admin.get("/state?namespace=empty").content.decode()
    assert "curl -X PUT" in page
    assert "from commonhold import Commonhold" in page


@pytest.fixture
def library(alice: Person) -> None:
    make_namespace(alice.actor, "books")
    make_namespace(alice.actor, "films")
    put(alice.actor, "books", "thread::a", {"title": "The Whale <b>", "by": "Melville"})
    put(alice.actor, "books", "b", {"title": "A whale of a time"}, tags=["fun"])
    put(alice.actor, "films", "thread::c", {"title": "Whales"})
    put(alice.actor, "films", "d", {"title": "none of them"})


def found(client: Client, query: str) -> list[str]:
    items = client.get(f"/state.json?{query}").json()["items"]
    return [f"{item['namespace']}/{item['key']}" for item in items]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ('text="whale"', ["books/b", "books/thread::a"]),
        ("text=whale*", ["films/thread::c", "books/b", "books/thread::a"]),
        ("text=whale*&namespace=books", ["books/b", "books/thread::a"]),
        ("text=whale*&scope=thread", ["films/thread::c", "books/thread::a"]),
        ("text=whale*&prefix=thread::a", ["books/thread::a"]),
        ("text=whale*&tag=fun", ["books/b"]),
        ("text=whale*&actor=nobody", []),
        ("text=whale*&actor=alice&since=hour&tag=fun", ["books/b"]),
        ("text=whale*&show=invalid", []),
        ("text=whale*&show=orphans", []),
        ('text="a whale of"', ["books/b"]),
        ("text=+", ["books/b", "books/thread::a", "films/d", "films/thread::c"]),
    ],
)
@pytest.mark.usefixtures("library")
def test_browser__text__finds_values_with_the_other_filters(
    query: str, keys: list[str], admin: Client
) -> None:
    assert found(admin, query) == keys
    assert admin.get(f"/state?{query}").status_code == 200


@pytest.mark.usefixtures("library")
def test_browser__text__shows_the_place_of_the_match(admin: Client) -> None:
    shown = admin.get("/state?text=melville+whale").content.decode()
    assert "The Whale &lt;b&gt;" in shown
    assert "/title</span>" in shown
    assert "/by</span>" in shown
    assert 'value="melville whale"' in shown


@pytest.mark.usefixtures("library")
def test_browser__text_over_pages__continues_where_it_ended(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "PAGE", 1)
    url, seen = "/state.json?text=whale*", []
    while url:
        answer = admin.get(url).json()
        seen += [item["key"] for item in answer["items"]]
        url = answer["next"]
    assert seen == ["thread::c", "b", "thread::a"]
    assert admin.get("/state?text=whale&after=books/b").status_code == 400


@pytest.mark.usefixtures("library")
def test_browser__invalid_query__shows_the_reason(admin: Client) -> None:
    shown = admin.get("/state?text=%22").content.decode()
    assert "has no letter or digit" in shown
    assert admin.get("/state.json?text=%22").status_code == 422


@pytest.mark.usefixtures("library")
def test_browser__text__does_not_search_other_workspaces(stranger: Client) -> None:
    assert found(stranger, "text=whale*") == []


def test_browser__text_in_an_unregistered_namespace__finds_nothing(
    admin: Client, alice: Person, library: None
) -> None:
    unregister_namespace(actor=alice.actor, name="books", entries="retain")
    assert found(admin, "text=whale*") == ["films/thread::c"]
    assert found(admin, "text=whale*&namespace=books") == []
    shown = admin.get("/state?text=whale*&show=orphans").content.decode()
    assert "unregistered namespaces are not searched" in shown


def tree(client: Client, query: str) -> str:
    shown = client.get(f"/state?{query}").content.decode()
    return shown.partition('aria-label="Namespaces and scopes"')[2].partition("</nav>")[0]


def test_tree__open_scope__shows_its_first_keys_and_a_link_to_more(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "_LEAVES", 2)
    make_namespace(alice.actor, "books")
    for key in ("thread::a", "thread::b", "thread::<i>", "other"):
        put(alice.actor, "books", key, 1)
    assert ">a</a>" not in tree(admin, "namespace=books")
    shown = tree(admin, "namespace=books&scope=thread&prefix=thread::zzz")
    assert [key for key in ("a", "b", "&lt;i&gt;") if f">{key}</a>" in shown] == ["a", "&lt;i&gt;"]
    (more,) = re.findall(r'href="([^"]+)" [^>]*>More keys…', shown)
    assert found(admin, more.replace("&amp;", "&").partition("?")[2]) == ["books/thread::b"]


def test_entry__access__lists_names_for_admins_and_the_rule_for_others(
    admin: Client, viewer: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k&1", 1)
    make_token(alice, Role.EDITOR, namespaces=["n*"])
    make_token(alice, Role.EDITOR, namespaces=["x"])
    shown = admin.get("/state/n/k&1").content.decode()
    assert "1 admin, 1 viewer" in shown
    assert "editor token, granted n*" in shown
    assert "granted x" not in shown
    urls = [url.replace("&amp;", "&") for url in re.findall(r'href="(/access[^"]+)"', shown)]
    assert "/access?namespace=n&key=k%261" in urls
    for url in urls:
        assert admin.get(url).status_code == 200, url
    told = viewer.get("/state/n/k&1").content.decode()
    assert "All members of this workspace" in told
    assert "granted" not in told
    assert "/access" not in told.partition('aria-label="Read access"')[2].partition("</section>")[0]
