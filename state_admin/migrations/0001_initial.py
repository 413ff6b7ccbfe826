"""All tables, as the models declare them, after the one function that a column default calls."""

from __future__ import annotations

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.fields.json
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import state_admin.models.fields

from ._tables import CreateTables

# The feed's clock: changes of one thing come in the order of its versions (models/changes.py).
# In plpgsql because a volatile function looks anew at each call, after the statement's own locks.
_FEED_CLOCK = """
CREATE OR REPLACE FUNCTION feed_clock() RETURNS xid8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN greatest(pg_current_xact_id()::text::bigint,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)::text::xid8;
END $$;
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.RunSQL(_FEED_CLOCK, "DROP FUNCTION feed_clock()"),
        migrations.CreateModel(
            name="Workspace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.CharField(db_collation="C", max_length=64)),
                ("name", models.CharField(max_length=128)),
                ("max_entries", models.BigIntegerField(blank=True, null=True)),
                ("max_bytes", models.BigIntegerField(blank=True, null=True)),
                ("max_threads", models.BigIntegerField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
            options={
                "db_table": "workspaces",
                "constraints": [
                    models.UniqueConstraint(fields=("slug",), name="workspaces_slug_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("editor", "Editor"), ("admin", "Admin")],
                        max_length=8,
                    ),
                ),
                ("lookup", models.CharField(db_collation="C", max_length=16)),
                ("digest", models.CharField(max_length=64)),
                (
                    "namespaces",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "thread_prefixes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("rate_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("created_by", models.CharField(max_length=150)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("rotated_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "api_tokens",
                "constraints": [
                    models.UniqueConstraint(fields=("lookup",), name="api_tokens_lookup_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[("user", "User"), ("token", "Token"), ("system", "System")],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(max_length=64)),
                ("actor_name", models.CharField(max_length=150)),
                ("reason", models.TextField(db_default="", default="")),
                ("request_id", models.CharField(db_default="", default="", max_length=64)),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("action", models.CharField(max_length=48)),
                (
                    "namespace",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                ("key", models.TextField(db_collation="C", db_default="", default="")),
                (
                    "thread",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                (
                    "run",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                ("version", models.BigIntegerField(db_default=0, default=0)),
                ("detail", models.JSONField(db_default={}, default=dict)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "audit",
                "indexes": [
                    models.Index(fields=["workspace", "-id"], name="audit_workspace_newest"),
                    django.contrib.postgres.indexes.BrinIndex(fields=["at"], name="audit_at_brin"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "xid",
                    state_admin.models.fields.Xid8(
                        db_default=state_admin.models.fields.CurrentXid(), editable=False
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("kind", models.CharField(max_length=48)),
                (
                    "namespace",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                ("key", models.TextField(db_collation="C", db_default="", default="")),
                (
                    "thread",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                (
                    "run",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                ("version", models.BigIntegerField(db_default=0, default=0)),
                ("actor_name", models.CharField(db_default="", default="", max_length=150)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "changes",
                "indexes": [
                    models.Index(fields=["workspace", "xid", "id"], name="changes_feed_order"),
                    django.contrib.postgres.indexes.BrinIndex(
                        fields=["at"], name="changes_at_brin"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CompactionPolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "agent_id",
                    models.CharField(blank=True, db_collation="C", default="", max_length=128),
                ),
                ("body", state_admin.models.fields.RawJSON(default="{}")),
                ("version", models.BigIntegerField(default=1)),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("updated_by", models.CharField(max_length=150)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "compaction_policies",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "agent_id"), name="compaction_policies_of_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Namespace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(db_collation="C", max_length=128)),
                ("schema", state_admin.models.fields.RawJSON(default="{}")),
                ("schema_version", models.PositiveIntegerField(default=1)),
                ("default", state_admin.models.fields.RawJSON(default="null")),
                ("description", models.TextField(blank=True, default="")),
                ("plugin", models.CharField(blank=True, default="", max_length=128)),
                ("max_value_bytes", models.PositiveIntegerField(blank=True, null=True)),
                ("ttl_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("history_keep_last", models.PositiveIntegerField(blank=True, null=True)),
                ("history_keep_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("unregistered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="namespaces",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "namespaces",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name"), name="namespaces_name_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.TextField(db_collation="C")),
                ("value", state_admin.models.fields.RawJSON(null=True)),
                ("version", models.BigIntegerField(default=1)),
                ("born_version", models.BigIntegerField(default=1)),
                ("schema_version", models.PositiveIntegerField()),
                ("deleted", models.BooleanField(default=False)),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("pinned", models.BooleanField(db_default=False, default=False)),
                ("size_bytes", models.PositiveIntegerField(default=0)),
                ("estimated_tokens", models.PositiveIntegerField(default=0)),
                ("actor_kind", models.CharField(max_length=8)),
                ("actor_name", models.CharField(max_length=150)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="state_admin.namespace",
                    ),
                ),
            ],
            options={
                "db_table": "entries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted", False), ("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="entries_expiring",
                    ),
                    django.contrib.postgres.indexes.BrinIndex(
                        fields=["updated_at"], name="entries_updated_brin"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "key"), name="entries_key_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                ("scope", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("headers", models.JSONField(default=dict)),
                ("body", models.BinaryField(default=b"")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "idempotency_records",
                "indexes": [models.Index(fields=["created_at"], name="idempotency_age")],
            },
        ),
        migrations.CreateModel(
            name="Thread",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=128)),
                (
                    "resource_id",
                    models.CharField(blank=True, db_collation="C", default="", max_length=128),
                ),
                ("title", models.CharField(blank=True, default="", max_length=512)),
                ("metadata", state_admin.models.fields.RawJSON(default="{}")),
                ("version", models.BigIntegerField(db_default=1, default=1)),
                ("created_from", state_admin.models.fields.RawJSON(default="{}")),
                ("revision", models.BigIntegerField(default=0)),
                ("message_count", models.IntegerField(default=0)),
                ("context_tokens", models.BigIntegerField(default=0)),
                ("forked_from", models.JSONField(blank=True, null=True)),
                ("policy", state_admin.models.fields.RawJSON(db_default="{}", default="{}")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="threads",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "threads",
                "indexes": [
                    models.Index(
                        fields=["workspace", "resource_id", "id"], name="threads_by_resource"
                    ),
                    models.Index(fields=["workspace", "-id"], name="threads_newest"),
                    models.Index(
                        models.F("workspace"),
                        django.db.models.fields.json.KeyTransform("thread_id", "forked_from"),
                        models.F("id"),
                        condition=models.Q(("forked_from__isnull", False)),
                        name="threads_forks",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="threads_id_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelCircuit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("provider", models.CharField(db_collation="C", max_length=128)),
                ("model", models.CharField(db_collation="C", max_length=128)),
                ("failures", models.IntegerField(default=0)),
                ("open_until", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "model_circuits",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "provider", "model"), name="model_circuits_of_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelSpending",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("cost_usd", models.DecimalField(decimal_places=6, default=0, max_digits=14)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "model_spending",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "day"), name="model_spending_day_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cost_usd__gte", 0)), name="model_spending_not_negative"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Plugin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(db_collation="C", max_length=128)),
                ("description", models.TextField(blank=True, default="")),
                (
                    "installed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="plugins",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "plugins",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name"), name="plugins_name_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=128)),
                ("agent_id", models.CharField(blank=True, default="", max_length=128)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("created", "Created"),
                            ("running", "Running"),
                            ("waiting", "Waiting"),
                            ("done", "Done"),
                        ],
                        max_length=8,
                    ),
                ),
                ("waiting", models.JSONField(blank=True, null=True)),
                ("termination_reason", models.JSONField(blank=True, null=True)),
                (
                    "parent_run_id",
                    models.CharField(blank=True, db_collation="C", default="", max_length=128),
                ),
                (
                    "parent_thread_id",
                    models.CharField(
                        blank=True, db_collation="C", db_default="", default="", max_length=128
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("user", "User"),
                            ("mcp", "Mcp"),
                            ("subagent", "Subagent"),
                            ("internal", "Internal"),
                        ],
                        default="user",
                        max_length=16,
                    ),
                ),
                ("metadata", state_admin.models.fields.RawJSON(default="{}")),
                ("created_from", state_admin.models.fields.RawJSON(default="{}")),
                ("step_count", models.IntegerField(default=0)),
                ("input_tokens", models.BigIntegerField(default=0)),
                ("output_tokens", models.BigIntegerField(default=0)),
                ("cost_usd", models.DecimalField(decimal_places=6, default=0, max_digits=14)),
                ("max_rounds", models.IntegerField(default=0)),
                ("times_out_at", models.DateTimeField(blank=True, null=True)),
                ("deadline_at", models.DateTimeField(blank=True, null=True)),
                ("lease_seconds", models.IntegerField(default=60)),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("lease_released_at", models.DateTimeField(blank=True, null=True)),
                ("fencing_token", models.BigIntegerField(db_default=1, default=1)),
                ("ticket_due_at", models.DateTimeField(blank=True, null=True)),
                ("flagged_at", models.DateTimeField(blank=True, null=True)),
                ("start_revision", models.BigIntegerField(default=0)),
                ("last_revision", models.BigIntegerField(default=0)),
                ("revision_count", models.IntegerField(db_default=0, default=0)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "runs",
                "indexes": [
                    models.Index(fields=["workspace", "-id"], name="runs_newest"),
                    models.Index(fields=["workspace", "agent_id", "-id"], name="runs_by_agent"),
                    models.Index(
                        condition=models.Q(("status", "done"), _negated=True),
                        fields=["workspace", "status"],
                        name="runs_active",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="runs_id_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["created", "running", "waiting"])),
                        fields=("thread",),
                        name="runs_one_active_per_thread",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StateKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(db_collation="C", max_length=128)),
                ("schema", state_admin.models.fields.RawJSON(default="{}")),
                ("default", state_admin.models.fields.RawJSON(default="null")),
                (
                    "merge",
                    models.CharField(
                        choices=[("exclusive", "Exclusive"), ("commutative", "Commutative")],
                        default="exclusive",
                        max_length=12,
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[("run", "Run"), ("thread", "Thread")], default="run", max_length=8
                    ),
                ),
                ("reducer", models.CharField(default="replace", max_length=16)),
                ("persistent", models.BooleanField(default=True)),
                ("retain_on_uninstall", models.BooleanField(default=False)),
                ("plugin", models.CharField(blank=True, default="", max_length=128)),
                ("description", models.TextField(blank=True, default="")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="state_keys",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "state_keys",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name"), name="state_keys_name_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StorageSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("measured_at", models.DateTimeField()),
                ("entries", models.BigIntegerField(default=0)),
                ("entry_bytes", models.BigIntegerField(default=0)),
                ("history_rows", models.BigIntegerField(default=0)),
                ("history_bytes", models.BigIntegerField(default=0)),
                ("threads", models.BigIntegerField(default=0)),
                ("messages", models.BigIntegerField(default=0)),
                ("message_bytes", models.BigIntegerField(default=0)),
                ("state_rows", models.BigIntegerField(default=0)),
                ("state_bytes", models.BigIntegerField(default=0)),
                ("estimated_tokens", models.BigIntegerField(default=0)),
                ("total_rows", models.BigIntegerField(default=0)),
                ("total_bytes", models.BigIntegerField(default=0)),
                ("tokens_saved", models.BigIntegerField(default=0)),
                ("rows_removed", models.BigIntegerField(default=0)),
                (
                    "namespace",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="state_admin.namespace",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "storage_samples",
                "indexes": [
                    models.Index(
                        fields=["workspace", "day", "-total_bytes", "-id"],
                        name="storage_samples_biggest",
                    ),
                    models.Index(fields=["day"], name="storage_samples_day"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "namespace", "thread", "day"),
                        name="storage_samples_of_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Sweep",
            fields=[
                ("name", models.CharField(max_length=48, primary_key=True, serialize=False)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("report", models.JSONField(default=dict)),
                ("last_effect_at", models.DateTimeField(null=True)),
                ("last_effect", models.JSONField(default=dict)),
                ("runs", models.BigIntegerField(default=0)),
                ("error", models.TextField(default="")),
            ],
            options={"db_table": "sweeps"},
        ),
        migrations.CreateModel(
            name="Ticket",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=128)),
                ("tool_call_id", models.CharField(blank=True, default="", max_length=256)),
                ("tool_name", models.CharField(blank=True, default="", max_length=256)),
                ("arguments", state_admin.models.fields.RawJSON(default="null")),
                ("resume_mode", models.CharField(default="replay_tool_call", max_length=32)),
                ("reason", models.TextField(blank=True, default="")),
                ("response_schema", state_admin.models.fields.RawJSON(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "on_expiry",
                    models.CharField(
                        choices=[("keep", "Keep"), ("cancel", "Cancel")],
                        db_default="keep",
                        default="keep",
                        max_length=8,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("resumed", "Resumed"),
                            ("cancelled", "Cancelled"),
                            ("void", "Void"),
                        ],
                        default="pending",
                        max_length=12,
                    ),
                ),
                ("payload", state_admin.models.fields.RawJSON(blank=True, null=True)),
                ("decided_by", models.CharField(blank=True, default="", max_length=150)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tickets",
                        to="state_admin.run",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "tickets",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["workspace", "id"],
                        name="tickets_pending",
                    ),
                    models.Index(
                        condition=models.Q(("on_expiry", "cancel"), ("status", "pending")),
                        fields=["expires_at"],
                        name="tickets_expiring",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="tickets_id_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Traffic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("minute", models.DateTimeField()),
                ("reads", models.BigIntegerField(default=0)),
                ("writes", models.BigIntegerField(default=0)),
                ("conflicts", models.BigIntegerField(default=0)),
                ("queued", models.IntegerField(blank=True, null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "traffic",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "minute"), name="traffic_minute_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="date joined"
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "db_table": "users",
                "abstract": False,
                "swappable": "AUTH_USER_MODEL",
            },
            managers=[("objects", django.contrib.auth.models.UserManager())],
        ),
        migrations.CreateModel(
            name="UserSession",
            fields=[
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("session_key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "db_table": "sessions",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("name", models.CharField(max_length=128)),
                ("url", models.TextField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("active", "Active"),
                            ("paused", "Paused"),
                            ("disabled", "Disabled"),
                        ],
                        default="active",
                        max_length=8,
                    ),
                ),
                ("status_reason", models.TextField(blank=True, default="")),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "namespaces",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("key", models.TextField(blank=True, db_collation="C", default="")),
                ("prefix", models.TextField(blank=True, db_collation="C", default="")),
                (
                    "thread",
                    models.CharField(blank=True, db_collation="C", default="", max_length=128),
                ),
                ("run", models.CharField(blank=True, db_collation="C", default="", max_length=128)),
                (
                    "grant_namespaces",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "grant_thread_prefixes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("created_by", models.CharField(max_length=150)),
                ("place_xid", models.BigIntegerField()),
                ("place_id", models.BigIntegerField()),
                ("place_at", models.DateTimeField()),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                ("last_delivered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "webhooks",
                "indexes": [models.Index(fields=["workspace", "-id"], name="webhooks_newest")],
                "constraints": [
                    models.UniqueConstraint(fields=("public_id",), name="webhooks_id_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("change_xid", models.BigIntegerField()),
                ("change_id", models.BigIntegerField()),
                ("event_id", models.CharField(db_collation="C", max_length=64)),
                ("kind", models.CharField(max_length=48)),
                ("subject", models.TextField(blank=True, default="")),
                ("body", models.TextField()),
                ("test", models.BooleanField(default=False)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("delivering", "Delivering"),
                            ("delivered", "Delivered"),
                            ("failed", "Failed"),
                            ("dead", "Dead"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.IntegerField(default=0)),
                ("response_status", models.IntegerField(blank=True, null=True)),
                ("latency_ms", models.IntegerField(blank=True, null=True)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "next_attempt_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("claim", models.BigIntegerField(default=0)),
                ("replays", models.IntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("attempted_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="state_admin.webhook",
                    ),
                ),
            ],
            options={
                "db_table": "webhook_deliveries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ["queued", "delivering", "failed"])),
                        fields=["webhook", "id"],
                        name="webhook_deliveries_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ["queued", "delivering", "failed"]), ("test", True)
                        ),
                        fields=["id"],
                        name="webhook_deliveries_tests",
                    ),
                    models.Index(
                        condition=models.Q(("status", "delivering")),
                        fields=["lease_expires_at"],
                        name="webhook_deliveries_leases",
                    ),
                    models.Index(fields=["webhook", "-id"], name="webhook_deliveries_newest"),
                    models.Index(
                        fields=["webhook", "status", "-id"], name="webhook_deliveries_by_status"
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ["delivered", "dead"])),
                        fields=["status", "finished_at"],
                        name="webhook_deliveries_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("public_id",), name="webhook_deliveries_id_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "delivering"), ("test", False)),
                        fields=("webhook",),
                        name="webhook_deliveries_in_flight",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("salt", models.CharField(max_length=64)),
                ("key_id", models.CharField(max_length=16)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="state_admin.webhook",
                    ),
                ),
            ],
            options={"db_table": "webhook_secrets"},
        ),
        migrations.CreateModel(
            name="RateBucket",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="state_admin.apitoken",
                    ),
                ),
                ("level", models.FloatField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={"db_table": "rate_buckets"},
        ),
        migrations.CreateModel(
            name="SearchDocument",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="document",
                        serialize=False,
                        to="state_admin.entry",
                    ),
                ),
                ("version", models.BigIntegerField()),
                ("terms", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "db_table": "search_documents",
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["terms"], name="search_documents_terms"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ConfigSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("pointer", models.CharField(db_collation="C", max_length=128)),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("ciphertext", models.BinaryField()),
                ("key_id", models.CharField(max_length=16)),
                (
                    "set_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="state_admin.entry",
                    ),
                ),
            ],
            options={
                "db_table": "config_secrets",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "pointer"), name="config_secrets_place_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LoginAttempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("username", models.CharField(db_collation="C", max_length=150)),
                ("address", models.GenericIPAddressField()),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
            options={
                "db_table": "login_attempts",
                "indexes": [
                    models.Index(fields=["address", "at"], name="login_attempts_of_address")
                ],
            },
        ),
        migrations.CreateModel(
            name="LoginLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="login_links",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "login_links",
                "constraints": [
                    models.UniqueConstraint(fields=("digest",), name="login_links_digest_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="Mailbox",
            fields=[
                (
                    "thread",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="mailbox",
                        serialize=False,
                        to="state_admin.thread",
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                ("next_id", models.BigIntegerField(blank=True, null=True)),
                ("next_priority", models.SmallIntegerField(blank=True, null=True)),
                ("next_agent", models.CharField(blank=True, default="", max_length=128)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "mailboxes",
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_id__isnull", False)),
                        fields=["workspace", "next_priority", "next_id"],
                        name="mailboxes_next",
                    ),
                    models.Index(
                        condition=models.Q(("next_id__isnull", False)),
                        fields=["workspace", "next_agent", "next_priority", "next_id"],
                        name="mailboxes_next_of_agent",
                    ),
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["workspace", "due_at"],
                        name="mailboxes_due",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("editor", "Editor"), ("admin", "Admin")],
                        max_length=8,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "memberships",
                "constraints": [
                    models.UniqueConstraint(fields=("user", "workspace"), name="memberships_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.IntegerField()),
                ("public_id", models.CharField(db_collation="C", max_length=128)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("system", "System"),
                            ("user", "User"),
                            ("assistant", "Assistant"),
                            ("tool", "Tool"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "visibility",
                    models.CharField(
                        choices=[("all", "All"), ("internal", "Internal")],
                        default="all",
                        max_length=8,
                    ),
                ),
                ("body", state_admin.models.fields.RawJSON()),
                ("opens", models.JSONField(db_default=[], default=list)),
                ("answers", models.CharField(blank=True, max_length=256, null=True)),
                ("estimated_tokens", models.IntegerField()),
                ("folds_from", models.IntegerField(blank=True, null=True)),
                ("folds_to", models.IntegerField(blank=True, null=True)),
                ("fold_carries", models.IntegerField(blank=True, null=True)),
                ("fold_lifted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="state_admin.run",
                    ),
                ),
            ],
            options={
                "db_table": "messages",
                "indexes": [
                    models.Index(
                        condition=models.Q(("folds_to__isnull", False)),
                        fields=["thread", "seq"],
                        name="messages_summaries",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("thread", "seq"), name="messages_seq_unique"),
                    models.UniqueConstraint(
                        fields=("thread", "public_id"), name="messages_id_unique"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Compaction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=128)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("context", "Context"),
                            ("snapshot", "Snapshot"),
                            ("history", "History"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("skipped", "Skipped"),
                            ("failed", "Failed"),
                            ("superseded", "Superseded"),
                            ("cancelled", "Cancelled"),
                            ("undone", "Undone"),
                        ],
                        default="queued",
                        max_length=12,
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("threshold", "Threshold"),
                            ("hand", "Hand"),
                            ("schedule", "Schedule"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "phase",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("claimed", "started"),
                            ("planning", "selecting messages"),
                            ("asking", "waiting for the summary"),
                            ("applying", "saving the summary"),
                        ],
                        db_default="",
                        default="",
                        max_length=8,
                    ),
                ),
                ("requested_by", models.CharField(max_length=150)),
                ("reason", models.TextField(blank=True, db_default="", default="")),
                ("policy", state_admin.models.fields.RawJSON(default="{}")),
                ("boundary_seq", models.IntegerField(blank=True, null=True)),
                ("boundary_message_id", models.CharField(blank=True, default="", max_length=128)),
                ("tokens_before", models.BigIntegerField(blank=True, null=True)),
                ("tokens_after", models.BigIntegerField(blank=True, null=True)),
                ("to_revision", models.BigIntegerField(blank=True, null=True)),
                ("rows_before", models.BigIntegerField(blank=True, null=True)),
                ("rows_removed", models.BigIntegerField(default=0)),
                ("bytes_before", models.BigIntegerField(blank=True, null=True)),
                ("bytes_removed", models.BigIntegerField(db_default=0, default=0)),
                ("progress", models.JSONField(db_default={}, default=dict)),
                ("summary_text", models.TextField(blank=True, default="")),
                ("summarizer", models.CharField(blank=True, default="", max_length=64)),
                ("provider", models.CharField(blank=True, default="", max_length=128)),
                ("model", models.CharField(blank=True, default="", max_length=128)),
                ("instructions", models.TextField(blank=True, default="")),
                ("input_tokens", models.BigIntegerField(default=0)),
                ("output_tokens", models.BigIntegerField(default=0)),
                ("cost_usd", models.DecimalField(decimal_places=6, default=0, max_digits=14)),
                ("detail", models.TextField(blank=True, default="")),
                ("attempts", models.IntegerField(default=0)),
                (
                    "available_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("claim", models.BigIntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("undone_at", models.DateTimeField(blank=True, null=True)),
                ("undone_by", models.CharField(blank=True, default="", max_length=150)),
                (
                    "thread",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compactions",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "summary",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="state_admin.message",
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="state_admin.namespace",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "compactions",
                "indexes": [
                    models.Index(fields=["workspace", "-id"], name="compactions_newest"),
                    models.Index(
                        condition=models.Q(("status", "done")),
                        fields=["workspace", "finished_at"],
                        name="compactions_done",
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=["workspace", "available_at"],
                        name="compactions_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(("started_at__isnull", False)),
                        fields=["workspace", "started_at"],
                        name="compactions_served",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="compactions_id_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=("thread", "kind"),
                        name="compactions_single_flight",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=("namespace", "kind"),
                        name="compactions_single_history",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Presence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(db_collation="C", max_length=128)),
                ("key", models.TextField(db_collation="C")),
                (
                    "since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "presences",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "namespace", "key", "user"), name="presences_of_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Dispatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("agent_id", models.CharField(blank=True, default="", max_length=128)),
                ("payload", state_admin.models.fields.RawJSON(default="null")),
                ("priority", models.SmallIntegerField(default=128)),
                (
                    "available_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "dedupe_key",
                    models.CharField(blank=True, db_collation="C", default="", max_length=256),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Queued", "Queued"),
                            ("Claimed", "Claimed"),
                            ("Acked", "Acked"),
                            ("Cancelled", "Cancelled"),
                            ("Superseded", "Superseded"),
                            ("DeadLetter", "Dead"),
                        ],
                        default="Queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.IntegerField(default=0)),
                ("max_attempts", models.IntegerField(default=5)),
                ("replays", models.IntegerField(default=0)),
                ("last_error", models.TextField(blank=True, default="")),
                ("claim_digest", models.CharField(blank=True, default="", max_length=64)),
                ("claimed_by", models.CharField(blank=True, default="", max_length=150)),
                ("claimed_at", models.DateTimeField(blank=True, null=True)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dispatches",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dispatches",
                        to="state_admin.run",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "dispatches",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "Queued")),
                        fields=["thread", "priority", "id", "available_at"],
                        name="dispatches_line",
                    ),
                    models.Index(
                        condition=models.Q(("status", "Queued")),
                        fields=["thread", "available_at"],
                        name="dispatches_delayed",
                    ),
                    models.Index(fields=["workspace", "-id"], name="dispatches_newest"),
                    models.Index(
                        fields=["workspace", "status", "-id"], name="dispatches_by_status"
                    ),
                    models.Index(fields=["thread", "-id"], name="dispatches_of_thread"),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["status", "finished_at"],
                        name="dispatches_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="dispatches_id_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "Claimed")),
                        fields=("thread",),
                        name="dispatches_one_claimed_per_thread",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("status__in", ["Queued", "Claimed"]),
                            models.Q(("dedupe_key", ""), _negated=True),
                        ),
                        fields=("thread", "dedupe_key"),
                        name="dispatches_dedupe",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunRead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.BigIntegerField()),
                ("step", models.IntegerField()),
                ("namespace", models.CharField(db_collation="C", max_length=128)),
                ("key", models.TextField(db_collation="C")),
                ("version", models.BigIntegerField()),
                ("held", models.BigIntegerField()),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reads",
                        to="state_admin.run",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "run_reads",
                "indexes": [
                    models.Index(fields=["run", "-id"], name="run_reads_of_run"),
                    models.Index(
                        fields=["workspace", "namespace", "key", "version", "id"],
                        name="run_reads_of_entry",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("thread", "revision", "namespace", "key", "version"),
                        name="run_reads_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "page",
                    models.CharField(
                        choices=[("state", "State"), ("threads", "Threads"), ("runs", "Runs")],
                        max_length=8,
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("query", models.TextField()),
                ("shared", models.BooleanField(default=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "saved_views",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "page", "owner", "name"),
                        name="saved_views_name_unique",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DefaultView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "page",
                    models.CharField(
                        choices=[("state", "State"), ("threads", "Threads"), ("runs", "Runs")],
                        max_length=8,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "view",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="defaults",
                        to="state_admin.savedview",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "default_views",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "page", "user"), name="default_views_of_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchPosition",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="state_admin.workspace",
                    ),
                ),
                ("xid", models.BigIntegerField()),
                ("change_id", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("filled_to", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "search_positions"},
        ),
        migrations.CreateModel(
            name="WorkspaceUsage",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="state_admin.workspace",
                    ),
                ),
                ("entries", models.BigIntegerField(default=0)),
                ("bytes", models.BigIntegerField(default=0)),
                ("threads", models.BigIntegerField(default=0)),
                ("messages", models.BigIntegerField(default=0)),
                (
                    "measured_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={"db_table": "workspace_usage"},
        ),
        migrations.CreateModel(
            name="StateValue",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "thread_id",
                        "key",
                        "valid_from",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("key", models.CharField(db_collation="C", max_length=128)),
                ("valid_from", models.BigIntegerField()),
                ("valid_to", models.BigIntegerField(null=True)),
                ("value", state_admin.models.fields.RawJSON()),
                ("scope", models.CharField(max_length=8)),
                ("persistent", models.BooleanField(default=True)),
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="values",
                        to="state_admin.thread",
                    ),
                ),
            ],
            options={
                "db_table": "state_values",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("valid_to__isnull", True)),
                        fields=("thread", "key"),
                        name="state_values_current",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EntryRevision",
            fields=[
                (
                    "actor_kind",
                    models.CharField(
                        choices=[("user", "User"), ("token", "Token"), ("system", "System")],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(max_length=64)),
                ("actor_name", models.CharField(max_length=150)),
                ("reason", models.TextField(db_default="", default="")),
                ("request_id", models.CharField(db_default="", default="", max_length=64)),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "entry_id",
                        "version",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("version", models.BigIntegerField()),
                (
                    "operation",
                    models.CharField(
                        choices=[
                            ("put", "Put"),
                            ("patch", "Patch"),
                            ("delete", "Delete"),
                            ("restore", "Restore"),
                            ("expire", "Expire"),
                            ("import", "Import"),
                            ("redact", "Redact"),
                        ],
                        max_length=8,
                    ),
                ),
                ("value", state_admin.models.fields.RawJSON(null=True)),
                ("schema_version", models.PositiveIntegerField()),
                ("size_bytes", models.PositiveIntegerField(default=0)),
                ("expires_at", models.DateTimeField(null=True)),
                ("pinned", models.BooleanField(db_default=False, default=False)),
                (
                    "run",
                    models.CharField(db_collation="C", db_default="", default="", max_length=128),
                ),
                ("redacted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "redacted_by",
                    models.CharField(blank=True, db_default="", default="", max_length=150),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "xid",
                    state_admin.models.fields.Xid8(
                        db_default=state_admin.models.fields.CurrentXid(), editable=False, null=True
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="state_admin.entry",
                    ),
                ),
            ],
            options={"db_table": "entry_revisions"},
        ),
        migrations.CreateModel(
            name="NamespaceVersion",
            fields=[
                (
                    "actor_kind",
                    models.CharField(
                        choices=[("user", "User"), ("token", "Token"), ("system", "System")],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(max_length=64)),
                ("actor_name", models.CharField(max_length=150)),
                ("reason", models.TextField(db_default="", default="")),
                ("request_id", models.CharField(db_default="", default="", max_length=64)),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "namespace_id",
                        "schema_version",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("schema_version", models.PositiveIntegerField()),
                ("schema", state_admin.models.fields.RawJSON()),
                ("default", state_admin.models.fields.RawJSON()),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "namespace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="state_admin.namespace",
                    ),
                ),
            ],
            options={"db_table": "namespace_versions"},
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                (
                    "actor_kind",
                    models.CharField(
                        choices=[("user", "User"), ("token", "Token"), ("system", "System")],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(max_length=64)),
                ("actor_name", models.CharField(max_length=150)),
                ("reason", models.TextField(db_default="", default="")),
                ("request_id", models.CharField(db_default="", default="", max_length=64)),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "thread_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.BigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("start", "Start"),
                            ("commit", "Commit"),
                            ("end", "End"),
                            ("restore", "Restore"),
                            ("import", "Import"),
                            ("fork", "Fork"),
                            ("uninstall", "Uninstall"),
                        ],
                        max_length=12,
                    ),
                ),
                ("step", models.IntegerField(null=True)),
                (
                    "touched",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                ("message_count", models.IntegerField()),
                ("label", models.CharField(db_default="", default="", max_length=128)),
                ("pinned", models.BooleanField(db_default=False, default=False)),
                ("dropped", models.BooleanField(db_default=False, default=False)),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "seen",
                    state_admin.models.fields.PgSnapshot(
                        db_default=state_admin.models.fields.CurrentSnapshot(),
                        editable=False,
                        null=True,
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="state_admin.thread",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="state_admin.run",
                    ),
                ),
            ],
            options={"db_table": "revisions"},
        ),
        migrations.AddField(
            model_name="Thread",
            name="active_run",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="state_admin.run",
            ),
        ),
        migrations.AddField(
            model_name="Thread",
            name="latest_run",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="state_admin.run",
            ),
        ),
    ]

    operations = [operations[0], CreateTables(operations[1:])]
