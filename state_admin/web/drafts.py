"""JSON that a user types: parsing it and locating its errors, for entries and config records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import JsonResponse, QueryDict

from state_admin.domain import diffs, values
from state_admin.domain.diffs import Difference
from state_admin.domain.json_pointers import Mismatch, WorkingCopy, find, look_up, parts_of
from state_admin.domain.three_way import Clash, keep_both
from state_admin.domain.values import JSON, Raw, pointer_of
from state_admin.services.conflicts import ConflictSides
from state_admin.services.entries import check_value
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Invalid,
    Problem,
    TooLarge,
    check_storable,
)
from state_admin.services.namespaces import Definition
from state_admin.templatetags.json_html import pretty

from .errors import heading_of
from .json_lines import line_of, mark_ranges, span_of, utf16
from .paging import number_in, parse_json_field, parse_typed_json

# The position in the parser's message, counted from the first character that is not whitespace.
_STOPPED = re.compile(r"\(char (\d+)\)\Z")

# The values that a user can keep at the place of a conflict, and their names in a message.
SIDES = {"yours": "mine", "theirs": "theirs", "both": "both", "edited": "the edited value"}
_OTHER = {"theirs": "yours", "yours": "theirs"}
# With more conflicts than this, the page has no choices and marks, because it and its form would be
# too large.
_MOST_CHOICES = 100

Mark = dict[str, Any]  # message, pointer, line, and start and end in UTF-16 code units


def typed_text(post: QueryDict) -> str:
    return post.get("value", "").replace("\r\n", "\n")


def seen_version(post: QueryDict) -> int:
    """The version that was edited; 0 if there was none."""
    return number_in(post, "base", "0")


def read_value(text: str) -> Raw:
    """The typed text as a value in compact form, without the indentation of the editor."""
    raw = parse_typed_json(text, "the value")
    check_storable(raw, "the value")
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


def show_refused(text: str, problem: Problem, within: str = "") -> dict[str, Any]:
    """The errors for a form without an editor: the problem, and the line of each error (0 if the
    text is not valid JSON). `within` is the place of the text in the body."""
    errors: list[Mark] = []
    place = "" if problem.data.get("within") == within else within
    for error in problem.data.get("errors", []):
        pointer = error["pointer"].removeprefix(place)
        errors.append({**error, "pointer": pointer, "line": _line_of(text, pointer)})
    return {"message": heading_of(problem), "hint": problem.hint, "errors": errors}


def _line_of(text: str, pointer: str) -> int:
    try:
        return line_of(text, pointer)
    except (ValueError, IndexError):
        return 0


@dataclass
class Choices:
    """What the conflict page sent: `text` is the typed text with the choices applied, `kept` the value
    that it has at each conflict: a key of SIDES, "" without a choice. `clashes` are the conflicts with
    their places in `text`, as JSON: an item that a choice adds or removes moves the next ones."""

    text: str
    places: Sequence[str] = ()
    kept: Sequence[str] = ()
    clashes: Sequence[str] = ()

    def require(self) -> None:
        if not all(self.kept):
            raise Conflict("choose a value for each conflict")

    def describe(self) -> str:
        """ ". Kept mine at /goal, /steps; theirs at /title" """
        words = []
        for side, name in SIDES.items():
            pairs = zip(self.places, self.kept, strict=True)
            if places := [
                pointer or "(the whole value)" for pointer, each in pairs if each == side
            ]:
                more = f" and {len(places) - 3:,} more" if len(places) > 3 else ""
                words.append(f"{name} at {', '.join(places[:3])}{more}")
        return f". Kept {'; '.join(words)}" if words else ""


def resolve_clashes(post: QueryDict, text: str) -> Choices:
    """Apply the choices of the conflict page to the typed text. A place that the user edited is not
    changed."""
    clashes = list(map(_read_clash, post.getlist("clash")))
    if not clashes:
        return Choices(text)
    places = [clash["pointer"] for clash in clashes]
    copy, kept = WorkingCopy(values.load(read_value(text).text)), []
    for number, clash in enumerate(clashes):
        path = parts_of(clash["pointer"])
        choice = post.get(f"keep-{number}", "")
        sides = [*_OTHER, *({"both"} & clash.keys())]
        try:
            if _lengths(copy.document, path) != clash.get("lengths"):
                raise Mismatch("the indexes of the items may have changed")
            replaced = [side for side in sides if side != choice]
            if choice in sides and any(_holds(copy, path, clash, side) for side in replaced):
                _put(copy, path, clash, choice)
                if _is_item(clash):
                    _move_others(clashes, number)
        except Mismatch:  # a parent of the place was removed by hand
            kept.append("edited")
            continue
        held = [side for side in sides if _holds(copy, path, clash, side)]
        kept.append((held[0] if choice else "") if held else "edited")
    resolved = copy.document
    unchanged = values.same(resolved, values.load(text))
    return Choices(
        text if unchanged else pretty(resolved), places, kept, [values.dump(c) for c in clashes]
    )


def _read_clash(text: str) -> dict[str, Any]:
    refusal = "the form contains an invalid conflict; reload the page"
    clash = parse_json_field(text, refusal).value
    try:
        match clash:
            case {"pointer": str(pointer), "lengths": list(lengths)}:
                if len(parts_of(pointer)) == len(lengths):
                    return dict(clash)
    except Mismatch as bad:
        raise BadRequest(refusal) from bad
    raise BadRequest(refusal)


def _is_item(clash: dict[str, Any]) -> bool:
    """Whether the place is that of an array's item that one side removed. `removed` then says whether
    the text lacks it, which its place does not: the next item is there."""
    return "removed" in clash


def _move_others(clashes: list[dict[str, Any]], number: int) -> None:
    """Add or remove the item of a conflict: the places in its array that follow change."""
    mine = clashes[number]
    mine["removed"] = not mine["removed"]
    by = -1 if mine["removed"] else 1
    *array, last = parts_of(mine["pointer"])
    depth = len(array)
    for other, clash in enumerate(clashes):
        path = parts_of(clash["pointer"])
        if len(path) <= depth or path[:depth] != array:
            continue
        clash["lengths"][depth] += by
        index = int(path[depth])
        # Of several removed items at one index, each is before those of later conflicts.
        if other != number and (index, other) > (int(last), number):
            clash["pointer"] = pointer_of(*array, str(index + by), *path[depth + 1 :])


def _lengths(document: JSON, path: list[str]) -> list[int | None]:
    """The length of each array on the path, None for an object. Raises Mismatch if a parent of the
    place does not exist."""
    parents = (find(document, path[:depth]) for depth in range(len(path)))
    return [len(parent) if isinstance(parent, list) else None for parent in parents]


def _holds(copy: WorkingCopy, path: list[str], clash: dict[str, JSON], side: str) -> bool:
    if _is_item(clash) and clash["removed"]:
        return side not in clash
    value = look_up(copy.document, path)
    if value is values.MISSING:
        return side not in clash
    return side in clash and values.same(value, clash[side])


def _put(copy: WorkingCopy, path: list[str], clash: dict[str, JSON], side: str) -> None:
    """Give the place the value of a side, which differs from the present one."""
    if side not in clash:
        copy.remove(path)
    elif _is_item(clash) or not clash.keys() >= _OTHER.keys():
        copy.add(path, clash[side])
    else:
        copy.replace(path, clash[side])


def answer_check(
    post: QueryDict, check: Callable[[str], object], form: str | None = None
) -> JsonResponse:
    """The editor's validation while a user types: the error message, "" without errors, and the
    positions; on the conflict page also the text with the choices, what is kept, and where; beside a form
    that of the text, as HTML, "" if it has none. `check` writes nothing and raises what saving would
    raise."""
    choices = Choices(typed_text(post))
    message, errors = "", list[Mark]()
    try:
        choices = resolve_clashes(post, choices.text)
        check(choices.text)
    except (Invalid, TooLarge, BadRequest) as problem:
        message, errors = heading_of(problem), marks_of(choices.text, problem)
    resolved = (
        {"value": choices.text, "kept": choices.kept, "clashes": choices.clashes}
        if choices.kept
        else {}
    )
    if form is not None:
        resolved["form"] = form
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
    lengths = _lengths(merged, parts_of(clash.pointer))
    resolvable |= {"pointer": clash.pointer, "lengths": lengths}
    if lengths and lengths[-1] is not None and not there.keys() >= _OTHER.keys():
        resolvable["removed"] = False
    if (both := keep_both(clash)) is not None:
        resolvable["both"] = both
    return {
        "pointer": clash.pointer or "(the whole value)",
        "sides": [
            (side, pretty(there[side]) if side in there else None)
            for side in ("base", "theirs", "yours")
        ],
        "both": both is not None,
        "json": values.dump(resolvable),
    }


def _short(clash: Clash, side: str) -> str:
    if side in clash.absent:
        return "absent"
    value: JSON = getattr(clash, side)
    text = values.dump(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
