"""Creates the read-only objects of answers.py, and pages of them, from JSON documents."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from commonhold.calls import Call

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response. `document` is the JSON as received, with members that this version of the package
    does not know."""

    document: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        members = {}
        kind: Any = cls  # mypy confuses the __hash__ of an object with that of its class
        for member, (name, read) in _readers(kind).items():
            if member in document:
                value = document[member]
                members[name] = value if read is None or value is None else read(value)
        return cls(document=document, **members)


_Read = Callable[[Any], Any]


@functools.cache
def _readers(kind: type[Answer]) -> Mapping[str, tuple[str, _Read | None]]:
    """For each member of the document: the name of the field, and the function that converts the value,
    if any. The field of a member that is a Python keyword ends with an underscore."""
    hints = typing.get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.name != "document"]
    return {name.removesuffix("_"): (name, _reader(hints[name])) for name in names}


def _reader(hint: Any) -> _Read | None:
    if hint is datetime:
        return datetime.fromisoformat
    if isinstance(hint, type) and issubclass(hint, Answer):
        return hint.read
    inner = [each for each in map(_reader, typing.get_args(hint)) if each]
    if not inner:
        return None
    (read,) = inner
    if typing.get_origin(hint) is types.UnionType:
        return read
    return lambda items: list(map(read, items))


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list. Iterating gives its items. `next_cursor` fetches the next page and is None
    on the last one. `state.every(page)` gives the items of this page and of all that follow."""

    items: list[T]
    next_cursor: str | None
    call: Call[Page[T]] | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def next_call(self) -> Call[Page[T]] | None:
        """The call that fetches the next page, None on the last one."""
        if self.next_cursor is None:
            return None
        if self.call is None:
            raise ValueError("a page without the call that fetched it has no next page")
        cursor = {"cursor": self.next_cursor}
        if self.call.method == "GET":
            return replace(self.call, query={**self.call.query, **cursor})
        return replace(self.call, body={**self.call.body, **cursor})


def page_of(read: Callable[[dict[str, Any]], T]) -> Callable[[Any], Page[T]]:
    return lambda document: Page(
        [read(item) for item in document["items"]], document.get("next_cursor")
    )
