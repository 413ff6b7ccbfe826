"""The timeline of a run: what its steps did, in order, bounded, and only what the reader may see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from benchmarks.pages import LIMIT_KB
from state_admin.domain.merging import Batch, Update
from state_admin.models import Revision, Run
from state_admin.services import commits, runs
from state_admin.services.commits import Step
from state_admin.services.runs import RunChange
from state_admin.services.snapshots import mark_revision
from state_admin.services.tool_calls import TOOL_CALLS
from state_admin.web import run_timeline
from tests.builders import (
    Person,
    append,
    commit,
    make_run,
    make_state_key,
    make_thread,
    raw,
)
from tests.web.stories import HOSTILE, TICKET, compact, create_story
from tests.web.test_threads import htmx, page


def call(name: str, arguments: str = "{}", identity: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": identity or name, "type": "function", "function": function}


def calling(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(identity: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content, **more}


@pytest.fixture
def run(alice: Person) -> Person:
    make_state_key(alice.actor, "goal", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor)
    return alice


def steps_of(shown: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r">Step ([\d,]+)<", shown)]


def end(alice: Person, run_id: str = "r1", **ended: Any) -> None:
    change = RunChange(status="done", termination_reason=ended or {"type": "natural_end"})
    runs.change_run(actor=alice.actor, run_id=run_id, change=change)


def test_timeline__all_events__are_newest_first_while_it_is_active(
    admin: Client, run: Person
) -> None:
    commit(run.actor, "r1", messages=[calling(call("search"), call("issue_refund"))])
    waiting = {"reason": "tool_permission", "wake": "dispatch", "tickets": [TICKET]}
    runs.change_run(
        actor=run.actor, run_id="r1", change=RunChange(status="waiting", waiting=waiting)
    )
    asked = page(admin, "/runs/r1")
    assert "requested</span>" in asked
    assert "approved</span>" not in asked
    admin.post("/ticket/tk1", {"action": "resume", "payload": '{"approved": true}'})
    shown = page(admin, "/runs/r1")
    said = ("dispatch queued", "approved</span>", "requested</span>", ">Step 2<", ">Step 1<")
    places = [shown.index(each) for each in said]
    assert places == sorted(places)
    assert "by alice: {&quot;approved&quot;: true}" in shown
    assert "Refunds above 100 need a person." in shown
    oldest = page(admin, "/runs/r1?order=oldest")
    places = [oldest.index(each) for each in said]
    assert places == sorted(places, reverse=True)


def test_timeline__finished_run__begins_with_its_first_step(admin: Client, run: Person) -> None:
    for count in range(3):
        commit(run.actor, "r1", {"goal": count})
    assert steps_of(page(admin, "/runs/r1")) == [4, 3, 2, 1]
    end(run)
    assert steps_of(page(admin, "/runs/r1")) == [1, 2, 3, 4, 5]
    assert steps_of(page(admin, "/runs/r1?order=newest")) == [5, 4, 3, 2, 1]
    assert steps_of(page(admin, "/runs/r1?order=nonsense")) == [1, 2, 3, 4, 5]


def test_timeline__tool_call__is_paired_with_its_result(admin: Client, run: Person) -> None:
    asked = calling(call("search", '{"from": "HAM"}', "c1"), call("book", "{}", "c2"))
    commit(run.actor, "r1", messages=[asked, result("c1", '[{"offer": "LX1"}]')])
    commit(run.actor, "r1", messages=[result("c2", "seat 12\ntaken")])
    shown = page(admin, "/runs/r1?order=oldest")
    search, book = re.findall(r'<details class="call">(.*?)</details>', shown, re.DOTALL)
    assert "&quot;from&quot;: &quot;HAM&quot;" in search
    assert "&quot;offer&quot;: &quot;LX1&quot;" in search
    assert 'href="/threads/t1?message=2#m2"' in search
    assert "seat 12" in book
    # The result in another step is a line of that step too, the other one is not.
    assert shown.count('<span class="mono">book</span> returned seat 12</span>') == 1
    assert "search</span> returned" not in shown


def test_timeline__id_of_a_call_used_again__has_its_own_result(admin: Client, run: Person) -> None:
    for number in range(3):
        asked = calling(call("search", f'{{"page": {number}}}', "c1"))
        commit(run.actor, "r1", messages=[asked, result("c1", f"result {number}")])
    shown = page(admin, "/runs/r1?order=oldest")
    calls = re.findall(r'<details class="call">(.*?)</details>', shown, re.DOTALL)
    for number, each in enumerate(calls):
        assert f"&quot;page&quot;: {number}" in each
        assert f"<pre>result {number}</pre>" in each
    assert len(calls) == 3


def test_timeline__result_of_a_call_on_another_page__names_its_tool(
    admin: Client, run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_timeline, "PAGE", 1)
    commit(run.actor, "r1", messages=[calling(call("search"))])
    commit(run.actor, "r1", messages=[result("search", "fine")])
    assert "fine</pre>" in page(admin, "/runs/r1?order=oldest&after=1")
    assert "search</span> returned fine" in page(admin, "/runs/r1?order=oldest&after=2")


def test_timeline__call_without_result__says_so(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", messages=[calling(call("search"))])
    assert "no result yet" in page(admin, "/runs/r1")


@pytest.mark.parametrize("flag", [{"is_error": True}, {"status": "error"}])
def test_timeline__failed_tool__marks_the_call_and_its_step(
    flag: dict[str, Any], admin: Client, run: Person
) -> None:
    commit(run.actor, "r1", messages=[calling(call("search")), result("search", "503", **flag)])
    commit(run.actor, "r1", messages=[calling(call("other")), result("other", "fine")])
    commit(run.actor, "r1", messages=[calling(call("third"))])
    shown = page(admin, "/runs/r1")
    assert '1 failed step: <a href="#step-2">step 2</a></span>' in shown
    assert shown.count('<details class="call" data-failed>') == 1


def test_timeline__failed_result_in_another_step__marks_that_step_and_the_call(
    admin: Client, run: Person
) -> None:
    commit(run.actor, "r1", messages=[calling(call("search"))])
    commit(run.actor, "r1", messages=[result("search", "503", is_error=True)])
    shown = page(admin, "/runs/r1")
    assert '1 failed step: <a href="#step-3">step 3</a></span>' in shown
    assert shown.count('<details class="call" data-failed>') == 1


def test_timeline__call_that_state_calls_failed__is_marked(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", messages=[calling(call("search", identity="c1"))])
    state = {"call_id": "c1", "tool_name": "search", "status": "failed", "updated_at": 1}
    change = {"put": state}
    batch = Batch((Update(TOOL_CALLS, raw(change)),))
    commits.commit(actor=run.actor, run_id="r1", step=Step(batches=(batch,)))
    shown = page(admin, "/runs/r1")
    assert '<details class="call" data-failed>' in shown


def test_timeline__run_that_ended_with_an_error__marks_its_last_step(
    admin: Client, run: Person
) -> None:
    commit(run.actor, "r1", {"goal": 1})
    end(run, type="error", value="out of memory")
    shown = page(admin, "/runs/r1")
    assert 'failed step: <a href="#step-3">step 3</a>' in shown
    assert "out of memory" in shown


def test_timeline__each_step__names_its_actor(admin: Client, viewer: Client, run: Person) -> None:
    commit(replace(run.actor, name="bob"), "r1", {"goal": 1})
    admin.post("/run/resume/r1", {"reason": "a second opinion"})
    shown = page(admin, "/runs/r1")
    assert re.findall(r">by ([^<]+)</span>", shown) == ["alice", "bob", "alice"]
    assert "Reason: a second opinion" in shown
    assert "resumed run" in page(admin, "/audit?subject=r1")
    link = 'href="/audit?subject=r1">Audit of this run<'
    assert link in shown
    assert link not in page(viewer, "/runs/r1")  # the audit log is for admins


def test_timeline__state_changes__are_one_line_each(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", {"goal": {"city": "Lisbon", "days": 3}})
    commit(run.actor, "r1", {"goal": {"city": "Porto", "days": 3}})
    commit(run.actor, "r1", {"goal": "x" * 500})
    commit(run.actor, "r1", {"goal": "y" * 9000})
    shown = re.sub(r"<[^>]+>", "", page(admin, "/runs/r1"))
    assert "goal: {&quot;city&quot;:&quot;Lisbon&quot;,&quot;days&quot;:3} added" in shown
    assert "goal/city: Lisbon → Porto" in shown
    assert f"goal: {{&quot;city&quot;:&quot;Porto&quot;,&quot;days&quot;:3}} → {'x' * 79}…" in shown
    assert "goal changed" in shown
    assert "y" * 100 not in shown


def test_timeline__keys_of_the_runtime__are_behind_internal(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", {"goal": 1}, run=RunChange(step_count=1))
    shown = page(admin, "/runs/r1")
    before, _, internal = shown.partition('<details class="internal">')
    assert "goal" in before
    assert "__runtime" not in before
    assert "__runtime.run_lifecycle/step_count" in internal


def test_timeline__value_before_was_removed__shows_the_new_one_only(
    admin: Client, run: Person
) -> None:
    for count in range(3):
        commit(run.actor, "r1", {"goal": f"goal {count}"})
    Revision.objects.filter(number=3).update(dropped=True)
    shown = re.sub(r"<[^>]+>", "", page(admin, "/runs/r1"))
    assert "Changed goal; the values were removed by snapshot compaction." in shown
    assert "goal: goal 0 added" in shown
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM state_values WHERE key = 'goal' AND valid_to = 4")
    shown = re.sub(r"<[^>]+>", "", page(admin, "/runs/r1"))
    assert "goal: goal 2" in shown
    assert "goal 2 added" not in shown


def test_timeline__step__has_duration_tokens_and_a_bar_within_the_run(
    admin: Client, run: Person
) -> None:
    commit(run.actor, "r1", messages=[{"role": "user", "content": "word " * 40}])
    end(run)
    with connection.cursor() as cursor:
        for number, seconds in ((1, 0), (2, 30), (3, 40)):
            cursor.execute(
                "UPDATE revisions SET at = '2026-01-31 12:00:00+00'::timestamptz"
                " + %s * interval '1 second' WHERE number = %s", [seconds, number],
            )  # fmt: skip
        cursor.execute(
            "UPDATE runs SET created_at = '2026-01-31 12:00:00+00',"
            " finished_at = '2026-01-31 12:00:40+00'"
        )
    shown = page(admin, "/runs/r1")
    assert re.findall(r'<rect x="(\d+)" width="(\d+)"', shown) == [
        ("0", "6"), ("0", "750"), ("750", "250"),
    ]  # fmt: skip
    assert ">30.0 s<" in shown
    assert re.search(r'title="Estimated tokens of its messages">\d+ tokens', shown)
    assert "style=" not in shown


def test_timeline__delegated_runs_and_compactions__are_events(admin: Client, run: Person) -> None:
    make_thread(run.actor, "t2", title="Research")
    make_run(run.actor, "t2", "r2", agent_id="critic", parent_run_id="r1")
    end(run, "r2", type="error", value="x")
    compact(run.actor, "t1")
    shown = page(admin, "/runs/r1")
    assert "delegated run error" in shown
    assert 'href="/runs/r2"' in shown
    assert "critic, Research" in shown
    assert "context compaction skipped" in shown
    child = page(admin, "/runs/r2")
    assert '<dt>Parent run</dt><dd><a href="/runs/r1">' in child
    assert "compaction skipped" not in child


def test_timeline__messages_of_others_between_steps__belong_to_the_next_step(
    admin: Client, run: Person
) -> None:
    append(run.actor, "t1", {"role": "user", "content": "before"})
    commit(run.actor, "r1", {"goal": 1})
    assert "before" in page(admin, "/runs/r1")


def test_timeline__hostile_texts__are_text(admin: Client, run: Person) -> None:
    for text in HOSTILE:
        commit(
            run.actor, "r1", {"goal": text},
            messages=[
                {"role": "user", "content": text},
                calling(call("search", json.dumps({"q": text}), text)),
                result(text, text),
            ],
            label=text[:100],
        )  # fmt: skip
    shown = page(admin, "/runs/r1")
    for tag in ("<script>alert", "<img", "<svg onload", "{{ 7|add:7 }}14"):
        assert tag not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_timeline__other_workspace__is_absent(stranger: Client, run: Person) -> None:
    assert stranger.get("/runs/r1").status_code == 404


def test_timeline__many_events__each_is_on_one_page(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_timeline, "PAGE", 5)
    create_story(alice.actor)
    admin.post("/ticket/tk1", {"action": "cancel"})
    for count in range(14):
        commit(alice.actor, "r1", {"plan": {"count": 100 + count}})
    for order in ("newest", "oldest"):
        url, shown = f"/runs/r1?order={order}", ""
        while url:
            part = page(admin, url)
            shown += part
            more = re.search(r'href="([^"]+)" rel="next"', part)
            url = more[1].replace("&amp;", "&") if more else ""
        steps = steps_of(shown)
        assert steps == sorted(range(1, len(steps) + 1), reverse=order == "newest")
        assert len(steps) == Run.objects.get(public_id="r1").revision_count
        for label in ("refused</span>", "requested</span>", "compaction done</span>"):
            assert shown.count(label) == 1, (order, label)


def test_timeline__run_ends__open_page_continues_where_it_was(
    admin: Client, run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_timeline, "PAGE", 2)
    for count in range(4):
        commit(run.actor, "r1", {"goal": count})
    shown = page(admin, "/runs/r1")
    more = re.search(r'href="([^"]+)" rel="next"', shown)
    assert more
    end(run)
    assert steps_of(shown) == [5, 4]
    assert steps_of(page(admin, more[1].replace("&amp;", "&"))) == [3, 2]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_timeline__many_tickets__each_is_behind_the_link(
    order: str, admin: Client, run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_timeline, "_EVENTS", 2)
    names = [f"tool-{number}" for number in range(5)]
    asked = [TICKET | {"ticket_id": name, "tool_name": name} for name in names]
    waiting = {"reason": "tool_permission", "wake": "dispatch", "tickets": asked}
    runs.change_run(
        actor=run.actor, run_id="r1", change=RunChange(status="waiting", waiting=waiting)
    )
    url, found = f"/runs/r1?order={order}", []
    while url:
        shown = page(admin, url)
        found.append(re.findall(r'<a class="mono anywhere" href="/ticket/[^>]+>(tool-\d)', shown))
        more = re.search(r'<a href="([^"]+)"[^>]*>More tickets', shown)
        url = more[1].replace("&amp;", "&") if more else ""
    assert len(found) == 3
    expected = names if order == "oldest" else names[::-1]
    assert [sorted(part) for part in found] == [sorted(expected[at : at + 2]) for at in (0, 2, 4)]


def test_timeline__new_steps__are_offered_while_it_runs(admin: Client, run: Person) -> None:
    shown = page(admin, "/runs/r1")
    poll = re.search(r'hx-get="(/runs/r1\?seen=\d+)"', shown)
    assert poll
    assert "new step" not in shown
    commit(run.actor, "r1", {"goal": 1})
    assert "1 new step" in page(admin, poll[1], headers=htmx("run-now"))


def seed_long_run(steps: int) -> None:
    """Revisions and state of `steps` steps, by SQL, with calls and results of 20 messages a step at
    its beginning, middle and end."""
    text = '"' * 3000
    asked = json.dumps(calling(call("search", json.dumps({"q": text}), "c")))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO revisions (thread_id, number, kind, run_id, step, touched, message_count,"
            " actor_kind, actor_id, actor_name, at)"
            " SELECT thread_id, n, 'commit', id, n, ARRAY['goal', '__runtime.x'], (n - 1) * 20,"
            " 'user', '1', 'alice', now() + n * interval '1 second'"
            " FROM runs, generate_series(2, %s) n", [steps],
        )  # fmt: skip
        cursor.execute(
            "INSERT INTO state_values (thread_id, key, valid_from, valid_to, value, scope, persistent)"
            " SELECT thread_id, 'goal', n, n + 1, to_json(repeat(chr(34), 1500) || n), 'thread', true"
            " FROM runs, generate_series(2, %s) n", [steps],
        )  # fmt: skip
        cursor.execute(
            "INSERT INTO messages (thread_id, seq, public_id, role, visibility, body, opens, answers,"
            " estimated_tokens)"
            " SELECT thread_id, n, 'm' || n, CASE n %% 2 WHEN 1 THEN 'assistant' ELSE 'tool' END, 'all',"
            " CASE n %% 2 WHEN 1 THEN replace(%s, '\"c\"', '\"c' || n || '\"')::json"
            " ELSE json_build_object('role', 'tool', 'content', %s) END,"
            " CASE n %% 2 WHEN 1 THEN to_jsonb(ARRAY['c' || n]) ELSE '[]' END,"
            " CASE n %% 2 WHEN 0 THEN 'c' || n - 1 END, 10"
            " FROM runs, generate_series(1, %s) n WHERE n %% %s < 1000",
            [asked, text, steps * 20 - 20, steps * 10 - 500],
        )
        cursor.execute(
            "UPDATE runs SET last_revision = %s, revision_count = %s,"
            " finished_at = now() + %s * interval '1 second', status = 'done'", [steps, steps, steps],
        )  # fmt: skip
        cursor.execute(
            "UPDATE threads SET active_run_id = NULL, revision = %s, message_count = %s",
            [steps, steps * 20 - 20],
        )


def test_timeline__ten_thousand_steps__pages_are_small_and_cost_the_same(
    admin: Client, run: Person, count_queries: Callable[[Client, str], int]
) -> None:
    commit(run.actor, "r1", messages=[calling(call("search"))])
    Run.objects.update(status="done")  # as the long run
    few = count_queries(admin, "/runs/r1")
    Revision.objects.filter(number=2).delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM messages")
    seed_long_run(10_000)
    for url in ("/runs/r1", "/runs/r1?after=5000", "/runs/r1?order=newest"):
        assert count_queries(admin, url) == few, url
        response = admin.get(url)
        assert len(response.content) < LIMIT_KB * 1024, url
        assert len(steps_of(response.content.decode())) == run_timeline.PAGE
        assert "more messages" in response.content.decode()
    assert 'href="/runs/r1?order=oldest&amp;after=5040"' in page(admin, "/runs/r1?after=5000")


def test_timeline__revision_with_a_label__shows_it(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", {"goal": 1})
    mark_revision(
        actor=run.actor,
        thread_id="t1",
        revision=2,
        label="good",
        pinned=False,
        expected=("", False),
    )
    assert '<span class="tag">good</span>' in page(admin, "/runs/r1")


def marks_of(shown: str) -> list[tuple[str, str]]:
    """The rows of the waterfall: their marks, and what they are."""
    (rows,) = re.findall(r'<ol class="waterfall".*?</ol>', shown, re.DOTALL)
    found = re.findall(r"<li data-step=\"\d+\"(.*?)>(.*?)</li>", rows, re.DOTALL)
    texts = [re.sub(r"<[^>]+>", " ", text).split() for _, text in found]
    names = ("aria-current", "data-later", "data-failed")
    return [
        (" ".join(name for name in names if name in mark), " ".join(text[:3]))
        for (mark, _), text in zip(found, texts, strict=True)
    ]


def test_waterfall__step__marks_what_is_reached_and_what_failed(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", messages=[calling(call("search"), call("book"))])
    waiting = {"reason": "tool_permission", "wake": "dispatch", "tickets": [TICKET]}
    runs.change_run(
        actor=run.actor, run_id="r1", change=RunChange(status="waiting", waiting=waiting)
    )
    admin.post("/ticket/tk1", {"action": "resume", "payload": '{"approved": true}'})
    commit(run.actor, "r1", messages=[result("search", "503", is_error=True)])
    shown = page(admin, "/run/knowledge/r1?step=2")
    marks = marks_of(shown)
    assert [mark for mark, _ in marks[:2]] == ["", "aria-current"]
    assert all("data-later" in mark for mark, _ in marks[2:])
    assert marks[0][1] == "Step 1 start"
    assert marks[1][1] == "Step 2 search,"
    assert re.search(r'messages">\d+ tokens</span>', shown[shown.index('id="waterfall"') :])
    assert [text for _, text in marks[2:]].count("approved issue_refund") == 1
    assert 'aria-valuetext="Step 2 of ' in shown
    last = Run.objects.get().revision_count
    marks = marks_of(page(admin, f"/run/knowledge/r1?step={last}"))
    assert not any("data-later" in mark for mark, _ in marks)
    assert sum("data-failed" in mark for mark, _ in marks) == 1
    assert "1 failed step" in shown


def test_waterfall__long_run__shows_the_steps_around(
    admin: Client, run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_timeline, "PAGE", 2)
    for count in range(4):
        commit(run.actor, "r1", {"goal": count})
    shown = page(admin, "/run/knowledge/r1?step=3")
    assert [text for _, text in marks_of(shown)] == ["Step 3 goal", "Step 4 goal"]
    assert "steps 3 to 4" in shown
    assert 'href="/run/knowledge/r1?step=2"' in shown
    assert 'href="/run/knowledge/r1?step=5"' in shown


def test_waterfall__step_committed_meanwhile__is_shown(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", {"goal": 1})
    found = runs.find_run(run.actor, "r1")
    found.last_revision -= 1
    waterfall = run_timeline.read_waterfall(run.actor, found, found.last_revision + 1)
    assert waterfall.step.number == 2
