"""Verifies the stored data: checks invariants between tables, and compares digests of every
retained snapshot and version with digests that were written earlier."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connection, transaction

from state_admin.domain.digests import DROPPED, DigestLine, SetDigest, differences
from state_admin.models import verification_sql

# The number of faults that are described; further ones are only counted.
SHOWN = 1000


@dataclass
class Verification:
    """The result. `faults` describes the first SHOWN of `wrong` faults. `compacted`: the number of
    earlier lines whose snapshot or version compaction or redaction has changed or removed since.
    `removed`: the number of those whose thread or entry no longer exists."""

    lines: int = 0
    compacted: int = 0
    removed: int = 0
    wrong: int = 0
    faults: list[str] = field(default_factory=list)

    def add_fault(self, fault: str) -> None:
        self.wrong += 1
        if len(self.faults) < SHOWN:
            self.faults.append(fault)


def verify_state(before: Iterable[DigestLine] = ()) -> Verification:
    """Check the invariants, and that everything in `before`, lines of `read_digests`, is unchanged
    or was removed by compaction, redaction or deletion. Uses one snapshot of the database and
    constant memory."""
    verification = Verification()
    with one_moment():
        for rule, statement in verification_sql.CHECKS.items():
            kept = {"changes_kept": settings.CHANGE_RETENTION}
            for (place,) in verification_sql.stream(statement, kept):
                verification.add_fault(f"{rule}: {place}")
        for old, new in differences(before, _count(verification, _digests())):
            if old is not None and old.digest != DROPPED:
                _compare_line(verification, old, new)
            elif old is not None and new is not None:
                verification.add_fault(
                    f"it was removed by compaction and exists again: {_place(new)}"
                )
    return verification


def read_digests(workspace_id: int | None = None) -> Iterator[DigestLine]:
    """Yield the digests of every snapshot and version, of one workspace or of all, in the order that
    `differences` needs."""
    with one_moment():
        yield from _digests(workspace_id)


def describe_difference(line: DigestLine) -> str:
    """A snapshot or version that differs, in plain text."""
    return f"content differs: {_place(line)}"


@contextlib.contextmanager
def one_moment() -> Iterator[None]:
    """A transaction that reads one snapshot of the database. Inside another transaction, it has the
    isolation of that one."""
    outer = connection.in_atomic_block
    with transaction.atomic():
        if not outer:
            verification_sql.freeze()
        verification_sql.read_to_the_end()
        yield


def _digests(workspace_id: int | None = None) -> Iterator[DigestLine]:
    versions, states = verification_sql.VERSIONS, verification_sql.STATES
    if workspace_id is not None:
        versions = verification_sql.VERSIONS_OF_WORKSPACE
        states = verification_sql.STATES_OF_WORKSPACE
    parameters = {"workspace": workspace_id}
    for entry, version, digest in verification_sql.stream(versions, parameters):
        yield DigestLine("entry", entry, version, digest)
    thread, held = None, SetDigest()
    for owner, at, what, digest in verification_sql.stream(states, parameters):
        if owner != thread:
            thread, held = owner, SetDigest()
        if what == 1:
            held.add(digest)
        elif what == -1:
            held.remove(digest)
        else:
            yield DigestLine("state", owner, at, held.hex() if what == 2 else DROPPED)


def _count(verification: Verification, lines: Iterable[DigestLine]) -> Iterator[DigestLine]:
    for line in lines:
        verification.lines += 1
        yield line


def _compare_line(verification: Verification, old: DigestLine, new: DigestLine | None) -> None:
    """Record a line that is missing or differs."""
    if new is not None and new.digest == DROPPED:
        verification.compacted += 1
        return
    owner = verification_sql.find_owner(*old[:3])
    if owner is None:
        verification.removed += 1
    elif owner[1]:
        verification.compacted += 1
    else:
        fault = "missing" if new is None else "content differs"
        verification.add_fault(f"{fault}: {_place(old)}")


def _place(line: DigestLine) -> str:
    owner = verification_sql.find_owner(*line[:3])
    sign = "v" if line.kind == "entry" else "@"
    return f"{owner[0] if owner else line.owner} {sign}{line.number}"
