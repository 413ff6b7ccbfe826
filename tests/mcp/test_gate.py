"""Which requests to /mcp are permitted, and what is refused before the protocol begins."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from state_admin.domain.access import Role
from state_admin.models import ApiToken
from state_admin.services.tokens import create_token, revoke_token
from tests.builders import Person, make_namespace, make_token
from tests.mcp.asking import ERAS, MCP, problem_of
from tests.mcp.conftest import MAX_BODY
from tests.project.running import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@pytest.mark.parametrize("kind", ["none", "garbage", "expired", "revoked", "basic"])
def test_token__invalid__is_401_with_a_hint(mcp: MCP, alice: Person, kind: str) -> None:
    secret, actor = make_token(alice)
    if kind == "expired":
        ApiToken.objects.filter(pk=actor.id).update(expires_at=Now() - timedelta(seconds=1))
    if kind == "revoked":
        revoke_token(actor=alice.actor, token_id=int(actor.id))
    token = {"none": "", "garbage": "ch_a_b"}.get(kind, secret)
    headers = {"Authorization": f"Basic {secret}"} if kind == "basic" else {}

    status, told, body = mcp.post(LIST, token, **headers)

    assert status == 401
    assert told["www-authenticate"] == 'Bearer realm="commonhold"'
    assert json.loads(body)["type"] == "/problems/unauthenticated"


def test_token__in_two_headers__is_401(mcp: MCP, alice: Person) -> None:
    """Otherwise one token would be authenticated, and the rate limit of the other one used."""
    (secret, _), (other, _) = make_token(alice), make_token(alice)

    assert mcp.post(LIST, secret, authorization=f"Bearer {other}")[0] == 401


def test_token__revoked_after_use__is_refused_at_the_next_request(mcp: MCP, alice: Person) -> None:
    secret, actor = make_token(alice)
    assert mcp.post(LIST, secret)[0] == 200

    revoke_token(actor=alice.actor, token_id=int(actor.id))

    # Both processes drop it from their cache, by notification or after five seconds.
    wait_for(lambda: {mcp.post(LIST, secret)[0] for _ in range(6)} == {401}, "the token is refused")


@pytest.mark.parametrize("era", ERAS)
def test_rate_limit__exceeded__is_an_error_for_the_model(mcp: MCP, alice: Person, era: str) -> None:
    """The limit of the API applies: a tool call is one call."""
    make_namespace(alice.actor, "notes")
    _, secret = create_token(actor=alice.actor, name="slow", role=Role.VIEWER, rate_per_minute=3)

    async def calls(client: object) -> list[object]:
        return [await client.call_tool("list_namespaces", {}) for _ in range(8)]  # type: ignore[attr-defined]

    results = mcp.do(secret, calls, era)

    refused = [result for result in results if result.is_error]
    assert 3 <= len(refused) < 8
    assert problem_of(refused[0])["type"] == "/problems/rate-limited"
    assert problem_of(refused[0])["retry_after"] >= 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "local host"}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ],
)
def test_origin_and_host__dns_rebinding__refused(
    mcp: MCP, alice: Person, headers: dict[str, str], status: int
) -> None:
    assert mcp.post(LIST, alice.token, **headers)[0] == status


def test_origin__own_page__is_accepted(mcp: MCP, alice: Person) -> None:
    own = f"http://127.0.0.1:{mcp.port}"
    assert mcp.post(LIST, alice.token, Origin=own)[0] == 200


@pytest.mark.parametrize("declared", [True, False])
def test_body__too_large__413(mcp: MCP, alice: Person, declared: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * MAX_BODY + b'"}'
    sent = body if declared else iter([body[:1000], body[1000:]])
    assert mcp.post(sent, alice.token)[0] == 413  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "headers", "status", "kind"),
    [
        (b"hi", {"Content_Type": "text/plain"}, 400, "bad-request"),
        (b"[" + b" " * MAX_BODY + b"]", {}, 413, "too-large"),
    ],
)
def test_error__of_the_sdk_in_plain_text__becomes_a_problem_document(
    mcp: MCP, alice: Person, body: bytes, headers: dict[str, str], status: int, kind: str
) -> None:
    answered, told, content = mcp.post(body, alice.token, **headers)
    document = json.loads(content)
    assert (answered, told["content-type"]) == (status, "application/problem+json")
    assert (document["status"], document["type"]) == (status, f"/problems/{kind}")
    assert ("hint" in document) == (status == 413)
    assert document["detail"]
    assert document["instance"] == told["x-request-id"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_method__not_post__405(mcp: MCP, alice: Person, method: str) -> None:
    status, told, _ = mcp.post(b"", alice.token, method)
    assert (status, told["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"id":1}', b"[" * 50_000, b"\xff", LIST[:-1]]
)
def test_body__not_a_message__is_4xx_and_the_server_continues(
    mcp: MCP, alice: Person, body: bytes
) -> None:
    for headers in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        assert 400 <= mcp.post(body, alice.token, **headers)[0] < 500
    assert mcp.post(LIST, alice.token)[0] == 200


def test_request_id__valid__is_returned(mcp: MCP, alice: Person) -> None:
    assert mcp.post(LIST, alice.token, X_Request_ID="abc-1")[1]["x-request-id"] == "abc-1"
    assert mcp.post(LIST, alice.token, X_Request_ID="a b")[1]["x-request-id"] != "a b"


def test_path__with_a_slash_at_its_end__is_the_endpoint_and_others_are_not(
    mcp: MCP, alice: Person
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    assert mcp.post(body, alice.token, path="/mcp/")[0] == 200
    assert mcp.post(body, alice.token, path="/mcp/x")[0] == 404
    assert mcp.post(body, path="/mcp/")[0] == 401
