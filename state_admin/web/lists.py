"""The lists of the admin as files, with the URL and the filters of their page: one page as `.json`
with the URL of the next, or the whole list as `.csv`. The fields are those of the API."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.urls import URLPattern, path

from state_admin.domain.access import Role

from .actors import page
from .htmx import Request
from .tables import FindRows, Table

Row = TypeVar("Row")

# Takes a request and the name of a URL pattern. Returns the items of the requested page, all of one
# struct (that of the contract, if it has one), and the URL of the next page, "" on the last one.
Find = Callable[..., tuple[Sequence[msgspec.Struct], str]]

# Spreadsheets evaluate cells that begin with these as formulas. A leading apostrophe prevents it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def list_paths(
    route: str, name: str, find: Find, *, role: Role = Role.VIEWER, without: Sequence[str] = ()
) -> list[URLPattern]:
    """The URL patterns `<route>.json` and `<route>.csv`, named `<name>-json` and `<name>-csv`.
    `without`: fields that the items never have, which are left out of the columns."""

    @page(role=role, replica=True)
    def as_json(request: Request, **address: str) -> HttpResponse:
        items, next_url = find(request, f"web:{name}-json", **address)
        body = msgspec.json.encode({"items": items, "next": next_url or None})
        return HttpResponse(body, content_type="application/json")

    @page(role=role, replica=True)
    def as_csv(request: Request, **address: str) -> StreamingHttpResponse:
        def pages() -> Iterator[Sequence[msgspec.Struct]]:
            items, next_url = first
            yield items
            while next_url:
                request.GET = QueryDict(urlsplit(next_url).query)
                items, next_url = find(request, f"web:{name}-csv", **address)
                yield items

        # Before the response starts, so that invalid filters still return an error.
        first = find(request, f"web:{name}-csv", **address)
        response = StreamingHttpResponse(
            _lines(pages(), without), content_type="text/csv; charset=utf-8"
        )
        last = route.rpartition("/")[2]
        filename = name if "<" in last else last
        response["Content-Disposition"] = f'attachment; filename="{filename}.csv"'
        return response

    return [
        path(f"{route}.json", as_json, name=f"{name}-json"),
        path(f"{route}.csv", as_csv, name=f"{name}-csv"),
    ]


def table_paths(
    route: str,
    table: Table,
    find: FindRows[Row],
    show: Callable[[Row], msgspec.Struct],
    *,
    role: Role = Role.VIEWER,
) -> list[URLPattern]:
    """As list_paths, but for a data table. `show` converts a row to an item of the list."""

    def find_items(request: Request, name: str) -> tuple[Sequence[msgspec.Struct], str]:
        rows, next_url = find(request, table.read(request), name)
        return [show(row) for row in rows], next_url

    return list_paths(route, table.name.removeprefix("web:"), find_items, role=role)


def cell(value: Any) -> str:
    """A value as the text of a CSV cell, escaped so that a spreadsheet does not evaluate it."""
    if value is None or value is msgspec.UNSET:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    text = msgspec.json.encode(value).decode()
    return "" if text == "null" else text


class _LineBuffer:
    """The file object for csv.writer: returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def _lines(pages: Iterable[Sequence[msgspec.Struct]], without: Sequence[str]) -> Iterator[str]:
    writer = csv.writer(_LineBuffer())
    columns: list[str] = []
    for items in pages:
        if items and not columns:
            columns = [name for name in items[0].__struct_fields__ if name not in without]
            yield writer.writerow(columns)
        for item in items:
            yield writer.writerow([cell(getattr(item, name)) for name in columns])
