"""Frozen workspaces: no write is stored after the freeze, reads continue, and jobs skip them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from project.lane import _is_refused
from state_admin.domain.access import Role
from state_admin.models import (
    ApiToken,
    Change,
    Compaction,
    Dispatch,
    Entry,
    EntryRevision,
    IdempotencyRecord,
    Mailbox,
    Message,
    Namespace,
    Run,
    Thread,
    Ticket,
    Webhook,
    WebhookDelivery,
    Workspace,
    dispatches_sql,
    freezing_sql,
    limits,
    traffic,
    webhooks_sql,
)
from state_admin.models.freezing_sql import STATISTICS
from state_admin.models.search import is_behind
from state_admin.models.workspace_tables import TABLES
from state_admin.services import (
    compaction_jobs,
    compactions,
    dead_letters,
    deliveries,
    dispatches,
    indexing,
    maintenance,
    retention,
    storage,
    workspace_freezes,
)
from state_admin.services.actors import actor_of_token
from state_admin.services.errors import Conflict, Unavailable
from state_admin.services.move_problems import WorkspaceMoved
from state_admin.services.token_cache import Credential
from tests.builders import Person, make_namespace, make_person, put
from tests.loops import closing
from tests.patience import PATIENCE
from tests.services.faults import Bystander, failing
from tests.services.moving import reset, triggers
from tests.services.racing import overlap
from tests.services.workspace_copying import make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    reset()


@pytest.fixture
def acme(alice: Person) -> Person:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", {"n": 1})
    return alice


def freeze(person: Person) -> None:
    workspace_freezes.freeze(person.workspace.pk, {}, lambda: None)


def test_freeze__write_in_progress__is_waited_for_and_stored(acme: Person) -> None:
    overlap(lambda: put(acme.actor, "notes", "b", 1), lambda: freeze(acme))
    assert Entry.objects.filter(key="b").exists()
    newest = Change.objects.order_by("xid", "id").last()
    assert newest is not None
    assert newest.kind == "workspace.freeze"


def test_freeze__transaction_that_has_not_written_yet__cannot_write_after_it(acme: Person) -> None:
    """Its first statement ran before the triggers existed."""
    with ThreadPoolExecutor(1) as other, transaction.atomic():
        assert Entry.objects.get(key="a").version == 1
        other.submit(closing(lambda: freeze(acme))).result(PATIENCE)
        with pytest.raises(OperationalError) as refused:
            put(acme.actor, "notes", "a", 2)
        transaction.set_rollback(True)
    assert freezing_sql.is_refusal(refused.value)


def test_freeze__every_table__refuses_changes(ann: Person) -> None:
    """An update of every row, and a deletion, by SQL."""
    freeze(ann)
    for table in TABLES:
        if table.model in STATISTICS:
            continue
        assert table.model._base_manager.exists(), table.name
        column = next(iter(table.fields))
        for statement in (
            f'UPDATE {table.name} SET "{column}" = "{column}"',
            f"DELETE FROM {table.name}",
        ):
            refuse(statement)


def refuse(statement: str) -> None:
    with (
        connection.cursor() as cursor,
        pytest.raises(OperationalError) as refused,
        transaction.atomic(),
    ):
        cursor.execute(statement)
    assert freezing_sql.is_refusal(refused.value), statement


@pytest.fixture
def ann() -> Person:
    return make_workspace()


def test_freeze__other_workspaces__accept_writes(acme: Person, mallory: Person) -> None:
    make_namespace(mallory.actor, "notes")
    freeze(acme)
    assert put(mallory.actor, "notes", "k", 1).version == 1
    assert mallory.api("PUT", "/state/notes/k", {"value": 2}).status_code == 200


def test_freeze__api__refuses_writes_and_serves_reads(acme: Person) -> None:
    freeze(acme)
    ApiToken.objects.all()  # its last use may be recorded
    with transaction.atomic():
        freezing_sql.exempt()
        ApiToken.objects.update(last_used_at=None)
    answer = acme.api("PUT", "/state/notes/a", {"value": 2}, Idempotency_Key="k1")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["type"] == "/problems/workspace-frozen"
    assert acme.api("GET", "/state/notes/a").json()["value"] == {"n": 1}
    assert ApiToken.objects.exclude(last_used_at=None).exists()
    assert not IdempotencyRecord.objects.exists()
    workspace_id = acme.workspace.pk
    with transaction.atomic():
        workspace_freezes.unfreeze(workspace_id, "", "workspace.unfreeze", {})
    answer = acme.api("PUT", "/state/notes/a", {"value": 2}, Idempotency_Key="k1")
    assert (answer.status_code, answer.json()["version"]) == (200, 2)


def test_freeze__repeated_request__gets_its_stored_response(acme: Person) -> None:
    first = acme.api("PUT", "/state/notes/b", {"value": 2}, Idempotency_Key="k1")
    freeze(acme)
    again = acme.api("PUT", "/state/notes/b", {"value": 2}, Idempotency_Key="k1")
    assert (again.status_code, again.content) == (201, first.content), again.json()


def test_moved__api_and_pages__say_where_it_is(acme: Person) -> None:
    Workspace.objects.filter(pk=acme.workspace.pk).update(moved_to="eu2")
    answer = acme.api("GET", "/state/notes/a")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["type"] == "/problems/workspace-moved"
    assert answer.json()["cell"] == "eu2"
    with pytest.raises(WorkspaceMoved):
        actor_of_token(acme.token)
    page = acme.browser().get("/")
    assert page.status_code == 503
    assert b"The workspace is in another cell: eu2" in page.content


def test_freeze__pages__show_it_and_refuse_changes(acme: Person) -> None:
    browser = acme.browser()
    freeze(acme)
    page = browser.get("/tokens")
    assert page.status_code == 200
    assert b"This workspace is being moved to another cell" in page.content
    token = ApiToken.objects.get(workspace=acme.workspace)
    refused = browser.post(f"/tokens/{token.pk}/revoke", {"reason": "test"})
    assert refused.status_code == 503, refused.content
    assert b"The workspace is being moved to another cell and refuses writes" in refused.content


def test_freeze__lane__leaves_writes_to_django(acme: Person) -> None:
    freeze(acme)
    actor = actor_of_token(acme.token)
    assert actor is not None
    credential = Credential(actor, 1, None)
    assert _is_refused({"REQUEST_METHOD": "PUT"}, credential)
    assert not _is_refused({"REQUEST_METHOD": "GET"}, credential)


def test_freeze__twice__is_refused(acme: Person) -> None:
    freeze(acme)
    with pytest.raises(Conflict):
        freeze(acme)


def test_unfreeze__last_frozen_workspace__drops_the_triggers(acme: Person, mallory: Person) -> None:
    freeze(acme)
    freeze(mallory)
    assert triggers() > 20
    for person, left in ((acme, True), (mallory, False)):
        with transaction.atomic():
            workspace_freezes.unfreeze(person.workspace.pk, "", "workspace.unfreeze", {})
        freezing_sql.switch_off()
        assert bool(triggers()) is left


def test_freeze__transaction_that_does_not_end__fails_and_the_sweep_drops_the_triggers(
    acme: Person,
) -> None:
    def freeze_impatiently() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '20ms'")
        freeze(acme)

    with ThreadPoolExecutor(1) as other, transaction.atomic():
        put(acme.actor, "notes", "a", 2)
        with pytest.raises(Unavailable):
            other.submit(closing(freeze_impatiently)).result(PATIENCE)
        assert triggers()
    maintenance.purge_leftovers()
    assert triggers() == 0


def test_sweep__frozen_workspace__leaves_the_triggers(acme: Person) -> None:
    freeze(acme)
    before = triggers()
    maintenance.purge_leftovers()
    assert triggers() == before > 20


def make_everything_due(ann: Person) -> None:
    """Rows for which each job would do something."""
    past = timezone.now() - timedelta(days=400)
    Entry.objects.filter(key="expiring").update(expires_at=past)
    Run.objects.filter(status="running").update(lease_expires_at=past)
    Ticket.objects.filter(status="pending").update(expires_at=past, on_expiry="cancel")
    Change.objects.update(at=past)
    WebhookDelivery.objects.update(finished_at=past, status="delivered")
    WebhookDelivery.objects.filter(test=True).update(status="queued", finished_at=None)
    Dispatch.objects.filter(status="Acked").update(finished_at=past)
    IdempotencyRecord.objects.create(
        scope="old", fingerprint="f", workspace=ann.workspace, created_at=past
    )
    IdempotencyRecord.objects.update(created_at=past)
    EntryRevision.objects.update(at=past)
    Compaction.objects.update(status="queued", available_at=past)
    Thread.objects.update(policy='{"every_hours": 1, "snapshot_keep_last": 1}')
    Message.objects.update(created_at=past)


def test_jobs__frozen_workspace__is_skipped(ann: Person) -> None:
    Workspace.objects.exclude(pk=ann.workspace.pk).delete()
    make_everything_due(ann)
    freeze(ann)
    before = digests()
    jobs: list[Any] = [
        maintenance.expire_entries,
        maintenance.flag_stuck_runs,
        maintenance.expire_tickets,
        maintenance.purge_leftovers,
        limits.measure_usage,
        traffic.measure_queues,
        maintenance.find_lost_compactions,
        compactions.request_scheduled,
        retention.queue_histories,
        retention.queue_snapshots,
        compaction_jobs.run_next,
        deliveries.tick,
        deliveries.purge_deliveries,
        dispatches.settle_mailboxes,
        dead_letters.purge_dispatches,
        indexing.index_entries,
        storage.measure_storage,
    ]
    for job in jobs:
        job()
    assert digests() == before
    assert not is_behind()
    assert not webhooks_sql.has_work()
    assert not dispatches_sql.workspaces_with_due()
    assert not maintenance.any_ticket_due()
    assert not maintenance.any_run_to_flag()
    assert not maintenance.any_compaction_lost()
    assert retention.lost_jobs() == []
    assert all(
        deliveries.deliver(public_id) is None
        for public_id in WebhookDelivery.objects.values_list("public_id", flat=True)
    )
    assert Webhook.objects.active().exists()
    reset()
    assert maintenance.expire_entries()["expired"] == 1
    assert webhooks_sql.has_work()
    assert is_behind()


@dataclass
class FreezeAtWrite(Bystander):
    """Another connection freezes a workspace when the first statement writes or locks a row."""

    workspace_id: int = 0
    done: bool = False

    def statement(self, sql: str, execute: Callable[[], Any]) -> Any:
        if not self.done and re.search("INSERT INTO|UPDATE|DELETE FROM", sql):
            self.done = True
            self.link.execute(
                "UPDATE workspaces SET frozen_at = now() WHERE id = %s", [self.workspace_id]
            )
        return execute()


def test_jobs__workspace_that_is_frozen_meanwhile__continue_with_the_others(ann: Person) -> None:
    mallory = make_person("mallory", "rival", Role.ADMIN)
    make_namespace(mallory.actor, "notes")
    put(mallory.actor, "notes", "expiring", 1, ttl_seconds=3600)
    make_everything_due(ann)
    Compaction.objects.all().delete()
    past = timezone.now() - timedelta(days=400)
    policy = '{"every_hours": 1, "min_gain_tokens": 0, "snapshot_keep_last": 1}'
    Thread.objects.update(policy=policy, created_at=past)
    Namespace.objects.filter(workspace=ann.workspace).update(history_keep_last=1)
    Mailbox.objects.update(due_at=past)
    freezing_sql.switch_on()
    jobs: list[Any] = [
        maintenance.expire_entries,
        maintenance.flag_stuck_runs,
        maintenance.expire_tickets,
        compactions.request_scheduled,
        retention.queue_histories,
        retention.queue_snapshots,
        deliveries.tick,
        dispatches.settle_mailboxes,
    ]
    idle, refused = [], []
    here = connection.connection.info
    address = {"host": here.host, "port": here.port, "user": here.user, "dbname": here.dbname}
    with psycopg.connect(**address, autocommit=True) as link:
        for job in jobs:
            freezing = FreezeAtWrite(link, workspace_id=ann.workspace.pk)
            try:
                with failing(freezing):
                    job()
            except OperationalError:
                refused.append(job.__name__)
            if not freezing.done:
                idle.append(job.__name__)
            with transaction.atomic():
                freezing_sql.exempt()
                Workspace.objects.update(frozen_at=None)
    assert (idle, refused) == ([], [])
    assert Entry.objects.get(namespace__workspace=mallory.workspace, key="expiring").deleted
    assert not Entry.objects.get(namespace__workspace=ann.workspace, key="expiring").deleted


def digests() -> dict[str, Any]:
    """The content of every table, without the statistics."""
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            if table.model not in STATISTICS:
                cursor.execute(
                    f"SELECT count(*), sum(hashtextextended(x::text, 0)) FROM {table.name} x"
                )
                found[table.name] = cursor.fetchone()
    return found
