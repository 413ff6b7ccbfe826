"""A CrewAI flow waits for a person and is resumed, as if in another process. No model: it is scripted."""

from __future__ import annotations

import os
import sys
import uuid
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
    start,
)
from pydantic import BaseModel

os.environ["CREWAI_TRACING_ENABLED"] = "false"


class Trip(BaseModel):
    id: str = ""
    city: str = ""
    answer: str = ""


class Inbox:
    """Where people find what they are asked. This one only ends the process."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Flow[Any]) -> str:
        raise HumanFeedbackPending(context=context)


PERSISTENCE = CommonholdFlowPersistence(namespace="travel", state_type=Trip)


@persist(PERSISTENCE)
class Booking(Flow[Trip]):
    @start()
    def plan(self) -> None:
        self.state.city = "Lisbon"

    @listen(plan)
    @human_feedback(message="Book this?", provider=Inbox())
    def draft(self) -> str:
        return f"{self.state.city} in May"

    @listen(draft)
    def book(self, said: HumanFeedbackResult) -> str:
        self.state.answer = said.feedback
        return f"booked after: {said.feedback}"


flow_id = f"trip-{uuid.uuid4()}"
paused = Booking(suppress_flow_events=True).kickoff(inputs={"id": flow_id})
sys.stdout.write(f"waits at {paused.context.method_name}: {paused.context.method_output}\n")

flow = Booking.from_pending(flow_id, PERSISTENCE, suppress_flow_events=True)
sys.stdout.write(f"{flow.resume('fine, book it')}\n")

with Commonhold.from_env() as state:
    for version in list(state.history("travel.flows", flow_id))[::-1]:
        sys.stdout.write(f"{version.version}: {version.reason}\n")
