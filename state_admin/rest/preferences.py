"""Prefer (RFC 7240): whether a client needs the values that it has just sent in the response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .bodies import Response

# The header of a response that follows the preference.
APPLIED: Final = {"Preference-Applied": "return=minimal"}


def prefers_minimal(environ: Mapping[str, Any]) -> bool:
    """Whether Prefer has `return=minimal`. Of a repeated preference the first one counts, and unknown
    ones are ignored (RFC 7240, section 2)."""
    for preference in environ.get("HTTP_PREFER", "").split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "return":
            return bool(value.strip().strip('"').lower() == "minimal")
    return False


def mark_applied(response: Response) -> Response:
    """Add the header that says that the response follows the preference."""
    for name, value in APPLIED.items():
        response[name] = value
    return response
