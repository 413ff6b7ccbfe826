"""The parameters of the hot statements of entries."""

from __future__ import annotations

from psycopg.adapt import PyFormat, Transformer

from state_admin.models import hot
from state_admin.models.entries_sql import JoinedEntry, JoinedPut, NewEntry, putting_existing

STAMP = {
    "workspace": 1, "run": "", "actor_kind": "token", "actor_id": "1", "actor_name": "planner",
    "reason": "", "request_id": "q1", "traceparent": "",
}  # fmt: skip


def types_of(call: hot.Call) -> tuple[int, ...] | None:
    values = hot.number(*call)[1]
    transformer = Transformer()
    transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
    return transformer.types


def test_putting_existing__one_entry__has_parameters_of_one_type_for_all_sizes() -> None:
    """Otherwise each combination of types would be another prepared statement of the connection."""
    found = set()
    for size in (1, 40_000, 3_000_000_000):
        entry = NewEntry(size, "notes", size, "k", "x", size, size, size)
        put = JoinedPut([JoinedEntry(entry, expected=size)], "put", {**STAMP, "workspace": size})
        found.add(types_of(putting_existing([put])))
    assert len(found) == 1
