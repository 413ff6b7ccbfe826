"""Stores commits that several runs make at the same moment, in two round trips to PostgreSQL."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import DatabaseError, InterfaceError

from state_admin.domain import policies, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.messages import ParsedMessage
from state_admin.models import RevisionKind, Run, idempotency_sql, runs_sql, snapshots_sql
from state_admin.models import policies as policies_sql
from state_admin.models.hot_async import Session
from state_admin.models.runs import IN_PROGRESS
from state_admin.models.snapshots_sql import Move, SlotRow

from . import idempotency, messages, runs, snapshots, state_keys
from .actors import require
from .commits import Committed, Step, apply_step
from .errors import Problem
from .groups import is_undone, note_fault, take_turns
from .idempotency import Key, StoredResponse
from .state_keys import Slot

# Characters of all values that a commit changes. Merging more would delay the other calls.
_MOST_HELD = 128 * 1024


@dataclass(frozen=True)
class JoinedCommit:
    """The arguments of `commit`. `once`: the Idempotency-Key."""

    actor: Actor
    run_id: str
    step: Step
    reason: str
    once: Key | None


# The response to a commit that is stored.
Respond = Callable[[JoinedCommit, Committed], StoredResponse]


class _Opened(NamedTuple):
    """A locked run with its locked thread. `at`: when the transaction began. `slots`: the state keys
    of the commit and their values. `policies`: compaction policies of the workspace and the agent,
    as JSON text."""

    run: Run
    at: datetime
    slots: dict[str, Slot]
    policies: list[str]


class _Plan(NamedTuple):
    move: Move
    response: StoredResponse


async def commit_joined(
    commits: Sequence[JoinedCommit], respond: Respond, session: Session
) -> list[StoredResponse | Exception | None]:
    """Store as many of the commits as possible and return the responses. One transaction stores
    one commit of each run; further commits of the same run follow in later transactions.

    A result is None if nothing was written: the commit would be refused, is a repeat, does more
    than add a revision, or needs a locked row. The caller must then use `commit`. A result is an
    exception if the database failed and it is unknown whether the commit was written.
    """
    responses: list[StoredResponse | Exception | None] = [None] * len(commits)
    for turn in take_turns([(c.actor.workspace_id, c.run_id)] for c in commits):
        plans: dict[int, _Plan] = {}
        try:
            async with session.transaction():
                group = {index: commits[index] for index in turn}
                plans = await _plan_all(group, respond, session)
                if plans:
                    await _store(commits, plans, session)
        except (DatabaseError, InterfaceError) as error:
            if not is_undone(error):
                for index in plans:
                    responses[index] = error
            return responses
        for index, plan in plans.items():
            responses[index] = plan.response
    return responses


async def _store(
    commits: Sequence[JoinedCommit], plans: Mapping[int, _Plan], session: Session
) -> None:
    kept = [
        (once, commits[index].actor.workspace_id, plan.response)
        for index, plan in plans.items()
        if (once := commits[index].once) is not None
    ]
    calls = [snapshots_sql.advancing([plan.move for plan in plans.values()])]
    if kept:
        calls.append(idempotency.keeping(kept))
    await session.fetch_each(calls, commit=True)


async def _plan_all(
    commits: Mapping[int, JoinedCommit], respond: Respond, session: Session
) -> dict[int, _Plan]:
    """What to store, by index. Leaves out commits that would be refused or do more than add a
    revision."""
    logs: dict[int, list[ParsedMessage]] = {}
    for index, call in commits.items():
        try:
            require(call.actor, Role.EDITOR)
            if not call.step.empty and call.step.run.empty and not call.step.reads:
                logs[index] = (
                    messages.parse_messages(call.step.messages) if call.step.messages else []
                )
        except Problem:
            continue
    if not logs:
        return {}
    plans: dict[int, _Plan] = {}
    threads = set()
    opening = await _open({index: commits[index] for index in logs}, logs, session)
    for index, opened in opening.items():
        thread = opened.run.thread
        if thread.pk in threads:
            continue
        try:
            plan = _plan(commits[index], opened, logs[index], respond)
        except Problem:
            continue
        except Exception as error:
            note_fault(error)
            continue
        if plan is not None:
            threads.add(thread.pk)
            plans[index] = plan
    return plans


async def _open(
    commits: Mapping[int, JoinedCommit],
    logs: Mapping[int, Sequence[ParsedMessage]],
    session: Session,
) -> dict[int, _Opened]:
    """Lock the runs that no other transaction has locked, with their threads, and read what the
    commits need, in one round trip. Left out are commits whose run or key registry is locked, and
    those with a message id or an Idempotency-Key that is already used or claimed."""
    addresses = {index: (call.actor.workspace_id, call.run_id) for index, call in commits.items()}
    names = {
        index: sorted({each.key for batch in call.step.batches for each in batch.updates})
        for index, call in commits.items()
    }
    ids = {index: [each.id for each in log if each.id] for index, log in logs.items()}
    keys = {index: call.once for index, call in commits.items() if call.once is not None}
    first = idempotency.first_of(keys)
    statements = {
        "registries": state_keys.holding_registries(
            {workspace for workspace, _ in addresses.values()}
        ),
        "runs": runs_sql.locking(addresses),
    }
    if any(names.values()):
        statements["slots"] = snapshots_sql.reading_slots(addresses, names)
    if any(logs.values()):
        statements["policies"] = policies_sql.reading_layers(addresses)
    if any(ids.values()):
        statements["messages"] = snapshots_sql.finding_messages(addresses, ids)
    if keys:
        statements["locks"], statements["used"] = idempotency_sql.claiming(list(first))
    fetched = await session.fetch_each(list(statements.values()))
    rows = defaultdict(list, zip(statements, fetched, strict=True))
    own = {first[scope] for scope in idempotency_sql.claimed(rows["locks"], rows["used"])}
    free = {workspace for workspace, is_free in rows["registries"] if is_free}
    refused = {index for (index,) in rows["messages"]} | (keys.keys() - own)
    slots_of: dict[int, list[SlotRow]] = defaultdict(list)
    for index, *slot in rows["slots"]:
        slots_of[index].append(SlotRow._make(slot))
    policies_of: dict[int, list[str]] = defaultdict(list)
    for index, policy in rows["policies"]:
        policies_of[index].append(policy)
    return {
        index: _Opened(run, at, state_keys.slots_of(slots_of[index]), policies_of[index])
        for index, run, at in runs_sql.locked(rows["runs"])
        if index not in refused and addresses[index][0] in free
    }


def _plan(
    call: JoinedCommit, opened: _Opened, log: Sequence[ParsedMessage], respond: Respond
) -> _Plan | None:
    """None: the commit does more than add a revision, or could delay the other commits."""
    run, thread, step = opened.run, opened.run.thread, call.step
    bases = {step.base_revision, *(batch.base_revision for batch in step.batches)}
    if (
        not call.actor.sees_thread(thread.public_id)
        or not _is_light(opened.slots.values())
        or not bases <= {None, thread.revision}
        or (log and not _never_compacts((*opened.policies, thread.policy or "{}")))
    ):
        return None
    runs.check_fencing(run, step.fencing_token)
    writes = apply_step(run, thread, step, opened.slots)
    messages.guard(thread, step.expected_message_count)
    move = snapshots.plan_move(
        call.actor,
        thread,
        RevisionKind.COMMIT,
        writes,
        action="run.commit",
        run=run,
        log=log,
        label=step.label,
        reason=call.reason,
    )
    run.last_revision, run.flagged_at = thread.revision + 1, None
    run.updated_at = max(run.updated_at, opened.at)
    if run.status in IN_PROGRESS:
        run.lease_expires_at = opened.at + timedelta(seconds=run.lease_seconds)
    committed = Committed(
        run.last_revision, tuple(sorted(writes)), thread.message_count + len(log), run
    )
    return _Plan(move, respond(call, committed))


def _is_light(slots: Collection[Slot]) -> bool:
    """Whether no update of the keys takes long."""
    held = sum(len(slot.held or slot.default) for slot in slots)
    return held <= _MOST_HELD and all(slot.validator.always_light for slot in slots)


@functools.lru_cache(maxsize=256)
def _never_compacts(layers: tuple[str, ...]) -> bool:
    """Whether no length of the thread makes a compaction due."""
    parsed = [("", values.load(layer)) for layer in layers]
    return policies.effective(parsed).policy.autocompact_threshold is None
