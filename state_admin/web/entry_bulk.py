"""Deleting the ticked entries of the browser, and taking that back."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.services.entries import Precondition, delete_entry
from state_admin.services.errors import BadRequest, Problem

from .actors import page
from .confirm import PREVIEW, Confirm, ask
from .entry_undo import undelete
from .htmx import Request, Undo, see_other, toast

_MOST = 1000
_MOST_UNDOABLE = 50

Seen = tuple[int, str, str]  # version, namespace, key
Made = list[str | int]  # namespace, key, version of the deletion


@require_POST
@page(role=Role.EDITOR)
def entry_delete_many(request: Request) -> HttpResponse:
    """Delete what was ticked: first the question, then each at the version that was seen."""
    texts = request.POST.getlist("entry")[:_MOST]
    chosen = [_chosen(text) for text in texts]
    back = _back(request)
    if not chosen:
        toast(request, "Tick the entries to delete first", kind="note")
        return see_other(request, back, part="entry-browser")
    if "confirmed" not in request.POST:
        return ask(request, _question(chosen, texts, back), part="entry-browser")
    deleted, left = _delete(request, chosen)
    text = f"Deleted {_count(len(deleted))}"
    if left:
        text += f"; left {left:,} alone that changed since you looked"
    undo = None
    if deleted and len(deleted) <= _MOST_UNDOABLE:
        fields = {"entries": values.dump(deleted), "back": back}
        undo = Undo(reverse("web:entry-undelete-many"), fields)
    toast(request, text, undo=undo, kind="failed" if left else "done")
    return see_other(request, back, part="entry-browser")


@require_POST
@page(role=Role.EDITOR)
def entry_undelete_many(request: Request) -> HttpResponse:
    """Bring back what was just deleted, each unless someone wrote there since."""
    back = _back(request)
    restored = refused = 0
    for namespace, key, version in _made(request.POST.get("entries", "")):
        try:
            undelete(request.actor, str(namespace), str(key), int(version))
        except Problem:
            refused += 1
        else:
            restored += 1
    text = f"Brought back {_count(restored)}"
    if refused:
        text += f"; {_count(refused)} changed since and stay as they are"
    toast(request, text, kind="failed" if refused else "done")
    return see_other(request, back, part="entry-browser")


def _question(chosen: Sequence[Seen], texts: Sequence[str], back: str) -> Confirm:
    names = [f"{namespace}/{key}" for _, namespace, key in chosen]
    return Confirm(
        title=f"Delete {_count(len(chosen))}?",
        verb=f"Delete {_count(len(chosen))}",
        url=reverse("web:entry-delete-many"),
        back=back,
        lines=["Their history stays, and each can be restored from it."],
        preview=names[:PREVIEW],
        more=max(0, len(names) - PREVIEW),
        fields=[("confirmed", "yes"), ("back", back), *(("entry", text) for text in texts)],
    )


def _delete(request: Request, chosen: Sequence[Seen]) -> tuple[list[Made], int]:
    """Delete each that is still as it was seen; answers what was made, and how many were left."""
    deleted: list[Made] = []
    left = 0
    for version, namespace, key in chosen:
        try:
            made = delete_entry(
                actor=request.actor,
                namespace=namespace,
                key=key,
                when=Precondition(version),
                reason=request.POST.get("reason", ""),
            )
        except Problem:
            left += 1
        else:
            deleted.append([namespace, key, made])
    return deleted, left


def _chosen(text: str) -> Seen:
    version, _, place = text.partition(" ")
    namespace, _, key = place.partition("/")
    if not version.isdecimal() or len(version) > 18 or not namespace or not key:
        raise BadRequest("not an entry of the list")
    return int(version), namespace, key


def _made(text: str) -> list[Made]:
    try:
        made = values.read(text).value
    except (values.MalformedJSON, values.RefusedJSON) as bad:
        raise BadRequest("not a list of entries") from bad
    shape = [str, str, int]
    if not isinstance(made, list) or len(made) > _MOST_UNDOABLE:
        raise BadRequest("not a list of entries")
    if any(not isinstance(each, list) or list(map(type, each)) != shape for each in made):
        raise BadRequest("not a list of entries")
    return made


def _back(request: Request) -> str:
    """The address of the list the person came from; only ever that page."""
    given = request.POST.get("back", "")
    home = reverse("web:entry-list")
    return given if given == home or given.startswith(home + "?") else home


def _count(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


urlpatterns = [
    path("entries/delete", entry_delete_many, name="entry-delete-many"),
    path("entries/undelete", entry_undelete_many, name="entry-undelete-many"),
]
