"""/favicon.ico, which browsers request for responses without a page: JSON, CSV, and problems."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import path
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe


@require_safe
@cache_control(public=True, max_age=86_400)
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"))


urlpatterns = [path("favicon.ico", favicon, name="favicon")]
