"""Plugins: /plugins, /plugins/{name}."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.contract import namespaces as namespace_contract
from state_admin.contract.state_keys import StateKey, StateKeyPart
from state_admin.domain.access import Role
from state_admin.domain.values import Fault, Raw
from state_admin.models import Namespace, Plugin
from state_admin.services import plugins
from state_admin.services.errors import Invalid

from . import pagination
from .bodies import Body, RawField, Text, answer, decode, no_content
from .endpoint import Endpoint
from .threads import read_list


class PluginBody(Body):
    description = Text(required=False, allow_blank=True, max_length=10_000)
    state_keys = RawField(required=False)
    namespaces = RawField(required=False)


def show_plugin(row: Plugin, keys: list[Any], namespaces: list[Any]) -> dict[str, Any]:
    return {
        "name": row.name,
        "description": row.description,
        "state_keys": keys,
        "namespaces": namespaces,
        "installed_at": row.installed_at,
    }


class PluginList(Endpoint):
    @extend_schema(operation_id="list_plugins")
    def get(self, request: Request) -> HttpResponse:
        """Installed plugins, by name, with the names of what belongs to them."""
        page = pagination.read_page(self, str)
        rows = Plugin.objects.visible_to(self.actor).order_by("name")
        if page.after is not None:
            rows = rows.filter(name__gt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.name)
        parts = plugins.parts_of(self.actor, [row.name for row in shown])
        items = [show_plugin(row, *parts[row.name]) for row in shown]
        return answer({"items": items, "next_cursor": cursor})


class PluginDetail(Endpoint):
    roles = {"PUT": Role.ADMIN, "DELETE": Role.ADMIN}

    @extend_schema(operation_id="get_plugin")
    def get(self, request: Request, name: str) -> HttpResponse:
        """A plugin with its state keys and namespaces as they are now."""
        return answer(self._show(plugins.find_plugin(self.actor, name)))

    @extend_schema(operation_id="install_plugin", request=PluginBody)
    def put(self, request: Request, name: str) -> HttpResponse:
        """Install: all its state keys and namespaces, or none."""
        body = PluginBody.take(request.data)
        row = plugins.install_plugin(
            actor=self.actor,
            name=name,
            description=body.get("description", ""),
            state_keys=[
                {"name": given.pop("key"), **given}
                for given in _read_parts(
                    body,
                    "state_keys",
                    lambda raw, at: decode(raw, StateKeyPart, at).arguments(),
                    name,
                )
            ],
            namespaces=[
                {"name": given.pop("name"), **given}
                for given in _read_parts(
                    body,
                    "namespaces",
                    lambda raw, at: decode(raw, namespace_contract.NamespacePart, at).arguments(),
                    name,
                )
            ],
            reason=self.reason,
        )
        return answer(self._show(row), 201)

    @extend_schema(operation_id="uninstall_plugin")
    def delete(self, request: Request, name: str) -> HttpResponse:
        """Uninstall: clear its values in every thread but those it retains, then unregister. With
        live entries choose `?entries=retain` or `?entries=delete`; `?dry_run=true` only counts."""
        dry_run = self.query["dry_run"]
        removal = plugins.uninstall_plugin(
            actor=self.actor,
            name=name,
            entries=self.query.get("entries", ""),
            dry_run=dry_run,
            reason=self.reason,
        )
        if dry_run:
            return answer({"would_remove": asdict(removal)})
        return no_content()

    def _show(self, row: Plugin) -> dict[str, Any]:
        keys = list(plugins.keys_of(self.actor, row.name))
        spaces: list[Namespace] = list(plugins.namespaces_of(self.actor, row.name))
        return show_plugin(
            row,
            [StateKey.of(key) for key in keys],
            [namespace_contract.Namespace.of(each) for each in spaces],
        )


def _read_parts(
    body: dict[str, Any], name: str, read: Callable[[Raw, str], dict[str, Any]], plugin: str
) -> list[dict[str, Any]]:
    """A list of bodies as the single endpoints take them. Their `plugin` may only be this one."""
    found = []
    for index, raw in enumerate(read_list(body[name], name) if name in body else ()):
        given = read(raw, f"/{name}/{index}")
        if given.pop("plugin", plugin) != plugin:
            fault = Fault(f"/{name}/{index}/plugin", f"belongs to {plugin} here")
            raise Invalid("a part of a plugin names another plugin", [fault])
        found.append(given)
    return found
