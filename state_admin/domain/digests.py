"""Lists of digests: what was read, compared with what is read now. Both are streams in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# Stands for the digest of what retention let go.
DROPPED: Final = "-"


class DigestLine(NamedTuple):
    """What a thing read as. `kind`, `owner` and `number` name it and are the order."""

    kind: str
    owner: int
    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.kind} {self.owner} {self.number} {self.digest}"

    @classmethod
    def parse(cls, text: str) -> DigestLine:
        """The line that was written as `text`. Raises ValueError."""
        kind, owner, number, digest = text.split()
        return cls(kind, int(owner), int(number), digest)


def differences(
    before: Iterable[DigestLine], now: Iterable[DigestLine]
) -> Iterator[tuple[DigestLine | None, DigestLine | None]]:
    """Pairs of lines of one name that are not the same; None where there is no such line. Holds one
    line of each stream."""
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


class Sum:
    """The digest of a set that changes a member at a time: the sum of the members' digests. The
    same set has the same sum, whatever came and went before."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, digest: bytes) -> None:
        self._total = (self._total + int.from_bytes(digest)) % (1 << 256)

    def remove(self, digest: bytes) -> None:
        self._total = (self._total - int.from_bytes(digest)) % (1 << 256)

    def hex(self) -> str:
        return f"{self._total:064x}"
