"""Whether this process lives, and whether the whole is ready, for probes and supervisors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Literal, NamedTuple

from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Max
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from project import broker
from state_admin.models import Sweep
from state_admin.models.database import connections_used

WORKER_SILENCE = timedelta(minutes=2)
# Beat starts something every second.
BEAT_SILENCE = timedelta(minutes=1)
# Of the connections that PostgreSQL takes, beyond which it soon takes no more.
_CROWDED = 0.9
# What a worker may take to begin its first sweep.
STARTING_SECONDS = 30.0

_STARTED = monotonic()

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
        elif (state := worker_state(newest_sweep())) != "running":
            checks["worker"] = state
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


def newest_sweep() -> datetime | None:
    """When a worker was last seen to begin a sweep."""
    moment: datetime | None = Sweep.objects.aggregate(newest=Max("started_at"))["newest"]
    return moment


def worker_state(last_seen: datetime | None) -> Literal["running", "starting", "silent"]:
    """Sweeps start every minute, so silence means no worker; but not yet in a process that has just
    been started itself, and its worker perhaps with it."""
    if last_seen is not None and datetime.now(UTC) - last_seen < WORKER_SILENCE:
        return "running"
    return "starting" if monotonic() - _STARTED < STARTING_SECONDS else "silent"


class Health(NamedTuple):
    """How a component is: `state` colours its name (ui.pill)."""

    name: str
    state: str
    shown: str
    detail: str


def database_health() -> Health:
    """That it answers is seen by there being a page."""
    used, most = connections_used()
    crowded = used > _CROWDED * most
    detail = f"{used:,} of {most:,} connections"
    return Health(
        "database", *(("stuck", "few connections left") if crowded else ("done", "healthy")), detail
    )


def broker_health() -> Health:
    where, problem = broker.ping()
    if problem:
        return Health("broker", "failed", "unreachable", problem)
    return Health("broker", "done", "healthy", where)


def newest_beat(sweep: datetime | None) -> datetime | None:
    """When beat last started something, as far as this machine knows: what it remembers on its
    own, and `sweep`, the newest that a worker began."""
    # Celery takes a tenth of a second to import, and only pages about it need it.
    from project import beat

    return max((moment for moment in (beat.newest(), sweep) if moment), default=None)


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
