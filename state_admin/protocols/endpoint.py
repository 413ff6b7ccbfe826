"""The base of the protocols' views: authenticate, check the role.

Authentication, the check of a request against its declaration, the reading of bodies and the
spelling of problems come from the settings (REST_FRAMEWORK), so they are the API's without an
import of it.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import JSON
from state_admin.services.actors import require
from state_admin.services.errors import BadRequest
from state_admin.services.traffic import counter, outcome_of

_SAFE = ("GET", "HEAD", "OPTIONS")


class Endpoint(APIView):
    """One path. `roles` names the role a method needs; without a word: viewer to read, editor to
    write. Services check again."""

    roles: ClassVar[dict[str, Role]] = {}
    # The methods that heed If-Match. The others refuse it, as the API does.
    conditional: ClassVar[tuple[str, ...]] = ()
    # Answers are not kept here: the protocols have their own ways to repeat a request.
    write_headers: ClassVar[tuple[str, ...]] = ()
    # The query parameters by name, checked and converted as the OpenAPI document declares them.
    query: dict[str, Any]

    @property
    def actor(self) -> Actor:
        return self.request.user  # type: ignore[return-value]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.perform_authentication(request)
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest("NUL is not legal in a path or a query")
        method = request.method or "GET"
        if hasattr(self, method.lower()):
            fallback = Role.VIEWER if method in _SAFE else Role.EDITOR
            require(self.actor, self.roles.get(method, fallback))
            self.query = self.schema.check_request(request)  # type: ignore[union-attr]
            if "HTTP_IF_MATCH" in request.META and method not in (*_SAFE, *self.conditional):
                raise BadRequest(
                    f"{method} takes no If-Match here",
                    hint="Nothing was done. Leave the header out.",
                )
        if method not in _SAFE and "HTTP_IDEMPOTENCY_KEY" in request.META:
            raise BadRequest(
                "Idempotency-Key is not kept here",
                hint="Use the same verb of /api/v1, or the protocol's own guard.",
            )

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = cast(HttpResponse, super().dispatch(request, *args, **kwargs))
        outcome = outcome_of(request.method, response.status_code)
        if outcome is not None:
            counter.count(self.actor.workspace_id, outcome)
        return response


def answer(data: JSON, status: int = 200) -> HttpResponse:
    """A JSON answer; numbers keep their spelling."""
    response = HttpResponse(values.dump(data), status=status, content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response
