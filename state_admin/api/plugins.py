"""Plugins: /plugins, /plugins/{name}."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import plugins as contract
from state_admin.contract.base import Page
from state_admin.models import Plugin
from state_admin.rest import pagination
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import plugins
from state_admin.services.errors import Invalid


@handles(contract.LIST_PLUGINS)
def list_plugins(call: Endpoint) -> HttpResponse:
    rows = Plugin.objects.visible_to(call.actor)
    page_rows, cursor = pagination.fetch_page(call, rows, by="name", created="installed_at")
    parts = plugins.parts_of(call.actor, [row.name for row in page_rows])
    items = [contract.PluginSummary.of(row, *parts[row.name]) for row in page_rows]
    return answer(Page(items=items, next_cursor=cursor))


@handles(contract.GET_PLUGIN)
def get_plugin(call: Endpoint, name: str) -> HttpResponse:
    return answer(_show(call, plugins.find_plugin(call.actor, name)))


@handles(contract.INSTALL_PLUGIN)
def install_plugin(call: Endpoint, name: str) -> HttpResponse:
    body = call.body(contract.Installation)
    if faults := body.foreign_parts(name):
        raise Invalid("a part of a plugin names another plugin", faults)
    state_keys, namespaces = body.parts()
    row = plugins.install_plugin(
        **call.author,
        name=name,
        description=body.description,
        state_keys=state_keys,
        namespaces=namespaces,
    )
    return answer(_show(call, row), 201)


@handles(contract.UNINSTALL_PLUGIN)
def uninstall_plugin(call: Endpoint, name: str) -> HttpResponse:
    removal = plugins.uninstall_plugin(
        **call.author, name=name, entries=call.query.entries or "", dry_run=call.dry_run
    )
    if not call.dry_run:
        return no_content()
    return answer(contract.PluginRemoval(would_remove=removal))


def _show(call: Endpoint, row: Plugin) -> contract.Plugin:
    return contract.Plugin.of(
        row, plugins.keys_of(call.actor, row.name), plugins.namespaces_of(call.actor, row.name)
    )
