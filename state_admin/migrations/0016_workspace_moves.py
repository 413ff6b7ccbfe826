"""Moves of workspaces between cells, and the function of the triggers that refuse writes to frozen
workspaces (models/freezing_sql.py)."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

# Evaluated for each row that a statement writes while a workspace is frozen. The argument says how the
# row belongs to a workspace: '': by workspace_id. VOLATILE: the query after the lock sees what was
# committed while the statement waited for it.
_FUNCTION = """
CREATE FUNCTION refuse_frozen_workspace() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    written record;
    owner bigint;
BEGIN
    IF TG_OP = 'DELETE' THEN
        written := OLD;
    ELSE
        written := NEW;
    END IF;
    IF current_setting('commonhold.moves', true) = 'on' THEN
        RETURN written;
    END IF;
    CASE TG_ARGV[0]
    WHEN '' THEN
        owner := written.workspace_id;
    WHEN 'workspace' THEN
        owner := written.id;
    WHEN 'namespace' THEN
        SELECT n.workspace_id INTO owner FROM namespaces n WHERE n.id = written.namespace_id;
    WHEN 'entry' THEN
        SELECT n.workspace_id INTO owner FROM entries e JOIN namespaces n ON n.id = e.namespace_id
        WHERE e.id = written.entry_id;
    WHEN 'thread' THEN
        SELECT t.workspace_id INTO owner FROM threads t WHERE t.id = written.thread_id;
    WHEN 'webhook' THEN
        SELECT w.workspace_id INTO owner FROM webhooks w WHERE w.id = written.webhook_id;
    END CASE;
    IF owner IS NULL THEN
        RETURN written;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtext('frozen workspace'), owner::int);
    IF EXISTS (SELECT FROM workspaces w WHERE w.id = owner AND w.frozen_at IS NOT NULL) THEN
        RAISE EXCEPTION 'the workspace is frozen: %', owner
            USING ERRCODE = 'object_not_in_prerequisite_state', CONSTRAINT = 'workspace_is_frozen';
    END IF;
    RETURN written;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0015_cells"),
    ]

    operations = [
        migrations.CreateModel(
            name="Arrival",
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
                ("clock", models.BigIntegerField()),
                ("gaps", models.JSONField(default=list)),
                ("shifts", models.JSONField(default=list)),
            ],
            options={
                "db_table": "arrivals",
            },
        ),
        migrations.CreateModel(
            name="WorkspaceMove",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("move_id", models.CharField(db_collation="C", max_length=36)),
                (
                    "side",
                    models.CharField(
                        choices=[("source", "Source"), ("target", "Target")], max_length=6
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("expected", "waits for the workspace"),
                            ("copying", "copies the rows"),
                            ("copied", "has all rows, and does not serve them yet"),
                            ("open", "serves the workspace"),
                            ("closing", "is frozen, to undo the move"),
                            ("final", "serves the workspace; the move cannot be undone"),
                            ("frozen", "refuses writes"),
                            ("moved", "refers to the other cell"),
                            ("removing", "deletes its rows"),
                            ("removed", "has deleted its rows"),
                            ("undone", "the move was undone"),
                        ],
                        max_length=8,
                    ),
                ),
                ("slug", models.CharField(db_collation="C", max_length=64)),
                ("workspace_pk", models.BigIntegerField(null=True)),
                ("cell", models.CharField(db_collation="C", default="", max_length=8)),
                ("keys", models.JSONField(default=dict)),
                ("progress", models.JSONField(default=dict)),
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
                "db_table": "workspace_moves",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("move_id", "side"), name="workspace_moves_one_per_side"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "expected",
                                    "copying",
                                    "copied",
                                    "closing",
                                    "frozen",
                                    "moved",
                                    "removing",
                                ],
                            )
                        ),
                        fields=("slug", "side"),
                        name="workspace_moves_single_flight",
                    ),
                ],
            },
        ),
        migrations.RunSQL(_FUNCTION, "DROP FUNCTION refuse_frozen_workspace()"),
    ]
