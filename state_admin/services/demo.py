"""Loads the demo workspace: a travel desk of three agents, with runs and history.

demo.json holds the content as steps. Each names a verb of _VERBS (`do`), the actor (`as`: an agent,
the operator, or a person who is a member of `default`) and the arguments.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from state_admin.contract.webhooks import WebhookFilter
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.config import Kind
from state_admin.domain.merging import Batch, Update
from state_admin.domain.values import JSON, Raw
from state_admin.models import Membership, Namespace, Traffic, User

from . import (
    commits,
    compaction_jobs,
    compactions,
    config,
    dispatches,
    entries,
    forks,
    namespaces,
    plugins,
    policies,
    runs,
    saved_views,
    snapshots,
    state_keys,
    threads,
    webhook_flow,
    webhooks,
)
from .actors import actor_of_user, system_actor
from .commits import Step
from .runs import RunChange
from .snapshots import Read
from .workspaces import add_member, ensure_workspace

WORKSPACE: Final = "demo"

_DATA = Path(__file__).with_name("demo.json")
_AGENTS = ("planner", "booker", "critic")
# Arguments that take any JSON, and those that list arguments of other verbs.
_ANY_JSON = {"schema", "default", "value", "body", "payload"}
_NESTED = {"state_keys", "namespaces"}


def load_demo() -> bool:
    """Create the workspace `demo`. The members of `default` become its members. False: it existed and
    was not changed."""
    workspace, _ = ensure_workspace(WORKSPACE)
    operator = system_actor(workspace.pk, "demo")
    actors: dict[str, Actor | None] = {"operator": operator}
    actors |= {name: system_actor(workspace.pk, name) for name in _AGENTS}
    for membership in Membership.objects.filter(workspace__slug="default").select_related("user"):
        user: User = membership.user
        add_member(workspace=workspace, user=user, role=Role(membership.role))
        actors["person"] = actor_of_user(user, WORKSPACE)
    if Namespace.objects.visible_to(operator).open().exists():
        return False
    data = json.loads(_DATA.read_text())
    for step in data["steps"]:
        actor = actors.get(step.pop("as"))  # None: `default` has no member yet
        verb = _VERBS[step.pop("do")]
        if actor is not None and actor.may(Role.EDITOR):
            verb(actor=actor, **_arguments(step))
    _create_traffic(operator, data["traffic"])
    return True


def _arguments(step: Mapping[str, Any]) -> dict[str, Any]:
    arguments = dict(step)
    for name in arguments.keys() & _ANY_JSON:
        arguments[name] = _raw(arguments[name])
    for name in arguments.keys() & _NESTED:
        arguments[name] = [_arguments(each) for each in arguments[name]]
    return arguments


def _raw(value: JSON) -> Raw:
    return Raw(values.dump(value), value)


def _put_record(*, actor: Actor, kind: str, **fields: Any) -> None:
    config.put_record(actor=actor, kind=Kind(kind), **fields)


def _create_paused_webhook(
    *, actor: Actor, name: str, url: str, kinds: list[str], reason: str
) -> None:
    with transaction.atomic():  # nothing is sent before it is paused
        hook, _ = webhooks.create_webhook(
            actor=actor, name=name, url=url, filters=WebhookFilter(kinds=kinds)
        )
        webhook_flow.pause_webhook(actor=actor, webhook_id=hook.public_id, reason=reason)


def _commit(
    *,
    actor: Actor,
    run_id: str,
    updates: Mapping[str, JSON] | None = None,
    messages: Sequence[JSON] = (),
    run: Mapping[str, Any] | None = None,
    reads: Sequence[tuple[str, str, int]] = (),
) -> None:
    batch = Batch(tuple(Update(key, _raw(change)) for key, change in (updates or {}).items()))
    step = Step(
        batches=(batch,),
        messages=[_raw(message) for message in messages],
        run=RunChange(**(run or {})),
        reads=[Read(*read) for read in reads],
    )
    commits.commit(actor=actor, run_id=run_id, step=step)


def _search(
    *, actor: Actor, run_id: str, call_id: str, arguments: JSON, offers: Sequence[JSON]
) -> None:
    """Commit a call of the tool `search_trips` with its result."""
    function: JSON = {"name": "search_trips", "arguments": values.dump(arguments)}
    call: JSON = {"id": call_id, "type": "function", "function": function}
    result: JSON = {
        "role": "tool",
        "tool_call_id": call_id,
        "name": "search_trips",
        "content": values.dump([*offers]),
    }
    _commit(
        actor=actor,
        run_id=run_id,
        updates={"offers_seen": len(offers)},
        messages=[{"role": "assistant", "content": None, "tool_calls": [call]}, result],
    )


def _compact_thread(*, actor: Actor, thread_id: str, reason: str) -> None:
    job = compactions.request_compaction(actor=actor, thread_id=thread_id, reason=reason)
    compaction_jobs.run_compaction(job.public_id)


def _enqueue_dispatch(*, actor: Actor, available_in_days: int = 0, **fields: Any) -> None:
    if available_in_days:
        fields["available_at"] = timezone.now() + timedelta(days=available_in_days)
    dispatches.enqueue_dispatch(actor=actor, **fields)


def _create_dead_letter(
    *, actor: Actor, thread_id: str, consumer: str, error: str, **fields: Any
) -> None:
    """Enqueue a dispatch whose only attempt fails."""
    dispatch = dispatches.enqueue_dispatch(
        actor=actor, thread_id=thread_id, max_attempts=1, **fields
    )
    claimed = dispatches.claim_dispatches(actor=actor, thread_id=thread_id, consumer=consumer)
    dispatches.nack_dispatch(
        actor=actor, dispatch_id=dispatch.public_id, claim_token=claimed.token, error=error
    )


def _create_traffic(operator: Actor, minutes: Sequence[tuple[int, int, int, int]]) -> None:
    """The calls of the last two days, the newest minute first: reads, writes, conflicts and the
    length of the queue. The minutes of an hour repeat, with fewer calls at a greater distance from
    now and from the same time of day."""
    now = timezone.now().replace(second=0, microsecond=0)
    rows = []
    for ago in range(1, _TRAFFIC_MINUTES):
        reads, writes, conflicts, queued = minutes[(ago + ago // 1440) % len(minutes)]
        share = (1 + math.cos(math.tau * ago / 1440)) * 0.45 + 0.1
        rows.append(
            Traffic(
                workspace_id=operator.workspace_id,
                minute=now - timedelta(minutes=ago),
                reads=round(reads * share),
                writes=round(writes * share),
                conflicts=conflicts if ago % 3 == 0 else 0,
                queued=round(queued * share),
            )
        )
    Traffic.objects.bulk_create(rows, batch_size=1_000)


# The length of the overview's charts, twice: a day is compared with the day before.
_TRAFFIC_MINUTES: Final = 2 * 24 * 60

_VERBS: Final[Mapping[str, Callable[..., Any]]] = {
    "bury_dispatch": _create_dead_letter,
    "claim_dispatches": dispatches.claim_dispatches,
    "commit": _commit,
    "compact_thread": _compact_thread,
    "create_paused_webhook": _create_paused_webhook,
    "create_thread": threads.create_thread,
    "enqueue_dispatch": _enqueue_dispatch,
    "fork_thread": forks.fork_thread,
    "install_plugin": plugins.install_plugin,
    "mark_revision": snapshots.mark_revision,
    "patch_entry": entries.patch_entry,
    "put_entry": entries.put_entry,
    "put_policy": policies.put_policy,
    "put_record": _put_record,
    "register_namespace": namespaces.register_namespace,
    "register_state_key": state_keys.register_state_key,
    "save_view": saved_views.save_view,
    "search": _search,
    "start_run": runs.start_run,
    "unregister_namespace": namespaces.unregister_namespace,
}
