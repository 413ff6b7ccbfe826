"""Long polling on the event loop: no thread and no database connection while waiting."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from state_admin.domain.access import Actor
from state_admin.models.feed_sql import FeedFilter

from .hub import FeedUnavailable, Hub

if TYPE_CHECKING:
    from project.channel import Answer, Channel


class LongPoll:
    """Waits for a matching change, or for `seconds`; then calls the view again.

    `extra` is added to the environ of every further call. The view decides whether there is a
    result: a response that would continue to wait has a LongPoll again.
    """

    def __init__(
        self, hub: Hub, actor: Actor, filters: FeedFilter, seconds: float, extra: dict[str, Any]
    ) -> None:
        self.hub, self.actor, self.filters = hub, actor, filters
        self.seconds, self.extra = seconds, extra

    async def __call__(self, channel: Channel, answer: Answer) -> None:
        with contextlib.suppress(FeedUnavailable):  # then the first response is sent
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self.seconds
            async with self.hub.subscribe(self.actor, self.filters) as listener:
                channel.on_end(listener.close)
                # Again now that it is subscribed, because a change after the first call would be
                # missed.
                answer = await channel.ask(self.extra)
                while answer.on_loop and not listener.closed and loop.time() < deadline:
                    if await listener.take(deadline - loop.time()):
                        answer = await channel.ask(self.extra)
                if listener.closed == "gone":
                    return
        await channel.answer(answer)
