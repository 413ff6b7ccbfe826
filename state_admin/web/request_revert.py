"""Reverts a request: the entries that it wrote get the values they had before. Also the Undo of
bulk actions, which reverts several requests.

As in a bulk action (entry_bulk.py), each request of the browser changes up to a thousand entries. A
page shows the progress and lists the skipped entries. The revert can be undone, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services import bulk, reverts
from state_admin.services.bulk import BulkResult, SelectedEntry
from state_admin.services.errors import BadRequest
from state_admin.services.reverts import find_written
from state_admin.templatetags.ui import plural

from .actors import page
from .confirm import PREVIEW, Confirm, ask
from .entry_bulk import (
    MOST_LISTED,
    MOST_REQUESTS,
    list_own_request,
    read_requests,
    read_skipped,
    return_url,
    show_step,
)
from .htmx import Request, Undo, see_other, toast
from .paging import read_required_number

_Action = Literal["revert", "tag", "untag"]
_PAST: Final = {"revert": "Reverted", "tag": "Tagged", "untag": "Untagged"}


@dataclass(frozen=True)
class Revert:
    """A revert of `requests`, one after the other, each with the id of an audit row. `action`:
    `tag` and `untag` add or remove a tag, because the history does not contain tags. `sent`: the
    requests that this revert has sent so far; its Undo reverts them."""

    action: _Action
    tag: str
    back: str
    requests: Sequence[Sequence[Any]]
    reason: str = ""
    done: int = 0
    skipped: Sequence[Sequence[str]] = ()
    more_skipped: int = 0
    sent: Sequence[Sequence[Any]] = ()
    total: int = 0
    ttl: int = 0

    @property
    def root(self) -> str:
        return reverse("web:request-revert")

    def fields(self) -> list[tuple[str, str | int]]:
        return [
            ("action", self.action),
            ("back", self.back),
            ("requests", values.dump([list(each) for each in self.requests])),
            ("sent", values.dump([list(each) for each in self.sent])),
        ]


@require_POST
@page(role=Role.EDITOR)
def request_revert(request: Request) -> HttpResponse:
    order = _order(request)
    written = find_written(request.actor, *order.requests[0]) if order.requests else []
    if "confirmed" in request.POST and order.requests:
        return _run(request, order, written)
    if not written:
        toast(
            request, "The request changed no entry, or its audit records were removed", kind="note"
        )
        return see_other(request, order.back)
    return ask(request, _question(order, written))


def _order(request: Request) -> Revert:
    post = request.POST
    action = post.get("action", "revert")
    if action not in ("revert", "tag", "untag"):
        raise BadRequest("unknown action")
    requests = read_requests(post.get("requests", "[]"))
    if "request" in post:
        near = read_required_number("near", post.get("near", "0"))
        requests = read_requests(values.dump([[post["request"], near]]))
    return Revert(
        action=cast(_Action, action),
        tag=post.get("tag", ""),
        back=return_url(post),
        requests=requests[:MOST_REQUESTS],
        reason=post.get("reason", "").strip()[:500],
        done=read_required_number("done", post.get("done", "0")),
        skipped=read_skipped(post.get("skipped", "[]")),
        more_skipped=read_required_number("more_skipped", post.get("more_skipped", "0")),
        sent=read_requests(post.get("sent", "[]")),
        total=read_required_number("total", post.get("total", "0")),
    )


def _question(order: Revert, written: Sequence[WrittenEntry]) -> Confirm:
    names = [f"{each.namespace}/{each.key}" for each in written]
    verb = f"Revert {plural(len(names), 'entry,entries')}"
    return Confirm(
        title=f"{verb}?",
        verb=verb,
        url=order.root,
        back=order.back,
        lines=[
            "Each entry gets back the value and expiry it had before this request, as a new version."
            " Entries that were created are deleted.",
            "Entries that were written since then are skipped. You can undo this.",
        ],
        preview=names[:PREVIEW],
        more=max(0, len(names) - PREVIEW),
        fields=[("confirmed", "yes"), ("total", len(names)), *order.fields()],
    )


def _run(request: Request, order: Revert, written: Sequence[WrittenEntry]) -> HttpResponse:
    """Revert up to a thousand entries of the first of the remaining requests. Show the progress or,
    at the end, the skipped entries."""
    start = read_required_number("after", request.POST.get("after", "0"))
    part = written[start : start + bulk.MOST]
    result = _change(request, order, part)
    end, rest = start + len(part), order.requests
    if end >= len(written):
        end, rest = 0, rest[1:]
    skipped = [*order.skipped, *(list(each) for each in result.skipped)]
    order = replace(
        order,
        requests=rest,
        done=order.done + len(result.done),
        sent=[*order.sent, *list_own_request(request.actor)][: MOST_REQUESTS + 1],
        skipped=skipped[:MOST_LISTED],
        more_skipped=order.more_skipped + max(0, len(skipped) - MOST_LISTED),
    )
    past, after = _PAST[order.action], str(end) if rest else ""
    return show_step(request, order, past=past, after=after, undo=_undo(order))


def _change(request: Request, order: Revert, written: Sequence[WrittenEntry]) -> BulkResult:
    reason = order.reason or f"undo of request {order.requests[0][0]}"
    if order.action == "revert":
        return reverts.revert_entries(actor=request.actor, written=written, reason=reason)
    seen = [SelectedEntry(each.namespace, each.key, each.last) for each in written]
    return bulk.change_entries(
        actor=request.actor, action=order.action, seen=seen, tag=order.tag, reason=reason
    )


def _undo(order: Revert) -> Undo | None:
    if not 0 < len(order.sent) <= MOST_REQUESTS:
        return None
    again = {"revert": "revert", "tag": "untag", "untag": "tag"}
    fields: dict[str, str | int] = {
        "action": again[order.action],
        "tag": order.tag,
        "back": order.back,
        "requests": values.dump([list(each) for each in order.sent]),
        "total": order.done,
        "confirmed": "yes",
    }
    return Undo(order.root, fields)


urlpatterns = [path("requests/revert", request_revert, name="request-revert")]
