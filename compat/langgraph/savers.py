"""Helper functions for savers that several tests use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from commonhold import Commonhold
from commonhold.calls import Call
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6


def config(thread: str, ns: str = "", checkpoint_id: str | None = None) -> Any:
    wanted = {"thread_id": thread, "checkpoint_ns": ns}
    return {"configurable": wanted | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def put(
    saver: Any,
    at: Any,
    values: dict[str, Any],
    *,
    versions: dict[str, Any] | None = None,
    fresh: dict[str, Any] | None = None,
    checkpoint_id: str | None = None,
    **metadata: Any,
) -> Any:
    versions = versions if versions is not None else dict.fromkeys(values, "1")
    checkpoint = {
        **empty_checkpoint(),
        "id": checkpoint_id or str(uuid6()),
        "ts": "2020-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": versions,
    }
    about = {"source": "loop", "step": 0, "parents": {}, **metadata}
    return saver.put(at, checkpoint, about, versions if fresh is None else fresh)


def values_of(saver: Any, at: Any) -> Any:
    return saver.get_tuple(at).checkpoint["channel_values"]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Call[Any]]]:
    calls: list[Call[Any]] = []
    send = Commonhold.send

    def count(self: Commonhold, call: Call[Any]) -> Any:
        calls.append(call)
        return send(self, call)

    with monkeypatch.context() as patched:
        patched.setattr(Commonhold, "send", count)
        yield calls


def told(found: CheckpointTuple | None) -> Any:
    return found and (
        found.config["configurable"],
        found.checkpoint,
        found.metadata,
        found.parent_config and found.parent_config["configurable"],
        found.pending_writes,
    )
