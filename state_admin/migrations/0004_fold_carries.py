from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0003_login_attempts"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="fold_carries",
            field=models.IntegerField(blank=True, null=True),
        ),
    ]
