"""Markdown in messages: only harmless HTML, nothing hidden, and bounded work."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from state_admin.templatetags.markdown import markdown
from tests.builders import Person, append, make_thread
from tests.web.stories import HOSTILE
from tests.web.test_threads import page


def texts(shown: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", shown))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**b** *i* ~~s~~ `x<y`", "<strong>b</strong> <em>i</em> <s>s</s> <code>x&lt;y</code>"),
        ("- a\n- b", "<li>a</li>"),
        ("one\ntwo", "one<br />"),
        ("# Title", '<p class="heading">Title</p>'),
        ("```py\n<b>\n```", '<code class="language-py">&lt;b&gt;'),
        ("|a|\n|--:|\n|b|", "<td>b</td>"),
        ("[x](https://a.b/?c=1&d=2)", 'href="https://a.b/?c=1&amp;d=2" rel="nofollow noopener noreferrer"'),
        ("<mailto:a@b.c>", 'href="mailto:a@b.c"'),
    ],
)  # fmt: skip
def test_markdown__syntax__becomes_html(text: str, shown: str) -> None:
    assert shown in markdown(text)


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE,
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](//evil.example)",
        "[x](/members)",
        "<javascript:alert(1)>",
        '[x](https://a.b" onmouseover="alert(1))',
        '[x](https://a.b "t\\" onmouseover=\\"alert(1)")',
        "![x](https://a.b/pixel.png)",
        "<img src=x onerror=alert(1)>",
        "<b onclick=alert(1)>x</b>",
        '```"><script>alert(1)</script>\nx\n```',
        "|a|\n|:-:|\n|<script>alert(1)</script>|",
        "<!-- hidden -->",
    ],
)
def test_markdown__hostile_text__has_no_foreign_tag_or_attribute(text: str) -> None:
    shown = markdown(text)
    tags = re.findall(r"<(/?[a-z0-9]+)((?:[^>\"]|\"[^\"]*\")*)>", shown)
    permitted = {"div", "p", "a", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert {name.lstrip("/") for name, _ in tags} <= permitted
    attributes = " ".join(re.sub(r'"[^"]*"', '""', rest) for _, rest in tags)
    names = set(re.findall(r"([a-z-]+)=", attributes))
    assert names <= {"class", "href", "rel", "title", "tabindex", "role", "aria-label"}
    for link in re.findall(r'href="([^"]*)"', shown):
        assert link.startswith(("https://", "mailto:"))
    assert shown.count("<") == len(tags)


@pytest.mark.parametrize(
    "text",
    [
        "[r]: https://a.b 'secret'",
        "<!-- secret -->",
        "<div hidden>secret</div>",
        "x\n\n[secret]: <>",
        "~~~ secret secret words\nx\n~~~",
        "- ```secret `\n  x",
        "```a secret\nx\n```",
        "|a|\n|-|\n|b|secret|",
        "> - |a|b|\n>   |-|-|\n>   b|c|secret",
        *[">" * depth + " secret" for depth in (1, 18, 19, 20, 21, 40)],
        *["".join(" " * 2 * n + "* secret\n" for n in range(depth)) for depth in (9, 10, 11, 30)],
    ],
)
def test_markdown__any_text__hides_nothing(text: str) -> None:
    assert texts(markdown(text)).count("secret") == text.count("secret")


@pytest.mark.parametrize(
    "text", ["|a|b|\n|-|-|\n|c|d|\n|e|", "> a|b\n> -|-\n> c\\|c|d", "|a|b|\n|-|-|\n||x|\n|\n"]
)
def test_markdown__rows_without_additional_cells__are_a_table(text: str) -> None:
    assert "<table>" in markdown(text)


@pytest.mark.parametrize("unit", ["[", "*a ", "|a", ">", "- ", "`a", "![a", "[a](", "<", "\\"])
@pytest.mark.parametrize("size", [1_500, 10_000, 60_000])
def test_markdown__pathological_text__is_not_much_larger(unit: str, size: int) -> None:
    text = unit * (size // len(unit)) + "\n" + "|-" * (size // 4) + "\n" + "|b\n" * (size // 6)
    assert len(markdown(text)) <= 8 * len(text) + 600


def test_conversation__markdown__is_for_people_and_models_not_for_tools(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    append(
        alice.actor,
        "t1",
        {"role": "system", "content": "Be **exact**."},
        {"role": "user", "content": "I am **here**."},
        {"role": "assistant", "content": "<script>alert(1)</script>", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "plain **stars**"},
    )
    shown = page(admin, "/threads/t1")
    assert "<strong>here</strong>" in shown
    assert "plain **stars**" in shown
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "System message" in shown
    assert "<strong>here</strong>" in page(admin, "/thread/message/2/t1")


def test_thread__header__has_breadcrumbs_and_its_id_to_copy(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1", title="Refund", resource_id="user-1")
    make_thread(alice.actor, "t2", parent_thread_id="t1")
    shown = page(admin, "/threads/t1")
    assert '<ol class="crumbs" aria-label="Breadcrumb"><li><a href="/threads">Threads</a>' in shown
    assert 'data-copy-text="t1"' in shown
    assert '<li><a href="/threads/t1">Refund</a></li></ol>' in page(admin, "/threads/t2")
