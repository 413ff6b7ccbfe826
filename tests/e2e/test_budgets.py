"""The main journeys of users, each by mouse and by keyboard, with a budget of interactions.

An interaction is a shortcut, a control that is chosen, or a text that is typed into a field. By
keyboard, a control is reached with Tab or with the keys that move to it, and then pressed.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import ApiToken, Compaction, Entry, Run, Thread, Ticket, WebhookDelivery
from state_admin.services import compaction_jobs, policies
from state_admin.services.entry_views import read_entry
from state_admin.services.webhooks import create_webhook
from tests.builders import Person, append, conversation, make_namespace, make_run, make_thread, put
from tests.web.stories import create_story

from .conftest import INTERACTIONS, Errors, press

# "Under 8 interactions".
BUDGET = 7
# The most keys that a control may take to reach from where the focus is.
MOST_KEYS = 30


class User(ABC):
    """Does on a page what a journey says, and counts the interactions."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.interactions = 0

    def go(self, key: str) -> None:
        """Open a page of the navigation."""
        self.interactions += 1
        self._go(key)

    def choose(self, control: Locator) -> None:
        self.interactions += 1
        expect(control).to_be_visible()
        self.page.wait_for_load_state()
        self._choose(control)

    def write(self, text: str, field: Locator) -> None:
        """Replace the text of a field, which may have the focus already."""
        self.interactions += 1
        expect(field).to_be_visible()
        self.page.wait_for_load_state()
        self._reach(field)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def search(self, text: str) -> None:
        """Open the palette and type."""
        self.interactions += 1
        self._open_palette()
        field = self.page.get_by_role("combobox")
        expect(field).to_be_focused()
        self.interactions += 1
        self.page.keyboard.type(text)

    def choose_hit(self, text: str) -> None:
        """Open the first hit of the palette, which must contain `text`."""
        first = self.page.locator("#palette-results [aria-selected=true]")
        expect(first).to_contain_text(text)
        self.interactions += 1
        self.page.keyboard.press("Enter")

    def save(self, button: Locator) -> None:
        """Save what is in the JSON editor, in which Tab indents."""
        self.interactions += 1
        self._save(button)

    @abstractmethod
    def _save(self, button: Locator) -> None: ...

    @abstractmethod
    def _go(self, key: str) -> None: ...

    @abstractmethod
    def _choose(self, control: Locator) -> None: ...

    @abstractmethod
    def _reach(self, control: Locator) -> None: ...

    @abstractmethod
    def _open_palette(self) -> None: ...


class ByMouse(User):
    def _save(self, button: Locator) -> None:
        button.click()

    def _go(self, key: str) -> None:
        self._choose(self.page.locator(f'[data-go="{key}"]'))

    def _choose(self, control: Locator) -> None:
        control.click()

    def _reach(self, control: Locator) -> None:
        control.click()

    def _open_palette(self) -> None:
        self._choose(self.page.locator("[data-palette]"))


class ByKeyboard(User):
    def _save(self, button: Locator) -> None:
        self.page.keyboard.press("Control+Enter")

    def _go(self, key: str) -> None:
        press(self.page, "g", key)

    def _choose(self, control: Locator) -> None:
        self._reach(control)
        toggles = "node => node.matches('[type=checkbox], [type=radio]')"
        self.page.keyboard.press("Space" if control.evaluate(toggles) else "Enter")

    def _reach(self, control: Locator) -> None:
        """Move the focus: to rows with j, to actions with x, to fields of filters with /, else
        with Tab, from the content of the page if nothing has the focus."""
        inside = "node => node.contains(node.getRootNode().activeElement)"
        key = control.evaluate(
            """node => {
                if (document.querySelector("dialog[open]")) return "Tab";
                if (node.matches("main [data-row]")) return "j";
                if (node.matches('main :is([hx-target="#dialog"], [data-actions])')) return "x";
                if (node.matches("[data-filter]")) return "/";
                const before = document.activeElement.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING;
                return before && document.activeElement !== document.body ? "Shift+Tab" : "Tab";
            }"""
        )
        if key == "Tab" and self.page.evaluate("document.activeElement === document.body"):
            press(self.page, "Tab")
            # If something with the focus was removed, the browser continues from its place instead.
            if self.page.evaluate("document.activeElement.matches('.skip')"):
                press(self.page, "Enter")
        for _ in range(MOST_KEYS):
            if control.evaluate(inside):
                return
            beside = control.evaluate(
                """node => node.matches("[type=radio]") && document.activeElement.name === node.name"""
            )
            self.page.keyboard.press("ArrowDown" if beside else key)
        raise AssertionError(f"not reached with {MOST_KEYS} times {key}: {control}")

    def _open_palette(self) -> None:
        press(self.page, "Control+k")


@pytest.fixture(params=[ByMouse, ByKeyboard])
def user(request: pytest.FixtureRequest, page: Page) -> Iterator[User]:
    """A user, who may not use more than BUDGET interactions."""
    user: User = request.param(page)
    yield user
    request.node.user_properties.append((INTERACTIONS, user.interactions))
    assert 0 < user.interactions <= BUDGET


def value(person: Person, key: str) -> object:
    return json.loads(read_entry(actor=person.actor, namespace="team", key=key).value)


@pytest.fixture
def team(server: LiveServer, alice: Person) -> None:
    make_namespace(alice.actor, "team", default={})
    put(alice.actor, "team", "order-77", {"status": "parcel lost", "items": ["a", "b"]})
    put(alice.actor, "team", "order-78", {"status": "delivered"})


@pytest.fixture
def story(server: LiveServer, alice: Person) -> None:
    create_story(alice.actor)


def toast(page: Page) -> Locator:
    return page.locator("[data-toast]").last


@pytest.mark.usefixtures("team")
def test_entry__found_by_a_part_of_a_word__is_fixed(user: User, page: Page, alice: Person) -> None:
    page.goto("/")
    user.search("rder-77")
    user.choose_hit("order-77")
    user.choose(page.locator("[data-edit]"))
    user.write('{"status": "parcel found"}', page.locator(".cm-content"))
    user.save(page.get_by_role("button", name="Save"))
    expect(toast(page)).to_contain_text("Saved version 2")
    assert value(alice, "order-77") == {"status": "parcel found"}


@pytest.mark.usefixtures("team")
def test_conflict__mine_chosen__is_saved(
    user: User, page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected.add(409)
    page.goto("/entry/edit/team/order-77")
    put(alice.actor, "team", "order-77", {"status": "theirs", "items": ["a", "b", "c"]})
    user.write('{"status": "mine", "items": ["a", "b"]}', page.locator(".cm-content"))
    user.save(page.get_by_role("button", name="Save"))
    user.choose(page.get_by_label("Keep mine"))
    user.choose(page.get_by_role("button", name="Save merged"))
    expect(toast(page)).to_contain_text("Kept mine at /status")
    assert value(alice, "order-77") == {"status": "mine", "items": ["a", "b", "c"]}


@pytest.mark.usefixtures("story")
def test_ticket__approved(user: User, page: Page) -> None:
    page.goto("/")
    user.go("i")
    ticket = page.locator("[data-ticket]")
    user.choose(ticket.get_by_label("yes"))
    user.choose(ticket.get_by_role("button", name="Approve"))
    expect(toast(page)).to_contain_text("Approved: issue_refund")
    assert Ticket.objects.get().status == "resumed"


def test_stuck_run__unblocked_as_suggested(user: User, page: Page, alice: Person) -> None:
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r2")
    silent_since = timezone.now() - timedelta(minutes=13)
    Run.objects.filter(public_id="r2").update(lease_expires_at=silent_since)
    page.goto("/")
    user.go("r")
    user.choose(page.get_by_role("link", name="r2"))
    user.choose(page.locator("#run-now .banner a"))
    dialog = page.get_by_role("dialog")
    user.write("the worker is gone", dialog.get_by_label("Reason"))
    user.choose(dialog.get_by_role("button").last)
    expect(toast(page)).to_contain_text("Lease released")
    assert Run.objects.get().lease_released_at is not None


@pytest.mark.usefixtures("story")
def test_run__context_at_a_step__shows_what_changed(user: User, page: Page) -> None:
    page.goto("/")
    user.go("r")
    user.choose(page.get_by_role("link", name="r1").first)
    user.choose(page.get_by_role("link", name="Context by step"))
    user.choose(page.locator("[data-stepper] [rel=prev]"))
    expect(page).to_have_url(re.compile(r"step=\d+$"))
    expect(page.locator("main")).to_contain_text("plan")


def test_thread__compacted__then_undone(user: User, page: Page, alice: Person) -> None:
    make_thread(alice.actor, "t1", title="Refund of order 9921")
    append(alice.actor, "t1", *conversation(8))
    page.goto("/")
    user.go("t")
    user.choose(page.get_by_role("link", name="Refund of order 9921"))
    user.choose(page.locator("main .tabs").get_by_role("link", name="Compactions"))
    user.choose(page.get_by_role("button", name="Compact now"))
    expect(toast(page)).to_contain_text("Compaction requested")
    compaction_jobs.run_compaction(Compaction.objects.get(status="queued").public_id)
    user.choose(page.get_by_role("link", name="Undo…").first)
    user.choose(page.get_by_role("dialog").get_by_role("button", name="Undo compaction"))
    expect(page.locator("#thread-jobs")).to_contain_text("undone")


@pytest.mark.usefixtures("story")
def test_thread__earlier_revision__is_restored(user: User, page: Page) -> None:
    page.goto("/")
    user.go("t")
    user.choose(page.get_by_role("link", name="Refund of order 9921"))
    user.choose(page.locator("main .tabs").get_by_role("link", name="State"))
    user.choose(page.locator(".revisions").get_by_role("link", name="3", exact=True))
    user.choose(page.get_by_role("link", name="Restore…"))
    user.choose(page.get_by_role("dialog").get_by_role("button", name="Restore"))
    expect(toast(page)).to_contain_text("estored")


@pytest.mark.usefixtures("story")
def test_thread__earlier_revision__is_forked(user: User, page: Page) -> None:
    page.goto("/")
    user.go("t")
    user.choose(page.get_by_role("link", name="Refund of order 9921"))
    user.choose(page.locator("main .tabs").get_by_role("link", name="State"))
    user.choose(page.locator(".revisions").get_by_role("link", name="3", exact=True))
    expect(page.locator("#state-at")).to_contain_text("Revision 3")
    user.choose(page.get_by_role("link", name="Fork…"))
    user.choose(page.get_by_role("dialog").get_by_role("button", name="Fork"))
    expect(page.get_by_role("navigation", name="Lineage")).to_contain_text("forked from t1")
    assert Thread.objects.forks_of("t1").count() == 1


def test_entries__500_deleted__and_restored(user: User, page: Page, alice: Person) -> None:
    make_namespace(alice.actor, "bulk", default={})
    for number in range(500):
        put(alice.actor, "bulk", f"k{number}", number)
    page.goto("/")
    user.go("s")
    user.choose(page.get_by_role("button", name="All matching"))
    user.choose(page.get_by_role("button", name="Delete…", exact=True))
    user.choose(page.get_by_role("dialog").get_by_role("button", name="Delete 500 entries"))
    expect(toast(page)).to_contain_text("Deleted 500 entries")
    assert not Entry.objects.filter(deleted=False).exists()
    user.choose(page.locator("[data-undo] button"))
    expect(toast(page)).to_contain_text("500 entries")
    assert Entry.objects.filter(deleted=False).count() == 500


def test_namespace__with_a_schema__gets_a_limited_token(user: User, page: Page) -> None:
    page.goto("/")
    user.go("n")
    user.choose(page.get_by_role("link", name="New namespace"))
    user.write('{"type": "object"}', page.locator(".cm-content").first)
    user.write("orders", page.get_by_label("Name", exact=True))
    user.choose(page.get_by_role("button", name="Register"))
    user.choose(page.get_by_role("link", name="New token"))
    user.choose(page.get_by_role("button", name="Create token"))
    expect(page.get_by_role("heading", name="Token “orders” created")).to_be_visible()
    assert ApiToken.objects.get(name="orders").namespaces == ["orders"]


def test_token__revoked(user: User, page: Page) -> None:
    page.goto("/")
    user.search("tokens")
    user.choose_hit("Tokens")
    user.choose(page.get_by_role("link", name="Revoke"))
    user.choose(page.get_by_role("dialog").get_by_role("button", name="Revoke token"))
    expect(page.locator("#tokens tbody")).to_contain_text("revoked")


def test_member__invited(user: User, page: Page) -> None:
    page.goto("/")
    user.search("members")
    user.choose_hit("Members")
    user.choose(page.get_by_role("link", name="New member"))
    user.write("carol", page.get_by_label("Name", exact=True))
    user.choose(page.get_by_role("button", name="Add member"))
    expect(page.get_by_role("region", name="A login link for carol")).to_be_visible()


@pytest.mark.usefixtures("team")
def test_array__change_of_one_item__is_shown_and_blamed(
    user: User, page: Page, alice: Person
) -> None:
    put(alice.actor, "team", "order-77", {"status": "parcel lost", "items": ["new", "a", "b"]})
    page.goto("/")
    user.search("order-77")
    user.choose_hit("order-77")
    expect(page.locator("#changes")).to_contain_text("new")
    expect(page.locator("#changes tbody tr")).to_have_count(1)
    user.choose(page.locator("main .tabs").get_by_role("link", name="Blame"))
    versions = page.locator(".blame tbody tr.new td.num a")
    expect(versions).to_have_text(["v1", "v2", "v1", "v2", "v1"])  # {, items, a and b, ], }
    user.choose(page.get_by_role("link", name='"b"'))
    expect(page.get_by_role("heading", name="Changes at /items/2")).to_be_visible()
    expect(page.locator("main tbody tr")).to_have_count(1)
    expect(page.locator("main tbody tr")).to_contain_text("/items/1")


@pytest.mark.usefixtures("story")
def test_policy__changed__after_a_preview(user: User, page: Page, alice: Person) -> None:
    page.goto("/")
    user.search("policies")
    user.choose_hit("Compaction policies")
    user.choose(page.get_by_role("link", name="the workspace"))
    user.write("20", page.get_by_label("Compact automatically at"))
    effects = page.get_by_role("region", name="Effect on threads")
    expect(effects.locator("ins").first).to_contain_text("with the next message")
    user.choose(page.get_by_role("button", name="Save"))
    expect(toast(page)).to_contain_text("Policy saved")
    saved = policies.read_policy(actor=alice.actor, scope="workspace")
    assert saved.effective.policy.autocompact_threshold == 20


def test_failed_delivery__sent_again(user: User, page: Page, alice: Person) -> None:
    hook, _ = create_webhook(actor=alice.actor, name="billing", url="https://example.com/hook")
    delivery = WebhookDelivery.objects.create(
        webhook=hook, public_id="d1", change_xid=1, change_id=1, kind="entry.put", status="dead",
        body="{}", error="the receiver returned 500",
    )  # fmt: skip
    page.goto("/")
    user.search("webhooks")
    user.choose_hit("Webhooks")
    user.choose(page.get_by_role("link", name="billing"))
    user.choose(page.get_by_role("button", name="Redeliver entry.put"))
    expect(page.locator("#delivery-table")).to_contain_text("queued")
    delivery.refresh_from_db()
    assert delivery.status == "queued"
