"""Every code block of README, the guides and the clients' pages runs as a reader would run it."""

from __future__ import annotations

import ast
import codeop
import random
import re
import shutil
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.__main__ import ENVIRONMENTS, find_suites, install
from project.env import BASE_DIR
from tests.docs.pages import Block, documentation_pages, read_blocks
from tests.docs.serving import serve
from tests.docs.sessions import BlockFailed, Environment, Server, Session
from tests.e2e.conftest import CHROMIUM
from tests.project.running import wait_for

# Pages whose blocks need packages that the server's own tests do not: the folder of compat/ that
# pins them. `make guides` installs them; `make test-system` runs all other pages, and `make test-dist`
# that of the TypeScript client.
FRAMEWORKS = {
    "docs/guides/a2a.md": "a2a",
    "docs/guides/acp.md": "acp",
    "docs/guides/ag-ui.md": "ag-ui",
    "docs/guides/agent-protocol.md": "agent-protocol",
    "docs/guides/ai-sdk.md": "ai-sdk",
    "docs/guides/crewai.md": "crewai",
    "docs/guides/google-adk.md": "google_adk",
    "docs/guides/langgraph.md": "langgraph",
    "docs/guides/mcp.md": "mcp",
    "docs/guides/openai-agents.md": "openai_agents",
    "docs/guides/typescript.md": "agentkit",
}

# This one gets an empty environment, in `make guides` too.
INSTALL = "docs/guides/install.md"

# Blocks that are not run, by page and first line, each with the reason.
NOT_RUN = {
    ("README.md", "make run"): "is the server of these tests, started by tests/docs/serving.py",
    ("README.md", "make test"): "is the suite that these tests are part of",
    (
        "docs/tutorial/index.md",
        "python3 -m venv ../travel-desk/.venv",
    ): "asks the network; the first block of the page Install does the same, by `make guides`",
    (INSTALL, "make dist"): "tests/clients/test_install.py runs it, by `make test-dist`",
    (
        INSTALL,
        "npm install /path/to/the/clone/dist/commonhold-client-0.1.0.tgz",
    ): "tests/clients/test_install.py installs that file, by `make test-dist`",
    (
        "docs/guides/mcp.md",
        'claude mcp add --transport http commonhold "$COMMONHOLD_URL/mcp" --header "Authorization: Bearer $COMMONHOLD_TOKEN"',
    ): "needs Claude Code, a program of another vendor",
    (
        "docs/guides/mcp.md",
        'codex mcp add commonhold --url "$COMMONHOLD_URL/mcp" --bearer-token-env-var COMMONHOLD_TOKEN',
    ): "needs Codex, a program of another vendor",
}


def runnable_blocks(page: str) -> list[Block]:
    return [each for each in read_blocks(page) if (page, each.first_line) not in NOT_RUN]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    # A process can have only one Playwright, which the tests of tests/e2e may have started already.
    playwright = request.getfixturevalue("playwright") if CHROMIUM else None
    with serve(playwright) as server:
        yield server


def run_page(blocks: list[Block], server: Server, environment: Environment | None = None) -> None:
    """Run the blocks in a new session. Raises BlockFailed at the first failure."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Session(blocks, server, Path(folder), environment or Environment()) as session,
    ):
        session.run()


def run_repeatedly(pages: dict[str, Environment], server: Server, *, again: int) -> list[str]:
    """Run every page, and `again` pages a second time, in random order, regardless of failures;
    returns the failures."""
    failures = []
    second_of_run: dict[str, int] = {}
    names = sorted(pages)
    for page in [*random.sample(names, len(names)), *random.sample(names, again)]:
        # Pages take their ids from `date +%s`.
        wait_for(lambda: int(time.time()) > second_of_run.get(page, 0), "the next second")  # noqa: B023
        second_of_run[page] = int(time.time())
        try:
            run_page(runnable_blocks(page), server, pages[page])
        except BlockFailed as failure:
            failures.append(str(failure))
    return failures


def has_browser_blocks(page: str) -> bool:
    return any(block.in_browser for block in runnable_blocks(page))


@pytest.mark.timeout(7200)
def test_pages__in_any_order_on_one_server__every_block_succeeds(server: Server) -> None:
    """Every page once and a third of them twice; `make guides` runs all of them twice."""
    pages = [page for page in documentation_pages() if page not in {INSTALL, *FRAMEWORKS}]
    if CHROMIUM is None:
        pages = [page for page in pages if not has_browser_blocks(page)]
    environments = dict.fromkeys(pages, Environment())
    failures = run_repeatedly(environments, server, again=len(pages) // 3)
    assert not failures, "\n\n".join(failures)


@pytest.mark.guides
@pytest.mark.timeout(7200)
def test_pages__of_frameworks_too__every_block_succeeds(server: Server, tmp_path: Path) -> None:
    suites = {suite.name: suite for suite in find_suites()}
    pages = dict.fromkeys(documentation_pages(), Environment())
    venv.create(tmp_path / "empty", with_pip=True)
    pages[INSTALL] = Environment(python=tmp_path / "empty" / "bin" / "python")
    for page, name in FRAMEWORKS.items():
        install(suites[name])
        if suites[name].is_python:
            pages[page] = Environment(python=ENVIRONMENTS / name / "bin" / "python")
        else:
            pages[page] = Environment(node_modules=suites[name].folder / "node_modules")
    failures = run_repeatedly(pages, server, again=len(pages))
    assert not failures, "\n\n".join(failures)


def test_python_blocks__pasted_into_an_interpreter__are_accepted_line_by_line() -> None:
    """Before Python 3.13, an interpreter ends a statement at an empty line, and only there."""
    refused = []
    for page in documentation_pages():
        for block in read_blocks(page):
            if block.language == "python" and block.file is None:
                refused += [block.place] if is_refused_when_pasted(block.text) else []
    assert refused == []


def is_refused_when_pasted(text: str) -> bool:
    compile_pasted = codeop.CommandCompiler()
    compile_pasted.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    pending: list[str] = []
    for line in [*text.splitlines(), ""]:
        pending.append(line)
        try:
            if compile_pasted("\n".join(pending), "<stdin>", "single"):
                pending = []
        except SyntaxError:
            return True
    return bool("".join(pending))


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("for n in range(2):\n    print(n)\n\nprint()\n", False),
        ("async with a as b:\n    await b\n", False),
        ("for n in range(2):\n    print(n)\nprint()\n", True),
        ("class A:\n    a = 1\n\n    b = 2\n", True),
    ],
)
def test_is_refused_when_pasted__where_a_statement_ends__decides(text: str, refused: bool) -> None:
    assert is_refused_when_pasted(text) is refused


def test_shell_blocks__none__has_a_comment_behind_a_command() -> None:
    """An interactive zsh passes it to the command as arguments, unless an option prevents it."""
    found = [
        f"{block.place}: {line}"
        for path in [BASE_DIR / "README.md", *sorted((BASE_DIR / "docs").rglob("*.md"))]
        for block in read_blocks(str(path.relative_to(BASE_DIR)))
        if block.language == "sh" and block.file is None
        for line in block.text.splitlines()
        if re.search(r"\S\s+#(\s|$)", line)
    ]
    assert found == []


def test_blocks_not_run__each__is_a_block_of_its_page() -> None:
    found = {
        (page, block.first_line) for page in documentation_pages() for block in read_blocks(page)
    }
    assert sorted(set(NOT_RUN) - found) == []


def test_blocks_not_run__all__are_these() -> None:
    """Adding a block requires changing this number, so that a review notices it."""
    assert len(NOT_RUN) == 7
    assert all(len(reason.split()) > 3 for reason in NOT_RUN.values())


def test_pages_of_frameworks__all__exist_and_name_an_environment() -> None:
    assert set(FRAMEWORKS) <= set(documentation_pages())
    assert set(FRAMEWORKS.values()) <= {suite.name for suite in find_suites()}
