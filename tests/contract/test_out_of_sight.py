"""Responses to a restricted token do not depend on data outside its permissions.

Two workspaces that differ only in such data give the same response to every row of the table of
permissions: no id, count, status, header or end of a page reveals the rest.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import transaction

from state_admin.domain.access import Role
from state_admin.domain.ids import uuid7
from state_admin.models import Run, Thread, Webhook
from state_admin.services import compaction_jobs, compactions, dispatches, policies, storage
from state_admin.services.commits import Read
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, call, make_namespace, make_person, make_token, raw

from .test_permissions import TABLE, Row, fill

INSIDE = {
    "namespaces": {
        "namespaces": ["notes", "empty", "agent_store", "fresh", "config.providers"],
        "thread_prefixes": [],
    },
    "threads": {"namespaces": [], "thread_prefixes": ["t", "fresh"]},
}

# Responses that must differ, because they report a conflict with the rest or a total.
TOLD = {
    "namespaces": {
        "DELETE /config/providers/openai",  # others refer to it: their number
        "DELETE /threads/t1",  # its entries outside would remain
        "DELETE /agent-protocol/threads/t1",
        "POST /threads/delete",
        "GET /usage",  # what the workspace's quota counts
        "GET /usage/storage",
    },
    "threads": {"GET /usage", "GET /usage/storage"},
}

# Requests that are not in the table.
MORE = [
    "/state?include=value&limit=1",
    "/state?prefix=thread::",
    "/state?scope_kind=parent_thread",
    "/state/notes?limit=1",
    "/state/config.providers",
    "/state/hush.notes",
    "/history/notes/k?include=value",
    "/keys/global?include=value",
    "/keys/thread::t1",
    "/namespaces?limit=1",
    "/namespaces/hush.notes",
    "/config/providers?include=value",
    "/threads?limit=3",
    "/threads?root=true",
    "/threads?forked_from=hush",
    "/threads?forked_from=t3",
    "/threads?parent_thread_id=hush",
    "/threads?parent_thread_id=t3",
    "/threads?resource_id=shared",
    "/threads?prefix=hush",
    "/threads/t2",
    "/threads/t2/lineage",
    "/threads/t3",
    "/threads/t3/lineage",
    "/threads/hush",
    "/runs?limit=1",
    "/runs?status=waiting",
    "/runs?agent_id=helper",
    "/runs?thread_id=hush",
    "/tickets?status=pending",
    "/dispatches?status=Queued",
    "/dispatches?thread_id=hush",
    "/dispatches/counts?agent_id=helper",
    "/compactions?status=queued",
    "/compactions?thread_id=hush",
    "/audit?limit=200",
    "/changes?limit=200",
    "/usage/storage",
    "/usage/storage?group=namespace&limit=1",
    "/usage/storage?group=thread&limit=1",
]


def hide_namespaces(person: Person) -> None:
    """Namespaces with the same keys as those inside, and a record that refers to one inside."""
    actor = person.actor
    make_namespace(actor, "hush.notes", {"type": "object"}, {}, description="hush")
    make_namespace(actor, "aaa.hush")
    for key in ("k", "global", "thread::t1", "parent_thread::t1", "hush"):
        for number in range(3):
            builders.put(actor, "hush.notes", key, {"a": 2, "hush": f"x {number}"})
        builders.put(actor, "aaa.hush", key, "x")


def hide_threads(person: Person, name: str = "hush") -> None:
    """A thread with all that can belong to one, and one with a summary."""
    actor = person.actor
    builders.make_thread(actor, name, resource_id="shared", title="x")
    builders.append(actor, name, {"role": "user", "content": "x"})
    builders.make_run(actor, name, f"{name}-run", agent_id="helper")
    ticket = {"ticket_id": f"{name}-k", "tool_call_id": "c1", "tool_name": "hush"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    builders.commit(actor, f"{name}-run", run=RunChange(status="waiting", waiting=waiting))
    policies.put_policy(actor=actor, scope="thread", name=name, body=raw({"snapshot_keep_last": 7}))
    builders.make_thread(actor, f"{name}-long", metadata=raw({"a": 1}))
    builders.append(actor, f"{name}-long", *builders.conversation(6, rounds=2))
    job = compactions.request_compaction(actor=actor, thread_id=f"{name}-long")
    assert compaction_jobs.run_compaction(job.public_id) == "done"
    compactions.request_compaction(actor=actor, thread_id=name)


def tie_namespaces(person: Person) -> None:
    """References between data outside and data inside, in both directions."""
    record = {"provider_id": "openai", "upstream_model": "hush"}
    builders.make_record(person.actor, "models", "hush", record)
    make_namespace(person.actor, "zzz.hush")


def tie_threads(person: Person) -> None:
    """t2 has a parent outside; t3 was forked from a thread outside, and has a child and a fork
    outside."""
    actor = person.actor
    hide_threads(person, "zz-hush")
    builders.commit(actor, "zz-hush-run", {"plan": "x"}, reads=(Read("notes", "k", 1),))
    for _ in range(2):
        dispatches.enqueue_dispatch(actor=actor, thread_id="hush", payload=raw("x"))
    mine = Thread.objects.filter(workspace_id=actor.workspace_id)
    mine.filter(public_id="t2").update(parent=mine.get(public_id="hush"))
    copied = {"thread_id": "hush", "revision": 1, "message_count": 0}
    mine.filter(public_id="t3").update(forked_from=copied)
    mine.filter(public_id="zz-hush").update(
        parent=mine.get(public_id="t3"), forked_from={**copied, "thread_id": "t3"}
    )
    Run.objects.filter(workspace_id=actor.workspace_id, public_id="r1").update(
        parent_thread_id="hush", parent_run_id="hush-run"
    )


HIDES = {
    "namespaces": (hide_namespaces, tie_namespaces),
    "threads": (hide_threads, tie_threads),
}


def make_world(workspace: str, by: str, *, hidden: bool) -> tuple[str, dict[str, str]]:
    """The restricted token of a new workspace, and the names for the words in capitals."""
    person = make_person("alice", workspace, Role.ADMIN)
    secret, narrow = make_token(person, Role.ADMIN, **INSIDE[by])
    hide, tie = HIDES[by]
    if hidden:
        hide(person)
    names = fill(person)
    hook = Webhook.objects.get(public_id=names["HOOK"])
    hook.grant_namespaces = list(narrow.namespaces)
    hook.grant_thread_prefixes = list(narrow.thread_prefixes)
    hook.save(update_fields=["grant_namespaces", "grant_thread_prefixes"])
    if hidden:
        tie(person)
        wider = {"grant_namespaces": [], "grant_thread_prefixes": []}
        copied = {"pk": None, "public_id": uuid7(), "name": "hush", **wider}
        for name, value in copied.items():
            setattr(hook, name, value)
        hook.save(force_insert=True)
    storage.measure_storage()
    return secret, names


# Values that differ between any two workspaces, or from call to call.
_VARIES = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "HEX"),
    (re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)"), "TIME"),
    (re.compile(r'("updated_at"):\d{13}\b'), r"\1:MILLISECONDS"),
    (re.compile(r'"(next_cursor|cursor)":"[^"]+"'), r'"\1":"CURSOR"'),
    (re.compile(r"^id: .*$", re.M), "id: CURSOR"),
    (re.compile(r"^retry: \d+$", re.M), "retry: SOON"),
    (re.compile(r"(ch_|whsec_)[\w+/=]+"), "SECRET"),
    (re.compile(r"\b(plain|fuller)\b"), "WORKSPACE"),
    (re.compile(r"(token|member) not found: \d+"), r"\1 not found: ID"),
)


def ask(secret: str, names: dict[str, str], row: Row) -> dict[str, Any]:
    sent = json.dumps([row.url, row.body])
    for word, name in names.items():
        sent = sent.replace(word, name)
    url, body = json.loads(sent)
    with transaction.atomic():
        found = call(secret, row.method, url, body)
        transaction.set_rollback(True)
    text = found.content.decode()
    for pattern, put in _VARIES:
        text = pattern.sub(put, text)
    varying = ("X-Request-ID", "Content-Length", "Location")
    headers = {name: value for name, value in found.headers.items() if name not in varying}
    return {"status": found.status_code, "body": text, **headers}


@pytest.mark.parametrize("by", ["namespaces", "threads"])
@pytest.mark.django_db(transaction=True)  # the feed contains committed changes only
def test_restricted_token__data_outside_its_permissions__changes_no_response(by: str) -> None:
    plain = make_world("plain", by, hidden=False)
    fuller = make_world("fuller", by, hidden=True)
    told = {}
    for row in [*TABLE, *(Row("", "GET", url, {}, 200) for url in MORE)]:
        without, beside = ask(*plain, row), ask(*fuller, row)
        if without != beside:
            told[f"{row.method} {row.url}"] = (without, beside)
    assert {name: both for name, both in told.items() if name not in TOLD[by]} == {}
    assert told.keys() == TOLD[by]
    assert not any("hush" in str(both) for both in told.values())
