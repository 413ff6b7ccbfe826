"""State keys: which keys of thread state are registered, their plugin, how they merge, and how many
threads have values of them; and the installed plugins. Read-only."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import state_keys as contract
from state_admin.contract.plugins import PluginSummary
from state_admin.domain import reducers, values
from state_admin.domain.access import Role
from state_admin.models import Plugin, StateKey
from state_admin.models.state_keys import count_holders
from state_admin.services.plugins import parts_of
from state_admin.templatetags.ui import plural

from . import paging, snippets
from .actors import page
from .addresses import with_query
from .htmx import Request, render_list
from .lists import list_paths, table_paths
from .paging import BY_CHANGE, by_column
from .tables import Field, Orders, Table, matching

MOST = 200
NEWEST = 1000
_TABLE = Table(
    "web:state-key-list",
    (
        Orders("Key", by_column("name", "")),
        Orders("Reducer"),
        Orders("Merge"),
        Orders("Scope"),
        Orders("Lifetime"),
        Orders("Plugin"),
        Orders("Threads", numeric=True),
        Orders("Changed", BY_CHANGE),
        Orders("Schema and default"),
    ),
    search=Field("prefix", "Name begins with", placeholder="Name begins with"),
)


@page(replica=True)
def state_key_list(request: Request) -> HttpResponse:
    _, keys, table = _TABLE.load(request, _find)
    holders = count_holders(request.actor, NEWEST)
    plugins = list(Plugin.objects.visible_to(request.actor).order_by("name")[:MOST])
    parts = parts_of(request.actor, [plugin.name for plugin in plugins])
    context = {
        **table,
        "keys": [
            (
                row,
                holders.get(row.name, 0),
                values.load(row.schema or "{}"),
                values.load(row.default or "null"),
            )
            for row in keys
        ],
        "runtime": [
            {"name": name, "held": holders.get(name, 0), **marks}
            for name, marks in sorted(reducers.RUNTIME_KEYS.items())
        ],
        "unregistered": _unregistered(request, holders),
        "plugins": [(plugin, *parts[plugin.name]) for plugin in plugins],
        "may_uninstall": request.actor.may(Role.ADMIN),
        "newest": NEWEST,
        "count": "" if any(table["pager"].values()) else plural(len(keys), "state key,state keys"),
        "plugins_json_url": reverse("web:plugin-list-json"),
        **snippets.both(
            "PUT",
            "state-keys/plan",
            '{"reducer": "append", "scope": "thread", "default": [], "schema": {"type": "array"}}',
            call='state_keys.register("plan", reducer="append", scope="thread", default=[], '
            'schema={"type": "array"})',
        ),
    }
    return render_list(request, "state_keys/list.html", context, part="state-keys")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[StateKey], str]:
    rows = matching(StateKey.objects.visible_to(request.actor), filters, prefix="name__startswith")
    return _TABLE.page(request, rows, MOST, reverse(name), filters)


def _plugin_items(request: Request, name: str) -> tuple[list[PluginSummary], str]:
    rows = Plugin.objects.visible_to(request.actor).order_by("name")
    if after := paging.text(request, "after"):
        rows = rows.filter(name__gt=after)
    url = reverse(name)
    plugins, next_url = paging.cut(rows, MOST, lambda last: with_query(url, after=last.name))
    parts = parts_of(request.actor, [row.name for row in plugins])
    return [PluginSummary.of(row, *parts[row.name]) for row in plugins], next_url


def _unregistered(request: Request, holders: dict[str, int]) -> list[tuple[str, int]]:
    """State keys that are no longer registered but have values in threads, retained by an
    uninstallation: name and number of threads."""
    registered_keys = StateKey.objects.visible_to(request.actor).filter(name__in=holders)
    registered = {*registered_keys.values_list("name", flat=True), *reducers.RUNTIME_KEYS}
    return [(name, count) for name, count in holders.items() if name not in registered][:MOST]


urlpatterns = [
    path("state-keys", state_key_list, name="state-key-list"),
    *table_paths("state-keys", _TABLE, _find, contract.StateKey.of),
    *list_paths("plugins", "plugin-list", _plugin_items),
]
