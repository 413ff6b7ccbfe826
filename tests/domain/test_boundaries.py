"""Summarizing and cutting a conversation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.boundaries import MessageLine, Plan, Skip, dangling, fit, plan
from state_admin.domain.policies import Policy
from tests.domain.reference_boundaries import Lines, Mark, effective

CHEAP = Policy(min_gain_tokens=0)


def talk(script: str, tokens: int = 100) -> list[MessageLine]:
    """Messages from words: `s` system, `S` internal summary, `u` user, `i` internal user, `a`
    assistant, `a+x,y` assistant that calls x and y, `-x` the result of x."""
    roles = {"s": "system", "S": "system", "u": "user", "i": "user", "a": "assistant"}
    lines = []
    for seq, word in enumerate(script.split(), 1):
        head, _, opens = word.partition("+")
        lines.append(
            MessageLine(
                seq=seq,
                message_id=f"m{seq}",
                role="tool" if word[0] == "-" else roles[head],
                visibility="internal" if head in ("S", "i") else "all",
                tokens=tokens,
                opens=tuple(opens.split(",")) if opens else (),
                answers=word[1:] if word[0] == "-" else None,
            )
        )
    return lines


def folded(script: str, policy: Policy = CHEAP) -> int | None:
    """The seq of the boundary, None if there is none."""
    made = plan(Lines(talk(script)), policy)
    return made.boundary_seq if isinstance(made, Plan) else None


@pytest.mark.parametrize(
    ("script", "boundary"),
    [
        ("", None),
        ("u", None),
        ("u a u a", 2),
        ("u a u a u", 3),  # the two retained messages include the last user turn
        ("s u a u a u a", 5),
        ("u a a a a", None),  # the last user turn is everything
        ("a a a a", 2),  # without a user only the retained messages count
        ("u a+x -x u a", 3),
        ("u a+x u a", 1),
        ("u a u a+x u a", 3),
        ("u a+x,y -x u a", 1),  # no boundary within a round
        ("a+x,y -x u a", None),
        ("u a u a+x,y -x -y u a", 6),
        ("u a+x -x a+x -x u a", 5),  # an id that is used again
        ("u a+x a+x -x u a u a", 1),  # called twice, one result
        ("u a -z u a", 3),  # a result without a call blocks nothing
        ("u a u i a", 2),  # an internal user message begins no turn
        ("S u a u a", 3),
        ("S S u a", None),
    ],
)
def test_plan__conversation__is_cut_at_the_last_safe_place(
    script: str, boundary: int | None
) -> None:
    assert folded(script) == boundary


def test_plan__latest_user_turn__is_always_retained() -> None:
    made = plan(Lines(talk("u a u a u a+x -x a+y -y a")), CHEAP)
    assert made == Plan(boundary_seq=4, boundary_message_id="m4", tokens_before=400, kept=6)


LONG_TURN = "u a u a+x -x a+y -y a+z -z a"


def test_plan__turn_that_is_itself_long__is_cut_inside_and_retains_its_question() -> None:
    short = Policy(min_gain_tokens=0, min_recent_messages=3)
    made = plan(Lines(talk(LONG_TURN)), short)
    assert made == Plan(7, "m7", tokens_before=600, kept=3, carried_seq=3)


def test_plan__more_recent_messages_than_any_turn__cuts_inside_none() -> None:
    off = Policy(min_gain_tokens=0, min_recent_messages=99)
    assert plan(Lines(talk(LONG_TURN)), off) == Plan(2, "m2", tokens_before=200, kept=8)


def test_plan__turn_preceded_by_enough_messages__is_retained_completely() -> None:
    short = Policy(min_gain_tokens=0, min_recent_messages=3, min_savings_ratio=0.2)
    assert plan(Lines(talk(LONG_TURN)), short) == Plan(2, "m2", tokens_before=200, kept=8)


def test_plan__long_turn_cut_again__never_moves_the_boundary_back() -> None:
    short = Policy(min_gain_tokens=0, min_recent_messages=2)
    first = talk(LONG_TURN)
    made = plan(Lines(first), short)
    assert isinstance(made, Plan)
    summary = replace(talk("S")[0], seq=made.boundary_seq)
    carried = next(line for line in first if line.seq == made.carried_seq)
    tail = [line for line in first if line.seq > made.boundary_seq]
    again = plan(Lines([summary, carried, *tail]), replace(short, min_savings_ratio=0.0))
    assert isinstance(again, Skip) or again.boundary_seq > made.boundary_seq


def test_plan__safe_frontier_mode__retains_the_recent_messages() -> None:
    script = "u a " * 10
    recent = Policy(min_gain_tokens=0, mode="compact_to_safe_frontier", min_recent_messages=7)
    assert folded(script) == 18
    assert folded(script, recent) == 13


def test_plan__gain_below_the_minimum__is_skipped_with_the_numbers() -> None:
    made = plan(Lines(talk("u a u a u a")), Policy())
    assert isinstance(made, Skip)
    assert "1024" in made.reason
    assert "400" in made.reason
    assert isinstance(plan(Lines(talk("u a u a u a", tokens=256)), Policy()), Plan)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("u a", "fewer than 2"),
        ("a+x u a u a", "tool call x of message 1 has no result"),
        ("a+x u u -x", "a tool call is open"),
        ("S S S S", "only internal messages"),
        ("S a+x u a u -x", "open tool calls"),
    ],
)
def test_plan__without_boundary__states_the_reason(script: str, words: str) -> None:
    made = plan(Lines(talk(script)), CHEAP)
    assert isinstance(made, Skip)
    assert words in made.reason


_words = st.lists(
    st.sampled_from(["s", "u", "i", "a", "a+x", "a+y", "a+x,y", "-x", "-y"]), max_size=14
).map(" ".join)


def is_safe(lines: list[MessageLine], index: int) -> bool:
    """The rule, in its simplest form: no call is open after `index`, and no tool message
    follows."""
    open_calls: Counter[str] = Counter()
    for line in lines[: index + 1]:
        open_calls.update(line.opens)
        if line.answers and open_calls[line.answers]:
            open_calls[line.answers] -= 1
    following = lines[index + 1 : index + 2]
    return not +open_calls and not any(line.role == "tool" for line in following)


@given(_words, st.integers(0, 5))
def test_plan__any_conversation__is_cut_by_the_rule(script: str, suffix: int) -> None:
    lines = talk(script)
    users = [i for i, line in enumerate(lines) if line.role == "user" and line.visibility == "all"]
    end = len(lines) - max(suffix, len(lines) - users[-1] if users else 0)
    expected = [i for i in range(end) if is_safe(lines, i)] if end >= 2 else []
    only_before = Policy(
        min_gain_tokens=0,
        raw_suffix_messages=suffix,
        min_recent_messages=99,
        min_savings_ratio=0.0,
    )
    made = plan(Lines(lines), only_before)
    if not expected or all(line.visibility == "internal" for line in lines[: expected[-1] + 1]):
        assert isinstance(made, Skip)
    else:
        seq = expected[-1] + 1
        assert made == Plan(seq, f"m{seq}", 100 * seq, len(lines) - seq)


@given(_words, st.integers(0, 4))
def test_plan__inside_a_turn__is_safe_and_retains_the_last_user_message(
    script: str, recent: int
) -> None:
    lines = talk(script)
    policy = Policy(
        min_gain_tokens=0,
        raw_suffix_messages=0,
        min_recent_messages=recent,
        min_savings_ratio=1.0,
    )
    made = plan(Lines(lines), policy)
    if isinstance(made, Skip) or made.carried_seq is None:
        return
    users = [line.seq for line in lines if line.role == "user" and line.visibility == "all"]
    assert made.carried_seq == users[-1] <= made.boundary_seq
    assert is_safe(lines, made.boundary_seq - 1)
    assert made.kept >= recent
    assert made.tokens_before == 100 * (made.boundary_seq - 1)


def effective_numbers(count: int, *marks: Mark) -> list[int]:
    return effective(list(range(1, count + 1)), marks, int)


def mark(seq: int, to_seq: int, from_seq: int = 1) -> Mark:
    return Mark(f"m{seq}", seq, from_seq, to_seq)


@pytest.mark.parametrize(
    ("marks", "seqs"),
    [
        ([], [1, 2, 3, 4, 5, 6, 7, 8]),
        ([mark(6, 3)], [6, 4, 5, 7, 8]),
        ([mark(5, 2), mark(8, 6)], [8, 7]),  # the wider summary replaces the narrower one too
        ([mark(8, 3), mark(7, 3)], [8, 4, 5, 6]),  # of equal summaries the later
        ([mark(5, 2), mark(8, 4)], [8, 6, 7]),
        ([mark(9, 3)], [1, 2, 3, 4, 5, 6, 7, 8]),  # its summary is not among the messages
        ([mark(8, 5, from_seq=4)], [1, 2, 3, 8, 6, 7]),
        ([mark(7, 2), mark(8, 5, from_seq=4)], [7, 3, 8, 6]),
        ([replace(mark(7, 5), carried_seq=2)], [7, 2, 6, 8]),
        ([replace(mark(6, 3), carried_seq=2), mark(8, 5)], [8, 7]),  # the outer one retains nothing
    ],
)
def test_effective__with_summaries__shows_each_at_its_interval(
    marks: list[Mark], seqs: list[int]
) -> None:
    assert effective_numbers(8, *marks) == seqs
    assert effective_numbers(8, *reversed(marks)) == seqs


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(1, 20), st.integers(1, 19)), max_size=5))
def test_effective__successive_summaries__shows_one_summary_and_all_later_messages(
    count: int, places: list[tuple[int, int]]
) -> None:
    chosen = {seq: to_seq for seq, to_seq in places if to_seq < seq <= count}
    marks = [mark(seq, to_seq) for seq, to_seq in chosen.items()]
    seqs = effective_numbers(count, *marks)
    if not marks:
        assert seqs == list(range(1, count + 1))
        return
    widest = max(marks, key=lambda each: (each.to_seq, each.seq))
    raw = [s for s in range(widest.to_seq + 1, count + 1) if s not in chosen]
    assert seqs == [widest.seq, *raw]


@pytest.mark.parametrize(
    ("script", "room", "kept"),
    [
        ("u a u a", 400, [0, 1, 2, 3]),
        ("u a u a", 399, [1, 2, 3]),
        ("s u a u a", 300, [0, 3, 4]),
        ("s s u a u a", 300, [0, 1, 5]),
        ("s u a", 50, [0]),
        ("u a", 0, []),
        ("u a+x -x a", 300, [1, 2, 3]),
        ("u a+x -x a", 250, [3]),  # never a result without its call
        ("u a+x,y -x -y a", 300, [4]),
        ("u -z a", 200, [2]),  # a result without any call cannot be first
        ("u a+x a a", 200, [2, 3]),  # a call without result may be cut off
        ("u a+x -x a+x -x u", 350, [3, 4, 5]),
        ("", 100, []),
        ("s s", 100, [0, 1]),
    ],
)
def test_fit__room_for_some__includes_system_and_newest_messages(
    script: str, room: int, kept: list[int]
) -> None:
    assert fit(talk(script), room) == kept


@given(_words, st.integers(0, 1_500))
def test_fit__any_conversation__never_separates_a_call_from_its_result(
    script: str, room: int
) -> None:
    lines = talk(script)
    kept = fit(lines, room)
    lead = next((i for i, line in enumerate(lines) if line.role != "system"), len(lines))
    assert kept[:lead] == list(range(lead))
    assert kept[lead:] == list(range(len(lines) - len(kept[lead:]), len(lines)))
    assert 100 * len(kept) <= max(room, 100 * lead)
    assert not kept[lead:] or lines[kept[lead]].role != "tool"
    matched = {}
    waiting: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        if line.answers and waiting.get(line.answers):
            matched[index] = waiting[line.answers].pop()
        for call in line.opens:
            waiting.setdefault(call, []).append(index)
    assert all(matched[index] in kept for index in kept if index in matched)


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("u a", []),
        ("u a+x -x", []),
        ("u a+x", [(1, "x")]),
        ("u a+x u", [(1, "x")]),
        ("u a+x,y -y u", [(2, "x")]),
        ("u a+x,y -y", [(2, "x")]),
        ("u a+x,y,z -y u", [(2, "x"), (2, "z")]),
        ("u a+x a+x -x u", [(1, "x")]),  # the result belongs to the newer call
        ("u a+x -x a+x u", [(3, "x")]),
        ("-x a+x", [(1, "x")]),  # a result does not come before its call
        ("a+y u a+x", [(0, "y"), (2, "x")]),
    ],
)
def test_dangling__calls_without_result__are_located_after_their_round(
    script: str, found: list[tuple[int, str]]
) -> None:
    assert dangling(talk(script)) == found
