"""What a run costs at the prices of its agent's model in the config registry. Without both prices there is
no cost: none is assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.config import Kind
from state_admin.models import Message
from state_admin.services.config import find_spec, read_record
from state_admin.services.errors import Problem

_MILLION = 1_000_000


@dataclass(frozen=True)
class Prices:
    """The prices of a model in USD per million tokens."""

    model: str
    input: Decimal
    output: Decimal

    def cost(self, input_tokens: int, output_tokens: int) -> Decimal:
        return (input_tokens * self.input + output_tokens * self.output) / _MILLION

    def of_messages(self, messages: Iterable[Message]) -> Decimal:
        """The cost of messages by their estimated tokens: what the model wrote is output, the rest is
        input, counted once. A model that gets the whole context in each step costs more."""
        tokens = {False: 0, True: 0}
        for message in messages:
            tokens[message.role == "assistant"] += message.estimated_tokens
        return self.cost(tokens[False], tokens[True])


def prices_of(actor: Actor, agent_id: str) -> Prices | None:
    """The prices of the model of an agent; None if it is not in the registry, or has no prices."""
    if not agent_id:
        return None
    try:
        agent = values.load(read_record(actor=actor, kind=Kind.AGENTS, identity=agent_id).value)
        model_id = agent.get("model_id") if isinstance(agent, dict) else None
        model = find_spec(actor.workspace_id, Kind.MODELS, str(model_id))
    except Problem:  # an agent does not need a record
        return None
    prices = (
        model.get("input_token_price_per_million_usd"),
        model.get("output_token_price_per_million_usd"),
    )
    if None in prices:
        return None
    return Prices(str(model_id), *(Decimal(str(each)) for each in prices))
