"""Bulk actions of the state browser: confirmation, expected versions, a report per row, undo."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from state_admin.domain import values
from state_admin.domain.values import Raw
from state_admin.models import AuditRow, Entry, EntryRevision
from state_admin.models.browsing import EntryFilter, entry_page
from state_admin.services import entries, revert_jobs
from state_admin.services.errors import QuotaExceeded
from state_admin.services.namespaces import unregister_namespace
from state_admin.web import entry_bulk
from tests.builders import Person, make_namespace, put

URL = "/entries/bulk"


@pytest.fixture
def three(alice: Person) -> list[str]:
    make_namespace(alice.actor, "n")
    for key in ("a", "b", "c/d"):
        put(alice.actor, "n", key, {"of": key}, tags=[key])
    return ["1 n/a", "1 n/b", "1 n/c/d"]


def tags(alice: Person) -> dict[str, list[str]]:
    return {
        line.key: list(line.tags) for line in entry_page(alice.actor, EntryFilter(), limit=2000)
    }


def confirm(client: Client, **data: Any) -> Any:
    return client.post(URL, {"back": "/state?namespace=n", "confirmed": "yes", **data})


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page."""
    fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in fields}


def undo(page: str) -> tuple[str, dict[str, str]]:
    """The URL and the fields of a page's Undo button."""
    form = re.search(r'<form method="post" action="([^"]+)" data-undo>(.*?)</form>', page, re.S)
    assert form, page
    fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form[2])
    return form[1], {n: html.unescape(v) for n, v in fields if n != "csrfmiddlewaretoken"}


def test_delete__selected__is_confirmed_and_deletes_the_shown_versions(
    admin: Client, alice: Person, three: list[str]
) -> None:
    asked = {"action": "delete", "entry": three, "back": "/state?namespace=n"}
    question = admin.post(URL, asked).content.decode()
    assert "Delete 3 entries?" in question
    assert "n/c/d" in question
    assert 'name="reason"' in question
    assert len(tags(alice)) == 3
    put(alice.actor, "n", "b", "changed since")
    page = confirm(admin, action="delete", entry=three, reason="old").content.decode()
    assert "Deleted 2 entries" in page
    assert "alice wrote version 2 in the meantime" in page
    assert list(tags(alice)) == ["b"]


def test_delete__undo__restores_entries_not_written_since(
    admin: Client, alice: Person, three: list[str]
) -> None:
    assert confirm(admin, action="delete", entry=three)["Location"] == "/state?namespace=n"
    url, fields = undo(admin.get("/state").content.decode())
    put(alice.actor, "n", "a", "written since")
    page = admin.post(url, fields, follow=True).content.decode()
    assert tags(alice) == {"a": [], "b": ["b"], "c/d": ["c/d"]}
    assert "Reverted 2 entries; skipped 1" in page
    assert "it was written since then" in page

    url, fields = undo(page)
    admin.post(url, fields)
    assert list(tags(alice)) == ["a"]


def test_tag__all_matching__has_a_preview_and_is_undone_exactly(
    admin: Client, alice: Person, three: list[str]
) -> None:
    put(alice.actor, "n", "c/e", 1, tags=["vip"])
    asked = {"action": "tag", "back": "/state?namespace=n&prefix=c"}
    question = admin.post(f"{URL}?all=yes", asked).content.decode()
    assert "Tag 2 entries?" in question
    assert "n/c/e" in question
    assert "n/a" not in question
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', question))
    fields = {name: html.unescape(value) for name, value in fields.items()}
    page = admin.post(URL, {**fields, "tag": "vip", "reason": "big ones"}).content.decode()
    assert "Tagged 1 entry" in page
    assert "no change needed" in page
    assert tags(alice) == {"a": ["a"], "b": ["b"], "c/d": ["c/d", "vip"], "c/e": ["vip"]}
    url, back = undo(page)
    admin.post(url, back)
    assert tags(alice) == {"a": ["a"], "b": ["b"], "c/d": ["c/d"], "c/e": ["vip"]}


def test_all__written_after_the_confirmation__is_skipped(
    admin: Client, alice: Person, three: list[str]
) -> None:
    asked = {"action": "delete", "back": "/state?namespace=n"}
    question = admin.post(f"{URL}?all=yes", asked).content.decode()
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', question))
    fields["seen_at"] = "2020-01-01T00:00:00+00:00"
    page = admin.post(URL, fields).content.decode()
    assert "it was written after the confirmation was shown" in page
    assert len(tags(alice)) == 3


def test_all__more_than_a_batch__continues_with_progress(
    admin: Client, alice: Person, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_bulk, "_CHUNK", 2)
    asked = {"action": "untag", "tag": "c/d", "confirmed": "yes", "back": "/state", "total": "3"}
    page = admin.post(f"{URL}?all=yes", asked).content.decode()
    assert '<progress max="3" value="2"' in page
    page = admin.post(URL, hidden(page)).content.decode()
    assert "Untagged 1 entry" in page
    assert "<progress" not in page
    assert page.count("no change needed") == 2
    assert tags(alice)["c/d"] == []


def test_all__several_steps__are_undone_together(
    admin: Client, alice: Person, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_bulk, "_CHUNK", 2)
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    asked = {"action": "delete", "confirmed": "yes", "back": "/state", "total": "3"}
    page = admin.post(f"{URL}?all=yes", asked).content.decode()
    admin.post(URL, hidden(page))
    assert tags(alice) == {}

    for expected in ({"a": ["a"], "b": ["b"], "c/d": ["c/d"]}, {}):
        url, fields = undo(admin.get("/state").content.decode())
        assert admin.post(url, fields)["Location"] == "/state"
        assert tags(alice) == expected


def test_edit__selected__is_previewed_applied_and_undone(
    admin: Client, alice: Person, three: list[str]
) -> None:
    before = {row.key: row.value for row in Entry.objects.all()}
    asked = {"action": "patch", "entry": three, "back": "/state?namespace=n"}
    form = admin.post(URL, asked).content.decode()
    assert 'name="patch"' in form
    assert "would change" not in form
    asked["patch"] = '{"status": "<open>", "of": null}'
    put(alice.actor, "n", "b", "changed since")
    page = admin.post(URL, asked).content.decode()
    assert "<strong>2</strong> would change, 1 would be skipped" in page
    assert "it was written since then" in page
    assert page.count("&lt;open&gt;") >= 2
    assert "Edit 3 entries" in page
    assert not EntryRevision.objects.filter(version=2).exclude(entry__key="b").exists()
    done = admin.post(URL, {**hidden(page), **asked, "confirmed": "yes", "reason": "tidy"})
    assert "Edited 2 entries" in done.content.decode()
    edited = Entry.objects.get(key="a")
    assert values.load(edited.value or "") == {"status": "<open>"}
    assert EntryRevision.objects.get(entry=edited, version=2).operation == "patch"
    assert AuditRow.objects.filter(action="entry.patch", reason="tidy").count() == 2
    url, fields = undo(done.content.decode())
    admin.post(url, fields)
    after = {row.key: row.value for row in Entry.objects.all()}
    assert after == {**before, "b": '"changed since"'}


def test_edit__all_matching__is_applied_in_steps(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "many")
    for start in range(0, 1200, 600):
        puts = [("many", f"k{i:04}", Raw('{"n":1}', {"n": 1})) for i in range(start, start + 600)]
        entries.put_entries(actor=alice.actor, puts=puts)
    asked = {
        "action": "patch",
        "all": "yes",
        "back": "/state?namespace=many",
        "patch": '[{"op": "replace", "path": "/n", "value": 2}]',
    }
    page = admin.post(URL, asked).content.decode()
    assert "Of the first 500 entries" in page
    assert "<strong>500</strong> would change" in page
    page = admin.post(URL, {**asked, **hidden(page), "confirmed": "yes"}).content.decode()
    assert "Edited 1,000 entries so far" in page
    page = admin.post(URL, {"all": "yes", **hidden(page)}, follow=True).content.decode()
    assert "Edited 1,200 entries" in page
    assert set(Entry.objects.filter(namespace__name="many").values_list("value", flat=True)) == {
        '{"n":2}'
    }


def test_edit__problem_after_the_first_step__keeps_the_result_and_its_undo(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "many")
    for start in range(0, 1200, 600):
        puts = [("many", f"k{i:04}", Raw('{"n":1}', {"n": 1})) for i in range(start, start + 600)]
        entries.put_entries(actor=alice.actor, puts=puts)
    asked = {"action": "patch", "all": "yes", "back": "/state?namespace=many"}
    asked["patch"] = '{"n": 2}'
    page = admin.post(URL, asked).content.decode()
    page = admin.post(URL, {**asked, **hidden(page)}).content.decode()
    assert "Edited 1,000 entries so far" in page

    def refuse(**options: Any) -> None:
        raise QuotaExceeded("the workspace may hold 1,000 bytes")

    monkeypatch.setattr(entry_bulk, "patch_entries", refuse)
    page = admin.post(URL, {"all": "yes", **hidden(page)}, follow=True).content.decode()
    assert "Edited 1,000 entries; skipped 200" in page
    assert "the workspace may hold 1,000 bytes" in page
    url, fields = undo(page)
    monkeypatch.setattr(revert_jobs, "AT_ONCE", 60)  # also on a slow machine
    assert "Reverted 1,000 entries" in admin.post(url, fields, follow=True).content.decode()


def test_edit__preview__can_be_applied_although_the_first_entries_would_not_change(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "many")
    puts = [("many", f"k{i:04}", Raw('{"n":2}', {"n": 2})) for i in range(600)]
    entries.put_entries(actor=alice.actor, puts=puts)
    put(alice.actor, "many", "z", {"n": 1})
    asked = {"action": "patch", "all": "yes", "back": "/state?namespace=many"}
    asked["patch"] = '{"n": 2}'
    page = admin.post(URL, asked).content.decode()
    assert "<strong>0</strong> would change" in page
    assert ">Edit 601 entries</button>" in page
    back = admin.post(URL, {**asked, **hidden(page), "change": "yes"}).content.decode()
    assert 'id="bulk-patch"' in back
    assert "&quot;n&quot;: 2" in back
    assert "Edited 1 entry" in admin.post(URL, {**asked, **hidden(page)}).content.decode()


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("{", "the patch is not valid JSON"),
        ("7", "the patch must be an object or an array"),
        ('{"a": "' + "x" * 65_536 + '"}', "at most 65,536 characters"),
    ],
)
def test_edit__malformed_patch__is_shown_at_the_field(
    patch: str, why: str, admin: Client, three: list[str]
) -> None:
    asked = {"action": "patch", "entry": three, "back": "/state?namespace=n", "patch": patch}
    page = admin.post(URL, asked)
    assert page.status_code == 422
    assert why in page.content.decode()
    assert 'aria-invalid="true"' in page.content.decode()
    assert "would change" not in page.content.decode()


def test_expire__selected__is_set_and_undone(
    admin: Client, alice: Person, three: list[str]
) -> None:
    confirm(admin, action="expire", entry=three[:1], ttl="3600")
    assert entry_page(alice.actor, EntryFilter(), limit=1)[0].expires_at
    url, fields = undo(admin.get("/state").content.decode())
    admin.post(url, fields)
    assert entry_page(alice.actor, EntryFilter(), limit=1)[0].expires_at is None
    assert confirm(admin, action="expire", entry=three[:1], ttl="soon").status_code == 400


def test_export__all__streams_one_object_per_line(admin: Client, three: list[str]) -> None:
    response = confirm(admin, action="export", all="yes")
    lines = [json.loads(line) for line in response.streaming_content]
    assert [(line["key"], line["value"]) for line in lines] == [
        (key, {"of": key}) for key in ("a", "b", "c/d")
    ]
    some = confirm(admin, action="export", entry=three[1:2])
    assert [json.loads(line)["key"] for line in some.streaming_content] == ["b"]


def test_delete__orphans__are_included(admin: Client, alice: Person, three: list[str]) -> None:
    unregister_namespace(actor=alice.actor, name="n", entries="retain")
    assert b'value="1 n/a"' in admin.get("/state?show=orphans").content
    confirm(admin, action="delete", all="yes", back="/state?show=orphans")
    assert tags(alice) == {}


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/logout", "/statement"]
)
def test_back__url_of_another_page__is_ignored(back: str, admin: Client) -> None:
    assert admin.post(URL, {"action": "delete", "back": back})["Location"] == "/state"


@pytest.mark.parametrize("entry", ["", "x", "1 n", "1 /k", "-1 n/k", "9" * 30 + " n/k"])
def test_selection__malformed__is_refused(entry: str, admin: Client) -> None:
    assert admin.post(URL, {"action": "delete", "entry": entry}).status_code == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "drop"},
        {"action": "delete", "seen_at": "yesterday"},
        {"action": "delete", "seen_at": "2020-13-01T00:00:00Z"},
        {"action": "delete", "skipped": "{}"},
        {"action": "delete", "skipped": "[[1,2,3]]"},
        {"action": "delete", "total": "many"},
        {"action": "delete", "near": "many"},
        {"action": "delete", "request": "x" * 65},
        {"action": "delete", "entry": "1 n/a\0"},
        {"action": "tag", "entry": "1 n/a", "confirmed": "yes", "tag": "a,b"},
    ],
)
def test_action__malformed__is_refused(fields: dict[str, str], admin: Client) -> None:
    assert admin.post(URL, fields).status_code == 400


def test_revert__batch_of_the_audit__is_confirmed_and_undoable(
    admin: Client, alice: Person, three: list[str]
) -> None:
    operations = [
        {"op": "put", "namespace": "n", "key": "a", "value": "changed"},
        {"op": "put", "namespace": "n", "key": "new", "value": 1},
        {"op": "delete", "namespace": "n", "key": "b"},
    ]
    assert alice.api("POST", "/state/batch", {"operations": operations}).status_code == 200
    page = admin.get("/audit").content.decode()
    assert page.count("Revert this request") == 1
    form = page[page.index("/requests/revert") :]

    question = admin.post(
        "/requests/revert", hidden(form[: form.index("</form>")])
    ).content.decode()
    assert "Revert 3 entries?" in question
    assert "n/new" in question
    assert admin.post("/requests/revert", hidden(question))["Location"] == "/audit"

    assert tags(alice) == {"a": ["a"], "b": ["b"], "c/d": ["c/d"]}
    assert alice.api("GET", "/state/n/a").json()["value"] == {"of": "a"}
    url, fields = undo(admin.get("/state").content.decode())
    admin.post(url, fields)
    assert alice.api("GET", "/state/n/a").json()["value"] == "changed"
    assert list(tags(alice)) == ["a", "c/d", "new"]


def test_restore__deleted_entries__are_listed_and_restored_with_tags(
    admin: Client, alice: Person, three: list[str]
) -> None:
    confirm(admin, action="delete", entry=three[:2])
    page = admin.get("/state?namespace=n&show=deleted").content.decode()
    assert re.findall(r'name="entry" value="([^"]+)"', page) == ["2 n/a", "2 n/b"]
    assert 'name="action" value="restore"' in page
    assert 'name="action" value="delete"' not in page
    assert re.findall(r'data-column="([^"]+)"', page) == ["state", "tags", "changed"]

    page = admin.get("/state?namespace=n&show=deleted&text=of").content.decode()
    assert "Values of deleted entries are not searched." in page

    asked = {"action": "restore", "back": "/state?namespace=n&show=deleted"}
    question = admin.post(f"{URL}?all=yes", asked).content.decode()
    assert "Restore 2 entries?" in question
    admin.post(URL, hidden(question))
    assert tags(alice) == {"a": ["a"], "b": ["b"], "c/d": ["c/d"]}

    url, fields = undo(admin.get("/state").content.decode())
    admin.post(url, fields)
    assert list(tags(alice)) == ["c/d"]


def test_detail__deleted_entry__offers_to_restore_it(
    admin: Client, viewer: Client, alice: Person, three: list[str]
) -> None:
    confirm(admin, action="delete", entry=three[:1])
    page = admin.get("/state/n/a").content.decode()
    form = page[page.index('action="/entry/undo/n/a"') :]
    assert 'name="deleted"' not in viewer.get("/state/n/a").content.decode()

    admin.post("/entry/undo/n/a", hidden(form[: form.index("</form>")]))
    assert tags(alice)["a"] == ["a"]
    assert 'name="deleted"' not in admin.get("/state/n/a").content.decode()


def test_all__last_step_changes_nothing__can_be_undone(
    admin: Client, alice: Person, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_bulk, "_CHUNK", 2)
    asked = {"action": "delete", "confirmed": "yes", "back": "/state", "total": "3"}
    page = admin.post(f"{URL}?all=yes", asked).content.decode()
    put(alice.actor, "n", "c/d", "written meanwhile")
    page = admin.post(URL, hidden(page)).content.decode()
    assert "Deleted 2 entries" in page
    url, fields = undo(page)
    admin.post(url, fields)
    assert sorted(tags(alice)) == ["a", "b", "c/d"]


def test_bulk__viewer_and_non_member__change_nothing(
    viewer: Client, stranger: Client, alice: Person, three: list[str]
) -> None:
    assert confirm(viewer, action="delete", entry=three).status_code == 403
    assert b"the entry no longer exists" in confirm(stranger, action="delete", entry=three).content
    exported = confirm(stranger, action="export", entry=three)
    assert list(exported.streaming_content) == []
    assert len(tags(alice)) == 3


def test_bulk__all_results_of_a_search__are_changed_exactly(
    admin: Client, alice: Person, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(alice.actor, "n", "w", {"says": "of course"})
    put(alice.actor, "n", "y", {"says": "often"})
    back = "/state?text=say"
    question = admin.post(f"{URL}?all=yes", {"action": "tag", "back": back}).content.decode()
    assert "Tag 2 entries?" in question
    monkeypatch.setattr(entry_bulk, "_CHUNK", 1)
    data = {"action": "tag", "back": back, "all": "yes", "confirmed": "yes", "tag": "seen"}
    requests = 0
    while data:
        page, requests = admin.post(URL, data), requests + 1
        form = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.content.decode())
        data = {name: html.unescape(value) for name, value in form}
        assert not data or data["after"]
    assert requests == 2
    seen = {"w": ["seen"], "y": ["seen"]}
    assert tags(alice) == {"a": ["a"], "b": ["b"], "c/d": ["c/d"], **seen}
    exported = confirm(admin, action="export", back=back, all="yes").getvalue().decode()
    assert [json.loads(line)["key"] for line in exported.splitlines()] == ["y", "w"]


def test_expire__time_of_the_confirmation_is_in_the_future__counts_from_now(
    admin: Client, three: list[str]
) -> None:
    future = "9999-12-31T23:59:59Z"
    assert confirm(admin, action="expire", entry=three, ttl="60", seen_at=future).status_code == 302
    for row in Entry.objects.all():
        assert row.expires_at is not None
        assert row.expires_at < timezone.now() + timedelta(days=1)
