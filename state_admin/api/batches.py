"""Batches: POST /state/batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from django.http import HttpResponse
from msgspec import UNSET

from state_admin.contract import batches as contract
from state_admin.domain import values
from state_admin.domain.patches import PatchKind
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.preferences import mark_applied, prefers_minimal
from state_admin.services import batches, entries
from state_admin.services.batches import BatchOperation
from state_admin.services.errors import BadRequest, Invalid


@handles(contract.RUN_BATCH)
def run_batch(call: Endpoint) -> HttpResponse:
    body = call.body(contract.Batch)
    outcomes = batches.run_batch(
        actor=call.actor,
        operations=read_operations(body.operations, call.reason),
        atomic=body.atomic,
    )
    writes = any(each.op in ("put", "patch") for each in body.operations)
    minimal = writes and prefers_minimal(call.request.META) and not call.dry_run
    results = [contract.BatchResult.of(each, minimal=minimal) for each in outcomes]
    response = answer(contract.BatchResults(results=results))
    response.is_kept = any(each.op != "get" for each in body.operations)
    return mark_applied(response) if minimal else response


def read_operations(
    operations: Sequence[contract.BatchOperation], reason: str
) -> list[BatchOperation]:
    """The operations of a request. Raises Invalid, BadRequest."""
    if not 1 <= len(operations) <= batches.MAX_OPERATIONS:
        raise Invalid(
            f"a batch takes 1 to {batches.MAX_OPERATIONS} operations, not {len(operations)}",
            [values.Fault("/operations", f"must have 1 to {batches.MAX_OPERATIONS} items")],
        )
    return [_operation(each, f"/operations/{n}", reason) for n, each in enumerate(operations)]


def _operation(each: contract.BatchOperation, pointer: str, reason: str) -> BatchOperation:
    try:
        entries.check_address(each.namespace, each.key)
    except BadRequest as bad:
        bad.data["pointer"] = pointer
        raise
    if unused := each.unused:
        faults = [values.Fault(f"{pointer}/{name}", f"is not used by {each.op}") for name in unused]
        raise Invalid(f"{each.op} does not use {', '.join(unused)}", faults)
    if each.op == "put" and each.value is UNSET:
        raise Invalid("put requires a value", [values.Fault(f"{pointer}/value", "is missing")])
    if each.op == "patch" and each.patch is UNSET:
        raise Invalid("patch requires a patch", [values.Fault(f"{pointer}/patch", "is missing")])
    patch = values.load(each.patch.text) if each.patch else None
    return BatchOperation(
        op=each.op,
        namespace=each.namespace,
        key=each.key,
        value=each.value or None,
        patch_kind=each.patch_type or _default_kind(patch, pointer),
        operations=patch,
        if_version=None if each.if_version is UNSET else each.if_version,
        ttl_seconds=each.ttl_seconds or None,
        tags=None if each.tags is UNSET else each.tags,
        pinned=None if each.pinned is UNSET else each.pinned,
        reason=reason,
    )


def _default_kind(patch: values.JSON, pointer: str) -> PatchKind:
    """A merge patch. As one, operations would be stored in the value, or replace it."""
    if isinstance(patch, list) or (isinstance(patch, dict) and {"op", "path"} <= patch.keys()):
        raise Invalid(
            "patch_type is required for this patch",
            [
                values.Fault(
                    f"{pointer}/patch_type", f"must be one of {', '.join(get_args(PatchKind))}"
                )
            ],
            hint="It looks like operations: set patch_type to json (JSON Patch) or update (update "
            "operations), or to merge to apply it as a merge patch.",
        )
    return "merge"
