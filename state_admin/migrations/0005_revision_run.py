from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0004_fold_carries"),
    ]

    operations = [
        migrations.AddField(
            model_name="entryrevision",
            name="run",
            field=models.CharField(db_collation="C", db_default="", default="", max_length=128),
        ),
    ]
