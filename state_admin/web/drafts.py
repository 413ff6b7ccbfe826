"""JSON that a user types: parsing it and locating its errors, for entries and config records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from django.http import JsonResponse, QueryDict

from state_admin.domain import diffs, values
from state_admin.domain.diffs import Difference
from state_admin.domain.json_pointers import Mismatch, WorkingCopy, find, parts_of
from state_admin.domain.three_way import Clash
from state_admin.domain.values import JSON, MISSING, Raw
from state_admin.services.conflicts import ConflictSides
from state_admin.services.entries import check_value
from state_admin.services.errors import BadRequest, Conflict, Invalid, Problem, TooLarge
from state_admin.services.namespaces import Definition
from state_admin.templatetags.json_html import pretty

from .errors import heading_of
from .json_lines import line_of, mark_ranges, span_of, utf16
from .paging import read_required_number

# The position in the parser's message, counted from the first character that is not whitespace.
_STOPPED = re.compile(r"\(char (\d+)\)\Z")

# The values that a user can keep at the place of a conflict, and their names in a message.
SIDES = {"yours": "mine", "theirs": "theirs", "edited": "the edited value"}
_OTHER = {"theirs": "yours", "yours": "theirs"}
# With more conflicts than this, the page has no choices and marks, because it and its form would be
# too large.
_MOST_CHOICES = 100

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


def resolve_clashes(post: QueryDict, text: str) -> tuple[str, dict[str, str]]:
    """Apply the choices of the conflict page to the typed text. Also return the value that the
    result has at each conflict: a key of SIDES, "" without a choice. A place that the user edited
    is not changed."""
    clashes = [values.load(clash) for clash in post.getlist("clash")]
    if not clashes:
        return text, {}
    copy, kept = WorkingCopy(values.load(read_value(text).text)), {}
    for number, clash in enumerate(clashes):
        path = parts_of(clash["pointer"])
        choice = post.get(f"keep-{number}", "")
        try:
            if _lengths(copy.document, path) != clash.get("lengths"):
                raise Mismatch("the indexes of the items may have changed")
            if choice in _OTHER and _holds(copy, path, clash, _OTHER[choice]):
                _put(copy, path, clash.get(choice, MISSING))
        except Mismatch:  # a parent of the place was removed by hand
            kept[clash["pointer"]] = "edited"
            continue
        held = [side for side in _OTHER if _holds(copy, path, clash, side)]
        kept[clash["pointer"]] = (held[0] if choice else "") if held else "edited"
    resolved = copy.document
    unchanged = values.same(resolved, values.load(text))
    return text if unchanged else pretty(resolved), kept


def require_choices(kept: dict[str, str]) -> None:
    if not all(kept.values()):
        raise Conflict("choose theirs, mine or the edited value for each conflict")


def describe_kept(kept: dict[str, str]) -> str:
    """ ". Kept mine at /goal, /steps; theirs at /title" """
    words = []
    for side, name in SIDES.items():
        if places := [
            pointer or "(the whole value)" for pointer, each in kept.items() if each == side
        ]:
            more = f" and {len(places) - 3:,} more" if len(places) > 3 else ""
            words.append(f"{name} at {', '.join(places[:3])}{more}")
    return f". Kept {'; '.join(words)}" if words else ""


def _lengths(document: JSON, path: list[str]) -> list[int | None]:
    """The length of each array on the path, None for an object. Raises Mismatch if a parent of the
    place does not exist."""
    parents = (find(document, path[:depth]) for depth in range(len(path)))
    return [len(parent) if isinstance(parent, list) else None for parent in parents]


def _holds(copy: WorkingCopy, path: list[str], clash: dict[str, JSON], side: str) -> bool:
    try:
        value = find(copy.document, path)
    except Mismatch:
        return side not in clash
    return side in clash and values.same(value, clash[side])


def _put(copy: WorkingCopy, path: list[str], value: JSON) -> None:
    try:
        find(copy.document, path)
    except Mismatch:
        copy.add(path, value)
    else:
        copy.remove(path) if value is MISSING else copy.replace(path, value)


def answer_check(post: QueryDict, check: Callable[[str], object]) -> JsonResponse:
    """The editor's validation while a user types: the error message, "" without errors, and the
    positions; on the conflict page also the text with the choices, and what is kept. `check` writes
    nothing and raises what saving would raise."""
    text, kept = typed_text(post), dict[str, str]()
    message, errors = "", list[Mark]()
    try:
        text, kept = resolve_clashes(post, text)
        check(text)
    except (Invalid, TooLarge, BadRequest) as problem:
        message, errors = heading_of(problem), marks_of(text, problem)
    resolved = {"value": text, "kept": list(kept.values())} if kept else {}
    return JsonResponse({"message": message, "errors": errors, **resolved})


def conflict_context(collision: ConflictSides, base: int, text: str) -> dict[str, Any]:
    """The context of entries/conflict.html: both sides and their merge. Where both changed the same
    value, the merge has theirs, marked, until the user chooses. There is no merge without a base
    version or if theirs was deleted. `base` is the version that was edited, `text` the user's own
    text."""
    clashes = collision.clashes if len(collision.clashes) <= _MOST_CHOICES else []
    current, theirs = collision.current, collision.theirs
    base_known = collision.base is not None
    merging = base_known and theirs is not None
    sides = [
        (
            "Theirs",
            f"version {current.version}" if theirs else "deleted",
            "theirs",
            _pretty(theirs),
        ),
        ("Mine", "not saved", "yours", text),
    ]
    merged, label = text, "My value"
    if base_known:
        base_label = f"version {base}" if base else "the default"
        sides.insert(0, ("Base", base_label, "base", _pretty(collision.base)))
    if merging:
        merged, label = pretty(collision.merged), "Merged value"
    return {
        "entry": current,
        "base": base,
        "base_known": base_known,
        "merging": merging,
        "sides": [
            (name, what, mark_ranges(content, _places(clashes, side)))
            for name, what, side, content in sides
        ],
        "clash_count": len(collision.clashes),
        "clashes": [_clash_row(clash, collision.merged) for clash in clashes] if merging else [],
        "theirs_rows": _rows(collision.base, theirs),
        "mine_rows": _rows(collision.base, collision.yours),
        "rows": _rows(theirs, collision.yours),
        "theirs": _pretty(theirs),
        "typed": text,
        "merged": merged,
        "editor_label": f"{label}: edit it before you save",
        "marks": [_clash_mark(merged, clash) for clash in clashes] if merging else [],
    }


def _places(clashes: Sequence[Clash], side: str) -> list[str]:
    """The places of the clashes on a side, where items of an array can have another index."""
    return [
        clash.pointers.get(side, clash.pointer) for clash in clashes if side not in clash.absent
    ]


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


def _clash_row(clash: Clash, merged: JSON) -> dict[str, Any]:
    there = {
        side: getattr(clash, side)
        for side in ("base", "theirs", "yours")
        if side not in clash.absent
    }
    resolvable = {side: there[side] for side in _OTHER if side in there}
    resolvable |= {
        "pointer": clash.pointer,
        "lengths": _lengths(merged, parts_of(clash.pointer)),
    }
    return {
        "pointer": clash.pointer or "(the whole value)",
        "sides": [
            (side, pretty(there[side]) if side in there else None)
            for side in ("base", "theirs", "yours")
        ],
        "json": values.dump(resolvable),
    }


def _short(clash: Clash, side: str) -> str:
    if side in clash.absent:
        return "absent"
    value: JSON = getattr(clash, side)
    text = values.dump(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
