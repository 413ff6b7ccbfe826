"""The pages that the sweep visits, and the data they show. Add the URL of a new page here."""

from __future__ import annotations

import json
from datetime import timedelta

from django.utils import timezone

from state_admin.domain.access import Actor
from state_admin.models import (
    Compaction,
    Dispatch,
    DispatchStatus,
    ModelSpending,
    Revert,
    RevertEntry,
    Run,
    StorageSample,
    Traffic,
    ViewPage,
    Webhook,
    WebhookDelivery,
)
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.entries import delete_entry
from state_admin.services.forks import fork_thread
from state_admin.services.namespaces import unregister_namespace
from state_admin.services.revert_jobs import request_revert
from state_admin.services.saved_views import save_view
from state_admin.services.snapshots import Read
from state_admin.services.storage import measure_storage
from state_admin.services.webhooks import create_webhook
from state_admin.web.addresses import entry_action_url, entry_url, thread_url
from tests.builders import (
    Person,
    append,
    commit,
    make_namespace,
    make_record,
    make_run,
    make_thread,
    put,
    raw,
)
from tests.web.stories import HOSTILE, create_story

BIG = {"items": [{"id": n, "tags": ["a", "b"]} for n in range(400)], "small": {"a": 1}}
EVIL_KEY = "thread::<script>alert(1)</script>"
EVIL_THREAD = "a/../<script>alert(1)</script>"

# Lists that belong to a resource: the rest of their URL.
LISTS_OF = {
    "config-list": ["providers"],
    "entry-history": ["team", "global"],
    "thread-runs": ["t1"],
    "webhook-deliveries": ["hook1"],
}

PAGES = [
    "/",
    "/state",
    "/state?namespace=team",
    "/state?show=orphans",
    "/state?prefix=nothing",
    "/state?tag=vip&actor=alice",
    "/state?text=a",
    "/state?namespace=team&scope=thread",
    "/state?namespace=team&columns=/goal,/steps,size,version&until=2030-01-31T18:30",
    "/state?namespace=team&columns=changed,version,size,actor&sort=-changed",
    "/state?sort=-changed",
    "/state?namespace=team&open=team/global",
    entry_url("team", "global"),
    entry_url("team", "global", tab="text"),
    entry_url("team", "global", tab="history"),
    entry_url("team", "global", tab="history", diff="1..3"),
    entry_url("team", "global", tab="history", diff="1..3", view="sides"),
    entry_url("team", "long", tab="history", diff="1..2", view="sides"),
    entry_url("team", "global", tab="history", path="/goal"),
    entry_url("team", "global", tab="history", path="/no/such/path"),
    entry_url("team", "global", tab="blame"),
    entry_url("team", "global", tab="code"),
    entry_url("team", "global", version=1),
    entry_url("team", "gone"),
    entry_url("team", "never"),
    entry_url("team", "big"),
    entry_url("team", "long"),
    entry_url("team", "long", tab="text"),
    entry_url("team", "long", tab="blame"),
    entry_action_url("edit", "team", "long"),
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
    "/namespaces/team/compact",
    "/namespaces/+new",
    "/go?q=te",
    "/go?q=the",
    "/changes",
    "/changes?kind=entry&namespace=team",
    "/audit",
    "/audit?actor=alice&action=entry",
    "/threads",
    "/threads?size=10&sort=oldest",
    "/threads?sort=id",
    "/threads?since=week&status=idle",
    "/threads?sort=tokens",
    "/threads?sort=activity",
    "/threads?text=refund",
    "/threads?text=-",
    "/threads?prefix=nothing",
    thread_url("t1"),
    thread_url("t1", message=3),
    thread_url("t1", tab="context"),
    thread_url("t1", tab="state"),
    thread_url("t1", tab="state", at=3),
    thread_url("t1", tab="state", at=3, **{"from": 2, "to": 5}),
    thread_url("t1", tab="compactions"),
    thread_url("t1", tab="runs"),
    thread_url("t1", tab="runs", sort="-steps", columns="steps,status"),
    thread_url("t1", tab="lineage"),
    thread_url(EVIL_THREAD, tab="lineage"),
    "/run/lineage/r1",
    thread_url(EVIL_THREAD),
    thread_url("empty"),
    thread_url("empty", tab="state"),
    thread_url("empty", tab="context"),
    "/thread/message/3/t1",
    "/thread/delete/t1",
    "/thread/compact-snapshots/t1",
    "/thread/restore/t1?at=3",
    "/thread/fork/t1?at=3",
    thread_url("t1-fork", tab="state"),
    thread_url("t1-child"),
    "/runs",
    "/runs?status=done",
    "/runs?sort=-duration",
    "/runs?since=week&age=10m&sort=oldest",
    "/runs/r1",
    "/runs/r2",
    "/run/cancel/r1",
    "/inbox",
    "/inbox?tool=nothing",
    "/ticket/tk1",
    "/mailbox",
    "/mailbox?status=DeadLetter",
    "/mailbox/replay",
    "/mailbox/clear",
    "/run/resume/r1?revision=3",
    "/run/release/r2",
    "/run/knowledge/r1",
    "/run/knowledge/r1?step=1",
    "/run/knowledge/r2",
    entry_action_url("readers", "team", "global", version=1),
    entry_action_url("readers", "team", "global"),
    entry_action_url("readers", "team", EVIL_KEY),
    "/compactions",
    "/compactions/c1",
    "/compactions/c1/undo",
    "/reverts",
    "/reverts/rv1",
    "/reverts/+new",
    "/policies",
    "/policies/+new",
    "/policy",
    "/policy?scope=agent&name=helper-7",
    "/policy?scope=thread&name=t1",
    "/state-keys",
    "/plugins/+install",
    "/plugins/kit/uninstall",
    "/config",
    "/config/models",
    "/config/agents?prefix=nothing",
    "/config/providers/openai",
    "/config/providers/openai/edit",
    "/config/providers/openai/edit?as=json",
    "/config/models/big/edit",
    "/config/providers/openai/delete",
    "/config/models/+new",
    "/config/agents/fresh/edit",
    "/members",
    "/members?text=nobody",
    "/members/+new",
    "/tokens",
    "/tokens?state=live&sort=name",
    "/tokens/+new",
    "/access",
    "/access?username=alice&namespace=config.models&key=big",
    "/sessions",
    "/sessions/end",
    "/sign-in",
    "/sign-in/totp",
    "/sign-in/totp/codes",
    "/sign-in/totp/remove",
    "/webhooks",
    "/webhooks?text=nothing&status=paused",
    "/webhooks/+new",
    "/webhooks/hook1",
    "/webhooks/hook1/resume",
    "/usage",
    "/usage?days=90",
    "/usage?by=agent",
    "/?hours=1",
    "/?hours=1&charts=1",
    "/system",
    "/password",
    "/workspaces",
]
# Pages without data: what a user sees on the first day.
EMPTY_PAGES = ["/", "/state", "/namespaces", "/entries/new", "/system", "/go?q=x"]
EMPTY_PAGES += ["/threads", "/runs", "/inbox", "/mailbox", "/compactions", "/policies"]
EMPTY_PAGES += ["/state-keys", "/tokens", "/webhooks", "/config", "/usage", "/changes", "/audit"]
ANONYMOUS_PAGES = ["/login", "/login/once/anything"]


def fill(alice: Person) -> None:
    """A resource of every kind that the pages show."""
    schema = {"type": "object", "properties": {"goal": {"type": "string"}}}
    make_namespace(alice.actor, "team", default={"goal": ""}, description="Plans of the team")
    for goal in ("one", 2, "three"):
        put(alice.actor, "team", "global", {"goal": goal, "steps": ["a", "b"]}, tags=["vip"])
    put(alice.actor, "team", "big", BIG)
    for word in ("word ", "text "):
        put(alice.actor, "team", "long", {"text": word * 30_000})
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
    for page in ViewPage:
        save_view(actor=alice.actor, page=page, name=HOSTILE[0][:64], query="agent=x", shared=True)
    fill_config(alice)
    fill_threads(alice)
    make_running_revert(alice.actor, HOSTILE[0], ("team", EVIL_KEY), HOSTILE[0])
    fill_webhooks(alice)
    fill_mailbox(alice)
    fill_usage(alice)


def make_running_revert(actor: Actor, reason: str, skipped: tuple[str, str], why: str) -> None:
    """A revert that has skipped an entry."""
    job = request_revert(actor=actor, request_id="request-1", reason=reason)
    Revert.objects.update(public_id="rv1", status="running", total=20, reverted=6, skipped=1)
    namespace, key = skipped
    RevertEntry.objects.create(
        workspace=job.workspace, revert=job, namespace=namespace, key=key, version=1, why=why
    )


def fill_usage(alice: Person) -> None:
    """Storage today and a week ago; a day of spending; an hour of calls."""
    measure_storage()
    week_ago = timezone.now().date() - timedelta(days=7)
    for sample in StorageSample.objects.all():
        sample.pk, sample.day, sample.total_bytes = None, week_ago, sample.total_bytes // 2
        sample.save(force_insert=True)
    ModelSpending.objects.create(workspace=alice.workspace, day=week_ago, cost_usd="0.42")
    now = timezone.now().replace(second=0, microsecond=0)
    for ago in range(50):
        Traffic.objects.create(
            workspace=alice.workspace,
            minute=now - timedelta(minutes=ago),
            reads=ago % 9 * 1_000,
            writes=ago % 7,
            conflicts=ago % 5,
            queued=ago // 9,
        )


def fill_config(alice: Person) -> None:
    """A provider with a secret, and records that refer to it."""
    secret = {"adapter": "openai", "api_key": "canary-of-the-pages"}
    make_record(alice.actor, "providers", "openai", secret)
    model = {"provider_id": "openai", "upstream_model": HOSTILE[0]}
    make_record(alice.actor, "models", "big", model)
    make_record(alice.actor, "agents", "planner", {"model_id": "big", "system_prompt": HOSTILE[0]})


def fill_webhooks(alice: Person) -> None:
    """A webhook disabled by the server, with a delivery of each kind."""
    hook, _ = create_webhook(actor=alice.actor, name=HOSTILE[0], url="https://example.com/hook")
    Webhook.objects.update(
        public_id="hook1", status="disabled", status_reason="the receiver returned 410 Gone"
    )
    for number, status in enumerate(("delivered", "dead", "failed", "queued")):
        WebhookDelivery.objects.create(
            webhook=hook, public_id=f"d{number}", change_xid=1, change_id=number, kind="entry.put",
            subject=HOSTILE[0], status=status, body=json.dumps({"data": HOSTILE[0]}),
            error="the receiver returned 500" if status in ("dead", "failed") else "",
        )  # fmt: skip


def fill_mailbox(alice: Person) -> None:
    """A dispatch of each status, as far as a thread can have them at the same time."""
    made = [
        enqueue_dispatch(
            actor=alice.actor, thread_id=EVIL_THREAD, payload=raw(HOSTILE[0]), agent_id=HOSTILE[0]
        )
        for _ in DispatchStatus.values
    ]
    for row, status in zip(made, DispatchStatus.values, strict=True):
        error = HOSTILE[0] if status == DispatchStatus.DEAD else ""
        Dispatch.objects.filter(pk=row.pk).update(status=status, last_error=error)


def fill_threads(alice: Person) -> None:
    """Conversations with runs: one that waits, one that is stuck, one with hostile texts."""
    create_story(alice.actor)
    Compaction.objects.update(public_id="c1")
    make_thread(alice.actor, "empty")
    fork_thread(actor=alice.actor, thread_id="t1", fork_id="t1-fork", revision=3)
    make_thread(alice.actor, "t2", title="Where is my parcel?")
    make_run(alice.actor, "t2", "r2", agent_id="courier")
    reads = [Read("team", "global", 1), Read("team", EVIL_KEY, 1), Read("team", "never", 0)]
    commit(alice.actor, "r2", reads=reads)
    silent_since = timezone.now() - timedelta(minutes=13)
    Run.objects.filter(public_id="r2").update(lease_expires_at=silent_since)
    make_thread(alice.actor, EVIL_THREAD, title=HOSTILE[0])
    append(alice.actor, EVIL_THREAD, *({"role": "user", "content": text} for text in HOSTILE))
