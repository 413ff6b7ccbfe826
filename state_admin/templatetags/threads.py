"""Template tags for the URLs of threads and runs, and for the status of a run."""

from __future__ import annotations

from datetime import timedelta

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString

from state_admin.domain.lifecycle import format_duration
from state_admin.models import Compaction, Run, RunStatus
from state_admin.web import addresses

from .ui import pill

register = template.Library()

register.simple_tag(addresses.thread_url, name="thread_url")
register.simple_tag(addresses.run_url, name="run_url")
register.simple_tag(addresses.run_action_url, name="run_action_url")
register.simple_tag(addresses.ticket_url, name="ticket_url")


@register.simple_tag
def run_pill(run: Run) -> SafeString:
    return pill(*run_state(run))


def run_state(run: Run) -> tuple[str, str]:
    """The colour and the status of a run; for a stuck one, also the time since its last commit or
    heartbeat, or since its deadline."""
    now = timezone.now()
    if run.stuck_reason(now):
        if run.status == RunStatus.RUNNING and run.lease_expires_at:
            since = run.lease_expires_at - timedelta(seconds=run.lease_seconds)
        else:
            since = run.deadline_at or run.updated_at
        return "stuck", f"stuck {format_duration(now - since)}"
    if run.status == RunStatus.DONE:
        ended = ended_as(run)
        done = "" if ended == "cancelled" else "done"
        return "failed" if failed_at_end(run) else done, ended
    return {"running": "running", "waiting": "waiting"}.get(run.status, ""), str(run.status)


@register.filter
def stuck(run: Run) -> str:
    """Why the run is stuck, as text, or ""."""
    return run.stuck_reason(timezone.now())


@register.filter
def lease_ended(run: Run) -> bool:
    return run.lease_expires_at is not None and run.lease_expires_at <= run.read_at


def failed_at_end(run: Run) -> bool:
    return run.status == RunStatus.DONE and ended_as(run) in ("error", "blocked")


def ended_as(run: Run) -> str:
    """How a finished run ended, in a word or two."""
    kind = str((run.termination_reason or {}).get("type", "done"))
    return {"natural_end": "done", "behavior_requested": "done on request"}.get(kind, kind)


@register.filter
def explain_end(run: Run) -> str:
    """The texts that tell why a run ended, such as its error. Some agents name them differently."""
    reason = run.termination_reason or {}
    value = reason.get("value")
    members = value if isinstance(value, dict) else reason
    return " ".join(text for name, text in members.items() if name != "type" and type(text) is str)


@register.filter
def percent_saved(job: Compaction) -> str:
    """By how much the summarized messages became smaller: "82 %"."""
    if not job.tokens_before or job.tokens_after is None:
        return "—"
    return f"{1 - job.tokens_after / job.tokens_before:.0%}".replace("%", " %")
