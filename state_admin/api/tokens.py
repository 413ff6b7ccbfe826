"""API tokens: /tokens."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpResponse

from state_admin.contract import tokens as contract
from state_admin.domain.access import Actor, Role
from state_admin.models import ApiToken
from state_admin.rest.bodies import answer, answer_once, no_content
from state_admin.rest.endpoint import Endpoint, handles, row_id
from state_admin.rest.pagination import answer_rows
from state_admin.services import tokens


@handles(contract.LIST_TOKENS)
def list_tokens(call: Endpoint) -> HttpResponse:
    return answer_rows(call, ApiToken.objects.visible_to(call.actor), contract.Token.of)


@handles(contract.CREATE_TOKEN)
def create_token(call: Endpoint) -> HttpResponse:
    return create_in(call, call.actor)


def create_in(call: Endpoint, actor: Actor) -> HttpResponse:
    """Create the token that the body describes, in the workspace of `actor`."""
    body = call.body(contract.NewToken)
    token, secret = tokens.create_token(
        actor=actor,
        name=body.name,
        role=Role(body.role),
        namespaces=body.namespaces,
        thread_prefixes=body.thread_prefixes,
        expires_in_seconds=body.expires_in_seconds,
        rate_per_minute=body.rate_per_minute,
        reason=call.reason,
    )
    return _answer_secret(token, secret)


@handles(contract.GET_TOKEN)
def get_token(call: Endpoint, token_id: str) -> HttpResponse:
    return answer(contract.Token.of(tokens.find_token(call.actor, row_id("token", token_id))))


@handles(contract.CHANGE_TOKEN)
def change_token(call: Endpoint, token_id: str) -> HttpResponse:
    token = tokens.change_token(
        **call.author,
        token_id=row_id("token", token_id),
        changes=call.body(contract.TokenChanges).given(),
    )
    return answer(contract.Token.of(token))


@handles(contract.ROTATE_TOKEN)
def rotate_token(call: Endpoint, token_id: str) -> HttpResponse:
    overlap = timedelta(seconds=call.body(contract.Rotation).overlap_seconds)
    token, secret = tokens.rotate_token(
        **call.author, token_id=row_id("token", token_id), overlap=overlap
    )
    return _answer_secret(token, secret)


@handles(contract.REVOKE_TOKEN)
def revoke_token(call: Endpoint, token_id: str) -> HttpResponse:
    tokens.revoke_token(**call.author, token_id=row_id("token", token_id))
    return no_content()


def _answer_secret(token: ApiToken, secret: str) -> HttpResponse:
    document = contract.Token.of(token)
    return answer_once(
        contract.CreatedToken(token=document, secret=secret),
        kept=contract.CreatedToken(token=document, secret=None),
    )
