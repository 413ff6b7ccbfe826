"""Calls on state keys, and on plugins that install several of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from commonhold import arguments
from commonhold.answers import Plugin, StateKey
from commonhold.calls import Call, JsonObject, Listing, given, segment
from commonhold.reading import Page, page_of
from commonhold.verbs import Group, S, Verb


def register_state_key(
    name: str,
    *,
    reducer: str | None = None,
    merge: Literal["exclusive", "commutative"] | None = None,
    scope: Literal["run", "thread"] | None = None,
    schema: Any = None,
    default: Any = None,
    persistent: bool | None = None,
    retain_on_uninstall: bool | None = None,
    plugin: str | None = None,
    description: str | None = None,
    reason: str = "",
) -> Call[StateKey]:
    """Register a key of the state of threads: what an update does (`reducer`), whether parallel
    branches may both update it (`merge`), and how long it lives (`scope`). Needs the role admin.

    Unlike `state.register`, it replaces the definition of a registered key. Stored values do not
    change. Call it once per deployment, not in each worker."""
    body = given(
        reducer=reducer,
        merge=merge,
        scope=scope,
        schema=schema,
        default=default,
        persistent=persistent,
        retain_on_uninstall=retain_on_uninstall,
        plugin=plugin,
        description=description,
    )
    return Call(
        "PUT",
        f"/state-keys/{segment('name', name)}",
        StateKey.read,
        body=body,
        headers={"Change-Reason": reason},
    )


def list_state_keys(**page: Unpack[Listing]) -> Call[Page[StateKey]]:
    """Registered state keys, by name."""
    query = given(**page)
    return Call("GET", "/state-keys", page_of(StateKey.read), query)


def get_state_key(name: str) -> Call[StateKey]:
    """One state key. Raises NotFound if it is not registered."""
    return Call("GET", f"/state-keys/{segment('name', name)}", StateKey.read)


def unregister_state_key(
    name: str,
    *,
    values: Literal["retain", "clear"] | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any] | None]:
    """Unregister a state key. `values`: "retain" (the default) leaves its values readable in the threads, "clear"
    removes them, as one revision of each thread. With `dry_run` only count. Raises Conflict if the key belongs
    to an installed plugin."""
    return Call(
        "DELETE",
        f"/state-keys/{segment('name', name)}",
        lambda document: document,
        given(values=values, dry_run=dry_run or None),
        headers={"Change-Reason": reason},
    )


class StateKeys(Group[S]):
    """The registered keys of the state of runs and threads."""

    register = Verb(register_state_key)
    unregister = Verb(unregister_state_key)
    get = Verb(get_state_key)
    list = Verb(list_state_keys)


def install_plugin(
    name: str,
    *,
    state_keys: Sequence[JsonObject] = (),
    namespaces: Sequence[JsonObject] = (),
    description: str | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any]]:
    """Install a plugin: all of its state keys and namespaces are registered, or none."""
    body = given(
        state_keys=arguments.objects("state_keys", state_keys),
        namespaces=arguments.objects("namespaces", namespaces),
        description=description,
    )
    return Call(
        "PUT",
        f"/plugins/{segment('name', name)}",
        dict,
        given(dry_run=dry_run or None),
        body=body,
        headers={"Change-Reason": reason},
    )


def uninstall_plugin(
    name: str,
    *,
    entries: Literal["retain", "delete"] | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any] | None]:
    """Uninstall a plugin with its state keys and namespaces. With `dry_run`, only count what would
    be removed."""
    query = given(entries=entries, dry_run=dry_run or None)
    return Call(
        "DELETE",
        f"/plugins/{segment('name', name)}",
        lambda document: document,
        query,
        headers={"Change-Reason": reason},
    )


def list_plugins(**page: Unpack[Listing]) -> Call[Page[dict[str, Any]]]:
    """Installed plugins, by name."""
    return Call("GET", "/plugins", page_of(dict), given(**page))


def get_plugin(name: str) -> Call[Plugin]:
    """One plugin, with its state keys and namespaces as they are now. NotFound: it is not installed."""
    return Call("GET", f"/plugins/{segment('name', name)}", Plugin.read)


class Plugins(Group[S]):
    """Install and uninstall plugins: sets of state keys and namespaces."""

    install = Verb(install_plugin)
    uninstall = Verb(uninstall_plugin)
    get = Verb(get_plugin)
    list = Verb(list_plugins)
