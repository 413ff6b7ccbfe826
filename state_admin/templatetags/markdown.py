"""Markdown in messages as HTML.

Messages come from models and untrusted people, so their content never becomes markup: HTML is shown
as text, images are links, and links lead only to web pages and mail addresses. Nothing is hidden
either: link definitions and character references are shown as written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import escapedSplit, getLine, table
from markdown_it.token import Token

register = template.Library()

_LINKS = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_REL = "nofollow noopener noreferrer"
# Longer texts are shown as they are, because pathological ones would take seconds.
_LONGEST = 10_000
# The parser leaves out blocks that are nested more deeply.
_NESTED = 20
# In the environment of the parser: a row has more cells than its table has columns. The parser
# leaves them out.
_LOST_CELLS = "lost_cells"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": _NESTED + 2})
    parser.enable(["table", "strikethrough"])
    parser.disable(["image", "reference", "entity"])
    parser.validateLink = lambda url: bool(_LINKS.match(url))  # type: ignore[method-assign]
    for name, tag in (
        ("heading_open", '<p class="heading">'),
        ("heading_close", "</p>\n"),
        (
            "table_open",
            '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n',
        ),
        ("table_close", "</table></div>\n"),
    ):
        parser.add_render_rule(name, _constant(tag))
    parser.add_render_rule("link_open", _open_link)
    for name in ("th_open", "td_open"):
        parser.add_render_rule(name, _open_cell)
    parser.add_render_rule("fence", _fence)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _constant(tag: str) -> Any:
    return lambda renderer, tokens, index, options, env: tag


def _open_link(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", _REL)
    return str(renderer.renderToken(tokens, index, options, env))


def _open_cell(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    # The alignment would be an inline style, which the CSP forbids.
    tokens[index].attrs.pop("style", None)
    return str(renderer.renderToken(tokens, index, options, env))


def _fence(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """A block of code below its info string."""
    info = escapeHtml(tokens[index].info.strip())
    code = renderer.fence(tokens, index, options, env)
    return f'<p class="muted">{info}</p>\n{code}' if info else str(code)


def _table(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    if not table(state, first, end, silent):
        return False
    if not silent:
        most = _cells(state, first)
        if any(_cells(state, line) > most for line in range(first + 2, state.line)):
            state.env[_LOST_CELLS] = True
    return True


def _cells(state: StateBlock, line: int) -> int:
    cells = escapedSplit(getLine(state, line).strip())
    return len(cells) - (cells[0] == "") - (len(cells) > 1 and cells[-1] == "")


_PARSER = _parser()


@register.filter
def markdown(text: str) -> SafeString:
    """The text as HTML; as plain text if it is long, or if its HTML would be much larger or lack
    what is nested too deeply, or cells beyond the last column. The parser escapes all of the text that it writes."""
    if len(text) > _LONGEST:
        return conditional_escape(text)
    env: dict[str, bool] = {}
    tokens = _PARSER.parse(text, env)
    if _LOST_CELLS in env or any(token.level >= _NESTED for token in tokens):
        return conditional_escape(text)
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    if len(html) > 8 * len(text) + 500:
        return conditional_escape(text)
    # Also those quotation marks that the parser does not escape, as in all other texts of a page.
    return format_html('<div class="markdown">{}</div>', SafeString(html.replace("'", "&#x27;")))
