"""Installs and uninstalls plugins: all their state keys and namespaces, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from state_admin.contract.plugins import Removed
from state_admin.domain import scopes
from state_admin.domain.access import Actor, Role
from state_admin.models import Entry, Namespace, Plugin, StateKey, database
from state_admin.models.namespaces import NamespaceQuerySet
from state_admin.models.state_keys import StateKeyQuerySet

from . import journal
from .actors import require, require_unrestricted
from .errors import Conflict, Invalid, NotFound, Problem
from .finding import checked
from .namespaces import register_namespace, settle_namespaces, withdraw_namespace
from .pointers import prefix_pointers
from .state_keys import AFFECTS_ALL, register_state_key
from .state_removals import count_held, remove_keys, stop_writers

MAX_PARTS = 1000


def install_plugin(
    *,
    actor: Actor,
    name: str,
    state_keys: Sequence[Mapping[str, Any]] = (),
    namespaces: Sequence[Mapping[str, Any]] = (),
    description: str = "",
    dry_run: bool = False,
    reason: str = "",
) -> Plugin:
    """Register everything of a plugin, or nothing. No thread changes, and no values are created.
    With `dry_run`, the installation is rolled back, so it raises what the installation would raise.

    The items are the keyword arguments of register_state_key and register_namespace, without
    `plugin`. Raises Conflict `plugin already installed: …`, and `key already registered: …` for a
    name that belongs to another plugin or was registered without one (to hand it over, register it
    with the plugin's name first). A problem of an item has its `pointer`: /state_keys/0,
    /namespaces/2.
    """
    require(actor, Role.ADMIN)
    require_unrestricted(actor, AFFECTS_ALL)
    checked("plugin name", scopes.check_name, name)
    if len(state_keys) + len(namespaces) > MAX_PARTS:
        raise Invalid(
            f"a plugin has at most {MAX_PARTS} state keys and namespaces", limit=MAX_PARTS
        )
    with transaction.atomic():
        _lock_plugins(actor)
        if Plugin.objects.filter(workspace_id=actor.workspace_id, name=name).exists():
            raise Conflict(
                f"plugin already installed: {name}",
                hint="Uninstall it first, or change its state keys one by one.",
            )
        plugin = Plugin.objects.create(
            workspace_id=actor.workspace_id, name=name, description=description
        )
        keys = [item["name"] for item in state_keys]
        spaces = [item["name"] for item in namespaces]
        _refuse_taken(name, "/state_keys", keys, StateKey.objects.visible_to(actor))
        _refuse_taken(name, "/namespaces", spaces, Namespace.objects.visible_to(actor).registered())
        (own,) = parts_of(actor, [name]).values()
        for index, item in enumerate(state_keys):
            with _naming(f"/state_keys/{index}"):
                _, created = register_state_key(actor=actor, plugin=name, reason=reason, **item)
                _refuse_found(created or item["name"] in own[0], item["name"], name)
        for index, item in enumerate(namespaces):
            with _naming(f"/namespaces/{index}"):
                registration = register_namespace(actor=actor, plugin=name, reason=reason, **item)
                _refuse_found(registration.created or item["name"] in own[1], item["name"], name)
        _record(actor, "plugin.install", name, keys, reason)
        journal.align_feed_clock(actor)
        plugin.refresh_from_db()
        if dry_run:
            transaction.set_rollback(True)
    return plugin


def uninstall_plugin(
    *, actor: Actor, name: str, entries: str = "", dry_run: bool = False, reason: str = ""
) -> Removed:
    """Clear the values of its state keys in every thread, as one revision per thread that has one,
    and unregister its state keys and namespaces: all of it, or nothing.

    State keys with retain_on_uninstall keep their values. If there are live entries, the caller
    must choose, as when a namespace is unregistered: `entries="retain"` or `"delete"`, else
    Conflict. Without a choice, entries that are written meanwhile become orphans. With `dry_run`
    nothing changes. Raises NotFound `plugin not installed: …`.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        if not dry_run:
            _lock_plugins(actor)
            stop_writers(actor)
        plugin = find_plugin(actor, name)
        keys = dict(keys_of(actor, name).values_list("name", "retain_on_uninstall"))
        spaces = list(namespaces_of(actor, name).values_list("name", flat=True))
        cleared = [key for key, retain in keys.items() if not retain]
        going, retained = count_held(actor, cleared), count_held(actor, keys.keys() - {*cleared})
        if dry_run:
            count = Entry.objects.filter(namespace__in=namespaces_of(actor, name)).live().count()
        else:
            # First, because parts of an installed plugin cannot be removed.
            plugin.delete()
            # The namespaces first, because a missing choice is detected there at a low cost.
            withdrawn = [withdraw_namespace(actor, each, entries, reason) for each in spaces]
            count = sum(live for _, live in withdrawn)
            remove_keys(actor, list(keys), cleared=cleared, reason=reason)
            _record(actor, "plugin.uninstall", name, list(keys), reason)
            journal.align_feed_clock(actor)
            if entries == "delete":
                gone = [namespace for namespace, _ in withdrawn]
                transaction.on_commit(lambda: settle_namespaces(actor, gone, entries, reason))
    return Removed(
        state_keys=len(keys),
        threads=going.threads,
        values=going.values,
        retained=retained.values,
        namespaces=len(spaces),
        entries=count,
    )


def find_plugin(actor: Actor, name: str) -> Plugin:
    plugin = Plugin.objects.visible_to(actor).filter(name=name).first()
    if plugin is None:
        raise NotFound(f"plugin not installed: {name}")
    return plugin


def keys_of(actor: Actor, name: str) -> StateKeyQuerySet:
    """The state keys of a plugin, by name."""
    return StateKey.objects.visible_to(actor).filter(plugin=name).order_by("name")


def namespaces_of(actor: Actor, name: str) -> NamespaceQuerySet:
    """The registered namespaces of a plugin, by name."""
    return Namespace.objects.visible_to(actor).registered().filter(plugin=name).order_by("name")


def parts_of(actor: Actor, names: Sequence[str]) -> dict[str, tuple[list[str], list[str]]]:
    """The names of the state keys and of the registered namespaces of each plugin, sorted."""
    parts: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in names}
    rows: tuple[StateKeyQuerySet | NamespaceQuerySet, ...] = (
        StateKey.objects.visible_to(actor),
        Namespace.objects.visible_to(actor).registered(),
    )
    for place, found in enumerate(rows):
        for plugin, name in (
            found.filter(plugin__in=names).order_by("name").values_list("plugin", "name")
        ):
            parts[plugin][place].append(name)
    return parts


def _refuse_taken(
    plugin: str, pointer: str, names: Sequence[str], rows: StateKeyQuerySet | NamespaceQuerySet
) -> None:
    """Refuse the first name that occurs twice, or is registered and does not belong to this
    plugin."""
    taken = rows.filter(name__in=names).exclude(plugin=plugin)
    owners = dict(taken.values_list("name", "plugin"))
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen or name in owners:
            raise Conflict(
                f"key already registered: {name}",
                hint="The plugin lists it twice. Remove one of the two."
                if name in seen
                else _advise(owners[name], plugin),
                pointer=f"{pointer}/{index}",
            )
        seen.add(name)


def _advise(owner: str, plugin: str) -> str:
    """What to do about a name that does not belong to `plugin`."""
    if owner:
        return f"It belongs to the plugin {owner}. Use another name, or uninstall that plugin."
    return f"It belongs to no plugin. To add it to {plugin}, register it again with this name as plugin."


def _refuse_found(expected: bool, name: str, plugin: str) -> None:
    """Refuse a name that was registered without a plugin after _refuse_taken."""
    if not expected:
        raise Conflict(f"key already registered: {name}", hint=_advise("", plugin))


@contextmanager
def _naming(pointer: str) -> Iterator[None]:
    """Add the pointer of an item to its problems."""
    try:
        with prefix_pointers(pointer):
            yield
    except Problem as problem:
        problem.data["pointer"] = pointer
        raise


def _lock_plugins(actor: Actor) -> None:
    """Serialize installations in a workspace: two that name the same keys in different orders would
    deadlock."""
    database.lock("plugins", actor.workspace_id)


def _record(actor: Actor, action: str, name: str, keys: list[str], reason: str) -> None:
    # Its namespaces have rows of their own: restricted readers of the audit may not see all.
    trace = journal.Trace(action, key=name, detail={"state_keys": keys})
    journal.record(actor, [trace], reason=reason)
