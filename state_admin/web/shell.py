"""The frame of every page: navigation with counts, theme, pending toasts, and the position in the
change feed from which static/js/live.js continues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from django.http import HttpRequest
from django.urls import reverse

from state_admin.domain.access import Actor, Role
from state_admin.models.counts import FEW, MOST, Counts, bounded_counts
from state_admin.streams import cursors
from state_admin.templatetags import ui

from .health import worker_state
from .htmx import Request, pending_toasts, wants_part


class Preference(NamedTuple):
    """A choice of a browser, kept in a cookie: the first value is the default."""

    label: str
    choices: tuple[str, ...]
    icon: str
    cookie: str


PREFERENCES: Final = {
    "theme": Preference("Theme", ("system", "light", "dark"), "moon", "commonhold_theme"),
    "density": Preference("Density", ("comfortable", "compact"), "rows-3", "commonhold_density"),
    # Shortcuts of one character, such as j: speech input may type them by mistake (WCAG 2.1.4).
    "shortcuts": Preference(
        "Single-key shortcuts", ("on", "off"), "keyboard", "commonhold_shortcuts"
    ),
}


@dataclass(frozen=True)
class Item:
    """A navigation item. `key` is the letter after `g`; `at` the path prefixes for which it is
    current; `health` is "ok", "failed", or "" if it has no health."""

    label: str
    url_name: str
    icon: str
    key: str
    at: tuple[str, ...]
    count: Callable[[Counts], str] = lambda counts: ""
    health: Callable[[Counts], str] = lambda counts: ""
    role: Role = Role.VIEWER


def format_count(number: int) -> str:
    """A bounded count as text: "12,480", or "10,000+" beyond the limit."""
    return f"{MOST:,}+" if number > MOST else f"{number:,}"


def about(number: int) -> str:
    """An approximate count as text: "812", "1,000+", "≈ 10.0 M" if it was measured."""
    if number <= FEW:
        return f"{number:,}"
    return f"{FEW:,}+" if number == FEW + 1 else f"≈ {ui.tokens(number)}"


def _open(number: int, failures: int = 0, word: str = "") -> str:
    """The number of failures with a word for them; without any, that of what is open, if not zero."""
    if failures:
        return f"{format_count(failures)} {word}"
    return format_count(number) if number else ""


def _system(counts: Counts) -> str:
    if worker_state(counts.worker_seen) == "silent":
        return "no worker"
    return f"{counts.failed_sweeps} failed" if counts.failed_sweeps else ""


def _failing(number: Callable[[Counts], object]) -> Callable[[Counts], str]:
    return lambda counts: "failed" if number(counts) else ""


NAVIGATION: tuple[tuple[str, tuple[Item, ...]], ...] = (
    (
        "",
        (
            Item("Overview", "web:overview", "layout-dashboard", "o", ("/",)),
            Item("Changes", "web:change-list", "activity", "l", ("/changes", "/reverts")),
        ),
    ),
    (
        "State",
        (
            Item(
                "State browser", "web:entry-list", "database", "s",
                ("/state", "/entry", "/entries"),
                lambda counts: about(counts.entries),
            ),
            Item(
                "Namespaces", "web:namespace-list", "layers", "n", ("/namespaces",),
                lambda counts: format_count(counts.namespaces),
            ),
            Item("State keys", "web:state-key-list", "hash", "k", ("/state-keys", "/plugins")),
            Item("Config", "web:config", "wrench", "f", ("/config",)),
        ),
    ),
    (
        "Runs",
        (
            Item(
                "Threads", "web:thread-list", "messages-square", "t", ("/threads", "/thread"),
                lambda counts: about(counts.threads),
            ),
            Item(
                "Runs", "web:run-list", "play", "r", ("/runs", "/run"),
                lambda counts: _open(counts.active_runs, counts.stuck_runs, "stuck"),
                _failing(lambda counts: counts.stuck_runs),
            ),
            Item(
                "Inbox", "web:inbox", "circle-check", "i", ("/inbox", "/ticket"),
                lambda counts: _open(counts.pending_tickets),
            ),
            Item(
                "Mailbox", "web:mailbox", "inbox", "m", ("/mailbox",),
                lambda counts: _open(counts.open_dispatches, counts.dead_dispatches, "dead"),
                _failing(lambda counts: counts.dead_dispatches),
            ),
            Item(
                "Compactions", "web:compaction-list", "fold-vertical", "c",
                ("/compactions", "/policies", "/policy"),
                lambda counts: _open(
                    counts.unfinished_compactions, counts.failed_compactions, "failed"
                ),
                _failing(lambda counts: counts.failed_compactions),
            ),
        ),
    ),
    (
        "Access",
        (
            Item("Members", "web:member-list", "users", "p", ("/members",), role=Role.ADMIN),
            Item(
                "Tokens", "web:token-list", "key-round", "a", ("/tokens",),
                lambda counts: format_count(counts.tokens), role=Role.ADMIN,
            ),
            Item(
                "Explain access", "web:access", "shield", "x", ("/access",), role=Role.ADMIN,
            ),
            Item("Webhooks", "web:webhook-list", "zap", "w", ("/webhooks",)),
            Item("Audit", "web:audit-list", "history", "u", ("/audit",), role=Role.ADMIN),
        ),
    ),
    (
        "",
        (
            Item("Usage", "web:usage", "gauge", "z", ("/usage",)),
            Item(
                "System", "web:system", "heart-pulse", "y", ("/system",), _system,
                lambda counts: "failed" if _system(counts) else "ok",
            ),
        ),
    ),
)  # fmt: skip


# The documentation page for the pages below a path, by its first segment.
EXPLAINED_BY: Final = {
    "": "concepts/index",
    "state": "concepts/shared-state",
    "entries": "concepts/shared-state",
    "namespaces": "concepts/shared-state#namespace",
    "state-keys": "concepts/threads-and-runs#state-key",
    "plugins": "guides/plugins",
    "threads": "concepts/threads-and-runs",
    "runs": "guides/runs",
    "inbox": "concepts/people-and-workers#ticket-and-decision",
    "ticket": "concepts/people-and-workers#ticket-and-decision",
    "mailbox": "guides/mailbox",
    "compactions": "guides/compaction",
    "policies": "guides/compaction#policies",
    "policy": "guides/compaction#policies",
    "changes": "guides/change-feed",
    "audit": "guides/audit",
    "reverts": "guides/audit#revert-a-request",
    "config": "guides/config",
    "members": "guides/management",
    "tokens": "guides/management",
    "workspaces": "guides/management",
    "access": "reference/permissions",
    "sessions": "guides/login",
    "sign-in": "guides/login",
    "password": "guides/login",
    "webhooks": "guides/webhooks",
    "usage": "operations#monitoring",
    "system": "operations#monitoring",
    "go": "guides/search",
}


def documentation_url(path: str) -> str:
    """The URL of the documentation of a page."""
    page, hash_, anchor = EXPLAINED_BY.get(path.split("/")[1], "index").partition("#")
    return reverse("web:documentation", args=[f"{page}.html"]) + hash_ + anchor


def shell(request: HttpRequest) -> dict[str, Any]:
    """The template context of every page. One query, and only for a whole page of a member."""
    chosen = {name: _choice(request, kind) for name, kind in PREFERENCES.items()}
    preferences = [(name, kind, chosen[name]) for name, kind in PREFERENCES.items()]
    context: dict[str, Any] = {**chosen, "preferences": preferences}
    actor = getattr(request, "actor", None)
    if actor is not None:
        context["workspace"] = actor.workspace
    if not hasattr(request, "htmx") or wants_part(request):
        return context
    context["toasts"] = pending_toasts(request)
    if actor is not None:
        counts = counts_of(cast(Request, request))
        context |= {
            "actor": actor,
            "cursor": cursor_of(counts),
            "navigation": navigation(request.path, actor, counts),
            "section": section_of(request.path),
            "documentation_url": documentation_url(request.path),
        }
    return context


def read_counts_first(request: Request) -> None:
    """Count, and read the position in the change feed, before the page runs its queries, so that
    the stream delivers every change that the page does not show. Only for documents that a browser
    loads: other clients open no stream."""
    if request.headers.get("Sec-Fetch-Dest") == "document":
        counts_of(request)


def counts_of(request: Request) -> Counts:
    """The counts of a request, which are read once."""
    if not hasattr(request, "counts"):
        request.counts = bounded_counts(request.actor)
    return request.counts


def cursor_of(counts: Counts) -> str:
    """The cursor at which the change stream continues after what was counted."""
    return cursors.seal(counts.end.position, counts.end.at)


def items_for(actor: Actor) -> list[tuple[str, list[Item]]]:
    """The groups of the navigation, without items that the actor may not open."""
    return [
        (group, [item for item in items if actor.may(item.role)]) for group, items in NAVIGATION
    ]


def navigation(path: str, actor: Actor, counts: Counts) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (
            group,
            [
                {
                    "label": item.label,
                    "url": reverse(item.url_name),
                    "icon": item.icon,
                    "key": item.key,
                    "current": _covers(item.at, path),
                    "count": item.count(counts),
                    "health": item.health(counts),
                }
                for item in items
            ],
        )
        for group, items in items_for(actor)
    ]


def section_of(path: str) -> tuple[str, str]:
    """The label and the URL of the part of the admin that a path belongs to, for breadcrumbs; the
    overview if it belongs to none."""
    if path.startswith("/sign-in/"):
        return "Sign-in methods", reverse("web:sign-in")
    items = [item for _, group in NAVIGATION for item in group]
    item = next((item for item in items if _covers(item.at, path)), items[0])
    return item.label, reverse(item.url_name)


def _covers(places: tuple[str, ...], path: str) -> bool:
    return any(path == at or (at != "/" and path.startswith(at + "/")) for at in places)


def _choice(request: HttpRequest, kind: Preference) -> str:
    text = request.COOKIES.get(kind.cookie, "")
    return text if text in kind.choices else kind.choices[0]
