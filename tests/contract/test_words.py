"""Texts for users, clients and operators are plain technical English, without the words of a
private dialect."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [
    *(f"state_admin/{name}" for name in ("services", "domain", "api", "rest", "protocols", "mcp")),
    "state_admin/management",
    "state_admin/summarizers",
    "project",
    "clients/python/src",
]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md")),
]
FOLDERS = ("adr", "tutorial", "concepts", "guides", "reference", "explanation", "security")
PAGES += [f"docs/{each}/{path.name}" for each in FOLDERS for path in ROOT.glob(f"docs/{each}/*.md")]
# Calls whose string arguments are shown to clients or operators, beside those in `raise`
# statements.
SHOWN = {"Fault", "Skip", "Problem", "Tool", "NotFound", "Invalid", "Conflict", "Forbidden"}
SHOWN |= {
    "BadRequest",
    "Gone",
    "Unavailable",
    "CommandError",
    "BadSetting",
    "add_argument",
    "write",
    "verb",
    "_complain",
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

# For comments and docstrings. Those about conditions may say that "there is nothing to …".
COMMENT_DIALECT = [
    *(words for words in DIALECT if not words.startswith(("there", "(?:is|are) no"))),
    r"(?<!there )(?:is|are|was|were) no (?!longer\b|more\b|one\b|\w+er than\b)",
    r"for good\b|for ever\b|anew\b|of then\b|as of now\b",
    r"judge[sd]?\b|sought\b|ours\b",
    r"holds what|what is no\b|none of (?:its|our|their) business",
    r"stands? (?:beside|here|in for)|stood (?:beside|here|in)",
    r"nobody knows",
]
COMMENT_DIALECT_WORDS = re.compile(
    "|".join(rf"(?:\b(?:{words}))" for words in COMMENT_DIALECT), re.IGNORECASE
)
COMMENTED = ["state_admin", "project", "static/js", "tests", "benchmarks", "compat", "deploy"]
COMMENTED += ["clients/python", "clients/typescript"]


# Only for texts of the admin: its templates, scripts and messages.
UI_DIALECT = [
    r"made (?:by|token|webhook)|make (?:token|webhook|new codes)",
    r"at work|in line again|goes out again|asked again|ask again",
    r"what (?:it|the run|a run) knew|says it read|holds? no\b",
    r"stands? (?:for|here|now|under)|stood (?:here|under)",
    r"nobody|somebody|whoever|anybody",
    r"left alone|leave[sd]? alone|take (?:it|them) back|takes back",
    r"look(?:ed)? (?:now|at\b)|to look at",
    r"present (?:password|schema|secret|value|version|one)",
    r"(?:were|was|is) (?:said|asked|told) (?:here|for)|said (?:by|here)",
    r"for good|for programs|from a program|by hand|by itself",
    r"(?:does|do) not fit\b|fits? (?:these|the) (?:filters?|schema)",
    r"refuses this value|where this is|raw log|biggest",
    r"an undo (?:names|says)|so nothing was (?:done|undone)",
]
UI_DIALECT_WORDS = re.compile(
    "|".join(rf"(?:\b(?:{words})\b)" for words in [*DIALECT, *UI_DIALECT]), re.IGNORECASE
)


# Of functions, classes and modules: a name must be understandable without its docstring.
NAME_DIALECT = {
    "made",
    "wanted",
    "told",
    "asked",
    "stands",
    "gather",
    "doorbell",
    "house",
    "places",
}
NAME_DIALECT |= {"replays", "slices", "park", "knew", "anew"}


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


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Every literal of a module but its docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node)
        if isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if node not in docstrings and isinstance(node, (ast.Constant, ast.JoinedStr)):
            yield from strings(node)


def template_texts(text: str) -> Iterator[str]:
    """The texts of a template: content, literals in tags, and attributes that are shown or read
    aloud."""
    text = re.sub(r"\{#.*?#\}", "", text)
    yield from re.findall(r'(?:aria-label|title|placeholder|alt|data-label)="([^"]*)"', text)
    for tag in re.findall(r"\{[%{].*?[%}]\}", text):
        yield from re.findall(r'"([^"]*)"', tag)
    yield from re.split(r"<[^>]*>|\{[%{].*?[%}]\}|\n", text)


def script_texts(text: str) -> Iterator[str]:
    """The literals with a space in a script, without its comments."""
    text = re.sub(r"^\s*(?://|\*|/\*).*$", "", text, flags=re.MULTILINE)
    yield from (found for found in re.findall(r"""["'`]([^"'`\n]*)["'`]""", text) if " " in found)


def descriptions(document: object) -> Iterator[str]:
    if isinstance(document, dict):
        for name, member in document.items():
            if name in ("description", "summary", "title") and isinstance(member, str):
                yield member
            yield from descriptions(member)
    elif isinstance(document, list):
        for item in document:
            yield from descriptions(item)


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a module or script, without code and line breaks."""
    text = path.read_text()
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        for line, docstring in docstrings(path):
            yield line, re.sub(r"\s+", " ", docstring)
    else:
        for found in re.finditer(r"/\*.*?\*/|(?:^|\s)//[^\n]*", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, found.start()) + 1
            yield line, re.sub(r"\s+(?:\* )?", " ", found[0])


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.body[0].lineno if node.body else 1, ast.get_docstring(node) or ""


def sources(folder: str) -> Iterator[Path]:
    """The modules and scripts of a folder that are written by people."""
    skipped = {"node_modules", "migrations", "dist", "test_words.py", "openapi.ts"}
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in {".py", ".js", ".mjs", ".ts"} and not skipped & {*path.parts}:
            yield path


@pytest.mark.parametrize("package", CODE)
def test_messages__have_no_dialect(package: str) -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in messages(path)
        if DIALECT_WORDS.search(text)
    ] == []


@pytest.mark.parametrize("folder", COMMENTED)
def test_comments__have_no_dialect(folder: str) -> None:
    paths = [*sources(folder)]
    assert paths
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        for line, text in comments(path)
        if COMMENT_DIALECT_WORDS.search(re.sub(r"`[^`]*`", "``", text))
    ] == []


def test_typescript_messages__have_no_dialect() -> None:
    assert [
        f"{path.name}: {text}"
        for path in sources("clients/typescript/src")
        for text in script_texts(path.read_text())
        if DIALECT_WORDS.search(text)
    ] == []


@pytest.mark.parametrize("path", PAGES)
def test_page__has_no_dialect(path: str) -> None:
    text = prose((ROOT / path).read_text())
    assert [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]}"
        for found in DIALECT_WORDS.finditer(text)
    ] == []


@pytest.mark.parametrize("package", ["web", "templatetags"])
def test_web_messages__have_no_dialect(package: str) -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / "state_admin" / package).rglob("*.py"))
        for line, text in literals(path)
        if UI_DIALECT_WORDS.search(text)
    ] == []


@pytest.mark.parametrize(
    ("files", "texts"),
    [("templates/**/*.html", template_texts), ("static/js/*.js", script_texts)],
    ids=["templates", "scripts"],
)
def test_pages__have_no_dialect(files: str, texts: Callable[[str], Iterable[str]]) -> None:
    assert [
        f"{path.relative_to(ROOT)}: {text.strip()}"
        for path in sorted(ROOT.glob(files))
        for text in texts(path.read_text())
        if UI_DIALECT_WORDS.search(text)
    ] == []


def names_in(path: Path) -> Iterator[str]:
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name


def test_public_names__have_no_dialect() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for package in ("state_admin", "project")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
        for name in names_in(path)
        if not name.startswith("_") and name != "connection_made"  # asyncio.Protocol names it so
        if NAME_DIALECT & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}
    ] == []


# Participles that say nothing about what a variable has.
VARIABLE_DIALECT = {"made", "wanted", "known", "shown", "told", "asked", "stands", "anew", "knew"}


def variables_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name


def test_variables__have_no_dialect() -> None:
    assert {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("state_admin", "project", "clients/python/src")
        for path in (ROOT / folder).rglob("*.py")
        for name in variables_in(path)
        if name.strip("_") in VARIABLE_DIALECT
    } == set()


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


@pytest.mark.parametrize(
    ("text", "is_dialect"),
    [
        ("A loose end is no error.", True),
        ("Whoever waits is told of it.", True),
        ("It is no longer valid.", False),
        ("There is no error, and it is no wider than before.", False),
        ("There is nothing to delete.", False),
    ],
)
def test_comment_dialect__is_found(text: str, is_dialect: bool) -> None:
    assert (COMMENT_DIALECT_WORDS.search(text) is not None) is is_dialect


# Only for the comments of the clients, and their docstrings, which editors show.
CLIENT_DIALECT = re.compile(
    r"\b(?:lands?|landed|somebody|nobody|whoever|asked|told|stands?|ours|for ever|anew|goes on)\b",
    re.IGNORECASE,
)


def test_clients__comments__have_no_dialect() -> None:
    paths = [*sources("clients/python/src"), *sources("clients/typescript/src")]
    texts = [(path, text) for path in paths for _, text in comments(path)]
    assert len(texts) > 700
    assert [(path.name, text) for path, text in texts if CLIENT_DIALECT.search(text)] == []
