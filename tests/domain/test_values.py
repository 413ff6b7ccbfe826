"""Reading and writing JSON."""

from __future__ import annotations

import copy
import gc
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import documents, values
from state_admin.domain.values import (
    Fault,
    Float,
    MalformedJSON,
    Raw,
    RefusedJSON,
    check,
    dump,
    identity,
    items,
    load,
    load_plain,
    members,
    pointer_of,
    read,
    records,
    same,
)
from tests.domain import strategies

SPELLINGS = ["1.10", "1e2", "-0.0", "12345678901234567890123", "-0", "1E+2", "0.1", "1.0", "7"]


def pointers(error: pytest.ExceptionInfo[RefusedJSON]) -> list[str]:
    return [fault.pointer for fault in error.value.faults]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"{",
        b"[1,]",
        b'{"a":1,}',
        b"{'a':1}",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"01",
        b"1.",
        b"+1",
        b"nul",
        b'"a\nb"',
        b'"\\x"',
        b'"\\u12g4"',
        b"1 2",
        b"\xff\xfe",
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf1",
        "\ufeff1",
        b'"open',
        b"\xc2\xa01",
    ],
)
def test_read__not_json__is_malformed(body: bytes | str) -> None:
    with pytest.raises(MalformedJSON) as error:
        read(body)
    assert str(error.value)


def test_read__syntax_error__reports_the_position() -> None:
    with pytest.raises(MalformedJSON, match="line 1 column 8"):
        read(b'{"a": [}')


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ('{"a":1,"a":2}', ["/a"]),
        ('{"x":[{"b~/":1,"b~/":1}]}', ["/x/0/b~0~1"]),
        ('{"a":1,"\\u0061":1}', ["/a"]),
        ("[1, 1e400]", ["/1"]),
        ("[-1e400]", ["/0"]),
        ("1e-400", [""]),
        ('{"v": 0e-99999}', ["/v"]),
        ("[1." + "1" * 2000 + "]", ["/0"]),
        ("[" + "9" * 5000 + "]", ["/0"]),
        ('{"a": "\\\\", "b": 1e400}', ["/b"]),
        ('["\\"", -1E-0400, "\\\\\\"", 2]', ["/1"]),
        ('["e123", {"d": 1e+400}, "1"]', ["/1/d"]),
    ],
)
def test_read__json_that_cannot_be_stored__is_refused_with_its_pointer(
    body: str, where: list[str]
) -> None:
    with pytest.raises(RefusedJSON) as error:
        read(body)
    assert pointers(error) == where


@pytest.mark.parametrize("depth", [201, 990, 3_000, 100_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")])
def test_read__very_deep_document__is_refused(depth: int, brackets: str) -> None:
    body = brackets[0] * depth + "1" + brackets[1] * depth
    with pytest.raises(RefusedJSON, match="too deep") as refused:
        read(body)
    assert pointers(refused) == [""]


def test_read__document_at_the_depth_limit__is_read() -> None:
    assert read("[" * 200 + "]" * 200).value


def test_read__duplicates_before_a_syntax_error__is_malformed() -> None:
    with pytest.raises(MalformedJSON):
        read('{"a":1,"a":2} x')


@pytest.mark.parametrize("number", ["1e400", "-1E-0400", "9" * 200 + "." + "9" * 200])
@pytest.mark.parametrize("before", ["", '\\"', "\\\\", '\\\\\\"', "\\n"])
def test_read__number_out_of_range_in_a_string__is_text(number: str, before: str) -> None:
    text = f'{{"a": "{before} {number}", "b": ["{number}"]}}'
    assert read(text) == Raw(text, json.loads(text))


def test_read__surrounding_whitespace__is_removed() -> None:
    assert read(b' \r\n\t{"a" : 1 } \n') == Raw('{"a" : 1 }', {"a": 1})


@given(strategies.values)
def test_read__any_value__equals_that_of_the_standard_library(value: object) -> None:
    text = json.dumps(value)
    raw = read(text.encode())
    assert raw == Raw(text, json.loads(text))
    check(raw)


@pytest.mark.parametrize("ascii_only", [True, False])
@given(value=st.dictionaries(strategies.text, strategies.values, max_size=5), pad=st.integers(0, 2))
def test_members__of_any_object__have_the_exact_source_text(
    ascii_only: bool, value: dict[str, object], pad: int
) -> None:
    space = " \n"[:pad]
    written = {
        name: json.dumps(member, ensure_ascii=ascii_only, indent=pad or None)
        for name, member in value.items()
    }
    body = f",{space}".join(
        f"{json.dumps(name)}{space}:{space}{text}{space}" for name, text in written.items()
    )
    found = members(read(f"{{{space}{body}{space}}}"))
    assert {name: raw.text for name, raw in found.items()} == written
    assert list(found) == list(value)
    assert all(same(raw.value, value[name]) for name, raw in found.items())


@given(st.lists(strategies.values, max_size=5))
def test_items__of_any_array__have_the_exact_source_text(value: list[object]) -> None:
    written = [json.dumps(item) for item in value]
    found = items(read("[ " + " , ".join(written) + " ]"))
    assert [raw.text for raw in found] == written


@given(
    rows=st.lists(st.dictionaries(st.sampled_from("abc"), strategies.values), max_size=5),
    pad=st.sampled_from(["", " ", "\n\t "]),
)
def test_records__of_any_objects__have_the_exact_source_text(
    rows: list[dict[str, object]], pad: str
) -> None:
    def written(row: dict[str, object]) -> str:
        parts = (f'"{name}"{pad}:{pad}{json.dumps(row[name])}' for name in row)
        return "{" + pad + f"{pad},{pad}".join(parts) + pad + "}"

    text = "[" + pad + f"{pad},{pad}".join(map(written, rows)) + pad + "]"
    found = records(read(text), "ac")
    assert [{name: raw.text for name, raw in record.items()} for record in found] == [
        {name: json.dumps(row[name]) for name in "ac" if name in row} for row in rows
    ]
    assert all(
        same(raw.value, row[name])
        for record, row in zip(found, rows, strict=True)
        for name, raw in record.items()
    )


@pytest.mark.parametrize(
    "text",
    [
        "9e123",
        "a9e999",
        "x.1e999",
        "-9e999",
        "7" * 300,
        "x7" + "7" * 300,
        "12345678-9e12-4e123-9e99-1e999999999a",
    ],
)
def test_read__digits_of_a_string__are_parsed_by_the_fast_parser(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state_admin.domain.documents._faults", None)
    assert read(json.dumps({text: [text]})).value == {text: [text]}


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1.5E+999", "0.1e-999", "0e-99999"])
@pytest.mark.parametrize("form", ["{}", "[{}]", "[1, {}]", '{{"a":{}}}', '{{"9e999":\n{}}}'])
def test_read__number_outside_of_a_double__is_refused_everywhere(number: str, form: str) -> None:
    with pytest.raises(RefusedJSON):
        read(form.format(number))


def test_members__numbers__keep_their_spelling() -> None:
    raw = read('{"a": [1.10, 1e2 ,-0], "b":\t12345678901234567890123 }')
    found = members(raw)
    assert (found["a"].text, found["b"].text) == ("[1.10, 1e2 ,-0]", "12345678901234567890123")
    assert [item.text for item in items(found["a"])] == ["1.10", "1e2", "-0"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('"a\\u0000b"', "/value"),
        ('{"a\\u0000": 1}', "/value"),
        ("9" * 1001, "/value"),
        ("[" * 65 + "]" * 65, "/value" + "/0" * 64),
        ('{"a":' * 65 + "1" + "}" * 65, "/value" + "/a" * 64),
        ("[" + "1," * 10_000 + "1]", "/value"),
        ("[" + "[1,2]," * 5_000 + "1]", "/value"),
        ("{" + ",".join(f'"{n}":1' for n in range(10_001)) + "}", "/value"),
    ],
)
def test_check__forbidden_content__is_refused_with_its_pointer(text: str, where: str) -> None:
    with pytest.raises(RefusedJSON) as error:
        check(read(text), "/value")
    assert where in pointers(error)


@pytest.mark.parametrize("before", range(0, 260, 13))
def test_check__long_number_anywhere__is_refused(before: int) -> None:
    text, number = "x" * before, "7" * 1001
    with pytest.raises(RefusedJSON) as error:
        check(read(f'["{text}",{number}]'))
    assert pointers(error) == ["/1"]
    check(read(f'["{text}",{number[1:]}]'))
    check(read(f'["{text}","{number}"]'))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('"\ud800"', ""),
        ('"\\udc00\\ud800"', ""),
        ('["x", {"k": "\\ud800"}]', "/1/k"),
        ('{"a": {"\\ud83d": 1}}', "/a"),
    ],
)
def test_read__lone_surrogate__is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(RefusedJSON, match="surrogate") as error:
        read(text)
    assert pointers(error) == [where]


def test_check__string_with_lone_surrogate__is_refused() -> None:
    with pytest.raises(RefusedJSON, match="surrogate"):
        check(Raw('"\ud800"', "\ud800"))


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_check__non_finite_number__is_refused(number: float) -> None:
    with pytest.raises(RefusedJSON, match="range of a double"):
        check(Raw(json.dumps([number]), [number]))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 64 + "]" * 64,
        "[" + "1," * 9_999 + "1]",
        "9" * 1000,
        '"\\ud83d\\ude00"',
        '"\\\\u0000"',
        '["\\ud83d\\ude00"' + ",1" * 9_999 + "]",
        '"Infinity NaN"',
        '{"a":' * 64 + '"Infinity"' + "}" * 64,
        "[" * 64 + '"NaN"' + "]" * 64,
        "1.7976931348623157e308",
        "5e-324",
        "0.0",
        "-0.0",
        "0e5",
        '"' + "1" * 2_000 + '"',
    ],
)
def test_check__values_at_the_limit__are_valid(text: str) -> None:
    check(read(text))


def test_check__invalid_key__pointer_and_message_can_be_encoded() -> None:
    with pytest.raises(RefusedJSON) as error:
        check(read('{"\\ud800\\u0000": {"x": "\\u0000"}}'))
    for fault in error.value.faults:
        assert (fault.pointer + fault.message).encode()
        assert "\0" not in fault.pointer + fault.message


@pytest.mark.parametrize("literal", SPELLINGS)
def test_load__any_spelling__is_dumped_unchanged(literal: str) -> None:
    text = f'{{"a":[{literal}],"b":{literal}}}'
    assert dump(load(text)) == text
    assert same(load_plain(text), load(text))


@given(strategies.values)
def test_dump__any_value__round_trips(value: object) -> None:
    assert same(load(dump(value)), value)
    assert same(load_plain(dump(value)), value)
    assert dump(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(strategies.values)
def test_dump__with_a_number_of_special_spelling__is_otherwise_unchanged(value: object) -> None:
    assert dump([value, Float("1.10")]) == f"[{dump(value)},1.10]"


def test_dump__key_order_and_unicode__are_kept() -> None:
    assert dump(load('{"b": "ключ🙂", "a": 1.50}')) == '{"b":"ключ🙂","a":1.50}'


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_dump__non_finite_number__raises(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        dump([number, Float("1.10")])


def test_float__copied_and_pickled__keeps_its_spelling() -> None:
    number = Float("1.10")
    for other in (
        copy.copy(number),
        copy.deepcopy([number])[0],
        pickle.loads(pickle.dumps(number)),
    ):
        assert (other, other.literal) == (1.1, "1.10")


def test_pointer_of__special_characters__are_escaped() -> None:
    assert pointer_of("a/b", "m~n", 0, "", "é") == "/a~1b/m~0n/0//é"
    assert pointer_of() == ""


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (True, 1, False),
        (False, 0, False),
        (1, 1.0, True),
        (10**25, 1e25, False),
        (None, False, False),
        ("1", 1, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ({"a": None}, {}, False),
        ([], {}, False),
        ([True], [1], False),
        (Float("1.10"), 1.1, True),
    ],
)
def test_same__two_values__are_compared_as_json(a: object, b: object, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal


@given(strategies.close_values, strategies.close_values)
def test_identity__of_two_values__is_equal_exactly_if_they_are_same(a: object, b: object) -> None:
    assert (identity(a) == identity(b)) == same(a, b)


@pytest.mark.parametrize(
    "crafted",
    [
        [n * (2**61 - 1) for n in range(1000)],
        [[n * (2**61 - 1)] for n in range(1000)],
        # Python's hash of -1 is -2.
        [[-1 - (n >> bit & 1) for bit in range(10)] for n in range(1000)],
    ],
)
def test_identity__values_crafted_to_collide__have_different_hashes(
    crafted: list[values.JSON],
) -> None:
    assert len({hash(identity(value)) for value in crafted}) == len(crafted)


def test_identity__of_a_list_that_resembles_a_boolean__is_different() -> None:
    assert identity(["bool", 1]) != identity(True)


def test_fault__as_text__begins_with_its_place() -> None:
    assert str(Fault("/a", "bad")) == "/a: bad"
    assert str(values.Fault("", "bad")) == "bad"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("0e100", False),
        ("0E-400", False),
        ("0e-401", True),
        ("0.00e401", True),
        ("1e-400", True),
        ("-1E308", False),
        ("1e309", True),
        ("0." + "1" * 998, False),
        ("0." + "1" * 999, True),
        ("-" + "9" * 1000, False),
        ("-" + "9" * 1001, True),
    ],
)
def test_read__unusual_number__is_refused_beyond_the_range(text: str, refused: bool) -> None:
    if refused:
        with pytest.raises(RefusedJSON):
            check(read(f"[{text}]"))
    else:
        check(read(f"[{text}]"))


def test_read__many_faults__are_truncated_at_twenty() -> None:
    with pytest.raises(RefusedJSON) as error:
        read("[" + ",".join(['{"a": 1, "a": 2}'] * 30) + "]")
    assert len(error.value.faults) == 20
    assert error.value.faults[0].message == "the object has this key twice"
    with pytest.raises(RefusedJSON) as error:
        check(Raw("\\u0000", ["\0"] * 30))
    assert len(error.value.faults) == 20
    with pytest.raises(RefusedJSON) as error:
        read('{"k\\ud800": 1}')
    assert error.value.faults[0].message.startswith("the key 'k\\ud800' contains ")


def test_identity__whole_numbers__are_equal_in_any_spelling() -> None:
    assert identity([1.0, {"a": 2.0}]) == identity([1, {"a": 2}])
    assert identity(2.0**70) == identity(2**70)
    assert identity([True]) != identity([1])


def test_read__byte_order_mark_or_empty__is_reported() -> None:
    for text, message in (
        ("\ufeff1", "a byte order mark is not JSON"),
        (" ", "the document is empty"),
    ):
        with pytest.raises(MalformedJSON) as refused:
            read(text)
        assert str(refused.value) == message


def test_refused__several_faults__are_all_reported() -> None:
    refused = RefusedJSON([Fault("/a", "one"), Fault("", "two")])
    assert str(refused) == "/a: one; two"


def test_read__large_document__is_not_visited_by_the_garbage_collector_meanwhile() -> None:
    """Each of a hundred collections would visit the arrays that have been parsed."""
    collections: list[str] = []
    gc.callbacks.append(note := lambda phase, info: collections.append(phase))
    try:
        documents.read(b"[" + b"[]," * 100_000 + b"1]")
    finally:
        gc.callbacks.remove(note)
    assert len(collections) <= 4
    assert gc.isenabled()
