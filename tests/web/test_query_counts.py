"""Every page has a committed count of its queries; those that no other test measures are here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client, RequestFactory

from state_admin.models import ApiToken, Dispatch, Membership
from state_admin.services.users import make_login_link
from state_admin.web.urls import urlpatterns
from tests.builders import Person, make_token
from tests.e2e.pages import fill
from tests.web.conftest import BASELINE, CheckQueries

pytestmark = pytest.mark.django_db

PAGES = {
    "audit as JSON": "/audit.json",
    "compaction, cancel": "/compactions/c1/cancel",
    "config, providers as JSON": "/config/providers.json",
    "dispatch, cancel": "/mailbox/{dispatch}/cancel",
    "dispatch, payload": "/mailbox/{dispatch}/payload",
    "entry, cell": "/entry/cell/team/global?member=/goal&columns=/goal&list_namespace=team",
    "entry, history as JSON": "/entry/history/team/global.json",
    "entry, newer": "/entry/newer/team/global?version=1",
    "login by link": "/login/once/{link}",
    "login": "/login",
    "member, end sessions": "/members/{member}/sessions",
    "member, new": "/members/+new",
    "member, reset authenticator": "/members/{member}/totp",
    "members as JSON": "/members.json",
    "namespaces that globs match": "/namespaces/+matches?namespaces=te*",
    "namespace, old versions": "/namespaces/team/old-versions",
    "namespaces to choose from": "/namespaces/+offers?namespaces=te",
    "plugins as JSON": "/plugins.json",
    "policies as JSON": "/policies.json",
    "policy, new": "/policies/+new",
    "recovery codes, renew": "/sign-in/totp/codes",
    "reverts": "/reverts",
    "reverts as JSON": "/reverts.json",
    "revert": "/reverts/rv1",
    "revert, new": "/reverts/+new",
    "run, release": "/run/release/r2",
    "sessions as JSON": "/sessions.json",
    "sessions, end": "/sessions/end",
    "state keys as JSON": "/state-keys.json",
    "thread, compact snapshots": "/thread/compact-snapshots/t1",
    "thread of an id": "/webhooks/+thread?thread=t1",
    "thread, runs as JSON": "/thread/runs/t1.json",
    "threads that prefixes match": "/tokens/+matches?thread_prefixes=t",
    "threads to choose from": "/tokens/+offers?thread_prefixes=t",
    "thread ids to choose from": "/webhooks/+offers?thread=t",
    "ticket": "/ticket/tk1",
    "tickets as JSON": "/tickets.json",
    "token, edit": "/tokens/{token}/edit",
    "token, new": "/tokens/+new",
    "token, revoke": "/tokens/{token}/revoke",
    "token, rotate": "/tokens/{token}/rotate",
    "tokens as JSON": "/tokens.json",
    "webhook deliveries as JSON": "/webhooks/hook1/deliveries.json",
    "webhook, delete": "/webhooks/hook1/delete",
    "webhook, deliver again": "/webhooks/hook1/replay",
    "webhook, new": "/webhooks/+new",
    "webhook, resume": "/webhooks/hook1/resume",
    "webhook, rotate": "/webhooks/hook1/rotate",
    "webhooks as JSON": "/webhooks.json",
}
ANONYMOUS = {"login", "login by link"}

# The key under which each URL that supports GET is counted: its own or, of several, the most
# expensive.
ROUTES = {
    "access": "access",
    "audit-diff": "audit, difference",
    "audit-list": "audit",
    "audit-list-json": "audit as JSON",
    "change-list": "changes",
    "change-list-json": "changes as JSON",
    "compaction-cancel": "compaction, cancel",
    "compaction-detail": "compaction",
    "compaction-list": "compactions",
    "compaction-list-json": "compactions as JSON",
    "compaction-undo": "compaction, undo",
    "config": "config",
    "config-delete": "config, delete",
    "config-detail": "config, record",
    "config-edit": "config, edit",
    "config-list": "config, models",
    "config-list-json": "config, providers as JSON",
    "config-new": "config, new",
    "dispatch-cancel": "dispatch, cancel",
    "dispatch-payload": "dispatch, payload",
    "entry-cell": "entry, cell",
    "entry-delete": "entry, delete",
    "entry-detail": "entry, blame",
    "entry-edit": "entry, edit",
    "entry-history-json": "entry, history as JSON",
    "entry-list": "state browser, by tag and writer",
    "entry-list-json": "state as JSON",
    "entry-new": "new entry",
    "entry-newer": "entry, newer",
    "entry-raw": "entry, as stored",
    "entry-readers": "entry, readers",
    "entry-restore": "entry, restore",
    "entry-tree": "entry, part",
    "inbox": "inbox",
    "inbox-json": "inbox as JSON",
    "live": "live",
    "login": "login",
    "login-once": "login by link",
    "mailbox": "mailbox",
    "mailbox-clear": "mailbox, clear",
    "mailbox-json": "mailbox as JSON",
    "mailbox-replay": "mailbox, replay",
    "member-list": "members",
    "member-list-json": "members as JSON",
    "member-new": "member, new",
    "member-remove": "members, remove",
    "member-sessions": "member, end sessions",
    "member-totp": "member, reset authenticator",
    "namespace-compact": "namespace, compact",
    "namespace-detail": "namespace",
    "namespace-edit": "namespace, edit",
    "namespace-list": "namespaces",
    "namespace-list-json": "namespaces as JSON",
    "namespace-matches": "namespaces that globs match",
    "namespace-new": "new namespace",
    "namespace-old-versions": "namespace, old versions",
    "namespace-offers": "namespaces to choose from",
    "namespace-unregister": "namespace, unregister",
    "overview": "overview, with charts",
    "palette": "search",
    "password": "password",
    "plugin-install": "plugin, install",
    "plugin-list-json": "plugins as JSON",
    "plugin-uninstall": "plugin, uninstall",
    "policy": "policy of a thread",
    "policy-list": "policies",
    "policy-list-json": "policies as JSON",
    "policy-new": "policy, new",
    "revert-detail": "revert",
    "revert-list": "reverts",
    "revert-list-json": "reverts as JSON",
    "revert-new": "revert, new",
    "run-act": "run, cancel",
    "run-detail": "run",
    "run-knowledge": "run, knowledge",
    "run-lineage": "run, lineage",
    "run-list": "runs",
    "run-list-json": "runs as JSON",
    "sessions": "sessions",
    "sessions-end": "sessions, end",
    "sessions-json": "sessions as JSON",
    "sign-in": "how one signs in",
    "state-key-list": "state keys",
    "state-key-list-json": "state keys as JSON",
    "system": "system",
    "thread-compact-snapshots": "thread, compact snapshots",
    "thread-delete": "thread, delete",
    "thread-detail": "thread, difference",
    "thread-fork": "thread, fork",
    "thread-list": "threads",
    "thread-list-json": "threads as JSON",
    "thread-message": "message",
    "thread-message-sent": "message, as sent",
    "thread-piece": "message, part",
    "thread-restore": "thread, restore",
    "thread-runs-json": "thread, runs as JSON",
    "thread-value": "state value, part",
    "ticket-detail": "ticket",
    "thread-matches": "threads that prefixes match",
    "thread-named": "thread of an id",
    "thread-id-offers": "thread ids to choose from",
    "thread-offers": "threads to choose from",
    "ticket-list-json": "tickets as JSON",
    "token-list": "tokens",
    "token-list-json": "tokens as JSON",
    "token-edit": "token, edit",
    "token-new": "token, new",
    "token-revoke": "token, revoke",
    "token-rotate": "token, rotate",
    "totp": "authenticator, set up",
    "totp-codes": "recovery codes, renew",
    "totp-remove": "authenticator, off",
    "usage": "usage",
    "webhook-delete": "webhook, delete",
    "webhook-deliveries-json": "webhook deliveries as JSON",
    "webhook-detail": "webhook",
    "webhook-list": "webhooks",
    "webhook-list-json": "webhooks as JSON",
    "webhook-new": "webhook, new",
    "webhook-replay": "webhook, deliver again",
    "webhook-resume": "webhook, resume",
    "webhook-rotate": "webhook, rotate",
    "workspaces": "workspaces",
}
NOT_COUNTED = {
    "problem-detail": "asks the database nothing",
    "problem-list": "asks the database nothing",
    "favicon": "asks the database nothing",
    "healthz": "asks the database nothing",
    "documentation": "files of the built documentation",
    "documentation-root": "redirects to it",
    "readyz": "a probe, with one statement of its own",
    "metrics": "for Prometheus, behind a token",
    "login-code": "only in the session of somebody who owes a code; one row of theirs",
    "oidc-login": "leads to the provider",
    "oidc-callback": "comes from the provider",
}


def answers_get(view: Callable[..., Any]) -> bool:
    """Whether a view supports GET, which its decorator determines."""
    answer = view(RequestFactory().generic("BREW", "/"))
    assert answer.status_code == 405, view
    return "GET" in answer["Allow"]


@pytest.fixture
def alice(one_alice: Person, db: None) -> Person:
    return one_alice


@pytest.fixture(scope="module")
def page_data(one_alice: Person) -> dict[str, str]:
    """All data that the pages show, and the ids in their URLs."""
    fill(one_alice)
    make_token(one_alice)
    return {
        "dispatch": Dispatch.objects.earliest("pk").public_id,
        "link": make_login_link(one_alice.user),
        "member": str(Membership.objects.get(user=one_alice.user).pk),
        "token": str(ApiToken.objects.latest("pk").pk),
    }


@pytest.mark.parametrize("name", PAGES)
def test_page__one_visitor__uses_the_recorded_number_of_queries(
    name: str, admin: Client, client: Client, page_data: dict[str, str], check_queries: CheckQueries
) -> None:
    visitor = client if name in ANONYMOUS else admin
    check_queries(name, visitor, PAGES[name].format(**page_data))


def test_routes__every_get__is_counted_or_excluded_with_a_reason() -> None:
    names = {pattern.name for pattern in urlpatterns if answers_get(pattern.callback)}
    csv = {name for name in names if name.endswith("-csv")}
    assert {name.replace("-csv", "-json") for name in csv} <= ROUTES.keys()  # the same rows
    assert names - csv == ROUTES.keys() | NOT_COUNTED.keys()
    assert not ROUTES.keys() & NOT_COUNTED.keys()


def test_counts__each_route_and_page__is_recorded() -> None:
    known = json.loads(BASELINE.read_text())
    assert {*ROUTES.values(), *PAGES} - known.keys() == set()
