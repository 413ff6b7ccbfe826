"""JSON Schema 2020-12 for namespaces and state keys: what may be registered, what fits.

Not here: where schemas are stored and cached, and what happens to entries that stop fitting.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import jsonschema_rs

from state_admin.domain.values import (
    JSON,
    Fault,
    Float,
    MalformedJSON,
    RefusedJSON,
    check,
    dump,
    pointer_of,
    read,
)

MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_PATTERNS: Final = 32
MAX_WORK: Final = 10_000
MAX_FAULT_WORK: Final = 100_000
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_SHOWN: Final = 80
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA: Final = ("const", "enum", "default", "examples")
# Linear-time engine, without look-around. The limit bounds the memory of one compiled pattern.
_PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=4 << 20, dfa_size_limit=1 << 20)


class InvalidSchema(ValueError):
    """The schema cannot be registered. `faults` point into the schema."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class Validator:
    """A compiled schema. Safe to share between threads. Made by `compile_schema`."""

    def __init__(self, compiled: jsonschema_rs.Validator, work: int) -> None:
        self._compiled = compiled
        self._work = work

    def faults(self, value: JSON, limit: int = 20) -> list[Fault]:
        """Where and why a value does not fit, at most `limit` places; [] = it fits.

        The value has passed `values.check`. Pointers lead into the value; long values are cut
        from the messages. Where schema and value are so large that finding every fault could
        take seconds, only the first is told.
        """
        if self.accepts(value):
            return []
        plain = _plain(value)
        errors: Iterable[jsonschema_rs.ValidationError]
        if self._work * _nodes(plain) > MAX_FAULT_WORK:
            errors = _first_error(self._compiled, plain)
        else:  # not lazy: the library finds all errors before it gives the first
            errors = self._compiled.iter_errors(plain)
        return [
            Fault(pointer_of(*error.instance_path), _message(error))
            for error in islice(errors, limit)
        ]

    def accepts(self, value: JSON) -> bool:
        """Whether the value, which has passed `values.check`, fits."""
        try:
            return self._compiled.is_valid(value)
        except ValueError:  # the library takes no subclass of float
            return self._compiled.is_valid(_plain(value))


@functools.lru_cache(maxsize=1024)
def compile_schema(text: str) -> Validator:
    """Compile a schema from its JSON text (semantics §3). Raises InvalidSchema.

    Refused: more than 64 KiB or 64 levels, any reference that leaves the document (nothing is
    ever fetched), another dialect than 2020-12, look-around in patterns, more than MAX_PATTERNS
    patterns, and references that multiply to more than MAX_WORK subschemas. `format` annotates,
    as the standard has it: it refuses nothing.
    """
    if len(text) > MAX_SCHEMA_BYTES or len(text.encode("utf-8", "replace")) > MAX_SCHEMA_BYTES:
        raise InvalidSchema([Fault("", f"a schema takes at most {MAX_SCHEMA_BYTES:,} bytes")])
    try:
        raw = read(text)
        check(raw)
    except MalformedJSON as error:
        raise InvalidSchema([Fault("", str(error))]) from None
    except RefusedJSON as error:
        raise InvalidSchema(error.faults) from None
    if faults := list(islice(_outside(raw.value), 20)):
        raise InvalidSchema(faults)
    try:
        work, recursive = _work(raw.value)
    except RecursionError:
        raise InvalidSchema([Fault("", "its references form too long a chain")]) from None
    if work > MAX_WORK:
        message = f"its references multiply to more than {MAX_WORK:,} subschemas"
        raise InvalidSchema([Fault("", message)])
    try:
        jsonschema_rs.meta.validate(raw.value)
        compiled = jsonschema_rs.Draft202012Validator(
            raw.value, offline=True, pattern_options=_PATTERNS
        )
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchema([Fault(pointer_of(*error.instance_path), _message(error))]) from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema([Fault("", _cut(str(error), 300))]) from None
    return Validator(compiled, MAX_FAULT_WORK if recursive else work)


def _outside(schema: JSON) -> Iterator[Fault]:
    """References that leave the document, other dialects, and too many patterns."""
    patterns = 0
    for pointer, node in _objects(schema):
        for keyword in _REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                message = f"{keyword} may only point into this schema ('#…'), nothing is fetched"
                yield Fault(pointer + pointer_of(keyword), message)
        dialect = node.get("$schema")
        if isinstance(dialect, str) and dialect.rstrip("#") != DIALECT:
            yield Fault(pointer + "/$schema", f"only {DIALECT} is known here")
        named = node.get("patternProperties")
        patterns += isinstance(node.get("pattern"), str)
        patterns += len(named) if isinstance(named, dict) else 0
    if patterns > MAX_PATTERNS:
        yield Fault("", f"a schema takes at most {MAX_PATTERNS} patterns, this has {patterns}")


def _objects(schema: JSON) -> Iterator[tuple[str, dict[str, JSON]]]:
    stack: list[tuple[str, JSON]] = [("", schema)]
    while stack:
        pointer, node = stack.pop()
        if isinstance(node, dict):
            yield pointer, node
            # What stands in `const` is data, unless a property merely has that name; then its
            # schema is missed here, and the offline compilation still refuses to fetch.
            stack.extend((pointer + pointer_of(k), v) for k, v in node.items() if k not in _DATA)
        elif isinstance(node, list):
            stack.extend((f"{pointer}/{index}", item) for index, item in enumerate(node))


def _work(schema: JSON) -> tuple[int, bool]:
    """How many subschemas a validation may visit when every reference is written out.

    Thirty lines can say 2³⁰ that way, and nothing could stop the validator. A reference back to
    a schema that is being written out makes it recursive (the second answer) and counts as one:
    whether a value fits is remembered there, though the search for every fault is not.
    """
    recursive = False
    open_: set[int] = set()
    anchors = {
        "#" + node[keyword]: node
        for _, node in _objects(schema)
        for keyword in ("$anchor", "$dynamicAnchor")
        if isinstance(node.get(keyword), str)
    }
    known: dict[int, int] = {}

    def weigh(node: JSON) -> int:
        nonlocal recursive
        if isinstance(node, list):
            return sum(map(weigh, node))
        if not isinstance(node, dict):
            return 0
        if id(node) in open_:
            recursive = True
            return 1
        if id(node) in known:
            return known[id(node)]
        open_.add(id(node))
        total = 1
        for keyword, part in node.items():
            if keyword in _REFERENCES and isinstance(part, str):
                total += weigh(_target(schema, part, anchors))
            elif keyword not in _DATA and not keyword.endswith("$defs"):
                total += weigh(part)
        open_.remove(id(node))
        known[id(node)] = total = min(total, MAX_WORK + 1)
        return total

    return weigh(schema), recursive


def _target(schema: JSON, reference: str, anchors: dict[str, JSON]) -> JSON:
    if reference in anchors or not reference.startswith("#/"):
        return anchors.get(reference, schema)
    node = schema
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = next((item for index, item in enumerate(node) if str(index) == part), None)
        elif isinstance(node, dict):
            node = node.get(part)
    return node


def _nodes(value: JSON) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_nodes, value.values()))
    return 1 + sum(map(_nodes, value)) if isinstance(value, list) else 1


def _first_error(
    compiled: jsonschema_rs.Validator, value: JSON
) -> Iterator[jsonschema_rs.ValidationError]:
    try:
        compiled.validate(value)
    except jsonschema_rs.ValidationError as error:
        yield error


def _plain(value: JSON) -> JSON:
    """The value without `Float`s, which the library does not take."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Float) else value


def _message(error: jsonschema_rs.ValidationError) -> str:
    message = error.message
    if len(message) > _SHOWN:
        shown = dump(error.instance)
        if len(shown) > _SHOWN:
            message = message.replace(shown, _cut(shown, _SHOWN))
    return _cut(message, 4 * _SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
