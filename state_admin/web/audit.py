"""The audit log: who did what, one card per request, as far back as audit rows are retained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import audit as contract
from state_admin.domain import diffs, values
from state_admin.domain.access import Actor, Role
from state_admin.models import AuditRow, EntryRevision
from state_admin.models.audit import AuditQuerySet
from state_admin.services.errors import NotFound

from . import paging, snippets
from .actors import page
from .addresses import entry_url, with_query
from .changes import VERBS, ChangeSentence, add_differences, describe_change, live_prefix
from .htmx import Request, render, render_list
from .lists import table_paths
from .tables import Field, Orders, Table, count_rows, matching

PAGE = 50
# How many rows one page searches for rows that match its filters.
WINDOW = 20_000
# The filters for which rows must be searched. Those of a period are found by their ids.
_SEARCHED = ("actor", "action", "subject", "request")
_TABLE = Table(
    "web:audit-list",
    (Orders("Record"),),
    search=Field("subject", "Subject", placeholder="Subject: namespace/key, thread or run"),
    menu=(
        Field("actor", "Actor"),
        Field("action", "Action", placeholder="entry.put", suggestions=sorted(VERBS)),
        Field("since", "From, UTC", type="datetime-local"),
        Field("until", "To, UTC", type="datetime-local"),
    ),
    address=(Field("request", "Request"),),
    cursor="before",
)


@dataclass(frozen=True)
class AuditLine:
    """One row of the audit log. `diff_url` shows what a write changed in its entry."""

    row: AuditRow
    sentence: ChangeSentence
    diff_url: str
    history_url: str


@dataclass(frozen=True)
class AuditGroup:
    """The audit rows of one request that are on this page. `cut`: another page may have more."""

    acts: list[AuditLine]
    url: str
    cut: bool = False

    @property
    def first(self) -> AuditRow:
        return self.acts[0].row

    @property
    def wrote_entries(self) -> bool:
        return any(act.diff_url for act in self.acts)


@page(role=Role.ADMIN, replica=True)
def audit_list(request: Request) -> HttpResponse:
    filters, rows, table = _TABLE.load(request, _find)
    newer, older = bool(table["pager"]["first"]), bool(table["pager"]["next"])
    context = {
        **table,
        "filters": filters,
        "live": live_prefix(filters["action"]),
        "groups": _group(request.actor, rows, newer=newer, older=older),
        "count": _count(request.actor, filters, rows, table),
        "window": WINDOW,
        **snippets.both("GET", "audit", call="audit()"),
    }
    return render_list(request, "audit/list.html", context, part="audit-table")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[AuditRow], str]:
    """A page of rows, newest first, and the URL of the next page."""

    def url(before: int) -> str:
        return with_query(reverse(name), **filters, before=before)

    rows = _in_period(request.actor, filters)
    if before := paging.whole_number(request, "before"):
        rows = rows.filter(pk__lt=before)
    end = rows.nth_newest(WINDOW) if _searches(filters) else None
    if end is not None:
        rows = rows.filter(pk__gte=end)
    rows = matching(rows, filters, actor="actor_name", request="request_id")
    if filters["action"]:
        rows = rows.of_action(filters["action"])
    if filters["subject"]:
        rows = rows.about(filters["subject"])
    acts, next_url = paging.cut(rows.order_by("-pk"), PAGE, lambda last: url(last.pk))
    return acts, next_url or (url(end) if end else "")


def _searches(filters: dict[str, str]) -> bool:
    return any(filters[name] for name in _SEARCHED)


def _in_period(actor: Actor, filters: dict[str, str]) -> AuditQuerySet:
    rows = AuditRow.objects.visible_to(actor)
    owner = {"workspace_id": actor.workspace_id}
    if filters["since"]:
        rows = rows.since(paging.read_moment("since", filters["since"]), owner)
    if filters["until"]:
        rows = rows.until(paging.read_moment("until", filters["until"]), owner)
    return rows


def _count(
    actor: Actor, filters: dict[str, str], rows: Sequence[AuditRow], table: dict[str, Any]
) -> str:
    """The number of matching rows, counted up to a limit; "" if it is not found by an index."""
    if not rows or (_searches(filters) and any(table["pager"].values())):
        return ""
    return count_rows(
        table, rows, lambda: _in_period(actor, filters).order_by("-pk"), "record,records"
    )


def _group(actor: Actor, rows: Sequence[AuditRow], *, newer: bool, older: bool) -> list[AuditGroup]:
    """The rows grouped by request, in the order of the newest row of each. `newer` and `older`:
    whether there are rows before the first and after the last one."""
    groups: dict[str, AuditGroup] = {}
    ends = (rows[0].pk if rows and newer else None, rows[-1].pk if rows and older else None)
    sentences = [describe_change(row, row.action, row.actor_name) for row in rows]
    for row, sentence in zip(rows, add_differences(actor, rows, sentences), strict=True):
        name = row.request_id or f"row {row.pk}"
        # The rows of a request are close together, so the link starts the search near them and not
        # at the newest row.
        near = row.pk + WINDOW // 2
        url = with_query(reverse("web:audit-list"), request=row.request_id, before=near)
        group = groups.setdefault(name, AuditGroup([], url if row.request_id else ""))
        group.acts.append(_act(row, sentence))
        if row.pk in ends:
            groups[name] = replace(group, cut=True)
    return list(groups.values())


def _act(row: AuditRow, sentence: ChangeSentence) -> AuditLine:
    if not (row.action.startswith("entry.") and row.key and row.version):
        return AuditLine(row, sentence, "", "")
    between = f"{row.version - 1}..{row.version}" if row.version > 1 else ""
    history = entry_url(row.namespace, row.key, tab="history", diff=between)
    return AuditLine(row, sentence, reverse("web:audit-diff", args=[row.pk]), history)


@page(role=Role.ADMIN, replica=True)
def audit_diff(request: Request, pk: int) -> HttpResponse:
    """What a write changed in its entry, as a fragment that is opened below its row."""
    row = AuditRow.objects.visible_to(request.actor).filter(pk=pk).first()
    if row is None or not (row.key and row.version):
        raise NotFound(f"audit record {pk} is not a write to an entry")
    kept = dict(
        EntryRevision.objects.visible_to(request.actor)
        .of_key(row.namespace, row.key)
        .filter(version__in=[row.version - 1, row.version])
        .values_list("version", "value")
    )
    # A deleted version and version 0 have no value; the difference treats both as null.
    kept.setdefault(0, "null")
    context: dict[str, Any] = {"row": row, "rows": None}
    if row.version in kept and row.version - 1 in kept:
        before, after = (values.load(kept[row.version - back] or "null") for back in (1, 0))
        context["rows"] = diffs.rows(before, after)
    return render(request, "audit/diff.html", context, part="audit-diff")


urlpatterns = [
    path("audit", audit_list, name="audit-list"),
    *table_paths("audit", _TABLE, _find, contract.AuditRow.of, role=Role.ADMIN),
    path("audit/<int:pk>/diff", audit_diff, name="audit-diff"),
]
