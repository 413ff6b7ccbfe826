"""Saved views of lists: kept, shared, chosen as the one to begin with, forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from state_admin.domain.access import Actor, Role
from state_admin.models import DefaultView, SavedView, ViewPage

from . import journal
from .actors import require
from .errors import Forbidden, Invalid, NotFound, QuotaExceeded

MOST: Final = 100
LONGEST_QUERY: Final = 2000


@dataclass(frozen=True)
class View:
    """A view as one person sees it. `editable`: they may delete it; `default`: their list opens so."""

    id: int
    page: ViewPage
    name: str
    query: str
    shared: bool
    owner: str
    editable: bool
    default: bool


def list_views(actor: Actor, page: ViewPage) -> list[View]:
    """Their own and the shared ones, by name. One query."""
    default = DefaultView.objects.filter(view=OuterRef("pk"), user_id=int(actor.id))
    rows: QuerySet[Any] = SavedView.objects.visible_to(actor).filter(page=page)
    rows = rows.select_related("owner").annotate(chosen=Exists(default)).order_by("name", "pk")
    return [
        View(
            id=row.pk,
            page=page,
            name=row.name,
            query=row.query,
            shared=row.shared,
            owner=row.owner.get_username(),
            editable=_may_change(actor, row),
            default=row.chosen,
        )
        for row in rows[: 2 * MOST]
    ]


def save_view(
    *, actor: Actor, page: ViewPage, name: str, query: str, shared: bool = False
) -> SavedView:
    """Keep `query` under a name; a view of theirs with that name is replaced. Sharing is an
    editor's, and leaves a trail; a private view is nobody else's business and leaves none.

    Invalid: a name or query that is empty or too long. QuotaExceeded beyond MOST of one person.
    """
    name = " ".join(name.split())
    if not name or len(name) > 64 or "\0" in name:
        raise Invalid("the name of a view must have 1 to 64 characters")
    if len(query) > LONGEST_QUERY:
        raise Invalid(f"the filters of a view must have at most {LONGEST_QUERY:,} characters")
    if shared:
        require(actor, Role.EDITOR)
    with transaction.atomic():
        mine = SavedView.objects.filter(workspace_id=actor.workspace_id, owner_id=int(actor.id))
        old = mine.filter(page=page, name=name).select_for_update().first()
        if old is None and mine.count() >= MOST:
            raise QuotaExceeded(
                "quota exceeded: saved views",
                hint=f"A user can save at most {MOST} views. Delete one first.",
            )
        if old and old.shared and not shared:
            # Those who begin with it must not come to a page that they no longer see.
            DefaultView.objects.filter(view=old).exclude(user_id=int(actor.id)).delete()
        view, _ = SavedView.objects.update_or_create(
            workspace_id=actor.workspace_id,
            owner_id=int(actor.id),
            page=page,
            name=name,
            defaults={"query": query, "shared": shared},
        )
        if shared or (old and old.shared):
            detail = {"page": str(page), "name": name, "query": query, "shared": shared}
            journal.record(actor, [journal.Trace("saved_view.put", detail=detail)])
    return view


def delete_view(*, actor: Actor, view_id: int) -> str:
    """Forget a view; answers its name. Of others, an admin may delete a shared one. NotFound,
    Forbidden."""
    with transaction.atomic():
        row = _find(actor, view_id)
        if not _may_change(actor, row):
            raise Forbidden(
                "the view belongs to another user",
                hint=f"Ask {row.owner.get_username()} or an admin.",
            )
        if row.shared:
            detail = {"page": row.page, "name": row.name, "query": row.query}
            journal.record(actor, [journal.Trace("saved_view.delete", detail=detail)])
        row.delete()
    return row.name


def choose_default(*, actor: Actor, view_id: int, chosen: bool = True) -> str:
    """Make a view the one with which its list opens for the actor, or no longer; answers its name.
    Theirs alone, so it leaves no trail. NotFound."""
    with transaction.atomic():
        row = _find(actor, view_id)
        whose: dict[str, Any] = {
            "workspace_id": actor.workspace_id,
            "user_id": int(actor.id),
            "page": row.page,
        }
        if chosen:
            DefaultView.objects.update_or_create(**whose, defaults={"view": row})
        else:
            DefaultView.objects.filter(**whose, view=row).delete()
    return row.name


def _find(actor: Actor, view_id: int) -> SavedView:
    rows = SavedView.objects.visible_to(actor).select_related("owner")
    row = rows.select_for_update(of=("self",)).filter(pk=view_id).first()
    if row is None:
        raise NotFound("view not found")
    return row


def _may_change(actor: Actor, row: SavedView) -> bool:
    return row.owner_id == int(actor.id) or (row.shared and actor.may(Role.ADMIN))
