"""Shared state without the server: entries in memory, or in files of one folder.

Both do what the server does for `get`, `put`, `delete`, `list_key` and `clear_key`: versions that
continue to increase after a delete, compare-and-set, and `profile key not registered` before
storage is accessed. A Decimal is stored as a float here; only the server keeps all digits.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commonhold import documents
from commonhold.answers import Entry, EntryRow
from commonhold.arguments import name
from commonhold.calls import quoted
from commonhold.keys import Profile, name_of
from commonhold.problems import NotRegistered, VersionConflict


class _LocalBackend:
    """Everything except the storage of the records. `_locked` guards a read and the write that
    follows."""

    def __init__(self) -> None:
        self._registered: set[str] = set()

    def register(self, *keys: str | type[Any] | Profile[Any]) -> None:
        """Register namespaces. This changes no stored value, but permits access to them."""
        self._registered.update(map(name_of, keys))

    def get(self, namespace: str, key: str) -> Entry:
        self._require(namespace)
        with self._locked():
            return self._entry(namespace, key, self._load(namespace, name("key", key)))

    def put(self, namespace: str, key: str, value: Any, *, if_version: int | None = None) -> Entry:
        """Write. Raises VersionConflict unless the version is `if_version` (0: the entry does not
        exist)."""
        self._require(namespace)
        with self._locked():
            record = self._load(namespace, name("key", key))
            actual = record["version"] if record["exists"] else 0
            if if_version is not None and if_version != actual:
                theirs, yours = copy.deepcopy((record["value"], value))
                raise VersionConflict.of(if_version, actual, theirs=theirs, yours=yours)
            written = {
                "value": documents.load(documents.encode(value)),
                "version": record["version"] + 1,
                "exists": True,
                "updated_at": datetime.now(UTC).isoformat(),
            }
            self._store(namespace, name("key", key), written)
            return self._entry(namespace, key, written)

    def delete(self, namespace: str, key: str) -> None:
        """Delete. Repeating it changes nothing."""
        self._require(namespace)
        with self._locked():
            self._remove(namespace, name("key", key))

    def list_key(self, key: str) -> list[EntryRow]:
        """Everything under one key, by namespace, including unregistered ones."""
        text = name("key", key)
        with self._locked():
            found = [(each, self._load(each, text)) for each in sorted(self._names())]
            return [
                EntryRow.read({**_facts(each, key, record), "registered": each in self._registered})
                for each, record in found
                if record["exists"]
            ]

    def clear_key(self, key: str) -> int:
        """Delete everything under one key. Returns the number of entries."""
        with self._locked():
            found = self.list_key(key)
            for entry in found:
                self._remove(entry.namespace, name("key", key))
            return len(found)

    def _require(self, namespace: str) -> None:
        if namespace not in self._registered:
            raise NotRegistered.of(namespace)

    def _remove(self, namespace: str, key: str) -> None:
        record = self._load(namespace, key)
        if record["exists"]:
            gone = {"exists": False, "value": None, "version": record["version"] + 1}
            self._store(namespace, key, record | gone)

    def _entry(self, namespace: str, key: str, record: dict[str, Any]) -> Entry:
        return Entry.read({**_facts(namespace, key, record), "exists": record["exists"]})

    def _locked(self) -> contextlib.AbstractContextManager[Any]:
        raise NotImplementedError

    def _names(self) -> list[str]:
        raise NotImplementedError

    def _load(self, namespace: str, key: str) -> dict[str, Any]:
        raise NotImplementedError

    def _store(self, namespace: str, key: str, record: dict[str, Any]) -> None:
        raise NotImplementedError


_NEVER: dict[str, Any] = {"exists": False, "value": None, "version": 0}


def _facts(namespace: str, key: str, record: dict[str, Any]) -> dict[str, Any]:
    """The fields of an entry. Those that this backend does not store have the values of a new entry."""
    exists = record["exists"]
    return {
        "namespace": namespace,
        "key": name("key", key),
        "scope_kind": _scope_kind(key),
        "value": copy.deepcopy(record["value"]) if exists else None,
        "version": record["version"] if exists else 0,
        "schema_version": 0,
        "valid": True,
        "created_at": None,
        "updated_at": record.get("updated_at") if exists else None,
        "expires_at": None,
        "actor": "",
        "tags": [],
        "pinned": False,
        "size_bytes": 0,
        "estimated_tokens": 0,
    }


def _scope_kind(key: str) -> str:
    start, mark, _ = key.partition("::")
    kinds = ("parent_thread", "agent_type", "thread") if mark else ("global", "system")
    return start if start in kinds else "custom"


class MemoryBackend(_LocalBackend):
    """Entries in memory, until the process ends. Threads may share one backend."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._records: dict[str, dict[str, dict[str, Any]]] = {}

    def _locked(self) -> contextlib.AbstractContextManager[Any]:
        return self._lock

    def _names(self) -> list[str]:
        return list(self._records)

    def _load(self, namespace: str, key: str) -> dict[str, Any]:
        return self._records.get(namespace, {}).get(key, _NEVER)

    def _store(self, namespace: str, key: str, record: dict[str, Any]) -> None:
        self._records.setdefault(namespace, {})[key] = record


class FileBackend(_LocalBackend):
    """One JSON file per entry, replaced whole. Threads and, where the system has flock, processes
    may share a folder. File names are derived so that no two keys share a file and no file is
    outside of the folder."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._depth = 0

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            self._depth += 1
            try:
                # One flock for the outermost call: a second handle of this process would wait for
                # it.
                with (
                    _flocked(self._folder / ".lock")
                    if self._depth == 1
                    else contextlib.nullcontext()
                ):
                    yield
            finally:
                self._depth -= 1

    def _names(self) -> list[str]:
        records = (path for path in self._folder.glob("*/*.json"))
        return sorted({self._read(path)["namespace"] for path in records})

    def _load(self, namespace: str, key: str) -> dict[str, Any]:
        try:
            record = self._read(self._path(namespace, key))
        except FileNotFoundError:
            return _NEVER
        if record["namespace"] != namespace:
            raise ValueError(
                f"The namespaces {record['namespace']!r} and {namespace!r} share a folder, because this file"
                " system ignores case. Rename one of them."
            )
        return record

    def _store(self, namespace: str, key: str, record: dict[str, Any]) -> None:
        path = self._path(namespace, key)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, documents.dump({"namespace": namespace, "key": key, **record}))

    def _path(self, namespace: str, key: str) -> Path:
        # Keys can be longer than file names, and differ in ways that some file systems ignore.
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / quoted(namespace) / f"{digest}.json"

    def _read(self, path: Path) -> dict[str, Any]:
        record: dict[str, Any] = documents.load(path.read_text(encoding="utf-8"))
        return record


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically: after a crash it contains the old text or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _flocked(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: threads only
        yield
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
