"""What surrounds the agents of the demo: config, a plugin, policies, a mailbox, a webhook that sends
nothing, and entries in every condition that a page shows."""

from __future__ import annotations

import math
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.config import Kind
from state_admin.domain.values import JSON, Raw
from state_admin.models import Traffic, ViewPage

from . import (
    config,
    dispatches,
    entries,
    forks,
    namespaces,
    plugins,
    policies,
    saved_views,
    webhook_flow,
    webhooks,
)

_QUOTE = {
    "type": "object",
    "properties": {"price_eur": {"type": "integer", "minimum": 0}, "airline": {"type": "string"}},
    "required": ["price_eur"],
}
_TIER = {"type": "object", "properties": {"discount_percent": {"type": "integer"}}}
_DAY = 86_400


def raw(value: JSON) -> Raw:
    return Raw(values.dump(value), value)


def furnish(operator: Actor) -> None:
    """Everything but the conversations."""
    _config(operator)
    _plugin(operator)
    _policies(operator)
    _quotes(operator)
    _orphans(operator)
    _webhook(operator)


def _config(operator: Actor) -> None:
    records: list[tuple[Kind, str, dict[str, JSON]]] = [
        (
            Kind.PROVIDERS,
            "models-example",
            {
                "adapter": "openai",
                "base_url": "https://models.example/v1",
                "api_key": "demo-key-that-opens-nothing",
                "timeout_secs": 60,
            },
        )
    ]
    for model, window, input_price, output_price in (
        ("large", 200_000, 3.0, 15.0),
        ("small", 64_000, 0.25, 1.25),
    ):
        records.append(
            (
                Kind.MODELS,
                model,
                {
                    "provider_id": "models-example",
                    "upstream_model": f"example-{model}",
                    "context_window": window,
                    "max_output_tokens": 8_192,
                    "modalities": {"input": ["text", "image"], "output": ["text"]},
                    "knowledge_cutoff": "2025-03",
                    "input_token_price_per_million_usd": input_price,
                    "output_token_price_per_million_usd": output_price,
                },
            )
        )
    for agent, model, prompt in (
        ("planner", "large", "You plan trips. Ask before you assume, and name every price."),
        ("booker", "small", "You book what the planner chose. Anything above 200 euros waits."),
        ("critic", "small", "You look for what the plan forgot."),
    ):
        spec: dict[str, JSON] = {"model_id": model, "system_prompt": prompt, "max_rounds": 16}
        if agent == "planner":
            spec["delegates"] = ["booker", "critic"]
        records.append((Kind.AGENTS, agent, spec))
    # Those that others name come first.
    records.sort(key=lambda record: record[1] == "planner")
    for kind, identity, value in records:
        config.put_record(actor=operator, kind=kind, identity=identity, value=raw(value))


def _plugin(operator: Actor) -> None:
    plugins.install_plugin(
        actor=operator,
        name="loyalty",
        description="Counts points of travellers and knows what they are worth.",
        state_keys=[
            {
                "name": "loyalty.points",
                "schema": raw({"type": "integer"}),
                "default": raw(0),
                "reducer": "add",
                "merge": "commutative",
                "scope": "thread",
                "description": "Points earned in this conversation",
            }
        ],
        namespaces=[
            {
                "name": "loyalty_tiers",
                "schema": raw(_TIER),
                "default": raw({"discount_percent": 0}),
                "description": "What a tier is worth.",
            }
        ],
    )
    for tier, discount in (("silver", 5), ("gold", 12)):
        _put(operator, "loyalty_tiers", tier, {"discount_percent": discount})


def _policies(operator: Actor) -> None:
    house: JSON = {"autocompact_threshold": 120_000, "max_context_tokens": 160_000}
    policies.put_policy(
        actor=operator, scope="workspace", body=raw(house), reason="below the smallest window"
    )
    eager: JSON = {"autocompact_threshold": 40_000, "raw_suffix_messages": 6}
    policies.put_policy(
        actor=operator,
        scope="agent",
        name="planner",
        body=raw(eager),
        reason="its searches are long",
    )


def _quotes(operator: Actor) -> None:
    """Tags, an end of life, and one value from before the schema."""
    namespaces.register_namespace(
        actor=operator,
        name="fare_quotes",
        schema=raw({}),
        default=raw({"price_eur": 0}),
        description="Prices that an airline keeps for a few days.",
    )
    _put(operator, "fare_quotes", "HAM-OPO", {"price_eur": "about 160", "airline": "Otter Sky"})
    namespaces.register_namespace(
        actor=operator,
        name="fare_quotes",
        schema=raw(_QUOTE),
        default=raw({"price_eur": 0}),
        description="Prices that an airline keeps for a few days.",
        ttl_seconds=7 * _DAY,
        reason="a price is a number",
    )
    for place, (city, tags) in enumerate(
        {
            "LIS": ["may", "direct"],
            "FAO": ["may"],
            "MAD": ["june", "direct"],
            "BCN": ["june"],
            "ATH": [],
        }.items()
    ):
        entries.put_entry(
            actor=operator,
            namespace="fare_quotes",
            key=f"HAM-{city}",
            value=raw({"price_eur": 180 + 17 * place, "airline": "Otter Sky"}),
            tags=tags,
            ttl_seconds=(place + 1) * _DAY,
        )


def _orphans(operator: Actor) -> None:
    namespaces.register_namespace(
        actor=operator, name="winter_campaign", schema=raw({}), default=raw(None)
    )
    _put(operator, "winter_campaign", "global", {"code": "SNOW", "percent": 10})
    namespaces.unregister_namespace(
        actor=operator, name="winter_campaign", entries="retain", reason="the campaign is over"
    )


def _webhook(operator: Actor) -> None:
    # In one transaction: nothing is sent before it is paused.
    with transaction.atomic():
        hook, _ = webhooks.create_webhook(
            actor=operator,
            name="Travel desk",
            url="https://desk.example/hooks/commonhold",
            filters=webhooks.Filter(kinds=("run.*", "ticket.*")),
        )
        webhook_flow.pause_webhook(
            actor=operator, webhook_id=hook.public_id, reason="the demo sends nothing"
        )


def fill_mailbox(operator: Actor) -> None:
    """A dead letter, one at work, two that wait."""
    lost = dispatches.enqueue_dispatch(
        actor=operator,
        thread_id="trip-lisbon",
        agent_id="booker",
        payload=raw({"kind": "confirm_booking", "offer": "LX341"}),
        max_attempts=1,
    )
    claimed = dispatches.claim_dispatches(
        actor=operator, thread_id="trip-lisbon", consumer="worker-1"
    )
    dispatches.nack_dispatch(
        actor=operator,
        dispatch_id=lost.public_id,
        claim_token=claimed.token,
        error="the airline answered 503 Service Unavailable",
    )
    for thread_id, agent_id, payload, available_at in (
        ("review-lisbon", "critic", {"kind": "review", "plan": "LX341"}, None),
        ("trip-lisbon", "planner", {"kind": "user_message", "text": "And a hotel?"}, None),
        ("trip-lisbon", "booker", {"kind": "check_in_opens"}, timezone.now() + timedelta(days=2)),
    ):
        dispatches.enqueue_dispatch(
            actor=operator,
            thread_id=thread_id,
            agent_id=agent_id,
            payload=raw(payload),
            available_at=available_at,
        )
    dispatches.claim_dispatches(
        actor=operator, thread_id="review-lisbon", consumer="worker-2", lease_seconds=3_600
    )


def remember_traffic(operator: Actor) -> None:
    """An hour of calls: a swell of reads, fewer writes, now and then a conflict, a queue that was
    worked off."""
    now = timezone.now().replace(second=0, microsecond=0)
    Traffic.objects.bulk_create(
        Traffic(
            workspace_id=operator.workspace_id,
            minute=now - timedelta(minutes=ago),
            reads=14 + round(10 * math.sin(ago / 7)) + ago * 5 % 4,
            writes=5 + round(3 * math.sin(ago / 7 + 1)) + ago * 7 % 3,
            conflicts=int(ago % 13 == 4) + int(ago % 23 == 4),
            queued=max(3, 9 - abs(ago - 30) // 2),
        )
        for ago in range(1, 60)
    )


def branch(operator: Actor) -> None:
    """Another end of the long conversation."""
    forks.fork_thread(
        actor=operator,
        thread_id="trip-lisbon",
        fork_id="trip-lisbon-by-train",
        revision=6,
        title="The same by train",
        reason="what if nobody flies",
    )


def save_views(person: Actor) -> None:
    for page, name, query in (
        (ViewPage.STATE, "May fares", "namespace=fare_quotes&tag=may"),
        (ViewPage.RUNS, "Waiting for us", "status=waiting"),
        (ViewPage.THREADS, "Trips", "prefix=trip-"),
    ):
        saved_views.save_view(actor=person, page=page, name=name, query=query, shared=True)


def _put(actor: Actor, namespace: str, key: str, value: JSON) -> None:
    entries.put_entry(actor=actor, namespace=namespace, key=key, value=raw(value))
