"""GET /metrics: access, content, number of statements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from project.audit_stream import Destination
from state_admin.models import (
    AuditRow,
    AuditStream,
    Compaction,
    Dispatch,
    DispatchStatus,
    Traffic,
    Workspace,
    WorkspaceMove,
)
from state_admin.models.traffic import Minute, add_calls
from state_admin.services import maintenance, storage
from state_admin.services.compactions import request_compaction
from state_admin.services.dead_letters import replay_dispatch
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.traffic import counter
from tests.builders import Person, make_namespace, make_thread, put, raw

from .stories import create_story

TOKEN = "a token for the monitor"


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN


def scrape(client: Client) -> dict[str, float]:
    response = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; version=0.0.4"
    text = response.content.decode()
    found = re.findall(r"^(\w+(?:\{\w+=\"[^\"]*\"\})?) (\S+)$", text, re.MULTILINE)
    assert len(found) == sum(not line.startswith("#") for line in text.splitlines())
    return {name: float(value) for name, value in found}


def test_metrics__with_data__contain_storage_queues_and_compaction(
    client: Client, alice: Person, mallory: Person
) -> None:
    create_story(alice.actor)
    for person in (alice, mallory):
        make_namespace(person.actor, "notes")
        put(person.actor, "notes", "a", "x" * 100)
    make_thread(alice.actor, "t2")
    request_compaction(actor=alice.actor, thread_id="t2")
    enqueue_dispatch(actor=alice.actor, thread_id="t2", payload=raw(1))
    maintenance.run_sweep("measure storage", storage.measure_storage)
    found = scrape(client)
    assert found['commonhold_storage_rows{part="entries"}'] == 2
    assert found['commonhold_storage_bytes{part="entries"}'] == 204
    assert found['commonhold_dispatches{status="Queued"}'] == 1
    assert found['commonhold_dispatches{status="DeadLetter"}'] == 0
    assert found['commonhold_compactions{status="queued"}'] == 1
    assert found["commonhold_compaction_tokens_saved_today"] > 0
    assert 0 <= found['commonhold_sweep_age_seconds{sweep="measure storage"}'] < 600


def test_metrics__postponed_compaction__is_not_queued_until_it_is_due(
    client: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    request_compaction(actor=alice.actor, thread_id="t1")
    queued = 'commonhold_compactions{status="queued"}'
    for hours, expected in ((1, 0), (-1, 1)):
        Compaction.objects.update(available_at=Now() + timedelta(hours=hours))
        assert scrape(client)[queued] == expected


def test_metrics__workspace_that_moves__has_no_queues(client: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    request_compaction(actor=alice.actor, thread_id="t1")
    enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw(1))
    Workspace.objects.update(frozen_at=Now())
    found = scrape(client)
    assert found['commonhold_compactions{status="queued"}'] == 0
    assert found['commonhold_dispatches{status="Queued"}'] == 0


def test_metrics__dead_letters__are_new_for_an_hour_unless_requeued(
    client: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    for _ in range(3):
        enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw(1))
    old, new, requeued = Dispatch.objects.order_by("pk")
    rows = Dispatch.objects.exclude(pk=requeued.pk)
    rows.update(status=DispatchStatus.DEAD, finished_at=Now())
    assert scrape(client)["commonhold_new_dead_letters"] == 2
    # As in a workspace that is moved here.
    rows.filter(pk=old.pk).update(finished_at=Now() - timedelta(hours=1, seconds=1))
    found = scrape(client)
    assert found["commonhold_new_dead_letters"] == 1
    assert found['commonhold_dispatches{status="DeadLetter"}'] == 2
    replay_dispatch(actor=alice.actor, dispatch_id=new.public_id)
    assert scrape(client)["commonhold_new_dead_letters"] == 0


def test_metrics__sweep_that_ends_with_an_error__has_failed_until_one_succeeds(
    client: Client, db: None
) -> None:
    def fail() -> dict[str, int]:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        maintenance.run_sweep("x", fail)
    found = scrape(client)
    assert found['commonhold_sweep_failed{sweep="x"}'] == 1
    assert found['commonhold_sweep_age_seconds{sweep="x"}'] < 600
    maintenance.run_sweep("x", dict)
    assert scrape(client)['commonhold_sweep_failed{sweep="x"}'] == 0


def test_metrics__calls__are_counters_unaffected_by_the_purge(
    client: Client, alice: Person, mallory: Person
) -> None:
    old = int(time.time()) // 60 - 49 * 60
    add_calls(
        {
            Minute(alice.workspace.pk, old): (5, 3, 1, 2),
            Minute(alice.workspace.pk, old + 1): (1, 0, 0, 0),
        }
    )
    add_calls({Minute(mallory.workspace.pk, old): (10, 0, 2, 1)})
    text = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).content.decode()
    assert "# TYPE commonhold_calls_total counter" in text
    assert "# TYPE commonhold_dispatches gauge" in text
    for _ in range(2):
        found = scrape(client)
        assert found['commonhold_calls_total{outcome="read"}'] == 16
        assert found['commonhold_calls_total{outcome="write"}'] == 3
        assert found['commonhold_calls_total{outcome="conflict"}'] == 3
        assert found['commonhold_calls_total{outcome="failure"}'] == 3
        maintenance.purge_leftovers()
        assert not Traffic.objects.timed().exists()
    add_calls({Minute(alice.workspace.pk, old): (0, 1, 0, 0)})
    assert scrape(client)['commonhold_calls_total{outcome="write"}'] == 4


def test_metrics__calls_of_the_api__are_included_after_a_flush(
    client: Client, alice: Person
) -> None:
    make_namespace(alice.actor)
    counter.flush()
    before = scrape(client)['commonhold_calls_total{outcome="write"}']
    assert alice.api("PUT", "/state/notes/k", {"value": 1}).status_code == 201
    counter.flush()
    assert scrape(client)['commonhold_calls_total{outcome="write"}'] == before + 1


def test_metrics__audit_stream__has_its_lag_and_failures(
    client: Client, alice: Person, settings: Any, tmp_path: Path
) -> None:
    make_namespace(alice.actor)
    names = [f"commonhold_audit_stream_{name}" for name in ("lag_rows", "failures_total")]
    assert not {name for name in scrape(client) if "audit_stream" in name}
    settings.AUDIT_STREAM = Destination("file:///x", "file", "", 0, str(tmp_path))
    rows = AuditRow.objects.count()
    AuditRow.objects.filter(pk=AuditRow.objects.earliest("pk").pk).update(
        at=Now() - timedelta(hours=1)
    )
    found = scrape(client)
    assert [found[name] for name in names] == [rows, 0]
    assert 3600 <= found["commonhold_audit_stream_lag_seconds"] < 4000

    newest = AuditRow.objects.latest("pk").pk
    AuditStream.objects.create(destination="file:///x", position=newest, failures=3)
    AuditStream.objects.create(destination="file:///other", failures=5)
    found = scrape(client)
    assert [found[name] for name in names] == [0, 3]
    assert found["commonhold_audit_stream_lag_seconds"] == 0


@pytest.mark.parametrize("state", ["frozen", "closing"])
def test_metrics__workspace_frozen_by_a_move__has_the_time_since(
    client: Client, db: None, state: str
) -> None:
    assert scrape(client)["commonhold_frozen_seconds"] == 0
    since = timezone.now() - timedelta(hours=1)
    for number, (each, at) in enumerate([(state, since), ("moved", since - timedelta(hours=1))]):
        WorkspaceMove.objects.create(
            move_id=f"m{number}", slug=f"w{number}", side="source", state=each, updated_at=at
        )

    assert 3600 <= scrape(client)["commonhold_frozen_seconds"] < 4000


def test_metrics__database_server__has_its_state(client: Client, db: None) -> None:
    found = scrape(client)
    assert found['commonhold_database_connections{kind="used"}'] >= 1
    assert (
        found['commonhold_database_connections{kind="used"}']
        <= found['commonhold_database_connections{kind="limit"}']
    )
    assert found["commonhold_standbys"] == 0
    assert 0 < found["commonhold_transaction_age"] < 2**31
    assert "commonhold_wal_archive_failing" not in found


def test_metrics__no_data__are_zero(client: Client, db: None) -> None:
    found = scrape(client)
    assert found['commonhold_storage_bytes{part="messages"}'] == 0
    assert found['commonhold_calls_total{outcome="conflict"}'] == 0


def test_metrics__any_amount_of_data__use_two_statements(
    alice: Person, count_queries: Callable[[Client, str], int], settings: Any
) -> None:
    client = Client(headers={"Authorization": f"Bearer {TOKEN}"})
    assert count_queries(client, "/metrics") == 2
    settings.AUDIT_STREAM = Destination("file:///x", "file", "", 0, "/x")
    assert count_queries(client, "/metrics") == 2


@pytest.mark.parametrize("presented", ["", "Bearer wrong", "Bearer é", "Basic x"])
def test_metrics__without_the_token__are_refused(presented: str, client: Client) -> None:
    response = client.get("/metrics", headers={"Authorization": presented})
    assert (response.status_code, response.content) == (401, b"")


def test_metrics__no_token_configured__are_404(client: Client, settings: Any, db: None) -> None:
    settings.METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
