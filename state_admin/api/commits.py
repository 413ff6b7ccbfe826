"""Commits of runs: /runs/{id}/commits, single or grouped with concurrent ones (project/lane.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from django.http import HttpResponse
from msgspec import UNSET

from state_admin.contract import commits as contract
from state_admin.contract.base import JSON_TYPE
from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.merging import Batch, Update
from state_admin.models.hot_async import Session
from state_admin.rest import etags
from state_admin.rest.bodies import answer, decode
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import commits, entries
from state_admin.services.commits import Step
from state_admin.services.errors import BadRequest, Invalid, Problem
from state_admin.services.idempotency import Key, StoredResponse
from state_admin.services.joined_commits import JoinedCommit, commit_joined
from state_admin.services.knowledge import MOST_READS
from state_admin.services.runs import UNCHANGED
from state_admin.services.snapshots import Read

from .groups import answer_group
from .runs import read_change, run_document


@handles(contract.COMMIT)
def commit(call: Endpoint, run_id: str) -> HttpResponse:
    step = _read_step(call.body(contract.Commit), etags.expected_version(call.request))
    committed = commits.commit(**call.author, run_id=run_id, step=step)
    return answer(_show(call.actor, committed), etag=committed.revision)


class CommitCall(NamedTuple):
    """A POST of a commit. `actor` has the ids of the request and of the run in its Run-Id header.
    `match`: the revision of If-Match. `once`: the parsed Idempotency-Key, or None."""

    actor: Actor
    run_id: str
    body: bytes
    match: int | None
    reason: str
    once: Key | None


async def answer_commits(
    calls: Sequence[CommitCall], session: Session
) -> list[StoredResponse | Exception | None]:
    """Return the responses to the calls, as answer_group does."""
    return await answer_group(
        calls, _read_call, lambda steps: commit_joined(steps, _respond, session)
    )


def _read_call(call: CommitCall) -> JoinedCommit | None:
    """Parse the call. None if the body is invalid."""
    try:
        step = _read_step(decode(values.read(call.body), contract.Commit), call.match)
    except (Problem, values.MalformedJSON, values.RefusedJSON):
        return None
    return JoinedCommit(call.actor, call.run_id, step, call.reason, call.once)


def _respond(call: JoinedCommit, committed: commits.Committed) -> StoredResponse:
    headers = {"Content-Type": JSON_TYPE, "ETag": f'"{committed.revision}"'}
    return StoredResponse(200, headers, msgspec.json.encode(_show(call.actor, committed)))


def _show(actor: Actor, committed: commits.Committed) -> contract.Committed:
    return contract.Committed(
        revision=committed.revision,
        touched_keys=list(committed.touched),
        message_count=committed.message_count,
        run=run_document(actor, committed.run),
    )


def _read_step(body: contract.Commit, match: int | None) -> Step:
    """`match`: the revision of If-Match, another way to send `base_revision`."""
    if match is not None and body.base_revision not in (None, match):
        raise BadRequest(
            f"If-Match ({match}) and base_revision ({body.base_revision}) differ",
            hint="Both state the revision that the commit is based on. Send only one of them.",
        )
    return Step(
        batches=_read_batches(body),
        base_revision=body.base_revision if match is None else match,
        rebase=body.on_conflict == "rebase",
        messages=body.messages or (),
        expected_message_count=body.expected_message_count,
        run=read_change(body.run, "/run") if body.run else UNCHANGED,
        label=body.label,
        reads=_reads(body.reads) if body.reads else (),
        fencing_token=body.fencing_token,
    )


def _read_batches(body: contract.Commit) -> tuple[Batch, ...]:
    if body.batches is UNSET:
        return () if body.updates is UNSET else (Batch(_updates(body.updates, "/updates")),)
    if body.updates is not UNSET:
        fault = values.Fault("/batches", "is allowed only without updates")
        raise Invalid("choose updates or batches, not both", [fault])
    return tuple(
        Batch(_updates(each, f"/batches/{index}"))
        if isinstance(each, list)
        else Batch(_updates(each.updates, f"/batches/{index}/updates"), each.base_revision)
        for index, each in enumerate(body.batches)
    )


def _updates(given: list[contract.Update], pointer: str) -> tuple[Update, ...]:
    commits.check_count(len(given), pointer)
    updates: list[Update] = []
    for index, each in enumerate(given):
        place = f"{pointer}/{index}"
        if each.clear == (each.update is not UNSET):
            fault = values.Fault(place, "send update, or clear: true")
            raise Invalid("an update must have exactly one of update and clear", [fault])
        updates.append(Update(each.key, each.update or None, each.clear, place))
    return tuple(updates)


def _reads(given: list[contract.EntryRead]) -> tuple[Read, ...]:
    if len(given) > MOST_READS:
        raise Invalid(
            "too many reads", [values.Fault("/reads", f"must have at most {MOST_READS} items")]
        )
    for index, each in enumerate(given):
        try:
            entries.check_address(each.namespace, each.key)
        except Problem as bad:
            fault = values.Fault(f"/reads/{index}", bad.detail)
            raise Invalid("a read is not valid", [fault]) from bad
    return tuple(Read(each.namespace, each.key, each.version) for each in given)
