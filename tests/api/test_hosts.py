"""The Host header: ALLOWED_HOSTS applies to every path except the probes."""

from __future__ import annotations

import logging

import pytest
from django.test import Client
from pytest_django import Settings

from project.settings import ALLOWED_HOSTS
from tests.builders import Person

pytestmark = pytest.mark.django_db

PATHS = [
    "/api/v1/me",
    "/api/v1/changes/stream",
    "/api/v1/agent-protocol/store/namespaces",
    "/api/schema",
    "/api/docs",
    "/api/nothing",
    "/",
    "/login",
    "/static/nothing.css",
    "/nothing",
]


@pytest.mark.parametrize("path", PATHS)
def test_host__not_allowed__is_a_421_problem_on_every_path(path: str, alice: Person) -> None:
    answer = Client(HTTP_HOST="evil.example").get(
        path, headers={"Authorization": f"Bearer {alice.token}"}
    )
    assert (answer.status_code, answer["Content-Type"]) == (421, "application/problem+json")
    problem = answer.json()
    assert problem["type"] == "/problems/misdirected-request"
    assert problem["instance"] == answer["X-Request-ID"]


@pytest.mark.parametrize(
    "host", ["", "a b", "testserver:x", "testserver,evil.example", "test_server", "[::1", "é"]
)
def test_host__malformed__400(host: str) -> None:
    assert Client(HTTP_HOST=host).get("/api/schema").status_code == 400


@pytest.mark.parametrize("host", ["testserver", "TESTSERVER:81", "testserver.", "a.good.example"])
def test_host__allowed__is_served(host: str, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["testserver", ".good.example"]
    assert Client(HTTP_HOST=host).get("/api/schema").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_host__not_allowed_at_a_probe__is_served(path: str, settings: Settings) -> None:
    """Load balancers and monitors request probes by IP address."""
    settings.METRICS_TOKEN = "secret"
    answer = Client(HTTP_HOST="10.0.0.7:8000").get(path, headers={"Authorization": "Bearer secret"})
    assert answer.status_code == 200


def test_host__not_allowed__is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Client(HTTP_HOST="evil.example" + "x" * 5000).get("/api/v1/me")
    (record,) = caplog.records
    assert record.exc_info is None
    assert "request.host_refused" in record.getMessage()
    assert "evil.example" in record.getMessage()
    assert len(record.getMessage()) < 1000


def test_allowed_hosts__that_of_site_url_is_listed__has_it_once() -> None:
    assert ALLOWED_HOSTS.count("127.0.0.1") == 1
