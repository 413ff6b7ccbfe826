"""Quotas of a workspace: the maximum number of entries, bytes and threads.

Counting in every write would make one row per workspace hot (measured: a quarter of the write
throughput). So a sweep measures the usage, and each process adds what it has created since. A quota
can therefore be exceeded by what other processes create between two measurements, but not by more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from django.db import transaction

from state_admin.contract import workspaces as contract
from state_admin.domain.access import Actor, Role
from state_admin.models import Workspace
from state_admin.models.limits import WorkspaceUsage, measure_usage

from . import journal
from .actors import require
from .errors import Invalid, QuotaExceeded

What = Literal["entries", "bytes", "threads"]

_FRESH = 5.0


@dataclass
class _Account:
    """What a process knows about a workspace: limits, usage, and what was added since."""

    limits: dict[str, int | None]
    used: dict[str, int]
    measured_at: object
    read_at: float
    added: dict[str, int] = field(default_factory=lambda: {"entries": 0, "bytes": 0, "threads": 0})


_lock = threading.Lock()
_accounts: dict[int, _Account] = {}
# Within undo_additions: what was added so far, with the `added` of the account.
_additions: ContextVar[list[tuple[dict[str, int], dict[str, int]]] | None] = ContextVar(
    "quota_additions", default=None
)


@dataclass(frozen=True)
class Usage:
    """The usage of a workspace, as last measured, and its limits (None: no limit)."""

    usage: WorkspaceUsage
    limits: dict[str, int | None]


def room(actor: Actor, what: What) -> int | None:
    """How much more the workspace may store. None: no limit. Reads the database at most once in
    five seconds."""
    account = _account(actor.workspace_id)
    limit = account.limits[what]
    if limit is None:
        return None
    return limit - account.used[what] - account.added[what]


def limited(actor: Actor) -> bool:
    """Whether the workspace has a quota for entries or bytes."""
    return _limits_writes(_account(actor.workspace_id))


def known_unlimited(actor: Actor) -> bool:
    """Whether the workspace has no quota for entries or bytes, as far as is known without a query."""
    account = _fresh_account(actor.workspace_id)
    return account is not None and not _limits_writes(account)


def _limits_writes(account: _Account) -> bool:
    return account.limits["entries"] is not None or account.limits["bytes"] is not None


def add_usage(actor: Actor, **added: int) -> None:
    """Count what was just created (or, if negative, removed) until the next measurement."""
    account = _account(actor.workspace_id)
    _add(account.added, added)
    _record(account.added, added)


def take(actor: Actor, *, entries: int = 0, size: int = 0, threads: int = 0) -> None:
    """Count what a write will add (or, if negative, remove), unless it exceeds a quota: then raise
    QuotaExceeded. Concurrent requests of this process cannot exceed a quota together."""
    added: dict[str, int] = {"entries": entries, "bytes": size, "threads": threads}
    account = _account(actor.workspace_id)
    with _lock:
        for what, count in added.items():
            limit, used = account.limits[what], account.used[what] + account.added[what]
            if limit is not None and count > 0 and used + count > limit:
                raise QuotaExceeded(
                    f"quota exceeded: {what}", hint=QuotaExceeded.remedy, limit=limit, used=used
                )
        for what, count in added.items():
            account.added[what] += count
    _record(account.added, added)


@contextmanager
def undo_additions() -> Iterator[Callable[[], None]]:
    """Subtract what the block has added if it raises, or when it calls the function that it gets: if its
    transaction is rolled back, or has written nothing. A measurement meanwhile has not counted it."""
    additions: list[tuple[dict[str, int], dict[str, int]]] = []
    outer = _additions.get()
    token = _additions.set(additions)

    def undo() -> None:
        while additions:
            total, added = additions.pop()
            _add(total, {what: -count for what, count in added.items()})

    try:
        yield undo
    except BaseException:
        undo()
        raise
    finally:
        _additions.reset(token)
        if outer is not None:
            outer += additions


def _record(total: dict[str, int], added: dict[str, int]) -> None:
    additions = _additions.get()
    if additions is not None:
        additions.append((total, added))


def _add(total: dict[str, int], added: dict[str, int]) -> None:
    with _lock:
        for what, count in added.items():
            total[what] += count


def read_usage(actor: Actor) -> Usage:
    """The usage of the workspace. Measures it if it was never measured."""
    row = WorkspaceUsage.objects.filter(workspace_id=actor.workspace_id).first()
    if row is None:
        measure_usage(actor.workspace_id)
        row = WorkspaceUsage.objects.get(workspace_id=actor.workspace_id)
    return Usage(row, _limits(Workspace.objects.get(pk=actor.workspace_id)))


def set_quota(
    *,
    actor: Actor,
    entries: int | None,
    bytes: int | None,  # noqa: A002  (the column's name)
    threads: int | None,
    reason: str = "",
) -> Workspace:
    """Set the limits of a workspace; None removes a limit. For operators with a shell."""
    require(actor, Role.ADMIN)
    limits = {"max_entries": entries, "max_bytes": bytes, "max_threads": threads}
    if any(
        limit is not None and not 0 <= limit <= contract.LARGEST_QUOTA for limit in limits.values()
    ):
        raise Invalid(f"a quota must be an integer from 0 to {contract.LARGEST_QUOTA:,}")
    with transaction.atomic():
        Workspace.objects.filter(pk=actor.workspace_id).update(**limits)
        trace = journal.Trace("workspace.quota", detail=limits)
        journal.record(actor, [trace], reason=reason)
    forget_accounts()
    return Workspace.objects.get(pk=actor.workspace_id)


def forget_accounts() -> None:
    """Forget the cached accounts of this process (after a change of a quota, and in tests)."""
    with _lock:
        _accounts.clear()


def _account(workspace_id: int) -> _Account:
    account = _fresh_account(workspace_id)
    if account is not None:
        return account
    limits = _limits(Workspace.objects.get(pk=workspace_id))
    usage = None
    if any(limit is not None for limit in limits.values()):
        usage = WorkspaceUsage.objects.filter(workspace_id=workspace_id).first()
        if usage is None:
            measure_usage(workspace_id)
            usage = WorkspaceUsage.objects.get(workspace_id=workspace_id)
    fresh = _Account(
        limits=limits,
        used={what: getattr(usage, what, 0) for what in ("entries", "bytes", "threads")},
        measured_at=usage.measured_at if usage else None,
        read_at=time.monotonic(),
    )
    with _lock:
        before = _accounts.get(workspace_id)
        if before is not None and before.measured_at == fresh.measured_at:
            fresh.added = before.added  # not yet in any measurement
        _accounts[workspace_id] = fresh
    return fresh


def _fresh_account(workspace_id: int) -> _Account | None:
    """The account, if it was read within the last seconds."""
    account = _accounts.get(workspace_id)
    return account if account and time.monotonic() - account.read_at < _FRESH else None


def _limits(workspace: Workspace) -> dict[str, int | None]:
    return {
        "entries": workspace.max_entries,
        "bytes": workspace.max_bytes,
        "threads": workspace.max_threads,
    }
