"""Creates, changes and deletes threads (semantics §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.db import connection, transaction
from django.db.models.functions import Now

from state_admin.domain import scopes, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import Raw
from state_admin.models import Entry, Message, Run, StateValue, Thread

from . import journal, quotas
from .actors import require
from .clearing import clear_entries
from .errors import Conflict, Forbidden, Invalid, NotFound

Children = Literal["detach", "reject", "cascade"]

EMPTY_OBJECT = Raw("{}", {})


@dataclass(frozen=True)
class Deletion:
    """What deleting a thread removes, or would remove."""

    threads: int
    messages: int
    runs: int
    state_values: int
    entries: int


def find_thread(actor: Actor, thread_id: str, *, lock: bool = False) -> Thread:
    """The thread, or NotFound. `lock` takes its row lock: the order of all thread work."""
    threads = Thread.objects.visible_to(actor).select_related("workspace")
    if lock:
        threads = threads.select_for_update(of=("self",))
    found = threads.filter(public_id=thread_id).first()
    if found is None:
        raise thread_not_found(thread_id)
    return found


def thread_not_found(thread_id: str) -> NotFound:
    return NotFound(f"thread not found: {thread_id}")


def check_id(identifier: str) -> str:
    """A client's id, refused with the reason when it cannot be one (semantics §1)."""
    try:
        scopes.check_id(identifier)
    except scopes.BadName as bad:
        raise Invalid("not a legal id", detail=str(bad)) from bad
    return identifier


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
    """Make a thread; answers it and whether it is new. The same id with the same content is the
    stored thread again; with other content Conflict."""
    require(actor, Role.EDITOR)
    public_id = check_id(thread_id) if thread_id is not None else uuid7()
    if not actor.sees_thread(public_id):
        raise Forbidden("this token is limited to other threads")
    if parent_thread_id == public_id:
        raise Invalid(f"thread '{public_id}' cannot parent itself")
    content = {
        "resource_id": resource_id,
        "parent_thread_id": parent_thread_id,
        "title": title,
        "metadata": metadata.value,
        "policy": policy.value,
    }
    with transaction.atomic():
        parent = _find_parent(actor, parent_thread_id)
        if quotas.room(actor, "threads") is not None and not _exists(actor, public_id):
            quotas.check_room(actor, "threads", 1)
        thread, created = Thread.objects.get_or_create(
            workspace_id=actor.workspace_id,
            public_id=public_id,
            defaults={
                "resource_id": resource_id,
                "parent": parent,
                "title": title,
                "metadata": metadata.text,
                "policy": policy.text,
                "created_from": values.dump(content),
            },
        )
        if created:
            quotas.add_usage(actor, threads=1)
            journal.record(actor, [journal.Trace("thread.create", thread=public_id)], reason=reason)
            thread.refresh_from_db()
        elif not values.same(values.load(thread.created_from or "{}"), content):
            raise Conflict(
                f"thread already exists with other content: {public_id}",
                detail="Use PATCH to change a thread.",
            )
    return thread, created


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
    reason: str = "",
) -> Thread:
    """Change the given fields. `reparent` says that parent_thread_id (None: no parent) counts."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        if reparent:
            lock_hierarchy(actor.workspace_id)
        thread = find_thread(actor, thread_id, lock=True)
        if reparent:
            if parent_thread_id == thread_id:
                raise Invalid(f"thread '{thread_id}' cannot parent itself")
            thread.parent = _find_parent(actor, parent_thread_id)
            _refuse_cycle(thread)
        if title is not None:
            thread.title = title
        if resource_id is not None:
            thread.resource_id = resource_id
        if metadata is not None:
            thread.metadata = metadata.text
        if policy is not None:
            thread.policy = policy.text
        thread.updated_at = Now()
        thread.save(
            update_fields=["title", "resource_id", "metadata", "policy", "parent", "updated_at"]
        )
        journal.record(actor, [journal.Trace("thread.change", thread=thread_id)], reason=reason)
        thread.refresh_from_db()
    return thread


def delete_thread(
    *,
    actor: Actor,
    thread_id: str,
    children: Children = "detach",
    dry_run: bool = False,
    reason: str = "",
) -> Deletion:
    """Remove a thread with its messages, runs, state and the entries under `thread::{id}`.

    Children lose their parent (`detach`), go too (`cascade`), or forbid it (`reject`, Conflict).
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        lock_hierarchy(actor.workspace_id)
        thread = find_thread(actor, thread_id, lock=True)
        has_children = thread.children.exists()
        if children == "reject" and has_children:
            raise Conflict(f"thread '{thread_id}' has child threads; choose 'detach' or 'cascade'")
        doomed = [thread]
        if children == "cascade":
            doomed += _descendants(thread)
        for each in doomed:
            if not actor.sees_thread(each.public_id):
                raise Forbidden("a child thread lies outside this token's prefixes")
        ids = [each.pk for each in doomed]
        keys = [scopes.thread_key(each.public_id) for each in doomed]
        entries = Entry.objects.visible_to(actor).live().filter(key__in=keys)
        report = Deletion(
            threads=len(ids),
            messages=Message.objects.filter(thread__in=ids).count(),
            runs=Run.objects.filter(thread__in=ids).count(),
            state_values=StateValue.objects.filter(thread__in=ids).count(),
            entries=entries.count(),
        )
        if dry_run:
            return report
        thread.children.exclude(pk__in=ids).update(parent=None, updated_at=Now())
        clear_entries(actor, entries.values_list("namespace_id", "namespace__name", "key"), reason)
        Thread.objects.filter(pk__in=ids).update(parent=None, active_run=None, latest_run=None)
        Thread.objects.filter(pk__in=ids).delete()
        traces = [journal.Trace("thread.delete", thread=each.public_id) for each in doomed]
        journal.record(actor, traces, reason=reason)
    return report


def _exists(actor: Actor, public_id: str) -> bool:
    return Thread.objects.filter(workspace_id=actor.workspace_id, public_id=public_id).exists()


def _find_parent(actor: Actor, parent_thread_id: str | None) -> Thread | None:
    if parent_thread_id is None:
        return None
    parent = Thread.objects.visible_to(actor).filter(public_id=parent_thread_id).first()
    if parent is None:
        raise Invalid(f"parent thread not found: {parent_thread_id}")
    return parent


def lock_hierarchy(workspace_id: int) -> None:
    """One change of parents at a time per workspace: two that are fine alone can make a cycle."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('thread hierarchy'), %s::int)", [workspace_id]
        )


def _refuse_cycle(thread: Thread) -> None:
    above = thread.parent
    while above is not None:
        if above.pk == thread.pk:
            raise Invalid(f"thread hierarchy cycle detected at '{thread.public_id}'")
        above = above.parent


def _descendants(thread: Thread) -> list[Thread]:
    found: list[Thread] = []
    level = [thread.pk]
    while level:
        children = list(Thread.objects.filter(parent__in=level).order_by("pk"))
        found += children
        level = [child.pk for child in children]
    return found
