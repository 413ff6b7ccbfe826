"""Signing in with more than a password: an authenticator app, and single sign-on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import pytest
from allauth.mfa.models import Authenticator
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.services.logins import set_password
from tests.builders import Person
from tests.providing import Provider
from tests.web.test_account import GOOD
from tests.web.test_second_factor import code_of
from tests.web.test_single_sign_on import provider

from .conftest import Errors
from .test_sweep import NARROW, OVERFLOW, WIDE

__all__ = ["provider"]


@pytest.fixture(params=["wide light", "narrow dark", "without javascript"])
def context(
    request: pytest.FixtureRequest, browser: Browser, server: LiveServer, errors: Errors
) -> Iterator[BrowserContext]:
    # A wrong code, a cancelled login, and the change stream of a page whose session has ended.
    errors.expected |= {401, 403, 422}
    narrow, dark = "narrow" in request.param, "dark" in request.param
    found = browser.new_context(
        base_url=server.url,
        viewport=NARROW if narrow else WIDE,  # type: ignore[arg-type]
        java_script_enabled="without" not in request.param,
    )
    theme = "dark" if dark else "light"
    found.add_cookies([{"name": "commonhold_theme", "value": theme, "url": server.url}])
    yield found
    found.close()


class Check(Protocol):
    def __call__(self, page: Page, heading: str) -> None: ...


@pytest.fixture
def check(request: pytest.FixtureRequest, context: BrowserContext) -> Check:
    """Checks that the page is shown, is no wider than the window and, with JavaScript, has no
    finding of axe."""
    scripts = "without" not in request.node.callspec.params["context"]

    def check(page: Page, heading: str) -> None:
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        page.wait_for_load_state()
        assert page.evaluate(OVERFLOW) <= 0
        if scripts:
            assert page.evaluate("typeof htmx") == "object"
            found = Axe().run(page).response["violations"]
            assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found] == []

    return check


def log_in(page: Page) -> None:
    page.goto("/login")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(GOOD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).not_to_have_url(re.compile("/login$"))  # another navigation would abort this one


def log_out(page: Page, check: Check) -> None:
    page.get_by_role("button", name="Account and appearance").click()
    page.get_by_role("button", name="Sign out").click()
    check(page, "Sign in to Commonhold")


def test_authenticator__enrolled__is_required_at_the_next_login(
    context: BrowserContext, check: Check, alice: Person
) -> None:
    set_password(user=alice.user, password=GOOD)
    page = context.new_page()
    blocked: list[str] = []
    page.on("console", lambda said: blocked.append(said.text) if "Policy" in said.text else None)
    log_in(page)
    page.goto("/sign-in")
    check(page, "Sign-in methods")
    page.get_by_role("link", name="Set up").click()
    check(page, "Set up an authenticator app")
    picture = page.get_by_role("img", name="QR code")
    assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
    secret = page.locator("figure code").inner_text().replace(" ", "")
    page.get_by_label("Your password").fill(GOOD)
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Turn on").click()
    check(page, "Your recovery codes")
    recovery = page.locator("figure code").inner_text().splitlines()
    assert len(recovery) == 10
    page.get_by_role("link", name="I have saved them").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    log_out(page, check)
    device = Authenticator.objects.get(type="totp")
    device.data["used"] -= 2  # as if it had been a minute ago
    device.save()
    log_in(page)
    check(page, "Two-factor authentication")
    assert blocked == []
    page.get_by_label("Authenticator code").fill("000000")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").filter(has_text="incorrect")).to_be_visible()
    check(page, "Two-factor authentication")
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def test_single_sign_on__cancelled_then_accepted__signs_in(
    context: BrowserContext, check: Check, provider: Provider, alice: Person
) -> None:
    type(alice.user).objects.filter(pk=alice.user.pk).update(email="alice@acme.example")
    page = context.new_page()
    provider.error = "access_denied"
    page.goto("/login?next=/sessions")
    check(page, "Sign in to Commonhold")
    page.get_by_role("link", name="Sign in with Acme SSO").click()
    check(page, "Sign-in cancelled")
    provider.error = ""
    page.goto("/login?next=/sessions")
    page.get_by_role("link", name="Sign in with Acme SSO").click()
    expect(page).to_have_url(re.compile("/sessions$"))
    expect(page.locator("main")).to_contain_text("with Acme SSO")


def test_single_sign_on__linked_in_the_account__can_sign_in(
    context: BrowserContext, check: Check, provider: Provider, alice: Person
) -> None:
    set_password(user=alice.user, password=GOOD)
    provider.person = {"sub": "somebody"}
    page = context.new_page()
    log_in(page)
    page.goto("/sign-in")
    page.get_by_label("Your password").fill(GOOD)
    page.get_by_role("button", name="Link").click()
    check(page, "Link Acme SSO")
    page.get_by_role("link", name="Continue at Acme SSO").click()
    expect(page.locator("main")).to_contain_text("Linked. You can sign in with")
    log_out(page, check)
    page.goto("/login")
    page.get_by_role("link", name="Sign in with Acme SSO").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
