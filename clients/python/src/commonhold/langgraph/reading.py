"""Stored checkpoints as LangGraph's own types, with the values of their channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite

from commonhold.langgraph.layout import Document, StoredCheckpoint, value_key
from commonhold.langgraph.operations import read_documents
from commonhold.langgraph.packing import Packed, Packer
from commonhold.langgraph.wire import Plan


@dataclass(frozen=True)
class CheckpointReader:
    """`channels` is the namespace that holds the values of channels."""

    channels: str
    packer: Packer

    def read_tuples(
        self, found: Sequence[StoredCheckpoint], cache: dict[str, Document] | None = None
    ) -> Plan[Sequence[CheckpointTuple]]:
        """Stored checkpoints as LangGraph's, their values fetched together. `cache`: values by key that
        are not fetched again; afterwards those of these checkpoints."""
        cache = {} if cache is None else cache
        keys = {value_key(each, channel) for each in found for channel in each.head["channels"]}
        documents = {
            key: document
            for key, document in cache.items()
            if "/".join(key.split("/", 4)[:4]) in keys
        }
        documents |= yield from self.read_values(sorted(keys - documents.keys()))
        cache.clear()
        cache |= documents
        return [self._tuple(each, documents) for each in found]

    def matches(self, found: StoredCheckpoint, condition: Mapping[str, Any] | None) -> bool:
        metadata = self._metadata(found.head)
        return all(metadata.get(name) == value for name, value in (condition or {}).items())

    def channel_values(
        self, found: StoredCheckpoint, documents: Mapping[str, Document]
    ) -> Document:
        """The values by channel; without those that were deleted, with some or all of their parts, since
        the checkpoint was read."""
        values = dict(found.head["values"])
        for channel in found.head["channels"]:
            key = value_key(found, channel)
            parts = documents[key].get("parts", 0) if key in documents else 0
            if {key, *(f"{key}/{n}" for n in range(parts))} <= documents.keys():
                values[channel] = self._unpack(documents[key], key, documents)
        return values

    def pending_write(self, found: StoredCheckpoint, key: str, row: Document) -> PendingWrite:
        return row["task_id"], row["channel"], self._unpack(row["value"], key, found.rows)

    def read_values(self, keys: Iterable[str]) -> Plan[dict[str, Document]]:
        """Values of channels by key, with their parts."""
        documents = yield from read_documents(self.channels, keys)
        parts = [
            f"{key}/{n}" for key, found in documents.items() for n in range(found.get("parts", 0))
        ]
        return {**documents, **(yield from read_documents(self.channels, parts))}

    def _tuple(self, found: StoredCheckpoint, documents: Mapping[str, Document]) -> CheckpointTuple:
        head = found.head
        thread_id, ns = head["thread_id"], head["checkpoint_ns"]
        parent = head["parent_checkpoint_id"]
        checkpoint = {
            **head["checkpoint"],
            **self._odd(head.get("packed")),
            "channel_values": self.channel_values(found, documents),
        }
        return CheckpointTuple(
            config=config_of(thread_id, ns, head["checkpoint_id"]),
            checkpoint=cast(Checkpoint, checkpoint),
            metadata=self._metadata(head),
            parent_config=config_of(thread_id, ns, parent) if parent else None,
            pending_writes=[self.pending_write(found, key, row) for key, row in found.writes],
        )

    def _metadata(self, head: Document) -> CheckpointMetadata:
        metadata = {**head["metadata"], **self._odd(head.get("packed_metadata"))}
        return cast(CheckpointMetadata, metadata)

    def _odd(self, packed: Packed | None) -> Document:
        return self._unpack(packed, "", {}) if packed else {}

    def _unpack(self, packed: Packed, key: str, documents: Mapping[str, Document]) -> Any:
        return self.packer.unpack(packed, lambda n: documents[f"{key}/{n}"]["part"])


def configurable_of(config: RunnableConfig) -> dict[str, Any]:
    """The ids of a thread and a checkpoint in a config, as `config_of` writes them."""
    found: dict[str, Any] = config.get("configurable", {})
    return found


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint_id,
        }
    }
