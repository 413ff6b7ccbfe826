"""The messages of msgspec that the exported files of workspaces can cause, and all other kinds."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from state_admin.domain.json_terms import in_json_terms


class _Struct(msgspec.Struct, forbid_unknown_fields=True):
    name: str


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1", str, "Expected string, got integer"),
        ("1", str | None, "Expected string or null, got integer"),
        ("1.5", int | bool, "Expected boolean or integer, got number"),
        ('"x"', float, "Expected number, got string"),
        ("{}", list[int], "Expected array, got object"),
        ("true", dict[str, int], "Expected object, got boolean"),
        ("[null]", list[int], "Expected integer, got null - at `$[0]`"),
        ("-1", Annotated[int, Meta(ge=0)], "Expected integer >= 0"),
        ("2", Annotated[float, Meta(lt=1.5)], "Expected number < 1.5"),
        ("3", Annotated[int, Meta(multiple_of=2)], "Expected integer that's a multiple of 2"),
        ('""', Annotated[str, Meta(min_length=1)], "Expected string of length >= 1"),
        ("[1]", Annotated[list[int], Meta(max_length=0)], "Expected array of length <= 0"),
        ("[1]", tuple[int, int], "Expected array of length 2"),
        ("{}", Annotated[dict[str, int], Meta(min_length=1)], "Expected object of length >= 1"),
        ('"a"', Annotated[str, Meta(pattern="^`str`$")], "Expected string matching regex '^`str`$'"),
        ('"c"', Literal["a", "b"], "Invalid enum value 'c'"),
        ("{}", _Struct, "Object missing required field `name`"),
        ('{"int": 1}', _Struct, "Object contains unknown field `int`"),
    ],
)  # fmt: skip
def test_in_json_terms__every_kind_of_message__has_no_type_of_python(
    text: str, kind: Any, expected: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(text, type=kind)
    assert re.fullmatch(re.escape(expected) + "( - at `.*`)?", in_json_terms(str(error.value)))
