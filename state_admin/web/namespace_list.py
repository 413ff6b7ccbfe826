"""Namespaces: the list, with sizes and schema mismatches, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract.namespaces import NamespaceRow
from state_admin.domain import config, diffs, values
from state_admin.domain.access import Role
from state_admin.domain.schema_changes import list_schema_changes
from state_admin.domain.values import DEFAULT_MAX_VALUE_BYTES
from state_admin.models import Namespace, NamespaceVersion
from state_admin.models.browsing import (
    EntryFilter,
    NamespaceSize,
    entry_page,
    estimated_entries,
    namespace_sizes,
)
from state_admin.models.counts import namespace_writes
from state_admin.models.storage_sql import measured_bytes
from state_admin.services.finding import is_installed
from state_admin.services.namespaces import find_namespace
from state_admin.services.storage import read_series
from state_admin.templatetags.json_html import pretty
from state_admin.templatetags.ui import plural
from state_admin.templatetags.ui import size as shown_size

from . import paging, snippets
from .actors import page
from .addresses import namespace_url, with_query
from .htmx import Request, render, render_list
from .invalid_entries import find_invalid
from .lists import table_paths
from .paging import BY_CHANGE, by_column
from .tables import Field, Orders, Table, matching
from .usage import describe_sizes

PAGE = 50
COUNTED = 1000
# Entries counted per namespace of the list.
_LISTED = 100
_VERSIONS = 10
# Entries of an older schema version that are validated.
_EXAMINED = 100
_TABLE = Table(
    "web:namespace-list",
    (
        Orders("Namespace", by_column("name", "")),
        Orders("State"),
        Orders("Entries", numeric=True),
        Orders("Bytes", numeric=True),
        Orders("Entry writes in a day", numeric=True),
        Orders("Schema", numeric=True),
        Orders("Plugin"),
        Orders("Changed", BY_CHANGE),
    ),
    search=Field("prefix", "Name begins with", placeholder="Name begins with"),
    menu=(Field("show", "Show", choices={"unregistered": "unregistered only"}, unset="all"),),
)


@page(replica=True)
def namespace_list(request: Request) -> HttpResponse:
    find = partial(_find, deferred=("schema", "default"))
    _, rows, table = _TABLE.load(request, find)
    sizes = namespace_sizes([row.pk for row in rows], _LISTED + 1)
    large = [pk for pk, size in sizes.items() if size.entries > _LISTED]
    estimates = estimated_entries(large) if large else {}
    measured = measured_bytes(request.actor.workspace_id, large) if large else {}
    writes = namespace_writes(request.actor) if rows else None
    in_a_day = {each.namespace: each.day for each in writes.rows} if writes else {}
    registered = {row.name: sizes[row.pk] for row in rows if row.unregistered_at is None}
    invalid = find_invalid(request.actor, registered, _EXAMINED)
    context = {
        **table,
        "rows": [
            (
                row,
                sizes[row.pk],
                format_entry_count(sizes[row.pk].entries, _LISTED, estimates.get(row.pk, 0)),
                _bytes(sizes[row.pk], measured.get(row.pk)),
                f"{in_a_day.get(row.name, 0):,}{'+' if writes and writes.cut else ''}",
                invalid.get(row.name),
            )
            for row in rows
        ],
        "count": "" if any(table["pager"].values()) else plural(len(rows), "namespace,namespaces"),
        "entries_url": reverse("web:entry-list"),
        "can_register": request.actor.may(Role.ADMIN),
        **snippets.both(
            "PUT",
            "namespaces/team_context",
            '{"schema": {"type": "object"}, "default": {}}',
            call='namespaces.register("team_context", schema={"type": "object"}, default={})',
        ),
    }
    return render_list(request, "namespaces/list.html", context, part="namespace-table")


def _item(row: Namespace) -> NamespaceRow:
    return NamespaceRow.of(row, registered=row.unregistered_at is None)


def _find(
    request: Request, filters: dict[str, str], name: str, deferred: Sequence[str] = ()
) -> tuple[Sequence[Namespace], str]:
    namespaces = Namespace.objects.visible_to(request.actor).open()
    namespaces = matching(namespaces, filters, prefix="name__startswith")
    if filters["show"] == "unregistered":
        namespaces = namespaces.exclude(unregistered_at=None)
    return _TABLE.page(request, namespaces.defer(*deferred), PAGE, reverse(name), filters)


def format_entry_count(counted: int, most: int, estimate: int) -> str:
    if counted <= most:
        return f"{counted:,}"
    return f"≈ {estimate:,}" if estimate > most else f"{most:,}+"


def _bytes(counted: NamespaceSize, measured: int | None) -> str:
    """The size of its entries: the counted size, else the last measured one, else a lower bound."""
    if counted.entries <= _LISTED:
        return shown_size(counted.size_bytes)
    if measured is not None and measured >= counted.size_bytes:
        return f"≈ {shown_size(measured)}"
    return f"{shown_size(counted.size_bytes)}+"


@page(replica=True)
def namespace_detail(request: Request, name: str) -> HttpResponse:
    namespace = find_namespace(request.actor, name)
    size = namespace_sizes([namespace.pk], COUNTED + 1)[namespace.pk]
    estimates = estimated_entries([namespace.pk]) if size.entries > COUNTED else {}
    versions = list(namespace.versions.order_by("-schema_version")[: _VERSIONS + 1])
    registered = namespace.unregistered_at is None
    invalid = find_invalid(request.actor, {name: size} if registered else {}, _EXAMINED).get(name)
    open_to_all = config.kind_of(name) is None
    selected = paging.whole_number(request, "version") or namespace.schema_version
    samples = read_series(request.actor, days=30, namespace_id=namespace.pk)
    context = {
        "namespace": namespace,
        "stored": samples[-1].total_bytes if samples else None,
        "sizes": [sample.total_bytes for sample in samples],
        "sizes_text": describe_sizes(samples) if samples else "",
        "registered": registered,
        "held": format_entry_count(size.entries, COUNTED, estimates.get(namespace.pk, 0)),
        "schema": pretty(values.load(namespace.schema or "{}")),
        "default_value": values.load(namespace.default or "null"),
        "max_value_bytes": namespace.max_value_bytes or DEFAULT_MAX_VALUE_BYTES,
        "versions": versions[:_VERSIONS],
        "change": _schema_change(namespace, versions, selected),
        "invalid": invalid,
        "version_label": f"schema v{namespace.schema_version}",
        "newest": entry_page(request.actor, EntryFilter(name), limit=8),
        "list_url": with_query(reverse("web:entry-list"), namespace=name),
        "edit_url": namespace_url(name, "edit"),
        "compact_url": namespace_url(name, "compact"),
        "unregister_url": namespace_url(name, "unregister"),
        # A namespace of an installed plugin is unregistered with it.
        "uninstall_url": reverse("web:plugin-uninstall", args=[namespace.plugin])
        if is_installed(request.actor, namespace.plugin)
        else "",
        "can_edit": request.actor.may(Role.ADMIN) and open_to_all,
        # The form of tokens, limited to this namespace.
        "token_url": with_query(reverse("web:token-new"), namespaces=name)
        if request.actor.may(Role.ADMIN)
        else "",
        "can_write": request.actor.may(Role.EDITOR) and open_to_all,
        "new_url": with_query(reverse("web:entry-new"), namespace=name),
    }
    return render(request, "namespaces/detail.html", context, part="namespace")


def _schema_change(
    namespace: Namespace, newest: list[NamespaceVersion], number: int
) -> dict[str, Any] | None:
    """The difference between a schema version and the one before, of which the `newest` are known.
    None without these."""
    found = [version for version in newest if version.schema_version <= number][:2]
    if len(found) < 2:
        earlier = namespace.versions.filter(schema_version__lte=number)
        found = list(earlier.order_by("-schema_version")[:2]) if number > 1 else []
    if len(found) < 2 or found[0].schema_version != number:
        return None
    new, old = found
    schemas, defaults = (
        [values.load(text or empty) for text in texts]
        for texts, empty in (
            ((old.schema, new.schema), "{}"),
            ((old.default, new.default), "null"),
        )
    )
    return {
        "old": old,
        "new": new,
        "changes": list_schema_changes(*schemas),
        "schema_rows": diffs.rows(*schemas),
        "default_rows": diffs.rows(*defaults),
    }


urlpatterns = [
    path("namespaces", namespace_list, name="namespace-list"),
    *table_paths("namespaces", _TABLE, _find, _item),
    path("namespaces/<str:name>", namespace_detail, name="namespace-detail"),
]
