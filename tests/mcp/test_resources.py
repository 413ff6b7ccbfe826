"""Entries as resources, and subscriptions to them."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from state_admin.domain.access import Role
from state_admin.mcp import listening, resources
from state_admin.mcp.resources import address_in, uri_of
from state_admin.models import ApiToken, Workspace
from state_admin.services.listeners import MOST_OF_ONE
from state_admin.services.tokens import revoke_token
from tests.builders import Person, make_namespace, make_record, make_token, put
from tests.loops import run
from tests.mcp.asking import ERAS, MCP
from tests.project.running import Running
from tests.streams.listening import web_on_this_database

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def notes(alice: Person) -> None:
    make_namespace(alice.actor, "notes", default={"empty": True})


@pytest.mark.parametrize("key", ["global", "thread::a/b", "100%", "é 🙂", "a//..//b", "?#"])
def test_uri__any_key__round_trips(key: str) -> None:
    assert address_in(uri_of("notes", key)) == ("notes", key)


@pytest.mark.parametrize(
    "uri",
    [
        "commonhold://entry/notes",
        "commonhold://thread/notes/k",
        "http://x/notes/k",
        "commonhold://entry/no%2Ftes/k",
        "commonhold://entry/notes/%FF",
        "commonhold://entry/notes/%00",
        "",
    ],
)
def test_uri__not_an_entry__is_none(uri: str) -> None:
    assert address_in(uri) is None


@pytest.mark.parametrize("era", ERAS)
def test_list__more_than_a_page__contains_every_entry_once(
    mcp: MCP, alice: Person, era: str
) -> None:
    keys = {f"k{number}" for number in range(resources._PAGE + 3)}
    for key in keys:
        put(alice.actor, "notes", key, 1)

    async def walk(client: Client) -> list[str]:
        found, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            found += [resource.uri for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                return found

    found = mcp.do(alice.token, walk, era)

    assert sorted(found) == sorted(uri_of("notes", key) for key in keys)


def test_list__cursor_of_another_list__is_refused(mcp: MCP, alice: Person) -> None:
    with pytest.raises(MCPError, match="Invalid cursor"):
        mcp.do(alice.token, lambda client: client.list_resources(cursor="no!"))


@pytest.mark.parametrize("era", ERAS)
def test_read__value__is_exactly_as_stored(mcp: MCP, alice: Person, era: str) -> None:
    alice.api("PUT", "/state/notes/k", b'{"value":{"a":1.10}}')

    (held,) = mcp.do(alice.token, lambda c: c.read_resource(uri_of("notes", "k")), era).contents

    assert (held.text, held.mime_type) == ('{"a":1.10}', "application/json")
    assert held.meta["commonhold/entry"]["version"] == 1
    (nothing,) = mcp.do(alice.token, lambda c: c.read_resource(uri_of("notes", "no"))).contents
    assert json.loads(nothing.text) == {"empty": True}
    assert nothing.meta["commonhold/entry"]["exists"] is False


def test_resources__outside_the_permissions__are_neither_listed_nor_read(
    mcp: MCP, alice: Person, mallory: Person
) -> None:
    put(alice.actor, "notes", "k", 1)
    make_record(alice.actor, "providers", "p", {"adapter": "openai", "api_key": "sk-secret-1"})

    narrow, _ = make_token(alice, Role.ADMIN, ["other*"])
    for token in (mallory.token, narrow):
        assert mcp.do(token, lambda client: client.list_resources()).resources == []
        for uri in (uri_of("notes", "k"), uri_of("nothing", "k"), "commonhold://x"):
            with pytest.raises(MCPError, match="Resource not found"):
                mcp.do(token, lambda client, uri=uri: client.read_resource(uri))
    listed = mcp.do(alice.token, lambda client: client.list_resources()).resources
    assert [resource.name for resource in listed] == ["notes/k"]


def test_resources__of_an_untracked_namespace__are_neither_listed_nor_subscribed_to(
    mcp: MCP, alice: Person
) -> None:
    make_namespace(alice.actor, "steps", tracked=False)
    for namespace in ("notes", "steps"):
        put(alice.actor, namespace, "k", 1)
    uris = [uri_of("notes", "k"), uri_of("steps", "k")]

    async def go(client: Client) -> tuple[list[str], list[str] | None]:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        async with client.listen(resource_subscriptions=uris) as told:
            return listed, told.honored.resource_subscriptions

    assert mcp.do(alice.token, go) == (uris[:1], uris[:1])
    (held,) = mcp.do(alice.token, lambda client: client.read_resource(uris[1])).contents
    assert held.text == "1"


# Subscriptions ---------------------------------------------------------------------------------


async def next_uri(told: Any) -> str:
    event = await asyncio.wait_for(anext(told), 30)
    uri: str = event.uri
    return uri


def test_subscription__change_by_the_api__arrives(mcp: MCP, alice: Person) -> None:
    uris = [uri_of("notes", "a/b"), uri_of("notes", "later")]

    async def go() -> list[str]:
        async with (
            mcp.client(alice.token) as client,
            client.listen(resource_subscriptions=uris) as told,
        ):
            await asyncio.to_thread(alice.api, "PUT", "/state/notes/other", {"value": 1})
            await asyncio.to_thread(alice.api, "PUT", "/state/notes/a%2Fb", {"value": 1})
            first = await next_uri(told)
            await client.call_tool("put_state", {"namespace": "notes", "key": "later", "value": 1})
            return [first, await next_uri(told)]

    assert run(go()) == uris


def test_subscription__two_at_once__each_gets_its_own_notifications(
    mcp: MCP, alice: Person
) -> None:
    one, two = uri_of("notes", "one"), uri_of("notes", "two")

    async def go() -> Any:
        async with (
            mcp.client(alice.token) as client,
            client.listen(resource_subscriptions=[one]) as first,
            client.listen(resource_subscriptions=[two]) as second,
        ):
            for key in ("two", "one"):
                await asyncio.to_thread(alice.api, "PUT", f"/state/notes/{key}", {"value": 1})
            return await next_uri(first), await next_uri(second)

    assert run(go()) == (one, two)


def test_subscription__entry_outside_the_permissions__gets_no_notification(
    mcp: MCP, alice: Person, mallory: Person
) -> None:
    """A subscription to a hidden entry behaves like one to an absent entry."""
    make_namespace(mallory.actor, "notes")
    uri = uri_of("notes", "secret")

    async def go() -> Any:
        async with (
            mcp.client(mallory.token) as client,
            client.listen(resource_subscriptions=[uri, uri_of("notes", "own")]) as told,
        ):
            await asyncio.to_thread(alice.api, "PUT", "/state/notes/secret", {"value": 1})
            await asyncio.to_thread(mallory.api, "PUT", "/state/notes/own", {"value": 1})
            return await next_uri(told)

    assert run(go()) == uri_of("notes", "own")


def test_subscription__opened_just_after_the_move_of_its_workspace__ends(
    mcp: MCP, alice: Person
) -> None:
    secret, _ = make_token(alice)

    async def go() -> list[Any]:
        async with (
            mcp.client(secret) as client,
            client.listen(resource_subscriptions=[uri_of("notes", "k")]) as told,
        ):
            rows = Workspace.objects.filter(pk=alice.workspace.pk)
            await asyncio.to_thread(lambda: rows.update(moved_to="eu2"))
            return await asyncio.wait_for(_rest(told), 30)

    assert run(go()) == []


async def _rest(told: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in told]


def test_subscription__token_revoked__ends(mcp: MCP, alice: Person) -> None:
    secret, actor = make_token(alice)

    async def go() -> None:
        async with (
            mcp.client(secret) as client,
            client.listen(resource_subscriptions=[uri_of("notes", "k")]) as told,
        ):
            await asyncio.to_thread(revoke_token, actor=alice.actor, token_id=int(actor.id))
            await asyncio.wait_for(anext(told), 30)

    with pytest.raises(BaseException) as ended:
        run(go())
    assert "ended without the server's graceful close" in _texts(ended.value)
    assert ApiToken.objects.live().filter(pk=actor.id).count() == 0


def _texts(error: BaseException) -> str:
    inner = getattr(error, "exceptions", ())
    return " ".join([str(error), *map(_texts, inner)])


def test_subscription__too_many_resources__refused(mcp: MCP, alice: Person) -> None:
    uris = [uri_of("notes", str(number)) for number in range(listening.MOST_RESOURCES + 1)]

    async def go() -> None:
        async with (
            mcp.client(alice.token) as client,
            client.listen(resource_subscriptions=uris),
        ):
            pass

    with pytest.raises(BaseException) as refused:
        run(go())
    assert "At most 256 resources" in _texts(refused.value)


def test_subscription__repeatedly_closed__releases_its_slot(mcp: MCP, alice: Person) -> None:
    """Unsubscribed on close: opens more streams than both processes allow at once, one by one."""

    async def go() -> int:
        opened = 0
        async with mcp.client(alice.token) as client:
            for _ in range(2 * MOST_OF_ONE + 5):
                async with client.listen(resource_subscriptions=[uri_of("notes", "k")]):
                    opened += 1
        return opened

    assert run(go(), 110) == 2 * MOST_OF_ONE + 5


def test_subscription__server_ends__is_closed_with_a_result(
    alice: Person, start: Callable[..., Running]
) -> None:
    web = web_on_this_database(start, WEB_WORKERS="1")

    async def go() -> list[Any]:
        async with (
            MCP(web.port).client(alice.token) as client,
            client.listen(resource_subscriptions=[uri_of("notes", "k")]) as told,
        ):
            web.signal(signal.SIGTERM)
            return [event async for event in told]

    assert run(go()) == []
    assert web.wait() == 0
