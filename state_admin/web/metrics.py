"""Metrics in the text format of Prometheus. They are read from the database per request, so that
every web process returns the same."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from itertools import groupby

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from state_admin.models.metrics_sql import METRICS, MetricSample, read_figures
from state_admin.services import replicas


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics. 404 if METRICS_TOKEN is not set; 401 without it as a bearer token."""
    if not settings.METRICS_TOKEN:
        raise Http404
    presented = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(presented.encode(), settings.METRICS_TOKEN.encode()):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(
        _text([*read_figures(), *_replica_figures()]), content_type="text/plain; version=0.0.4"
    )


def _replica_figures() -> Iterator[MetricSample]:
    for replica in replicas.describe():
        yield MetricSample("commonhold_replica_used", replica.name, float(not replica.reason))
        if replica.lag_bytes is not None:
            yield MetricSample("commonhold_replica_lag_bytes", replica.name, replica.lag_bytes)
        if replica.lag_seconds is not None:
            yield MetricSample("commonhold_replica_lag_seconds", replica.name, replica.lag_seconds)


def _text(figures: list[MetricSample]) -> str:
    lines = []
    for name, each in groupby(sorted(figures), key=lambda figure: figure.name):
        help_text, label = METRICS[name]
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        for figure in each:
            of = f'{{{label}="{figure.label}"}}' if label else ""
            lines.append(f"{name}{of} {figure.value:.15g}")
    return "\n".join(lines) + "\n"


urlpatterns = [path("metrics", metrics, name="metrics")]
