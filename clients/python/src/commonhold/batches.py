"""Keys of run and thread state, and batches of updates to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from commonhold import shapes
from commonhold.errors import MutationBaseRevisionMismatch, ParallelMergeConflict

V = TypeVar("V")
U = TypeVar("U")


class MergeStrategy(Enum):
    EXCLUSIVE = "exclusive"
    COMMUTATIVE = "commutative"


class KeyScope(Enum):
    RUN = "run"
    THREAD = "thread"


class StateKey(Generic[V, U]):
    """A typed slot of state. A subclass is the key; it is never instantiated.

        class Counter(StateKey[int, int]):
            KEY = "counter"
            MERGE = MergeStrategy.COMMUTATIVE

            @staticmethod
            def apply(value: int, update: int) -> int:
                return value + update

    `apply` answers the new value, which may be the old one, changed. Without it an update replaces
    the value. A missing value starts from `default()`: what `VALUE` makes, which is also the type
    that a document is read as.
    """

    KEY: ClassVar[str]
    MERGE: ClassVar[MergeStrategy] = MergeStrategy.EXCLUSIVE
    VALUE: ClassVar[Any] = None

    @staticmethod
    def apply(value: Any, update: Any) -> Any:
        return update

    @classmethod
    def default(cls) -> Any:
        return None if cls.VALUE is None else cls.VALUE()

    @classmethod
    def encode(cls, value: V) -> Any:
        """Its JSON. ValueError, TypeError: it has none."""
        return shapes.plain(value)

    @classmethod
    def decode(cls, document: Any) -> Any:
        """The value of a document. ValueError: it does not fit."""
        return document if cls.VALUE is None else shapes.build(cls.VALUE, document)


AnyStateKey: TypeAlias = type[StateKey[Any, Any]]


@dataclass(frozen=True)
class StateKeyOptions:
    persistent: bool = True
    retain_on_uninstall: bool = False
    scope: KeyScope = KeyScope.RUN


@dataclass(frozen=True)
class Op:
    key: str
    update: Any = None
    clear: bool = False


class MutationBatch:
    """Updates in order, and the revision they were made against, if that matters."""

    def __init__(self, base_revision: int | None = None) -> None:
        self.base_revision = base_revision
        self._ops: list[Op] = []

    def with_base_revision(self, revision: int) -> Self:
        self.base_revision = revision
        return self

    def update(self, key: type[StateKey[Any, U]], update: U) -> Self:
        self._ops.append(Op(key.KEY, update))
        return self

    def clear(self, key: AnyStateKey | str) -> Self:
        self._ops.append(Op(key if isinstance(key, str) else key.KEY, clear=True))
        return self

    @property
    def touched_keys(self) -> list[str]:
        """In order; a key touched twice is there twice."""
        return [op.key for op in self._ops]

    def is_empty(self) -> bool:
        return not self._ops

    def __len__(self) -> int:
        return len(self._ops)

    def __iter__(self) -> Iterator[Op]:
        return iter(self._ops)

    def extend(self, other: MutationBatch) -> Self:
        """`other` behind this. MutationBaseRevisionMismatch: they start from different revisions."""
        self.base_revision = self._joint_base(other)
        self._ops += other._ops
        return self

    def merge_parallel(
        self, other: MutationBatch, strategy_of: Callable[[str], MergeStrategy]
    ) -> MutationBatch:
        """One batch of two branches, this one's updates first. Neither is changed.
        ParallelMergeConflict names the first key that both touch and only one may."""
        base = self._joint_base(other)
        theirs = set(other.touched_keys)
        for key in self.touched_keys:
            if key in theirs and strategy_of(key) is MergeStrategy.EXCLUSIVE:
                raise ParallelMergeConflict(key)
        return MutationBatch(base).extend(self).extend(other)

    def _joint_base(self, other: MutationBatch) -> int | None:
        left, right = self.base_revision, other.base_revision
        if left is not None and right is not None and left != right:
            raise MutationBaseRevisionMismatch(left, right)
        return right if left is None else left
