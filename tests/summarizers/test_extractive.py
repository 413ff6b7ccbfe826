"""The built-in summarizer: states what it is, keeps the facts, stays within its limits."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.tokens import estimate_text
from state_admin.summarizers import facts
from state_admin.summarizers.base import Summarizer, Summary, SummaryFailed, SummaryRequest
from state_admin.summarizers.extractive import ExtractiveSummarizer
from tests.domain import strategies
from tests.patience import PATIENCE

RESERVATION = {
    "reservation_id": "QX7BYG",
    "user_id": "mia_li_3668",
    "cabin": "economy",
    "flights": [{"flight_number": "HAT136", "date": "2024-05-20", "price": 152}],
    "payment_history": [{"payment_id": "gift_card_7817", "amount": 1286}],
    "insurance": "no",
}


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant_message(text: str | None, *calls: tuple[str, str, object]) -> dict[str, Any]:
    made = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, n, a in calls
    ]
    return {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})


def found(call: str, result: object) -> dict[str, Any]:
    content = result if isinstance(result, str) else json.dumps(result)
    return {"role": "tool", "tool_call_id": call, "content": content}


TALK = [
    {"role": "system", "content": "# Airline policy\n\n" + "You must be careful. " * 60},
    user_message("Hi! I'd like to cancel my booking QX7BYG, please. My user id is mia_li_3668."),
    assistant_message(
        "Sure, let me look.", ("c1", "get_reservation", {"reservation_id": "QX7BYG"})
    ),
    found("c1", RESERVATION),
    assistant_message(
        "You paid $1,286 with gift_card_7817. A refund takes 5 to 7 days. Shall I cancel it?"
    ),
    user_message("Yes, go ahead."),
    assistant_message(None, ("c2", "cancel_reservation", {"reservation_id": "QX7BYG"})),
    found("c2", "Error: reservation QX7BYG is already flown"),
    assistant_message("I am sorry, that failed. Would you like to speak to a human?"),
]


def summary(
    messages: list[dict[str, Any]], previous: str | None = None, max_tokens: int = 1_024
) -> Summary:
    return ExtractiveSummarizer().summarize(SummaryRequest(messages, previous, max_tokens))


def test_summary__of_a_conversation__states_its_kind_and_costs_nothing() -> None:
    summarizer: Summarizer = ExtractiveSummarizer()
    made = summary(TALK)
    assert made.text.startswith("Extractive summary, no model")
    assert (made.summarizer, made.model, made.cost_usd) == (summarizer.name, "", Decimal(0))
    assert made.output_tokens == estimate_text(made.text)
    assert made.input_tokens > made.output_tokens


@pytest.mark.parametrize(
    "words",
    [
        "I'd like to cancel my booking QX7BYG",
        "mia_li_3668",
        "$1,286",
        "get_reservation(reservation_id QX7BYG) → user_id mia_li_3668; cabin economy",
        "HAT136 2024-05-20 152",
        "cancel_reservation(reservation_id QX7BYG) → Error: reservation QX7BYG is already flown",
        "User: Yes, go ahead.",
        "Assistant asked: Would you like to speak to a human?",
        "Instructions of 1,278 characters",
    ],
)
def test_summary__of_a_conversation__contains_the_facts(words: str) -> None:
    assert words in summary(TALK).text


def test_summary__of_a_conversation__drops_pleasantries_and_the_system_prompt() -> None:
    chatty = "Sure! Thanks for asking. The change fee is $50. Let me know if you have questions."
    text = summary([TALK[0], user_message("What is the fee?"), assistant_message(chatty)]).text
    assert "- Assistant: The change fee is $50." in text.splitlines()
    assert text.count("You must be careful.") <= 4


def test_summary__same_input__is_the_same_text() -> None:
    assert summary(TALK) == summary(TALK)


def long_talk(rounds: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for n in range(rounds):
        result = {**RESERVATION, "reservation_id": f"RES{n:03}", "total_amount": 10_000 + n}
        messages += [
            user_message(f"Number {n}: what about RES{n:03}? " + "I really want to know. " * 10),
            assistant_message(None, (f"c{n}", "get_reservation", {"reservation_id": f"RES{n:03}"})),
            found(f"c{n}", result),
            assistant_message(
                f"Reservation RES{n:03} costs ${10_000 + n}. " + "It is a nice one. " * 20
            ),
        ]
    return messages


def test_summary__of_a_long_conversation__keeps_every_id_and_amount_within_its_size() -> None:
    made = summary(long_talk(60))
    assert made.output_tokens <= 1_024
    for n in range(60):
        assert f"RES{n:03}" in made.text
        assert str(10_000 + n) in made.text
    assert "What happened:" in made.text


def test_summary__too_little_room__keeps_the_newest() -> None:
    made = summary(long_talk(400), max_tokens=512)
    assert made.output_tokens <= 512
    assert "RES399" in made.text
    assert "10399" in made.text
    assert "RES000" not in made.text


@pytest.mark.parametrize("max_tokens", [1, 10, 50, 200])
def test_summary__very_small_limit__is_never_exceeded(max_tokens: int) -> None:
    assert summary(long_talk(20), max_tokens=max_tokens).output_tokens <= max_tokens


def test_summary__any__is_shorter_than_what_it_replaces() -> None:
    made = summary(long_talk(10))
    assert made.output_tokens <= 0.35 * made.input_tokens


def test_summary__after_a_summary__keeps_its_facts() -> None:
    first = summary(long_talk(30))
    second = summary(
        [user_message("And now RES900 for $77,000?"), assistant_message("Yes.")], first.text
    )
    for words in ("RES900", "77,000", "RES000", "RES029", "10000", "10029", "Earlier:"):
        assert words in second.text
    assert second.text.count("Extractive summary, no model") == 1
    assert second.input_tokens > first.output_tokens


def test_summary__after_another_summarizers_text__keeps_its_sentences() -> None:
    before = "The user mia_li_3668 wants a refund of $450.\nThe agent agreed on 2024-05-20."
    text = summary(TALK, before).text
    assert "The user mia_li_3668 wants a refund of $450." in text
    assert "The agent agreed on 2024-05-20." in text


def test_summary__tool_call_without_result__is_open() -> None:
    text = summary(
        [user_message("Go."), assistant_message(None, ("c1", "send_mail", {"to": "a@b.example"}))]
    ).text
    assert "No result yet: send_mail(to a@b.example)" in text


def test_summary__block_none_and_reference_formats__are_read() -> None:
    text = summary(
        [
            {"role": "user", "content": [{"type": "text", "text": "Book RES123."}, {"type": "image"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "name": "book", "arguments": {"id": "RES123"}}]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "booked"}]},
            {"role": "system", "content": "secret plan", "visibility": "internal"},
        ]
    ).text  # fmt: skip
    assert "User: Book RES123." in text
    assert "book(id RES123) → booked" in text
    assert "secret plan" not in text


def test_summary__repeated_call_with_one_result__is_listed_once() -> None:
    one = [assistant_message(None, ("c", "get", {"id": "RES123"})), found("c", {"status": "open"})]
    assert summary([user_message("Go."), *one, *one]).text.count("get(id RES123)") == 1


def test_summary__amounts_in_a_list__exclude_its_commas() -> None:
    talk = [
        user_message(f"It was ${200 + n}, ${300 + n}, or $1,{400 + n}.50, not 12,345 euros.")
        for n in range(40)
    ]
    text = summary(talk, max_tokens=400).text
    told = text.partition("- amount: ")[2].partition("\n")[0].split(", ")
    assert told
    assert not any(amount.endswith(",") for amount in told)


def test_facts__words_of_a_text__are_split_but_not_within_a_number() -> None:
    assert facts.words("$131.50 for RES123.Fine, a.b+c") >= {
        "131.50",
        "RES123",
        "Fine",
        "a",
        "b",
        "c",
    }
    assert "131" not in facts.words("$131.50")


def test_summary__tool_without_results__states_it() -> None:
    talk = [
        user_message("Any flights?"),
        assistant_message(None, ("c1", "search", {"to": "SEA"})),
        found("c1", []),
    ]
    assert "search(to SEA) → nothing" in summary(talk).text


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ("Write to ann.lee+x@mail.example.co.uk, please.", ["ann.lee+x@mail.example.co.uk"]),
        ("<a-1@b.cd>;e_2@f.gh", ["a-1@b.cd", "e_2@f.gh"]),
        ("x@y@bob@host.example", ["bob@host.example"]),
        ("nobody@nowhere or RES123", ["RES123"]),
    ],
)
def test_facts__email_addresses_in_prose__are_ids(said: str, ids: list[str]) -> None:
    assert [fact.value for fact in facts.in_prose(said)] == ids


def test_summary__of_a_very_long_text__has_the_facts_of_both_ends() -> None:
    text = summary([user_message(f"It is RES001. {'So it goes. ' * 16_384} Or is it RES002?")]).text
    assert "RES001" in text
    assert "Or is it RES002?" in text


_SUMMARIZE = """
import json, sys
from state_admin.summarizers import SUMMARIZERS, SummaryRequest, facts
for name, messages in json.load(sys.stdin).items():
    print(name, "begun", flush=True)
    whole = messages[-1]["content"][:250_000]
    facts.in_prose(whole), facts.numbers(whole), facts.words(whole), facts.labelled(whole, whole)
    SUMMARIZERS["extractive"]().summarize(SummaryRequest(messages, None, 1024))
    print(name, "ended", flush=True)
"""
_SIZE = 1_000_000


@pytest.mark.system
def test_summary__of_a_megabyte_of_any_text__terminates() -> None:
    """In another process, because a backtracking expression cannot be interrupted."""
    pieces = [
        "ab12", ".", "-", "_", "@", "1", '"', "a@", "a.", "a@b.", "1,222", "$1.", "5 ", "12.", "\n#",
        "Is it 12345? ", "aaaaaa@bbb ", "<", "{", "[", "\\", "é1", "2024-",
    ]  # fmt: skip
    talks = {piece: [user_message("x" + piece * (_SIZE // len(piece)))] for piece in pieces}
    count = _SIZE // 40
    for name, result in {
        "one word": "ab12" * (_SIZE // 4),
        "ids": [f"AB{n:06}" for n in range(count)],
        "amounts": {"amount": list(range(count))},
        "keys that are ids": {f"AB{n:06}": {"a": 1} for n in range(count)},
        "long labels": {"id": {"x" * (_SIZE // 2): {f"a{n}": 1 for n in range(count // 2)}}},
    }.items():
        talks[name] = [assistant_message(None, ("c", "f", {"a": result})), found("c", result)]
    subprocess.run(
        [sys.executable, "-c", _SUMMARIZE],
        input=json.dumps(talks),
        text=True,
        timeout=PATIENCE,
        check=True,
    )


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
@pytest.mark.parametrize("depth", [19, 25, 200, 330, 450, 500, 5_000])
def test_summary__of_deep_json__is_created(opening: str, closing: str, depth: int) -> None:
    nested = opening * depth + "1" + closing * depth
    text = summary(
        [
            assistant_message(None, ("c", "look", {"a": nested})),
            found("c", f'{{"id": "RES123", "x": {nested}}}'),
        ]
    ).text
    assert "look(" in text
    assert "RES123" in text


def test_summary__of_a_lone_surrogate_in_json__is_created() -> None:
    talk = [
        assistant_message(None, ("c", "look", {})),
        found("c", r'{"id": "RES123", "x": "a\ud800b \u00e9"}'),
    ]
    text = summary(talk).text
    assert "id RES123; x a?b é" in text
    assert text.encode()


def test_summary__of_nothing__fails() -> None:
    with pytest.raises(SummaryFailed):
        summary([])
    with pytest.raises(SummaryFailed):
        summary([{"role": "system", "content": "x", "visibility": "internal"}])


_nested = strategies.values | st.builds(
    lambda around, depth, inner: around[0] * depth + json.dumps(inner) + around[1] * depth,
    st.sampled_from(["[]", ('{"a":', "}"), ('[{"b_id":', "}]")]),
    st.sampled_from([1, 21, 330, 450, 500, 5_000]),
    strategies.values,
)
_messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant"]), "content": st.none() | st.text()}
    )
    | st.builds(lambda result: found("c", result), st.text() | _nested)
    | st.builds(
        lambda text, told: assistant_message(text, ("c", "f", {"a": told})), st.text(), _nested
    ),
    max_size=8,
)


@given(_messages, st.none() | st.text(), st.integers(1, 200))
def test_summary__of_any_messages__stays_within_its_size(
    messages: list[dict[str, Any]], previous: str | None, max_tokens: int
) -> None:
    try:
        made = summary(messages, previous, max_tokens)
    except SummaryFailed:
        return
    assert made.output_tokens <= max_tokens
    assert made.text.encode("utf-8", "surrogatepass")
