"""A data table (web/tables.py), and the cells of its rows in the order of the columns that it shows."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.template.base import NodeList, Parser, Token
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_block_tag(takes_context=True)
def data_table(
    context: template.Context, content: str, label: str, target: str, classes: str = "stacked"
) -> str:
    """The table of a list with the rows in the block. Its headings load the list into `target`:
    `{% data_table "Runs" "#run-table" %}<tr>…</tr>{% enddata_table %}`."""
    page = template.Engine.get_default().get_template("components/_data_table.html")
    with context.push(label=label, target=target, classes=classes, content=content):
        return page.render(context)


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
