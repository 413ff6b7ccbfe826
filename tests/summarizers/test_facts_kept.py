"""A summary keeps the facts of a conversation, as benchmarks/compaction.py measures on recorded
ones; here on generated conversations of an airline, cut by the default policy."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from benchmarks.compaction import KINDS, fold, found, stands, summarize

_NAMES = ("mia_li", "omar_rossi", "ivan_garcia", "yara_silva")
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_POLICY = "# Airline policy\n\n" + "Ask for the user id before you change a booking. " * 80


def talk(seed: int, rounds: int) -> list[dict[str, Any]]:
    """A customer asks about several bookings, and an agent looks each up, names a price and
    sometimes refunds. Deterministic for a seed."""
    chance = random.Random(seed)
    user = f"{chance.choice(_NAMES)}_{chance.randrange(1_000, 10_000)}"
    messages = [
        {"role": "system", "content": _POLICY},
        {"role": "user", "content": f"Hello! My user id is {user}. I have some questions."},
        *_looked_up("u", "get_user_details", {"user_id": user}, {"user_id": user, "name": "Li"}),
        {"role": "assistant", "content": "Thank you! What can I do for you?"},
    ]
    for number in range(rounds):
        letters = "".join(chance.choices(_LETTERS, k=3))
        booking = f"{letters}{chance.randrange(10)}{chance.choice(_LETTERS)}{chance.randrange(10)}"
        paid, fee = chance.randrange(100, 3_000), chance.randrange(20, 400)
        details = {
            "reservation_id": booking,
            "user_id": user,
            "cabin": chance.choice(["economy", "business"]),
            "flights": [
                {"flight_number": f"HAT{chance.randrange(100, 300)}", "date": "2024-05-20"}
                for _ in range(2)
            ],
            "payment_history": [
                {"payment_id": f"gift_card_{chance.randrange(10**6, 10**7)}", "amount": paid}
            ],
            "insurance": "no",
        }
        asked = f"What did I pay for {booking}? And what would another day cost? " + "Please. " * 20
        messages.append({"role": "user", "content": asked})
        messages += _looked_up(
            f"g{number}", "get_reservation", {"reservation_id": booking}, details
        )
        if number % 3 == 0:
            refund = {"reservation_id": booking, "amount": fee}
            messages += _looked_up(f"r{number}", "refund", refund, {"status": "done", **refund})
        told = f"You paid ${paid:,} for {booking}; another day costs ${fee}.50. "
        messages.append({"role": "assistant", "content": told + "Is there anything else? " * 8})
    return messages


def _looked_up(call: str, tool: str, asked: Any, result: Any) -> list[dict[str, Any]]:
    function = {"name": tool, "arguments": json.dumps(asked)}
    calls = [{"id": call, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call, "content": json.dumps(result)},
    ]


@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("rounds", [6, 12, 20])
def test_summary__of_airline_conversations__keeps_ids_and_amounts(rounds: int, folds: int) -> None:
    amounts = kept = 0
    for seed in range(12):
        before = fold(talk(seed, rounds))
        assert before is not None
        messages = before[1]
        text = summarize(messages, folds)
        gone = {
            kind: {fact for fact in found(kind, messages) if not stands(fact, text)}
            for kind in KINDS
        }
        assert len({*found("reservations", messages)}) >= rounds - 2
        assert (gone["reservations"], gone["users"]) == (set(), set()), text
        every = {*found("amounts", messages)}
        amounts, kept = amounts + len(every), kept + len(every - gone["amounts"])
    assert kept >= 0.95 * amounts, f"{kept} of {amounts} amounts"
