"""Pages of other origins: CORS_ORIGINS, and no access without it."""

from __future__ import annotations

import http.client
from collections.abc import Callable

import pytest
from django.conf import settings

from state_admin.contract.openapi import REQUEST_HEADERS
from tests.builders import Person
from tests.patience import PATIENCE
from tests.project.running import Running
from tests.streams.listening import web_on_this_database

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = "https://app.example"


def ask(web: Running, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=names)
    return connection.getresponse()


def preflight(web: Running, path: str, origin: str = ORIGIN) -> http.client.HTTPResponse:
    asked = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "if-match"}
    return ask(web, "OPTIONS", path, Origin=origin, **asked)


def allowed(answer: http.client.HTTPResponse) -> str | None:
    return answer.headers["Access-Control-Allow-Origin"]


def test_cors__no_setting__allows_no_origin(start: Callable[..., Running], alice: Person) -> None:
    web = web_on_this_database(start, WEB_WORKERS="1")
    assert allowed(preflight(web, "/api/v1/state/notes/k")) is None
    answer = ask(web, "GET", "/api/v1/me", Origin=ORIGIN, Authorization=f"Bearer {alice.token}")
    assert answer.status == 200
    assert allowed(answer) is None


def test_cors__configured_origins__may_call_the_api_with_a_token(
    start: Callable[..., Running], alice: Person
) -> None:
    web = web_on_this_database(start, WEB_WORKERS="1", CORS_ORIGINS=f"{ORIGIN},http://b.example")
    before = preflight(web, "/api/v1/state/notes/k")
    assert (before.status, allowed(before)) == (200, ORIGIN)
    headers = before.headers["Access-Control-Allow-Headers"]
    assert {"authorization", "if-match", "idempotency-key", "last-event-id", "run-id"} <= set(
        headers.split(", ")
    )
    assert "PATCH" in before.headers["Access-Control-Allow-Methods"]

    bearer = f"Bearer {alice.token}"
    for path, status in [("/api/v1/me", 200), ("/api/v1/threads/absent", 404)]:
        answer = ask(web, "GET", path, Origin=ORIGIN, Authorization=bearer)
        assert (answer.status, allowed(answer)) == (status, ORIGIN)
        exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
        assert {"ETag", "Idempotent-Replayed", "Location"} <= {*exposed}
        assert answer.headers["Access-Control-Allow-Credentials"] is None
    stream = ask(web, "GET", "/api/v1/changes/stream", Origin=ORIGIN, Authorization=bearer)
    assert (stream.status, allowed(stream)) == (200, ORIGIN)

    assert allowed(preflight(web, "/api/v1/me", "https://other.example")) is None
    assert allowed(ask(web, "GET", "/login", Origin=ORIGIN)) is None


def test_cors__every_request_header_of_the_contract__may_be_sent() -> None:
    assert {name.lower() for name in REQUEST_HEADERS} <= {*settings.CORS_ALLOW_HEADERS}
