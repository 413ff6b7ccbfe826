"""The pages that the sweep visits, and the data they show. A new page adds its address here."""

from __future__ import annotations

import json
from datetime import timedelta

from django.utils import timezone

from state_admin.models import Compaction, Run, Webhook, WebhookDelivery
from state_admin.services.entries import delete_entry
from state_admin.services.namespaces import unregister_namespace
from state_admin.services.webhooks import create_webhook
from state_admin.web.addresses import entry_action_url, entry_url, thread_url
from tests.builders import Person, append, make_namespace, make_run, make_thread, put
from tests.web.stories import HOSTILE, tell

BIG = {"items": [{"id": n, "tags": ["a", "b"]} for n in range(400)], "small": {"a": 1}}
EVIL_KEY = "thread::<script>alert(1)</script>"
EVIL_THREAD = "a/../<script>alert(1)</script>"

PAGES = [
    "/",
    "/state",
    "/state?namespace=team",
    "/state?show=orphans",
    "/state?prefix=nothing",
    entry_url("team", "global"),
    entry_url("team", "global", tab="text"),
    entry_url("team", "global", tab="history"),
    entry_url("team", "global", tab="history", diff="1..3"),
    entry_url("team", "global", tab="code"),
    entry_url("team", "global", version=1),
    entry_url("team", "gone"),
    entry_url("team", "never"),
    entry_url("team", "big"),
    entry_url("team", EVIL_KEY),
    entry_url("team", ".."),
    entry_url("old", "orphan"),
    entry_action_url("edit", "team", "global"),
    entry_action_url("delete", "team", "global"),
    entry_action_url("restore", "team", "global", version=1),
    "/entries/new",
    "/namespaces",
    "/namespaces/team",
    "/namespaces/old",
    "/namespaces/team/edit",
    "/namespaces/team/unregister",
    "/namespaces/+new",
    "/go?q=te",
    "/threads",
    "/threads?prefix=nothing",
    thread_url("t1"),
    thread_url("t1", message=3),
    thread_url("t1", tab="context"),
    thread_url("t1", tab="state"),
    thread_url("t1", tab="state", at=3),
    thread_url("t1", tab="state", at=3, **{"from": 2, "to": 5}),
    thread_url("t1", tab="compactions"),
    thread_url("t1", tab="runs"),
    thread_url(EVIL_THREAD),
    thread_url("empty"),
    thread_url("empty", tab="state"),
    thread_url("empty", tab="context"),
    "/thread/message/3/t1",
    "/thread/delete/t1",
    "/thread/restore/t1?at=3",
    "/runs",
    "/runs?status=done",
    "/runs/r1",
    "/runs/r2",
    "/run/cancel/r1",
    "/compactions",
    "/compactions/c1",
    "/compactions/c1/undo",
    "/state-keys",
    "/tokens",
    "/webhooks",
    "/webhooks/hook1",
    "/webhooks/hook1/resume",
    "/system",
    "/password",
    "/workspaces",
]
# Empty pages are pages too: what a person meets on the first day.
EMPTY_PAGES = ["/", "/state", "/namespaces", "/entries/new", "/system", "/go?q=x"]
EMPTY_PAGES += ["/threads", "/runs", "/compactions", "/state-keys", "/tokens", "/webhooks"]
ANONYMOUS_PAGES = ["/login", "/login/once/anything"]


def fill(alice: Person) -> None:
    """Something of every kind that the pages show."""
    schema = {"type": "object", "properties": {"goal": {"type": "string"}}}
    make_namespace(alice.actor, "team", default={"goal": ""}, description="Plans of the team")
    for goal in ("one", 2, "three"):
        put(alice.actor, "team", "global", {"goal": goal, "steps": ["a", "b"]}, tags=["vip"])
    put(alice.actor, "team", "big", BIG)
    put(alice.actor, "team", "gone", {"goal": "x"})
    put(alice.actor, "team", "..", {"goal": "dots"}, ttl_seconds=3600)
    put(alice.actor, "team", EVIL_KEY, json.loads('{"<img src=x onerror=alert(2)>": "<b>"}'))
    put(alice.actor, "team", "bad", {"goal": 7})
    delete_entry(actor=alice.actor, namespace="team", key="gone")
    make_namespace(
        alice.actor, "team", schema=schema, default={"goal": ""}, reason="goals are text"
    )
    make_namespace(alice.actor, "old")
    put(alice.actor, "old", "orphan", {"v": 1})
    unregister_namespace(actor=alice.actor, name="old", entries="retain")
    fill_threads(alice)
    fill_webhooks(alice)


def fill_webhooks(alice: Person) -> None:
    """One that the server switched off, with a delivery of each kind."""
    hook, _ = create_webhook(actor=alice.actor, name=HOSTILE[0], url="https://example.com/hook")
    Webhook.objects.update(
        public_id="hook1", status="disabled", status_reason="its receiver answered 410 Gone"
    )
    for number, status in enumerate(("delivered", "dead", "failed", "queued")):
        WebhookDelivery.objects.create(
            webhook=hook, public_id=f"d{number}", change_xid=1, change_id=number, kind="entry.put",
            subject=HOSTILE[0], status=status, body=json.dumps({"data": HOSTILE[0]}),
            error="it answered 500" if status in ("dead", "failed") else "",
        )  # fmt: skip


def fill_threads(alice: Person) -> None:
    """Conversations with runs: one that waits, one that is stuck, one that is hostile."""
    tell(alice.actor)
    Compaction.objects.update(public_id="c1")
    make_thread(alice.actor, "empty")
    make_thread(alice.actor, "t2", title="Where is my parcel?")
    make_run(alice.actor, "t2", "r2", agent_id="courier")
    silent_since = timezone.now() - timedelta(minutes=13)
    Run.objects.filter(public_id="r2").update(lease_expires_at=silent_since)
    make_thread(alice.actor, EVIL_THREAD, title=HOSTILE[0])
    append(alice.actor, EVIL_THREAD, *({"role": "user", "content": text} for text in HOSTILE))
