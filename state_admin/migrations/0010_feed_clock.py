"""The feed's clock: changes of one thing come in the order of its versions (models/changes.py)."""

from __future__ import annotations

from django.db import migrations

import state_admin.models.fields

# In plpgsql because a volatile function looks anew at each call, after the statement's own locks.
_FEED_CLOCK = """
CREATE OR REPLACE FUNCTION feed_clock() RETURNS xid8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN greatest(pg_current_xact_id()::text::bigint,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)::text::xid8;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0009_runs_by_agent")]

    operations = [
        migrations.RunSQL(_FEED_CLOCK, "DROP FUNCTION feed_clock()"),
        migrations.AlterField(
            model_name="change",
            name="xid",
            field=state_admin.models.fields.Xid8(
                db_default=state_admin.models.fields.FeedClock(), editable=False
            ),
        ),
    ]
