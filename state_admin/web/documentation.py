"""Serves the documentation built by `make docs`, without login or database access.

The interactive API reference is at /api/docs.
"""

from __future__ import annotations

from html import escape
from typing import Final

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_safe
from django.views.static import serve

# The server of the commands in the pages: one with default settings.
_EXAMPLE_SERVER: Final = b"http://127.0.0.1:8000"


@require_safe
def documentation(request: HttpRequest, file: str) -> HttpResponseBase:
    """A file of the built site; for a folder, its index.html. 404 if it does not exist. The commands
    of a page have the address of this server, so that readers can copy them."""
    if not (settings.DOCUMENTATION_ROOT / "index.html").exists():
        unfinished = render(request, "documentation.html")
        unfinished["Refresh"] = "3"
        return unfinished
    if not file or file.endswith("/"):
        file += "index.html"
    try:
        response = serve(request, file, document_root=str(settings.DOCUMENTATION_ROOT))
    except SuspiciousFileOperation:  # a path outside the site
        raise Http404 from None
    if file.endswith(".html") and isinstance(response, FileResponse):
        page = b"".join(response).replace(_EXAMPLE_SERVER, escape(settings.SITE_URL).encode())
        response = HttpResponse(page, headers={"Last-Modified": response["Last-Modified"]})
    response["Cache-Control"] = "no-cache"
    return response


@require_safe
def documentation_root(request: HttpRequest) -> HttpResponseBase:
    return redirect("web:documentation", file="")


urlpatterns = [
    path("docs", documentation_root, name="documentation-root"),
    path("docs/<path:file>", documentation, name="documentation"),
    path("docs/", documentation, {"file": ""}, name="documentation"),
]
