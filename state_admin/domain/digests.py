"""Compares two sorted streams of digests: those read earlier, and those read now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# In place of the digest of data that retention removed.
DROPPED: Final = "-"


class DigestLine(NamedTuple):
    """The digest of one row. `kind`, `owner` and `number` identify it and are the sort order."""

    kind: str
    owner: int
    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.kind} {self.owner} {self.number} {self.digest}"

    @classmethod
    def parse(cls, text: str) -> DigestLine:
        """Parse the text form of a line. Raises ValueError."""
        try:
            kind, owner, number, digest = text.split()
            return cls(kind, int(owner), int(number), digest)
        except ValueError:
            raise ValueError("a line has not the form KIND OWNER NUMBER DIGEST") from None


def differences(
    before: Iterable[DigestLine], now: Iterable[DigestLine]
) -> Iterator[tuple[DigestLine | None, DigestLine | None]]:
    """Pairs of lines with one identity that differ; None where one stream has no such line. Keeps
    one line of each stream in memory."""
    old, new = iter(before), iter(now)
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[:3] < right[:3]):
            yield left, None
            left = next(old, None)
        elif left is None or right[:3] < left[:3]:
            yield None, right
            right = next(new, None)
        else:
            if left != right:
                yield left, right
            left, right = next(old, None), next(new, None)


class SetDigest:
    """The digest of a set that changes one member at a time: the sum of the members' digests. Equal
    sets have equal sums, independent of the order of changes."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, digest: bytes) -> None:
        self._total = (self._total + int.from_bytes(digest)) % (1 << 256)

    def remove(self, digest: bytes) -> None:
        self._total = (self._total - int.from_bytes(digest)) % (1 << 256)

    def hex(self) -> str:
        return f"{self._total:064x}"
