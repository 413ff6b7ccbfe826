"""The root of all URL patterns. The API and the pages define their own."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("api/", include("state_admin.protocols.urls")),
    path("api/", include("state_admin.api.urls")),
    path("", include("state_admin.web.urls")),
]
handler404 = "project.errors.not_found"
handler403 = "project.errors.forbidden"
handler400 = "project.errors.bad_request"
handler500 = "project.errors.server_error"
