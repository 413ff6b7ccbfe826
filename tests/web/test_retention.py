"""The confirmations before old snapshots and versions are removed, and the pin that keeps one."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client

from state_admin.models import Compaction, EntryRevision, Namespace, retention_sql
from state_admin.services import policies, retention
from tests.builders import Person, make_namespace, put, raw
from tests.web.stories import create_story
from tests.web.test_threads import page

MORE_ENTRIES = """
INSERT INTO entries (namespace_id, key, value, version, born_version, schema_version, deleted,
    size_bytes, estimated_tokens, actor_kind, actor_name)
SELECT namespace_id, 'k' || n, '1', 1, 1, 1, false, 1, 1, 'system', 'x'
FROM entries, generate_series(1, 1200) n WHERE key = 'a'
"""


def test_snapshots__compaction__is_requested_after_a_preview(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    said = raw({"snapshot_keep_last": 1})
    policies.put_policy(actor=alice.actor, scope="thread", name="t1", body=said)
    assert "Remove old snapshots…" in page(admin, "/threads/t1?tab=compactions")
    question = page(admin, "/thread/compact-snapshots/t1")
    assert "1 of 6 snapshots will be removed, with " in question
    assert "cannot be restored" in question
    response = admin.post("/thread/compact-snapshots/t1", {"reason": "tidy"})
    assert response.status_code == 302
    job = Compaction.objects.get(kind="snapshot")
    assert (job.requested_by, job.reason) == ("alice", "tidy")
    assert retention.run_retention(job.public_id) == "done"
    shown = page(admin, f"/compactions/{job.public_id}")
    for text in ("1 snapshots deleted", "Rows removed permanently", "Bytes before", "tidy"):
        assert text in shown
    assert "no undo" in page(admin, "/threads/t1?tab=compactions")
    assert "The state at revision 1 was removed by snapshot compaction" in page(
        admin, "/threads/t1?tab=state&at=1"
    )


def test_snapshots__editor__is_refused(editor: Client, admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert "Remove old snapshots…" not in page(editor, "/threads/t1?tab=compactions")
    assert editor.get("/thread/compact-snapshots/t1").status_code == 403
    assert editor.post("/thread/compact-snapshots/t1").status_code == 403


def test_history__compaction__is_requested_after_a_preview(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes", history_keep_last=1)
    for number in range(3):
        put(alice.actor, "notes", "k", number)
    assert "Remove old versions now…" in page(admin, "/namespaces/notes")
    assert "2 of 3 versions (2 B of 3 B) will be removed" in page(
        admin, "/namespaces/notes/compact"
    )
    admin.post("/namespaces/notes/compact", {"reason": "tidy"})
    job = Compaction.objects.get(kind="history")
    assert retention.run_retention(job.public_id) == "done"
    assert 'href="/namespaces/notes"' in page(admin, f"/compactions/{job.public_id}")


def test_history__many_entries__are_all_counted_as_by_the_api(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes", history_keep_last=1)
    put(alice.actor, "notes", "a", 1)
    with connection.cursor() as cursor:
        cursor.execute(MORE_ENTRIES)
    assert "0 of 1 version (" in page(admin, "/namespaces/notes/compact?count=all")
    assert "Remove versions</button>" in page(admin, "/namespaces/notes/compact")
    for number in range(7):
        put(alice.actor, "notes", "z", number)
    counted = alice.api("GET", "/namespaces/notes/compactions").json()
    assert (counted["rows"], counted["rows_removed"]) == (8, 6)
    assert "6 of 8 versions (" in page(admin, "/namespaces/notes/compact?count=all")


def continue_count(client: Client, shown: str) -> list[str]:
    """Send the requests that a browser sends while versions are counted; the texts."""
    texts = []
    while found := re.findall(r'hx-get="([^"]*old-versions[^"]*)"', shown):
        shown = client.get(html.unescape(found[0]), headers={"HX-Request": "true"}).content.decode()
        texts.append(shown)
    return texts


def test_history__large_namespace__is_counted_further_after_the_dialog_is_shown(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "notes", history_keep_last=1)
    for key in ("a & b", "c", "d", "é=1?"):
        for number in range(3):
            put(alice.actor, "notes", key, number)
    monkeypatch.setattr(retention, "BATCH", 1)
    monkeypatch.setattr("state_admin.web.retention.COUNT_FIRST", 0)
    monkeypatch.setattr("state_admin.web.namespace_edit.COUNT_FIRST", 0)
    monkeypatch.setattr("state_admin.web.retention._COUNT_NEXT", 0)
    question = page(admin, "/namespaces/notes/compact")
    assert "2 of the first 3 versions (2 B of 3 B) will be removed" in question
    assert "Remove versions</button>" in question
    texts = continue_count(admin, question)
    assert "4 of the first 6 versions (4 B of 6 B) will be removed" in texts[0]
    assert "8 of 12 versions (8 B of 12 B) will be removed" in texts[-1]
    assert ["aria-busy" in text for text in texts] == [True] * (len(texts) - 1) + [False]
    whole = re.findall(r'<noscript> <a href="([^"]+)"', question)
    assert "8 of 12 versions (8 B of 12 B) will be removed" in page(admin, whole[0])

    sent = {"schema": "{}", "default": "null", "base": 1, "history_keep_last": 2}
    checked = admin.post("/namespaces/notes/edit", sent | {"check": "yes"}).content.decode()
    assert "1 of the first 3 versions (1 B of 3 B) will be removed" in checked
    assert "Save and remove old versions</button>" in checked
    assert "4 of 12 versions (4 B of 12 B)" in continue_count(admin, checked)[-1]


def test_old_versions__malformed_number__is_refused(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    refused = admin.get("/namespaces/notes/old-versions?rows=many")
    assert refused.status_code == 400
    assert "ows must be a whole number" in refused.content.decode()
    assert admin.get("/namespaces/none/old-versions").status_code == 404


def test_history__batch_that_takes_too_long__still_asks(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "notes", history_keep_last=5)
    for number in range(3):
        put(alice.actor, "notes", "k", number)
    monkeypatch.setattr(retention_sql, "_COUNT_BATCH", "SELECT 1, 1, 1, 1, 1 FROM pg_sleep(60)")
    monkeypatch.setattr(retention, "_COUNT_TIMEOUT_MS", 200)
    question = page(admin, "/namespaces/notes/compact")
    assert "The old versions could not be counted in time." in question
    assert "old-versions" not in question
    assert "Remove versions</button>" in question
    sent = {"schema": "{}", "default": "null", "base": 1, "history_keep_last": 1}
    for more in ({"check": "yes"}, {}):
        shown = admin.post("/namespaces/notes/edit", sent | more).content.decode()
        assert "could not be counted in time" in shown
        assert "no old version will be removed" not in shown
        assert Namespace.objects.get(name="notes").history_keep_last == 5
    agreed = re.findall(r'name="agreed" value="([^"]+)"[^>]*>Save and remove old versions<', shown)
    assert admin.post("/namespaces/notes/edit", sent | {"agreed": agreed[0]}).status_code == 302
    assert Namespace.objects.get(name="notes").history_keep_last == 1


def test_pin__version__is_pinned_and_unpinned(admin: Client, viewer: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "k", 1)
    history = "/state/notes/k?tab=history"
    assert 'form="pin-1" aria-pressed="false"' in page(admin, history)
    assert "pin-1" not in page(viewer, history)
    response = admin.post("/entry/pin/notes/k?version=1", {"pinned": "on"})
    assert (response.status_code, response["Location"]) == (302, history)
    assert EntryRevision.objects.get().pinned
    assert 'form="pin-1" aria-pressed="true"' in page(admin, history)
    admin.post("/entry/pin/notes/k?version=1")
    assert not EntryRevision.objects.get().pinned
    assert admin.post("/entry/pin/notes/k").status_code == 400
    assert viewer.post("/entry/pin/notes/k?version=1").status_code == 403
