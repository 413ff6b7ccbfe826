"""Compaction policies: /compaction-policies, …/workspace, …/agents/{id}, …/threads/{id}."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.policies import EXTRACTIVE, LONGEST_PROMPT, MODES
from state_admin.domain.values import Raw
from state_admin.services import policies
from state_admin.services.policies import PolicyView, Scope
from state_admin.services.threads import EMPTY_OBJECT

from . import etags
from .bodies import Body, RawField, Text, Whole, answer, no_content, verbatim
from .endpoint import Endpoint

_ADMIN = {"PUT": Role.ADMIN, "DELETE": Role.ADMIN}


class PolicyBody(Body):
    """Only the fields it says; the others come from the scope below. Null takes a field back."""

    max_context_tokens = Whole(required=False, min_value=1)
    max_output_tokens = Whole(required=False, min_value=1)
    autocompact_threshold = Whole(required=False, min_value=1, allow_null=True)
    every_hours = Whole(required=False, min_value=1, max_value=8_760, allow_null=True)
    mode = serializers.ChoiceField(choices=MODES, required=False)
    raw_suffix_messages = Whole(required=False, min_value=0)
    min_recent_messages = Whole(required=False, min_value=0)
    min_gain_tokens = Whole(required=False, min_value=0)
    min_savings_ratio = RawField(required=False)
    summarizer = Text(required=False, max_length=64, allow_null=True)
    summary_model = Text(required=False, max_length=128, allow_null=True)
    summary_max_tokens = Whole(required=False, min_value=1)
    prompt = Text(required=False, max_length=LONGEST_PROMPT, allow_null=True)
    fallback = serializers.ChoiceField(choices=[EXTRACTIVE], required=False, allow_null=True)
    snapshot_keep_last = Whole(required=False, min_value=1, allow_null=True)
    snapshot_keep_every = Whole(required=False, min_value=1, allow_null=True)


def show_policy(view: PolicyView) -> dict[str, Any]:
    return {
        "scope": view.scope,
        "agent_id": view.name if view.scope == "agent" else None,
        "thread_id": view.name if view.scope == "thread" else None,
        "policy": verbatim(view.body),
        "effective": view.effective.policy.to_json(),
        "sources": view.effective.sources,
        "version": view.version,
        "updated_at": view.updated_at,
        "updated_by": view.updated_by or None,
    }


class PolicyList(Endpoint):
    @extend_schema(operation_id="list_policies")
    def get(self, request: Request) -> HttpResponse:
        """The workspace's compaction policy and those of agents. A thread's is with the thread."""
        items = [show_policy(view) for view in policies.list_policies(self.actor)]
        return answer({"items": items, "next_cursor": None})


class _Policy(Endpoint):
    """One policy. The path names the agent or the thread, if any."""

    scope: ClassVar[Scope]

    def get(self, request: Request, **named: str) -> HttpResponse:
        """What it says itself, and what holds there, with the source of each field."""
        return self._show(
            policies.read_policy(actor=self.actor, scope=self.scope, name=self._name(named))
        )

    def put(self, request: Request, **named: str) -> HttpResponse:
        """Replace what it says. Jobs that are queued keep the policy they were asked for with."""
        PolicyBody.take(request.data)
        return self._show(self._put(request, named, cast(Raw, request.data)))

    def delete(self, request: Request, **named: str) -> HttpResponse:
        """Take back all that it says."""
        self._put(request, named, EMPTY_OBJECT)
        return no_content()

    def _put(self, request: Request, named: dict[str, str], body: Raw) -> PolicyView:
        values.check(body)
        return policies.put_policy(
            actor=self.actor,
            scope=self.scope,
            name=self._name(named),
            body=body,
            expected_version=etags.expected_version(request),
            reason=self.reason,
        )

    def _name(self, named: dict[str, str]) -> str:
        return next(iter(named.values()), "")

    def _show(self, view: PolicyView) -> HttpResponse:
        return answer(show_policy(view), etag=view.version)


def _documented(scope: Scope) -> Any:
    """The operations of a scope, by their names in the OpenAPI document."""
    return extend_schema_view(
        get=extend_schema(operation_id=f"get_{scope}_policy"),
        put=extend_schema(operation_id=f"put_{scope}_policy", request=PolicyBody),
        delete=extend_schema(operation_id=f"delete_{scope}_policy"),
    )


@_documented("workspace")
class WorkspacePolicy(_Policy):
    roles = _ADMIN
    conditional = ("PUT", "DELETE")
    scope = "workspace"


@_documented("agent")
class AgentPolicy(_Policy):
    roles = _ADMIN
    conditional = ("PUT", "DELETE")
    scope = "agent"


@_documented("thread")
class ThreadPolicy(_Policy):
    conditional = ("PUT", "DELETE")
    scope = "thread"
