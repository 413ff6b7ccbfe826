"""Stores the lines that `commonhold export` has printed as entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from commonhold import documents
from commonhold.answers import BatchResult
from commonhold.client import Commonhold
from commonhold.entries import split_batches
from commonhold.problems import BadRequest, Invalid, problem_of


@dataclass
class Counts:
    """What happened to the lines. `existing`: an entry with this key existed and was not replaced.
    `expired`: the expiry of the line is over."""

    stored: int = 0
    existing: int = 0
    expired: int = 0
    refused: int = 0


@dataclass(frozen=True)
class _Line:
    """A line to store. `size`: its bytes. The operation has fewer, except for `op` and `if_version`."""

    number: int
    size: int
    operation: dict[str, Any]


def import_entries(
    state: Commonhold,
    lines: Iterable[str],
    *,
    namespace: str | None = None,
    replace: bool = False,
    reason: str = "",
    complain: Callable[[str], object],
) -> Counts:
    """Store each line as an entry, with its tags, pin and remaining time to live, in its namespace or
    in `namespace`. Entries that exist are left alone, unless `replace`: so an interrupted import can
    be repeated. Each refusal of an entry is passed to `complain`, and the import continues. Raises
    ValueError for a line that is not an exported entry.
    """
    counts = Counts()
    parsed = _parse(lines, namespace, counts, replace=replace)
    for chunk in split_batches(parsed, lambda line: line.size):
        operations = [line.operation for line in chunk]
        try:
            results = state.batch(operations, atomic=False, minimal=True, reason=reason)
        except (BadRequest, Invalid) as problem:
            line = _place(problem, chunk)
            if line is None:
                raise
            raise ValueError(f"line {line.number}: {problem}") from problem
        for line, result in zip(chunk, results, strict=True):
            _count(line, result, counts, complain, replace=replace)
    return counts


def _parse(
    lines: Iterable[str], namespace: str | None, counts: Counts, *, replace: bool
) -> Iterator[_Line]:
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            exported = documents.load(text, decimals=True)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} is not JSON: {error}") from error
        if not isinstance(exported, dict) or not {"namespace", "key", "value"} <= exported.keys():
            raise ValueError(
                f"line {number} is not an entry: an object with namespace, key and value is required"
            )
        operation = {
            "op": "put",
            "namespace": namespace or exported["namespace"],
            "key": exported["key"],
            "value": exported["value"],
            "tags": exported.get("tags") or [],
            "pinned": bool(exported.get("pinned")),
        }
        if not replace:
            operation["if_version"] = 0
        if exported.get("expires_at"):
            left = _seconds_until(exported["expires_at"], number)
            if left <= 0:
                counts.expired += 1
                continue
            operation["ttl_seconds"] = left
        yield _Line(number, len(text.encode()), operation)


def _seconds_until(moment: object, number: int) -> int:
    try:
        left = datetime.fromisoformat(str(moment)) - datetime.now(UTC)
    except (TypeError, ValueError) as error:
        raise ValueError(f"line {number}: expires_at is not a time with a time zone") from error
    return math.ceil(left.total_seconds())


def _place(problem: BadRequest | Invalid, chunk: Sequence[_Line]) -> _Line | None:
    """The line of the operation that makes the whole batch invalid."""
    pointers = [problem.document.get("pointer"), *(each["pointer"] for each in problem.errors)]
    for pointer in pointers:
        match str(pointer).split("/"):
            case ["", "operations", index, *_] if index.isdecimal() and int(index) < len(chunk):
                return chunk[int(index)]
    return None


def _count(
    line: _Line,
    result: BatchResult,
    counts: Counts,
    complain: Callable[[str], object],
    *,
    replace: bool,
) -> None:
    if result.problem is None:
        counts.stored += 1
    elif result.status == 412 and not replace:
        counts.existing += 1
    else:
        counts.refused += 1
        at = f"{line.operation['namespace']}/{line.operation['key']}"
        complain(f"line {line.number}: {at}: {problem_of(result.status, result.problem)}")
