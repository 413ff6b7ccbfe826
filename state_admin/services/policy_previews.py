"""What a changed compaction policy would do to threads, before it is saved."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from state_admin.domain.access import Actor
from state_admin.domain.values import Raw
from state_admin.models import Run, Thread
from state_admin.models.folds_sql import LogView

from .actors import require
from .compactions import Preview, plan_compaction
from .effective_views import active_summary
from .policies import Scope, effective_policy, role_of, try_policy
from .threads import check_policy, find_thread

# How many threads a preview shows: those with the largest contexts of the _RECENT latest ones.
SHOWN = 5
_RECENT = 200
# The plan of a longer thread would take longer than a preview may.
MOST_MESSAGES = 5_000


@dataclass(frozen=True)
class Effect:
    """A thread, and what a compaction would do by its present policy and by the changed one."""

    thread: Thread
    now: Preview
    then: Preview


def preview_policy(*, actor: Actor, scope: Scope, name: str = "", body: Raw) -> list[Effect]:
    """Plan compactions of up to SHOWN threads as if `body` were the policy of the scope. Stores
    nothing. Requires the role that may change the policy. Raises Invalid with the faulty fields."""
    require(actor, role_of(scope))
    check_policy(body)
    return [_effect(thread, scope, body) for thread in _affected(actor, scope, name)]


def _affected(actor: Actor, scope: Scope, name: str) -> list[Thread]:
    if scope == "thread":
        return [find_thread(actor, name)]
    rows = Thread.objects.visible_to(actor)
    runs = Run.objects.visible_to(actor).order_by("-pk")
    if scope == "agent":
        of_runs = runs.filter(agent_id=name).values("thread_id")[:_RECENT]
        rows = rows.filter(pk__in=of_runs).of_agent(name)
    else:
        newest = rows.order_by("-pk").values("pk")[:_RECENT]
        rows = rows.filter(Q(pk__in=newest) | Q(pk__in=runs.values("thread_id")[:_RECENT]))
    return list(rows.order_by("-context_tokens", "-pk")[:SHOWN])


def _effect(thread: Thread, scope: Scope, body: Raw) -> Effect:
    summary = active_summary(thread)
    folded = summary.folds_to or 0 if summary else 0
    view = LogView(thread.pk, summary)
    now, then = effective_policy(thread), try_policy(thread, scope, body)
    if thread.message_count - folded > MOST_MESSAGES:
        skip = f"more than {MOST_MESSAGES:,} messages are not planned here"
        previews = [Preview(each, thread.context_tokens, None, skip) for each in (now, then)]
    else:
        previews = [plan_compaction(thread, each, view) for each in (now, then)]
    return Effect(thread, *previews)
