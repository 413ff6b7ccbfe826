"""Which requests belong to this cell, for the load balancer in front of several cells
(docs/scaling.md). The command `cells` writes its files.

A token begins with the name of the cell in which it was created, and requests follow this name. The
exceptions are tokens of workspaces that were moved to another cell, and tokens that are older than
the setting CELL.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F, Q, Value
from django.db.models.functions import Concat

from state_admin.models import ApiToken
from state_admin.models.access import TOKEN_PREFIX

from .errors import Invalid

# Ends the name of the cell. Neither names nor random parts of tokens contain it.
_END = "-"


def mark_cell(lookup: str) -> str:
    """The public part of a new token, with the name of this cell if it has one."""
    return f"{settings.CELL}{_END}{lookup}" if settings.CELL else lookup


def is_elsewhere(moved_to: str) -> bool:
    """Whether another cell serves a workspace. `moved_to`: its column."""
    return moved_to not in ("", settings.CELL)


def list_token_routes() -> dict[str, str]:
    """The cells of tokens, by prefixes of the tokens. The longest match takes precedence. Raises Invalid
    if CELL is not set."""
    if not settings.CELL:
        raise Invalid("CELL is not set", hint="Set CELL to a name for this cell.")
    moved = ~Q(workspace__moved_to="")
    created_there = Q(lookup__startswith=Concat(F("workspace__moved_to"), Value(_END)))
    exceptions = ApiToken.objects.live().filter(
        moved & ~created_there | ~moved & ~Q(lookup__contains=_END)
    )
    rows = exceptions.order_by("lookup").values_list("lookup", "workspace__moved_to")
    return {
        f"{TOKEN_PREFIX}_{settings.CELL}{_END}": settings.CELL,
        **{f"{TOKEN_PREFIX}_{lookup}_": cell or settings.CELL for lookup, cell in rows},
    }


def list_host_routes() -> dict[str, str]:
    """The cells of pages, by host name."""
    return {urlsplit(settings.SITE_URL).hostname or "": settings.CELL}
