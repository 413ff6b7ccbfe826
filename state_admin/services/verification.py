"""Proves that what is kept reads as it did: rules between the tables, and digests of every kept
snapshot and version, written at one time and compared at another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connection, transaction

from state_admin.domain.digests import DROPPED, DigestLine, SetDigest, differences
from state_admin.models import verification_sql

# Faults that are told one by one; the others are counted.
SHOWN = 1000


@dataclass
class Verification:
    """What was found. `faults` names the first SHOWN of `wrong`. `compacted`: kept then, and let go
    since. `removed`: of threads and entries that were deleted since."""

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
    """Check the rules, and that everything in `before`, lines of `read_digests`, reads the same or
    was let go as the policies say. In constant memory, at one moment."""
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


def read_digests() -> Iterator[DigestLine]:
    """What every snapshot and version reads as, in the order of `differences`."""
    with one_moment():
        yield from _digests()


@contextlib.contextmanager
def one_moment() -> Iterator[None]:
    """A transaction that sees one moment. Inside of another it sees what that one sees."""
    outer = connection.in_atomic_block
    with transaction.atomic():
        if not outer:
            verification_sql.freeze()
        verification_sql.read_to_the_end()
        yield


def _digests() -> Iterator[DigestLine]:
    for entry, version, digest in verification_sql.stream(verification_sql.VERSIONS, {}):
        yield DigestLine("entry", entry, version, digest)
    thread, held = None, SetDigest()
    for owner, at, what, digest in verification_sql.stream(verification_sql.STATES, {}):
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
    """A line that is gone or differs."""
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
