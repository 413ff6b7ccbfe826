"""Pages refer to other pages by links, because a path of the repository does not exist on the
site."""

from __future__ import annotations

import re

import pytest

from project.env import BASE_DIR

# Fenced blocks, inline code, links and comments: what remains is text.
_NOT_TEXT = re.compile(
    r"^ *```.*?^ *```|`[^`]*`|\[[^\]]*\]\([^)]*\)|<!--.*?-->", re.DOTALL | re.MULTILINE
)
_PATH = re.compile(r"[\w./-]+\.md\b")


def find_paths(markdown: str) -> list[str]:
    """Paths of pages in the text of a page, outside of links and code."""
    return _PATH.findall(_NOT_TEXT.sub("", markdown))


def test_pages__paths_of_other_pages__are_links() -> None:
    pages = [page for page in BASE_DIR.glob("docs/**/*.md") if page.parent.name != "adr"]
    assert len(pages) > 50
    found = {str(page): find_paths(page.read_text(encoding="utf-8")) for page in pages}
    assert {page: paths for page, paths in found.items() if paths} == {}


@pytest.mark.parametrize(
    ("markdown", "paths"),
    [
        ("see (docs/operations.md).", ["docs/operations.md"]),
        ("see docs/guides/login.md; then", ["docs/guides/login.md"]),
        ("see [the page](../operations.md#limits) and [acp.md](acp.md)", []),
        ("`cat README.md`\n\n```sh\ncat docs/index.md\n```\n", []),
    ],
)
def test_find_paths__text_links_and_code(markdown: str, paths: list[str]) -> None:
    assert find_paths(markdown) == paths
