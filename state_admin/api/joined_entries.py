"""Reads and writes of entries that arrive at the same moment, handled together (project/lane.py).

A response is the same as that of `/state/{namespace}/{key}` (api/entries.py). None instead of a
response means that nothing was done, because the call would fail or is unusual: Django serves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from state_admin.contract.base import JSON_TYPE
from state_admin.contract.entries import Entry, Write
from state_admin.domain import scopes, values
from state_admin.domain.access import Actor
from state_admin.models.hot_async import Session
from state_admin.rest.bodies import decode
from state_admin.services import entry_views, throttles
from state_admin.services.entries import PatchKind, WriteResult
from state_admin.services.entry_views import EntryView
from state_admin.services.errors import Problem
from state_admin.services.idempotency import Key, StoredResponse
from state_admin.services.joined_writes import Patch, Put, store_joined
from state_admin.services.throttles import Allowance
from state_admin.services.token_cache import Credential
from state_admin.services.traffic import CallKind, counter

from .groups import answer_group


class ReadCall(NamedTuple):
    """A GET of an entry. `known`: the entity tags that If-None-Match names."""

    credential: Credential
    namespace: str
    key: str
    known: frozenset[str] = frozenset()


class WriteCall(NamedTuple):
    """A PUT or PATCH of an entry. `actor` has the ids of the request and of the run. `patch`: how to
    apply the body; None for a PUT. `once`: the Idempotency-Key."""

    actor: Actor
    namespace: str
    key: str
    body: bytes
    patch: PatchKind | None
    expected: int | None
    reason: str
    once: Key | None


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


async def answer_reads(calls: Sequence[ReadCall], session: Session) -> list[Answered | None]:
    """The responses to the calls, all read in one statement."""
    addresses = [(call.credential.actor, call.namespace, call.key) for call in calls]
    found = await entry_views.read_joined(addresses, session)
    return [_answer_read(*pair) for pair in zip(calls, found, strict=True)]


def _answer_read(call: ReadCall, entry: EntryView | None) -> Answered | None:
    if entry is None:
        return None
    allowance = None
    if call.credential.rate_per_minute is not None:
        allowance = throttles.spend_leased(
            call.credential.token_id, call.credential.rate_per_minute
        )
        if allowance is None:
            return None
    counter.count(call.credential.actor.workspace_id, CallKind.READ)
    etag = f'"{entry.version}"'
    if etag in call.known:
        return Answered(StoredResponse(304, {"ETag": etag}, b""), allowance)
    return Answered(_respond(200, entry), allowance)


async def answer_writes(
    calls: Sequence[WriteCall], session: Session
) -> list[StoredResponse | Exception | None]:
    """The responses to the calls, as answer_group returns them."""
    return await answer_group(
        calls, _read_write, lambda writes: store_joined(writes, _respond_to_write, session)
    )


def _read_write(call: WriteCall) -> Put | Patch | None:
    """The write of a call. None: the body is invalid, or sets tags or a pin."""
    common = (call.actor, call.namespace, call.key, call.expected, call.reason, call.once)
    try:
        raw = values.read(call.body)
        if call.patch is not None:
            values.check(raw)
            return Patch(*common, call.patch, values.load(raw.text))
        body = decode(raw, Write)
    except (Problem, values.MalformedJSON, values.RefusedJSON):
        return None
    if body.tags is not UNSET or body.pinned is not UNSET:
        return None
    return Put(*common, body.value, None if body.ttl_seconds is UNSET else body.ttl_seconds)


def _respond_to_write(result: WriteResult) -> StoredResponse:
    return _respond(201 if result.created else 200, result.entry)


def _respond(status: int, entry: EntryView) -> StoredResponse:
    headers = {"Content-Type": JSON_TYPE, "ETag": f'"{entry.version}"'}
    return StoredResponse(status, headers, msgspec.json.encode(Entry.of(entry)))
