from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0011_mailbox"),
    ]

    operations = [
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
    ]
