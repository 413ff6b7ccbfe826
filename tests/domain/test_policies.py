"""Compaction policies: their fields, their layers, a model's window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import policies
from state_admin.domain.policies import FIELDS, BadPolicy, Policy


def test_policy__defaults__are_those_of_the_contract() -> None:
    assert Policy.from_json({}) == Policy()
    assert Policy().to_json() == {
        "max_context_tokens": 200_000,
        "max_output_tokens": 16_384,
        "autocompact_threshold": None,
        "every_hours": None,
        "mode": "keep_recent_raw_suffix",
        "raw_suffix_messages": 2,
        "min_recent_messages": 10,
        "min_gain_tokens": 1_024,
        "min_savings_ratio": 0.3,
        "summarizer": None,
        "summary_model": None,
        "prompt": None,
        "fallback": None,
        "snapshot_keep_last": None,
        "snapshot_keep_every": None,
        "summary_max_tokens": 1_024,
    }
    assert Policy.from_json(Policy().to_json()) == Policy()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"every_hours": 0}, "/every_hours: must be an integer of at least 1 and at most 8760"),
        ({"every_hours": 8_761}, "/every_hours: must be an integer of at least 1 and at most 8760"),
        ([], "a policy must be an object"),
        (
            {"mod": 1},
            "/mod: unknown field; must be one of autocompact_threshold, every_hours, fallback, max_context_tokens, max_output_tokens, min_gain_tokens, min_recent_messages, min_savings_ratio, mode, prompt, raw_suffix_messages, snapshot_keep_every, snapshot_keep_last, summarizer, summary_max_tokens, summary_model",
        ),
        (
            {"mode": "fast"},
            "/mode: must be one of keep_recent_raw_suffix, compact_to_safe_frontier",
        ),
        ({"mode": ["x"]}, "/mode: must be one of keep_recent_raw_suffix, compact_to_safe_frontier"),
        ({"max_context_tokens": 0}, "/max_context_tokens: must be an integer of at least 1"),
        ({"max_output_tokens": "1"}, "/max_output_tokens: must be an integer of at least 1"),
        ({"raw_suffix_messages": -1}, "/raw_suffix_messages: must be an integer of at least 0"),
        ({"min_recent_messages": 1.5}, "/min_recent_messages: must be an integer of at least 0"),
        ({"min_gain_tokens": True}, "/min_gain_tokens: must be an integer of at least 0"),
        ({"min_gain_tokens": None}, "/min_gain_tokens: must be an integer of at least 0"),
        ({"min_gain_tokens": 1 << 53}, "/min_gain_tokens: must be an integer of at least 0"),
        ({"min_gain_tokens": 10**30}, "/min_gain_tokens: must be an integer of at least 0"),
        ({"min_savings_ratio": 1.1}, "/min_savings_ratio: must be a number from 0 to 1"),
        ({"min_savings_ratio": True}, "/min_savings_ratio: must be a number from 0 to 1"),
        ({"autocompact_threshold": 0}, "/autocompact_threshold: must be an integer of at least 1"),
        ({"snapshot_keep_last": 0}, "/snapshot_keep_last: must be an integer of at least 1"),
        ({"snapshot_keep_every": "all"}, "/snapshot_keep_every: must be an integer of at least 1"),
        ({"summarizer": ""}, "/summarizer: must be a non-empty string"),
        ({"summarizer": 1}, "/summarizer: must be a non-empty string"),
    ],
)
def test_policy__unknown_or_invalid_field__is_located(body: object, fault: str) -> None:
    with pytest.raises(BadPolicy) as error:
        Policy.from_json(body)
    assert [str(found) for found in error.value.faults] == [fault]


@pytest.mark.parametrize(
    ("threshold", "window", "answer", "result"),
    [
        (None, 100, 10, (100, 10, None)),
        (50, 100, 10, (100, 10, 50)),
        (500, 100, 10, (100, 10, 90)),
        (50, 100, 100, (100, 100, None)),
        (50, 100, 500, (100, 100, None)),
        (50, None, None, (1_000, 200, 50)),
        (5_000, 9_000, 9_000, (1_000, 200, 800)),
    ],
)
def test_policy__limited_by_a_model__is_within_its_window(
    threshold: int | None, window: int | None, answer: int | None, result: tuple[object, ...]
) -> None:
    policy = Policy(1_000, 200, autocompact_threshold=threshold).narrowed(window, answer)
    found = (policy.max_context_tokens, policy.max_output_tokens, policy.autocompact_threshold)
    assert found == result


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"prompt": "x" * 8_001}, "/prompt: must have at most 8000 characters"),
        ({"prompt": "  "}, "/prompt: must be a non-empty string"),
        ({"summary_model": 7}, "/summary_model: must be a non-empty string"),
        ({"fallback": "model"}, "/fallback: must be null or extractive"),
        ({"summarizer": "x" * 65}, "/summarizer: must have at most 64 characters"),
    ],
)
def test_policy__fields_of_the_summary__are_validated(body: object, fault: str) -> None:
    with pytest.raises(BadPolicy) as error:
        Policy.from_json(body)
    assert [str(found) for found in error.value.faults] == [fault]


def test_effective__layers__last_one_that_sets_a_field_wins_and_is_its_source() -> None:
    found = policies.effective(
        [
            ("workspace", {"autocompact_threshold": 900, "summary_max_tokens": 500}),
            ("agent", {"summary_max_tokens": 300, "raw_suffix_messages": 4}),
            ("thread", {"autocompact_threshold": None}),
        ]
    )
    assert found.policy == Policy(summary_max_tokens=300, raw_suffix_messages=4)
    assert found.sources["autocompact_threshold"] == "thread", "null counts"
    assert found.sources["summary_max_tokens"] == "agent"
    assert found.sources["mode"] == "default"


def test_effective__window_of_a_model__lowers_larger_values_and_is_their_source() -> None:
    found = policies.effective([("thread", {"autocompact_threshold": 100_000})], 32_000, 4_000)
    assert (found.policy.max_context_tokens, found.policy.autocompact_threshold) == (32_000, 28_000)
    narrowed = [name for name, source in found.sources.items() if source == "model"]
    assert narrowed == ["max_context_tokens", "max_output_tokens", "autocompact_threshold"]


_layer = st.fixed_dictionaries(
    {},
    optional={
        "autocompact_threshold": st.none() | st.integers(1, 300_000),
        "summary_max_tokens": st.integers(1, 5_000),
        "min_savings_ratio": st.floats(0, 1),
        "prompt": st.none() | st.just("be brief"),
    },
)


@given(st.lists(st.tuples(st.sampled_from(["workspace", "agent", "thread"]), _layer), max_size=3))
def test_effective__any_layers__each_field_has_the_value_of_its_source(
    layers: list[tuple[str, dict]],
) -> None:  # type: ignore[type-arg]
    found = policies.effective(layers)
    assert set(found.sources) == set(FIELDS)
    for name, value in found.policy.to_json().items():
        said = [layer for layer in layers if name in layer[1]]
        assert value == (said[-1][1][name] if said else getattr(Policy(), name)) or (
            found.sources[name] == "model"
        )
        if said and found.sources[name] != "model":
            assert found.sources[name] == said[-1][0]


def test_policy__several_faults__are_all_reported() -> None:
    with pytest.raises(BadPolicy) as refused:
        Policy.from_json({"mode": 1, "prompt": ""})
    assert str(refused.value) == (
        "/mode: must be one of keep_recent_raw_suffix, compact_to_safe_frontier; "
        "/prompt: must be a non-empty string"
    )


@pytest.mark.parametrize(
    "body",
    [
        {"min_gain_tokens": (1 << 53) - 1},
        {"every_hours": 8_760},
        {"min_savings_ratio": 0, "max_context_tokens": 1},
        {"min_savings_ratio": 1},
        {"prompt": "x" * 8_000, "summarizer": "x" * 64, "summary_model": "x" * 128},
        {"fallback": "extractive"},
    ],
)
def test_policy__at_the_limits__is_valid(body: dict[str, object]) -> None:
    assert Policy.from_json(body).to_json() == Policy().to_json() | body
