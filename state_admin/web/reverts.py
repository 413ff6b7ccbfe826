"""Reverts: the confirmation, the start, the list, and the page of a job with its progress and result.

The Undo of a bulk action and of a revert, *Revert this request* of the audit log and of the changes, and the
form of a revert to a moment start one. A small one has ended when the response is sent; the page of a larger
one follows the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.urls import path, reverse

from state_admin.contract import reverts as contract
from state_admin.domain.access import Role
from state_admin.domain.moments import readable
from state_admin.domain.scopes import ScopeKind
from state_admin.models import Revert, RevertStatus
from state_admin.models.reverts import UNFINISHED
from state_admin.services import revert_jobs
from state_admin.services.errors import BadRequest, Conflict, Problem
from state_admin.services.restores import Filters
from state_admin.templatetags.ui import plural

from . import paging, snippets
from .actors import FORM, POST, page
from .addresses import entry_url, list_url_of, with_query
from .confirm import Confirm, ask, reason_of
from .creation import Creation, show_form
from .htmx import Request, Undo, render, render_list, see_other, toast
from .lists import table_paths
from .paging import BY_AGE, downwards, upwards
from .tables import Field, Orders, Table, choices_of, matching

PAGE = 100
_TABLE = Table(
    "web:revert-list",
    (
        Orders("Target"),
        Orders("Status", upwards("status", "status", read=str)),
        Orders("Reverted", downwards("reverted", "reverted"), numeric=True),
        Orders("Skipped", downwards("skipped", "skipped"), numeric=True),
        Orders("Requested by", upwards("requested-by", "actor_name", read=str)),
        Orders("Requested", BY_AGE),
    ),
    search=Field("request", "Request", placeholder="Request id"),
    menu=(Field("status", "Status", choices=choices_of(RevertStatus.values)),),
)
_TO_MOMENT = Creation("Reverts", "web:revert-list", "revert-table", "Revert to a moment", "Preview")


class MomentForm(forms.Form):
    """The moment, and the entries to revert to it: one filter is required."""

    at = forms.CharField(
        label="Moment, UTC",
        max_length=64,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}),
        help_text="All writes since then to the entries that match every filter below are reverted. At least one filter is required.",
    )
    namespace = forms.CharField(required=False, max_length=128)
    key = forms.CharField(required=False, max_length=512, strip=False)
    # Not `prefix`, which is an attribute of every form.
    begins = forms.CharField(required=False, max_length=512, strip=False, label="Key begins with")
    scope_kind = forms.ChoiceField(
        required=False, label="Scope", choices=[("", "any"), *((kind, kind) for kind in ScopeKind)]
    )

    def clean(self) -> dict[str, Any]:
        typed = self.cleaned_data
        if not any(text for name, text in typed.items() if name != "at"):
            raise forms.ValidationError("Fill in at least one filter.")
        return typed

    def read(self) -> tuple[datetime, Filters]:
        """What the form selects. Raises BadRequest if the moment is not a time."""
        typed = self.cleaned_data
        return paging.read_moment("at", typed["at"]), Filters(
            namespace=typed["namespace"],
            key=typed["key"],
            prefix=typed["begins"],
            scope_kind=ScopeKind(typed["scope_kind"]) if typed["scope_kind"] else None,
        )


def revert_url(job: Revert, back: str = "") -> str:
    return with_query(reverse("web:revert-detail", args=[job.public_id]), back=back)


def undo_of_request(request_id: str, back: str, near: int | str = "") -> Undo:
    """The Undo of what a request wrote to entries. `near`: the id of one of its audit rows, if known."""
    fields: dict[str, str | int] = {"request": request_id, "near": near, "back": back}
    return Undo(reverse("web:revert-start"), {**fields, "confirmed": "yes"})


@page(replica=True)
def revert_list(request: Request) -> HttpResponse:
    _, jobs, table = _TABLE.load(request, _find)
    context = {
        **table,
        "rows": jobs,
        **snippets.both(
            "POST",
            "reverts",
            '{"request_id": "import-7"}',
            call='reverts.request("import-7")',
        ),
        "moment_url": reverse("web:revert-new") if request.actor.may(Role.EDITOR) else "",
    }
    return render_list(request, "reverts/list.html", context, part="revert-table")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[Revert], str]:
    rows = Revert.objects.visible_to(request.actor)
    rows = matching(rows, filters, request="target", status="status")
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


@page(methods=POST, role=Role.EDITOR)
def revert_start(request: Request) -> HttpResponse:
    post = request.POST
    request_id, back = post.get("request", ""), return_url(post)
    near = paging.read_number("near", post.get("near", ""))
    if post.get("change"):
        request_id, near = revert_jobs.find_request(request.actor, *_read_change(post["change"]))
        if not request_id:
            toast(
                request,
                "This version has no request id. Restore the version before it from the history instead",
                kind="note",
            )
            return see_other(request, back)
    if not request_id:
        raise BadRequest("request is required")
    if "confirmed" not in post:
        return _ask(request, request_id, near or 0, back)
    job = revert_jobs.start_revert(
        actor=request.actor,
        request_id=request_id,
        near=near,
        reason=reason_of(request) or f"undo of request {request_id}",
    )
    return _show_result(request, job, back)


def _show_result(request: Request, job: Revert, back: str) -> HttpResponse:
    if job.status == RevertStatus.DONE:
        text = f"Reverted {plural(job.reverted, 'entry,entries')}"
        if job.skipped:
            toast(request, f"{text}; skipped {job.skipped:,}", undo=_undo(job, back), kind="failed")
        else:
            toast(request, text, undo=_undo(job, back))
            return see_other(request, back, part="entry-browser")
    elif job.status == RevertStatus.FAILED:
        toast(request, f"Revert failed: {job.detail}", kind="failed")
    return see_other(request, revert_url(job, back))


@page(methods=FORM, role=Role.EDITOR)
def revert_new(request: Request) -> HttpResponse:
    """The form of a revert to a moment, a preview, and the start."""
    if request.method != "POST":
        initial = {name: paging.text(request, name) for name in MomentForm.base_fields}
        return show_form(request, _TO_MOMENT, MomentForm(initial=initial))
    form = MomentForm(request.POST)
    if not form.is_valid():
        return show_form(request, _TO_MOMENT, form, status=422)
    actor, back = request.actor, reverse("web:revert-list")
    try:
        at, filters = form.read()
        if "confirmed" in request.POST:
            reason = reason_of(request)
            job = revert_jobs.start_revert(actor=actor, at=at, reason=reason, **filters)
            return _show_result(request, job, back)
        names, more = revert_jobs.preview_moment(actor=actor, at=at, **filters)
    except Problem as refused:
        form.add_error(None, refused.detail)
        return show_form(request, _TO_MOMENT, form, status=422)
    if not names and not more:
        form.add_error(None, "No matching entry was written since then")
        return show_form(request, _TO_MOMENT, form, status=422)
    verb = f"Revert {plural(len(names), 'entry,entries')}{' or more' if more else ''}"
    confirm = Confirm(
        title=f"{verb} to {readable(at)}?",
        verb=verb,
        back=back,
        lines=[
            "Each entry gets the value it had then, as a new version. Entries that did not exist then"
            " are deleted.",
            "Entries whose value is no longer kept, or that the schema refuses, are skipped, and so are"
            " those that are written again before the job reaches them. You can undo this.",
        ],
        names=names,
        fields=[*form.cleaned_data.items(), ("confirmed", "yes")],
    )
    response = ask(request, confirm)
    response["HX-Retarget"], response["HX-Reswap"] = "#dialog", "innerHTML"
    return response


def _read_change(text: str) -> tuple[str, str, int]:
    """The version of an entry that a button of the page of changes names: [namespace, key, version]."""
    refusal = "change must be the namespace, the key and the version of an entry"
    match paging.parse_json_field(text, refusal).value:
        case [str(namespace), str(key), int(version)] if not isinstance(version, bool):
            return namespace, key, version
    raise BadRequest(refusal)


def _ask(request: Request, request_id: str, near: int, back: str) -> HttpResponse:
    found, more = revert_jobs.preview_revert(actor=request.actor, request_id=request_id, near=near)
    if not found:
        text = "The request changed no entry, or its audit records were removed"
        toast(request, text, kind="note")
        return see_other(request, back)
    names = [f"{namespace}/{key}" for namespace, key in found]
    verb = f"Revert {plural(len(names), 'entry,entries')}{' or more' if more else ''}"
    confirm = Confirm(
        title=f"{verb}?",
        verb=verb,
        back=back,
        lines=[
            "Each entry gets back the value and expiry it had before this request, as a new version."
            " Entries that were created are deleted.",
            "Tags that a bulk action added are removed, and tags that it removed are added again. Other"
            " tags do not change.",
            "Entries that were written since then are skipped. You can undo this.",
        ],
        names=names,
        fields=list(undo_of_request(request_id, back, near).fields.items()),
    )
    return ask(request, confirm)


def _undo(job: Revert, back: str) -> Undo | None:
    return undo_of_request(job.public_id, back) if job.reverted else None


@page(replica=True)
def revert_detail(request: Request, revert_id: str) -> HttpResponse:
    job = revert_jobs.find_revert(request.actor, revert_id)
    back, after = return_url(request.GET), paging.whole_number(request, "after") or 0
    url = revert_url(job, back)
    rows = revert_jobs.skipped_entries(request.actor, job).filter(pk__gt=after).order_by("pk")
    skipped, next_url = paging.cut(rows, PAGE, lambda last: with_query(url, after=last.pk))
    edits, unfinished = request.actor.may(Role.EDITOR), job.status in UNFINISHED
    context = {
        "job": job,
        "back": back,
        "unfinished": unfinished,
        "can_cancel": edits and unfinished,
        "undo": None if unfinished or not edits else _undo(job, back),
        "skipped": [
            (entry_url(each.namespace, each.key), f"{each.namespace}/{each.key}", each.why)
            for each in skipped
        ],
        "pager": {"first": url if after else "", "next": next_url},
        "current_url": with_query(url, after=after or ""),
        "most_attempts": revert_jobs.MAX_ATTEMPTS,
    }
    return render(request, "reverts/detail.html", context, part="revert")


@page(methods=POST, role=Role.EDITOR)
def revert_cancel(request: Request, revert_id: str) -> HttpResponse:
    try:
        revert_jobs.cancel_revert(actor=request.actor, revert_id=revert_id)
        toast(request, "Revert cancelled")
    except Conflict as ended:
        toast(request, ended.detail, kind="note")
    job = revert_jobs.find_revert(request.actor, revert_id)
    return see_other(request, revert_url(job, return_url(request.POST)), part="revert")


def return_url(query: QueryDict) -> str:
    """The URL of the list that the user came from. Any other URL is replaced by that of the unfiltered
    list of entries."""
    names = ("entry", "audit", "change", "revert")
    return list_url_of(query, [reverse(f"web:{name}-list") for name in names])


urlpatterns = [
    path("reverts", revert_list, name="revert-list"),
    *table_paths("reverts", _TABLE, _find, contract.Revert.of),
    path("requests/revert", revert_start, name="revert-start"),
    path("reverts/+new", revert_new, name="revert-new"),
    path("reverts/<str:revert_id>", revert_detail, name="revert-detail"),
    path("reverts/<str:revert_id>/cancel", revert_cancel, name="revert-cancel"),
]
