"""manage.py verify_state, and that compaction does not change what it retains."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as limits
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_admin.domain.access import Role
from state_admin.models import verification_sql
from state_admin.models.verification_sql import CHECKS
from state_admin.services import (
    entries,
    erasures,
    redactions,
    threads,
    verification,
)
from tests import builders
from tests.builders import Person, make_namespace, make_person, make_thread, put
from tests.services.racing import race
from tests.services.test_history_compaction import compact_histories
from tests.services.test_retention import (
    UPDATES,
    compact,
    keep,
    run_history,
    thread,
)

__all__ = ["thread"]


def run(*arguments: str) -> tuple[str, str]:
    """The output, and the error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.suppress(CommandError):
        call_command("verify_state", *arguments, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue().strip()


@pytest.fixture
def world(thread: Person) -> Person:
    """The thread t1 and an entry with a history."""
    builders.append(thread.actor, "t1", {"role": "user", "content": "hi"})
    make_namespace(thread.actor, history_keep_last=2)
    for number in range(4):
        put(thread.actor, "notes", "k", {"n": number})
    entries.delete_entry(actor=thread.actor, namespace="notes", key="k")
    put(thread.actor, "notes", "k", 5, ttl_seconds=60)
    return thread


def test_verify__consistent_state__reports_how_much_was_checked(world: Person) -> None:
    assert run() == ("18 snapshots and versions", "")


def test_verify__compacted_after_the_digests__retained_data_is_unchanged(
    world: Person, tmp_path: Path
) -> None:
    file = str(tmp_path / "digests")
    run("--write", file)
    keep(world, 2)
    compact(world)
    assert compact_histories() == 4
    said, wrong = run("--check", file)
    assert (said, wrong) == (
        "14 snapshots and versions, 18 digests compared, 13 compacted since, 0 deleted since", "",
    )  # fmt: skip


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(UPDATES, st.integers(1, 4), st.none() | st.integers(1, 4))
def test_verify__any_history_before_and_after_compaction__succeeds(
    db: None, steps: list[tuple[set[str], str]], last: int, every: int | None
) -> None:
    with transaction.atomic():
        person = make_person("zoe", "zoo", Role.ADMIN)
        run_history(person, steps)
        before = list(verification.read_digests())
        keep(person, last, every)
        job = compact(person)
        found = verification.verify_state(before)
        assert found.faults == []
        assert f"{found.compacted} snapshots deleted" == job.detail
        transaction.set_rollback(True)


_CORRUPTIONS: dict[str, str] = {
    "content differs: acme/t1 @12": """
        UPDATE state_values SET value = '99' WHERE key = 'plan' AND valid_to IS NULL""",
    "content differs: acme/t1 @9": """
        DELETE FROM state_values WHERE key = 'plan' AND valid_from = 9""",
    "content differs: acme/notes/k v2": """
        UPDATE entry_revisions SET value = '{"n": 9}' WHERE version = 2""",
    "an entry differs from its newest version: acme/notes/k": """
        UPDATE entries SET value = '6'""",
    "missing: acme/notes/k v3": "DELETE FROM entry_revisions WHERE version = 3",
    "versions are missing that no history compaction removed: acme/notes/k v4": """
        DELETE FROM entry_revisions WHERE version = 3""",
    "two state values of a key are valid at the same revision: acme/t1 plan @5": """
        UPDATE state_values SET valid_to = 6 WHERE key = 'plan' AND valid_from = 4""",
    "a state value's range of revisions is empty or ends after the newest revision: acme/t1 plan @8": """
        UPDATE state_values SET valid_to = 8 WHERE key = 'plan' AND valid_from = 8""",
    "a state value begins or ends at a revision that did not touch its key: acme/t1 once @4": """
        UPDATE state_values SET valid_from = 4 WHERE key = 'once'""",
    "a retained revision touched a key but has an older value of it: acme/t1 plan @10": """
        WITH gone AS (DELETE FROM state_values WHERE key = 'plan' AND valid_from = 10)
        UPDATE state_values SET valid_to = 11 WHERE key = 'plan' AND valid_from = 9""",
    "the revisions of a thread have a gap, or the newest is not the thread's revision: acme/t1": """
        DELETE FROM revisions WHERE number = 4""",
    "missing: acme/t1 @4": "DELETE FROM revisions WHERE number = 4",
    "a revision was removed that must be retained: acme/t1 @6": """
        UPDATE revisions SET dropped = true WHERE number = 6""",
    "a run does not end with its last revision: acme/t1 r1": """
        UPDATE runs SET last_revision = 5 WHERE public_id = 'r1'""",
    "the messages of a thread have a gap, or do not match its message count: acme/t1": """
        UPDATE threads SET message_count = 2""",
    "a revision has no audit row: acme/t1 @4": """
        DELETE FROM audit WHERE thread = 't1' AND version = 4""",
    "a version has no audit row: acme/notes/k v4": """
        DELETE FROM audit WHERE key = 'k' AND version = 4""",
    "a revision is not in the change feed: acme/t1 @4": """
        DELETE FROM changes WHERE thread = 't1' AND version = 4""",
    "a version is not in the change feed: acme/notes/k v4": """
        DELETE FROM changes WHERE key = 'k' AND version = 4""",
}


@pytest.mark.parametrize("fault", _CORRUPTIONS)
def test_verify__one_row_corrupted__fails_and_reports_it(
    world: Person, tmp_path: Path, fault: str
) -> None:
    file = str(tmp_path / "digests")
    run("--write", file)
    with connection.cursor() as cursor:
        cursor.execute(_CORRUPTIONS[fault])
        assert cursor.rowcount == 1
    assert fault in run("--check", file)[1].splitlines()
    with pytest.raises(CommandError, match="faults, the first of them above"):
        call_command("verify_state", "--check", file, stdout=io.StringIO(), stderr=io.StringIO())


def test_verify__audit_of_a_deleted_thread__does_not_count_for_its_successor(
    world: Person,
) -> None:
    threads.delete_thread(actor=world.actor, thread_id="t1")
    made = make_thread(world.actor)
    builders.make_run(world.actor)
    builders.commit(world.actor, updates={"plan": 1})
    assert run()[1] == ""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM audit WHERE thread = 't1' AND version = 1 AND at >= %s", [made.created_at]
        )
    assert run()[1] == "a revision has no audit row: acme/t1 @1"


def scans(node: dict[str, Any], table: str) -> Iterator[int]:
    """How often each scan of the table in a plan was run."""
    if node.get("Relation Name") == table:
        yield node["Actual Loops"]
    for part in node.get("Plans", ()):
        yield from scans(part, table)


@pytest.mark.parametrize(
    ("rule", "table"),
    [
        ("a revision has no audit row", "audit"),
        ("a version has no audit row", "audit"),
        ("a revision is not in the change feed", "changes"),
        ("a version is not in the change feed", "changes"),
    ],
)
def test_verify__thousands_of_rows__reads_each_log_once(
    world: Person, rule: str, table: str
) -> None:
    parameters = {"workspace": world.workspace.pk, "changes_kept": limits.CHANGE_RETENTION}
    with connection.cursor() as cursor:
        for owner, rows in _MANY_ROWS.items():
            cursor.execute(f"INSERT INTO {owner} {rows}", parameters)
        cursor.execute("ANALYZE")
        verification_sql.read_to_the_end()
        statement = f"EXPLAIN (ANALYZE, FORMAT JSON) DECLARE x CURSOR FOR {CHECKS[rule]}"
        cursor.execute(statement, parameters)
        plan = cursor.fetchone()[0][0]["Plan"]
    assert plan["Actual Rows"] == 0
    read = [*scans(plan, table)]
    assert read
    assert set(read) == {1}, plan


# For the thread t1 and the entry k, a hundred versions before the current ones.
_MANY_ROWS = {
    "revisions (thread_id, number, kind, touched, message_count, actor_kind, actor_id, actor_name)": """
        SELECT id, n, 'commit', '{}', 0, 'system', 'x', 'x'
        FROM threads, generate_series(101, 2100) n""",
    "entry_revisions (entry_id, version, operation, value, schema_version, size_bytes, actor_kind,"
    " actor_id, actor_name)": """
        SELECT id, n, 'put', '1', 1, 1, 'system', 'x', 'x'
        FROM entries, generate_series(101, 2100) n""",
    "audit (workspace_id, action, thread, namespace, key, version, actor_kind, actor_id, actor_name)": """
        SELECT %(workspace)s, 'x', thread, namespace, key, n, 'system', 'x', 'x'
        FROM (VALUES ('t1', '', ''), ('', 'notes', 'k')) x(thread, namespace, key),
            generate_series(101, 2100) n""",
    "changes (workspace_id, kind, thread, namespace, key, version)": """
        SELECT %(workspace)s, 'x', thread, namespace, key, n
        FROM (VALUES ('t1', '', ''), ('', 'notes', 'k')) x(thread, namespace, key),
            generate_series(101, 2100) n""",
}


def test_verify__every_rule__has_a_corruption() -> None:
    told = {fault.rpartition(": ")[0] for fault in _CORRUPTIONS}
    assert told >= set(CHECKS)


def test_verify__dropped_snapshot_reappears__fails(world: Person, tmp_path: Path) -> None:
    keep(world, 2)
    compact(world)
    file = str(tmp_path / "digests")
    run("--write", file)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE revisions SET dropped = false WHERE number = 4")
    assert "it was removed by compaction and exists again: acme/t1 @4" in run("--check", file)[1]


def test_verify__permitted_removals__are_counted_and_not_faults(
    world: Person, tmp_path: Path
) -> None:
    a = world.actor
    make_thread(a, "t2", resource_id="ann")
    put(a, "notes", "other", 1)
    file = str(tmp_path / "digests")
    run("--write", file)
    redactions.redact_entry(actor=a, namespace="notes", key="k", pointers=["/n"], reason="x")
    erasures.erase(actor=a, key="other", reason="asked")
    threads.delete_thread(actor=a, thread_id="t1")
    said, wrong = run("--check", file)
    assert wrong == ""
    assert (
        said == "7 snapshots and versions, 19 digests compared, 4 compacted since, 13 deleted since"
    )


def test_verify__wrong_file__is_one_sentence(world: Person, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_text("not a line of ours, surely")
    with pytest.raises(CommandError, match="is not a file that --write wrote"):
        call_command("verify_state", "--check", str(file), stdout=io.StringIO())
    with pytest.raises(CommandError, match="cannot use"):
        call_command("verify_state", "--check", str(tmp_path / "none"), stdout=io.StringIO())


def test_verify__incomplete_file__is_refused(world: Person, tmp_path: Path) -> None:
    file = tmp_path / "digests"
    run("--write", str(file))
    lines = file.read_text().splitlines(keepends=True)
    assert lines[-1] == "end 18\n"
    incomplete = ([], lines[:-1], lines[:9], [*lines[:9], lines[-1]], [*lines[:-1], "end 1"])
    for kept in incomplete:
        file.write_text("".join(kept))
        with pytest.raises(CommandError, match="its last line must be the word end and the number"):
            call_command("verify_state", "--check", str(file), stdout=io.StringIO())

    # As the message advises for the file of an earlier version.
    file.write_text("".join([*lines[:-1], f"end {len(lines) - 1}\n"]))
    assert run("--check", str(file))[1] == ""


def test_verify__write_that_fails__says_where_and_keeps_the_file_before(
    world: Person, tmp_path: Path
) -> None:
    digests = tmp_path / "digests"
    call_command("verify_state", "--write", str(digests), stdout=io.StringIO())
    before = digests.read_text()
    (tmp_path / "digests.part").symlink_to("/dev/full")
    with pytest.raises(CommandError, match=f"cannot use {digests}: No space left on device"):
        call_command("verify_state", "--write", str(digests), stdout=io.StringIO())
    assert digests.read_text() == before

    output = io.StringIO()
    nowhere = tmp_path / "none" / "digests"
    with pytest.raises(CommandError, match=f"cannot use {nowhere}.part: No such file"):
        call_command("verify_state", "--write", str(nowhere), stdout=output)
    with pytest.raises(CommandError, match=f"cannot use {tmp_path}: Is a directory"):
        call_command("verify_state", "--write", str(tmp_path), stdout=output)
    assert not tmp_path.with_name(f"{tmp_path.name}.part").exists()
    assert output.getvalue() == ""  # before it read the tables


@pytest.mark.django_db(transaction=True)
def test_verify__without_a_transaction__reads_one_snapshot(world: Person) -> None:
    lines = verification.read_digests()
    first = next(lines)
    race([lambda: put(world.actor, "notes", "k", "later")])
    assert len([first, *lines]) == 18
