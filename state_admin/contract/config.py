"""The config registry: providers, models and agents, as entries whose secrets are kept apart."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from state_admin.domain.access import Role
from state_admin.domain.config import Kind

from . import entries
from .base import Answer, Body, Operation, Page, Query, doc
from .entries import (
    DELETE_HEADERS,
    PATCH_TYPES,
    RESTORE_HEADERS,
    WRITE_HEADERS,
    EntryVersion,
    HistoryFilters,
    KeyFilters,
    VersionToRestore,
)
from .types import JsonIn, Pointer

RecordKind = Annotated[
    str, doc("Kind of the record.", "providers", choices=tuple(str(each) for each in Kind))
]
RecordId = Annotated[str, doc("Id of the record.", "openai")]


class Record(entries.Entry, kw_only=True):
    """A record of the config registry: an entry whose value has markers in place of secrets."""

    kind: RecordKind
    id: RecordId


class RecordRow(entries.EntryRow, kw_only=True):
    """A record in a list."""

    kind: RecordKind
    id: RecordId


class Dependent(Answer):
    """A place that names a record."""

    kind: Annotated[RecordKind, doc("Kind of the record that names the other.")]
    id: Annotated[RecordId, doc("Id of the record that names the other.", "gpt-5")]
    pointer: Annotated[Pointer, doc("Where in its value.", "/provider_id")]


class Dependents(Answer):
    """What names a record that is to be deleted."""

    dependents: Annotated[
        list[Dependent], doc("The records that name it and that the token permits to see.")
    ]
    hidden: Annotated[
        int, doc("Number of records that name it and that the token does not permit to see.", 0)
    ]


class RecordFilters(KeyFilters):
    prefix: Annotated[str | None, doc("Only records whose id begins with this.", "gpt-")] = None


class RecordWrite(Body):
    """The new value of a record."""

    value: Annotated[
        JsonIn,
        doc(
            "The record; its members depend on the kind, and the example is a provider. In the "
            "place of a secret: a string sets it, the marker that was read keeps it, null or no "
            "member removes it.",
            {"adapter": "openai", "api_key": "sk-0123456789abcdef"},
        ),
    ]


class DeletionQuery(Query):
    force: Annotated[bool, doc("Delete the record even if others name it.")] = False


_operation = partial(Operation, tag="config")
READ_CONFIG = _operation(
    id="read_config",
    route="GET /config/{kind}/{record_id}",
    summary="Read a record",
    description="Each secret is replaced by a marker.",
    answers={200: Record, 304: None},
    headers=("If-None-Match",),
    problems=("not-registered",),
    etag=True,
)
LIST_CONFIG = _operation(
    id="list_config",
    route="GET /config/{kind}",
    summary="List the records of a kind",
    description="By id. Each secret is replaced by a marker.",
    query=RecordFilters,
    answers={200: Page[RecordRow]},
    problems=("not-registered",),
)
WRITE_CONFIG = _operation(
    id="write_config",
    route="PUT /config/{kind}/{record_id}",
    summary="Write a record",
    description="Creates (201) or replaces (200) a record. A missing `id` in the value is filled "
    "in. The records that it names must exist.",
    role=Role.ADMIN,
    body=RecordWrite,
    answers={200: Record, 201: Record},
    dry_run=Record,
    headers=WRITE_HEADERS,
    problems=("not-registered", "version-conflict", "not-found"),  # not-found: unknown kind
    etag=True,
)
PATCH_CONFIG = _operation(
    id="patch_config",
    route="PATCH /config/{kind}/{record_id}",
    summary="Patch a record",
    description="Changes a record on the server. The media type selects the form of the patch, as "
    "for entries. The patch is applied to the value with markers in place of secrets.",
    role=Role.ADMIN,
    body=Any,
    media_types=tuple(PATCH_TYPES),
    examples={
        "application/merge-patch+json": {"timeout_secs": 60},
        "application/json-patch+json": [{"op": "replace", "path": "/timeout_secs", "value": 60}],
        "application/vnd.commonhold.update+json": {
            "op": "set",
            "path": "/timeout_secs",
            "value": 60,
        },
    },
    answers={200: Record},
    dry_run=Record,
    headers=WRITE_HEADERS,
    problems=("not-registered", "version-conflict"),
    etag=True,
)
DELETE_CONFIG = _operation(
    id="delete_config",
    route="DELETE /config/{kind}/{record_id}",
    summary="Delete a record",
    description="Deletes a record and its secrets. If other records name it, the status is 409 and "
    "`dependents` lists them, unless `force` is true. The dry run only lists them.",
    role=Role.ADMIN,
    query=DeletionQuery,
    answers={204: None},
    dry_run=Dependents,
    headers=DELETE_HEADERS,
    problems=("not-found", "version-conflict"),  # not-found: unknown kind
)
READ_CONFIG_HISTORY = _operation(
    id="read_config_history",
    route="GET /config/{kind}/{record_id}/history",
    replica=True,
    summary="List the versions of a record",
    description="The versions that history compaction has not removed, newest first. Each secret "
    "is replaced by a marker.",
    query=HistoryFilters,
    answers={200: Page[EntryVersion]},
    problems=("not-registered",),
)
RESTORE_CONFIG = _operation(
    id="restore_config",
    route="POST /config/{kind}/{record_id}/restore",
    summary="Restore a version of a record",
    description="Writes a new version with the value of an old one. Secrets stay as they are now.",
    role=Role.ADMIN,
    body=VersionToRestore,
    answers={200: Record},
    dry_run=Record,
    headers=RESTORE_HEADERS,
    problems=("not-registered", "version-conflict"),
    etag=True,
)
LIST_CONFIG_DEPENDENTS = _operation(
    id="list_config_dependents",
    route="GET /config/{kind}/{record_id}/dependents",
    summary="List what names a record",
    description="The other records that name this one, and where. All of them are on one page.",
    answers={200: Page[Dependent]},
    problems=("not-registered",),
)
