"""What a run could see at a step, what it reports to have read, and which runs read a version."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from state_admin.domain import scopes
from state_admin.domain.access import Actor
from state_admin.domain.values import Fault
from state_admin.models import Entry, Namespace, Revision, Run, RunRead, Thread, knowledge_sql
from state_admin.models.knowledge_sql import VisibleVersion
from state_admin.models.large_columns import without_related
from state_admin.models.reads import RunReadQuerySet

from . import snapshots
from .entries import check_address
from .errors import Conflict, Gone, Invalid, NotFound, NotRegistered
from .namespaces import find_definition
from .runs import find_run
from .snapshots import Read, Snapshot

MOST_READS = 200
# Of a thread, in which agents are looked for.
_RUNS = 20


@dataclass(frozen=True)
class Knowledge:
    """What a run could see at a revision. `keys`: of the scopes that it could see. `exact` is False
    for revisions of servers that did not record what they saw. `state` None: removed by
    compaction."""

    run: Run
    revision: Revision
    steps: int
    keys: Sequence[str]
    exact: bool
    state: Snapshot | None
    entries: Sequence[VisibleVersion]
    reads: Sequence[RunRead]


def read_knowledge(
    *,
    actor: Actor,
    run_id: str,
    step: int | None = None,
    revision: int | None = None,
    after: tuple[str, str] = ("", ""),
    limit: int = 50,
    most: int = sys.maxsize,
) -> Knowledge:
    """Everything that a run could see when it committed its `step`-th revision, or the given
    `revision` of its thread, or its newest one.

    Each entry is as a read in the transaction of that commit would have returned it, regardless of
    concurrent commits. Up to `limit` entries after `after`; `most` is that of read_visible. Raises NotFound if there is no such
    step.
    """
    run = find_run(actor, run_id)
    step_revision = _find_revision(run, step, revision)
    keys = keys_of(actor, run)
    try:
        state: Snapshot | None = snapshots.read_snapshot(
            actor=actor, thread_id=run.thread.public_id, revision=step_revision.number
        )
    except Gone:
        state = None
    reads = RunRead.objects.visible_to(actor).filter(
        thread=run.thread, revision=step_revision.number
    )
    return Knowledge(
        run=run,
        revision=step_revision,
        steps=run.revision_count,
        keys=keys,
        exact=step_revision.seen is not None,
        state=state,
        entries=knowledge_sql.read_visible(
            actor, step_revision, keys, after=after, limit=limit, most=most
        ),
        reads=list(reads.with_current().order_by("namespace", "key", "version")),
    )


def read_entries_before(
    *, actor: Actor, knowledge: Knowledge, after: tuple[str, str] = ("", ""), limit: int = 50
) -> Sequence[VisibleVersion] | None:
    """The entries that the step before `knowledge` could see; None for the first step."""
    step = knowledge.revision.step or 1
    if step == 1:
        return None
    before = _find_revision(knowledge.run, step - 1, None)
    return knowledge_sql.read_visible(actor, before, knowledge.keys, after=after, limit=limit)


def keys_of(actor: Actor, run: Run) -> list[str]:
    """The keys of the scopes that a run can see, including those that `thread` shares with its
    children. A parent outside the prefixes of a token is treated as absent."""
    agents = [run.agent_id] if run.agent_id else []
    parent = run.parent_thread_id
    return _keys(run.thread.public_id, parent if actor.sees_thread(parent) else "", agents)


def keys_of_thread(thread: Thread) -> list[str]:
    """The keys of the scopes that a thread can see, through its parent and the agents of its newest
    runs."""
    rows = Run.objects.filter(thread=thread).order_by("-id")[:_RUNS]
    agents = dict.fromkeys(agent for agent in rows.values_list("agent_id", flat=True) if agent)
    parent = thread.parent.public_id if thread.parent else ""
    return _keys(thread.public_id, parent, list(agents))


def _keys(thread_id: str, parent_thread_id: str, agents: Sequence[str]) -> list[str]:
    keys = [scopes.global_key(), *map(scopes.agent_type_key, agents)]
    if parent_thread_id:
        keys.append(scopes.parent_thread_key(parent_thread_id))
    return [*keys, scopes.parent_thread_key(thread_id), scopes.thread_key(thread_id)]


def _find_revision(run: Run, step: int | None, revision: int | None) -> Revision:
    """All revisions of a run are between its first and its last one: one range of the primary key,
    which starts at the number of the step at the earliest."""
    first = run.start_revision + (step - 1 if step else 0)
    rows = Revision.objects.filter(
        thread=run.thread, run=run, number__gte=first, number__lte=run.last_revision
    )
    if step is not None:
        found = rows.filter(step=step).order_by("number").first()
    elif revision is not None:
        found = rows.filter(number=revision).first()
    else:
        found = rows.order_by("-number").first()
    if found is None:
        named = f"step {step}" if step is not None else f"revision {revision}"
        raise NotFound(f"run {run.public_id} has no {named}")
    return found


def reads_of_run(actor: Actor, run: Run, *, stale: bool = False) -> RunReadQuerySet:
    """What a run reports to have read, newest first. `stale`: only versions that are not current
    now, or were not when the step was committed."""
    rows = RunRead.objects.visible_to(actor).filter(run=run).with_current().order_by("-id")
    return rows.stale() if stale else rows


def readers_of(
    actor: Actor, namespace: str, key: str, version: int | None = None
) -> RunReadQuerySet:
    """The steps that read an entry, newest version first: who acted on this value? Raises
    NotRegistered for a namespace that the actor cannot see."""
    check_address(namespace, key)
    if not Namespace.objects.visible_to(actor).filter(name=namespace).exists():
        raise NotRegistered(namespace)
    rows = RunRead.objects.visible_to(actor).filter(namespace=namespace, key=key)
    if version is not None:
        rows = rows.filter(version=version)
    rows = without_related(rows.select_related("run__thread"))
    return rows.with_current().order_by("-version", "-id")


def explain_reads(actor: Actor, reads: Sequence[Read]) -> None:
    """Raise NotRegistered or Invalid for the first reported read that is impossible."""
    for index, read in enumerate(reads):
        definition = find_definition(actor, read.namespace, fresh=True)
        entry = Entry.objects.filter(namespace_id=definition.id, key=read.key).first()
        newest = entry.version if entry else 0
        if read.version > newest:
            fault = Fault(f"/reads/{index}/version", f"the newest version is {newest}")
            raise Invalid(f"no version {read.version} of {read.namespace}/{read.key}", [fault])
    raise Conflict("a namespace changed in the meantime; retry")
