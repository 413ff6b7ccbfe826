"""Errors of in-process state. Programs may rely on the texts."""

from __future__ import annotations

from commonhold.problems import CommonholdError, RevisionConflict


class StateError(CommonholdError):
    """A rule of state was violated, or a value is not valid for its key. Programs may rely on the
    texts."""


class KeyDecode(StateError):
    """A stored value is not valid for the key's type. It is never replaced by the default."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"failed to decode key {key}: {message}")
        self.key = key


class KeyEncode(StateError):
    """A value of a key has no JSON; the message has the JSON pointer."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"failed to encode key {key}: {message}")
        self.key = key


class RevisionMismatch(StateError, RevisionConflict):
    """Another batch was committed in between. `expected` is the revision of the writer, `actual`
    that of the store. Also a RevisionConflict, as the error of the server is."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(
            {
                "type": f"/problems/{self.slug}",
                "title": "Revision conflict",
                "status": 409,
                "detail": f"revision conflict: expected {expected}, actual {actual}",
                "expected": expected,
                "actual": actual,
            }
        )


class MutationBaseRevisionMismatch(StateError):
    """Two batches that are merged are based on different revisions."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"patch base revision mismatch: {left} vs {right}")
        self.left, self.right = left, right


class PluginAlreadyInstalled(StateError):
    """The store has a plugin of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"plugin already installed: {name}")


class PluginNotInstalled(StateError):
    """The store has no plugin of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"plugin not installed: {name}")


class KeyAlreadyRegistered(StateError):
    """Another plugin registered the key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key already registered: {key}")
        self.key = key


class UnknownKey(StateError):
    """No plugin registered the key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"unknown key: {key}")
        self.key = key


class ParallelMergeConflict(StateError):
    """Two parallel batches update the same exclusive key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"parallel merge conflict on exclusive key: {key}")
        self.key = key
