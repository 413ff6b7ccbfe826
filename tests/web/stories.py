"""The data of pages about threads, runs and compactions: one thread with a history, created by
services."""

from __future__ import annotations

from dataclasses import dataclass

from state_admin.domain.access import Actor
from state_admin.models import Compaction
from state_admin.services import compaction_jobs, compactions, plugins, runs
from state_admin.services.runs import RunChange
from tests.builders import append, commit, conversation, make_run, make_state_key, make_thread, raw

# Texts that become a script, a tag or an attribute wherever a page does not escape them.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover=alert(1) x='",
    "</textarea></template></title><svg onload=alert(1)>",
    "{{ 7|add:7 }}{% csrf_token %}",
    "javascript:alert(1)",
)
TICKET = {
    "ticket_id": "tk1",
    "tool_call_id": "c9",
    "tool_name": "issue_refund",
    "arguments": {"amount": 129.9},
    "reason": "Refunds above 100 need a person.",
    "response_schema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
}


@dataclass(frozen=True)
class Story:
    """A thread `t1` with six revisions, a run `r1` that waits for a ticket, and a compaction."""

    actor: Actor
    compaction: Compaction


def create_story(actor: Actor) -> Story:
    make_state_key(actor, "plan", scope="thread")
    make_state_key(actor, "note", scope="run")
    part = {"name": "kit.memory", "schema": raw({}), "default": raw(None)}
    plugins.install_plugin(
        actor=actor, name="kit", description="What an agent remembers", state_keys=[part]
    )
    make_thread(actor, "t1", title="Refund of order 9921", resource_id="user-1")
    make_thread(actor, "t1-child", parent_thread_id="t1")
    append(actor, "t1", *conversation(8))
    make_run(actor, "t1", "r1", agent_id="helper-7")
    for count in range(4):
        message = {"role": "user", "content": f"step {count}"}
        commit(actor, "r1", {"plan": {"count": count}}, messages=[message], label=f"label {count}")
    waiting = {"reason": "tool_permission", "message": "May I?", "tickets": [TICKET]}
    runs.change_run(actor=actor, run_id="r1", change=RunChange(status="waiting", waiting=waiting))
    return Story(actor, compact(actor, "t1"))


def compact(actor: Actor, thread_id: str) -> Compaction:
    """A completed compaction."""
    job = compactions.request_compaction(actor=actor, thread_id=thread_id)
    compaction_jobs.run_compaction(job.public_id)
    return compactions.find_compaction(actor, job.public_id)
