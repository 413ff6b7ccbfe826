"""`manage.py doctor` finds faults that are really there, and only those."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from project.audit_stream import Destination
from project.postgres.base import embedded
from project.postgres.server import PORT
from state_admin.management import diagnosis
from state_admin.management.diagnosis import diagnose
from state_admin.management.findings import Finding
from state_admin.models import (
    AuditRow,
    AuditStream,
    Change,
    ConfigSecret,
    Entry,
    Sweep,
    Webhook,
    WebhookDelivery,
    WebhookStatus,
    database_faults,
)
from state_admin.services import second_factors, webhook_pump, webhooks
from state_admin.services.actors import system_actor
from state_admin.services.workspaces import ensure_workspace
from tests.builders import Person, make_namespace, make_run, make_thread, put
from tests.project.conftest import temporary_folder
from tests.project.running import Running, free_port

pytestmark = pytest.mark.django_db

DEAD_ROWS = diagnosis._DEAD_ROWS


def faults() -> list[Finding]:
    """The findings that are not ok. Each says what to do."""
    found = [finding for finding in diagnose() if finding.level != "ok"]
    assert all(finding.remedy for finding in found)
    return found


def find(check: str) -> Finding:
    (finding,) = [finding for finding in faults() if finding.check == check]
    return finding


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test database has neither worker nor broker, but dead rows of the tests before."""
    monkeypatch.setattr(diagnosis, "_DEAD_ROWS", 10**15)
    Sweep.objects.create(name="tickets", started_at=timezone.now())
    monkeypatch.setattr(diagnosis.broker, "ping", lambda: ("redis://test", ""))


def test_doctor__healthy_installation__finds_nothing_and_succeeds(alice: Person) -> None:
    output = StringIO()
    call_command("doctor", "--json", stdout=output)

    findings = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [finding for finding in findings if finding["level"] != "ok"] == []
    checks = {finding["check"] for finding in findings}
    assert checks >= {"disk", "database", "durability", "autovacuum", "extensions", "permissions"}
    assert checks >= {"migrations", "clock", "indexes", "broker", "worker", "beat", "runs"}
    assert checks >= {"secrets", "authenticators", "webhook secrets", "webhooks"}


def test_doctor__error__says_what_to_do_and_fails(alice: Person) -> None:
    Sweep.objects.update(started_at=timezone.now() - timedelta(hours=1), error="boom")
    output = StringIO()

    with pytest.raises(SystemExit) as exit_:
        call_command("doctor", stdout=output, no_color=True)

    assert exit_.value.code == 1
    for role in ("worker", "beat"):
        assert f"error    {role}: not connected to PostgreSQL, and the last" in output.getvalue()
        assert f"         → Start manage.py {role}, and read its log." in output.getvalue()
    assert "error    sweeps: tickets failed: boom" in output.getvalue()


def test_doctor__worker_and_beat__says_to_what_they_are_connected() -> None:
    Sweep.objects.update(started_at=timezone.now())
    with other_connection("worker"):
        found = {finding.check: finding.text for finding in diagnose()}

    assert found["worker"].startswith("connected to PostgreSQL; the last sweep started ")
    assert found["beat"].startswith("not connected to PostgreSQL at the moment; the last sweep")


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def other_connection(name: str = "other") -> psycopg.Connection[Any]:
    """A connection of another process to the same database."""
    return psycopg.connect(
        host=str(embedded().socket_folder),
        port=PORT,
        user="postgres",
        dbname=connection.settings_dict["NAME"],
        application_name=name,
        autocommit=True,
    )


def test_check__fails__says_what_to_do_and_the_next_one_runs() -> None:
    execute("ALTER TABLE sweeps RENAME COLUMN started_at TO renamed")

    found = [finding for finding in faults() if "cannot be checked" in finding.text]

    assert found[0].check == "jobs"
    assert "SQLSTATE 42703" in found[0].text
    assert found[1].check == "secrets"  # in the transaction of this test, which has failed


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        (["worker"], {"beat": "Start manage.py beat"}),
        (["beat"], {"worker": "Start manage.py worker"}),
        (["worker", "beat"], {"sweeps": "Check the broker above."}),
    ],
)
def test_jobs__wait__names_the_process_that_is_missing(
    roles: list[str], expected: dict[str, str]
) -> None:
    Sweep.objects.update(started_at=timezone.now() - timedelta(hours=1))
    with ExitStack() as stack:
        for role in roles:
            stack.enter_context(other_connection(role))
        found = {finding.check: finding.remedy for finding in faults()}

    assert found.keys() == expected.keys()
    assert all(found[check].startswith(remedy) for check, remedy in expected.items())


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "ALTER TABLE webhooks DROP CONSTRAINT webhooks_id_unique",
            "webhooks_id_unique is missing",
        ),
        ("DROP INDEX webhook_deliveries_in_flight", "webhook_deliveries_in_flight is missing"),
        (
            "ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_pkey",
            "the unique index of webhook_deliveries (id) is missing",
        ),
        (
            "DO $$ BEGIN EXECUTE (SELECT 'DROP INDEX ' || indexrelid::regclass FROM pg_index"
            " WHERE indrelid = 'webhook_secrets'::regclass AND NOT indisprimary); END $$",
            "the index of webhook_secrets (webhook_id) is missing",
        ),
    ],
)
def test_indexes__of_constraints_and_columns__are_named(statement: str, text: str) -> None:
    execute(statement)

    assert find("indexes").text == text


def bloated() -> list[Finding]:
    """The findings about this table."""
    return [finding for finding in faults() if finding.text.startswith("bloated ")]


def test_dead_rows__more_than_live_ones__are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with other_connection() as other:
        other.execute("CREATE TABLE bloated (n int) WITH (autovacuum_enabled = off)")
        try:
            other.execute("INSERT INTO bloated SELECT generate_series(1, 1001)")
            other.execute("DELETE FROM bloated WHERE n <= 501")
            other.execute("SELECT pg_stat_force_next_flush()")
            for least in (DEAD_ROWS, 501):
                monkeypatch.setattr(diagnosis, "_DEAD_ROWS", least)
                assert bloated() == []  # too few to matter
            monkeypatch.setattr(diagnosis, "_DEAD_ROWS", 500)
            (finding,) = bloated()
        finally:
            other.execute("DROP TABLE bloated")

    assert finding.text == "bloated has 501 dead rows and 500 live ones"
    assert finding.check == "dead rows"
    assert finding.remedy.startswith("Run VACUUM (ANALYZE) bloated;")


INDEXES = {
    "number": "(id)",
    "text": "(name)",
    "several": "(id, name)",
    "expression": "(upper(name))",
    "null": "(maybe, id)",
    "part": "(id) WHERE id % 4 = 0",
    "covering": "(id) INCLUDE (name)",
    "full": "(name) WITH (fillfactor = 50)",
}


@pytest.fixture
def rows() -> Iterator[psycopg.Connection[Any]]:
    """A connection to a table with many rows, and with indexes whose names begin with `bloat_`."""
    with other_connection() as other:
        other.execute(
            "CREATE TABLE bloat_rows WITH (autovacuum_enabled = off) AS SELECT id,"
            " 'name ' || md5(id::text) AS name, CASE WHEN id % 2 = 0 THEN id END AS maybe"
            " FROM generate_series(1, 50000) AS id"
        )
        for name, definition in INDEXES.items():
            other.execute(f"CREATE INDEX bloat_{name} ON bloat_rows {definition}".encode())
        other.execute("VACUUM ANALYZE bloat_rows")
        try:
            yield other
        finally:
            other.execute("DROP TABLE bloat_rows")


def test_index_bloat__of_new_indexes__is_estimated_as_their_sizes(
    rows: psycopg.Connection[Any],
) -> None:
    found = {one.name: one for one in database_faults.find_bloated_indexes(-(1 << 60), 1000)}

    for kind in INDEXES:
        one = found[f"bloat_{kind}"]
        query = f"SELECT pg_relation_size('{one.name}')"
        assert rows.execute(query.encode()).fetchone() == (one.size,)
        assert one.needed == pytest.approx(one.size, rel=0.15 if kind == "expression" else 0.1)


def test_index_bloat__after_most_rows_were_deleted__is_reported_until_a_reindex(
    rows: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bloat() -> list[Finding]:
        return [finding for finding in faults() if finding.text.startswith("bloat_text has ")]

    monkeypatch.setattr(diagnosis, "_WASTED_BYTES", 1 << 20)
    assert bloat() == []
    rows.execute("DELETE FROM bloat_rows WHERE id % 5 <> 0")
    rows.execute("VACUUM ANALYZE bloat_rows")

    (finding,) = bloat()
    assert finding.check == "index bloat"
    assert finding.text == "bloat_text has 3 MiB and needs about 1 MiB"
    assert finding.remedy.startswith("Run REINDEX INDEX CONCURRENTLY bloat_text:")

    rows.execute("REINDEX INDEX CONCURRENTLY bloat_text")
    assert bloat() == []


def test_log_files__that_all_users_may_read__are_named(settings: Any, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.mkdir(mode=0o750)
    settings.AUDIT_STREAM = Destination(f"file://{folder}", "file", "", 0, str(folder))
    log = embedded().log
    try:
        log.chmod(0o640)
        assert faults() == []
        log.chmod(0o644)
        folder.chmod(0o755)
        found = faults()
    finally:
        log.chmod(0o600)

    assert [(finding.check, finding.remedy) for finding in found] == [
        ("log files", f"Run chmod o-rwx {log}."),
        ("log files", f"Run chmod o-rwx {folder}."),
    ]
    assert found[0].text == f"{log} has mode 644, so all users of the machine may read it"


def test_extensions__without_pg_stat_statements__says_how_to_install_it() -> None:
    (finding,) = [finding for finding in diagnose() if finding.check == "extensions"]
    assert "CREATE EXTENSION pg_stat_statements" in finding.remedy

    # Replaces the extension's view: the embedded PostgreSQL does not have the extension.
    execute("CREATE TABLE pg_stat_statements ()")
    execute("SELECT set_config('pg_stat_statements.max', '5000', true)")
    (finding,) = [finding for finding in diagnose() if finding.check == "extensions"]
    assert (finding.text, finding.remedy) == ("pg_stat_statements is installed", "")


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
    with other_connection("forgotten") as other, other.transaction():
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
    ahead, real = timedelta(seconds=seconds), diagnosis.read_time
    monkeypatch.setattr(diagnosis, "read_time", lambda: real() + ahead)

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

    assert finding.text == "acme: the secret at notes/a /key cannot be decrypted"
    assert "CONFIG_SECRET_KEYS" in finding.remedy


def test_secrets__many_without_their_key__are_counted(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    ConfigSecret.objects.bulk_create(
        ConfigSecret(
            entry=Entry.objects.get(key="a"),
            pointer=f"/{number}",
            public_id=str(number),
            key_id="gone",
            ciphertext=b"x",
        )
        for number in range(7)
    )

    found = [finding.text for finding in faults() if finding.check == "secrets"]

    assert len(found) == 6
    assert found[-1] == "2 more, as above"


def test_keys__lost__names_authenticators_and_webhooks(alice: Person, settings: Any) -> None:
    secret = second_factors.make_secret()
    code = format_hotp_value(hotp_value(secret, int(time.time()) // 30))
    second_factors.enrol(actor=alice.actor, secret=secret, code=code)
    webhooks.create_webhook(actor=alice.actor, name="hook", url="https://receiver.example/hook")
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another"

    found = faults()

    assert [(finding.check, finding.text) for finding in found] == [
        ("authenticators", "TOTP Authenticator of alice cannot be decrypted"),
        ("authenticators", "Recovery codes of alice cannot be decrypted"),
        (
            "webhook secrets",
            "a secret of acme/hook was derived from a SECRET_KEY that is not configured",
        ),
    ]
    assert "manage.py reset_totp" in found[0].remedy
    assert "rotate the secret" in found[2].remedy

    settings.SECRET_KEY_FALLBACKS = [old]
    (former,) = faults()
    assert (former.check, former.level, former.text) == (
        "webhook secrets",
        "warning",
        "a secret of acme/hook is derived from a key in SECRET_KEY_FALLBACKS",
    )
    assert "Before you remove that key, rotate the secret" in former.remedy


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


@pytest.mark.parametrize("what", ["change", "delivery"])
def test_webhook__neither_advances_nor_fails__is_named(alice: Person, what: str) -> None:
    url = "https://receiver.example/hook"
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="hook", url=url)
    make_namespace(alice.actor, "notes")
    if what == "change":
        Change.objects.update(at=timezone.now() - timedelta(minutes=20))
    else:
        webhook_pump.make_test(hook, asked_by="alice")
        WebhookDelivery.objects.update(test=False)
        newest = Change.objects.latest("pk")
        Webhook.objects.update(place_xid=newest.xid, place_id=newest.pk)
        assert faults() == []
        WebhookDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(minutes=20))

    assert find("webhooks").text.startswith(
        f"acme/hook does not advance: a {what} has waited since "
    )

    Webhook.objects.update(last_delivered_at=timezone.now())
    assert faults() == []  # a long queue, but it advances


def test_runs__stuck__are_counted_by_workspace(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1", lease_seconds=1)
    for slug in ("beta", "coda"):
        actor = system_actor(ensure_workspace(slug)[0].pk, "test")
        for number in ("1", "2"):
            make_thread(actor, f"t{number}")
            make_run(actor, f"t{number}", f"r{number}", lease_seconds=1)
    execute("UPDATE runs SET lease_expires_at = now() - interval '1 minute'")

    assert find("runs").text == "stuck: 2 in beta, 2 in coda, 1 in acme"

    monkeypatch.setattr(diagnosis, "_MOST_EXAMPLES", 1)
    assert find("runs").text == "stuck: 2 in beta, 3 in other workspaces"


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


@pytest.mark.system
def test_database__unreachable__is_one_error_without_a_traceback(tmp_path: Path) -> None:
    key = tmp_path / "data" / "secret_key"
    key.parent.mkdir(mode=0o711)  # others may traverse it
    key.write_text("a secret key")
    key.chmod(0o644)
    url = f"postgresql://nobody:sesame@127.0.0.1:{free_port()}/nothing"
    doctor = Running(tmp_path, "manage.py", "doctor", "--no-color", DATABASE_URL=url)

    assert doctor.wait() == 1
    assert "error    database: Cannot reach the database nothing at 127.0.0.1:" in doctor.output()
    assert f"error    secret key: {key} has mode 644" in doctor.output()
    assert f"         → Run chmod 600 {key}." in doctor.output()
    assert "Traceback" not in doctor.output()
    assert "sesame" not in doctor.output()


@pytest.mark.system
def test_data_folder__unusable__is_named(tmp_path: Path) -> None:
    """As of a server with a database and a key of its own, which starts without the folder."""
    (tmp_path / "file").touch()
    doctor = Running(
        tmp_path,
        *("manage.py", "doctor", "--no-color"),
        COMMONHOLD_DATA_DIR=str(tmp_path / "file"),
        DATABASE_URL="postgresql://me@127.0.0.1:1/db",
        SECRET_KEY="k" * 50,
    )

    assert doctor.wait() == 1
    why = f"Cannot use the data folder {tmp_path / 'file'}; set COMMONHOLD_DATA_DIR"
    assert f"error    files: cannot be checked: {why}" in doctor.output()


@pytest.mark.system
def test_database__embedded_and_not_created__is_an_error_and_is_not_created(tmp_path: Path) -> None:
    """As if doctor ran without the environment of the server."""
    key = "SECRET_KEY"
    doctor = Running(
        tmp_path,
        *("manage.py", "doctor", "--no-color"),
        DATABASE_URL="",
        DATABASE_URI="postgresql://db/x",
        SITE_URL_FILE="/run/site",
        COMMONHOLD_PORT="tcp://10.0.0.1:8000",
        COMMONHOLD_URL="http://127.0.0.1:8000",
        **{key: "too short"},
    )

    assert doctor.wait() == 1
    output = doctor.output()
    folder = tmp_path / "data"
    assert (
        f"error    database: DATABASE_URL is not set, and {folder} contains no embedded PostgreSQL\n"
        "         → Run doctor with the environment of the server"
    ) in output
    assert not (folder / "postgres").exists()
    assert (
        "warning  settings: DATABASE_URI is not a setting, and is ignored\n"
        "         → If you meant DATABASE_URL, correct the name"
    ) in output
    assert "→ Set SITE_URL: only secrets can come from a file." in output
    assert "warning  secret key: SECRET_KEY has fewer than 32 characters" in output
    assert "COMMONHOLD_PORT" not in output
    assert "COMMONHOLD_URL" not in output


@pytest.mark.system
def test_command__of_an_empty_embedded_database__says_which_database_it_used() -> None:
    """As if the command ran without the environment of the server."""
    arguments = ("manage.py", "create_token", "--role", "viewer", "--name", "x")
    with temporary_folder() as folder:
        command = Running(folder, *arguments, DATABASE_URL="")
        code = command.wait()
        output = command.output()

    assert code == 1
    assert output == (
        f"The database lacks migrations of this version: embedded, in {folder / 'data'}. Run manage.py "
        "setup first; if the server uses another database, give this command the environment of the "
        "server (DATABASE_URL, or COMMONHOLD_DATA_DIR).\n"
    )
