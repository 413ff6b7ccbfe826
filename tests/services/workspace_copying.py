"""A workspace in which every table has rows, and what a copy of it must be equal to."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.models import (
    Change,
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    Workspace,
    limits,
    model_usage,
)
from state_admin.models.model_usage import Circuit
from state_admin.models.workspace_tables import TABLES, Table
from state_admin.services import (
    demo,
    entries,
    redactions,
    revert_jobs,
    saved_views,
    storage,
    verification,
    webhook_pump,
    webhooks,
)
from state_admin.services.actors import actor_of_user
from state_admin.services.workspace_exports import export_workspace
from state_admin.services.workspace_imports import WorkspaceImport, import_workspace
from tests.builders import Person, make_namespace, make_person, make_token, put

# Values that a detour over Python's or PostgreSQL's own types would change.
EXACT = (
    '{"b": 1.0, "a": 1.10e3, "n": 123456789012345678901234567890, "a b": "\\u00e9 é 😀"}',
    '[ 1 , 2.50 ,\n\t"line\\nbreak" ]',
    "-0.0",
    "null",
    '"\\\\.\\t\\"quoted\\""',
)


def make_workspace() -> Person:
    """The demo workspace, with an admin, and with rows in the tables that it leaves empty."""
    person = make_person("ann", "default", Role.ADMIN)
    demo.load_demo()
    actor = actor_of_user(person.user, demo.WORKSPACE)
    assert actor is not None
    workspace = Workspace.objects.get(slug=demo.WORKSPACE)
    ann = Person(person.user, workspace, actor, person.token)
    make_token(ann, Role.EDITOR, namespaces=["notes*"], thread_prefixes=["trip-"])
    _make_entries(ann)
    _make_webhook(ann)
    view = saved_views.list_views(actor, saved_views.ViewPage.STATE)[0]
    saved_views.choose_default(actor=actor, view_id=view.id)
    storage.measure_storage()
    limits.measure_usage(workspace.pk)
    model_usage.admit(Circuit(workspace.pk, "models", "large"), seconds=60)
    model_usage.reserve(workspace_id=workspace.pk, cost=Decimal("0.25"), cap=Decimal(5))
    return ann


def _make_entries(ann: Person) -> None:
    actor = ann.actor
    make_namespace(actor, "notes_exact", history_keep_last=5)
    for number, text in enumerate(EXACT):
        value = values.read(text)
        entries.put_entry(
            actor=actor,
            namespace="notes_exact",
            key=f"k {number}/é\t",
            value=value,
            tags=['a"b', "c,d", "{e}", "\\"],
            reason="exactly\nso",
        )
    put(actor, "notes_exact", "deleted", {"secret": "hunter2", "n": 1})
    redactions.redact_entry(
        actor=actor, namespace="notes_exact", key="deleted", pointers=["/secret"], reason="leaked"
    )
    entries.delete_entry(actor=actor, namespace="notes_exact", key="deleted")
    put(actor, "notes_exact", "expiring", 5, ttl_seconds=3600)
    for name in ("wrong", "right"):
        put(replace(actor, request_id=name), "notes_exact", "reverted", name)
    revert_jobs.start_revert(actor=actor, request_id="wrong")
    revert_jobs.start_revert(actor=actor, at=timezone.now(), namespace="notes_exact", prefix="x")
    make_namespace(actor, "notes_untracked", tracked=False)
    put(actor, "notes_untracked", "k", "x")


def _make_webhook(ann: Person) -> None:
    """An active webhook that has delivered the first half of the feed."""
    hook, _ = webhooks.create_webhook(actor=ann.actor, name="hook", url="https://receiver.example/")
    feed = list(Change.objects.filter(workspace=ann.workspace).order_by("xid", "id"))
    middle = feed[len(feed) // 2]
    Webhook.objects.filter(pk=hook.pk).update(place_xid=middle.xid, place_id=middle.pk)
    for number, change in enumerate((feed[0], middle)):
        WebhookDelivery.objects.create(
            webhook=hook,
            public_id=f"delivery-{number}",
            change_xid=change.xid,
            change_id=change.pk,
            event_id=f"chg_{change.pk}",
            kind=change.kind,
            body='{"exact":  1.0}',
            status=DeliveryStatus.DELIVERED,
            finished_at=timezone.now() - timedelta(minutes=number),
        )
    webhook_pump.make_test(hook, asked_by="ann")


def export(slug: str, *, secrets: bool = False) -> bytes:
    stream = io.BytesIO()
    export_workspace(slug=slug, stream=stream, secrets=secrets)
    return stream.getvalue()


def copy(file: bytes, slug: str = "copy", *, members: bool = False) -> WorkspaceImport:
    return import_workspace(stream=io.BytesIO(file), slug=slug, members=members)


def rows_of(file: bytes) -> dict[str, list[dict[str, Any]]]:
    """The rows of a file by table."""
    lines = [json.loads(line) for line in file.splitlines()]
    tables: dict[str, list[dict[str, Any]]] = {table.name: [] for table in TABLES}
    for line in lines[1:-1]:
        tables[line["table"]].append(line["row"])
    return tables


def portable_rows(file: bytes) -> Mapping[str, list[dict[str, Any]]]:
    """The rows by table, without the columns that an import replaces. Numbers of rows, and columns that
    refer to them, are the position of the row in its table."""
    found = rows_of(file)
    places = {
        name: {row["id"]: place for place, row in enumerate(rows) if "id" in row}
        for name, rows in found.items()
    }
    return {
        table.name: [_portable(table, row, places) for row in found[table.name]] for table in TABLES
    }


def _portable(
    table: Table, row: Mapping[str, Any], places: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    portable: dict[str, Any] = {}
    for column, value in row.items():
        rule = table.rule(column)
        if column == "id":
            portable[column] = places[table.name][value]
        elif rule.refers is not None:
            target = places[rule.refers._meta.db_table]
            portable[column] = None if value is None else target[value]
        elif not rule.imported or rule.exported:
            portable[column] = value
    return portable


def digests(slug: str) -> list[tuple[str, str]]:
    """What verify_state compares, of one workspace: names, and digests."""
    found = []
    for line in verification.read_digests():
        place = verification._place(line)
        if place.startswith(f"{slug}/"):
            found.append((place.removeprefix(slug), line.digest))
    return sorted(found)
