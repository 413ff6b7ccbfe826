"""The log lines of requests, jobs and deliveries have the ids of what they are about."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.project.observing import Server, observed
from tests.receiving import answer, receiving

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with observed() as server:
        yield server


def test_request__crashes__line_has_its_ids(server: Server) -> None:
    server.execute(b"ALTER TABLE messages ADD CONSTRAINT broken CHECK (false) NOT VALID")
    message = {"messages": [{"role": "user", "content": "hello"}]}
    server.call("POST", "/threads/t1/messages", message, Run_Id="r1", X_Request_Id="crash-1")
    server.execute(b"ALTER TABLE messages DROP CONSTRAINT broken")
    line = server.line("database.error")
    expected = {
        "request_id": "crash-1", "actor": "token:1", "workspace": server.workspace,
        "run_id": "r1", "thread_id": "t1", "role": "web",
    }  # fmt: skip
    assert expected.items() <= line.items()


def test_request__without_actor__line_has_no_ids_of_an_earlier_one(server: Server) -> None:
    server.call("GET", "/threads/t1", X_Request_Id="earlier")
    server.running.get("/healthz", Host="elsewhere.example")
    assert server.running.get("/login", Host="elsewhere.example", X__Request__Id="x-1")[0] == 421
    refused = server.line("request.host_refused", request_id="x-1")
    assert not {"actor", "workspace", "run_id", "thread_id"} & refused.keys()


def test_request__refused_before_django__line_has_the_id_of_its_response(server: Server) -> None:
    status, body = server.running.get("/api/v1/state/n/%ff")
    assert status == 400
    assert server.line("request.refused", request_id=json.loads(body)["instance"])


def test_job__queued_by_a_request__line_has_the_ids_of_the_request(server: Server) -> None:
    server.call("POST", "/threads", {"id": "t2"})
    server.call("POST", "/threads/t2/compactions", {}, X_Request_Id="compact-1")
    line = server.line("compaction.finished", request_id="compact-1")
    expected = {
        "actor": "token:1", "workspace": server.workspace, "thread_id": "t2", "role": "worker",
        "task": "state_admin.tasks.compaction.run",
    }  # fmt: skip
    assert expected.items() <= line.items()
    assert line["job_id"]


def test_delivery__of_a_run__line_has_the_ids_of_the_change(server: Server) -> None:
    with receiving(answer(200)) as receiver:
        hook = server.call("POST", "/webhooks", {"name": "h", "url": receiver.url})
        server.call("POST", "/threads", {"id": "t3"})
        server.call("POST", "/threads/t3/runs", {"id": "r3"})
        line = server.line("webhook.attempt", run_id="r3")
    expected = {"workspace": server.workspace, "thread_id": "t3", "webhook_id": hook["id"]}
    assert expected.items() <= line.items()
    assert "actor" not in line
