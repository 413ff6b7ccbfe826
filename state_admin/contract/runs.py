"""Runs: one activation of an agent on a thread."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import msgspec
from msgspec import UNSET, UnsetType

from state_admin.domain.access import Actor
from state_admin.domain.lifecycle import EXPIRIES, RESUME_MODES, TERMINATION_TYPES, WAITING_REASONS

from .base import (
    JSON_TYPE,
    Answer,
    Body,
    DescendingList,
    Natural,
    NonEmpty,
    Operation,
    Page,
    Positive,
    Query,
    Wait,
    doc,
)
from .items import ItemResults, Selection
from .types import (
    MAX_ID,
    MAX_INTEGER,
    BigInt,
    Cost,
    JsonIn,
    JsonOut,
    MetadataIn,
    MetadataOut,
    RunId,
    ThreadId,
    Time,
    dumped,
    json_of,
    time_of,
)

if TYPE_CHECKING:
    from state_admin import models

_LONGEST_TIMEOUT: Final = 10 * 365 * 86_400
TokenCount = Annotated[int, msgspec.Meta(ge=0, le=2**53)]

RunStatus = Annotated[
    str,
    doc(
        "`created`: not started; `waiting`: suspended; `done`: finished.",
        "running",
        choices=("created", "running", "waiting", "done"),
    ),
]
FencingToken = Annotated[
    Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)] | None,
    doc(
        "The worker's fencing token. A token that is not the newest is refused. Null: no check.", 1
    ),
]


def _member(description: str, *types: str, **rest: Any) -> dict[str, Any]:
    """The JSON Schema of a member that has one of these types."""
    return {"type": types[0] if len(types) == 1 else [*types], **rest, "description": description}


_TICKET: Final = {
    "type": "object",
    "required": ["tool_call_id", "tool_name"],
    "additionalProperties": False,
    "properties": {
        "ticket_id": _member("Id of the ticket. Default: generated.", "string", "null"),
        "tool_call_id": _member(
            "Id of the tool call to decide about.", "string", minLength=1, maxLength=256
        ),
        "tool_name": _member("Name of the tool.", "string", minLength=1, maxLength=256),
        "arguments": {"description": "Arguments of the tool call."},
        "reason": _member("Why a decision is needed.", "string", "null"),
        "resume_mode": _member(
            "What the agent does with the decision.", "string", "null", enum=[*RESUME_MODES, None]
        ),
        "response_schema": _member(
            "JSON Schema that the decision's payload must match.", "object", "boolean", "null"
        ),
        "expires_at": _member("When the ticket expires.", "string", "null", format="date-time"),
        "on_expiry": _member(
            "What happens at that time.", "string", "null", enum=[*EXPIRIES, None]
        ),
    },
}
_WAITING: Final = doc(
    "Only with the status `waiting`: what the run waits for. Default: "
    '`{"reason": "external_event"}`.',
    {"reason": "tool_permission", "tickets": [{"tool_call_id": "call-1", "tool_name": "refund"}]},
    schema={
        "type": ["object", "null"],
        "required": ["reason"],
        "additionalProperties": False,
        "properties": {
            "reason": _member("Why it waits.", "string", enum=list(WAITING_REASONS)),
            "message": _member(
                "A text for people, which the page of the run shows.", "string", "null"
            ),
            "deadline_at": _member(
                "When the run counts as stuck if it still waits.",
                "string",
                "null",
                format="date-time",
            ),
            "wake": _member(
                "`dispatch`: the last decision enqueues a dispatch for the thread.",
                "string",
                "null",
                enum=["dispatch", None],
            ),
            "tickets": _member(
                "Tickets to open, one per decision that is needed.",
                "array",
                "null",
                maxItems=100,
                items=_TICKET,
            ),
        },
    },
)
_TERMINATION: Final = doc(
    'Only with the status `done`: why the run ended. Default: `{"type": "natural_end"}`.',
    {"type": "natural_end"},
    schema={
        "type": ["object", "null"],
        "required": ["type"],
        "properties": {
            "type": _member("Why it ended.", "string", enum=list(TERMINATION_TYPES)),
            "value": {
                "description": "Of `blocked` and `error`: a text. Of `stopped`: an object with "
                "`code` and, optionally, `detail`."
            },
        },
    },
)


class Run(Answer):
    """One activation of an agent on a thread."""

    id: RunId
    thread_id: ThreadId
    agent_id: Annotated[str, doc("Id of the agent; empty if none was given.", "planner")]
    status: RunStatus
    waiting: Annotated[
        JsonOut,
        doc(
            "Why it waits, without the tickets; null: it does not wait.",
            None,
            schema={"type": ["object", "null"]},
        ),
    ]
    termination_reason: Annotated[
        JsonOut,
        doc("Why it ended; null: it is not finished.", None, schema={"type": ["object", "null"]}),
    ]
    parent_run_id: Annotated[
        str | None, doc("Id of the parent run; null: none, or none that you may see.", None)
    ]
    parent_thread_id: Annotated[
        str | None, doc("Id of the parent thread; null: none, or none that you may see.", None)
    ]
    origin: Annotated[
        str, doc("What started it.", "user", choices=("user", "mcp", "subagent", "internal"))
    ]
    metadata: MetadataOut
    step_count: Annotated[int, doc("Steps of the agent so far.", 3, ge=0)]
    input_tokens: Annotated[int, doc("Input tokens used so far.", 5200, ge=0)]
    output_tokens: Annotated[int, doc("Output tokens used so far.", 800, ge=0)]
    cost_usd: Annotated[Cost, doc("Cost so far in US dollars, as a decimal number.", "0.041200")]
    max_rounds: Annotated[
        int, doc("Number of steps at which the run counts as stuck; 0: no limit.", 20, ge=0)
    ]
    fencing_token: Annotated[
        int, doc("Newest fencing token: 1 more with each change of the worker.", 1, ge=1)
    ]
    lease_expires_at: Annotated[
        Time | None, doc("When the worker's lease expires; null: no lease.")
    ]
    times_out_at: Annotated[
        Time | None, doc("When the run counts as stuck because of `timeout_seconds`; null: never.")
    ]
    deadline_at: Annotated[
        Time | None, doc("When the run counts as stuck if it still waits; null: never.")
    ]
    stuck_reason: Annotated[
        str | None, doc("Why a person should look at the run; null: no need.", None)
    ]
    flagged_stuck_at: Annotated[
        Time | None, doc("When the server noticed that it is stuck; null: it is not.", None)
    ]
    start_revision: Annotated[int, doc("Revision of the thread that started the run.", 9, ge=0)]
    last_revision: Annotated[
        int, doc("Newest revision of the thread that the run made. The ETag.", 12, ge=0)
    ]
    created_at: Annotated[Time, doc("When it was created.")]
    started_at: Annotated[Time | None, doc("When it began to run; null: not yet.")]
    finished_at: Annotated[Time | None, doc("When it ended; null: not yet.", None)]
    updated_at: Annotated[Time, doc("When it was changed last.")]

    @classmethod
    def of(cls, row: models.Run, actor: Actor, parents: Container[str]) -> Self:
        """The run as `actor` may see it: a parent outside a token's prefixes does not exist.
        `parents`: the ids of the parent runs that the actor may see (services.runs.parents_of)."""
        parent = row.parent_thread_id
        return cls.from_attributes(
            row,
            id=row.public_id,
            thread_id=row.thread.public_id,
            waiting=dumped(row.waiting),
            termination_reason=dumped(row.termination_reason),
            parent_run_id=row.parent_run_id if row.parent_run_id in parents else None,
            parent_thread_id=parent if parent and actor.sees_thread(parent) else None,
            metadata=json_of(row.metadata or "{}"),
            cost_usd=str(row.cost_usd),
            stuck_reason=row.stuck_reason(row.read_at) or None,
            flagged_stuck_at=time_of(row.flagged_at),
        )


class RunFilters(DescendingList):
    thread_id: Annotated[str | None, doc("Only runs of this thread.")] = None
    status: Annotated[RunStatus | None, doc("Only runs with this status.")] = None
    agent_id: Annotated[str | None, doc("Only runs of this agent.")] = None
    stuck: Annotated[bool, doc("`true`: only runs that a person should look at.")] = False


class NewRun(Body):
    """The agent, origin and initial fields of a new run."""

    id: Annotated[
        NonEmpty | UnsetType,
        doc("Id of the run. Default: generated.", "run-1", schema={"maxLength": MAX_ID}),
    ] = UNSET
    agent_id: Annotated[str, doc("Id of the agent.", "planner", max_length=MAX_ID)] = ""
    parent_run_id: Annotated[
        str, doc("Id of the run that started it; empty: none.", "run-0", max_length=MAX_ID)
    ] = ""
    parent_thread_id: Annotated[
        str,
        doc(
            "Thread whose shared entries the run sees; empty: the parent of its thread.",
            "thread-0",
            max_length=MAX_ID,
        ),
    ] = ""
    origin: Annotated[
        Literal["user", "mcp", "subagent", "internal"], doc("What started it.", "user")
    ] = "user"
    metadata: MetadataIn | UnsetType = UNSET
    status: Annotated[
        Literal["created", "running"], doc("`created`: it is started later.", "running")
    ] = "running"
    lease_seconds: Annotated[
        int, doc("Length of the worker's lease; a heartbeat renews it.", 60, ge=1, le=86_400)
    ] = 60
    max_rounds: Annotated[
        int,
        doc(
            "Number of steps at which the run counts as stuck; 0: no limit.", 20, ge=0, le=1_000_000
        ),
    ] = 0
    timeout_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=_LONGEST_TIMEOUT)] | None,
        doc("Seconds after which the run counts as stuck; null: never.", 3600),
    ] = None


class RunQuery(Wait):
    since: Annotated[
        Natural | None,
        doc(
            "With `wait`: news is a `last_revision` greater than this one. Default: the "
            "current one."
        ),
    ] = None


class RunFields(Body):
    """What changes of a run. Counts are totals, not increments."""

    status: Annotated[
        Literal["created", "running", "waiting", "done"] | UnsetType,
        doc(
            "New status. From `created` to `running` or `done`; from `running` to `waiting` or "
            "`done`; from `waiting` to `running` or `done`.",
            "done",
        ),
    ] = UNSET
    waiting: Annotated[JsonIn, _WAITING] | UnsetType = UNSET
    termination_reason: Annotated[JsonIn, _TERMINATION] | UnsetType = UNSET
    step_count: (
        Annotated[int, doc("Steps of the agent so far.", 3, ge=0, le=2**31 - 1)] | UnsetType
    ) = UNSET
    input_tokens: Annotated[TokenCount | UnsetType, doc("Input tokens used so far.", 5200)] = UNSET
    output_tokens: Annotated[TokenCount | UnsetType, doc("Output tokens used so far.", 800)] = UNSET
    cost_usd: Annotated[
        int | float | str | UnsetType,
        doc(
            "Cost so far in US dollars: a decimal number of at least 0 with at most 8 digits "
            "before and 6 after the decimal point; best as a string.",
            "0.041200",
        ),
    ] = UNSET
    metadata: MetadataIn | UnsetType = UNSET


class RunChange(RunFields):
    """What changes of a run. Counts are totals, not increments."""

    fencing_token: FencingToken = None


class Heartbeat(Body):
    """Renews the lease that the worker of a run holds."""

    fencing_token: FencingToken = None


class LeaseRequest(Body):
    """The lease that a worker requests."""

    fencing_token: FencingToken = None
    only_if_free: Annotated[bool, doc("`true`: refuse if another worker has a live lease.")] = False


class LeaseRelease(Query):
    fencing_token: Annotated[
        Positive | None, doc("The worker's fencing token; refused if it is not the newest.")
    ] = None


class RunFailure(Body):
    """Why the run failed."""

    message: Annotated[
        str,
        doc(
            "What went wrong. Empty: the Change-Reason header, or who failed it.",
            "The model refused the request.",
            max_length=10_000,
        ),
    ] = ""


class RunRecovery(Body):
    """How a stuck or suspended run continues."""

    fencing_token: FencingToken = None
    revision: Annotated[
        BigInt | None, doc("Revision whose state is restored first; null: the state stays.", 10)
    ] = None
    expected_revision: Annotated[
        BigInt | None,
        doc("Resume only if the state of the thread is at this revision; null: any.", 12),
    ] = None


_operation = partial(Operation, tag="runs")
START_RUN = _operation(
    id="start_run",
    route="POST /threads/{thread_id}/runs",
    summary="Start a run",
    description="A thread has at most one run that is not finished. Starting clears the state keys "
    "of the scope `run` as one revision. Repeating a request with the same `id` and content returns "
    "the active run with status 200.",
    body=NewRun,
    answers={200: Run, 201: Run},
    etag=True,
)
LIST_RUNS = _operation(
    id="list_runs",
    route="GET /runs",
    replica=True,
    summary="List runs",
    description="Newest first.",
    query=RunFilters,
    answers={200: Page[Run]},
)
GET_RUN = _operation(
    id="get_run",
    route="GET /runs/{run_id}",
    summary="Read a run",
    description="With `wait`, the response is held until the run has a newer revision.",
    query=RunQuery,
    answers={200: Run},
    etag=True,
)
CHANGE_RUN = _operation(
    id="change_run",
    route="PATCH /runs/{run_id}",
    summary="Change a run",
    description="Moves the run to another status, or updates its counts or metadata. With "
    "`If-Match`, only if its `last_revision` is that one.",
    body=RunChange,
    examples={
        JSON_TYPE: {
            "fencing_token": 1,
            "status": "done",
            "termination_reason": {"type": "natural_end"},
            "step_count": 3,
            "input_tokens": 5200,
            "output_tokens": 800,
            "cost_usd": "0.041200",
        }
    },
    answers={200: Run},
    headers=("If-Match",),
    problems=("revision-conflict", "fencing-token-superseded"),
    etag=True,
)
HEARTBEAT_RUN = _operation(
    id="heartbeat_run",
    route="POST /runs/{run_id}/heartbeat",
    summary="Renew the lease of a run",
    description="The lease lasts `lease_seconds` of the run from now. Recorded in the audit "
    "log and in the change feed only if there is a `Change-Reason`.",
    body=Heartbeat,
    body_required=False,
    answers={200: Run},
    problems=("fencing-token-superseded",),
)
CANCEL_RUN = _operation(
    id="cancel_run",
    route="POST /runs/{run_id}/cancel",
    summary="Cancel a run",
    description="Ends the run as cancelled; its pending tickets become void. A run that has ended "
    "stays as it is. With `If-Match`, only if its `last_revision` is that one.",
    answers={200: Run},
    headers=("If-Match",),
    problems=("revision-conflict",),
    etag=True,
)
TAKE_LEASE = _operation(
    id="take_lease",
    route="POST /runs/{run_id}/lease",
    summary="Take the lease of a run",
    description="Makes the caller the worker of the run, with a new fencing token. Requests with an "
    "older token are refused from then on.",
    body=LeaseRequest,
    body_required=False,
    answers={200: Run},
    problems=("fencing-token-superseded",),
)
RELEASE_LEASE = _operation(
    id="release_lease",
    route="DELETE /runs/{run_id}/lease",
    summary="Release the lease of a run",
    description="The run counts as stuck until another worker takes it. Requests with an older "
    "fencing token are refused from then on.",
    query=LeaseRelease,
    answers={200: Run},
    problems=("not-found", "fencing-token-superseded"),
)
CANCEL_RUNS = _operation(
    id="cancel_runs",
    route="POST /runs/cancel",
    summary="Cancel runs",
    description="Cancels up to 200 runs independently of each other. If a run cannot be cancelled, "
    "for example because it does not exist, its result contains a problem and the others are still "
    "cancelled. A run that has ended stays as it is.",
    body=Selection,
    answers={200: ItemResults},
    dry_run=ItemResults,
)
FAIL_RUN = _operation(
    id="fail_run",
    route="POST /runs/{run_id}/fail",
    summary="Fail a run",
    description="Ends the run with an error; its pending tickets become void. With `If-Match`, only "
    "if its `last_revision` equals the given one.",
    body=RunFailure,
    body_required=False,
    answers={200: Run},
    headers=("If-Match",),
    problems=("revision-conflict",),
    etag=True,
)
RESUME_RUN = _operation(
    id="resume_run",
    route="POST /runs/{run_id}/resume",
    summary="Resume a run",
    description="Sets the run to `running` with a new fencing token and lease, from the state of a "
    "revision if one is given. Its pending tickets become void; its messages stay. A finished run "
    "cannot be resumed.",
    body=RunRecovery,
    body_required=False,
    answers={200: Run},
    problems=("revision-conflict", "fencing-token-superseded", "gone"),
)
