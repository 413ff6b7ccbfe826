"""The API's paths, below /api/."""

from __future__ import annotations

from django.urls import path, re_path

from state_admin import api
from state_admin.rest.endpoint import UnknownPath
from state_admin.rest.routes import routes

from . import description

app_name = "api"

urlpatterns = [
    *routes(api),
    path("schema", description.SchemaDocument.as_view(), name="schema"),
    path("docs", description.DocsPage.as_view(), name="docs"),
    re_path(r"^(?P<rest>(?s:.*))\Z", UnknownPath.as_view(), name="unknown"),
]
