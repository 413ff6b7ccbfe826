"""Keyset pages of lists: where the address says to begin, and the addresses beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.http import HttpRequest

from state_admin.domain.numbers import read_whole
from state_admin.services.errors import BadRequest

T = TypeVar("T")


def whole_number(request: HttpRequest, name: str) -> int | None:
    """A number of the query string, None without it. BadRequest for anything else."""
    return read_number(name, request.GET.get(name, ""))


def read_number(name: str, text: str) -> int | None:
    """A number that somebody sent as `name`, None for "". BadRequest for anything else, and for
    more than a bigint holds."""
    return read_required_number(name, text) if text else None


def read_required_number(name: str, text: str) -> int:
    """The same, and BadRequest for ""."""
    number = read_whole(text)
    if number is None:
        raise BadRequest(f"{name} must be a whole number")
    return number


def choice(request: HttpRequest, name: str, choices: Sequence[str]) -> str:
    """One of `choices` from the query string, else "": what nobody offers is not obeyed."""
    text = request.GET.get(name, "")
    return text if text in choices else ""


def text(request: HttpRequest, name: str) -> str:
    """A text of the query string as PostgreSQL can compare it."""
    return request.GET.get(name, "").replace("\0", "").strip()


def cut(rows: Sequence[T], most: int, url: Callable[[T], str]) -> tuple[Sequence[T], str]:
    """The rows of a page out of `most + 1` fetched, and the address of the next page, or ""."""
    if len(rows) <= most:
        return rows, ""
    return rows[:most], url(rows[most - 1])
