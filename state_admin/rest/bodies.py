"""Request and response bodies: strict JSON is parsed with its exact text, and responses contain
stored text unchanged."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import IO, Any, NamedTuple, TypeVar

import msgspec
from django.conf import settings
from django.http import HttpResponse
from rest_framework.parsers import BaseParser

from state_admin.contract.json_schemas import schema_of
from state_admin.domain import values
from state_admin.domain.json_terms import in_json_terms
from state_admin.domain.schemas import Validator, compile_schema
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.services.errors import BadRequest, Invalid, Problem
from state_admin.services.problem_statuses import body_too_large

T = TypeVar("T", bound=msgspec.Struct)


def decode(raw: Any, kind: type[T]) -> T:
    """Decode the body to the contract's struct `kind`. Members of type "any JSON" become Raw.

    Raises BadRequest for an unknown member, and Invalid with a pointer to each invalid one.
    """
    if not isinstance(raw, Raw) or not isinstance(raw.value, dict):
        raise _not_an_object("")
    members = _members_of(kind)
    value = _read_struct(members, raw) if members else raw.value
    try:
        body = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _refusal(raw.value, kind, str(error)) from None
    # The database cannot store NUL. Members of type "any JSON" are checked when they are stored.
    if "\\u0000" in raw.text and (faults := list(_nul_faults(value, ""))):
        raise Invalid("the request is not valid", faults)
    return body


# By the type of a JSON value: how to prepare it for msgspec.convert, if it is or contains a member
# of type "any JSON". Values of other types need no preparation.
_Readers = dict[type, Callable[[Raw], Any]]


def _readers(info: msgspec.inspect.Type) -> _Readers:
    match info:
        case msgspec.inspect.Metadata():
            return _readers(info.type)
        case msgspec.inspect.AnyType():
            return _ANY
        case msgspec.inspect.UnionType():
            return {kind: read for each in info.types for kind, read in _readers(each).items()}
        case msgspec.inspect.StructType():
            members = _members_of(info.cls)
            return {dict: partial(_read_struct, members)} if members else {}
        case msgspec.inspect.ListType(item_type=msgspec.inspect.StructType() as item):
            members = _members_of(item.cls)
            return {list: partial(_read_structs, members)} if members else {}
        case msgspec.inspect.ListType():
            readers = _readers(info.item_type)
            return {list: partial(_read_items, readers)} if readers else {}
        case msgspec.inspect.DictType():
            readers = _readers(info.value_type)
            return {dict: partial(_read_values, readers)} if readers else {}
    return {}


@functools.cache
def _members_of(kind: type[msgspec.Struct]) -> dict[str, _Readers]:
    """Return the readers of those members of a struct that need one."""
    fields = msgspec.structs.fields(kind)
    found = {each.encode_name: _readers(msgspec.inspect.type_info(each.type)) for each in fields}
    return {name: readers for name, readers in found.items() if readers}


_ANY: _Readers = dict.fromkeys((dict, list, str, int, float, bool, type(None)), lambda raw: raw)


def _read(readers: _Readers, raw: Raw) -> Any:
    reader = readers.get(type(raw.value))
    return reader(raw) if reader else raw.value


def _read_struct(members: dict[str, _Readers], raw: Raw) -> Any:
    return {
        name: _read(members[name], part) if name in members else part.value
        for name, part in values.members(raw).items()
    }


def _read_structs(members: dict[str, _Readers], raw: Raw) -> Any:
    if not all(isinstance(each, dict) for each in raw.value):
        return raw.value
    return [
        {**each, **{name: _read(members[name], part) for name, part in parts.items()}}
        for each, parts in zip(raw.value, values.records(raw, members), strict=True)
    ]


def _read_items(readers: _Readers, raw: Raw) -> Any:
    return [_read(readers, each) for each in values.items(raw)]


def _read_values(readers: _Readers, raw: Raw) -> Any:
    return {name: _read(readers, each) for name, each in values.members(raw).items()}


def _nul_faults(value: Any, pointer: str) -> Iterator[Fault]:
    if isinstance(value, str) and "\0" in value:
        yield Fault(pointer, "the string contains NUL (U+0000)")
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _nul_faults(part, pointer + values.pointer_of(name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _nul_faults(part, f"{pointer}/{index}")


def _options(info: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    if isinstance(info, msgspec.inspect.Metadata):
        yield from _options(info.type)
    elif isinstance(info, msgspec.inspect.UnionType):
        for each in info.types:
            yield from _options(each)
    else:
        yield info


@functools.cache
def _validator_of(kind: type[msgspec.Struct]) -> Validator:
    return compile_schema(msgspec.json.encode(schema_of(kind)).decode())


def _not_an_object(pointer: str) -> BadRequest:
    return BadRequest(f"{pointer or 'the body'} must be a JSON object", pointer=pointer)


def _refusal(value: JSON, kind: type[msgspec.Struct], message: str) -> Problem:
    """Return the problem with a body, by its JSON Schema: msgspec reports the first error only, and
    in the terms of Python."""
    differences = _Differences([], [], [], [])
    _compare(value, msgspec.inspect.type_info(kind), "", differences)
    if differences.misplaced:
        return _not_an_object(differences.misplaced[0])
    if differences.unknown:
        required = "".join(f" {each}." for each in differences.missing)
        return BadRequest(
            f"unknown field: {', '.join(name for name, _ in differences.unknown)}",
            hint=f"Known fields: {', '.join(differences.declared)}.{required}",
            errors=[
                {"pointer": place, "message": "unknown field"} for _, place in differences.unknown
            ],
        )
    wrong = [
        each
        for each in _validator_of(kind).faults(value)
        if not each.message.endswith("is a required property")
    ]
    faults = [*differences.missing, *wrong] or [_located(message)]
    return Invalid("the request is not valid", faults)


class _Differences(NamedTuple):
    """Members that a struct does not declare, by name and place; those that it declares; required
    ones that are missing; and places where a value must be an object and is not."""

    unknown: list[tuple[str, str]]
    declared: list[str]
    missing: list[Fault]
    misplaced: list[str]


def _located(error: str) -> Fault:
    """Convert a message of msgspec, "… - at `$.a[0]`", to a Fault. Used where the JSON Schema
    reports nothing: there 1.0 and 1e2 are integers."""
    message, _, place = error.rstrip("`").partition(" - at `$")
    if message.startswith("Expected `int") and message.endswith("got `float`"):
        message = "an integer must not have a decimal point or an exponent"
    return Fault(re.sub(r"\.(\w+)|\[(\d+)\]", r"/\1\2", place), in_json_terms(message))


def _compare(
    value: Any, info: msgspec.inspect.Type, pointer: str, differences: _Differences
) -> None:
    """Collect how the members of objects differ from those of their structs."""
    options = [each for each in _options(info) if not isinstance(each, msgspec.inspect.NoneType)]
    if value is None:
        # Null is valid, or the JSON Schema reports it.
        return
    for part in options:
        if isinstance(part, msgspec.inspect.ListType) and isinstance(value, list):
            for index, item in enumerate(value):
                _compare(item, part.item_type, f"{pointer}/{index}", differences)
    structs = [each for each in options if isinstance(each, msgspec.inspect.StructType)]
    # Which of several structs was intended is unknown.
    if len(structs) != 1:
        return
    (part,) = structs
    if not isinstance(value, dict):
        if len(options) == 1:
            differences.misplaced.append(pointer)
        return
    fields = {each.encode_name: each for each in part.fields}
    if undeclared := sorted(value.keys() - fields.keys()):
        differences.declared.extend(fields)
    differences.unknown.extend((name, pointer + values.pointer_of(name)) for name in undeclared)
    for name, field in fields.items():
        place = pointer + values.pointer_of(name)
        if name in value:
            _compare(value[name], field.type, place, differences)
        elif field.required:
            differences.missing.append(Fault(place, "is required"))


class RawParser(BaseParser):
    """Parses any JSON media type to domain.values.Raw, which keeps the exact text of every part."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:  # a Raw, where DRF declares a mapping
        body = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(body) > settings.MAX_BODY_BYTES:
            raise body_too_large(settings.MAX_BODY_BYTES)
        return values.read(body)


class Response(HttpResponse):
    """An HTTP response with data for the server, which is not sent.

    `on_loop` continues it on the event loop (project/channel.py). `kept_content` is stored in place
    of the content for a repeated request. `is_kept`: whether a response is stored; not for an
    operation that only reads, because readers may not fill the disk, and a retry can read again.
    """

    on_loop: Callable[..., Awaitable[None]] | None = None
    kept_content: bytes | None = None
    is_kept: bool = True


def answer(data: msgspec.Struct, status: int = 200, *, etag: int | None = None) -> Response:
    """Return a JSON response; `etag` is the version or revision in the body."""
    response = Response(msgspec.json.encode(data), status=status, content_type="application/json")
    response["Cache-Control"] = "no-store"
    if etag is not None:
        response["ETag"] = f'"{etag}"'
    return response


def answer_once(document: msgspec.Struct, status: int = 201, *, kept: msgspec.Struct) -> Response:
    """Return a response that contains a secret. `kept` is stored instead of it for a repeated
    request."""
    response = answer(document, status)
    response.kept_content = msgspec.json.encode(kept)
    return response


def dry_run_answer(response: HttpResponse) -> HttpResponse:
    """Return the response to a dry run: `response`, an object or empty, with the member `dry_run`.
    It has no ETag and no Location, since the resource was not created."""
    content = response.content.strip().removeprefix(b"{")
    members = b'{"dry_run":true' + (b"," + content if content not in (b"", b"}") else b"}")
    marked = HttpResponse(members, content_type="application/json")
    marked["Cache-Control"] = "no-store"
    return marked


def no_content() -> HttpResponse:
    return HttpResponse(status=204)
