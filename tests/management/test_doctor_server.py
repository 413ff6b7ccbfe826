"""What `manage.py doctor` finds on a server of one's own, with settings, an archive and a role that are
wrong."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from project import startup
from project.env import BadSetting
from state_admin.management import server_checks
from state_admin.management.diagnosis import diagnose
from state_admin.management.findings import Finding
from state_admin.models import metrics_sql
from tests.project.running import wait_for
from tests.project.test_server_requirements import Connect, Server, connect

__all__ = ["connect"]  # a fixture

Check = Callable[[], Iterator[Finding]]
Run = Callable[..., list[Finding]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="ch"))
    made = Server(folder / "other", "archive_mode=on", "logging_collector=on")
    yield made
    made.cluster.release()
    shutil.rmtree(folder)


@pytest.fixture
def run(server: Server, connect: Connect) -> Run:
    """Run a check with a connection to the server in place of the test database."""

    def run(check: Check, user: str = "postgres", database: str = "postgres") -> list[Finding]:
        usual = connections["default"]
        with connect(server.url(user, database)) as connection:
            connections["default"] = connection
            try:
                found = list(check())
            finally:
                connections["default"] = usual
        assert all(finding.remedy for finding in found if finding.level != "ok")
        return found

    return run


def pick(findings: list[Finding], check: str) -> Finding:
    (finding,) = [finding for finding in findings if finding.check == check]
    return finding


def test_settings__right__name_what_they_are(run: Run) -> None:
    found = run(server_checks.check_settings)

    assert {finding.level for finding in found} == {"ok"}
    text = pick(found, "durability").text
    assert text.endswith("fsync = on, full_page_writes = on, synchronous_commit = on")


@pytest.mark.parametrize("name", ["autovacuum", "track_counts"])
def test_vacuum__off__is_an_error(server: Server, run: Run, name: str) -> None:
    with server.configured(**{name: "off"}):
        finding = pick(run(server_checks.check_settings), "autovacuum")

    assert finding.level == "error"
    assert finding.text.startswith(f"{name} is off, ")
    assert finding.remedy.startswith(f"ALTER SYSTEM SET {name} = on, ")


def test_log_files__of_the_server__that_all_users_may_read_are_a_warning(
    server: Server, run: Run
) -> None:
    def find_any() -> list[Finding]:
        found = run(server_checks.check_settings)
        return [finding for finding in found if finding.check == "database log files"]

    for mode in ("0600", "0640"):
        server.execute(f"ALTER SYSTEM SET log_file_mode = '{mode}'", "SELECT pg_reload_conf()")
        wait_for(lambda: not find_any(), "the setting is in force")
    server.execute("ALTER SYSTEM SET log_file_mode = '0644'", "SELECT pg_reload_conf()")
    wait_for(lambda: bool(find_any()), "the setting is in force")
    (finding,) = find_any()
    server.execute("ALTER SYSTEM RESET log_file_mode", "SELECT pg_reload_conf()")

    assert finding.text.startswith("log_file_mode is 0644, ")
    assert finding.remedy.startswith("ALTER SYSTEM SET log_file_mode = '0640'")


def test_archive__fails__is_an_error_until_it_works(server: Server, run: Run) -> None:
    def failing() -> bool:
        return any(each.check == "WAL archive" for each in run(server_checks.check_settings))

    def read_metric() -> int:
        with psycopg.connect(server.url()) as one:
            metrics = {name: value for name, _, value in one.execute(metrics_sql._SERVER.encode())}
        return int(metrics["commonhold_wal_archive_failing"])

    with server.configured(archive_command="false"):
        server.execute("CREATE TABLE written (n int)", "SELECT pg_switch_wal()")
        wait_for(failing, "the archiver has failed")
        finding = pick(run(server_checks.check_settings), "WAL archive")
        assert finding.text.startswith("the last attempt failed (0000")
        assert read_metric() == 1
        server.execute("ALTER SYSTEM SET archive_command = 'true'", "SELECT pg_reload_conf()")
        wait_for(lambda: not failing(), "the archiver has succeeded")
        assert read_metric() == 0


def test_checksums__of_a_damaged_page__are_an_error(server: Server, run: Run) -> None:
    """The page is damaged in a copy of the database, of which no page is in memory yet."""
    server.execute("CREATE TABLE pages AS SELECT generate_series(1, 10) AS n")
    with psycopg.connect(server.url(database="template1"), autocommit=True) as other:
        other.execute("CREATE DATABASE damaged TEMPLATE postgres STRATEGY file_copy")
    with psycopg.connect(server.url(database="damaged"), autocommit=True) as other:
        (path,) = other.execute("SELECT pg_relation_filepath('pages')").fetchone() or ("",)
        with (server.cluster.data / path).open("r+b") as pages:
            pages.seek(8000)
            pages.write(b"damage")
        with pytest.raises(psycopg.errors.DataCorrupted):
            other.execute("SELECT * FROM pages")
        other.execute("SELECT pg_stat_force_next_flush()")

    finding = pick(run(server_checks.check_settings, database="damaged"), "checksums")

    assert finding.level == "error"
    assert finding.text.startswith("checksum failures: 1, the last one at 20")
    assert "restore a backup" in finding.remedy


def test_role__without_privileges__is_told_which_to_grant(server: Server, run: Run) -> None:
    server.execute(
        "CREATE ROLE plain LOGIN",
        "CREATE TABLE entries ()",
        "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC",
    )

    def remedies() -> list[str]:
        found = run(server_checks.check_permissions, "plain")
        return [finding.remedy for finding in found if finding.level != "ok"]

    assert remedies() == [
        'GRANT TEMPORARY ON DATABASE "postgres" TO "plain".',
        'Connect as their owner, or ALTER TABLE … OWNER TO "plain" for each.',
        'GRANT pg_monitor TO "plain".',
    ]
    server.execute(
        "GRANT TEMPORARY ON DATABASE postgres TO plain",
        "ALTER TABLE entries OWNER TO plain",
        "GRANT pg_monitor TO plain",
    )
    assert remedies() == []


def test_disk__of_the_database__is_checked_if_the_role_may_know_it(
    server: Server, run: Run
) -> None:
    (finding,) = run(server_checks.check_database_disk)
    assert finding.text.endswith(f" GiB free in {server.cluster.data}")

    server.execute("CREATE ROLE unprivileged LOGIN")
    (finding,) = run(server_checks.check_database_disk, "unprivileged")
    assert finding.text.startswith("not checked: ")
    assert finding.remedy == "Watch the free space on the machine of the database server."


def test_database__not_durable__is_an_error_and_no_more_is_checked(
    server: Server, run: Run
) -> None:
    def check() -> Iterator[Finding]:
        with server.configured(fsync="off"):
            connections["default"].close()
            yield from diagnose()

    *_, finding = run(check)

    assert finding.check == "database"
    assert finding.text.startswith("The database server is not safe to use: fsync is off")


def test_database__no_connection_left__says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise BadSetting("Cannot reach the database: FATAL:  sorry, too many clients already.")

    monkeypatch.setattr(startup, "reach_database", refuse)

    (finding,) = [each for each in diagnose() if each.check == "database"]
    assert finding.remedy.startswith("Raise max_connections, or lower WEB_WORKERS")
