"""The previous version on the schema of this version: its statements, and its processes under load during an
upgrade."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from django.db import connection

from project.env import BASE_DIR
from project.postgres.cluster import Cluster
from tests import released
from tests.availability.traffic import Record, Traffic, check_history
from tests.project.running import Running, wait_for
from tests.project.sites import SETTINGS, Site, url_of

# The commit of the newest release.
RELEASE = "d4e5cb9f256ebcfd9229cb80646ead299bb673a0"


def read_statements() -> list[str]:
    return released.newest().read_text(encoding="utf-8").splitlines()


def execute(statement: str) -> None:
    """Run a statement in a savepoint, so that the next one runs also after a failure."""
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT one")
        try:
            cursor.cursor.execute(statement.encode())
        finally:
            cursor.execute("ROLLBACK TO one")


@pytest.mark.django_db
def test_statements__of_the_previous_version__can_be_planned() -> None:
    statements = read_statements()

    assert len(statements) > 500
    assert list(released.find_failing(execute, statements)) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ALTER TABLE entries DROP tags", 'column "tags" does not exist'),
        ("ALTER TABLE threads RENAME public_id TO name", "public_id does not exist"),
        ("ALTER TABLE runs ALTER step_count TYPE text", "operator does not exist: text"),
        ("ALTER TABLE model_spending DROP CONSTRAINT {rule}", "ON CONFLICT specification"),
    ],
)
def test_statements__incompatible_schema__are_reported(change: str, reason: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint"
            " WHERE conrelid = 'model_spending'::regclass AND contype IN ('p', 'u')"
            " AND pg_get_constraintdef(oid) LIKE '%day%'"
        )
        (rule,) = cursor.fetchone()
        cursor.execute(change.format(rule=rule))

    failing = list(released.find_failing(execute, read_statements()))

    assert [text for _, text in failing if reason in text] != []


@pytest.fixture
def previous(folder: Path) -> Path:
    """The files of the newest release."""
    found = subprocess.run(
        ["git", "archive", RELEASE],
        cwd=BASE_DIR,
        capture_output=True,
    )
    if found.returncode:
        pytest.skip("the history of this repository does not contain the newest release")
    tree = folder / "previous"
    tree.mkdir()
    subprocess.run(
        ["tar", "x"],
        cwd=tree,
        input=found.stdout,
        check=True,
    )
    return tree


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_upgrade__under_load__refuses_no_request(
    cluster: Cluster, folder: Path, previous: Path, record_property: Record
) -> None:
    """Writers repeat refused calls, so the test counts them: no call is refused because of the migrations."""
    env = {**SETTINGS, "DATABASE_URL": url_of(cluster)}
    old = Site(folder / "old", cwd=previous, **env)
    new = None
    traffic = Traffic(old.running.port, old.token)
    try:
        traffic.wait_for_more(200)
        before = time.monotonic()
        upgrade = Running(folder, "manage.py", "upgrade", **env)
        assert upgrade.wait() == 0, upgrade.output()
        assert "Migrated the database." in upgrade.output()
        read = len(traffic.followed)
        traffic.wait_for_more(200)  # the previous version, on the new schema
        assert traffic.refused == {}
        wait_for(
            lambda: len(traffic.followed) > read + 200, "the previous version reads new changes"
        )
        record_property("seconds without writes", round(traffic.longest_pause(before), 1))
        new = Site(folder / "new", old.token, **env)
        traffic.port = new.running.port  # as a proxy does
        traffic.wait_for_more(200)
        old.stop()
        traffic.wait_for_more(200)
        check_history(traffic, record_property)
        record_property("calls refused", sum(traffic.refused.values()))
    finally:
        traffic.stop(follow=False)
        old.running.kill_all()
        if new:
            new.running.kill_all()
