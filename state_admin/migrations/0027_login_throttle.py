"""Throttling counts the attempts of an address, with whatever name."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0026_thread_version")]

    operations = [
        migrations.RemoveIndex(model_name="loginattempt", name="login_attempts_recent"),
        migrations.AddIndex(
            model_name="loginattempt",
            index=models.Index(fields=["address", "at"], name="login_attempts_of_address"),
        ),
    ]
