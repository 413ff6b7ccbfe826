"""Planning a compaction in the database: by the same rules as over a list, and without reading the
messages."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from state_admin.domain.boundaries import MessageLine, Plan, Skip, plan
from state_admin.domain.policies import Policy
from state_admin.models import Message, Thread, folds_sql, hot
from state_admin.models.folds_sql import LogView
from state_admin.services import compaction_jobs, compactions, threads
from state_admin.services.effective_views import active_summary, effective_messages
from tests.builders import Person, append, make_thread, raw
from tests.domain.reference_boundaries import Lines

WORDS = ["s", "u", "i", "a", "a+x", "a+y", "a+x,y", "-x", "-y"]


def body(word: str) -> dict[str, Any]:
    """The words of tests/domain/test_boundaries.py as messages."""
    head, _, opens = word.partition("+")
    if word[0] == "-":
        return {"role": "tool", "tool_call_id": word[1:], "content": "result"}
    made: dict[str, Any] = {
        "role": {"s": "system", "u": "user", "i": "user", "a": "assistant"}[head],
        "content": "something that was said",
    }
    if head == "i":
        made["visibility"] = "internal"
    if opens:
        made["tool_calls"] = [
            {"id": call, "name": "f", "arguments": {}} for call in opens.split(",")
        ]
    return made


def make(person: Person, script: list[str], fold: tuple[int, bool] | None) -> Thread:
    """A thread with these words; `fold` adds a summary of the first ones, which may retain one."""
    row, _ = threads.create_thread(actor=person.actor)
    if script:
        append(person.actor, row.public_id, *map(body, script))
    if fold and script:
        upto = min(fold[0], len(script))
        Message.objects.create(
            thread=row, seq=len(script) + 1, public_id="summary", role="system",
            visibility="internal", body="{}", estimated_tokens=7,
            folds_from=1, folds_to=upto, fold_carries=upto if fold[1] else None,
        )  # fmt: skip
    return Thread.objects.get(pk=row.pk)


def lines(thread: Thread) -> Lines:
    return Lines(
        [
            MessageLine(m.folds_to or m.seq, m.public_id, m.role, m.visibility, m.estimated_tokens,
                 tuple(m.opens), m.answers)
            for m in effective_messages(thread)
        ]
    )  # fmt: skip


def view(thread: Thread) -> LogView:
    return LogView(thread.pk, active_summary(thread))


@given(
    script=st.lists(st.sampled_from(WORDS), max_size=14),
    fold=st.none() | st.tuples(st.integers(1, 6), st.booleans()),
    suffix=st.integers(0, 4),
    recent=st.integers(0, 4),
    ratio=st.sampled_from([0.0, 0.3, 1.0]),
)
@example(["u", "a", "-x", "u", "a"], None, 0, 0, 0.3)
@example(["-x", "-x", "a+x", "u", "a"], None, 0, 0, 0.3)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_plan__any_messages_and_summary__is_the_same_in_the_database_as_over_a_list(
    alice: Person, script: list[str], fold: Any, suffix: int, recent: int, ratio: float
) -> None:
    thread = make(alice, script, fold)
    here, there = lines(thread), view(thread)
    assert (there.count, there.tokens, there.turn) == (here.count, here.tokens, here.turn)
    assert there.unanswered == here.unanswered
    for end in range(here.count + 1):
        assert there.find_cut_point(end) == here.find_cut_point(end)
    policy = Policy(
        raw_suffix_messages=suffix,
        min_recent_messages=recent,
        min_savings_ratio=ratio,
        min_gain_tokens=20,
    )
    assert plan(there, policy) == plan(here, policy)


# A log of 100,000 messages ---------------------------------------------------------------------

LONG = 100_000

FILL = """
INSERT INTO messages (thread_id, seq, public_id, role, visibility, body, opens, answers,
    estimated_tokens)
SELECT %s, n, 'm' || n, (ARRAY['user', 'assistant', 'tool', 'assistant'])[1 + (n - 1) %% 4], 'all',
    '{"role": "user", "content": "said"}'::json,
    CASE WHEN n %% 4 = 2 THEN jsonb_build_array('c' || n) ELSE '[]' END,
    CASE WHEN n %% 4 = 3 THEN 'c' || n - 1 END, 20
FROM generate_series(1, %s) n
"""


@pytest.fixture
def long_thread(alice: Person) -> Thread:
    """A user's question, a tool round and an answer, 25,000 times."""
    row = make_thread(alice.actor, "long")
    with connection.cursor() as cursor:
        cursor.execute(FILL, [row.pk, LONG])
        cursor.execute("ANALYZE messages")
    Thread.objects.filter(pk=row.pk).update(message_count=LONG, context_tokens=20 * LONG)
    return row


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each hand-written statement returned."""
    counts: list[int] = []
    real = hot.fetch_all

    def count(statement: str, parameters: Any) -> list[hot.Row]:
        rows = real(statement, parameters)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(hot, "fetch_all", count)
    return counts


def test_plan__of_100_000_messages__fetches_few_rows(
    alice: Person, long_thread: Thread, fetched: list[int]
) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        seen = compactions.preview_compaction(actor=alice.actor, thread_id="long")
    assert seen.plan == Plan(LONG - 4, f"m{LONG - 4}", 20 * (LONG - 4), kept=4)
    assert seen.context_tokens == 20 * LONG
    assert sum(fetched) <= 6
    assert len(fetched) <= 5
    assert len(asked) <= 4
    logs = [each["sql"] for each in asked if '"messages"' in each["sql"]]
    assert all("folds_to" in sql and "LIMIT 1" in sql for sql in logs), "the summary alone"


def test_plan__many_summarized_messages__reads_only_later_ones(
    alice: Person, long_thread: Thread
) -> None:
    make_thread(alice.actor, "other")
    Message.objects.create(
        thread=long_thread, seq=LONG + 1, public_id="summary", role="system", body="{}",
        visibility="internal", estimated_tokens=7, folds_from=1, folds_to=LONG - 40,
    )  # fmt: skip
    found = view(long_thread)
    assert found.count == 41
    place = {**found._place, "end": 30, "most": folds_sql.MOST_BYTES}
    with connection.cursor() as cursor:
        for statement in (folds_sql._MEASURE, folds_sql._CUT_POINT):
            cursor.execute("EXPLAIN " + statement, place)
            planned = "\n".join(row[0] for row in cursor.fetchall())
            assert "Seq Scan on messages" not in planned
            assert "messages_seq_unique" in planned


# A call that never gets a result ----------------------------------------------------------------


def test_unanswered_call__before_new_messages__blocks_compaction_and_is_reported(
    alice: Person,
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"min_gain_tokens": 5}))
    append(alice.actor, "t1", *map(body, ["a+lost", *["u", "a"] * 40]))
    words = "tool call lost of message 1 has no result"
    assert compactions.preview_compaction(actor=alice.actor, thread_id="t1").skip == words
    assert alice.api("GET", "/threads/t1/compactions").json()["skip"] == words
    job = compactions.request_compaction(actor=alice.actor, thread_id="t1")
    assert compaction_jobs.run_compaction(job.public_id) == "skipped"
    job.refresh_from_db()
    assert job.detail == words
    append(alice.actor, "t1", body("-lost"), body("u"), body("a"))
    assert compactions.preview_compaction(actor=alice.actor, thread_id="t1").plan is not None


def test_unanswered_call__after_a_summary__is_reported_with_the_possible_saving(
    alice: Person,
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"min_gain_tokens": 500}))
    append(alice.actor, "t1", *map(body, ["u", "a", "u", "a+lost", *["u", "a"] * 40]))
    skip = compactions.preview_compaction(actor=alice.actor, thread_id="t1").skip
    assert skip == (
        "summarizing would save fewer than 500 tokens: 27; tool call lost of message 4 has no result"
    )


def test_unanswered_call__among_retained_messages__is_not_reported(alice: Person) -> None:
    thread = make(alice, ["u", "a", "u", "a+x"], None)
    made = plan(view(thread), Policy(min_gain_tokens=10_000))
    assert isinstance(made, Skip)
    assert "has no result" not in made.reason
