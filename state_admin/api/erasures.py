"""Erasure: POST /erase."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain.access import Role
from state_admin.services import erasures

from .bodies import Body, Text, answer
from .endpoint import Endpoint


class EraseBody(Body):
    resource_id = Text(required=False, allow_blank=True, max_length=128)
    key = Text(required=False, allow_blank=True, max_length=512)
    reason = Text(max_length=1000)


class Erase(Endpoint):
    roles = {"POST": Role.ADMIN}

    @extend_schema(operation_id="erase", request=EraseBody)
    def post(self, request: Request) -> HttpResponse:
        """Erase everything of one `resource_id`, or of one `key` over all namespaces, history
        included, for good. Needs a token that is not narrowed."""
        body = EraseBody.take(request.data)
        done = erasures.erase(
            actor=self.actor,
            resource_id=body.get("resource_id", ""),
            key=body.get("key", ""),
            dry_run=self.query["dry_run"],
            reason=body["reason"],
        )
        return answer({"erased": done.mark, "counts": done.counts})
