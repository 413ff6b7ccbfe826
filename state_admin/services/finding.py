"""Finds one row of a table for a verb, and refuses invalid names and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from state_admin.domain import scopes
from state_admin.domain.access import Actor
from state_admin.domain.values import Fault
from state_admin.models import Plugin

from .errors import Conflict, Invalid, NotFound, Problem

_Row = TypeVar("_Row", bound=Model)


def find_row(rows: QuerySet[_Row, _Row], noun: str, **identity: Any) -> _Row:
    """The row with this identity, a lookup and its value. Raises NotFound with the noun and the
    value."""
    row = the_only(rows.filter(**identity))
    if row is None:
        (value,) = identity.values()
        raise NotFound(f"{noun} not found: {value}")
    return row


def the_only(rows: QuerySet[_Row, _Row]) -> _Row | None:
    """The row of a unique condition, if there is one. `first()` would sort, which doubles the time that Django
    takes to write the statement."""
    return next(iter(rows[:1]), None)


def is_installed(actor: Actor, plugin: str) -> bool:
    """Whether the plugin is installed. A definition may name one that is not, or none ("")."""
    rows = Plugin.objects.filter(workspace_id=actor.workspace_id, name=plugin)
    return plugin != "" and rows.exists()


def refuse_installed(actor: Actor, part: str, plugin: str) -> None:
    """Raise Conflict if `part`, a noun and a name, belongs to an installed plugin."""
    if is_installed(actor, plugin):
        raise Conflict(
            f"{part} belongs to the installed plugin {plugin}",
            hint=f"Uninstall the plugin {plugin}, which removes all its state keys and namespaces.",
            plugin=plugin,
        )


def refuse(faults: Sequence[Fault], title: str) -> None:
    """Raise Invalid if there are faults."""
    if faults:
        raise Invalid(title, faults)


def checked(
    what: str,
    check: Callable[[str], None],
    name: str,
    refusal: type[Problem] = Invalid,
    *,
    pointer: str = "",
) -> str:
    """The name, if `check` of domain/scopes.py accepts it. Raises `refusal` with its reason, or
    Invalid with the `pointer` of a name in the body."""
    try:
        check(name)
    except scopes.BadName as bad:
        if pointer:
            raise Invalid(f"invalid {what}: {bad}", [Fault(pointer, str(bad))]) from bad
        raise refusal(f"invalid {what}: {bad}") from bad
    return name
