"""A deployment with views for tests: `DJANGO_SETTINGS_MODULE=tests.project.sample`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path, re_path

from project.settings import *
from tests.project.attacking import LARGE

ROOT_URLCONF = __name__
MIDDLEWARE: list[str] = []
WEB_WORKERS = 1
MAX_BODY_BYTES = int(os.environ.get("MAX_BODY_BYTES", "100000"))


def note(line: str) -> None:
    with Path(os.environ["NOTES"]).open("a") as notes:
        notes.write(line + "\n")


def echo(request: HttpRequest) -> HttpResponse:
    meta = {k: v for k, v in request.META.items() if k.startswith(("HTTP_", "REMOTE_", "CONTENT"))}
    return JsonResponse(
        {
            "path": request.path_info,
            "query": request.META["QUERY_STRING"],
            "method": request.method,
            "body": request.body.decode("latin-1"),
            "meta": meta,
        },
        headers={"X-Length": str(len(request.body))},
    )


def orm(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return HttpResponse(str(cursor.fetchone()[0]))


def raw(request: HttpRequest) -> HttpResponse:
    """A query without Django's cursor, as in the hot paths, so that Django never sees an error."""
    connection.ensure_connection()
    row = psycopg.Cursor(connection.connection).execute("SELECT pg_backend_pid()").fetchone()
    return HttpResponse(str(row[0]))


def wait(request: HttpRequest) -> HttpResponse:
    note("waiting")
    while not Path(request.GET["until"]).exists():
        time.sleep(0.01)
    return HttpResponse("done")


def stream(request: HttpRequest) -> HttpResponse:
    def parts() -> Iterator[bytes]:
        try:
            for number in range(int(request.GET["count"])):
                yield b"%07d\n" % number * int(request.GET.get("size", "1"))
        finally:
            note(f"stream ended by {number}")

    return StreamingHttpResponse(parts())


def crash(request: HttpRequest) -> HttpResponse:
    os._exit(9)


def bodies(request: HttpRequest) -> JsonResponse:
    """The request bodies of this process: bytes in memory, and how many are being received."""
    from project.asgi import application

    ledger = application.bodies.ledger
    return JsonResponse({"held": ledger.held, "receiving": len(application.bodies.receiving)})


def large(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"x" * LARGE)


def ok(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [
    path("ok", ok),
    path("orm", orm),
    path("raw", raw),
    path("wait", wait),
    path("stream", stream),
    path("crash", crash),
    path("large", large),
    path("bodies", bodies),
    re_path(r"(?s).*", echo),
]
