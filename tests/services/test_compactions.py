"""Context compaction as a job: one at a time, executed once, visible, reversible."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import connections
from django.db.models import Q
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_admin.domain import tokens
from state_admin.models import AuditRow, Compaction, Message, Thread, folds_sql
from state_admin.services import (
    compaction_jobs,
    compactions,
    contexts,
    effective_views,
    maintenance,
    retention,
    threads,
)
from state_admin.services.errors import Conflict, Forbidden, NotFound
from state_admin.summarizers import SUMMARIZERS, Summary, SummaryFailed, SummaryRequest
from tests import builders
from tests.builders import Person, append, conversation, make_thread, raw
from tests.patience import PATIENCE
from tests.project.running import wait_for
from tests.services.racing import holds_up, race, split


class Fake:
    """A summarizer whose behaviour a test defines; it records its requests."""

    def __init__(self) -> None:
        self.asked: list[SummaryRequest] = []
        self.text = "SUMMARY"
        self.during: Any = None
        self.failures = 0

    def summarize(self, request: SummaryRequest) -> Summary:
        self.asked.append(request)
        if self.during is not None:
            self.during()
        if len(self.asked) <= self.failures:
            raise SummaryFailed("the model is out for lunch")
        return Summary(self.text, "fake", "fake-1", 0, 0, Decimal(0))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setitem(SUMMARIZERS, "fake", lambda: made)
    return made


@pytest.fixture
def thread(alice: Person) -> Person:
    """t1 has six turns of a conversation with tools; it is summarized by the fake."""
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "fake"}))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    return alice


def ask(person: Person, thread_id: str = "t1") -> str:
    return compactions.request_compaction(actor=person.actor, thread_id=thread_id).public_id


def run(job: str) -> str | None:
    return compaction_jobs.run_compaction(job)


def job(public_id: str) -> Compaction:
    return Compaction.objects.get(public_id=public_id)


def view(thread_id: str = "t1") -> list[Message]:
    return effective_views.effective_messages(Thread.objects.get(public_id=thread_id))


def context_is_right(thread_id: str = "t1") -> bool:
    held = Thread.objects.get(public_id=thread_id).context_tokens
    return held == sum(message.estimated_tokens for message in view(thread_id))


# Doing it ------------------------------------------------------------------------------------


def test_run__long_thread__summarizes_the_beginning(thread: Person, fake: Fake) -> None:
    log = Thread.objects.get().message_count
    asked = ask(thread)
    assert run(asked) == "done"
    done = job(asked)
    shown = view()
    assert json.loads(shown[0].body) == {
        "role": "system",
        "content": "<conversation-summary>\nSUMMARY\n</conversation-summary>",
    }
    assert (shown[0].visibility, shown[0].folds_from) == ("internal", 1)
    assert shown[0].folds_to == done.boundary_seq == shown[1].seq - 1
    assert shown[1].role == "user", "the last user turn stays raw as a whole"
    assert done.tokens_after < done.tokens_before
    assert (done.summary_text, done.summarizer, done.model) == ("SUMMARY", "fake", "fake-1")
    assert Message.objects.count() == log + 1, "originals stay"
    assert Thread.objects.get().message_count == log + 1
    assert context_is_right()


def test_run__twice__has_one_effect(thread: Person, fake: Fake) -> None:
    asked = ask(thread)
    assert [run(asked), run(asked)] == ["done", None]
    assert len(fake.asked) == 1
    assert Message.objects.filter(folds_to__isnull=False).count() == 1


def test_run__second_pass__updates_the_previous_summary(thread: Person, fake: Fake) -> None:
    run(ask(thread))
    fake.text = "NEWER"
    append(thread.actor, "t1", *conversation(6, rounds=1)[1:])
    asked = ask(thread)
    assert run(asked) == "done"
    first, second = fake.asked
    assert (first.previous_summary, second.previous_summary) == (None, "SUMMARY")
    assert not any("conversation-summary" in json.dumps(m) for m in second.messages)
    assert "NEWER" in view()[0].body
    assert sum("conversation-summary" in m.body for m in view()) == 1
    assert context_is_right()


@pytest.mark.parametrize("most", [1, 2000])
def test_run__more_than_fits_into_memory__is_summarized_in_parts(
    thread: Person, fake: Fake, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    whole = view()
    policy = raw({"summarizer": "fake", "min_savings_ratio": 0, "min_gain_tokens": 0})
    threads.change_thread(actor=thread.actor, thread_id="t1", policy=policy)
    monkeypatch.setattr(folds_sql, "MOST_BYTES", most)
    for _ in whole:
        status = run(ask(thread))
        if status == "skipped":
            break
        assert status == "done"
    sizes = [sum(len(json.dumps(m)) for m in request.messages) for request in fake.asked]
    assert max(sizes) <= max(most, max(len(message.body) for message in whole) * 3)
    assert len(sizes) > 1
    monkeypatch.undo()
    summarized = [body for request in fake.asked for body in request.messages]
    assert summarized == [json.loads(message.body) for message in whole[: len(summarized)]]
    assert view()[1:] == whole[len(summarized) :]
    assert len(whole) - len(summarized) <= 7, (
        "the last turn, and one message with the limit of 1 byte"
    )


def test_run__short_thread__is_skipped_with_a_reason(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", {"role": "user", "content": "hi"})
    asked = ask(alice)
    assert run(asked) == "skipped"
    assert job(asked).detail
    assert job(asked).finished_at is not None


def test_run__summary_saves_too_little__is_skipped(thread: Person, fake: Fake) -> None:
    policy = raw({"summarizer": "fake", "summary_max_tokens": 100_000})
    threads.change_thread(actor=thread.actor, thread_id="t1", policy=policy)
    fake.text = "blah " * 20_000
    before = view()
    asked = ask(thread)
    assert run(asked) == "skipped"
    assert "min_savings_ratio" in job(asked).detail
    assert view() == before


def test_run__unknown_summarizer__fails_with_a_message(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "nobody"}))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    asked = ask(alice)
    assert run(asked) == "failed"
    assert "nobody" in job(asked).detail


def test_run__model_fails__is_retried_later_then_given_up(thread: Person, fake: Fake) -> None:
    fake.failures = 9
    asked = ask(thread)
    for attempt in range(1, compaction_jobs.MAX_ATTEMPTS):
        assert run(asked) == "queued"
        assert run(asked) is None, "not before its time"
        now = job(asked)
        assert (now.attempts, now.status) == (attempt, "queued")
        assert "out for lunch" in now.detail
        Compaction.objects.update(available_at=Now() - timedelta(seconds=1))
    assert run(asked) == "failed"
    assert len(fake.asked) == compaction_jobs.MAX_ATTEMPTS
    assert ask(thread) != asked, "a new one may be asked for"


def test_run__crash_in_the_summarizer__does_not_block_the_thread(
    thread: Person, fake: Fake
) -> None:
    def crash() -> None:
        raise RuntimeError("not a SummaryFailed")

    fake.during = crash
    asked = ask(thread)
    assert run(asked) == "failed"
    fake.during = None
    assert run(ask(thread)) == "done"


def test_run__messages_appended_meanwhile__are_retained(thread: Person, fake: Fake) -> None:
    fake.during = lambda: append(thread.actor, "t1", {"role": "user", "content": "meanwhile"})
    assert run(ask(thread)) == "done"
    assert "meanwhile" in view()[-1].body
    assert context_is_right()


def test_run__thread_deleted_meanwhile__ends_without_error(thread: Person, fake: Fake) -> None:
    fake.during = lambda: threads.delete_thread(actor=thread.actor, thread_id="t1")
    assert run(ask(thread)) == "superseded"
    assert not Thread.objects.exists()
    assert not Message.objects.exists()


def test_run__another_compaction_reached_further_meanwhile__is_superseded(
    thread: Person, fake: Fake
) -> None:
    late = ask(thread)

    def overtake() -> None:
        fake.during = None
        Compaction.objects.filter(public_id=late).update(
            lease_expires_at=Now() - timedelta(seconds=1)
        )
        assert run(late) == "done"

    fake.during = overtake
    assert run(late) == "superseded"
    assert Message.objects.filter(folds_to__isnull=False).count() == 1
    assert job(late).status == "done"


# One at a time -------------------------------------------------------------------------------


def test_request__one_in_progress__returns_it(
    thread: Person, sent_notifications: list[tuple[str, ...]]
) -> None:
    first = ask(thread)
    assert ask(thread) == first
    assert sent_notifications == [(compactions.RUN,)]
    assert AuditRow.objects.filter(action="compaction.request").count() == 1


@pytest.mark.django_db(transaction=True)
def test_race__requests__create_one_job(thread: Person) -> None:
    won, lost = split(race([partial(ask, thread)] * 8))
    assert lost == []
    assert len(set(won)) == 1
    assert Compaction.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("module", [compactions, retention])
def test_race__request_and_deletion__are_serialized(
    thread: Person, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = getattr(module, "request_compaction", None) or module.request_snapshots
    deletions: list[threading.Thread] = []
    real = module.effective_policy

    def delete() -> None:
        try:
            threads.delete_thread(actor=thread.actor, thread_id="t1")
        finally:
            connections.close_all()

    def begin_deletion(*args: Any) -> Any:
        deletions.append(threading.Thread(target=delete))
        deletions[0].start()
        wait_for(lambda: holds_up() or not deletions[0].is_alive(), "the deletion waits")
        return real(*args)

    monkeypatch.setattr(module, "effective_policy", begin_deletion)
    assert request(actor=thread.actor, thread_id="t1").status == "queued"
    deletions[0].join(PATIENCE)
    assert not Thread.objects.exists()
    assert not Compaction.objects.exists()
    with pytest.raises(NotFound):
        request(actor=thread.actor, thread_id="t1")


@pytest.mark.django_db(transaction=True)
def test_race__workers_of_one_job__one_runs_it(thread: Person, fake: Fake) -> None:
    asked = ask(thread)
    assert sorted(map(str, race([partial(run, asked)] * 8))) == ["None"] * 7 + ["done"]
    assert len(fake.asked) == 1
    assert Message.objects.filter(folds_to__isnull=False).count() == 1
    assert context_is_right()


@pytest.mark.django_db(transaction=True)
def test_race__worker_and_writers__context_tokens_are_correct(thread: Person, fake: Fake) -> None:
    asked = ask(thread)
    writes = [
        partial(append, thread.actor, "t1", {"role": "user", "content": f"n{n}"}) for n in range(6)
    ]
    _, lost = split(race([partial(run, asked), *writes]))
    assert lost == []
    assert context_is_right()


def test_dead_worker__its_job__is_claimed_after_its_lease(thread: Person, fake: Fake) -> None:
    asked = ask(thread)
    Compaction.objects.update(
        status="running", claim=1, lease_expires_at=Now() + compaction_jobs.LEASE
    )
    assert run(asked) is None
    assert not maintenance.any_compaction_lost()
    assert maintenance.find_lost_compactions() == {"compactions": 0}
    Compaction.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert maintenance.any_compaction_lost()
    assert maintenance.find_lost_compactions() == {"compactions": 1}
    assert run(asked) == "done"


def test_slow_worker__lost_its_lease__applies_nothing(thread: Person, fake: Fake) -> None:
    asked = ask(thread)

    def lose_the_lease() -> None:
        Compaction.objects.update(claim=7)

    fake.during = lose_the_lease
    assert run(asked) == "superseded"
    assert not Message.objects.filter(folds_to__isnull=False).exists()
    assert job(asked).status == "running", "it is the other worker's now"


# What a summary replaces ---------------------------------------------------------------------


def replaced_messages(person: Person, asked: str, query: str = "") -> list[int]:
    body = person.api("GET", f"/compactions/{asked}/messages{query}").json()
    return [message["seq"] for message in body["items"]]


def test_coverage__of_a_summary__contains_every_message_it_replaces(
    thread: Person, fake: Fake, bob: Person
) -> None:
    first = ask(thread)
    assert replaced_messages(bob, first) == [], "nothing yet"
    run(first)
    upto = job(first).boundary_seq
    assert replaced_messages(bob, first) == list(range(1, upto + 1))
    append(thread.actor, "t1", *conversation(6, rounds=1)[1:])
    second = ask(thread)
    run(second)
    assert replaced_messages(bob, second, "?limit=200") == [
        seq for seq in range(1, job(second).boundary_seq + 1) if seq != job(first).summary.seq
    ], "messages, not the summary of some of them"
    page = bob.api("GET", f"/compactions/{second}/messages?limit=2").json()
    assert [message["seq"] for message in page["items"]] == [1, 2]
    assert page["items"][0]["content"] == "You book trips. Be exact."
    cursor = page["next_cursor"]
    assert replaced_messages(bob, second, f"?limit=2&cursor={cursor}") == [3, 4]
    compactions.undo_compaction(actor=thread.actor, compaction_id=second)
    assert replaced_messages(bob, first) == list(range(1, upto + 1))


def test_coverage__turn_cut_inside__excludes_the_retained_question(
    alice: Person, fake: Fake
) -> None:
    policy = {"summarizer": "fake", "min_recent_messages": 2, "min_savings_ratio": 0.9}
    make_thread(alice.actor, "t1", policy=raw(policy))
    append(alice.actor, "t1", *conversation(1, rounds=30))
    asked = ask(alice)
    assert run(asked) == "done"
    body = alice.api("GET", f"/compactions/{asked}").json()
    assert body["carried_seq"] == 2
    covered = replaced_messages(alice, asked, "?limit=200")
    assert covered == [1, *range(3, body["to_seq"] + 1)]
    assert (
        sum(m.estimated_tokens for m in Message.objects.filter(seq__in=covered))
        == (body["tokens_before"])
    )


# Undo, cancel, retry -------------------------------------------------------------------------


def test_undo__any__restores_the_messages_and_deletes_nothing(thread: Person, fake: Fake) -> None:
    before = [message.seq for message in view()]
    tokens = Thread.objects.get().context_tokens
    asked = ask(thread)
    run(asked)
    undone = compactions.undo_compaction(actor=thread.actor, compaction_id=asked)
    assert (undone.status, undone.undone_by) == ("undone", "alice")
    assert [message.seq for message in view()] == before
    assert Thread.objects.get().context_tokens == tokens
    assert Message.objects.filter(folds_to__isnull=False).count() == 1
    with pytest.raises(Conflict):
        compactions.undo_compaction(actor=thread.actor, compaction_id=asked)
    assert run(ask(thread)) == "done", "it can be compacted again"
    assert context_is_right()


def test_undo__inner_of_two__is_refused_until_the_outer_is_undone(
    thread: Person, fake: Fake
) -> None:
    inner = ask(thread)
    run(inner)
    append(thread.actor, "t1", *conversation(6)[1:])
    outer = ask(thread)
    assert run(outer) == "done"
    with pytest.raises(Conflict) as refused:
        compactions.undo_compaction(actor=thread.actor, compaction_id=inner)
    assert refused.value.data["later"] == outer
    compactions.undo_compaction(actor=thread.actor, compaction_id=outer)
    assert view()[0].folds_to == job(inner).boundary_seq
    assert context_is_right()
    compactions.undo_compaction(actor=thread.actor, compaction_id=inner)
    assert view()[0].folds_to is None
    assert context_is_right()


def test_undo__while_a_later_one_runs__that_one_does_not_build_on_it(
    thread: Person, fake: Fake
) -> None:
    before = [message.seq for message in view()]
    inner = ask(thread)
    run(inner)
    append(thread.actor, "t1", *conversation(6)[1:])
    fake.during = lambda: compactions.undo_compaction(actor=thread.actor, compaction_id=inner)
    outer = ask(thread)
    assert run(outer) == "superseded"
    assert job(outer).detail == "the previous summary was undone or replaced in the meantime"
    assert job(inner).status == "undone"
    assert [message.seq for message in view()[: len(before)]] == before
    assert all(message.folds_to is None for message in view())
    assert context_is_right()
    fake.during = None
    again = compactions.retry_compaction(actor=thread.actor, compaction_id=outer).public_id
    assert run(again) == "done"
    assert fake.asked[-1].previous_summary is None


def test_cancel__queued_or_running__applies_nothing(thread: Person, fake: Fake) -> None:
    queued = ask(thread)
    assert (
        compactions.cancel_compaction(actor=thread.actor, compaction_id=queued).status
        == "cancelled"
    )
    assert run(queued) is None
    running = ask(thread)
    fake.during = lambda: compactions.cancel_compaction(actor=thread.actor, compaction_id=running)
    assert run(running) == "superseded"
    assert job(running).status == "cancelled"
    assert not Message.objects.filter(folds_to__isnull=False).exists()
    with pytest.raises(Conflict) as refused:
        compactions.cancel_compaction(actor=thread.actor, compaction_id=running)
    assert refused.value.detail == "the compaction is already cancelled"


def test_retry__of_a_failed_job__is_a_new_job(thread: Person, fake: Fake) -> None:
    asked = ask(thread)
    with pytest.raises(Conflict):
        compactions.retry_compaction(actor=thread.actor, compaction_id=asked)
    compactions.cancel_compaction(actor=thread.actor, compaction_id=asked)
    again = compactions.retry_compaction(actor=thread.actor, compaction_id=asked)
    assert again.public_id != asked
    assert run(again.public_id) == "done"
    with pytest.raises(Conflict):
        compactions.retry_compaction(actor=thread.actor, compaction_id=again.public_id)


def test_viewer__any_action__is_forbidden(thread: Person, bob: Person) -> None:
    asked = ask(thread)
    for verb in (
        lambda: ask(bob),
        lambda: compactions.undo_compaction(actor=bob.actor, compaction_id=asked),
        lambda: compactions.cancel_compaction(actor=bob.actor, compaction_id=asked),
        lambda: compactions.retry_compaction(actor=bob.actor, compaction_id=asked),
    ):
        with pytest.raises(Forbidden):
            verb()


# The view ------------------------------------------------------------------------------------


def test_context__summarized_and_cut__separates_no_call_from_its_results(
    thread: Person, fake: Fake
) -> None:
    run(ask(thread))
    whole = contexts.read_context(actor=thread.actor, thread_id="t1")
    assert whole.folded_to_seq is not None
    for limit in (1, 50, 200, 400, 10_000):
        shown = contexts.read_context(actor=thread.actor, thread_id="t1", max_tokens=limit)
        bodies = [json.loads(text) for text in shown.messages]
        opened = {c["id"] for b in bodies for c in b.get("tool_calls") or ()}
        answered = {b["tool_call_id"] for b in bodies if b["role"] == "tool"}
        assert opened == answered
        assert bodies[0]["role"] == "system", "the leading system messages always stay"
        assert len(bodies) + shown.left_out == len(whole.messages)


def test_context__call_without_result__gets_a_placeholder(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(1, rounds=1)[:3], {"role": "user", "content": "well?"})
    bodies = [
        json.loads(text)
        for text in contexts.read_context(actor=alice.actor, thread_id="t1").messages
    ]
    assert [b["role"] for b in bodies] == ["system", "user", "assistant", "tool", "user"]
    assert bodies[3]["content"] == "[Tool execution was interrupted]"


def test_context__within_max_tokens__counts_placeholders(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    calls = [{"id": f"c{n}", "name": "f", "arguments": {}} for n in range(5)]
    user = {"role": "user", "content": "hi"}
    log = [user, {"role": "assistant", "content": None, "tool_calls": calls}, user]
    append(alice.actor, "t1", *log)
    whole = contexts.read_context(actor=alice.actor, thread_id="t1")
    assert len(whole.messages) == 8
    shown = [
        contexts.read_context(actor=alice.actor, thread_id="t1", max_tokens=limit)
        for limit in range(1, whole.estimated_tokens + 1)
    ]
    for limit, view in enumerate(shown, start=1):
        assert view.estimated_tokens <= limit
        assert view.estimated_tokens == sum(
            tokens.estimate_message(json.loads(text)) for text in view.messages
        )
    assert {len(view.messages) for view in shown} == {0, 1, 7, 8}


MESSAGE = st.sampled_from(
    [
        {"role": "user", "content": "question " * 40},
        {"role": "assistant", "content": "answer " * 60},
        {"role": "system", "content": "be good", "visibility": "internal"},
        "round",
    ]
)
STEP = st.one_of(
    st.lists(MESSAGE, min_size=1, max_size=8),
    st.sampled_from(["compact", "undo", "undo"]),
)


@given(steps=st.lists(STEP, max_size=8))
@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_context_tokens__after_any_operation__is_the_sum_over_the_view(
    alice: Person, fake: Fake, steps: list[Any]
) -> None:
    policy = {"summarizer": "fake", "min_gain_tokens": 0, "min_savings_ratio": 0}
    thread_id = builders.threads.create_thread(actor=alice.actor, policy=raw(policy))[0].public_id
    done: list[str] = []
    rounds = 0
    for step in steps:
        if step == "compact":
            asked = ask(alice, thread_id)
            if run(asked) == "done":
                done.append(asked)
        elif step == "undo":
            if done:
                compactions.undo_compaction(actor=alice.actor, compaction_id=done.pop())
        else:
            bodies: list[Any] = []
            for body in step:
                if body == "round":
                    rounds += 1
                    call = {"id": f"c{rounds}", "name": "f", "arguments": {"n": rounds}}
                    bodies.append({"role": "assistant", "tool_calls": [call]})
                    bodies.append({"role": "tool", "tool_call_id": f"c{rounds}", "content": "r"})
                else:
                    bodies.append(body)
            append(alice.actor, thread_id, *bodies)
        assert context_is_right(thread_id)
        thread = Thread.objects.get(public_id=thread_id)
        seqs = Message.objects.filter(thread=thread).order_by("seq").values_list("seq", flat=True)
        assert list(seqs) == list(range(1, thread.message_count + 1))
        raws = [m.seq for m in view(thread_id) if m.folds_to is None]
        summary = next((m for m in view(thread_id) if m.folds_to is not None), None)
        kept = Message.objects.filter(thread=thread, folds_to=None)
        if summary is not None:
            kept = kept.filter(Q(seq__gt=summary.folds_to) | Q(seq=summary.fold_carries))
        assert raws == list(kept.order_by("seq").values_list("seq", flat=True))
