"""Messages of the JSON decoder for readers who write no Python."""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def in_json_terms(message: str) -> str:
    """A message of msgspec with the types of JSON: "Expected string or null, got integer"."""
    return re.sub(r"\b(Expected|got) `([a-z |]+)`", _translate, message)


def _translate(found: re.Match[str]) -> str:
    types = " or ".join(_NAMES.get(each, each) for each in found[2].split(" | "))
    return f"{found[1]} {types}"
