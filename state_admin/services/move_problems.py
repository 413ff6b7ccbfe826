"""Problems of requests to a workspace that is moved to another cell."""

from __future__ import annotations

from typing import ClassVar

from .errors import Unavailable


class WorkspaceFrozen(Unavailable):
    slug = "workspace-frozen"
    title = "Workspace frozen"
    meaning = (
        "Writes to the workspace are refused, because it is being moved to another cell. Nothing was "
        "changed. Reads continue."
    )
    causes: ClassVar[tuple[str, ...]] = ("An operator is moving the workspace to another cell.",)
    remedy = (
        "Retry after the time in the `Retry-After` header, with the same `Idempotency-Key`. The "
        "move takes seconds to minutes, depending on the size of the workspace."
    )

    def __init__(self) -> None:
        super().__init__(
            "the workspace is being moved to another cell and refuses writes",
            hint="Nothing was changed. Repeat the request with the same Idempotency-Key.",
        )


class WorkspaceMoved(Unavailable):
    slug = "workspace-moved"
    title = "Workspace moved"
    meaning = (
        "The workspace is in another cell, and the request reached a cell that no longer serves it. "
        "Nothing was read or changed."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The workspace was just moved, and the load balancer does not route its requests to the new "
        "cell yet.",
        "The request was sent to the address of a cell instead of the load balancer.",
    )
    remedy = (
        "Retry after the time in the `Retry-After` header, with the same `Idempotency-Key`. If the "
        "error persists, the operator has to run `manage.py cells` and reload the load balancer."
    )
    members: ClassVar[dict[str, str]] = {"cell": "the name of the cell that serves the workspace"}

    def __init__(self, cell: str) -> None:
        super().__init__(
            f"the workspace is in another cell: {cell}",
            hint="Nothing was read or changed. Repeat the request.",
            cell=cell,
        )
