"""State about language models that workers share: circuit breakers, and what a workspace spent on
models. Each decision is one statement."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from django.db import models
from django.db.models import F, Q

from . import hot
from .workspaces import Workspace

# Consecutive failures that open the circuit: for a minute, then twice as long each time.
FAILURES_TO_OPEN: Final = 5
_FIRST_PAUSE: Final = 60
_LONGEST_PAUSE: Final = 3600


class Circuit(NamedTuple):
    """The calls of a workspace to one model."""

    workspace_id: int
    provider: str
    model: str


class ModelCircuit(models.Model):
    """The circuit breaker of a workspace's calls to one model. No calls are made before
    `open_until`."""

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
    """A workspace's cost of models on a day (UTC), with the reservations of calls in progress."""

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


# After the pause one caller may try; the others wait for its result.
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
    """Whether a call to a model is allowed now. After a pause one call is allowed per `seconds`."""
    parameters = {**circuit._asdict(), "most": FAILURES_TO_OPEN, "seconds": seconds}
    return hot.fetch_one(_ADMIT, parameters) is not None


def note_failure(circuit: Circuit, error: str) -> None:
    """Count a failure, which may open the circuit."""
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
    """Close the circuit and reset the count of failures."""
    rows = ModelCircuit.objects.filter(**circuit._asdict())
    rows.exclude(failures=0, open_until=None).update(failures=0, open_until=None, last_error="")


def reserve(*, workspace_id: int, cost: Decimal, cap: Decimal) -> int | None:
    """Reserve `cost` from the workspace's budget of today: the id of the day's row, or None, with
    nothing changed, if the budget `cap` would be exceeded."""
    row = hot.fetch_one(_RESERVE, {"workspace": workspace_id, "cost": cost, "cap": cap})
    return row[0] if row else None


_TOMORROW = (
    "SELECT (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC'"
)


def next_day() -> datetime:
    """When the budgets of the next day begin, by the clock of the database, which reserves them."""
    at: datetime = hot.fetch_row(_TOMORROW, {})[0]
    return at


def settle(spending_id: int, *, reserved: Decimal, cost: Decimal) -> None:
    """Replace the reservation of a call by its cost."""
    ModelSpending.objects.filter(pk=spending_id).update(cost_usd=F("cost_usd") - reserved + cost)
