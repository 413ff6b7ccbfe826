"""What a screen reader announces on the main journeys, in which order, and that a part of a page that is
still loading says so. A snapshot lists what matters: anything may come in between."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from tests.builders import Person, make_namespace, put
from tests.web.stories import create_story

from .conftest import Errors, take_held

SCHEMA = {"properties": {"goal": {"type": "string"}, "steps": {"type": "array"}}}

# First the way past the navigation, then where a person can go, then what the page is about.
SHELL = """
- link "Skip to content"
- navigation "Main":
  - list:
    - listitem:
      - link "Overview"
  - heading "State" [level=2]
  - list "State":
    - listitem:
      - link /State browser/
  - heading "Runs" [level=2]
  - list "Runs":
    - listitem:
      - link "Inbox 1"
- banner:
  - link /Search entries/
- main
"""
# The form of a ticket: the question, the arguments, then the choices.
DECISION = """
    - paragraph: “Refunds above 100 need a person.”
    - group: /amount/
    - radiogroup "Approved":
      - radio "yes"
      - radio "no"
    - textbox "Reason (optional)"
    - button "Approve"
    - button "Refuse"
"""
PAGES = {
    "/": """
- main:
  - heading "Overview" [level=1]
  - region "Status":
    - link "running 0 runs"
    - link "waiting 1 run"
""",
    "/state?namespace=team": """
- main:
  - heading "State browser" [level=1]
  - link "New entry"
  - navigation "Namespaces and scopes":
    - group:
      - list:
        - listitem:
          - link "team"
  - search:
    - searchbox "Search keys and values"
    - button "Filter"
  - status: 2 entries
  - region "Entries":
    - table:
      - rowgroup:
        - row:
          - columnheader "Select all":
            - checkbox "Select all"
          - columnheader "Key"
      - rowgroup:
        - row:
          - cell "Select thread::t1":
            - checkbox "Select thread::t1"
          - cell "thread::t1":
            - link "thread::t1"
""",
    "/state/team/thread::t1": """
- main:
  - list "Breadcrumb":
    - listitem:
      - link "State"
    - listitem:
      - link "team"
  - heading "thread::t1" [level=1]
  - link "Delete…"
  - link "Edit"
  - list:
    - listitem:
      - link "Value"
    - listitem:
      - link "History"
""",
    "/runs/r1": f"""
- main:
  - list "Breadcrumb":
    - listitem:
      - link "Threads"
  - heading "r1" [level=1]
  - button "Copy the run id"
  - button "Actions"
  - strong: Waiting for permission for a tool call
  - term: Status
  - definition: waiting
  - region "Decision about issue_refund":
    - heading "Permission to call issue_refund" [level=2]
{DECISION.strip(chr(10))}
  - region "Timeline":
    - heading "Timeline" [level=2]
    - link "Oldest first"
""",
    "/inbox": f"""
- main:
  - heading "Inbox" [level=1]
  - search:
    - searchbox "Tool"
  - article "issue_refund":
    - heading "issue_refund" [level=2]
    - link "r1"
    - link "Refund of order 9921"
{DECISION.strip(chr(10))}
  - status: 1 pending ticket
""",
}
CONFLICT = """
- main:
  - heading "thread::t1 changed while you were editing" [level=1]
  - alert: /You started from version 1; alice wrote version 2/
  - heading "Conflicts" [level=2]
  - region "Conflicts":
    - table:
      - rowgroup:
        - row "JSON pointer Base Theirs Mine Merged value"
      - rowgroup:
        - row:
          - rowheader "/goal"
          - cell:
            - radio "Keep theirs"
          - cell:
            - radio "Keep mine"
          - cell:
            - radio "Keep as edited below"
  - region "The three versions":
    - heading /Base version 1/ [level=2]
    - heading /Theirs version 2/ [level=2]
    - heading /Mine not saved/ [level=2]
  - heading "Their changes" [level=2]
  - button "Save merged"
"""


@pytest.fixture(autouse=True)
def team(server: LiveServer, alice: Person) -> None:
    make_namespace(alice.actor, "team", schema=SCHEMA, default={})
    put(alice.actor, "team", "thread::t1", {"goal": "ship", "steps": ["a"]})
    put(alice.actor, "team", "thread::t2", {"goal": "rest"})
    create_story(alice.actor)


def test_pages__of_the_main_journeys__have_names_in_the_order_of_reading(page: Page) -> None:
    for path, content in PAGES.items():
        page.goto(path)
        expect(page.locator("body")).to_match_aria_snapshot(SHELL)
        expect(page.locator("body")).to_match_aria_snapshot(content)


def test_conflict__announces_what_happened_and_then_the_choices(
    page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected.add(409)
    page.goto("/entry/edit/team/thread::t1")
    put(alice.actor, "team", "thread::t1", {"goal": "theirs", "steps": ["a", "b"]})
    page.locator(".cm-content").fill('{"goal": "mine", "steps": ["a"]}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("body")).to_match_aria_snapshot(CONFLICT)


def test_part_loaded_later__shows_a_skeleton_and_is_busy_until_it_is_there(page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    def delay(
        route: Route,
    ) -> None:  # the script that sets aria-busy must run before htmx sends requests
        time.sleep(0.5)
        route.continue_()

    page.route("**/state/team/thread::t1", hold)
    page.route("**/js/app*.js", delay)
    page.goto("/state?namespace=team&open=team/thread::t1")
    pane = page.locator("#entry-pane")
    expect(pane).to_have_attribute("aria-busy", "true")
    skeleton = "pane => getComputedStyle(pane, '::after').content"
    assert pane.evaluate(skeleton) != "none"
    expect(page.get_by_role("link", name="thread::t2")).to_be_visible()  # the rest can be read
    take_held(page, held).continue_()
    expect(pane.get_by_role("heading", name="thread::t1")).to_be_visible()
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert pane.evaluate(skeleton) == "none"
