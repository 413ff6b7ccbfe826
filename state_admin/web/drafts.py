"""JSON that a user types: parsing it and locating its errors, for entries and config records."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.http import JsonResponse, QueryDict

from state_admin.domain import diffs, values
from state_admin.domain.diffs import Difference
from state_admin.domain.three_way import Clash
from state_admin.domain.values import JSON, Raw
from state_admin.services.conflicts import ConflictSides
from state_admin.services.entries import check_value
from state_admin.services.errors import BadRequest, Invalid, Problem, TooLarge
from state_admin.services.namespaces import Definition
from state_admin.templatetags.json_html import pretty

from .errors import heading_of
from .json_lines import line_of, span_of, utf16
from .paging import read_required_number

# The position in the parser's message, counted from the first character that is not whitespace.
_STOPPED = re.compile(r"\(char (\d+)\)\Z")

Mark = dict[str, Any]  # message, pointer, line, and start and end in UTF-16 code units


def typed_text(post: QueryDict) -> str:
    return post.get("value", "").replace("\r\n", "\n")


def seen_version(post: QueryDict) -> int:
    """The version that was edited; 0 if there was none."""
    return read_required_number("base", post.get("base", "0"))


def read_value(text: str) -> Raw:
    """The typed text as a value in compact form, without the indentation of the editor."""
    try:
        raw = values.read(text)
        values.check(raw)
    except values.MalformedJSON as bad:
        raise BadRequest("the value is not valid JSON", hint=str(bad)) from bad
    except values.RefusedJSON as refused:
        raise Invalid("the value cannot be stored", refused.faults) from refused
    return Raw(values.dump(values.load(raw.text)), raw.value)


def refusal_of(definition: Definition, stored: str) -> Problem | None:
    """The problem that saving a stored value again would raise, since the schema may have changed;
    None without one."""
    try:
        check_value(definition, values.read(stored))
    except (Invalid, TooLarge) as problem:
        return problem
    return None


def marks_of(text: str, problem: Problem) -> list[Mark]:
    """The errors of a text with their positions in it."""
    errors = [dict(error) for error in problem.data.get("errors", [])]
    for error in errors:
        error["line"] = line_of(text, error["pointer"])
        error["start"], error["end"] = span_of(text, error["pointer"])
    if errors or not problem.hint:
        return errors
    if stopped := _STOPPED.search(problem.hint):
        at = int(stopped[1]) + len(text) - len(text.lstrip(" \t\n\r"))
        place = {"line": text.count("\n", 0, at) + 1, "start": utf16(text, at)}
        message = problem.hint.rpartition(": ")[0]
        return [{"message": message, **place, "end": place["start"] + 1}]
    return [{"message": problem.hint}]


def show_refused(text: str, problem: Problem) -> dict[str, Any]:
    """The errors for a form without an editor: the problem, and the line of each error (0 if the
    text is not valid JSON)."""
    errors = [
        {**error, "line": _line_of(text, error["pointer"])}
        for error in problem.data.get("errors", [])
    ]
    return {"message": heading_of(problem), "hint": problem.hint, "errors": errors}


def _line_of(text: str, pointer: str) -> int:
    try:
        return line_of(text, pointer)
    except (ValueError, IndexError):
        return 0


def answer_check(text: str, check: Callable[[], object]) -> JsonResponse:
    """The editor's validation while a user types: the error message, "" without errors, and the
    positions. `check` writes nothing and raises what saving would raise."""
    try:
        check()
    except (Invalid, TooLarge, BadRequest) as problem:
        return JsonResponse({"message": heading_of(problem), "errors": marks_of(text, problem)})
    return JsonResponse({"message": "", "errors": []})


def conflict_context(collision: ConflictSides, base: int, text: str) -> dict[str, Any]:
    """The context of entries/conflict.html: both sides and their merge. Where both changed the same
    value, the merge has theirs, marked. There is no merge without a base version or if theirs was
    deleted. `base` is the version that was edited, `text` the user's own text."""
    current, theirs = collision.current, collision.theirs
    known, merging = collision.base is not None, collision.base is not None and theirs is not None
    sides = [
        ("Theirs", f"version {current.version}" if theirs else "deleted", _pretty(theirs)),
        ("Mine", "not saved", text),
    ]
    merged, label = text, "My value"
    if known:
        base_label = f"version {base}" if base else "the default"
        sides.insert(0, ("Base", base_label, _pretty(collision.base)))
    if merging:
        merged, label = pretty(collision.merged), "Merged value"
        label += ", with theirs for each conflict" if collision.clashes else ""
    return {
        "entry": current,
        "base": base,
        "base_known": known,
        "merging": merging,
        "sides": sides,
        "clashes": [_clash_row(clash) for clash in collision.clashes],
        "theirs_rows": _rows(collision.base, theirs),
        "mine_rows": _rows(collision.base, collision.yours),
        "rows": _rows(theirs, collision.yours),
        "typed": text,
        "merged": merged,
        "editor_label": f"{label}: edit it before you save",
        "marks": [_clash_mark(merged, clash) for clash in collision.clashes] if merging else [],
    }


def _pretty(text: str | None) -> str:
    return "" if text is None else pretty(values.load(text))


def _rows(before: str | None, after: str | None) -> list[Difference] | None:
    """The differences; None if one side is deleted."""
    if before is None or after is None:
        return None
    return diffs.rows(values.load(before), values.load(after))


def _clash_mark(text: str, clash: Clash) -> Mark:
    start, end = span_of(text, clash.pointer)
    message = f"Theirs: {_short(clash, 'theirs')}. Mine: {_short(clash, 'yours')}."
    return {"message": message, "pointer": clash.pointer, "start": start, "end": end, "clash": True}


def _clash_row(clash: Clash) -> dict[str, Any]:
    return {
        "pointer": clash.pointer or "(the whole value)",
        "sides": [
            None if side in clash.absent else pretty(getattr(clash, side))
            for side in ("base", "theirs", "yours")
        ],
    }


def _short(clash: Clash, side: str) -> str:
    if side in clash.absent:
        return "absent"
    value: JSON = getattr(clash, side)
    text = values.dump(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
