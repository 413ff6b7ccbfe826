"""JSON Schema 2020-12 for namespaces and state keys: which schemas may be registered, and which
values are valid.

Not here: where schemas are stored and cached, and what happens to entries that become invalid.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice
from typing import Final

import jsonschema_rs

from state_admin.domain import isolation, schema_costs
from state_admin.domain.schema_costs import MAX_PATTERNS, MAX_WORK, REFERENCES, Cost
from state_admin.domain.schema_faults import (
    MAX_STEPS,
    FaultSearch,
    compile_validator,
    message_of,
    shorten,
)
from state_admin.domain.values import (
    JSON,
    MAX_MEMBERS,
    Fault,
    FaultError,
    Float,
    MalformedJSON,
    Raw,
    RefusedJSON,
    check,
    dump,
    pointer_of,
    read,
)

MAX_SCHEMA_BYTES: Final = 64 * 1024
# In the units of schema_costs, at most 60 ns each. A validation that may cost more runs in
# isolation.
LIGHT: Final = 1_000_000
# In the child process, whose CPU time limit ends longer validations.
_ISOLATED_STEPS: Final = 20 * MAX_STEPS
# The library collects all errors at once, each with a copy of the part that it concerns.
_MOST_ERRORS: Final = 50_000
_MOST_COPIED: Final = 8 << 20
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
STOPPED: Final = (
    "validating this value takes more than "
    f"{isolation.CPU_SECONDS:g} s of processor time; simplify the schema or its patterns"
)
_TYPES_ALLOWED: Final = 'type must be "array", "boolean", "integer", "null", "number", "object" or "string", or a list of these'


class InvalidSchema(FaultError):
    """The schema cannot be registered. `faults` point into the schema."""


class Validator:
    """A compiled schema. Safe to share between threads. Created by `compile_schema`.

    A validation that may hold the interpreter lock for long runs in another process (isolation).
    Its cost is computed in advance from the schema and the size of the value.
    """

    def __init__(
        self, compiled: jsonschema_rs.Validator, schema: Raw, cost: Cost, mask: str | None
    ) -> None:
        self._compiled = compiled
        self._schema = schema
        self._cost = cost
        self._mask = mask

    def faults(self, value: JSON, limit: int = 20) -> list[Fault]:
        """Where and why a value is invalid, at most `limit` places; [] if it is valid.

        The value must have passed `values.check`. Pointers lead into the value; long values are
        truncated in messages. If validating takes too long, there is one fault for the whole value.
        Raises isolation.Busy if too many values wait for isolated validation.
        """
        if self.is_light(value):
            return self.faults_here(value, limit, MAX_STEPS)
        try:
            found = self._isolated(value, limit)
        except isolation.ValidationLimitExceeded:
            return [Fault("", STOPPED)]
        return [Fault(pointer, message) for pointer, message in found]

    def accepts(self, value: JSON) -> bool:
        """Whether the value, which must have passed `values.check`, is valid. False if validating
        takes too long. Raises as `faults` does."""
        if self.is_light(value):
            return self.accepts_here(value)
        try:
            return bool(self._isolated(value, 0))
        except isolation.ValidationLimitExceeded:
            return False

    def faults_here(self, value: JSON, limit: int, steps: int = _ISOLATED_STEPS) -> list[Fault]:
        """`faults`, in this process regardless of the cost."""
        if self.accepts_here(value):
            return []
        plain = _plain(value)
        if self._may_collect(plain):
            errors = islice(self._compiled.iter_errors(plain), limit)
            return [Fault(pointer_of(*error.instance_path), message_of(error)) for error in errors]
        return FaultSearch(self._schema.value, self._cost, self._mask, steps).faults(plain, limit)

    def accepts_here(self, value: JSON) -> bool:
        """`accepts`, in this process regardless of the cost."""
        try:
            return self._compiled.is_valid(value)
        except ValueError:  # the library accepts no subclass of float
            return self._compiled.is_valid(_plain(value))

    @property
    def always_light(self) -> bool:
        """Whether every value that values.check accepts can be validated quickly."""
        cost = self._cost
        small = cost.units * (MAX_MEMBERS + 1) <= LIGHT
        return cost.bounded and not cost.pattern_bytes and small

    def is_light(self, value: JSON) -> bool:
        """Whether a value is validated in this process, because that is fast."""
        return self.always_light or (self._cost.bounded and self._cost.price(value) <= LIGHT)

    def _may_collect(self, value: JSON) -> bool:
        """Whether the library may collect all errors: without recursion their number is bounded."""
        cost = self._cost
        nodes, size = schema_costs.measure_value(value)
        return (
            cost.bounded
            and not cost.recursive
            and cost.units * nodes <= _MOST_ERRORS
            and cost.units * size <= _MOST_COPIED
        )

    def _isolated(self, value: JSON, limit: int) -> JSON:
        request = {"schema": self._schema.text, "mask": self._mask, "limit": limit}
        return isolation.CHILD.ask({**request, "value": dump(value)})


@functools.lru_cache(maxsize=1024)
def compile_schema(text: str, mask: str | None = None) -> Validator:
    """Compile a schema from its JSON text. Raises InvalidSchema.

    Refused: more than 64 KiB or 64 levels, a reference outside the document (nothing is fetched), a
    dialect other than 2020-12, look-around in patterns, more than MAX_PATTERNS patterns, and
    references that expand to more than MAX_WORK subschemas. `format` is an annotation, as in the
    standard: it refuses nothing. With a `mask`, messages contain it instead of values.
    """
    raw = _parse(text)
    try:
        cost = schema_costs.measure(raw.value)
    except RecursionError:
        raise InvalidSchema([Fault("", "its references form too long a chain")]) from None
    if cost.work > MAX_WORK:
        message = f"its references multiply to more than {MAX_WORK:,} subschemas"
        raise InvalidSchema([Fault("", message)])
    try:
        jsonschema_rs.meta.validate(raw.value)
        compiled = compile_validator(raw.value, mask)
    except jsonschema_rs.ValidationError as error:
        unknown_type = error.kind.name == "anyOf" and error.instance_path[-1:] == ["type"]
        message = _TYPES_ALLOWED if unknown_type else message_of(error)
        raise InvalidSchema([Fault(pointer_of(*error.instance_path), message)]) from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema([Fault("", shorten(str(error), 300))]) from None
    return Validator(compiled, raw, cost, mask)


def check_patterns(text: str, max_value_bytes: int) -> None:
    """Refuse patterns that are too large for values of up to `max_value_bytes`, before they are
    compiled. Raises InvalidSchema, also for schemas that compile_schema refuses without
    compiling."""
    raw = _parse(text)
    if faults := schema_costs.pattern_faults(raw.value, max_value_bytes):
        raise InvalidSchema(faults)


def _parse(text: str) -> Raw:
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
    return raw


def _outside(schema: JSON) -> Iterator[Fault]:
    """References outside the document, other dialects, and too many patterns."""
    for pointer, node in schema_costs.objects(schema):
        for keyword in REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                message = f"{keyword} may only point into this schema ('#…'), nothing is fetched"
                yield Fault(pointer + pointer_of(keyword), message)
        dialect = node.get("$schema")
        if isinstance(dialect, str) and dialect.rstrip("#") != DIALECT:
            yield Fault(pointer + "/$schema", f"only {DIALECT} is supported")
    patterns = len(schema_costs.patterns_of(schema))
    if patterns > MAX_PATTERNS:
        yield Fault("", f"a schema takes at most {MAX_PATTERNS} patterns, this has {patterns}")


def _plain(value: JSON) -> JSON:
    """The value without `Float`s, which the library does not accept."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Float) else value
