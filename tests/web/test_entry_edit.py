"""Editing an entry: saved, refused, in conflict, undone."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from typing import Any

import pytest
from django.test import Client

from state_admin.models import AuditRow, EntryRevision
from state_admin.services.entries import delete_entry, put_entry
from state_admin.services.entry_views import EntryView, read_entry
from state_admin.web import entry_edit
from tests.builders import TEAM_SCHEMA, Person, make_namespace, put

EDIT = "/entry/edit/team/global"


@pytest.fixture
def team(alice: Person) -> EntryView:
    make_namespace(alice.actor, "team", schema=TEAM_SCHEMA, default={"goal": ""})
    value = {"goal": "ship", "count": 1, "constraints": ["eu"]}
    return put(alice.actor, "team", "global", value, tags=["vip"], pinned=True)


def stored(alice: Person, key: str = "global") -> EntryView:
    return read_entry(actor=alice.actor, namespace="team", key=key)


def save(client: Client, value: Any, base: int, **fields: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    data = {"value": text, "base": base, "lifetime": "keep", "tags": "vip", "pinned": "on"}
    return client.post(fields.pop("path", EDIT), data | fields)


def undo_fields(client: Client, path: str) -> tuple[str, dict[str, str]]:
    """The fields that the Undo button on the page at `path` posts."""
    page = client.get(path).content.decode()
    form = re.search(r'<form method="post" action="([^"]+)" data-undo>(.*?)</form>', page, re.S)
    assert form, page
    fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form[2])
    return unescape(form[1]), {n: unescape(v) for n, v in fields if n != "csrfmiddlewaretoken"}


def test_edit__valid__writes_with_reason_and_keeps_spelling(
    admin: Client, alice: Person, team: EntryView
) -> None:
    text = '{\r\n  "goal": "ship",\r\n  "count": 10000000000000000000000001\r\n}'
    response = save(admin, text, team.version, reason="because", tags="vip, eu ,vip")
    assert response.status_code == 302
    assert response["Location"] == "/state/team/global"
    now = stored(alice)
    assert now.value == '{"goal":"ship","count":10000000000000000000000001}'
    assert list(now.tags) == ["vip", "eu"]
    history = admin.get("/state/team/global?tab=history").content.decode()
    assert "because" in history


def test_edit__nothing_changed__writes_nothing(
    admin: Client, alice: Person, team: EntryView
) -> None:
    save(admin, '{ "goal": "ship", "count": 1, "constraints": ["eu"] }', team.version)
    assert stored(alice).version == team.version
    assert b"No changes" in admin.get("/state/team/global").content


def test_edit__invalid_value__is_located_and_the_text_is_kept(
    admin: Client, alice: Person, team: EntryView
) -> None:
    text = '{\n  "goal": "ship",\n  "count": "many"\n}'
    response = save(admin, text, team.version)
    page = response.content.decode()
    assert response.status_code == 422
    assert "line 3" in page
    assert "<code>/count</code>" in page
    assert "&quot;many&quot;" in page
    assert stored(alice).version == team.version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "The value is not valid JSON"),
        ("", "The value is not valid JSON"),
        ('{"goal": 1, "goal": 2}', "twice"),
        ('{"goal": "\\u0000"}', "NUL"),
        ("1e999", "outside the range"),
        ("[" * 80 + "]" * 80, "too deep"),
    ],
)
def test_edit__text_that_cannot_be_stored__states_the_reason(
    text: str, said: str, admin: Client, team: EntryView
) -> None:
    response = save(admin, text, team.version)
    assert response.status_code == 422
    assert said in response.content.decode()


@pytest.mark.parametrize("ttl", ["", "0", "-1", "1.5", "ten", "9" * 30])
def test_edit__invalid_lifetime__is_refused(ttl: str, admin: Client, team: EntryView) -> None:
    response = save(admin, {"goal": "x"}, team.version, lifetime="seconds", ttl=ttl)
    assert response.status_code == 422
    assert b"lifetime" in response.content


def test_edit__keep_lifetime__keeps_the_expiry(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team", ttl_seconds=10)
    before = put(alice.actor, "team", "global", 1, ttl_seconds=5000)
    save(admin, "2", before.version)
    now = stored(alice)
    assert now.expires_at
    assert before.expires_at
    assert abs((now.expires_at - before.expires_at).total_seconds()) < 3


def test_edit__concurrent_write__shows_base_theirs_mine(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "theirs", "count": 2, "constraints": ["eu"]})
    response = save(admin, {"goal": "mine", "count": 1, "constraints": ["us"]}, team.version)
    page = response.content.decode()
    assert response.status_code == 409
    assert stored(alice).version == 2
    assert "You started from version 1; alice wrote version 2" in page
    clashes = page[page.index('class="clashes"') : page.index("</table>")]
    assert re.findall(r'"mono">(/[^<]*)<', clashes) == ["/goal"]
    assert re.findall(r'<div class="mono">([^<]*)</div>', clashes) == [
        "&quot;ship&quot;",
        "&quot;theirs&quot;",
        "&quot;mine&quot;",
    ]
    assert page.count("not saved") == 1
    assert "{&quot;goal&quot;: &quot;mine&quot;" in page
    marks = json.loads(unescape(re.findall(r'data-marks="([^"]*)"', page)[0]))
    assert [(mark["pointer"], mark["clash"]) for mark in marks] == [("/goal", True)]
    merged = re.search(r'<textarea class="editor"[^>]*>\n(.*?)</textarea>', page, re.S)
    assert merged
    value = json.loads(merged[1].replace("&quot;", '"'))
    assert value == {"goal": "theirs", "count": 2, "constraints": ["us"]}


def test_edit__merged_conflict__is_stored_on_theirs(
    admin: Client, alice: Person, team: EntryView
) -> None:
    theirs = put(alice.actor, "team", "global", {"goal": "theirs"})
    assert save(admin, {"goal": "mine"}, team.version).status_code == 409
    assert save(admin, {"goal": "both"}, theirs.version).status_code == 302
    assert stored(alice).value == '{"goal":"both"}'


@pytest.mark.parametrize(
    ("choices", "value", "words"),
    [
        (("theirs", "yours"), {"goal": "theirs", "tag": "m"}, "mine at /tag; theirs at /goal"),
        (("yours", "theirs"), {"goal": "mine"}, "mine at /goal; theirs at /tag"),
        (("edited", "yours"), {"goal": "theirs", "tag": "m"}, "mine at /tag; theirs at /goal"),
    ],
)
def test_edit__conflicts__are_saved_as_chosen(
    admin: Client,
    alice: Person,
    choices: tuple[str, str],
    value: object,
    words: str,
) -> None:
    make_namespace(alice.actor, "free")
    put(alice.actor, "free", "two", {"goal": "ship", "tag": "a"})
    put(alice.actor, "free", "two", {"goal": "theirs"})
    path = "/entry/edit/free/two"
    page = save(admin, {"goal": "mine", "tag": "m"}, 1, path=path).content.decode()
    clashes = conflicts_of(page)
    assert page.count('<input type="radio"') == 6
    assert page.count("<mark>&quot;mine&quot;</mark>") == 1
    kept = {f"keep-{number}": choice for number, choice in enumerate(choices)}
    unchosen = save(admin, {"goal": "theirs"}, 2, path=path, clash=clashes)
    assert unchosen.status_code == 409
    assert "Choose theirs, mine or the edited value" in unchosen.content.decode()
    assert save(admin, {"goal": "theirs"}, 2, path=path, clash=clashes, **kept).status_code == 302
    assert f"Saved version 3. Kept {words}" in admin.get("/state/free/two").content.decode()
    assert json.loads(read_entry(actor=alice.actor, namespace="free", key="two").value) == value


def conflicts_of(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'name="clash" value="([^"]*)"', page)]


def test_edit__parent_of_a_conflict_removed_by_hand__counts_as_edited(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "free")
    put(alice.actor, "free", "k", {"a": {"b": 1, "c": 1}})
    put(alice.actor, "free", "k", {"a": {"c": 1}})
    path = "/entry/edit/free/k"
    page = save(admin, {"a": {"b": 2, "c": 1}}, 1, path=path).content.decode()
    choice = {"clash": conflicts_of(page), "keep-0": "yours"}
    assert save(admin, {}, 2, path=path, **choice).status_code == 302
    assert read_entry(actor=alice.actor, namespace="free", key="k").value == "{}"
    assert "Kept the edited value at /a/b" in admin.get("/state/free/k").content.decode()


@pytest.mark.parametrize("removed", [False, True])
def test_edit__items_moved_by_hand__are_not_overwritten_by_a_choice(
    admin: Client, alice: Person, removed: bool
) -> None:
    def items(*words: str) -> list[dict[str, Any]]:
        return [{"id": number, "status": word} for number, word in enumerate(words)]

    make_namespace(alice.actor, "free")
    put(alice.actor, "free", "k", items("a", "open", "done"))
    theirs = items("a", "done", "done")
    put(alice.actor, "free", "k", theirs)
    path = "/entry/edit/free/k"
    page = save(admin, items("a", "late", "done"), 1, path=path).content.decode()
    choice = {"clash": conflicts_of(page), "keep-0": "yours"}
    typed = theirs[1:] if removed else theirs
    assert save(admin, typed, 2, path=path, **choice).status_code == 302
    stored = read_entry(actor=alice.actor, namespace="free", key="k").value
    assert json.loads(stored) == (typed if removed else items("a", "late", "done"))
    kept = "the edited value" if removed else "mine"
    assert f"Kept {kept} at /1/status" in admin.get("/state/free/k").content.decode()


@pytest.mark.parametrize("count", [100, 101, 3000])
def test_edit__many_conflicts__have_choices_up_to_a_hundred(
    admin: Client, alice: Person, count: int
) -> None:
    def members(value: int) -> dict[str, int]:
        return {f"k{number}": value for number in range(count)}

    make_namespace(alice.actor, "free")
    for value in (1, 2):
        put(alice.actor, "free", "k", members(value))
    path = "/entry/edit/free/k"
    start = time.monotonic()
    page = save(admin, members(3), 1, path=path).content.decode()
    assert time.monotonic() - start < 5
    assert len(conflicts_of(page)) == (count if count == 100 else 0)
    assert ("too many to choose a value for each" in page) == (count > 100)
    assert page.count("<mark>") == (300 if count == 100 else 0)
    assert "&quot;base&quot;" not in "".join(re.findall(r'name="clash" value="[^"]*"', page))
    assert page.count("Save mine over theirs") == page.count("Discard mine") == 1
    choices = {f"keep-{number}": "yours" for number in range(count)} if count == 100 else {}
    sent = save(admin, members(2), 2, path=path, clash=conflicts_of(page), **choices)
    assert sent.status_code == 302


def test_edit__conflict_in_an_item__is_marked_at_its_index_in_each_value(
    admin: Client, alice: Person, team: EntryView
) -> None:
    steps = {"goal": "ship", "count": 1, "constraints": ["new", "eu soon"]}
    put(alice.actor, "team", "global", steps)
    page = save(admin, {**steps, "constraints": ["in asia"]}, 1).content.decode()
    assert re.findall("<mark>&quot;(.*?)&quot;</mark>", page) == ["eu", "eu soon", "in asia"]


def test_edit__deleted_meanwhile__is_a_conflict(
    admin: Client, alice: Person, team: EntryView
) -> None:
    delete_entry(actor=alice.actor, namespace="team", key="global")
    response = save(admin, {"goal": "mine"}, team.version)
    assert response.status_code == 409
    page = response.content.decode()
    assert "the entry has been deleted since" in page
    assert "Save to create the entry again with your value" in page
    assert '<input type="hidden" name="base" value="0">' in page
    assert save(admin, {"goal": "mine"}, 0).status_code == 302


def test_edit__base_was_removed__reports_it_and_compares_two_sides(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "theirs", "count": 2})
    EntryRevision.objects.filter(version=team.version).delete()
    response = save(admin, {"goal": "mine", "count": 2}, team.version)
    page = response.content.decode()
    assert response.status_code == 409
    assert "Version 1 is no longer in the history, so the changes cannot be merged" in page
    assert re.findall(r'<pre tabindex="0" aria-label="(\w+)">', page) == ["Theirs", "Mine"]
    assert "the default" not in page
    assert 'class="clashes"' not in page
    differences = page[page.index('class="diff"') : page.index("</table>")]
    assert re.findall(r'<td class="path">([^<]*)</td>', differences) == ["/goal"]
    assert re.findall(r"<(del|ins)>([^<]*)<", differences) == [
        ("del", "&quot;theirs&quot;"),
        ("ins", "&quot;mine&quot;"),
    ]
    edited = re.search(r'<textarea class="editor"[^>]*>\n(.*?)</textarea>', page, re.S)
    assert edited
    assert json.loads(unescape(edited[1])) == {"goal": "mine", "count": 2}
    assert page.count("Save mine over theirs") == 1
    assert save(admin, {"goal": "mine", "count": 2}, 2).status_code == 302


def test_edit__conflict__shows_the_sides_at_the_refusal_and_not_later_ones(
    admin: Client, alice: Person, team: EntryView, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(alice.actor, "team", "global", {"goal": "refused over"})

    def refuse_and_move(**write: Any) -> Any:
        try:
            return put_entry(**write)
        finally:
            put(alice.actor, "team", "global", {"goal": "later still"})

    monkeypatch.setattr(entry_edit, "put_entry", refuse_and_move)
    page = save(admin, {"goal": "mine"}, team.version).content.decode()
    assert "alice wrote version 2" in page
    assert "refused over" in page
    assert "later still" not in page
    monkeypatch.undo()
    assert save(admin, {"goal": "both"}, 2).status_code == 409, "the page guards what it showed"


def test_edit__conflict__has_the_conflicts_of_the_api(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "theirs", "count": 1, "constraints": ["eu", "x"]})
    mine = {"goal": "mine", "count": 1, "constraints": ["eu", "y", "z"]}
    told = alice.api("PUT", "/state/team/global", {"value": mine}, If_Match='"1"').json()
    page = save(admin, mine, 1).content.decode()
    clashes = page[page.index('class="clashes"') : page.index("</table>")]
    pointers = re.findall(r'"mono">(/[^<]*)<', clashes)
    assert pointers == [clash["pointer"] for clash in told["clashes"]] == ["/goal", "/constraints"]


def test_create__created_concurrently__starts_from_the_default(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "thread::new", {"goal": "theirs"})
    path = "/entry/edit/team/thread::new"
    page = save(admin, {"goal": "", "count": 1}, 0, path=path).content.decode()
    assert "the default" in page
    assert "No conflicts" in page
    merged = re.search(r'<textarea class="editor"[^>]*>\n(.*?)</textarea>', page, re.S)
    assert merged
    assert json.loads(unescape(merged[1])) == {"goal": "theirs", "count": 1}


def test_create__missing__writes_once(admin: Client, alice: Person, team: EntryView) -> None:
    path = "/entry/edit/team/thread::new"
    assert b"Create" in admin.get(path).content
    assert save(admin, {"goal": "a"}, 0, path=path).status_code == 302
    assert stored(alice, "thread::new").version == 1
    assert save(admin, {"goal": "b"}, 0, path=path).status_code == 409


def check(client: Client, text: str, path: str = "/entry/check/team/global") -> Any:
    return client.post(path, {"value": text})


def test_check__error_positions__are_in_utf16_and_nothing_is_written(
    admin: Client, alice: Person, team: EntryView
) -> None:
    before = AuditRow.objects.count()
    text = '{\n  "constraints": ["\U0001f680"],\n  "count": "many"\n}'
    told = check(admin, text.replace("\n", "\r\n")).json()
    assert told["message"] == "The value does not satisfy the schema of team"
    (error,) = told["errors"]
    assert (error["pointer"], error["line"]) == ("/count", 3)
    sent = text.encode("utf-16-le")
    assert sent[2 * error["start"] : 2 * error["end"]].decode("utf-16-le") == '"many"'
    assert check(admin, '{"goal": "fine"}').json() == {"message": "", "errors": []}
    assert AuditRow.objects.count() == before
    assert stored(alice).version == team.version


@pytest.mark.parametrize(
    ("text", "line", "start"),
    [('{"goal": }', 1, 9), ('\n\n {"goal":\n tru}', 4, 13), ('["a"', 1, 4)],
)
def test_check__not_json__is_located(
    text: str, line: int, start: int, admin: Client, team: EntryView
) -> None:
    told = check(admin, text).json()
    assert told["message"] == "The value is not valid JSON"
    (error,) = told["errors"]
    assert (error["line"], error["start"]) == (line, start)
    assert "char" not in error["message"]


@pytest.mark.parametrize("text", ["", "NaN", "[" * 300, '{"a": 1, "a": 2}', "1e999"])
def test_check__text_that_cannot_be_stored__is_reported(
    text: str, admin: Client, team: EntryView
) -> None:
    response = check(admin, text)
    assert response.status_code == 200
    assert response.json()["errors"]


def test_presence__another_editor__is_shown_after_a_heartbeat(
    admin: Client, editor: Client, team: EntryView
) -> None:
    editor.get(EDIT)
    beat = "/entry/presence/team/global"
    assert b"banner" not in admin.post(beat).content
    assert b"alice</strong> has been editing this" in editor.post(beat).content
    assert admin.get(beat).status_code == 405


def test_new__namespace_and_key__redirects_to_the_editor(admin: Client, team: EntryView) -> None:
    response = admin.get("/entries/new", {"namespace": "team", "at": "a/b c"})
    assert response["Location"] == "/entry/edit/team/a%2Fb%20c"
    bad = admin.get("/entries/new", {"namespace": "team", "at": "x" * 513})
    assert bad.status_code == 422
    assert b"1 to 512 bytes" in bad.content


def test_undo__edit__restores_the_previous_value(
    admin: Client, alice: Person, team: EntryView
) -> None:
    save(admin, {"goal": "oops"}, team.version)
    url, fields = undo_fields(admin, "/state/team/global")
    admin.post(url, fields)
    assert stored(alice).value == team.value
    assert stored(alice).version == 3


def test_undo__edit__restores_tags_pin_and_expiry(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    tags = ["old", 'a "quoted" <tag>']
    before = put(alice.actor, "team", "global", 1, ttl_seconds=3600, tags=tags)
    save(admin, "2", before.version, tags="new", lifetime="default")
    edited = stored(alice)
    assert (edited.tags, edited.pinned, edited.expires_at) == (["new"], True, None)
    url, fields = undo_fields(admin, "/state/team/global")
    admin.post(url, fields)
    now = stored(alice)
    assert (now.value, now.tags, now.pinned) == ("1", tags, False)
    assert now.expires_at
    assert before.expires_at
    assert abs((now.expires_at - before.expires_at).total_seconds()) < 60
    (made,) = AuditRow.objects.filter(action="entry.restore")
    assert made.reason == "undo of version 2"


def test_undo__edit_of_an_entry_without_expiry__removes_the_expiry(
    admin: Client, alice: Person
) -> None:
    before = put_before_the_namespace_expires_all(alice)
    save(admin, "2", before.version, lifetime="seconds", ttl="60")
    assert stored(alice).expires_at
    admin.post(*undo_fields(admin, "/state/team/global"))
    assert (stored(alice).value, stored(alice).expires_at) == ("1", None)


def test_edit__keep_no_lifetime__never_expires(admin: Client, alice: Person) -> None:
    before = put_before_the_namespace_expires_all(alice)
    save(admin, "2", before.version)
    assert (stored(alice).value, stored(alice).expires_at) == ("2", None)


def put_before_the_namespace_expires_all(alice: Person) -> EntryView:
    make_namespace(alice.actor, "team")
    before = put(alice.actor, "team", "global", 1)
    make_namespace(alice.actor, "team", ttl_seconds=600)
    return before


def test_undo__restore__restores_tags_pin_and_expiry(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "global", 1, tags=["old"])
    before = put(alice.actor, "team", "global", 2, ttl_seconds=3600, tags=["new"], pinned=True)
    admin.post("/entry/restore/team/global", {"version": 1, "expected_version": 2})
    restored = stored(alice)
    assert (restored.value, restored.expires_at) == ("1", before.expires_at)
    admin.post(*undo_fields(admin, "/state/team/global"))
    now = stored(alice)
    assert (now.value, now.tags, now.pinned) == ("2", ["new"], True)
    assert now.expires_at
    assert before.expires_at
    assert abs((now.expires_at - before.expires_at).total_seconds()) < 60


@pytest.mark.parametrize(
    "tags", ["[", "{}", "[1]", '["' + "x" * 65 + '"]', '["\\u0000"]', json.dumps(["t"] * 33)]
)
def test_undo__invalid_tags__writes_nothing(
    tags: str, admin: Client, alice: Person, team: EntryView
) -> None:
    save(admin, {"goal": "oops"}, team.version)
    url, fields = undo_fields(admin, "/state/team/global")
    assert admin.post(url, fields | {"tags": tags}).status_code in (400, 422)
    assert stored(alice).version == 2


def test_undo__written_since__is_refused(admin: Client, alice: Person, team: EntryView) -> None:
    save(admin, {"goal": "oops"}, team.version)
    url, fields = undo_fields(admin, "/state/team/global")
    put(alice.actor, "team", "global", {"goal": "later"})
    admin.post(url, fields)
    assert json.loads(stored(alice).value) == {"goal": "later"}
    assert b"Not undone" in admin.get("/state/team/global").content


def test_undo__creation__deletes(admin: Client, alice: Person, team: EntryView) -> None:
    save(admin, {"goal": "a"}, 0, path="/entry/edit/team/thread::new")
    url, fields = undo_fields(admin, "/state/team/thread::new")
    admin.post(url, fields)
    assert not stored(alice, "thread::new").exists


def test_delete__confirmed__undo_restores_value_tags_and_pin(
    admin: Client, alice: Person, team: EntryView
) -> None:
    question = admin.get("/entry/delete/team/global").content.decode()
    assert "Version 1 of team/global" in question
    assert 'name="reason"' in question
    admin.post("/entry/delete/team/global", {"expected_version": 1, "reason": "not needed"})
    assert not stored(alice).exists
    url, fields = undo_fields(admin, "/state/team/global")
    admin.post(url, fields)
    now = stored(alice)
    assert (now.value, list(now.tags), now.pinned) == (team.value, ["vip"], True)


def test_delete__undo_after_another_write__is_refused(
    admin: Client, alice: Person, team: EntryView
) -> None:
    admin.post("/entry/delete/team/global", {"expected_version": 1})
    url, fields = undo_fields(admin, "/state/team/global")
    put(alice.actor, "team", "global", {"goal": "new life"})
    delete_entry(actor=alice.actor, namespace="team", key="global")
    admin.post(url, fields)
    assert not stored(alice).exists


def test_delete__changed_since_shown__does_nothing(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "newer"})
    admin.post("/entry/delete/team/global", {"expected_version": 1})
    assert stored(alice).exists
    assert b"Nothing was done" in admin.get("/state/team/global").content


def test_restore__old_version__writes_it_again(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "worse"})
    question = admin.get("/entry/restore/team/global?version=1").content.decode()
    assert "/constraints" in question
    admin.post("/entry/restore/team/global", {"version": 1, "expected_version": 2})
    assert stored(alice).value == team.value
    assert stored(alice).version == 3


def test_htmx__save__shows_the_entry_in_place(admin: Client, team: EntryView) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#entry"}
    data = {"value": '{"goal": "x"}', "base": 1, "lifetime": "keep"}
    response = admin.post(EDIT, data, headers=headers)
    assert json.loads(response["HX-Location"]) == {
        "path": "/state/team/global",
        "target": "#entry",
        "swap": "outerHTML show:top",
    }
    part = admin.get("/state/team/global", headers=headers)
    (toast,) = json.loads(part["HX-Trigger"])["toast"]["toasts"]
    assert toast["text"] == "Saved version 2"
    fields = {"written": 2, "before": 1, "tags": '["vip"]', "pinned": 1}
    assert toast["undo"]["fields"] == fields


@pytest.mark.parametrize("action", ["edit", "delete", "restore", "undo", "check", "presence"])
def test_write__viewer__is_refused(
    action: str, viewer: Client, alice: Person, team: EntryView
) -> None:
    data = {"value": "1", "base": 1, "expected_version": 1, "version": 1, "written": 1}
    assert viewer.post(f"/entry/{action}/team/global", data).status_code == 403
    assert stored(alice).version == team.version


@pytest.mark.parametrize("action", ["edit", "delete", "restore", "undo", "check", "presence"])
def test_write__other_workspace__looks_absent(
    action: str, stranger: Client, alice: Person, team: EntryView
) -> None:
    data = {"value": "1", "base": 1, "expected_version": 1, "version": 1, "written": 1}
    assert stranger.post(f"/entry/{action}/team/global", data).status_code == 404
    assert stored(alice).version == team.version


def test_write__without_csrf_token__is_refused(alice: Person, team: EntryView) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user)
    assert client.post(EDIT, {"value": "1", "base": 1}).status_code == 403
    assert stored(alice).version == team.version
