"""Search queries, whether a value matches one, and what an index stores of a value (ADR 6).

A text searches the words of the key and of the value: its member names, strings, numbers, booleans
and null. A condition compares the value at a JSON Pointer. An index stores the words, and facts
about the value (`lexemes`; a fact is a hash of a pointer and its leaf). It may return a value that
does not match, but never misses one that does: `find` decides. Not here: where values and indexes
are stored.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import contains, eq
from typing import Any, Final, Literal, NamedTuple, get_args

from state_admin.domain import json_pointers
from state_admin.domain.scopes import ScopeKind, scope_kind
from state_admin.domain.values import JSON, MISSING, dump, load, pointer_of, same

Operator = Literal["=", "!=", ">", ">=", "<", "<=", "contains", "exists"]
OPERATORS: Final[tuple[str, ...]] = get_args(Operator)

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
_BEFORE_WORD: Final = r"(^|[^a-z0-9]|\\[bfnrt])"
_BEHIND_WORD: Final = "([^a-z0-9]|$)"
# The parts of a text: a phrase, a condition (a pointer, an operator and a value) or a word. A pointer
# that contains a space, a quotation mark or one of =<>! can be used in `where` only.
_PART: Final = re.compile(
    r""""(?P<phrase>[^"]*)"?
    |(?<!\S)(?P<pointer>/[^\s=<>!"]*)
    (?:\s*(?P<sign>!?[=<>]+)\s*|\s+(?P<word>contains)\s+|\s+(?P<exists>exists)(?!\S))
    (?(exists)|(?P<value>"(?:[^"\\]|\\.)*"|\S+))
    |(?P<plain>\S+)""",
    re.VERBOSE,
)
_SCALAR: Final = re.compile(r'-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null|".*"')


class Word(NamedTuple):
    """A normalized word, and its position in its text."""

    text: str
    start: int
    end: int


class Term(NamedTuple):
    """Words that must follow one another in one name or leaf. With `prefix`, the last one may be the
    beginning of a word. With `inside`, the first one may be the end of a word or, if it is the only one,
    any part of it."""

    words: tuple[str, ...]
    prefix: bool
    inside: bool = False


class Condition(NamedTuple):
    """Compares the value at `pointer` with `value`. Never met if nothing is at the pointer.

    `=` and `!=` compare as values.same. `>`, `>=`, `<` and `<=` compare numbers with numbers, and
    strings with strings by code point. `contains`: a string contains the text `value`, case-folded;
    an array contains the item; an object has a member with this name. `exists` ignores `value`.
    """

    pointer: str
    operator: Operator
    value: JSON


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
    """The query is not valid; `str(e)` says why. `condition`: the index of the wrong one in `where`,
    or None if the text is wrong."""

    def __init__(self, message: str, condition: int | None = None) -> None:
        super().__init__(message)
        self.condition = condition


def parse(text: str, where: Sequence[Condition] = ()) -> Query:
    """A query from typed text (words, "a phrase", `/price > 100`) and conditions. A word also finds
    words that begin with it; a single character only with `*` behind it. A word with `*` before it
    finds words that contain it. Raises BadQuery."""
    if len(text) > MAX_TEXT:
        raise BadQuery(f"the text has at most {MAX_TEXT:,} characters")
    parts = list(_PART.finditer(text))
    spelled_conditions = [_read_condition(part) for part in parts if part["pointer"] is not None]
    conditions = [*where, *spelled_conditions]
    if len(conditions) > MAX_CONDITIONS:
        raise BadQuery(f"at most {MAX_CONDITIONS} conditions")
    terms = []
    for part in parts:
        plain = part["plain"] or ""
        spelled = part["phrase"] or plain
        if found := tuple(word.text for word in words(spelled)):
            inside = plain.startswith("*")
            prefix = bool(plain) and (inside or plain.endswith("*") or len("".join(found)) > 1)
            terms.append(Term(found, prefix, inside))
    if len(terms) > MAX_TERMS:
        raise BadQuery(f"at most {MAX_TERMS} words and phrases")
    if text.strip() and not terms and not spelled_conditions:
        raise BadQuery("the text has no letter or digit to search for")
    if not terms and not conditions:
        raise BadQuery("a text, a condition or both are required")
    normalized = [
        _normalize(each, index if index < len(where) else None)
        for index, each in enumerate(conditions)
    ]
    return Query(tuple(terms), tuple(normalized))


def star_words(text: str) -> str:
    """The text with `*` before each word, so that it finds words that contain it. The text as it is, if
    it would be too long."""

    def spell(part: re.Match[str]) -> str:
        plain = part["plain"] or ""
        return f"*{plain.lstrip('*')}" if any(words(plain)) else part[0]

    spelled = _PART.sub(spell, text)
    return spelled if len(spelled) <= MAX_TEXT else text


def _read_condition(found: re.Match[str]) -> Condition:
    operator: Any = found["sign"] or found["word"] or found["exists"]
    if operator not in OPERATORS:
        raise BadQuery(f"{operator} is not an operator: use one of {', '.join(OPERATORS)}")
    value: JSON = found["value"]
    # Otherwise it is a string without quotation marks, or None.
    if isinstance(value, str) and _SCALAR.fullmatch(value):
        try:
            value = load(value)
        except ValueError:
            raise BadQuery(f"{value} is not a JSON string") from None
    return Condition(found["pointer"], operator, value)


def _normalize(condition: Condition, index: int | None) -> Condition:
    try:
        pointer = pointer_of(*json_pointers.parts_of(condition.pointer))
    except json_pointers.Mismatch as bad:
        raise BadQuery(str(bad), index) from None
    return condition._replace(pointer=pointer)


def plain_words(text: str) -> list[str]:
    """The words of a text in which nothing else has a meaning. Raises BadQuery without a letter or
    digit, and for too many."""
    found = [word for word in text.split() if any(letter.isalnum() for letter in word)]
    if not found:
        raise BadQuery("the text has no letter or digit to search for")
    if len(found) > MAX_TERMS:
        raise BadQuery(f"at most {MAX_TERMS} words")
    return found


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


def find(value: JSON, query: Query, key: str = "") -> list[Match] | None:
    """Where the value matches the query, conditions first; None if it and its key do not. A term
    that the key contains needs no place in the value."""
    matches = []
    for condition in query.where:
        found = json_pointers.look_up(value, json_pointers.parts_of(condition.pointer))
        if found is MISSING or not _meets(found, condition):
            return None
        matches.append(Match(condition.pointer, _truncate(_spell(found))))
    # Each term, with those of its words that must equal a whole word.
    missing = [
        (term, frozenset(_whole_words(term)))
        for term in dict.fromkeys(query.terms)
        if not _is_in_key(key, term)
    ]
    # The text behind a name that matches may be long, so it is not read any more.
    texts = ((each, text) for each in _places(value) for text in _texts(each))
    for place, text in texts:
        if not missing:
            break
        spelled = list(words(text))
        present = {word.text for word in spelled}
        for each in list(missing):
            term, whole = each
            at = _place(spelled, term) if whole <= present else None
            if at is not None:
                missing.remove(each)
                start, end = spelled[at].start, spelled[at + len(term.words) - 1].end
                named = text is place.name
                snippet = _label(place) if named else _snippet(text, start, end)
                matches.append(Match(place.pointer, snippet))
    if missing:
        return None
    seen: dict[str, Match] = {}
    for match in matches:
        seen.setdefault(match.pointer, match)
    return list(seen.values())[:MAX_MATCHES]


def _meets(found: JSON, condition: Condition) -> bool:
    operator, value = condition.operator, condition.value
    if operator == "exists":
        return True
    if operator in ("=", "!="):
        return same(found, value) == (operator == "=")
    if operator == "contains":
        match found:
            case str():
                return isinstance(value, str) and _fold(value) in _fold(found)
            case list():
                return any(same(item, value) for item in found)
            case dict():
                return value in found if isinstance(value, str) else False
        return False
    return _compare(found, operator, value)


def _compare(found: Any, operator: str, value: Any) -> bool:
    """Whether the order holds: between two numbers, or two strings. False for any other types."""
    if isinstance(found, bool) or isinstance(value, bool):
        return False
    numbers = isinstance(found, (int, float)) and isinstance(value, (int, float))
    if not numbers and not (isinstance(found, str) and isinstance(value, str)):
        return False
    if operator in (">", ">="):
        return bool(found > value if operator == ">" else found >= value)
    return bool(found < value if operator == "<" else found <= value)


def _is_in_key(key: str, term: Term) -> bool:
    """Not if it is in the scope only: `thread` would find every key that begins with
    `parent_thread::`. The whole key is found."""
    scope, separator, _ = key.partition("::")
    scoped = separator and scope_kind(key) is not ScopeKind.CUSTOM
    first = len(list(words(scope))) + 1 - len(term.words) if scoped else 0
    return _place(list(words(key)), term, max(0, first)) is not None


def _whole_words(term: Term) -> tuple[str, ...]:
    """The words of a term that must not be parts of longer words."""
    return term.words[term.inside : len(term.words) - term.prefix]


def _place(spelled: list[Word], term: Term, first: int = 0) -> int | None:
    # How a word of the text is compared with each word of the term: by functions in C, the last one first.
    fits: list[Callable[[str, str], bool]] = [eq] * len(term.words)
    if term.inside:
        fits[0] = str.endswith
    if term.prefix:
        fits[-1] = contains if term.inside and len(fits) == 1 else str.startswith
    (fits_last, last), *others = reversed(list(zip(fits, term.words, strict=True)))
    for at in range(first + len(others), len(spelled)):
        if fits_last(spelled[at].text, last) and all(
            fit(spelled[at - i].text, word) for i, (fit, word) in enumerate(others, 1)
        ):
            return at - len(others)
    return None


def _snippet(text: str, start: int, end: int) -> str:
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    excerpt = " ".join(text[left:right].split())
    return ("…" if left else "") + excerpt + ("…" if right < len(text) else "")


def _truncate(text: str) -> str:
    return text if len(text) <= 2 * _AROUND else text[: 2 * _AROUND] + "…"


def lexemes(value: JSON, homes: Sequence[str], key: str = "") -> list[str]:
    """What an index stores of an entry: the words of its key and value, the facts of its value, and
    `homes`, its workspace and namespace."""
    found = {*homes, *(word.text[:_LONGEST] for word in words(key))}
    for place in _places(value):
        if place.is_leaf():
            found.add(_fact(place.pointer, place.node))
        for text in _texts(place):
            found.update(word.text[:_LONGEST] for word in words(text))
    if sum(len(lexeme.encode()) for lexeme in found) > _MOST_BYTES:
        return sorted({*homes, _EVERY})
    return sorted(found)


def tsquery(query: Query, home: str) -> str:
    """The lexemes that a match must have, as PostgreSQL's tsquery."""
    lexemes = []
    for term in query.terms:
        lexemes += [_quoted(word[:_LONGEST]) for word in _whole_words(term)]
        if term.prefix and len(term.words) > term.inside:
            lexemes.append(_quoted(term.words[-1][:_LONGEST]) + ":*")
    for pointer, operator, value in query.where:
        if operator == "=":
            leaves = [place for place in _places(value) if place.is_leaf()]
            lexemes += [_quoted(_fact(pointer + leaf.pointer, leaf.node)) for leaf in leaves]
            continue
        for name in json_pointers.parts_of(pointer):
            if not name.isdecimal():  # otherwise it may be the index of an item
                lexemes += [_quoted(word.text[:_LONGEST]) for word in words(name)]
    if not lexemes:
        return _quoted(home)
    return f"{_quoted(home)} & ({_quoted(_EVERY)} | ({' & '.join(dict.fromkeys(lexemes))}))"


def build_patterns(query: Query) -> list[str]:
    r"""For each word of the terms a regular expression, valid in Python and PostgreSQL, that
    matches the key and the JSON text of every entry that matches the query, joined by a line break
    and in lower case, if they are ASCII without `\\u`: JSON escapes nothing else that could be part
    of a word."""
    lexemes = []
    for term in query.terms:
        patterns = [_BEFORE_WORD + word + _BEHIND_WORD for word in term.words]
        if term.inside:
            patterns[0] = patterns[0].removeprefix(_BEFORE_WORD)
        if term.prefix:
            patterns[-1] = patterns[-1].removesuffix(_BEHIND_WORD)
        lexemes += patterns
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


class _Place(NamedTuple):
    """A node of a value. `name`: of the member, if the node is in an object."""

    pointer: str
    name: str | None
    node: JSON

    def is_leaf(self) -> bool:
        """Whether it has no children: a scalar, or an empty object or array."""
        return not (isinstance(self.node, (dict, list)) and self.node)


def _places(value: JSON) -> Iterator[_Place]:
    """Every node, in document order."""
    stack = [_Place("", None, value)]
    while stack:
        place = stack.pop()
        yield place
        pointer, _, node = place
        if isinstance(node, dict):
            stack += [
                _Place(pointer + pointer_of(name), name, node[name]) for name in reversed(node)
            ]
        elif isinstance(node, list):
            stack += [_Place(f"{pointer}/{i}", None, node[i]) for i in range(len(node) - 1, -1, -1)]


def _texts(place: _Place) -> Iterator[str]:
    """The texts that are searched at a place: its name and, for a scalar, its value."""
    if place.name is not None:
        yield place.name
    if not isinstance(place.node, (dict, list)):
        yield _spell(place.node)


def _label(place: _Place) -> str:
    """The snippet of a matching name."""
    content = "…" if isinstance(place.node, (dict, list)) else _spell(place.node)
    return _truncate(f"{place.name}: {content}")


def _spell(node: JSON) -> str:
    """A string as it is, another value as its JSON text."""
    return node if isinstance(node, str) else dump(node)
