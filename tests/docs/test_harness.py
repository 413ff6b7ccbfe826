"""The harness itself: it detects every way in which a page can fail."""

from __future__ import annotations

import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.outputs import printed_in_comments, shows_json, shows_text
from tests.docs.pages import find_blocks
from tests.docs.sessions import BlockFailed, Environment, Server, Session
from tests.patience import PATIENCE
from tests.project.running import is_alive, wait_for

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")


class Answering(http.server.BaseHTTPRequestHandler):
    """Responds to `/409` with 409."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:4]))
        self.end_headers()
        self.wfile.write(self.headers.get("Authorization", "").encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Server]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Server(f"http://127.0.0.1:{server.server_port}", "ch_secret", tmp_path / "data")
        server.shutdown()


@pytest.fixture
def nobody(tmp_path: Path) -> Server:
    """The server of pages that call none."""
    return Server("http://127.0.0.1:1", "ch_secret", tmp_path / "data")


def run(markdown: str, server: Server, folder: Path, *, output_patience: float = PATIENCE) -> str:
    """The output of the newest block of the page."""
    blocks = list(find_blocks("page.md", markdown))
    with Session(
        blocks, server, folder / "session", Environment(), output_patience=output_patience
    ) as session:
        session.run()
        return session.output()


def block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n\n"


@pytest.mark.parametrize(
    ("markdown", "message"),
    [
        (block("sh", "false\ntrue"), "page.md:1 (sh): bash exited with 1"),
        (block("sh", "false | true"), "bash exited with 1"),
        (block("sh", "echo $UNKNOWN"), "unbound variable"),
        (block("sh", "x=1") + block("python", "1 / 0"), "page.md:5 (python)"),
        (block("python", "1 / 0"), "ZeroDivisionError"),
        (block("python", "import sys\nsys.exit(0)"), "SystemExit"),
        (block("python", "await missing()"), "NameError"),
        (block("sh", "python3 -c 'raise OSError' || true"), "raised an exception"),
        (block("js", "throw new Error('no')"), "node exited with 1"),
        (block("", "x"), "no runner for the language ''"),
        (block("ruby", "x"), "no runner for the language 'ruby'"),
        ("<!-- file: settings.json -->\n" + block("json", "{"), "Expecting"),
        ("<!-- file: docs/x.txt -->\n" + block("text", "x"), "would change the repository"),
    ],
)
def test_page__block_that_fails__is_named(
    markdown: str, message: str, nobody: Server, tmp_path: Path
) -> None:
    if "js" in markdown and shutil.which("node") is None:
        pytest.skip("needs Node")
    with pytest.raises((BlockFailed, ValueError), match=re.escape(message)):
        run(markdown, nobody, tmp_path)


@needs_curl
@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ("curl -sS http://127.0.0.1:8000/404", "answered 404, which the page does not announce"),
        ("curl -sS http://127.0.0.1:8000/302", "answered 302, which the page does not announce"),
        ("x=$(curl -sS http://127.0.0.1:8000/500 | cat)", "answered 500"),
        ("# 409\ncurl -sS http://127.0.0.1:8000/200", "announces 409, the server answered 200"),
        ("# 409\ncurl -sS http://127.0.0.1:8000/412", "announces 409, the server answered 412"),
        (
            "# 409\ncurl -sS http://127.0.0.1:8000/409\ncurl -sS http://127.0.0.1:8000/409",
            "answered 409, which the page does not announce",
        ),
        ("# 409\ntrue", "a refusal is announced, but nothing was called"),
    ],
)
def test_page__unexpected_refusal__fails(
    commands: str, message: str, answering: Server, tmp_path: Path
) -> None:
    with pytest.raises(BlockFailed, match=re.escape(message)):
        run(block("sh", commands), answering, tmp_path)


@needs_curl
def test_page__announced_refusal__passes_with_address_and_token_inserted(
    answering: Server, tmp_path: Path
) -> None:
    commands = """
# 409: somebody was faster
curl -sS http://127.0.0.1:8000/409 -H 'Authorization: ch_…'; echo
curl -sS http://127.0.0.1:8000/204
"""
    assert run(block("sh", commands), answering, tmp_path) == "ch_secret\n"


@pytest.mark.parametrize(
    ("language", "expected"), [("text", "one"), ("json", '{"a": 1}'), ("json", "[1, 2]")]
)
def test_page__output_differs__fails(
    language: str, expected: str, nobody: Server, tmp_path: Path
) -> None:
    page = block("sh", """echo '{"a": 2}'; echo '[1]'; echo oneself""") + block(language, expected)
    with pytest.raises(BlockFailed, match="the output is not"):
        run(page, nobody, tmp_path, output_patience=0.0)


def test_page__output_of_a_program_in_the_background__is_awaited(
    nobody: Server, tmp_path: Path
) -> None:
    program = "import time\ntime.sleep(0.5)\nprint('late')"
    page = block("python", f"# worker.py\n{program}") + block("sh", "python3 worker.py &")
    assert run(page + block("text", "late"), nobody, tmp_path) == "late\n"


def test_session__shell_python_and_files__carry_over_from_block_to_block(
    nobody: Server, tmp_path: Path
) -> None:
    page = (
        block("sh", "export COUNT=1\nname=world\necho hello > greeting.txt")
        + block("python", "import os\ncount = int(os.environ['COUNT'])")
        + block("python", "count += 1\ntext = open('greeting.txt').read().strip()")
        + block("python", "print(text, count)  # hello 2")
        + block("sh", 'echo "$name"; test -x manage.py')
    )
    assert run(page, nobody, tmp_path) == "world\n"


def test_session__file_after_cd__is_saved_in_the_current_folder(
    nobody: Server, tmp_path: Path
) -> None:
    page = (
        block("sh", "mkdir -p ../desk && cd ../desk")
        + block("python", "# team.py\nNAME = 'team'")
        + block("sh", "python -c 'import team; print(team.NAME)'; ls *.py")
    )
    assert run(page, nobody, tmp_path) == "team\nteam.py\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_session__node_module__runs_its_blocks_between_others(
    nobody: Server, tmp_path: Path
) -> None:
    page = (
        block("js", 'import { readFile } from "node:fs/promises";\nlet n = 1;')
        + block("sh", "echo from the shell > made.txt")
        + block("js", 'console.log(await readFile("made.txt", "utf8"), ++n);')
    )
    assert run(page, nobody, tmp_path) == "from the shell\n 2\n"


def test_session__end__stops_programs_in_the_background(nobody: Server, tmp_path: Path) -> None:
    printed = run(block("sh", "sleep 1000 & echo $!"), nobody, tmp_path)
    wait_for(lambda: not is_alive(int(printed)), "the program ends with its page")


def test_blocks__files_outputs_and_indented_fences__are_recognized() -> None:
    markdown = (
        block("python", "# worker.py\npass")
        + "<!-- file: .cursor/mcp.json -->\n"
        + block("json", "{}")
        + "<!-- browser -->\n"
        + block("js", "// a comment")
        + "- item\n\n  ```sh\n  echo\n  ```\n"
    )
    found = [(b.language, b.file, b.in_browser, b.text) for b in find_blocks("page.md", markdown)]
    assert found == [
        ("python", "worker.py", False, "# worker.py\npass\n"),
        ("json", ".cursor/mcp.json", False, "{}\n"),
        ("js", None, True, "// a comment\n"),
        ("sh", None, False, "echo\n"),
    ]


def test_blocks__fence_that_is_not_closed__is_an_error() -> None:
    with pytest.raises(ValueError, match=r"page\.md:1: the fence is not closed"):
        list(find_blocks("page.md", "```sh\necho"))


@pytest.mark.parametrize(
    ("expected", "actual", "fits"),
    [
        ('{"a": "…"}', '{"a": {"b": 1}, "c": 2}', True),
        ('{"a": "chg_…"}', '{"a": "chg_12"}', True),
        ('{"a": "chg_…"}', '{"a": "12"}', False),
        ('{"a": 1}', '{"b": 1}', False),
        ('{"a": 1}', '{"a": true}', False),
        ("[1, 2]", "[1, 2, 3]", False),
        ('[1, "…"]', "[1, 2, 3]", True),
        ('["…", 3]', "[1, 2, 3]", True),
        ('["…", 4]', "[1, 2, 3]", False),
        ('{"a": 1}', 'before\n{\n"a": 1\n}', True),
    ],
)
def test_json__wildcards_and_members_left_out(expected: str, actual: str, fits: bool) -> None:
    assert shows_json(expected, actual) is fits


@pytest.mark.parametrize(
    ("expected", "actual", "fits"),
    [
        ("a\nc", "a\nb\nc\n", True),
        ("c\na", "a\nb\nc\n", False),
        ("id: …", "id: 7\n", True),
        ("id", "id: 7\n", False),
    ],
)
def test_text__lines_in_order(expected: str, actual: str, fits: bool) -> None:
    assert shows_text(expected, actual) is fits


def test_comments__after_prints__are_expected_lines() -> None:
    source = "print(a)  # 1\nx = 2  # no\n  console.log(b); // two words\nprint(c)\n"
    assert printed_in_comments(source) == "1\ntwo words\n"
