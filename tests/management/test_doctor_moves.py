"""What `manage.py doctor` says during a move of a workspace to another cell, after it, and after a
deletion."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from state_admin.models import Run, Webhook, WebhookStatus, Workspace, WorkspaceMove
from state_admin.services import webhooks
from state_admin.services.workspace_deletions import delete_workspace
from tests.builders import Person, make_run, make_thread
from tests.management.test_doctor import faults, find, healthy

__all__ = ["healthy"]  # a fixture

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("side", "state", "remedy"),
    [
        ("source", "frozen", "move_workspace acme with --resume or with --undo."),
        ("source", "moved", "move_workspace acme --forget: it deletes the rows in this cell"),
        ("source", "removing", "move_workspace acme --forget again."),
        ("target", "copying", "in the source."),
        ("target", "copied", "in the source."),
        ("target", "closing", "move_workspace acme --undo in the source again."),
    ],
)
def test_move__unfinished__is_named_with_what_to_do(side: str, state: str, remedy: str) -> None:
    WorkspaceMove.objects.create(move_id="m1", slug="acme", cell="us1", side=side, state=state)

    finding = find("moves")

    assert finding.text.startswith("acme ")
    assert remedy in finding.remedy


@pytest.mark.parametrize("state", ["expected", "open", "final", "removed", "undone"])
def test_move__not_begun_or_ended__is_no_fault(state: str) -> None:
    WorkspaceMove.objects.create(move_id="m1", slug="acme", side="target", state=state)

    assert faults() == []


@pytest.mark.parametrize("status", [WebhookStatus.ACTIVE, WebhookStatus.DISABLED])
def test_frozen_workspace__with_stuck_runs_and_failing_webhooks__is_no_fault(
    alice: Person, status: WebhookStatus
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1", lease_seconds=1)
    Run.objects.update(lease_expires_at=F("created_at") - timedelta(minutes=1))
    url = "https://receiver.example/hook"
    webhooks.create_webhook(actor=alice.actor, name="hook", url=url)
    Webhook.objects.update(status=status, failing_since=timezone.now())
    assert [finding.check for finding in faults()] == ["webhooks", "runs"]

    Workspace.objects.update(frozen_at=timezone.now())

    assert faults() == []


def test_deleted_workspace__with_rows_for_long__is_named(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    delete_workspace(slug="acme", contents="delete")
    assert faults() == []

    Workspace.objects.update(frozen_at=timezone.now() - timedelta(hours=2))

    assert find("deletions").text.startswith("acme, deleted ")
