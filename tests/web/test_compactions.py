"""The pages of compactions: summarized messages, undo, requesting again."""

from __future__ import annotations

import pytest
from django.test import Client

from state_admin.models import AuditRow, Compaction
from state_admin.services import compactions
from state_admin.services.contexts import read_context
from tests.builders import Person, append, conversation, make_record, make_thread, raw
from tests.web.stories import compact, create_story
from tests.web.test_threads import page


def test_compactions__none__shows_how_to_request_one(admin: Client) -> None:
    assert "No compactions yet" in page(admin, "/compactions")


@pytest.mark.parametrize(
    ("query", "found"),
    [("", 1), ("status=done", 1), ("status=failed", 0), ("kind=history", 0), ("thread=t1", 1)],
)
def test_compactions__filtered__contains_only_matches(
    query: str, found: int, admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    assert len(admin.get(f"/compactions.json?{query}").json()["items"]) == found
    assert ("No compactions match" in page(admin, f"/compactions?{query}")) == (not found)


def test_compactions__more_than_a_page__are_counted_up_to_a_limit(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = make_thread(alice.actor, "t1")
    Compaction.objects.bulk_create(
        Compaction(
            workspace=alice.workspace, public_id=f"c{number}", kind="context", status="failed",
            trigger="manual", thread=thread, requested_by="alice",
        )
        for number in range(4)
    )  # fmt: skip
    assert ">4 compactions<" in page(admin, "/compactions")
    monkeypatch.setattr("state_admin.web.compactions.PAGE", 2)
    assert ">4 compactions<" in page(admin, "/compactions?status=failed")
    monkeypatch.setattr("state_admin.web.tables.COUNTED", 2)
    assert ">2+ compactions<" in page(admin, "/compactions")


def test_compaction__done__shows_summary_and_messages(admin: Client, alice: Person) -> None:
    job = create_story(alice.actor).compaction
    shown = page(admin, f"/compactions/{job.public_id}")
    assert f"Messages 1 to {job.boundary_seq}" in shown
    assert "Extractive summary" in shown
    assert "Undo…" in shown
    assert "data-live" not in shown


def test_compaction__undone__model_sees_the_originals_again(admin: Client, alice: Person) -> None:
    job = create_story(alice.actor).compaction
    before = read_context(actor=alice.actor, thread_id="t1")
    assert "stays in the thread" in page(admin, f"/compactions/{job.public_id}/undo")
    response = admin.post(f"/compactions/{job.public_id}/undo", {"reason": "lost the amounts"})
    assert response["Location"] == f"/compactions/{job.public_id}"
    after = read_context(actor=alice.actor, thread_id="t1")
    assert before.folded_to_seq
    assert after.folded_to_seq is None
    assert after.estimated_tokens > before.estimated_tokens
    assert AuditRow.objects.filter(action="compaction.undo", reason="lost the amounts").exists()
    shown = page(admin, f"/compactions/{job.public_id}")
    assert "Undone" in shown
    assert "Undo…" not in shown
    assert "Compact again" in shown


def test_compaction__undo_from_the_thread__returns_there(admin: Client, alice: Person) -> None:
    job = create_story(alice.actor).compaction
    assert 'name="from" value="thread"' in page(
        admin, f"/compactions/{job.public_id}/undo?from=thread"
    )
    response = admin.post(f"/compactions/{job.public_id}/undo", {"from": "thread"})
    assert response["Location"] == "/threads/t1?tab=compactions"


def test_compaction__a_later_one_builds_on_it__undo_is_refused_and_not_offered(
    admin: Client, alice: Person
) -> None:
    first = create_story(alice.actor).compaction
    append(alice.actor, "t1", *conversation(8)[1:])
    second = compact(alice.actor, "t1")
    assert second.status == "done"
    inner = page(admin, f"/compactions/{first.public_id}")
    assert "Undo…" not in inner
    assert "Undo a later compaction first" in inner
    assert f"/compactions/{second.public_id}" in inner
    outer = page(admin, f"/compactions/{second.public_id}")
    assert "Previous summary, updated by this compaction" in outer
    assert f"/compactions/{first.public_id}" in outer
    assert f"summary of messages 1 to {first.boundary_seq}" in page(
        admin, f"/compactions/{second.public_id}/undo"
    )
    assert admin.post(f"/compactions/{first.public_id}/undo").status_code == 409


def test_compact__requested_on_the_thread__one_job_is_in_progress(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8))
    assert "Summarizes messages 1 to" in page(admin, "/threads/t1?tab=compactions")
    for _ in range(2):
        admin.post("/thread/compact/t1", {"reason": "too long"})
    job = Compaction.objects.get()
    assert job.status == "queued"
    shown = page(admin, f"/compactions/{job.public_id}")
    assert "Waiting for a worker" in shown
    assert 'data-live="compaction."' in shown
    assert 'data-live="compaction."' in page(admin, "/threads/t1?tab=compactions")


def test_compaction__running__shows_its_phase(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8))
    job = compactions.request_compaction(actor=alice.actor, thread_id="t1")
    Compaction.objects.update(
        status="running", phase="asking", attempts=2, provider="acme", model="small-1",
        detail="provider acme returned 503",
    )  # fmt: skip
    shown = " ".join(page(admin, f"/compactions/{job.public_id}").split())
    assert "<strong>Waiting for the summary</strong> from small-1 at acme, attempt 2 of 3." in shown
    assert "Last error: provider acme returned 503." in shown
    assert "data-live" in shown
    assert "waiting for the summary, attempt 2" in page(admin, "/threads/t1?tab=compactions")


def test_preview__call_without_result__is_reported(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    lost = {"role": "assistant", "tool_calls": [{"id": "c9", "name": "f", "arguments": {}}]}
    append(alice.actor, "t1", lost, *conversation(8))
    words = "tool call c9 of message 1 has no result"
    assert words in page(admin, "/threads/t1?tab=compactions")
    assert words in page(admin, f"/compactions/{compact(alice.actor, 't1').public_id}")


def test_preview__model_without_a_price__reports_that_no_cap_applies(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "model", "summary_model": "small"}))
    append(alice.actor, "t1", *conversation(8))
    make_record(alice.actor, "providers", "acme", {"adapter": "openai"})
    spec = {"provider_id": "acme", "upstream_model": "small-1"}
    make_record(alice.actor, "models", "small", spec)
    words = "No price is set: the cost of small-1 counts as $0, so the daily budget of $5.00 cannot be enforced."
    assert words in page(admin, "/threads/t1?tab=compactions")
    prices = {f"{side}_token_price_per_million_usd": 1 for side in ("input", "output")}
    make_record(alice.actor, "models", "small", {**spec, **prices})
    assert "No price" not in page(admin, "/threads/t1?tab=compactions")


def test_compaction__fallback_after_a_paid_answer__shows_its_cost(
    admin: Client, alice: Person
) -> None:
    job = create_story(alice.actor).compaction
    assert "Cost of model calls" not in page(admin, f"/compactions/{job.public_id}")
    Compaction.objects.filter(pk=job.pk).update(cost_usd="0.0011", model="")
    shown = page(admin, f"/compactions/{job.public_id}")
    assert "<dt>Cost of model calls</dt><dd>$0.001100</dd>" in shown
    assert "Tokens in, out" in shown


def test_compaction__queued__can_be_cancelled_and_requested_again(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8))
    job = compactions.request_compaction(actor=alice.actor, thread_id="t1")
    assert "stays as it is" in page(admin, f"/compactions/{job.public_id}/cancel")
    admin.post(f"/compactions/{job.public_id}/cancel", {"reason": "not now"})
    job.refresh_from_db()
    assert job.status == "cancelled"
    response = admin.post(f"/compactions/{job.public_id}/retry")
    newest = Compaction.objects.latest("pk")
    assert newest.pk != job.pk
    assert response["Location"] == f"/compactions/{newest.public_id}"


def test_compaction__nothing_to_summarize__states_the_reason(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", {"role": "user", "content": "hello"})
    assert "Nothing to compact: fewer than 2 messages" in page(admin, "/threads/t1?tab=compactions")
    job = compact(alice.actor, "t1")
    shown = page(admin, f"/compactions/{job.public_id}")
    assert "Skipped:" in shown
    assert "Retry" in shown
