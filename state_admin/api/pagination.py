"""Keyset pages: a cursor is the last row's key, sealed to the filters it was made for."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from rest_framework.request import Request

from state_admin.services.errors import BadRequest, Invalid

MAX_LIMIT = 200
DEFAULT_LIMIT = 50


@dataclass(frozen=True)
class Page:
    """What a caller asked for: how many rows, after which position (None: from the start)."""

    limit: int
    after: Any
    filters: str

    def close(
        self, rows: Sequence[Any], position: Callable[[Any], Any]
    ) -> tuple[Sequence[Any], str | None]:
        """The rows of this page out of `limit + 1` fetched, and the cursor to the next."""
        if len(rows) <= self.limit:
            return rows, None
        rows = rows[: self.limit]
        return rows, self.cursor_to(position(rows[-1]))

    def cursor_to(self, position: Any) -> str:
        """The cursor to what stands behind `position`."""
        return _seal(self.filters, position)


def read_page(request: Request, position: type[int] | type[str] = int) -> Page:
    """The page that the query string asks for; `position` is what the list is ordered by.
    BadRequest for a cursor that is not ours, or was made for other filters."""
    query = request.query_params
    filters = _fingerprint(
        sorted((k, v) for k, vs in query.lists() if k not in ("cursor", "limit") for v in vs),
        request.path,
    )
    after = _open(query["cursor"], filters, position) if query.get("cursor") else None
    return Page(read_limit(request), after, filters)


def page_of(*, limit: int | None, cursor: str | None, filters: Any, path: str) -> Page:
    """The page that a body asks for; the list is ordered by an integer."""
    sealed = _fingerprint(filters, path)
    after = _open(cursor, sealed, int) if cursor else None
    return Page(limit or DEFAULT_LIMIT, after, sealed)


def read_limit(request: Request) -> int:
    limit = read_int(request, "limit", default=DEFAULT_LIMIT)
    if limit is None or not 1 <= limit <= MAX_LIMIT:
        raise BadRequest(f"limit must be between 1 and {MAX_LIMIT}")
    return limit


def read_int(
    request: Request, name: str, *, default: int | None = None, minimum: int = 0
) -> int | None:
    """An integer of the query string, or `default` when it is not there."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18) or int(text) < minimum:
        raise BadRequest(f"{name} must be a whole number of at least {minimum}")
    return int(text)


def read_choice(request: Request, name: str, choices: Sequence[str], default: str = "") -> str:
    """One of `choices` from the query string; Invalid names them otherwise."""
    text = request.query_params.get(name, default)
    if text != default and text not in choices:
        raise Invalid(f"{name} must be one of {', '.join(choices)}")
    return text


def refuse_unknown(request: Request, *known: str) -> None:
    """BadRequest for a query parameter that the path does not know: a typo must not widen."""
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        raise BadRequest(
            f"unknown query parameter: {', '.join(unknown)}",
            hint=f"Known here: {', '.join(known) or 'none'}.",
        )


def _fingerprint(filters: Any, path: str) -> str:
    return hashlib.sha256(orjson.dumps([path, filters])).hexdigest()[:12]


def _seal(filters: str, position: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([filters, position])).decode().rstrip("=")


def _open(cursor: str, filters: str, kind: type[int] | type[str]) -> Any:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        made_for, position = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        if type(position) is not kind or "\0" in str(position):
            raise TypeError
    except (ValueError, binascii.Error, TypeError):
        raise BadRequest("cursor must be one that this API gave out") from None
    if made_for != filters:
        raise BadRequest(
            "cursor does not match the filters", hint="Repeat the filters it was made with."
        )
    return position
