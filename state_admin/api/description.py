"""The description of the API: the OpenAPI document, and a page that shows it. Neither needs a
token."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import get_conditional_response
from rest_framework.request import Request
from rest_framework.views import APIView

from state_admin.services.errors import BadRequest


class _Description(APIView):
    """A view with one media type, whatever `Accept` says: without content negotiation."""

    authentication_classes = []
    http_method_names = ["get", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        pass


class SchemaDocument(_Description):
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.query_params.dict() not in ({}, {"format": "json"}):
            raise BadRequest("the only query parameter is format=json")

    def get(self, request: Request) -> HttpResponse:
        content, etag = _read_document()
        response = HttpResponse(content, content_type="application/json")
        response["ETag"] = etag
        response["Cache-Control"] = "no-cache"  # may be cached, and must be revalidated
        return get_conditional_response(request._request, etag, None, response) or response


@functools.cache
def _read_document() -> tuple[bytes, str]:
    content = settings.API_DOCUMENT.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()}"'


class DocsPage(_Description):
    def get(self, request: Request) -> HttpResponse:
        return render(request._request, "api_docs.html")
