"""The checkpointer: LangGraph's checkpoints, channel values and writes as entries (layout)."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from commonhold.calls import random_id
from commonhold.client import Options, from_environment
from commonhold.langgraph.copying import ThreadCopy
from commonhold.langgraph.layout import (
    PAGE,
    SEGMENTS,
    Document,
    StoredCheckpoint,
    after,
    base_of,
    channel_key,
    id_key,
    is_between,
    ns_key,
    ns_of,
    thread_key,
    thread_text,
    value_key,
)
from commonhold.langgraph.operations import (
    SMALL_TOGETHER,
    Operation,
    clear,
    delete_keys,
    list_keys,
    put_in_parts,
    put_operation,
    put_writes_together,
    repeatable,
    write,
)
from commonhold.langgraph.packing import Packer
from commonhold.langgraph.pages import (
    CheckpointPages,
    CheckpointReads,
    find_checkpoint,
    list_all_keys,
    read_heads,
)
from commonhold.langgraph.reading import CheckpointReader, config_of, configurable_of
from commonhold.langgraph.segments import delete_folded, fold, is_due, read_segments
from commonhold.langgraph.wire import ClientPair, Connected, Plan
from commonhold.namespaces import register_namespace
from commonhold.problems import Conflict, Forbidden, NotFound
from commonhold.threads import create_thread, delete_thread, read_thread

MAX_BYTES: Final = 8 * 1024 * 1024  # the highest limit that the server permits for a namespace
_FIRST_PAGE: Final = 8  # enough for the newest checkpoint and the writes of its tasks
_MOST_THREADS: Final = 10_000
_METADATA: Final = {"framework": "langgraph"}

_Writes = dict[str, list[PendingWrite]]


class CommonholdSaver(BaseCheckpointSaver[str], Connected):
    """A checkpointer for sync and async graphs; threads and tasks may share one.

        async with CommonholdSaver.from_url("http://127.0.0.1:8000", token="ch_…") as saver:
            graph = builder.compile(checkpointer=saver)

    A call is one transaction, and has one effect even if it is retried. The namespaces are
    registered when they are first needed, which requires a token with the role admin; reading and
    writing requires the role editor. `namespace` separates several applications of a workspace.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        namespace: str = "langgraph",
        serde: SerializerProtocol | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(serde=serde)
        self._checkpoints = f"{namespace}.checkpoints"
        self._channels = f"{namespace}.channels"
        descriptions = "checkpoints and pending writes", "values of channels, by version"
        names = (self._checkpoints, self._channels)
        # Checkpoints are a history themselves, and change events of their writes are not needed.
        registrations = [
            register_namespace(
                name,
                description=f"LangGraph: {what}",
                max_value_bytes=MAX_BYTES,
                tracked=False,
            )
            for name, what in zip(names, descriptions, strict=True)
        ]
        self._wire = ClientPair(url, token, options, registrations)
        self._known_threads: set[str] = set()

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        token: str,
        namespace: str = "langgraph",
        serde: SerializerProtocol | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """For `with` or `async with`, which close its connections. For `options` see Options."""
        return cls(url, token, namespace=namespace, serde=serde, **options)

    @classmethod
    def from_env(
        cls,
        *,
        namespace: str = "langgraph",
        serde: SerializerProtocol | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """From COMMONHOLD_URL and COMMONHOLD_TOKEN; the rest as from_url. KeyError: one is not set."""
        return cls(*from_environment(), namespace=namespace, serde=serde, **options)

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """The next version of a channel: higher, and different for each branch of a fork."""
        number = int(str(current).split(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random.random():016}"

    # One checkpoint ------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the newest one. Takes two round trips, one if all
        of its values are small, and one more if it is in a segment."""
        return self._wire.run(self._get(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See get_tuple."""
        return await self._wire.arun(self._get(config))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and its new values, in one transaction and one round trip (two for the
        first checkpoint of a thread). Values beyond 8 MiB are stored before it. Every 32 steps, two
        more round trips create a segment of older checkpoints."""
        return self._wire.run(self._put(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See put."""
        return await self._wire.arun(self._put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task, in one transaction and one round trip. The first write of an
        index counts; errors, interrupts and resumes are overwritten."""
        self._wire.run(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """See put_writes."""
        await self._wire.arun(self._put_writes(config, writes, task_id, task_path))

    # Many ----------------------------------------------------------------------------------------

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first, read page by page while you iterate. `filter`: equality of
        members of the metadata, which the client checks. Without a `checkpoint_ns` the keys of the thread (or,
        without a config, of all threads) are read first, to know the order."""
        return self._wire.items(self._list(config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See list."""
        async for each in self._wire.aitems(self._list(config, filter, before, limit)):
            yield each

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The writes of the ancestors to each channel since its last stored value, read in pages
        instead of one round trip per ancestor."""
        return self._wire.run(self._delta_history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See get_delta_channel_history."""
        return await self._wire.arun(self._delta_history(config, channels))

    # Whole threads -------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints, values and writes of a thread, and the thread in Commonhold if it
        has no other content."""
        self._wire.run(self._delete_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """See delete_thread."""
        await self._wire.arun(self._delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of the runs, with their writes, and the
        values that no checkpoint needs any longer. Reads all checkpoints of all threads."""
        self._wire.run(self._delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See delete_for_runs."""
        await self._wire.arun(self._delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread, values first, so that each copied checkpoint is complete."""
        self._wire.run(self._copy_thread(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See copy_thread."""
        await self._wire.arun(self._copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest`: keep only the newest checkpoint of each checkpoint namespace, with those
        ancestors that its delta channels need. `delete`: keep none. Checkpoints that a graph saves
        meanwhile are kept."""
        self._wire.run(self._prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See prune."""
        await self._wire.arun(self._prune(thread_ids, strategy))

    # Keys ----------------------------------------------------------------------------------------

    @property
    def _packer(self) -> Packer:
        return Packer(self.serde)  # LangGraph gives copies of a saver another serde

    @property
    def _reader(self) -> CheckpointReader:
        return CheckpointReader(self._channels, self._packer)

    def _base(self, config: RunnableConfig) -> str:
        configurable = configurable_of(config)
        return thread_key(configurable["thread_id"]) + ns_key(
            configurable.get("checkpoint_ns") or ""
        )

    # Plans ---------------------------------------------------------------------------------------

    def _get(self, config: RunnableConfig) -> Plan[CheckpointTuple | None]:
        found = yield from self._find(config)
        while found is not None:
            (checkpoint,) = yield from self._reader.read_tuples([found])
            if _is_whole(found, checkpoint):
                return checkpoint
            base, found = found.base, (yield from self._find(config))
            if found is not None and found.base == base:
                return checkpoint
        return None

    def _find(self, config: RunnableConfig) -> Plan[StoredCheckpoint | None]:
        """The checkpoint that `config` names, or the newest, without its values."""
        base = self._base(config)
        if checkpoint_id := get_checkpoint_id(config):
            return (yield from find_checkpoint(self._checkpoints, base + id_key(checkpoint_id)))
        newest = CheckpointPages(self._checkpoints, base, size=_FIRST_PAGE, needed=1)
        while newest.more:
            for found in (yield from newest.read()):
                return found
        return None

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Plan[RunnableConfig]:
        configurable = configurable_of(config)
        thread_id = thread_text(configurable["thread_id"])
        ns = configurable.get("checkpoint_ns") or ""
        yield from self._ensure_thread(thread_id)
        base, packer = self._base(config), self._packer
        small: Document = {}
        room = SMALL_TOGETHER
        stored: Document = {}
        operations: list[Operation] = []
        versions = checkpoint["channel_versions"]
        for channel, value in checkpoint["channel_values"].items():
            version = new_versions.get(channel, versions.get(channel))
            if version is None:
                continue
            size = packer.small_size(value)
            if size is not None and size <= room:
                small[channel] = value
                room -= size
                continue
            stored[channel] = version
            # A small value may have been stored in the checkpoint before.
            if channel in new_versions or size is not None:
                key = base + channel_key(channel, version)
                operations += put_in_parts(self._channels, key, *packer.pack(value))
        rest = {name: part for name, part in checkpoint.items() if name != "channel_values"}
        plain, odd = packer.split(rest)
        described, odd_metadata = packer.split(get_checkpoint_metadata(config, metadata))
        head = {
            "thread_id": thread_id,
            "checkpoint_ns": ns,
            "checkpoint_id": checkpoint["id"],
            "parent_checkpoint_id": get_checkpoint_id(config),
            "metadata": described,
            "checkpoint": plain,
            "values": small,
            "channels": stored,
            **({"packed": odd} if odd else {}),
            **({"packed_metadata": odd_metadata} if odd_metadata else {}),
        }
        key = base + id_key(checkpoint["id"]) + "checkpoint"
        yield from write([*operations, put_operation(self._checkpoints, key, head)])
        if is_due(metadata):
            yield from fold(self._checkpoints, base)
        return config_of(thread_id, ns, checkpoint["id"])

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Plan[None]:
        base = self._base(config) + id_key(configurable_of(config)["checkpoint_id"])
        packed = [
            (WRITES_IDX_MAP.get(channel, position), channel, *self._packer.pack(value))
            for position, (channel, value) in enumerate(writes)
        ]
        # Every call has unique keys in ascending order; the reader decides which writes count.
        key = f"{base}write/{time.time_ns():016x}-{random_id()[:8]}"
        about = {"task_id": task_id, "task_path": task_path}
        if operations := put_writes_together(self._checkpoints, key, about, packed):
            yield from write(operations, waits=True)

    def _list(
        self,
        config: RunnableConfig | None,
        condition: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Plan[None]:
        configurable = configurable_of(config) if config else {}
        one = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        source: CheckpointPages | CheckpointReads
        if config and configurable.get("checkpoint_ns") is not None and not one:
            base = self._base(config)
            size = PAGE if limit is None else min(PAGE, _FIRST_PAGE + 3 * limit)
            source = CheckpointPages(
                self._checkpoints,
                base,
                base + id_key(end) if end else None,
                size=size,
                needed=PAGE if limit is None else limit,
            )
        else:
            prefix = thread_key(configurable["thread_id"]) if config else ""
            if config and configurable.get("checkpoint_ns") is not None:
                prefix = self._base(config)
            keys = yield from list_all_keys(self._checkpoints, prefix)
            source = CheckpointReads(
                self._checkpoints, keys, lambda base: is_between(base, one, end)
            )
        values: dict[str, Document] = {}
        left = limit
        while source.more and left != 0:
            found = [
                each for each in (yield from source.read()) if self._reader.matches(each, condition)
            ]
            found = found[:left]
            tuples = yield from self._reader.read_tuples(found, values)
            for stored, checkpoint in zip(found, tuples, strict=True):
                is_gone = not _is_whole(stored, checkpoint) and (
                    (yield from find_checkpoint(self._checkpoints, stored.base)) is None
                )
                if is_gone:
                    continue
                yield checkpoint
                if left is not None:
                    left -= 1

    def _delta_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Plan[Mapping[str, DeltaChannelHistory]]:
        missing: set[str] = set()
        while True:
            history, gone = yield from self._walk(config, channels)
            if gone <= missing:
                return history
            missing = gone  # pruned while they were read: the checkpoint may have been deleted, too

    def _walk(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Plan[tuple[Mapping[str, DeltaChannelHistory], set[str]]]:
        """The history, and the bases of ancestors that were deleted or whose values were."""
        # Ancestors have smaller ids in LangGraph, so a descending read finds all of them.
        base, target = self._base(config), get_checkpoint_id(config)
        end = after(base + id_key(target)) if target else None
        source = CheckpointPages(self._checkpoints, base, end)
        newest_first: _Writes = {channel: [] for channel in channels}
        seeds: dict[str, StoredCheckpoint] = {}
        awaited = base + id_key(target) if target else None
        is_target, is_gone = True, False
        while source.more and awaited != "" and not is_gone and len(seeds) < len(newest_first):
            for found in (yield from source.read()):
                if awaited is not None and found.base != awaited:
                    if is_gone := found.base < awaited:
                        break
                    continue
                if not is_target:
                    self._collect(found, newest_first, seeds)
                is_target = False
                parent = found.head["parent_checkpoint_id"]
                awaited = base + id_key(parent) if parent else ""
                if not parent or len(seeds) == len(newest_first):
                    break
        gone = {awaited} if awaited and not is_target and len(seeds) < len(newest_first) else set()
        stored = {c: found for c, found in seeds.items() if c not in found.head["values"]}
        documents = yield from self._reader.read_values(
            value_key(found, c) for c, found in stored.items()
        )
        result: dict[str, DeltaChannelHistory] = {}
        for channel, writes in newest_first.items():
            result[channel] = {"writes": writes[::-1]}
            if channel in seeds:
                values = self._reader.channel_values(seeds[channel], documents)
                if channel in values:
                    result[channel]["seed"] = values[channel]
                else:
                    gone.add(seeds[channel].base)
        return result, gone

    def _collect(
        self, found: StoredCheckpoint, newest_first: _Writes, seeds: dict[str, StoredCheckpoint]
    ) -> None:
        """Add an ancestor's writes to the channels without a seed, and its value as their seed."""
        for key, row in reversed(found.writes):
            channel = row["channel"]
            if channel in newest_first and channel not in seeds:
                newest_first[channel].append(self._reader.pending_write(found, key, row))
        for channel in newest_first:
            if channel in found.head["values"] or channel in found.head["channels"]:
                seeds.setdefault(channel, found)

    def _delete_thread(self, thread_id: str) -> Plan[None]:
        thread_id = thread_text(thread_id)
        yield from self._clear(thread_key(thread_id))
        self._known_threads.discard(thread_id)
        with suppress(NotFound, Forbidden):  # an editor may not delete threads
            thread = yield read_thread(thread_id)
            document = thread.document
            ours = document["metadata"] == _METADATA and not document["latest_run_id"]
            if ours and thread.revision == 0 and thread.message_count == 0:
                yield delete_thread(thread_id)

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Plan[None]:
        keys = yield from list_all_keys(self._checkpoints, "")
        source = CheckpointReads(self._checkpoints, keys, lambda _: True)
        doomed: set[str] = set()
        while source.more:
            for found in (yield from source.read()):
                if found.head["metadata"].get("run_id") in run_ids:
                    doomed.add(found.base)
        for thread in sorted({base.split("/", 1)[0] + "/" for base in doomed}):
            values = yield from list_keys(self._channels, thread)
            yield from self._delete_checkpoints(thread, doomed)
            kept = yield from read_heads(self._checkpoints, thread)
            yield from self._delete_unused(values, kept.values())

    def _copy_thread(self, source_id: str, target_id: str) -> Plan[None]:
        copy = ThreadCopy(source_id, target_id, self._ensure_thread)
        yield from copy.copy_entries(self._channels)
        yield from copy.copy_checkpoints(self._checkpoints)

    def _prune(self, thread_ids: Sequence[str], strategy: str) -> Plan[None]:
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy must be keep_latest or delete, not {strategy!r}")
        for thread_id in thread_ids:
            if strategy == "delete":
                yield from self._clear(thread_key(thread_id))
            else:
                yield from self._keep_latest(thread_key(thread_id))

    def _keep_latest(self, thread: str) -> Plan[None]:
        # Values first: one that is stored later may belong to a checkpoint that was not read.
        values = yield from list_keys(self._channels, thread)
        found = yield from read_heads(self._checkpoints, thread)
        newest = {ns_of(base): base for base in sorted(found)}
        kept: dict[str, StoredCheckpoint] = {}
        for base in newest.values():
            # The delta channels whose value is in an older checkpoint.
            counters = found[base].head["metadata"].get("counters_since_delta_snapshot")
            sought = set(counters or {})
            while base in found:
                kept[base] = found[base]
                head = found[base].head
                sought -= head["values"].keys() | head["channels"].keys()
                parent = head["parent_checkpoint_id"]
                if not sought or not parent:
                    break
                base = ns_of(base) + id_key(parent)  # the walk to the ancestors
        yield from self._delete_checkpoints(thread, found.keys() - kept.keys())
        yield from self._delete_unused(values, kept.values())

    # Steps of plans ------------------------------------------------------------------------------

    def _ensure_thread(self, thread_id: str) -> Plan[None]:
        """Make sure that Commonhold has the thread, so that people find it there."""
        if thread_id in self._known_threads:
            return
        with suppress(Conflict):  # it exists, with other fields
            yield repeatable(create_thread(thread_id, metadata=_METADATA))
        if len(self._known_threads) == _MOST_THREADS:
            self._known_threads.clear()
        self._known_threads.add(thread_id)

    def _clear(self, thread: str) -> Plan[None]:
        yield from clear(self._checkpoints, thread)
        yield from clear(self._checkpoints, SEGMENTS + thread)
        yield from clear(self._channels, thread)

    def _delete_checkpoints(self, thread: str, bases: Collection[str]) -> Plan[None]:
        """Delete those of a thread's checkpoints, with their writes."""
        keys = yield from list_keys(self._checkpoints, thread)
        yield from delete_keys(self._checkpoints, [key for key in keys if base_of(key) in bases])
        segments = yield from read_segments(self._checkpoints, thread)
        yield from delete_folded(self._checkpoints, segments.values(), bases)

    def _delete_unused(
        self, values: Sequence[str], checkpoints: Iterable[StoredCheckpoint]
    ) -> Plan[None]:
        """Delete those of the values' keys that none of the checkpoints names."""
        used = {
            value_key(each, channel) for each in checkpoints for channel in each.head["channels"]
        }
        # A part is deleted together with its document.
        unused = [k for k in values if "/".join(k.split("/", 4)[:4]) not in used]
        yield from delete_keys(self._channels, unused)


def _is_whole(stored: StoredCheckpoint, checkpoint: CheckpointTuple) -> bool:
    """Whether all values were found. Values are deleted after the checkpoints that need them. So if
    a value is missing, the checkpoint may have been deleted."""
    channels = stored.head["channels"].keys()
    return bool(channels <= checkpoint.checkpoint["channel_values"].keys())
