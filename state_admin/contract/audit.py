"""The audit: who did what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from state_admin.domain.access import Role

from .base import Answer, DescendingList, Operation, Page, doc
from .changes import KindGlob
from .types import Actor, ActorKind, Key, Namespace, Reason, RequestId, RunId, ThreadId, Time

if TYPE_CHECKING:
    from state_admin import models

Action = Annotated[str, doc("What was done to what: a kind of change.", "entry.put")]


class AuditRow(Answer):
    """A write, and who did it."""

    at: Annotated[Time, doc("When it was done.")]
    action: Action
    namespace: Annotated[Namespace | None, doc("The namespace; null: not about one.")]
    key: Annotated[Key | None, doc("The key, or the name of the thing; null: it has none.")]
    thread_id: Annotated[ThreadId | None, doc("The thread; null: not about one.", None)]
    run_id: Annotated[
        RunId | None, doc("The run that was written, or on whose behalf; null: none.", None)
    ]
    version: Annotated[int, doc("Version or revision that the write created; 0: none.", 3, ge=0)]
    actor: Actor
    actor_kind: ActorKind
    reason: Reason
    request_id: RequestId
    detail: Annotated[
        dict[str, Any], doc("More about the action, depending on its kind.", {"merged": True})
    ]

    @classmethod
    def of(cls, row: models.AuditRow) -> Self:
        return cls.from_attributes(
            row,
            namespace=row.namespace or None,
            key=row.key or None,
            thread_id=row.thread or None,
            run_id=row.run or None,
            actor=row.actor_name,
        )


class AuditFilters(DescendingList):
    namespace: Annotated[Namespace | None, doc("Only rows about this namespace.")] = None
    key: Annotated[Key | None, doc("Only rows about this key.")] = None
    thread_id: Annotated[ThreadId | None, doc("Only rows about this thread.")] = None
    run_id: Annotated[RunId | None, doc("Only rows about this run.")] = None
    action: Annotated[
        KindGlob | None,
        doc("Only rows with this action, or with an action that matches this glob."),
    ] = None
    request_id: Annotated[RequestId | None, doc("Only rows of this request.")] = None
    actor: Annotated[Actor | None, doc("Only rows of the actor with this name.")] = None


LIST_AUDIT = Operation(
    id="list_audit",
    route="GET /audit",
    replica=True,
    tag="audit",
    summary="List the audit",
    description=(
        "Every write of the workspace, newest first. With filters, a page may have fewer items than "
        "`limit`, or none: there are more as long as `next_cursor` is not null."
    ),
    role=Role.ADMIN,
    query=AuditFilters,
    answers={200: Page[AuditRow]},
)
