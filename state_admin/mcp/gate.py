"""Checks the host, the origin and the token of a request, before its body is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

import django.db
import structlog
from django.conf import settings

from project import log_context
from project.failures import describe_error
from project.hosts import check_host
from state_admin.domain.access import Actor
from state_admin.rest.authentication import read_bearer
from state_admin.services import actors
from state_admin.services.errors import Forbidden, Problem, Unauthenticated, Unavailable
from state_admin.services.move_problems import WorkspaceMoved

from .host import Caller, Host, Message

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Refusal:
    """The response to a request that is not permitted."""

    problem: Problem
    request_id: str
    headers: dict[str, str] = field(default_factory=dict)


async def check(host: Host, scope: Message) -> Refusal | None:
    """Accept a request and store its Caller in the scope, or return the reason for the refusal."""
    headers = {name: text.decode("latin-1") for name, text in scope["headers"]}
    request_id = log_context.choose_request_id(headers.get(b"x-request-id", ""))
    place = _read_header(scope, b"host")
    authorization = _read_header(scope, b"authorization")
    try:
        check_host(place)
    except Problem as problem:
        return Refusal(problem, request_id)
    if not _is_origin_allowed(headers.get(b"origin"), place, scope["scheme"]):
        return Refusal(Forbidden("requests from this origin are not permitted"), request_id)
    try:
        actor = await host.in_thread(lambda: _actor(authorization, request_id))
    except Unauthenticated as problem:
        return Refusal(problem, request_id, {"www-authenticate": 'Bearer realm="commonhold"'})
    except WorkspaceMoved as problem:
        return Refusal(problem, request_id, {"retry-after": "1"})
    except django.db.Error as error:
        log.warning("database.unavailable", error=describe_error(error))
        busy = Unavailable("the database did not respond in time")
        return Refusal(busy, request_id, {"retry-after": "1"})
    scope[Caller.KEY] = Caller(actor, scope)
    return None


def _read_header(scope: Message, name: bytes) -> str:
    """The value of a header. Repeated headers are joined, as in the API, so that no later step uses another
    value than the one that is checked here."""
    return ",".join(text.decode("latin-1") for each, text in scope["headers"] if each == name)


def _actor(authorization: str, request_id: str) -> Actor:
    """The actor of the token. Does not count against the rate limit; the calls made with it do."""
    token = read_bearer(authorization)
    if not token:
        raise actors.token_required()
    actor = actors.actor_of_token(token, request_id=request_id)
    if actor is None:
        raise actors.invalid_token()
    return actor


def _is_origin_allowed(origin: str | None, place: str, scheme: str) -> bool:
    """Whether the Origin header, which only browsers send, is this site or one whose forms are
    accepted."""
    if origin is None:
        return True
    return origin in {f"{scheme}://{place}", *settings.CSRF_TRUSTED_ORIGINS}
