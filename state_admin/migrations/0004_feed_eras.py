"""Eras of the change feed's clock (docs/adr/0019-eras-of-the-feed-clock.md)."""

from __future__ import annotations

import django.db.models.functions.datetime
from django.db import migrations, models

import state_admin.models.fields

# Wider than the number of transactions that a failover or a restore can lose; only used if the clock of
# the server is behind.
_GAP = 2**32
_BASE = "coalesce((SELECT base FROM feed_eras ORDER BY id DESC LIMIT 1), 0)"
_CLOCK = f"""({_BASE} + greatest(pg_current_xact_id()::text::bigint,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1))::text::xid8"""

# VOLATILE: evaluated with what is committed at the call, after the locks that the statement waited
# for. STABLE: evaluated with the snapshot of the statement.
_FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION feed_clock() RETURNS xid8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN {_CLOCK};
END $$;

CREATE FUNCTION feed_xid() RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ({_BASE} + pg_current_xact_id()::text::bigint)::text::xid8;
END $$;

CREATE FUNCTION feed_statement_clock() RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN {_CLOCK};
END $$;

CREATE FUNCTION feed_horizon() RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ({_BASE} + pg_snapshot_xmin(pg_current_snapshot())::text::bigint)::text::xid8;
END $$;

CREATE FUNCTION feed_snapshot() RETURNS pg_snapshot LANGUAGE plpgsql STABLE AS $$
DECLARE
    visible pg_snapshot := pg_current_snapshot();
    base bigint := {_BASE};
BEGIN
    IF base = 0 THEN
        RETURN visible;
    END IF;
    RETURN (SELECT (base + pg_snapshot_xmin(visible)::text::bigint) || ':'
        || (base + pg_snapshot_xmax(visible)::text::bigint) || ':'
        || coalesce(string_agg((base + running::text::bigint)::text, ',' ORDER BY running), '')
        FROM pg_snapshot_xip(visible) AS running)::pg_snapshot;
END $$;

CREATE FUNCTION feed_timeline() RETURNS integer LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
$$;

-- Whether the newest era began on this server, and its row was not copied from another database.
CREATE FUNCTION feed_era_is_current() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT coalesce((
        SELECT system = (SELECT system_identifier FROM pg_control_system())
            AND timeline = feed_timeline() AND xmin = started_by::xid
        FROM feed_eras ORDER BY id DESC LIMIT 1), false)
$$;

CREATE FUNCTION begin_feed_era(only_if_needed boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    survived record;
    base bigint := {_BASE};
    ids text := pg_get_serial_sequence('changes', 'id');
    microseconds bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    number bigint := pg_current_xact_id()::text::bigint;
    highest bigint;
    highest_id bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('feed_eras'));
    IF only_if_needed AND feed_era_is_current() THEN
        RETURN;
    END IF;
    IF NOT only_if_needed THEN
        -- With a writer that still uses the old base, readers could pass a change that is not
        -- committed yet. On a server that is new to this database there is none, and the lock
        -- would have to wait for vacuum.
        LOCK TABLE changes IN EXCLUSIVE MODE;
    END IF;
    SELECT xid, id INTO survived FROM (
        SELECT newest.xid, newest.id FROM workspaces w CROSS JOIN LATERAL (
            SELECT c.xid::text::bigint AS xid, c.id FROM changes c
            WHERE c.workspace_id = w.id ORDER BY c.xid DESC, c.id DESC LIMIT 1) newest
        UNION ALL SELECT p.xid, p.change_id FROM search_positions p
        UNION ALL SELECT place_xid, place_id FROM webhooks
        UNION ALL SELECT 0, 0
    ) positions ORDER BY xid DESC, id DESC LIMIT 1;
    -- Not `number`: while this transaction waited for its locks, others have committed changes.
    IF NOT EXISTS (SELECT 1 FROM feed_eras)
        AND survived.xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint THEN
        INSERT INTO feed_eras (system, timeline, base, last_xid, last_id)
        SELECT system_identifier, feed_timeline(), 0, 0, 0 FROM pg_control_system();
        RETURN;
    END IF;
    -- The clock starts at the time, because a backup can be restored twice: what the first restore
    -- assigned is below the start of the second. If the time of the server is behind, the gap has to
    -- be enough.
    highest := greatest(base + number, survived.xid);
    highest_id := greatest(nextval(ids), survived.id);
    INSERT INTO feed_eras (system, timeline, base, last_xid, last_id)
    SELECT system_identifier, feed_timeline(),
        CASE WHEN microseconds > highest THEN microseconds ELSE highest + {_GAP} END - number,
        survived.xid, survived.id
    FROM pg_control_system();
    -- The ids of lost changes are not assigned again: receivers of webhooks discard known ids.
    PERFORM setval(ids,
        CASE WHEN microseconds > highest_id THEN microseconds ELSE highest_id + {_GAP} END);
END $$;

-- Called on every new connection: a restore or a failover ends all connections.
CREATE FUNCTION ensure_feed_era() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_read_only') = 'off' AND NOT feed_era_is_current() THEN
        PERFORM begin_feed_era(true);
    END IF;
END $$;
"""
_REVERSE = """
DROP FUNCTION ensure_feed_era();
DROP FUNCTION begin_feed_era(boolean);
DROP FUNCTION feed_era_is_current();
DROP FUNCTION feed_timeline();
DROP FUNCTION feed_snapshot();
DROP FUNCTION feed_horizon();
DROP FUNCTION feed_statement_clock();
DROP FUNCTION feed_xid();
"""


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0003_operator_tokens")]

    operations = [
        migrations.CreateModel(
            name="FeedEra",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("system", models.BigIntegerField()),
                ("timeline", models.IntegerField()),
                (
                    "started_by",
                    state_admin.models.fields.Xid8(
                        db_default=state_admin.models.fields.CurrentXid(), editable=False
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("base", models.BigIntegerField()),
                ("last_xid", models.BigIntegerField()),
                ("last_id", models.BigIntegerField()),
            ],
            options={"db_table": "feed_eras"},
        ),
        migrations.RunSQL(_FUNCTIONS, _REVERSE),
        migrations.AlterField(
            model_name="change",
            name="xid",
            field=state_admin.models.fields.Xid8(
                db_default=state_admin.models.fields.FeedClock(), editable=False
            ),
        ),
        migrations.AlterField(
            model_name="entryrevision",
            name="xid",
            field=state_admin.models.fields.Xid8(
                db_default=state_admin.models.fields.FeedXid(), editable=False, null=True
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="seen",
            field=state_admin.models.fields.PgSnapshot(
                db_default=state_admin.models.fields.FeedSnapshot(), editable=False, null=True
            ),
        ),
        migrations.RunSQL("SELECT ensure_feed_era()", migrations.RunSQL.noop),
    ]
