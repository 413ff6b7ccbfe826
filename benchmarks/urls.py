"""The product's URLs, and an authenticated view that does nothing."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import include, path
from rest_framework.request import Request

from state_admin.rest.endpoint import Endpoint


class Empty(Endpoint):
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(b"{}", content_type="application/json")


urlpatterns = [path("api/v1/bench-empty", Empty.as_view()), path("", include("project.urls"))]
