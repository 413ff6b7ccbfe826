from __future__ import annotations

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import state_admin.models.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
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
            ],
            options={
                "db_table": "entries",
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
            ],
            options={
                "db_table": "namespaces",
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
                ("flagged_at", models.DateTimeField(blank=True, null=True)),
                ("start_revision", models.BigIntegerField(default=0)),
                ("last_revision", models.BigIntegerField(default=0)),
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
            ],
            options={
                "db_table": "runs",
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
            options={
                "db_table": "sweeps",
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
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
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
                        ],
                        max_length=8,
                    ),
                ),
                ("value", state_admin.models.fields.RawJSON(null=True)),
                ("schema_version", models.PositiveIntegerField()),
                ("size_bytes", models.PositiveIntegerField(default=0)),
                ("expires_at", models.DateTimeField(null=True)),
                ("pinned", models.BooleanField(db_default=False, default=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
            options={
                "db_table": "entry_revisions",
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
            ],
            options={
                "db_table": "idempotency_records",
                "indexes": [models.Index(fields=["created_at"], name="idempotency_age")],
            },
        ),
        migrations.AddField(
            model_name="entry",
            name="namespace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="entries",
                to="state_admin.namespace",
            ),
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
            options={
                "db_table": "namespace_versions",
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
                    "active_run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="state_admin.run",
                    ),
                ),
                (
                    "latest_run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="state_admin.run",
                    ),
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
            ],
            options={
                "db_table": "threads",
            },
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
            },
        ),
        migrations.AddField(
            model_name="run",
            name="thread",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="runs",
                to="state_admin.thread",
            ),
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
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="state_admin.thread",
                    ),
                ),
            ],
            options={
                "db_table": "revisions",
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
                ("fold_lifted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
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
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="state_admin.thread",
                    ),
                ),
            ],
            options={
                "db_table": "messages",
            },
        ),
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
                ("policy", state_admin.models.fields.RawJSON(db_default="{}", default="{}")),
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
            },
        ),
        migrations.AddField(
            model_name="thread",
            name="workspace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="threads",
                to="state_admin.workspace",
            ),
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
            },
        ),
        migrations.AddField(
            model_name="run",
            name="workspace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="runs",
                to="state_admin.workspace",
            ),
        ),
        migrations.AddField(
            model_name="namespace",
            name="workspace",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="namespaces",
                to="state_admin.workspace",
            ),
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
                ("requested_by", models.CharField(max_length=150)),
                ("policy", state_admin.models.fields.RawJSON(default="{}")),
                ("boundary_seq", models.IntegerField(blank=True, null=True)),
                ("boundary_message_id", models.CharField(blank=True, default="", max_length=128)),
                ("tokens_before", models.BigIntegerField(blank=True, null=True)),
                ("tokens_after", models.BigIntegerField(blank=True, null=True)),
                ("rows_removed", models.BigIntegerField(default=0)),
                ("summary_text", models.TextField(blank=True, default="")),
                ("summarizer", models.CharField(blank=True, default="", max_length=64)),
                ("model", models.CharField(blank=True, default="", max_length=128)),
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
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "changes",
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
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "audit",
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
                ("created_by", models.CharField(max_length=150)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
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
        migrations.AddIndex(
            model_name="entry",
            index=models.Index(
                condition=models.Q(("deleted", False), ("expires_at__isnull", False)),
                fields=["expires_at"],
                name="entries_expiring",
            ),
        ),
        migrations.AddIndex(
            model_name="entry",
            index=django.contrib.postgres.indexes.BrinIndex(
                fields=["updated_at"], name="entries_updated_brin"
            ),
        ),
        migrations.AddConstraint(
            model_name="entry",
            constraint=models.UniqueConstraint(
                fields=("namespace", "key"), name="entries_key_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="statevalue",
            constraint=models.UniqueConstraint(
                condition=models.Q(("valid_to__isnull", True)),
                fields=("thread", "key"),
                name="state_values_current",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("folds_to__isnull", False)),
                fields=["thread", "seq"],
                name="messages_summaries",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("thread", "seq"), name="messages_seq_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("thread", "public_id"), name="messages_id_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(
                condition=models.Q(("status", "pending")),
                fields=["workspace", "id"],
                name="tickets_pending",
            ),
        ),
        migrations.AddConstraint(
            model_name="ticket",
            constraint=models.UniqueConstraint(
                fields=("workspace", "public_id"), name="tickets_id_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                fields=["workspace", "resource_id", "id"], name="threads_by_resource"
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["workspace", "-id"], name="threads_newest"),
        ),
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.UniqueConstraint(
                fields=("workspace", "public_id"), name="threads_id_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="statekey",
            constraint=models.UniqueConstraint(
                fields=("workspace", "name"), name="state_keys_name_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["workspace", "-id"], name="runs_newest"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status", "done"), _negated=True),
                fields=["workspace", "status"],
                name="runs_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                fields=("workspace", "public_id"), name="runs_id_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["created", "running", "waiting"])),
                fields=("thread",),
                name="runs_one_active_per_thread",
            ),
        ),
        migrations.AddConstraint(
            model_name="namespace",
            constraint=models.UniqueConstraint(
                fields=("workspace", "name"), name="namespaces_name_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(
                fields=("user", "workspace"), name="memberships_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="compaction",
            index=models.Index(fields=["workspace", "-id"], name="compactions_newest"),
        ),
        migrations.AddIndex(
            model_name="compaction",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=["available_at"],
                name="compactions_unfinished",
            ),
        ),
        migrations.AddConstraint(
            model_name="compaction",
            constraint=models.UniqueConstraint(
                fields=("workspace", "public_id"), name="compactions_id_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="compaction",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=("thread", "kind"),
                name="compactions_single_flight",
            ),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(fields=["workspace", "xid", "id"], name="changes_feed_order"),
        ),
        migrations.AddIndex(
            model_name="change",
            index=django.contrib.postgres.indexes.BrinIndex(fields=["at"], name="changes_at_brin"),
        ),
        migrations.AddIndex(
            model_name="auditrow",
            index=models.Index(fields=["workspace", "-id"], name="audit_workspace_newest"),
        ),
        migrations.AddIndex(
            model_name="auditrow",
            index=django.contrib.postgres.indexes.BrinIndex(fields=["at"], name="audit_at_brin"),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.UniqueConstraint(fields=("lookup",), name="api_tokens_lookup_unique"),
        ),
    ]
