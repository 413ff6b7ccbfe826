"""The system page, for operators: versions, database, broker, queues, sweeps, settings. Numbers are
of all workspaces; stored content is not shown."""

from __future__ import annotations

import platform
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import path, reverse

from project import broker
from project.env import read_environment
from state_admin import __version__
from state_admin.domain.access import Role
from state_admin.models import Sweep
from state_admin.models.audit_stream import read_lag
from state_admin.models.counts import MOST
from state_admin.models.database import describe_database, slow_statements
from state_admin.models.metrics_sql import read_queues
from state_admin.models.sweeps import newest_sweep
from state_admin.services import replicas
from state_admin.services.access import administers_all
from state_admin.templatetags.ui import plural

from .actors import page
from .health import BEAT_SILENCE, broker_health, migrations_applied, newest_beat, worker_state
from .htmx import Request, render

# Names as in docs/operations.md. Settings that are not listed, such as secrets, are not shown.
_SHOWN: Final = (
    "SITE_URL",
    "ALLOWED_HOSTS",
    "TRUST_PROXY_HEADERS",
    "SECURE_SSL_REDIRECT",
    "SECURE_HSTS_SECONDS",
    "SESSION_COOKIE_AGE",
    "LOGIN_TOTP",
    "WEB_WORKERS",
    "WEB_THREADS",
    "WORKER_THREADS",
    "BROKER_VISIBILITY_SECONDS",
    "MAX_BODY_BYTES",
    "SUMMARY_DAILY_USD",
    "WEBHOOK_ALLOW_PRIVATE",
    "WEBHOOK_TIMEOUT_SECONDS",
    "WEBHOOK_RETRY_SECONDS",
    "WEBHOOK_MAX_ATTEMPTS",
    "LOG_LEVEL",
    "LOG_JSON",
    "DATABASE_REPLICA_MAX_LAG_SECONDS",
    "DEBUG",
)
# Durations, by the unit of the setting.
_TIMES: Final = (
    "CHANGE_RETENTION_DAYS",
    "DISPATCH_DEAD_RETENTION_DAYS",
    "DISPATCH_RETENTION_HOURS",
    "STORAGE_RETENTION_DAYS",
    "WEBHOOK_DEAD_RETENTION_DAYS",
    "WEBHOOK_DISABLE_AFTER_HOURS",
    "WEBHOOK_RETENTION_DAYS",
)
_SECRETS: Final = ("CONFIG_SECRET_KEYS", "SECRET_KEY_FALLBACKS", "METRICS_TOKEN")
_QUEUES: Final = {"commonhold_dispatches": "dispatches", "commonhold_compactions": "compactions"}


@page()
def system(request: Request) -> HttpResponse:
    sweep = newest_sweep()
    beat = newest_beat(sweep)
    whole_text = administers_all(request.actor)
    context: dict[str, Any] = {
        "database": describe_database(),
        "migrated": migrations_applied(),
        "worker": worker_state(sweep),
        "broker": broker_health(),
        "beat": beat,
        "beating": beat is not None and datetime.now(UTC) - beat < BEAT_SILENCE,
        "queues": _queues(),
        "slow": slow_statements(with_text=whole_text),
        "whole_text": whole_text,
        "audit_stream": read_lag(settings.AUDIT_STREAM.url) if settings.AUDIT_STREAM else None,
        "replicas": replicas.describe(),
        "sweeps": Sweep.objects.order_by("name"),
        "python": platform.python_version(),
        "version": __version__,
        "django": django.get_version(),
        "settings": _settings() if request.actor.may(Role.ADMIN) else [],
        "links": _links(),
    }
    return render(request, "system.html", context, part="system")


def _queues() -> list[tuple[str, str, str]]:
    """Kinds of items, unfinished statuses, and their numbers, counted up to MOST per workspace."""
    return [
        (_QUEUES[each.name], each.label, f"{each.value:,.0f}{'+' if each.value >= MOST else ''}")
        for each in read_queues()
        if each.name in _QUEUES
    ]


def _settings() -> list[tuple[str, str]]:
    """The settings of the deployment. For a secret, only whether it is set."""
    servers = len(replicas.ALIASES)  # the setting contains passwords
    rows = [(name, _format_value(getattr(settings, name))) for name in _SHOWN]
    rows += [
        ("CSRF_TRUSTED_ORIGINS", _format_value(read_environment().csrf_trusted_origins)),
        ("DATABASE_REPLICA_URLS", plural(servers, "server,servers") if servers else "none"),
        ("CORS_ORIGINS", _format_value(settings.CORS_ALLOWED_ORIGINS)),
        ("AUDIT_STREAM", settings.AUDIT_STREAM.url if settings.AUDIT_STREAM else "off"),
        ("OIDC", "on" if settings.OIDC else "off"),
        ("DATABASE_URL", "another server" if settings.DATABASE_URL else "embedded"),
        ("BROKER_URL", broker.address()),
        *((name, _format_value(getattr(settings, name.rpartition("_")[0]))) for name in _TIMES),
        *((name, "set" if getattr(settings, name) else "not set") for name in _SECRETS),
    ]
    return sorted(rows)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        days = value / timedelta(days=1)
        return f"{days:g} day{'' if days == 1 else 's'}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _links() -> list[tuple[str, str, str]]:
    """URL, name, description. No URL: a browser cannot open it."""
    return [
        (reverse("api:docs"), "API", "interactive API reference"),
        (reverse("api:schema"), "OpenAPI", "OpenAPI document"),
        (
            "",
            reverse("web:metrics"),
            "metrics for Prometheus; requires METRICS_TOKEN as bearer token"
            if settings.METRICS_TOKEN
            else "metrics for Prometheus; off until METRICS_TOKEN is set",
        ),
        (reverse("web:healthz"), "/healthz", "liveness probe"),
        (reverse("web:readyz"), "/readyz", "readiness probe"),
    ]


urlpatterns = [path("system", system, name="system")]
