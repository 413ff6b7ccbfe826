"""Reads and writes of entries that arrive concurrently and are handled in groups (project/lane.py).

A response is the same as that of `/state/{namespace}/{key}` (api/entries.py) or `/state/batch`
(api/batches.py). None instead of a response means that nothing was done, because the call would
fail or is unusual; Django serves it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from state_admin.contract.base import JSON_TYPE
from state_admin.contract.batches import Batch, BatchOperation, BatchResult, BatchResults
from state_admin.contract.entries import Entry, Write
from state_admin.domain import scopes, values
from state_admin.domain.access import Actor
from state_admin.domain.patches import PatchKind
from state_admin.models.hot_async import Session
from state_admin.rest.bodies import decode
from state_admin.rest.preferences import APPLIED
from state_admin.services import entry_views, throttles
from state_admin.services.entries import WriteResult
from state_admin.services.entry_views import EntryView
from state_admin.services.errors import Problem
from state_admin.services.idempotency import Key, StoredResponse
from state_admin.services.joined_writes import Item, PatchWrite, PutWrite, store_joined
from state_admin.services.throttles import Allowance
from state_admin.services.token_cache import Credential
from state_admin.services.traffic import CallKind, counter

from .groups import answer_group


class ReadCall(NamedTuple):
    """A GET of an entry. `etags`: the entity tags in If-None-Match."""

    credential: Credential
    namespace: str
    key: str
    etags: frozenset[str] = frozenset()
    kind: CallKind = CallKind.READ
    room: int = sys.maxsize

    @property
    def addresses(self) -> Sequence[tuple[str, str]]:
        return ((self.namespace, self.key),)

    def respond(self, found: Sequence[EntryView]) -> StoredResponse:
        (entry,) = found
        etag = f'"{entry.version}"'
        if etag in self.etags:
            return StoredResponse(304, {"ETag": etag}, b"")
        return _respond(200, entry)


class BatchRead(NamedTuple):
    """A batch of gets."""

    credential: Credential
    addresses: Sequence[tuple[str, str]]
    kind: CallKind = CallKind.WRITE  # like any POST
    # Limit of the characters of all values: the event loop does nothing else while it encodes them.
    room: int = 1 << 20

    def respond(self, found: Sequence[EntryView]) -> StoredResponse:
        return _respond_to_batch([BatchResult(status=200, entry=Entry.of(each)) for each in found])


class WriteCall(NamedTuple):
    """A PUT or PATCH of an entry. `actor` has the ids of the request and of the run. `patch`: how
    to apply the body; None for a PUT. `once`: the parsed Idempotency-Key. `minimal`: whether the
    client prefers a response without the value."""

    actor: Actor
    namespace: str
    key: str
    body: bytes
    patch: PatchKind | None
    expected: int | None
    reason: str
    once: Key | None
    minimal: bool


class BatchWrite(NamedTuple):
    """A batch of puts. `actor`, `once`, `minimal`: as in WriteCall."""

    actor: Actor
    items: Sequence[Item]
    reason: str
    once: Key | None
    weight: int
    minimal: bool


class Answered(NamedTuple):
    """The response to a read. `allowance` is the remaining rate limit of the token, None without a
    limit."""

    response: StoredResponse
    allowance: Allowance | None = None


def is_address(namespace: str, key: str) -> bool:
    """Whether an entry can have this address."""
    try:
        scopes.check_name(namespace)
        scopes.check_key(key)
    except scopes.BadName:
        return False
    return True


def read_batch(body: bytes) -> Sequence[BatchOperation] | None:
    """Return the operations of a batch, or None if they are invalid."""
    try:
        operations = decode(values.read(body), Batch).operations
    except (Problem, values.MalformedJSON, values.RefusedJSON):
        return None
    return operations if all(is_address(each.namespace, each.key) for each in operations) else None


def items_of(operations: Sequence[BatchOperation]) -> list[Item] | None:
    """Return the items of a batch that only puts values at different addresses, or None for any
    other batch."""
    items = [
        Item(
            each.namespace,
            each.key,
            each.value,
            None if each.if_version is UNSET else each.if_version,
            each.ttl_seconds or None,
        )
        for each in operations
        if each.op == "put"
        and each.value is not UNSET
        and not each.unused
        and each.if_version != 0
        and each.tags is UNSET
        and each.pinned is UNSET
    ]
    distinct = {(each.namespace, each.key) for each in items}
    return items if len(distinct) == len(operations) else None


async def answer_reads(
    calls: Sequence[ReadCall | BatchRead], session: Session
) -> list[Answered | None]:
    """Return the responses to the calls, with all entries read in one statement."""
    found = iter(
        await entry_views.read_joined(
            [(call.credential.actor, *address) for call in calls for address in call.addresses],
            session,
        )
    )
    return [_answer_read(call, list(islice(found, len(call.addresses)))) for call in calls]


def _answer_read(call: ReadCall | BatchRead, found: Sequence[EntryView | None]) -> Answered | None:
    entries = [entry for entry in found if entry is not None]
    if len(entries) < len(found) or sum(len(each.value) for each in entries) > call.room:
        return None
    allowance = None
    if call.credential.rate_per_minute is not None:
        allowance = throttles.spend_leased(
            call.credential.token_id, call.credential.rate_per_minute
        )
        if allowance is None:
            return None
    counter.count(call.credential.actor.workspace_id, call.kind)
    return Answered(call.respond(entries), allowance)


async def answer_writes(
    calls: Sequence[WriteCall | BatchWrite], session: Session
) -> list[StoredResponse | Exception | None]:
    """Return the responses to the calls, as answer_group does."""
    return await answer_group(calls, _read_write, partial(store_joined, session=session))


def _read_write(call: WriteCall | BatchWrite) -> PutWrite | PatchWrite | None:
    """Return the write of a call, or None if the body is invalid or sets tags or a pin."""
    if isinstance(call, BatchWrite):
        respond_to_puts = partial(_respond_to_puts, minimal=call.minimal)
        return PutWrite(call.actor, call.reason, call.once, respond_to_puts, call.items)
    respond = _acknowledge_write if call.minimal else _respond_to_write
    common = (call.actor, call.reason, call.once, respond)
    try:
        raw = values.read(call.body)
        if call.patch is not None:
            values.check(raw)
            operations = values.load(raw.text)
            return PatchWrite(
                *common, call.namespace, call.key, call.expected, call.patch, operations
            )
        body = decode(raw, Write)
    except (Problem, values.MalformedJSON, values.RefusedJSON):
        return None
    if body.tags is not UNSET or body.pinned is not UNSET:
        return None
    ttl = None if body.ttl_seconds is UNSET else body.ttl_seconds
    return PutWrite(*common, [Item(call.namespace, call.key, body.value, call.expected, ttl)])


def _respond_to_write(results: Sequence[WriteResult]) -> StoredResponse:
    (result,) = results
    return _respond(201 if result.created else 200, result.entry)


def _acknowledge_write(results: Sequence[WriteResult]) -> StoredResponse:
    (result,) = results
    headers = {"ETag": f'"{result.entry.version}"'} | APPLIED
    return StoredResponse(204, headers, b"")


def _respond_to_puts(results: Sequence[WriteResult], *, minimal: bool) -> StoredResponse:
    response = _respond_to_batch(
        [
            BatchResult(
                status=201 if each.created else 200,
                entry=UNSET if minimal else Entry.of(each.entry),
                version=each.entry.version if minimal else UNSET,
            )
            for each in results
        ]
    )
    return replace(response, headers=response.headers | APPLIED) if minimal else response


def _respond_to_batch(results: list[BatchResult]) -> StoredResponse:
    body = msgspec.json.encode(BatchResults(results=results))
    return StoredResponse(200, {"Content-Type": JSON_TYPE}, body)


def _respond(status: int, entry: EntryView) -> StoredResponse:
    headers = {"Content-Type": JSON_TYPE, "ETag": f'"{entry.version}"'}
    return StoredResponse(status, headers, msgspec.json.encode(Entry.of(entry)))
