"""Deletions of workspaces: what can be reached afterwards, what remains, and crashes and writes in
between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from project.audit_stream import Destination
from state_admin.domain import config
from state_admin.domain.access import Role
from state_admin.models import (
    ApiToken,
    AuditRow,
    Entry,
    Membership,
    MoveSide,
    MoveState,
    Thread,
    User,
    WebhookDelivery,
    Workspace,
    WorkspaceMove,
    freezing_sql,
    webhooks_sql,
    workspace_moves_sql,
)
from state_admin.models.workspace_tables import TABLES
from state_admin.services import (
    audit_stream,
    deliveries,
    listeners,
    maintenance,
    tokens,
    verification,
    webhooks,
    workspace_deletions,
    workspace_freezes,
    workspace_transfers,
)
from state_admin.services.access import administers_all
from state_admin.services.actors import actor_of_token, actor_of_user, system_actor
from state_admin.services.errors import Conflict, Forbidden, NotFound, Problem
from state_admin.services.token_cache import cache
from state_admin.services.workspace_deletions import any_to_remove, delete_workspace, remove_deleted
from state_admin.services.workspaces import ensure_workspace, find_workspace
from tests.builders import Person, make_namespace, make_person, make_thread, put
from tests.loops import in_thread
from tests.project.running import wait_for
from tests.services.moving import reset
from tests.services.racing import race, split
from tests.services.test_audit_stream import written
from tests.services.workspace_copying import digests, make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acme(alice: Person) -> Person:
    make_namespace(alice.actor, "notes")
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", {"n": number})
    make_thread(alice.actor, "t1")
    return alice


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may be removed at once, in batches of one or two."""
    monkeypatch.setattr(workspace_deletions, "_GRACE", timedelta(0))
    monkeypatch.setattr(workspace_transfers, "_DELETED_AT_ONCE", 2)


def delete(slug: str = "acme", **options: Any) -> None:
    delete_workspace(slug=slug, contents="delete", **options)


def rows_of(workspace_id: int) -> dict[str, int]:
    """The number of rows that belong to a workspace, by table: every table that says so, and those of
    other owners."""
    found = {
        table.name: int(
            _fetch(f"SELECT count(*) {workspace_moves_sql.rows_of(table, workspace_id)}")
        )
        for table in TABLES
    }
    named = """SELECT string_agg(table_name, ' ') FROM information_schema.columns
        WHERE column_name = 'workspace_id' AND table_schema = current_schema()"""
    for name in str(_fetch(named)).split():
        found[name] = int(
            _fetch(f"SELECT count(*) FROM {name} WHERE workspace_id = {workspace_id}")
        )
    return {name: count for name, count in found.items() if count}


def _fetch(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


# Afterwards ----------------------------------------------------------------------------------------


def test_delete__everyone__is_refused_at_once(acme: Person, bob: Person) -> None:
    actor = acme.actor
    delete()

    assert actor_of_token(acme.token) is None
    assert acme.api("GET", "/me").status_code == 401
    assert actor_of_user(acme.user) is None
    assert acme.browser().get("/").status_code == 403
    assert listeners._find_live({actor.id}) == {}
    with pytest.raises(NotFound):
        find_workspace(replace(actor, operator=True), "acme")
    assert User.objects.filter(username="alice").exists()


@pytest.mark.usefixtures("at_once")
def test_delete__name__is_free_at_once_and_leads_to_nothing_of_the_old_workspace(
    acme: Person,
) -> None:
    old = acme.workspace.pk
    delete()
    new, created = ensure_workspace("acme")
    assert created
    again = make_person("alice2", "acme", Role.ADMIN)
    make_namespace(again.actor, "notes", default=0)
    assert again.api("GET", "/state/notes/k1").json()["exists"] is False
    assert again.api("PUT", "/state/notes/k1", {"value": 7}).json()["version"] == 1
    assert acme.api("GET", "/state/notes/k1").status_code == 401
    before = rows_of(new.pk)

    while any_to_remove():
        remove_deleted()

    assert (rows_of(old), rows_of(new.pk)) == ({}, before)
    delete()  # the second one of this name


def test_delete__cursor_of_the_old_workspace__reads_only_the_new_one(acme: Person) -> None:
    cursor = acme.api("GET", "/changes?limit=1").json()["next_cursor"]
    delete()
    again = make_person("alice2", "acme", Role.ADMIN)
    make_namespace(again.actor, "fresh")
    page = again.api("GET", f"/changes?cursor={cursor}&wait=5").json()
    seen = {item["namespace"] for item in page["items"]}
    assert "fresh" in seen
    assert seen <= {None, "fresh", *config.NAMESPACES}


@pytest.mark.usefixtures("at_once")
def test_remove__every_table__is_empty_and_others_keep_their_rows(mallory: Person) -> None:
    make_namespace(mallory.actor, "notes")
    put(mallory.actor, "notes", "k", 1)
    ann = make_workspace()
    kept, content = rows_of(mallory.workspace.pk), digests("rival")
    assert {table.name for table in TABLES} <= {*rows_of(ann.workspace.pk), "workspaces"}

    delete("demo")
    assert verification.verify_state().faults == []
    report = remove_deleted()

    assert report["workspaces"] == 1
    assert rows_of(ann.workspace.pk) == {}
    assert (rows_of(mallory.workspace.pk), digests("rival")) == (kept, content)
    assert not any_to_remove()


def test_remove__requests_in_progress__can_end(acme: Person) -> None:
    delete()
    assert not any_to_remove()
    assert remove_deleted() == {"rows": 0, "workspaces": 0}
    Workspace.objects.deleted().update(frozen_at=timezone.now() - timedelta(seconds=11))
    assert any_to_remove()


def test_delete__webhook__delivers_nothing_more(acme: Person) -> None:
    webhooks.create_webhook(actor=acme.actor, name="hook", url="https://receiver.example/")
    put(acme.actor, "notes", "k1", 2)
    deliveries.tick()
    assert webhooks_sql.has_work()
    waiting = WebhookDelivery.objects.get(kind="entry.put")

    delete()

    assert not webhooks_sql.has_work()
    assert deliveries.deliver(waiting.public_id) is None


def test_delete__superfluous_trigger_of_a_freeze__is_dropped(acme: Person) -> None:
    freezing_sql.switch_on()
    delete()
    freezing_sql.switch_off()
    assert not freezing_sql.is_on()


@pytest.mark.usefixtures("at_once")
def test_delete__while_another_workspace_is_frozen__succeeds(acme: Person, mallory: Person) -> None:
    workspace_freezes.freeze(mallory.workspace.pk, {}, lambda: None)
    try:
        delete()
        assert remove_deleted()["workspaces"] == 1
    finally:
        reset()


def test_delete__administrator_of_all_other_workspaces__administers_all(acme: Person) -> None:
    assert administers_all(acme.actor)
    make_person("mallory", "rival", Role.ADMIN)
    assert not administers_all(acme.actor)
    delete("rival")
    assert administers_all(acme.actor)


# The record ------------------------------------------------------------------------------------------


def test_delete__record__remains_where_operator_tokens_are(acme: Person, mallory: Person) -> None:
    shell = system_actor(mallory.workspace.pk, "operator")
    tokens.create_token(actor=shell, name="terraform", role=Role.ADMIN, operator=True)
    delete(reason="contract ended")

    rows = AuditRow.objects.filter(action="workspace.delete").order_by("workspace_id")
    seen = {(each.workspace_id, each.key, each.actor_name, each.reason) for each in rows}
    assert seen == {
        (workspace.pk, "acme", "operator", "contract ended")
        for workspace in (acme.workspace, mallory.workspace)
    }
    assert rows[0].detail == {"entries": 5, "threads": 1}


@pytest.mark.usefixtures("at_once")
def test_remove__audit_that_was_not_streamed__waits_and_has_the_name(
    acme: Person, settings: Any, tmp_path: Path
) -> None:
    settings.AUDIT_STREAM = Destination(f"file://{tmp_path}/a", "file", "", 0, f"{tmp_path}/a")
    delete()
    assert remove_deleted() == {"rows": 0, "workspaces": 0}

    wait_for(lambda: not any(audit_stream.stream_audit().values()), "all rows are sent")

    assert remove_deleted()["workspaces"] == 1
    last = [row for row in written(tmp_path / "a") if row["workspace"] == "acme"][-1]
    assert (last["action"], last["key"]) == ("workspace.delete", "acme")


# Refusals ------------------------------------------------------------------------------------------


def refusal(slug: str = "acme", *, contents: str = "delete") -> str:
    before = ApiToken.objects.live().count(), Membership.objects.count()
    with pytest.raises(Conflict) as refused:
        delete_workspace(slug=slug, contents=contents)
    assert (ApiToken.objects.live().count(), Membership.objects.count()) == before
    assert not Workspace.objects.deleted().exists()
    return refused.value.detail


def test_delete__workspace_with_contents__needs_to_be_told(acme: Person, mallory: Person) -> None:
    assert refusal(contents="") == "the workspace is not empty (entries: 5, threads: 1)"
    delete_workspace(slug="rival")  # empty


def test_delete__workspace_with_an_operator_token__is_refused(acme: Person) -> None:
    shell = system_actor(acme.workspace.pk, "operator")
    row, _ = tokens.create_token(actor=shell, name="terraform", role=Role.ADMIN, operator=True)
    assert refusal() == "the workspace has an operator token, which manages all workspaces"
    tokens.revoke_token(actor=shell, token_id=row.pk)
    delete()


def test_delete__workspace_that_is_being_moved__is_refused(acme: Person) -> None:
    message = "the move of the workspace has not ended: both cells have its rows"
    rows = Workspace.objects.filter(pk=acme.workspace.pk)
    for state in ({"frozen_at": timezone.now()}, {"frozen_at": None, "moved_to": "eu2"}):
        rows.update(**state)
        assert refusal() == message
    rows.update(moved_to="")
    move = WorkspaceMove.objects.create(
        move_id="m1",
        slug="acme",
        side=MoveSide.TARGET,
        state=MoveState.OPEN,
        workspace_pk=acme.workspace.pk,
    )
    assert refusal() == message
    WorkspaceMove.objects.filter(pk=move.pk).update(state=MoveState.FINAL)
    delete()


def test_delete__actor_without_an_operator_token__is_refused(acme: Person) -> None:
    with pytest.raises(Forbidden):
        delete(actor=acme.actor)
    with pytest.raises(NotFound):
        delete("none")


def test_delete__by_two_at_once__succeeds_once(acme: Person) -> None:
    won, refused = split(race([delete, delete]))
    assert (len(won), [type(each) for each in refused]) == (1, [NotFound])
    assert AuditRow.objects.filter(action="workspace.delete").count() == 1


# Writes and crashes in between ------------------------------------------------------------------------


@pytest.mark.usefixtures("at_once")
def test_delete__write_in_progress__succeeds_and_is_deleted(acme: Person) -> None:
    with transaction.atomic():
        put(acme.actor, "notes", "new", 1)
        make_thread(acme.actor, "t2")
        in_thread(delete)
    assert Thread.objects.filter(public_id="t2").exists()
    remove_deleted()
    assert rows_of(acme.workspace.pk) == {}


def test_delete__under_load__ends(acme: Person) -> None:
    """Inserts of several writers hold locks on the row of the workspace, one after the other."""
    ended = threading.Event()

    def write(name: str) -> Callable[[], int]:
        def work() -> int:
            count = 0
            while not ended.is_set():
                try:
                    answer = acme.api("POST", "/threads", {"id": f"{name}-{count}"})
                except Problem:
                    break
                if answer.status_code == 401:
                    break
                assert answer.status_code == 201, answer.content
                count += 1
            return count

        return work

    def end() -> None:
        try:
            delete()
        finally:
            ended.set()

    *counts, _ = race([*(write(name) for name in "abc"), end])
    assert sum(counts) > 0
    assert acme.api("GET", "/me").status_code == 401


@pytest.mark.usefixtures("at_once")
def test_remove__late_writes__leave_no_row(acme: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that still acts for the workspace writes after each batch, until it is refused."""
    delete()
    written, refused = [], []
    original = workspace_moves_sql.delete_rows

    def write_and_delete(rows: str, batch: int) -> int:
        def write() -> None:
            name = f"late-{len(written)}"
            try:
                put(acme.actor, "notes", "k0", name)
                make_thread(acme.actor, name)
                written.append(name)
            except (Problem, DatabaseError) as error:
                refused.append(error)

        if len(written) < 5:
            in_thread(write)
        return original(rows, batch)

    monkeypatch.setattr(workspace_moves_sql, "delete_rows", write_and_delete)
    remove_deleted()

    assert written
    assert rows_of(acme.workspace.pk) == {}


@pytest.mark.usefixtures("at_once")
def test_remove__crash_after_each_batch__continues(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run removes one batch, and its process ends."""

    class Crash(Exception):
        pass

    delete()
    original, runs = workspace_transfers._in_transaction, 0

    def crash(step: Callable[[], int]) -> int:
        if count := original(step):
            raise Crash
        return count

    monkeypatch.setattr(workspace_transfers, "_in_transaction", crash)
    while any_to_remove():
        assert verification.verify_state().faults == []
        with pytest.raises(Crash):
            maintenance.run_sweep("remove workspaces", remove_deleted)
        runs += 1
        assert runs < 500

    assert runs > 10
    assert rows_of(acme.workspace.pk) == {}


@pytest.mark.usefixtures("at_once")
def test_remove__large_workspace__is_removed_by_several_runs(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_deletions, "PATIENCE", 0.0)
    delete()
    runs = 0
    while any_to_remove():
        assert 0 <= remove_deleted()["rows"] <= 6
        runs += 1
    assert runs > 10
    assert not Entry.objects.filter(namespace__workspace_id=acme.workspace.pk).exists()


def test_delete__cached_token__is_forgotten(acme: Person) -> None:
    before = cache.generation
    with transaction.atomic():
        delete()
    assert cache.generation > before
