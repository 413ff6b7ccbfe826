"""Checks of arguments before a call is sent. Each raises InvalidArgument, which names the argument."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from commonhold.problems import InvalidArgument

SURROGATE: Final = re.compile("[\ud800-\udfff]")


def text(argument: str, value: Any) -> str:
    """A str that can be sent. Not `str(value)`, because None would become the text "None"."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{argument} must be a str, not {_quote(value)}")
    if SURROGATE.search(value):
        raise InvalidArgument(f"{argument} contains a lone surrogate, which UTF-8 cannot encode")
    return str.__str__(value)  # the value of an enum of strings


def name(argument: str, value: Any) -> str:
    """A string that is not empty: a key, an id, the name of a namespace."""
    if value == "":
        raise InvalidArgument(f"{argument} must not be empty")
    return text(argument, value)


def version(argument: str, value: Any) -> int | None:
    """A version or revision, or None: no condition."""
    if value is None:
        return None
    try:
        number = -1 if isinstance(value, bool) else value.__index__()
    except AttributeError:
        number = -1
    if number < 0:
        raise InvalidArgument(f"{argument} must be an int of at least 0, not {_quote(value)}")
    return int(number)


def duration(argument: str, value: Any, unit: str = "seconds") -> float:
    """A duration, finite and not negative."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise InvalidArgument(
            f"{argument} must be a number of {unit}, at least 0, not {_quote(value)}"
        )
    return float(value)


def objects(argument: str, value: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A list of JSON objects."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InvalidArgument(f"{argument} must be a list of dicts, not {_quote(value)}")
    found = list(value)
    for position, each in enumerate(found):
        if not isinstance(each, Mapping):
            raise InvalidArgument(f"{argument}[{position}] must be a dict, not {_quote(each)}")
    return [dict(each) for each in found]


def texts(argument: str, value: Iterable[str]) -> list[str]:
    """A list of strings. A single string would be read as a list of its characters."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidArgument(f"{argument} must be a list of str, not {_quote(value)}")
    return list(value)


def options(called: str, given: Iterable[str], parameters: Iterable[str]) -> None:
    """The names of keyword arguments: a misspelled option would have no effect. The message names the
    most similar option, if there is one."""
    for option in given:
        if option not in parameters:
            near = difflib.get_close_matches(option.lower(), parameters, 1)
            near = near or [each for each in parameters if option in each]
            advice = (
                f"Did you mean {near[0]!r}?"
                if near
                else f"Its parameters are {', '.join(parameters)}."
            )
            raise InvalidArgument(
                f"{called}() got an unexpected keyword argument {option!r}. {advice}"
            )


def parameter(argument: str, value: Any) -> str:
    """How a value is written in a query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, int | float | date):
        return str(value)
    if not isinstance(value, str):
        raise InvalidArgument(
            f"{argument} must be a str, a number, a bool or a datetime, not {_quote(value)}"
        )
    return text(argument, value)


def _quote(value: Any) -> str:
    """The value in a message; only its type if the value is not short."""
    if isinstance(value, bool | int | float) or value == "":
        return repr(value)
    return type(value).__name__
