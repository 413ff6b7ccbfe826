"""Which rows an actor may see: those of its workspace, within the limits of its token."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Q

from state_admin.domain.access import Actor

_Row = TypeVar("_Row", bound=models.Model)


def glob_regex(globs: Iterable[str]) -> str:
    """A PostgreSQL regex for namespace globs, in which only `*` is special."""
    return "^(" + "|".join(".*".join(map(re.escape, glob.split("*"))) for glob in globs) + ")$"


def thread_prefix(prefixes: Iterable[str], column: str = "public_id") -> Q:
    """The condition that a thread id begins with one of `prefixes`."""
    condition = Q()
    for prefix in prefixes:
        condition |= Q(**{f"{column}__startswith": prefix})
    return condition


def within_limits(actor: Actor) -> Q:
    """The rows of an actor's workspace that a restricted token may see, of tables with the nullable foreign
    keys `namespace` and `thread`: those of its namespaces and threads, and those of neither."""
    visible = Q(workspace_id=actor.workspace_id)
    if actor.namespaces:
        visible &= Q(namespace=None) | Q(namespace__name__regex=glob_regex(actor.namespaces))
    if actor.thread_prefixes:
        visible &= Q(thread=None) | thread_prefix(actor.thread_prefixes, "thread__public_id")
    return visible


class WorkspaceWideQuerySet(models.QuerySet[_Row]):
    """Rows that concern a whole workspace. They are hidden from restricted tokens, which could otherwise
    learn the names of resources that they cannot access."""

    def visible_to(self, actor: Actor) -> Self:
        return self.none() if actor.restricted else self.filter(workspace_id=actor.workspace_id)


class VisibleQuerySet(models.QuerySet[_Row]):
    """Rows of workspaces. The attributes are lookups: of the workspace, of the name of the namespace and of
    the id of the thread that a row belongs to. "": the limit of a token does not apply to these rows."""

    workspace_lookup: ClassVar[str] = "workspace_id"
    namespace_lookup: ClassVar[str] = ""
    thread_lookup: ClassVar[str] = ""

    def visible_to(self, actor: Actor) -> Self:
        rows = self.filter(**{self.workspace_lookup: actor.workspace_id})
        if self.namespace_lookup and actor.namespaces:
            globs = glob_regex(actor.namespaces)
            rows = rows.filter(**{f"{self.namespace_lookup}__regex": globs})
        if self.thread_lookup and actor.thread_prefixes:
            rows = rows.filter(thread_prefix(actor.thread_prefixes, self.thread_lookup))
        return rows
