"""The audit stream: each row reaches the destination at least once, in the order of ids, whatever
transactions, receivers and restores do."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from project.audit_stream import Destination
from state_admin import audit_sinks
from state_admin.models import AuditRow, AuditStream, workspace_copies_sql
from state_admin.models.feed_eras import begin_era
from state_admin.services import audit_stream, erasures, maintenance
from state_admin.services.audit_stream import stream_audit
from tests.builders import Person, make_namespace, put
from tests.loops import closing, in_thread
from tests.patience import PATIENCE
from tests.project.running import free_port, wait_for
from tests.services.faults import Faults, failing
from tests.services.racing import race
from tests.services.workspace_copying import copy, export
from tests.syslogging import (
    SyslogReceiver,
    close,
    make_certificate,
    receiving_syslog,
    reset,
    server_side,
)

pytestmark = pytest.mark.django_db(transaction=True)

ROW = """INSERT INTO audit (workspace_id, action, actor_kind, actor_id, actor_name, reason)
VALUES (%s, 'entry.put', 'system', '1', 'test', {reason}) RETURNING id"""


@pytest.fixture
def receiver(settings: Any) -> Iterator[SyslogReceiver]:
    with receiving_syslog() as one:
        settings.AUDIT_STREAM = one.destination()
        yield one


@pytest.fixture
def other() -> Iterator[psycopg.Connection[Any]]:
    """Another connection to the database of the test, with transactions."""
    connection.ensure_connection()
    info = connection.connection.info
    with psycopg.connect(
        host=info.host, port=info.port, user=info.user, password=info.password, dbname=info.dbname
    ) as one:
        yield one
        one.rollback()


@pytest.fixture
def to_folder(settings: Any, tmp_path: Path) -> Path:
    settings.AUDIT_STREAM = folder_of(tmp_path / "audit")
    return tmp_path / "audit"


def folder_of(path: Path) -> Destination:
    return Destination(f"file://{path}", "file", "", 0, str(path))


def stored() -> list[int]:
    return list(AuditRow.objects.order_by("pk").values_list("pk", flat=True))


def written(folder: Path) -> list[Any]:
    """The rows in the files of a folder, in the order of the names."""
    files = sorted(folder.glob("*/*"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def retry() -> None:
    """Let the pause after a failure be over."""
    AuditStream.objects.update(next_attempt_at=Now())


# Content -----------------------------------------------------------------------------------------


def test_stream__rows__are_those_of_the_api_with_id_and_workspace(
    receiver: SyslogReceiver, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "Grüße\n", "a secret value", reason="why: <ünïcode>")
    page = alice.api("GET", "/audit?limit=100").json()["items"]

    assert stream_audit() == {"sent": len(page), "failed": 0}

    ids = stored()
    extra = [{"id": number, "workspace": alice.workspace.slug} for number in ids]
    assert receiver.rows == [row | more for row, more in zip(reversed(page), extra, strict=True)]
    assert "a secret value" not in "".join(receiver.messages)


def test_syslog__message__follows_rfc_5424(receiver: SyslogReceiver, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    stream_audit()
    for message in receiver.messages:
        head = r"<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z [!-~]{1,255} commonhold - "
        assert re.fullmatch(head + r"[!-~]{1,32} - \{.*\}", message), message


def test_stream__to_a_folder__writes_segments_that_can_be_read_in_order(
    to_folder: Path, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_stream, "MOST_ROWS", 3)
    make_namespace(alice.actor, "notes")
    for number in range(7):
        put(alice.actor, "notes", f"k{number}", 1)
    stream_audit()
    assert [row["id"] for row in written(to_folder)] == stored()
    assert len(list(to_folder.glob("*/*"))) == -(-len(stored()) // 3)
    assert not list(to_folder.glob("*/.*"))
    assert to_folder.stat().st_mode & 0o007 == 0


def test_stream__first_segment_of_a_day__is_on_disk_with_its_folder(
    to_folder: Path, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    stream_audit()
    (segment,) = to_folder.glob("*/*")
    folders = (segment.parent, to_folder)
    assert flushed == [path.stat().st_ino for path in (segment, *folders)]


def test_stream__rows_that_were_erased_before__hold_no_names(
    to_folder: Path, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "ann@example.com", 1)
    erasures.erase(actor=alice.actor, key="ann@example.com", reason="request")
    stream_audit()
    assert "ann@example.com" not in json.dumps(written(to_folder))
    assert [row["id"] for row in written(to_folder)] == stored()


# Order and completeness --------------------------------------------------------------------------


def test_ids__are_assigned_without_a_cache() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seqcache FROM pg_sequence"
            " WHERE seqrelid = pg_get_serial_sequence('audit', 'id')::regclass"
        )
        assert cursor.fetchone() == (1,)


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_stream__open_transaction_with_a_lower_id__waits_until_it_ends(
    ends: str, receiver: SyslogReceiver, alice: Person, other: psycopg.Connection[Any]
) -> None:
    stream_audit()
    before = receiver.ids
    other.execute(ROW.format(reason="''"), [alice.workspace.pk])
    make_namespace(alice.actor, "notes")  # commits a higher id

    for _ in range(3):
        assert stream_audit() == {"sent": 0, "failed": 0}
    getattr(other, ends)()
    stream_audit()

    assert receiver.ids == stored()
    assert len(stored()) == len(before) + (2 if ends == "commit" else 1)


def test_stream__statement_with_an_id_and_no_transaction_id__is_waited_for(
    receiver: SyslogReceiver, alice: Person, other: psycopg.Connection[Any]
) -> None:
    """A statement computes the row, with its id, before it inserts it. Only then does its
    transaction get an id, so no snapshot shows it before."""
    stream_audit()
    pid = other.info.backend_pid
    insert = ROW.format(reason="pg_advisory_xact_lock(23)::text")
    with connection.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        for _ in range(5):
            # Logs the next values, so the statement itself does not, unless a checkpoint intervenes.
            other.execute(
                "SELECT nextval(pg_get_serial_sequence('audit', 'id')) FROM generate_series(1, 2)"
            )
            other.commit()
            cursor.execute("SELECT pg_advisory_lock(23)")
            late = pool.submit(lambda: other.execute(insert, [alice.workspace.pk]).fetchone())
            try:
                wait_for(lambda: waits(pid), "the statement has computed its id")
                if is_without := not has_transaction_id(pid):
                    make_namespace(alice.actor, "notes")
                    for _ in range(3):
                        assert stream_audit() == {"sent": 0, "failed": 0}
            finally:
                cursor.execute("SELECT pg_advisory_unlock(23)")
            row = late.result(PATIENCE)
            if is_without:
                break
            other.rollback()
        assert is_without
    other.commit()
    stream_audit()
    assert row is not None
    assert row[0] < max(stored())
    assert receiver.ids == stored()


def waits(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted", [pid])
        return cursor.fetchone() is not None


def has_transaction_id(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT backend_xid FROM pg_stat_activity WHERE pid = %s", [pid])
        return bool(cursor.fetchone() != (None,))


def test_stream__writers_that_overlap_without_a_pause__does_not_wait_forever(
    receiver: SyslogReceiver, alice: Person, other: psycopg.Connection[Any]
) -> None:
    """There is always an open transaction; only those that began before the barrier matter."""
    connection.ensure_connection()
    info = connection.connection.info
    with psycopg.connect(
        host=info.host, port=info.port, user=info.user, dbname=info.dbname
    ) as second:
        stream_audit()
        writers = [other, second]
        for number in range(6):
            writers[number % 2].execute(ROW.format(reason="''"), [alice.workspace.pk])
            stream_audit()
            writers[(number + 1) % 2].commit()
            stream_audit()
        assert len(receiver.ids) >= len(stored()) - 2
        for writer in writers:
            writer.commit()
    wait_for(lambda: stream_audit() and receiver.ids == stored(), "all rows have arrived")


def test_race__writers_that_commit_and_roll_back__each_row_arrives_once_in_order(
    receiver: SyslogReceiver, alice: Person
) -> None:
    over = threading.Event()

    def write(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(40):
            with transaction.atomic():
                for _ in range(dice.randint(1, 3)):
                    with connection.cursor() as cursor:
                        cursor.execute(ROW.format(reason="''"), [alice.workspace.pk])
                        cursor.execute("SELECT pg_sleep(%s)", [dice.random() / 200])
                if dice.random() < 0.3:
                    transaction.set_rollback(True)

    def write_all() -> None:
        try:
            race([lambda seed=seed: write(seed) for seed in range(4)])
        finally:
            over.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(closing(write_all))
        while not over.is_set():
            stream_audit()
            assert receiver.ids == sorted(receiver.ids)
        writing.result(PATIENCE)
    wait_for(lambda: stream_audit() and not audit_stream.has_work(), "all rows are sent")
    assert receiver.ids == stored()


def test_stream__import_of_a_workspace__numbers_its_rows_when_it_inserts_them(
    receiver: SyslogReceiver, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import prepares its rows for minutes. Meanwhile, the stream passes the ids of others."""
    make_namespace(alice.actor, "notes")
    file = export(alice.workspace.slug)
    prepare = workspace_copies_sql.index_staging

    def prepare_late() -> None:
        prepare()
        in_thread(lambda: put(alice.actor, "notes", "k", 1))
        assert in_thread(stream_audit)["sent"] > 0

    monkeypatch.setattr(workspace_copies_sql, "index_staging", prepare_late)
    copy(file)
    stream_audit()
    assert receiver.ids == stored()


def test_restore__ids_of_lost_rows__are_not_assigned_again(
    receiver: SyslogReceiver, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    stream_audit()
    put(alice.actor, "notes", "lost", 1)
    stream_audit()
    lost = stored()[-1]
    # As restored from a backup that has neither the row nor the position after it.
    AuditStream.objects.update(position=lost - 1, settled=lost - 1, barrier=lost - 1)
    AuditRow.objects.filter(pk=lost).delete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence('audit', 'id'), %s)", [lost - 1])
    begin_era()

    put(alice.actor, "notes", "new", 1)
    stream_audit()

    assert receiver.rows[-1]["key"] == "new"
    assert len(set(receiver.ids)) == len(receiver.ids)
    assert receiver.ids[:-2] + receiver.ids[-1:] == stored()


def test_stream__row_from_years_ago__is_kept_by_the_purges_until_it_is_sent(
    to_folder: Path, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    AuditRow.objects.update(at=datetime(2001, 2, 3, tzinfo=UTC))
    maintenance.purge_leftovers()
    before = stored()
    assert before
    stream_audit()
    assert [row["id"] for row in written(to_folder)] == before
    assert [path.name for path in to_folder.iterdir()] == ["2001-02-03"]


# Failures ----------------------------------------------------------------------------------------


def test_stream__destination_that_refuses__is_tried_again_after_a_pause(
    settings: Any, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    settings.AUDIT_STREAM = Destination(
        "syslog+tcp://127.0.0.1:1", "syslog+tcp", "127.0.0.1", free_port(), ""
    )
    assert stream_audit() == {"sent": 0, "failed": 1}
    assert not audit_stream.has_work()
    assert stream_audit() == {"sent": 0, "failed": 0}

    stream = AuditStream.objects.get()
    assert (stream.position, stream.attempts, stream.failures) == (0, 1, 1)
    assert stream.last_error == "Connection refused"
    assert stream.failing_since is not None
    retry()
    stream_audit()
    assert AuditStream.objects.get().failing_since == stream.failing_since

    with receiving_syslog() as receiver:
        # At the same address, as the position belongs to it.
        settings.AUDIT_STREAM = replace(receiver.destination(), url=settings.AUDIT_STREAM.url)
        retry()
        stream_audit()
        assert receiver.ids == stored()
    stream = AuditStream.objects.get()
    assert (stream.attempts, stream.failures, stream.failing_since) == (0, 2, None)
    assert stream.last_error == ""


def test_stream__pause_after_failures__grows_up_to_five_minutes(
    settings: Any, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    settings.AUDIT_STREAM = Destination("x", "syslog+tcp", "127.0.0.1", free_port(), "")
    for attempts, pause in ((0, 2), (1, 4), (2, 8), (50, 300)):
        AuditStream.objects.update(attempts=attempts)
        before = datetime.now(UTC)
        stream_audit()
        failed_at = AuditStream.objects.get().next_attempt_at - timedelta(seconds=pause)
        assert before <= failed_at <= datetime.now(UTC)
        retry()


def test_syslog__connection_that_is_reset_after_the_rows__rows_are_sent_again(
    settings: Any, alice: Person
) -> None:
    def manners(connection: Any, number: int) -> None:
        (reset if number == 1 else close)(connection, number)

    make_namespace(alice.actor, "notes")
    with receiving_syslog(manners) as receiver:
        settings.AUDIT_STREAM = receiver.destination()
        assert stream_audit()["failed"] == 1
        retry()
        assert stream_audit()["failed"] == 0
        assert receiver.ids == stored() * 2


def test_syslog__receiver_that_does_not_close__is_no_confirmation(
    settings: Any, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_sinks, "TIMEOUT", 0.2)
    over = threading.Event()
    make_namespace(alice.actor, "notes")
    with receiving_syslog(lambda *_: bool(over.wait(PATIENCE)) and None) as receiver:
        settings.AUDIT_STREAM = receiver.destination()
        assert stream_audit()["failed"] == 1
        over.set()
    stream = AuditStream.objects.get()
    assert (stream.position, stream.last_error) == (0, "no reply within 0.2 s")


def test_stream__failure_at_any_statement__later_calls_send_every_row(
    to_folder: Path, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    number, failed = 0, True
    while failed:
        number += 1
        failed = False
        put(alice.actor, "notes", f"k{number}", 1)
        with failing(Faults(number)):
            try:
                stream_audit()
            except OperationalError:
                failed = True
        stream_audit()
        # A batch that is repeated gets the same name, or has further rows.
        assert sorted({row["id"] for row in written(to_folder)}) == stored()
    assert number > 5


def test_syslog__receiver_that_ends_before_it_has_everything__is_no_confirmation() -> None:
    """It says that it will send nothing more, and has not read the rows: they are still in the
    buffer of the sender."""
    over = threading.Event()

    def refuse(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.shutdown(socket.SHUT_WR)
            over.wait(PATIENCE)

    with socket.socket() as listener, ThreadPoolExecutor(1) as pool:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        pool.submit(refuse, listener)
        port = listener.getsockname()[1]
        line = audit_sinks.Line(1, datetime.now(UTC), "entry.put", b"x" * 100_000)
        try:
            with pytest.raises(audit_sinks.Failed, match="before it had read all rows"):
                audit_sinks.send(Destination("", "syslog+tcp", "127.0.0.1", port, ""), [line])
        finally:
            over.set()


def test_stream__two_workers__send_rows_twice_and_keep_the_later_position(
    receiver: SyslogReceiver, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    stream_audit()
    put(alice.actor, "notes", "k", 1)
    race([stream_audit, stream_audit])
    wait_for(lambda: stream_audit() and not audit_stream.has_work(), "all rows are sent")
    assert set(receiver.ids) == set(stored())
    assert AuditStream.objects.get().position == stored()[-1]


def test_stream__new_destination__gets_all_rows_and_the_former_one_continues(
    settings: Any, tmp_path: Path, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    first, second = folder_of(tmp_path / "a"), folder_of(tmp_path / "b")
    for number, destination in enumerate((first, second, first)):
        settings.AUDIT_STREAM = destination
        put(alice.actor, "notes", f"k{number}", 1)
        stream_audit()
    assert [row["id"] for row in written(tmp_path / "a")] == stored()
    assert [row["id"] for row in written(tmp_path / "b")] == stored()[:-1]


def test_stream__out_of_time__continues_next_time(
    receiver: SyslogReceiver, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "k", 1)
    monkeypatch.setattr(audit_stream, "MOST_ROWS", 1)
    clock = count(step=15)
    monkeypatch.setattr(audit_stream, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    while audit_stream.has_work():
        assert stream_audit() == {"sent": 1, "failed": 0}
    assert receiver.ids == stored()


def test_stream__not_configured__sends_nothing(alice: Person) -> None:
    assert stream_audit() == {"sent": 0, "failed": 0}
    assert not audit_stream.has_work()
    assert not AuditStream.objects.exists()


# TLS ---------------------------------------------------------------------------------------------


def test_tls__certificate_of_the_configured_authority__is_accepted(
    settings: Any, alice: Person, tmp_path: Path
) -> None:
    make_namespace(alice.actor, "notes")
    certificate = make_certificate(tmp_path)
    with receiving_syslog(tls=server_side(certificate, mutual=True)) as receiver:
        settings.AUDIT_STREAM = receiver.destination(
            tls_ca=str(certificate), tls_cert=str(certificate)
        )
        assert stream_audit() == {"sent": len(stored()), "failed": 0}
        assert receiver.ids == stored()


@pytest.mark.parametrize(
    ("ca", "error"),
    [
        ("", "TLS: self-signed certificate"),
        ("/nowhere", "cannot read AUDIT_STREAM_TLS_CA or AUDIT_STREAM_TLS_CERT: No such file or "),
    ],
)
def test_tls__certificate_of_somebody_else__gets_no_row(
    ca: str, error: str, settings: Any, alice: Person, tmp_path: Path
) -> None:
    make_namespace(alice.actor, "notes")
    with receiving_syslog(tls=server_side(make_certificate(tmp_path))) as receiver:
        settings.AUDIT_STREAM = receiver.destination(tls_ca=ca)
        assert stream_audit()["failed"] == 1
    assert receiver.messages == []
    assert AuditStream.objects.get().last_error.startswith(error)


def test_tls__end_without_close_notify__is_a_confirmation(
    settings: Any, alice: Person, tmp_path: Path
) -> None:
    """As rsyslog does with GnuTLS."""
    make_namespace(alice.actor, "notes")
    certificate = make_certificate(tmp_path)
    with receiving_syslog(lambda *_: None, server_side(certificate)) as receiver:
        settings.AUDIT_STREAM = receiver.destination(tls_ca=str(certificate))
        assert stream_audit()["failed"] == 0
        assert receiver.ids == stored()


def test_tls__connection_that_is_reset__is_no_confirmation(
    settings: Any, alice: Person, tmp_path: Path
) -> None:
    make_namespace(alice.actor, "notes")
    certificate = make_certificate(tmp_path)
    with receiving_syslog(reset, server_side(certificate)) as receiver:
        settings.AUDIT_STREAM = receiver.destination(tls_ca=str(certificate))
        assert stream_audit()["failed"] == 1
    assert AuditStream.objects.get().position == 0
