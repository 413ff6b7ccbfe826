"""The cells of the rows of a data table (web/tables.py), in the order of the columns that it shows."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.template.base import NodeList, Parser, Token
from django.utils.safestring import SafeString

register = template.Library()


class Cells(template.Node):
    def __init__(self, cells: Mapping[str, NodeList]) -> None:
        self._cells = cells

    def render(self, context: template.Context) -> SafeString:
        columns = context["columns"].visible
        return SafeString("".join(self._cells[column.id].render(context) for column in columns))


@register.tag
def cells(parser: Parser, token: Token) -> Cells:
    """The `<td>` of each visible column: `{% cells %}{% cell role %}<td>…</td>{% cell
    last-used %}<td>…</td>{% endcells %}`, with the ids of the columns."""
    ends = ("cell", "endcells")
    parser.parse(ends)  # spaces before the first one
    found, part = {}, parser.next_token()
    while part.contents != "endcells":
        found[part.split_contents()[1]] = parser.parse(ends)
        part = parser.next_token()
    return Cells(found)
