"""Storage: what is stored, where, how fast it grows, and what compaction saved."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

from .base import Answer, Operation, Page, Paging, Query, doc
from .types import Bytes, Time, Tokens

if TYPE_CHECKING:
    from state_admin import models
    from state_admin.services.storage import Level

Rows = Annotated[int, doc("Number of rows.", 120, ge=0)]
Days = Annotated[int, doc("Length of the series `days`.", 30, ge=1, le=366)]


class StorageDay(Answer):
    """A measurement of one day."""

    day: Annotated[str, doc("The day, in UTC.", "2026-01-31", schema={"format": "date"})]
    rows: Annotated[Rows, doc("Rows in total.")]
    bytes: Annotated[Bytes, doc("Bytes in total.", 65_536)]
    estimated_tokens: Annotated[Tokens, doc("Estimated tokens of all messages.")]
    tokens_saved: Annotated[Tokens, doc("Estimated tokens that compactions of this day saved.", 0)]
    rows_removed: Annotated[Rows, doc("Rows that compactions of this day removed.", 0)]

    @classmethod
    def of(cls, sample: models.StorageSample) -> Self:
        return cls.from_attributes(
            sample, day=sample.day.isoformat(), rows=sample.total_rows, bytes=sample.total_bytes
        )


class Storage(Answer):
    """What a workspace, a namespace or a thread holds. Bytes are those of the values as stored."""

    group: Annotated[
        str, doc("What was measured.", "namespace", choices=("workspace", "namespace", "thread"))
    ]
    name: Annotated[
        str | None,
        doc("Name of the namespace or id of the thread; null: the workspace.", "team_context"),
    ]
    measured_at: Annotated[Time, doc("When it was measured.")]
    exact: Annotated[
        bool, doc("Whether it was measured for this request; otherwise by the last sweep.", True)
    ]
    rows: Annotated[Rows, doc("Rows in total.")]
    bytes: Annotated[Bytes, doc("Bytes in total.", 65_536)]
    estimated_tokens: Annotated[Tokens, doc("Estimated tokens of all messages.")]
    entries: Annotated[Rows, doc("Number of entries.")]
    entry_bytes: Annotated[Bytes, doc("Bytes of the entries.")]
    history_rows: Annotated[Rows, doc("Number of versions of entries.")]
    history_bytes: Annotated[Bytes, doc("Bytes of the versions.")]
    messages: Annotated[Rows, doc("Number of messages.")]
    message_bytes: Annotated[Bytes, doc("Bytes of the messages.")]
    state_rows: Annotated[Rows, doc("Number of state values of threads.")]
    state_bytes: Annotated[Bytes, doc("Bytes of the state values.")]
    growth_bytes_per_day: Annotated[
        float | None,
        doc("Growth in bytes per day, over `days`; null: too few measurements.", 512.0),
    ]
    days: Annotated[list[StorageDay], doc("The last measurement of each day, oldest first.")]

    @classmethod
    def of(cls, level: Level) -> Self:
        newest = level.newest
        return cls.from_attributes(
            newest,
            group=level.group,
            name=level.name or None,
            exact=level.exact,
            rows=newest.total_rows,
            bytes=newest.total_bytes,
            growth_bytes_per_day=level.growth,
            days=[StorageDay.of(sample) for sample in level.days],
        )


class StorageQuery(Paging):
    group: Annotated[
        str,
        doc(
            "What to list: the workspace, its namespaces, or its largest threads.",
            "namespace",
            choices=("workspace", "namespace", "thread"),
        ),
    ] = "workspace"
    days: Days = 30


class MeasureQuery(Query):
    days: Days = 30


_operation = partial(Operation, tag="storage")
LIST_STORAGE = _operation(
    id="list_storage",
    route="GET /usage/storage",
    replica=True,
    summary="List storage",
    description="What was stored at the last measurement, largest first. Of threads, the 100"
    " largest are measured.",
    query=StorageQuery,
    answers={200: Page[Storage]},
)
MEASURE_NAMESPACE = _operation(
    id="measure_namespace",
    route="GET /usage/storage/namespaces/{namespace}",
    summary="Measure a namespace",
    description="What the namespace holds now. If it is too large to be measured in a request, the"
    " last measurement is returned with `exact` false.",
    query=MeasureQuery,
    answers={200: Storage},
    problems=("not-registered", "not-found"),
)
MEASURE_THREAD = _operation(
    id="measure_thread",
    route="GET /usage/storage/threads/{thread_id}",
    summary="Measure a thread",
    description="What the thread holds now. If it is too large to be measured in a request, the last"
    " measurement is returned with `exact` false.",
    query=MeasureQuery,
    answers={200: Storage},
)
