"""Namespaces: registered names of shared state, each with a schema, a default and limits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role
from state_admin.domain.values import DEFAULT_MAX_VALUE_BYTES, MAX_VALUE_BYTES, Raw

from . import types
from .base import Answer, AscendingList, Body, Operation, Page, Query, doc
from .types import MAX_TTL, Fault, JsonIn, JsonOut, Key, Time, json_of

if TYPE_CHECKING:
    from state_admin import models

_SCHEMA = doc(
    "JSON Schema (2020-12) of the values. Default: `{}`, any value.",
    {"type": "object"},
    schema={"type": ["object", "boolean"]},
)
_DEFAULT = doc("Value of an entry that does not exist. Default: null.", {})
_TTL = "Time to live in seconds of entries that are written without one. Null, the default: none."
_SIZE = "Largest size of a value in bytes. Default: 1 MiB."
_KEEP_LAST = "Number of versions that history compaction keeps. Null, the default: all."
_KEEP_SECONDS = "Age in seconds up to which versions are kept. Null, the default: any."
_TRACKED = (
    "False: writes leave no history, no changes in the feed and no audit rows, searches do not find "
    "the entries, and versions begin at 1 again after a deletion. For data that a program writes "
    "often and that nobody follows, such as checkpoints. "
)
Plugin = Annotated[
    str, doc("The plugin that owns it. Empty, the default: none.", "planning", max_length=128)
]
Description = Annotated[
    str, doc("Description, for people.", "Shared by the team.", max_length=10_000)
]


class History(Answer):
    """Which versions history compaction keeps."""

    keep_last: Annotated[int | None, doc(_KEEP_LAST, 100)]
    keep_seconds: Annotated[int | None, doc(_KEEP_SECONDS, None)]


class Namespace(Answer):
    """A registered namespace."""

    name: types.Namespace
    schema: Annotated[JsonOut, _SCHEMA]
    schema_version: Annotated[
        int,
        doc(
            "Version, which grows by 1 when the schema, the default, `max_value_bytes` or `ttl_seconds` changes.",
            1,
            ge=1,
        ),
    ]
    default: Annotated[JsonOut, _DEFAULT]
    description: Description
    plugin: Plugin
    max_value_bytes: Annotated[int, doc(_SIZE, DEFAULT_MAX_VALUE_BYTES)]
    ttl_seconds: Annotated[int | None, doc(_TTL, None)]
    history: History
    tracked: Annotated[bool, doc(_TRACKED, True)]
    created_at: Annotated[Time, doc("When it was registered for the first time.")]
    updated_at: Annotated[Time, doc("When it was last changed.")]

    @classmethod
    def of(cls, row: models.Namespace, **more: Any) -> Self:
        return cls.from_attributes(
            row,
            schema=json_of(row.schema or "{}"),
            default=json_of(row.default),
            max_value_bytes=row.max_value_bytes or DEFAULT_MAX_VALUE_BYTES,
            history=History(keep_last=row.history_keep_last, keep_seconds=row.history_keep_seconds),
            **more,
        )


class NamespaceRow(Namespace, kw_only=True):
    """A namespace in the admin's list, which has unregistered ones too."""

    registered: Annotated[bool, doc("False if the namespace is no longer registered.", True)]


class Violation(Answer):
    """An entry that the new schema refuses."""

    key: Key
    version: Annotated[int, doc("Version of the entry.", 3, ge=1)]
    errors: Annotated[list[Fault], doc("What the schema refuses, at most 3 places.")]


class Violations(Answer):
    """The entries that the new schema refuses."""

    count: Annotated[int, doc("Number of these entries.", 1, ge=0)]
    first: Annotated[list[Violation], doc("The first 100 of them, by key.")]


class RegistrationPreview(Answer):
    """What a registration would do."""

    would_change: Annotated[bool, doc("Whether the definition would change.", True)]
    violations: Violations


class HeldEntries(Answer):
    """The entries of a namespace."""

    entries: Annotated[int, doc("Number of live entries.", 3, ge=0)]


class NamespaceRemoval(Answer):
    """What would lose its namespace."""

    held: HeldEntries


class HistoryPolicy(Body):
    """How many old versions the entries of a namespace keep, and for how long."""

    keep_last: Annotated[int, doc(_KEEP_LAST, 100, ge=1, le=1000000)] | UnsetType | None = UNSET
    keep_seconds: (
        Annotated[int, doc(_KEEP_SECONDS, 2592000, ge=1, le=MAX_TTL)] | UnsetType | None
    ) = UNSET


class NamespaceDefinition(Body):
    """The definition of a namespace. A member that is left out has its default, unless
    `if_exists` says otherwise."""

    schema: Annotated[JsonIn, _SCHEMA] | UnsetType = UNSET
    default: Annotated[JsonIn, _DEFAULT] | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    plugin: Plugin | UnsetType = UNSET
    max_value_bytes: (
        Annotated[int, doc(_SIZE, DEFAULT_MAX_VALUE_BYTES, ge=1, le=MAX_VALUE_BYTES)]
        | UnsetType
        | None
    ) = UNSET
    ttl_seconds: Annotated[int, doc(_TTL, 86400, ge=1, le=MAX_TTL)] | UnsetType | None = UNSET
    history: Annotated[
        HistoryPolicy | UnsetType, doc("Which versions history compaction keeps.")
    ] = UNSET
    tracked: Annotated[
        bool | UnsetType,
        doc(
            _TRACKED + "It cannot be changed later. Default: as it is, or true for a new "
            "namespace.",
            True,
        ),
    ] = UNSET

    def arguments(self) -> dict[str, Any]:
        """Those of services.namespaces.register_namespace."""
        arguments = {"schema": Raw("{}", {}), "default": Raw("null", None), **self.given()}
        history = arguments.pop("history", UNSET)
        if history is not UNSET:
            arguments |= {f"history_{name}": limit for name, limit in history.given().items()}
        return arguments


class NamespacePart(NamespaceDefinition, kw_only=True):
    """A namespace of a plugin."""

    name: Annotated[types.Namespace, doc("Name.", "team_context", min_length=1, max_length=128)]


class NamespaceFilters(AscendingList):
    prefix: Annotated[str | None, doc("Only namespaces whose name begins with this.")] = None
    plugin: Annotated[str | None, doc("Only namespaces of this plugin.")] = None


class Registration(Query):
    if_exists: Annotated[
        Literal["replace", "accept", "update"],
        doc(
            "If the namespace is registered: `replace` its definition, `accept` it if it is "
            "compatible, or `update` the members that the body contains and keep the others."
        ),
    ] = "replace"


class Unregistration(Query):
    entries: Annotated[
        Literal["retain", "delete"] | None,
        doc(
            "What happens to live entries. `retain` keeps them: they are listed, but not usable until "
            "the name is registered again. `delete` deletes them. Required if there are any."
        ),
    ] = None


_operation = partial(Operation, tag="namespaces")
LIST_NAMESPACES = _operation(
    id="list_namespaces",
    route="GET /namespaces",
    replica=True,
    summary="List namespaces",
    description="The registered namespaces, by name, without those of the config registry.",
    query=NamespaceFilters,
    answers={200: Page[Namespace]},
)
GET_NAMESPACE = _operation(
    id="get_namespace",
    route="GET /namespaces/{namespace}",
    summary="Read a namespace",
    description="The ETag is the schema version, which a change of the description, the plugin or the retention of histories does not increase.",
    answers={200: Namespace},
    problems=("not-registered",),
    etag=True,
)
REGISTER_NAMESPACE = _operation(
    id="register_namespace",
    route="PUT /namespaces/{namespace}",
    summary="Register a namespace",
    description="Registers a namespace (201), or replaces its definition (200). With If-Match, only "
    "if the schema version is the one that it names; with `If-None-Match: *`, only if the "
    "namespace is not registered. The dry run returns the entries that a new schema would "
    "refuse.\n\n"
    "With `if_exists=accept`, a registered namespace never changes: its definition is returned if "
    "it is compatible; otherwise the response is 409 `schema-conflict`, and `errors` lists the "
    "differences. Schemas are compatible if they are the same except for optional fields: "
    "`properties` of one schema that the other lacks, that neither requires, and that the other "
    "allows (it does not restrict `additionalProperties`). Annotations such as `title` and "
    "`description` do not count. Defaults may differ by such fields only. A `schema` or `default` "
    "that the body omits is compatible; the other members of the body are used only when the "
    "namespace is created.\n\n"
    "With `if_exists=update`, a registered namespace keeps the members that the body omits, except "
    "that a namespace of a plugin requires its name as `plugin`.",
    role=Role.ADMIN,
    query=Registration,
    body=NamespaceDefinition,
    answers={200: Namespace, 201: Namespace},
    dry_run=RegistrationPreview,
    headers=("If-Match", "If-None-Match"),
    problems=("schema-conflict", "version-conflict"),
    etag=True,
)
UNREGISTER_NAMESPACE = _operation(
    id="unregister_namespace",
    route="DELETE /namespaces/{namespace}",
    summary="Unregister a namespace",
    description="If it has live entries, `entries` must say what happens to them. 409 if it belongs to"
    " an installed plugin, which `plugin` names.",
    role=Role.ADMIN,
    query=Unregistration,
    answers={204: None},
    dry_run=NamespaceRemoval,
)
