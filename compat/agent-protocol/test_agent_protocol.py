"""The real LangGraph SDK, sync and async, on the Agent Protocol's store and threads."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from langgraph_sdk.errors import (
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    UnprocessableEntityError,
)

BASE = os.environ["COMMONHOLD_URL"].rstrip("/") + "/api/v1"
TOKEN = os.environ["COMMONHOLD_TOKEN"]
URL = f"{BASE}/agent-protocol"


@pytest.fixture
def client() -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=URL, api_key=TOKEN) as made:
        yield made


def in_threads(work: Callable[[SyncLangGraphClient, int], object]) -> None:
    """Do `work` in a hundred threads at once, each with a client of its own: httpcore (1.0.9) closes
    surplus connections that another thread has just taken from a shared pool."""

    def work_alone(number: int) -> None:
        with get_sync_client(url=URL, api_key=TOKEN) as own:
            work(own, number)

    with ThreadPoolExecutor(100) as pool:
        list(pool.map(work_alone, range(100)))


@pytest.fixture
def home() -> list[str]:
    """Return a unique namespace, because the server is shared."""
    return ["compat", uuid.uuid4().hex]


@pytest.fixture(scope="session", autouse=True)
def registered() -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for key in ("ap_plan", "ap_count"):
        httpx.put(
            f"{BASE}/state-keys/{key}", json={"scope": "thread"}, headers=headers
        ).raise_for_status()


def asynchronously(work: Callable[[LangGraphClient], Any]) -> Any:
    async def run() -> Any:
        async with get_client(url=URL, api_key=TOKEN) as made:
            return await work(made)

    return asyncio.run(run())


def test_store_put_get_delete(client: SyncLangGraphClient, home: list[str]) -> None:
    assert client.store.get_item(home, key="k") is None
    assert client.store.put_item(home, key="k", value={"title": "Hi", "n": 1.5}) is None
    item = client.store.get_item(home, key="k")
    assert (item["namespace"], item["key"]) == (home, "k")
    assert item["value"] == {"title": "Hi", "n": 1.5}
    assert item["created_at"]
    assert item["updated_at"]
    client.store.delete_item(home, key="k")
    client.store.delete_item(home, key="k")
    assert client.store.get_item(home, key="k") is None


def test_store_async_client(home: list[str]) -> None:
    async def work(client: LangGraphClient) -> Any:
        await client.store.put_item(home, key="k", value={"a": 1}, index=False, ttl=60)
        return await client.store.get_item(home, key="k")

    assert asynchronously(work)["value"] == {"a": 1}


def test_store_keys_of_any_characters(client: SyncLangGraphClient, home: list[str]) -> None:
    for key in ("a.b", "..", "a/b c", "é%2F", "a&b=c", "😀"):
        client.store.put_item(home, key=key, value={"key": key})
        assert client.store.get_item(home, key=key)["value"] == {"key": key}
    assert len(client.store.search_items(home, limit=100)["items"]) == 6


def test_store_search_by_prefix_filter_and_page(
    client: SyncLangGraphClient, home: list[str]
) -> None:
    for n in (8, 9, 10):
        client.store.put_item([*home, "notes"], key=f"k{n}", value={"n": n, "who": "ann"})
    client.store.put_item([*home, "other"], key="k", value={"n": 10})

    def keys(**asked: Any) -> list[str]:
        return [item["key"] for item in client.store.search_items(home, **asked)["items"]]

    assert sorted(keys()) == ["k", "k10", "k8", "k9"]
    assert sorted(keys(filter={"n": {"$gt": 8}, "who": "ann"})) == ["k10", "k9"]
    assert len(keys(limit=2)) == len(keys(limit=2, offset=2)) == 2


def test_store_search_by_words(client: SyncLangGraphClient, home: list[str]) -> None:
    client.store.put_item(home, key="a", value={"text": "the quick fox"})
    client.store.put_item(home, key="b", value={"text": "a slow snail"})
    found = client.store.search_items(home, query="fox")["items"]
    assert [item["key"] for item in found] == ["a"]


def test_store_namespaces(client: SyncLangGraphClient, home: list[str]) -> None:
    for label in ("a", "b"):
        client.store.put_item([*home, label, "deep"], key="k", value={})
    listed = client.store.list_namespaces(prefix=home)["namespaces"]
    assert listed == [[*home, "a", "deep"], [*home, "b", "deep"]]
    assert client.store.list_namespaces(prefix=home, max_depth=2)["namespaces"] == [home]
    listed = client.store.list_namespaces(prefix=home, suffix=["deep"], limit=1, offset=1)
    assert listed["namespaces"] == [[*home, "b", "deep"]]


def test_store_errors_are_the_sdks(client: SyncLangGraphClient, home: list[str]) -> None:
    with pytest.raises(UnprocessableEntityError, match=r"^/value: .*object"):
        client.store.put_item(home, key="k", value=[])  # type: ignore[arg-type]
    with pytest.raises(BadRequestError, match="namespace must not be empty"):
        client.store.put_item([], key="k", value={})
    with pytest.raises(UnprocessableEntityError, match="reserved"):
        client.store.put_item(["langgraph"], key="k", value={})


def test_store_a_hundred_read_modify_writes_lose_nothing(
    client: SyncLangGraphClient, home: list[str]
) -> None:
    """The protocol has no compare-and-set; If-Match with the item's `version` provides it."""
    client.store.put_item(home, key="n", value={"n": 0})

    def add(own: SyncLangGraphClient, _: int) -> None:
        while True:
            item = own.store.get_item(home, key="n")
            try:
                own.store.put_item(
                    home,
                    key="n",
                    value={"n": item["value"]["n"] + 1},
                    headers={"If-Match": f'"{item["version"]}"'},  # type: ignore[typeddict-item]
                )
            except APIStatusError as refused:
                if refused.status_code != 412:
                    raise
            else:
                return

    in_threads(add)
    assert client.store.get_item(home, key="n")["value"] == {"n": 100}


def test_threads_create_get_update_delete(client: SyncLangGraphClient) -> None:
    thread = client.threads.create(metadata={"a": 1, "b": 1})
    thread_id = thread["thread_id"]
    assert (thread["status"], thread["values"], thread["interrupts"]) == ("idle", {}, {})
    assert client.threads.update(thread_id, metadata={"b": 2})["metadata"] == {"a": 1, "b": 2}
    assert client.threads.get(thread_id)["metadata"] == {"a": 1, "b": 2}
    client.threads.delete(thread_id)
    with pytest.raises(NotFoundError, match=f"thread not found: {thread_id}"):
        client.threads.get(thread_id)


def test_threads_create_twice(client: SyncLangGraphClient) -> None:
    thread_id = str(uuid.uuid4())
    client.threads.create(thread_id=thread_id, metadata={"a": 1})
    with pytest.raises(ConflictError):
        client.threads.create(thread_id=thread_id)
    kept = client.threads.create(thread_id=thread_id, if_exists="do_nothing")
    assert (kept["thread_id"], kept["metadata"]) == (thread_id, {"a": 1})


def test_threads_search_and_count(client: SyncLangGraphClient) -> None:
    mark = uuid.uuid4().hex
    ids = [client.threads.create(metadata={"mark": mark, "n": n})["thread_id"] for n in range(3)]
    client.threads.update_state(ids[0], {"ap_plan": {"mark": mark}})
    found = client.threads.search(metadata={"mark": mark}, sort_by="created_at", sort_order="asc")
    assert [thread["thread_id"] for thread in found] == ids
    assert client.threads.count(metadata={"mark": mark}) == 3
    by_values = client.threads.search(values={"ap_plan": {"mark": mark}})
    assert [thread["thread_id"] for thread in by_values] == ids[:1]
    named = client.threads.search(ids=ids[1:], select=["thread_id"], limit=1)
    assert named == [{"thread_id": ids[2]}]
    assert client.threads.search(metadata={"mark": mark}, status="busy") == []


def test_state_update_read_and_history(client: SyncLangGraphClient) -> None:
    thread_id = client.threads.create()["thread_id"]
    assert client.threads.get_state(thread_id)["values"] == {}
    first = client.threads.update_state(thread_id, {"ap_plan": ["a"]}, as_node="planner")
    client.threads.update_state(thread_id, {"ap_plan": ["a", "b"], "ap_count": 1})
    now = client.threads.get_state(thread_id)
    assert now["values"] == {"ap_plan": ["a", "b"], "ap_count": 1}
    assert (now["next"], now["tasks"]) == ([], [])
    then = client.threads.get_state(thread_id, checkpoint=first["checkpoint"])
    assert then["values"] == {"ap_plan": ["a"]}
    assert now["parent_checkpoint"] == then["checkpoint"]
    by_id = client.threads.get_state(thread_id, checkpoint_id="1")
    assert by_id["values"] == then["values"]
    states = client.threads.get_history(thread_id)
    assert [each["values"].get("ap_count") for each in states] == [1, None]
    older = client.threads.get_history(thread_id, before=now["checkpoint"], limit=1)
    assert [each["checkpoint"] for each in older] == [then["checkpoint"]]


def test_state_errors_are_the_sdks(client: SyncLangGraphClient) -> None:
    thread_id = client.threads.create()["thread_id"]
    with pytest.raises(UnprocessableEntityError, match="unknown key: nonsense"):
        client.threads.update_state(thread_id, {"nonsense": 1})
    with pytest.raises(NotFoundError):
        client.threads.get_state(thread_id, checkpoint_id="9")
    client.threads.update_state(thread_id, {"ap_count": 1})
    with pytest.raises(ConflictError, match="revision conflict: expected 0, actual 1"):
        client.threads.update_state(thread_id, {"ap_count": 1}, checkpoint_id="0")


def test_state_a_hundred_read_modify_writes_lose_nothing(client: SyncLangGraphClient) -> None:
    thread_id = client.threads.create()["thread_id"]
    client.threads.update_state(thread_id, {"ap_count": 0})

    def add(own: SyncLangGraphClient, _: int) -> None:
        while True:
            state: Any = own.threads.get_state(thread_id)
            try:
                own.threads.update_state(
                    thread_id,
                    {"ap_count": state["values"]["ap_count"] + 1},
                    checkpoint=state["checkpoint"],
                )
            except ConflictError:
                continue
            return

    in_threads(add)
    state: Any = client.threads.get_state(thread_id)
    assert state["values"] == {"ap_count": 100}


def test_metadata_a_hundred_concurrent_updates_lose_nothing(client: SyncLangGraphClient) -> None:
    thread_id = client.threads.create()["thread_id"]
    in_threads(lambda own, n: own.threads.update(thread_id, metadata={str(n): n}))
    assert client.threads.get(thread_id)["metadata"] == {str(n): n for n in range(100)}


def test_copy_shares_nothing(client: SyncLangGraphClient) -> None:
    thread_id = client.threads.create(metadata={"a": 1})["thread_id"]
    client.threads.update_state(thread_id, {"ap_plan": ["a"]})
    copied: Any = client.threads.copy(thread_id)
    client.threads.update_state(copied["thread_id"], {"ap_plan": ["b"]})
    assert client.threads.get_state(thread_id)["values"] == {"ap_plan": ["a"]}
    assert client.threads.get_state(copied["thread_id"])["values"] == {"ap_plan": ["b"]}


def test_threads_async_client() -> None:
    async def work(client: LangGraphClient) -> Any:
        thread = await client.threads.create(metadata={"a": 1})
        await client.threads.update_state(thread["thread_id"], {"ap_count": 3})
        return await client.threads.get_state(thread["thread_id"])

    assert asynchronously(work)["values"] == {"ap_count": 3}


def test_a_wrong_key_is_an_authentication_error() -> None:
    with (
        get_sync_client(url=URL, api_key="ch_wrong_key") as client,
        pytest.raises(AuthenticationError),
    ):
        client.threads.search()


def test_a_bearer_token_will_do_as_well() -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with get_sync_client(url=URL, api_key=None, headers=headers) as client:
        assert isinstance(client.threads.count(), int)
