"""The fenced code blocks of a documentation page, in order.

The language of a fence decides what the harness does with its block:

- `sh`, `python`, `js`, `ts` are run. A first line that is only a comment with a file name
  (`# worker.py`, `// page.mjs`) saves the block under that name instead of running it.
- `json` and `text` are the expected output of the block before them. In strings and lines `…`
  matches any text.

An HTML comment on the line above a fence changes that: `<!-- file: NAME -->` saves a block whose
language has no comments, `<!-- browser -->` runs a `js` block in a signed-in page of the admin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from project.env import BASE_DIR

# Folders of docs/ whose pages have blocks to run.
FOLDERS = ("tutorial", "concepts", "guides", "explanation")
RUN = ("sh", "python", "js", "ts")
OUTPUT = ("json", "text")

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_FILE_COMMENT = re.compile(r"^(?:#|//) (?P<name>[\w./-]+\.\w+)$")
_DIRECTIVE = re.compile(r"^<!-- (?P<text>.+) -->$")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    file: str | None = None
    in_browser: bool = False

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]


def documentation_pages(root: Path = BASE_DIR) -> list[str]:
    """Paths of all pages with blocks that must run, relative to the repository."""
    paths = [root / "README.md", *root.glob("clients/*/README.md")]
    for folder in FOLDERS:
        paths += root.glob(f"docs/{folder}/*.md")
    return sorted(str(path.relative_to(root)) for path in paths)


def read_blocks(page: str, root: Path = BASE_DIR) -> list[Block]:
    """The blocks of the page at `page`, relative to the repository."""
    return list(find_blocks(page, (root / page).read_text(encoding="utf-8")))


def find_blocks(page: str, markdown: str) -> Iterator[Block]:
    """The blocks of a page. ValueError if a fence is not closed."""
    opened: re.Match[str] | None = None
    directive, start, lines = "", 0, list[str]()
    previous = ""
    for number, line in enumerate(markdown.splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, start, lines = fence, number, []
                found = _DIRECTIVE.match(previous.strip())
                directive = found["text"] if found else ""
            previous = line
        elif fence and not fence["info"].strip():
            text = "".join(each.removeprefix(opened["indent"]) + "\n" for each in lines)
            if not opened["info"].startswith("{"):  # a directive of Sphinx
                yield _build_block(page, start, opened["info"].strip(), text, directive)
            opened, previous = None, ""
        else:
            lines.append(line)
    if opened is not None:
        raise ValueError(f"{page}:{start}: the fence is not closed")


def _build_block(page: str, line: int, language: str, text: str, directive: str) -> Block:
    file = directive.removeprefix("file: ") if directive.startswith("file: ") else None
    if file is None and language in RUN:
        named = _FILE_COMMENT.match(text.partition("\n")[0])
        file = named["name"] if named else None
    return Block(page, line, language, text, file, in_browser=directive == "browser")
