"""State keys: the registered keys of thread and run state."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from state_admin.domain.access import Actor
from state_admin.domain.reducers import Reducer

from . import hot
from .fields import RawJSON
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class Merge(models.TextChoices):
    EXCLUSIVE = "exclusive"
    COMMUTATIVE = "commutative"


class StateScope(models.TextChoices):
    RUN = "run"
    THREAD = "thread"


class StateKeyQuerySet(VisibleQuerySet["StateKey"]):
    """No limit of a token applies to state keys."""


class StateKey(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="state_keys")
    name = models.CharField(max_length=128, db_collation="C")
    schema = RawJSON(default="{}")
    default = RawJSON(default="null")
    merge = models.CharField(max_length=12, choices=Merge.choices, default=Merge.EXCLUSIVE)
    scope = models.CharField(max_length=8, choices=StateScope.choices, default=StateScope.RUN)
    reducer = models.CharField(max_length=16, default=Reducer.REPLACE.value)
    persistent = models.BooleanField(default=True)
    retain_on_uninstall = models.BooleanField(default=False)
    plugin = models.CharField(max_length=128, default="", blank=True)
    description = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    objects = StateKeyQuerySet.as_manager()

    class Meta:
        db_table = "state_keys"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="state_keys_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


# OFFSET 0 keeps the inner query one lookup in state_values_current per thread: with a join the
# planner reads the whole table while it is small, and may keep that plan.
_HOLDERS = """
SELECT held.key, count(*) FROM (
    SELECT id FROM threads WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT %(newest)s
) t
CROSS JOIN LATERAL (
    SELECT v.key FROM state_values v WHERE v.thread_id = t.id AND v.valid_to IS NULL OFFSET 0
) held
GROUP BY held.key ORDER BY held.key
"""


def count_holders(actor: Actor, newest: int) -> dict[str, int]:
    """How many of the newest threads have a value of each key, registered or not, for a member
    (restricted tokens cannot open pages). Counting all threads would read a whole table."""
    return dict(hot.fetch_all(_HOLDERS, {"workspace": actor.workspace_id, "newest": newest}))
