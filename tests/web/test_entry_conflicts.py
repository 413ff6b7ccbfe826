"""Conflicts of an edit with another write: the page, and the choices that are saved."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from typing import Any

import pytest
from django.test import Client

from state_admin.models import EntryRevision
from state_admin.services.entries import delete_entry, put_entry
from state_admin.services.entry_views import EntryView, read_entry
from state_admin.web import entry_edit
from tests.builders import Person, make_namespace, put
from tests.web.test_entry_edit import save, stored, team

__all__ = ["team"]


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
    assert "Choose a value for each conflict" in unchosen.content.decode()
    assert save(admin, {"goal": "theirs"}, 2, path=path, clash=clashes, **kept).status_code == 302
    assert f"Saved version 3. Kept {words}" in admin.get("/state/free/two").content.decode()
    assert json.loads(read_entry(actor=alice.actor, namespace="free", key="two").value) == value


@pytest.mark.parametrize(
    ("choice", "value", "words"),
    [
        ("both", ["a", "theirs", "mine", "b", "c"], "both at /steps"),
        ("yours", ["a", "mine", "b"], "mine at /steps"),
        ("theirs", ["a", "theirs", "b", "c"], "theirs at /steps"),
    ],
)
def test_edit__inserts_at_one_place__can_both_be_kept(
    admin: Client, alice: Person, choice: str, value: list[str], words: str
) -> None:
    make_namespace(alice.actor, "free")
    put(alice.actor, "free", "k", {"steps": ["a", "b"]})
    put(alice.actor, "free", "k", {"steps": ["a", "theirs", "b", "c"]})
    path = "/entry/edit/free/k"
    page = save(admin, {"steps": ["a", "mine", "b"]}, 1, path=path).content.decode()
    assert page.count("Keep both, theirs first") == 1
    text, clashes = {"steps": ["a", "theirs", "b", "c"]}, conflicts_of(page)
    for side in ("both", choice):  # a choice can be taken back
        fields = {"value": json.dumps(text), "clash": clashes, "keep-0": side}
        found = admin.post("/entry/check/free/k", fields).json()
        text, clashes = json.loads(found["value"]), found["clashes"]
        assert found["kept"] == [side]
    assert text == {"steps": value}
    assert save(admin, text, 2, path=path, clash=clashes, **{"keep-0": choice}).status_code == 302
    assert f"Kept {words}" in admin.get("/state/free/k").content.decode()


def test_edit__conflict_without_inserts__offers_no_both(admin: Client, team: EntryView) -> None:
    save(admin, {"goal": "theirs"}, team.version)
    page = save(admin, {"goal": "mine"}, team.version).content.decode()
    assert "Keep theirs" in page
    assert "Keep both" not in page


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


def tasks(**status: str) -> list[dict[str, str]]:
    return [{"id": name, "status": word} for name, word in status.items()]


@pytest.fixture
def removed(admin: Client, alice: Person) -> str:
    """The conflict page of a list: they removed b and d, and changed a and c; I changed b, c and d, and
    removed a. The merged value has all of them, in order."""
    make_namespace(alice.actor, "free")
    put(alice.actor, "free", "k", tasks(a="1", b="1", c="1", d="1", e="1"))
    put(alice.actor, "free", "k", tasks(a="2", c="2", e="1"))
    mine = tasks(b="3", c="3", d="3", e="1")
    return save(admin, mine, 1, path="/entry/edit/free/k").content.decode()


MERGED = tasks(a="2", b="3", c="2", d="3", e="1")


@pytest.mark.parametrize(
    ("choices", "value"),
    [
        (("theirs",) * 4, tasks(a="2", c="2", e="1")),
        (("yours",) * 4, tasks(b="3", c="3", d="3", e="1")),
        (("yours", "theirs", "yours", "theirs"), tasks(c="3", e="1")),
        (("theirs", "yours", "theirs", "yours"), MERGED),
        (("yours", "edited", "edited", "theirs"), tasks(b="3", c="2", e="1")),
    ],
)
def test_edit__items_removed_and_changed__are_chosen_one_by_one(
    admin: Client, alice: Person, removed: str, choices: tuple[str, ...], value: object
) -> None:
    path, clashes = "/entry/edit/free/k", conflicts_of(removed)
    assert [json.loads(clash)["pointer"] for clash in clashes] == ["/0", "/1", "/2/status", "/3"]
    kept = {f"keep-{number}": choice for number, choice in enumerate(choices)}
    assert save(admin, MERGED, 2, path=path, clash=clashes, **kept).status_code == 302
    assert json.loads(read_entry(actor=alice.actor, namespace="free", key="k").value) == value


def test_check__items_removed_and_changed__choices_can_be_taken_back(
    admin: Client, removed: str
) -> None:
    text, clashes = json.dumps(MERGED), conflicts_of(removed)

    def choose(**kept: str) -> Any:
        nonlocal text, clashes
        fields = {f"keep-{name[1:]}": side for name, side in kept.items()}
        answer = admin.post("/entry/check/free/k", {"value": text, "clash": clashes, **fields})
        found = answer.json()
        text, clashes = found["value"], found["clashes"]
        assert [side for side in found["kept"] if side] == list(kept.values())
        return json.loads(text)

    assert choose(_0="yours") == MERGED[1:]
    assert choose(_0="yours", _1="theirs") == MERGED[2:]
    assert choose(_0="yours", _1="theirs", _2="yours", _3="theirs") == tasks(c="3", e="1")
    assert choose(_0="yours", _1="yours", _2="theirs", _3="theirs") == tasks(b="3", c="2", e="1")
    assert choose(_0="theirs", _1="yours", _2="theirs", _3="yours") == MERGED


@pytest.mark.parametrize(
    "clash", ["{", "[]", '{"pointer": "/a"}', '{"pointer": "a", "lengths": []}']
)
def test_edit__malformed_conflict__is_refused(admin: Client, team: EntryView, clash: str) -> None:
    response = save(admin, {"goal": "x"}, team.version, clash=[clash])
    assert response.status_code == 422
    assert "The form contains an invalid conflict; reload the page" in response.content.decode()


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
    start = time.thread_time()  # on a busy machine, too
    page = save(admin, members(3), 1, path=path).content.decode()
    assert time.thread_time() - start < 5
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
    problem = alice.api("PUT", "/state/team/global", {"value": mine}, If_Match='"1"').json()
    page = save(admin, mine, 1).content.decode()
    clashes = page[page.index('class="clashes"') : page.index("</table>")]
    pointers = re.findall(r'"mono">(/[^<]*)<', clashes)
    assert (
        pointers == [clash["pointer"] for clash in problem["clashes"]] == ["/goal", "/constraints"]
    )


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
