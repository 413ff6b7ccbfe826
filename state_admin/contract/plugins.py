"""Plugins: state keys and namespaces that are installed and uninstalled together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from state_admin.domain.access import Role
from state_admin.domain.values import Fault

from .base import Answer, AscendingList, Body, Operation, Page, Query, doc
from .namespaces import Namespace, NamespacePart
from .state_keys import Description, StateKey, StateKeyPart
from .types import Time

if TYPE_CHECKING:
    from state_admin import models

PluginName = Annotated[str, doc("Name of the plugin.", "planning")]
_INSTALLED = doc("When it was installed.")


class Plugin(Answer):
    """An installed plugin, with what belongs to it as it is now."""

    name: PluginName
    description: Description
    state_keys: Annotated[list[StateKey], doc("Its state keys.")]
    namespaces: Annotated[list[Namespace], doc("Its namespaces.")]
    installed_at: Annotated[Time, _INSTALLED]

    @classmethod
    def of(
        cls,
        row: models.Plugin,
        state_keys: Iterable[models.StateKey],
        namespaces: Iterable[models.Namespace],
    ) -> Self:
        return cls.from_attributes(
            row,
            state_keys=list(map(StateKey.of, state_keys)),
            namespaces=list(map(Namespace.of, namespaces)),
        )


class PluginSummary(Answer):
    """An installed plugin, with the names of what belongs to it."""

    name: PluginName
    description: Description
    state_keys: Annotated[list[str], doc("Names of its state keys.", ["plan"])]
    namespaces: Annotated[list[str], doc("Names of its namespaces.", ["team_context"])]
    installed_at: Annotated[Time, _INSTALLED]

    @classmethod
    def of(cls, row: models.Plugin, state_keys: list[str], namespaces: list[str]) -> Self:
        return cls.from_attributes(row, state_keys=state_keys, namespaces=namespaces)


class Removed(Answer):
    """What an uninstallation removes."""

    state_keys: Annotated[int, doc("State keys that are unregistered.", 2)]
    threads: Annotated[int, doc("Threads that lose values; each gets one revision.", 5)]
    values: Annotated[int, doc("Values that are removed from threads.", 5)]
    retained: Annotated[int, doc("Values that remain readable in threads.", 0)]
    namespaces: Annotated[int, doc("Namespaces that are unregistered.", 1)]
    entries: Annotated[int, doc("Live entries of these namespaces.", 12)]


class PluginRemoval(Answer):
    """The response to a dry run of an uninstallation."""

    would_remove: Removed


class Installation(Body):
    """The state keys and namespaces of a plugin."""

    description: Description = ""
    state_keys: Annotated[
        list[StateKeyPart], doc("State keys to register. Their `plugin` can only be this one.")
    ] = []
    namespaces: Annotated[
        list[NamespacePart], doc("Namespaces to register. Their `plugin` can only be this one.")
    ] = []

    def parts(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The arguments `state_keys` and `namespaces` of services.plugins.install_plugin."""
        return (
            [{"name": each.key, **_without(each.arguments(), "key")} for each in self.state_keys],
            [{"name": each.name, **_without(each.arguments(), "name")} for each in self.namespaces],
        )

    def foreign_parts(self, plugin: str) -> list[Fault]:
        """The parts that name another plugin as their owner."""
        return [
            Fault(f"/{field}/{index}/plugin", f"must be {plugin}")
            for field in ("state_keys", "namespaces")
            for index, part in enumerate(getattr(self, field))
            if part.given().get("plugin", plugin) != plugin
        ]


def _without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key not in (name, "plugin")}


class Uninstallation(Query):
    entries: Annotated[
        Literal["retain", "delete"] | None,
        doc(
            "Required if namespaces of the plugin have live entries. `retain` keeps them: they are "
            "listed, but not usable until the namespace is registered again. `delete` deletes them."
        ),
    ] = None


_operation = partial(Operation, tag="plugins")
LIST_PLUGINS = _operation(
    id="list_plugins",
    route="GET /plugins",
    summary="List plugins",
    description="Installed plugins by name, with the names of what belongs to them.",
    query=AscendingList,
    answers={200: Page[PluginSummary]},
)
GET_PLUGIN = _operation(
    id="get_plugin",
    route="GET /plugins/{name}",
    summary="Read a plugin",
    description="The plugin with its state keys and namespaces as they are now.",
    answers={200: Plugin},
)
INSTALL_PLUGIN = _operation(
    id="install_plugin",
    route="PUT /plugins/{name}",
    summary="Install a plugin",
    description="Registers all of its state keys and namespaces, or none.",
    role=Role.ADMIN,
    body=Installation,
    answers={201: Plugin},
    dry_run=Plugin,
    problems=("schema-conflict", "quota-exceeded"),
)
UNINSTALL_PLUGIN = _operation(
    id="uninstall_plugin",
    route="DELETE /plugins/{name}",
    summary="Uninstall a plugin",
    description="Removes the values of its state keys from every thread, except those that are"
    " retained on uninstallation, then unregisters its state keys and namespaces.",
    role=Role.ADMIN,
    query=Uninstallation,
    answers={204: None},
    dry_run=PluginRemoval,
    problems=("conflict",),
)
