"""What a run and its steps cost: as the agent reports it, else at the prices of its model in the config
registry, and nothing without these."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from state_admin.models import Message, Run
from state_admin.templatetags.ui import dollars
from state_admin.web.run_costs import Prices, prices_of
from tests.builders import Person, commit, make_record, make_run, make_thread
from tests.web.test_threads import page

PRICED = {
    "input_token_price_per_million_usd": 3,
    "output_token_price_per_million_usd": 15.5,
}


def make_agent(person: Person, **model: Any) -> None:
    make_record(person.actor, "providers", "main", {"adapter": "openai"})
    spec = {"provider_id": "main", "upstream_model": "large"} | model
    make_record(person.actor, "models", "big", spec)
    make_record(person.actor, "agents", "planner", {"model_id": "big", "system_prompt": "Plan."})


@pytest.fixture
def run(alice: Person) -> Run:
    make_thread(alice.actor, "t1")
    run = make_run(alice.actor, "t1", "r1", agent_id="planner")
    question = {"role": "user", "content": "Where is my parcel?"}
    commit(alice.actor, "r1", messages=[question, {"role": "assistant", "content": "On its way."}])
    return run


@pytest.mark.parametrize(
    "model", [{}, {"input_token_price_per_million_usd": 3}, PRICED | {"provider_id": "main"}]
)
def test_prices__of_an_agent__are_those_of_its_model_if_it_has_both(
    model: dict[str, Any], alice: Person, mallory: Person
) -> None:
    assert prices_of(alice.actor, "planner") is None
    make_agent(alice, **model)
    expected = Prices("big", Decimal(3), Decimal("15.5")) if len(model) > 1 else None
    assert prices_of(alice.actor, "planner") == expected
    assert prices_of(mallory.actor, "planner") is None
    assert prices_of(alice.actor, "") is None


def test_prices__cost__is_per_million_tokens() -> None:
    prices = Prices("big", Decimal(3), Decimal("15.5"))
    assert prices.cost(1_000_000, 2_000_000) == 34
    assert prices.cost(1, 0) == Decimal("0.000003")


def test_run__without_reports__says_so_and_shows_no_zeros(
    admin: Client, alice: Person, run: Run
) -> None:
    shown = page(admin, "/runs/r1")
    assert shown.count("none reported") == 2
    assert "0 / 0" not in shown + page(admin, "/runs")
    Run.objects.update(input_tokens=10_000)
    shown = page(admin, "/runs/r1")
    assert "10 k / 0" in shown
    assert shown.count("none reported") == 1
    assert "10 k / 0" in page(admin, "/runs")


def test_run__tokens_without_a_cost__is_priced_as_its_model(
    admin: Client, alice: Person, run: Run
) -> None:
    Run.objects.update(input_tokens=10_000, output_tokens=2_000)
    assert "≈ $" not in page(admin, "/runs/r1")
    make_agent(alice, **PRICED)
    assert "≈ $0.0610" in page(admin, "/runs/r1")
    assert "at the prices of big" in page(admin, "/runs/r1")
    Run.objects.update(cost_usd="0.0777")
    shown = page(admin, "/runs/r1")
    assert "<dd>$0.0777</dd>" in shown
    assert "at the prices of big" not in shown
    Run.objects.update(cost_usd=0, input_tokens=0, output_tokens=0)
    assert "at the prices of big" not in page(admin, "/runs/r1")


def test_step__with_messages__costs_what_they_cost_at_these_prices(
    admin: Client, alice: Person, run: Run
) -> None:
    tokens = {"user": 20_000, "assistant": 4_000}
    for role, count in tokens.items():
        Message.objects.filter(role=role).update(estimated_tokens=count)
    for path in ("/runs/r1", "/run/knowledge/r1"):
        assert "≈ $" not in page(admin, path)
    make_agent(alice, **PRICED)
    # 20,000 * 3 + 4,000 * 15.5 per million; the step that starts the run has no messages. The second
    # page shows the step in its timeline, and in full.
    for path, times in {"/runs/r1": 1, "/run/knowledge/r1": 2}.items():
        assert re.findall(r"≈ \$([\d.]+)", page(admin, path)) == ["0.1220"] * times


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "≈ $0.0000"),
        ("0.00009", "< $0.0001"),
        ("0.0001", "≈ $0.0001"),
        ("1234.5", "≈ $1,234.5000"),
    ],
)
def test_dollars__tiny_amount__is_not_shown_as_nothing(amount: str, shown: str) -> None:
    assert dollars(Decimal(amount), "≈ ") == shown
