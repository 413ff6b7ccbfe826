"""Whole numbers from text: in a query string, a path, a form."""

from __future__ import annotations

from typing import Final

# Every number with so many digits fits into a bigint.
MAX_DIGITS: Final = 18
MAX_WHOLE: Final = 10**MAX_DIGITS - 1


def read_whole(text: object, *, least: int = 0, most: int = MAX_WHOLE) -> int | None:
    """The number in ASCII digits, without sign or spaces; None for anything else, and for a number
    outside `least` to `most`."""
    if not (isinstance(text, str) and text.isascii() and text.isdigit()):
        return None
    if len(text) > MAX_DIGITS:
        return None
    number = int(text)
    return number if least <= number <= most else None
