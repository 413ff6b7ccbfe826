"""Actions on the selected rows of a list. As in the bulk operations of the API, each item is changed
in a transaction of its own, and the result of an item does not depend on the others.

Not here: those of the state browser, which also apply to all matching entries (entry_bulk.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.urls import URLPattern, path, reverse

from state_admin.contract.base import MAX_LIMIT
from state_admin.domain.access import Actor, Role
from state_admin.services.errors import BadRequest, Problem
from state_admin.templatetags.ui import plural

from .actors import POST, page
from .addresses import list_url_of
from .confirm import Choice, Confirm, ask, reason_of
from .htmx import Request, render, see_other, toast


@dataclass(frozen=True)
class Outlook:
    """What an action would do: the names of the items that it would change by their ids, in the order in
    which they are changed, and sentences about them. `seen`: by id, what the action has to find
    unchanged."""

    names: Mapping[str, str]
    lines: Sequence[str] = ()
    choices_label: str = ""
    choices: Sequence[Choice] = ()
    seen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BulkAction:
    """An action on several items. `do` changes the item of an id and returns how many items it changed;
    its other arguments are the reason, and the choice or, without one, what was `seen`. `only` says
    which items can be changed."""

    verb: str
    past: str
    only: str
    look: Callable[[Actor, Sequence[str]], Outlook]
    do: Callable[[Actor, str, str, str], int]
    kind: str = "danger"


@dataclass(frozen=True)
class BulkList:
    """A list whose rows can be selected. `name` is that of its URL, `part` the id of the element with its
    rows, `nouns` are the forms of an item, `url` is that of the page of an item."""

    name: str
    part: str
    nouns: str
    actions: Mapping[str, BulkAction]
    url: Callable[[str], str]
    role: Role = Role.EDITOR

    def bar(self, request: Request, back: str, **address: str) -> dict[str, Any] | None:
        """The context of components/_bulk_form.html on the page `back` of the list. None if the user may
        not use the actions."""
        if not request.actor.may(self.role):
            return None
        return {
            "url": reverse(f"web:{self.name}-bulk", kwargs=address),
            "back": back,
            "nouns": self.nouns.rpartition(",")[2],
            "actions": [(name, f"{act.verb}…") for name, act in self.actions.items()],
        }


def bulk_path(route: str, bulk_list: BulkList) -> URLPattern:
    """The URL of the actions: the first POST shows the confirmation, the second changes the items."""

    @page(methods=POST, role=bulk_list.role)
    def bulk(request: Request, **address: str) -> HttpResponse:
        post = request.POST
        action = bulk_list.actions.get(post.get("action", ""))
        if action is None:
            raise BadRequest("unknown action")
        ids = list(dict.fromkeys(post.getlist("item")))
        if len(ids) > MAX_LIMIT:
            raise BadRequest(f"at most {MAX_LIMIT} items at once, not {len(ids):,}")
        back = list_url_of(post, [reverse(f"web:{bulk_list.name}", kwargs=address)])
        if not ids:
            toast(request, f"Select {bulk_list.nouns.rpartition(',')[2]} first", kind="note")
            return see_other(request, back, part=bulk_list.part)
        if "confirmed" not in post:
            confirm = _describe(request, bulk_list, action, ids, back)
            return ask(request, confirm, part=bulk_list.part)
        return _run(request, bulk_list, action, ids, back)

    return path(route, bulk, name=f"{bulk_list.name}-bulk")


def _describe(
    request: Request, bulk_list: BulkList, action: BulkAction, ids: Sequence[str], back: str
) -> Confirm:
    outlook = action.look(request.actor, ids)
    names = list(outlook.names.values())
    if not names:
        return Confirm(
            title=f"Nothing to {action.verb.lower()}", verb="", back=back, lines=[f"{action.only}."]
        )
    lines = [*outlook.lines]
    if others := len(ids) - len(names):
        nouns = bulk_list.nouns.rpartition(",")[2]
        skipped = plural(others, "is skipped,are skipped")
        only = f"{action.only[0].lower()}{action.only[1:]}"
        lines.append(f"Of the {len(ids)} selected {nouns}, {skipped}: {only}.")
    verb = f"{action.verb} {plural(len(names), bulk_list.nouns)}"
    return Confirm(
        title=f"{verb}?",
        verb=verb,
        back=back,
        lines=lines,
        names=names,
        fields=[
            ("confirmed", "yes"),
            ("action", request.POST["action"]),
            ("back", back),
            *(("item", each) for each in outlook.names),
            *(("seen", outlook.seen[each]) for each in outlook.names if outlook.seen),
        ],
        choices_name="choice" if outlook.choices else "",
        choices_label=outlook.choices_label,
        choices=outlook.choices,
        kind=action.kind,
    )


def _run(
    request: Request, bulk_list: BulkList, action: BulkAction, ids: Sequence[str], back: str
) -> HttpResponse:
    """Change the items. Show those that were not changed with the reasons, else the list."""
    done, skipped = 0, []
    reason, choice = reason_of(request), request.POST.get("choice", "")
    seen = dict(zip(request.POST.getlist("item"), request.POST.getlist("seen"), strict=False))
    for each in ids:
        try:
            done += action.do(request.actor, each, reason, choice or seen.get(each, ""))
        except Problem as refused:
            skipped.append((bulk_list.url(each), each, refused.detail))
    title = f"{action.past} {plural(done, bulk_list.nouns)}"
    text = f"{title}; skipped {len(skipped):,}" if skipped else title
    toast(request, text, kind="failed" if skipped else "done")
    if not skipped:
        return see_other(request, back, part=bulk_list.part)
    context = {
        "title": title,
        "noun": bulk_list.nouns.partition(",")[0].capitalize(),
        "part": bulk_list.part,
        "skipped": skipped,
        "back": back,
    }
    return render(request, "bulk.html", context, part="bulk")
