"""The cost of validating with a schema, computed before any value is validated.

A validation runs in native code that holds Python's interpreter lock, so its cost must be bounded
in advance. Not here: how the bound is used (schemas).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import jsonschema_rs

from state_admin.domain.values import JSON, Fault, nodes, pointer_of

MAX_PATTERNS: Final = 32
MAX_PATTERN_SIZE: Final = 4 << 20
# Bytes of all compiled patterns of a schema, times the bytes of the largest value: 1 MiB of
# patterns for values of 1 MiB.
MAX_PATTERN_WORK: Final = 1 << 40
MAX_WORK: Final = 10_000

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
DATA: Final = ("const", "enum", "default", "examples")
# Keywords whose members are subschemas by name.
_BY_NAME: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
# Measured per node of the value: one unit takes at most 60 ns, nearly always a tenth of that.
_PER_OPTION: Final = 5
_PER_MULTIPLE: Final = 20
_PER_UNEVALUATED: Final = 3
# A pattern takes at most 0.22 ns per byte of its compiled program and byte of text.
_PATTERN_WORK_PER_UNIT: Final = 250
_MOST: Final = 1 << 50


@dataclass(frozen=True)
class Cost:
    """`work` is the number of subschemas with every reference expanded, `units` that of their
    keywords and options; `pattern_bytes` is the size of the patterns that one string may be matched
    with. Without `bounded`, none of them limits a validation. `recursive`: a reference points to a
    schema that contains it."""

    work: int
    units: int
    pattern_bytes: int
    recursive: bool
    bounded: bool

    def price(self, value: JSON) -> int:
        """The maximum number of units of validating a value, if the schema is `bounded`."""
        count, size = measure_value(value)
        return self.units * count + self.pattern_bytes * size // _PATTERN_WORK_PER_UNIT


def objects(schema: JSON) -> Iterator[tuple[str, dict[str, JSON]]]:
    """Every subschema that is an object, with its JSON Pointer. The content of `const` is data; a
    reference into it fails at compilation."""
    stack: list[tuple[str, JSON, bool]] = [("", schema, False)]
    while stack:
        pointer, node, names = stack.pop()
        if isinstance(node, dict):
            if not names:
                yield pointer, node
            stack.extend(
                (pointer + pointer_of(key), part, not names and key in _BY_NAME)
                for key, part in node.items()
                if names or key not in DATA
            )
        elif isinstance(node, list):
            stack.extend((f"{pointer}/{index}", item, False) for index, item in enumerate(node))


def patterns_of(schema: JSON) -> list[tuple[str, str]]:
    """The JSON Pointer and the text of every pattern, also in data, since a reference may point
    there."""
    found: list[tuple[str, str]] = []
    stack: list[tuple[str, JSON]] = [("", schema)]
    while stack:
        pointer, node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                found.append((f"{pointer}/pattern", node["pattern"]))
            if isinstance(named := node.get("patternProperties"), dict):
                found += [(pointer + pointer_of("patternProperties", name), name) for name in named]
            stack.extend((pointer + pointer_of(key), part) for key, part in node.items())
        elif isinstance(node, list):
            stack.extend((f"{pointer}/{index}", item) for index, item in enumerate(node))
    return found


def pattern_faults(schema: JSON, max_value_bytes: int) -> list[Fault]:
    """Why the patterns are too large for values of this size; [] if they are not. Each fault names
    a pattern, the largest first, as many as exceed the bound."""
    allowed = min(MAX_PATTERN_SIZE, MAX_PATTERN_WORK // max_value_bytes)
    sizes = sorted(
        ((pattern_size(text) or 0, pointer) for pointer, text in patterns_of(schema)), reverse=True
    )
    excess = sum(size for size, _ in sizes) - allowed
    faults: list[Fault] = []
    for size, pointer in sizes:
        if excess <= 0:
            break
        excess -= size
        message = (
            f"the pattern compiles to up to {size:,} bytes; for values of up to"
            f" {max_value_bytes:,} bytes all patterns together take at most {allowed:,}."
            " Repeat less ({n,m}, \\p{…}), use maxLength, or lower max_value_bytes"
        )
        faults.append(Fault(pointer, message))
    return faults


@functools.lru_cache(maxsize=4096)
def pattern_size(pattern: str) -> int | None:
    """The bytes of the compiled pattern, rounded up to a power of two; None if it does not compile
    within MAX_PATTERN_SIZE. A pattern that needs no automaton (`^abc`) has 0."""
    if _compiles(pattern, 0):
        return 0
    low, high = 7, MAX_PATTERN_SIZE.bit_length() - 1
    if not _compiles(pattern, 1 << high):
        return None
    while low < high:
        middle = (low + high) // 2
        if _compiles(pattern, 1 << middle):
            high = middle
        else:
            low = middle + 1
    return 1 << high


def _compiles(pattern: str, size_limit: int) -> bool:
    options = jsonschema_rs.RegexOptions(size_limit=size_limit)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except jsonschema_rs.ValidationError:
        return False
    return True


def measure(schema: JSON) -> Cost:
    """The cost of a validation. RecursionError if its references form too long a chain.

    Thirty lines with references can expand to 2³⁰ subschemas, and the validator could not be
    stopped. A reference to a schema that is being expanded counts as one: the library remembers
    whether a container is valid under it.
    """
    totals = _Totals(schema)
    work, units, pattern_bytes = totals.of(schema)
    nested = sum(any(name in node for name in UNEVALUATED) for _, node in objects(schema))
    embedded = any("$id" in node for pointer, node in objects(schema) if pointer)
    bounded = not (
        embedded  # its references are not relative to the root
        or (totals.recursive and nested)
        or (totals.recursive and _loops_in_place(schema, totals))
    )
    return Cost(work, units, pattern_bytes, totals.recursive, bounded)


class _Totals:
    """Sums over a schema with its references expanded."""

    def __init__(self, schema: JSON) -> None:
        self.schema = schema
        self.anchors = anchors_of(schema)
        self.recursive = False
        self._open: set[tuple[int, bool]] = set()
        self._costs: dict[tuple[int, bool], tuple[int, int, int]] = {}

    def of(self, node: JSON, *, names: bool = False) -> tuple[int, int, int]:
        """The work, units and pattern bytes of a subschema; with `names`, of an object whose
        members are subschemas. One stack frame per level, because references may form long
        chains."""
        if not isinstance(node, (dict, list)):
            return 0, 1, 0
        at = id(node), names
        if at in self._open:
            self.recursive = True
            return 1, 1, 0
        if at in self._costs:
            return self._costs[at]
        self._open.add(at)
        is_schema = isinstance(node, dict) and not names
        work, units, pattern_bytes = (1, 1, 0) if is_schema else (0, 0, 0)
        parts = node.items() if isinstance(node, dict) else [("", item) for item in node]
        for keyword, part in parts:
            by_name = False
            if is_schema:
                if keyword in ("const", "enum"):
                    units += _PER_OPTION * count_nodes(part)
                    continue
                if keyword in DATA or keyword.endswith("$defs"):
                    continue
                if keyword in REFERENCES and isinstance(part, str):
                    part = self.target(part)
                elif keyword == "multipleOf":
                    units += _PER_MULTIPLE
                elif keyword == "pattern" and isinstance(part, str):
                    pattern_bytes += pattern_size(part) or 0
                elif keyword == "patternProperties" and isinstance(part, dict):
                    pattern_bytes += sum(pattern_size(name) or 0 for name in part)
                by_name = keyword in _BY_NAME
            more = self.of(part, names=by_name)
            work += more[0]
            units += more[1]
            pattern_bytes += more[2]
        if is_schema and any(name in node for name in UNEVALUATED):
            units *= _PER_UNEVALUATED
            pattern_bytes *= _PER_UNEVALUATED
        self._open.remove(at)
        total = min(work, MAX_WORK + 1), min(units, _MOST), min(pattern_bytes, _MOST)
        self._costs[at] = total
        return total

    def target(self, reference: str) -> JSON:
        return find_target(self.schema, reference, self.anchors)


def anchors_of(schema: JSON) -> dict[str, str]:
    """The JSON Pointer of every `$anchor` and `$dynamicAnchor`, by its reference (`#name`)."""
    return {
        "#" + node[keyword]: pointer
        for pointer, node in objects(schema)
        for keyword in ("$anchor", "$dynamicAnchor")
        if isinstance(node.get(keyword), str)
    }


def find_target(schema: JSON, reference: str, anchors: dict[str, str]) -> JSON:
    """The subschema that a reference into this document points to; None if it does not exist."""
    return find_pointer(schema, pointer_of_reference(reference, anchors))


def find_pointer(schema: JSON, pointer: str) -> JSON:
    """The subschema at a JSON Pointer; None if it does not exist."""
    node = schema
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = next((item for index, item in enumerate(node) if str(index) == part), None)
        else:
            node = node.get(part) if isinstance(node, dict) else None
    return node


def pointer_of_reference(reference: str, anchors: dict[str, str]) -> str:
    """The JSON Pointer of a reference into this document."""
    if reference in anchors:
        return anchors[reference]
    return unquote(reference[1:]) if reference.startswith("#/") else ""


def _loops_in_place(schema: JSON, totals: _Totals) -> bool:
    """Whether references form a loop that does not descend into the value. The library detects such
    a loop only after it has tried every path through it."""
    done: set[int] = set()
    open_: set[int] = set()

    def visit(node: JSON) -> bool:
        if isinstance(node, list):
            return any(map(visit, node))
        if not isinstance(node, dict) or id(node) in done:
            return False
        if id(node) in open_:
            return True
        open_.add(id(node))
        parts = [part for name in _IN_PLACE for part in _parts(node, name)]
        references = [node.get(name) for name in REFERENCES]
        targets = [totals.target(each) for each in references if isinstance(each, str)]
        looping = any(visit(part) for part in [*parts, *targets] if part is not node)
        open_.remove(id(node))
        done.add(id(node))
        return looping

    return any(visit(node) for _, node in objects(schema))


def _parts(node: dict[str, JSON], name: str) -> list[JSON]:
    part = node.get(name)
    return list(part.values()) if name == "dependentSchemas" and isinstance(part, dict) else [part]


def count_nodes(value: JSON, most: float = math.inf) -> int:
    """The number of values it consists of: itself, members, items. Counts up to `most`."""
    count = 0
    for count, _ in enumerate(nodes(value), 1):
        if count > most:
            break
    return count


def measure_value(value: JSON) -> tuple[int, int]:
    """The number of values it consists of, and the bytes of its strings and keys."""
    count = size = 0
    stack = [value]
    while stack:
        node = stack.pop()
        count += 1
        if isinstance(node, str):
            size += len(node) if node.isascii() else len(node.encode("utf-8", "replace"))
        elif isinstance(node, dict):
            size += sum(len(name) if name.isascii() else 4 * len(name) for name in node)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return count, size
