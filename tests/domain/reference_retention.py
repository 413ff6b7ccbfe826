"""What snapshot and history compaction may remove, in Python: a reference for
models/retention_sql.py."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from state_admin.domain.policies import KEEP_LAST

Span: TypeAlias = tuple[int, int | None]


@dataclass(frozen=True)
class RevisionInfo:
    """What retention needs of a revision of a thread."""

    revision: int
    labelled: bool = False
    pinned: bool = False
    run_id: str | None = None


@dataclass(frozen=True)
class VersionInfo:
    """What retention needs of a version in an entry's history. `at` is timezone-aware."""

    version: int
    at: datetime
    pinned: bool = False


def kept_revisions(
    revisions: Sequence[RevisionInfo], *, keep_last: int = KEEP_LAST, keep_every: int | None = None
) -> set[int]:
    """The revisions whose snapshots must not change.

    The newest `keep_last` (at least the newest one), every multiple of `keep_every`, the labelled,
    the pinned, and the last of each run.
    """
    newest = sorted(info.revision for info in revisions)[-max(keep_last, 1) :]
    last_of_run: dict[str, int] = {}
    for info in revisions:
        if info.run_id is not None:
            last_of_run[info.run_id] = max(info.revision, last_of_run.get(info.run_id, 0))
    return {
        *newest,
        *last_of_run.values(),
        *(
            info.revision
            for info in revisions
            if info.labelled or info.pinned or (keep_every and info.revision % keep_every == 0)
        ),
    }


def removable_spans(spans: Iterable[Span], kept: Sequence[int]) -> list[Span]:
    """The spans `[a, b)` that contain no kept revision; open spans (`b` None) are never removed.

    `kept` is sorted.
    """
    return [
        (start, end)
        for start, end in spans
        if end is not None and bisect_left(kept, start) == bisect_left(kept, end)
    ]


def removable_versions(
    versions: Sequence[VersionInfo],
    *,
    keep_last: int | None,
    keep_seconds: int | None,
    now: datetime,
) -> list[int]:
    """The versions that a namespace's `history` removes, oldest first.

    A version is removed if it is not among the newest `keep_last`, older than `keep_seconds`, not
    pinned and not the newest. A limit that is None does not apply; without any, all are kept.
    """
    if keep_last is None and keep_seconds is None:
        return []
    ordered = sorted(versions, key=lambda info: info.version)
    candidates = ordered[: -max(keep_last or 1, 1)]
    young = now - timedelta(seconds=keep_seconds) if keep_seconds is not None else None
    return [
        info.version
        for info in candidates
        if not info.pinned and (young is None or info.at < young)
    ]
