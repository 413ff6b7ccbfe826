"""Screenshots of every page in every state, of the demo workspace: for review, and for the README.

make screenshots writes artifacts/screenshots/<page>-<theme>-<width>.png, and index.html and sheet/,
which show all of them (contact_sheet.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count, product
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.urls import resolve
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from project import broker
from state_admin.domain.access import Actor, Role
from state_admin.models import Compaction, Run, Ticket, Webhook, WebhookDelivery, Workspace
from state_admin.models.sessions import SessionStore
from state_admin.services import maintenance, storage
from state_admin.services.actors import system_actor
from state_admin.services.demo import load_demo
from state_admin.web.actors import WORKSPACE
from state_admin.web.addresses import (
    entry_action_url,
    entry_url,
    run_action_url,
    run_url,
    thread_action_url,
    thread_url,
    ticket_url,
)
from tests.builders import Person, make_person, put

from .conftest import Errors, open_context, press
from .contact_sheet import write_contact_sheet
from .pages import EMPTY_PAGES, PAGES, make_running_revert

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "artifacts" / "screenshots"
WIDTHS = (1440, 1280, 360)
# Each theme and width has a workspace of its own, so that all screenshots show the same data.
LOOKS = pytest.mark.parametrize(("theme", "width"), [*product(("light", "dark"), WIDTHS)])
TEAM = ("team_context", "parent_thread::trip-lisbon")


def pages() -> dict[str, str]:
    """Every page by the name of its screenshot."""
    run, thread = "trip-lisbon-1", "trip-lisbon"
    job, hook = Compaction.objects.get().public_id, Webhook.objects.get().public_id
    return {
        "overview": "/",
        "state": "/state",
        "state-view": "/state?namespace=fare_quotes&tag=may",
        "state-orphans": "/state?show=orphans",
        "state-none": "/state?prefix=nothing",
        "state-columns": "/state?namespace=fare_quotes&columns=/price_eur,size,version,changed",
        "state-search": "/state?text=otter",
        "state-pane": "/state?open=fare_quotes/HAM-LIS",
        "entry": entry_url(*TEAM),
        "entry-text": entry_url(*TEAM, tab="text"),
        "entry-blame": entry_url(*TEAM, tab="blame"),
        "entry-code": entry_url(*TEAM, tab="code"),
        "entry-history": entry_url(*TEAM, tab="history"),
        "entry-compare": entry_url(*TEAM, tab="history", diff="1..3"),
        "entry-sides": entry_url(*TEAM, tab="history", diff="1..3", view="sides"),
        "entry-path": entry_url(*TEAM, tab="history", path="/goal"),
        "entry-past": entry_url(*TEAM, version=1),
        "entry-invalid": entry_url("fare_quotes", "HAM-OPO"),
        "entry-tagged": entry_url("fare_quotes", "HAM-LIS"),
        "entry-orphan": entry_url("winter_campaign", "global"),
        "entry-edit": entry_action_url("edit", *TEAM),
        "entry-delete": entry_action_url("delete", *TEAM),
        "entry-restore": entry_action_url("restore", *TEAM, version=1),
        "entry-readers": entry_action_url("readers", "traveller", "customer-118"),
        "entry-new": "/entries/new",
        "namespaces": "/namespaces",
        "namespace": "/namespaces/team_context",
        "namespace-edit": "/namespaces/fare_quotes/edit",
        "namespace-unregister": "/namespaces/fare_quotes/unregister",
        "namespace-compact": "/namespaces/team_context/compact",
        "namespace-new": "/namespaces/+new",
        "state-keys": "/state-keys",
        "plugin-install": "/plugins/+install",
        "plugin-uninstall": "/plugins/loyalty/uninstall",
        "threads": "/threads",
        "threads-search": "/threads?text=lisbon",
        "thread": thread_url(thread),
        "thread-context": thread_url(thread, tab="context"),
        "thread-state": thread_url(thread, tab="state", at=12),
        "thread-state-diff": thread_url(thread, tab="state", at=12, **{"from": 2, "to": 12}),
        "thread-compactions": thread_url(thread, tab="compactions"),
        "thread-runs": thread_url(thread, tab="runs"),
        "thread-lineage": thread_url(thread, tab="lineage"),
        "thread-message": thread_action_url("message/3", thread),
        "thread-fork": thread_url("trip-lisbon-by-train", tab="state"),
        "thread-restore-preview": thread_action_url("restore", thread, at=5),
        "thread-fork-preview": thread_action_url("fork", thread, at=5),
        "thread-delete-preview": thread_action_url("delete", thread),
        "thread-compact-preview": thread_action_url("compact-snapshots", thread),
        "runs": "/runs",
        "run-done": run_url(run),
        "run-knowledge": run_action_url("knowledge", run, step=2),
        "run-lineage": run_action_url("lineage", run),
        "run-waiting": run_url("refund-77-1"),
        "run-stuck": run_url("review-lisbon-1"),
        "run-cancel": run_action_url("cancel", "review-lisbon-1"),
        "run-release": run_action_url("release", "review-lisbon-1"),
        "inbox": "/inbox",
        "ticket": ticket_url(Ticket.objects.get().public_id),
        "mailbox": "/mailbox",
        "mailbox-dead": "/mailbox?status=DeadLetter",
        "mailbox-replay": "/mailbox/replay",
        "mailbox-clear": "/mailbox/clear",
        "compactions": "/compactions",
        "compaction": f"/compactions/{job}",
        "compaction-undo": f"/compactions/{job}/undo",
        "policies": "/policies",
        "policy-new": "/policies/+new",
        "policy": "/policy",
        "policy-agent": "/policy?scope=agent&name=planner",
        "changes": "/changes",
        "audit": "/audit",
        "reverts": "/reverts",
        "revert": "/reverts/rv1",
        "revert-new": "/reverts/+new",
        "config": "/config",
        "config-providers": "/config/providers",
        "config-models": "/config/models",
        "config-agents": "/config/agents",
        "config-provider": "/config/providers/models-example",
        "config-agent": "/config/agents/planner",
        "config-edit": "/config/providers/models-example/edit",
        "config-delete": "/config/providers/models-example/delete",
        "config-new": "/config/models/+new",
        "members": "/members",
        "member-new": "/members/+new",
        "tokens": "/tokens",
        "token-new": "/tokens/+new",
        "access": "/access?username=ines&namespace=team_context&key=parent_thread::trip-lisbon",
        "sessions": "/sessions",
        "sessions-end": "/sessions/end",
        "sign-in": "/sign-in",
        "totp": "/sign-in/totp",
        "totp-codes": "/sign-in/totp/codes",
        "totp-remove": "/sign-in/totp/remove",
        "password": "/password",
        "workspaces": "/workspaces",
        "webhooks": "/webhooks",
        "webhook-new": "/webhooks/+new",
        "webhook": f"/webhooks/{hook}",
        "webhook-resume": f"/webhooks/{hook}/resume",
        "search": "/go?q=trip",
        "usage": "/usage",
        "usage-agents": "/usage?by=agent",
        "problems": "/problems/",
        "system": "/system",
        "not-found": "/threads/nothing",
    }


# Pages of a workspace without data.
EMPTY = {
    path.partition("?")[0].strip("/").replace("/", "-") or "overview": path for path in EMPTY_PAGES
}
# A number that no screenshot has used: each pass writes something new.
FRESH = count(1)


def show_palette(page: Page) -> None:
    page.goto("/")
    press(page, "Control+k")
    page.keyboard.type("trip")
    expect(page.locator("#palette-results [role=option]").first).to_contain_text("trip")


def show_keys(page: Page) -> None:
    page.goto("/runs")
    press(page, "?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def show_me(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Account and appearance").click()
    expect(page.locator("#me")).to_be_visible()


def show_side(page: Page) -> None:
    page.goto("/")
    if (menu := page.get_by_role("button", name="Menu")).is_visible():
        menu.click()


def show_views(page: Page) -> None:
    page.goto("/state")
    page.get_by_text("Manage views").click()


def show_dialog(page: Page) -> None:
    page.goto("/runs/review-lisbon-1")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("link", name="Cancel run…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def show_bulk(page: Page) -> None:
    page.goto("/state?namespace=fare_quotes")
    page.get_by_label("Select HAM-OPO").check()
    page.get_by_label("Select HAM-LIS").check()
    page.get_by_role("button", name="Tag…", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()


def show_bulk_done(page: Page) -> None:
    show_bulk(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Tag").fill(f"seen-{next(FRESH)}")
    dialog.get_by_label("Reason").fill("seen by the desk")
    dialog.get_by_role("button", name="Tag").click()
    expect(page.locator("[data-toast]")).to_be_visible()


def show_dry_run(page: Page) -> None:
    page.goto("/namespaces/traveller/edit")
    page.locator(".cm-content").first.fill('{"required": ["name", "tier"]}')
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("button", name="Save anyway")).to_be_visible()


def show_undo(page: Page) -> None:
    page.goto(entry_action_url("edit", "agent_settings", "agent_type::critic"))
    settings = {"temperature": next(FRESH) / 100, "tools": ["search_trips"]}
    page.locator(".cm-content").fill(json.dumps(settings))
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-toast]")).to_contain_text("Undo")


def show_refusal(page: Page) -> None:
    page.goto(entry_action_url("edit", *TEAM))
    page.locator(".cm-content").fill('{\n  "goal": 7,\n  "budget_eur": -1\n}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="does not satisfy")).to_be_visible()


def show_conflict(page: Page) -> None:
    page.goto(entry_action_url("edit", "traveller", "customer-204"))
    tomas = {"name": "Tomas", "allergies": ["peanuts", "shellfish"], "miles": 4_000 + next(FRESH)}
    put(demo_person(), "traveller", "customer-204", tomas)
    page.locator(".cm-content").fill('{"name": "Tomas", "allergies": ["nuts"], "miles": 7}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="changed while you were editing")).to_be_visible()


def show_late_answer(page: Page) -> None:
    page.goto("/inbox")
    page.locator("[data-ticket]").get_by_role("button", name="Approve").click()


def show_created_token(page: Page) -> None:
    page.goto("/tokens/+new")
    page.get_by_label("Name", exact=True).fill("ci")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="created")).to_be_visible()


# States that need an action: by the name of the screenshot.
STATES: dict[str, Callable[[Page], None]] = {
    "palette": show_palette,
    "keys": show_keys,
    "me": show_me,
    "menu": show_side,
    "views": show_views,
    "dialog": show_dialog,
    "bulk-preview": show_bulk,
    "bulk-done": show_bulk_done,
    "namespace-dry-run": show_dry_run,
    "entry-undo": show_undo,
    "entry-refused": show_refusal,
    "entry-conflict": show_conflict,
    "inbox-missing": show_late_answer,
    "token-made": show_created_token,
}


def demo_person() -> Actor:
    return system_actor(Workspace.objects.get(slug="demo").pk, "planner")


def make_deliveries() -> None:
    """What the webhook of the demo, which is paused, would have sent."""
    hook = Webhook.objects.get()
    for number, (status, error, code) in enumerate(
        (
            ("delivered", "", 200),
            ("dead", "the receiver returned 410 Gone", 410),
            ("failed", "it did not answer within 10 s", None),
            ("queued", "", None),
        )
    ):
        WebhookDelivery.objects.create(
            webhook=hook, public_id=f"d{number}", change_xid=1, change_id=number, kind="run.waiting",
            subject="refund-77-1", status=status, body='{"type": "run.waiting"}', error=error,
            response_status=code, latency_ms=84 if code else None, attempts=number % 3 + 1,
        )  # fmt: skip


def make_revert() -> None:
    entry = ("fare_quotes", "HAM-LIS")
    make_running_revert(
        demo_person(), "imported the wrong file", entry, "it was written since then"
    )


def take(page: Page, name: str) -> None:
    # Full height, so that everything below the first screen is included.
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=FOLDER / f"{name}.png", full_page=not page.locator("dialog[open]").count())


@pytest.fixture(scope="session")
def folder(pytestconfig: pytest.Config, browser: Browser) -> Iterator[Path]:
    """Of the screenshots. The contact sheet is written at the end."""
    if not pytestconfig.getoption("--screenshots"):
        pytest.skip("asked for by make screenshots")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.png"):
        path.unlink()
    yield FOLDER
    write_contact_sheet(browser, FOLDER)


@pytest.fixture
def ines(folder: Path, db: None) -> Person:
    return make_person("ines", "default", Role.ADMIN)


@contextmanager
def visit(
    browser: Browser, server: LiveServer, person: Person, theme: str, width: int
) -> Iterator[Page]:
    context = open_context(browser, server, person, viewport={"width": width, "height": 860})
    context.add_cookies([{"name": "commonhold_theme", "value": theme, "url": server.url}])
    yield context.new_page()
    context.close()


@LOOKS
def test_screenshots__demo__of_every_page_and_state(
    browser: Browser, server: LiveServer, ines: Person, errors: Errors, theme: str, width: int
) -> None:
    errors.expected |= {404, 409, 422}  # some states are refusals
    load_demo()
    make_deliveries()
    make_revert()
    make_queue()
    silent = Now() - timedelta(minutes=14)
    Run.objects.filter(public_id="review-lisbon-1").update(lease_expires_at=silent)
    maintenance.run_sweep("flag stuck runs", maintenance.flag_stuck_runs)
    maintenance.run_sweep("expire entries", maintenance.expire_entries)
    maintenance.run_sweep("measure usage", maintenance.sweep_usage)
    maintenance.run_sweep("measure storage", storage.measure_storage)
    with visit(browser, server, ines, theme, width) as page:
        choose_demo(page.context.cookies()[0]["value"])
        if (theme, width) == ("light", 1280):
            page.goto("/")
            page.locator("#chart-reads").wait_for()
            page.screenshot(path=ROOT / "docs" / "images" / "overview.png")
        for name, path in pages().items():
            page.goto(path)
            take(page, f"{name}-{theme}-{width}")
        for name, show in STATES.items():
            show(page)
            take(page, f"{name}-{theme}-{width}")


@LOOKS
def test_screenshots__empty_workspace__of_every_page(
    browser: Browser, server: LiveServer, ines: Person, theme: str, width: int
) -> None:
    with visit(browser, server, ines, theme, width) as page:
        for name, path in EMPTY.items():
            page.goto(path)
            take(page, f"empty-{name}-{theme}-{width}")
        page.context.clear_cookies(name="commonhold_session")
        for name, path in {"login": "/login", "login-once": "/login/once/anything"}.items():
            page.goto(path)
            take(page, f"{name}-{theme}-{width}")


@pytest.mark.django_db
def test_screenshots__pages__are_all_that_the_sweep_visits(alice: Person) -> None:
    load_demo()
    make_revert()
    taken = {resolve(urlsplit(path).path).view_name for path in pages().values()}
    visited = {resolve(urlsplit(path).path).view_name for path in PAGES}
    assert visited - taken == set()


def make_queue() -> None:
    """Create the queue, as a worker does when it starts."""
    broker.prepare()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pgmq.create('commonhold')")


def choose_demo(session_key: str) -> None:
    session = SessionStore(session_key=session_key)
    session[WORKSPACE] = "demo"
    session.save()
