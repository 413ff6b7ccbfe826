"""Changes and audit rows no longer lock the row of their workspace."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0022_members"),
    ]

    operations = [
        migrations.AlterField(
            model_name="auditrow",
            name="workspace",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                to="state_admin.workspace",
            ),
        ),
        migrations.AlterField(
            model_name="change",
            name="workspace",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                to="state_admin.workspace",
            ),
        ),
    ]
