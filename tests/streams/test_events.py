"""The wire format of a stream."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from msgspec.structs import asdict

from state_admin.models.feed_sql import FeedRow, Position
from state_admin.streams import cursors, events

AT = datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC)
ROW = FeedRow(7, 3, AT, "entry.put", "notes", "a\nb\r🙂", "", "", 2, "alice")


def test_change__any_key__is_one_data_line_with_the_item_of_the_list() -> None:
    block = events.change(ROW).decode()

    lines = block.split("\n")
    assert lines[:2] == [f"id: {cursors.seal(Position(7, 3), AT)}", "event: change"]
    assert lines[3:] == ["", ""]
    assert json.loads(lines[2].removeprefix("data: ")) == asdict(events.show(ROW))
    assert "\r" not in block


def test_show__absent_fields__are_null() -> None:
    assert asdict(events.show(ROW)) == {
        "cursor": cursors.seal(Position(7, 3), AT),
        "kind": "entry.put",
        "namespace": "notes",
        "key": "a\nb\r🙂",
        "thread_id": None,
        "run_id": None,
        "version": 2,
        "actor": "alice",
        "at": "2026-01-31T12:00:00.000005Z",
    }


def test_heartbeat__without_data__advances_the_last_id() -> None:
    comment, identity, *rest = events.heartbeat(Position(7, 3), AT).decode().split("\n")

    assert comment.startswith(":")
    assert identity == f"id: {cursors.seal(Position(7, 3), AT)}"
    assert rest == ["", ""]


def test_closed__any_reason__has_a_problem_and_a_retry() -> None:
    retry, name, data, *rest = events.closed({"type": "/problems/unavailable"}).decode().split("\n")

    assert 500 <= int(retry.removeprefix("retry: ")) < 4000
    assert name == "event: closed"
    assert json.loads(data.removeprefix("data: ")) == {"type": "/problems/unavailable"}
    assert rest == ["", ""]
