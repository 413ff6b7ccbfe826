"""The house itself: versions, database, migrations, sweeps. For whoever runs the server."""

from __future__ import annotations

import platform
from typing import Any

import django
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from state_admin.models import Sweep
from state_admin.models.database import describe_database

from .actors import page
from .health import migrations_applied, newest_sweep, worker_state
from .htmx import Request, render


@require_safe
@page
def system(request: Request) -> HttpResponse:
    context: dict[str, Any] = {
        "database": describe_database(),
        "migrated": migrations_applied(),
        "worker": worker_state(newest_sweep()),
        "sweeps": Sweep.objects.order_by("name"),
        "python": platform.python_version(),
        "django": django.get_version(),
    }
    return render(request, "system.html", context, part="system")


urlpatterns = [path("system", system, name="system")]
