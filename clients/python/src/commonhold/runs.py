"""Calls on runs, their leases and their tickets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, Unpack

from commonhold import arguments
from commonhold.answers import Committed, ItemResult, Knowledge, Run, RunRead, Ticket
from commonhold.calls import Call, JsonObject, Listing, given, if_match, polling, segment
from commonhold.reading import Page, page_of
from commonhold.threads import item_results, thread_path
from commonhold.verbs import Group, S, Verb


def _run(run_id: str, verb: str = "") -> str:
    return f"/runs/{segment('run_id', run_id)}{verb}"


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
    reason: str = "",
) -> Call[Run]:
    """Start a run, which clears run-scoped state. Raises Conflict if the thread has an active run."""
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
    return Call(
        "POST",
        thread_path(thread_id, "/runs"),
        Run.read,
        body=body,
        headers={"Change-Reason": reason},
    )


def read_run(run_id: str, *, wait: float = 0, since: int | None = None) -> Call[Run]:
    """The run. `wait`: wait up to so many seconds (at most 30) for a revision greater than `since`."""
    query = given(wait=polling(wait), since=since)
    return Call("GET", _run(run_id), Run.read, query, wait=wait)


def list_runs(
    *,
    thread_id: str | None = None,
    agent_id: str | None = None,
    status: str | None = None,
    stuck: bool | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Run]]:
    """Runs of all threads, the newest first. `stuck`: whether they no longer progress."""
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
    cost_usd: str | float | Decimal | None = None,
    metadata: JsonObject | None = None,
    fencing_token: int | None = None,
    if_revision: int | None = None,
    reason: str = "",
) -> Call[Run]:
    """Change the status, counts, cost or metadata: `status="done", termination_reason={"type":
    "natural_end"}`. `cost_usd` is the cost so far, best as a string or Decimal. `if_revision`: only if
    `last_revision` of the run is that revision, else RevisionConflict."""
    body = given(
        status=status,
        termination_reason=termination_reason,
        waiting=waiting,
        step_count=step_count,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_usd=cost_usd,
        metadata=metadata,
        fencing_token=fencing_token,
    )
    return Call(
        "PATCH",
        _run(run_id),
        Run.read,
        body=body,
        headers=if_match("if_revision", if_revision, reason),
    )


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
    dry_run: bool = False,
    reason: str = "",
) -> Call[Committed]:
    """One atomic step: state, messages and the change of the run are stored together, or nothing is.

    `updates`: a list of `{"key": k, "update": u}` or `{"key": k, "clear": True}`; `batches`: such
    lists of parallel branches. `rebase`: accept an old `base_revision` if none of the keys has changed
    since. `reads`: the entries that the step used, `{namespace, key, version}` each.
    """
    body = given(
        updates=None if updates is None else arguments.objects("updates", updates),
        batches=None if batches is None else list(batches),
        messages=None if messages is None else arguments.objects("messages", messages),
        expected_message_count=expected_message_count,
        base_revision=base_revision,
        on_conflict="rebase" if rebase else None,
        run=run,
        reads=None if reads is None else arguments.objects("reads", reads),
        label=label,
        fencing_token=fencing_token,
    )
    return Call(
        "POST",
        _run(run_id, "/commits"),
        Committed.read,
        given(dry_run=dry_run or None),
        body=body,
        headers={"Change-Reason": reason},
    )


def heartbeat(run_id: str, *, fencing_token: int | None = None, reason: str = "") -> Call[Run]:
    """Renew the lease: it lasts `lease_seconds` of the run from now. Raises Superseded if another
    worker has the run."""
    body = given(fencing_token=fencing_token)
    return Call(
        "POST", _run(run_id, "/heartbeat"), Run.read, body=body, headers={"Change-Reason": reason}
    )


def cancel_run(run_id: str, *, if_revision: int | None = None, reason: str = "") -> Call[Run]:
    """End the run as cancelled. Its pending tickets become void. `if_revision`: only if its `last_revision` is that
    revision, else RevisionConflict."""
    return Call(
        "POST",
        _run(run_id, "/cancel"),
        Run.read,
        body={},
        headers=if_match("if_revision", if_revision, reason),
    )


def cancel_runs(
    run_ids: Iterable[str], *, dry_run: bool = False, reason: str = ""
) -> Call[list[ItemResult]]:
    """Cancel up to 200 runs, independently of each other. Returns the result for each."""
    query = given(dry_run=dry_run or None)
    return Call(
        "POST",
        "/runs/cancel",
        item_results,
        query,
        body={"ids": arguments.texts("run_ids", run_ids)},
        headers={"Change-Reason": reason},
    )


def fail_run(
    run_id: str, message: str | None = None, *, if_revision: int | None = None, reason: str = ""
) -> Call[Run]:
    """End the run with an error. Its pending tickets become void. `if_revision`: only if its `last_revision` is that
    revision, else RevisionConflict."""
    return Call(
        "POST",
        _run(run_id, "/fail"),
        Run.read,
        body=given(message=message),
        headers=if_match("if_revision", if_revision, reason),
    )


def take_lease(
    run_id: str,
    *,
    fencing_token: int | None = None,
    only_if_free: bool | None = None,
    reason: str = "",
) -> Call[Run]:
    """Take over the run. Its `fencing_token` grows, so commits of the previous worker are refused."""
    body = given(fencing_token=fencing_token, only_if_free=only_if_free)
    return Call(
        "POST", _run(run_id, "/lease"), Run.read, body=body, headers={"Change-Reason": reason}
    )


def release_lease(run_id: str, *, fencing_token: int | None = None, reason: str = "") -> Call[Run]:
    """Release the lease: the run counts as stuck until another worker takes it."""
    return Call(
        "DELETE",
        _run(run_id, "/lease"),
        Run.read,
        given(fencing_token=fencing_token),
        headers={"Change-Reason": reason},
    )


def resume_run(
    run_id: str,
    *,
    revision: int | None = None,
    expected_revision: int | None = None,
    fencing_token: int | None = None,
    reason: str = "",
) -> Call[Run]:
    """Set the run to running again, with a new fencing token and lease, from the state of
    `revision`."""
    body = given(
        revision=revision, expected_revision=expected_revision, fencing_token=fencing_token
    )
    return Call(
        "POST", _run(run_id, "/resume"), Run.read, body=body, headers={"Change-Reason": reason}
    )


def tickets_of_run(run_id: str, **page: Unpack[Listing]) -> Call[Page[Ticket]]:
    """The tickets of a run, in the order they were opened."""
    query = given(**page)
    return Call("GET", _run(run_id, "/tickets"), page_of(Ticket.read), query)


def read_knowledge(
    run_id: str,
    *,
    step: int | None = None,
    revision: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Knowledge]:
    """What the run could see when it committed a step: the state of the thread and the entries of the
    run's scopes. `step`: which revision of the run, from 1 (the newest if absent), or `revision`: which of the
    thread. The entries are `items`, `limit` of them; `cursor=….next_cursor` reads the others."""
    query = given(
        step=arguments.version("step", step),
        revision=arguments.version("revision", revision),
        limit=limit,
        cursor=cursor,
    )
    return Call("GET", _run(run_id, "/knowledge"), Knowledge.read, query)


def list_run_reads(
    run_id: str, *, stale: bool | None = None, **page: Unpack[Listing]
) -> Call[Page[RunRead]]:
    """The versions of entries that the run's commits reported in `reads`, the newest first. `stale`: only
    versions that are not current now, or were not when the step was committed."""
    query = given(stale=stale, **page)
    return Call("GET", _run(run_id, "/reads"), page_of(RunRead.read), query)


class Runs(Group[S]):
    """Runs of threads: start them, commit steps, and hold their lease."""

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
    knowledge = Verb(read_knowledge)
    reads = Verb(list_run_reads)


def read_ticket(ticket_id: str, *, wait: float = 0) -> Call[Ticket]:
    """The ticket. `wait`: wait up to so many seconds (at most 30) for a decision."""
    query = given(wait=polling(wait))
    return Call("GET", f"/tickets/{segment('ticket_id', ticket_id)}", Ticket.read, query, wait=wait)


def list_tickets(
    *,
    status: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Ticket]]:
    """Tickets, the newest first: of all runs, or only those with this status, thread or run."""
    query = given(status=status, thread_id=thread_id, run_id=run_id, **page)
    return Call("GET", "/tickets", page_of(Ticket.read), query)


def decide_ticket(
    ticket_id: str, action: Literal["resume", "cancel"], payload: Any = None, *, reason: str = ""
) -> Call[Ticket]:
    """Decide the ticket. The first decision is final; a second one raises Conflict."""
    body = {"action": action} | given(payload=payload)
    return Call(
        "POST",
        f"/tickets/{segment('ticket_id', ticket_id)}/decision",
        Ticket.read,
        body=body,
        headers={"Change-Reason": reason},
    )


class Tickets(Group[S]):
    """What runs wait for: list the tickets, wait for a decision, and decide."""

    get = Verb(read_ticket)
    list = Verb(list_tickets)
    decide = Verb(decide_ticket)
