"""Figures for a monitor, in the text format of Prometheus. Read at the time of asking, so any of the
web processes may answer."""

from __future__ import annotations

import hmac
from itertools import groupby
from typing import Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from state_admin.models.metrics_sql import Figure, read_figures

# By name: what it is, and what its label tells.
_HELP: Final = {
    "commonhold_storage_bytes": ("Bytes of JSON text stored, as last measured", "part"),
    "commonhold_storage_rows": ("Rows stored, as last measured", "part"),
    "commonhold_compaction_tokens_saved_today": ("Tokens folded away today (UTC)", ""),
    "commonhold_compaction_rows_removed_today": ("Rows removed today (UTC)", ""),
    "commonhold_dispatches": ("Dispatches in mailboxes", "status"),
    "commonhold_compactions": ("Compactions that wait or run", "status"),
    "commonhold_calls_total": ("Calls of the API that were counted", "outcome"),
    "commonhold_sweep_age_seconds": ("Seconds since a sweep last ended", "sweep"),
}


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """404 unless METRICS_TOKEN is set; 401 for who does not bring it as a bearer token."""
    if not settings.METRICS_TOKEN:
        raise Http404
    presented = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(presented.encode(), settings.METRICS_TOKEN.encode()):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(_text(read_figures()), content_type="text/plain; version=0.0.4")


def _text(figures: list[Figure]) -> str:
    lines = []
    for name, each in groupby(sorted(figures), key=lambda figure: figure.name):
        help_text, label = _HELP[name]
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        for figure in each:
            of = f'{{{label}="{figure.label}"}}' if label else ""
            lines.append(f"{name}{of} {figure.value:.15g}")
    return "\n".join(lines) + "\n"


urlpatterns = [path("metrics", metrics, name="metrics")]
