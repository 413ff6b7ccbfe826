"""AgentKit's terms: a network's state is a history of messages and a key-value store.

In AgentKit, `state.kv` exists for one run of a network. Here it is one entry in the scope of its
thread, and exists as long as the thread. Concurrent `set` and `delete` of several agents lose
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from commonhold.client import Commonhold
from commonhold.keys import StateScope, profile_key
from commonhold.problems import Conflict, NotFound
from commonhold.profiles import Backend, ProfileAccess
from commonhold.threads import Threads

KV = profile_key("agentkit.kv", dict[str, Any], default={})
"""Register it once: `state.register(KV)`."""


class Kv:
    """`set`, `get`, `delete`, `has` and `all` over one entry of any backend."""

    def __init__(self, backend: Backend | Commonhold, scope: str) -> None:
        self._access = ProfileAccess(backend)
        self._scope = scope

    def set(self, key: str, value: Any) -> None:
        self._access.edit(KV, self._scope, lambda held: {**held, key: value})

    def get(self, key: str, default: Any = None) -> Any:
        return self.all().get(key, default)

    def delete(self, key: str) -> bool:
        """Delete the value. Returns whether it existed."""
        there: list[bool] = []

        def without(held: dict[str, Any]) -> dict[str, Any]:
            there.append(key in held)
            return {name: value for name, value in held.items() if name != key}

        self._access.edit(KV, self._scope, without)
        return there[-1]

    def has(self, key: str) -> bool:
        return key in self.all()

    def all(self) -> dict[str, Any]:
        return self._access.read(KV, self._scope)


class Conversation:
    """A thread in the terms of AgentKit: `kv`, and the messages in order."""

    def __init__(self, state: Commonhold, thread_id: str) -> None:
        self._state = state
        self.thread_id = thread_id
        self.kv = Kv(state, StateScope.thread(thread_id))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All messages, as they were appended. Empty if the thread does not exist yet."""
        try:
            listed = list(self._state.every(Threads.messages(self.thread_id)))
        except NotFound:
            return []
        return [message.document for message in listed]

    def append(self, *messages: Mapping[str, Any]) -> int:
        """Append messages, and create the thread if it does not exist. Returns the number of its
        messages."""
        try:
            return self._state.threads.append(self.thread_id, *messages).message_count
        except NotFound:
            with suppress(Conflict):  # another program has just created it
                self._state.threads.create(self.thread_id)
            return self._state.threads.append(self.thread_id, *messages).message_count
