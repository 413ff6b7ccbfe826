"""What every page's frame needs: navigation with counts, theme, pending toasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from state_admin.models.counts import MOST, Counts, bounded_counts

from .htmx import pending_toasts, wants_part

THEMES = ("system", "light", "dark")
DENSITIES = ("comfortable", "compact")
THEME_COOKIE, DENSITY_COOKIE = "statehouse_theme", "statehouse_density"


@dataclass(frozen=True)
class Item:
    """One line of the navigation. `key` is the letter after `g`; `at` the addresses it covers."""

    label: str
    url_name: str
    icon: str
    key: str
    at: tuple[str, ...]
    count: Callable[[Counts], str] = lambda counts: ""


def shown(number: int) -> str:
    """A bounded count in words: "12,480", or "10,000+" beyond what we count."""
    return f"{MOST:,}+" if number > MOST else f"{number:,}"


def _runs(counts: Counts) -> str:
    if counts.stuck_runs:
        return f"{shown(counts.stuck_runs)} stuck"
    return shown(counts.active_runs) if counts.active_runs else ""


def _compactions(counts: Counts) -> str:
    if counts.failed_compactions:
        return f"{shown(counts.failed_compactions)} failed"
    return shown(counts.unfinished_compactions) if counts.unfinished_compactions else ""


NAVIGATION: tuple[tuple[str, tuple[Item, ...]], ...] = (
    ("", (Item("Overview", "web:overview", "layout-dashboard", "o", ("/",)),)),
    (
        "State",
        (
            Item(
                "State browser", "web:entry-list", "database", "s", ("/state", "/entry", "/entries"),
                lambda counts: shown(counts.entries),
            ),
            Item(
                "Namespaces", "web:namespace-list", "layers", "n", ("/namespaces",),
                lambda counts: shown(counts.namespaces),
            ),
            Item("State keys", "web:state-key-list", "hash", "k", ("/state-keys",)),
        ),
    ),
    (
        "Runs",
        (
            Item(
                "Threads", "web:thread-list", "messages-square", "t", ("/threads", "/thread"),
                lambda counts: shown(counts.threads),
            ),
            Item("Runs", "web:run-list", "play", "r", ("/runs", "/run", "/ticket"), _runs),
            Item(
                "Compactions", "web:compaction-list", "fold-vertical", "c", ("/compactions",),
                _compactions,
            ),
        ),
    ),
    (
        "Access",
        (
            Item(
                "Tokens", "web:token-list", "key-round", "a", ("/tokens",),
                lambda counts: shown(counts.tokens),
            ),
            Item("Webhooks", "web:webhook-list", "zap", "w", ("/webhooks",)),
        ),
    ),
    ("", (Item("System", "web:system", "heart-pulse", "y", ("/system",)),)),
)  # fmt: skip


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of every page. One query, and only on a whole page of a member."""
    made: dict[str, Any] = {
        "theme": _choice(request, THEME_COOKIE, THEMES),
        "density": _choice(request, DENSITY_COOKIE, DENSITIES),
        "THEMES": THEMES,
        "DENSITIES": DENSITIES,
    }
    if not hasattr(request, "htmx") or wants_part(request):
        return made
    made["toasts"] = pending_toasts(request)
    actor = getattr(request, "actor", None)
    if actor is not None:
        counts = bounded_counts(actor)
        made |= {
            "actor": actor,
            "workspace": counts.workspace,
            "navigation": navigation(request.path, counts),
        }
    return made


def navigation(path: str, counts: Counts) -> list[tuple[str, list[dict[str, Any]]]]:
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
                }
                for item in items
            ],
        )
        for group, items in NAVIGATION
    ]


def _covers(places: tuple[str, ...], path: str) -> bool:
    return any(path == at or (at != "/" and path.startswith(at + "/")) for at in places)


def _choice(request: HttpRequest, cookie: str, choices: tuple[str, ...]) -> str:
    given = request.COOKIES.get(cookie, "")
    return given if given in choices else choices[0]
