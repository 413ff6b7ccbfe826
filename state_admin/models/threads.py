"""Threads: conversations with an append-only log and a revisioned state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast, Now

from state_admin.domain.access import Actor

from .fields import RawJSON
from .workspaces import Workspace


def thread_prefix(prefixes: Iterable[str], column: str = "public_id") -> Q:
    """The condition that a thread id begins with one of `prefixes`."""
    condition = Q()
    for prefix in prefixes:
        condition |= Q(**{f"{column}__startswith": prefix})
    return condition


class ThreadQuerySet(models.QuerySet["Thread"]):
    def visible_to(self, actor: Actor) -> Self:
        rows = self.filter(workspace_id=actor.workspace_id)
        return rows.filter(thread_prefix(actor.thread_prefixes)) if actor.thread_prefixes else rows

    def roots_for(self, actor: Actor) -> Self:
        """Threads without a parent that the actor sees: for it, one outside does not exist."""
        root = Q(parent=None)
        if actor.thread_prefixes:
            root |= ~thread_prefix(actor.thread_prefixes, "parent__public_id")
        return self.filter(root)

    def held(self) -> Self:
        """Locked, as all thread work locks them; only a deletion takes more.

        The lock lets rows point at the thread: whoever changes a row twice in a transaction has its
        foreign keys looked at again when that ends, a child its parent, and would wait for us.
        """
        return self.select_for_update(of=("self",), no_key=True)

    def whole(self) -> Self:
        """With parent and runs, all of one moment: looked up later, they may be gone."""
        return self.select_related("workspace", "parent", "active_run", "latest_run")

    def forks_of(self, public_id: str) -> Self:
        """Threads that were copied from the thread with this id."""
        return self.filter(forked_from__thread_id=public_id)

    def of_agent(self, agent_id: str) -> Self:
        """Threads whose newest run is one of this agent."""
        return self.filter(latest_run__agent_id=agent_id)

    def described_by(self, metadata: dict[str, Any]) -> Self:
        """Threads whose metadata holds all of this."""
        rows = self.annotate(about=Cast("metadata", models.JSONField()))
        return rows.filter(about__contains=metadata)

    def active_as(self, status: str) -> Self:
        """Threads whose active run has this status. Starts from the few active runs."""
        return self.filter(active_run__status=status)


class Thread(models.Model):
    """A conversation. `public_id` is the id that clients choose and see, unique in a workspace."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="threads", db_index=False
    )
    public_id = models.CharField(max_length=128, db_collation="C")
    resource_id = models.CharField(max_length=128, default="", blank=True, db_collation="C")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    title = models.CharField(max_length=512, default="", blank=True)
    metadata = RawJSON(default="{}")
    # Counts changes of what clients write by PATCH: title, metadata, resource, parent and policy.
    # Commits do not touch it; `revision` counts those.
    version = models.BigIntegerField(default=1, db_default=1)
    # What the creator sent, so that a repeated create can be told from a different one.
    created_from = RawJSON(default="{}")
    revision = models.BigIntegerField(default=0)
    message_count = models.IntegerField(default=0)
    # Estimated tokens of the effective view: the trigger of compaction reads it without a scan.
    context_tokens = models.BigIntegerField(default=0)
    active_run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    latest_run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    # Where a fork came from: {"thread_id", "revision", "message_count"}, or NULL.
    forked_from = models.JSONField(null=True, blank=True)
    # The thread's own compaction policy, laid over the workspace's; {} means "as the workspace".
    policy = RawJSON(default="{}", db_default="{}")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    objects = ThreadQuerySet.as_manager()

    class Meta:
        db_table = "threads"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="threads_id_unique"),
        ]
        indexes = [
            # The list of threads of one resource.
            models.Index(fields=["workspace", "resource_id", "id"], name="threads_by_resource"),
            # The list of threads, newest first: ids grow with time, updated_at would end HOT.
            models.Index(fields=["workspace", "-id"], name="threads_newest"),
            # The forks of one thread. Few threads are one.
            models.Index(
                F("workspace"),
                KeyTransform("thread_id", "forked_from"),
                F("id"),
                name="threads_forks",
                condition=Q(forked_from__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.public_id
