"""The screenshots of the tutorial: pages of the admin while its blocks are run.

make screenshots writes docs/images/tutorial-*.png
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Playwright, expect

from project.env import BASE_DIR
from state_admin.web.addresses import entry_url, thread_url
from tests.docs.pages import Block, read_blocks
from tests.docs.serving import serve
from tests.docs.sessions import Environment, Session

PAGE = "docs/tutorial/index.md"


def pictures(trip: str) -> dict[str, tuple[str, str, str]]:
    """By the first line of the block after which it is taken: name, URL, and expected text."""
    entry = entry_url("tutorial.team", f"parent_thread::{trip}")
    state = thread_url(f"{trip}-research", tab="state")
    return {
        "version 1": ("entry", entry, "A week in Lisbon in May"),
        "revision 2": ("state", state, "tutorial.offers_seen"),
        "waiting for a decision": ("inbox", "/inbox", "Messages to customers need approval."),
    }


@pytest.mark.timeout(600)
def test_tutorial__screenshots__show_the_described_data(
    pytestconfig: pytest.Config, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not pytestconfig.getoption("--screenshots"):
        pytest.skip("asked for by make screenshots")
    playwright: Playwright = request.getfixturevalue("playwright")
    taken: list[str] = []
    with serve(playwright) as server:
        blocks = read_blocks(PAGE)

        def look(block: Block) -> None:
            found = pictures(session.environ().get("TRIP", "")).get(block.first_line)
            if found is None or server.open_admin_page is None:
                return
            name, address, text = found
            page = server.open_admin_page()
            page.set_viewport_size({"width": 1200, "height": 720})
            page.goto(f"{server.url}{address}")
            expect(page.get_by_text(text).first).to_be_visible()
            page.screenshot(path=BASE_DIR / "docs" / "images" / f"tutorial-{name}.png")
            page.close()
            taken.append(name)

        with Session(blocks, server, tmp_path, Environment()) as session:
            session.run(after=look)
    assert taken == ["entry", "state", "inbox"]
