"""The counts of a real server are stored in the database."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from state_admin.models import Traffic
from tests.builders import Person
from tests.project.running import Running
from tests.streams.listening import web_on_this_database


@pytest.mark.django_db(transaction=True)
def test_flush__server_shuts_down__loses_no_call(
    alice: Person, start: Callable[..., Running]
) -> None:
    server = web_on_this_database(start, WEB_WORKERS="1")
    for _ in range(3):
        status, _ = server.get("/api/v1/me", Authorization=f"Bearer {alice.token}")
        assert status == 200
    server.signal(signal.SIGTERM)
    server.wait()
    found = Traffic.objects.timed().filter(workspace=alice.workspace).values_list("reads", "writes")
    assert [sum(line) for line in zip(*found, strict=True)] == [3, 0]
