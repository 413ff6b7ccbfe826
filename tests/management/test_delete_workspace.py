"""manage.py delete_workspace; the deletions themselves are in
tests/services/test_workspace_deletions.py."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from state_admin.models import AuditRow, Workspace
from tests.builders import Person, make_thread

pytestmark = pytest.mark.django_db


def delete(*arguments: str) -> str:
    out = io.StringIO()
    call_command("delete_workspace", *arguments, stdout=out)
    return out.getvalue().strip()


def test_delete_workspace__with_contents__needs_the_option(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    with pytest.raises(CommandError, match=r"is not empty .* with contents=delete"):
        delete("acme")
    counts = "entries 0, threads 1, tokens 1, members 1, webhooks 0"
    assert delete("acme", "--contents", "delete", "--dry-run") == (
        f"Would delete the workspace acme: {counts}."
    )
    assert Workspace.objects.present().filter(slug="acme").exists()
    assert delete("acme", "--contents", "delete", "--reason", "contract ended") == (
        f"Deleted the workspace acme: {counts}."
    )
    assert not Workspace.objects.present().filter(slug="acme").exists()
    assert AuditRow.objects.get(action="workspace.delete").reason == "contract ended"


def test_delete_workspace__unknown__is_refused() -> None:
    with pytest.raises(CommandError, match="workspace not found: none"):
        delete("none")
