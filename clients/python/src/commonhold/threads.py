"""Calls on threads, runs, tickets, the mailbox, state keys and plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

from commonhold.answers import (
    Appended,
    Committed,
    Context,
    Diff,
    Dispatch,
    Extensions,
    ItemResult,
    Message,
    Page,
    Run,
    StateKeyInfo,
    Thread,
    Ticket,
    page_of,
)
from commonhold.calls import Call, Listing, given, segment
from commonhold.verbs import Group, S, Verb

JsonObject = Mapping[str, Any]


def _thread(thread_id: str, verb: str = "") -> str:
    return f"/threads/{segment(thread_id)}{verb}"


def _run(run_id: str, verb: str = "") -> str:
    return f"/runs/{segment(run_id)}{verb}"


# Threads -------------------------------------------------------------------------------------


def create_thread(
    thread_id: str | None = None,
    *,
    title: str | None = None,
    metadata: JsonObject | None = None,
    resource_id: str | None = None,
    parent_thread_id: str | None = None,
) -> Call[Thread]:
    """Create; the same again answers what is stored, another content is a Conflict."""
    body = given(
        id=thread_id,
        title=title,
        metadata=metadata,
        resource_id=resource_id,
        parent_thread_id=parent_thread_id,
    )
    return Call("POST", "/threads", Thread.read, body=body)


def read_thread(thread_id: str) -> Call[Thread]:
    return Call("GET", _thread(thread_id), Thread.read)


def list_threads(
    *,
    prefix: str | None = None,
    resource_id: str | None = None,
    parent_thread_id: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Thread]]:
    query = given(
        prefix=prefix,
        resource_id=resource_id,
        parent_thread_id=parent_thread_id,
        **page,
    )
    return Call("GET", "/threads", page_of(Thread.read), query)


def change_thread(
    thread_id: str,
    *,
    title: str | None = None,
    metadata: JsonObject | None = None,
    merge: bool = False,
    resource_id: str | None = None,
    parent_thread_id: str | None = None,
    if_version: int | None = None,
) -> Call[Thread]:
    """Change the given fields. `merge`: `metadata` merges with what is stored, and None removes a
    member (RFC 7396); without it, it replaces all of it. `if_version`: only while the thread is at
    that version, else VersionConflict."""
    body = given(
        title=title, metadata=metadata, resource_id=resource_id, parent_thread_id=parent_thread_id
    )
    return Call(
        "PATCH",
        _thread(thread_id),
        Thread.read,
        body=body,
        headers=_if_match(if_version),
        media_type="application/merge-patch+json" if merge else "application/json",
    )


def delete_thread(
    thread_id: str,
    *,
    children: Literal["detach", "reject", "cascade"] | None = None,
    dry_run: bool = False,
    if_version: int | None = None,
    expected_revision: int | None = None,
) -> Call[dict[str, Any] | None]:
    """Delete with messages, runs, state and `thread::{id}`; with `dry_run` only say how much.
    `if_version`: only while the thread is at that version; `expected_revision`: only while its
    state is at that revision."""
    query = given(children=children, dry_run=dry_run or None, expected_revision=expected_revision)
    return Call(
        "DELETE",
        _thread(thread_id),
        lambda document: document,
        query,
        headers=_if_match(if_version),
    )


def _item_results(document: dict[str, Any]) -> list[ItemResult]:
    return [ItemResult.read(each) for each in document["results"]]


def delete_threads(
    thread_ids: Iterable[str],
    *,
    children: Literal["detach", "reject", "cascade"] | None = None,
    dry_run: bool = False,
) -> Call[list[ItemResult]]:
    """Delete up to 200 threads, each on its own; returns what became of each."""
    body = given(ids=list(thread_ids), children=children)
    query = given(dry_run=dry_run or None)
    return Call("POST", "/threads/delete", _item_results, query, body=body)


def fork_thread(
    thread_id: str,
    *,
    new_id: str | None = None,
    revision: int | None = None,
    message_count: int | None = None,
    title: str | None = None,
    metadata: JsonObject | None = None,
) -> Call[Thread]:
    """A new thread from this one as of a revision and message count."""
    body = given(
        id=new_id, revision=revision, message_count=message_count, title=title, metadata=metadata
    )
    return Call("POST", _thread(thread_id, "/fork"), Thread.read, body=body)


def append_messages(
    thread_id: str,
    *messages: JsonObject,
    expected_message_count: int | None = None,
    operations: Sequence[JsonObject] | None = None,
) -> Call[Appended]:
    """Append, kept as they are. `expected_message_count`: only behind that many. `operations` on
    entries, as those of `batch`, land together with the messages or not at all."""
    body = given(
        messages=[dict(each) for each in messages],
        expected_message_count=expected_message_count,
        operations=None if operations is None else [dict(each) for each in operations],
    )
    return Call("POST", _thread(thread_id, "/messages"), Appended.read, body=body)


def list_messages(
    thread_id: str,
    *,
    after: int | None = None,
    before: int | None = None,
    visibility: str | None = None,
    run_id: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Message]]:
    query = given(
        after=after,
        before=before,
        visibility=visibility,
        run_id=run_id,
        **page,
    )
    return Call("GET", _thread(thread_id, "/messages"), page_of(Message.read), query)


def read_context(thread_id: str, *, max_tokens: int | None = None) -> Call[Context]:
    """What a model should see of the thread."""
    return Call("GET", _thread(thread_id, "/context"), Context.read, given(max_tokens=max_tokens))


def read_state(
    thread_id: str,
    *,
    revision: int | None = None,
    scope: Literal["run", "thread"] | None = None,
    export: bool = False,
) -> Call[Extensions]:
    """The state, now or at a kept revision. `export`: only what is persistent and registered."""
    query = given(revision=revision, scope=scope, export=export or None)
    return Call("GET", _thread(thread_id, "/state"), Extensions.read, query)


def list_snapshots(thread_id: str, **page: Unpack[Listing]) -> Call[Page[dict[str, Any]]]:
    query = given(**page)
    return Call("GET", _thread(thread_id, "/snapshots"), page_of(dict), query)


def diff_revisions(thread_id: str, old: int, new: int) -> Call[Diff]:
    return Call("GET", _thread(thread_id, "/diff"), Diff.read, {"from": old, "to": new})


def restore_revision(
    thread_id: str, revision: int, *, if_revision: int | None = None
) -> Call[Extensions]:
    """A new revision with the state of an old one."""
    return Call(
        "POST",
        _thread(thread_id, "/restore"),
        Extensions.read,
        body={"revision": revision},
        headers=_if_match(if_revision),
    )


def import_state(
    thread_id: str,
    snapshot: JsonObject,
    *,
    mode: Literal["replace", "merge"] | None = None,
    unknown_keys: Literal["error", "skip"] | None = None,
    if_revision: int | None = None,
) -> Call[Extensions]:
    """Bring in `{"revision": n, "extensions": {…}}` as one new revision."""
    body = given(snapshot=dict(snapshot), mode=mode, unknown_keys=unknown_keys)
    return Call(
        "POST",
        _thread(thread_id, "/import"),
        Extensions.read,
        body=body,
        headers=_if_match(if_revision),
    )


def _if_match(number: int | None) -> dict[str, str | None]:
    return {"If-Match": None if number is None else f'"{number}"'}


class Threads(Group[S]):
    create = Verb(create_thread)
    get = Verb(read_thread)
    list = Verb(list_threads)
    change = Verb(change_thread)
    delete = Verb(delete_thread)
    delete_many = Verb(delete_threads)
    fork = Verb(fork_thread)
    append = Verb(append_messages)
    messages = Verb(list_messages)
    context = Verb(read_context)
    state = Verb(read_state)
    snapshots = Verb(list_snapshots)
    diff = Verb(diff_revisions)
    restore = Verb(restore_revision)
    import_state = Verb(import_state)


# Runs ----------------------------------------------------------------------------------------


def start_run(
    thread_id: str,
    run_id: str | None = None,
    *,
    agent_id: str | None = None,
    status: Literal["created", "running"] | None = None,
    origin: str | None = None,
    lease_seconds: int | None = None,
    max_rounds: int | None = None,
    timeout_seconds: int | None = None,
    parent_run_id: str | None = None,
    parent_thread_id: str | None = None,
    metadata: JsonObject | None = None,
) -> Call[Run]:
    """Start: run-scoped state is cleared. One active run per thread, else Conflict."""
    body = given(
        id=run_id,
        agent_id=agent_id,
        status=status,
        origin=origin,
        lease_seconds=lease_seconds,
        max_rounds=max_rounds,
        timeout_seconds=timeout_seconds,
        parent_run_id=parent_run_id,
        parent_thread_id=parent_thread_id,
        metadata=metadata,
    )
    return Call("POST", _thread(thread_id, "/runs"), Run.read, body=body)


def read_run(run_id: str, *, wait: float = 0, since: int | None = None) -> Call[Run]:
    """The run; `wait` seconds (at most 30) for a revision of it above `since`."""
    query = given(wait=int(wait) or None, since=since)
    return Call("GET", _run(run_id), Run.read, query, wait=wait)


def list_runs(
    *,
    thread_id: str | None = None,
    agent_id: str | None = None,
    status: str | None = None,
    stuck: bool | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Run]]:
    query = given(
        thread_id=thread_id,
        agent_id=agent_id,
        status=status,
        stuck=stuck,
        **page,
    )
    return Call("GET", "/runs", page_of(Run.read), query)


def change_run(
    run_id: str,
    *,
    status: str | None = None,
    termination_reason: JsonObject | None = None,
    waiting: JsonObject | None = None,
    step_count: int | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    metadata: JsonObject | None = None,
    fencing_token: int | None = None,
) -> Call[Run]:
    """A transition, or counts. `run(status="done", termination_reason={"type": "natural_end"})`."""
    body = given(
        status=status,
        termination_reason=termination_reason,
        waiting=waiting,
        step_count=step_count,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        metadata=metadata,
        fencing_token=fencing_token,
    )
    return Call("PATCH", _run(run_id), Run.read, body=body)


def commit_step(
    run_id: str,
    updates: Sequence[JsonObject] | None = None,
    *,
    batches: Sequence[Any] | None = None,
    messages: Sequence[JsonObject] | None = None,
    expected_message_count: int | None = None,
    base_revision: int | None = None,
    rebase: bool = False,
    run: JsonObject | None = None,
    reads: Sequence[JsonObject] | None = None,
    label: str | None = None,
    fencing_token: int | None = None,
) -> Call[Committed]:
    """One atomic step: state, messages and the run's transition land together or not at all.

    `updates`: a list of `{"key": k, "update": u}` or `{"key": k, "clear": True}`; `batches`: such
    lists of parallel branches. `rebase`: a commit with an old `base_revision` lands if no touched
    key has changed since. `reads`: the entries the step used, `{namespace, key, version}` each.
    """
    if isinstance(updates, Mapping | str):
        raise TypeError(f'updates must be a list of {{"key", "update"}} objects, not {updates!r}')
    body = given(
        updates=None if updates is None else [dict(each) for each in updates],
        batches=None if batches is None else list(batches),
        messages=None if messages is None else [dict(each) for each in messages],
        expected_message_count=expected_message_count,
        base_revision=base_revision,
        on_conflict="rebase" if rebase else None,
        run=run,
        reads=None if reads is None else [dict(each) for each in reads],
        label=label,
        fencing_token=fencing_token,
    )
    return Call("POST", _run(run_id, "/commits"), Committed.read, body=body)


def heartbeat(run_id: str, *, fencing_token: int | None = None) -> Call[Run]:
    body = given(fencing_token=fencing_token)
    return Call("POST", _run(run_id, "/heartbeat"), Run.read, body=body)


def cancel_run(run_id: str) -> Call[Run]:
    return Call("POST", _run(run_id, "/cancel"), Run.read, body={})


def cancel_runs(run_ids: Iterable[str], *, dry_run: bool = False) -> Call[list[ItemResult]]:
    """Cancel up to 200 runs, each on its own; returns what became of each."""
    query = given(dry_run=dry_run or None)
    return Call("POST", "/runs/cancel", _item_results, query, body={"ids": list(run_ids)})


def fail_run(run_id: str, message: str | None = None) -> Call[Run]:
    return Call("POST", _run(run_id, "/fail"), Run.read, body=given(message=message))


def take_lease(
    run_id: str, *, fencing_token: int | None = None, only_if_free: bool | None = None
) -> Call[Run]:
    """Take the run over: its `fencing_token` grows, and whoever had it is refused."""
    body = given(fencing_token=fencing_token, only_if_free=only_if_free)
    return Call("POST", _run(run_id, "/lease"), Run.read, body=body)


def release_lease(run_id: str, *, fencing_token: int | None = None) -> Call[Run]:
    return Call("DELETE", _run(run_id, "/lease"), Run.read, given(fencing_token=fencing_token))


def resume_run(
    run_id: str,
    *,
    revision: int | None = None,
    expected_revision: int | None = None,
    fencing_token: int | None = None,
) -> Call[Run]:
    body = given(
        revision=revision, expected_revision=expected_revision, fencing_token=fencing_token
    )
    return Call("POST", _run(run_id, "/resume"), Run.read, body=body)


def tickets_of_run(run_id: str, **page: Unpack[Listing]) -> Call[Page[Ticket]]:
    """The tickets of a run, in the order they were opened."""
    query = given(**page)
    return Call("GET", _run(run_id, "/tickets"), page_of(Ticket.read), query)


class Runs(Group[S]):
    start = Verb(start_run)
    get = Verb(read_run)
    list = Verb(list_runs)
    change = Verb(change_run)
    commit = Verb(commit_step)
    heartbeat = Verb(heartbeat)
    cancel = Verb(cancel_run)
    cancel_many = Verb(cancel_runs)
    fail = Verb(fail_run)
    take_lease = Verb(take_lease)
    release_lease = Verb(release_lease)
    resume = Verb(resume_run)
    tickets = Verb(tickets_of_run)


# Tickets -------------------------------------------------------------------------------------


def read_ticket(ticket_id: str, *, wait: float = 0) -> Call[Ticket]:
    """The ticket; `wait` seconds (at most 30) until it is decided."""
    query = given(wait=int(wait) or None)
    return Call("GET", f"/tickets/{segment(ticket_id)}", Ticket.read, query, wait=wait)


def list_tickets(*, status: str | None = None, **page: Unpack[Listing]) -> Call[Page[Ticket]]:
    query = given(status=status, **page)
    return Call("GET", "/tickets", page_of(Ticket.read), query)


def decide_ticket(
    ticket_id: str, action: Literal["resume", "cancel"], payload: Any = None
) -> Call[Ticket]:
    """Decide; the first decision stands, a second is a Conflict."""
    body = {"action": action} | given(payload=payload)
    return Call("POST", f"/tickets/{segment(ticket_id)}/decision", Ticket.read, body=body)


class Tickets(Group[S]):
    get = Verb(read_ticket)
    list = Verb(list_tickets)
    decide = Verb(decide_ticket)


# Mailbox -------------------------------------------------------------------------------------


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
) -> Call[Dispatch]:
    """Put work into a thread's mailbox. Lower `priority` first, 0 to 255."""
    body = given(
        payload=payload,
        agent_id=agent_id,
        run_id=run_id,
        priority=priority,
        available_at=None if available_at is None else available_at.isoformat(),
        dedupe_key=dedupe_key,
        max_attempts=max_attempts,
    )
    return Call("POST", _thread(thread_id, "/dispatches"), Dispatch.read, body=body)


def claim(
    *,
    consumer: str | None = None,
    agent_id: str | None = None,
    thread_id: str | None = None,
    limit: int | None = None,
    lease_seconds: int | None = None,
    wait: float = 0,
) -> Call[list[Dispatch]]:
    """Lease work, `wait` seconds (at most 30) for some. A claim whose answer got lost comes back
    when its lease ends."""
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
        lambda document: [Dispatch.read(each) for each in document["items"]],
        given(wait=int(wait) or None),
        body=body,
        keyed=not int(wait),
        wait=wait,
    )


def _dispatch(held: Dispatch, verb: str, **body: Any) -> Call[Dispatch]:
    sent = given(claim_token=held.claim_token, **body)
    return Call("POST", f"/dispatches/{segment(held.id)}/{verb}", Dispatch.read, body=sent)


def ack(held: Dispatch) -> Call[Dispatch]:
    """Delivered. Conflict: the lease has ended."""
    return _dispatch(held, "ack")


def nack(
    held: Dispatch, error: str | None = None, *, retry_after: int | None = None
) -> Call[Dispatch]:
    return _dispatch(held, "nack", error=error, retry_after=retry_after)


def extend(held: Dispatch, lease_seconds: int | None = None) -> Call[Dispatch]:
    return _dispatch(held, "extend", lease_seconds=lease_seconds)


def cancel_dispatch(dispatch_id: str) -> Call[Dispatch]:
    return Call("POST", f"/dispatches/{segment(dispatch_id)}/cancel", Dispatch.read, body={})


def replay_dispatch(dispatch_id: str) -> Call[Dispatch]:
    return Call("POST", f"/dispatches/{segment(dispatch_id)}/replay", Dispatch.read, body={})


def read_dispatch(dispatch_id: str) -> Call[Dispatch]:
    return Call("GET", f"/dispatches/{segment(dispatch_id)}", Dispatch.read)


def list_dispatches(
    *,
    status: str | None = None,
    thread_id: str | None = None,
    agent_id: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Dispatch]]:
    query = given(status=status, thread_id=thread_id, agent_id=agent_id, **page)
    return Call("GET", "/dispatches", page_of(Dispatch.read), query)


def interrupt(thread_id: str) -> Call[dict[str, Any]]:
    """Supersede what is queued for the thread."""
    return Call("POST", _thread(thread_id, "/interrupt"), dict, body={})


class Dispatches(Group[S]):
    enqueue = Verb(enqueue)
    claim = Verb(claim)
    ack = Verb(ack)
    nack = Verb(nack)
    extend = Verb(extend)
    cancel = Verb(cancel_dispatch)
    replay = Verb(replay_dispatch)
    get = Verb(read_dispatch)
    list = Verb(list_dispatches)
    interrupt = Verb(interrupt)


# State keys and plugins ----------------------------------------------------------------------


def register_state_key(
    name: str,
    *,
    reducer: str | None = None,
    merge: Literal["exclusive", "commutative"] | None = None,
    scope: Literal["run", "thread"] | None = None,
    schema: Any = None,
    default: Any = None,
    persistent: bool | None = None,
    retain_on_uninstall: bool | None = None,
    plugin: str | None = None,
    description: str | None = None,
) -> Call[StateKeyInfo]:
    body = given(
        reducer=reducer,
        merge=merge,
        scope=scope,
        schema=schema,
        default=default,
        persistent=persistent,
        retain_on_uninstall=retain_on_uninstall,
        plugin=plugin,
        description=description,
    )
    return Call("PUT", f"/state-keys/{segment(name)}", StateKeyInfo.read, body=body)


def list_state_keys(**page: Unpack[Listing]) -> Call[Page[StateKeyInfo]]:
    query = given(**page)
    return Call("GET", "/state-keys", page_of(StateKeyInfo.read), query)


def get_state_key(name: str) -> Call[StateKeyInfo]:
    return Call("GET", f"/state-keys/{segment(name)}", StateKeyInfo.read)


class StateKeys(Group[S]):
    register = Verb(register_state_key)
    get = Verb(get_state_key)
    list = Verb(list_state_keys)


def install_plugin(
    name: str,
    *,
    state_keys: Sequence[JsonObject] = (),
    namespaces: Sequence[JsonObject] = (),
    description: str | None = None,
) -> Call[dict[str, Any]]:
    """Register all its keys and namespaces, or none."""
    body = given(
        state_keys=[dict(each) for each in state_keys],
        namespaces=[dict(each) for each in namespaces],
        description=description,
    )
    return Call("PUT", f"/plugins/{segment(name)}", dict, body=body)


def uninstall_plugin(
    name: str,
    *,
    entries: Literal["retain", "delete"] | None = None,
    dry_run: bool = False,
) -> Call[dict[str, Any] | None]:
    query = given(entries=entries, dry_run=dry_run or None)
    return Call("DELETE", f"/plugins/{segment(name)}", lambda document: document, query)


class Plugins(Group[S]):
    install = Verb(install_plugin)
    uninstall = Verb(uninstall_plugin)
