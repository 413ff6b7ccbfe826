"""Erasures: everything of one resource, or under one key, removed permanently."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role

from .base import JSON_TYPE, Answer, Body, KeyText, Operation, ShortText, doc


class Erasure(Answer):
    """What an erasure removed."""

    erased: Annotated[
        str, doc("Hash that takes the place of the id or key in the audit.", "sha256:9f86d081…")
    ]
    counts: Annotated[
        dict[str, int], doc("Number of removed rows by kind.", {"entries": 4, "threads": 1})
    ]


class ErasureRequest(Body):
    """The resource or key to erase, and the reason."""

    reason: Annotated[
        str, doc("Why; kept in the audit.", "Request of the user", min_length=1, max_length=1000)
    ]
    resource_id: Annotated[
        ShortText | UnsetType, doc("Erase what belongs to this resource.", "user-7")
    ] = UNSET
    key: Annotated[KeyText | UnsetType, doc("Erase the entries with this key.")] = UNSET


ERASE = Operation(
    id="erase",
    route="POST /erase",
    tag="entries",
    summary="Erase a resource or a key",
    description="Removes everything of one `resource_id` (its threads with messages, runs, tickets "
    "and state, and the entries of their scopes) or all entries of one `key`, with the history, "
    "permanently. Exactly one of the two is required. The token must not be limited to "
    "namespaces or threads.",
    role=Role.ADMIN,
    body=ErasureRequest,
    examples={JSON_TYPE: {"resource_id": "user-7", "reason": "Request of the user"}},
    answers={200: Erasure},
    dry_run=Erasure,
)
