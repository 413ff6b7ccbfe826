"""Typed shared state in any store of entries: the server, a file, memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from commonhold import arguments
from commonhold.alignment import align, identity_key
from commonhold.answers import Entry
from commonhold.calls import Retries, Sleep
from commonhold.documents import same
from commonhold.errors import KeyDecode, KeyEncode
from commonhold.keys import Profile, decode, encode, profile_of
from commonhold.problems import InvalidArgument, VersionConflict
from commonhold.shapes import keep_others
from commonhold.three_way import merge

if TYPE_CHECKING:
    from commonhold.client import Commonhold

T = TypeVar("T")

ATTEMPTS = 100
_PAUSES = Retries(first=0.005, longest=0.5)

Step: TypeAlias = Callable[[Any], Any] | Sleep
"""What an edit wants: something of the backend (sync or async), or a pause."""
Steps: TypeAlias = Generator[Step, Any, T]
AsyncChange: TypeAlias = Callable[[T], Coroutine[Any, Any, T | None]]


class Backend(Protocol):
    """A store of entries. Raises NotRegistered for an unknown namespace, before it accesses the
    storage."""

    def get(self, namespace: str, key: str) -> Entry: ...

    def put(
        self, namespace: str, key: str, value: Any, *, if_version: int | None = None
    ) -> Entry: ...

    def delete(self, namespace: str, key: str) -> None: ...


class ProfileAccess:
    """`read`, `write`, `delete` and `edit` values of ProfileKeys."""

    # Pyright does not see that the methods of a Commonhold, which are descriptors, are those of a Backend.
    def __init__(self, backend: Backend | Commonhold) -> None:
        self._backend = backend

    def read(self, key: type[T] | Profile[T], scope: str) -> T:
        """Read the value; the default if there is none (nothing is written). Raises KeyDecode if
        the stored value is not valid; it is never replaced by the default."""
        profile = profile_of(key)
        return opened(profile, self._backend.get(profile.name, scope))

    def write(
        self, key: type[T] | Profile[T], scope: str, value: T, *, if_version: int | None = None
    ) -> Entry:
        """Write the whole value. The last write wins unless `if_version` is the version to
        replace."""
        profile = profile_of(key)
        document = encode(profile, value)
        return self._backend.put(profile.name, scope, document, if_version=if_version)

    def delete(self, key: type[T] | Profile[T], scope: str) -> None:
        self._backend.delete(profile_of(key).name, scope)

    @overload
    def edit(
        self, key: type[T] | Profile[T], scope: str, *, attempts: int = ATTEMPTS
    ) -> AbstractContextManager[T]: ...
    @overload
    def edit(
        self,
        key: type[T] | Profile[T],
        scope: str,
        change: Callable[[T], T | None],
        *,
        attempts: int = ATTEMPTS,
    ) -> T: ...
    def edit(
        self,
        key: type[T] | Profile[T],
        scope: str,
        change: Callable[[T], T | None] | None = None,
        *,
        attempts: int = ATTEMPTS,
    ) -> AbstractContextManager[T] | T:
        """Read, change, compare-and-set.

        With `change`, a function that changes its argument or returns another value: if another
        writer was faster, it is called again with the new value, up to `attempts` times. No update
        is lost.

        Without `change`, for `with`: a block cannot run twice. If another writer was faster, the
        changes of both are merged. If both changed the same part, nothing is written, and
        VersionConflict names it. A block that raises or changes nothing writes nothing.
        """
        profile = profile_of(key)
        arguments.name("scope", scope)  # now: a function in its place would never be called
        if change is not None:
            return self._drive(edit_steps(profile, scope, change, attempts))
        return self._block(profile, scope, attempts)

    @contextmanager
    def _block(self, profile: Profile[T], scope: str, attempts: int) -> Iterator[T]:
        entry = self._backend.get(profile.name, scope)
        value = opened(profile, entry)
        base = encode(profile, value)
        yield value
        self._drive(settle_steps(profile, scope, entry, base, encode(profile, value), attempts))

    def _drive(self, steps: Steps[T]) -> T:
        """Execute the steps. This is the only part that the asynchronous client implements
        separately."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    sleep(step.seconds)
                    step = next(steps)
                    continue
                try:
                    found = step(self._backend)
                except VersionConflict as conflict:
                    step = steps.throw(conflict)
                else:
                    step = steps.send(found)
        except StopIteration as end:
            done: T = end.value
            return done


def opened(profile: Profile[T], entry: Entry) -> T:
    """The typed value of an entry. Raises KeyDecode if the stored value is not valid."""
    if not entry.exists and entry.value is None:
        return profile.default()
    if not entry.valid:
        raise KeyDecode(profile.name, "the stored value does not satisfy the schema")
    return decode(profile, copy.deepcopy(entry.value))


def edit_steps(
    profile: Profile[T],
    scope: str,
    change: Callable[[T], T | None] | AsyncChange[T],
    attempts: int,
) -> Steps[T]:
    """An edit by a function: repeated from the start until it is stored."""
    for attempt in range(attempts):
        entry: Entry = yield lambda at: at.get(profile.name, scope)
        value = opened(profile, entry)
        before = encode(profile, value)
        returned: Any = change(value)
        if isinstance(returned, Coroutine):
            returned = yield _awaited(returned)
        if isinstance(returned, Coroutine):
            returned.close()
            raise InvalidArgument(
                "change must be a function, not an async one; AsyncCommonhold takes both"
            )
        changed = value if returned is None else keep_others(value, returned)
        document = encode(profile, changed)
        if same(before, document):
            return changed
        document = _as_stored(profile, entry.value, before, document)
        try:
            yield _compare_and_set(profile, scope, document, entry)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
        else:
            return changed
        yield Sleep(_PAUSES.pause(attempt))
    raise InvalidArgument("attempts must be at least 1")


def settle_steps(
    profile: Profile[Any], scope: str, entry: Entry, base: Any, yours: Any, attempts: int
) -> Steps[None]:
    """The end of a `with` block: merge its changes into the current value, and store it."""
    started_from = entry.version
    theirs, merged = base, yours
    for attempt in range(attempts):
        if same(base, yours):
            return
        document = _as_stored(profile, entry.value, theirs, merged)
        try:
            yield _compare_and_set(profile, scope, document, entry)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
        else:
            return
        yield Sleep(_PAUSES.pause(attempt))
        entry = yield lambda at: at.get(profile.name, scope)
        theirs = encode(profile, opened(profile, entry))
        merged, clashes = merge(base, theirs, yours)
        if clashes:
            raise VersionConflict.of(
                *(started_from, entry.version),
                base=base,
                theirs=theirs,
                yours=yours,
                clashes=[
                    {
                        "pointer": at.pointer,
                        **({"pointers": at.pointers} if at.pointers else {}),
                        "base": at.base,
                        "theirs": at.theirs,
                        "yours": at.yours,
                    }
                    for at in clashes
                ],
                hint="Both sides changed the same value. Nothing was written.",
            )
    raise InvalidArgument("attempts must be at least 1")


def _as_stored(profile: Profile[Any], stored: Any, before: Any, after: Any) -> Any:
    """`after`, with the parts that an edit has not changed as they are stored. `before` is the stored value
    as the type of the profile writes it: a pydantic model writes a Decimal as a string and a time
    in its own notation."""
    if same(stored, before):
        return after
    for by_item in (True, False):
        document = _combined(stored, before, after, by_item)
        try:
            # The order of the items of a set says nothing about which one was removed.
            if same(encode(profile, decode(profile, copy.deepcopy(document))), after):
                return document
        except (KeyDecode, KeyEncode):
            pass
    return after


def _combined(stored: Any, before: Any, after: Any, by_item: bool) -> Any:
    if same(before, after):
        return stored
    if isinstance(stored, dict) and isinstance(before, dict) and isinstance(after, dict):
        return {
            name: _combined(stored[name], before[name], member, by_item)
            if name in stored and name in before
            else member
            for name, member in after.items()
        }
    is_list = all(isinstance(each, list) for each in (stored, before, after))
    if by_item and is_list and len(stored) == len(before):
        origins = align(before, after, identity_key(before, after))
        return [
            item if origin is None else _combined(stored[origin], before[origin], item, by_item)
            for item, origin in zip(after, origins, strict=True)
        ]
    return after


def _compare_and_set(
    profile: Profile[Any], scope: str, document: Any, entry: Entry
) -> Callable[[Any], Any]:
    version = entry.version if entry.exists else 0
    return lambda at: at.put(profile.name, scope, document, if_version=version)


def _awaited(running: Coroutine[Any, Any, Any]) -> Callable[[Any], Any]:
    """The asynchronous client awaits the value. Others return it unchanged."""
    return lambda _: running
