"""Creates, changes and deletes threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from state_admin.contract.threads import ForkOrigin, Lineage, ThreadContents
from state_admin.domain import scopes, search, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.policies import BY_MODEL, DESTRUCTIVE, BadPolicy, Policy
from state_admin.domain.values import EMPTY_OBJECT, JSON, Fault, Raw
from state_admin.models import (
    Entry,
    Mailbox,
    Message,
    Run,
    StateValue,
    Thread,
    database,
    erasures_sql,
    lineages_sql,
)
from state_admin.models.threads import ThreadQuerySet
from state_admin.summarizers import SUMMARIZERS

from . import journal, quotas
from .actors import require
from .clearing import addresses_of, clear_entries
from .errors import Conflict, Forbidden, Invalid, NotFound, RevisionConflict, VersionConflict
from .finding import checked, the_only

Children = Literal["detach", "reject", "cascade"]
# Combines the stored object and the given one.
Merge: TypeAlias = Callable[[Any, Any], JSON]

# The number of matches that a search of titles tries to find first.
_FEW_TITLES = 10_000
_PARENT = "/parent_thread_id"


def find_thread(actor: Actor, thread_id: str, *, lock: bool = False) -> Thread:
    """The thread. Raises NotFound. `lock`: lock its row; all work on a thread takes this lock
    first."""
    threads = Thread.objects.visible_to(actor)
    return _the_one(threads.held() if lock else threads, thread_id)


def read_thread(actor: Actor, thread_id: str) -> Thread:
    """The thread with its parent and runs. Raises NotFound."""
    return _the_one(Thread.objects.visible_to(actor).whole(), thread_id)


def _the_one(threads: ThreadQuerySet, thread_id: str) -> Thread:
    thread = the_only(threads.filter(public_id=thread_id))
    if thread is None:
        raise thread_not_found(thread_id)
    return thread


def lock_for_deletion(ids: Sequence[int]) -> None:
    """Lock threads that will be deleted, and their mailboxes. The caller must have locked the hierarchy.

    First with the lock that all work on threads takes, including their children, because work on a
    child may still read its parent. Then, when no other work is left, with the lock that also
    blocks rows that refer to them.
    """
    rows = Thread.objects.order_by("pk")
    list(rows.filter(Q(pk__in=ids) | Q(parent__in=ids)).held().values_list("pk"))
    list(rows.filter(pk__in=ids).select_for_update().values_list("pk"))
    # In the order of dead_letters.py: the deletion itself has none.
    boxes = Mailbox.objects.filter(pk__in=ids).order_by("pk")
    list(boxes.select_for_update().values_list("pk"))


def read_words(text: str) -> list[str]:
    """Split a search text into words. Raises Invalid if there are none, or too many."""
    try:
        return search.plain_words(text)
    except search.BadQuery as bad:
        raise Invalid(f"invalid query: {bad}", [Fault("/text", str(bad))]) from bad


def filter_by_title(rows: ThreadQuerySet, words: Sequence[str]) -> ThreadQuerySet:
    """Those of `rows` whose title has all of `words`, to be read in the order of ids.

    PostgreSQL cannot know how rare words are, and would read all threads in that order for a single
    match. So few matches are found first; many are found soon in any order.
    """
    matches = rows.titled(words)
    ids = list(matches.order_by().values_list("pk", flat=True)[: _FEW_TITLES + 1])
    return rows.filter(pk__in=ids) if len(ids) <= _FEW_TITLES else matches


def thread_not_found(thread_id: str) -> NotFound:
    return NotFound(
        f"thread not found: {thread_id}",
        hint="Create it with POST /api/v1/threads, or check the id, the workspace of the token and its limits.",
    )


def guard(thread: Thread, expected_revision: int | None) -> None:
    """Raise RevisionConflict unless the state has the revision that the caller expects."""
    if expected_revision is not None and expected_revision != thread.revision:
        raise RevisionConflict(expected_revision, thread.revision)


def _guard_version(thread: Thread, expected_version: int | None) -> None:
    if expected_version is not None and expected_version != thread.version:
        raise VersionConflict(expected_version, thread.version, of="thread")


def check_id(identifier: str, pointer: str = "") -> str:
    """The id that a client chose. Raises Invalid if no thread can have it. `pointer`: the JSON
    pointer of the id in the body, if it is there."""
    return checked("id", scopes.check_id, identifier, pointer=pointer)


def create_thread(
    *,
    actor: Actor,
    thread_id: str | None = None,
    resource_id: str = "",
    parent_thread_id: str | None = None,
    title: str = "",
    metadata: Raw = EMPTY_OBJECT,
    policy: Raw = EMPTY_OBJECT,
    reason: str = "",
) -> tuple[Thread, bool]:
    """Create a thread. Returns it, and whether it is new. With the id and content of an existing
    thread, returns that one; with other content, raises Conflict."""
    require(actor, Role.EDITOR)
    public_id = new_id(actor, thread_id)
    if parent_thread_id == public_id:
        raise _own_parent(public_id)
    content = {
        "resource_id": resource_id,
        "parent_thread_id": parent_thread_id,
        "title": title,
        "metadata": metadata.value,
        "policy": policy.value,
    }
    _check_retention(actor, {}, policy.value)
    with transaction.atomic():
        if parent_thread_id is not None:
            lock_hierarchy(actor.workspace_id, shared=True)
        thread, created = insert_thread(
            actor,
            public_id,
            content,
            resource_id=resource_id,
            # Called only for a new thread: a repeated request succeeds even without the parent.
            parent=partial(_find_parent, actor, parent_thread_id),
            title=title,
            metadata=metadata.text,
            policy=policy.text,
        )
        if created:
            journal.record(actor, [journal.Trace("thread.create", thread=public_id)], reason=reason)
    return thread, created


def new_id(actor: Actor, client_id: str | None) -> str:
    """The id for a new thread: the client's, if it is valid, or a generated one."""
    public_id = check_id(client_id, "/id") if client_id is not None else uuid7()
    if not actor.sees_thread(public_id):
        prefixes = " or ".join(actor.thread_prefixes)
        raise Forbidden(
            "this token is limited to other threads",
            hint=f"Send an id that begins with {prefixes}.",
        )
    return public_id


def insert_thread(
    actor: Actor, public_id: str, content: Mapping[str, JSON], **fields: Any
) -> tuple[Thread, bool]:
    """The thread with this id, and whether it is new. Raises Conflict if it exists with other
    content. `content` is what the client sent, `fields` the columns of a new thread."""
    existing = Thread.objects.filter(workspace_id=actor.workspace_id, public_id=public_id)
    counted = quotas.room(actor, "threads") is not None and not existing.exists()
    with quotas.undo_additions() as undo:
        if counted:
            quotas.take(actor, threads=1)
        thread, created = Thread.objects.get_or_create(
            workspace_id=actor.workspace_id,
            public_id=public_id,
            defaults={**fields, "created_from": values.dump(content)},
        )
        if not created:
            undo()
    if not created and not values.same(values.load(thread.created_from or "{}"), content):
        raise Conflict(
            f"thread already exists with other content: {public_id}",
            hint="Use PATCH to change a thread.",
        )
    return read_thread(actor, public_id), created


def read_lineage(*, actor: Actor, thread_id: str) -> Lineage:
    """The ancestors of a thread, and how many children and forks it has."""
    thread = find_thread(actor, thread_id)
    visible = Thread.objects.visible_to(actor)
    above = [each.public_id for each in lineages_sql.read_ancestors(thread.pk)]
    return Lineage(
        thread_id=thread_id,
        ancestors=[public_id for public_id in above if actor.sees_thread(public_id)],
        child_count=visible.filter(parent=thread).count(),
        forked_from=ForkOrigin.of(thread, actor),
        fork_count=visible.forks_of(thread_id).count(),
    )


def change_thread(
    *,
    actor: Actor,
    thread_id: str,
    title: str | None = None,
    resource_id: str | None = None,
    metadata: Raw | None = None,
    policy: Raw | None = None,
    parent_thread_id: str | None = None,
    reparent: bool = False,
    merge: Merge | None = None,
    expected_version: int | None = None,
    reason: str = "",
) -> Thread:
    """Change the given fields, as one new version. `reparent`: set the parent to parent_thread_id
    (None: no parent). `merge` combines the stored `metadata` and `policy` with the given ones;
    without it they are replaced.

    Raises VersionConflict if the thread does not have `expected_version`.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        if reparent:
            lock_hierarchy(actor.workspace_id)
        thread = find_thread(actor, thread_id, lock=True)
        _guard_version(thread, expected_version)
        if reparent:
            if parent_thread_id == thread_id:
                raise _own_parent(thread_id)
            thread.parent = _find_parent(actor, parent_thread_id)
            _refuse_cycle(thread)
        if title is not None:
            thread.title = title
        if resource_id is not None:
            thread.resource_id = resource_id
        if metadata is not None:
            thread.metadata = _merged(thread.metadata, metadata, merge)
            values.check(values.read(thread.metadata), "/metadata")
        if policy is not None:
            before = values.load(thread.policy or "{}")
            thread.policy = _merged(thread.policy, policy, merge)
            after = values.read(thread.policy)
            check_policy(after, "/compaction_policy")
            _check_retention(actor, before, after.value)
        thread.version += 1
        thread.updated_at = Now()
        thread.save(
            update_fields=[
                "title",
                "resource_id",
                "metadata",
                "policy",
                "parent",
                "version",
                "updated_at",
            ]
        )
        journal.record(actor, [journal.Trace("thread.change", thread=thread_id)], reason=reason)
        return read_thread(actor, thread_id)


def _merged(stored: str | None, patch: Raw, merge: Merge | None) -> str:
    if merge is None:
        return patch.text
    return values.dump(merge(values.load(stored or "{}"), values.load(patch.text)))


def check_policy(body: Raw, pointer: str = "") -> None:
    """Raise Invalid for a compaction policy, with all faults below `pointer`."""
    try:
        policy = Policy.from_json(body.value)
        # Here and not in Policy, because policies that are stored already must remain readable.
        if policy.summarizer not in (None, BY_MODEL, *SUMMARIZERS):
            names = ", ".join((*SUMMARIZERS, BY_MODEL))
            raise BadPolicy([Fault("/summarizer", f"must be null or one of {names}")])
    except BadPolicy as bad:
        faults = [fault.inside(pointer) for fault in bad.faults]
        raise Invalid("the compaction policy is not valid", faults) from bad


def _check_retention(actor: Actor, before: JSON, after: JSON) -> None:
    """Only admins may change which snapshots are kept, because removed ones cannot be restored."""
    if isinstance(before, dict) and isinstance(after, dict):
        both = [{name: policy.get(name, ...) for name in DESTRUCTIVE} for policy in (before, after)]
        if both[0] != both[1]:
            require(actor, Role.ADMIN)


def delete_thread(
    *,
    actor: Actor,
    thread_id: str,
    children: Children = "detach",
    dry_run: bool = False,
    expected_version: int | None = None,
    expected_revision: int | None = None,
    reason: str = "",
) -> ThreadContents:
    """Delete a thread with its messages, runs, state and the entries under `thread::{id}`.

    Its children lose their parent (`detach`), are deleted too (`cascade`), or prevent the deletion
    (`reject`, Conflict). Raises VersionConflict if the thread does not have `expected_version`,
    RevisionConflict if its state does not have `expected_revision`, and Forbidden if a child or an
    entry is outside the actor's limits; nothing is deleted then.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        lock_hierarchy(actor.workspace_id)
        thread = find_thread(actor, thread_id)
        below = lineages_sql.read_descendants(thread.pk) if children == "cascade" else []
        ids = [thread.pk, *below]
        if not dry_run:
            # No run may write to these threads between the checks and the deletion.
            lock_for_deletion(ids)
            thread.refresh_from_db(fields=["revision", "version"])
        _guard_version(thread, expected_version)
        guard(thread, expected_revision)
        has_children = thread.children.exists()
        if children == "reject" and has_children:
            raise Conflict(f"thread '{thread_id}' has child threads; choose 'detach' or 'cascade'")
        rows = Thread.objects.filter(pk__in=below).order_by("pk")
        doomed = [thread.public_id, *rows.values_list("public_id", flat=True)]
        if not all(actor.sees_thread(public_id) for public_id in doomed):
            raise Forbidden("a child thread lies outside this token's prefixes")
        keys = [scopes.thread_key(public_id) for public_id in doomed]
        entries = Entry.objects.visible_to(actor).live().filter(key__in=keys)
        held_by_all = Entry.objects.filter(namespace__workspace_id=actor.workspace_id).live()
        # Remaining entries would be visible to a new thread with the same id.
        if held_by_all.filter(key__in=keys).count() > entries.count():
            raise Forbidden("entries of the thread lie outside this token's namespaces")
        report = _count_contents(ids, entries)
        if dry_run:
            return report
        thread.children.exclude(pk__in=ids).update(
            parent=None, version=F("version") + 1, updated_at=Now()
        )
        clear_entries(actor, addresses_of(entries), reason)
        erasures_sql.delete_threads(actor.workspace_id, ids)
        traces = [journal.Trace("thread.delete", thread=name) for name in doomed]
        journal.record(actor, traces, reason=reason)
        journal.align_feed_clock(actor)
    quotas.add_usage(actor, threads=-len(ids))
    return report


def count_contents(actor: Actor, threads: Sequence[Thread]) -> ThreadContents:
    """What threads contain, without their children."""
    keys = [scopes.thread_key(thread.public_id) for thread in threads]
    entries = Entry.objects.visible_to(actor).live().filter(key__in=keys)
    return _count_contents([thread.pk for thread in threads], entries)


def _count_contents(ids: Sequence[int], entries: QuerySet[Entry, Entry]) -> ThreadContents:
    return ThreadContents(
        threads=len(ids),
        messages=Message.objects.filter(thread__in=ids).count(),
        runs=Run.objects.filter(thread__in=ids).count(),
        state_values=StateValue.objects.filter(thread__in=ids).count(),
        entries=entries.count(),
    )


def _find_parent(actor: Actor, parent_thread_id: str | None) -> Thread | None:
    if parent_thread_id is None:
        return None
    parent = Thread.objects.visible_to(actor).filter(public_id=parent_thread_id).first()
    if parent is None:
        detail = f"parent thread not found: {parent_thread_id}"
        raise Invalid(detail, [Fault(_PARENT, "is not a thread")])
    return parent


def _own_parent(thread_id: str) -> Invalid:
    detail = f"thread '{thread_id}' cannot parent itself"
    return Invalid(detail, [Fault(_PARENT, "is the thread itself")])


def lock_hierarchy(workspace_id: int, *, shared: bool = False) -> None:
    """Serialize changes of parents in a workspace, because two valid changes together can create a
    cycle. Adding a leaf takes the lock in shared mode, so that its parent cannot be deleted
    meanwhile."""
    database.lock("thread hierarchy", workspace_id, shared=shared)


def _refuse_cycle(thread: Thread) -> None:
    above = lineages_sql.read_ancestors(thread.parent.pk) if thread.parent else []
    if any(each.id == thread.pk for each in above):
        detail = f"thread hierarchy cycle detected at '{thread.public_id}'"
        raise Invalid(detail, [Fault(_PARENT, "is a descendant of the thread")])
