"""The behaviours of compaction in the reference implementation, a test for each, and properties of
any conversation under any operations."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_admin.domain import tokens
from state_admin.domain.policies import Policy
from state_admin.models import Compaction, Message, Thread
from state_admin.services import compaction_jobs, compactions, contexts, threads
from state_admin.services.compaction_jobs import run_compaction
from state_admin.services.effective_views import effective_messages
from state_admin.services.errors import Conflict
from state_admin.summarizers import SUMMARIZERS
from tests.builders import Person, append, conversation, make_thread, raw
from tests.domain.reference_boundaries import Mark, effective
from tests.services.test_compactions import Fake, ask
from tests.services.test_folds import body

SMALL = {"summarizer": "fake", "min_gain_tokens": 0, "min_savings_ratio": 0}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    made.text = "S"
    monkeypatch.setitem(SUMMARIZERS, "fake", lambda: made)
    return made


@pytest.fixture
def talk(alice: Person, fake: Fake) -> Person:
    """t1 is worth summarizing, by the fake."""
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "fake"}))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    return alice


def context_messages(thread_id: str = "t1") -> list[Message]:
    return effective_messages(Thread.objects.get(public_id=thread_id))


def summaries() -> int:
    return Message.objects.filter(folds_to__isnull=False).count()


# Boundary -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "policy", "boundary"),
    [
        pytest.param("u a", {}, None, id="none with too few messages"),
        pytest.param("u a u a a a", {"raw_suffix_messages": 5}, None, id="empty range"),
        pytest.param("u a u a u a", {"raw_suffix_messages": 3}, 3, id="respects the raw suffix"),
        pytest.param("u a+x u a", {}, 1, id="never inside an open tool round"),
        pytest.param("u a u a+x,y -x u a", {}, 3, id="partial results are no boundary"),
        pytest.param("u a+x -x a+y -y u a", {}, 5, id="of several rounds the last"),
        pytest.param("u a a+x -x u a", {"raw_suffix_messages": 3}, 2, id="no result is cut off"),
        pytest.param("u a u a a a a", {"raw_suffix_messages": 0}, 2, id="last user turn stays raw"),
        pytest.param("u a u i a", {}, 2, id="an internal user message begins no turn"),
    ],
)
def test_boundary(alice: Person, script: str, policy: dict[str, Any], boundary: int | None) -> None:
    whole = {**SMALL, "min_recent_messages": 99, **policy}
    made = make_thread(alice.actor, "t1", policy=raw(whole))
    append(alice.actor, "t1", *map(body, script.split()))
    plan = compactions.preview_compaction(actor=alice.actor, thread_id="t1").plan
    assert (plan.boundary_seq if plan else None) == boundary
    if plan is not None:
        held = Message.objects.get(thread=made, seq=boundary)
        assert plan.boundary_message_id == held.public_id, "the plan captures the boundary's id"


@pytest.mark.parametrize(("tokens_each", "planned"), [(255, False), (256, True)])
def test_plan__gain_below_1024_tokens__is_none(
    alice: Person, tokens_each: int, planned: bool
) -> None:
    make_thread(alice.actor, "t1")
    text = {"content": "x" * (4 * (tokens_each - 4))}
    turns = [{"role": role, **text} for role in ("user", "assistant") * 3]
    append(alice.actor, "t1", *turns)
    seen = compactions.preview_compaction(actor=alice.actor, thread_id="t1")
    assert (seen.plan is not None) == planned
    assert ("1024" in seen.skip) != planned


# Apply ----------------------------------------------------------------------------------------


def test_apply__accepted__swaps_by_the_boundarys_id(talk: Person) -> None:
    asked = ask(talk)
    assert run_compaction(asked) == "done"
    first, second = context_messages()[:2]
    done = Compaction.objects.get()
    boundary = Message.objects.get(public_id=done.boundary_message_id)
    assert (first.folds_from, first.folds_to) == (1, boundary.seq)
    assert second.seq == boundary.seq + 1
    assert json.loads(first.body or "") == {
        "role": "system",
        "content": "<conversation-summary>\nS\n</conversation-summary>",
    }


def test_apply__boundary_gone_meanwhile__is_superseded_and_blocks_nothing(
    talk: Person, fake: Fake
) -> None:
    asked = ask(talk)
    fake.during = lambda: Message.objects.filter(
        public_id=compactions.preview_compaction(
            actor=talk.actor, thread_id="t1"
        ).plan.boundary_message_id  # type: ignore[union-attr]
    ).delete()
    assert run_compaction(asked) == "superseded"
    assert (
        Compaction.objects.get().detail == "the boundary of the compaction changed in the meantime"
    )
    assert summaries() == 0
    fake.during = None
    assert run_compaction(ask(talk)) == "done"


def test_apply__messages_appended_meanwhile__survive_in_order(talk: Person, fake: Fake) -> None:
    fake.during = lambda: append(talk.actor, "t1", body("u"), body("a"))
    before = [message.seq for message in context_messages()]
    run_compaction(ask(talk))
    folded = Compaction.objects.get().boundary_seq or 0
    after = [message.seq for message in context_messages()[1:]]
    assert after == [*(seq for seq in before if seq > folded), before[-1] + 1, before[-1] + 2]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_failure__recorded__clears_what_was_in_flight(talk: Person, fake: Fake, times: int) -> None:
    fake.failures = 99
    for _ in range(times):
        asked = ask(talk)
        for _ in range(compaction_jobs.MAX_ATTEMPTS):
            last = run_compaction(asked)
            Compaction.objects.filter(status="queued").update(available_at=Now())
        assert last == "failed"
    assert Compaction.objects.filter(status="failed").count() == times
    fake.failures = 0
    assert run_compaction(ask(talk)) == "done"


def test_skip__min_savings_ratio__keeps_the_messages(talk: Person, fake: Fake) -> None:
    policy = {"summarizer": "fake", "min_savings_ratio": 1.0}
    threads.change_thread(actor=talk.actor, thread_id="t1", policy=raw(policy))
    before = [message.seq for message in context_messages()]
    assert run_compaction(ask(talk)) == "skipped"
    assert "min_savings_ratio" in Compaction.objects.get().detail
    assert [message.seq for message in context_messages()] == before


def test_stale_worker__is_ignored_and_clears_nothing(talk: Person, fake: Fake) -> None:
    asked = ask(talk)
    fake.during = lambda: Compaction.objects.update(claim=99)
    assert run_compaction(asked) == "superseded"
    row = Compaction.objects.get()
    assert (row.status, row.claim) == ("running", 99)
    assert summaries() == 0


def test_malformed_job__harms_nobody_and_ends(talk: Person) -> None:
    asked = ask(talk)
    Compaction.objects.update(policy='{"mode": 7}')
    for _ in range(compaction_jobs.GIVE_UP_AFTER):
        with pytest.raises(ValueError, match="mode"):
            run_compaction(asked)
        Compaction.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert run_compaction(asked) == "failed"
    assert Compaction.objects.get().detail.startswith("failed after 5 attempts")
    assert run_compaction(ask(talk)) == "done"


# State and trim -------------------------------------------------------------------------------


def test_state__several_compactions__are_on_record_in_order_and_undone_one_by_one(
    talk: Person,
) -> None:
    made = []
    for _ in range(3):
        made.append(ask(talk))
        assert run_compaction(made[-1]) == "done"
        append(talk.actor, "t1", *conversation(6)[1:])
    listed = talk.api("GET", "/compactions?thread_id=t1").json()["items"]
    assert [each["id"] for each in listed] == made[::-1]
    assert listed[0]["to_seq"] > listed[1]["to_seq"] > listed[2]["to_seq"]
    for asked in reversed(made):
        compactions.undo_compaction(actor=talk.actor, compaction_id=asked)
    with pytest.raises(Conflict):
        compactions.undo_compaction(actor=talk.actor, compaction_id=made[0])
    assert context_messages()[0].seq == 1


def test_trim__several_summaries__uses_the_last_and_again_gives_the_same(
    talk: Person, fake: Fake
) -> None:
    untouched = [message.seq for message in context_messages()]
    assert untouched == [message.seq for message in context_messages()], (
        "without a summary it does nothing"
    )
    for text in ("FIRST", "SECOND"):
        fake.text = text
        run_compaction(ask(talk))
        append(talk.actor, "t1", *conversation(6)[1:])
    once, again = context_messages(), context_messages()
    assert [message.seq for message in once] == [message.seq for message in again]
    told = [
        message.body or "" for message in once if "conversation-summary" in (message.body or "")
    ]
    assert len(told) == 1
    assert "SECOND" in told[0]


# Spawn ----------------------------------------------------------------------------------------


def test_spawn__nothing_to_summarise_with_or_no_boundary__changes_nothing(alice: Person) -> None:
    for thread_id, policy, turns in (("t1", {"summarizer": "nobody"}, 6), ("t2", {}, 1)):
        make_thread(alice.actor, thread_id, policy=raw(policy))
        append(alice.actor, thread_id, *conversation(turns, rounds=2))
        run_compaction(ask(alice, thread_id))
    assert set(Compaction.objects.values_list("status", flat=True)) == {"failed", "skipped"}
    assert summaries() == 0


def test_spawn__second_pass__is_given_the_summary_of_the_first(talk: Person, fake: Fake) -> None:
    run_compaction(ask(talk))
    append(talk.actor, "t1", *conversation(6)[1:])
    run_compaction(ask(talk))
    assert [request.previous_summary for request in fake.asked] == [None, "S"]


def test_spawn__summariser__works_on_what_was_there_when_it_was_asked(
    talk: Person, fake: Fake
) -> None:
    fake.during = lambda: append(talk.actor, "t1", {"role": "user", "content": "LATER"})
    run_compaction(ask(talk))
    assert "LATER" not in json.dumps(fake.asked[0].messages)


# Policy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "answer", "threshold"),
    [
        pytest.param(None, None, 9_000, id="no model, as it was said"),
        pytest.param(8_000, 1_000, 7_000, id="narrowed to what the answer leaves"),
        pytest.param(1_000, 5_000, None, id="dropped where nothing is left"),
    ],
)
def test_policy__caps_of_the_model__narrow_it(
    window: int | None, answer: int | None, threshold: int | None
) -> None:
    narrowed = Policy(autocompact_threshold=9_000).narrowed(window, answer)
    assert narrowed.autocompact_threshold == threshold
    assert narrowed.max_output_tokens <= narrowed.max_context_tokens


# Truncation -----------------------------------------------------------------------------------


def test_truncation__under_the_budget__touches_nothing(talk: Person) -> None:
    whole = contexts.read_context(actor=talk.actor, thread_id="t1")
    cut = contexts.read_context(actor=talk.actor, thread_id="t1", max_tokens=whole.estimated_tokens)
    assert (cut.messages, cut.left_out) == (whole.messages, 0)


def test_truncation__over_the_budget__keeps_system_and_newest_and_parts_no_pair(
    talk: Person,
) -> None:
    whole = [
        json.loads(t) for t in contexts.read_context(actor=talk.actor, thread_id="t1").messages
    ]
    for budget in range(20, 900, 40):
        view = contexts.read_context(actor=talk.actor, thread_id="t1", max_tokens=budget)
        kept = [json.loads(text) for text in view.messages]
        assert kept[0]["role"] == "system"
        assert kept[1:] == whole[len(whole) - len(kept) + 1 :], "the newest, without a gap"
        called = {call["id"] for each in kept for call in each.get("tool_calls") or ()}
        assert called == {each["tool_call_id"] for each in kept if each["role"] == "tool"}


def test_truncation__dangling_call__is_given_a_result(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *map(body, ["u", "a+x", "u"]))
    view = contexts.read_context(actor=alice.actor, thread_id="t1")
    assert json.loads(view.messages[2]) == {
        "role": "tool",
        "tool_call_id": "x",
        "content": "[Tool execution was interrupted]",
    }
    assert tokens.estimate_message(json.loads(view.messages[2])) == 4 + 32 // 4


# Any conversation -----------------------------------------------------------------------------

_WORDS = st.sampled_from(["u", "a", "s", "i", "a+x", "a+y", "a+x,y", "-x", "-y"])
_STEPS = st.lists(
    st.one_of(
        st.lists(_WORDS, min_size=1, max_size=7),
        st.sampled_from(["compact", "compact", "compact while appending", "undo"]),
    ),
    max_size=10,
)


def _open_calls(bodies: list[Message]) -> dict[str, int]:
    held: dict[str, int] = {}
    for message in bodies:
        for call in message.opens:
            held[call] = held.get(call, 0) + 1
        if held.get(message.answers or ""):
            held[message.answers or ""] -= 1
    return {call: count for call, count in held.items() if count}


@given(steps=_STEPS, recent=st.integers(0, 4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_conversation__folded_undone_and_continued__loses_nothing(
    alice: Person, fake: Fake, steps: list[Any], recent: int
) -> None:
    policy = {**SMALL, "raw_suffix_messages": recent, "min_recent_messages": recent}
    row, _ = threads.create_thread(actor=alice.actor, policy=raw(policy))
    said: list[str] = []
    undoable: list[tuple[str, list[int]]] = []

    def view() -> list[int]:
        return [message.seq for message in context_messages(row.public_id)]

    def say(*words: str) -> None:
        append(
            alice.actor,
            row.public_id,
            *({**body(w), "n": len(said) + i} for i, w in enumerate(words)),
        )
        said.extend(words)

    def compact(during: Callable[[], None] | None) -> None:
        before, fake.during = view(), during
        asked = ask(alice, row.public_id)
        ended = run_compaction(asked)
        fake.during = None
        assert ended in ("done", "skipped")
        if ended == "done":
            if during is not None:
                before = [
                    *before,
                    Message.objects.filter(thread=row, folds_to=None).latest("seq").seq,
                ]
            undoable.append((asked, before))
            job = Compaction.objects.get(public_id=asked)
            folded = Message.objects.filter(thread=row, seq__lte=job.boundary_seq, folds_to=None)
            assert _open_calls(list(folded.in_order())) == {}, "no tool round is cut"
            following = Message.objects.filter(thread=row, seq__gt=job.boundary_seq, folds_to=None)
            ahead = following.in_order().first()
            assert ahead is None or ahead.role != "tool"

    for step in steps:
        if step == "compact":
            compact(None)
        elif step == "compact while appending":
            compact(lambda: say("u"))
        elif step == "undo":
            if undoable:
                asked, before = undoable.pop()
                compactions.undo_compaction(actor=alice.actor, compaction_id=asked)
                assert view()[: len(before)] == before, "undo restores the view"
        else:
            say(*step)
        log = list(Message.objects.filter(thread=row).in_order())
        raws = [message for message in log if message.folds_to is None]
        assert [json.loads(m.body or "")["n"] for m in raws] == list(range(len(said))), (
            "the log keeps every message, in order"
        )
        marks = [
            Mark(m.public_id, m.seq, 1, m.folds_to, m.fold_carries)
            for m in log
            if m.folds_to is not None and m.fold_lifted_at is None
        ]
        lifted = {m.seq for m in log if m.fold_lifted_at is not None}
        told = effective([m for m in log if m.seq not in lifted], marks, lambda m: m.seq)
        assert view() == [m.seq for m in told], "the log under its marks is the view"
        outer = context_messages(row.public_id)[0] if view() else None
        covered = set[int]()
        if outer is not None and outer.folds_to is not None:
            job = Compaction.objects.select_related("summary").get(summary=outer)
            covered = set(compactions.folded_messages(job).values_list("seq", flat=True))
        in_view = {m.seq for m in raws} & set(view())
        assert in_view | covered == {m.seq for m in raws}, "view and marks reproduce the log"
        assert not in_view & covered
