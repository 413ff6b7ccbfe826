"""Executes the plans of the saver and the store, with either of the two clients.

A plan is a generator. It yields a `Call` and is sent the result (a CommonholdError is thrown into
it), `StoreEntries`, or a `Sleep`. Anything else that it yields is an item for the caller.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from typing import Any, Self, TypeVar

from commonhold.calls import Call, Sleep
from commonhold.client import AsyncCommonhold, Commonhold, Options
from commonhold.langgraph.joining import AsyncJoiner, Joiner, StoreEntries
from commonhold.namespaces import registering
from commonhold.problems import CommonholdError, NotRegistered

R = TypeVar("R")

Plan = Generator[Any, Any, R]


class ClientPair:
    """A blocking client and one for each event loop, each created when it is first needed.
    `registrations` are the calls that register the namespaces, made when a namespace is not
    registered."""

    def __init__(
        self, url: str, token: str, options: Options, registrations: Sequence[Call[Any]]
    ) -> None:
        Commonhold(url, token, **options)  # checks the settings now, not in the middle of a graph
        self._address = (url, token)
        self._options = options
        self._registrations = registrations
        self._client: Commonhold | None = None
        self._opening = threading.Lock()  # LangGraph's background threads write concurrently
        self._joiner = Joiner()
        # Connections and waiting writes belong to the event loop in which they were created.
        self._of_loop: dict[asyncio.AbstractEventLoop, tuple[AsyncCommonhold, AsyncJoiner]] = {}

    def register(self) -> Plan[None]:
        """Register the namespaces. Repeating it changes nothing."""
        for call in self._registrations:  # noqa: UP028  # a list takes no answers
            yield call

    def run(self, plan: Plan[R]) -> R:
        """Execute the plan. Returns its result."""
        answer: Any = None
        while True:
            try:
                step = _resume(plan, answer)
            except StopIteration as end:
                done: R = end.value
                return done
            answer = self._take(step)

    def items(self, plan: Plan[None]) -> Iterator[Any]:
        """Execute the plan. Yields its items."""
        answer: Any = None
        while True:
            try:
                step = _resume(plan, answer)
            except StopIteration:
                return
            if isinstance(step, Call | StoreEntries | Sleep):
                answer = self._take(step)
            else:
                answer = None
                yield step

    async def arun(self, plan: Plan[R]) -> R:
        answer: Any = None
        while True:
            try:
                step = _resume(plan, answer)
            except StopIteration as end:
                done: R = end.value
                return done
            answer = await self._atake(step)

    async def aitems(self, plan: Plan[None]) -> AsyncIterator[Any]:
        answer: Any = None
        while True:
            try:
                step = _resume(plan, answer)
            except StopIteration:
                return
            if isinstance(step, Call | StoreEntries | Sleep):
                answer = await self._atake(step)
            else:
                answer = None
                yield step

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    async def aclose(self) -> None:
        self.close()
        with self._opening:
            found = self._of_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[0].close()

    def _take(self, step: Call[Any] | StoreEntries | Sleep) -> Any:
        if isinstance(step, Sleep):
            return time.sleep(step.seconds)
        try:
            if isinstance(step, StoreEntries):
                return self._joiner.store(step, self._send)
            return self._send(step)
        except CommonholdError as error:
            return error

    def _send(self, call: Call[Any]) -> Any:
        with self._opening:
            client = self._client = self._client or Commonhold(*self._address, **self._options)
        try:
            return client.send(call)
        except NotRegistered as missing:
            with registering(missing):
                for each in self._registrations:
                    client.send(each)
            return client.send(call)

    async def _atake(self, step: Call[Any] | StoreEntries | Sleep) -> Any:
        if isinstance(step, Sleep):
            return await asyncio.sleep(step.seconds)
        client, joiner = self._of_running_loop()

        async def send(call: Call[Any]) -> Any:
            try:
                return await client.send(call)
            except NotRegistered as missing:
                with registering(missing):
                    for each in self._registrations:
                        await client.send(each)
                return await client.send(call)

        try:
            if isinstance(step, StoreEntries):
                return await joiner.store(step, send)
            return await send(step)
        except CommonholdError as error:
            return error

    def _of_running_loop(self) -> tuple[AsyncCommonhold, AsyncJoiner]:
        loop = asyncio.get_running_loop()
        with self._opening:  # several threads may run a loop each
            if loop not in self._of_loop:
                self._of_loop = {at: it for at, it in self._of_loop.items() if not at.is_closed()}
                client = AsyncCommonhold(*self._address, **self._options)
                self._of_loop[loop] = client, AsyncJoiner()
            return self._of_loop[loop]


class Connected:
    """What the saver and the store share: how their connections are opened and closed."""

    _wire: ClientPair

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wire.aclose()

    def setup(self) -> None:
        """Register the namespaces now. Repeating it changes nothing. Needs the role admin."""
        self._wire.run(self._wire.register())

    async def asetup(self) -> None:
        """See setup."""
        await self._wire.arun(self._wire.register())


def _resume(plan: Plan[Any], answer: Any) -> Any:
    return plan.throw(answer) if isinstance(answer, CommonholdError) else plan.send(answer)
