"""A small workspace to look around in: a travel desk of three agents, with a past worth reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.merging import Batch, Update
from state_admin.domain.values import JSON
from state_admin.models import Membership, Namespace, RunStatus, User

from . import (
    commits,
    compaction_jobs,
    compactions,
    demo_fixtures,
    entries,
    namespaces,
    runs,
    snapshots,
    state_keys,
    threads,
)
from .actors import actor_of_user, system_actor
from .commits import Step
from .demo_fixtures import raw
from .runs import RunChange
from .snapshots import Read
from .workspaces import add_member, ensure_workspace

WORKSPACE = "demo"

_TEAM = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "constraints": {"type": "array", "items": {"type": "string"}},
        "budget_eur": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}
_SETTINGS = {
    "type": "object",
    "properties": {
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "tools": {"type": "array", "items": {"type": "string"}},
    },
}


@dataclass(frozen=True)
class Demo:
    """The demo workspace. `created` False: it existed already and was not changed."""

    workspace: str
    created: bool


def load_demo() -> Demo:
    """Make the workspace `demo` once, with everybody who is an admin of `default` as a member."""
    workspace, _ = ensure_workspace(WORKSPACE)
    person = None
    for membership in Membership.objects.filter(workspace__slug="default").select_related("user"):
        user: User = membership.user
        add_member(workspace=workspace, user=user, role=Role(membership.role))
        person = actor_of_user(user, WORKSPACE)
    operator = system_actor(workspace.pk, "demo")
    if Namespace.objects.visible_to(operator).open().exists():
        return Demo(WORKSPACE, created=False)
    planner, booker, critic = (
        system_actor(workspace.pk, n) for n in ("planner", "booker", "critic")
    )
    demo_fixtures.furnish(operator)
    _shared_state(operator, planner, critic)
    _trip(planner, booker)
    _refund(booker)
    _silent(critic)
    demo_fixtures.branch(operator)
    demo_fixtures.fill_mailbox(operator)
    demo_fixtures.remember_traffic(operator)
    if person is not None and person.may(Role.EDITOR):
        demo_fixtures.save_views(person)
    return Demo(WORKSPACE, created=True)


def _shared_state(operator: Actor, planner: Actor, critic: Actor) -> None:
    for name, schema, default, text in (
        ("team_context", _TEAM, {"goal": "", "constraints": []}, "What a team is working towards."),
        (
            "agent_settings",
            _SETTINGS,
            {"temperature": 0.2, "tools": []},
            "How an agent kind behaves.",
        ),
        ("traveller", {}, None, "What we know of a traveller, by customer id."),
    ):
        namespaces.register_namespace(
            actor=operator, name=name, schema=raw(schema), default=raw(default), description=text
        )
    team = "parent_thread::trip-lisbon"
    _put(planner, "team_context", team, {"goal": "Book Lisbon", "constraints": []}, "kick-off")
    _put(
        planner,
        "team_context",
        team,
        {"goal": "Book Lisbon in May", "constraints": ["no overnight flights"], "budget_eur": 900},
        "the traveller told us when",
    )
    entries.patch_entry(
        actor=critic,
        namespace="team_context",
        key=team,
        kind="update",
        operations=[
            {"op": "append", "path": "/constraints", "value": "aisle seat"},
            {"op": "set", "path": "/budget_eur", "value": 850},
        ],
        reason="policy caps this fare class",
    )
    for agent, temperature in (("planner", 0.7), ("booker", 0.0), ("critic", 0.2)):
        settings = {"temperature": temperature, "tools": ["search_trips", "hold_seat"]}
        _put(operator, "agent_settings", f"agent_type::{agent}", settings, "first settings")
    _put(operator, "traveller", "customer-118", {"name": "Ines", "seat": "aisle", "tier": "silver"})
    _put(operator, "traveller", "customer-204", {"name": "Tomas", "allergies": ["peanuts"]})
    _put(operator, "team_context", "global", {"goal": "Answer within a day", "constraints": []})


def _trip(planner: Actor, booker: Actor) -> None:
    """A long conversation over three runs, compacted once, with state worth sliding through."""
    for name, fields in (
        ("plan", {"reducer": "replace"}),
        ("offers_seen", {"reducer": "add", "merge": "commutative", "default": 0}),
        ("facts", {"reducer": "append", "scope": "thread", "default": []}),
    ):
        given: dict[str, Any] = dict(fields)
        state_keys.register_state_key(
            actor=planner,
            name=name,
            schema=raw({}),
            default=raw(given.pop("default", None)),
            **given,
        )
    threads.create_thread(
        actor=planner, thread_id="trip-lisbon", title="Lisbon in May", resource_id="customer-118"
    )
    asks = (
        "I would like to go to Lisbon for four days in May, leaving from Hamburg.",
        "Not overnight, please, and I prefer the aisle. What does the cheapest one cost?",
        "Take the one on 14 May, and tell me what I can still change later.",
    )
    reads = [
        Read("team_context", "parent_thread::trip-lisbon", 3),
        Read("agent_settings", "agent_type::planner", 1),
        Read("traveller", "customer-118", 1),
        Read("traveller", "companions-of-118", 0),
    ]
    for number, ask in enumerate(asks, start=1):
        run, _ = runs.start_run(
            actor=planner,
            thread_id="trip-lisbon",
            run_id=f"trip-lisbon-{number}",
            agent_id="planner",
        )
        plan: JSON = {"step": "search", "ask": number}
        _commit(planner, run.public_id, {"plan": plan}, _said("user", ask), reads=reads)
        for page in range(1, 5):
            call = f"search-{number}-{page}"
            _commit(planner, run.public_id, {"offers_seen": 6}, *_search(call, number, page))
        answer = (
            f"The best of 24 offers is LX{number}41 on {13 + number} May for {180 + number} euros."
        )
        last = RunChange(
            status=RunStatus.DONE,
            termination_reason={"type": "natural_end"},
            step_count=6,
            input_tokens=9_400 * number,
            output_tokens=620 * number,
            cost_usd=f"{0.0375 * number:.4f}",
        )
        fact = {"facts": f"offer LX{number}41, {180 + number} euros", "loyalty.points": 20}
        _commit(booker, run.public_id, fact, _said("assistant", answer), run=last)
    risen: JSON = {"name": "Ines", "seat": "aisle", "tier": "gold"}
    _put(booker, "traveller", "customer-118", risen, "the third booking of the year")
    first = snapshots.read_snapshot(actor=planner, thread_id="trip-lisbon")
    snapshots.mark_revision(
        actor=planner, thread_id="trip-lisbon", revision=first.revision, label="offer accepted"
    )
    job = compactions.request_compaction(
        actor=planner, thread_id="trip-lisbon", reason="before the next question"
    )
    compaction_jobs.run_compaction(job.public_id)


def _refund(booker: Actor) -> None:
    """A run that waits for a person."""
    threads.create_thread(
        actor=booker,
        thread_id="refund-77",
        title="Refund for a cancelled flight",
        resource_id="customer-204",
    )
    run, _ = runs.start_run(
        actor=booker, thread_id="refund-77", run_id="refund-77-1", agent_id="booker"
    )
    ask = "My flight OS77 was cancelled. I want my 212 euros back, not a voucher."
    _commit(booker, run.public_id, {}, _said("user", ask))
    ticket = {
        "tool_call_id": "call-refund",
        "tool_name": "refund",
        "arguments": {"booking": "OS77", "amount_eur": 212},
        "reason": "refunds above 200 euros need a person",
        "response_schema": {
            "type": "object",
            "properties": {
                "refund_to": {"enum": ["card", "voucher"]},
                "note": {"type": "string"},
            },
            "required": ["refund_to"],
        },
    }
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    change = RunChange(status=RunStatus.WAITING, waiting=waiting)
    _commit(booker, run.public_id, {}, _said("assistant", "I ask for approval."), run=change)


def _silent(critic: Actor) -> None:
    """A run whose agent went away: its lease is over in a second."""
    threads.create_thread(
        actor=critic,
        thread_id="review-lisbon",
        parent_thread_id="trip-lisbon",
        title="Is the Lisbon plan any good?",
    )
    run, _ = runs.start_run(
        actor=critic,
        thread_id="review-lisbon",
        run_id="review-lisbon-1",
        agent_id="critic",
        lease_seconds=1,
        max_rounds=16,
    )
    _commit(critic, run.public_id, {"plan": {"step": "review"}}, _said("user", "Review the plan."))


def _search(call: str, number: int, page: int) -> list[JSON]:
    arguments = values.dump({"from": "HAM", "to": "LIS", "page": page})
    offers = [
        {
            "offer": f"LX{number}{page}{place}",
            "departs": f"2026-05-{13 + number}T{6 + 2 * place:02d}:40",
            "price_eur": 180 + 7 * place + page,
            "seat": "aisle" if place % 2 else "window",
            "rules": "one change free until a day before, then 40 euros; no refund after check-in",
        }
        for place in range(1, 7)
    ]
    asked = {"name": "search_trips", "arguments": arguments}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": asked}],
        },
        {
            "role": "tool",
            "tool_call_id": call,
            "name": "search_trips",
            "content": values.dump(offers),
        },
    ]


def _said(role: str, text: str) -> JSON:
    return {"role": role, "content": text}


def _commit(
    actor: Actor,
    run_id: str,
    updates: dict[str, JSON],
    *log: JSON,
    run: RunChange | None = None,
    reads: Sequence[Read] = (),
) -> None:
    batch = Batch(tuple(Update(key, raw(change)) for key, change in updates.items()))
    step = Step(
        batches=(batch,),
        messages=[raw(message) for message in log],
        run=run or RunChange(),
        reads=reads,
    )
    commits.commit(actor=actor, run_id=run_id, step=step)


def _put(actor: Actor, namespace: str, key: str, value: JSON, reason: str = "") -> None:
    entries.put_entry(actor=actor, namespace=namespace, key=key, value=raw(value), reason=reason)
