"""Roles, the actor of a request, and the limits that a token may have.

Not here: how a credential is checked, and which action needs which role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class Role(StrEnum):
    """What a member or token may do; each role covers those before it."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"

    def covers(self, other: Role) -> bool:
        """Whether this role includes `other`."""
        return _RANK[self] >= _RANK[other]


_RANK: Final = {Role.VIEWER: 0, Role.EDITOR: 1, Role.ADMIN: 2}


Kind = Literal["user", "token", "system"]


@dataclass(frozen=True)
class Actor:
    """Who makes a request, in which workspace, with which permissions.

    `namespaces` are globs in which only `*` is special; `thread_prefixes` are plain prefixes. An
    empty tuple means all.
    """

    kind: Kind
    id: str
    name: str
    workspace_id: int
    role: Role
    namespaces: tuple[str, ...] = ()
    thread_prefixes: tuple[str, ...] = ()
    request_id: str = ""
    run_id: str = ""  # the run on whose behalf it acts, from the client's Run-Id header
    traceparent: str = ""  # of the span in which it acts (W3C Trace Context), if traces are on
    operator: bool = False  # may manage all workspaces
    workspace: str = ""  # its slug, of a user: the pages show it
    frozen: bool = False  # the workspace is being moved to another cell, and refuses writes

    def may(self, needed: Role) -> bool:
        """Whether the role suffices."""
        return self.role.covers(needed)

    @property
    def restricted(self) -> bool:
        """Whether it is limited to some namespaces or threads."""
        return bool(self.namespaces or self.thread_prefixes)

    def sees_namespace(self, name: str) -> bool:
        """Whether one of the globs matches. Other namespaces appear not to exist."""
        return not self.namespaces or matches_any(self.namespaces, name)

    def sees_thread(self, thread_id: str) -> bool:
        """Whether the id has one of the prefixes. Other threads appear not to exist."""
        return not self.thread_prefixes or thread_id.startswith(self.thread_prefixes)


def narrower(
    role: Role,
    namespaces: Sequence[str],
    thread_prefixes: Sequence[str],
    *,
    creator: Actor,
) -> list[str]:
    """Return a message for each permission of a token that would exceed its creator's."""
    reasons = []
    if not creator.role.covers(role):
        reasons.append(f"role '{role.value}' is above your own, '{creator.role.value}'")
    if creator.namespaces:
        if not namespaces:
            reasons.append(
                f"all namespaces exceed your own limits: {', '.join(creator.namespaces)}"
            )
        # A glob lies within another exactly when the other matches it as text: `*` is not a
        # character of a name, so only another `*` can match it.
        reasons += [
            f"namespace '{glob}' exceeds your own limits: {', '.join(creator.namespaces)}"
            for glob in namespaces
            if not creator.sees_namespace(glob)
        ]
    if creator.thread_prefixes:
        if not thread_prefixes:
            reasons.append(
                f"all threads exceed your own limits: {', '.join(creator.thread_prefixes)}"
            )
        reasons += [
            (
                f"thread prefix '{prefix}' exceeds your own limits: "
                f"{', '.join(creator.thread_prefixes)}"
            )
            for prefix in thread_prefixes
            if not creator.sees_thread(prefix)
        ]
    return reasons


def matches_any(globs: Sequence[str], name: str) -> bool:
    """Whether one of the globs matches; only `*` is special. False without globs."""
    return any(_matches(glob, name) for glob in globs)


def _matches(glob: str, name: str) -> bool:
    """Only `*` is special. Matches part by part in linear time; a regular expression could
    backtrack."""
    first, *rest = glob.split("*")
    if not rest:
        return name == glob
    *middle, last = rest
    at, end = len(first), len(name) - len(last)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
