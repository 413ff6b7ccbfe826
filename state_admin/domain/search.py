"""Search queries, whether a value matches one, and what an index stores of a value (ADR 6).

A text searches words of string leaves, a condition the value at a JSON Pointer. An index stores a
value's words and facts (`lexemes`). It may return a value that does not match but never misses one
that does: `find` decides. Not here: where values and indexes are stored.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from state_admin.domain import json_pointers
from state_admin.domain.values import JSON, dump, pointer_of, same

MAX_TEXT: Final = 1_000
MAX_TERMS: Final = 32
MAX_CONDITIONS: Final = 16
MAX_MATCHES: Final = 10
_AROUND: Final = 60
# PostgreSQL limits a tsvector to a megabyte. A value with more lexemes is a candidate of every
# search.
_MOST_BYTES: Final = 600_000
_EVERY: Final = "~"
_LONGEST: Final = 64

_ASCII_WORD: Final = re.compile(r"[A-Za-z0-9]+")
# Letters and digits of any script, with marks that NFKC may join to them. `_` separates words.
_WORD: Final = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")
# Scripts without spaces: each character is a word, and a term of several is a phrase.
_ALONE: Final = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# What separates words in JSON text: any other character, or an escape that ends in a letter.
_BEFORE_WORD: Final = r"([^a-z0-9]|\\[bfnrt])"
_BEHIND_WORD: Final = "[^a-z0-9]"
_TERM: Final = re.compile(r'"([^"]*)"?|(\S+)')


class Word(NamedTuple):
    """A normalized word, and its position in its text."""

    text: str
    start: int
    end: int


class Term(NamedTuple):
    """Words that must follow one another in one string leaf; with `prefix` the last one is a
    prefix."""

    words: tuple[str, ...]
    prefix: bool


class Condition(NamedTuple):
    """The value at `pointer` must be equal to `equals` (values.same)."""

    pointer: str
    equals: JSON


@dataclass(frozen=True)
class Query:
    """All terms and all conditions must match."""

    terms: tuple[Term, ...] = ()
    where: tuple[Condition, ...] = ()


class Match(NamedTuple):
    """Where a value matches a query, and the text around it: plain text, never markup."""

    pointer: str
    snippet: str


class BadQuery(ValueError):
    """The query is not valid; `str(e)` says why."""


def parse(text: str, where: Sequence[tuple[str, JSON]]) -> Query:
    """A query from typed text (words, `word*`, "a phrase") and conditions by pointer. Raises
    BadQuery."""
    if len(text) > MAX_TEXT:
        raise BadQuery(f"the text has at most {MAX_TEXT:,} characters")
    if len(where) > MAX_CONDITIONS:
        raise BadQuery(f"at most {MAX_CONDITIONS} conditions")
    terms = []
    for quoted, plain in _TERM.findall(text):
        spelled = quoted or plain
        if found := tuple(word.text for word in words(spelled)):
            terms.append(Term(found, bool(plain) and plain.endswith("*")))
    if len(terms) > MAX_TERMS:
        raise BadQuery(f"at most {MAX_TERMS} words and phrases")
    if text.strip() and not terms:
        raise BadQuery("the text has no letter or digit to search for")
    conditions = []
    for pointer, equals in where:
        try:
            conditions.append(Condition(pointer_of(*json_pointers.parts_of(pointer)), equals))
        except json_pointers.Mismatch as bad:
            raise BadQuery(str(bad)) from None
    if not terms and not conditions:
        raise BadQuery("a text, a condition or both are required")
    return Query(tuple(terms), tuple(conditions))


def words(text: str) -> Iterator[Word]:
    """The words of a text: letters and digits, normalized to NFKC and case-folded."""
    if text.isascii():
        for found in _ASCII_WORD.finditer(text):
            yield Word(found[0].lower(), found.start(), found.end())
        return
    for found in _WORD.finditer(text):
        start = at = found.start()
        for alone in _ALONE.finditer(text, start, found.end()):
            if at < alone.start():
                yield Word(_fold(text[at : alone.start()]), at, alone.start())
            yield Word(_fold(alone[0]), alone.start(), alone.end())
            at = alone.end()
        if at < found.end():
            yield Word(_fold(text[at : found.end()]), at, found.end())


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def find(value: JSON, query: Query) -> list[Match] | None:
    """Where the value matches the query, conditions first; None if it does not."""
    matches = []
    for pointer, equals in query.where:
        try:
            found = json_pointers.find(value, json_pointers.parts_of(pointer))
        except json_pointers.Mismatch:
            return None
        if not same(found, equals):
            return None
        matches.append(Match(pointer, _truncate(found if isinstance(found, str) else dump(found))))
    missing = list(query.terms)
    for pointer, leaf in _leaves(value):
        if not missing:
            break
        if not isinstance(leaf, str):
            continue
        spelled = list(words(leaf))
        for term in list(missing):
            at = _place(spelled, term)
            if at is not None:
                missing.remove(term)
                start, end = spelled[at].start, spelled[at + len(term.words) - 1].end
                matches.append(Match(pointer, _snippet(leaf, start, end)))
    if missing:
        return None
    seen: dict[str, Match] = {}
    for match in matches:
        seen.setdefault(match.pointer, match)
    return list(seen.values())[:MAX_MATCHES]


def _place(spelled: list[Word], term: Term) -> int | None:
    lexemes, count = term.words, len(term.words)
    for at in range(len(spelled) - count + 1):
        if all(spelled[at + i].text == lexemes[i] for i in range(count - 1)):
            last = spelled[at + count - 1].text
            if last == lexemes[-1] or (term.prefix and last.startswith(lexemes[-1])):
                return at
    return None


def _snippet(text: str, start: int, end: int) -> str:
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    shown = " ".join(text[left:right].split())
    return ("…" if left else "") + shown + ("…" if right < len(text) else "")


def _truncate(text: str) -> str:
    return text if len(text) <= 2 * _AROUND else text[: 2 * _AROUND] + "…"


def lexemes(value: JSON, homes: Sequence[str]) -> list[str]:
    """What an index stores of a value: its words, its facts, and `homes`, its workspace and
    namespace."""
    found = set(homes)
    for pointer, leaf in _leaves(value):
        found.add(_fact(pointer, leaf))
        if isinstance(leaf, str):
            found.update(word.text[:_LONGEST] for word in words(leaf))
    if sum(len(lexeme.encode()) for lexeme in found) > _MOST_BYTES:
        return sorted({*homes, _EVERY})
    return sorted(found)


def tsquery(query: Query, home: str) -> str:
    """The lexemes that a match must have, as PostgreSQL's tsquery."""
    lexemes = []
    for term in query.terms:
        *before, last = term.words
        lexemes += [_quoted(word[:_LONGEST]) for word in before]
        lexemes.append(_quoted(last[:_LONGEST]) + (":*" if term.prefix else ""))
    for pointer, equals in query.where:
        lexemes += [_quoted(_fact(pointer + below, leaf)) for below, leaf in _leaves(equals)]
    return f"{_quoted(home)} & ({_quoted(_EVERY)} | ({' & '.join(dict.fromkeys(lexemes))}))"


def build_patterns(query: Query) -> list[str]:
    r"""For each word of the terms a regular expression, valid in Python and PostgreSQL, that
    matches the lowercase JSON text of every value that matches the query, if that text is ASCII
    without `\\u`: JSON escapes nothing else that could be part of a word."""
    lexemes = []
    for term in query.terms:
        *before, last = term.words
        lexemes += [_BEFORE_WORD + word + _BEHIND_WORD for word in before]
        lexemes.append(_BEFORE_WORD + last + ("" if term.prefix else _BEHIND_WORD))
    return list(dict.fromkeys(lexemes))


def home_of(kind: str, identity: int) -> str:
    """The lexeme of a workspace or namespace. No word or fact has this form."""
    return f"@{kind}{identity}"


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _fact(pointer: str, leaf: JSON) -> str:
    """A short name for "this value is at this pointer", equal for values that are `same`."""
    if isinstance(leaf, bool) or leaf is None:
        kind = str(leaf)
    elif isinstance(leaf, str):
        kind = "s" + leaf
    elif isinstance(leaf, (dict, list)):
        kind = type(leaf).__name__  # an empty object or array
    elif isinstance(leaf, float) and not leaf.is_integer():
        kind = "n" + float.__repr__(leaf)
    else:
        kind = "n" + str(int(leaf))
    digest = blake2b(f"{pointer}\0{kind}".encode("utf-8", "surrogatepass"), digest_size=9)
    return "=" + urlsafe_b64encode(digest.digest()).decode()


def _leaves(value: JSON) -> Iterator[tuple[str, JSON]]:
    """Pointer and value of every leaf and empty container, in document order."""
    stack = [("", value)]
    while stack:
        pointer, node = stack.pop()
        if isinstance(node, dict) and node:
            stack += [(pointer + pointer_of(name), node[name]) for name in reversed(node)]
        elif isinstance(node, list) and node:
            stack += [(f"{pointer}/{i}", node[i]) for i in range(len(node) - 1, -1, -1)]
        else:
            yield pointer, node
