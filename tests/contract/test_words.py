"""What users, callers and operators read is plain technical English, without the words of a private dialect."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [
    *(f"state_admin/{name}" for name in ("services", "domain", "api", "rest", "protocols", "mcp")),
    "state_admin/management",
    "state_admin/summarizers",
    "project",
]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
FOLDERS = ("tutorial", "concepts", "guides", "reference", "explanation")
PAGES += [f"docs/{each}/{path.name}" for each in FOLDERS for path in ROOT.glob(f"docs/{each}/*.md")]
# Calls whose string arguments a caller or operator reads, beside those in `raise` statements.
SHOWN = {"Fault", "Skip", "Problem", "Tool", "NotFound", "Invalid", "Conflict", "Forbidden"}
SHOWN |= {
    "BadRequest",
    "Gone",
    "Unavailable",
    "CommandError",
    "BadSetting",
    "add_argument",
    "write",
}
NAMED = {"hint", "help", "meaning", "remedy", "causes", "members", "title", "description"}

DIALECT = [
    r"door ?bells?|the bell|its bell|rings? the",
    r"(?:is|are|was|were|be) told|tells? (?:how|what|when|which|that)|told (?:to|by|when)",
    r"in words",
    r"goes? on\b|went on\b|going on\b",
    r"(?:decision|claim|summary|secret|value) stands?|does not stand|what stood|nothing stands",
    r"not acceptable",
    r"(?:is|are) no (?:http|id|event|list|object|text|value|such)\b",
    r"there (?:is|are) (?:not|nothing)\b",
    r"gave out|given out",
    r"this will not do|will not do",
    r"keeps changing",
    r"compacted away|let (?:it|them) go|let go",
    r"leads nowhere",
    r"made anew|encrypted anew|asked anew",
    r"whoever|somebody else|nobody (?:asked|wanted)",
    r"(?:is|are) (?:one )?of (?:ours|our own)|one of our",
    r"it answered|is answered by|answers? (?:with )?\d{3}",
    r"must be a text|as a text",
    r"belongs? into|sounds like",
    r"wider than yours|(?:is|are) not yours|of yours",
    r"by now",
]
DIALECT_WORDS = re.compile("|".join(rf"(?:\b(?:{words}))" for words in DIALECT), re.IGNORECASE)


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "id", None) or getattr(call.func, "attr", "")


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The literals below `node`, with `…` for each expression of an f-string."""
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
        yield node.lineno, "".join(str(part) for part in parts)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from strings(child)


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The literals of exceptions, hints, faults, tools and of the help of commands."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Raise(exc=ast.Call() as call):
                yield from strings(call)
            case ast.Yield(value=ast.Tuple() as pair):
                yield from strings(pair)
            case ast.Call() if name_of(node) in SHOWN:
                yield from strings(node)
            case ast.keyword(arg=str(arg)) if arg in NAMED:
                yield from strings(node.value)
            case ast.Assign(targets=[ast.Name(id=name)]) if name in NAMED:
                yield from strings(node.value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if name in NAMED:
                    yield from strings(value)


def prose(text: str) -> str:
    """The text of a page without code, with the line breaks of code blocks."""
    text = re.sub(
        r"^```.*?^```", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S
    )
    return re.sub(r"`[^`\n]*`", "``", text)


def descriptions(document: object) -> Iterator[str]:
    if isinstance(document, dict):
        for name, member in document.items():
            if name in ("description", "summary", "title") and isinstance(member, str):
                yield member
            yield from descriptions(member)
    elif isinstance(document, list):
        for item in document:
            yield from descriptions(item)


@pytest.mark.parametrize("package", CODE)
def test_messages__have_no_dialect(package: str) -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in messages(path)
        if DIALECT_WORDS.search(text)
    ] == []


@pytest.mark.parametrize("path", PAGES)
def test_page__has_no_dialect(path: str) -> None:
    text = prose((ROOT / path).read_text())
    assert [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]}"
        for found in DIALECT_WORDS.finditer(text)
    ] == []


def test_contract__has_no_dialect() -> None:
    document = json.loads((ROOT / "docs/openapi.json").read_text())
    assert [text for text in descriptions(document) if DIALECT_WORDS.search(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "the claim does not stand",
        "is no http or https URL",
        "there are not so many messages",
        "what was compacted away",
        "explained in words",
    ],
)
def test_dialect__is_found(text: str) -> None:
    assert DIALECT_WORDS.search(text)
