"""Blame: GET /blame/{ns}/{key}."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.services import entries
from state_admin.services.blame import blame_entry

from .bodies import answer
from .endpoint import Endpoint


class EntryBlame(Endpoint):
    @extend_schema(operation_id="blame_entry")
    def get(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Who set each path of the entry, in which version, request and run."""
        entries.check_address(namespace, key)
        lines = blame_entry(actor=self.actor, namespace=namespace, key=key)
        items = [{**vars(line), "run_id": line.run_id or None} for line in lines]
        return answer({"items": items, "next_cursor": None})
