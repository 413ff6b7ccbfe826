"""The state browser as a table: previews of values, columns of members, chips, counts."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from benchmarks.pages import LIMIT_KB
from state_admin.models import Entry, browsing
from state_admin.models.browsing import EntryFilter, entry_count, entry_page, entry_texts
from state_admin.services import search
from state_admin.services.entries import delete_entry
from state_admin.services.entry_views import read_entry
from state_admin.services.namespaces import unregister_namespace
from state_admin.templatetags.json_html import json_preview, member_cell
from state_admin.templatetags.ui import clock
from state_admin.web import entry_list, paging, tables
from state_admin.web.tables import choose_columns, member_column, read_columns
from tests.builders import Person, make_namespace, make_record, put
from tests.web.stories import HOSTILE

SCHEMA = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "steps": {"type": "array"},
        "price, net": {"type": ["number", "null"]},
        "stage": {"enum": ["open", "done"]},
        "urgent": {"type": "boolean"},
    },
}


@pytest.fixture
def plans(alice: Person) -> None:
    make_namespace(alice.actor, "plans", schema=SCHEMA, default={})
    value = {"goal": "Ship <it>", "steps": ["a"], "price, net": 1.50, "stage": "open", "x": 1}
    put(alice.actor, "plans", "a", value, tags=["vip"])
    put(alice.actor, "plans", "b", {"goal": "Rest"})


def shown(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return str(response.content.decode())


def headings(page: str) -> list[str]:
    return re.findall(r"<th scope=\"col\"[^>]*>(?:<a [^>]*>)?([^<]+)(?:</a>)?</th>", page)


def rows(page: str) -> list[list[str]]:
    """The texts of the cells of each row, without the checkbox and the preview of narrow windows."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    found = []
    for row in body.split("</tr>")[:-1]:
        cells = re.findall(r'<td(?! class="(?:tick|peek narrow))[^>]*>(.*?)</td>', row, re.S)
        texts = (re.sub(r"<[^>]+>", "", cell) for cell in cells)
        found.append([html.unescape(" ".join(text.split())) for text in texts])
    return found


def test_preview__value__is_one_coloured_line() -> None:
    line = html.unescape(json_preview('{"a":"x<y","n":[1,-2.50e3],\n "ok":true}'))
    assert line == (
        '{<span class="k">a: </span><span class="s">"x<y"</span>, <span class="k">n: </span>'
        '[<span class="n">1</span>, <span class="n">-2.50e3</span>], <span class="k">ok: </span>true}'
    )
    assert "&lt;b&gt;" in json_preview('"<b>"')
    assert json_preview('"caf\\u00e9"') == '<span class="s">&quot;café&quot;</span>'
    assert json_preview("null") == "null"


@pytest.mark.parametrize("text", ['{"a": "' + "x" * 500 + '"}', "[" + "1," * 500 + "1]"])
def test_preview__long_value__is_truncated(text: str) -> None:
    line = re.sub(r"<[^>]+>", "", json_preview(text))
    assert 100 < len(line) < 130
    assert line.endswith("…")


def test_preview__beginning_of_a_value__ends_with_an_ellipsis() -> None:
    assert (
        json_preview('{"a": "un', False)
        == '{<span class="k">a: </span><span class="s">&quot;un</span>…'
    )
    assert json_preview('{"\\u00', False).endswith("…")


@pytest.mark.parametrize(
    ("members", "cell"),
    [
        ({"m": "text"}, "text"),
        ({"m": "x" * 100}, "x" * 48 + "…"),
        ({"m": None}, '<span class="muted">null</span>'),
        ({"m": [1, 2]}, '<span class="muted">[ 2 items ]</span>'),
        ({"m": 12}, "12"),
        ({}, ""),
    ],
)
def test_cell__member__is_its_text(members: dict[str, object], cell: str) -> None:
    assert str(member_cell(members, "m")) == cell
    assert "Too large" in member_cell(None, "m")


@pytest.mark.usefixtures("plans")
def test_list__all_namespaces__shows_previews(admin: Client) -> None:
    page = shown(admin, "/state")
    assert headings(page) == ["Key", "Value", "Tags", "Changed"]
    assert rows(page)[0][:3] == [
        "plans/a",
        '{goal: "Ship <it>", steps: ["a"], price, net: 1.5, stage: "open", x: 1}',
        "vip",
    ]
    assert "2 entries" in page


@pytest.mark.usefixtures("plans")
def test_list__namespace_with_schema__has_columns_of_its_scalars(admin: Client) -> None:
    page = shown(admin, "/state?namespace=plans")
    members = ["goal", "price, net", "stage"]
    assert headings(page) == ["Key", *members, "Value", "Tags", "Changed"]
    assert [row[:4] for row in rows(page)] == [
        ["a", "Ship <it>", "1.5", "open"],
        ["b", "Rest", "", ""],
    ]
    assert '<td class="member num cell">1.5</td>' in page


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize("way", ["pinned", "invalid", "unregistered"])
def test_list__entry_with_a_state__has_a_column_for_it(
    way: str, admin: Client, alice: Person
) -> None:
    if way == "pinned":
        Entry.objects.filter(key="a").update(pinned=True)
    elif way == "invalid":
        make_namespace(alice.actor, "plans", schema={"required": ["x"]}, default={"x": 1})
    else:
        unregister_namespace(actor=alice.actor, name="plans", entries="retain")
    page = shown(
        admin, "/state?namespace=plans&show=orphans" if way == "unregistered" else "/state"
    )
    assert "State" in headings(page)
    assert any(way in row for row in rows(page))


def test_list__namespace_without_schema__has_columns_of_its_values(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "free", schema={})
    put(alice.actor, "free", "a", {"rare": True, "n": 1, "list": []})
    put(alice.actor, "free", "b", {"n": 2})
    put(alice.actor, "free", "c", [1, 2])
    page = shown(admin, "/state?namespace=free")
    assert headings(page) == ["Key", "n", "rare", "Value", "Changed"]
    assert [row[1:4] for row in rows(page)] == [
        ["1", "true", "{rare: true, n: 1, list: []}"],
        ["2", "", "{n: 2}"],
        ["", "", "[1, 2]"],
    ]


@pytest.mark.parametrize(
    ("other", "has_value"),
    [
        ({"a": "x", "b": None}, False),
        ({"a": [1]}, True),
        ({"a": 1, "d": 2}, True),
        ({}, True),
        ("x", True),
        ({"a": "x" * 10_000}, False),
    ],
)
def test_list__members_show_all_of_each_value__has_no_column_for_it(
    admin: Client, alice: Person, other: Any, has_value: bool
) -> None:
    make_namespace(alice.actor, "free", schema={})
    for key, value in (("k1", {"a": "x", "b": "y", "c": "z"}), ("k2", other)):
        put(alice.actor, "free", key, value)
    found = headings(shown(admin, "/state?namespace=free"))
    assert found.index("Value") == (4 if has_value else 5), "behind Changed: of narrow windows"


@pytest.mark.usefixtures("plans")
def test_list__chosen_columns__are_in_the_address_and_in_links(admin: Client) -> None:
    page = shown(admin, "/state?namespace=plans&columns=version,/price~2 net,/x,nothing")
    assert headings(page) == ["Key", "Version", "price, net", "x", "Value"]  # narrow windows: Value
    assert rows(page)[0] == ["a", "1", "1.5", "1"]
    assert "columns=version%2C%2Fprice~2+net%2C%2Fx" in page
    form = "/state?namespace=plans&columns=key&columns=/goal&columns=version&left=version&tag="
    assert admin.get(form)["Location"] == "/state?namespace=plans&columns=version%2C%2Fgoal"
    assert headings(shown(admin, "/state?columns=key")) == ["Key", "Value"]
    views = admin.post("/views", {"page": "state", "query": "columns=size,changed", "name": "mine"})
    assert views["Location"] == "/state?columns=size%2Cchanged"


def test_columns__choice__is_bounded_and_keeps_unknown_members() -> None:
    from django.http import QueryDict

    text = read_columns(QueryDict("columns=" + ",".join(f"/m{n}" for n in range(50))))
    assert len(choose_columns(text, [], [], members=True).visible) == 10
    column = member_column("a/b~c,d")
    assert column.id == "/a~1b~0c~2d"
    assert column.member == "a/b~c,d"
    assert choose_columns("/a/b,/~9,gone", [], [], members=True).visible == []


@pytest.mark.usefixtures("plans")
def test_filters__active__are_chips_that_remove_themselves(admin: Client) -> None:
    page = shown(admin, "/state?namespace=plans&tag=vip&since=day&until=2030-01-31T18:30&prefix=a")
    chips = re.findall(r'href="([^"]+)"[^>]*aria-label="Remove the filter ([^"]+)"', page)
    assert [label for _, label in chips] == [
        "Key begins with a",
        "Changed last day",
        "Changed before 2030-01-31T18:30",
        "Tag vip",
    ]
    url = html.unescape(chips[3][0])
    assert url == "/state?namespace=plans&prefix=a&since=day&until=2030-01-31T18%3A30"
    assert [row[0] for row in rows(page)] == ["a"]
    assert rows(shown(admin, "/state?until=2020-01-31T18:30")) == []
    assert rows(shown(admin, "/state?text=rest&until=2020-01-31T18:30")) == []
    assert len(rows(shown(admin, "/state?since=2020-01-31T18:30"))) == 2


@pytest.mark.usefixtures("plans")
def test_filters__period_and_time__the_period_wins(admin: Client) -> None:
    both = admin.get("/state?since=day&from=2020-01-31T18:30")
    assert both["Location"] == "/state?since=day"
    one = admin.get("/state?since=&from=2020-01-31T18:30")
    assert one["Location"] == "/state?since=2020-01-31T18%3A30"
    page = shown(admin, "/state?since=2020-01-31T18:30:00Z&until=2030-01-31T18:30:00Z")
    assert 'name="from" value="2020-01-31T18:30:00"' in page
    assert 'name="until" value="2030-01-31T18:30:00"' in page


@pytest.mark.parametrize("query", ["since=yesterday", "until=soon"])
def test_filters__malformed_time__is_refused(query: str, admin: Client) -> None:
    assert admin.get(f"/state?{query}").status_code == 400


@pytest.mark.usefixtures("plans")
def test_search__no_word_matches__offers_keys_and_the_inside_of_words(admin: Client) -> None:
    page = shown(admin, "/state?text=nothing::")
    assert 'href="/state?prefix=nothing%3A%3A"' in page
    assert 'href="/state?text=%2Anothing%3A%3A"' in page
    assert "No entry has words that begin like this" in page
    assert "No entry with these filters has words" in shown(admin, "/state?text=nothing&since=day")


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize("text", ["*nothing", '"nothing at all"'])
def test_search__nothing_inside_words__says_so(text: str, admin: Client) -> None:
    page = shown(admin, f"/state?text={quote(text)}")
    assert "No entries match this search" in page
    assert "inside words" not in page


@pytest.mark.usefixtures("plans")
def test_search__no_match_yet__continues_with_older_entries(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        put(alice.actor, "plans", f"later{number}", {"goal": "Wait"})
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(search, "MOST_OPENED", 1)
    monkeypatch.setattr(paging, "MOST_CONTINUED", 1)
    page = shown(admin, "/state?text=*hip")
    assert "<html" in page
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    headers["HX-Target"] = "div#entry-progress"
    searched = "Searched back to entries created at "
    assert searched + clock(Entry.objects.get(key="later1").created_at) in page
    found = re.search(r'hx-get="([^"]+)" hx-headers=\'([^\']+)\' hx-trigger="load delay', page)
    assert found is not None
    response = admin.get(html.unescape(found[1]), headers=headers | json.loads(found[2]))
    page = response.content.decode()
    assert page.lstrip().startswith('<div id="entry-progress"')
    assert searched + clock(Entry.objects.get(key="b").created_at) in page
    assert "load delay" not in page  # a person continues
    (url,) = re.findall(r'href="([^"]+)" rel="next"[^>]*>Search older entries', page)
    response = admin.get(html.unescape(url), headers=headers)
    assert (response["HX-Retarget"], response["HX-Reswap"]) == ("#entry-browser", "outerHTML")
    page = response.content.decode()
    assert rows(page)
    assert "plans/a" in page


def test_count__more_than_a_page__is_counted_up_to_a_limit(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "many")
    for number in range(7):
        put(alice.actor, "many", f"k{number}", number, tags=["vip"])
    delete_entry(actor=alice.actor, namespace="many", key="k0")
    monkeypatch.setattr(entry_list, "PAGE", 2)
    assert "6 entries" in shown(admin, "/state?namespace=many&after=many/k3")
    monkeypatch.setattr(tables, "COUNTED", 5)
    assert "5+ entries" in shown(admin, "/state?prefix=k")
    assert entry_count(alice.actor, EntryFilter("many", prefix="k3"), 5) == (1, True)


@pytest.mark.parametrize(
    ("query", "window", "count"),
    [
        ("show=deleted", 9, "3 entries"),
        ("show=deleted", 7, "3+ entries"),
        ("show=deleted&after=many/k1", 3, "2+ entries"),
        ("show=deleted&after=many/k1", 1, ""),
        ("tag=vip", 9, "5 entries"),
        ("tag=vip&text=number", 9, "5 entries"),
        ("show=invalid&tag=vip", 9, "0 entries"),
    ],
)
def test_count__filter_without_an_index__is_counted_as_far_as_a_page_searches(
    query: str,
    window: int,
    count: str,
    admin: Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_namespace(alice.actor, "many")
    for number in range(8):
        put(alice.actor, "many", f"k{number}", f"number {number}", tags=["vip"])
    for number in (1, 2, 5):
        delete_entry(actor=alice.actor, namespace="many", key=f"k{number}")
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(entry_list, "_WINDOW", window)
    page = shown(admin, f"/state?namespace=many&{query}")
    assert re.findall(r'role="status">([^<]*)', page)[-1] == count


@pytest.mark.parametrize(
    ("query", "most", "count"),
    [
        ("text=number", 4, "4 entries"),
        ("text=number", 3, "3+ entries"),
        ("show=invalid", 9, "4 entries"),
        ("show=invalid", 3, "3+ entries"),
        ("show=invalid&text=number", 9, "4 entries"),
    ],
)
def test_count__rows_that_must_be_read__are_counted_up_to_a_limit(
    query: str,
    most: int,
    count: str,
    admin: Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_namespace(alice.actor, "many")
    for number in range(4):
        put(alice.actor, "many", f"k{number}", f"number {number}")
    make_namespace(alice.actor, "many", {"type": "number"}, 0)
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(entry_list, "_MOST_COUNTED", most)
    page = shown(admin, f"/state?namespace=many&{query}")
    assert re.findall(r'role="status">([^<]*)', page)[-1] == count


def test_texts__large_values__are_read_in_part_or_not_at_all(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "big")
    for key, size in {"a": 10, "b": 20_000, "c": 30_000, "d": 20_000}.items():
        put(alice.actor, "big", key, key * size)
    lines = entry_page(alice.actor, EntryFilter("big"), limit=9)
    texts = entry_texts([line.id for line in lines])
    assert [len(texts[line.id].text or "") for line in lines] == [12, 2000, 2000, 2000]
    assert [texts[line.id].whole for line in lines] == [True, False, False, False]
    statement = browsing._TEXTS.replace(str(browsing._MOST_UNPACKED), "45000")
    monkeypatch.setattr(browsing, "_TEXTS", statement)
    texts = entry_texts([line.id for line in lines])
    assert [texts[line.id].text is None for line in lines] == [False, False, True, False]


def test_list__secret_of_a_config_record__is_not_in_any_column(
    admin: Client, alice: Person
) -> None:
    record = {"adapter": "openai", "api_key": "canary-of-the-table"}
    make_record(alice.actor, "providers", "openai", record)
    for query in ("namespace=config.providers", "columns=/api_key,value", "text=openai"):
        page = shown(admin, f"/state?{query}")
        assert "openai" in page
        assert "canary" not in page


def test_list__hostile_members__are_escaped(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "evil", schema={})
    for number, text in enumerate(HOSTILE):
        put(alice.actor, "evil", f"k{number}", {text: text, "m": text})
    page = shown(admin, "/state?namespace=evil")
    assert "<script>alert" not in page
    assert "<img" not in page


def test_list__many_columns_of_long_texts__is_small(admin: Client, alice: Person) -> None:
    names = [f"member {number:02}" for number in range(10)]
    schema = {"properties": {name: {"type": "string"} for name in names}}
    make_namespace(alice.actor, "wide", schema=schema, default={})
    for number in range(50):
        put(alice.actor, "wide", f"key {number} " + "k" * 80, dict.fromkeys(names, "&<" * 500))
    columns = ",".join(f"/{name}" for name in names)
    response = admin.get("/state", {"namespace": "wide", "columns": columns})
    assert len(response.content) < LIMIT_KB * 1024


@pytest.mark.usefixtures("plans")
def test_pane__open_entry__is_a_part_of_its_page(admin: Client) -> None:
    page = shown(admin, "/state?namespace=plans&open=plans/a")
    assert 'hx-get="/state/plans/a" hx-trigger="load"' in page
    assert admin.get("/state?open=plans").status_code == 400
    htmx = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "section#entry-pane"}
    part = admin.get("/state/plans/a", headers=htmx).content.decode()
    assert "Ship &lt;it&gt;" in part
    assert "data-edit" in part
    assert "<html" not in part


CELL = "/entry/cell/plans/a"
LIST = {"columns": "key,/goal,/stage", "list_namespace": "plans", "back": "/state?namespace=plans"}
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "tr"}


def save(client: Client, member: str, typed: str, version: int = 1) -> tuple[int, str]:
    data = {"member": member, "typed": typed, "version": version, **LIST}
    response = client.post(CELL, data, headers=HTMX)
    return response.status_code, html.unescape(response.content.decode())


def stored(alice: Person, key: str = "a") -> object:
    entry = read_entry(actor=alice.actor, namespace="plans", key=key)
    return json.loads(entry.value)


@pytest.mark.usefixtures("plans")
def test_cell__form__has_the_value_the_version_and_the_choices(admin: Client) -> None:
    form = admin.get(CELL, {"member": "/stage", **LIST}, headers=HTMX).content.decode()
    assert form.strip().startswith("<tr")
    assert 'name="version" value="1"' in form
    assert '<option value="&quot;open&quot;" selected>open</option>' in form
    row = admin.get(CELL, LIST, headers=HTMX).content.decode()
    assert "<form" not in row
    assert "Ship &lt;it&gt;" in row


def test_cell__saved__writes_one_member_and_can_be_undone(
    admin: Client, alice: Person, plans: None
) -> None:
    status, row = save(admin, "/goal", "Sail")
    assert (status, "<form" in row, "Sail" in row) == (200, False, True)
    assert 'value="2 plans/a"' in row
    before = {"goal": "Ship <it>", "steps": ["a"], "price, net": 1.5, "stage": "open", "x": 1}
    assert stored(alice) == before | {"goal": "Sail"}
    page = admin.get("/state?namespace=plans").content.decode()
    assert "/entry/undo/plans/a" not in page  # the toast came with the row
    undo = {"written": 2, "before": 1, "back": "/state?namespace=plans"}
    assert admin.post("/entry/undo/plans/a", undo)["Location"] == "/state?namespace=plans"
    assert stored(alice) == before


@pytest.mark.parametrize(
    ("member", "typed", "message"),
    [
        ("/price~2 net", "cheap", "must be a number"),
        ("/stage", '"closed"', "Must be one of the choices"),
        ("/steps", "[1", "expecting"),
        ("/x", "one", "must be a number"),
    ],
)
def test_cell__invalid_value__is_explained_at_the_cell(
    member: str, typed: str, message: str, admin: Client, alice: Person, plans: None
) -> None:
    data = {"member": member, "typed": typed, "version": 1, **LIST, "columns": f"key,{member}"}
    response = admin.post(CELL, data, headers=HTMX)
    page = html.unescape(response.content.decode())
    assert response.status_code == 422
    assert message.lower() in page.partition('class="error"')[2].partition("</p>")[0].lower()
    assert 'aria-invalid="true"' in page
    assert "Ship <it>" in json.dumps(stored(alice))


def test_cell__schema_refuses__is_explained_at_the_cell(admin: Client, alice: Person) -> None:
    schema = {"properties": {"goal": {"type": "string", "minLength": 3}}, "required": ["goal"]}
    make_namespace(alice.actor, "plans", schema=schema, default={"goal": "none"})
    put(alice.actor, "plans", "a", {"goal": "Ship"})
    status, row = save(admin, "/goal", "x")
    assert status == 422
    assert 'value="x"' in row
    assert "shorter than 3" in row
    assert save(admin, "/goal", "")[0] == 422
    assert stored(alice) == {"goal": "Ship"}


def test_cell__written_meanwhile__offers_both_versions(
    admin: Client, alice: Person, plans: None
) -> None:
    put(alice.actor, "plans", "a", {"goal": "Theirs"})
    status, row = save(admin, "/goal", "Mine")
    assert status == 409
    assert "alice wrote version 2 in the meantime. It has: Theirs" in row
    assert "Overwrite" in row
    assert 'name="version" value="2"' in row
    assert stored(alice) == {"goal": "Theirs"}
    assert save(admin, "/goal", "Mine", version=2)[0] == 200
    assert save(admin, "/goal", "", version=3)[0] == 200
    assert stored(alice) == {"goal": ""}
    assert save(admin, "/goal", "  ", version=4)[0] == 200
    assert stored(alice) == {"goal": "  "}


def test_cell__viewer_config_and_other_workspace__are_refused(
    admin: Client, viewer: Client, stranger: Client, alice: Person, plans: None
) -> None:
    assert "data-cells" not in shown(viewer, "/state?namespace=plans")
    assert save(viewer, "/goal", "x")[0] == 403
    assert save(stranger, "/goal", "x")[0] in (403, 404)
    make_record(alice.actor, "providers", "openai", {"adapter": "openai"})
    assert "data-cells" not in shown(admin, "/state?namespace=config.providers")
    data = {"member": "/adapter", "typed": "x", "version": 1, **LIST}
    assert admin.post("/entry/cell/config.providers/openai", data, headers=HTMX).status_code >= 400
    assert save(admin, "", "x")[0] == 400
    assert admin.get("/entry/cell/plans/none", LIST, headers=HTMX).status_code == 404


@pytest.mark.parametrize("names", ["x", "xy"])
def test_cell__nullable_object__is_edited_as_json(names: str, admin: Client, alice: Person) -> None:
    parts = {name: {"type": "integer"} for name in names}
    nested = {"type": ["object", "null"], "properties": parts}
    make_namespace(alice.actor, "plans", schema={"properties": {"a": nested}}, default={})
    put(alice.actor, "plans", "a", {"a": {"x": 1}})
    assert save(admin, "/a", '{"x": 2}')[0] == 200
    assert stored(alice) == {"a": {"x": 2}}
    assert save(admin, "/a", "null", version=2)[0] == 200
    assert stored(alice) == {"a": None}


def test_rows__of_one_namespace__have_headings_by_scope(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    for key in ("agent_type::a", "agent_type::b", "global", "thread::t1"):
        put(alice.actor, "notes", key, {"goal": key})
    make_namespace(alice.actor, "other")
    put(alice.actor, "other", "global", 1)

    def groups(query: str) -> list[str]:
        page = shown(admin, f"/state{query}")
        return re.findall(r'scope="rowgroup">([^<]+)<', page)

    assert groups("?namespace=notes") == ["agent_type", "global", "thread"]
    assert groups("?namespace=notes&scope=agent_type") == []
    assert groups("?namespace=other") == []
    assert groups("?namespace=notes&text=goal") == []  # the newest first
    assert groups("") == []
