"""Imports a recorded conversation as a thread, with one run per user turn and one commit per
step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.merging import Batch, Update
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.models import Message, RunStatus, Thread

from . import commits, messages, runs, threads
from .commits import Step
from .errors import Conflict, Invalid
from .runs import RunChange
from .tool_calls import TOOL_CALLS


def import_transcript(*, actor: Actor, episode: str, log: Sequence[Raw]) -> int:
    """Import `log`, messages in OpenAI's format, as the thread `episode`. Returns how many messages
    were new.

    A repeated import continues after the messages that the thread already has. Raises Invalid for
    an invalid message, before anything is stored, and Conflict if the thread has other messages.
    """
    if not log:
        raise Invalid("an episode must have messages")
    for start in range(0, len(log), messages.MAX_MESSAGES):
        messages.parse_messages(log[start : start + messages.MAX_MESSAGES])
    thread, _ = threads.create_thread(
        actor=actor, thread_id=episode, title=_title(log), resource_id="import"
    )
    done = _already_there(thread, log)
    appended = 0
    for number, turn in enumerate(_turns(log), start=1):
        if turn[-1].end <= done:
            continue
        run, _ = runs.start_run(
            actor=actor,
            thread_id=episode,
            run_id=f"{episode}/{number}",
            agent_id="imported",
        )
        for place, step in enumerate(turn, start=1):
            if step.end <= done:
                continue
            last = step is turn[-1]
            ended = {"type": "natural_end"} if last else None
            commits.commit(
                actor=actor,
                run_id=run.public_id,
                step=Step(
                    batches=(Batch(tuple(_tool_updates(step.log))),),
                    messages=step.log,
                    run=RunChange(
                        status=RunStatus.DONE if last else None,
                        termination_reason=ended,
                        step_count=place,
                    ),
                ),
            )
            appended += len(step.log)
    return appended


@dataclass(frozen=True)
class _Step:
    """The messages of one commit. `end`: the number of messages of the log up to its end."""

    log: list[Raw]
    end: int


def _turns(log: Sequence[Raw]) -> Iterator[list[_Step]]:
    """Split the log into turns, each of which starts with messages of the user, and turns into
    steps: the input, each message of the model, each round of tool results."""
    turn: list[_Step] = []
    for index, raw in enumerate(log):
        role = raw.value["role"]
        begins_turn = role == "user" and _answered(turn)
        if begins_turn:
            yield turn
            turn = []
        joins = turn and (
            (role == "tool" and turn[-1].log[-1].value["role"] == "tool")
            or (role in ("user", "system") and not _answered(turn))
        )
        if joins:
            turn[-1] = _Step([*turn[-1].log, raw], index + 1)
        else:
            turn.append(_Step([raw], index + 1))
    if turn:
        yield turn


def _answered(turn: list[_Step]) -> bool:
    return any(raw.value["role"] in ("assistant", "tool") for step in turn for raw in step.log)


def _tool_updates(log: Sequence[Raw]) -> Iterator[Update]:
    """Yield the updates of tool-call state for a step: messages of the model with tool calls clear
    the earlier calls and set theirs to running; tool results set calls to succeeded."""
    now = int(time.time() * 1000)
    for raw in log:
        message = raw.value
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            if calls:
                yield _update("clear")
            for call in calls:
                function = call.get("function") or call
                yield _put(call["id"], function["name"], "running", now, function.get("arguments"))
        elif message["role"] == "tool":
            name = message.get("name") or "tool"
            yield _put(message["tool_call_id"], str(name), "succeeded", now, None)


def _put(call_id: str, name: str, status: str, now: int, arguments: JSON) -> Update:
    state = {"call_id": call_id, "tool_name": name, "status": status, "updated_at": now}
    if arguments is not None:
        state["arguments"] = arguments
    return _update({"put": state})


def _update(change: JSON) -> Update:
    return Update(TOOL_CALLS, Raw(values.dump(change), change))


def _already_there(thread: Thread, log: Sequence[Raw]) -> int:
    """Return the number of messages of `log` that the thread has. Raises Conflict if it has other
    messages."""
    stored = Message.objects.filter(thread=thread, folds_to=None).in_order()
    count = 0
    for count, body in enumerate(stored.values_list("body", flat=True), start=1):
        if count > len(log) or log[count - 1].text != body:
            raise Conflict(
                f"thread {thread.public_id} contains a different conversation",
                hint=f"Message {count} differs. Import into another workspace, or delete the thread.",
            )
    return count


def _title(log: Sequence[Raw]) -> str:
    content = next((raw.value.get("content") for raw in log if raw.value["role"] == "user"), None)
    return content.strip().partition("\n")[0][:120] if isinstance(content, str) else ""


def read_line(line: bytes) -> tuple[str, list[Raw]]:
    """Parse one line `{"episode", "messages": […]}` of a transcript file. Other fields are ignored.
    Raises Invalid."""
    try:
        raw = values.read(line)
    except values.MalformedJSON as malformed:
        raise Invalid(f"not JSON: {malformed}") from malformed
    except values.RefusedJSON as refused:
        raise Invalid("cannot be stored", refused.faults) from refused
    if not isinstance(raw.value, dict):
        raise Invalid("not a JSON object")
    parts = values.members(raw)
    episode = parts.get("episode")
    if episode is None or not isinstance(episode.value, str):
        raise Invalid("episode must be a string", [Fault("/episode", "must be a string")])
    log = parts.get("messages")
    if log is None or not isinstance(log.value, list):
        raise Invalid("messages must be a list", [Fault("/messages", "must be a list")])
    return threads.check_id(episode.value), values.items(log)
