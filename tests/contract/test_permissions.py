"""The permissions as one table. A path or method of the API without a row fails.

Hidden resources cannot be distinguished from absent ones: the responses differ in the name alone.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.urls import URLPattern, get_resolver

from state_admin.contract.openapi import problems_of
from state_admin.domain.access import Role
from state_admin.domain.ids import uuid7
from state_admin.models import ApiToken, WebhookDelivery
from state_admin.services import (
    compaction_jobs,
    compactions,
    dispatches,
    members,
    plugins,
    revert_jobs,
    storage,
    tokens,
    webhooks,
)
from state_admin.services.actors import system_actor
from tests import builders
from tests.builders import MERGE_PATCH, Person, call, make_namespace, make_person, make_token, raw

CALLERS = ("viewer", "editor", "admin", "foreign", "other namespaces", "other threads")
NOBODY = ("anonymous", "expired", "revoked", "garbage")

# The columns, for a resource of the workspace "acme": foreign is an admin of another workspace;
# "other namespaces" and "other threads" are admin tokens of acme restricted to others.
V, E, A = (
    {"viewer": 1, "editor": 1, "admin": 1},
    {"viewer": 0, "editor": 1, "admin": 1},
    {"viewer": 0, "editor": 0, "admin": 1},
)
# For an operator's token only (tests/api/test_management.py).
N = {"viewer": 0, "editor": 0, "admin": 0}


@dataclass(frozen=True)
class Row:
    """`ok`: the status for permitted roles. `hides`: the word of the path that names the resource;
    None if the path names none (a list, a creation). `by`: the restriction that hides it."""

    path: str
    method: str
    url: str
    may: dict[str, int]
    ok: int
    body: Any = None
    hides: str | None = None
    by: str = ""
    narrowed: int | None = None  # the status for a token restricted to others, if not 404


# A webhook without filter permissions is inaccessible to every restricted token.
_ANY = "namespaces threads"
_VALUE = {"value": 1}
_MESSAGE = {"messages": [{"role": "user", "content": "hi"}]}
_UPDATE = {"updates": [{"key": "plan", "update": 1}]}

TABLE = [
    Row("/workspaces", "GET", "/workspaces", A, 200),
    Row("/workspaces", "POST", "/workspaces", N, 403, {"slug": "fresh"}),
    Row("/workspaces/{workspace}", "GET", "/workspaces/acme", A, 200, hides="acme"),
    Row("/workspaces/{workspace}", "PATCH", "/workspaces/acme", N, 403, {"name": "x"}),
    Row("/workspaces/{workspace}", "DELETE", "/workspaces/acme", N, 403),
    Row("/workspaces/{workspace}/tokens", "POST", "/workspaces/acme/tokens", N, 403,
        {"name": "x", "role": "viewer"}),
    Row("/tokens", "GET", "/tokens", A, 200),
    Row("/tokens", "POST", "/tokens", A, 201, {"name": "x", "role": "viewer"},
        by=_ANY, narrowed=403),
    Row("/tokens/{token_id}", "GET", "/tokens/TOKENID", A, 200, hides="TOKENID", by=_ANY),
    Row("/tokens/{token_id}", "PATCH", "/tokens/TOKENID", A, 200, {"name": "x"}, hides="TOKENID",
        by=_ANY),
    Row("/tokens/{token_id}", "DELETE", "/tokens/TOKENID", A, 204, hides="TOKENID", by=_ANY),
    Row("/tokens/{token_id}/rotate", "POST", "/tokens/TOKENID/rotate", A, 201,
        hides="TOKENID", by=_ANY),
    Row("/members", "GET", "/members", A, 200),
    Row("/members", "POST", "/members", A, 201, {"username": "new", "role": "viewer"},
        by=_ANY, narrowed=403),
    Row("/members/{member_id}", "GET", "/members/MEMBER", A, 200, hides="MEMBER", by=_ANY),
    Row("/members/{member_id}", "PATCH", "/members/MEMBER", A, 200, {"role": "editor"},
        hides="MEMBER", by=_ANY),
    Row("/members/{member_id}", "DELETE", "/members/MEMBER", A, 204, hides="MEMBER", by=_ANY),
    Row("/members/{member_id}/invitation", "POST", "/members/MEMBER/invitation", A, 201,
        hides="MEMBER", by=_ANY),
    Row("/members/{member_id}/sessions", "DELETE", "/members/MEMBER/sessions", A, 200,
        hides="MEMBER", by=_ANY),
    Row("/namespaces", "GET", "/namespaces", V, 200),
    Row("/namespaces/{namespace}", "GET", "/namespaces/notes", V, 200, hides="notes", by="namespaces"),
    Row("/namespaces/{namespace}", "PUT", "/namespaces/fresh", A, 201, {}, by="namespaces", narrowed=403),
    Row("/namespaces/{namespace}", "DELETE", "/namespaces/empty", A, 204, hides="empty", by="namespaces"),
    Row("/namespaces/{namespace}/compactions", "GET", "/namespaces/notes/compactions", V, 200,
        hides="notes", by="namespaces"),
    Row("/namespaces/{namespace}/compactions", "POST", "/namespaces/notes/compactions", A, 202,
        hides="notes", by="namespaces"),
    Row("/state/batch", "POST", "/state/batch", V, 200,
        {"operations": [{"op": "get", "namespace": "notes", "key": "k"}]},
        hides="notes", by="namespaces"),
    Row("/state/batch", "POST", "/state/batch", E, 200,
        {"operations": [{"op": "put", "namespace": "notes", "key": "k", "value": 1}]},
        hides="notes", by="namespaces"),
    Row("/state", "GET", "/state", V, 200),
    Row("/state", "DELETE", "/state?prefix=k", E, 200),
    Row("/state/{namespace}", "DELETE", "/state/notes", E, 200, hides="notes", by="namespaces"),
    Row("/state/{namespace}", "GET", "/state/notes", V, 200, hides="notes", by="namespaces"),
    Row("/state/{namespace}/{key}", "GET", "/state/notes/k", V, 200, hides="notes", by="namespaces"),
    Row("/state/{namespace}/{key}", "PUT", "/state/notes/k", E, 200, _VALUE, hides="notes", by="namespaces"),
    Row("/state/{namespace}/{key}", "PATCH", "/state/notes/k", E, 200, {"a": 1}, hides="notes", by="namespaces"),
    Row("/state/{namespace}/{key}", "DELETE", "/state/notes/k", E, 204, hides="notes", by="namespaces"),
    Row("/history/{namespace}/{key}", "GET", "/history/notes/k", V, 200, hides="notes", by="namespaces"),
    Row("/history/{namespace}/{key}", "PATCH", "/history/notes/k", E, 200, {"version": 1, "pinned": True},
        hides="notes", by="namespaces"),
    Row("/diff/{namespace}/{key}", "GET", "/diff/notes/k?from=1&to=2", V, 200, hides="notes", by="namespaces"),
    Row("/restore/{namespace}/{key}", "POST", "/restore/notes/k", E, 200, {"version": 1},
        hides="notes", by="namespaces"),
    Row("/restore", "POST", "/restore", E, 200,
        {"namespace": "notes", "at": "2026-01-01T00:00:00Z"},
        hides="notes", by="namespaces"),
    Row("/redact/{namespace}/{key}", "POST", "/redact/notes/k", A, 200, {"reason": "leak"},
        hides="notes", by="namespaces"),
    Row("/blame/{namespace}/{key}", "GET", "/blame/notes/k", V, 200, hides="notes", by="namespaces"),
    Row("/keys/{key}", "GET", "/keys/k", V, 200),
    Row("/keys/{key}", "DELETE", "/keys/k", E, 200),
    Row("/search", "POST", "/search", V, 200, {"where": [{"path": "/a", "equals": 2}]}),
    Row("/search", "POST", "/search", V, 200, {"text": "x", "namespace": "notes"},
        hides="notes", by="namespaces"),
    Row("/erase", "POST", "/erase", A, 200, {"key": "x", "reason": "asked"},
        by="namespaces threads", narrowed=403),
    Row("/config/{kind}", "GET", "/config/providers", V, 200, by="namespaces", narrowed=404),
    Row("/config/{kind}/{record_id}", "GET", "/config/providers/openai", V, 200,
        hides="openai", by="namespaces"),
    Row("/config/{kind}/{record_id}", "PUT", "/config/providers/fresh", A, 201, {"value": {"adapter": "x"}},
        by="namespaces", narrowed=404),
    Row("/config/{kind}/{record_id}", "PATCH", "/config/providers/openai", A, 200, {"timeout_secs": 5},
        hides="openai", by="namespaces"),
    Row("/config/{kind}/{record_id}", "DELETE", "/config/providers/openai", A, 204, by="namespaces"),
    Row("/config/{kind}/{record_id}/history", "GET", "/config/providers/openai/history", V, 200,
        hides="openai", by="namespaces"),
    Row("/config/{kind}/{record_id}/restore", "POST", "/config/providers/openai/restore", A, 200, {"version": 1},
        hides="openai", by="namespaces"),
    Row("/config/{kind}/{record_id}/dependents", "GET", "/config/providers/openai/dependents", V, 200,
        hides="openai", by="namespaces"),
    Row("/state-keys", "GET", "/state-keys", V, 200),
    Row("/state-keys/{name}", "GET", "/state-keys/plan", V, 200, hides="plan"),
    Row("/state-keys/{name}", "PUT", "/state-keys/fresh", A, 201, {}, by=_ANY, narrowed=403),
    Row("/state-keys/{name}", "DELETE", "/state-keys/plan", A, 204, hides="plan", by=_ANY, narrowed=403),
    Row("/plugins", "GET", "/plugins", V, 200),
    Row("/plugins/{name}", "GET", "/plugins/kit", V, 200, hides="kit", by=_ANY),
    Row("/plugins/{name}", "PUT", "/plugins/fresh", A, 201, {}, by=_ANY, narrowed=403),
    Row("/plugins/{name}", "DELETE", "/plugins/kit", A, 204, hides="kit", by=_ANY),
    Row("/threads", "GET", "/threads", V, 200),
    Row("/threads/delete", "POST", "/threads/delete", A, 200, {"ids": ["t1"]}),
    Row("/threads", "POST", "/threads", E, 201, {"id": "fresh"}, by="threads", narrowed=403),
    Row("/threads/{thread_id}", "GET", "/threads/t1", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}", "PATCH", "/threads/t1", E, 200, {"title": "x"}, hides="t1", by="threads"),
    Row("/threads/{thread_id}", "DELETE", "/threads/t1", A, 204, hides="t1", by="threads"),
    Row("/threads/{thread_id}/messages", "GET", "/threads/t1/messages", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/messages", "POST", "/threads/t1/messages", E, 201, _MESSAGE,
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/context", "GET", "/threads/t1/context", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/state", "GET", "/threads/t1/state", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/snapshots", "GET", "/threads/t1/snapshots", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/snapshots/{revision}", "PATCH", "/threads/t1/snapshots/1", E, 200, {"label": "x"},
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/diff", "GET", "/threads/t1/diff?from=0&to=1", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/restore", "POST", "/threads/t1/restore", E, 200, {"revision": 1},
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/import", "POST", "/threads/t1/import", E, 200,
        {"snapshot": {"revision": 1, "extensions": {}}}, hides="t1", by="threads"),
    Row("/threads/{thread_id}/fork", "POST", "/threads/t1/fork", E, 201, {}, hides="t1", by="threads"),
    Row("/threads/{thread_id}/lineage", "GET", "/threads/t1/lineage", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/runs", "POST", "/threads/t2/runs", E, 201, {}, hides="t2", by="threads"),
    Row("/threads/{thread_id}/compactions", "GET", "/threads/t1/compactions", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/compactions", "GET", "/threads/t1/compactions?kind=snapshot", V, 200,
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/compactions", "POST", "/threads/t1/compactions", E, 202, {},
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/compactions", "POST", "/threads/t2/compactions", A, 202, {"kind": "snapshot"},
        hides="t2", by="threads"),
    Row("/compaction-policies/threads/{thread_id}", "PUT", "/compaction-policies/threads/t2", A, 200,
        {"snapshot_keep_last": 5}, hides="t2", by="threads"),
    Row("/runs", "GET", "/runs", V, 200),
    Row("/runs/{run_id}", "GET", "/runs/r1", V, 200, hides="r1", by="threads"),
    Row("/runs/{run_id}", "PATCH", "/runs/r1", E, 200, {"input_tokens": 5}, hides="r1", by="threads"),
    Row("/runs/{run_id}/commits", "POST", "/runs/r1/commits", E, 200, _UPDATE, hides="r1", by="threads"),
    Row("/runs/{run_id}/heartbeat", "POST", "/runs/r1/heartbeat", E, 200, hides="r1", by="threads"),
    Row("/runs/cancel", "POST", "/runs/cancel", E, 200, {"ids": ["r1"]}),
    Row("/runs/{run_id}/cancel", "POST", "/runs/r1/cancel", E, 200, hides="r1", by="threads"),
    Row("/runs/{run_id}/lease", "POST", "/runs/r1/lease", E, 200, hides="r1", by="threads"),
    Row("/runs/{run_id}/lease", "DELETE", "/runs/r1/lease", E, 200, hides="r1", by="threads"),
    Row("/runs/{run_id}/fail", "POST", "/runs/r1/fail", E, 200, {"message": "x"}, hides="r1", by="threads"),
    Row("/runs/{run_id}/resume", "POST", "/runs/r1/resume", E, 200, {"revision": 1},
        hides="r1", by="threads"),
    Row("/runs/{run_id}/knowledge", "GET", "/runs/r1/knowledge", V, 200, hides="r1", by="threads"),
    Row("/runs/{run_id}/reads", "GET", "/runs/r1/reads", V, 200, hides="r1", by="threads"),
    Row("/reads/{namespace}/{key}", "GET", "/reads/notes/k", V, 200, hides="notes", by="namespaces"),
    Row("/runs/{run_id}/tickets", "GET", "/runs/r1/tickets", V, 200, hides="r1", by="threads"),
    Row("/tickets", "GET", "/tickets", V, 200),
    Row("/tickets/{ticket_id}", "GET", "/tickets/k1", V, 200, hides="k1", by="threads"),
    Row("/tickets/{ticket_id}/decision", "POST", "/tickets/k1/decision", E, 200, {"action": "resume"},
        hides="k1", by="threads"),
    Row("/threads/{thread_id}/dispatches", "POST", "/threads/t1/dispatches", E, 201, {"payload": 1},
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/interrupt", "POST", "/threads/t1/interrupt", E, 200, hides="t1", by="threads"),
    Row("/dispatches", "GET", "/dispatches", V, 200),
    Row("/dispatches/counts", "GET", "/dispatches/counts", V, 200),
    Row("/dispatches/claim", "POST", "/dispatches/claim", E, 200, {"thread_id": "t1"},
        hides="t1", by="threads"),
    Row("/dispatches/{dispatch_id}", "GET", "/dispatches/HELD", V, 200, hides="HELD", by="threads"),
    Row("/dispatches/{dispatch_id}/extend", "POST", "/dispatches/HELD/extend", E, 200, {"claim_token": "TOKEN"},
        hides="HELD", by="threads"),
    Row("/dispatches/{dispatch_id}/ack", "POST", "/dispatches/HELD/ack", E, 200, {"claim_token": "TOKEN"},
        hides="HELD", by="threads"),
    Row("/dispatches/{dispatch_id}/nack", "POST", "/dispatches/HELD/nack", E, 200, {"claim_token": "TOKEN"},
        hides="HELD", by="threads"),
    Row("/dispatches/{dispatch_id}/cancel", "POST", "/dispatches/WAITING/cancel", E, 200,
        hides="WAITING", by="threads"),
    Row("/dispatches/{dispatch_id}/replay", "POST", "/dispatches/GIVEN-UP/replay", E, 200,
        hides="GIVEN-UP", by="threads"),
    Row("/dispatches/replay", "POST", "/dispatches/replay", E, 200, {"thread_id": "t1"},
        hides="t1", by="threads"),
    Row("/dispatches/clear", "POST", "/dispatches/clear", A, 200, {"thread_id": "t1"},
        hides="t1", by="threads"),
    Row("/compactions", "GET", "/compactions", V, 200),
    Row("/compactions/{compaction_id}", "GET", "/compactions/DONE", V, 200, hides="DONE", by="threads"),
    Row("/compactions/{compaction_id}/messages", "GET", "/compactions/DONE/messages", V, 200, hides="DONE", by="threads"),
    Row("/compactions/{compaction_id}/undo", "POST", "/compactions/DONE/undo", E, 200, hides="DONE", by="threads"),
    Row("/compactions/{compaction_id}/cancel", "POST", "/compactions/QUEUED/cancel", E, 200,
        hides="QUEUED", by="threads"),
    Row("/compactions/{compaction_id}/retry", "POST", "/compactions/SKIPPED/retry", E, 202,
        hides="SKIPPED", by="threads"),
    Row("/compaction-policies", "GET", "/compaction-policies", V, 200),
    Row("/compaction-policies/workspace", "GET", "/compaction-policies/workspace", V, 200),
    Row("/compaction-policies/workspace", "PUT", "/compaction-policies/workspace", A, 200, {},
        by="threads", narrowed=403),
    Row("/compaction-policies/workspace", "DELETE", "/compaction-policies/workspace", A, 204,
        by="threads", narrowed=403),
    Row("/compaction-policies/agents/{agent_id}", "GET", "/compaction-policies/agents/a1", V, 200),
    Row("/compaction-policies/agents/{agent_id}", "PUT", "/compaction-policies/agents/a1", A, 200, {},
        by="threads", narrowed=403),
    Row("/compaction-policies/agents/{agent_id}", "DELETE", "/compaction-policies/agents/a1", A, 204,
        by="threads", narrowed=403),
    Row("/compaction-policies/threads/{thread_id}", "GET", "/compaction-policies/threads/t1", V, 200,
        hides="t1", by="threads"),
    Row("/compaction-policies/threads/{thread_id}", "PUT", "/compaction-policies/threads/t1", E, 200, {},
        hides="t1", by="threads"),
    Row("/compaction-policies/threads/{thread_id}", "DELETE", "/compaction-policies/threads/t1", E, 204,
        hides="t1", by="threads"),
    Row("/changes", "GET", "/changes", V, 200),
    Row("/changes/stream", "GET", "/changes/stream", V, 200),
    Row("/threads/{thread_id}/ag-ui/stream", "GET", "/threads/t1/ag-ui/stream", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/ag-ui/stream", "POST", "/threads/t1/ag-ui/stream", V, 200, {"threadId": "t1", "runId": "x"},
        hides="t1", by="threads"),
    Row("/threads/{thread_id}/ui-messages", "GET", "/threads/t1/ui-messages", V, 200, hides="t1", by="threads"),
    Row("/threads/{thread_id}/ui-messages/stream", "GET", "/threads/t1/ui-messages/stream", V, 200,
        hides="t1", by="threads"),
    Row("/agent-protocol/store/items", "GET", "/agent-protocol/store/items?namespace=a.b&key=k", V, 200),
    Row("/agent-protocol/store/items", "PUT", "/agent-protocol/store/items", E, 204,
        {"namespace": ["a", "b"], "key": "k", "value": {}}, by="namespaces", narrowed=404),
    Row("/agent-protocol/store/items", "DELETE", "/agent-protocol/store/items", E, 204,
        {"namespace": ["a", "b"], "key": "k"}),
    Row("/agent-protocol/store/items/search", "POST", "/agent-protocol/store/items/search", V, 200, {}),
    Row("/agent-protocol/store/namespaces", "POST", "/agent-protocol/store/namespaces", V, 200, {}),
    Row("/agent-protocol/threads", "POST", "/agent-protocol/threads", E, 200, {"thread_id": "fresh"},
        by="threads", narrowed=403),
    Row("/agent-protocol/threads/search", "POST", "/agent-protocol/threads/search", V, 200, {}),
    Row("/agent-protocol/threads/count", "POST", "/agent-protocol/threads/count", V, 200, {}),
    Row("/agent-protocol/threads/{thread_id}", "GET", "/agent-protocol/threads/t1", V, 200, hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}", "PATCH", "/agent-protocol/threads/t1", E, 200, {"metadata": {"a": 1}},
        hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}", "DELETE", "/agent-protocol/threads/t1", A, 204, hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/copy", "POST", "/agent-protocol/threads/t2/copy", E, 200,
        hides="t2", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/state", "GET", "/agent-protocol/threads/t1/state", V, 200,
        hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/state", "POST", "/agent-protocol/threads/t1/state", E, 200, {"values": {"plan": 1}},
        hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/state/{checkpoint_id}", "GET", "/agent-protocol/threads/t1/state/1", V, 200,
        hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/state/checkpoint", "POST", "/agent-protocol/threads/t1/state/checkpoint", V, 200,
        {"checkpoint": {"checkpoint_id": "1"}}, hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/history", "GET", "/agent-protocol/threads/t1/history", V, 200,
        hides="t1", by="threads"),
    Row("/agent-protocol/threads/{thread_id}/history", "POST", "/agent-protocol/threads/t1/history", V, 200, {},
        hides="t1", by="threads"),
    Row("/webhooks", "GET", "/webhooks", V, 200),
    Row("/webhooks", "POST", "/webhooks", A, 201, {"name": "x", "url": "https://example.com/x"}),
    Row("/webhooks/{webhook_id}", "GET", "/webhooks/HOOK", V, 200, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}", "PATCH", "/webhooks/HOOK", A, 200, {"name": "y"}, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}", "DELETE", "/webhooks/HOOK", A, 204, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}/pause", "POST", "/webhooks/HOOK/pause", A, 200, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}/resume", "POST", "/webhooks/HOOK/resume", A, 200, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}/rotate", "POST", "/webhooks/HOOK/rotate", A, 200, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}/test", "POST", "/webhooks/HOOK/test", A, 202, hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}/replay", "POST", "/webhooks/HOOK/replay", A, 202, {"dead_letters": True},
        hides="HOOK", by=_ANY),
    Row("/webhooks/{webhook_id}/deliveries", "GET", "/webhooks/HOOK/deliveries", V, 200, hides="HOOK", by=_ANY),
    Row("/deliveries/{delivery_id}/replay", "POST", "/deliveries/LETTER/replay", A, 202, hides="LETTER", by=_ANY),
    Row("/audit", "GET", "/audit", A, 200),
    Row("/reverts", "GET", "/reverts", V, 200),
    Row("/reverts", "POST", "/reverts", E, 202, {"request_id": "some-request"}),
    Row("/reverts/{revert_id}", "GET", "/reverts/REVERT", V, 200, hides="REVERT", by=_ANY),
    Row("/reverts/{revert_id}/skipped", "GET", "/reverts/REVERT/skipped", V, 200, hides="REVERT", by=_ANY),
    Row("/reverts/{revert_id}/cancel", "POST", "/reverts/REVERT/cancel", E, 200, hides="REVERT", by=_ANY),
    Row("/me", "GET", "/me", V, 200),
    Row("/version", "GET", "/version", V, 200),
    Row("/usage", "GET", "/usage", V, 200),
    Row("/usage/storage", "GET", "/usage/storage?group=namespace", V, 200),
    Row("/usage/storage", "GET", "/usage/storage?group=thread", V, 200),
    Row("/usage/storage/namespaces/{namespace}", "GET", "/usage/storage/namespaces/notes", V, 200,
        hides="notes", by="namespaces"),
    Row("/usage/storage/threads/{thread_id}", "GET", "/usage/storage/threads/t1", V, 200, hides="t1", by="threads"),
    Row("/access/explain", "GET", "/access/explain?username=alice", A, 200),
    Row("unknown", "GET", "/nonsense", V, 404),
    Row("unknown", "POST", "/nonsense", V, 404, {}),
]  # fmt: skip
OPEN = {"schema", "docs"}


@dataclass
class World:
    """acme with one resource of each kind; `names` replaces the words in capitals of a path."""

    alice: Person
    secrets: dict[str, str | None]
    names: dict[str, str]

    def call(self, caller: str, row: Row, *, absent: bool = False) -> Any:
        url, body, content_type = self.request_of(row, absent=absent)
        with transaction.atomic():
            answer = call(self.secrets[caller], row.method, url, body, content_type=content_type)
            transaction.set_rollback(True)
        return answer

    def request_of(self, row: Row, *, absent: bool = False) -> tuple[str, Any, str]:
        """The path, the body and its type."""
        sent = json.dumps([row.url, row.body])
        if absent and row.hides:
            sent = sent.replace(f"/{row.hides}", f"/no-{row.hides}")
            sent = sent.replace(f'"{row.hides}"', f'"no-{row.hides}"')
        for word, name in self.names.items():
            sent = sent.replace(word, name)
        url, body = json.loads(sent)
        patched = row.method == "PATCH" and row.path in (
            "/state/{namespace}/{key}",
            "/config/{kind}/{record_id}",
        )
        return url, body, MERGE_PATCH if patched else "application/json"


@pytest.fixture
def world(alice: Person, bob: Person, mallory: Person) -> World:
    editor = make_person("erin", "acme", Role.EDITOR)
    names = fill(alice)
    shell = system_actor(alice.workspace.pk, "operator")
    _, operator = tokens.create_token(actor=shell, name="op", role=Role.ADMIN, operator=True)
    return World(
        alice,
        {
            "viewer": bob.token,
            "editor": editor.token,
            "admin": alice.token,
            "operator": operator,
            "foreign": mallory.token,
            "other namespaces": make_token(alice, Role.ADMIN, namespaces=["else.*"])[0],
            "other threads": make_token(alice, Role.ADMIN, thread_prefixes=["else-"])[0],
            "anonymous": None,
            "garbage": "ch_0123456789ab_" + "0" * 64,
            "expired": _dead(alice, expires_at=Now() - timedelta(hours=1)),
            "revoked": _dead(alice, revoked_at=Now()),
        },
        names,
    )


def fill(alice: Person) -> dict[str, str]:
    """Create everything that a row of the table refers to; returns the words in capitals."""
    make_namespace(alice.actor, "notes")
    make_namespace(alice.actor, "empty")
    make_namespace(alice.actor, "agent_store")
    for value in ({"a": 0}, {"a": 2}):
        builders.put(alice.actor, "notes", "k", value)
    builders.make_record(alice.actor, "providers", "openai", {"adapter": "openai"})
    builders.make_state_key(alice.actor, "plan")
    plugins.install_plugin(actor=alice.actor, name="kit")
    for thread_id in ("t1", "t2", "t3"):
        builders.make_thread(alice.actor, thread_id)
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
    builders.make_run(alice.actor, "t1", "r1")
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    builders.commit(
        alice.actor, "r1", run=builders.runs.RunChange(status="waiting", waiting=waiting)
    )
    builders.append(alice.actor, "t2", *builders.conversation(6, rounds=2))
    names = {}
    for status, thread_id in (("DONE", "t2"), ("SKIPPED", "t1"), ("QUEUED", "t3")):
        job = compactions.request_compaction(actor=alice.actor, thread_id=thread_id)
        names[status] = job.public_id
        if status != "QUEUED":
            assert compaction_jobs.run_compaction(job.public_id) == status.lower()
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="billing", url="https://example.com/")
    letter = WebhookDelivery.objects.create(
        webhook=hook, public_id=uuid7(), change_xid=1, change_id=1, status="dead", body="{}"
    )
    storage.measure_storage()
    spare, _ = tokens.create_token(actor=alice.actor, name="spare", role=Role.VIEWER)
    guest = f"guest-of-{alice.workspace.slug}"
    added = members.add_member(actor=alice.actor, username=guest, role=Role.VIEWER)
    revert = revert_jobs.request_revert(actor=alice.actor, request_id="other-request")
    names |= {"REVERT": revert.public_id}
    names |= {"TOKENID": str(spare.pk), "MEMBER": str(added.membership.pk)}
    return names | _fill_mailboxes(alice) | {"HOOK": hook.public_id, "LETTER": letter.public_id}


def _fill_mailboxes(alice: Person) -> dict[str, str]:
    """A dead letter on t1, a claimed dispatch on t2, a queued one on t3."""
    ids = {}
    for word, thread_id in (("GIVEN-UP", "t1"), ("HELD", "t2"), ("WAITING", "t3")):
        made = dispatches.enqueue_dispatch(
            actor=alice.actor, thread_id=thread_id, payload=raw(1), max_attempts=1
        )
        ids[word] = made.public_id
        if word != "WAITING":
            ids["TOKEN"] = dispatches.claim_dispatches(actor=alice.actor).token
        if word == "GIVEN-UP":
            dispatches.nack_dispatch(
                actor=alice.actor, dispatch_id=made.public_id, claim_token=ids["TOKEN"]
            )
    return ids


def _dead(person: Person, **columns: Any) -> str:
    row, secret = tokens.create_token(actor=person.actor, name="dead", role=Role.ADMIN)
    ApiToken.objects.filter(pk=row.pk).update(**columns)
    return secret


def _hidden(row: Row) -> int:
    """The status for a client from which the resource is hidden: that of an absent one, whose
    deletion succeeds (tests/contract/test_deletions.py)."""
    if not row.hides:
        return row.ok
    problems = problems_of(paths()[row.path].cls.operations[row.method])
    deleted = row.method == "DELETE" and not problems & {"not-found", "not-registered"}
    return row.ok if deleted else 404


def _expected(row: Row, caller: str) -> int:
    if caller in row.may:
        return row.ok if row.may[caller] else 403
    hidden = _hidden(row)
    if caller == "foreign":
        return hidden
    narrows = caller.removeprefix("other ") in row.by.split()
    return (row.narrowed or hidden) if narrows else row.ok


def test_permission__every_path_and_role__has_the_status_of_the_table(world: World) -> None:
    wrong = {}
    for row in TABLE:
        wanted = {caller: _expected(row, caller) for caller in CALLERS} | dict.fromkeys(NOBODY, 401)
        got = {caller: world.call(caller, row).status_code for caller in wanted}
        if got != wanted:
            wrong[f"{row.method} {row.url}"] = sorted(got.items() - wanted.items())
    assert wrong == {}


def test_permission__hidden_resource__gets_the_response_of_an_absent_one(world: World) -> None:
    for row in TABLE:
        if row.hides is None:
            continue
        name = world.names.get(row.hides, row.hides)
        hidden_from = row.by.split() if row.narrowed in (None, 404) else []
        for caller in ("foreign", *(f"other {by}" for by in hidden_from)):
            hidden, absent = (world.call(caller, row, absent=a) for a in (False, True))
            assert hidden.status_code == absent.status_code == _hidden(row), (row, caller)
            assert _shape(hidden) == _shape(absent, f"no-{name}"), (row, caller)


def _shape(answer: Any, absent: str = "") -> tuple[str, dict[str, str]]:
    """Body and headers without what differs from request to request."""
    body = answer.json() if answer.content else {"instance": ""}
    del body["instance"]
    text = json.dumps(body)
    if absent:
        text = text.replace(absent, absent.removeprefix("no-"))
    varying = ("X-Request-ID", "Content-Length")
    return text, {name: value for name, value in answer.headers.items() if name not in varying}


def test_lists__inaccessible_resources__are_not_included(world: World) -> None:
    for caller in ("foreign", "other namespaces", "other threads"):
        assert _leaks(world, caller) == [], caller


def _words(world: World) -> list[str]:
    """The names that can be searched for in a text; ids of one or two digits occur everywhere."""
    return [name for name in world.names.values() if not name.isdigit()]


def _leaks(world: World, caller: str) -> list[str]:
    seen = "".join(
        world.call(caller, row).content.decode()
        for row in TABLE
        if row.method == "GET" and row.hides is None and row.path not in ("/me", "/changes/stream")
    )
    out_of_reach = {
        "other namespaces": ['"notes"', '"empty"', '"installed_at"'],
        "other threads": ['"installed_at"', '"t1"', '"t2"', '"r1"', '"k1"', *_words(world)],
    }
    everything = [word for words in out_of_reach.values() for word in words]
    hidden = out_of_reach.get(caller, everything)
    return [word for word in hidden if word in seen]


@functools.cache
def paths() -> dict[str, Any]:
    found = {}
    for urls in ("state_admin.api.urls", "state_admin.protocols.urls"):
        below = list(get_resolver(urls).url_patterns)
        while below:
            pattern = below.pop()
            if isinstance(pattern, URLPattern):
                found[pattern.name] = pattern.callback
            else:
                below += pattern.url_patterns
    return found


def test_table__every_path_and_method__has_a_row() -> None:
    missing = []
    for name, callback in paths().items():
        methods = [m.upper() for m in ("get", "post", "put", "patch", "delete")]
        offered = [m for m in methods if hasattr(callback.cls, m.lower())]
        rows = {row.method for row in TABLE if row.path == name}
        missing += [f"{m} {name}" for m in offered if name not in OPEN and m not in rows]
    assert missing == []
    assert {row.path for row in TABLE} | OPEN == set(paths())


def test_permission__refused_write_with_an_idempotency_key__is_still_refused(world: World) -> None:
    for row in TABLE:
        if row.method != "GET" and not row.may["viewer"]:
            answer = call(
                world.secrets["viewer"],
                row.method,
                row.url,
                row.body,
                Idempotency_Key=f"{row.method} {row.url}",
            )
            assert answer.status_code == 403, row
