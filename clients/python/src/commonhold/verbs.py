"""How one description of a call becomes a method of both clients.

    class Threads(Group[S]):
        read = Verb(read_thread)          # def read_thread(thread_id: str) -> Call[Thread]

`Threads[Commonhold].read("t1")` is a Thread, `Threads[AsyncCommonhold].read("t1")` a coroutine of one;
type checkers see the parameters of `read_thread` in both.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from commonhold import arguments
from commonhold.calls import Call
from commonhold.problems import InvalidArgument

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

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, at: Group[Commonhold], owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, at: Group[AsyncCommonhold], owner: type
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, at: None, owner: type) -> Callable[P, Call[R]]: ...
    def __get__(self, at: Any, owner: type) -> Any:
        called = f"{owner.__name__}.{self._name}"

        @functools.wraps(self.build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            call = self._call(called, *args, **kwargs)
            return call if at is None else at._client.send(call)

        # Editors, `help` and errors show these.
        method.__name__, method.__qualname__ = self._name, called
        return method

    def _call(self, called: str, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Raises InvalidArgument, which names the method that the program has called, not `build`."""
        arguments.options(called, kwargs, self._options)
        try:
            return self.build(*args, **kwargs)
        except TypeError as error:
            own, message = f"{self.build.__qualname__}()", str(error)
            if not message.startswith(own):
                raise
            raise InvalidArgument(f"{called}(){message.removeprefix(own)}") from None

    @functools.cached_property
    def _options(self) -> tuple[str, ...]:
        return tuple(_names(self.build))


def _names(build: Callable[..., Any]) -> Iterator[str]:
    """The parameters of a function. Those of `**page: Unpack[Listing]` are the members of Listing."""
    for name, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            (members,) = typing.get_args(typing.get_type_hints(build)[name])
            yield from members.__annotations__
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            yield name
