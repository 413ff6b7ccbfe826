"""Exports beside writers, and imports that fail, wait or run on another database."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AddIndex,
    CreateModel,
    RemoveIndex,
)

from state_admin.domain.access import Role
from state_admin.migrations._online import CreateIndexOnline
from state_admin.models import (
    ApiToken,
    AuditRow,
    Entry,
    FeedEra,
    Revert,
    Webhook,
    Workspace,
    feed_sql,
    workspace_copies_sql,
)
from state_admin.models.database import read_time
from state_admin.models.feed_eras import begin_era
from state_admin.models.workspace_tables import OLDEST_MIGRATION
from state_admin.services import (
    knowledge,
    revert_jobs,
    tokens,
    verification,
    webhook_flow,
    webhook_pump,
    webhooks,
    workspace_imports,
)
from state_admin.services.actors import system_actor
from state_admin.services.errors import Conflict, Invalid, NotFound
from state_admin.services.workspace_exports import export_workspace
from state_admin.services.workspace_imports import import_workspace
from state_admin.streams import cursors
from tests import builders
from tests.builders import Person, make_namespace, make_person, make_thread, make_token, put
from tests.feeding import pump, wait_for_feed
from tests.services.racing import race
from tests.services.workspace_copying import copy, digests, export

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acme(alice: Person) -> Person:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", {"n": 1})
    put(alice.actor, "notes", "a", {"n": 2})
    make_thread(alice.actor)
    builders.append(alice.actor, "t1", {"role": "user", "content": "hi"})
    return alice


def seal(lines: list[dict[str, Any]]) -> bytes:
    """A file of these lines, with correct counts and a correct digest."""
    counts: dict[str, int] = {}
    for line in lines[1:-1]:
        counts[line["table"]] = counts.get(line["table"], 0) + 1
    for name, table in lines[0]["tables"].items():
        table["rows"] = counts.get(name, 0)
    content = "".join(f"{json.dumps(line)}\n" for line in lines[:-1]).encode()
    end = {"rows": len(lines) - 2, "sha256": hashlib.sha256(content).hexdigest()}
    return content + json.dumps({"end": end}).encode() + b"\n"


def changed(file: bytes, change: Callable[[list[dict[str, Any]]], object]) -> bytes:
    lines = [json.loads(line) for line in file.splitlines()]
    change(lines)
    return seal(lines)


def find(lines: list[dict[str, Any]], table: str, number: int = 0) -> dict[str, Any]:
    return [line for line in lines[1:-1] if line["table"] == table][number]


def set_value(table: str, column: str, value: str | None) -> Callable[[list[Any]], object]:
    return lambda lines: find(lines, table)["row"].__setitem__(column, value)


def drop_rows(table: str) -> Callable[[list[Any]], object]:
    def change(lines: list[Any]) -> None:
        lines[1:-1] = [line for line in lines[1:-1] if line["table"] != table]

    return change


def line_of(file: bytes, table: str) -> int:
    lines = [json.loads(line) for line in file.splitlines()]
    return lines.index(find(lines, table)) + 1


def temporary_tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'")
        return [name for (name,) in cursor.fetchall()]


# Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (set_value("entries", "version", "x"), r'LINE: entries: version: invalid input syntax for type bigint: "x"'),
        (set_value("entries", "value", "{"), "LINE: entries: value: invalid input syntax for type json"),
        (set_value("entries", "key", "a\0b"), "LINE: entries: .*NUL"),
        (set_value("entries", "namespace_id", "99"), "LINE: entries: namespace_id is 99, and the file has no such row"),
        (drop_rows("threads"), r"line \d+: (revisions|messages): thread_id is \d+, and the file has no such row"),
        (set_value("entries", "key", None), 'contradict each other: null value in column "key"'),
        (lambda lines: lines.insert(-1, find(lines, "entries")), "contradict each other: could not create unique index"),
        (lambda lines: lines.insert(-1, find(lines, "entry_revisions")), "contradict each other: duplicate key"),
        (lambda lines: lines[0]["tables"].update(users={"rows": 0, "columns": ["id"]}), "line 1: unknown table: users"),
        (lambda lines: lines[0]["tables"]["traffic"]["columns"].append("x; y"), "line 1: unknown columns of traffic: x; y"),
        (lambda lines: lines[0]["tables"]["traffic"]["columns"].remove("minute"), "line 1: missing columns of traffic: minute"),
        (lambda lines: lines[0]["tables"]["traffic"]["columns"].append("minute"), "line 1: repeated columns of traffic"),
        (lambda lines: lines[0].update(migration="9999_future"), r"line 1: the file is of a newer version \(0.1.0, 9999_future\)"),
        (lambda lines: lines[0].update(migration="0001_initial"), "line 1: the file is of a version that is too old"),
        (drop_rows("workspaces"), "line 1: the file must have one workspace"),
        (lambda lines: lines.__delitem__(slice(1, -1)), "line 1: the file must have one workspace"),
    ],
)  # fmt: skip
def test_import__wrong_file__is_refused_and_leaves_nothing(
    acme: Person, change: Callable[[list[dict[str, Any]]], object], expected: str
) -> None:
    file = export("acme")
    before = counts()
    expected = expected.replace("LINE", f"line {line_of(file, 'entries')}")
    with pytest.raises(Invalid, match=expected):
        copy(changed(file, change))
    assert counts() == before
    assert temporary_tables() == []
    assert copy(file).workspace.slug == "copy"


def counts() -> list[int]:
    return [model.objects.count() for model in (Workspace, Entry, AuditRow)]


def test_import__truncated_file__is_refused_and_leaves_nothing(acme: Person) -> None:
    file = export("acme")
    lines = file.count(b"\n")
    before = counts()
    with pytest.raises(Invalid, match=f"cannot be imported: line {lines}: the file is truncated"):
        copy(file.rpartition(b'{"end"')[0])
    assert counts() == before


def test_import__existing_workspace__is_refused_before_the_file_is_read(acme: Person) -> None:
    file = export("acme")
    with pytest.raises(Conflict, match="workspace already exists: acme"):
        import_workspace(stream=io.BytesIO(file[: len(file) // 2]))
    with pytest.raises(Invalid, match="invalid workspace name"):
        copy(file, "a b")
    with pytest.raises(Invalid, match="at most 64 characters"):
        copy(file, "a" * 65)


def test_import__two_at_once__create_one_workspace(acme: Person) -> None:
    file = export("acme")
    outcomes = race([lambda: copy(file), lambda: copy(file)])
    assert sorted(type(each).__name__ for each in outcomes) == ["Conflict", "WorkspaceImport"]
    assert Workspace.objects.filter(slug="copy").count() == 1
    assert verification.verify_state().faults == []


def test_import__fails_after_the_rows__leaves_nothing(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export("acme")
    before = counts()

    def fail(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(workspace_imports.journal, "record", fail)
    with pytest.raises(RuntimeError):
        copy(file)
    assert counts() == before
    assert temporary_tables() == []


def test_import__connection_lost_before_the_commit__leaves_nothing(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export("acme")
    before = counts()

    def lose(*_: object) -> None:
        pid = connection.connection.info.backend_pid
        race([lambda: terminate(pid)])

    monkeypatch.setattr(workspace_copies_sql, "check_constraints", lose)
    try:
        with pytest.raises(OperationalError):
            copy(file)
    finally:
        connection.close()
    assert counts() == before
    monkeypatch.undo()
    copy(file)
    assert digests("copy") == digests("acme")


def terminate(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_export__unknown_workspace__is_not_found(db: None) -> None:
    with pytest.raises(NotFound, match="workspace not found: none"):
        export("none")


# Beside writers and readers ------------------------------------------------------------------


class Interrupted(io.BytesIO):
    """A stream that calls a function once, when the third line is read or written."""

    def __init__(self, content: bytes, call: Callable[[], object]) -> None:
        super().__init__(content)
        self.call, self.lines = call, 0

    def _count(self) -> None:
        self.lines += 1
        if self.lines == 3:
            self.call()

    def readline(self, *arguments: Any) -> bytes:
        self._count()
        return super().readline(*arguments)

    def write(self, line: Any) -> int:
        self._count()
        return super().write(line)


def test_export__beside_a_writer__is_of_one_moment(acme: Person) -> None:
    before = digests("acme")
    stream = Interrupted(b"", lambda: race([lambda: put(acme.actor, "notes", "late", 1)]))
    export_workspace(slug="acme", stream=stream)
    assert digests("acme") != before
    copy(stream.getvalue())
    assert digests("copy") == before


def test_import__while_the_file_is_read__other_changes_are_in_the_feed(acme: Person) -> None:
    """An open transaction with a number would hold the feed back for all workspaces."""

    def write() -> None:
        put(acme.actor, "notes", "late", 1)
        wait_for_feed(acme.workspace.pk)

    import_workspace(stream=Interrupted(export("acme"), lambda: race([write])), slug="copy")


def test_import__active_webhook__delivers_only_what_the_source_had_not_delivered(
    acme: Person,
) -> None:
    hook, _ = webhooks.create_webhook(actor=acme.actor, name="hook", url="https://a.example/")
    put(acme.actor, "notes", "sent", 1)
    pump(hook)
    put(acme.actor, "notes", "waiting", 1)
    workspace = copy(export("acme")).workspace

    twin = Webhook.objects.get(workspace=workspace)
    actor = system_actor(workspace.pk, "test")
    webhooks.rotate_secret(actor=actor, webhook_id=twin.public_id)
    webhook_flow.resume_webhook(actor=actor, webhook_id=twin.public_id)
    before = set(twin.deliveries.values_list("pk", flat=True))
    wait_for_feed(workspace.pk)
    webhook_pump.pump_webhook(twin.public_id)
    queued = twin.deliveries.exclude(pk__in=before).order_by("pk")
    kinds = ["entry.put", "workspace.import", "webhook.rotate", "webhook.resume"]
    assert [row.kind for row in queued] == kinds
    assert queued[0].subject == "state/notes/waiting"


# Another database ------------------------------------------------------------------------------


@pytest.fixture
def switch(transactional_db: None) -> Iterator[Callable[[], None]]:
    """A function that continues in another database with the same schema and without data."""
    name = connection.settings_dict["NAME"]
    other = f"{name}_other"
    drop = f'DROP DATABASE IF EXISTS "{other}" WITH (FORCE)'
    connection.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s",
            [name],
        )
        cursor.execute(drop)
        cursor.execute(f'CREATE DATABASE "{other}" TEMPLATE "{name}"')

    def use(database: str) -> None:
        connection.close()
        connection.settings_dict["NAME"] = database

    yield lambda: use(other)
    use(name)
    with connection._nodb_cursor() as cursor:
        cursor.execute(drop)


def test_import__into_another_database_with_a_lower_clock__is_equal(
    switch: Callable[[], None],
) -> None:
    begin_era()
    ann = make_person("ann", "acme", Role.ADMIN)
    make_namespace(ann.actor, "notes")
    put(ann.actor, "notes", "global", 1)
    make_thread(ann.actor)
    builders.make_run(ann.actor)
    builders.commit(ann.actor, messages=[{"role": "user", "content": "one"}])
    source_end = feed_sql.read_end(ann.workspace.pk)
    file, before = export("acme"), digests("acme")

    switch()
    assert not Workspace.objects.exists()
    workspace = copy(file, "").workspace

    assert workspace.slug == "acme"
    assert digests("acme") == before
    assert verification.verify_state().faults == []
    assert FeedEra.objects.latest("id").start > source_end.position.xid
    # What is written from now on is later than everything in the file, also for a run.
    actor = system_actor(workspace.pk, "test")
    first = knowledge.read_knowledge(actor=actor, run_id="r1")
    put(actor, "notes", "global", 2)
    builders.commit(actor, messages=[{"role": "user", "content": "two"}])
    second = knowledge.read_knowledge(actor=actor, run_id="r1")
    assert [[each.version for each in found.entries] for found in (first, second)] == [[1], [2]]
    assert (first.exact, second.exact) == (True, True)
    # A cursor of the source is refused: it is not a position of this server.
    wait_for_feed(workspace.pk)
    end = feed_sql.read_end(workspace.pk)
    with pytest.raises(cursors.LostCursor):
        cursors.resume(cursors.seal(source_end.position, end.at), end, timedelta(days=7))


# Size and versions -----------------------------------------------------------------------------

_MANY = 20_000


def test_copy__many_rows__memory_is_constant(acme: Person) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO entries (namespace_id, key, value, version, born_version, schema_version,"
            " deleted, size_bytes, estimated_tokens, actor_kind, actor_name)"
            " SELECT n.id, 'k' || g, to_json(repeat('x', 500)), 1, 1, 1, false, 502, 0, 'system', 'x'"
            " FROM namespaces n, generate_series(1, %s) g WHERE n.name = 'notes'",
            [_MANY],
        )

    class Sink(io.BytesIO):
        size = 0

        def write(self, line: Any) -> int:
            self.size += len(line)
            return len(line)

    sink = Sink()
    exported = peak(lambda: export_workspace(slug="acme", stream=sink))
    assert sink.size > 10_000_000
    stream = io.BytesIO(export("acme"))
    imported = peak(lambda: import_workspace(stream=stream, slug="copy"))
    assert exported < 1_000_000
    assert imported < 5_000_000
    rows = Entry.objects.filter(namespace__workspace__slug="copy")
    assert rows.count() == _MANY + 1


def peak(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_copy__batches__are_limited_by_rows_and_bytes(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    stage = workspace_copies_sql.stage_rows

    def record(table: Any, columns: Any, rows: Any) -> None:
        given = list(rows)
        sizes.append(len(given))
        stage(table, columns, given)

    monkeypatch.setattr(workspace_copies_sql, "stage_rows", record)
    monkeypatch.setattr(workspace_imports, "_MOST_ROWS", 3)
    copy(export("acme"))
    assert max(sizes) == 3
    monkeypatch.setattr(workspace_imports, "_MOST_BYTES", 1)
    sizes.clear()
    copy(export("acme"), "second")
    assert set(sizes) == {1}
    assert digests("second") == digests("acme")


def test_import__file_without_a_newer_column__uses_its_default(acme: Person) -> None:
    def forget(lines: list[dict[str, Any]]) -> None:
        for table, column in (("namespaces", "tracked"), ("threads", "metadata")):
            lines[0]["tables"][table]["columns"].remove(column)
            for line in lines[1:-1]:
                if line["table"] == table:
                    del line["row"][column]
        del lines[0]["tables"]["traffic"]

    copy(changed(export("acme"), forget))
    assert digests("copy") == digests("acme")
    namespace = Workspace.objects.get(slug="copy").namespaces.get(name="notes")
    assert namespace.tracked


def test_migrations__after_the_oldest_one__need_no_conversion_of_files() -> None:
    """A file has the rows of its version. A migration that does more than these operations changes
    rows, or what they mean: raise OLDEST_MIGRATION to it."""
    graph = MigrationLoader(connection).graph
    (newest,) = graph.leaf_nodes("state_admin")
    names = [name for app, name in graph.forwards_plan(newest) if app == "state_admin"]
    no_row = (
        r"CREATE (TRIGGER|FUNCTION)|^ALTER TABLE \w+ SET (UNLOGGED|\(autovacuum_)|TYPE varchar"
        r"|^ALTER TABLE sessions ADD"  # no file has sessions
    )
    harmless = AddField | AddIndex | RemoveIndex | AddConstraint | CreateModel | CreateIndexOnline
    for name in names[names.index(OLDEST_MIGRATION) + 1 :]:
        migration = graph.nodes["state_admin", name]
        other = [each for each in migration.operations if not isinstance(each, harmless)]
        # These statements create a trigger or a function, make a column longer, or change how a table
        # is stored. They change no row.
        other = [each for each in other if not re.search(no_row, _sql_of(each))]
        assert other == [], name


def _sql_of(operation: Any) -> str:
    sql = getattr(operation, "sql", "")
    return sql if isinstance(sql, str) else "\n".join(sql)


def test_import__unfinished_revert_of_a_token__belongs_to_the_copy_of_the_token(
    acme: Person,
) -> None:
    actor = make_token(acme, namespaces=["notes"])[1]
    put(replace(actor, request_id="wrong"), "notes", "k0", "wrong")
    revert_jobs.request_revert(actor=actor, request_id="wrong")
    file = export("acme")
    tokens.revoke_token(actor=acme.actor, token_id=int(actor.id))

    copied = copy(file).workspace
    token = ApiToken.objects.get(workspace=copied, name="narrow")
    job = Revert.objects.get(workspace=copied)
    assert (job.actor_kind, job.actor_id) == ("token", str(token.pk))
    assert revert_jobs.run_revert(job.pk) == "done"
    assert revert_jobs.run_revert(Revert.objects.get(workspace=acme.workspace).pk) == "failed"


def test_import__revert_that_searches__continues_in_the_copy(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 1)
    actor = make_token(acme)[1]
    at = read_time()
    for key in "bcd":
        put(replace(actor, request_id="wrong"), "notes", key, "wrong")
    for target in ({"request_id": "wrong"}, {"at": at, "namespace": "notes"}):
        job = revert_jobs.request_revert(actor=actor, **target)
        for _ in range(2):  # each finds the next entry
            assert revert_jobs.run_revert(job.pk, seconds=0) == "queued"

    copied = copy(export("acme")).workspace
    for job in Revert.objects.filter(workspace=copied).order_by("pk"):
        assert revert_jobs.run_revert(job.pk) == "done"
    live = Entry.objects.filter(namespace__workspace=copied).live()
    assert list(live.values_list("key", flat=True)) == ["a"]
