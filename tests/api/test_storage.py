"""GET /usage/storage: levels with their days, and measuring on request."""

from __future__ import annotations

import base64
import json

import pytest

from state_admin.services import storage
from tests.builders import Person, append, make_namespace, make_thread, put


@pytest.fixture
def measured(alice: Person) -> Person:
    for name in ("notes", "plans", "tasks"):
        make_namespace(alice.actor, name)
        put(alice.actor, name, "a", name * 9)
    make_thread(alice.actor, "a/t1")
    append(alice.actor, "a/t1", {"role": "user", "content": "hello"})
    storage.measure_storage()
    return alice


def test_list__without_a_group__is_the_workspace(measured: Person, bob: Person) -> None:
    (item,) = bob.api("GET", "/usage/storage").json()["items"]
    assert (item["group"], item["name"], item["entries"], item["messages"]) == (
        "workspace", None, 3, 1,
    )  # fmt: skip
    assert item["bytes"] == sum(
        item[part] for part in ("entry_bytes", "history_bytes", "message_bytes", "state_bytes")
    )
    (day,) = item["days"]
    assert (day["bytes"], day["rows"]) == (item["bytes"], item["rows"])
    assert item["growth_bytes_per_day"] is None
    assert item["exact"] is False


def test_list__pages__contain_each_row_once(measured: Person) -> None:
    seen: list[str] = []
    first = "/usage/storage?group=namespace&limit=2"
    url: str | None = first
    while url is not None:
        page = measured.api("GET", url).json()
        seen += [item["name"] for item in page["items"]]
        url = page["next_cursor"] and f"{first}&cursor={page['next_cursor']}"
    assert sorted(seen) == ["notes", "plans", "tasks"]


def test_list__never_measured__is_empty(alice: Person) -> None:
    assert alice.api("GET", "/usage/storage").json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ("group=run", 400, "group must be one of: workspace, namespace, thread"),
        ("days=0", 400, "days must be an integer between 1 and 366"),
        ("days=367", 400, "days must be an integer between 1 and 366"),
        ("day=3", 400, "unknown query parameter: day"),
        ("cursor=nonsense", 400, "cursor must be a value that this API returned"),
    ],
)
def test_list__invalid_query__is_refused(
    query: str, status: int, detail: str, measured: Person
) -> None:
    answer = measured.api("GET", f"/usage/storage?{query}")
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)


def test_list__forged_cursor__is_refused(measured: Person) -> None:
    page = measured.api("GET", "/usage/storage?group=namespace&limit=1").json()
    padded = page["next_cursor"] + "=" * (-len(page["next_cursor"]) % 4)
    seal, _ = json.loads(base64.urlsafe_b64decode(padded))
    for position in ("1", "x:1", "1:", f"1:{'9' * 30}"):
        cursor = base64.urlsafe_b64encode(json.dumps([seal, position]).encode()).decode()
        url = f"/usage/storage?group=namespace&limit=1&cursor={cursor.rstrip('=')}"
        assert measured.api("GET", url).status_code == 400, position


def test_measure__on_request__is_exact(measured: Person) -> None:
    put(measured.actor, "notes", "b", 1)
    found = measured.api("GET", "/usage/storage/namespaces/notes").json()
    assert (found["entries"], found["exact"], found["days"][-1]["bytes"]) == (
        2, True, found["bytes"],
    )  # fmt: skip
    append(measured.actor, "a/t1", {"role": "user", "content": "again"})
    found = measured.api("GET", "/usage/storage/threads/a%2Ft1").json()
    assert (found["name"], found["messages"], found["exact"]) == ("a/t1", 2, True)
