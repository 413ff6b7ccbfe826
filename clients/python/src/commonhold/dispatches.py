"""Calls on dispatches: the work that waits in the mailboxes of threads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from commonhold import arguments
from commonhold.answers import ClaimedDispatch, Cleared, Dispatch, Replayed
from commonhold.calls import Call, Listing, given, polling, segment
from commonhold.reading import Page, page_of
from commonhold.threads import thread_path
from commonhold.verbs import Group, S, Verb


def enqueue(
    thread_id: str,
    payload: Any = None,
    *,
    agent_id: str | None = None,
    run_id: str | None = None,
    priority: int | None = None,
    available_at: datetime | None = None,
    dedupe_key: str | None = None,
    max_attempts: int | None = None,
    reason: str = "",
) -> Call[Dispatch]:
    """Put work into the mailbox of a thread. `priority` is 0 (first) to 255."""
    body = given(
        payload=payload,
        agent_id=agent_id,
        run_id=run_id,
        priority=priority,
        available_at=(
            None if available_at is None else arguments.parameter("available_at", available_at)
        ),
        dedupe_key=dedupe_key,
        max_attempts=max_attempts,
    )
    return Call(
        "POST",
        thread_path(thread_id, "/dispatches"),
        Dispatch.read,
        body=body,
        headers={"Change-Reason": reason},
    )


def claim(
    *,
    consumer: str | None = None,
    agent_id: str | None = None,
    thread_id: str | None = None,
    limit: int | None = None,
    lease_seconds: int | None = None,
    wait: float = 0,
    reason: str = "",
) -> Call[list[ClaimedDispatch]]:
    """Claim work. Waits up to `wait` seconds (at most 30) until there is some. If the response is
    lost, the work can be claimed again when its lease ends."""
    seconds = polling(wait)
    body = given(
        consumer=consumer,
        agent_id=agent_id,
        thread_id=thread_id,
        limit=limit,
        lease_seconds=lease_seconds,
    )
    return Call(
        "POST",
        "/dispatches/claim",
        lambda document: [ClaimedDispatch.read(each) for each in document["items"]],
        given(wait=seconds),
        body=body,
        keyed=seconds is None,
        wait=wait,
        headers={"Change-Reason": reason},
    )


def _dispatch(held: ClaimedDispatch, verb: str, reason: str, **body: Any) -> Call[Dispatch]:
    return Call(
        "POST",
        f"/dispatches/{segment('dispatch_id', held.id)}/{verb}",
        Dispatch.read,
        body=given(claim_token=held.claim_token, **body),
        headers={"Change-Reason": reason},
    )


def ack(held: ClaimedDispatch, *, reason: str = "") -> Call[Dispatch]:
    """Acknowledge the dispatch: it was delivered. Raises Conflict if the claim is no longer valid."""
    return _dispatch(held, "ack", reason)


def nack(
    held: ClaimedDispatch,
    error: str | None = None,
    *,
    retry_after: int | None = None,
    reason: str = "",
) -> Call[Dispatch]:
    """Return the dispatch: a failed attempt. It is queued again after `retry_after` seconds, or
    becomes a dead letter."""
    return _dispatch(held, "nack", reason, error=error, retry_after=retry_after)


def extend(
    held: ClaimedDispatch, lease_seconds: int | None = None, *, reason: str = ""
) -> Call[Dispatch]:
    """Extend the lease of the claim. Raises Conflict if the claim is no longer valid."""
    return _dispatch(held, "extend", reason, lease_seconds=lease_seconds)


def cancel_dispatch(dispatch_id: str, *, reason: str = "") -> Call[Dispatch]:
    """Cancel a queued dispatch. To stop a claimed one, interrupt its thread."""
    return Call(
        "POST",
        f"/dispatches/{segment('dispatch_id', dispatch_id)}/cancel",
        Dispatch.read,
        body={},
        headers={"Change-Reason": reason},
    )


def replay_dispatch(dispatch_id: str, *, reason: str = "") -> Call[Dispatch]:
    """Enqueue a dead letter again. Its attempts are counted from zero."""
    return Call(
        "POST",
        f"/dispatches/{segment('dispatch_id', dispatch_id)}/replay",
        Dispatch.read,
        body={},
        headers={"Change-Reason": reason},
    )


def _dead_letters(
    verb: str, thread_id: str | None, agent_id: str | None, dry_run: bool, reason: str
) -> dict[str, Any]:
    """The arguments of a call on all dead letters that the filters select."""
    return {
        "method": "POST",
        "path": f"/dispatches/{verb}",
        "query": given(dry_run=dry_run or None),
        "body": given(thread_id=thread_id, agent_id=agent_id),
        "headers": {"Change-Reason": reason},
    }


def clear_dead_letters(
    *,
    thread_id: str | None = None,
    agent_id: str | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Cleared]:
    """Delete the dead letters of a thread or agent, or without filters all of the workspace. It cannot be
    undone. With `dry_run` only count. Needs the role admin."""
    return Call(read=Cleared.read, **_dead_letters("clear", thread_id, agent_id, dry_run, reason))


def replay_dead_letters(
    *,
    thread_id: str | None = None,
    agent_id: str | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Replayed]:
    """Enqueue the dead letters of a thread or agent again, or without filters all of the workspace. Their
    attempts are counted from zero. Those whose `dedupe_key` an open dispatch or a newer dead letter has
    are left out. With `dry_run` only count."""
    return Call(read=Replayed.read, **_dead_letters("replay", thread_id, agent_id, dry_run, reason))


def read_dispatch(dispatch_id: str) -> Call[Dispatch]:
    """One dispatch, with its payload and status."""
    return Call("GET", f"/dispatches/{segment('dispatch_id', dispatch_id)}", Dispatch.read)


def list_dispatches(
    *,
    status: str | None = None,
    thread_id: str | None = None,
    agent_id: str | None = None,
    dedupe_key: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Dispatch]]:
    """Dispatches of all threads, the newest first."""
    query = given(
        status=status, thread_id=thread_id, agent_id=agent_id, dedupe_key=dedupe_key, **page
    )
    return Call("GET", "/dispatches", page_of(Dispatch.read), query)


def count_dispatches(
    *, thread_id: str | None = None, agent_id: str | None = None
) -> Call[dict[str, int]]:
    """How many dispatches of a thread or agent, or without filters of the workspace, have each status:
    `{"Queued": 3, "DeadLetter": 0, …}`."""
    return Call("GET", "/dispatches/counts", dict, given(thread_id=thread_id, agent_id=agent_id))


def interrupt(thread_id: str, *, dry_run: bool = False, reason: str = "") -> Call[dict[str, Any]]:
    """Supersede the queued dispatches of the thread, and the claim of a claimed one."""
    return Call(
        "POST",
        thread_path(thread_id, "/interrupt"),
        dict,
        given(dry_run=dry_run or None),
        body={},
        headers={"Change-Reason": reason},
    )


class Dispatches(Group[S]):
    """The mailboxes of threads: enqueue work, claim it under a lease, and acknowledge it."""

    enqueue = Verb(enqueue)
    claim = Verb(claim)
    ack = Verb(ack)
    nack = Verb(nack)
    extend = Verb(extend)
    cancel = Verb(cancel_dispatch)
    replay = Verb(replay_dispatch)
    clear_dead = Verb(clear_dead_letters)
    replay_dead = Verb(replay_dead_letters)
    get = Verb(read_dispatch)
    list = Verb(list_dispatches)
    counts = Verb(count_dispatches)
    interrupt = Verb(interrupt)
