"""Access: GET /me, GET /usage, GET /access/explain."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain.access import Role
from state_admin.models import Workspace
from state_admin.services.access import explain_access
from state_admin.services.quotas import read_usage

from .bodies import answer
from .endpoint import Endpoint


class Me(Endpoint):
    @extend_schema(operation_id="get_me")
    def get(self, request: Request) -> HttpResponse:
        """What this token is and may do."""
        actor = self.actor
        workspace = Workspace.objects.get(pk=actor.workspace_id)
        return answer(
            {
                "workspace": workspace.slug,
                "actor": actor.name,
                "actor_kind": actor.kind,
                "role": actor.role.value,
                "namespaces": list(actor.namespaces),
                "thread_prefixes": list(actor.thread_prefixes),
            }
        )


class UsageDetail(Endpoint):
    @extend_schema(operation_id="get_usage")
    def get(self, request: Request) -> HttpResponse:
        """What the workspace holds, as last measured, and what it may hold."""
        found = read_usage(self.actor)
        usage = found.usage
        return answer(
            {
                "entries": usage.entries,
                "bytes": usage.bytes,
                "threads": usage.threads,
                "messages": usage.messages,
                "measured_at": usage.measured_at,
                "limits": found.limits,
            }
        )


class AccessExplain(Endpoint):
    roles = {"GET": Role.ADMIN}

    @extend_schema(operation_id="explain_access")
    def get(self, request: Request) -> HttpResponse:
        """What a token (`token_id`) or a member (`username`) may do with a namespace, a key in it
        or a thread, and why."""
        query = self.query
        found = explain_access(
            actor=self.actor,
            token_id=self.query.get("token_id"),
            username=query.get("username"),
            namespace=query.get("namespace", ""),
            key=query.get("key", ""),
            thread_id=query.get("thread_id", ""),
        )
        return answer(vars(found))
