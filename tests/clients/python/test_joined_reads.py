"""AsyncCommonhold with `join_reads`: reads of one turn are one request, and each call has its own outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from commonhold import (
    AsyncCommonhold,
    ClientClosed,
    Commonhold,
    CommonholdError,
    Entry,
    InvalidArgument,
    MemoryBackend,
    NotRegistered,
    Problem,
    ProfileKey,
    Retries,
    StateScope,
    Unauthenticated,
    Unreachable,
    joined_reads,
)

from tests.builders import Person
from tests.clients.python.conftest import SWIFT
from tests.clients.python.responding import responding
from tests.loops import run
from tests.project.running import Running, free_port

pytestmark = pytest.mark.django_db(transaction=True)

BACKEND = MemoryBackend()
BACKEND.register("n")
ENTRY = BACKEND.put("n", "k", 1).document


class Goal(ProfileKey, key="notes"):
    n: int = 0


class Counting(AsyncCommonhold):
    """Notes the method and the path of each request."""

    sent: list[str]

    async def _do(self, step: Any) -> Any:
        if hasattr(step, "path"):
            self.sent.append(f"{step.method} {step.path}")
        return await super()._do(step)


Work = Callable[[Counting], Awaitable[Any]]


@pytest.fixture
def use(state: Commonhold, web: Running, alice: Person) -> Callable[..., Any]:
    """Runs a function with a client that joins reads, and returns its result and the requests."""
    state.namespaces.register("notes", default={"n": 0})
    for n in range(5):
        state.put("notes", f"k{n}", {"n": n})

    def use(work: Work, **options: Any) -> tuple[Any, list[str]]:
        async def with_client() -> tuple[Any, list[str]]:
            url = f"http://127.0.0.1:{web.port}"
            given = {"token": alice.token, "retries": SWIFT, "join_reads": True, **options}
            async with Counting(url, **given) as client:
                client.sent = []
                return await work(client), client.sent

        done: tuple[Any, list[str]] = run(with_client())
        return done

    return use


BATCH = "POST /state/batch"


def test_gather__reads__are_one_request_with_equal_results(use: Any, state: Commonhold) -> None:
    async def work(client: Counting) -> Any:
        keys = ["k1", "k0", "none", "k1", StateScope.thread("a/b")]
        return await asyncio.gather(
            *(client.get("notes", key) for key in keys), client.read(Goal, "k4")
        )

    (*entries, goal), sent = use(work)
    assert sent == [BATCH]
    for entry in entries:
        alone = state.get("notes", entry.key)
        assert (entry, entry.document) == (alone, alone.document)
    assert goal == Goal(n=4)


def test_gather__option_off__sends_a_request_for_each(use: Any) -> None:
    async def work(client: Counting) -> Any:
        return await asyncio.gather(*(client.get("notes", f"k{n}") for n in range(3)))

    assert sorted(use(work, join_reads=False)[1]) == [f"GET /state/notes/k{n}" for n in range(3)]


def test_reads__of_different_turns_or_of_the_past_or_that_wait__are_not_joined(use: Any) -> None:
    async def work(client: Counting) -> Any:
        await client.get("notes", "k0")
        await client.get("notes", "k1")
        await asyncio.gather(
            client.get("notes", "k2", at_version=1),
            client.get("notes", "k2", at=datetime.now(UTC) + timedelta(days=1)),
            client.get("notes", "k2", wait=1, since=0),
            client.list("notes"),
            return_exceptions=True,
        )

    assert BATCH not in use(work)[1]


def test_gather__one_refused__does_not_affect_the_others(use: Any, state: Commonhold) -> None:
    async def work(client: Counting) -> Any:
        calls = (client.get("notes", "k1"), client.get("no", "k"), client.get("notes", "k2"))
        return await asyncio.gather(*calls, return_exceptions=True)

    (first, refused, last), sent = use(work)
    assert (first.value, last.value, sent) == ({"n": 1}, {"n": 2}, [BATCH])
    with pytest.raises(NotRegistered) as alone:
        state.get("no", "k")
    assert (type(refused), str(refused)) == (NotRegistered, str(alone.value))
    same = {name: alone.value.document[name] for name in ("type", "title", "status", "detail")}
    assert same.items() <= refused.document.items()


def test_gather__name_that_no_batch_accepts__fails_alone(use: Any, state: Commonhold) -> None:
    async def work(client: Counting) -> Any:
        calls = (client.get("notes", "k1"), client.get("b a d", "k"), client.get("notes", "k2"))
        return await asyncio.gather(*calls, return_exceptions=True)

    (first, refused, last), sent = use(work)
    assert (first.value, last.value, len(sent)) == ({"n": 1}, {"n": 2}, 4)
    with pytest.raises(Problem) as alone:
        state.get("b a d", "k")
    assert (type(refused), str(refused)) == (type(alone.value), str(alone.value))


def canned(document: Any) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    "results",
    [
        # The values of a batch have a limit that those of a single request do not have.
        [
            {"status": 200, "entry": ENTRY},
            {"status": 413, "problem": {"type": "/problems/too-large"}},
        ],
        [
            {"status": 503, "problem": {"type": "/problems/unavailable"}},
            {"status": 200, "entry": ENTRY},
        ],
        [{"status": 200, "entry": ENTRY}],
        [{"status": 204}, {"status": 200, "entry": ENTRY}],
    ],
)
def test_gather__result_of_the_batch_only__is_read_alone(results: Any) -> None:
    async def work(url: str) -> Any:
        async with AsyncCommonhold(url, "t", join_reads=True) as client:
            return await asyncio.gather(client.get("n", "a"), client.get("n", "b"))

    with responding(canned({"results": results}), canned({**ENTRY, "value": "alone"})) as (
        url,
        sent,
    ):
        entries = run(work(url))
    assert {each.value for each in entries} == {1, "alone"}
    assert [each.split()[0] for each in sent] == [b"POST", b"GET"]


def test_gather__more_than_the_operations_of_a_batch__are_several(
    use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_reads, "MOST_OPERATIONS", 2)

    async def work(client: Counting) -> Any:
        return await asyncio.gather(*(client.get("notes", f"k{n}") for n in range(5)))

    entries, sent = use(work)
    assert [each.value["n"] for each in entries] == [0, 1, 2, 3, 4]
    assert sorted(sent) == ["GET /state/notes/k4", BATCH, BATCH]


def test_gather__decimals__keep_their_digits(use: Any, state: Commonhold) -> None:
    with_digits = Commonhold.put("notes", "k0", {"n": Decimal("1.10")})
    state.send(with_digits)

    async def work(client: Counting) -> Any:
        return await asyncio.gather(*(client.get("notes", f"k{n}") for n in range(2)))

    entries, _ = use(work, decimals=True)
    assert str(entries[0].value["n"]) == "1.10"


def test_cancel__one_call__leaves_the_others(use: Any) -> None:
    async def work(client: Counting) -> Any:
        tasks = [asyncio.create_task(client.get("notes", f"k{n}")) for n in range(3)]
        await asyncio.sleep(0)  # They wait for the end of this turn.
        tasks[0].cancel()
        while not client.sent:
            await asyncio.sleep(0)
        tasks[1].cancel()  # While the request is under way.
        return await asyncio.gather(*tasks, return_exceptions=True)

    (first, second, last), sent = use(work)
    assert [type(first), type(second), type(last)] == [asyncio.CancelledError] * 2 + [Entry]
    assert (last.value, sent) == ({"n": 2}, [BATCH])


def test_cancel__all_calls__cancels_the_request() -> None:
    async def work() -> None:
        with responding(b"", end=False) as (url, _):
            async with AsyncCommonhold(url, "t", join_reads=True) as client:
                both = asyncio.gather(client.get("n", "a"), client.get("n", "b"))
                while not client._reads._batches:  # type: ignore[union-attr]
                    await asyncio.sleep(0)
                (batch,) = client._reads._batches  # type: ignore[union-attr]
                both.cancel()
                await asyncio.wait([batch])
                assert batch.cancelled()

    run(work())


def check_failures(kind: type[CommonholdError], url: str) -> None:
    async def work() -> Any:
        once = Retries(attempts=1)
        async with Counting(url, "wrong", join_reads=True, retries=once) as client:
            client.sent = []
            calls = (client.get("notes", "a"), client.get("notes", "b"))
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert client.sent == [BATCH]
            return found

    first, second = run(work())
    assert (type(first), type(second), first is second) == (kind, kind, False)


def test_gather__no_server_or_wrong_token__raises_in_each_call(web: Running) -> None:
    check_failures(Unreachable, f"http://127.0.0.1:{free_port()}")
    check_failures(Unauthenticated, f"http://127.0.0.1:{web.port}")


def test_gather__closed_client__raises_in_each_call() -> None:
    async def work() -> Any:
        client = AsyncCommonhold("http://127.0.0.1:1", "t", join_reads=True)
        await client.close()
        calls = (client.get("n", "a"), client.get("n", "b"))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [type(each) for each in run(work())] == [ClientClosed, ClientClosed]


def test_client__in_several_loops__joins_in_each(use: Any, web: Running, alice: Person) -> None:
    client = Counting(f"http://127.0.0.1:{web.port}", alice.token, join_reads=True)
    client.sent = []

    async def work() -> Any:
        return await asyncio.gather(client.get("notes", "k1"), client.get("notes", "k2"))

    for _ in range(2):
        assert [each.value["n"] for each in run(work())] == [1, 2]
    assert client.sent == [BATCH, BATCH]


def test_option__not_a_bool_or_of_the_blocking_client__is_refused() -> None:
    options: Any = {"join_reads": 1}
    with pytest.raises(InvalidArgument, match=r"^join_reads must be a bool, not 1"):
        AsyncCommonhold("http://h", "t", **options)
    with pytest.raises(InvalidArgument, match="unexpected keyword argument 'join_reads'"):
        Commonhold("http://h", "t", **options)
    options = {"join_read": True}
    with pytest.raises(InvalidArgument, match="Did you mean 'join_reads'"):
        AsyncCommonhold("http://h", "t", **options)
