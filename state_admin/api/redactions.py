"""Redaction: POST /redact/{ns}/{key}."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain.access import Role
from state_admin.services import entries, redactions

from .bodies import Body, Text, answer
from .endpoint import Endpoint


class RedactBody(Body):
    pointers = serializers.ListField(
        child=Text(allow_blank=True, max_length=2048),
        required=False,
        max_length=redactions.MOST_POINTERS,
    )
    versions = serializers.ChoiceField(choices=["all"], required=False)
    reason = Text(max_length=1000)


class EntryRedact(Endpoint):
    roles = {"POST": Role.ADMIN}

    @extend_schema(operation_id="redact_entry", request=RedactBody)
    def post(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Remove what stands at `pointers` (none: the whole value) from every version, for good.
        A tombstone `{"$redacted": true}` takes its place."""
        entries.check_address(namespace, key)
        body = RedactBody.take(request.data)
        done = redactions.redact_entry(
            actor=self.actor,
            namespace=namespace,
            key=key,
            pointers=body.get("pointers", []),
            reason=body["reason"],
        )
        told = {
            "namespace": namespace,
            "key": key,
            "version": done.version,
            "rewritten": done.rewritten,
            "withdrawn_answers": done.answers,
        }
        return answer(told, etag=done.version)
