"""Reads and writes the compaction policies of the workspace, of agents and of threads, and
resolves the effective policy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from django.db import transaction

from state_admin.domain import policies, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.policies import EffectivePolicy, Policy
from state_admin.domain.values import EMPTY_OBJECT, Raw
from state_admin.models import CompactionPolicy, Thread, database
from state_admin.models import policies as rows

from . import journal, summaries
from .actors import require
from .errors import Forbidden, QuotaExceeded, VersionConflict
from .threads import change_thread, check_id, check_policy, find_thread

Scope: TypeAlias = Literal["workspace", "agent", "thread"]
SCOPES: Final = get_args(Scope)
MOST_AGENTS: Final = 1000


@dataclass(frozen=True)
class PolicyView:
    """The policy stored for a scope (`body`, JSON text) and the effective one. `name` is the id of
    the agent or thread. The policy of a thread has the version of the thread, which other changes
    of the thread increase too."""

    scope: Scope
    name: str
    body: str
    effective: EffectivePolicy
    version: int
    updated_at: datetime | None = None
    updated_by: str = ""


def effective_policy(thread: Thread) -> EffectivePolicy:
    """Return the effective policy of a thread: fields of the workspace's policy, overridden by
    those of the agent of the newest run, then by the thread's own; limited to the context window of
    the agent's model."""
    agent_id, layers = _layers(thread)
    return _resolve(layers, thread.workspace_id, agent_id)


def try_policy(thread: Thread, scope: Scope, body: Raw) -> EffectivePolicy:
    """Return what the effective policy of a thread would be if `body` were the policy of `scope`:
    of the workspace, of the agent of the thread's newest run, or of the thread."""
    agent_id, layers = _layers(thread)
    bodies = dict(layers) | {scope: body.text}
    layers = [(each, bodies[each]) for each in SCOPES if each in bodies]
    return _resolve(layers, thread.workspace_id, agent_id)


def autocompact_policy(thread: Thread) -> Policy | None:
    """Return the effective policy if it has a threshold. None: the size of the thread never causes
    a compaction. Every append calls this, so the model's window is read only if there is a
    threshold."""
    agent_id, layers = _layers(thread)
    if policies.effective(_load_layers(layers)).policy.autocompact_threshold is None:
        return None
    return _resolve(layers, thread.workspace_id, agent_id).policy


def list_policies(actor: Actor) -> list[PolicyView]:
    """Return the policy of the workspace, even if it is empty, and the non-empty policies of
    agents, by id."""
    rows = list(CompactionPolicy.objects.visible_to(actor).order_by("agent_id"))
    base = next((row for row in rows if not row.agent_id), None)
    agents = [row for row in rows if row.agent_id and row.body != EMPTY_OBJECT.text]
    return [
        _view(actor, "", base, base),
        *(_view(actor, row.agent_id, base, row) for row in agents),
    ]


def read_policy(*, actor: Actor, scope: Scope, name: str = "") -> PolicyView:
    """Return the policy of a scope; `body` is {} if none is set. Raises NotFound for a missing
    thread."""
    if scope == "thread":
        thread = find_thread(actor, name)
        body = thread.policy or "{}"
        return PolicyView(scope, name, body, effective_policy(thread), thread.version)
    agent_id = _agent(scope, name)
    rows = CompactionPolicy.objects.visible_to(actor).filter(agent_id__in=["", agent_id])
    by_agent = {row.agent_id: row for row in rows}
    return _view(actor, agent_id, by_agent.get(""), by_agent.get(agent_id))


def inherited_policy(*, actor: Actor, scope: Scope, name: str = "") -> EffectivePolicy:
    """Return the policy that would apply if the scope had none of its own."""
    if scope == "thread":
        return try_policy(find_thread(actor, name), scope, EMPTY_OBJECT)
    rows = CompactionPolicy.objects.visible_to(actor).filter(agent_id="")
    base = rows.first() if scope == "agent" else None
    return _view(actor, _agent(scope, name), base, None).effective


def put_policy(
    *,
    actor: Actor,
    scope: Scope,
    name: str = "",
    body: Raw,
    expected_version: int | None = None,
    reason: str = "",
) -> PolicyView:
    """Replace the policy of a scope; {} inherits every field. Queued jobs keep the policy they were
    requested with.

    Requires the role admin, or editor for a thread. Raises Invalid with the faulty fields, and
    VersionConflict.
    """
    require(actor, role_of(scope))
    _refuse_narrowed(actor, scope)
    check_policy(body)
    agent_id = _agent(scope, name)
    with transaction.atomic():
        if scope == "thread":
            change_thread(
                actor=actor,
                thread_id=name,
                policy=body,
                expected_version=expected_version,
                reason=reason,
            )
            return read_policy(actor=actor, scope=scope, name=name)
        if agent_id:
            _check_room(actor, agent_id)
        version = rows.write(
            workspace_id=actor.workspace_id,
            agent_id=agent_id,
            body=body.text,
            by=actor.name,
            expected=expected_version,
        )
        if version is None:
            actual = read_policy(actor=actor, scope=scope, name=name).version or 0
            raise VersionConflict(expected_version or 0, actual, of="policy")
        detail = {"agent": agent_id, "fields": sorted(body.value)}
        trace = journal.Trace("compaction_policy.put", version=version, detail=detail)
        journal.record(actor, [trace], reason=reason)
        return read_policy(actor=actor, scope=scope, name=name)


def delete_policy(
    *,
    actor: Actor,
    scope: Scope,
    name: str = "",
    expected_version: int | None = None,
    reason: str = "",
) -> None:
    """Set the policy of a scope to {}. If it is {} already, only `expected_version` is checked.
    Roles and errors are those of put_policy."""
    require(actor, role_of(scope))
    _refuse_narrowed(actor, scope)
    view = read_policy(actor=actor, scope=scope, name=name)
    if values.load(view.body):
        put_policy(
            actor=actor,
            scope=scope,
            name=name,
            body=EMPTY_OBJECT,
            expected_version=expected_version,
            reason=reason,
        )
    elif expected_version not in (None, view.version):
        raise VersionConflict(expected_version or 0, view.version, of="policy")


def role_of(scope: Scope) -> Role:
    """Return the role that may change the policy of a scope."""
    return Role.EDITOR if scope == "thread" else Role.ADMIN


def _refuse_narrowed(actor: Actor, scope: Scope) -> None:
    if scope != "thread" and actor.thread_prefixes:
        raise Forbidden("this token is limited to some threads; the policy applies to all threads")


def _agent(scope: Scope, name: str) -> str:
    return check_id(name) if scope == "agent" else ""


def _check_room(actor: Actor, agent_id: str) -> None:
    database.lock("compaction policies", actor.workspace_id)
    # Deleted policies count too, because their rows remain.
    others = CompactionPolicy.objects.visible_to(actor).exclude(agent_id__in=["", agent_id])
    if others.count() >= MOST_AGENTS:
        raise QuotaExceeded(
            "quota exceeded: compaction policies",
            hint=f"A workspace has policies for at most {MOST_AGENTS} agents.",
        )


def _view(
    actor: Actor, agent_id: str, base: CompactionPolicy | None, row: CompactionPolicy | None
) -> PolicyView:
    layers = [("workspace", base.body or "{}")] if base else []
    if agent_id and row:
        layers.append(("agent", row.body or "{}"))
    scope: Scope = "agent" if agent_id else "workspace"
    effective = _resolve(layers, actor.workspace_id, agent_id)
    if row is None:
        return PolicyView(scope, agent_id, "{}", effective, 0)
    return PolicyView(
        scope, agent_id, row.body or "{}", effective, row.version, row.updated_at, row.updated_by
    )


def _layers(thread: Thread) -> tuple[str, list[tuple[str, str]]]:
    agent_id, layers = rows.read_layers(thread.workspace_id, thread.latest_run_id)
    return agent_id, [*layers, ("thread", thread.policy or "{}")]


def _resolve(layers: list[tuple[str, str]], workspace_id: int, agent_id: str) -> EffectivePolicy:
    return policies.effective(_load_layers(layers), *summaries.find_window(workspace_id, agent_id))


def _load_layers(layers: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    return [(name, values.load(body)) for name, body in layers]
