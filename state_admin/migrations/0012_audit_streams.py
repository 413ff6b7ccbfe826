"""The positions of the audit stream (docs/adr/0023-audit-stream.md)."""

from __future__ import annotations

import django.contrib.postgres.fields
from django.db import migrations, models
from django.db.models.functions import Now

# A new era of the feed's clock means that newer audit rows may have been lost, which receivers have.
# Their ids are not assigned again: the beginning of an era is above all of them.
_TRIGGER = """
CREATE FUNCTION raise_audit_ids() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids text := pg_get_serial_sequence('audit', 'id');
BEGIN
    PERFORM setval(ids, greatest(nextval(ids), NEW.base + NEW.started_by::text::bigint));
    RETURN NULL;
END $$;

CREATE TRIGGER raise_audit_ids AFTER INSERT ON feed_eras
FOR EACH ROW WHEN (NEW.base > 0) EXECUTE FUNCTION raise_audit_ids();
"""
_REVERSE = """
DROP TRIGGER raise_audit_ids ON feed_eras;
DROP FUNCTION raise_audit_ids();
"""


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0011_threads_by_title")]

    operations = [
        migrations.CreateModel(
            name="AuditStream",
            fields=[
                ("destination", models.TextField(primary_key=True, serialize=False)),
                ("position", models.BigIntegerField(default=0)),
                ("settled", models.BigIntegerField(default=0)),
                ("barrier", models.BigIntegerField(default=0)),
                (
                    "writers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                ("sent_at", models.DateTimeField(null=True)),
                ("attempts", models.IntegerField(default=0)),
                ("failures", models.BigIntegerField(default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("last_error", models.TextField(default="")),
                ("next_attempt_at", models.DateTimeField(db_default=Now())),
            ],
            options={"db_table": "audit_streams"},
        ),
        migrations.RunSQL(_TRIGGER, _REVERSE),
    ]
