"""A client generated from the committed document, and used against a live server."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from state_admin.contract import OPERATIONS
from state_admin.management.commands.write_docs import OPENAPI
from tests.builders import Person, make_namespace, make_state_key, make_thread

PACKAGE = "generated_client"

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated package. A warning means that a part of the document was left out."""
    folder = tmp_path_factory.mktemp("client") / PACKAGE
    # The generator formats its output with ruff, which it looks for in PATH.
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    generator = shutil.which("openapi-python-client", path=tools)
    assert generator is not None
    done = subprocess.run(
        [
            *(generator, "generate", "--meta", "none", "--fail-on-warning"),
            *("--path", OPENAPI, "--output-path", folder),
        ],
        env={**os.environ, "PATH": tools, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "WARNING" not in output.upper(), output
    assert "Unable to" not in output, output
    return folder


@pytest.fixture
def module(package: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(package.parent)
    return lambda name: importlib.import_module(f"{PACKAGE}.{name}")


def test_generate__committed_document__has_every_operation(package: Path) -> None:
    modules = {path.stem for path in package.glob("api/*/*.py") if path.stem != "__init__"}
    assert modules == set(OPERATIONS)


@pytest.mark.django_db(transaction=True)
def test_generated_client__core_operations__work(
    module: Callable[[str], Any], live_server: LiveServer, alice: Person
) -> None:
    make_namespace(alice.actor)
    make_state_key(alice.actor, "plan", default=[], reducer="append")
    make_thread(alice.actor, "t1")
    m = module("models")
    client = module("client").AuthenticatedClient(
        base_url=live_server.url, token=alice.token, raise_on_unexpected_status=True
    )

    def send(name: str, *path: str, **rest: Any) -> Any:
        return module(f"api.{name}").sync_detailed(*path, client=client, **rest)

    with client:
        body = m.Write(value={"goal": "Ship it"}, tags=["x"])
        written = send("entries.write_entry", "notes", "a/b", body=body, if_none_match="*")
        assert (written.status_code, written.headers["ETag"]) == (201, '"1"')
        assert isinstance(written.parsed, m.Entry)
        assert (written.parsed.value, written.parsed.tags) == ({"goal": "Ship it"}, ["x"])

        stale = send("entries.write_entry", "notes", "a/b", body=body, if_match='"7"')
        assert (stale.status_code, type(stale.parsed)) == (412, m.Problem)

        put = m.BatchOperationOp.PUT
        get = m.BatchOperationOp.GET
        operations = [
            m.BatchOperation(op=put, namespace="notes", key="c", value=[1, None]),
            m.BatchOperation(op=get, namespace="notes", key="a/b"),
        ]
        batch = send("entries.run_batch", body=m.Batch(operations=operations))
        assert [(each.status, each.entry.value) for each in batch.parsed.results] == [
            (201, [1, None]),
            (200, {"goal": "Ship it"}),
        ]

        run = send("runs.start_run", "t1", body=m.NewRun(id="r1", agent_id="planner"))
        assert (run.status_code, run.parsed.status) == (201, m.RunStatus.RUNNING)

        # Members of free-form objects: the generator names their classes by their place.
        waiting = {
            "reason": "tool_permission",
            "tickets": [{"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}],
        }
        step = m.Commit(
            fencing_token=run.parsed.fencing_token,
            base_revision=run.parsed.last_revision,
            updates=[m.Update(key="plan", update="search")],
            messages=[m.CommitMessagesItem.from_dict({"role": "user", "content": "Hi"})],
            reads=[m.EntryRead(namespace="notes", key="a/b", version=1)],
            run=m.RunFields.from_dict({"status": "waiting", "waiting": waiting}),
        )
        committed = send("runs.commit", "r1", body=step, idempotency_key="step-1").parsed
        assert isinstance(committed, m.Committed)
        assert "plan" in committed.touched_keys
        assert committed.message_count == 1
        assert committed.run.status == m.RunStatus.WAITING

        decision = m.Decision(action=m.DecisionAction.RESUME, payload={"approved": True})
        ticket = send("tickets.decide_ticket", "k1", body=decision).parsed
        assert isinstance(ticket, m.Ticket)
        assert (ticket.status, ticket.payload) == (m.TicketStatus.RESUMED, {"approved": True})

        (listed,) = send("tickets.list_run_tickets", "r1").parsed.items
        assert listed == ticket
