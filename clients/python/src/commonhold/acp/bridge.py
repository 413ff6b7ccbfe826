"""Relays between an editor and an agent, both on stdio, and stores their messages.

Agents choose the ids of their sessions, often the same ones in each process. So the editor uses the
id of the thread, and the agent its own id; `_agents` translates.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from commonhold.acp import updates
from commonhold.calls import random_id
from commonhold.client import AsyncCommonhold
from commonhold.problems import CommonholdError, Invalid, NotFound, TooLarge
from commonhold.threads import Threads

Json: TypeAlias = dict[str, Any]
Then: TypeAlias = Callable[[Json], Awaitable[None]]

# A line is a complete message, including files and images.
_LONGEST_LINE = 1 << 26
_GRACE = 5.0
_PREFIX = "acp-"
_NOT_FOUND = -32002
_INTERNAL = -32603


async def run(state: AsyncCommonhold, command: Sequence[str], *, recall_tokens: int = 8000) -> int:
    """Serve the editor on stdin and stdout until it or the agent ends. Returns the agent's exit
    code.

    `recall_tokens`: how many tokens of a loaded session an agent that cannot load sessions gets with
    the next prompt; 0: none.
    """
    loop = asyncio.get_running_loop()
    editor = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(editor), sys.stdin)
    agent = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST_LINE
    )
    if agent.stdin is None or agent.stdout is None:
        raise RuntimeError("the agent was started without pipes")
    bridge = Bridge(state, agent.stdin, command, recall_tokens)
    pumps = [
        asyncio.create_task(_pump(editor, bridge.handle_editor_message)),
        asyncio.create_task(_pump(agent.stdout, bridge.handle_agent_message)),
    ]
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, pumps[0].cancel)
    writer = asyncio.create_task(bridge.write_log())
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        agent.stdin.close()
        await asyncio.wait(
            pumps[1:], timeout=_GRACE
        )  # the messages that it sends while it ends are stored, too
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(agent.wait(), _GRACE)
        agent.terminate()
        return await agent.wait()
    finally:
        if agent.returncode is None:
            agent.kill()
        for pump in pumps:
            pump.cancel()
        for ended in await asyncio.gather(*pumps, return_exceptions=True):
            if isinstance(ended, Exception):
                _complain(f"stopped: {ended!r}")
        await bridge.settle()
        writer.cancel()


async def _pump(stream: asyncio.StreamReader, hear: Callable[[bytes], Awaitable[None]]) -> None:
    while line := await stream.readline():
        await hear(line)


class Bridge:
    def __init__(
        self,
        state: AsyncCommonhold,
        agent: asyncio.StreamWriter,
        command: Sequence[str],
        recall_tokens: int,
    ) -> None:
        self._state = state
        self._agent = agent
        self._command = list(command)
        self._recall_tokens = recall_tokens
        self._agents: dict[str, str] = {}  # the agent's id of a session, by the editor's id
        self._editors: dict[str, str] = {}  # the reverse
        self._agent_loads = False
        self._loading: set[str] = (
            set()
        )  # the agent sends the updates of these again; the thread has sent them already
        self._recall: set[str] = set()
        self._answers: dict[str, Then] = {}  # what to do with the agent's answer, by its id
        self._open: dict[str, Json] = {}  # the last update of a session, which chunks may join
        self._log: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        self._numbers = itertools.count()

    # The editor -------------------------------------------------------------------------------

    async def handle_editor_message(self, line: bytes) -> None:
        message = _message(line)
        if message is None or "method" not in message:
            return await self._to_agent(line)
        method, params = message["method"], message.get("params") or {}
        hear: dict[str, Callable[[Json, Json], Awaitable[None]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/list": self._list,
            "session/prompt": self._prompt,
        }
        if method in hear and "id" in message:
            return await hear[method](message, params)
        if "sessionId" not in params:
            return await self._to_agent(line)
        session_id = await self._agent_id(params["sessionId"])
        return await self._to_agent({**message, "params": {**params, "sessionId": session_id}})

    async def _initialize(self, message: Json, _: Json) -> None:
        async def answered(answer: Json) -> None:
            result = answer.get("result")
            if isinstance(result, dict):
                able = dict(result.get("agentCapabilities") or {})
                self._agent_loads = bool(able.get("loadSession"))
                # Capabilities that would create or delete sessions without the bridge are not
                # offered.
                more = dict(able.get("sessionCapabilities") or {})
                more = {k: v for k, v in more.items() if k not in ("fork", "delete")}
                able |= {"loadSession": True, "sessionCapabilities": {**more, "list": {}}}
                answer["result"] = {**result, "agentCapabilities": able}
            self._to_editor(answer)

        await self._ask(message, answered)

    async def _new(self, message: Json, params: Json) -> None:
        async def answered(answer: Json) -> None:
            result = answer.get("result")
            if isinstance(result, dict):
                session_id = _PREFIX + random_id()
                facts = self._facts(params, result["sessionId"])
                try:
                    await self._state.threads.create(session_id, metadata=facts)
                except CommonholdError as error:
                    return self._refuse(message, _INTERNAL, f"commonhold: {error}")
                self._bind(session_id, result["sessionId"])
                answer["result"] = {**result, "sessionId": session_id}
            return self._to_editor(answer)

        await self._ask(message, answered)

    async def _load(self, message: Json, params: Json) -> None:
        session_id = params.get("sessionId", "")
        try:
            thread = await self._state.threads.get(session_id)
            facts = thread.metadata[updates.MEMBER]
        except (NotFound, KeyError):
            return self._refuse(message, _NOT_FOUND, f"session not found: {session_id}")
        except CommonholdError as error:
            return self._refuse(message, _INTERNAL, f"commonhold: {error}")
        old = facts["agent_session_id"]

        async def finish(answer: Json, agent_id: str) -> None:
            self._bind(session_id, agent_id)
            try:
                bound = self._facts(params, agent_id)
                await self._state.threads.change(session_id, metadata=bound, merge=True)
                await self.settle(
                    session_id
                )  # this process may have updates that are not in the thread yet
                await self._replay(session_id)
            except CommonholdError as error:
                return self._refuse(message, _INTERNAL, f"commonhold: {error}")
            loaded_session = answer["result"] or {}
            result = {name: value for name, value in loaded_session.items() if name != "sessionId"}
            return self._to_editor({"jsonrpc": "2.0", "id": message["id"], "result": result})

        async def loaded(answer: Json) -> None:
            self._loading.discard(old)
            if "error" in answer:  # the agent no longer has the session; the thread still does
                return await begin_anew()
            return await finish(answer, old)

        async def begun(answer: Json) -> None:
            if "error" in answer:
                return self._to_editor({**answer, "id": message["id"]})
            self._recall.add(session_id)
            return await finish(answer, answer["result"]["sessionId"])

        async def begin_anew() -> None:
            fresh = {name: value for name, value in params.items() if name != "sessionId"}
            await self._ask(self._request("session/new", fresh), begun)

        if not self._agent_loads:
            return await begin_anew()
        self._loading.add(old)
        return await self._ask(self._request("session/load", {**params, "sessionId": old}), loaded)

    async def _list(self, message: Json, params: Json) -> None:
        try:
            page = await self._state.threads.list(prefix=_PREFIX, cursor=params.get("cursor"))
        except CommonholdError as error:
            return self._refuse(message, _INTERNAL, f"commonhold: {error}")
        sessions = [
            {
                "sessionId": thread.id,
                "cwd": thread.metadata[updates.MEMBER]["cwd"],
                "updatedAt": thread.document["updated_at"],
                **({"title": thread.title} if thread.title else {}),
            }
            for thread in page
            if updates.MEMBER in thread.metadata
            and params.get("cwd") in (None, thread.metadata[updates.MEMBER]["cwd"])
        ]
        more = {"nextCursor": page.next_cursor} if page.next_cursor else {}
        result = {"sessions": sessions, **more}
        return self._to_editor({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _prompt(self, message: Json, params: Json) -> None:
        session_id, prompt = params.get("sessionId", ""), list(params.get("prompt") or [])
        agent_id = await self._agent_id(session_id)
        full_prompt = [*await self._recalled(session_id), *prompt]
        self._note(session_id, updates.message_of_prompt(prompt))

        async def answered(answer: Json) -> None:
            # After the end of a turn, any process may load the session.
            await self.settle(session_id)
            self._to_editor(answer)

        sent = {**message, "params": {**params, "sessionId": agent_id, "prompt": full_prompt}}
        await self._ask(sent, answered)

    # The agent --------------------------------------------------------------------------------

    async def handle_agent_message(self, line: bytes) -> None:
        message = _message(line)
        if message is None:
            return self._to_editor(line)
        if "method" not in message:
            then = self._answers.pop(_key(message.get("id")), None)
            return self._to_editor(line) if then is None else await then(message)
        params = message.get("params") or {}
        agent_id = params.get("sessionId")
        if agent_id in self._loading and message["method"] == "session/update":
            return None
        if agent_id not in self._editors:
            return self._to_editor(line)
        session_id = self._editors[agent_id]
        self._to_editor({**message, "params": {**params, "sessionId": session_id}})
        if message["method"] == "session/update" and isinstance(params.get("update"), dict):
            self._record_update(session_id, params["update"])
        return None

    def _record_update(self, session_id: str, update: Json) -> None:
        if not updates.is_kept(update):
            return
        before = self._open.get(session_id)
        both = None if before is None else updates.joined(before, update)
        if before is not None and both is None:
            self._log.put_nowait((session_id, updates.message_of(before)))
        self._open[session_id] = both or update

    # The thread -------------------------------------------------------------------------------

    def _note(self, session_id: str, message: Json) -> None:
        """Queue an update after all previous ones."""
        if (before := self._open.pop(session_id, None)) is not None:
            self._log.put_nowait((session_id, updates.message_of(before)))
        self._log.put_nowait((session_id, message))

    async def settle(self, *session_ids: str) -> None:
        """Wait until all updates (of these sessions) are stored in the threads."""
        for session_id in session_ids or list(self._open):
            if (before := self._open.pop(session_id, None)) is not None:
                self._log.put_nowait((session_id, updates.message_of(before)))
        await self._log.join()

    async def write_log(self) -> None:
        """Append the messages in order, until the task is cancelled. Refusals of the server are
        printed on stderr, because an editor must not stop if its history cannot be stored."""
        while True:
            first = await self._log.get()
            batch = [first]
            while not self._log.empty() and len(batch) < 100:
                batch.append(self._log.get_nowait())
            for session_id, said in itertools.groupby(batch, key=lambda each: each[0]):
                await self._append(session_id, [message for _, message in said])
            for _ in batch:
                self._log.task_done()

    async def _append(self, session_id: str, said: list[Json]) -> None:
        try:
            await self._state.threads.append(session_id, *said)
        except (TooLarge, Invalid) as error:
            if len(said) == 1:
                return _complain(f"not kept of {session_id}: {error}")
            for each in said:  # only the updates that cannot be stored are lost
                await self._append(session_id, [each])
        except CommonholdError as error:
            return _complain(f"not kept of {session_id}: {error}")
        return None

    async def _replay(self, session_id: str) -> None:
        async for message in self._state.every(
            Threads.messages(session_id, visibility="all", limit=200)
        ):
            for update in updates.updates_of(message.document):
                params = {"sessionId": session_id, "update": update}
                self._to_editor({"jsonrpc": "2.0", "method": "session/update", "params": params})

    async def _recalled(self, session_id: str) -> list[Json]:
        """The history for an agent that started without it, once."""
        if session_id not in self._recall or not self._recall_tokens:
            return []
        try:
            context = await self._state.threads.context(session_id, max_tokens=self._recall_tokens)
        except CommonholdError as error:
            _complain(f"history of {session_id} not restored: {error}")
            return []
        self._recall.discard(session_id)
        text = updates.format_history(context.messages)
        head = "What was said in this session before, for your information:\n\n"
        return [{"type": "text", "text": head + text}] if text else []

    def _facts(self, params: Json, agent_id: str) -> Json:
        facts = {"agent": self._command, "agent_session_id": agent_id}
        return {updates.MEMBER: {"cwd": params.get("cwd", ""), **facts}}

    # Texts ------------------------------------------------------------------------------------

    def _bind(self, session_id: str, agent_id: str) -> None:
        self._agents[session_id], self._editors[agent_id] = agent_id, session_id

    async def _agent_id(self, session_id: str) -> str:
        """The agent's id of a session, also of one that this process has not used yet."""
        if session_id not in self._agents and session_id.startswith(_PREFIX):
            with contextlib.suppress(CommonholdError, KeyError):
                thread = await self._state.threads.get(session_id)
                self._bind(session_id, thread.metadata[updates.MEMBER]["agent_session_id"])
        return self._agents.get(session_id, session_id)

    def _request(self, method: str, params: Json) -> Json:
        number = f"commonhold-{next(self._numbers)}"
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    async def _ask(self, message: Json, then: Then) -> None:
        self._answers[_key(message["id"])] = then
        await self._to_agent(message)

    def _refuse(self, message: Json, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self._to_editor({"jsonrpc": "2.0", "id": message["id"], "error": error})

    async def _to_agent(self, message: Json | bytes) -> None:
        with contextlib.suppress(
            ConnectionError
        ):  # its end is detected by the task that reads from it
            self._agent.write(_line(message))
            await self._agent.drain()

    def _to_editor(self, message: Json | bytes) -> None:
        sys.stdout.buffer.write(_line(message))
        sys.stdout.buffer.flush()


def _message(line: bytes) -> Json | None:
    """The JSON-RPC message; None for a line that is forwarded unchanged."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _line(message: Json | bytes) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"


def _complain(text: str) -> None:
    sys.stderr.write(f"commonhold: {text}\n")


def _key(identity: Any) -> str:
    return json.dumps(identity)
