"""The Agent Protocol's store and threads: semantics recorded from LangGraph's server, errors,
isolation."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.access import Role
from state_admin.domain.values import load
from state_admin.models import Entry, agent_store_sql, hot
from state_admin.protocols.agent_protocol import store
from state_admin.services import entries, runs, thread_patches, threads
from state_admin.services.errors import Invalid, RevisionConflict
from state_admin.services.runs import RunChange
from tests.builders import (
    Person,
    append,
    call,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    make_token,
    raw,
)
from tests.services.racing import interleave

BASE = "/agent-protocol"
ITEMS = f"{BASE}/store/items"


def put(person: Person, home: str, key: str, value: Any, **headers: str) -> Any:
    body = {"namespace": home.split("."), "key": key, "value": value}
    return person.api("PUT", ITEMS, body, **headers)


def get(person: Person, home: str, key: str) -> Any:
    return person.api("GET", f"{ITEMS}?namespace={home}&key={key}").json()


def search(person: Person, prefix: list[str], **body: Any) -> list[str]:
    answer = person.api("POST", f"{ITEMS}/search", {"namespace_prefix": prefix, **body})
    assert answer.status_code == 200, answer.content
    return [item["key"] for item in answer.json()["items"]]


# The store -----------------------------------------------------------------------------------


def test_store__put_get_delete__responses_are_those_of_langgraph(alice) -> None:
    assert get(alice, "users.ann", "k") is None
    assert put(alice, "users.ann", "k", {"a": 1}).status_code == 204
    item = get(alice, "users.ann", "k")
    assert (item["namespace"], item["key"], item["value"]) == (["users", "ann"], "k", {"a": 1})
    assert item["version"] == 1
    body = {"namespace": ["users", "ann"], "key": "k"}
    assert [alice.api("DELETE", ITEMS, body).status_code for _ in range(2)] == [204, 204]
    assert get(alice, "users.ann", "k") is None
    assert alice.api("DELETE", ITEMS, body).content == b""


def test_store__item__is_an_entry_with_history_and_feed(alice) -> None:
    put(alice, "users.ann", "k", {"a": 1})
    put(alice, "users.ann", "k", {"a": 2})
    history = alice.api("GET", "/history/agent_store/users.ann..k").json()["items"]
    assert [row["version"] for row in history] == [2, 1]


@given(st.lists(st.text("ab/: é", min_size=1), min_size=1, max_size=4), st.text("ab./", min_size=1))
def test_path_of__different_items__have_different_keys(labels, key) -> None:
    path = store.path_of(labels, key)
    home, _, rest = path.partition("..")
    assert (home.split("."), rest) == (labels, key)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"namespace": [], "key": "k", "value": {}}, 400),
        ({"namespace": ["a.b"], "key": "k", "value": {}}, 422),
        ({"namespace": [""], "key": "k", "value": {}}, 400),
        ({"namespace": ["a", ""], "key": "k", "value": {}}, 422),
        ({"namespace": ["langgraph"], "key": "k", "value": {}}, 422),
        ({"namespace": [1], "key": "k", "value": {}}, 422),
        ({"namespace": "a", "key": "k", "value": {}}, 422),
        ({"namespace": ["a"], "key": "", "value": {}}, 400),
        ({"namespace": ["a"], "key": "k", "value": []}, 422),
        ({"namespace": ["a"], "key": "k"}, 422),
        ({"namespace": ["a"], "key": "k", "value": {}, "ttl": -1}, 422),
        ({"namespace": ["a"], "key": "k", "value": {}, "ttl": True}, 422),
        ({"namespace": ["a"], "key": "k", "value": {}, "nonsense": 1}, 400),
        ({"namespace": ["a"], "key": "k" * 600, "value": {}}, 400),
        ([], 400),
        (b"{", 400),
    ],
)
def test_store__invalid_item__is_refused_with_a_detail(alice, body, status) -> None:
    answer = alice.api("PUT", ITEMS, body)
    assert answer.status_code == status, answer.content
    assert isinstance(answer.json()["detail"], str)
    assert answer.headers["Content-Type"] == "application/json"


def test_store__wrong_types__detail_names_the_members(alice) -> None:
    """LangGraph's SDK shows `detail` only, not `errors`."""
    answer = alice.api("PUT", ITEMS, {"namespace": ["a"], "key": 1, "value": []}).json()
    assert answer["detail"] == (
        '/key: 1 is not of types "null", "string"; /value: [] is not of types "null", "object"'
    )


def test_store__stale_if_match__is_refused(alice) -> None:
    assert put(alice, "a", "k", {"n": 1}, If_None_Match="*").status_code == 204
    assert put(alice, "a", "k", {"n": 2}, If_None_Match="*").status_code == 412
    assert put(alice, "a", "k", {"n": 2}, If_Match='"1"').status_code == 204
    refused = put(alice, "a", "k", {"n": 3}, If_Match='"1"')
    assert (refused.status_code, refused.headers["ETag"]) == (412, '"2"')
    assert refused.json()["detail"] == "version conflict: expected 1, actual 2"
    assert put(alice, "a", "k", {}, If_Match="x").status_code == 400
    body = {"namespace": ["a"], "key": "k"}
    assert alice.api("DELETE", ITEMS, body, If_Match='"1"').status_code == 412
    assert get(alice, "a", "k")["value"] == {"n": 2}


def test_search__prefix_and_filter__compares_numbers_as_numbers(alice) -> None:
    for n in (8, 9, 10):
        put(alice, "m.x", f"k{n}", {"n": n, "tag": "t"})
    put(alice, "m.xy", "far", {"n": 10})
    put(alice, "m", "up", {"n": "10", "ok": True})
    assert search(alice, ["m"]) == ["up", "far", "k10", "k9", "k8"]
    assert search(alice, ["m", "x"]) == ["k10", "k9", "k8"]
    assert search(alice, ["m"], filter={"n": {"$gt": 8}}) == ["far", "k10", "k9"]
    assert search(alice, ["m"], filter={"n": {"$gte": 9, "$lt": 10}}) == ["k9"]
    assert search(alice, ["m"], filter={"tag": "t", "n": {"$ne": 9}}) == ["k10", "k8"]
    assert search(alice, ["m"], filter={"n": {"$eq": 10.0}}) == ["far", "k10"]
    assert search(alice, ["m"], filter={"ok": {"$gt": 0}}) == []
    assert search(alice, [], limit=2, offset=1) == ["far", "k10"]
    assert search(alice, ["m"], filter={"x": 1}) == []


def test_search__words__are_found_in_values(alice) -> None:
    put(alice, "m", "a", {"text": "the quick fox"})
    put(alice, "m", "b", {"text": "a slow snail"})
    assert search(alice, ["m"], query="fox") == ["a"]
    assert search(alice, ["m"], query="fox", filter={"text": "no"}) == []


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {"n": {"$regex": "x"}}},
        {"limit": 0},
        {"limit": 10**9},
        {"offset": -1},
        {"limit": True},
        {"namespace_prefix": ["a.b"]},
        {"namespace_prefix": [None]},
        {"refresh_ttl": True},
    ],
)
def test_search__unsupported_option__is_refused(alice, body) -> None:
    assert alice.api("POST", f"{ITEMS}/search", body).status_code == 422


def test_search__unknown_operator__lists_the_operators(alice) -> None:
    answer = alice.api("POST", f"{ITEMS}/search", {"filter": {"n": {"$regex": "x"}}}).json()
    message = "an operator must be one of $eq, $ne, $gt, $gte, $lt, $lte"
    assert answer["errors"] == [{"pointer": "/filter/n", "message": message}]


def test_search__too_many_items_for_a_filter__requires_a_longer_prefix(alice, monkeypatch) -> None:
    monkeypatch.setattr(store, "MOST_SEEN", 2)
    monkeypatch.setattr(store, "_SLICE", 1)
    for n in range(4):
        put(alice, "m", f"k{n}", {"n": n})
    answer = alice.api("POST", f"{ITEMS}/search", {"filter": {"n": 0}})
    assert (answer.status_code, "longer namespace_prefix" in answer.json()["detail"]) == (422, True)


def test_search__filter_over_several_reads__sorts_the_items_once(alice, monkeypatch) -> None:
    monkeypatch.setattr(store, "_SLICE", 2)
    for n in range(6):
        put(alice, "m", f"k{n}", {"n": n % 2})
    with CaptureQueriesContext(connection) as queries:
        assert search(alice, ["m"], filter={"n": 0}, offset=1, limit=2) == ["k2", "k0"]
    assert sum("ORDER BY" in query["sql"] for query in queries) == 1


def test_namespaces__prefix_suffix_and_depth__are_applied(alice) -> None:
    for home in ("a.b.c", "a.x.c", "a.b", "d"):
        put(alice, home, "k", {})

    def listed(**body: Any) -> list[str]:
        found = alice.api("POST", f"{BASE}/store/namespaces", body).json()["namespaces"]
        return [".".join(labels) for labels in found]

    assert listed() == ["a.b", "a.b.c", "a.x.c", "d"]
    assert listed(prefix=["a", "*", "c"]) == ["a.b.c", "a.x.c"]
    assert listed(suffix=["b"]) == ["a.b"]
    assert listed(max_depth=1) == ["a", "d"]
    assert listed(limit=1, offset=1) == ["a.b.c"]


def test_namespaces__several_reads__have_all_namespaces_in_order(
    alice, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = ["a", "a-b", "a.b", "a.b.c", "a.b-c", "a.é", "b", "\U0010ffff"]
    for home in homes:
        for key in ("k", "..", "z" * 100):
            put(alice, home, key, {})
    entries.delete_entry(actor=alice.actor, namespace=store.STORE, key="b..k")

    def listed(**body: Any) -> list[str]:
        found = alice.api("POST", f"{BASE}/store/namespaces", body).json()["namespaces"]
        return [".".join(labels) for labels in found]

    in_order = sorted(homes, key=lambda home: f"{home}..".encode())
    for statement, limit in (("_WALK", "LIMIT 500"), ("_SCAN", "LIMIT 5000")):
        few = getattr(agent_store_sql, statement).replace(limit, "LIMIT 2")
        monkeypatch.setattr(agent_store_sql, statement, few)
    monkeypatch.setattr(agent_store_sql, "_BATCH", 2)
    monkeypatch.setattr(agent_store_sql, "_KEYS", 2)
    assert listed() == in_order
    assert listed(suffix=["*"]) == in_order
    assert listed(prefix=["a", "b"]) == ["a.b", "a.b.c"]
    assert listed(prefix=["a"], max_depth=2) == ["a", "a.b-c", "a.b", "a.é"]
    assert listed(max_depth=10**12) == in_order
    assert listed(limit=2, offset=1) == in_order[1:3]


def test_namespaces__many_items__one_item_of_each_is_read(alice) -> None:
    for home in ("a", "b"):
        put(alice, home, "k", {})
    stored = Entry.objects.get(key="a..k")
    for number in range(500):
        stored.pk, stored.key = None, f"a..k{number}"
        stored.save(force_insert=True)
    place = agent_store_sql._place(stored.namespace_id, []) | {"depth": None}
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {agent_store_sql._WALK}"
    ((plan,),) = hot.fetch_all(explain, place)
    scans = re.findall(
        r"'Relation Name': 'entries'.*?'Actual Rows': ([\d.]+), 'Actual Loops': (\d+)", str(plan)
    )
    assert sum(float(rows) * int(loops) for rows, loops in scans) == 2


def test_store__other_workspace_and_restricted_token__see_nothing(alice, mallory) -> None:
    put(alice, "a", "k", {"secret": 1})
    narrow, _ = make_token(alice, Role.ADMIN, namespaces=["else"])
    for token in (mallory.token, narrow):
        assert call(token, "GET", f"{ITEMS}?namespace=a&key=k").json() is None
        assert call(token, "POST", f"{ITEMS}/search", {}).json() == {"items": []}
        assert call(token, "POST", f"{BASE}/store/namespaces", {}).json() == {"namespaces": []}
    body = {"namespace": ["a"], "key": "k", "value": {}}
    assert call(narrow, "PUT", ITEMS, body).status_code == 404


def test_store__editor_before_an_admin_has_registered__gets_a_hint(alice) -> None:
    token, _ = make_token(alice, Role.EDITOR)
    body = {"namespace": ["a"], "key": "k", "value": {}}
    assert call(token, "PUT", ITEMS, body).json()["detail"] == (
        "profile key not registered: agent_store"
    )
    make_namespace(alice.actor, "agent_store")
    assert call(token, "PUT", ITEMS, body).status_code == 204


def test_store__ttl__is_in_minutes(alice) -> None:
    body = {"namespace": ["a"], "key": "k", "value": {}, "ttl": 0.5}
    assert alice.api("PUT", ITEMS, body).status_code == 204
    entry = alice.api("GET", "/state/agent_store/a..k").json()
    assert entry["expires_at"] is not None


# Access --------------------------------------------------------------------------------------


def test_access__x_api_key__is_accepted_as_a_token(alice, bob) -> None:
    assert call(None, "POST", f"{BASE}/threads/count", {}, X_Api_Key=alice.token).json() == 0
    refused = call(None, "POST", f"{BASE}/threads", {}, X_Api_Key=bob.token)
    assert (refused.status_code, "editor" in refused.json()["detail"]) == (403, True)
    assert call(None, "POST", f"{BASE}/threads", {}, X_Api_Key="ch_no_no").status_code == 401
    assert call("ch_no_no", "POST", f"{BASE}/threads", {}, X_Api_Key=alice.token).status_code == 401
    assert call(None, "GET", "/me", X_Api_Key=alice.token).status_code == 401


def test_access__idempotency_key__is_refused(alice) -> None:
    assert alice.api("POST", f"{BASE}/threads", {}, Idempotency_Key="k").status_code == 400


# Threads -------------------------------------------------------------------------------------


def test_threads__created_twice__is_a_conflict_unless_permitted(alice) -> None:
    made = alice.api("POST", f"{BASE}/threads", {"thread_id": "t1", "metadata": {"a": 1}})
    assert (made.status_code, made.json()["status"]) == (200, "idle")
    assert alice.api("POST", f"{BASE}/threads", {"thread_id": "t1"}).status_code == 409
    same = alice.api("POST", f"{BASE}/threads", {"thread_id": "t1", "metadata": {"a": 1}})
    assert same.status_code == 409
    kept = alice.api("POST", f"{BASE}/threads", {"thread_id": "t1", "if_exists": "do_nothing"})
    assert kept.json()["metadata"] == {"a": 1}
    assert alice.api("POST", f"{BASE}/threads", {"ttl": 5}).status_code == 422
    assert alice.api("GET", f"{BASE}/threads/none").json()["detail"] == "thread not found: none"


def test_threads__patch__merges_metadata_sets_values_and_appends(alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    alice.api("POST", f"{BASE}/threads", {"thread_id": "t1", "metadata": {"a": 1, "b": 1}})
    changed = alice.api(
        "PATCH",
        f"{BASE}/threads/t1",
        {
            "metadata": {"b": 2},
            "values": {"plan": ["x"]},
            "messages": [{"role": "user", "content": "hi"}],
            "checkpoint": {"thread_id": "t1", "checkpoint_id": "0"},
        },
    ).json()
    assert changed["metadata"] == {"a": 1, "b": 2}
    assert changed["values"] == {"plan": ["x"]}
    assert changed["messages"][0]["content"] == "hi"
    late = alice.api(
        "PATCH", f"{BASE}/threads/t1", {"metadata": {"c": 3}, "checkpoint": {"checkpoint_id": "0"}}
    )
    assert late.status_code == 409
    assert late.json()["detail"] == "revision conflict: expected 0, actual 1"
    assert "c" not in alice.api("GET", f"{BASE}/threads/t1").json()["metadata"]


def test_patch_thread__one_part_is_refused__nothing_is_changed(alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    for wrong in ({"new_messages": [raw({"role": "nobody"})]}, {"values": {"unknown": raw(1)}}):
        parts: Any = {"values": {"plan": raw(1)}, "metadata": raw({"a": 1}), **wrong}
        with pytest.raises(Invalid):
            thread_patches.patch_thread(actor=alice.actor, thread_id="t1", **parts)
    with pytest.raises(RevisionConflict):
        thread_patches.patch_thread(
            actor=alice.actor, thread_id="t1", metadata=raw({"a": 1}), expected_revision=7
        )
    thread = alice.api("GET", "/threads/t1").json()
    assert (thread["revision"], thread["metadata"], thread["message_count"]) == (0, {}, 0)


def test_state__update_and_history__use_revisions_as_checkpoints(alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    path = f"{BASE}/threads/t1"
    assert alice.api("GET", f"{path}/state").json()["values"] == {}
    for step in (1, 2):
        done = alice.api("POST", f"{path}/state", {"values": {"plan": step}}).json()
        assert done["checkpoint"]["checkpoint_id"] == str(step)
    stale = {"values": {"plan": 9}, "checkpoint_id": "1"}
    assert alice.api("POST", f"{path}/state", stale).status_code == 409
    assert alice.api("GET", f"{path}/state/1").json()["values"] == {"plan": 1}
    whole = {"checkpoint": {"checkpoint_id": "1", "checkpoint_ns": ""}}
    assert alice.api("POST", f"{path}/state/checkpoint", whole).json()["values"] == {"plan": 1}
    states = alice.api("POST", f"{path}/history", {"limit": 5}).json()
    assert [each["values"]["plan"] for each in states] == [2, 1]
    assert states[0]["parent_checkpoint"]["checkpoint_id"] == "1"
    older = alice.api("GET", f"{path}/history?before=2&limit=1").json()
    assert [each["checkpoint"]["checkpoint_id"] for each in older] == ["1"]
    assert alice.api("GET", f"{path}/state/7").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_state__another_update_follows_at_once__returns_its_own_checkpoint(
    alice, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    update = partial(thread_patches.patch_thread, actor=alice.actor, thread_id="t1")
    second = partial(update, values={"plan": raw(2)})
    with interleave(monkeypatch, threads, "read_thread", second):
        done = alice.api("POST", f"{BASE}/threads/t1/state", {"values": {"plan": 1}}).json()
    assert done["checkpoint_id"] == "1"


def test_state__commit_while_it_is_read__is_wholly_at_one_revision(
    alice, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    read_thread = threads.read_thread

    def read_just_before_a_commit(*args: Any) -> Any:
        monkeypatch.undo()
        thread = read_thread(*args)
        commit(alice.actor, "r1", {"plan": 1}, messages=[{"role": "user", "content": "hi"}])
        return thread

    monkeypatch.setattr(threads, "read_thread", read_just_before_a_commit)
    for step, values, messages in (("1", {}, 0), ("2", {"plan": 1}, 1)):
        state = alice.api("GET", f"{BASE}/threads/t1/state").json()
        assert state["checkpoint"]["checkpoint_id"] == step
        assert (state["values"], len(state["messages"]), state["next"]) == (
            values,
            messages,
            ["r1"],
        )


def test_state__runtime_keys__are_neither_shown_nor_written(alice) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    path = f"{BASE}/threads/t1/state"
    shown = alice.api("GET", path).json()
    assert (shown["values"], shown["next"]) == ({}, ["r1"])
    refused = alice.api("POST", path, {"values": {"__runtime.run_lifecycle": {}}})
    assert refused.json()["detail"] == "__runtime.run_lifecycle is reserved for the runtime"


def test_state__numbers__keep_their_spelling(alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    path = f"{BASE}/threads/t1/state"
    alice.api("POST", path, b'{"values": {"plan": [1.10, 12345678901234567890123]}}')
    assert b'{"plan":[1.10,12345678901234567890123]}' in alice.api("GET", path).content


@pytest.mark.parametrize(
    "body",
    [
        {"values": 1},
        {"values": {"unknown": 1}},
        {"values": {}, "checkpoint_id": "abc"},
        {"values": {}, "checkpoint": {"checkpoint_ns": "sub"}},
        {"values": [1]},
    ],
)
def test_state__invalid_update__is_refused(alice, body) -> None:
    make_thread(alice.actor, "t1")
    assert alice.api("POST", f"{BASE}/threads/t1/state", body).status_code == 422


def test_search_threads__by_each_condition__returns_matches(alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    for name, about in (("t1", {"team": "x", "n": 1}), ("t2", {"team": "x"}), ("t3", {})):
        make_thread(alice.actor, name, metadata=raw(about))
    for name in ("t1", "t2"):
        make_run(alice.actor, name, f"r-{name}")
    commit(alice.actor, "r-t1", {"plan": {"a": 1, "b": 2}})
    waiting = RunChange(status="waiting", waiting={"reason": "user_input"})
    runs.change_run(actor=alice.actor, run_id="r-t2", change=waiting)
    make_thread(alice.actor, "t4")
    make_run(alice.actor, "t4", "r-t4")
    failed = RunChange(status="done", termination_reason={"type": "error", "message": "x"})
    runs.change_run(actor=alice.actor, run_id="r-t4", change=failed)

    def found(**body: Any) -> list[str]:
        answer = alice.api("POST", f"{BASE}/threads/search", body)
        assert answer.status_code == 200, answer.content
        count = {k: v for k, v in body.items() if k in ("metadata", "values", "status")}
        if body == count:
            assert alice.api("POST", f"{BASE}/threads/count", count).json() == len(answer.json())
        return [thread["thread_id"] for thread in answer.json()]

    assert found() == ["t4", "t3", "t2", "t1"]
    assert found(metadata={"team": "x"}) == ["t2", "t1"]
    assert found(metadata={"team": "x", "n": 1}) == ["t1"]
    assert found(values={"plan": {"a": 1}}) == ["t1"]
    commit(alice.actor, "r-t2", {"plan": None})
    assert found(values={"plan": None}) == ["t2"]
    assert found(ids=["t3", "none"]) == ["t3"]
    assert [found(status=each) for each in ("busy", "interrupted", "error", "idle")] == [
        *(["t1"], ["t2"], ["t4"], ["t3"])
    ]
    assert found(sort_by="thread_id", sort_order="asc", limit=2, offset=1) == ["t2", "t3"]
    page = alice.api("POST", f"{BASE}/threads/search", {"limit": 1, "select": ["thread_id"]})
    assert page.json() == [{"thread_id": "t4"}]
    assert page.headers["X-Pagination-Total"] == "4"
    assert page.headers["X-Pagination-Next"] == "1"
    for wrong in ({"status": "x"}, {"sort_by": "x"}, {"select": ["x"]}, {"extract": {"a": "b"}}):
        assert alice.api("POST", f"{BASE}/threads/search", wrong).status_code == 422


def test_search_threads__restricted_token__sees_permitted_threads(alice, mallory) -> None:
    make_thread(alice.actor, "t1")
    make_thread(alice.actor, "else-1")
    token, _ = make_token(alice, Role.ADMIN, thread_prefixes=["else-"])
    shown = call(token, "POST", f"{BASE}/threads/search", {}).json()
    assert [thread["thread_id"] for thread in shown] == ["else-1"]
    assert mallory.api("POST", f"{BASE}/threads/search", {}).json() == []


def test_copy_and_delete__thread__work(alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", {"role": "user", "content": "hi"})
    alice.api("POST", f"{BASE}/threads/t1/state", {"values": {"plan": 1}})
    copy = alice.api("POST", f"{BASE}/threads/t1/copy").json()
    assert (copy["values"], copy["thread_id"] != "t1") == ({"plan": 1}, True)
    assert alice.api("DELETE", f"{BASE}/threads/t1").status_code == 204
    assert alice.api("GET", f"{BASE}/threads/t1").status_code == 404
    assert alice.api("GET", f"{BASE}/threads/{copy['thread_id']}").json()["messages"]


def test_interrupts__run_that_waits__are_its_tickets(alice) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund", "arguments": {"n": 1}}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    change = RunChange(status="waiting", waiting=waiting)
    runs.change_run(actor=alice.actor, run_id="r1", change=change)
    thread = alice.api("GET", f"{BASE}/threads/t1").json()
    assert thread["status"] == "interrupted"
    assert thread["interrupts"]["r1"][0]["value"]["arguments"] == {"n": 1}
    assert load(alice.api("GET", f"{BASE}/threads/t1/state").content.decode())["interrupts"]


def test_unserved_part__token_as_api_key__is_404_and_not_401(alice: Person, client: Client) -> None:
    """The SDK sends only `x-api-key`, so a missing token would be a wrong reason."""
    path = f"/api/v1{BASE}/threads/t1/runs"

    found = client.get(path, headers={"x-api-key": alice.token})
    assert (found.status_code, found.json()["detail"]) == (404, "path not found")
    assert client.get(path).status_code == 401


# Large responses -----------------------------------------------------------------------------


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("state_admin.protocols.agent_protocol.endpoint.MAX_BYTES", 10_000)


def test_history__large_states__ends_early(small_answers, alice) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1")
    for number in range(4):
        commit(alice.actor, "r1", {"plan": f"{number}{'x' * 4_000}"})
    path, sent = f"{BASE}/threads/t1/history", []
    while states := alice.api("GET", path).json():
        sent.append([int(state["checkpoint"]["checkpoint_id"]) for state in states])
        path = f"{BASE}/threads/t1/history?before={sent[-1][-1]}"
    assert sent[:2] == [[5, 4], [3, 2, 1]]
    found = alice.api("POST", f"{BASE}/threads/t1/history", {"select": ["checkpoint"]}).json()
    assert len(found) == 5


def test_searches__large_results__are_refused_until_the_limit_is_smaller(
    small_answers, alice
) -> None:
    for number in range(3):
        put(alice, "users.ann", f"k{number}", {"text": "x" * 4_000})
        thread = {"thread_id": f"t{number}", "metadata": {"text": "x" * 4_000}}
        alice.api("POST", f"{BASE}/threads", thread)
    for path in (f"{ITEMS}/search", f"{BASE}/threads/search"):
        refused = alice.api("POST", path, {})
        assert refused.status_code == 413
        assert "Send a smaller limit" in refused.json()["hint"]
        assert alice.api("POST", path, {"limit": 2}).status_code == 200
    ids = alice.api("POST", f"{BASE}/threads/search", {"select": ["thread_id"]}).json()
    assert len(ids) == 3


def test_thread__large_messages__has_the_newest(alice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("state_admin.services.batching.MOST_BYTES", 10_000)
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *({"role": "user", "content": f"{n}{'x' * 4_000}"} for n in range(4)))
    messages = alice.api("GET", f"{BASE}/threads/t1").json()["messages"]
    assert [message["content"][0] for message in messages] == ["2", "3"]
