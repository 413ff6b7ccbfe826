"""The audit log: who did what, one card per request, as far back as audit rows are retained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
from .changes import VERBS, ChangeSentence, add_differences, describe_change
from .htmx import Request, render, render_list
from .lists import list_paths
from .tables import COUNTED, Field, chips_of, format_row_count

PAGE = 50
# How many rows one page searches for rows that match its filters.
WINDOW = 20_000
_FIELDS = ("actor", "action", "subject", "request", "since", "until")


@dataclass(frozen=True)
class AuditFilters:
    """The filters in the query string. `before` is the cursor: the last row of the previous
    page."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    request: str = ""
    since: str = ""
    until: str = ""
    before: int | None = None

    @property
    def any(self) -> bool:
        return replace(self, before=None) != AuditFilters()

    @property
    def searches(self) -> bool:
        """Whether the rows must be searched. The period is found by their ids."""
        return bool(self.actor or self.action or self.subject or self.request)

    def menu(self) -> list[Field]:
        return [
            Field("actor", "Actor", self.actor),
            Field(
                "action",
                "Action",
                self.action,
                placeholder="entry.put",
                suggestions=sorted(VERBS),
            ),
            Field("since", "From, UTC", self.since, type="datetime-local"),
            Field("until", "To, UTC", self.until, type="datetime-local"),
        ]

    @property
    def live_actions(self) -> str:
        return f"{self.action}." if self.action and "." not in self.action else self.action

    def url(self, name: str = "web:audit-list", **changes: Any) -> str:
        return with_query(reverse(name), **asdict(replace(self, **changes)))


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


def read_filters(request: Request) -> AuditFilters:
    texts = {name: paging.text(request, name) for name in _FIELDS}
    return AuditFilters(**texts, before=paging.whole_number(request, "before"))


@page(role=Role.ADMIN, replica=True)
def audit_list(request: Request) -> HttpResponse:
    filters = read_filters(request)
    rows, next_url = _find(request, filters, "web:audit-list")
    menu = filters.menu()
    context = {
        "filters": filters,
        "search": Field(
            "subject",
            "Subject",
            filters.subject,
            placeholder="Subject: namespace/key, thread or run",
        ),
        "menu": menu,
        "address": [("request", filters.request)] if filters.request else [],
        "chips": chips_of(
            [*menu, Field("request", "Request", filters.request)],
            lambda name: filters.url(before=None, **{name: ""}),
        ),
        "groups": _group(
            request.actor, rows, newer=filters.before is not None, older=bool(next_url)
        ),
        "count": _count(request.actor, filters, len(rows), more=bool(next_url)),
        "window": WINDOW,
        "root": reverse("web:audit-list"),
        "current_url": filters.url(before=None),
        "json_url": filters.url("web:audit-list-json"),
        "pager": {"first": filters.url(before=None) if filters.before else "", "next": next_url},
        **snippets.both("GET", "audit", call="audit()"),
    }
    return render_list(request, "audit/list.html", context, part="audit-table", url=filters.url())


def _find(request: Request, filters: AuditFilters, name: str) -> tuple[Sequence[AuditRow], str]:
    """A page of rows, newest first, and the URL of the next page."""
    rows = _in_period(request.actor, filters)
    if filters.before:
        rows = rows.filter(pk__lt=filters.before)
    end = None
    if filters.searches:
        end = rows.nth_newest(WINDOW)
        if end is not None:
            rows = rows.filter(pk__gte=end)
    if filters.actor:
        rows = rows.filter(actor_name=filters.actor)
    if filters.action:
        rows = rows.of_action(filters.action)
    if filters.subject:
        rows = rows.about(filters.subject)
    if filters.request:
        rows = rows.filter(request_id=filters.request)
    acts, next_url = paging.cut(
        rows.order_by("-pk"), PAGE, lambda last: filters.url(name, before=last.pk)
    )
    return acts, next_url or (filters.url(name, before=end) if end else "")


def _in_period(actor: Actor, filters: AuditFilters) -> AuditQuerySet:
    rows = AuditRow.objects.visible_to(actor)
    owner = {"workspace_id": actor.workspace_id}
    if filters.since:
        rows = rows.since(paging.read_moment("since", filters.since), owner)
    if filters.until:
        rows = rows.until(paging.read_moment("until", filters.until), owner)
    return rows


def _count(actor: Actor, filters: AuditFilters, found: int, *, more: bool) -> str:
    """The number of matching rows, counted up to a limit; "" if it is not found by an index."""
    if more or filters.before:
        if filters.searches:
            return ""
        found = _in_period(actor, filters).order_by("-pk")[: COUNTED + 1].count()
    return format_row_count(found, "record,records") if found else ""


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


def _items(request: Request, name: str) -> tuple[list[contract.AuditRow], str]:
    rows, next_url = _find(request, read_filters(request), name)
    return [contract.AuditRow.of(row) for row in rows], next_url


urlpatterns = [
    path("audit", audit_list, name="audit-list"),
    *list_paths("audit", "audit-list", _items, role=Role.ADMIN),
    path("audit/<int:pk>/diff", audit_diff, name="audit-diff"),
]
