"""Saves, shares and deletes named views of lists, and sets a user's default view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from state_admin.domain.access import Actor, Role
from state_admin.models import DefaultView, SavedView, ViewPage, database

from . import journal
from .actors import require
from .errors import Forbidden, Invalid, NotFound, QuotaExceeded

MOST: Final = 100
LONGEST_QUERY: Final = 2000


@dataclass(frozen=True)
class View:
    """A saved view for one user. `editable`: the user may delete it. `default`: the list opens with
    it for this user."""

    id: int
    page: ViewPage
    name: str
    query: str
    shared: bool
    owner: str
    editable: bool
    default: bool


def list_views(actor: Actor, page: ViewPage) -> list[View]:
    """Return the actor's own and the shared views of a list, by name. One query."""
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
    """Save `query` under a name. The actor's view with that name is replaced. Sharing requires the
    role editor and is audited; private views are not.

    Raises Invalid for an empty name and for a name or query that is too long, and QuotaExceeded
    beyond MOST views per user.
    """
    name = " ".join(name.split())
    if not name or len(name) > 64 or "\0" in name:
        raise Invalid("the name of a view must have 1 to 64 characters")
    if len(query) > LONGEST_QUERY:
        raise Invalid(f"the filters of a view must have at most {LONGEST_QUERY:,} characters")
    if shared:
        require(actor, Role.EDITOR)
    with transaction.atomic():
        database.lock("saved views", actor.workspace_id)
        mine = SavedView.objects.filter(workspace_id=actor.workspace_id, owner_id=int(actor.id))
        old = mine.filter(page=page, name=name).select_for_update().first()
        if old is None and mine.count() >= MOST:
            raise QuotaExceeded(
                "quota exceeded: saved views",
                hint=f"A user can save at most {MOST} views. Delete one first.",
            )
        if old and old.shared and not shared:
            # It must not remain the default of users who can no longer see it.
            DefaultView.objects.filter(view=old).exclude(user_id=int(actor.id)).delete()
        view, _ = SavedView.objects.update_or_create(
            workspace_id=actor.workspace_id,
            owner_id=int(actor.id),
            page=page,
            name=name,
            defaults={"query": query, "shared": shared},
        )
        if shared or (old and old.shared):
            detail = {"page": str(page), "query": query, "shared": shared}
            journal.record(actor, [journal.Trace("saved_view.put", key=name, detail=detail)])
    return view


def delete_view(*, actor: Actor, view_id: int) -> str:
    """Delete a view and return its name. Admins may also delete the shared views of others. Raises
    NotFound and Forbidden."""
    with transaction.atomic():
        row = _find(actor, view_id)
        if not _may_change(actor, row):
            raise Forbidden(
                "the view belongs to another user",
                hint=f"Ask {row.owner.get_username()} or an admin.",
            )
        if row.shared:
            detail = {"page": row.page, "query": row.query}
            journal.record(actor, [journal.Trace("saved_view.delete", key=row.name, detail=detail)])
        row.delete()
    return row.name


def choose_default(*, actor: Actor, view_id: int, chosen: bool = True) -> str:
    """Set (or, with `chosen` False, unset) a view as the actor's default for its list. Returns its
    name. Not audited, because it affects only the actor. Raises NotFound."""
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
