"""Rules that no linter checks: only services write, and everything is tested and documented.
import-linter checks the imports (pyproject.toml)."""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from project.env import BASE_DIR
from state_admin.services import errors

APP = BASE_DIR / "state_admin"
TESTS = BASE_DIR / "tests"
INTERFACES = ("api", "web", "tasks", "management", "streams", "mcp", "protocols", "templatetags")

WRITES = {
    *("save", "create", "delete", "update", "bulk_create", "bulk_update"),
    *("get_or_create", "update_or_create", "adelete", "asave", "acreate", "aupdate"),
    *("select_for_update", "raw"),
}
# Names that refer to neither a model nor a QuerySet.
HARMLESS = re.compile(
    r"(bar|digest|hashlib.*|hash|fields|params|merged|context|headers|extra|body|session)$"
)


def modules(*folders: str) -> list[Path]:
    return sorted(
        path for folder in folders for path in (APP / folder).rglob("*.py") if path.stat().st_size
    )


def writes_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        receiver = ast.unparse(node.func.value)
        if node.func.attr in WRITES and not HARMLESS.search(receiver):
            yield f"{path.relative_to(BASE_DIR)}:{node.lineno} {receiver[:60]}.{node.func.attr}()"


@pytest.mark.parametrize("folder", INTERFACES)
def test_interfaces__models_and_querysets__are_never_written(folder: str) -> None:
    assert [found for path in modules(folder) for found in writes_in(path)] == []


def test_writes_in__view_with_a_save_call__is_found(tmp_path: Path) -> None:
    view = APP / "api" / "example.py"
    source = "def view(thread):\n    thread.save()\n    Entry.objects.filter(x=1).update(y=2)\n"
    tree = [
        f"{ast.unparse(node.func.value)}.{node.func.attr}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in WRITES
    ]
    assert tree == ["thread.save", "Entry.objects.filter(x=1).update"]
    assert not view.exists()


def test_services__imports__exclude_http_and_celery() -> None:
    wrong = [
        f"{path.name}: {line}"
        for path in modules("services", "models", "domain")
        for line in path.read_text().splitlines()
        if re.match(
            r"\s*(from|import) (rest_framework|django\.http|celery|state_admin\.tasks)", line
        )
    ]
    assert wrong == []


def test_imports__inside_functions__state_the_reason() -> None:
    """An import that is not at the top of its module has a comment above it."""
    silent = []
    for path in [*(BASE_DIR / "project").rglob("*.py"), *modules(".")]:
        lines = path.read_text().splitlines()
        silent += [
            f"{path.relative_to(BASE_DIR)}:{number}"
            for number, line in enumerate(lines, 1)
            if re.match(r"\s+(from (\.|project|state_admin)|import (project|state_admin))", line)
            and not _is_explained(lines[: number - 1])
        ]
    assert silent == []


def _is_explained(before: list[str]) -> bool:
    """By a comment, or by TYPE_CHECKING."""
    above = next(
        line.strip() for line in reversed(before) if not re.match(r"\s+(from|import) ", line)
    )
    return above.startswith(("#", "if TYPE_CHECKING"))


@pytest.mark.parametrize("folder", ["benchmarks", "compat", "deploy"])
def test_imports__of_the_server_by_programs_that_no_test_runs__exist(folder: str) -> None:
    paths = [path for path in (BASE_DIR / folder).rglob("*.py") if "node_modules" not in path.parts]
    imports = {
        (str(path.relative_to(BASE_DIR)), node.module, each.name)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        if node.module.partition(".")[0] in ("project", "state_admin")
        for each in node.names
    }
    assert paths != []
    assert [found for found in sorted(imports) if not _exists(*found[1:])] == []


def _exists(module: str, name: str) -> bool:
    if name == "*" or hasattr(importlib.import_module(module), name):
        return True
    with contextlib.suppress(ModuleNotFoundError):
        return bool(importlib.import_module(f"{module}.{name}"))
    return False


# Generated files.
GENERATED = (
    "state_admin/migrations",
    "clients/typescript/src/openapi.ts",
    "clients/python/src/commonhold/answers.py",
)
MOST_LINES = 600


def test_modules__each__has_at_most_600_lines() -> None:
    """A longer one is split where its subject divides."""
    folders = ("project", "state_admin", "tests", "benchmarks", "clients/python", "compat")
    paths = [path for folder in folders for path in (BASE_DIR / folder).rglob("*.py")]
    paths += (BASE_DIR / "clients/typescript/src").rglob("*.ts")
    paths += [*(BASE_DIR / "static/css").iterdir(), *(BASE_DIR / "static/js").iterdir()]
    paths += (BASE_DIR / "templates").rglob("*.html")
    long = [
        name
        for path in paths
        if len(path.read_text().splitlines()) > MOST_LINES
        and not (name := str(path.relative_to(BASE_DIR))).startswith(GENERATED)
    ]
    assert len(paths) > 500
    assert long == []


@pytest.mark.parametrize(("mark", "most"), [("type: ignore", 4), ("noqa", 9)])
def test_server__silenced_checks__are_few(mark: str, most: int) -> None:
    code = [
        path.read_text()
        for name in ("project", "state_admin")
        for path in (BASE_DIR / name).rglob("*.py")
    ]
    assert sum(text.count(f"# {mark}") for text in code) <= most


def _sources(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("*.py"))


def test_services__each_module__is_imported_by_a_test() -> None:
    """By a test module with its name, in any layer, or imported by one."""
    tests = _sources(TESTS)
    untested = [
        path.stem
        for path in modules("services")
        if path.stem != "__init__"
        and not any(TESTS.rglob(f"test_*{path.stem}.py"))
        and not re.search(
            rf"state_admin\.services\.{path.stem}\b"
            rf"|from state_admin\.services import \(?[^)]*?\b{path.stem}\b",
            tests,
        )
    ]
    assert untested == []


def test_commands__each__has_a_test() -> None:
    tests = _sources(TESTS)
    commands = [path.stem for path in modules("management/commands")]
    untested = [name for name in commands if not re.search(rf"[\"'\s/]{name}[\"'\s]", tests)]
    assert commands
    assert untested == []


def test_commands__each__is_documented() -> None:
    operations = (BASE_DIR / "docs" / "operations.md").read_text()
    commands = [path.stem for path in modules("management/commands")]
    assert [name for name in commands if f"`{name}" not in operations] == []


def test_problems__each_type__is_raised_and_tested() -> None:
    app, tests = _sources(APP), _sources(TESTS)
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.Problem) and name != "Problem"
    ]
    raised = [name for name in kinds if re.search(rf"\b{name}\(", app)]
    assert sorted(raised) == sorted(kinds), "a problem nobody raises"
    # By class, or by its type in responses.
    untested = [
        name
        for name in kinds
        if not re.search(rf"\b{name}\b|/problems/{getattr(errors, name).slug}\b", tests)
    ]
    assert untested == []


def test_map__every_folder_of_code__is_in_contributing() -> None:
    text = (BASE_DIR / "CONTRIBUTING.md").read_text().split("## Map")[1].split("\n## ")[0]
    folders = [
        path.parent.relative_to(BASE_DIR)
        for pattern in ("*/__init__.py", "state_admin/*/__init__.py", "project/*/__init__.py")
        for path in BASE_DIR.glob(pattern)
    ]
    assert len(folders) > 20
    assert [
        str(each) for each in folders if f"`{each}/`" not in text and str(each) != "state_admin"
    ] == []


# Settings ------------------------------------------------------------------------------------

# Not in the table: Django's own variable, those of OpenTelemetry's SDK that our code reads too, and
# those that the supervisor sets for its children.
INTERNAL = {
    "DJANGO_SETTINGS_MODULE",
    "OTEL_SERVICE_NAME",
    "COMMONHOLD_SUPERVISOR",
    "COMMONHOLD_TOKEN",
}


def settings_read() -> set[str]:
    """The names given to env.str(…), secret(…), os.environ[…] and os.environ.get(…)."""
    found: set[str] = set()
    for path in [*(BASE_DIR / "project").rglob("*.py"), *APP.rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args:
                called = ast.unparse(node.func)
                name = node.args[0]
                reads = re.fullmatch(r"env\.\w+|secret|os\.environ\.get|os\.getenv", called)
                if reads and isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.add(name.value)
    return found - INTERNAL


def test_settings__read_by_the_code__are_exactly_the_documented_ones() -> None:
    page = (BASE_DIR / "docs" / "operations.md").read_text()
    table = page.split("## Settings")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    documented = {
        name for line in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", line.split("|")[1])
    }
    read = settings_read()
    assert read - documented == set(), "read, but not in the table of docs/operations.md"
    assert documented - read == set(), "documented, but nobody reads it"
