"""The built-in summarizer: deterministic and without a model, as its summaries state. It condenses
questions and answers, lists the tools that ran with their results, and keeps facts longest."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from state_admin.domain.tokens import estimate_message, estimate_text
from state_admin.summarizers.base import Summary, SummaryFailed, SummaryRequest
from state_admin.summarizers.facts import (
    Fact,
    Kind,
    ends,
    in_json,
    in_prose,
    labelled,
    numbers,
    parsed,
    to_line,
    words,
)

MAX_SAID: Final = 220
MAX_FOUND: Final = 260
MAX_CARRIED: Final = 420
SHORT: Final = 60
# Relative to the size of what is summarized; a summary may be shorter than max_tokens. The previous
# summary is condensed already.
TARGET_RATIO: Final = 0.3
OLD_RATIO: Final = 0.8
LEAST_TOKENS: Final = 320
LEAST_LINES: Final = 0.4

_HEADER: Final = "Extractive summary, no model: {} messages condensed; the originals are stored."
_EARLIER, _LOG, _OPEN, _FACTS = "Earlier:", "What happened:", "Open at the end of it:", "Facts:"
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_MARKUP: Final = re.compile(r"\*\*|__|`|^#+\s*|^[-*]\s+", re.M)
_PLEASANTRY: Final = re.compile(
    r"(?i)^(hi|hello|hey|thanks|thank you|great|sure|okay|ok|please let me know|let me know|"
    r"if you (have|need)|is there anything else|feel free|you're welcome|i understand|"
    r"i appreciate|have a|of course|no problem|alright|certainly)\b"
)
_CHANGES: Final = re.compile(
    r"(?i)^(?:\w+[._])?(add|apply|approve|book|buy|cancel|charge|create|delete|insert|order|patch|"
    r"pay|post|put|refund|remove|replace|reset|save|send|set|submit|transfer|update|write)"
)


@dataclass
class _Candidate:
    """A candidate line for the summary. Lines with higher `worth` are kept if there is too little
    room."""

    text: str
    worth: float
    section: str = _LOG
    facts: list[Fact] = field(default_factory=list)
    source: str = ""


class ExtractiveSummarizer:
    """See the module. The cost is zero, tokens are estimates."""

    name = "extractive"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Raises SummaryFailed if there is nothing to summarize."""
        earlier, earlier_facts = _previous(request.previous_summary or "")
        lines = [*earlier, *_lines(request.messages)]
        if not lines:
            raise SummaryFailed("nothing to summarise")
        new = sum(map(estimate_message, request.messages))
        old = estimate_text(request.previous_summary or "")
        target = max(int(new * TARGET_RATIO + old * OLD_RATIO), LEAST_TOKENS)
        size = 4 * min(request.max_tokens, target)
        text = _fit_to_size(_HEADER.format(len(request.messages)), lines, earlier_facts, size)
        return Summary(text, self.name, "", new + old, estimate_text(text), Decimal(0))


def _previous(text: str) -> tuple[list[_Candidate], list[Fact]]:
    """The lines and facts of the previous summary; one of another summarizer is parsed as prose."""
    lines, facts, section = [], [], ""
    for line in map(str.strip, text.splitlines()):
        if line in (_EARLIER, _LOG, _OPEN, _FACTS):
            section = line
        elif not line or line.startswith((_HEADER[:30], "<")):
            continue
        elif section == _FACTS:
            label, _, values = line.removeprefix("- ").partition(": ")
            facts += [labelled(label, value) for value in values.split(", ")]
        elif section != _OPEN:
            said = line.removeprefix("- ")
            found = in_prose(said) + (numbers(said) if "→" in said else [])
            lines.append(_Candidate(_truncate(said, MAX_CARRIED), 2.0, _EARLIER, found))
    return lines, facts


def _lines(messages: list[dict[str, Any]]) -> list[_Candidate]:
    lines: list[_Candidate] = []
    calls: dict[str, _Candidate] = {}
    said: _Candidate | None = None
    for position, message in enumerate(messages, 1):
        if message.get("visibility") == "internal":
            continue
        newness = 2 * position / len(messages)
        text, role = _text(message.get("content")), message.get("role")
        if role == "tool":
            call = calls.pop(str(message.get("tool_call_id")), None)
            if call is None:
                call = _Candidate(f"Tool {message.get('name') or ''}", 1.0)
                lines.append(call)
            _answer(call, text)
            continue
        if text.strip():
            said = _message_line(str(role), text, newness)
            lines.append(said)
        for name, identifier, arguments in _calls(message):
            line = _call(name, arguments, newness)
            calls[identifier] = line
            lines.append(line)
    if said is not None:
        said.worth += 4  # the last messages show the state of the conversation
        if question := _question(said.source):
            who = said.text.partition(":")[0]
            lines.append(_Candidate(f"{who} asked: {question}", 9, _OPEN))
    lines += [_Candidate(f"No result yet: {line.text}", 8, _OPEN) for line in calls.values()]
    if questions := [line for line in lines if line.text.startswith("User:")]:
        questions[-1].worth += 4
    return _without_repeats(lines)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [
        b if isinstance(b, str) else b.get("text") for b in blocks if isinstance(b, (str, dict))
    ]
    return "\n".join(text for text in texts if isinstance(text, str))


def _message_line(role: str, text: str, newness: float) -> _Candidate:
    if role == "system":
        first = _condense(ends(text), 100)
        return _Candidate(f"Instructions of {len(text):,} characters, beginning: {first}", 3.0)
    text = ends(text)
    facts = in_prose(text)
    worth = {"user": 4.0, "assistant": 2.0}.get(role, 1.0) + newness + min(len(facts), 6) / 3
    return _Candidate(f"{role.capitalize()}: {_condense(text, MAX_SAID)}", worth, _LOG, facts, text)


def _question(text: str) -> str | None:
    sentences = _sentences(text)
    found = [sentence for sentence in sentences[-3:] if sentence.endswith("?")]
    return _truncate(found[-1], MAX_SAID) if found else None


def _sentences(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in _SENTENCE.split(_MARKUP.sub("", text)))
    return [part for part in parts if part]


def _condense(text: str, most: int) -> str:
    """The most informative sentences, in order: those with facts, then questions, then the rest;
    pleasantries last."""
    sentences = _sentences(text)

    def weight(sentence: str) -> float:
        value = min(len(in_prose(sentence)), 3) + sentence.endswith("?")
        empty = len(sentence) < SHORT and _PLEASANTRY.match(sentence)
        return value - 9 * bool(empty)

    weights = [*map(weight, sentences)]
    kept: set[int] = set()
    room = most
    for place in sorted(range(len(sentences)), key=lambda place: -weights[place]):
        if kept and (len(sentences[place]) > room or weights[place] < 0):
            continue
        kept.add(place)
        room -= len(sentences[place]) + 1
    return _truncate(" ".join(sentences[place] for place in sorted(kept)), most)


def _calls(message: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call.get("function"), dict) else call
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = parsed(arguments) or arguments
        yield str(function.get("name", "tool")), str(call.get("id")), arguments


def _call(name: str, arguments: Any, newness: float) -> _Candidate:
    worth = (4.0 if _CHANGES.match(name) else 2.0) + newness
    return _Candidate(
        f"{name}({_truncate(to_line(arguments or ''), MAX_FOUND // 2)})",
        worth,
        _LOG,
        [*in_json(arguments)],
    )


def _answer(call: _Candidate, text: str) -> None:
    found = parsed(text)
    if not text.strip() or found in ([], {}):
        call.worth -= 2
        call.text += " → nothing"
        return
    if found is None:
        text = ends(text)
    call.facts += in_prose(text) if found is None else in_json(found)
    preview = _condense(text, MAX_FOUND) if found is None else to_line(found, words(call.text))
    call.text += f" → {_truncate(preview, MAX_FOUND)}"
    if "error" in text[:40].lower():
        call.worth += 0.5


def _without_repeats(lines: list[_Candidate]) -> list[_Candidate]:
    """Of equal lines the last one: a repeated call with the same result adds nothing."""
    last = {line.text: line for line in lines}
    return [line for line in lines if last[line.text] is line]


def _fit_to_size(header: str, lines: list[_Candidate], facts: list[Fact], size: int) -> str:
    """At most `size` bytes: as many lines, best first, as leave room for the ids and amounts that
    they do not contain; but the lines get at least the share LEAST_LINES."""
    newest_first = [fact for line in reversed(lines) for fact in reversed(line.facts)]
    every: dict[str, Fact] = {}
    for fact in [*newest_first, *facts]:
        every.setdefault(fact.value, fact)
    ranked = sorted(lines, key=lambda line: -line.worth)

    def body(count: int) -> str:
        chosen = set(map(id, ranked[:count]))
        return _sections(header, [line for line in lines if id(line) in chosen])

    def fits(count: int) -> bool:
        text = body(count)
        index = _index(every.values(), text, Kind.AMOUNT)
        return len(f"{text}{index}".encode()) <= size

    at_least = _find_greatest(
        len(lines), lambda count: len(body(count).encode()) <= size * LEAST_LINES
    )
    text = body(max(at_least, _find_greatest(len(lines), fits)))
    for kind in (Kind.DATE, Kind.AMOUNT):
        index = _index(every.values(), text, kind)
        if len(f"{text}{index}".encode()) <= size:
            return text + index
    index = _list_first_facts(index, size - len(text.encode()))
    return (text + index).encode()[:size].decode(errors="ignore")


def _list_first_facts(index: str, room: int) -> str:
    """As many facts of an index as fit into `room` bytes; the oldest are last."""
    held = index.encode()
    if len(held) <= room:
        return index
    end = max(held.rfind(b", ", 0, max(room + 2, 0)), held.rfind(b"\n", 0, max(room + 1, 0)), 0)
    return held[:end].decode()


def _find_greatest(count: int, fits: Callable[[int], bool]) -> int:
    """The greatest number up to `count` that fits, if every smaller number fits too."""
    return bisect_left(range(count), True, key=lambda number: not fits(number + 1))


def _sections(header: str, lines: list[_Candidate]) -> str:
    text = [header]
    for title in (_EARLIER, _LOG, _OPEN):
        if body := [f"- {line.text}" for line in lines if line.section == title]:
            text += [title, *body]
    return "\n".join(text)


def _index(facts: Iterable[Fact], text: str, kind: Kind) -> str:
    """The facts up to this kind that the text does not contain, grouped by label."""
    present = words(text)
    groups: dict[str, list[str]] = {}
    for fact in sorted(facts, key=lambda fact: fact.kind):
        if fact.kind in (Kind.ID, Kind.AMOUNT, kind) and fact.value.lstrip("-") not in present:
            groups.setdefault(fact.label, []).append(fact.value)
    if not groups:
        return ""
    lines = [f"- {label}: {', '.join(values)}" for label, values in groups.items()]
    return "\n".join(["", _FACTS, *lines])


def _truncate(text: str, most: int) -> str:
    """The text, cut at the end of a word and marked if it is too long."""
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
