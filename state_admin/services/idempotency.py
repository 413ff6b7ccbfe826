"""Stores the first response to an idempotent request, in the transaction of its effect."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from state_admin.contract.base import PROBLEM_TYPE
from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.models import IdempotencyRecord, hot, idempotency_sql

from .errors import Conflict, Gone, InFlight, Invalid

R = TypeVar("R")


@dataclass(frozen=True)
class Key:
    """The Idempotency-Key of a request. `scope` identifies the key and its caller, `fingerprint` the
    request; `former` are its fingerprints with former keys."""

    scope: str
    fingerprint: str
    former: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredResponse:
    """A response, as it is stored for repeats of its request."""

    status: int
    headers: dict[str, str]
    body: bytes


def claim(key: Key) -> StoredResponse | None:
    """Reserve this request until the end of the transaction.

    None: the caller must perform it. A StoredResponse: it was performed already. Raises InFlight if
    it is in progress, and Invalid if the key was used for another request. An advisory lock fails
    immediately, where the unique index would make the second caller wait.
    """
    _, locks, used = hot.fetch_each(
        [idempotency_sql.beginning(), *idempotency_sql.claiming([key.scope])]
    )
    if not locks[0][1]:
        raise InFlight("a request with this Idempotency-Key is still in flight")
    record = IdempotencyRecord.objects.filter(scope=key.scope).first() if used else None
    if record is None:
        return None
    if record.fingerprint not in (key.fingerprint, *key.former):
        raise Invalid(
            "this Idempotency-Key was used for a different request",
            hint="Use a new key for each different request.",
        )
    confirm()
    return StoredResponse(record.status, record.headers, bytes(record.body))


def confirm() -> None:
    """Make the transaction wait, at its end, until synchronous standbys have everything that was
    committed before. Needed for the response to a repeated request, which changes nothing itself."""
    hot.fetch_all(*idempotency_sql.confirming())


def first_of(keys: Mapping[int, Key]) -> dict[str, int]:
    """The scopes of `keys`, each with the first request that has it."""
    return {key.scope: index for index, key in reversed(list(keys.items()))}


def keep(key: Key, workspace_id: int | None, response: StoredResponse) -> None:
    """Store the response to a request that `claim` reserved. `workspace_id`: the workspace whose
    data it contains. If its responses were expired since then, this one is too: it may have been
    read before."""
    insertion = keeping([(key, workspace_id, response)])
    if workspace_id is None:
        hot.fetch_all(*insertion)
        return
    _, _, unseen = hot.fetch_each(idempotency_sql.storing(workspace_id, insertion))
    if unseen[0][0]:
        _withdraw(IdempotencyRecord.objects.filter(scope=key.scope))


def perform_once(
    *, actor: Actor, form_id: str, work: Callable[[], R], succeeded: Callable[[R], bool]
) -> R:
    """Return the result of `work`, which creates what a form of the actor describes. Raises Conflict if
    the form with this id has succeeded before, or is being processed. Nothing else is stored: the
    response may contain a secret."""
    scope = hashlib.sha256(f"form {actor.kind} {actor.id}\n{form_id}".encode()).hexdigest()
    key = Key(scope, "")
    with transaction.atomic():
        try:
            is_new = claim(key) is None
        except InFlight:
            is_new = False
        if not is_new:
            raise Conflict(
                "this form was already sent",
                hint="What it has created is in the list. If you have not seen its secret or link, create"
                " a new one there.",
            )
        result = work()
        if succeeded(result):
            keep(key, actor.workspace_id, StoredResponse(201, {}, b""))
    return result


def forget(key: Key) -> None:
    """Delete the stored response of an operation that was undone, so that a repeat performs it again."""
    IdempotencyRecord.objects.filter(scope=key.scope).delete()


def keeping(responses: Sequence[tuple[Key, int | None, StoredResponse]]) -> hot.Call:
    """Return the statement that stores several responses, as `keep` does one."""
    return idempotency_sql.inserting(
        [
            (
                key.scope,
                workspace_id,
                key.fingerprint,
                each.status,
                json.dumps(each.headers),
                each.body,
            )
            for key, workspace_id, each in responses
        ]
    )


_WITHDRAWN = Gone(
    "the stored response of this request was deleted",
    hint=("The request was applied once. A redaction or an erasure deleted the response later."),
)
_WITHDRAWN_BODY = values.dump(_WITHDRAWN.document()).encode()


def expire_responses(workspace_id: int) -> int:
    """Delete all responses stored for a workspace, but not the fact that the requests were
    performed: a repetition gets 410 Gone. Returns the number of responses that were still stored.

    All of them, because any response may contain a part of a secret: a conflict, a page, a snippet.
    """
    hot.fetch_each(idempotency_sql.expiring(workspace_id))
    return _withdraw(IdempotencyRecord.objects.filter(workspace_id=workspace_id))


def _withdraw(records: QuerySet[IdempotencyRecord]) -> int:
    return records.exclude(body__in=[b"", _WITHDRAWN_BODY]).update(
        status=_WITHDRAWN.status,
        headers={"Content-Type": PROBLEM_TYPE},
        body=_WITHDRAWN_BODY,
    )
