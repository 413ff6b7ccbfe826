"""Sessions of the OpenAI Agents SDK: `Runner.run(agent, "hi", session=CommonholdSession("t1"))`.

Each item is a message of a thread, so people, other agents and compaction can read the
conversation. No message is removed: `pop_item` and `clear_session` append a marker, which readers
apply. Needs `commonhold[openai-agents]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from agents.memory import SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from commonhold import arguments, documents
from commonhold.answers import Appended, Message
from commonhold.client import Adapter, AsyncCommonhold
from commonhold.problems import Conflict, NotFound
from commonhold.threads import Threads

Item: TypeAlias = Any
"""A TResponseInputItem: an item of the Responses API as a dict."""

_MEMBER = "openai_agents"
_PAGE = 200


class CommonholdSession(Adapter):
    """The session that is the thread `session_id`. The first item creates the thread.

    `state`: a client to share; without one, the session creates its own from the environment, and
    `close` (or `async with`) closes it. `resource_id`: the user or customer of the thread, for
    lists and erasure. Any number of sessions, in any number of processes, may use one thread at
    once.
    """

    def __init__(
        self,
        session_id: str,
        state: AsyncCommonhold | None = None,
        *,
        resource_id: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = arguments.name("session_id", session_id)
        self.session_settings: SessionSettings | None = coerce_session_settings(
            session_settings or SessionSettings()
        )
        super().__init__(state)
        self._resource_id = resource_id

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The newest `limit` items (None: all), oldest first."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit < 1:
            return []
        found: list[Item] = []
        async for item in self._newest_first(limit or _PAGE):
            found.append(item)
            if len(found) == limit:
                break
        return found[::-1]

    async def add_items(self, items: list[Item]) -> None:
        """Append all items or none; at most 1,000 per call."""
        if items:
            checked = arguments.objects("items", items)
            await self._append(*(_message_of(item) for item in checked))

    async def pop_item(self) -> Item | None:
        """Remove and return the newest item. Concurrent callers get different items."""
        if await self._newest() is None:
            return None
        # The position of the marker among the messages decides which item it removes, also if
        # others write meanwhile.
        marked = await self._append(_mark("pop", "The newest item was taken back."))
        return await self._newest(before=marked.messages[0]["seq"])

    async def clear_session(self) -> None:
        """Remove all items. People can read them until the thread is deleted."""
        if await self._newest() is not None:
            await self._append(_mark("clear", "The session was cleared."))

    async def _append(self, *messages: Mapping[str, Any]) -> Appended:
        try:
            return await self._state.threads.append(self.session_id, *messages)
        except NotFound:
            with suppress(Conflict):  # another session has just created it
                await self._state.threads.create(self.session_id, resource_id=self._resource_id)
            return await self._state.threads.append(self.session_id, *messages)

    async def _newest(self, before: int | None = None) -> Item | None:
        async for item in self._newest_first(1, before):
            return item
        return None

    async def _newest_first(self, limit: int, before: int | None = None) -> AsyncIterator[Item]:
        """The items that no marker has removed, of the messages below `before`."""
        call = Threads.messages(
            self.session_id, before=before, order="desc", visibility="all", limit=min(limit, _PAGE)
        )
        taken = 0
        try:
            async for message in self._state.every(call):
                mark = message.document.get(_MEMBER, {}).get("mark")
                if mark == "clear":
                    return
                if mark == "pop":
                    taken += 1
                elif (item := _item_of(message)) is not None:
                    if taken:
                        taken -= 1
                    else:
                        yield item
        except NotFound:
            return


def _mark(kind: str, text: str) -> dict[str, Any]:
    mark = {"mark": kind}
    return {"role": "system", "visibility": "internal", "content": text, _MEMBER: mark}


def _message_of(item: Item) -> dict[str, Any]:
    """A message that contains the complete item and shows it to readers."""
    return {**_readable_message(item), _MEMBER: {"item": item}}


def _item_of(message: Message) -> Item | None:
    """The item of a message. Text that other programs wrote into the thread is an item; other
    messages are not."""
    ours = message.document.get(_MEMBER)
    if ours is not None:
        return ours["item"]
    if message.visibility == "all" and isinstance(message.content, str) and message.role != "tool":
        return {"role": message.role, "content": message.content}
    return None


def _readable_message(item: Item) -> dict[str, Any]:
    match {"type": "message", **item}:
        case {"type": "message", "role": str(role), "content": str() | list() as content}:
            return {"role": "system" if role == "developer" else role, "content": content}
        case {"type": "function_call", "call_id": str(call_id), "name": name, "arguments": text}:
            function = {"name": name, "arguments": text}
            call = {"id": call_id, "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case {"type": "function_call_output", "call_id": str(call_id), "output": output}:
            text = output if isinstance(output, str) else documents.dump(output)
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case _:  # also items that only a session around this one can read, such as EncryptedSession
            return {"role": "assistant", "content": [{"type": str(item.get("type") or "item")}]}
