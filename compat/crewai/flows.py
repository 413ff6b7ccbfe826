"""Flows of the tests, and what the tests do with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from commonhold import Commonhold
from commonhold.crewai import CommonholdFlowPersistence
from crewai.flow import (
    Flow,
    HumanFeedbackPending,
    HumanFeedbackResult,
    PendingFeedbackContext,
    human_feedback,
    listen,
    persist,
    router,
    start,
)
from crewai.flow.persistence import FlowPersistence
from pydantic import BaseModel

FLOWS, FEEDBACK = "crewai.flows", "crewai.feedback"


class Trip(BaseModel):
    id: str = ""
    city: str = ""
    steps: int = 0
    said: list[str] = []


# The object that a flow is given takes precedence over the one of its decorator.
persisted = persist(CommonholdFlowPersistence())
BOOKED: list[str] = []


@persisted
class Planning(Flow[Trip]):
    @start()
    def plan(self) -> None:
        self.state.city = self.state.city or "Lisbon"
        self.state.steps += 1

    @listen(plan)
    async def book(self) -> int:
        self.state.steps += 1
        return self.state.steps


class Inbox:
    """Pauses the flow, as a provider does whose people answer later."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Flow[Any]) -> str:
        raise HumanFeedbackPending(context=context)


@persisted
class Reviewed(Flow[Trip]):
    @start("again")
    def plan(self) -> None:
        self.state.steps += 1

    @listen(plan)
    @human_feedback(message="Book it?", provider=Inbox())
    def draft(self) -> dict[str, Any]:
        return {"city": self.state.city, "at": datetime(2026, 5, 1, tzinfo=UTC)}

    @router(draft)
    def decide(self, result: HumanFeedbackResult) -> str:
        self.state.said.append(result.feedback)
        return "again" if result.feedback == "change it" else "approved"

    @listen("approved")
    def book(self) -> str:
        BOOKED.append(self.state.id)
        return f"booked {self.state.city}"


def kickoff(kind: type[Flow[Any]], backend: FlowPersistence, **inputs: Any) -> Any:
    return kind(persistence=backend, suppress_flow_events=True).kickoff(inputs=inputs)


def resume(kind: type[Flow[Any]], backend: FlowPersistence, flow_id: str, said: str) -> Any:
    flow = kind.from_pending(flow_id, backend, suppress_flow_events=True)
    return flow.resume(said)


def steps(state: Commonhold, flow_id: str, namespace: str = FLOWS) -> list[str]:
    """The reasons of the versions, oldest first."""
    return [version.reason for version in state.history(namespace, flow_id)][::-1]


def context(flow_id: str, **others: Any) -> PendingFeedbackContext:
    return PendingFeedbackContext(
        flow_id=flow_id,
        flow_class="travel.Reviewed",
        method_name="draft",
        method_output={"city": "Lisbon"},
        message="Book it?",
        emit=["yes", "no"],
        **others,
    )
