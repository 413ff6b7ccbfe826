"""A copy of a workspace is equal to the source, and every table belongs to one, or its declaration
gives the reason why not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.apps import apps
from django.db import models

from state_admin.domain.access import Role
from state_admin.models import (
    ApiToken,
    AuditRow,
    Change,
    ConfigSecret,
    Entry,
    EntryRevision,
    Membership,
    SavedView,
    Webhook,
    WebhookDelivery,
    WebhookSecret,
    WebhookStatus,
    Workspace,
    workspace_copies_sql,
)
from state_admin.models.fields import PgSnapshot, Xid8
from state_admin.models.workspace_tables import TABLES, Table
from state_admin.services import (
    config_secrets,
    demo,
    entry_views,
    indexing,
    knowledge,
    search,
    users,
    verification,
)
from state_admin.services.actors import actor_of_token, system_actor
from tests.builders import Person, make_token, put
from tests.services.workspace_copying import (
    EXACT,
    copy,
    digests,
    export,
    make_workspace,
    portable_rows,
    rows_of,
)

SLUG = demo.WORKSPACE


@pytest.fixture(scope="module")
def source(module_transaction: None) -> Person:
    return make_workspace()


@pytest.fixture(scope="module")
def file(source: Person) -> bytes:
    return export(SLUG)


@pytest.fixture(autouse=True)
def in_transaction(source: Person, db: None) -> None:
    """The transaction of the module, and a savepoint of the test."""


# The rules -----------------------------------------------------------------------------------


NOT_COPIED = {
    "User": "belongs to the server",
    "LoginLink": "belongs to a user",
    "LoginAttempt": "belongs to a user",
    "UserSession": "belongs to a user",
    "FeedEra": "belongs to the server",
    "WorkspaceMove": "belongs to the server",
    "Arrival": "positions of the file are not kept",
    "Sweep": "belongs to the server",
    "AuditStream": "belongs to the server",
    "IdempotencyRecord": "has credentials of the server as its key, and expires after a day",
    "RateBucket": "refills within a minute",
    "Presence": "expires after a minute",
    "WritePosition": "belongs to the server",
    "SearchDocument": "is computed again",
    "SearchPosition": "is computed again",
}


def test_tables__every_model__is_copied_or_says_why_not() -> None:
    models_of_app = apps.get_app_config("state_admin").get_models()
    assert sorted(model.__name__ for model in models_of_app) == sorted(
        [*(table.model.__name__ for table in TABLES), *NOT_COPIED]
    )


def test_tables__every_row_that_one_refers_to__is_copied_before_or_may_be_null() -> None:
    """Foreign keys are checked at the end of the transaction; the order is for readers of the file."""
    seen: set[type[models.Model]] = set()
    for table in TABLES:
        for column, field in table.fields.items():
            target = table.rule(column).refers
            assert target in seen or target in (None, table.model) or field.null, (table, column)
        seen.add(table.model)


# Their values mean something on one server only, or open something there.
SENSITIVE = ("digest", "salt", "ciphertext", "key_id", "lookup", "secret", "password", "token")


def test_columns__of_this_server_only__have_a_rule() -> None:
    """Numbers of rows that are not foreign keys, transaction ids, and secrets."""
    for table in TABLES:
        for column, field in table.fields.items():
            is_number = isinstance(field, models.IntegerField) and column.endswith("_id")
            is_clock = isinstance(field, Xid8 | PgSnapshot) or column.endswith("xid")
            is_secret = column.endswith(SENSITIVE)
            if not field.primary_key and (is_number or is_clock or is_secret):
                assert column in table.columns or column in HARMLESS, f"{table.name}.{column}"


# `fencing_token` counts; `seen` has transaction ids of the source, which remain in the past
# (workspace_imports.py).
HARMLESS = {"fencing_token", "seen"}


def test_columns__unique_on_the_server__have_a_rule() -> None:
    """A copy beside its source would violate the constraint. Others contain a number of the copy."""
    for table in TABLES:
        unique = [[each.column] for each in table.fields.values() if each.unique]
        for constraint in table.model._meta.constraints:
            if isinstance(constraint, models.UniqueConstraint):
                fields = [table.model._meta.get_field(name) for name in constraint.fields]
                unique.append([str(field.column) for field in fields])
        for columns in unique:
            rules = [table.rule(column) for column in columns]
            assert any(rule.refers or rule.imported for rule in rules) or columns == ["slug"], (
                f"{table.name}: {columns}"
            )


def test_source__every_table__has_rows(source: Person) -> None:
    empty = [name for name, rows in rows_of(export(SLUG, secrets=True)).items() if not rows]
    assert empty == []


# Round trip ----------------------------------------------------------------------------------


def test_copy__every_row__is_equal_to_the_source(source: Person) -> None:
    file = export(SLUG, secrets=True)
    done = copy(file, members=True)

    before, after = portable_rows(file), portable_rows(export("copy", secrets=True))
    assert after["workspaces"].pop().pop("slug") == "copy"
    assert before["workspaces"].pop().pop("slug") == SLUG
    for log, name in (("changes", "kind"), ("audit", "action")):
        assert after[log].pop()[name] == "workspace.import"
    _forget_ciphertexts(before, after)
    for table, rows in before.items():
        assert after[table] == rows, table
    assert done.members == []


def _forget_ciphertexts(*files: Any) -> None:
    """They are encrypted again."""
    for rows in files:
        for row in rows["config_secrets"]:
            assert row.pop("ciphertext")


def test_copy__with_members__their_unused_login_links_stop_working(
    file: bytes, source: Person
) -> None:
    """Admins of their other workspaces may have them."""
    first, second = (users.make_login_link(source.user) for _ in range(2))
    copy(file, "without")
    assert users.use_login_link(first) == source.user
    copy(file, members=True)
    assert users.use_login_link(second) is None


def test_copy__digests_of_verify_state__are_equal(file: bytes) -> None:
    copy(file)
    assert len(digests(SLUG)) > 50
    assert digests("copy") == digests(SLUG)
    assert verification.verify_state().faults == []


def test_copy__values__are_exact(file: bytes) -> None:
    workspace = copy(file).workspace
    rows = Entry.objects.filter(namespace__workspace=workspace, namespace__name="notes_exact")
    exact = rows.filter(key__startswith="k ").order_by("key")
    assert tuple(exact.values_list("value", flat=True)) == EXACT
    assert exact[0].tags == ['a"b', "c,d", "{e}", "\\"]
    assert rows.get(key="deleted").deleted


def test_copy__of_a_copy__is_equal(file: bytes) -> None:
    copy(file)
    copy(export("copy"), "second")
    assert digests("second") == digests(SLUG)


def test_copy__writes_an_audit_row_with_its_actor(file: bytes) -> None:
    workspace = copy(file).workspace
    row = AuditRow.objects.filter(workspace=workspace).latest("id")
    assert (row.action, row.key, row.actor_kind, row.actor_name) == (
        "workspace.import", "copy", "system", "operator",
    )  # fmt: skip
    assert row.detail["source"] == SLUG
    assert row.detail["rows"] == sum(map(len, rows_of(file).values()))


def test_copy__is_written_to__and_the_source_does_not_change(file: bytes, source: Person) -> None:
    before = digests(SLUG)
    workspace = copy(file).workspace
    actor = system_actor(workspace.pk, "test")
    view = entry_views.read_entry(actor=actor, namespace="notes_exact", key="expiring")
    assert view.version == 1
    put(actor, "notes_exact", "expiring", 6)
    put(actor, "notes_exact", "new", 6)
    assert digests(SLUG) == before
    assert verification.verify_state().faults == []


def test_copy__what_runs_knew__is_equal(file: bytes, source: Person) -> None:
    workspace = copy(file).workspace
    runs = [row["public_id"] for row in rows_of(file)["runs"]]
    assert runs
    for run in runs:
        before, after = (
            knowledge.read_knowledge(actor=system_actor(each, "test"), run_id=run)
            for each in (source.workspace.pk, workspace.pk)
        )
        assert after.exact
        assert after.revision.number == before.revision.number
        assert after.entries == before.entries
        assert len(after.reads) == len(before.reads)


def test_copy__search__finds_the_entries_before_and_after_the_index_is_built(file: bytes) -> None:
    actor = system_actor(copy(file).workspace.pk, "test")

    def found() -> list[str]:
        page = search.search_entries(actor=actor, text="lisbon")
        return sorted(hit.entry.key for hit in page.hits)

    before = found()
    assert before
    indexing.index_entries()
    assert found() == before


# The change feed -----------------------------------------------------------------------------


def test_copy__changes__have_the_order_of_the_source_and_one_position(file: bytes) -> None:
    workspace = copy(file).workspace
    newest = Change.objects.filter(workspace__slug=SLUG).latest("xid")
    rows = list(Change.objects.filter(workspace=workspace).order_by("xid", "id"))
    expected = [row["kind"] for row in rows_of(file)["changes"]]
    assert [row.kind for row in rows] == [*expected, "workspace.import"]
    assert len({row.xid for row in rows[:-1]}) == 1
    assert rows[0].xid >= newest.xid


def test_copy__webhook__continues_behind_the_same_change(file: bytes) -> None:
    workspace = copy(file).workspace
    places = []
    for each in (Workspace.objects.get(slug=SLUG), workspace):
        hook = Webhook.objects.get(workspace=each, name="hook")
        feed = Change.objects.filter(workspace=each).order_by("xid", "id").values_list("xid", "id")
        places.append(list(feed).index(hook.place))
        of = WebhookDelivery.objects.filter(webhook=hook, test=False).order_by("pk")
        places += [list(feed).index((row.change_xid, row.change_id)) for row in of]
    assert places[:3] == places[3:]


# The audit log -------------------------------------------------------------------------------


def test_copy__audit_rows_in_gaps_of_earlier_pages__have_the_order_of_the_source(
    file: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Outside of the transaction of the tests, COPY fills such gaps. This has the same effect.
    def stage_backwards(table: Table, columns: Any, rows: Any) -> None:
        stage_rows(table, columns, list(rows)[::-1])

    stage_rows = workspace_copies_sql.stage_rows
    monkeypatch.setattr(workspace_copies_sql, "stage_rows", stage_backwards)

    rows = AuditRow.objects.filter(workspace=copy(file).workspace).order_by("pk")

    expected = [row["action"] for row in rows_of(file)["audit"]]
    assert [row.action for row in rows] == [*expected, "workspace.import"]


# Secrets -------------------------------------------------------------------------------------


def test_copy__without_secrets__says_what_must_be_set_again(file: bytes, source: Person) -> None:
    done = copy(file)

    assert done.tokens == ["narrow"]
    assert done.webhooks == ["Travel desk", "hook"]
    assert done.secrets == ["config.providers/models-example /api_key"]
    assert done.members == ["ann"]
    workspace = done.workspace
    assert not ConfigSecret.objects.filter(entry__namespace__workspace=workspace).exists()
    assert not WebhookSecret.objects.filter(webhook__workspace=workspace).exists()
    assert not Membership.objects.filter(workspace=workspace).exists()
    assert not SavedView.objects.filter(workspace=workspace).exists()
    hooks = Webhook.objects.filter(workspace=workspace).order_by("pk")
    assert [hook.status for hook in hooks] == [WebhookStatus.PAUSED, WebhookStatus.DISABLED]
    assert "rotate the secret" in hooks[1].status_reason


def test_export__without_secrets__contains_none(file: bytes, source: Person) -> None:
    token = ApiToken.objects.filter(workspace=source.workspace).latest("pk")
    salts = WebhookSecret.objects.filter(webhook__workspace=source.workspace)
    secrets = ConfigSecret.objects.filter(entry__namespace__workspace=source.workspace)
    hidden = [token.digest, *(row.salt for row in salts)]
    hidden += [bytes(row.ciphertext).hex() for row in secrets]
    assert len(hidden) == 4
    text = file.decode()
    assert [secret for secret in hidden if secret in text] == []
    whole = export(SLUG, secrets=True).decode()
    assert [secret for secret in hidden if secret not in whole] == []


def test_copy__with_secrets__opens_them_and_signs(source: Person) -> None:
    done = copy(export(SLUG, secrets=True))
    assert (done.webhooks, done.secrets) == ([], [])
    opened = config_secrets.find_provider_secret(
        workspace_id=done.workspace.pk, provider_id="models-example"
    )
    assert opened == "demo-key-that-opens-nothing"
    assert Webhook.objects.get(workspace=done.workspace, name="hook").status == "active"


def test_copy__with_secrets_of_other_keys__says_what_must_be_set_again(
    source: Person, settings: Any
) -> None:
    file = export(SLUG, secrets=True)
    settings.SECRET_KEY = "another server"
    done = copy(file)
    assert done.webhooks == ["Travel desk", "hook"]
    assert done.secrets == ["config.providers/models-example /api_key"]


@pytest.mark.parametrize("deleted", [False, True], ids=["on the same server", "moved"])
def test_copy__token__is_valid_where_the_server_does_not_have_it(
    source: Person, deleted: bool
) -> None:
    secret, actor = make_token(source)
    file = export(SLUG, secrets=True)
    if deleted:  # as on another server
        ApiToken.objects.filter(workspace=source.workspace).delete()
    workspace = copy(file).workspace
    found = actor_of_token(secret)
    assert found is not None
    assert (found.workspace_id == workspace.pk) is deleted
    assert found.role is actor.role


def test_copy__tampered_token__is_no_operator(source: Person) -> None:
    ApiToken.objects.filter(workspace=source.workspace).update(operator=True, role=Role.ADMIN)
    workspace = copy(export(SLUG)).workspace
    assert not ApiToken.objects.filter(workspace=workspace, operator=True).exists()


def test_copy__ids_that_are_unique_on_the_server__are_kept_only_on_another_one(
    source: Person,
) -> None:
    file = export(SLUG)
    before = {row["public_id"] for row in rows_of(file)["webhooks"]}
    here = copy(file).workspace
    Webhook.objects.filter(workspace=source.workspace).delete()
    elsewhere = copy(file, "elsewhere").workspace
    assert not before & set(_public_ids(here))
    assert before == set(_public_ids(elsewhere))


def _public_ids(workspace: Workspace) -> list[str]:
    return list(Webhook.objects.filter(workspace=workspace).values_list("public_id", flat=True))


def test_file__every_line__is_json_and_the_first_describes_it(file: bytes) -> None:
    lines = [json.loads(line) for line in file.splitlines()]
    assert lines[0]["format"] == "commonhold-workspace"
    assert lines[0]["workspace"] == SLUG
    assert sum(each["rows"] for each in lines[0]["tables"].values()) == len(lines) - 2
    assert lines[-1]["end"]["rows"] == len(lines) - 2
    assert EntryRevision._meta.db_table in lines[0]["tables"]
