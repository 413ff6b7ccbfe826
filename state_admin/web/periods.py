"""The filter of lists by a period: some time until now, or between two times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.http import HttpRequest, QueryDict

from .paging import last_text, read_moment
from .tables import Field

_LENGTHS: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
SINCES: Final = {"hour": "last hour", "day": "last day", "week": "last 7 days"}


def read_period(query: QueryDict) -> tuple[str, str]:
    """The parameters `since` and `until`. `from` is the time of `since` in a form, whose choice of a
    period wins. BadRequest for malformed times."""
    since, start, until = (last_text(query, name).strip() for name in ("since", "from", "until"))
    since = since or start
    _ = start_of(since), end_of(until)
    return since, until


def start_of(since: str) -> datetime | None:
    """The time that `since` means: some time ago, or a timestamp."""
    if since in _LENGTHS:
        return datetime.now(UTC) - _LENGTHS[since]
    return read_moment("since", since) if since else None


def end_of(until: str) -> datetime | None:
    return read_moment("until", until) if until else None


@dataclass(frozen=True)
class Period:
    """The filter in the menu of a list (tables.Filter). `verb` says what happened in the period:
    "Changed"."""

    verb: str

    def read(self, request: HttpRequest) -> dict[str, str]:
        since, until = read_period(request.GET)
        return {"since": since, "until": until}

    def filled(self, filters: Mapping[str, str]) -> list[Field]:
        return period_fields(self.verb, filters["since"], filters["until"])


def period_fields(verb: str, since: str, until: str) -> list[Field]:
    """The fields of the filter, as of a Period."""
    # A field for times in UTC takes no Z.
    return [
        Field("since", verb, since if since in SINCES else "", SINCES, "any time"),
        Field(
            "from",
            f"{verb} from, UTC",
            "" if since in SINCES else since.removesuffix("Z"),
            type="datetime-local",
            clears="since",
        ),
        Field("until", f"{verb} before, UTC", until.removesuffix("Z"), type="datetime-local"),
    ]
