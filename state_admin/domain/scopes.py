"""Names, keys and ids: which are valid, and the usual keys of StateScope.

Not here: permissions. A scope kind is used by filters and the tree, never for access control.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}"
# No control characters, as a JSON Schema pattern for keys and ids.
PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"
MAX_KEY_BYTES: Final = 512
MAX_ID_BYTES: Final = 128

_NAME: Final = re.compile(NAME)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class BadName(ValueError):
    """A name, key or id is not valid. `str(e)` says which rule it breaks, and what is valid."""


class ScopeKind(StrEnum):
    """The scope that the form of a key indicates."""

    GLOBAL = "global"
    PARENT_THREAD = "parent_thread"
    AGENT_TYPE = "agent_type"
    THREAD = "thread"
    SYSTEM = "system"
    CUSTOM = "custom"


WHOLE: Final = {str(kind): kind for kind in (ScopeKind.GLOBAL, ScopeKind.SYSTEM)}
PREFIXED: Final = {
    str(kind): kind for kind in (ScopeKind.PARENT_THREAD, ScopeKind.AGENT_TYPE, ScopeKind.THREAD)
}


def check_name(name: str) -> None:
    """Validate the name of a namespace or state key. Raises BadName."""
    if not _NAME.fullmatch(name):
        raise BadName(
            "a name is 1 to 128 characters: letters, digits, '_', '.', ':' and '-' of ASCII, "
            f"the first one a letter, digit or '_'; got {_quote(name)}"
        )


def check_key(key: str) -> None:
    """Validate a key: 1 to 512 bytes of UTF-8 without control characters. Keys are compared byte by
    byte."""
    _check_text("key", key, MAX_KEY_BYTES)


def check_id(identifier: str) -> None:
    """Validate an id of a thread, run, message or ticket: 1 to 128 bytes, no control characters,
    and not a dot segment, which HTTP clients remove from a path, percent-encoded too (WHATWG
    URL)."""
    _check_text("id", identifier, MAX_ID_BYTES)
    if identifier in (".", ".."):
        raise BadName(f"an id cannot be {identifier!r}: HTTP clients remove it from a path")


def _check_text(what: str, text: str, most: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadName(f"the {what} contains a lone surrogate; it must be UTF-8 text") from None
    if not 1 <= size <= most:
        raise BadName(f"the {what} has {size} bytes; it must have 1 to {most} bytes of UTF-8")
    if bad := _CONTROL.search(text):
        raise BadName(
            f"the {what} contains the control character U+{ord(bad[0]):04X} at character "
            f"{bad.start()}; any other character is valid"
        )


def _quote(text: str) -> str:
    return ascii(text) if len(text) <= 80 else ascii(text[:80]) + "…"


def scope_kind(key: str) -> ScopeKind:
    """The scope kind of a stored key; `thread::` without an id is custom."""
    if kind := WHOLE.get(key):
        return kind
    prefix, _, rest = key.partition("::")
    return PREFIXED.get(prefix, ScopeKind.CUSTOM) if rest else ScopeKind.CUSTOM


def global_key() -> str:
    """`StateScope.global()`."""
    return "global"


def parent_thread_key(identifier: str) -> str:
    """`StateScope.parent_thread(id)`."""
    return f"parent_thread::{identifier}"


def agent_type_key(name: str) -> str:
    """`StateScope.agent_type(name)`."""
    return f"agent_type::{name}"


def thread_key(identifier: str) -> str:
    """`StateScope.thread(id)`."""
    return f"thread::{identifier}"
