"""The cost of pages with much data, without a clock: PostgreSQL's plans, and the size of the pages.
`python -m benchmarks.pages` measures milliseconds."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from benchmarks.pages import LIMIT_KB, addresses
from benchmarks.seeded_rows import Seeding, Size
from benchmarks.seeding import big_values
from state_admin.models import Dispatch, counts, hot
from state_admin.services.contexts import read_context, read_outline
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.storage import measure_storage
from state_admin.web import (
    entry_actions,
    entry_detail,
    entry_list,
    shell,
    thread_compactions,
    thread_contexts,
)
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
    raw,
)
from tests.e2e.pages import fill

SIZE = Size(entries=50_000, threads=1_000, messages=20_000, value_mb=5)


@pytest.fixture
def seeding(alice: Person) -> Iterator[Seeding]:
    fill(alice)
    with connection.cursor() as cursor:
        made = Seeding(alice.workspace.pk, SIZE)
        made.cursor = cursor
        made.people()
        made.namespaces()
        yield made


def test_pages__large_values_and_long_threads__are_small(
    admin: Client, alice: Person, seeding: Seeding
) -> None:
    big_values(alice.actor, SIZE)
    seeding.long_thread()
    for page in addresses():
        if re.search("huge|long|hot", page):
            response = admin.get(page)
            assert response.status_code == 200, page
            assert len(response.content) < LIMIT_KB * 1024, page


def test_pages__large_tool_results__are_small(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "wide")
    rows = json.dumps([{"id": n, "text": "found " * 200} for n in range(40)])
    for start in range(4):
        append(
            alice.actor,
            "wide",
            *(
                body | {"content": rows} if body["role"] == "tool" else body
                for body in conversation(15)[start > 0 :]
            ),
        )
    for page in ("/threads/wide", "/threads/wide?message=60", "/threads/wide?tab=context"):
        assert len(admin.get(page).content) < LIMIT_KB * 1024, page


@pytest.fixture
def long(alice: Person) -> str:
    """The text of an entry of two versions, of a state value, a message and a dispatch."""
    text = "word " * 30_000
    make_namespace(alice.actor, "team")
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    for version in range(2):
        put(alice.actor, "team", "k", {"text": f"{version} {text}"})
        commit(alice.actor, "r1", {"plan": {"text": f"{version} {text}"}})
    append(alice.actor, "t1", {"role": "user", "content": text})
    enqueue_dispatch(actor=alice.actor, thread_id="t1", payload=raw({"text": text}))
    return text


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/state/team/k", "/entry/raw/team/k"),
        ("/state/team/k?tab=text", "/entry/raw/team/k"),
        ("/thread/message/1/t1", "/thread/sent/1/t1"),
        ("/mailbox", "/mailbox/{dispatch}/payload"),
    ],
)
def test_page__long_text__shows_its_beginning_and_a_link_to_all_of_it(
    path: str, link: str, admin: Client, long: str
) -> None:
    link = link.format(dispatch=Dispatch.objects.get().public_id)
    shown = admin.get(path).content.decode()
    assert long not in shown
    assert "word word" in shown
    assert f'href="{link}"' in shown
    assert long in admin.get(link).content.decode()


@pytest.mark.parametrize(
    ("path", "link", "found"),
    [
        ("/entry/edit/team/k", "/entry/edit/team/k?whole=yes", "<textarea"),
        (
            "/state/team/k?tab=blame",
            "/state/team/k?tab=blame&whole=yes",
            "The value by line",
        ),
        (
            "/state/team/k?tab=history&path=/text",
            "/state/team/k?tab=history&path=%2Ftext&whole=yes",
            "Versions that changed the path",
        ),
        ("/state/team/k", "/state/team/k?tab=history&diff=1..2", "<del>"),
        ("/threads/t1?tab=state", "/thread/value/3/plan/t1", "word word"),
        ("/threads/t1?tab=state", "/threads/t1?tab=state&at=3&from=2&to=3", "<del>"),
        ("/run/knowledge/r1", "/thread/value/3/plan/t1", "word word"),
    ],
)
def test_page__large_value__is_loaded_by_another_request(
    path: str, link: str, found: str, admin: Client, long: str
) -> None:
    shown = html.unescape(admin.get(path).content.decode())
    assert f'href="{link}"' in shown
    assert found not in shown
    assert found in admin.get(link).content.decode()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/state/team/k?tab=history&diff=1..2", "<del>"),
        ("/state/team/k?tab=history&diff=1..2&view=sides", "<del>"),
        ("/entry/restore/team/k?version=1", "1 difference"),
    ],
)
def test_comparison__very_large_values__is_loaded_after_the_page(
    path: str, found: str, admin: Client, long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found in admin.get(path).content.decode()
    for module in (entry_detail, entry_actions):
        monkeypatch.setattr(module, "COMPARED_LATER", 250_000)
    shown = html.unescape(admin.get(path).content.decode())
    assert found not in shown
    later = f"{path}&whole=yes"
    assert f'hx-get="{later}" hx-trigger="load"' in shown
    assert f'href="{later}"' in shown, "without JavaScript"
    assert found in admin.get(later).content.decode()
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "section#changes"}
    fragment = admin.get(later, headers=headers).content.decode()
    assert found in fragment
    for whole in ("<html", "<dialog", "<form", 'hx-trigger="load"', "<h1"):
        assert whole not in fragment


def test_comparison__very_large_values__keeps_the_choice_of_versions(
    admin: Client, alice: Person, long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(alice.actor, "team", "k", {"text": long})
    monkeypatch.setattr(entry_detail, "COMPARED_LATER", 250_000)
    shown = admin.get("/state/team/k?tab=history&diff=1..2").content.decode()
    assert 'hx-trigger="load"' in shown
    chosen = re.findall(r'name="(old|new)" value="(\d)"[^>]* checked>', shown)
    assert chosen == [("new", "2"), ("old", "1")]


def test_comparison__part_requested_without_versions__returns_the_entry(
    admin: Client, long: str
) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "section#changes"}
    for path in ("/state/team/k", "/state/team/k?tab=history"):
        response = admin.get(path, headers=headers)
        assert response.status_code == 200
        assert 'id="entry"' in response.content.decode()


def test_value__after_a_very_large_one__links_to_the_comparison(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "k", "word " * 1000)
    put(alice.actor, "team", "k", "short")
    assert "<del>" in admin.get("/state/team/k").content.decode()
    monkeypatch.setattr(entry_detail, "COMPARED_LATER", 1000)
    shown = html.unescape(admin.get("/state/team/k").content.decode())
    assert "<del>" not in shown
    assert 'href="/state/team/k?tab=history&diff=1..2"' in shown


def test_payload__of_another_workspace__is_404(stranger: Client, long: str) -> None:
    identity = Dispatch.objects.get().public_id
    assert stranger.get(f"/mailbox/{identity}/payload").status_code == 404
    assert stranger.get("/thread/sent/1/t1").status_code == 404


def test_context__long_view__counts_messages_that_it_does_not_read(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(10))
    whole = read_outline(actor=alice.actor, thread_id="t1", most=500)
    part = read_outline(actor=alice.actor, thread_id="t1", most=8)
    assert (part.count, part.estimated_tokens) == (whole.count, whole.estimated_tokens)
    assert [row.role for row in part.rows if row][:1] == ["system"]
    assert part.between == whole.count - 9
    fitted = read_outline(actor=alice.actor, thread_id="t1", most=8, max_tokens=300)
    exact = read_context(actor=alice.actor, thread_id="t1", max_tokens=300)
    assert (fitted.left_out, fitted.estimated_tokens) == (exact.left_out, exact.estimated_tokens)
    monkeypatch.setattr(thread_contexts, "_MOST_READ", 8)
    shown = admin.get("/threads/t1?tab=context").content.decode()
    assert f"{part.between} earlier lines are not shown here" in shown


def test_compactions_tab__long_thread__plans_on_request(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(10))
    monkeypatch.setattr(thread_compactions, "_PLANNED_AT_ONCE", 10)
    assert (
        "Summarizes messages 1 to" not in admin.get("/threads/t1?tab=compactions").content.decode()
    )
    htmx = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "section#thread-plan"}
    part = admin.get("/threads/t1?tab=compactions&plan=now", headers=htmx).content.decode()
    assert "Summarizes messages 1 to" in part
    assert "<html" not in part


def test_browser__filter_without_an_index__reads_a_window_of_all_namespaces(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(entry_list, "_WINDOW", 3)
    for name in ("a", "b", "c"):
        make_namespace(alice.actor, name)
        for key in ("k1", "k2"):
            put(alice.actor, name, key, 1, tags=["vip"] if (name, key) == ("c", "k2") else [])
    url, seen = "/state.json?tag=vip", []
    for _ in range(5):
        answer = admin.get(url).json()
        seen.append([item["key"] for item in answer["items"]])
        if not (url := answer["next"]):
            break
    assert seen == [[], ["k2"], []]


def test_pages__one_large_namespace_among_small_ones__read_a_bounded_number_of_entries(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few entries per namespace on average, PostgreSQL would read and sort all of the large one."""
    for number in range(60):
        make_namespace(alice.actor, f"n{number:02}")
    put(alice.actor, "n00", "k", 1)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO entries (namespace_id, key, value, version, born_version, schema_version,
                deleted, tags, pinned, size_bytes, estimated_tokens, actor_kind, actor_name)
            SELECT n.id, 'k' || g, to_json(repeat('x', 300)), 1, 1, 1, false, '{}', false, 302, 1, 'system', 'x'
            FROM namespaces n, generate_series(1, 30000) g WHERE n.name = 'n00' OR g = 1
            ORDER BY md5(g::text)
            """
        )
        cursor.execute("ANALYZE entries, namespaces")
        # The planner expects that an index costs as much as that of a table too large for the cache.
        cursor.execute("SET LOCAL random_page_cost = 20")
    read: list[int] = []
    fetch_all = hot.fetch_all

    def explain(statement: str, parameters: Mapping[str, Any]) -> list[hot.Row]:
        if "entries e" in statement:
            plan = fetch_all(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)[0][0]
            read.extend(_rows_of(plan[0]["Plan"], "entries"))
        return fetch_all(statement, parameters)

    monkeypatch.setattr(hot, "fetch_all", explain)
    for page in ("/", "/namespaces", "/state", "/state?tag=nothing", "/state?scope=custom"):
        read.clear()
        assert admin.get(page).status_code == 200
        assert 0 < max(read) <= 10_001, page


def _rows_of(node: dict[str, Any], table: str) -> Iterator[int]:
    """The number of rows that each node of a plan reads from a table."""
    if node.get("Relation Name") == table:
        yield round(
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        )
    for below in node.get("Plans", ()):
        yield from _rows_of(below, table)


def test_navigation__many_entries__shows_an_approximate_count(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "FEW", 1)
    monkeypatch.setattr(shell, "FEW", 1)
    make_namespace(alice.actor, "team")
    for key in ("a", "b", "c"):
        put(alice.actor, "team", key, 1)
    assert counts.bounded_counts(alice.actor).entries == 2
    measure_storage()
    assert counts.bounded_counts(alice.actor).entries == 3
    assert (shell.about(1), shell.about(2), shell.about(3)) == ("1", "1+", "≈ 3")
