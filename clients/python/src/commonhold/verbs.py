"""How one description of a call becomes a method of both clients.

    class Threads(Group[S]):
        read = Verb(read_thread)          # def read_thread(thread_id: str) -> Call[Thread]

`Threads[Commonhold].read("t1")` is a Thread, `Threads[AsyncCommonhold].read("t1")` a coroutine of one;
type checkers see the parameters of `read_thread` in both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from commonhold.calls import Call

if TYPE_CHECKING:
    from commonhold.client import AsyncCommonhold, Commonhold

P = ParamSpec("P")
R = TypeVar("R")
# Covariant, so that the verbs of a client also have the types of its subclass.
S = TypeVar("S", "Commonhold", "AsyncCommonhold", covariant=True)


class Group(Generic[S]):
    """Verbs that belong together, for one client."""

    def __init__(self, client: S) -> None:
        self._client: S = client


class Verb(Generic[P, R]):
    def __init__(self, build: Callable[P, Call[R]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, at: Group[Commonhold], owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, at: Group[AsyncCommonhold], owner: type
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, at: None, owner: type) -> Callable[P, Call[R]]: ...
    def __get__(self, at: Any, owner: type) -> Any:
        if at is None:
            return self.build
        send = at._client.send

        @functools.wraps(self.build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return send(self.build(*args, **kwargs))

        return method
