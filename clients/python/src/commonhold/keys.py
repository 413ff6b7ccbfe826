"""Typed keys of shared state: what is stored (ProfileKey) and which instance of it (StateScope)."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    TypeAlias,
    TypeVar,
    dataclass_transform,
)

from commonhold import arguments, shapes
from commonhold.errors import KeyDecode, KeyEncode
from commonhold.problems import InvalidArgument

T = TypeVar("T")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class StateScope(str):
    """A key of a usual form. It is a str; any other str can be a key, too."""

    __slots__ = ()

    @classmethod
    def global_(cls) -> StateScope:
        """For all agents everywhere."""
        return cls("global")

    @classmethod
    def parent_thread(cls, thread_id: str) -> StateScope:
        """For one delegation tree."""
        return cls(f"parent_thread::{arguments.name('thread_id', thread_id)}")

    @classmethod
    def agent_type(cls, name: str) -> StateScope:
        """For all agents of one kind."""
        return cls(f"agent_type::{arguments.name('name', name)}")

    @classmethod
    def thread(cls, thread_id: str) -> StateScope:
        """For one thread."""
        return cls(f"thread::{arguments.name('thread_id', thread_id)}")

    @classmethod
    def new(cls, key: str) -> StateScope:
        """Any other grouping, verbatim."""
        return cls(key)

    def as_str(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str.__str__(self)


@dataclass_transform(field_specifiers=(dataclasses.field,))
class ProfileKey:
    """A namespace whose value is a record with defaults. A subclass becomes a dataclass:

        class TeamContext(ProfileKey):            # the namespace "team_context"
            goal: str = ""
            constraints: list[str] = []           # each instance gets its own

    `class Prefs(ProfileKey, key="user.prefs")` names the namespace. Every field needs an annotation
    and a default; a public attribute without an annotation raises TypeError, and setting an
    attribute that the class lacks raises AttributeError, because its value would not be stored. Members of a stored value that the class does not know are kept when it is
    written back.
    """

    KEY: ClassVar[str]

    def __init_subclass__(cls, *, key: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        annotations = inspect.get_annotations(cls)
        key = key or _WORD.sub("_", cls.__name__).lower()
        if "KEY" in annotations or vars(cls).get("KEY", key) != key:
            name = f'class {cls.__name__}(ProfileKey, key="…")'
            raise TypeError(f"{cls.__name__}.KEY: name the namespace in the class header: {name}")
        for name, value in vars(cls).items():
            if not (
                name.startswith("_") or name == "KEY" or name in annotations or _is_code(value)
            ):
                raise TypeError(
                    f"{cls.__name__}.{name} has no annotation and would not be stored; "
                    "annotate it as a field or as ClassVar"
                )
        cls.KEY = key
        for name in annotations:
            default = cls.__dict__.get(name)
            if isinstance(default, list | dict | set):
                setattr(cls, name, dataclasses.field(default_factory=_copier(default)))
        dataclass(cls)
        record: Any = cls  # for the type checker, not a dataclass yet
        for field in dataclasses.fields(record):
            if field.init and field.default is field.default_factory is dataclasses.MISSING:
                raise TypeError(
                    f"{cls.__name__}.{field.name} needs a default: an entry that was never written "
                    "is read as the default value"
                )

    if not TYPE_CHECKING:  # with a __setattr__, type checkers would accept any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            kind = type(self)
            if not (
                name.startswith("_") or name in kind.__dataclass_fields__ or hasattr(kind, name)
            ):
                names = ", ".join(field.name for field in dataclasses.fields(kind))
                raise AttributeError(
                    f"{kind.__name__} has no field {name!r}; its fields are {names}"
                )
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Profile(Generic[T]):
    """A namespace whose value is of another type; `profile_key` makes one."""

    name: str
    kind: type[T]
    default: Callable[[], T]


def profile_key(name: str, kind: type[T], default: T | None = None) -> Profile[T]:
    """A namespace for values of `kind`: a JSON type, a dataclass or a pydantic model.
    Without `default` it is `kind()`."""
    return Profile(name, kind, kind if default is None else _copier(default))


AnyKey: TypeAlias = type[Any] | Profile[Any]
# A namespace and a key as callers name them.
Where: TypeAlias = str | AnyKey
Key: TypeAlias = str | StateScope


def profile_of(key: type[T] | Profile[T]) -> Profile[T]:
    """The definition of a key. Raises InvalidArgument for any other object."""
    if isinstance(key, Profile):
        return key
    kind: object = key  # a program without type checks may pass anything
    if isinstance(kind, type) and issubclass(kind, ProfileKey):
        return Profile(kind.KEY, key, key)
    raise InvalidArgument(
        f"not a ProfileKey or profile_key(): {key!r}; get, put and patch also take the name of a namespace"
    )


def name_of(namespace: Where) -> str:
    return namespace if isinstance(namespace, str) else profile_of(namespace).name


def encode(profile: Profile[T], value: T) -> Any:
    """The JSON of a value. Raises KeyEncode if JSON cannot represent it, or if it is not an instance of the
    class of the key: storing it would delete the stored members that it does not have."""
    kind: Any = profile.kind
    if shapes.is_record(kind) and not isinstance(value, kind):
        raise KeyEncode(profile.name, f"must be a {kind.__name__}, not {type(value).__name__}")
    try:
        return shapes.plain(value)
    except (TypeError, ValueError) as error:
        raise KeyEncode(profile.name, str(error)) from error


def decode(profile: Profile[T], document: Any) -> T:
    """The value of a JSON document. Raises KeyDecode if it is not valid for the key."""
    try:
        return shapes.build(profile.kind, document)
    except (TypeError, ValueError) as error:
        raise KeyDecode(profile.name, str(error)) from error


def _is_code(value: Any) -> bool:
    """Whether an attribute of a class is a method, a property or a nested class, not data."""
    return callable(value) or hasattr(value, "__get__")


def _copier(default: T) -> Callable[[], T]:
    return lambda: copy.deepcopy(default)
