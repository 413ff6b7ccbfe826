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
from markdown_it.token import Token

register = template.Library()

_LINKS = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_REL = "nofollow noopener noreferrer"
# Longer texts are shown as they are, because pathological ones would take seconds.
_LONGEST = 10_000
# The parser leaves out blocks that are nested more deeply.
_NESTED = 20


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


_PARSER = _parser()


@register.filter
def markdown(text: str) -> SafeString:
    """The text as HTML; as plain text if it is long, or if its HTML would be much larger or lack
    what is nested too deeply. The parser escapes all of the text that it writes."""
    if len(text) > _LONGEST:
        return conditional_escape(text)
    tokens = _PARSER.parse(text)
    if any(token.level >= _NESTED for token in tokens):
        return conditional_escape(text)
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    if len(html) > 8 * len(text) + 500:
        return conditional_escape(text)
    # Also those quotation marks that the parser does not escape, as in all other texts of a page.
    return format_html('<div class="markdown">{}</div>', SafeString(html.replace("'", "&#x27;")))
