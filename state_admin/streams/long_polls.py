"""A long poll that waits on the loop: no thread, no database connection."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from state_admin.domain.access import Actor
from state_admin.models.feed_sql import FeedFilter

from .channel import Channel
from .hub import Hub, Unready


class LongPoll:
    """Waits until a change that matters to the view, or `seconds`; then asks the view again.

    `extra` goes into the environ of every further asking. Whether there is news is the view's word:
    an answer that would continues to wait has a LongPoll again.
    """

    def __init__(
        self, hub: Hub, actor: Actor, filters: FeedFilter, seconds: float, extra: dict[str, Any]
    ) -> None:
        self.hub, self.actor, self.filters = hub, actor, filters
        self.seconds, self.extra = seconds, extra

    async def __call__(self, channel: Channel, answer: Any) -> None:
        with contextlib.suppress(Unready):  # then the first answer is the best there is
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self.seconds
            async with self.hub.subscribe(self.actor, self.filters) as listener:
                channel.on_end(listener.close)
                # Again now that we listen: what came since the first look would be missed.
                answer = await channel.ask(self.extra)
                while answer.on_loop and not listener.closed and loop.time() < deadline:
                    if await listener.take(deadline - loop.time()):
                        answer = await channel.ask(self.extra)
                if listener.closed == "gone":
                    return
        await channel.answer(answer)
