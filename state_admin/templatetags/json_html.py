"""JSON as HTML: a foldable tree, indented text, a table of differences. Text nodes only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from state_admin.domain.diffs import Difference
from state_admin.domain.schema_costs import count_nodes
from state_admin.domain.text_changes import Piece, text_changes
from state_admin.domain.values import JSON, dump, pointer_of
from state_admin.web.addresses import with_query

from .ui import plural

register = template.Library()

register.filter("json", json.dumps)

# A tree with more nodes than this is split into parts, which are fetched when they are opened.
MOST_NODES = 200
_LONGEST = 600
# On a page with many trees, each shows fewer nodes and shorter texts.
_SHORT = 200
# Characters of an unchanged text that are shown beside changed words.
_AROUND = 80
# Characters of a value in a row of a table.
_PREVIEW = 120
_CELL = 48
_UNREAD = "Too large for a list: open the entry"
# A string with the colon that makes it a name, a bracket or comma, or a number or literal.
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*"?)(\s*:)?|([{}\[\],])|([^\s"{}\[\],:]+)')
# A table of differences is truncated after so many characters.
_DIFFERENCE = 50_000


@register.simple_tag
def json_tree(
    value: JSON, pieces_url: str = "", pointer: str = "", nodes: int = MOST_NODES
) -> SafeString:
    """`value` as nested <details>, its first `nodes`. Parts of a large value are fetched from
    `pieces_url` with the parameters `pointer` and `start`, whose response is `tree_piece`; without
    `pieces_url` the tree is complete."""
    writer = _Writer(pieces_url, nodes)
    return format_html('<div class="tree">{}</div>', writer.node("", value, pointer, whole=True))


def tree_piece(value: JSON, pieces_url: str, pointer: str, start: int = 0) -> SafeString:
    """The children of the container `value`, beginning with number `start`."""
    return _Writer(pieces_url).children(value, pointer, start)


class _Writer:
    """Writes a tree of up to `most` nodes; larger parts are left to later requests."""

    def __init__(self, pieces_url: str, most: int = MOST_NODES) -> None:
        self.pieces_url = pieces_url
        self.most = self.left = most
        self.longest = _LONGEST if most == MOST_NODES else _SHORT

    def node(self, label: SafeString | str, value: JSON, place: str, *, whole: bool) -> SafeString:
        self.left -= 1
        if not isinstance(value, (dict, list)) or not value:
            return format_html("<div>{}{}</div>", label, scalar(value, self.longest))
        summary = format_html('{}<span class="m">{}</span>', label, _size(value))
        fits = not self.pieces_url or whole or count_nodes(value, self.left) <= self.left
        if fits:
            return format_html(
                "<details open><summary>{}</summary>{}</details>"
                if whole or self.left > self.most // 2
                else "<details><summary>{}</summary>{}</details>",
                summary,
                self.children(value, place, 0),
            )
        url = with_query(self.pieces_url, pointer=place)
        return format_html(
            '<details hx-get="{}" hx-trigger="toggle once" hx-target="find .piece"'
            ' hx-swap="outerHTML"><summary>{}</summary><div class="piece"><a href="{}">open</a></div>'
            "</details>",
            url,
            summary,
            url,
        )

    def children(self, value: JSON, pointer: str, start: int) -> SafeString:
        pairs: Iterator[tuple[str, SafeString, JSON]]
        if isinstance(value, dict):
            pairs = (
                (str(k), format_html('<span class="k">{}</span>: ', k or '""'), v)
                for k, v in value.items()
            )
        else:
            pairs = (
                (str(i), format_html('<span class="m">{}</span> ', i), v)
                for i, v in enumerate(value)
            )
        most = self.most if self.pieces_url else len(value)
        written = format_html_join(
            "",
            "{}",
            (
                (self.node(label, child, pointer + pointer_of(name), whole=False),)
                for name, label, child in islice(pairs, start, start + most)
            ),
        )
        rest = len(value) - start - most
        if rest <= 0:
            return written
        url = with_query(self.pieces_url, pointer=pointer, start=start + most)
        return format_html(
            '{}<button type="button" class="more" hx-get="{}" hx-target="this" hx-swap="outerHTML">{} more</button>',
            written,
            url,
            f"{rest:,}",
        )


def scalar(value: JSON, longest: int = _LONGEST) -> SafeString:
    """A leaf or an empty container, coloured by its type; a long string is truncated."""
    if isinstance(value, str):
        text = quoted(value)
        if len(text) > longest:
            return format_html(
                '<span class="s">{}…"</span> <span class="m">{} characters</span>',
                text[:longest],
                f"{len(value):,}",
            )
        return format_html('<span class="s">{}</span>', text)
    kind = "m" if value is None or isinstance(value, (bool, dict, list)) else "n"
    return format_html('<span class="{}">{}</span>', kind, dump(value))


@register.simple_tag
def json_preview(text: str, whole: bool = True) -> SafeString:
    """The beginning of JSON text in one line, coloured as in a tree. `whole`: the text is
    complete."""
    pieces, left = [], _PREVIEW
    for token in _TOKEN.finditer(text):
        if left <= 0:
            whole = False
            break
        string, colon, mark, other = token.groups()
        if string is None:
            written, kind = mark or other, "" if mark or other in ("true", "false", "null") else "n"
            text = ", " if mark == "," else written[:left]
        else:
            if "\\" in string:
                string = _respelled(string)
            kind = "k" if colon else "s"
            text = (string[1:-1] or string) if colon else string
            if len(text) > left:
                text = text[: left - 1] + "…"
            text += ": " if colon else ""
        left -= len(text)
        # Not by format_html, which takes five times as long: a list has a thousand of these.
        text = escape(text)
        pieces.append(f'<span class="{kind}">{text}</span>' if kind else text)
    return SafeString("".join(pieces) + ("" if whole else "…"))


def _respelled(string: str) -> str:
    """A JSON string without the escapes that it does not need, if it is complete."""
    try:
        return quoted(json.loads(string))
    except ValueError:
        return string


def member_cell(members: Mapping[str, JSON] | None, name: str) -> SafeString | str:
    """A member of a value in a cell of a table: a string without quotation marks, truncated. "" if
    the value has no such member. `members` is None for a value that the list did not read."""
    if members is None:
        return format_html('<span class="muted" title="{}">…</span>', _UNREAD)
    if name not in members:
        return ""
    value = members[name]
    if isinstance(value, str):
        return value if len(value) <= _CELL else f"{value[:_CELL]}…"
    if isinstance(value, (dict, list)):
        return format_html('<span class="muted">{}</span>', _size(value))
    if value is None or isinstance(value, bool):
        return format_html('<span class="muted">{}</span>', dump(value))
    text = dump(value)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


def _size(value: JSON) -> str:
    if isinstance(value, dict):
        return f"{{ {plural(len(value), 'key,keys')} }}"
    return f"[ {plural(len(value), 'item,items')} ]"


@register.filter
def pretty(value: JSON, most: int | None = None) -> str:
    """Indented JSON with the original spelling of numbers; short lists of scalars stay on one line.
    With `most`, at most so many characters."""
    if most is None:
        return "".join(_pieces(value, "\n"))
    pieces, left = [], most
    for piece in _pieces(value, "\n"):
        pieces.append(piece[:left])
        left -= len(piece)
        if left < 0:
            return "".join(pieces) + "…"
    return "".join(pieces)


def _pieces(value: JSON, newline: str) -> Iterator[str]:
    if not isinstance(value, (dict, list)) or not value:
        yield dump(value)
        return
    inner = newline + "  "
    if isinstance(value, dict):
        between = "{"
        for name, member in value.items():
            yield f"{between}{inner}{quoted(name)}: "
            yield from _pieces(member, inner)
            between = ","
        yield newline + "}"
        return
    if not any(isinstance(item, (dict, list)) for item in value):
        line = ", ".join(map(dump, value))
        if len(line) <= 88:
            yield f"[{line}]"
            return
    between = "["
    for item in value:
        yield between + inner
        yield from _pieces(item, inner)
        between = ","
    yield newline + "]"


@register.inclusion_tag("components/_diff.html")
def diff_table(
    rows: Sequence[Difference], label: str = "Differences", limit: int = 500
) -> dict[str, Any]:
    """The differences of two values, from domain.diffs.rows. `label` is the name of the table,
    which must be unique on a page."""
    lines, left = [], _DIFFERENCE
    for row in rows:
        before = pretty(row.before, 4 * _LONGEST) if row.kind != "added" else None
        after = pretty(row.after, 4 * _LONGEST) if row.kind != "removed" else None
        left -= len(row.pointer) + len(before or "") + len(after or "")
        lines.append(
            {
                "pointer": row.pointer or "(the whole value)",
                "kind": row.kind,
                "before": before,
                "after": after,
                "words": changed_words(row),
            }
        )
        if left < 0:
            break
    return {
        "lines": lines,
        "label": label,
        "capped": len(lines) >= limit or len(lines) < len(rows),
    }


def changed_words(row: Difference) -> list[Piece] | None:
    """The changed words of a string, with what is around them. None: show both values whole."""
    if not (isinstance(row.before, str) and isinstance(row.after, str)):
        return None
    pieces = text_changes(row.before, row.after)
    if pieces is None or sum(len(text) for kind, text in pieces if kind != "same") > 4 * _LONGEST:
        return None
    last = len(pieces) - 1
    return [
        Piece(kind, dump(_around(text, place, last) if kind == "same" else text)[1:-1])
        for place, (kind, text) in enumerate(pieces)
    ]


def _around(text: str, place: int, last: int) -> str:
    """The beginning and end of an unchanged text, as far as they are next to a change."""
    if len(text) <= 3 * _AROUND:
        return text
    start = text[:_AROUND] if place > 0 else ""
    return f"{start}…{text[-_AROUND:] if place < last else ''}"
