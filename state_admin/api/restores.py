"""Restoring many entries to a moment: POST /restore."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import moments
from state_admin.domain.scopes import ScopeKind
from state_admin.services import restores
from state_admin.services.errors import Invalid
from state_admin.services.restores import Step

from .bodies import Body, Text, answer
from .clearing import KINDS
from .endpoint import Endpoint


class RestoreToMomentBody(Body):
    at = Text(max_length=64)
    namespace = Text(required=False, allow_blank=True, max_length=128)
    key = Text(required=False, allow_blank=True, max_length=512)
    prefix = Text(required=False, allow_blank=True, max_length=512)
    scope_kind = serializers.ChoiceField(choices=KINDS, required=False)


class Restore(Endpoint):
    @extend_schema(operation_id="restore_entries", request=RestoreToMomentBody)
    def post(self, request: Request) -> HttpResponse:
        """Take a key, a prefix, a scope kind or a namespace back to a moment, as new versions.
        All or none. The answer shows the first hundred changes."""
        body = RestoreToMomentBody.take(request.data)
        at = moments.read(body["at"])
        if at is None:
            raise Invalid("at must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
        kind = body.get("scope_kind")
        done = restores.restore_entries(
            actor=self.actor,
            at=at,
            namespace=body.get("namespace", ""),
            key=body.get("key", ""),
            prefix=body.get("prefix", ""),
            scope_kind=ScopeKind(kind) if kind else None,
            dry_run=self.query["dry_run"],
            reason=self.reason,
        )
        told = {
            "changed": done.counts["change"],
            "created": done.counts["create"],
            "deleted": done.counts["delete"],
            "refused": done.counts["refuse"],
        }
        first = [_show(step) for step in done.first]
        return answer({"at": at, **told, "first": first})


def _show(step: Step) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "namespace": step.namespace,
        "key": step.key,
        "action": step.action,
        "version": step.version,
        "then_version": step.then_version,
    }
    if step.problem is not None:
        shown["reason"] = step.problem.detail
        shown["errors"] = step.problem.data.get("errors", [])
    return shown
