"""State keys: the names that the state of threads has, with their schemas and reducers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role
from state_admin.domain.reducers import Reducer
from state_admin.domain.values import Raw

from .base import Answer, AscendingList, Body, Operation, Page, Query, doc
from .types import JsonIn, JsonOut, Time, json_of

if TYPE_CHECKING:
    from state_admin import models

StateKeyName = Annotated[
    str, doc("Name of a state key.", "plan", schema={"minLength": 1, "maxLength": 128})
]
_SCHEMA = doc(
    "JSON Schema of the values. Default: `{}`, any value.",
    {"type": "array", "items": {"type": "string"}},
    schema={"type": ["object", "boolean"]},
)
_DEFAULT = doc("Value of the key where a thread has none. Default: null.", [])
_MERGE = (
    "`exclusive`: concurrent updates of the key conflict. `commutative`: they are all applied,"
    " because the reducer gives the same result in any order. Default: `exclusive`."
)
_SCOPE = (
    "How long a value lives: until the next `run` starts, or as long as the `thread`. Default:"
    " `run`."
)
_REDUCER = "How an update changes the value. Default: `replace`."
Persistent = Annotated[
    bool,
    doc(
        "`false`: values live until their run ends, and exports leave them out. Default: `true`.",
        True,
    ),
]
RetainOnUninstall = Annotated[
    bool,
    doc(
        "Whether threads retain their values when the plugin is uninstalled. Default: `false`.",
        False,
    ),
]
Plugin = Annotated[str, doc("The plugin that owns it; empty: none.", "planning", max_length=128)]
Description = Annotated[
    str, doc("Description, for people.", "The steps that are left.", max_length=10_000)
]


class StateKey(Answer):
    """A name in the state of threads."""

    key: StateKeyName
    schema: Annotated[JsonOut, _SCHEMA]
    default: Annotated[JsonOut, _DEFAULT]
    merge: Annotated[str, doc(_MERGE, "exclusive", choices=("exclusive", "commutative"))]
    scope: Annotated[str, doc(_SCOPE, "thread", choices=("run", "thread"))]
    reducer: Annotated[str, doc(_REDUCER, "append", choices=tuple(Reducer))]
    persistent: Persistent
    retain_on_uninstall: RetainOnUninstall
    plugin: Plugin
    description: Description
    created_at: Annotated[Time, doc("When it was registered.")]
    updated_at: Annotated[Time, doc("When it was last changed.")]

    @classmethod
    def of(cls, row: models.StateKey) -> Self:
        return cls.from_attributes(
            row, key=row.name, schema=json_of(row.schema or "{}"), default=json_of(row.default)
        )


class StateKeyDefinition(Body):
    """The definition of a state key. A member that is left out has its default."""

    schema: Annotated[JsonIn, _SCHEMA] | UnsetType = UNSET
    default: Annotated[JsonIn, _DEFAULT] | UnsetType = UNSET
    merge: Annotated[Literal["exclusive", "commutative"] | UnsetType, doc(_MERGE, "exclusive")] = (
        UNSET
    )
    scope: Annotated[Literal["run", "thread"] | UnsetType, doc(_SCOPE, "thread")] = UNSET
    reducer: Annotated[Reducer | UnsetType, doc(_REDUCER, "append")] = UNSET
    persistent: Persistent | UnsetType = UNSET
    retain_on_uninstall: RetainOnUninstall | UnsetType = UNSET
    plugin: Plugin | UnsetType = UNSET
    description: Description | UnsetType = UNSET

    def arguments(self) -> dict[str, Any]:
        """Those of services.state_keys.register_state_key."""
        return {"schema": Raw("{}", {}), "default": Raw("null", None), **self.given()}


class StateKeyPart(StateKeyDefinition, kw_only=True):
    """A state key of a plugin."""

    key: StateKeyName


class StateKeyValues(Answer):
    """What threads hold of a state key."""

    threads: Annotated[int, doc("Number of threads with a value.", 2, ge=0)]
    values: Annotated[int, doc("Number of values.", 2, ge=0)]


class StateKeyRemoval(Answer):
    """What would lose its state key."""

    held: StateKeyValues


class RemovalQuery(Query):
    values: Annotated[
        str,
        doc(
            "`retain`: values of the key stay readable in the threads. `clear`: they are removed, as"
            " one revision of each thread.",
            choices=("retain", "clear"),
        ),
    ] = "retain"


_operation = partial(Operation, tag="state keys")
LIST_STATE_KEYS = _operation(
    id="list_state_keys",
    route="GET /state-keys",
    summary="List state keys",
    description="Registered state keys, by name.",
    query=AscendingList,
    answers={200: Page[StateKey]},
)
GET_STATE_KEY = _operation(
    id="get_state_key",
    route="GET /state-keys/{name}",
    summary="Read a state key",
    answers={200: StateKey},
)
REGISTER_STATE_KEY = _operation(
    id="register_state_key",
    route="PUT /state-keys/{name}",
    summary="Register a state key",
    description="Registers the key, or replaces its definition. 409 if it belongs to another plugin"
    " or to the runtime.",
    role=Role.ADMIN,
    body=StateKeyDefinition,
    answers={200: StateKey, 201: StateKey},
)
UNREGISTER_STATE_KEY = _operation(
    id="unregister_state_key",
    route="DELETE /state-keys/{name}",
    summary="Unregister a state key",
    description="Values that threads retain become usable again when the name is registered again."
    " 409 if it belongs to an installed plugin, which `plugin` names.",
    role=Role.ADMIN,
    query=RemovalQuery,
    answers={204: None},
    dry_run=StateKeyRemoval,
)
