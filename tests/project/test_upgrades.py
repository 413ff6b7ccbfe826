"""`manage.py upgrade`: what it finds out about migrations, and that it applies only safe ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from project import startup
from project.postgres.cluster import Cluster
from project.upgrades import estimates
from project.upgrades.estimates import Size
from project.upgrades.observation import Effects, NewIndex, list_tables, observe
from project.upgrades.rehearsal import Rehearsal, Step, rehearse
from project.upgrades.schema import find_breaks, read_schema
from state_admin.management import upgrade_check
from state_admin.management.findings import Finding
from state_admin.migrations._online import CreateIndexOnline
from tests.project.running import Running
from tests.project.sites import connect, url_of
from tests.project.test_migrating import FIRST_RELEASE

LARGE = Size(rows=10**9, table=2**40, total=2**40, widths={})
# One row for each workspace or webhook.
BOUNDED = ("workspaces", "webhooks", "search_positions")
SMALL = Size(rows=10, table=2**13, total=2**14, widths={})


@pytest.fixture
def tables(transactional_db: None) -> Iterator[frozenset[str]]:
    """All tables, with two more that the migrations of a test change."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE big (id bigint PRIMARY KEY, a int, b text, c varchar(10))")
        cursor.execute("CREATE TABLE parent (id bigint PRIMARY KEY, name varchar(10) UNIQUE)")
        try:
            yield list_tables(connection)
        finally:
            cursor.execute("DROP TABLE big, parent")


def watch(tables: frozenset[str], *operations: Any, atomic: bool = True) -> list[Effects]:
    """The effects of a migration with these operations or statements."""

    class Migration(migrations.Migration):
        pass

    migration = Migration("watched", "state_admin")
    migration.operations = [
        migrations.RunSQL(each) if isinstance(each, str) else each for each in operations
    ]

    def run() -> None:
        with connection.schema_editor(atomic=atomic) as editor:
            migration.apply(ProjectState(), editor)

    return observe(connection, tables, run, atomic=atomic)


def find_errors(effects: list[Effects]) -> list[str]:
    """The tables that a migration would block for long if all that grow were large."""
    locked = {name for each in effects for name in each.locks}
    sizes = {name: SMALL if name in BOUNDED else LARGE for name in locked}
    step = Step("watched", effects)
    findings = upgrade_check._check_step(step, sizes)
    return [finding.text for finding in findings if finding.level == "error"]


@pytest.mark.parametrize(
    ("statements", "access"),
    [
        (["ALTER TABLE big ALTER a TYPE bigint"], "reads and writes"),
        (["ALTER TABLE big ADD d uuid DEFAULT gen_random_uuid()"], "reads and writes"),
        (["ALTER TABLE big ADD d int GENERATED ALWAYS AS (a + 1) STORED"], "reads and writes"),
        (["ALTER TABLE big SET UNLOGGED"], "reads and writes"),
        (["ALTER TABLE big ALTER a SET NOT NULL"], "reads and writes"),
        (["ALTER TABLE big ADD CONSTRAINT positive CHECK (a > 0)"], "reads and writes"),
        (["ALTER TABLE big ADD CONSTRAINT one UNIQUE (a)"], "reads and writes"),
        (["REINDEX TABLE big"], "writes"),
        (["ALTER TABLE big ADD FOREIGN KEY (a) REFERENCES parent (id)"], "writes"),
        (["CREATE INDEX by_a ON big (a)"], "writes"),
        (["CREATE INDEX words ON big USING gin (to_tsvector('simple', b))"], "writes"),
        (["UPDATE big SET a = 1"], "writes"),
        (["DELETE FROM big WHERE a = 1"], "writes"),
        # The lock of the first statement is held while the second one works.
        (["ALTER TABLE big ADD d int", "UPDATE big SET d = a"], "reads and writes"),
        (
            [
                "ALTER TABLE big ADD CONSTRAINT p CHECK (a > 0) NOT VALID",
                "ALTER TABLE big VALIDATE CONSTRAINT p",
            ],
            "reads and writes",
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_migration__long_work_under_a_lock__is_an_error(
    tables: frozenset[str], statements: list[str], access: str
) -> None:
    errors = find_errors(watch(tables, *statements))

    assert [text for text in errors if text.startswith(f"{access} of big")] != []


def test_migration__other_table_is_locked_meanwhile__is_an_error_of_both(
    tables: frozenset[str],
) -> None:
    errors = find_errors(
        watch(tables, "ALTER TABLE parent ADD d int", "CREATE INDEX by_a ON big (a)")
    )

    assert sorted(text.split(" (")[0] for text in errors) == [
        "reads and writes of parent",
        "writes of big",
    ]


@pytest.mark.parametrize(
    ("operations", "atomic"),
    [
        (["ALTER TABLE big ADD d int NOT NULL DEFAULT 0"], True),
        (["ALTER TABLE big ALTER c TYPE varchar(20)"], True),
        (["ALTER TABLE parent ALTER name TYPE varchar(20)"], True),
        (["ALTER TABLE big ADD CONSTRAINT positive CHECK (a > 0) NOT VALID"], True),
        (["ALTER TABLE big SET (autovacuum_vacuum_scale_factor = 0.02)"], True),
        (["CREATE TABLE fresh (id int)", "CREATE INDEX f ON fresh (id)", "DROP TABLE fresh"], True),
        (
            [
                "ALTER TABLE big ADD CONSTRAINT p CHECK (a > 0) NOT VALID",
                "ALTER TABLE big VALIDATE CONSTRAINT p",
            ],
            False,
        ),
        ([CreateIndexOnline("by_a", "big (a)")], False),
    ],
    ids=str,
)
def test_migration__brief_or_without_lock__is_no_error(
    tables: frozenset[str], operations: list[Any], atomic: bool
) -> None:
    effects = watch(tables, *operations, atomic=atomic)

    assert find_errors(effects) == []


def test_index__online__is_observed_with_its_columns(tables: frozenset[str]) -> None:
    online = CreateIndexOnline("by_a", "big (a, lower(b)) WHERE c <> ''")

    effects = watch(tables, online, atomic=False)

    (index,) = [index for each in effects for index in each.indexes]
    assert index == NewIndex("by_a", "big", ["a", "b", "c"], True, True)
    assert [each.locks for each in effects if each.indexes] == [{"big": "ShareUpdateExclusiveLock"}]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE big", "the table big is gone"),
        ("ALTER TABLE big RENAME TO large", "the table big is gone"),
        ("ALTER TABLE big DROP a", "big.a is gone"),
        ("ALTER TABLE big RENAME a TO d", "big.a is gone"),
        ("ALTER TABLE big ALTER a TYPE bigint", "big.a has the type bigint instead of integer"),
        ("ALTER TABLE big ALTER a SET NOT NULL", "big.a does not accept NULL any more"),
        ("ALTER TABLE big ADD d int NOT NULL", "big.d is required and has no default"),
        ("ALTER TABLE big ALTER id DROP DEFAULT", "big.id has no default any more"),
        (
            "ALTER TABLE big ADD CHECK (a > 0)",
            "big has a new constraint that rows may violate: CHECK",
        ),
        (
            "CREATE UNIQUE INDEX ON big (a)",
            "big has a new constraint that rows may violate: CREATE UNIQ",
        ),
        ("DROP INDEX one_b", "big has lost a constraint that ON CONFLICT may name: CREATE UNIQUE"),
        (
            "ALTER TABLE big DROP CONSTRAINT big_pkey",
            "big has lost a constraint that ON CONFLICT may",
        ),
        ("DROP FUNCTION raise_audit_ids() CASCADE", "the function raise_audit_ids() is gone"),
        ("ALTER TABLE big ALTER c TYPE varchar(9)", "big.c has the type character varying(9)"),
        ("ALTER TABLE big ALTER b TYPE varchar(9)", "big.b has the type character varying(9)"),
        ("ALTER TABLE big ALTER c TYPE varchar(20)", None),
        ("ALTER TABLE big ALTER c TYPE text", None),
        ("ALTER TABLE big ADD d int", None),
        ("ALTER TABLE big ADD d int NOT NULL DEFAULT 1", None),
        ("ALTER TABLE big ADD d int GENERATED ALWAYS AS IDENTITY", None),
        ("CREATE TABLE large (id int NOT NULL PRIMARY KEY)", None),
        ("CREATE INDEX ON big (a)", None),
        ("ALTER INDEX one_b RENAME TO only_b", None),
    ],
)
@pytest.mark.django_db
def test_schema__changed__says_what_breaks_the_previous_version(
    statement: str, reason: str | None
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE big (id bigserial PRIMARY KEY, a int, b text, c varchar(10))")
        cursor.execute("CREATE UNIQUE INDEX one_b ON big (b)")
        before = read_schema(connection)
        cursor.execute(statement)

    breaks = find_breaks(before, read_schema(connection))

    if reason is None:
        assert breaks == []
    else:
        assert [found for found in breaks if found.startswith(reason)] != []


def list_applied(last: str) -> list[tuple[str, str]]:
    """The migrations of a database whose newest migration of Commonhold is `last`."""
    nodes = MigrationLoader(None).graph.nodes
    return [key for key in nodes if key[0] != "state_admin" or key[1] <= last]


@pytest.mark.system
def test_migrations__since_the_first_release__run_beside_the_previous_version() -> None:
    rehearsal = rehearse(list_applied(FIRST_RELEASE))

    assert len(rehearsal.steps) >= 12
    assert rehearsal.breaks == []
    errors = {step.migration: find_errors(step.effects) for step in rehearsal.steps}
    assert {name: found for name, found in errors.items() if found} == {}


def test_migrations__since_the_first_release__have_no_python() -> None:
    """The rehearsal has no rows, so it cannot see what Python does to them."""
    nodes = MigrationLoader(None).graph.nodes
    later = [node for (app, name), node in nodes.items() if app == "state_admin"]
    python = [
        str(node)
        for node in later
        if any(isinstance(each, migrations.RunPython) for each in node.operations)
    ]
    assert python == []


@pytest.mark.parametrize("variable", ["DATABASE_URL", "DATABASE_URL_FILE"])
def test_upgrade__of_a_running_database__is_checked_and_applied(
    cluster: Cluster, start: Callable[..., Running], tmp_path: Path, variable: str
) -> None:
    """The check does not migrate it, also if a file names the database."""
    url = url_of(cluster)
    file = tmp_path / "url"
    file.write_text(url)
    where = {variable: str(file) if variable.endswith("_FILE") else url}
    old = start("manage.py", "migrate", "state_admin", "0010", **where)
    assert old.wait() == 0, old.output()

    check = start("manage.py", "upgrade", "--check", "--json", **where)
    assert check.wait() == 0, check.output()
    findings = [json.loads(line) for line in check.output().splitlines()]
    by_check = {finding["check"]: finding for finding in findings}
    index = by_check["state_admin.0011_threads_by_title"]
    assert "builds the index threads_title_words beside writes" in index["text"]
    assert by_check["previous version"]["text"] == "can use the new schema"
    assert by_check["disk"]["level"] == "ok"
    with connect(cluster) as database:
        assert database.execute("SELECT to_regclass('audit_streams')").fetchone() == (None,)

        upgrade = start("manage.py", "upgrade", **where)
        assert upgrade.wait() == 0, upgrade.output()
        assert "Migrated the database." in upgrade.output()
        assert database.execute("SELECT to_regclass('audit_streams')").fetchone() != (None,)


def run_upgrade(monkeypatch: pytest.MonkeyPatch, rehearsal: Rehearsal, *options: str) -> list[str]:
    """Run the command with these results of the rehearsal; returns what it migrated."""
    migrated: list[str] = []
    monkeypatch.setattr(upgrade_check.migrations, "find_due", lambda: ["state_admin.0099_next"])
    monkeypatch.setattr(upgrade_check, "rehearse", lambda applied: rehearsal)
    monkeypatch.setattr(startup, "migrate", lambda: not migrated.append("all"))
    call_command("upgrade", *options)
    return migrated


@pytest.mark.django_db
@pytest.mark.parametrize(
    "rehearsal",
    [
        Rehearsal([Step("next", [Effects({"entries": "ShareLock"}, scanned=["entries"])])], []),
        Rehearsal([], ["entries.value is gone"]),
        Rehearsal([Step("next", [Effects(rewritten=["entries"])])], []),
    ],
    ids=["blocks", "breaks", "disk"],
)
def test_upgrade__unsafe__is_refused_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, rehearsal: Rehearsal
) -> None:
    monkeypatch.setattr(estimates, "read_sizes", lambda: {"entries": LARGE})

    with pytest.raises(SystemExit) as refused:
        run_upgrade(monkeypatch, rehearsal)

    assert refused.value.code == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("options", "migrated"), [(["--check"], []), ([], ["all"])])
def test_upgrade__safe_at_this_size__is_applied_unless_it_is_a_check(
    monkeypatch: pytest.MonkeyPatch, options: list[str], migrated: list[str]
) -> None:
    effects = Effects({"entries": "ShareLock"}, scanned=["entries"])
    monkeypatch.setattr(estimates, "read_sizes", lambda: {"entries": SMALL})

    assert run_upgrade(monkeypatch, Rehearsal([Step("x", [effects])], []), *options) == migrated


@pytest.mark.django_db
def test_disk__server_on_another_machine__is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "EMBEDDED", False)
    monkeypatch.setitem(connection.settings_dict, "HOST", "db.example")

    (finding,) = upgrade_check._check_disk(5 * 2**20)

    assert finding == Finding("disk", "warning", "up to 5 MiB needed", finding.remedy)
    assert "cannot be read from here" in finding.remedy


@pytest.mark.django_db(transaction=True)
def test_index__estimated_size__is_at_least_the_real_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE big (id bigint, k text, v text)")
        try:
            cursor.execute(
                "INSERT INTO big SELECT n, 'key-' || n, repeat(md5(n::text), 4)"
                " FROM generate_series(1, 20000) n"
            )
            cursor.execute("ANALYZE big")
            size = estimates.read_sizes()["big"]
            for name, on, columns, expressions in (
                ("by_k", "(k, id)", ["id", "k"], False),
                ("words", "USING gin (to_tsvector('simple', v))", ["v"], True),
            ):
                cursor.execute(f"CREATE INDEX {name} ON big {on}")
                cursor.execute("SELECT pg_relation_size(%s::regclass)", [name])
                (real,) = cursor.fetchone()
                index = NewIndex(name, "big", columns, expressions, True)
                assert real <= estimates._index_bytes(index, size) <= 10 * real
        finally:
            cursor.execute("DROP TABLE big")
