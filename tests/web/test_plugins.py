"""The page of state keys and plugins: owners, numbers of threads, and the uninstall preview."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from state_admin.models import AuditRow, Namespace, Plugin, StateKey
from state_admin.services import plugins
from state_admin.web import state_keys
from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
    raw,
)
from tests.web.stories import HOSTILE
from tests.web.test_threads import page

RETAINED = {"retain_on_uninstall": True}


@pytest.fixture
def kit(alice: Person) -> Person:
    def part(name: str, **fields: bool) -> dict[str, object]:
        return {"name": name, "schema": raw({}), "default": raw(None), **fields}

    plugins.install_plugin(
        actor=alice.actor,
        name="kit",
        description=HOSTILE[0],
        state_keys=[part("kit.plan"), part("kit.facts", **RETAINED)],
        namespaces=[part("kit.notes")],
    )
    make_state_key(alice.actor, "own", reducer="add", merge="commutative", default=0)
    for number, update in enumerate(({"kit.plan": 1, "kit.facts": 1}, {"kit.facts": 2, "own": 1})):
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}")
        commit(alice.actor, f"r{number}", update)
    return alice


def holders(shown: str) -> dict[str, str]:
    """The column "Threads" of the main table, by key."""
    table = shown.partition('aria-label="State keys"')[2].partition("</table>")[0]
    name, number = (
        r'<td class="name"><span class="mono">(.*?)</span>',
        r'<td class="num" data-label="threads">(.*?)</td>',
    )
    rows = re.findall(rf"{name}.*?{number}", table, re.S)
    return dict(rows)


def test_state_keys__plugin__is_shown_with_its_parts_and_number_of_threads(
    admin: Client, kit: Person
) -> None:
    shown = page(admin, "/state-keys")
    assert holders(shown) == {"kit.facts": "2", "kit.plan": "1", "own": "1"}
    assert 'href="/namespaces/kit.notes"' in shown
    assert HOSTILE[0] not in shown
    assert "after uninstall" in shown
    assert "Uninstall…" in shown
    assert "Unregistered keys with values" not in shown
    assert "__runtime.run_lifecycle" in shown


def test_state_keys__many_threads__counts_the_newest(
    admin: Client, kit: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_keys, "NEWEST", 1)
    assert holders(page(admin, "/state-keys")) == {"kit.facts": "1", "kit.plan": "0", "own": "1"}


def test_uninstall__confirmation__shows_what_is_removed_and_kept(
    admin: Client, kit: Person
) -> None:
    shown = page(admin, "/plugins/kit/uninstall")
    assert "1 value in 1 thread will be cleared" in shown
    assert "2 values stay readable" in shown
    assert "kit.facts (values stay)" in shown
    assert "What becomes of the entries" not in shown
    put(kit.actor, "kit.notes", "k", 1)
    assert "Its namespaces have 1 entry." in page(admin, "/plugins/kit/uninstall")


def test_uninstall__confirmed__is_done_and_reports_retained_keys(
    admin: Client, kit: Person
) -> None:
    put(kit.actor, "kit.notes", "k", 1)
    refused = admin.post("/plugins/kit/uninstall", {"reason": "unused"})
    assert refused.status_code == 409
    assert Plugin.objects.exists()
    done = admin.post("/plugins/kit/uninstall", {"reason": "unused", "entries": "retain"})
    assert done["Location"] == "/state-keys"
    assert AuditRow.objects.filter(action="plugin.uninstall", reason="unused").exists()
    shown = page(admin, "/state-keys")
    assert "Uninstalled kit; cleared 1 value" in shown
    assert "Unregistered keys with values" in shown
    assert holders(shown) == {"own": "1"}


def test_namespace__of_a_plugin__offers_to_uninstall_the_plugin(admin: Client, kit: Person) -> None:
    shown = page(admin, "/namespaces/kit.notes")
    assert 'href="/plugins/kit/uninstall"' in shown
    assert "/namespaces/kit.notes/unregister" not in shown
    for method in (admin.get, admin.post):
        refused = method("/namespaces/kit.notes/unregister")
        assert refused.status_code == 409
        assert "belongs to the installed plugin kit" in refused.content.decode()
    make_namespace(kit.actor, "free")
    assert "/namespaces/free/unregister" in page(admin, "/namespaces/free")


def test_uninstall__viewer_or_non_member__is_refused(
    viewer: Client, stranger: Client, kit: Person
) -> None:
    assert "Uninstall…" not in page(viewer, "/state-keys")
    for method in (viewer.get, viewer.post):
        assert method("/plugins/kit/uninstall").status_code == 403
    for method in (stranger.get, stranger.post):
        assert method("/plugins/kit/uninstall").status_code == 404
    assert "kit" not in page(stranger, "/state-keys")


DOCUMENT = {
    "name": "planner",
    "description": "Plans",
    "state_keys": [{"key": "planner.steps", "reducer": "append", "scope": "thread", "default": []}],
    "namespaces": [{"name": "planner_notes", "ttl_seconds": 60, "history": {"keep_last": 5}}],
}


def install(client: Client, document: object, **fields: str) -> Any:
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    return client.post("/plugins/+install", {"document": text, **fields})


def test_install__preview__shows_what_it_would_register_and_stores_nothing(
    admin: Client, alice: Person
) -> None:
    shown = install(admin, DOCUMENT, check="yes").content.decode()
    assert "would register 1 state key and 1 namespace" in shown
    assert "planner.steps (state key)" in shown
    assert not Plugin.objects.exists()
    assert not StateKey.objects.exists()
    assert not Namespace.objects.open().exists()
    assert not AuditRow.objects.filter(action="plugin.install").exists()


def test_install__after_a_preview__is_done_with_its_reason(admin: Client, alice: Person) -> None:
    shown = install(admin, DOCUMENT, check="yes").content.decode()
    (digest,) = re.findall(r'name="digest" value="([0-9a-f]+)"', shown)
    other = {**DOCUMENT, "description": "changed since"}
    assert install(admin, other, install="yes", digest=digest).status_code == 200
    assert not Plugin.objects.exists()
    done = install(admin, DOCUMENT, install="yes", digest=digest, reason="we plan")
    assert done["Location"] == "/state-keys"
    key, space = StateKey.objects.get(), Namespace.objects.open().get()
    assert (key.name, key.reducer, key.default, key.plugin) == (
        "planner.steps",
        "append",
        "[]",
        "planner",
    )
    assert (space.name, space.ttl_seconds, space.history_keep_last) == ("planner_notes", 60, 5)
    assert AuditRow.objects.filter(action="plugin.install", reason="we plan").exists()
    assert "already installed" in install(admin, DOCUMENT, check="yes").content.decode()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "The plugin is not valid JSON"),
        ("[]", "A plugin must be a JSON object"),
        ({}, "/name</code> is required"),
        ({"name": "no spaces"}, "Invalid plugin name"),
        ({"name": "p", "more": 1}, "Unknown field: more"),
        ({"name": "p", "state_keys": {}}, "/state_keys</code> {} is not of type"),
        ({"name": "p", "state_keys": [1]}, "/state_keys/0 must be a JSON object"),
        ({"name": "p", "state_keys": [{}]}, "/state_keys/0/key</code> is required"),
        ({"name": "p", "state_keys": [{"key": 7}]}, "7 is not of type"),
        ({"name": "p", "state_keys": [{"key": "k", "persistent": 1}]}, "1 is not of type"),
        ({"name": "p", "state_keys": [{"key": "k", "reducer": "x"}]}, "is not one of"),
        ({"name": "p", "namespaces": [{"name": "n", "ttl_seconds": True}]}, "true is not of types"),
        ({"name": "p", "namespaces": [{"name": "n", "history": {"x": 1}}]}, "history/x</code>"),
        ({"name": "p", "namespaces": [{"name": "n", "schema": {"type": "x"}}]}, "/namespaces/0"),
        (
            {"name": "p", "state_keys": [{"key": "k", "merge": "commutative"}]},
            "cannot be commutative",
        ),
        ({"name": HOSTILE[0]}, "Invalid plugin name"),
        ({"name": "p", "state_keys": [{"key": "k", "plugin": "q"}]}, "must be p"),
    ],
)
def test_install__not_a_plugin__reports_places_and_reasons(
    document: object, said: str, admin: Client
) -> None:
    answer = install(admin, document, check="yes")
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert HOSTILE[0] not in answer.content.decode()
    assert not Plugin.objects.exists()


def test_install__viewer_and_editor__are_refused(viewer: Client, editor: Client) -> None:
    for client in (viewer, editor):
        assert client.get("/plugins/+install").status_code == 403
        assert install(client, DOCUMENT, install="yes").status_code == 403
        assert "Install a plugin" not in page(client, "/state-keys")
