"""Finding facts (amounts, ids, dates, statuses) in prose and in JSON, without a model.

Not here: which of them a summary keeps (extractive).
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple


class Kind(IntEnum):
    """The kind of a fact; the first kinds are kept longest."""

    ID = 0
    AMOUNT = 1
    STATUS = 2
    DATE = 3
    OTHER = 4


class Fact(NamedTuple):
    """A value to keep. `label` describes it with words of its source."""

    kind: Kind
    label: str
    value: str


# Characters of a text that are examined, half from each end.
MAX_READ: Final = 16 * 1024
# Deeper JSON is left out, and longer labels of facts are truncated.
_MAX_DEPTH: Final = 20
_MAX_LABEL: Final = 80

# These patterns run on text of any origin and length. Each begins only where none of its own
# characters precedes, or has a maximum length, so that matching takes linear time.
_MONEY: Final = re.compile(
    r"[$€£]\s?(\d+(?:,\d{3})*(?:\.\d+)?)|"
    r"(?<![\d.,])(\d+(?:,\d{3})*(?:\.\d+)?)\s+(?:dollars|euros|USD|EUR)\b"
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
# An email address, or a word of letters and digits: typical identifiers.
_ID: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}|"
    r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{4,40}(?![\w-])"
)
_CODE: Final = re.compile(r"[A-Z0-9]{5,12}")
_ORDINAL: Final = re.compile(r"(?i)\d+(?:st|nd|rd|th|am|pm|kg|lbs?|hours?|days?|minutes?)")
_NUMBER: Final = re.compile(r"(?<![\w.:-])-?\d{2,}(?:\.\d+)?(?![\w:-]|\.\d)")
_WORD: Final = re.compile(r"\w(?:[\w@.,:+-]*\w)?")
_PARTING: Final = re.compile(r"(?<!\d)\.|\.(?!\d)|[,:+]")
_KEYS: Final = (
    (Kind.ID, re.compile(r"(?:^|_)(?:id|ids|number|code|email|key|ref)s?$|[a-z]Ids?$", re.I)),
    (Kind.AMOUNT, re.compile(r"amount|price|cost|fee|balance|refund|paid|saving|total", re.I)),
    (Kind.DATE, re.compile(r"date|time|_at$|dob|birth", re.I)),
    (Kind.STATUS, re.compile(r"status|state|type|class|result|error|level|cabin|member", re.I)),
)


def ends(text: str) -> str:
    """The text; of one longer than MAX_READ the beginning and the end, cut between words."""
    if len(text) <= MAX_READ:
        return text
    half = MAX_READ // 2
    head, tail = text[:half].rsplit(None, 1), text[-half:].split(None, 1)
    return f"{''.join(head[:1])}\n{''.join(tail[-1:])}"


def words(text: str) -> set[str]:
    """Return the words of a text, whole and split at punctuation, in which facts are searched. 12
    is not part of 12.50."""
    found = set(_WORD.findall(text))
    return found | {part for word in found for part in _PARTING.split(word)}


def in_prose(text: str) -> list[Fact]:
    found = [Fact(Kind.AMOUNT, "amount", match[1] or match[2]) for match in _MONEY.finditer(text)]
    found += [Fact(Kind.DATE, "date", match[0]) for match in _DATE.finditer(text)]
    found += [
        Fact(Kind.ID, "id", match[0])
        for match in _ID.finditer(text)
        if not _DATE.match(match[0]) and not _ORDINAL.fullmatch(match[0])
    ]
    return list(dict.fromkeys(found))


def numbers(text: str) -> list[Fact]:
    """The numbers in a line written by `to_line`, which has no keys for them."""
    return [Fact(Kind.AMOUNT, "number", match[0]) for match in _NUMBER.finditer(text)]


def parsed(text: str) -> Any:
    """The object or array in JSON text, or None. A lone surrogate becomes `?`."""
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
            if "\\u" not in text:
                return value
            return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        except (ValueError, RecursionError):
            return None
    return None


def in_json(value: Any) -> Iterator[Fact]:
    """The facts in a tool's arguments or result; the keys above a leaf determine its kind."""
    stack: list[tuple[str, Kind, Any]] = [("", Kind.OTHER, value)]
    while stack:
        label, kind, node = stack.pop()
        if isinstance(node, dict):
            for name, member in reversed(node.items()):
                own = _kind_of(name)
                # `prices: {economy: 121}`: the leaf's own key is less informative than the one
                # above.
                if _ID.fullmatch(name):  # a key that is itself an id is not a label
                    stack.append((label, kind, member))
                elif own > kind:
                    stack.append((f"{label} {name}"[:_MAX_LABEL], kind, member))
                else:
                    stack.append((name[:_MAX_LABEL], own, member))
        elif isinstance(node, list):
            stack += [(label, kind, item) for item in reversed(node)]
        elif fact := _leaf(label, kind, node):
            yield fact


def labelled(label: str, value: str) -> Fact:
    """A fact from its stored label and value."""
    fact = _leaf(label, _kind_of(label), value)
    return fact or Fact(Kind.OTHER, label, value)


def _kind_of(name: str) -> Kind:
    return next((kind for kind, pattern in _KEYS if pattern.search(name)), Kind.OTHER)


def _leaf(label: str, kind: Kind, node: Any) -> Fact | None:
    if isinstance(node, bool) or node is None:
        return None
    if isinstance(node, (int, float)):
        return Fact(kind if kind <= Kind.AMOUNT else Kind.OTHER, label, str(node))
    text = str(node)
    if _DATE.match(text):
        return Fact(Kind.DATE, label, text[:10])
    if _ID.fullmatch(text) or _CODE.fullmatch(text):
        return Fact(Kind.ID, label, text)
    if not 0 < len(text) <= 40 or "\n" in text:
        return None
    if kind == Kind.AMOUNT and not text[-1].isdigit():
        kind = Kind.STATUS
    return Fact(kind, label, text)


def to_line(value: Any, repeated: Container[str] = ()) -> str:
    """JSON in one line: `cabin business; flights: HAT028 2024-05-21 1859, HAT277 …`; without the
    members whose values are in `repeated`, and with `…` in place of deeply nested values."""
    if isinstance(value, dict):
        return "; ".join(
            f"{name}{': ' if isinstance(member, (dict, list)) else ' '}{_to_line(member, 1)}"
            for name, member in value.items()
            if member not in (None, [], {}, "") and not _is_known(member, repeated)
        )
    return _to_line(value, 0)


def _is_known(value: Any, repeated: Container[str]) -> bool:
    return not isinstance(value, (dict, list)) and str(value) in repeated


def _to_line(value: Any, depth: int) -> str:
    if isinstance(value, (dict, list)):
        if depth == _MAX_DEPTH:
            return "…"
        joint, members = (" ", value.values()) if isinstance(value, dict) else (", ", value)
        return joint.join(_to_line(member, depth + 1) for member in members)
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "none"}[value]
    return str(value)
