"""Whether this process lives, and whether the whole is ready, for probes and supervisors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from state_admin.models import Sweep

WORKER_SILENCE = timedelta(minutes=2)

_migrated = False


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers; nothing else is looked at."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when requests can be served, else 503. A silent worker degrades but does not unready:
    taking the web away would not bring it back."""
    checks = {"database": "ok", "migrations": "ok", "worker": "ok"}
    try:
        if not migrations_applied():
            checks["migrations"] = "pending"
        elif not worker_seen():
            checks["worker"] = "silent"
    except (DatabaseError, InterfaceError):
        checks = dict.fromkeys(checks, "unknown") | {"database": "unreachable"}
    ready = checks["database"] == checks["migrations"] == "ok"
    status = "not ready" if not ready else "ok" if checks["worker"] == "ok" else "degraded"
    return JsonResponse({"status": status, "checks": checks}, status=200 if ready else 503)


def migrations_applied() -> bool:
    """Whether the database has every migration of this code. Remembered once it is so."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    else:
        connection.ensure_connection()
    return _migrated


def worker_seen() -> bool:
    """Whether any sweep ran of late: they start every minute, so silence means no worker."""
    newest = Sweep.objects.exclude(started_at=None).order_by("-started_at").first()
    if newest is None or newest.started_at is None:
        return False
    return datetime.now(UTC) - newest.started_at < WORKER_SILENCE


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
