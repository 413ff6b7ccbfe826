"""Keys of run and thread state, and batches of updates to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from commonhold import shapes
from commonhold.errors import MutationBaseRevisionMismatch, ParallelMergeConflict

V = TypeVar("V")
U = TypeVar("U")


class MergeStrategy(Enum):
    """Whether parallel batches may update one key: only one of them, or all, in any order."""

    EXCLUSIVE = "exclusive"
    COMMUTATIVE = "commutative"


class KeyScope(Enum):
    """How long the value of a key is kept: during a run, or as long as the thread."""

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

    `apply` returns the new value; it may change the old one and return that. Without `apply`, an
    update replaces the value. A missing value starts from `default()`: `VALUE()`. `VALUE` is also
    the type that stored documents are decoded to.

    `SCOPE`, `PERSISTENT` and `RETAIN_ON_UNINSTALL` apply wherever the key is registered, unless
    its StateKeyOptions say otherwise. Any other public attribute, and one of the wrong type, raises
    TypeError when the class is created: a misspelled name must not be ignored. Give helpers a name
    that starts with an underscore.
    """

    KEY: ClassVar[str]
    MERGE: ClassVar[MergeStrategy] = MergeStrategy.EXCLUSIVE
    SCOPE: ClassVar[KeyScope] = KeyScope.RUN
    PERSISTENT: ClassVar[bool] = True
    RETAIN_ON_UNINSTALL: ClassVar[bool] = False
    VALUE: ClassVar[Any] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _check_attributes(cls)

    @staticmethod
    def apply(value: Any, update: Any) -> Any:
        return update

    @classmethod
    def default(cls) -> Any:
        return None if cls.VALUE is None else cls.VALUE()

    @classmethod
    def encode(cls, value: V) -> Any:
        """The JSON of a value. Raises ValueError or TypeError if it has none."""
        return shapes.plain(value)

    @classmethod
    def decode(cls, document: Any) -> Any:
        """The value of a document. Raises ValueError if it is not valid for the key."""
        return document if cls.VALUE is None else shapes.build(cls.VALUE, document)


AnyStateKey: TypeAlias = type[StateKey[Any, Any]]


_ATTRIBUTE_TYPES: dict[str, type] = {
    "KEY": str,
    "MERGE": MergeStrategy,
    "SCOPE": KeyScope,
    "PERSISTENT": bool,
    "RETAIN_ON_UNINSTALL": bool,
}
_METHODS = ("apply", "default", "encode", "decode")
_ATTRIBUTES = (*_ATTRIBUTE_TYPES, "VALUE", *_METHODS)


def _check_attributes(key: AnyStateKey) -> None:
    """Raise TypeError for a public attribute that no StateKey has, or of the wrong type."""
    for name in {**vars(key), **inspect.get_annotations(key)}:
        if name not in _ATTRIBUTES and not name.startswith("_"):
            raise TypeError(
                f"{key.__name__}.{name}: a StateKey has no attribute {name!r}. "
                f"Its attributes are {', '.join(_ATTRIBUTES)}."
            )
    for name, kind in _ATTRIBUTE_TYPES.items():
        if hasattr(key, name):
            _check_type(f"{key.__name__}.{name}", getattr(key, name), kind)
    for name in _METHODS:
        if not callable(getattr(key, name)):
            raise TypeError(f"{key.__name__}.{name} must be a method")


def _check_type(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r}")


@dataclass(frozen=True)
class StateKeyOptions:
    """Options of one registration. None keeps the option of the key's class."""

    persistent: bool | None = None
    retain_on_uninstall: bool | None = None
    scope: KeyScope | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) is not None:
                _check_type(field.name, value, _ATTRIBUTE_TYPES[field.name.upper()])


@dataclass(frozen=True)
class Registration:
    """A registered key with its effective options."""

    key: AnyStateKey
    persistent: bool
    retain_on_uninstall: bool
    scope: KeyScope

    @classmethod
    def of(cls, key: AnyStateKey, options: StateKeyOptions | None) -> Self:
        chosen = options or StateKeyOptions()
        return cls(
            key,
            key.PERSISTENT if chosen.persistent is None else chosen.persistent,
            key.RETAIN_ON_UNINSTALL
            if chosen.retain_on_uninstall is None
            else chosen.retain_on_uninstall,
            key.SCOPE if chosen.scope is None else chosen.scope,
        )


@dataclass(frozen=True)
class Op:
    key: str
    update: Any = None
    clear: bool = False


class MutationBatch:
    """Updates in order, and the revision that they are based on, if any."""

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
        """The keys in the order of the updates; a key with two updates is listed twice."""
        return [op.key for op in self._ops]

    def is_empty(self) -> bool:
        return not self._ops

    def __len__(self) -> int:
        return len(self._ops)

    def __iter__(self) -> Iterator[Op]:
        return iter(self._ops)

    def extend(self, other: MutationBatch) -> Self:
        """Append the updates of `other`. Raises MutationBaseRevisionMismatch if the batches are
        based on different revisions."""
        self.base_revision = self._common_base(other)
        self._ops += other._ops
        return self

    def merge_parallel(
        self, other: MutationBatch, strategy_of: Callable[[str], MergeStrategy]
    ) -> MutationBatch:
        """One batch of two branches, this one's updates first. Neither is changed. Raises
        ParallelMergeConflict with the first exclusive key that both update."""
        base = self._common_base(other)
        theirs = set(other.touched_keys)
        for key in self.touched_keys:
            if key in theirs and strategy_of(key) is MergeStrategy.EXCLUSIVE:
                raise ParallelMergeConflict(key)
        return MutationBatch(base).extend(self).extend(other)

    def _common_base(self, other: MutationBatch) -> int | None:
        left, right = self.base_revision, other.base_revision
        if left is not None and right is not None and left != right:
            raise MutationBaseRevisionMismatch(left, right)
        return right if left is None else left
