"""Describes the type, the bounds and the default of a setting in plain text."""

from __future__ import annotations

from msgspec import inspect

LIST = "a list, separated by commas"


def describe_kind(kind: inspect.Type) -> str:
    match kind:
        case inspect.UnionType(types=kinds):
            return describe_kind(kinds[0])
        case inspect.DecimalType():
            # project/env.py checks this bound: msgspec has none for decimals.
            return "a number from 0"
        case inspect.IntType() | inspect.FloatType():
            word = "an integer" if isinstance(kind, inspect.IntType) else "a number"
            return f"{word}{_describe_bounds(kind)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values=values):
            return f"{', '.join(map(str, values[:-1]))} or {values[-1]}"
        case inspect.VarTupleType():
            return LIST
        case inspect.StrType(pattern=str(pattern)):
            return f"text that matches `{pattern}`"
    return "text"


def _describe_bounds(kind: inspect.Type) -> str:
    least, above, most = (getattr(kind, name, None) for name in ("ge", "gt", "le"))
    if most is not None and above is not None:
        return f" above {above}, at most {most}"
    if most is not None:
        return f" from {least} to {most}"
    if above is not None:
        return f" above {above}"
    return f" from {least}" if least is not None else ""


def describe_default(value: object) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    return f"`{text}`" if text not in ("", "None") else ""
