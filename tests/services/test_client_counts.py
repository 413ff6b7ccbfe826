"""Clients of several web processes that would receive a change."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import pytest

from project.postgres.aio import connect
from state_admin.models.feed_sql import FeedFilter
from state_admin.services import client_counts
from state_admin.services.client_counts import ClientCount, count_clients
from state_admin.streams.client_counts import HUB_CONNECTION
from state_admin.streams.hub import Hub
from tests.builders import Person, make_token
from tests.loops import run
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

EVERYTHING = FeedFilter()


def open_hub() -> Hub:
    """As a web process has."""
    return Hub(partial(connect, HUB_CONNECTION), linger=PATIENCE)


async def count(person: Person, run_id: str = "r1") -> ClientCount:
    return await asyncio.to_thread(
        count_clients, person.workspace.pk, "run.resume", thread_id="t1", run_id=run_id
    )


def test_count__clients_of_two_processes__are_those_of_tokens_that_get_the_change(
    alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_counts, "_PATIENCE", PATIENCE)  # all respond
    _, token = make_token(alice, thread_prefixes=["t"])
    _, elsewhere = make_token(alice, thread_prefixes=["x"])
    _, foreign = make_token(mallory)
    subscribed = [
        (alice.actor, EVERYTHING, 0),  # a page of the admin
        (elsewhere, EVERYTHING, 0),
        (foreign, EVERYTHING, 0),
        (token, FeedFilter(kinds=("run.start",)), 0),
        (token, EVERYTHING, 1),
        (token, FeedFilter(run="r1"), 2),
        (token, FeedFilter(run="r2"), 2),
    ]

    async def main() -> None:
        hubs = [open_hub(), open_hub()]
        assert await count(alice) == ClientCount(0, 0)
        async with AsyncExitStack() as stack:
            for number, (actor, filters, clients) in enumerate(subscribed):
                hub = hubs[number % 2]
                subscription = await stack.enter_async_context(hub.subscribe(actor, filters))
                assert await count(alice) == ClientCount(clients, 0)
            subscription.close("gone")
            assert await count(alice, "r2") == ClientCount(1, 0)
        # The connections are kept for a moment, and answer.
        assert await count(alice) == ClientCount(0, 0)

    run(main())


def test_count__process_does_not_respond__is_counted(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_counts, "_PATIENCE", 5)
    _, token = make_token(alice)

    async def main() -> None:
        silent = await connect(HUB_CONNECTION)
        async with open_hub().subscribe(token, EVERYTHING):
            assert await count(alice) == ClientCount(1, 1)
        await silent.close()

    run(main())
