"""The pages of threads: lists, conversation, context, state over time, deletion."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db.models.functions import Now
from django.test import Client

from state_admin.models import AuditRow, Message, Revision, StateKey, Thread
from state_admin.services.runs import RunChange, cancel_run
from state_admin.services.snapshots import read_snapshot
from state_admin.web import conversations, paging, state_keys, thread_states, threads
from state_admin.web.addresses import thread_url
from tests.builders import (
    Person,
    append,
    commit,
    conversation,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
)
from tests.web.stories import HOSTILE, compact, create_story


def htmx(target: str) -> dict[str, str]:
    return {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": f"div#{target}"}


def page(client: Client, path: str, **extra: Any) -> str:
    response = client.get(path, **extra)
    assert response.status_code == 200, response.content.decode()[-2000:]
    return response.content.decode()


# The list


def test_threads__none__shows_curl_and_python(admin: Client) -> None:
    shown = page(admin, "/threads")
    assert "No threads yet" in shown
    assert "curl -X POST" in shown
    assert "from commonhold import Commonhold" in shown


def test_threads__many__are_paged_newest_first(admin: Client, alice: Person) -> None:
    for number in range(60):
        make_thread(alice.actor, f"n{number:02}")
    first = admin.get("/threads.json").json()
    second = admin.get(first["next"]).json()
    ids = [item["id"] for item in first["items"] + second["items"]]
    assert ids == [f"n{number:02}" for number in reversed(range(60))]
    assert second["next"] is None


def test_threads__by_prefix__are_paged_in_order_of_id(admin: Client, alice: Person) -> None:
    for number in range(60):
        make_thread(alice.actor, f"n{number:02}")
    make_thread(alice.actor, "other")
    first = admin.get("/threads.json?prefix=n").json()
    second = admin.get(first["next"]).json()
    ids = [item["id"] for item in first["items"] + second["items"]]
    assert ids == [f"n{number:02}" for number in range(60)]


def walk(client: Client, url: str, field: str = "id") -> list[list[str]]:
    """The ids of a list, or another field of its items, page by page."""
    pages = []
    while url:
        answer = client.get(url)
        assert answer.status_code == 200, url
        pages.append([item[field] for item in answer.json()["items"]])
        url = answer.json()["next"]
    return pages


@pytest.mark.parametrize(
    ("sort", "pages"),
    [
        ("", [["c", "a"], ["b"]]),
        ("oldest", [["b", "a"], ["c"]]),
        ("id", [["a", "b"], ["c"]]),
        ("nonsense", [["c", "a"], ["b"]]),
    ],
)
def test_threads__sorted__are_paged_in_that_order(
    sort: str, pages: list[list[str]], admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 2)
    for name in ("b", "a", "c"):
        make_thread(alice.actor, name)
    assert walk(admin, f"/threads.json?sort={sort}") == pages


def test_threads__by_activity__latest_run_is_first(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 2)
    for name in ("a", "b", "c", "quiet"):
        make_thread(alice.actor, name)
    for number, name in enumerate(("c", "a", "b", "a")):
        make_run(alice.actor, name, f"r{number}")
        cancel_run(actor=alice.actor, run_id=f"r{number}")
    assert walk(admin, "/threads.json?sort=activity") == [["a", "b"], ["c"]]
    monkeypatch.setattr(threads, "_WINDOW", 2)
    assert [name for part in walk(admin, "/threads.json?sort=activity") for name in part] == [
        "a", "b", "c",
    ]  # fmt: skip
    assert walk(admin, "/threads.json?sort=activity&prefix=c") == [["c"]]


def test_threads__by_tokens__largest_of_the_newest_are_first(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 2)
    for name, tokens in (("a", 5), ("b", 9), ("c", 5), ("d", 0)):
        make_thread(alice.actor, name)
        Thread.objects.filter(public_id=name).update(context_tokens=tokens)
    assert walk(admin, "/threads.json?sort=tokens") == [["b", "c"], ["a", "d"]]
    monkeypatch.setattr(paging, "WINDOW", 2)
    shown = page(admin, "/threads?sort=tokens")
    assert re.findall(r'<a data-row href="/threads/(\w)"', shown) == ["c", "d"]
    for url in (
        "/threads.json?sort=tokens",
        "/threads.csv?sort=tokens",
        "/threads.json?sort=tokens&size=10",
    ):
        refused = admin.get(url)
        assert (refused.status_code, b"at most 2 rows" in refused.content) == (400, True), url
    assert walk(admin, "/threads.json?sort=tokens&prefix=c") == [["c"]]


@pytest.mark.parametrize("sort", ["", "oldest", "id"])
def test_threads__by_size__reads_a_window_and_has_a_next_page(
    sort: str, admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_WINDOW", 2)
    for number in range(5):
        make_thread(alice.actor, f"n{number}")
    Thread.objects.filter(public_id__in=["n1", "n4"]).update(message_count=10)
    pages = walk(admin, f"/threads.json?size=10&sort={sort}")
    expected = [["n4"], ["n1"], []] if not sort else [["n1"], [], ["n4"]]
    assert pages == expected
    shown = page(admin, f"/threads?size=100&sort={sort}")
    assert "No match in these 2 threads" in shown
    assert 'rel="next"' in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("resource=user-1", ["t1"]),
        ("agent=helper-7", ["t1"]),
        ("status=waiting", ["t1"]),
        ("status=active", ["t1"]),
        ("status=idle", ["t1-child"]),
        ("status=running", []),
        ("status=stuck", []),
        ("status=nonsense", ["t1-child", "t1"]),
        ("agent=nobody", []),
    ],
)
def test_threads__filtered__contains_only_matches(
    query: str, found: list[str], admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    assert [i["id"] for i in admin.get(f"/threads.json?{query}").json()["items"]] == found


def test_threads__no_match__links_to_all(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    assert "No threads match these filters" in page(admin, "/threads?prefix=zzz")


def test_threads__filter_form__produces_a_short_url(admin: Client) -> None:
    headers = htmx("thread-table") | {"HX-Source": "form#filters"}
    response = admin.get("/threads?prefix=a&resource=&agent=&status=", headers=headers)
    assert response["HX-Replace-Url"] == "/threads?prefix=a"
    assert response.content.decode().lstrip().startswith('<div id="thread-table"')


# Conversation


def test_conversation__tool_round__shows_the_result_below_its_call(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(1))
    rows = list(Message.objects.filter(thread__public_id="t1").order_by("seq"))
    items = conversations.build_conversation("t1", rows)
    assert [item.row.role for item in items] == ["system", "user", "assistant", "assistant"]
    [call] = items[2].calls
    assert call.name == "find_trip"
    assert call.arguments.value == {"trip": "T0000", "page": 0}
    assert call.result is not None
    assert call.result.row.seq == 4
    assert call.result.pieces[0].kind == "data"


def test_conversation__call_id_used_again__each_result_is_at_its_own_call(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    round_of = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
    ]
    append(alice.actor, "t1", *round_of)
    append(alice.actor, "t1", round_of[0], {**round_of[1], "content": "two"})
    items = conversations.build_conversation("t1", list(Message.objects.order_by("seq")))
    said = [item.calls[0].result.pieces[0].text for item in items if item.calls[0].result]
    assert said == ["one", "two"]


@pytest.mark.parametrize("message", range(1, 41))
def test_window__any_position__never_separates_a_call_from_its_results(
    message: int, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(20, rounds=2))
    log = Message.objects.all()
    window = conversations.read_window(log, log.count(), message=message)
    assert window.rows[0].role != "tool"
    following = log.filter(seq=window.rows[-1].seq + 1).first()
    assert following is None or following.role != "tool"


def test_conversation__many_messages__older_and_newer_pages_contain_all(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *({"role": "user", "content": f"n{n}"} for n in range(130)))
    thread = Thread.objects.get()
    log = Message.objects.all()
    seen: list[int] = []
    window = conversations.read_window(log, thread.message_count)
    assert window.newer is None
    while window.rows:
        seen = [row.seq for row in window.rows] + seen
        if window.older is None:
            break
        window = conversations.read_window(log, thread.message_count, before=window.older)
    assert seen == list(range(1, 131))
    assert "Newer messages" in page(admin, "/threads/t1?message=1")
    assert "Older messages" in page(admin, "/threads/t1")


def test_conversation__hostile_texts__are_escaped(admin: Client, alice: Person) -> None:
    thread_id = 'a/../b <x>"&?#%41'
    make_thread(alice.actor, thread_id, title=HOSTILE[0], resource_id=HOSTILE[1])
    call = {
        "id": HOSTILE[1],
        "type": "function",
        "function": {"name": HOSTILE[0], "arguments": json.dumps({HOSTILE[1]: HOSTILE[2]})},
    }
    append(
        alice.actor,
        thread_id,
        *({"role": "user", "content": text, "name": text} for text in HOSTILE),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": HOSTILE[1], "content": HOSTILE[1]},
        {"role": "assistant", "content": [{"type": HOSTILE[0], HOSTILE[1]: HOSTILE[2]}]},
    )
    make_state_key(alice.actor, "plan", scope="thread")
    make_run(alice.actor, thread_id, HOSTILE[1][:60], agent_id=HOSTILE[0])
    commit(alice.actor, HOSTILE[1][:60], {"plan": {HOSTILE[0]: HOSTILE[1]}}, label=HOSTILE[2])
    paths = [thread_url(thread_id, tab=tab) for tab in ("", "context", "state", "runs")]
    paths += ["/threads", "/runs", f"/thread/message/7/{quote(thread_id, safe='')}"]
    for path in paths:
        shown = page(admin, path)
        for hostile in ("<script>alert", "<img src=x", "<svg onload", "' onmouseover=alert(1)"):
            assert hostile not in shown, path
        assert "14<input" not in shown


@pytest.mark.parametrize(
    "thread_id", ["...", "a/..", "a/b", "a//b", "/", "ü ☃", "a?b#c", "%2F", "a.json"]
)
def test_thread__any_id__has_a_page(thread_id: str, admin: Client, alice: Person) -> None:
    make_thread(alice.actor, thread_id)
    append(alice.actor, thread_id, {"role": "user", "content": "found it"})
    assert "found it" in page(admin, thread_url(thread_id))


def test_conversation__long_text__is_truncated_and_shown_completely_on_request(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", {"role": "user", "content": "word " * 2000 + "end"})
    assert "Show all 10,003 characters" in page(admin, "/threads/t1")
    part = page(admin, "/thread/message/1/t1", headers=htmx("x"))
    assert part.startswith('<div class="text">word')
    assert part.rstrip().endswith("end</div>")
    assert "Original message" in page(admin, "/thread/message/1/t1")


def test_message_piece__large_result__is_loaded_in_parts(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    rows = json.dumps([{"id": n} for n in range(900)])
    append(
        alice.actor,
        "t1",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": rows},
    )
    assert "870 more" in page(admin, "/threads/t1")
    assert ">899<" in page(admin, "/thread/piece/2/content/t1?start=800")
    assert admin.get("/thread/piece/2/content/t1?pointer=/9999").status_code == 404
    assert admin.get("/thread/piece/2/call.7/t1").status_code == 404
    assert admin.get("/thread/piece/9/content/t1").status_code == 404


def test_thread__new_messages_since__shows_their_number(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    first = page(admin, "/threads/t1")
    assert "message_count=0" in first
    append(alice.actor, "t1", {"role": "user", "content": "hello"})
    now = page(admin, "/threads/t1?tab=conversation&message_count=0", headers=htmx("thread-now"))
    assert now.lstrip().startswith('<div id="thread-now"')
    assert "1 new message<" in now
    assert "message_count=0" in now


def test_thread__parent_and_children__link_to_each_other(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert 'href="/threads/t1-child"' in page(admin, "/threads/t1")
    assert "Refund of order 9921" in page(admin, "/threads/t1-child")


@pytest.mark.parametrize(
    "query", ["before=x", "message=-1", "after=" + "9" * 30, "message_count=½"]
)
def test_thread__invalid_number__is_reported(query: str, admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    assert admin.get(f"/threads/t1?{query}").status_code == 400


# Context


def test_context__summarized__shows_the_summary_first_and_the_messages_beside_it(
    admin: Client, alice: Person
) -> None:
    story = create_story(alice.actor)
    shown = page(admin, "/threads/t1?tab=context")
    assert "What the model sees" in shown
    assert f"1 to {story.compaction.boundary_seq}" in shown
    assert "data-summary" in shown
    assert "data-folded" in shown


def test_context__max_tokens__shows_what_is_left_out(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8))
    assert "not fit into 200 tokens" in page(admin, "/threads/t1?tab=context&max_tokens=200")


def test_context__call_without_result__shows_the_placeholder(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(1)[:3])
    assert "Tool execution was interrupted" in page(admin, "/threads/t1?tab=context")


# State


def test_state__at_a_revision__shows_it_and_its_changes(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    shown = page(admin, "/threads/t1?tab=state&at=3")
    assert "Revision 3" in shown
    assert "<del>0</del> → <ins>1</ins>" in shown
    assert "changed here" in shown
    assert 'value="3"' in shown


def test_state__changes_of_the_runtime__are_folded_after_the_others(
    admin: Client, alice: Person
) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"plan": 1})
    cancel_run(actor=alice.actor, run_id="r1")
    make_run(alice.actor, "t1", "r2")
    commit(alice.actor, "r2", {"plan": 2}, run=RunChange(status="done"))
    for revision, has_own in ((3, False), (5, True)):
        shown = page(admin, f"/threads/t1?tab=state&at={revision}")
        card = shown.partition('aria-label="What changed"')[2]
        line, _, internal = card.partition('<details class="fold">')
        assert "/__runtime.run_lifecycle/status" not in line
        assert re.match(r"<summary[^>]*>3 internal changes</summary>", internal)
        assert "/__runtime.run_lifecycle/status" in internal
        assert (">/plan<" in line) == has_own


def test_state__slider_moved__returns_only_the_part_that_changes(
    admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    part = page(admin, "/threads/t1?tab=state&at=2", headers=htmx("state-at"))
    assert part.lstrip().startswith('<div class="stack" id="state-at"')
    assert 'type="range"' not in part


def test_state__unknown_revision__is_404(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    assert admin.get("/threads/t1?tab=state&at=99").status_code == 404


def test_state__dropped_revision__says_so_and_links_to_the_nearest(
    admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    Revision.objects.filter(number__in=(2, 3)).update(dropped=True)
    shown = page(admin, "/threads/t1?tab=state&at=3")
    assert "was removed by snapshot compaction" in shown
    assert "tab=state&amp;at=1" in shown
    assert "tab=state&amp;at=4" in shown


def test_state__two_revisions__shows_the_difference(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    shown = page(admin, "/threads/t1?tab=state&at=5&from=2&to=5")
    assert "From revision 2 to 5" in shown
    assert "<del>0</del> → <ins>3</ins>" in shown


def test_state__label_and_pin__are_stored_with_the_revision(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    response = admin.post("/thread/mark/t1?at=3", {"label": "before refund", "pinned": "on"})
    assert response.status_code == 302
    row = Revision.objects.get(number=3)
    assert (row.label, row.pinned) == ("before refund", True)
    assert "before refund" in page(admin, "/threads/t1?tab=state&at=3")
    admin.post("/thread/mark/t1?at=3", {"label": ""})
    row.refresh_from_db()
    assert (row.label, row.pinned) == ("", False)


def test_restore__confirmed__restores_the_old_state_with_the_reason(
    admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    asked = page(admin, "/thread/restore/t1?at=3")
    assert "/plan/count changed" in asked
    assert "run_lifecycle" not in asked
    newest = Thread.objects.get(public_id="t1").revision
    response = admin.post(
        "/thread/restore/t1?at=3", {"reason": "went wrong", "expected": str(newest)}
    )
    assert response["Location"] == f"/threads/t1?tab=state&at={newest + 1}"
    now = read_snapshot(actor=alice.actor, thread_id="t1").parsed()
    assert now["plan"] == {"count": 1}
    row = Revision.objects.get(number=newest + 1)
    assert (row.kind, row.reason) == ("restore", "went wrong")


def test_restore__undo_of_the_toast__restores_the_newer_state(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    newest = Thread.objects.get(public_id="t1").revision
    shown = admin.post("/thread/restore/t1?at=3", {"expected": str(newest)}, follow=True)
    assert f'action="/thread/restore/t1?at={newest}"' in shown.content.decode()
    admin.post(f"/thread/restore/t1?at={newest}", {"expected": str(newest + 1)})
    assert read_snapshot(actor=alice.actor, thread_id="t1").parsed()["plan"] == {"count": 3}


def test_restore__thread_changed_since__is_refused(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    response = admin.post("/thread/restore/t1?at=3", {"expected": "1"})
    assert response.status_code == 409
    assert read_snapshot(actor=alice.actor, thread_id="t1").parsed()["plan"] == {"count": 3}


# Deletion


def test_delete__confirmation__shows_what_and_how_many(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    asked = page(admin, "/thread/delete/t1")
    assert "1 thread, " in asked
    assert "It has 1 descendant thread" in asked
    assert "1 thread has an active run" in asked
    assert "1 pending ticket is deleted without a decision" in asked
    chosen = admin.post("/thread/bulk", {"action": "delete", "item": ["t1", "t1-child"]})
    assert "1 pending ticket is deleted without a decision" in chosen.content.decode()
    assert 'value="cascade"' in asked
    assert Thread.objects.count() == 2


def test_delete__children_rejected__deletes_nothing(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert admin.post("/thread/delete/t1", {"children": "reject"}).status_code == 409
    assert Thread.objects.count() == 2


@pytest.mark.parametrize(("children", "left"), [("detach", 1), ("cascade", 0)])
def test_delete__confirmed__is_deleted_with_the_reason_in_the_audit_log(
    children: str, left: int, admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    response = admin.post("/thread/delete/t1", {"children": children, "reason": "asked to"})
    assert response["Location"] == "/threads"
    assert Thread.objects.count() == left
    assert AuditRow.objects.filter(action="thread.delete", reason="asked to").exists()


def test_state_keys__registered__are_listed_with_their_rules(admin: Client, alice: Person) -> None:
    assert "No state keys yet" in page(admin, "/state-keys")
    make_state_key(alice.actor, "facts", reducer="append", scope="thread", default=[])
    shown = page(admin, "/state-keys?prefix=fa")
    assert "append" in shown
    assert "thread" in shown


@pytest.mark.parametrize(
    ("sort", "names"),
    [("", "abcd"), ("-name", "dcba"), ("changed", "bcda"), ("-changed", "adcb")],
)
def test_state_keys__sorted__are_listed_once_in_this_order(
    sort: str, names: str, admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_keys, "MOST", 3)
    for days, name in zip((1, 4, 3, 2), "abcd", strict=True):
        make_state_key(alice.actor, name)
        StateKey.objects.filter(name=name).update(updated_at=Now() - timedelta(days=days))
    first = admin.get(f"/state-keys.json?sort={sort}").json()
    second = admin.get(first["next"]).json()
    assert [item["key"] for item in first["items"] + second["items"]] == list(names)
    shown = page(admin, f"/state-keys?sort={sort}")
    assert "Next page" in shown
    assert re.findall(r'<span class="mono">(\w)</span>', shown) == list(names[:3])
    assert shown.count("aria-sort=") == 1


def test_compactions_tab__own_jobs__shows_summary_and_messages(
    admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    append(alice.actor, "t1", *conversation(8)[1:])
    compact(alice.actor, "t1")
    shown = page(admin, "/threads/t1?tab=compactions")
    assert "Current summary" in shown
    assert "a later compaction builds on it" in shown
    assert shown.count("Undo…") == 1


def test_state__shared_entries__are_listed_and_not_reloaded_by_the_slider(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_story(alice.actor)
    monkeypatch.setattr(thread_states, "SHARED", 2)
    make_namespace(alice.actor, "team")
    for key in ("global", "thread::t1", "agent_type::helper-7", "thread::t2", "parent_thread::t1"):
        put(alice.actor, "team", key, 1)
    seen, url = [], "/threads/t1?tab=state&at=3"
    while url:
        shown = page(admin, url).partition("Visible shared entries")[2]
        seen += re.findall(r'<span class="muted">team/</span>([^<]+)</a>', shown)
        more = re.search(r'href="([^"]+)" rel="next"', shown)
        url = more[1].replace("&amp;", "&") if more else ""
    assert seen == ["agent_type::helper-7", "global", "parent_thread::t1", "thread::t1"]
    part = page(admin, "/threads/t1?tab=state&at=2", headers=htmx("state-at"))
    assert "Shared entries" not in part
