"""The config registry: its reserved namespaces, the fields of providers, models and agents, their
references to each other, and the places of their secrets.

A stored value never contains a secret but a marker in its place: `{"$secret": id, "hint"}`.

Not here: how secrets are encrypted and stored (services/config_secrets.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Final, TypeGuard

from state_admin.domain import scopes, values
from state_admin.domain.json_pointers import WorkingCopy, look_up, parts_of
from state_admin.domain.schemas import compile_schema
from state_admin.domain.values import JSON, Fault, FaultError, pointer_of

RESERVED: Final = "config."
SHORTEST_SECRET: Final = 8
LONGEST_SECRET: Final = 8192
_SHOWN: Final = 4
# The end of a shorter secret is not shown as a hint: it would reveal too much.
_HINTED: Final = 16


class Kind(StrEnum):
    """The kinds of records in the registry; each has a namespace."""

    AGENTS = "agents"
    MODELS = "models"
    PROVIDERS = "providers"

    @property
    def noun(self) -> str:
        return self.value.removesuffix("s")

    @property
    def namespace(self) -> str:
        return RESERVED + self.value


def kind_of(namespace: str) -> Kind | None:
    """The kind of record in a reserved namespace; None for every other namespace."""
    return NAMESPACES.get(namespace)


NAMESPACES: Final = {kind.namespace: kind for kind in Kind}


def check_id(identity: str) -> None:
    """Validate an id of the registry: a name without `::`, so that it cannot be the key of a thread
    or another scope. Raises scopes.BadName."""
    scopes.check_name(identity)
    if "::" in identity:
        raise scopes.BadName("a config id must not contain '::', which is reserved for scope keys")


# Schemas -----------------------------------------------------------------------------------------

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_MAYBE_TEXTS: Final = {"type": ["array", "null"], "items": {"type": "string"}}
_ID: Final = {"type": "string", "minLength": 1, "maxLength": 128}
_TOKENS: Final = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**32 - 1}
_PRICE: Final = {"type": ["number", "null"], "minimum": 0}
_MODALITIES: Final = {
    "type": "array",
    "items": {"enum": ["text", "image", "audio", "video", "pdf"]},
    "uniqueItems": True,
}
_SECRET: Final = {
    "x-secret": True,
    "description": "Write a string to set it, null to clear it, this marker to keep what is set.",
    "type": "object",
    "properties": {"$secret": _TEXT, "hint": _TEXT},
    "required": ["$secret"],
    "additionalProperties": False,
}


def _strict(required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"id": _ID, **properties},
        "required": ["id", *required],
        "additionalProperties": False,
    }


# What is stored: the fields of awaken's ProviderSpec, ModelSpec and AgentSpec. Unknown fields are
# refused everywhere, so that a misspelt `api_key` is not stored in plain text.
SCHEMAS: Final[Mapping[Kind, dict[str, Any]]] = {
    Kind.PROVIDERS: _strict(
        ["adapter"],
        {
            "adapter": {"type": "string", "minLength": 1, "maxLength": 128},
            "api_key": _SECRET,
            "base_url": {"type": ["string", "null"], "maxLength": 2048},
            "timeout_secs": {"type": "integer", "minimum": 1, "maximum": 3600, "default": 300},
            "adapter_options": {"type": "object"},
        },
    ),
    Kind.MODELS: _strict(
        ["provider_id", "upstream_model"],
        {
            "provider_id": _ID,
            "upstream_model": {"type": "string", "minLength": 1, "maxLength": 256},
            "context_window": _TOKENS,
            "max_output_tokens": _TOKENS,
            "modalities": {
                "type": "object",
                "properties": {"input": _MODALITIES, "output": _MODALITIES},
                "additionalProperties": False,
            },
            "knowledge_cutoff": {
                "type": ["string", "null"],
                "pattern": "^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$",
            },
            "input_token_price_per_million_usd": _PRICE,
            "output_token_price_per_million_usd": _PRICE,
        },
    ),
    Kind.AGENTS: _strict(
        ["model_id"],
        {
            "description": _TEXT,
            "backend": {
                "type": "object",
                "properties": {
                    "kind": {"enum": ["awaken", "a2a"]},
                    "version": {"const": 1},
                    "config": {"type": ["object", "null"]},
                },
                "required": ["kind"],
                "additionalProperties": False,
            },
            "model_id": _ID,
            "system_prompt": _TEXT,
            "max_rounds": {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 16},
            "max_continuation_retries": {
                "type": "integer", "minimum": 0, "maximum": 1000, "default": 2,
            },
            "stop_conditions": {"type": "array", "items": {"type": ["object", "string"]}},
            "context_policy": {"type": ["object", "null"]},
            "reasoning_effort": {"type": ["string", "integer", "null"]},
            "plugin_ids": _TEXTS,
            "active_hook_filter": _TEXTS,
            "active_plugins": _TEXTS,
            "allowed_tools": _MAYBE_TEXTS,
            "allowed_tool_patterns": _MAYBE_TEXTS,
            "excluded_tools": _MAYBE_TEXTS,
            "excluded_tool_patterns": _MAYBE_TEXTS,
            "endpoint": {"type": ["object", "null"]},
            "delegates": {"type": "array", "items": _ID, "uniqueItems": True},
            "sections": {"type": "object"},
            "registry": {"type": ["string", "null"]},
        },
    ),
}  # fmt: skip

_ALLOWED: Final = "If neither tools nor patterns are set, all tools are allowed. Null allows none."

# Descriptions for forms. They are not in the schemas, which are stored in the workspaces and would
# then differ between releases.
_ABOUT: Final[Mapping[str, dict[str, str]]] = {
    "adapter": {"description": "The API protocol, such as openai or anthropic."},
    "base_url": {"title": "Base URL", "description": "Leave empty for the default URL of the provider."},
    "timeout_secs": {"title": "Timeout", "description": "In seconds."},
    "provider_id": {"title": "Provider", "description": "The id of a provider of the registry."},
    "upstream_model": {"description": "The name of the model at the provider."},
    "context_window": {"description": "In tokens."},
    "max_output_tokens": {"title": "Maximum output", "description": "In tokens."},
    "knowledge_cutoff": {"description": "A month or a day: 2025-06 or 2025-06-30."},
    "input_token_price_per_million_usd": {
        "title": "Input price", "description": "USD per million tokens.",
    },
    "output_token_price_per_million_usd": {
        "title": "Output price", "description": "USD per million tokens.",
    },
    "model_id": {"title": "Model", "description": "The id of a model of the registry."},
    "plugin_ids": {"title": "Plugins"},
    "delegates": {"description": "Ids of agents of the registry."},
    "reasoning_effort": {"description": "A number, or a string in quotes."},
    "allowed_tools": {"description": _ALLOWED},
    "allowed_tool_patterns": {"description": _ALLOWED},
}  # fmt: skip


def form_schema(kind: Kind) -> dict[str, Any]:
    """The schema of what a user edits: the record without its id and its secrets."""
    schema = SCHEMAS[kind]
    parts = {
        name: {**_ABOUT.get(name, {}), **part}
        for name, part in schema["properties"].items()
        if name != "id" and not part.get("x-secret")
    }
    required = [name for name in schema["required"] if name in parts]
    return {**schema, "properties": parts, "required": required}


# The messages contain no values, because a value in the wrong place may be a secret.
_VALIDATORS: Final = {
    kind: compile_schema(values.dump(schema), mask="the value") for kind, schema in SCHEMAS.items()
}


def faults(kind: Kind, identity: str, value: JSON) -> list[Fault]:
    """Why a value with markers is not a valid record of this kind and id; [] if it is. Messages
    contain no values."""
    schema_faults = _VALIDATORS[kind].faults(value)
    if schema_faults:
        return schema_faults
    if value["id"] != identity:
        return [Fault("/id", "differs from the id in the path")]
    return [*_RULES[kind](value)]


def _provider_faults(value: JSON) -> Iterator[Fault]:
    base_url = value.get("base_url")
    if base_url is not None:
        scheme, _, rest = base_url.partition("://")
        if scheme not in ("http", "https") or not rest:
            yield Fault("/base_url", "must be an http:// or https:// URL")
        elif "@" in re.split("[/?#]", rest)[0]:
            yield Fault("/base_url", "must not contain a user or password; use /api_key")
    yield from _readable_secrets("/adapter_options", value.get("adapter_options", {}))


_SOUNDS_SECRET: Final = re.compile(
    r"(?i)(api[_-]?key|access[_-]?key|authorization|credential|passw|private[_-]?key|secret"
    r"|(access|auth|bearer)[_-]?token|^token$)"
)


def _readable_secrets(pointer: str, node: JSON) -> Iterator[Fault]:
    """Members with names typical of secrets, in a place that every member of the workspace may
    read."""
    if isinstance(node, dict):
        for name, part in node.items():
            at = pointer + pointer_of(name)
            if _SOUNDS_SECRET.search(name):
                yield Fault(at, "may be a secret; use /api_key")
            else:
                yield from _readable_secrets(at, part)
    elif isinstance(node, list):
        for index, part in enumerate(node):
            yield from _readable_secrets(f"{pointer}/{index}", part)


def _model_faults(value: JSON) -> Iterator[Fault]:
    cutoff = value.get("knowledge_cutoff")
    if cutoff is not None:
        try:
            date.fromisoformat(cutoff if len(cutoff) > 7 else f"{cutoff}-01")
        except ValueError:
            yield Fault("/knowledge_cutoff", "must be a valid date such as 2025-06 or 2025-06-30")


def _agent_faults(value: JSON) -> Iterator[Fault]:
    if "active_hook_filter" in value and "active_plugins" in value:
        yield Fault("/active_plugins", "is an alias of active_hook_filter; send only one of them")


_RULES: Final[Mapping[Kind, Callable[[JSON], Iterator[Fault]]]] = {
    Kind.PROVIDERS: _provider_faults,
    Kind.MODELS: _model_faults,
    Kind.AGENTS: _agent_faults,
}


# References --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """A reference to another record of the registry."""

    pointer: str
    kind: Kind
    id: str


def references(kind: Kind, value: JSON) -> list[Reference]:
    """The references of a value: of a model to its provider, of an agent to its model and its
    delegates. A place without an id (it may contain a tombstone) is not a reference."""
    if not isinstance(value, dict):
        return []
    if kind is Kind.MODELS:
        candidates = [("/provider_id", Kind.PROVIDERS, value.get("provider_id"))]
    elif kind is Kind.AGENTS:
        delegates = value.get("delegates")
        listed = delegates if isinstance(delegates, list) else []
        candidates = [("/model_id", Kind.MODELS, value.get("model_id"))]
        candidates += [(f"/delegates/{n}", Kind.AGENTS, each) for n, each in enumerate(listed)]
    else:
        candidates = []
    return [Reference(at, target, name) for at, target, name in candidates if isinstance(name, str)]


# Which kinds may refer to records of a kind.
NAMED_BY: Final[Mapping[Kind, tuple[Kind, ...]]] = {
    Kind.PROVIDERS: (Kind.MODELS,),
    Kind.MODELS: (Kind.AGENTS,),
    Kind.AGENTS: (Kind.AGENTS,),
}


# Secrets -----------------------------------------------------------------------------------------


class BadSecret(FaultError):
    """A value at the place of a secret is not valid. `faults` do not contain it."""


@dataclass(frozen=True)
class Secret:
    """A secret as it was written, and the id in the marker that replaces it."""

    id: str
    pointer: str
    plain: str

    @property
    def marker(self) -> dict[str, str]:
        document = {"$secret": self.id}
        if len(self.plain) >= _HINTED:
            document["hint"] = "…" + self.plain[-_SHOWN:]
        return document

    def __repr__(self) -> str:
        return f"Secret({self.id}, {self.pointer})"


def _secret_places(schema: dict[str, Any], pointer: str = "") -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        at = pointer + pointer_of(name)
        if part.get("x-secret"):
            yield at
        else:
            yield from _secret_places(part, at)


SECRET_PLACES: Final = {kind: tuple(_secret_places(schema)) for kind, schema in SCHEMAS.items()}


def markers(kind: Kind, value: JSON) -> dict[str, JSON]:
    """The values at the places of secrets, by pointer. Absent places are left out."""
    found = {each: look_up(value, parts_of(each)) for each in SECRET_PLACES[kind]}
    return {pointer: part for pointer, part in found.items() if part is not values.MISSING}


def seal(
    kind: Kind, value: JSON, stored: Mapping[str, JSON], make_id: Callable[[], str]
) -> tuple[JSON, list[Secret]]:
    """The value with markers in the places of its secrets, and the secrets that were written.

    A string is a new secret. Null or absence means no secret. A marker keeps the secret that
    `stored`, the current markers, has in that place. Raises BadSecret for anything else, and for a
    secret that the value also contains elsewhere.
    """
    copy = WorkingCopy(value)
    fresh: list[Secret] = []
    bad: list[Fault] = []
    for pointer, given in markers(kind, value).items():
        path = parts_of(pointer)
        if given is None:
            copy.remove(path)
        elif isinstance(given, str):
            if not SHORTEST_SECRET <= len(given) <= LONGEST_SECRET:
                most = f"{SHORTEST_SECRET} to {LONGEST_SECRET}"
                bad.append(Fault(pointer, f"a secret must have {most} characters"))
            secret = Secret(make_id(), pointer, given)
            fresh.append(secret)
            copy.replace(path, secret.marker)
        elif isinstance(given, dict) and "$secret" in given and is_marker(stored.get(pointer)):
            copy.replace(path, stored[pointer])
        elif isinstance(given, dict) and "$secret" in given:
            bad.append(Fault(pointer, "no secret is stored here to keep"))
        else:
            bad.append(
                Fault(
                    pointer, "a secret must be a string, null, or the marker that a read returned"
                )
            )
    if not bad and fresh:
        text = values.dump(copy.document)
        bad = [
            Fault(secret.pointer, "the value contains the secret elsewhere, in plain text")
            for secret in fresh
            if values.dump(secret.plain)[1:-1] in text
        ]
    if bad:
        raise BadSecret(bad)
    return copy.document, fresh


def is_marker(node: JSON) -> TypeGuard[dict[str, Any]]:
    """Whether a node is the marker of a secret that is set."""
    return isinstance(node, dict) and isinstance(node.get("$secret"), str)


def reseal(kind: Kind, value: JSON, stored: Mapping[str, JSON]) -> JSON:
    """A previous value with the current secrets: those that are set are kept, and no previous one
    is restored."""
    copy, there = WorkingCopy(value), markers(kind, value)
    for pointer in SECRET_PLACES[kind]:
        path = parts_of(pointer)
        if is_marker(stored.get(pointer)):
            put = copy.replace if pointer in there else copy.add
            put(path, stored[pointer])
        elif pointer in there:
            copy.remove(path)
    return copy.document
