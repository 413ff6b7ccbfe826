"""Who is calling: the bearer token, as an Actor."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from state_admin.domain.access import Actor
from state_admin.services import actors
from state_admin.services.errors import Unauthenticated
from state_admin.services.threads import check_id


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer sh_…`. One answer for every way to be wrong."""

    def authenticate(self, request: Request) -> tuple[Actor, str]:
        scheme, _, presented = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer" or not presented:
            raise Unauthenticated(
                "a token is needed", detail="Send Authorization: Bearer sh_… (see create_token)."
            )
        request_id = getattr(request._request, "request_id", "")
        run_id = request.META.get("HTTP_RUN_ID", "")
        if run_id:
            check_id(run_id)
        actor = actors.actor_of_token(presented.strip(), request_id=request_id, run_id=run_id)
        if actor is None:
            raise Unauthenticated(
                "the token is not valid", detail="It is unknown, expired or revoked."
            )
        return actor, "token"

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="statehouse"'
