"""Liveness and readiness, for probes and supervisors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Literal, NamedTuple

from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from project import broker, migrations
from state_admin.models.database import CROWDED, connections_used
from state_admin.models.sweeps import WORKER_SILENCE, newest_sweep

# Celery beat starts a task every second.
BEAT_SILENCE = timedelta(minutes=1)
# The time in which a worker begins its first sweep.
STARTING_SECONDS = 30.0

_STARTED = monotonic()

_migrated = False


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Liveness: this process responds. Checks nothing else, and is called on the event loop of a web
    process (project/asgi.py)."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Readiness: 200 if requests can be served, else 503. A silent worker is reported but does not
    cause 503, since a restart of the web server would not help."""
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
    """Whether the database has every migration of this version. A True is remembered."""
    global _migrated
    if not _migrated:
        _migrated = not migrations.find_due()
    else:
        connection.ensure_connection()
    return _migrated


def worker_state(last_seen: datetime | None) -> Literal["running", "starting", "silent"]:
    """The state of the worker by its last sweep. Sweeps start every minute, so silence means that
    no worker runs, except shortly after the start of this process, when its worker may also have
    just started."""
    if last_seen is not None and datetime.now(UTC) - last_seen < WORKER_SILENCE:
        return "running"
    return "starting" if monotonic() - _STARTED < STARTING_SECONDS else "silent"


class Health(NamedTuple):
    """The health of a component; `state` is the colour of its name (ui.pill)."""

    name: str
    state: str
    text: str
    detail: str


def database_health() -> Health:
    """The health of the database by its number of connections."""
    used, most = connections_used()
    crowded = used > CROWDED * most
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
    """When beat last started a task, as known on this machine: from beat's own file, or from
    `sweep`, the newest sweep."""
    # Importing Celery takes 0.1 s, and only pages about the worker need it.
    from project import beat

    return max((moment for moment in (beat.newest(), sweep) if moment), default=None)


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
