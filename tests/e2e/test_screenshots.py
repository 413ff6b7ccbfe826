"""Pictures of every page, on the demo workspace: for looking at, and for the README.

make screenshots        writes artifacts/screenshots/<page>-<theme>-<width>.png
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from state_admin.domain.access import Role
from state_admin.models import Run
from state_admin.services import maintenance
from state_admin.services.demo import load_demo
from state_admin.web.actors import WORKSPACE
from state_admin.web.addresses import entry_url, run_url, thread_url
from tests.builders import make_person

from .conftest import open_context

ROOT = Path(__file__).parents[2]
TEAM = ("team_context", "parent_thread::trip-lisbon")


def pages() -> dict[str, str]:
    return {
        "overview": "/",
        "state": "/state",
        "entry": entry_url(*TEAM),
        "entry-history": entry_url(*TEAM, tab="history", diff="1..3"),
        "namespaces": "/namespaces",
        "namespace": "/namespaces/team_context",
        "threads": "/threads",
        "thread": thread_url("trip-lisbon"),
        "thread-context": thread_url("trip-lisbon", tab="context"),
        "thread-state": thread_url("trip-lisbon", tab="state", at=12),
        "thread-compactions": thread_url("trip-lisbon", tab="compactions"),
        "runs": "/runs",
        "run-waiting": run_url("refund-77-1"),
        "run-stuck": run_url("review-lisbon-1"),
        "compactions": "/compactions",
        "state-keys": "/state-keys",
        "tokens": "/tokens",
        "system": "/system",
    }


def test_screenshots__every_page__both_themes_and_widths(
    pytestconfig: pytest.Config, browser: Browser, server: LiveServer
) -> None:
    if not pytestconfig.getoption("--screenshots"):
        pytest.skip("asked for by make screenshots")
    ines = make_person("ines", "default", Role.ADMIN)
    load_demo()
    silent = Now() - timedelta(minutes=14)
    Run.objects.filter(public_id="review-lisbon-1").update(lease_expires_at=silent)
    maintenance.run_sweep("flag stuck runs", maintenance.flag_stuck_runs)
    maintenance.run_sweep("expire entries", maintenance.expire_entries)
    maintenance.run_sweep("measure usage", maintenance.measure_usage)
    folder = ROOT / "artifacts" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        for width in (1280, 360):
            context = open_context(browser, server, ines, viewport={"width": width, "height": 860})
            client_cookie = context.cookies()[0]["value"]
            choose_demo(client_cookie)
            context.add_cookies([{"name": "statehouse_theme", "value": theme, "url": server.url}])
            page = context.new_page()
            for name, path in pages().items():
                page.goto(path)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{name}-{theme}-{width}.png")
            context.close()
    picture = folder / "overview-light-1280.png"
    (ROOT / "docs" / "images").mkdir(exist_ok=True)
    (ROOT / "docs" / "images" / "overview.png").write_bytes(picture.read_bytes())
    assert len(list(folder.glob("*.png"))) >= 4 * len(pages())
    assert all(re.fullmatch(r"[a-z-]+-(light|dark)-\d+\.png", p.name) for p in folder.glob("*.png"))


def choose_demo(session_key: str) -> None:
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore(session_key=session_key)
    session[WORKSPACE] = "demo"
    session.save()
