"""Threads: conversations with append-only messages and a revisioned state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast, Now

from state_admin.domain.access import Actor

from .fields import RawJSON
from .visibility import VisibleQuerySet, thread_prefix
from .workspaces import Workspace

_TITLE_WORDS = SearchVector("title", config="simple")


class ThreadQuerySet(VisibleQuerySet["Thread"]):
    thread_lookup = "public_id"

    def roots_for(self, actor: Actor) -> Self:
        """Threads without a parent that the actor may see; a parent it may not see appears not to
        exist."""
        root = Q(parent=None)
        if actor.thread_prefixes:
            root |= ~thread_prefix(actor.thread_prefixes, "parent__public_id")
        return self.filter(root)

    def held(self) -> Self:
        """Locked with FOR NO KEY UPDATE, as all work on threads does; only a deletion takes a
        stronger lock.

        This lock permits inserting rows that refer to the thread. A transaction that changes a row
        twice has its foreign keys checked again at commit, a child thread its parent, and would
        otherwise wait.
        """
        return self.select_for_update(of=("self",), no_key=True)

    def whole(self) -> Self:
        """With parent and runs in one query; read later, they may be deleted."""
        return self.select_related("parent", "active_run", "latest_run")

    def forks_of(self, public_id: str) -> Self:
        """Threads that were forked from the thread with this id."""
        return self.filter(forked_from__thread_id=public_id)

    def of_agent(self, agent_id: str) -> Self:
        """Threads whose newest run is a run of this agent."""
        return self.filter(latest_run__agent_id=agent_id)

    def titled(self, words: Sequence[str]) -> Self:
        """Threads whose title has words that begin with each of `words`, in any case."""
        escaped = (word.replace("\\", "\\\\").replace("'", "''") for word in words)
        terms = " & ".join(f"'{word}':*" for word in escaped)
        query = SearchQuery(terms, config="simple", search_type="raw")
        return self.alias(title_words=_TITLE_WORDS).filter(title_words=query)

    def described_by(self, metadata: dict[str, Any]) -> Self:
        """Threads whose metadata contains all of `metadata`."""
        rows = self.annotate(about=Cast("metadata", models.JSONField()))
        return rows.filter(about__contains=metadata)

    def active_as(self, status: str) -> Self:
        """Threads whose active run has this status. The query starts from the few active runs."""
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
    # Incremented by changes of what clients set by PATCH: title, metadata, resource, parent and
    # policy. Commits do not change it; `revision` counts those.
    version = models.BigIntegerField(default=1, db_default=1)
    # What the creator sent, to distinguish a repeated request from a different one.
    created_from = RawJSON(default="{}")
    revision = models.BigIntegerField(default=0)
    message_count = models.IntegerField(default=0)
    # Estimated tokens of the effective view, so that the compaction trigger needs no scan.
    context_tokens = models.BigIntegerField(default=0)
    active_run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    latest_run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    # The origin of a fork: {"thread_id", "revision", "message_count"}, or NULL.
    forked_from = models.JSONField(null=True, blank=True)
    # The thread's own compaction policy, which overrides the inherited one; {} inherits everything.
    policy = RawJSON(default="{}", db_default="{}")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    # A search sets it: the message that matches.
    found: Any

    objects = ThreadQuerySet.as_manager()

    class Meta:
        db_table = "threads"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="threads_id_unique"),
        ]
        indexes = [
            # The list of threads of one resource.
            models.Index(fields=["workspace", "resource_id", "id"], name="threads_by_resource"),
            # The list of threads, newest first. By id, because an index on updated_at would prevent
            # HOT updates.
            models.Index(fields=["workspace", "-id"], name="threads_newest"),
            # Searches by words of the title.
            GinIndex(_TITLE_WORDS, name="threads_title_words"),
            # The forks of one thread. Partial, because few threads are forks.
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
