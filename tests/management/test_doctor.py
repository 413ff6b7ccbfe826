"""`manage.py doctor` finds faults that are really there, and only those."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from project.audit_stream import Destination
from project.postgres.base import embedded
from project.postgres.server import PORT
from state_admin.management import diagnosis
from state_admin.management.diagnosis import Finding, diagnose
from state_admin.models import (
    AuditRow,
    AuditStream,
    ConfigSecret,
    Entry,
    Sweep,
    Webhook,
    WebhookStatus,
    WorkspaceMove,
)
from state_admin.services import webhooks
from tests.builders import Person, make_namespace, make_run, make_thread, put
from tests.project.running import Running, free_port

pytestmark = pytest.mark.django_db


def faults() -> list[Finding]:
    return [finding for finding in diagnose() if finding.level != "ok"]


def find(check: str) -> Finding:
    (finding,) = [finding for finding in faults() if finding.check == check]
    return finding


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test database has neither worker nor broker."""
    Sweep.objects.create(name="tickets", started_at=timezone.now())
    monkeypatch.setattr(diagnosis.broker, "ping", lambda: ("redis://test", ""))


def test_doctor__healthy_installation__finds_nothing_and_succeeds(alice: Person) -> None:
    output = StringIO()
    call_command("doctor", "--json", stdout=output)

    findings = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [finding for finding in findings if finding["level"] != "ok"] == []
    checks = {finding["check"] for finding in findings}
    assert checks >= {"disk", "database", "migrations", "clock", "indexes", "secrets", "runs"}


def test_doctor__error__says_what_to_do_and_fails(alice: Person) -> None:
    Sweep.objects.update(started_at=timezone.now() - timedelta(hours=1), error="boom")
    output = StringIO()

    with pytest.raises(SystemExit) as exit_:
        call_command("doctor", stdout=output, no_color=True)

    assert exit_.value.code == 1
    assert "error    worker and beat: no sweep has started since " in output.getvalue()
    assert "         → Start manage.py worker and manage.py beat" in output.getvalue()
    assert "error    sweeps: tickets failed: boom" in output.getvalue()


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_indexes__missing_or_invalid__are_named() -> None:
    execute("DROP INDEX changes_at_brin")
    execute(
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'webhook_deliveries_newest'::regclass"
    )

    assert [finding.text for finding in faults() if finding.check == "indexes"] == [
        "changes_at_brin is missing",
        "webhook_deliveries_newest is invalid and not used",
    ]


def test_migrations__due__are_named_and_rows_are_not_read() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE id = (SELECT id FROM django_migrations"
            " WHERE app = 'state_admin' ORDER BY name DESC LIMIT 1) RETURNING name"
        )
        (newest,) = cursor.fetchone()
    execute("DROP TABLE webhook_deliveries, webhook_secrets, webhooks")

    finding = find("migrations")

    assert finding.text == f"1 due: state_admin.{newest}"
    assert finding.remedy == "Run manage.py setup."
    assert all(finding.check != "webhooks" for finding in diagnose())


def test_transactions__open_for_long__are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_LONG_SECONDS", -1)
    settings = connection.settings_dict
    with psycopg.connect(
        host=str(embedded().socket_folder),
        port=PORT,
        user="postgres",
        dbname=settings["NAME"],
        application_name="forgotten",
    ) as other:
        other.execute("SELECT 1")
        found = [finding for finding in faults() if "(forgotten)" in finding.text]
        pid = other.info.backend_pid

    assert [finding.remedy for finding in found] == [f"End it: pg_terminate_backend({pid})."]


def test_replication_slot__without_reader__is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_SLOT_BYTES", -1)
    execute("SELECT pg_create_physical_replication_slot('gone', true)")
    try:
        finding = find("replication")
    finally:
        execute("SELECT pg_drop_replication_slot('gone')")

    assert finding.text.startswith("the slot gone has no reader")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.0, "the database server is 5.0 s ahead"), (-9.0, "the database server is 9.0 s behind")],
)
def test_clock__differs__is_reported(
    monkeypatch: pytest.MonkeyPatch, seconds: float, text: str
) -> None:
    real = diagnosis.database_faults.read_clock
    monkeypatch.setattr(diagnosis.database_faults, "read_clock", lambda: real() + seconds)

    assert find("clock").text == text


def test_secret__without_its_key__is_named_without_its_value(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    ConfigSecret.objects.create(
        entry=Entry.objects.get(key="a"),
        pointer="/key",
        public_id="x",
        key_id="gone",
        ciphertext=b"x",
    )

    finding = find("secrets")

    assert finding.text == "the secret at notes/a /key cannot be decrypted"
    assert "CONFIG_SECRET_KEYS" in finding.remedy


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"status": WebhookStatus.DISABLED, "status_reason": "why"}, "is disabled: why"),
        ({"failing_since": timezone.now()}, "has been failing since"),
    ],
)
def test_webhook__disabled_or_failing__is_named(
    alice: Person, change: dict[str, object], text: str
) -> None:
    url = "https://receiver.example/hook"
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="hook", url=url)
    Webhook.objects.filter(pk=hook.pk).update(**change)

    assert find("webhooks").text.startswith(f"acme/{hook.name} {text}")


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


def test_run__stuck__is_counted(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1", lease_seconds=1)
    execute("UPDATE runs SET lease_expires_at = now() - interval '1 minute'")

    assert find("runs").text == "1 stuck"


def test_audit_stream__late_or_failing__is_reported(alice: Person, settings: Any) -> None:
    settings.AUDIT_STREAM = Destination("file:///x", "file", "", 0, "/x")
    make_namespace(alice.actor, "notes")
    assert "audit stream" not in {finding.check for finding in faults()}

    AuditRow.objects.update(at=timezone.now() - timedelta(minutes=20))
    rows = AuditRow.objects.count()
    assert find("audit stream").text.startswith(f"{rows} row")

    error = {"last_error": "Connection refused", "failing_since": timezone.now()}
    AuditStream.objects.create(destination="file:///x", **error)
    assert "Connection refused; " in find("audit stream").text

    newest = AuditRow.objects.latest("pk").pk
    AuditStream.objects.update(position=newest, last_error="", failing_since=None)
    assert "audit stream" not in {finding.check for finding in faults()}


def test_broker__unreachable__is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis.broker, "ping", lambda: ("redis://test", "refused"))

    assert find("broker").text == "redis://test: refused"


def test_database__unreachable__is_one_error_without_a_traceback(tmp_path: Path) -> None:
    url = f"postgresql://nobody:secret@127.0.0.1:{free_port()}/nothing"
    doctor = Running(tmp_path, "manage.py", "doctor", "--no-color", DATABASE_URL=url)

    assert doctor.wait() == 1
    assert "error    database: Cannot reach the database nothing at 127.0.0.1:" in doctor.output()
    assert "Traceback" not in doctor.output()
    assert "secret" not in doctor.output()
