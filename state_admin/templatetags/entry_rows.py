"""The cells of a row of the state browser. In Python, because a page has hundreds of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .json_html import json_preview, member_cell
from .ui import number, pill, size, when

if TYPE_CHECKING:
    from state_admin.web.entry_list import EntryListRow
    from state_admin.web.tables import Column

register = template.Library()

_FORM: Final = "entries/_cell_form.html"


@register.simple_tag(takes_context=True)
def entry_cells(context: template.Context) -> SafeString:
    """The <td> elements of `row`, one for each of `columns.visible`. With `form`, the cell of its column
    is a form."""
    row: EntryListRow = context["row"]
    form = context.get("form")
    editable = context["can_edit"] and row.editable
    cells = []
    for column in context["columns"].visible:
        if form and form.column == column.id:
            form_html: str = template.Engine.get_default().get_template(_FORM).render(context)
            cells.append(_member(column, form_html, editable=True))
        elif column.member is not None:
            html = member_cell(row.members, column.member)
            cells.append(_member(column, html, editable=editable))
        elif column.id == "state":
            cells.append(_state(row, context["filters"].show))
        else:
            cells.append(_CELLS[column.id](row))
    return SafeString("".join(cells))


def _member(column: Column, html: str, *, editable: bool) -> SafeString:
    kinds = f"member{' num' if column.numeric else ''}{' cell' if editable else ''}"
    return format_html('<td class="{}">{}</td>', kinds, html)


def _value(row: EntryListRow) -> SafeString:
    text = row.text
    preview = json_preview(text.text, text.whole) if text and text.text else ""
    return format_html('<td class="peek">{}</td>', preview)


def _state(row: EntryListRow, show: str) -> SafeString:
    pills: list[SafeString] = []
    if not row.line.registered:
        pills.append(pill("stuck", "unregistered"))
    elif show == "deleted":
        pills.append(pill("note", "deleted"))
    elif not row.valid:
        pills.append(pill("failed", "invalid"))
    if row.line.pinned:
        pills.append(pill("note", "pinned"))
    return format_html('<td class="state">{}</td>', SafeString(" ".join(pills)))


def _tags(row: EntryListRow) -> SafeString:
    tags = format_html_join(" ", '<span class="tag">{}</span>', ((tag,) for tag in row.line.tags))
    return format_html('<td class="tags" title="{}">{}</td>', ", ".join(row.line.tags), tags)


def _expires(row: EntryListRow) -> SafeString:
    moment = row.line.expires_at
    return format_html("<td>{}</td>", when(moment) if moment else "")


def _actor(row: EntryListRow) -> SafeString:
    return format_html('<td class="clip" title="{0}">{0}</td>', row.line.actor_name)


_CELLS: Final[dict[str, Callable[[EntryListRow], SafeString]]] = {
    "value": _value,
    "tags": _tags,
    "expires": _expires,
    "version": lambda row: format_html('<td class="num">{}</td>', number(row.line.version)),
    "size": lambda row: format_html('<td class="num">{}</td>', size(row.line.size_bytes)),
    "actor": _actor,
    "changed": lambda row: format_html("<td>{}</td>", when(row.line.updated_at)),
}
