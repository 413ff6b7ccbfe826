"""In-process run and thread state: a store of typed keys with revisions, changed by batches of
updates.

The rules and the texts of the errors are those of the reference: a batch is stored completely as one
revision, or not at all. Branches that ran in parallel are merged by the strategies of their keys.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, TypeVar

from commonhold import documents
from commonhold.backends import write_atomically
from commonhold.batches import (
    AnyStateKey,
    KeyScope,
    MergeStrategy,
    MutationBatch,
    Registration,
    StateKey,
    StateKeyOptions,
)
from commonhold.errors import (
    KeyAlreadyRegistered,
    KeyDecode,
    KeyEncode,
    PluginAlreadyInstalled,
    PluginNotInstalled,
    RevisionMismatch,
    UnknownKey,
)
from commonhold.keys import ProfileKey
from commonhold.plugins import Plugin, PluginRegistrar

_log = logging.getLogger(__name__)

V = TypeVar("V")


UnknownKeyPolicy: TypeAlias = Literal["error", "skip"]


@dataclass(frozen=True)
class PersistedState:
    """The wire form, which the server and the reference share."""

    revision: int
    extensions: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {"revision": self.revision, "extensions": dict(self.extensions)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        return cls(document["revision"], document["extensions"])


class Snapshot:
    """The state at one revision. Later commits do not change it."""

    def __init__(self, revision: int, values: Mapping[str, Any]) -> None:
        self.revision = revision
        self._values = values

    def get(self, key: type[StateKey[V, Any]]) -> V | None:
        """The value, or None before the first write: reads of state keys do not return the
        default."""
        found: V | None = copy.deepcopy(self._values.get(key.KEY))
        return found

    def __contains__(self, key: AnyStateKey) -> bool:
        return key.KEY in self._values


@dataclass(frozen=True)
class CommitEvent:
    """The argument of a commit hook, after the commit."""

    previous_revision: int
    new_revision: int
    op_count: int
    snapshot: Snapshot


class StateStore:
    """A store that begins at revision 0. Threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._revision = 0
        self._values: dict[str, Any] = {}
        self._keys: dict[str, Registration] = {}
        self._plugins: dict[type[Plugin], PluginRegistrar] = {}
        self._hooks: list[Callable[[CommitEvent], None]] = []

    @property
    def revision(self) -> int:
        return self._revision

    def register_key(self, key: AnyStateKey, options: StateKeyOptions | None = None) -> None:
        """Register a key. Raises KeyAlreadyRegistered if its name is taken."""
        with self._lock:
            if key.KEY in self._keys:
                raise KeyAlreadyRegistered(key.KEY)
            self._keys[key.KEY] = Registration.of(key, options)

    def add_hook(self, hook: Callable[[CommitEvent], None]) -> None:
        """Call `hook` after every commit, in the order in which hooks were added. A hook cannot
        prevent a commit."""
        self._hooks.append(hook)

    def strategy_of(self, key: str) -> MergeStrategy:
        """The merge strategy of a key; `exclusive` for an unknown one."""
        registration = self._keys.get(key)
        return registration.key.MERGE if registration else MergeStrategy.EXCLUSIVE

    def snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(self._revision, dict(self._values))

    def read(self, key: type[StateKey[V, Any]]) -> V | None:
        return self.snapshot().get(key)

    def begin_mutation(self) -> MutationBatch:
        """An empty batch without a base revision, because the check of revisions is optional."""
        return MutationBatch()

    def merge_parallel(self, *branches: MutationBatch) -> MutationBatch:
        """One batch of all branches, or none: see MutationBatch.merge_parallel."""
        merged = MutationBatch()
        for branch in branches:
            merged = merged.merge_parallel(branch, self.strategy_of)
        return merged

    def commit(self, batch: MutationBatch) -> int:
        """Store the batch as one revision, and return it. In this order: an empty batch changes
        nothing (its base is not checked); RevisionMismatch; UnknownKey; the updates."""
        with self._lock:
            if batch.is_empty():
                return self._revision
            if batch.base_revision not in (None, self._revision):
                raise RevisionMismatch(batch.base_revision or 0, self._revision)
            for name in batch.touched_keys:
                if name not in self._keys:
                    raise UnknownKey(name)
            event = self._apply_batch(batch)
        self._tell(event)
        return event.new_revision

    def _apply_batch(self, batch: MutationBatch) -> CommitEvent:
        self._values = self._applied(batch)
        self._revision += 1
        return CommitEvent(self._revision - 1, self._revision, len(batch), self.snapshot())

    def _tell(self, event: CommitEvent) -> None:
        # Outside the lock: a hook may read, and may commit.
        for hook in list(self._hooks):
            try:
                hook(event)
            except Exception:
                # The commit is complete, so an exception of a hook must not look like a refusal.
                _log.exception("a commit hook failed")

    def _applied(self, batch: MutationBatch) -> dict[str, Any]:
        values = dict(self._values)
        fresh: set[str] = set()  # keys whose values are not shared with snapshots
        for op in batch:
            if op.clear:
                values.pop(op.key, None)
                continue
            key = self._keys[op.key].key
            if op.key not in values:
                values[op.key] = key.default()
            elif op.key not in fresh:
                values[op.key] = copy.deepcopy(values[op.key])
            fresh.add(op.key)
            values[op.key] = key.apply(values[op.key], copy.deepcopy(op.update))
        return values

    # Plugins ---------------------------------------------------------------------------------

    def install_plugin(self, plugin: Plugin) -> None:
        """Register all keys of the plugin, or none. Creates no revision and changes no values."""
        kind = type(plugin)
        registrar = PluginRegistrar()
        with self._lock:
            if kind in self._plugins:
                raise PluginAlreadyInstalled(_name(kind))
            plugin.register(registrar)
            for name in registrar.keys:
                if name in self._keys:
                    raise KeyAlreadyRegistered(name)
            owned = {name for each in self._plugins.values() for name in each.profile_keys}
            for name in registrar.profile_keys:
                if name in owned:
                    raise KeyAlreadyRegistered(name)
            self._keys |= registrar.keys
            self._plugins[kind] = registrar

    def uninstall_plugin(self, kind: type[Plugin]) -> None:
        """Clear the keys of the plugin, except the retained ones, as one revision, and unregister
        all of them."""
        with self._lock:
            if kind not in self._plugins:
                raise PluginNotInstalled(_name(kind))
            owned = self._plugins[kind].keys
            batch = MutationBatch(self._revision)
            for name, registration in owned.items():
                if not registration.retain_on_uninstall:
                    batch.clear(name)
            event = None if batch.is_empty() else self._apply_batch(batch)
            del self._plugins[kind]
            for name in owned:
                del self._keys[name]
        if event is not None:
            self._tell(event)

    def profile_keys(self) -> list[type[ProfileKey]]:
        """The profile keys of all installed plugins: `backend.register(*store.profile_keys())`."""
        return [key for each in self._plugins.values() for key in each.profile_keys.values()]

    # Export and restore ----------------------------------------------------------------------

    def export_persisted(self) -> PersistedState:
        """Every registered persistent key that has a value."""
        return self._export(*KeyScope)

    def export_thread_scoped(self) -> PersistedState:
        return self._export(KeyScope.THREAD)

    def export_run_scoped(self) -> PersistedState:
        return self._export(KeyScope.RUN)

    def _export(self, *scopes: KeyScope) -> PersistedState:
        with self._lock:
            extensions = {
                name: _encode(each.key, self._values[name])
                for name, each in self._keys.items()
                if each.persistent and each.scope in scopes and name in self._values
            }
            return PersistedState(self._revision, extensions)

    def restore_persisted(self, state: PersistedState, unknown: UnknownKeyPolicy = "error") -> None:
        """Replace everything, including the revision. If a value is not valid, nothing changes."""
        with self._lock:
            self._values = self._decoded(state, unknown)
            self._revision = state.revision

    def restore_thread_scoped(
        self, state: PersistedState, unknown: UnknownKeyPolicy = "error"
    ) -> None:
        """Import the thread-scoped keys; the revision does not change."""
        with self._lock:
            decoded = self._decoded(state, unknown)
            scoped = {n: v for n, v in decoded.items() if self._keys[n].scope is KeyScope.THREAD}
            self._values = self._values | scoped

    def apply_seed(self, state: PersistedState, unknown: UnknownKeyPolicy = "error") -> None:
        """Import the listed keys and keep the others; the revision does not change."""
        with self._lock:
            self._values = self._values | self._decoded(state, unknown)

    def clear_run_scoped(self) -> None:
        """Clear the run-scoped keys, as the start of a run does; the revision does not change."""
        with self._lock:
            self._values = {
                name: value
                for name, value in self._values.items()
                if name not in self._keys or self._keys[name].scope is KeyScope.THREAD
            }

    def _decoded(self, state: PersistedState, unknown: UnknownKeyPolicy) -> dict[str, Any]:
        values = {}
        for name, document in state.extensions.items():
            if name not in self._keys:
                if unknown == "error":
                    raise UnknownKey(name)
                continue
            values[name] = _decode(self._keys[name].key, document)
        return values

    def save(self, path: str | Path) -> None:
        """Store the persistent values in a file, which is replaced atomically."""
        with self._lock:  # of two threads that save, the one with the newer state writes last
            write_atomically(Path(path), documents.dump(self.export_persisted().document()))

    def load(self, path: str | Path, unknown: UnknownKeyPolicy = "error") -> None:
        """Restore the file of `save`. Raises FileNotFoundError if there is none."""
        document = documents.load(Path(path).read_text(encoding="utf-8"))
        self.restore_persisted(PersistedState.read(document), unknown)


def _name(kind: type[Plugin]) -> str:
    return kind.name or kind.__name__


def _encode(key: AnyStateKey, value: Any) -> Any:
    try:
        return key.encode(value)
    except (TypeError, ValueError) as error:
        raise KeyEncode(key.KEY, str(error)) from error


def _decode(key: AnyStateKey, document: Any) -> Any:
    try:
        return key.decode(copy.deepcopy(document))
    except (TypeError, ValueError) as error:
        raise KeyDecode(key.KEY, str(error)) from error
