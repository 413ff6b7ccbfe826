"""The two clients: settings and transport. The operations are in entries, threads, runs and others."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any, ClassVar, Self, TypedDict, TypeVar, Unpack, overload
from weakref import WeakValueDictionary

import httpx2

from commonhold import arguments
from commonhold.answers import Entry, Namespace
from commonhold.calls import Call, Reply, Request, Retries, Sleep, exchange, one_line, reply_of
from commonhold.changes import HEARTBEAT_TIMEOUT, AsyncWatch, Feed, Watch
from commonhold.compactions import Compactions
from commonhold.dispatches import Dispatches
from commonhold.entries import Entries
from commonhold.feed import Filters, query_of
from commonhold.joined_reads import ReadJoiner
from commonhold.keys import Profile, encode, profile_of
from commonhold.namespaces import Namespaces, register_namespace
from commonhold.problems import ClientClosed, InvalidArgument, VersionConflict
from commonhold.profiles import (
    ATTEMPTS,
    AsyncChange,
    ProfileAccess,
    Steps,
    edit_steps,
    opened,
    settle_steps,
)
from commonhold.reading import Page
from commonhold.reverts import Reverts
from commonhold.runs import Runs, Tickets
from commonhold.shapes import schema_of
from commonhold.state_keys import Plugins, StateKeys
from commonhold.threads import Threads
from commonhold.verbs import S
from commonhold.version import __version__

R = TypeVar("R")
T = TypeVar("T")

_CLOSED = "the client is closed; create another one, or use it inside of its with block"
_AGENT = f"commonhold-python/{__version__}".encode()


class Options(TypedDict, total=False):
    """`timeout`: an attempt fails after so many seconds without a byte; `retries`: a `Retries` object, the
    number of attempts and the pauses between them; `decimals`: read numbers with a decimal point as
    Decimal, without losing digits; `run_id`: the run to which the writes are attributed."""

    timeout: float
    retries: Retries
    decimals: bool
    run_id: str


class AsyncOptions(Options, total=False):
    """`join_reads`: send reads of entries that are started in the same turn of the event loop in one request, see
    AsyncCommonhold; and the members of Options."""

    join_reads: bool


class _Settings:
    """The address of the server, and the settings of requests to it."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 30.0,
        retries: Retries = Retries(),
        decimals: bool = False,
        run_id: str = "",
    ) -> None:
        self.address = _address(url)
        self.base = self.address + "/api/v1"
        self.timeout = arguments.duration("timeout", timeout)
        if not timeout:
            raise InvalidArgument("timeout must be greater than 0")
        if not isinstance(retries, Retries):
            raise InvalidArgument(f"retries must be a Retries(…), not {retries!r}")
        self.retries = retries
        self.decimals = decimals
        # A token that was read from a file ends with a line break. Errors must not contain the
        # token.
        secret = arguments.name("token", one_line("token", token))
        self.headers = {
            b"Authorization": f"Bearer {secret}".encode(),
            b"User-Agent": _AGENT,
        }
        if run_id:
            self.headers[b"Run-Id"] = one_line("run_id", run_id).encode()
        self.limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20)

    def arguments(self, request: Request) -> dict[str, Any]:
        """The keyword arguments of httpx2's `request`."""
        read = self.timeout + request.wait
        return {
            "method": request.method,
            "url": self.base + request.path,
            "params": request.query or None,
            "headers": [(name.encode(), value) for name, value in request.headers],
            "content": request.content,
            "timeout": httpx2.Timeout(self.timeout, read=read, pool=None),
        }


def _address(url: str) -> str:
    """Raises InvalidArgument for an invalid URL. The message does not contain a password in the
    URL."""
    address = arguments.text("url", url).strip()
    try:
        parts = httpx2.URL(address)
    except httpx2.InvalidURL as error:
        raise InvalidArgument(f"not an address: {url!r}: {error}") from None
    if parts.userinfo:
        raise InvalidArgument(
            "not an address: it contains a user name or password, with which the token would not "
            "be sent; give only http://host:port"
        )
    if parts.scheme not in ("http", "https"):
        fault = "it must begin with http:// or https://"
    elif not parts.host:
        fault = "it has no host"
    elif not 0 < (parts.port or 80) < 65536:
        fault = "the port must be 1 to 65535"
    elif parts.query or parts.fragment:
        fault = "it must not contain ? or #"
    else:
        return address.rstrip("/").removesuffix("/api/v1")
    raise InvalidArgument(f"not an address: {url!r}: {fault}")


def _call(method: str, path: str, body: Any, query: Mapping[str, Any]) -> Call[Any]:
    """The call of `request`."""
    if not arguments.text("path", path).startswith("/") or path.startswith("/api/"):
        raise InvalidArgument(f"path must be a path below /api/v1, such as /usage, not {path!r}")
    sent = {} if body is None else {"body": body}
    return Call(method, path, lambda document: document, query, **sent)


def from_environment() -> tuple[str, str]:
    """The address and the token of `from_env`. Raises KeyError with the name of a missing
    variable."""
    names = ("COMMONHOLD_URL", "COMMONHOLD_TOKEN")
    url, token = (os.environ.get(name, "") for name in names)
    if not url or not token:
        missing = " and ".join(name for name in names if not os.environ.get(name))
        raise KeyError(f"set {missing} in the environment")
    return url, token


class _Client(Entries[S]):
    """Base class of Commonhold and AsyncCommonhold."""

    _OPTIONS: ClassVar[type[Options]] = Options

    def __init__(self, url: str, token: str, **options: Unpack[Options]) -> None:
        client: Any = self  # which is an S
        super().__init__(client)
        arguments.options(type(self).__name__, options, self._OPTIONS.__annotations__)
        self._settings = _Settings(url, token, **options)
        self._closed = False
        self.namespaces: Namespaces[S] = Namespaces(client)
        self.threads: Threads[S] = Threads(client)
        self.runs: Runs[S] = Runs(client)
        self.tickets: Tickets[S] = Tickets(client)
        self.dispatches: Dispatches[S] = Dispatches(client)
        self.state_keys: StateKeys[S] = StateKeys(client)
        self.plugins: Plugins[S] = Plugins(client)
        self.compactions: Compactions[S] = Compactions(client)
        self.reverts: Reverts[S] = Reverts(client)

    @classmethod
    def from_env(cls, **options: Unpack[Options]) -> Self:
        """A client from the environment variables COMMONHOLD_URL and COMMONHOLD_TOKEN. Raises KeyError if
        one of them is not set."""
        return cls(*from_environment(), **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.address!r})"


class Commonhold(_Client["Commonhold"]):
    """The blocking client; threads may share one, and processes forked from this one. For `options` see
    Options."""

    def __init__(self, url: str, token: str, **options: Unpack[Options]) -> None:
        super().__init__(url, token, **options)
        self._of_process: dict[int, httpx2.Client] = {}
        self._watches: WeakValueDictionary[int, Watch] = WeakValueDictionary()
        self.profile = ProfileAccess(self)

    @property
    def _http(self) -> httpx2.Client:
        if self._closed:
            raise ClientClosed(_CLOSED)
        # A forked process must not read the answers that its parent waits for.
        process = os.getpid()
        found = self._of_process.get(process)
        if found is None:
            client = httpx2.Client(headers=self._settings.headers, limits=self._settings.limits)
            found = self._of_process.setdefault(process, client)
        return found

    def send(self, call: Call[R], *, idempotency_key: str | None = None) -> R:
        """Make a call, retries included: `state.send(Commonhold.update("notes", "k", {…}))` is
        `state.update("notes", "k", {…})`. Raises Problem or Unreachable.

        With an `idempotency_key`, a program that repeats the call after a restart gets the first
        response, and the call has one effect. By default each call has a random key.
        """
        call = call.with_idempotency_key(idempotency_key)
        steps = exchange(call, self._settings.retries, decimals=self._settings.decimals)
        came: Reply | httpx2.RequestError | None = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                done: R = end.value
                return done
            came = self._do(step)

    def _do(self, step: Request | Sleep) -> Reply | httpx2.RequestError | None:
        if isinstance(step, Sleep):
            time.sleep(step.seconds)
            return None
        try:
            answer = self._http.request(**self._settings.arguments(step))
        except httpx2.RequestError as error:
            return error
        return reply_of(answer, answer.content)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        idempotency_key: str | None = None,
        **query: Any,
    ) -> Any:
        """Make a call that has no method here; `path` is below /api/v1. Returns the JSON of the response."""
        call = _call(method, path, body, query)
        return self.send(call, idempotency_key=idempotency_key)

    def read(self, key: type[T] | Profile[T], scope: str) -> T:
        """See ProfileAccess.read."""
        return self.profile.read(key, scope)

    def write(
        self, key: type[T] | Profile[T], scope: str, value: T, *, if_version: int | None = None
    ) -> Entry:
        """See ProfileAccess.write."""
        return self.profile.write(key, scope, value, if_version=if_version)

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
        """See ProfileAccess.edit."""
        if change is None:
            return self.profile.edit(key, scope, attempts=attempts)
        return self.profile.edit(key, scope, change, attempts=attempts)

    def register(
        self, *keys: type[Any] | Profile[Any], replace: bool = False, if_version: int | None = None
    ) -> list[Namespace]:
        """Register the namespaces of ProfileKeys, with their schema and default; returns what is
        registered then.

        A namespace that is registered already is not changed. It is accepted if its schema and
        default are the same except for optional fields, so that old and new versions of a program
        can run at the same time. Otherwise SchemaConflict lists the differences. With `replace`,
        the schema and default are replaced and the other settings kept; the last of several
        programs wins unless `if_version` is the schema version to replace. Raises VersionConflict if
        the schema version is not `if_version`, or if another client registers the namespace at the
        same time.
        """
        return [self.send(registration(key, replace, if_version)) for key in keys]

    def watch(
        self,
        *,
        cursor: str = "",
        heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
        **filters: Unpack[Filters],
    ) -> Watch:
        """Follow the change feed: `with state.watch(namespace="notes") as changes: for change in
        changes: …`. Filters: namespace, key, prefix, thread_id, run_id, kind."""
        parameters = ("cursor", "heartbeat_timeout", *Filters.__annotations__)
        arguments.options(f"{type(self).__name__}.watch", filters, parameters)
        feed = Feed(cursor, query_of(filters), self._settings.retries)
        url = self._settings.base + "/changes/stream"
        timeout = arguments.duration("heartbeat_timeout", heartbeat_timeout)
        watch = Watch(lambda: self._http, url, feed, timeout)
        self._watches[id(watch)] = watch
        return watch

    def every(self, pages: Page[R] | Call[Page[R]]) -> Iterator[R]:
        """All items of a list, page by page. `pages` is the first page, as in
        `state.every(state.threads.messages("t1"))`, or the call that fetches it, as in
        `state.every(Threads.messages("t1"))`, which sends nothing before the first item is read."""
        page = _page(self.send(pages) if isinstance(pages, Call) else pages)
        while True:
            yield from page
            following = page.next_call()
            if following is None:
                return
            page = self.send(following)

    def close(self) -> None:
        """Close the connections of this process. Later requests raise ClientClosed, and so do loops over a
        watch in other threads; closing again does nothing."""
        self._closed = True
        for watch in [reference() for reference in self._watches.valuerefs()]:
            if watch is not None:
                watch.close()
        found = self._of_process.get(os.getpid())
        if found is not None:
            found.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncCommonhold(_Client["AsyncCommonhold"]):
    """The client for asyncio. It has separate connections for each event loop, so programs that
    call `asyncio.run` more than once may share a client, too. Its options are those of Commonhold, and
    `join_reads`.

    With `join_reads=True`, calls of `get` and `read` that are started in the same turn of the event loop, such
    as those of one `asyncio.gather`, are sent as one batch of at most 1,000 operations. Each call has the
    same result or exception as if it were sent alone, and the others continue if it is cancelled. Calls with
    `at`, `at_version` or `wait` are not joined. The option is off by default, because it changes what can be
    observed: all results of a batch arrive together, the server logs, measures and limits it as one request,
    it has the trace of the call that was started first, and a Problem from a batch has no `request_id`."""

    _OPTIONS = AsyncOptions

    def __init__(self, url: str, token: str, **options: Unpack[AsyncOptions]) -> None:
        shared: Any = dict(options)
        join_reads = shared.pop("join_reads", False)
        if not isinstance(join_reads, bool):
            raise InvalidArgument(f"join_reads must be a bool, not {join_reads!r}")
        super().__init__(url, token, **shared)
        self._of_loop: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}
        self._reads = ReadJoiner(self._send) if join_reads else None

    @classmethod
    def from_env(cls, **options: Unpack[AsyncOptions]) -> Self:
        """See Commonhold.from_env."""
        return cls(*from_environment(), **options)

    @property
    def _http(self) -> httpx2.AsyncClient:
        if self._closed:
            raise ClientClosed(_CLOSED)
        loop = asyncio.get_running_loop()
        found = self._of_loop.get(loop)
        if found is None:
            # The connections of a closed loop can neither be used nor closed.
            self._of_loop = {at: it for at, it in self._of_loop.items() if not at.is_closed()}
            found = httpx2.AsyncClient(headers=self._settings.headers, limits=self._settings.limits)
            self._of_loop[loop] = found
        return found

    async def send(self, call: Call[R], *, idempotency_key: str | None = None) -> R:
        """See Commonhold.send."""
        call = call.with_idempotency_key(idempotency_key)
        if self._reads is not None and call.operation is not None:
            joined: R = await self._reads.read(call)
            return joined
        return await self._send(call)

    async def _send(self, call: Call[R]) -> R:
        steps = exchange(call, self._settings.retries, decimals=self._settings.decimals)
        came: Reply | httpx2.RequestError | None = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                done: R = end.value
                return done
            came = await self._do(step)

    async def _do(self, step: Request | Sleep) -> Reply | httpx2.RequestError | None:
        if isinstance(step, Sleep):
            await asyncio.sleep(step.seconds)
            return None
        try:
            answer = await self._http.request(**self._settings.arguments(step))
        except httpx2.RequestError as error:
            return error
        return reply_of(answer, answer.content)

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        idempotency_key: str | None = None,
        **query: Any,
    ) -> Any:
        """Make a call that has no method here; `path` is below /api/v1. Returns the JSON of the response."""
        call = _call(method, path, body, query)
        return await self.send(call, idempotency_key=idempotency_key)

    async def read(self, key: type[T] | Profile[T], scope: str) -> T:
        """See ProfileAccess.read."""
        profile = profile_of(key)
        return opened(profile, await self.get(profile.name, scope))

    async def write(
        self, key: type[T] | Profile[T], scope: str, value: T, *, if_version: int | None = None
    ) -> Entry:
        """See ProfileAccess.write."""
        profile = profile_of(key)
        document = encode(profile, value)
        return await self.put(profile.name, scope, document, if_version=if_version)

    @overload
    def edit(
        self, key: type[T] | Profile[T], scope: str, *, attempts: int = ATTEMPTS
    ) -> AbstractAsyncContextManager[T]: ...
    @overload
    def edit(
        self,
        key: type[T] | Profile[T],
        scope: str,
        change: Callable[[T], T | None] | AsyncChange[T],
        *,
        attempts: int = ATTEMPTS,
    ) -> Coroutine[Any, Any, T]: ...
    def edit(
        self,
        key: type[T] | Profile[T],
        scope: str,
        change: Callable[[T], T | None] | AsyncChange[T] | None = None,
        *,
        attempts: int = ATTEMPTS,
    ) -> AbstractAsyncContextManager[T] | Coroutine[Any, Any, T]:
        """See ProfileAccess.edit: `async with`, or `await` with a function, which may be async."""
        profile = profile_of(key)
        arguments.name("scope", scope)
        if change is not None:
            return self._drive(edit_steps(profile, scope, change, attempts))
        return self._block(profile, scope, attempts)

    @asynccontextmanager
    async def _block(self, profile: Profile[T], scope: str, attempts: int) -> AsyncIterator[T]:
        entry = await self.get(profile.name, scope)
        value = opened(profile, entry)
        base = encode(profile, value)
        yield value
        yours = encode(profile, value)
        await self._drive(settle_steps(profile, scope, entry, base, yours, attempts))

    async def _drive(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    await asyncio.sleep(step.seconds)
                    step = next(steps)
                    continue
                try:
                    found = await step(self)
                except VersionConflict as conflict:
                    step = steps.throw(conflict)
                else:
                    step = steps.send(found)
        except StopIteration as end:
            done: T = end.value
            return done

    async def register(
        self, *keys: type[Any] | Profile[Any], replace: bool = False, if_version: int | None = None
    ) -> list[Namespace]:
        """See Commonhold.register."""
        return [await self.send(registration(key, replace, if_version)) for key in keys]

    def watch(
        self,
        *,
        cursor: str = "",
        heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
        **filters: Unpack[Filters],
    ) -> AsyncWatch:
        """Follow the change feed: `async with state.watch(namespace="notes") as changes: async for change
        in changes: …`. Filters: namespace, key, prefix, thread_id, run_id, kind."""
        parameters = ("cursor", "heartbeat_timeout", *Filters.__annotations__)
        arguments.options(f"{type(self).__name__}.watch", filters, parameters)
        feed = Feed(cursor, query_of(filters), self._settings.retries)
        url = self._settings.base + "/changes/stream"
        timeout = arguments.duration("heartbeat_timeout", heartbeat_timeout)
        return AsyncWatch(lambda: self._http, url, feed, timeout)

    async def every(self, pages: Page[R] | Call[Page[R]] | Awaitable[Page[R]]) -> AsyncIterator[R]:
        """See Commonhold.every: `async for message in state.every(state.threads.messages("t1"))`."""
        if isinstance(pages, Call):
            pages = self.send(pages)
        page = _page(await pages if isinstance(pages, Awaitable) else pages)
        while True:
            for item in page:
                yield item
            following = page.next_call()
            if following is None:
                return
            page = await self.send(following)

    async def close(self) -> None:
        """Close the connections of the running loop. Later requests raise ClientClosed, and so do loops over
        a watch in other tasks; closing again does nothing."""
        self._closed = True
        found = self._of_loop.get(asyncio.get_running_loop())
        if found is not None:
            await found.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Adapter:
    """Base class of the framework adapters. It uses the given client, or creates one from the environment,
    which `close` (or `async with`) closes."""

    def __init__(self, state: AsyncCommonhold | None) -> None:
        client: object = AsyncCommonhold.from_env() if state is None else state
        if not isinstance(client, AsyncCommonhold):
            raise InvalidArgument(f"state must be an AsyncCommonhold, not {type(client).__name__}")
        self._state = client
        self._owned = state is None

    async def close(self) -> None:
        if self._owned:
            await self._state.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _page(pages: Any) -> Page[Any]:
    if not isinstance(pages, Page):
        raise InvalidArgument(
            'every() takes a page, such as state.threads.messages("t1"), or the call that fetches '
            f"it, not {type(pages).__name__}"
        )
    return pages


def registration(
    key: type[Any] | Profile[Any], replace: bool, if_version: int | None
) -> Call[Namespace]:
    """The call that registers a ProfileKey's namespace. `replace`: schema and default of a
    registered namespace are replaced; the server keeps its other settings."""
    profile = profile_of(key)
    default = encode(profile, profile.default())
    call = register_namespace(
        profile.name, schema=schema_of(profile.kind), default=default, if_version=if_version
    )
    return dataclasses.replace(call, query={"if_exists": "update"}) if replace else call
