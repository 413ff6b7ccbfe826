"""Calls on compactions, which `threads.compact` and `namespaces.compact` request."""

from __future__ import annotations

from typing import Literal, Unpack

from commonhold.answers import Compaction, Message
from commonhold.calls import Call, Listing, given, segment
from commonhold.reading import Page, page_of
from commonhold.verbs import Group, S, Verb


def _compaction(compaction_id: str, verb: str = "") -> str:
    return f"/compactions/{segment('compaction_id', compaction_id)}{verb}"


def list_compactions(
    *,
    thread_id: str | None = None,
    kind: Literal["context", "snapshot", "history"] | None = None,
    status: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Compaction]]:
    """Compactions of all threads and namespaces, the newest first."""
    query = given(thread_id=thread_id, kind=kind, status=status, **page)
    return Call("GET", "/compactions", page_of(Compaction.read), query)


def get_compaction(compaction_id: str) -> Call[Compaction]:
    """One compaction, with its status and result. It has ended once `finished_at` is set."""
    return Call("GET", _compaction(compaction_id), Compaction.read)


def _change(compaction_id: str, verb: str, reason: str) -> Call[Compaction]:
    return Call(
        "POST",
        _compaction(compaction_id, f"/{verb}"),
        Compaction.read,
        headers={"Change-Reason": reason},
    )


def cancel_compaction(compaction_id: str, *, reason: str = "") -> Call[Compaction]:
    """Stop a compaction: a queued one does not start, a running one stops at its next step. What it has
    removed stays removed. Raises Conflict if it has ended."""
    return _change(compaction_id, "cancel", reason)


def retry_compaction(compaction_id: str, *, reason: str = "") -> Call[Compaction]:
    """Request a compaction of the context of the same thread again; returns the new one. Raises Conflict if
    this one is queued, running or done, or of another kind."""
    return _change(compaction_id, "retry", reason)


def undo_compaction(compaction_id: str, *, reason: str = "") -> Call[Compaction]:
    """Give the context the original messages again instead of the summary. Raises Conflict unless it is a
    context compaction that is done, or if a later one includes its summary: undo that one first, whose id
    is `document["later"]` of the problem."""
    return _change(compaction_id, "undo", reason)


def list_folded_messages(compaction_id: str, **page: Unpack[Listing]) -> Call[Page[Message]]:
    """The messages that the summary replaces in the context, in order."""
    query = given(**page)
    return Call("GET", _compaction(compaction_id, "/messages"), page_of(Message.read), query)


class Compactions(Group[S]):
    """Compactions of contexts, snapshots and history: list, cancel, retry and undo them."""

    list = Verb(list_compactions)
    get = Verb(get_compaction)
    cancel = Verb(cancel_compaction)
    retry = Verb(retry_compaction)
    undo = Verb(undo_compaction)
    messages = Verb(list_folded_messages)
