"""Threads: the list, and the page of one with its tabs. Each tab has its own module."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import threads as contract
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.models import Run, Thread, ViewPage, creation_times, lineages_sql
from state_admin.models.threads import ThreadQuerySet
from state_admin.services.errors import Invalid
from state_admin.services.threads import read_words, thread_not_found

from . import (
    conversations,
    paging,
    snippets,
    thread_compactions,
    thread_contexts,
    thread_search,
    thread_states,
)
from .actors import page
from .addresses import thread_action_url, thread_url, with_query
from .htmx import Request, render, render_list, target_id, wants_part
from .id_address import id_page, id_path
from .lineages import lineage_of_thread
from .lists import list_paths
from .paging import BY_AGE, downwards, read_time, upwards
from .periods import Period, end_of, start_of
from .runs import runs_of_thread
from .saved_views import views_of
from .tables import Field, Orders, Table, choices_of, count_rows, matching
from .thread_delete import THREADS

PAGE = 50
_CHILDREN = 8  # limit for children, and for forks
_STATUSES = ("active", "stuck", "running", "waiting", "created", "idle")
# Minimum numbers of messages to filter by. No index supports the filter, so a page examines up to
# _WINDOW threads.
_SIZES = ("10", "100", "1000", "10000")
_WINDOW = paging.WINDOW
# The orders by numbers that each commit changes are bounded: an index on them would slow down commits.
_FEWEST, _MOST = upwards("", "context_tokens").values()
_TABLE = Table(
    "web:thread-list",
    (
        Orders("Thread", {"id": "ascending"}),
        Orders("Run", {"activity": "descending"}),
        Orders("Messages", downwards("messages", "message_count"), numeric=True),
        # Names in saved views.
        Orders("Context tokens", {"tokens": _MOST, "fewest-tokens": _FEWEST}, numeric=True),
        Orders("Revision", downwards("revision", "revision"), numeric=True),
        Orders("Created", BY_AGE),
        Orders("Updated", downwards("updated", "updated_at", read=read_time)),
    ),
    search=Field("text", "Search titles and messages", placeholder="Search titles and messages"),
    menu=(
        Field("status", "Run", choices=choices_of(_STATUSES)),
        Field("agent", "Agent"),
        Field("prefix", "Id begins with"),
        Field("resource", "Resource"),
        Period("Created"),
        Field("size", "Size", choices={size: f"{int(size):,}+ messages" for size in _SIZES}),
    ),
)


def _read_filters(request: Request) -> dict[str, str]:
    filters = _TABLE.read(request)
    # A search has its own order, and threads with a prefix are in the order of their ids.
    return {**filters, "sort": ""} if filters["text"] or filters["prefix"] else filters


def _table_of(filters: dict[str, str]) -> Table:
    if not (filters["text"] or filters["prefix"]):
        return _TABLE
    # They have one order: the newest first, or by id.
    sorted_by, order = ("Created", "descending") if filters["text"] else ("Thread", "ascending")
    columns = [
        replace(each, sorts={"": order} if each.label == sorted_by else {})
        for each in _TABLE.columns
    ]
    return replace(_TABLE, columns=columns)


def _is_by_id(filters: dict[str, str]) -> bool:
    """Whether the list is ordered by id; otherwise its cursor is a primary key."""
    return bool(filters["prefix"]) or filters["sort"] == "id"


@page(replica=True)
def thread_list(request: Request) -> HttpResponse:
    views, default = views_of(request, ViewPage.THREADS)
    if default:
        return default
    filters = _read_filters(request)
    try:
        rows, next_url, reach = _find(request, filters, "web:thread-list")
        refusal = ""
    except Invalid as bad:
        rows, next_url, reach, refusal = [], "", None, bad.detail
    table = _table_of(filters).describe(request, filters, next_url)
    return render_list(
        request,
        "threads/list.html",
        {
            **views,
            **table,
            "clear_url": with_query(views["views_all_url"], **dict(table["kept"])),
            "filters": filters,
            "rows": rows,
            "bulk": THREADS.bar(request, table["current_url"]),
            "count": _count(request.actor, filters, rows, table),
            "reach": reach,
            "continuation": paging.next_continuation(request),
            "refusal": refusal,
            "window": _WINDOW,
            **_how_to_create(),
        },
        part="thread-table",
    )


def _items(request: Request, name: str) -> tuple[list[contract.Thread], str]:
    rows, next_url, _ = _find(request, _read_filters(request), name)
    return [contract.Thread.of(row, request.actor) for row in rows], next_url


def _find(
    request: Request, filters: dict[str, str], name: str
) -> tuple[Sequence[Thread], str, thread_search.Reach | None]:
    """A page of threads, by default newest first, the URL of the next page, and what a search read.
    With a prefix they are ordered by id, which is one range of the unique index. Invalid for a text
    without words."""
    rows, last = _filtered(request.actor, filters), paging.text(request, "after")
    reach = None
    if filters["text"]:
        words = read_words(filters["text"])
        threads, after, reach = thread_search.search(_sized(rows, filters), rows, words, last, PAGE)
    elif _TABLE.is_bounded(filters["sort"]):
        # No index supports the filter by size.
        if filters["size"]:
            rows = _sized(paging.newest(rows, whole=paging.is_file(request)), filters)
        return *_TABLE.page(request, rows.whole(), PAGE, reverse(name), filters), None
    elif filters["sort"] == "activity":
        threads, after = _by_activity(request.actor, rows, filters, last)
    else:
        threads, after = _by_age_or_id(rows, filters, last)
    next_url = with_query(reverse(name), **filters, after=after) if after else ""
    return threads, next_url, reach


def _filtered(actor: Actor, filters: dict[str, str]) -> ThreadQuerySet:
    """The threads that match, except for their size."""
    rows = Thread.objects.visible_to(actor)
    rows = matching(rows, filters, prefix="public_id__startswith", resource="resource_id")
    if filters["agent"]:
        rows = rows.of_agent(filters["agent"])
    if filters["status"] == "stuck":
        rows = rows.filter(active_run__in=Run.objects.visible_to(actor).stuck())
    elif filters["status"] in ("active", "idle"):
        rows = rows.filter(active_run__isnull=filters["status"] == "idle")
    elif filters["status"]:
        rows = rows.active_as(filters["status"])
    owner = {"workspace_id": actor.workspace_id}
    since, until = start_of(filters["since"]), end_of(filters["until"])
    return creation_times.within(rows, "created_at", since, until, owner)


def _count(
    actor: Actor, filters: dict[str, str], rows: Sequence[Thread], table: dict[str, Any]
) -> str:
    """The number of matching threads, counted up to a limit; "" if no index supports the filters."""
    unindexed = filters["text"] or filters["size"] or filters["agent"]
    if any(table["pager"].values()) and (unindexed or filters["sort"] == "activity"):
        return ""
    return count_rows(table, rows, lambda: _filtered(actor, filters), "thread,threads")


def _sized(rows: ThreadQuerySet, filters: dict[str, str]) -> ThreadQuerySet:
    return rows.filter(message_count__gte=int(filters["size"])) if filters["size"] else rows


def _by_age_or_id(
    rows: ThreadQuerySet, filters: dict[str, str], last: str
) -> tuple[list[Thread], str]:
    """A page, and the cursor of the next one."""
    column = "public_id" if _is_by_id(filters) else "pk"
    upwards = _is_by_id(filters) or filters["sort"] == "oldest"
    behind, not_behind = ("gt", "lte") if upwards else ("lt", "gte")
    rows = rows.order_by(column if upwards else f"-{column}")
    if _is_by_id(filters):
        rows = rows.filter(public_id__gt=last)
    elif (after := read_whole(last)) is not None:
        rows = rows.filter(**{f"pk__{behind}": after})
    end: Any = None
    if filters["size"]:
        end = rows.values_list(column, flat=True)[_WINDOW - 1 : _WINDOW].first()
        if end is not None:
            rows = rows.filter(**{f"{column}__{not_behind}": end})
        rows = _sized(rows, filters)
    threads, following = paging.cut(rows.whole(), PAGE, lambda last: str(getattr(last, column)))
    return threads, following or ("" if end is None else str(end))


def _by_activity(
    actor: Actor, rows: ThreadQuerySet, filters: dict[str, str], last: str
) -> tuple[list[Thread], str]:
    """Those with the latest runs first. Walks _WINDOW runs, newest first."""
    runs = Run.objects.visible_to(actor).order_by("-pk")
    rows = _sized(rows, filters).order_by("-latest_run_id")
    if (after := read_whole(last)) is not None:
        runs, rows = runs.filter(pk__lt=after), rows.filter(latest_run_id__lt=after)
    end = runs.values_list("pk", flat=True)[_WINDOW - 1 : _WINDOW].first()
    rows = rows.filter(pk__in=runs.values("thread_id")[:_WINDOW])
    if end is not None:
        rows = rows.filter(latest_run_id__gte=end)
    keys = list(rows.values_list("pk", flat=True)[: PAGE + 1])
    found = paging.fetch_in_order(Thread.objects.whole(), keys)
    threads, following = paging.cut(found, PAGE, lambda last: str(last.latest_run_id))
    return threads, following or ("" if end is None else str(end))


@dataclass(frozen=True)
class Tab:
    """A tab of the thread's page. `show` returns the context of its template; `parts` are the ids
    that htmx may request alone."""

    label: str
    show: Callable[[Request, Thread], dict[str, Any]]
    parts: tuple[str, ...] = ()


TABS = {
    "conversation": Tab("Conversation", conversations.show),
    "context": Tab("Context", thread_contexts.show),
    "state": Tab("State", thread_states.show, ("state-at",)),
    "compactions": Tab("Compactions", thread_compactions.show, ("thread-jobs", "thread-plan")),
    "runs": Tab("Runs", runs_of_thread, ("run-table",)),
    "lineage": Tab("Lineage", lineage_of_thread),
}


@id_page(replica=True)
def thread_detail(request: Request, thread_id: str) -> HttpResponse:
    thread = (
        Thread.objects.visible_to(request.actor)
        .select_related("parent", "active_run", "latest_run")
        .filter(public_id=thread_id)
        .first()
    )
    if thread is None:
        raise thread_not_found(thread_id)
    name = paging.choice(request, "tab", tuple(TABS)) or "conversation"
    tab = TABS[name]
    target = target_id(request)
    context = _header(request, thread, name)
    if wants_part(request) and target == "thread-now":
        return render(request, "threads/detail.html", context, part=target)
    context |= tab.show(request, thread)
    if target in tab.parts and not context.get("whole"):
        template, url = f"threads/_{name}.html", context.get("list_url", "")
        if url:
            return render_list(request, template, context, part=target, url=url)
        return render(request, template, context, part=target)
    response = render(request, "threads/detail.html", context, part="thread")
    if target in tab.parts:
        response["HX-Retarget"], response["HX-Reswap"] = "#thread", "outerMorph"
    return response


def _header(request: Request, thread: Thread, tab: str) -> dict[str, Any]:
    """The context of the header above the tabs. `message_count` in the URL is the number of messages
    that the page shows."""
    actor = request.actor
    shown_count = paging.whole_number(request, "message_count")
    shown_count = (
        thread.message_count if shown_count is None else min(shown_count, thread.message_count)
    )
    children = Thread.objects.visible_to(actor).filter(parent=thread).order_by("-pk")
    children = children.select_related("active_run")
    public_id = thread.public_id
    forks = Thread.objects.visible_to(actor).forks_of(public_id).order_by("-pk")
    api_path = f"threads/{quote(public_id, safe='')}/context"
    return {
        "thread": thread,
        "tab": tab,
        "tab_template": f"threads/_{tab}.html",
        "tabs": [
            (name, each.label, thread_url(public_id, tab="" if name == "conversation" else name))
            for name, each in TABS.items()
        ],
        "ancestors": _ancestors(actor, thread),
        "children": list(children[: _CHILDREN + 1]),
        "forks": list(forks[: _CHILDREN + 1]),
        "most_children": _CHILDREN,
        "poll_url": thread_url(public_id, tab=tab, message_count=shown_count),
        "unseen": thread.message_count - shown_count,
        "newest_url": thread_url(public_id),
        "delete_url": thread_action_url("delete", public_id),
        "can_edit": actor.may(Role.EDITOR),
        "can_delete": actor.may(Role.ADMIN),
        **snippets.both("GET", api_path, call=f"threads.context({public_id!r})"),
        "typescript": snippets.typescript(f"threads.context({json.dumps(public_id)})"),
    }


def _how_to_create() -> dict[str, str]:
    title, message = "Refund of order 9921", {"role": "user", "content": "Where is my refund?"}
    thread, messages = json.dumps({"id": "t1", "title": title}), json.dumps({"messages": [message]})
    create = snippets.curl("POST", "threads", thread)
    append = snippets.curl("POST", "threads/t1/messages", messages)
    statements = (
        f'state.threads.create("t1", title={title!r})',
        f'print(state.threads.append("t1", {message!r}))',
    )
    return {"curl": f"{create}\n\n{append}", "python": snippets.python(*statements)}


def _ancestors(actor: Actor, thread: Thread) -> list[str]:
    """The ids of the ancestors that the actor may see, from the root to the parent."""
    if thread.parent_id is None:
        return []
    above = lineages_sql.read_ancestors(thread.pk)
    return [each.public_id for each in reversed(above) if actor.sees_thread(each.public_id)]


urlpatterns = [
    path("threads", thread_list, name="thread-list"),
    *list_paths("threads", "thread-list", _items),
    id_path("threads", thread_detail, "thread-detail"),
]
