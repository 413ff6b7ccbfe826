"""Password logins that failed of late, which throttling counts."""

from __future__ import annotations

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0002_storage")]

    operations = [
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
                    models.Index(fields=["username", "address", "at"], name="login_attempts_recent")
                ],
            },
        ),
    ]
