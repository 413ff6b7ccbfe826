"""Compaction policies: their fields, their layers, a model's window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import policies
from state_admin.domain.policies import FIELDS, BadPolicy, Policy


def test_policy__defaults__are_the_contracts() -> None:
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
    ("body", "where"),
    [
        ({"every_hours": 0}, "/every_hours"),
        ({"every_hours": 8_761}, "/every_hours"),
        ([], ""),
        ({"mod": 1}, "/mod"),
        ({"mode": "fast"}, "/mode"),
        ({"mode": ["x"]}, "/mode"),
        ({"max_context_tokens": 0}, "/max_context_tokens"),
        ({"max_output_tokens": "1"}, "/max_output_tokens"),
        ({"raw_suffix_messages": -1}, "/raw_suffix_messages"),
        ({"min_recent_messages": 1.5}, "/min_recent_messages"),
        ({"min_gain_tokens": True}, "/min_gain_tokens"),
        ({"min_gain_tokens": None}, "/min_gain_tokens"),
        ({"min_gain_tokens": 10**30}, "/min_gain_tokens"),
        ({"min_savings_ratio": 1.1}, "/min_savings_ratio"),
        ({"min_savings_ratio": True}, "/min_savings_ratio"),
        ({"autocompact_threshold": 0}, "/autocompact_threshold"),
        ({"snapshot_keep_last": 0}, "/snapshot_keep_last"),
        ({"snapshot_keep_every": "all"}, "/snapshot_keep_every"),
        ({"summarizer": ""}, "/summarizer"),
        ({"summarizer": 1}, "/summarizer"),
    ],
)
def test_policy__unknown_or_wrong_field__is_told_where(body: object, where: str) -> None:
    with pytest.raises(BadPolicy) as error:
        Policy.from_json(body)
    assert [fault.pointer for fault in error.value.faults] == [where]


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
def test_policy__narrowed_by_a_model__stays_within_it(
    threshold: int | None, window: int | None, answer: int | None, result: tuple[object, ...]
) -> None:
    policy = Policy(1_000, 200, autocompact_threshold=threshold).narrowed(window, answer)
    found = (policy.max_context_tokens, policy.max_output_tokens, policy.autocompact_threshold)
    assert found == result


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"prompt": "x" * 8_001}, "/prompt"),
        ({"prompt": "  "}, "/prompt"),
        ({"summary_model": 7}, "/summary_model"),
        ({"fallback": "model"}, "/fallback"),
        ({"summarizer": "x" * 65}, "/summarizer"),
    ],
)
def test_policy__fields_of_the_summary__are_checked(body: object, where: str) -> None:
    with pytest.raises(BadPolicy) as error:
        Policy.from_json(body)
    assert [fault.pointer for fault in error.value.faults] == [where]


def test_effective__layers__the_last_that_speaks_wins_and_is_named() -> None:
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


def test_effective__window_of_a_model__narrows_what_is_larger_and_is_named() -> None:
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
def test_effective__any_layers__each_field_is_what_its_source_says(
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
