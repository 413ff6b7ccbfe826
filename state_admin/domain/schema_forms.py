"""Forms generated from a JSON Schema, for the response of a ticket or a record of the config
registry: the fields, and the JSON value of a submitted form.

Not here: validation of that value (schemas.py), and rendering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from typing import Any, Final

from state_admin.domain import json_pointers
from state_admin.domain.values import (
    JSON,
    MISSING,
    Fault,
    MalformedJSON,
    RefusedJSON,
    check,
    dump,
    load,
    pointer_of,
    read,
)

MOST_FIELDS: Final = 40
MOST_EDITED: Final = 200
# Parts of a schema that are read for one form. References can repeat a part exponentially often.
_MOST_PARTS: Final = 2_000

_NOTES: Final = {
    "title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs",
    "definitions",
}  # fmt: skip
_RULES: Final[Mapping[str, set[str]]] = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "boolean": set(),
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties"},
}
_LISTS: Final = ("lines", "several")
# Special values that can be typed, as the only line, into the field of a list that may be null. An
# empty field means that the list is not set: null may mean something else, for example no tool
# where an absent list means all.
_NO_LINES: Final = ("[]", "null")
_BREAK: Final = re.compile(r"[\r\n]")
_KINDS: Final = {"string": "text", "boolean": "choice", "array": "lines"}
_WORDS: Final = {"true": "yes", "false": "no", "null": "nothing"}


@dataclass(frozen=True)
class Field:
    """A field for one place of the value. `name` is its JSON Pointer, `typed` its initial text.

    `kind`: `text`, `date`, `number`, `integer`, `choice` (one of `choices`: JSON text and label),
    `several` (a list of choices, one per line), `lines` (a list of strings, one per line) or
    `json`. `rules` are those of its schema that a browser can check too. `group` is the label of
    the object that contains it, `needed` whether that object, if present, must have it. `blank`:
    an emptied text is the value "".
    """

    name: str
    label: str
    kind: str
    required: bool
    help: str = ""
    typed: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    rules: Mapping[str, JSON] = field(default_factory=dict)
    group: str = ""
    needed: bool = False
    nullable: bool = False
    blank: bool = False

    @property
    def long(self) -> bool:
        """Whether the field has several lines, by its schema."""
        return self.kind in ("lines", "json") or (self.kind == "text" and not self.rules)

    @property
    def hint(self) -> str:
        """The help, and which texts the schema permits."""
        least, most, pattern = (
            self.rules.get(rule) for rule in ("minLength", "maxLength", "pattern")
        )
        texts = [self.help] if self.help else []
        if self.help and (pattern or least or most) and self.help[-1].isalnum():
            texts = [f"{self.help}."]
        if least and least != 1:
            texts.append(f"At least {least} characters.")
        if most:
            texts.append(f"At most {most} character{'' if most == 1 else 's'}.")
        if pattern:
            texts.append(f"Must match {pattern}")
        return " ".join(texts)

    @property
    def short_label(self) -> str:
        """The label within its group."""
        return self.label.removeprefix(f"{self.group} / ")


def fields_of(schema: JSON) -> list[Field] | None:
    """The fields of a schema made of strings, enums, numbers, booleans, lists of strings or of
    enums, and objects of those; None for any other schema, whose value must be typed as JSON."""
    try:
        fields = list(_fields(schema, _Location(root=schema)))
    except (_NotRepresentable, _TooManyParts):
        return None
    return fields if 0 < len(fields) <= MOST_FIELDS else None


def fields_over(schema: JSON, value: JSON, *, blank: bool = False) -> list[Field]:
    """The fields of a form that edits `value`, an object. A nullable field is empty for null. A
    member whose schema or value fits no other field is edited as JSON."""
    return list(_fields(schema, _Location(held=value, edits=True, root=schema, blank=blank)))


def find_fields(schema: JSON, value: JSON) -> list[Field] | None:
    """The fields of a form that edits a value of any schema, with `blank` texts; None if they are
    none or too many, or if the value is not an object. Rules that no field shows are those of the
    validation alone, and members that the schema does not name are in no field."""
    if not isinstance(schema, dict) or not isinstance(value, dict):
        return None
    try:
        schema = _resolve(schema, _Location(root=schema))[0]
    except _NotRepresentable:
        return None
    parts, needed = schema.get("properties"), schema.get("required", [])
    if not isinstance(parts, dict) or not parts:
        return None
    form_schema = {
        "type": "object",
        "properties": parts,
        "required": [name for name in needed if name in parts],
    }
    location = _Location(held=value, edits=True, root=schema, blank=True)
    try:
        fields = list(_fields(form_schema, location))
    except _TooManyParts:
        return None
    return fields if len(fields) <= MOST_EDITED else None


class _NotRepresentable(Exception):
    """A form cannot represent the schema or the value."""


class _TooManyParts(Exception):
    """The schema has more than _MOST_PARTS."""


@dataclass(frozen=True)
class _Location:
    """Where a schema applies. `edits`: the form edits an existing value, and `held` is the part of
    it here. `root` is the whole schema, `seen` the references that were followed on the way. `parts`
    numbers the parts that are read; all locations of a form share it."""

    pointer: str = ""
    label: str = "Answer"
    group: str = ""
    required: bool = True
    needed: bool = True
    held: JSON = MISSING
    edits: bool = False
    blank: bool = False
    root: JSON = None
    seen: frozenset[str] = frozenset()
    parts: Iterator[int] = field(default_factory=count)

    def build(self, schema: Mapping[str, JSON], kind: str, **more: Any) -> Field:
        return Field(
            name=self.pointer,
            label=(f"{self.group} / " if self.group else "") + self.label,
            kind=kind,
            required=self.required,
            help=str(schema.get("description") or ""),
            group=self.group,
            needed=self.needed,
            **more,
        )


def _fields(schema: JSON, place: _Location) -> Iterator[Field]:
    nullable = False
    if next(place.parts) == _MOST_PARTS:
        raise _TooManyParts
    try:
        if not isinstance(schema, dict):
            raise _NotRepresentable
        schema, place = _resolve(schema, place)
        if schema.get("title"):
            place = replace(place, label=str(schema["title"]))
        kind = schema.get("type")
        if place.edits and isinstance(kind, list) and len(kind) == 2 and "null" in kind:
            nullable = True
            schema = {**schema, "type": next(each for each in kind if each != "null")}
        if schema.get("type") == "object" and "enum" not in schema:
            found = list(_members(schema, place))
        else:
            found = [_leaf(schema, place, nullable=nullable)]
    except _NotRepresentable:
        if not (place.edits and place.pointer):
            raise
        about = schema if isinstance(schema, dict) else {}
        found = [place.build(about, "json", nullable=nullable)]
    yield from found


def _resolve(schema: dict[str, Any], place: _Location) -> tuple[dict[str, Any], _Location]:
    """The schema that a reference within the document names. Notes beside the reference apply."""
    while "$ref" in schema:
        reference = str(schema["$ref"])
        if reference in place.seen or schema.keys() - _NOTES - {"$ref"}:
            raise _NotRepresentable
        target = json_pointers.look_up_reference(place.root, reference)
        if not isinstance(target, dict):
            raise _NotRepresentable
        notes = {name: note for name, note in schema.items() if name != "$ref"}
        schema, place = {**target, **notes}, replace(place, seen=place.seen | {reference})
    return schema, place


def _members(schema: Mapping[str, Any], place: _Location) -> Iterator[Field]:
    _only(schema, "object")
    parts, needed = schema.get("properties", {}), schema.get("required", [])
    # An object that must exist but may be empty cannot be distinguished from an omitted one.
    if set(needed) - parts.keys() or (place.pointer and place.required and not needed):
        raise _NotRepresentable
    if place.edits and not (parts and (place.held is MISSING or isinstance(place.held, dict))):
        raise _NotRepresentable
    held = place.held if isinstance(place.held, dict) else {}
    for name, part in parts.items():
        words = name.replace("_", " ").strip() or "unnamed"
        inner = replace(
            place,
            pointer=place.pointer + pointer_of(name),
            label=words[:1].upper() + words[1:],
            group=" / ".join(filter(None, [place.group, place.label])) if place.pointer else "",
            required=place.required and name in needed,
            needed=name in needed,
            held=held.get(name, MISSING),
        )
        yield from _fields(part, inner)


def _leaf(schema: Mapping[str, Any], place: _Location, *, nullable: bool) -> Field:
    kind = schema.get("type")
    items = schema.get("items")
    if "enum" in schema or "const" in schema:
        choices = _choices(schema)
        field = place.build(schema, "choice", choices=choices, typed=_default(schema, "choice"))
    elif kind == "boolean":
        _only(schema, kind)
        choices = _choices({"enum": [True, False]})
        field = place.build(schema, "choice", choices=choices, typed=_default(schema, "choice"))
    elif not isinstance(kind, str) or kind not in _RULES:
        raise _NotRepresentable
    elif kind == "array" and isinstance(items, dict) and "enum" in items:
        _only(schema, kind)
        field = place.build(schema, "several", choices=_choices(items), nullable=nullable)
    else:
        _only(schema, kind)
        if kind == "array":
            _only(items, "string")
        input_kind = _KINDS.get(kind, kind)
        field = place.build(
            schema,
            "date" if kind == "string" and schema.get("format") == "date" else input_kind,
            typed=_default(schema, kind),
            rules={rule: value for rule, value in schema.items() if rule in _RULES[kind]},
            nullable=nullable,
            blank=place.blank and input_kind == "text",
        )
    if _text_of(field, place.held) is None:
        raise _NotRepresentable
    return field


def _only(schema: JSON, kind: str) -> None:
    """Raise _NotRepresentable for a schema of another type, and for one with rules that a field
    cannot represent."""
    if not isinstance(schema, dict) or schema.get("type") != kind:
        raise _NotRepresentable
    if schema.keys() - _NOTES - {"type"} - _RULES[kind]:
        raise _NotRepresentable


def _choices(schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if schema.keys() - _NOTES - {"type", "enum", "const"}:
        raise _NotRepresentable
    listed: list[JSON] = schema["enum"] if "enum" in schema else [schema["const"]]
    if any(isinstance(value, (dict, list)) for value in listed):
        raise _NotRepresentable
    texts = [dump(value) for value in listed]
    return tuple(
        (text, value if isinstance(value, str) else _WORDS.get(text, text))
        for text, value in zip(texts, listed, strict=True)
    )


def _default(schema: Mapping[str, Any], kind: str) -> str:
    default = schema.get("default")
    if kind == "choice":
        return dump(default) if "default" in schema else ""
    if default is None:
        return ""
    if kind == "array":
        return "\n".join(map(str, default)) if isinstance(default, list) else ""
    return default if isinstance(default, str) else dump(default)


def typed_of(fields: Sequence[Field], value: JSON) -> dict[str, str]:
    """The text of each field for `value`. The fields must be those of fields_over for this
    value."""
    return {each.name: _text_of(each, _at(value, each.name)) or "" for each in fields}


def _at(value: JSON, pointer: str) -> JSON:
    return json_pointers.look_up(value, json_pointers.parts_of(pointer))


def _text_of(field: Field, node: JSON) -> str | None:
    """The text of a field for a part of the value. None: the field cannot represent it."""
    if node is MISSING:
        return ""
    if node is None and field.nullable:
        return "null" if field.kind == "lines" else ""
    match field.kind:
        case "json":
            return dump(node)
        case "choice":
            return dump(node) if _are_choices(field, [node]) else None
        case "several" if isinstance(node, list) and _are_choices(field, node):
            items = [dump(item) for item in node]
            return "\n".join(text for text, _ in field.choices if text in items)
        case "lines" if isinstance(node, list):
            return _lines(field, node)
        case "number" | "integer" if _is_number(dump(node)):
            return dump(node)
        case "date" if isinstance(node, str) and _is_date(node):
            return node
        # Browsers remove line breaks from single-line fields.
        case "text" if isinstance(node, str) and (field.long or not _BREAK.search(node)):
            return node
    return None


def _are_choices(field: Field, nodes: list[JSON]) -> bool:
    texts = [dump(node) for node in nodes]
    return len(set(texts)) == len(texts) and {*texts} <= {text for text, _ in field.choices}


def _lines(field: Field, items: list[JSON]) -> str | None:
    if not items and field.nullable:
        return "[]"
    for item in items:
        if not isinstance(item, str) or item != item.strip() or not item or _BREAK.search(item):
            return None
    text = "\n".join(items)
    return None if text in _NO_LINES and field.nullable else text


def compose(
    fields: Sequence[Field],
    typed: Mapping[str, str],
    held: JSON = None,
    *,
    complete: bool = True,
) -> tuple[str, list[Fault]]:
    """The JSON text of `held` (None: no value yet) with the `typed` texts, by name of the field,
    and their faults.

    An unchanged field changes nothing: an absent member stays absent, and null stays null. An empty
    optional field is left out, and its object too if it has no other member. An empty required
    field is null if it may be, else a fault if the value has to be `complete`, unless it is a list.
    Numbers keep their spelling.
    """
    copy = json_pointers.WorkingCopy({} if held is None else held)
    wrong: dict[str, list[Fault]] = {}
    for each in fields:
        text, path = _normal(typed.get(each.name, "")), json_pointers.parts_of(each.name)
        node = _at(copy.document, each.name) if path else MISSING
        if node is not MISSING and text == _normal(_text_of(each, node) or ""):
            continue
        if text.strip() or (each.blank and isinstance(node, str)):
            part = _part(each, text)
            if isinstance(part, str):
                copy.put(path, load(part))
            else:
                wrong[each.name] = part
        elif each.required and each.kind in _LISTS:
            copy.put(path, [])
        elif node is not MISSING and each.nullable and each.needed:
            copy.put(path, None)
        elif node is not MISSING:
            # With the objects that contain nothing else.
            while len(path) > 1 and len(json_pointers.find(copy.document, path[:-1])) == 1:
                path = path[:-1]
            copy.remove(path)
    for each in fields:
        if complete and each.name not in wrong and _lacks(each, copy.document, typed):
            wrong[each.name] = [Fault(each.name, "a value is required")]
    return dump(copy.document), [fault for each in fields for fault in wrong.get(each.name, [])]


def _normal(text: str) -> str:
    """The text with LF line breaks; browsers send CRLF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _lacks(field: Field, value: JSON, typed: Mapping[str, str]) -> bool:
    """Whether a required place of the value is missing."""
    if not field.name:
        return field.kind not in _LISTS and not typed.get("", "").strip()
    above = _at(value, field.name.rpartition("/")[0])
    node = _at(value, field.name)
    empty = node is MISSING or (isinstance(node, str) and not node.strip() and not field.blank)
    return empty and (field.required or (field.needed and isinstance(above, dict)))


def _part(field: Field, text: str) -> str | list[Fault]:
    """The JSON text of one field."""
    text = text if field.kind == "text" else text.strip()
    match field.kind:
        case "lines":
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            return text if field.nullable and text in _NO_LINES else dump(lines)
        case "choice" | "several":
            chosen = text.split("\n") if field.kind == "several" else [text]
            if not {*chosen} <= {choice for choice, _ in field.choices}:
                return [Fault(field.name, "must be one of the choices")]
            return text if field.kind == "choice" else f"[{','.join(chosen)}]"
        case "number" | "integer":
            return text if _is_number(text) else [Fault(field.name, "must be a number")]
        case "date" if not _is_date(text):
            return [Fault(field.name, "must be a date such as 2026-01-31")]
        case "json":
            return _json(field, text)
    return dump(text)


def _json(field: Field, text: str) -> str | list[Fault]:
    try:
        check(read(text))
    except MalformedJSON as malformed:
        return [Fault(field.name, str(malformed))]
    except RefusedJSON as refused:
        return [Fault(field.name + each.pointer, each.message) for each in refused.faults]
    return text


def _is_number(text: str) -> bool:
    try:
        value = read(text).value
    except (MalformedJSON, RefusedJSON):
        return False
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def faults_by_field(
    fields: Sequence[Field], errors: Sequence[Mapping[str, str]]
) -> tuple[dict[str, str], list[Mapping[str, str]]]:
    """The errors by the name of the field they concern, and those that concern no field."""
    at: dict[str, str] = {}
    rest: list[Mapping[str, str]] = []
    names = {field.name for field in fields}
    for error in errors:
        pointer = error["pointer"]
        while pointer and pointer not in names:
            pointer = pointer.rpartition("/")[0]
        if pointer in names:
            at[pointer] = (
                f"{at[pointer]}; {error['message']}" if pointer in at else error["message"]
            )
        else:
            rest.append(error)
    return at, rest
