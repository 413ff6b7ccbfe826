"""What workers share about models of language: which of them fail, and what a workspace spent on
them. Each decision is one statement."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

from django.db import models
from django.db.models import F, Q

from . import hot
from .workspaces import Workspace

# Failures in a row after which nobody asks for a while: a minute, then twice as long each time.
FAILURES_TO_OPEN: Final = 5
_FIRST_PAUSE: Final = 60
_LONGEST_PAUSE: Final = 3600


class Circuit(NamedTuple):
    """Whose calls of which model."""

    workspace_id: int
    provider: str
    model: str


class ModelCircuit(models.Model):
    """How a workspace's calls of one model go. `open_until`: nobody asks before that."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    provider = models.CharField(max_length=128, db_collation="C")
    model = models.CharField(max_length=128, db_collation="C")
    failures = models.IntegerField(default=0)
    open_until = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(default="", blank=True)

    class Meta:
        db_table = "model_circuits"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "provider", "model"], name="model_circuits_of_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class ModelSpending(models.Model):
    """What a workspace spent on models on a day (UTC), with what is promised to calls under way."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    cost_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        db_table = "model_spending"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "day"], name="model_spending_day_unique"),
            models.CheckConstraint(
                condition=Q(cost_usd__gte=0), name="model_spending_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.cost_usd}"


# When the pause is over one caller may try; the others wait for what becomes of it.
_ADMIT = """
INSERT INTO model_circuits AS c (workspace_id, provider, model, failures, last_error)
VALUES (%(workspace_id)s, %(provider)s, %(model)s, 0, '')
ON CONFLICT (workspace_id, provider, model) DO UPDATE SET open_until =
    CASE WHEN c.failures >= %(most)s THEN statement_timestamp() + %(seconds)s * interval '1 second' END
WHERE c.open_until IS NULL OR c.open_until <= statement_timestamp()
RETURNING c.failures
"""

_FAIL = """
UPDATE model_circuits SET failures = failures + 1, last_error = %(error)s,
    open_until = CASE WHEN failures + 1 >= %(most)s THEN statement_timestamp() + interval '1 second'
        * least(%(first)s * 2.0 ^ least(failures + 1 - %(most)s, 20), %(longest)s) END
WHERE workspace_id = %(workspace_id)s AND provider = %(provider)s AND model = %(model)s
RETURNING open_until
"""

_RESERVE = """
INSERT INTO model_spending AS s (workspace_id, day, cost_usd)
SELECT %(workspace)s, (statement_timestamp() AT TIME ZONE 'UTC')::date, %(cost)s::numeric
WHERE %(cost)s::numeric <= %(cap)s::numeric
ON CONFLICT (workspace_id, day) DO UPDATE SET cost_usd = s.cost_usd + excluded.cost_usd
WHERE s.cost_usd + excluded.cost_usd <= %(cap)s::numeric
RETURNING s.id
"""


def admit(circuit: Circuit, *, seconds: float) -> bool:
    """Whether a model may be asked now. After a pause one caller is let through, for `seconds`."""
    parameters = {**circuit._asdict(), "most": FAILURES_TO_OPEN, "seconds": seconds}
    return hot.fetch_one(_ADMIT, parameters) is not None


def note_failure(circuit: Circuit, error: str) -> None:
    """Count a failure; one too many opens the circuit."""
    hot.fetch_all(
        _FAIL,
        {
            **circuit._asdict(),
            "error": error,
            "most": FAILURES_TO_OPEN,
            "first": _FIRST_PAUSE,
            "longest": _LONGEST_PAUSE,
        },
    )


def note_success(circuit: Circuit) -> None:
    """It answers: whatever went before is forgotten."""
    rows = ModelCircuit.objects.filter(**circuit._asdict())
    rows.exclude(failures=0, open_until=None).update(failures=0, open_until=None, last_error="")


def reserve(*, workspace_id: int, cost: Decimal, cap: Decimal) -> int | None:
    """Set `cost` aside out of what the workspace may spend today: the id of the day's row, or None
    when that would be more than `cap`, with nothing changed."""
    row = hot.fetch_one(_RESERVE, {"workspace": workspace_id, "cost": cost, "cap": cap})
    return row[0] if row else None


def settle(spending_id: int, *, reserved: Decimal, cost: Decimal) -> None:
    """Put what a call did cost in the place of what was set aside for it."""
    ModelSpending.objects.filter(pk=spending_id).update(cost_usd=F("cost_usd") - reserved + cost)
