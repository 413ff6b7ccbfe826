"""The baseline: a Django project with one DRF view that does nothing, without authentication.

Served by granian's WSGI, as Django usually is: `granian --interface wsgi
benchmarks.empty_view:application`.
"""

from __future__ import annotations

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="a benchmark",
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
        "UNAUTHENTICATED_USER": None,
    },
)
application = get_wsgi_application()

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class Empty(APIView):
    def get(self, request: Request) -> Response:
        return Response({})

    def put(self, request: Request) -> Response:
        return Response({"members": len(request.data)})


urlpatterns = [path("empty", Empty.as_view())]
