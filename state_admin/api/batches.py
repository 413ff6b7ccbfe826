"""Batches: POST /state/batch."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.values import Raw
from state_admin.services import batches, entries
from state_admin.services.batches import BatchOperation, Outcome
from state_admin.services.errors import BadRequest, Invalid, Problem

from .bodies import Body, Flag, RawField, Text, Whole, answer
from .endpoint import Endpoint
from .entries import MAX_TTL, show_entry


class OperationBody(Body):
    op = serializers.ChoiceField(choices=["get", "put", "patch", "delete"])
    namespace = Text()
    key = Text()
    value = RawField(required=False)
    patch = RawField(required=False)
    patch_type = serializers.ChoiceField(choices=["merge", "json", "update"], required=False)
    if_version = Whole(min_value=0, required=False)
    ttl_seconds = Whole(min_value=1, max_value=MAX_TTL, required=False)
    tags = serializers.ListField(child=Text(max_length=64), required=False, max_length=32)
    pinned = Flag(required=False)


class BatchBody(Body):
    atomic = Flag(required=False)
    operations = RawField()


class Batch(Endpoint):
    roles = {"POST": Role.VIEWER}  # a batch of gets is a read; the service asks for more to write

    @extend_schema(operation_id="run_batch", request=BatchBody)
    def post(self, request: Request) -> HttpResponse:
        """1 to 1,000 gets, puts, patches and deletes. `atomic` (the default): all or nothing."""
        body = BatchBody.take(request.data)
        operations = read_operations(body["operations"], self.reason)
        outcomes = batches.run_batch(
            actor=self.actor, operations=operations, atomic=body.get("atomic", True)
        )
        return answer({"results": [show_outcome(outcome) for outcome in outcomes]})


_PLAIN = {"op", "namespace", "key", "value"}


def read_operations(raw: Raw, reason: str) -> list[BatchOperation]:
    """The operations of a request. Raises Invalid, BadRequest."""
    if not isinstance(raw.value, list):
        raise Invalid("operations must be a list")
    if not 1 <= len(raw.value) <= batches.MAX_OPERATIONS:
        raise Invalid(
            f"a batch takes 1 to {batches.MAX_OPERATIONS} operations, not {len(raw.value)}"
        )
    # A thousand serializers would cost more than a thousand writes: plain ones are read as they are.
    if all(_is_plain(item) for item in raw.value):
        bodies = [
            {**item, "value": parts.get("value")}
            for item, parts in zip(raw.value, values.records(raw), strict=True)
        ]
    else:
        bodies = [
            OperationBody.take(item, f"/operations/{index}")
            for index, item in enumerate(values.items(raw))
        ]
    return [_operation(body, f"/operations/{n}", reason) for n, body in enumerate(bodies)]


def _operation(body: dict[str, Any], pointer: str, reason: str) -> BatchOperation:
    try:
        entries.check_address(body["namespace"], body["key"])
    except BadRequest as bad:
        bad.data["pointer"] = pointer
        raise
    if body["op"] == "put" and body.get("value") is None:
        raise Invalid("a put needs a value", [values.Fault(f"{pointer}/value", "is missing")])
    if body["op"] == "patch" and "patch" not in body:
        raise Invalid("a patch needs a patch", [values.Fault(f"{pointer}/patch", "is missing")])
    patch: Raw | None = body.get("patch")
    return BatchOperation(
        op=body["op"],
        namespace=body["namespace"],
        key=body["key"],
        value=body.get("value"),
        patch_kind=body.get("patch_type", "merge"),
        operations=values.load(patch.text) if patch is not None else None,
        if_version=body.get("if_version"),
        ttl_seconds=body.get("ttl_seconds"),
        tags=body.get("tags"),
        pinned=body.get("pinned"),
        reason=reason,
    )


def _is_plain(operation: Any) -> bool:
    return (
        isinstance(operation, dict)
        and operation.keys() <= _PLAIN
        and operation.get("op") in ("get", "put", "delete")
        and all(isinstance(operation.get(name), str) for name in ("namespace", "key"))
    )


def show_outcome(outcome: Outcome) -> dict[str, Any]:
    if outcome.problem is not None:
        return _failed(outcome.problem)
    if outcome.op == "delete":
        return {"status": 204, "version": outcome.version}
    shown = show_entry(outcome.entry) if outcome.entry else None
    return {"status": 201 if outcome.created else 200, "entry": shown}


def _failed(problem: Problem) -> dict[str, Any]:
    return {"status": problem.status, "problem": problem.document()}
