"""Python types and JSON: a value of a type from a document, back, and the type's JSON Schema.

Known: the JSON types, Any, Literal, unions, list, dict with str keys, enums of strings or integers,
dataclasses, and pydantic models where pydantic is installed.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeVar, Union

T = TypeVar("T")

# Members of a document that its dataclass does not know, kept for the way back.
_OTHERS = "_statehouse_others"


def build(kind: type[T], document: Any) -> T:
    """The value. ValueError: the document does not fit, and where."""
    made: T = _build(kind, document, "")
    return made


def plain(value: Any) -> Any:
    """The JSON of a value, sharing nothing with it. TypeError: it has none."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        known = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return known | plain(vars(value).get(_OTHERS, {}))
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("names of members must be strings")
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    raise TypeError(f"{type(value).__name__} is not JSON")


def keep_others(old: T, new: T) -> T:
    """`new`, with the members of `old`'s document that their dataclass does not know."""
    if type(old) is type(new) and dataclasses.is_dataclass(new) and _OTHERS in vars(old):
        vars(new).setdefault(_OTHERS, vars(old)[_OTHERS])
    return new


def schema_of(kind: Any) -> dict[str, Any]:
    """JSON Schema 2020-12 of a type."""
    if kind is Any or kind is object:
        return {}
    if kind in _TYPES:
        return {"type": _TYPES[kind]}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(each) for each in arguments]}
    if kind is list or origin is list:
        return {"type": "array"} | ({"items": schema_of(arguments[0])} if arguments else {})
    if kind is dict or origin is dict:
        rest = {"additionalProperties": schema_of(arguments[1])} if arguments else {}
        return {"type": "object"} | rest
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    if _is_model(kind):
        schema: dict[str, Any] = kind.model_json_schema()
        return schema
    if dataclasses.is_dataclass(kind):
        members = {name: schema_of(each) for name, each in _fields(kind).items()}
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
        return kind(document)
    if _is_model(kind):
        return kind.model_validate(document)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, document, at)
    raise TypeError(f"no JSON type for {kind!r}")


def _record(kind: type, document: Any, at: str) -> Any:
    if not isinstance(document, dict):
        raise _unfit(document, "an object", at)
    known = _fields(kind)
    members = {
        name: _build(each, document[name], f"{at}/{name}")
        for name, each in known.items()
        if name in document
    }
    made = kind(**members)
    if others := {name: item for name, item in document.items() if name not in known}:
        object.__setattr__(made, _OTHERS, others)
    return made


def _scalar(kind: Any, document: Any, at: str) -> Any:
    wanted = type(None) if kind is None else kind
    if type(document) is wanted:
        return document
    if isinstance(document, int | float | Decimal) and not isinstance(document, bool):
        if wanted is float:
            return float(document) if isinstance(document, Decimal) else document
        if wanted is Decimal:
            return Decimal(str(document))
        if wanted is int and document == int(document):  # 1.0 is an integer to JSON Schema
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


def _unfit(document: Any, wanted: str, at: str) -> ValueError:
    return ValueError(f"{at or '/'}: {document!r} is not {wanted}")


def _is_model(kind: Any) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)
