"""Answers concurrent calls in groups (project/lane.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from state_admin.domain.access import Actor
from state_admin.services.idempotency import StoredResponse
from state_admin.services.traffic import CallKind, counter


class ActorCall(Protocol):
    """A call of `actor`, which has the ids of the request and of the run."""

    @property
    def actor(self) -> Actor: ...


C = TypeVar("C", bound=ActorCall)
W = TypeVar("W")


async def answer_group(
    calls: Sequence[C],
    read: Callable[[C], W | None],
    store: Callable[[Sequence[W]], Awaitable[Sequence[StoredResponse | Exception | None]]],
) -> list[StoredResponse | Exception | None]:
    """Return the responses to calls that write.

    An exception is a database error: whether the call was stored is unknown. None means that Django
    must serve the call. `read` returns None for a call that cannot be stored in a group.
    """
    works = [read(call) for call in calls]
    stored = iter(await store([work for work in works if work is not None]))
    responses = [None if work is None else next(stored) for work in works]
    for call, response in zip(calls, responses, strict=True):
        if isinstance(response, StoredResponse):
            counter.count(call.actor.workspace_id, CallKind.WRITE)
    return responses
