"""Search queries, and which values match them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import search, values
from state_admin.domain.search import (
    OPERATORS,
    BadQuery,
    Condition,
    build_patterns,
    find,
    lexemes,
    words,
)
from tests.domain import strategies


def parse(text: str, where: Sequence[tuple[str, object]] = ()) -> search.Query:
    return search.parse(text, [Condition(pointer, "=", equals) for pointer, equals in where])


def found(
    value: object, text: str = "", *where: tuple[str, object]
) -> list[tuple[str, str]] | None:
    matches = find(value, parse(text, where))
    return None if matches is None else [tuple(match) for match in matches]


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("Ship the feature", ["ship", "the", "feature"]),
        ("team_context, v2.10", ["team", "context", "v2", "10"]),
        ("alice@example.com", ["alice", "example", "com"]),
        ("Straße ﬁn ÅNGSTRÖM", ["strasse", "fin", "ångström"]),
        ("cafe\u0301", ["café"]),
        ("部署v2完成", ["部", "署", "v2", "完", "成"]),
        ("мир🙂труд", ["мир", "труд"]),
        ("…!", []),
    ],
)
def test_words__of_any_script__are_compared_without_case(text: str, spelled: list[str]) -> None:
    made = list(words(text))
    assert [word.text for word in made] == spelled
    assert all(text[word.start : word.end] for word in made)


_VALUE = {
    "goal": "Ship the payment feature before the freeze",
    "steps": [{"title": "Write tests", "done": True, "n": 1.0}, {"title": "Deploy to eu-west-1"}],
    "a/b": {"~": None},
    "empty": {"list": [], "object": {}},
    "big": 10**30,
}


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        ("payment", ["/goal"]),
        ("PAYMENT ship", ["/goal"]),
        ("tests payment", ["/goal", "/steps/0/title"]),
        ("pay*", ["/goal"]),
        ("pay", ["/goal"]),
        ("p", None),  # one character
        ("p*", ["/goal"]),
        ("*ment", ["/goal"]),
        ("*AYM*", ["/goal"]),
        ("*y", ["/goal"]),
        ("*est-1 *epl", ["/steps/1/title"]),
        ("*ths-1", None),
        ("*loy-t", ["/steps/1/title"]),  # the end of a word and the beginning of the next one
        ("*lo-t", None),
        ("*00000", ["/big"]),
        ("*zz", None),
        ('"pay"', None),
        ('"the payment"', ["/goal"]),
        ('"payment the"', None),
        ('"unfinished quote', None),
        ("eu-west-1", ["/steps/1/title"]),
        ("west-eu", None),
        ("deploy nothing", None),
        ("titl", ["/steps/0/title"]),  # the name of a member
        ("object list", ["/empty/list", "/empty/object"]),
        ("eu-w", ["/steps/1/title"]),
        ("true", ["/steps/0/done"]),
        ("null", ["/a~1b/~0"]),
        ("1.0", ["/steps/0/n"]),
        ("1000000", ["/big"]),
        ("7", None),
    ],
)
def test_find__text__requires_every_term_in_some_name_or_leaf(
    text: str, pointers: list[str] | None
) -> None:
    made = found(_VALUE, text)
    assert (None if made is None else [pointer for pointer, _ in made]) == pointers


@pytest.mark.parametrize(
    ("pointer", "equals", "holds"),
    [
        ("/steps/0/done", True, True),
        ("/steps/0/done", 1, False),
        ("/steps/0/n", 1, True),
        ("/steps/0/n", True, False),
        ("/steps/1/n", None, False),
        ("/a~1b/~0", None, True),
        ("/a~1b", {"~": None}, True),
        ("/empty", {"object": {}, "list": []}, True),
        ("/empty/list", {}, False),
        ("/big", 10**30, True),
        ("/big", 1e30, False),
        ("/steps/00/done", True, False),
        ("", _VALUE, True),
    ],
)
def test_find__condition__compares_json_values(pointer: str, equals: object, holds: bool) -> None:
    assert (found(_VALUE, "", (pointer, equals)) is not None) == holds


_TRIP = {
    "price": 850,
    "rate": 1.5,
    "on": "2026-03-01",
    "tags": ["Hotel", 7],
    "open": True,
    "to": {},
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("/price = 850", True),
        ("/price=850.0", True),
        ("/price != 850", False),
        ("/price != 851", True),
        ("/price > 849.5", True),
        ("/price > 850", False),
        ("/price >= 850", True),
        ("/price < 850", False),
        ("/price<=850", True),
        ("/price > word", False),
        ("/price > true", False),
        ("/open > 0", False),
        ("/open = true", True),
        ("/missing != 1", False),
        ("/on > 2026-02", True),
        ("/on < 2026-02", False),
        ('/on >= "2026-03-01"', True),
        ("/on contains 03-01", True),
        ("/tags/0 contains HOT", True),
        ("/tags contains Hotel", True),
        ("/tags contains hotel", False),
        ("/tags contains 7", True),
        ("/tags contains 8", False),
        ("/price contains 850", False),
        ("/to contains x", False),
        ("/to exists", True),
        ("/too exists", False),
        ("hotel /price > 100 /rate < 2", True),
        ("hotel /price > 100 /rate > 2", False),
        ("museum /price > 100", False),
    ],
)
def test_find__conditions_in_the_text__compare_numbers_and_strings(text: str, holds: bool) -> None:
    query = search.parse(text)
    assert (find(_TRIP, query) is not None) == holds
    if holds:
        assert is_candidate(lexemes(_TRIP, []), query)


def test_find__name__is_shown_with_what_it_names() -> None:
    assert found(_TRIP, "pric") == [("/price", "price: 850")]
    assert found(_TRIP, "tags") == [("/tags", "tags: …")]
    assert found(_TRIP, "850") == [("/price", "850")]


@pytest.mark.parametrize(
    ("text", "pointer", "operator", "value"),
    [
        ('/a = "x y"', "/a", "=", "x y"),
        ("/a/0/b~1c >= -1.5e3", "/a/0/b~1c", ">=", -1500.0),
        ("/a = null", "/a", "=", None),
        ("/a = [1", "/a", "=", "[1"),
        ("/a exists", "/a", "exists", None),
        ("/a contains b", "/a", "contains", "b"),
    ],
)
def test_parse__condition_in_the_text__is_read(
    text: str, pointer: str, operator: str, value: object
) -> None:
    query = search.parse(text)
    assert query.terms == ()
    assert query.where == (Condition(pointer, operator, value),)


@pytest.mark.parametrize("text", ["home/user = 5", "/home/user", "a /b", "/a existsnot"])
def test_parse__other_slashes__are_words(text: str) -> None:
    assert search.parse(text).where == ()


def test_parse__condition_within_a_phrase__is_part_of_the_phrase() -> None:
    assert found(["go to /home = x now"], '"to /home = x"') is not None
    assert search.parse('"a /b = 1" /c = 2').where == (Condition("/c", "=", 2),)


@pytest.mark.parametrize("operator", ["==", "=>", "<>", "!=="])
def test_parse__unknown_operator__is_refused(operator: str) -> None:
    with pytest.raises(BadQuery, match="is not an operator: use one of =, !=, >"):
        search.parse(f"/a {operator} 3")


def test_parse__broken_string_in_a_condition__is_refused() -> None:
    with pytest.raises(BadQuery, match="is not a JSON string"):
        search.parse(r'/a = "\x"')


def test_find__all_terms_found__reads_no_further_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text behind the name may have a megabyte."""
    query, texts = parse("te*"), []

    def spell(text: str) -> Iterator[search.Word]:
        texts.append(text)
        return words(text)

    monkeypatch.setattr(search, "words", spell)
    assert find({"text": "long", "more": ["long"]}, query) == [("/text", "text: long")]
    assert texts == ["", "text"]  # the key, then the first name


def test_find__long_text__returns_a_plain_text_excerpt() -> None:
    text = "x " * 100 + "<b>needle</b>\n\tin hay " + "y " * 100
    [(pointer, snippet)] = found([text], "needle") or []
    assert pointer == "/0"
    assert "<b>needle</b> in hay" in snippet
    assert (snippet[0], snippet[-1]) == ("…", "…")
    assert len(snippet) < 150
    assert found({"n": [1, "z" * 500]}, "", ("/n", [1, "z" * 500])) == [
        ("/n", ('[1,"' + "z" * 500)[:120] + "…")
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", []),
        ("  ", []),
        ("!?", []),
        ("x" * 1001, []),
        ("w " * 33, []),
        ("", [("a", 1)]),
        ("", [("/a~2", 1)]),
        ("", [("/a", 1)] * 17),
    ],
)
def test_parse__empty_query__is_refused(text: str, where: list[tuple[str, object]]) -> None:
    with pytest.raises(BadQuery):
        parse(text, where)


def test_lexemes__too_many_for_an_index__are_a_candidate_of_every_search() -> None:
    value = [f"word{number:06}" for number in range(60_000)]
    assert lexemes(value, ["@w1"]) == ["@w1", "~"]
    assert "'~'" in search.tsquery(parse("any", []), "@w1")


_LEXEME = re.compile(r"'((?:[^']|'')*)'(:\*)?")


def parse_tsquery(query: search.Query) -> list[tuple[str, bool]]:
    """The lexemes of a query without its home and the marker of every search."""
    text = search.tsquery(query, "@w1")
    made = [(part.replace("''", "'"), bool(more)) for part, more in _LEXEME.findall(text)]
    assert made[:2] == [("@w1", False), ("~", False)][: len(made)]
    return made[2:]


def is_candidate(held: list[str], query: search.Query) -> bool:
    return all(
        any(each.startswith(lexeme) if more else each == lexeme for each in held)
        for lexeme, more in parse_tsquery(query)
    )


def _places(value: object, pointer: str = "") -> list[tuple[str, object]]:
    made = [(pointer, value)]
    if isinstance(value, dict):
        for name, member in value.items():
            made += _places(member, pointer + values.pointer_of(name))
    if isinstance(value, list):
        for index, item in enumerate(value):
            made += _places(item, f"{pointer}/{index}")
    return made


@given(strategies.close_values, st.data())
def test_index__any_value_that_matches__is_never_missed(value: object, data: st.DataObject) -> None:
    held = lexemes(value, ["@w1"])
    pointer, equals = data.draw(st.sampled_from(_places(value)))
    query = parse("", [(pointer, equals)])
    assert find(value, query) is not None
    assert is_candidate(held, query)


@given(strategies.close_values, st.data())
def test_index__any_condition_that_holds__is_never_missed(
    value: object, data: st.DataObject
) -> None:
    pointer, _ = data.draw(st.sampled_from(_places(value)))
    operand = data.draw(strategies.close_values)
    operator = data.draw(st.sampled_from(OPERATORS))
    query = search.parse("", [Condition(pointer, operator, operand)])
    if find(value, query) is not None:
        assert is_candidate(lexemes(value, ["@w1"]), query)


@given(strategies.close_values, st.data())
def test_index__any_name_or_leaf_that_matches__is_never_missed(
    value: object, data: st.DataObject
) -> None:
    texts = [
        text
        for pointer, node in _places(value)
        for text in (pointer.rpartition("/")[2], "" if isinstance(node, str) else values.dump(node))
    ]
    spelled = [word.text for text in texts for word in words(text)]
    if not spelled:
        return
    query = parse(f'"{data.draw(st.sampled_from(spelled))}"')
    if find(value, query) is None:  # an index of an item, or a word of a longer text
        return
    assert is_candidate(lexemes(value, ["@w1"]), query)
    spelling = values.dump(value)
    if spelling.isascii() and r"\u" not in spelling:
        assert all(re.search(each, spelling.lower()) for each in build_patterns(query))


_ASCII = st.text(st.sampled_from('abAB01 _-/\\"\b\f\n\r\t'))


@given(st.text() | _ASCII, st.data())
def test_index__any_text_that_matches__is_never_missed(text: str, data: st.DataObject) -> None:
    spelled = list(words(text))
    if not spelled:
        return
    first = data.draw(st.integers(0, len(spelled) - 1))
    last = data.draw(st.integers(first, len(spelled) - 1))
    part = text[spelled[first].start : spelled[last].end].replace('"', " ")
    asked = [word.text for word in words(part)]
    prefix, inside = data.draw(st.sampled_from([(False, False), (True, False), (True, True)]))
    if inside:
        asked[0] = asked[0][data.draw(st.integers(0, len(asked[0]) - 1)) :]
    if prefix:
        asked[-1] = asked[-1][: data.draw(st.integers(1, len(asked[-1])))]
    query = search.Query((search.Term(tuple(asked), prefix, inside),))
    assert find({"a": [text]}, query) is not None
    assert is_candidate(lexemes({"a": [text]}, []), query)
    spelling = json.dumps({"a": [text]}, ensure_ascii=False)
    if spelling.isascii() and r"\u" not in spelling:
        assert all(re.search(each, spelling.lower()) for each in build_patterns(query))


def test_spellings__inside_of_a_word__match() -> None:
    pattern, *others = build_patterns(parse("*ab"))
    assert not others
    assert re.search(pattern, '{"x": "cabs"}')


@pytest.mark.parametrize("text", ["a", "a*", '"b a"'])
def test_spellings__part_of_a_word__do_not_match(text: str) -> None:
    assert not all(re.search(each, '{"x": "cab bad"}') for each in build_patterns(parse(text, [])))


def test_tsquery__terms_and_conditions__are_all_required() -> None:
    query = parse('"a b" c d* "e f"', [("/n", 1), ("/m", {"x": [None, 1.5]})])
    made = [lexeme for lexeme, _ in parse_tsquery(query)]
    stored = lexemes({"n": 1, "m": {"x": [None, 1.5]}}, [])
    facts = [lexeme for lexeme in stored if lexeme.startswith("=")]
    assert made[:6] == ["a", "b", "c", "d", "e", "f"]
    assert sorted(made[6:]) == facts
    assert [lexeme for lexeme, prefix in parse_tsquery(query) if prefix] == ["d"]


def test_tsquery__word_inside_others__does_not_narrow_the_candidates() -> None:
    assert search.tsquery(parse("*ship"), "@w1") == "'@w1'"
    assert search.tsquery(parse("*ship-the-rest"), "@w1") == "'@w1' & ('~' | ('the' & 'rest':*))"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("ship", "*ship"),
        ("*ship *it", "*ship *it"),
        ('ship it* "a phrase" /price > 100', '*ship *it* "a phrase" /price > 100'),
        ('"a phrase"', '"a phrase"'),
        ("- ship", "- *ship"),
        ("x" * 1000, "x" * 1000),
    ],
)
def test_star_words__any_text__words_begin_with_a_star(text: str, inside: str) -> None:
    assert search.star_words(text) == inside
    assert search.star_words(inside) == inside


def test_tsquery__quotes_and_backslashes__are_escaped() -> None:
    assert search.tsquery(parse("x", []), "it's a \\") == "'it''s a \\\\' & ('~' | ('x'))"


def test_spellings__words_of_all_terms__once_each() -> None:
    before, behind = r"(^|[^a-z0-9]|\\[bfnrt])", "([^a-z0-9]|$)"
    expected = [before + word + behind for word in "abcd"] + [before + "e"]
    assert build_patterns(parse('"a b" "c d" e* a', [])) == expected


def test_find__match_at_the_end__excerpt_ends_with_the_text() -> None:
    assert found(["needle at the start"], "needle") == [("/0", "needle at the start")]
    left = "x" * 10 + " " + "y" * 60 + "needle"
    assert found([left], '"' + "y" * 60 + 'needle"') == [("/0", left)]
    assert found(["z" * 120], "", ("/0", "z" * 120)) == [("/0", "z" * 120)]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("x" * 1001, [], "the text has at most 1,000 characters"),
        ("w " * 33, [], "at most 32 words and phrases"),
        ("", [("/a", 1)] * 17, "at most 16 conditions"),
        ("!?", [], "the text has no letter or digit to search for"),
        ("", [], "a text, a condition or both are required"),
        ("", [("a", 1)], "'path' must be a JSON Pointer, such as /a/0 or /a~1b"),
    ],
)
def test_parse__refused__states_the_reason(
    text: str, where: list[tuple[str, object]], message: str
) -> None:
    with pytest.raises(BadQuery) as refused:
        parse(text, where)
    assert str(refused.value) == message


def test_parse__at_the_limits__is_valid() -> None:
    assert len(parse("w " * 32, []).terms) == 32
    assert len(parse("", [("/a", 1)] * 16).where) == 16
    assert parse("x" * 1000, []).terms[0].words == ("x" * 1000,)


def test_lexemes__facts__are_stable() -> None:
    """Indexes store them, so a changed name of a fact would hide stored entries."""
    assert lexemes({"a": "x"}, ["@w1"]) == ["=DJUwwY3tFdK3", "@w1", "a", "x"]
    assert lexemes([True], []) == ["=vv57ppOjcnm1", "true"]
    facts = ["=ITjL0a55sE7s", "=JI49mkgIzvFw", "=jRjJHW8LdjGk"]
    assert lexemes([1.5, None, {}], []) == ["1", "5", *facts, "null"]


@pytest.mark.parametrize(
    ("key", "text", "holds"),
    [
        ("fares/HAM-LIS", "lis", True),
        ("fares/HAM-LIS", "ham-lis", True),
        ("fares/HAM-LIS", "am", False),
        ("fares/HAM-LIS", "lis otter", True),
        ("fares/HAM-LIS", "lis albatross", False),
        ("parent_thread::t17", "t1", True),
        ("parent_thread::t17", "parent", False),
        ("parent_thread::t17", '"parent thread"', False),
        ("parent_thread::t17", "parent_thread::t17", True),
        ("team::red", "team", True),
        ("global", "global", True),
    ],
)
def test_find__words_of_the_key__count_but_a_scope_alone_does_not(
    key: str, text: str, holds: bool
) -> None:
    value = {"airline": "Otter Sky"}
    query = search.parse(text)
    assert (find(value, query, key) is not None) == holds
    if holds:
        assert is_candidate(lexemes(value, ["@w1"], key), query)
        spelling = f"{key}\n{values.dump(value)}".lower()
        assert all(re.search(each, spelling) for each in build_patterns(query))


def test_find__word_of_the_key__has_no_place_in_the_value() -> None:
    assert find({"to": "Lisbon"}, search.parse("k7"), "k7") == []
    assert find({"to": "Lisbon"}, search.parse("k7 lisbon"), "k7") == [("/to", "Lisbon")]
