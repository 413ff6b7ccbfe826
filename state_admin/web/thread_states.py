"""The State tab: the state of a thread at any revision, what changed there, and the actions on
it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from state_admin.domain import diffs, values
from state_admin.domain.access import Role
from state_admin.domain.values import JSON
from state_admin.models import Revision, Thread
from state_admin.models.knowledge_sql import read_shared
from state_admin.services.errors import BadRequest, Conflict, NotFound
from state_admin.services.knowledge import keys_of_thread
from state_admin.services.snapshots import (
    LIFECYCLE,
    Snapshot,
    diff_snapshots,
    find_mark,
    mark_revision,
    read_snapshot,
    restore_snapshot,
)
from state_admin.services.threads import find_thread
from state_admin.templatetags.json_html import MOST_NODES
from state_admin.templatetags.ui import plural

from . import paging
from .actors import FORM, POST
from .addresses import run_url, thread_action_url, thread_url
from .confirm import PREVIEW, Confirm, ask, reason_of
from .entry_undo import REFUSED
from .htmx import Request, Undo, see_other, target_id, toast
from .id_address import id_page, id_path
from .state_changes import RUNTIME
from .trees import answer_piece

LIST = 12
SHARED = 20
_MOST_NAMED = 4  # keys of a revision in the list
_AHEAD = 4  # revisions newer than the selected one in the list
BIG = 100_000  # longer values (characters) are fetched after the page has loaded
_FEW = 10  # with more trees on a page, each shows fewer nodes at first


@dataclass(frozen=True)
class StateValue:
    """A key of the state at the selected revision."""

    key: str
    value: JSON  # None if it is `big` and therefore fetched later
    big: int  # number of characters if it is large, else 0
    scope: str
    since: int
    since_url: str
    lit: bool
    tree_url: str

    @property
    def runtime(self) -> bool:
        return self.key.startswith(RUNTIME)


@dataclass(frozen=True)
class RevisionLine:
    """A revision in the list."""

    row: Revision
    url: str

    @property
    def touched(self) -> str:
        """The keys that it changed. The runtime's own key changes at every step, so it is named only
        if no other key changed."""
        touched = self.row.touched
        keys = [key for key in touched if not key.startswith(RUNTIME)] or touched
        more = len(keys) - _MOST_NAMED
        return ", ".join(keys[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def show(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the tab. Reads the selected revision and the previous one only."""
    public_id = thread.public_id
    newest = thread.revision
    at = paging.whole_number(request, "at")
    at = newest if at is None else at
    if at > newest:
        raise NotFound(
            f"revision {at} not found: thread {public_id}", hint=f"The newest is {newest}."
        )
    revisions = Revision.objects.filter(thread=thread)
    revision = revisions.filter(number=at).select_related("run").first()
    gone = revision is not None and revision.dropped
    earlier = revisions.filter(number__lt=at, dropped=False).order_by("-number")
    later = revisions.filter(number__gt=at, dropped=False).order_by("number")
    numbers = [rows.values_list("number", flat=True).first() for rows in (earlier, later)]
    previous = numbers[0] if numbers[0] is not None else (0 if at > 0 else None)
    context: dict[str, Any] = {
        "at": at,
        "chosen": revision,
        "gone": gone,
        "form_url": thread_url(public_id),
        "previous_url": _at_url(public_id, previous),
        "next_url": _at_url(public_id, numbers[1]),
        "newest_url": _at_url(public_id, newest) if at != newest else "",
        "mark_url": thread_action_url("mark", public_id, at=at),
        "restore_url": thread_action_url("restore", public_id, at=at),
        "fork_url": thread_action_url("fork", public_id, at=at),
        "run_url": run_url(revision.run.public_id) if revision and revision.run else "",
        "marked": list(
            revisions.exclude(label="").order_by("-number").values_list("number", "label")[:50]
        ),
        **_listed(request, thread, at),
        **_compared(request, thread, at, previous),
    }
    if target_id(request) != "state-at":  # the slider does not replace this part
        context |= _shared(request, thread)
    if not gone:
        now = read_snapshot(actor=request.actor, thread_id=public_id, revision=at)
        context |= {"keys": held_values(now, revision), "nodes": nodes_of(len(now.rows))}
        compared = context["compared"]
        if at and previous == at - 1 and not compared and _changed_big(now, revision):
            context["compare_url"] = thread_url(
                public_id, tab="state", at=at, **{"from": at - 1, "to": at}
            )
        elif at and previous == at - 1 and not compared:
            before = read_snapshot(actor=request.actor, thread_id=public_id, revision=at - 1)
            rows = diffs.rows(before.parsed(), now.parsed())
            runtime = "/" + RUNTIME
            context["changes"] = [row for row in rows if not row.pointer.startswith(runtime)]
            context["internal"] = [row for row in rows if row.pointer.startswith(runtime)]
    return context


def _shared(request: Request, thread: Thread) -> dict[str, Any]:
    """The entries that the thread can read now, from the cursor in the query string on."""
    keys = keys_of_thread(thread)
    namespace, _, key = paging.text(request, "shared").partition("/")
    rows = read_shared(request.actor, keys, after=(namespace, key), limit=SHARED + 1)

    def url(**place: str) -> str:
        return thread_url(thread.public_id, tab="state", at=request.GET.get("at"), **place)

    entries, next_url = paging.cut(
        rows, SHARED, lambda last: url(shared=f"{last.namespace}/{last.key}")
    )
    return {
        "shared": entries,
        "shared_keys": keys,
        "shared_pager": {"first": url() if namespace else "", "next": next_url},
    }


def held_values(now: Snapshot, revision: Revision | None = None) -> list[StateValue]:
    """The keys and values of a state; those that the selected revision changed are marked."""
    lit = set(revision.touched) if revision else set()
    return [
        StateValue(
            key=row.key,
            value=None if len(row.value) > BIG else values.load(row.value),
            big=len(row.value) if len(row.value) > BIG else 0,
            scope=row.scope,
            since=row.valid_from,
            since_url=_at_url(now.thread_id, row.valid_from),
            lit=row.key in lit,
            tree_url=thread_action_url(f"value/{now.revision}/{row.key}", now.thread_id),
        )
        for row in sorted(now.rows, key=lambda row: (row.key.startswith(RUNTIME), row.key))
    ]


def _changed_big(now: Snapshot, revision: Revision | None) -> bool:
    """Whether the revision changed a value that is too large to compare without a request for
    it."""
    touched = set(revision.touched) if revision else set()
    return any(row.key in touched and len(row.value) > BIG for row in now.rows)


def nodes_of(trees: int) -> int:
    """How many nodes each of `trees` trees on one page shows at first."""
    return MOST_NODES if trees <= _FEW else max(_FEW * MOST_NODES // (2 * trees), 3)


def _at_url(thread_id: str, revision: int | None) -> str:
    return "" if revision is None else thread_url(thread_id, tab="state", at=revision)


def _listed(request: Request, thread: Thread, at: int) -> dict[str, Any]:
    """A part of the list of revisions, newest first, that contains the selected one."""
    top = paging.whole_number(request, "list")
    top = at + _AHEAD if top is None else top
    rows = Revision.objects.filter(thread=thread, number__lte=top).order_by("-number")

    def url(number: int) -> str:
        return thread_url(thread.public_id, tab="state", at=at, list=number)

    revisions, older = paging.cut(rows, LIST, lambda last: url(last.number - 1))
    return {
        "revisions": [
            RevisionLine(row, _at_url(thread.public_id, row.number)) for row in revisions
        ],
        "list_older_url": older,
        "list_newer_url": url(top + LIST) if top < thread.revision else "",
    }


def _compared(request: Request, thread: Thread, at: int, previous: int | None) -> dict[str, Any]:
    """The difference of the two revisions in the query string, if they are given."""
    old, new = (paging.whole_number(request, name) for name in ("from", "to"))
    context: dict[str, Any] = {
        "compare_from": previous or 0 if old is None else old,
        "compare_to": at if new is None else new,
        "compared": old is not None and new is not None,
    }
    if old is not None and new is not None:
        before, after = diff_snapshots(
            actor=request.actor, thread_id=thread.public_id, old=old, new=new
        )
        context["difference"] = diffs.rows(before, after)
    return context


@id_page(replica=True)
def value_piece(request: Request, thread_id: str, revision: int, key: str) -> HttpResponse:
    """The children of a node of a large state value, fetched when the node is opened."""
    snapshot = read_snapshot(actor=request.actor, thread_id=thread_id, revision=revision)
    if key not in snapshot.extensions:
        raise NotFound(f"revision {revision} has no {key}")
    url = thread_action_url(f"value/{revision}/{key}", thread_id)
    return answer_piece(request, values.load(snapshot.extensions[key]), url)


@id_page(methods=POST, role=Role.EDITOR)
def mark(request: Request, thread_id: str) -> HttpResponse:
    """Label or pin a revision, which compaction then keeps. An Undo also sends `was_label` and
    `was_pinned`, the mark that it expects."""
    at = read_requested_revision(request)
    pinned = request.POST.get("pinned") == "on"
    label = request.POST.get("label", "").strip()[:128]
    old = find_mark(request.actor, thread_id, at)
    undoes = "was_label" in request.POST
    was = (request.POST["was_label"], request.POST.get("was_pinned") == "on") if undoes else old
    address: Any = {"actor": request.actor, "thread_id": thread_id, "revision": at}
    try:
        row = mark_revision(**address, label=label, pinned=pinned, expected=was)
    except Conflict:
        toast(request, REFUSED, kind="failed")
        return see_other(request, _at_url(thread_id, at), part="thread")
    kept = "kept by compaction" if row.label or row.pinned else "no longer kept by compaction"
    changed = old != (row.label, row.pinned) and not undoes
    undo = _undo_of_mark(thread_id, row, old) if changed else None
    toast(request, f"Revision {at} is {kept}", undo=undo)
    return see_other(request, _at_url(thread_id, at), part="thread")


def _undo_of_mark(thread_id: str, row: Revision, old: tuple[str, bool]) -> Undo:
    fields: dict[str, str | int] = {"label": old[0], "was_label": row.label}
    fields |= {name: "on" for name, on in (("pinned", old[1]), ("was_pinned", row.pinned)) if on}
    return Undo(thread_action_url("mark", thread_id, at=row.number), fields)


@id_page(methods=FORM, role=Role.EDITOR)
def restore(request: Request, thread_id: str) -> HttpResponse:
    """Restore the state of an old revision as a new revision; the history is kept."""
    at = read_requested_revision(request)
    thread = find_thread(request.actor, thread_id)
    if request.method == "GET":
        return _ask_restore(request, thread, at)
    restored = restore_snapshot(
        actor=request.actor,
        thread_id=thread_id,
        revision=at,
        expected_revision=paging.read_number("expected", request.POST.get("expected", "")),
        reason=reason_of(request),
    )
    undo = Undo(
        thread_action_url("restore", thread_id, at=thread.revision),
        {"expected": restored.revision, "reason": f"undo of revision {restored.revision}"},
    )
    toast(request, f"State restored from revision {at}", undo=undo)
    return see_other(request, _at_url(thread_id, restored.revision), part="thread")


def _ask_restore(request: Request, thread: Thread, at: int) -> HttpResponse:
    before, after = diff_snapshots(
        actor=request.actor, thread_id=thread.public_id, old=thread.revision, new=at
    )
    for state in (before, after):  # restoring neither restarts nor ends a run
        state.pop(LIFECYCLE, None)
    rows = diffs.rows(before, after)
    lines = [
        f"The state becomes what it was at revision {at}, as the new revision "
        f"{thread.revision + 1}. The history is kept, and runs are not affected.",
        f"{plural(len(rows), 'difference,differences')} from the current state."
        if rows
        else "No differences from the current state.",
    ]
    confirm = Confirm(
        title=f"Restore revision {at}?",
        verb="Restore",
        url=thread_action_url("restore", thread.public_id, at=at),
        back=_at_url(thread.public_id, at),
        lines=lines,
        names=[f"{row.pointer} {row.kind}" for row in rows[:PREVIEW]],
        total=len(rows),
        fields=[("expected", thread.revision)],
        kind="primary",
    )
    return ask(request, confirm, part="thread")


def read_requested_revision(request: Request) -> int:
    """The revision in the query string that an action applies to. BadRequest without one."""
    at = paging.whole_number(request, "at")
    if at is None:
        raise BadRequest("revision is required: ?at=")
    return at


urlpatterns = [
    id_path("thread/value/<int:revision>/<str:key>", value_piece, "thread-value"),
    id_path("thread/mark", mark, "thread-mark"),
    id_path("thread/restore", restore, "thread-restore"),
]
