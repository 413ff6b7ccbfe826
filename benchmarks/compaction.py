"""Summaries of recorded conversations by the extractive summarizer: the size, and the facts
retained.

    python -m benchmarks.compaction FILE        (or TRANSCRIPTS=FILE python -m benchmarks)

FILE has a line `{"episode": …, "messages": […]}` per conversation. Each is compacted once, at the
boundary of the default policy. A fact counts as retained if the summary contains it as a word.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from state_admin.domain import boundaries, summaries, tokens
from state_admin.domain.boundaries import MessageLine, Plan
from state_admin.domain.policies import Policy
from state_admin.summarizers import SUMMARIZERS, SummaryRequest
from tests.domain.reference_boundaries import Lines

# The formats of the recorded airline. Independent of the summarizer's own rules, which are being
# tested.
KINDS = {
    "reservations": re.compile(
        r"\"reservation_id\": \"(\w+)\"|\b(?=[A-Z0-9]*[A-Z])(?=[A-Z0-9]*\d)[A-Z0-9]{6}\b"
    ),
    "users": re.compile(r"\b[a-z]+_[a-z]+_\d{4}\b"),
    "amounts": re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?)|\"amount\": (-?\d+(?:\.\d+)?)"),
    # Of booked flights only; other search results are not facts of the conversation.
    "prices": re.compile(r"\"price\": (\d+)"),
}
_FLIGHT = re.compile(r"HAT\d{3}")


class Row(NamedTuple):
    episode: str
    messages: int
    before: int
    after: int
    facts: dict[str, tuple[int, int]]  # retained, total
    seconds: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path, nargs="?", default=os.environ.get("TRANSCRIPTS"))
    options.add_argument("--folds", type=int, default=1, help="number of consecutive compactions")
    options.add_argument("--show", metavar="EPISODE", help="print this episode's summary")
    options.add_argument(
        "--missing", action="store_true", help="print the facts that were not retained"
    )
    arguments = options.parse_args()
    if arguments.file is None:
        sys.exit("no transcripts: pass FILE or set TRANSCRIPTS=FILE")
    rows, skipped = [], 0
    for line in Path(arguments.file).read_text().splitlines():
        episode = json.loads(line)
        folded = fold(episode["messages"])
        if folded is None:
            skipped += 1
            continue
        before, messages = folded
        began = time.perf_counter()
        text = summarize(messages, arguments.folds)
        seconds = time.perf_counter() - began
        if episode["episode"] == arguments.show:
            print(text, end="\n\n")
        after = tokens.estimate_message(summaries.wrap(text))
        facts = {}
        for kind in KINDS:
            expected = set(found(kind, messages))
            gone = {fact for fact in expected if not stands(fact, text)}
            facts[kind] = (len(expected) - len(gone), len(expected))
            if gone and arguments.missing:
                print(f"{episode['episode']} lost {kind}: {', '.join(sorted(gone))}")
        rows.append(Row(episode["episode"], len(messages), before, after, facts, seconds))
    if not rows:
        sys.exit(
            f"{arguments.file} contains no conversation that is long enough ({skipped} too short)"
        )
    show(rows, skipped)


def summarize(messages: list[dict[str, Any]], folds: int) -> str:
    """Summarize in `folds` compactions in a row, each with the previous summary."""
    text, most = "", Policy().summary_max_tokens
    size = -(-len(messages) // folds)
    for start in range(0, len(messages), size):
        request = SummaryRequest(messages[start : start + size], text or None, most)
        text = summaries.clean(SUMMARIZERS["extractive"]().summarize(request).text, most)
    return text


def fold(messages: list[dict[str, Any]]) -> tuple[int, list[dict[str, Any]]] | None:
    """Return the tokens and the messages that the default policy summarizes, or None."""
    lines = [
        MessageLine(
            seq=seq,
            message_id=str(seq),
            role=message["role"],
            visibility="all",
            tokens=tokens.estimate_message(message),
            opens=tuple(call["id"] for call in message.get("tool_calls") or ()),
            answers=message.get("tool_call_id"),
        )
        for seq, message in enumerate(messages, start=1)
    ]
    plan = boundaries.plan(Lines(lines), Policy())
    if not isinstance(plan, Plan):
        return None
    folded = [
        m for seq, m in enumerate(messages[: plan.boundary_seq], 1) if seq != plan.carried_seq
    ]
    return plan.tokens_before, folded


def found(kind: str, messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the facts in messages and in the arguments and results of tools, without those in the
    instructions."""
    for message in messages:
        if message["role"] == "system":
            continue
        calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
        for text in (message.get("content") or "", *calls):
            for match in KINDS[kind].finditer(text):
                fact = next((group for group in match.groups() if group), match[0])
                if not _FLIGHT.fullmatch(fact):
                    yield fact.replace(",", "").removesuffix(".00").removesuffix(".0").lstrip("-")


def stands(fact: str, text: str) -> bool:
    return (
        re.search(rf"(?<![\w.]){re.escape(fact)}(?![\w]|\.[1-9])", text.replace(",", ""))
        is not None
    )


def show(rows: list[Row], skipped: int) -> None:
    print(f"{'episode':16}{'messages':>9}{'before':>8}{'after':>7}{'saved':>7}", end="")
    print("".join(f"{kind:>14}" for kind in KINDS))
    for row in rows:
        print(f"{row.episode:16}{row.messages:9}{row.before:8}{row.after:7}", end="")
        print(f"{1 - row.after / row.before:7.0%}", end="")
        print("".join(f"{f'{kept}/{every}':>14}" for kept, every in row.facts.values()))
    before, after = sum(row.before for row in rows), sum(row.after for row in rows)
    print(f"\n{len(rows)} compacted, {skipped} too short; {before:,} tokens reduced to {after:,}")
    for kind in KINDS:
        kept, every = (sum(row.facts[kind][place] for row in rows) for place in (0, 1))
        whole = sum(row.facts[kind][0] == row.facts[kind][1] for row in rows)
        print(
            f"{kind}: {kept} of {every} kept ({kept / max(every, 1):.1%}); all in {whole} episodes"
        )
    print(f"median time {statistics.median(row.seconds for row in rows) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
