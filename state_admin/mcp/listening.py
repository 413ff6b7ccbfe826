"""subscriptions/listen: notifies a client that entries changed, from the process's reader of the
feed.

Only in the protocol versions without sessions, where the response of one request is the stream. A
session of the older versions would exist in only one of several processes
(docs/adr/0013-mcp-calls-the-api.md).
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from state_admin.models.feed_sql import FeedFilter, FeedRow
from state_admin.services.errors import Problem
from state_admin.services.listeners import CLOSED, Listener, OpenStreams
from state_admin.services.namespaces import find_untracked
from state_admin.streams.hub import FeedUnavailable, Hub, Subscription

from .host import Caller, Host
from .resources import Address, address_in, error_of, spend

# The limits of one stream: its resources, and the bytes of its request, which stays in memory while the
# stream is open.
MOST_RESOURCES = 256
MOST_BYTES = 512 * 1024
# Seconds for which a stream waits for changes at a time; the SDK keeps the connection alive.
_PATIENCE = 60.0


class Listening:
    """The open streams of this process. Used on the event loop only."""

    def __init__(self, host: Host, hub: Hub) -> None:
        self.host, self.hub = host, hub
        self._open = OpenStreams(1000)
        self._drain: asyncio.Task[None] | None = None

    async def listen(
        self,
        ctx: ServerRequestContext[Any, Any],
        params: SubscriptionsListenRequestParams,
        caller: Caller,
        size: int,
    ) -> SubscriptionsListenResult:
        """Stream notifications until the client disconnects, the token is revoked or the server
        stops. `size`: bytes of the request. Only subscriptions to resources have an effect: the
        list of tools never changes, and clients read the list of entries when they need it."""
        addresses = _addresses(params.notifications.resource_subscriptions or ())
        if size > MOST_BYTES or len(addresses) > MOST_RESOURCES:
            raise MCPError(INVALID_PARAMS, f"At most {MOST_RESOURCES} resources in one stream")
        untracked = await self.host.in_thread(lambda: _find_untracked(caller, addresses))
        addresses = {at: uris for at, uris in addresses.items() if at[0] not in untracked}
        if self.host.draining.is_set():
            raise error_of(CLOSED["draining"])
        try:
            async with self.hub.subscribe(
                caller.actor, FeedFilter(), only=lambda row: (row.namespace, row.key) in addresses
            ) as subscription:
                listener = Listener(caller.actor, subscription.close, self.host.in_thread)
                with self._open.admit(listener):
                    self._close_on_shutdown()
                    return await self._follow(ctx, subscription, addresses)
        except FeedUnavailable:
            raise MCPError(INTERNAL_ERROR, "The database does not respond") from None
        except Problem as problem:
            raise error_of(problem) from None

    async def _follow(
        self,
        ctx: ServerRequestContext[Any, Any],
        listener: Subscription,
        addresses: dict[Address, set[str]],
    ) -> SubscriptionsListenResult:
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        uris = sorted(set().union(*addresses.values()))
        honoured = SubscriptionFilter(resource_subscriptions=uris or None)
        await ctx.session.send_notification(
            SubscriptionsAcknowledgedNotification(
                params=SubscriptionsAcknowledgedNotificationParams(
                    notifications=honoured, _meta=meta
                )
            ),
            related_request_id=ctx.request_id,
        )
        while not listener.closed:
            for uri in _changed(await listener.take(_PATIENCE), addresses):
                await ctx.session.send_notification(
                    ResourceUpdatedNotification(
                        params=ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
                    ),
                    related_request_id=ctx.request_id,
                )
        if listener.closed == "unauthenticated":
            raise MCPError(INTERNAL_ERROR, "The token is no longer valid")
        return SubscriptionsListenResult(_meta=meta)

    def _close_on_shutdown(self) -> None:
        async def close() -> None:
            await self.host.draining.wait()
            for listener in list(self._open.listeners):
                listener.close("draining")

        if self._drain is None or self._drain.done():
            self._drain = asyncio.get_running_loop().create_task(
                close(), name="mcp drain", context=contextvars.Context()
            )


def _addresses(uris: Iterable[str]) -> dict[Address, set[str]]:
    """The entries of the URIs, with all spellings of each. URIs of other resources are left out."""
    addresses: dict[Address, set[str]] = {}
    for uri in uris:
        address = address_in(uri)
        if address is not None:
            addresses.setdefault(address, set()).add(uri)
    return addresses


def _find_untracked(caller: Caller, addresses: Iterable[Address]) -> list[str]:
    """The namespaces that are untracked, so that there are no changes of their entries. Counts as one
    call."""
    spend(caller)
    return find_untracked(caller.actor, {namespace for namespace, _ in addresses})


def _changed(rows: Iterable[FeedRow], addresses: dict[Address, set[str]]) -> list[str]:
    """The URIs of changed entries without duplicates, because a client only needs to read them
    again."""
    seen = dict.fromkeys((row.namespace, row.key) for row in rows)
    return [uri for address in seen for uri in sorted(addresses[address])]
