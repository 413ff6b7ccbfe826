"""Converts JSON documents to values of Python types and back, and returns the JSON Schema of a
type.

Supported: the JSON types, Any, Literal, unions, list, dict with str keys, enums of strings or
integers, dataclasses, and pydantic models where pydantic is installed.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeVar, Union

from commonhold.arguments import SURROGATE

T = TypeVar("T")

# Members of a document that its dataclass does not have, kept for the conversion back.
_OTHERS = "_commonhold_others"


def build(kind: type[T], document: Any) -> T:
    """The value of a document. Raises ValueError, with a JSON pointer, if the document is not valid
    for the type."""
    value: T = _build(kind, document, "")
    return value


def plain(value: Any, at: str = "") -> Any:
    """The JSON of a value, which shares no object with it. Raises TypeError or ValueError, with a
    JSON pointer, if it has none."""
    if _is_model(type(value)):
        return plain(value.model_dump(mode="json", by_alias=_reads_aliases(type(value))), at)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        members = {name: plain(getattr(value, name), f"{at}/{name}") for name in names}
        return members | plain(getattr(value, _OTHERS, {}), at)
    if isinstance(value, enum.Enum):
        return plain(value.value, at)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{at or '/'}: names of members must be strings")
        return {plain(name, at): plain(item, f"{at}/{name}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{at}/{n}") for n, item in enumerate(value)]
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise ValueError(f"{at or '/'}: {value} is not JSON")
    if isinstance(value, str) and SURROGATE.search(value):
        raise ValueError(f"{at or '/'}: the string contains a lone surrogate")
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    raise TypeError(f"{at or '/'}: {type(value).__name__} is not JSON")


def keep_others(old: T, new: T) -> T:
    """`new`, with the members of `old`'s document that their dataclass does not have."""
    if type(old) is type(new) and dataclasses.is_dataclass(new) and hasattr(old, _OTHERS):
        vars(new).setdefault(_OTHERS, getattr(old, _OTHERS))
    return new


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a type. In it, a dataclass that contains itself is any
    object."""
    return _schema(kind, ())


def _schema(kind: Any, within: tuple[Any, ...]) -> dict[str, Any]:
    if kind is Any or kind is object:
        return {}
    if kind in _TYPES:
        return {"type": _TYPES[kind]}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(each, within) for each in arguments]}
    if kind is list or origin is list:
        return {"type": "array"} | ({"items": _schema(arguments[0], within)} if arguments else {})
    if kind is dict or origin is dict:
        rest = {"additionalProperties": _schema(arguments[1], within)} if arguments else {}
        return {"type": "object"} | rest
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    if _is_model(kind):
        schema: dict[str, Any] = kind.model_json_schema()
        return schema
    if dataclasses.is_dataclass(kind):
        if kind in within:
            return {"type": "object"}
        members = {name: _schema(each, (*within, kind)) for name, each in _fields(kind).items()}
        return {"type": "object", "properties": members}
    raise TypeError(f"no JSON type for {kind!r}")


_TYPES: dict[Any, str] = {
    type(None): "null",
    None: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "number",
    str: "string",
}


def _build(kind: Any, document: Any, at: str) -> Any:
    if kind is Any or kind is object:
        return document
    if kind in _TYPES:
        return _scalar(kind, document, at)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if not any(document == each and type(document) is type(each) for each in arguments):
            raise _unfit(document, f"one of {list(arguments)}", at)
        return document
    if origin in (Union, types.UnionType):
        return _first(arguments, document, at)
    if kind is list or origin is list:
        if not isinstance(document, list):
            raise _unfit(document, "a list", at)
        item = arguments[0] if arguments else Any
        return [_build(item, each, f"{at}/{n}") for n, each in enumerate(document)]
    if kind is dict or origin is dict:
        if not isinstance(document, dict):
            raise _unfit(document, "an object", at)
        item = arguments[1] if arguments else Any
        return {name: _build(item, each, f"{at}/{name}") for name, each in document.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        if document not in (values := [each.value for each in kind]):
            raise _unfit(document, f"one of {values}", at)
        return kind(document)
    if _is_model(kind):
        return _model(kind, document, at)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, document, at)
    raise TypeError(f"no JSON type for {kind!r}")


def _record(kind: type, document: Any, at: str) -> Any:
    if not isinstance(document, dict):
        raise _unfit(document, "an object", at)
    fields = _fields(kind)
    members = {
        name: _build(each, document[name], f"{at}/{name}")
        for name, each in fields.items()
        if name in document
    }
    given = {field.name for field in dataclasses.fields(kind) if field.init}
    record = kind(**{name: value for name, value in members.items() if name in given})
    for name in members.keys() - given:
        object.__setattr__(record, name, members[name])
    if others := {name: item for name, item in document.items() if name not in fields}:
        if not hasattr(record, "__dict__"):
            names = ", ".join(map(repr, others))
            raise ValueError(f"{at or '/'}: {kind.__name__} has slots and no room to keep {names}")
        object.__setattr__(record, _OTHERS, others)
    return record


def _model(kind: Any, document: Any, at: str) -> Any:
    try:
        return kind.model_validate(document)
    except ValueError as error:
        errors: Any = getattr(error, "errors", list)()
        places = [
            (at + "".join(f"/{step}" for step in each["loc"]), each["msg"]) for each in errors
        ]
        message = "; ".join(f"{place or '/'}: {why}" for place, why in places)
        raise ValueError(message or str(error)) from error


def _scalar(kind: Any, document: Any, at: str) -> Any:
    expected = type(None) if kind is None else kind
    if type(document) is expected:
        return document
    if isinstance(document, int | float | Decimal) and not isinstance(document, bool):
        if expected is float:
            return float(document) if isinstance(document, Decimal) else document
        if expected is Decimal:
            return Decimal(str(document))
        if (
            expected is int and math.isfinite(document) and document == int(document)
        ):  # 1.0 is an integer to JSON Schema
            return int(document)
    raise _unfit(document, f"of type {_TYPES[kind]}", at)


def _first(kinds: tuple[Any, ...], document: Any, at: str) -> Any:
    failed: ValueError | None = None
    for kind in kinds:
        try:
            return _build(kind, document, at)
        except ValueError as error:
            failed = failed or error
    raise failed or ValueError("an empty union")


def _fields(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _unfit(document: Any, expected: str, at: str) -> ValueError:
    return ValueError(f"{at or '/'}: {document!r} is not {expected}")


def is_record(kind: Any) -> bool:
    """Whether a type is a class with fields: a dataclass or a pydantic model."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or _is_model(kind))


def _is_model(kind: Any) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _reads_aliases(kind: Any) -> bool:
    """Whether a model can read its own output with aliases, which are also the names in its
    schema."""
    return all(
        field.serialization_alias == field.validation_alias for field in kind.model_fields.values()
    )
