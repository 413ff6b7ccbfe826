"""JSON on pages: lossless indentation, escaped trees, lines of pointers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import given

from state_admin.domain import diffs, values
from state_admin.templatetags.json_html import diff_table, json_tree, pretty, scalar
from state_admin.web.json_lines import line_of
from tests.domain import strategies


@given(strategies.values)
def test_pretty__any_value__round_trips(value: values.JSON) -> None:
    assert values.same(values.load(pretty(value)), value)


@pytest.mark.parametrize("text", ["1.10", "1e2", "-0", "10000000000000000000000001", "[1.0,2]"])
def test_pretty__number__keeps_its_spelling(text: str) -> None:
    assert pretty(values.load(text)).replace(" ", "") == text


@given(strategies.values)
def test_tree__any_value__is_escaped(value: values.JSON) -> None:
    marked = {"<script>": value, "s": ["<b>&\"'"]}
    html = json_tree(marked, "/pieces")
    assert "<script>" not in html
    assert "<b>" not in html


def test_scalar__long_string__is_truncated_with_its_length() -> None:
    html = scalar("x" * 5000)
    assert "5,000 characters" in html
    assert len(html) < 1000


def _pointers(value: values.JSON, pointer: str = "") -> list[str]:
    found = [pointer]
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else [])
    )
    for name, child in children:
        found += _pointers(child, pointer + values.pointer_of(name))
    return found


@given(strategies.values)
def test_line_of__any_place__contains_it(value: values.JSON) -> None:
    text = pretty({"top": value})
    for pointer in _pointers({"top": value}):
        line = line_of(text, pointer)
        assert 1 <= line <= text.count("\n") + 1


@pytest.mark.parametrize(
    ("pointer", "line"),
    [("", 1), ("/a", 2), ("/b", 3), ("/b/1", 5), ("/b/1/x~1y", 6), ("/nope", 1), ("/b/9", 3)],
)
def test_line_of__known_text__is_exact(pointer: str, line: int) -> None:
    text = '{\n  "a": "}{",\n  "b": [\n    1,\n    {\n      "x/y": 2\n    }\n  ]\n}'
    json.loads(text)
    assert line_of(text, pointer) == line


def test_diff_table__all_kinds__are_distinguished() -> None:
    rows = diffs.rows({"a": 1, "b": None}, {"a": 2, "c": "x"})
    lines = {line["pointer"]: line for line in diff_table(rows)["lines"]}
    assert (lines["/a"]["before"], lines["/a"]["after"]) == ("1", "2")
    assert (lines["/b"]["before"], lines["/b"]["after"]) == ("null", None)
    assert (lines["/c"]["before"], lines["/c"]["after"]) == (None, '"x"')


def test_diff_table__changed_string__marks_the_words_and_escapes_them() -> None:
    before = "Book a <b>quiet</b> hotel near the river.\nPay later." + " The rest stays." * 20
    after = before.replace("quiet", "loud") + " <script>"
    page = render_to_string("components/_diff.html", diff_table(diffs.rows(before, after)))
    assert "Book a &lt;b&gt;<del>quiet</del><ins>loud</ins>&lt;/b&gt; hotel" in page
    assert "river.\\nPay later" in page
    assert "…" in page
    assert '<ins> &lt;script&gt;</ins>"' in page
    assert len(page) < 1_000


@pytest.mark.parametrize(
    ("before", "after"),
    [("yes", "no"), ("a b c", 1), ("x " * 3000, "y " * 3000), ("x" * 5000, "x" * 5000 + "y")],
)
def test_diff_table__other_changes__show_both_values(before: Any, after: Any) -> None:
    (line,) = diff_table(diffs.rows(before, after))["lines"]
    assert line["words"] is None
    page = render_to_string("components/_diff.html", {"lines": [line]})
    assert (page.count("<del>"), page.count("<ins>")) == (1, 1)
