"""The Agent Protocol, as LangGraph's SDK implements it: its store, and its threads with their
state.

Names and shapes are the protocol's. Null counts as absent in its bodies.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from state_admin.domain.access import Role

from .base import JSON_TYPE, Answer, Body, Operation, Positive, Query, doc
from .types import ThreadId

TAG = "agent protocol"
MAX_ITEMS = 1000
MAX_STATES = 100

Labels = Annotated[
    list[str],
    doc("Labels of the store namespace. No label is empty or contains `.`.", ["users", "u1"]),
]
ItemKey = Annotated[str, doc("Key of the item.", "preferences")]
Object = Annotated[dict[str, Any], doc("A JSON object.", {"language": "en"})]
Offset = Annotated[int, doc("Number of items to skip.", 0, ge=0, lt=2**31)]
Limit = Annotated[int, doc("Maximum number of items.", 10, ge=1, le=MAX_ITEMS)]
ForeignTime = Annotated[
    str, doc("RFC 3339 time.", "2026-01-31T12:00:00.000000+00:00", schema={"format": "date-time"})
]
CheckpointId = Annotated[str, doc("Id of a checkpoint: a revision of the thread's state.", "3")]
Checkpoint = Annotated[
    dict[str, Any], doc("A checkpoint object: `thread_id`, `checkpoint_ns` and `checkpoint_id`.")
]
# A response with only the members that `select` names.
Selected = dict[str, Any]
Select = Annotated[list[str], doc("Members to return; others are left out.", ["values"])]


class StoreItem(Answer):
    """An item of the store: an entry of the namespace `agent_store`."""

    namespace: Labels
    key: ItemKey
    value: Object
    version: Annotated[int, doc("Version of the entry; send it as If-Match.", 3)]
    created_at: ForeignTime
    updated_at: ForeignTime


class StoreItems(Answer):
    """The items of the store that were found."""

    items: Annotated[list[StoreItem], doc("Items, newest change first.")]


class StoreNamespaces(Answer):
    """The namespaces of the store that were found."""

    namespaces: Annotated[
        list[list[str]], doc("Store namespaces that contain items.", [["users", "u1"]])
    ]


class AgentThread(Answer):
    """A thread as the protocol shows it."""

    thread_id: ThreadId
    created_at: ForeignTime
    updated_at: ForeignTime
    metadata: Object
    status: Annotated[
        str,
        doc(
            "`busy` while a run is active, `interrupted` while it waits, `error` if the last run failed.",
            "idle",
            choices=("idle", "busy", "interrupted", "error"),
        ),
    ]
    values: Annotated[dict[str, Any], doc("The state: values by state key.", {"plan": ["search"]})]
    interrupts: Annotated[dict[str, Any], doc("Pending tickets by task id.", {})]


class AgentThreadWithMessages(AgentThread):
    """A thread and all its messages."""

    messages: Annotated[list[dict[str, Any]], doc("The messages of the thread, oldest first.", [])]


class AgentState(Answer):
    """The state of a thread at a checkpoint."""

    values: Annotated[dict[str, Any], doc("Values by state key.", {"plan": ["search"]})]
    messages: Annotated[list[dict[str, Any]], doc("The messages up to the checkpoint.", [])]
    next: Annotated[list[str], doc("The agent or run that is active.", [])]
    tasks: Annotated[list[dict[str, Any]], doc("Always empty.", [])]
    interrupts: Annotated[list[dict[str, Any]], doc("Pending tickets of the active run.", [])]
    checkpoint: Checkpoint
    parent_checkpoint: Annotated[
        dict[str, Any] | None, doc("The previous checkpoint; null for the first.", None)
    ]
    metadata: Object
    created_at: ForeignTime | None


class StateUpdated(Answer):
    """The checkpoint that the update created."""

    checkpoint: Checkpoint
    configurable: Checkpoint
    checkpoint_id: CheckpointId


class ItemQuery(Query):
    namespace: Annotated[str, doc("Labels of the store namespace, joined by `.`.", "users.u1")] = ""
    key: ItemKey = ""
    refresh_ttl: Annotated[bool, doc("Must be false: a read does not extend the lifetime.")] = False


class StateQuery(Query):
    subgraphs: Annotated[bool, doc("Accepted for compatibility; there are no subgraphs.")] = False
    select: Annotated[list[str], doc("Members to return, repeated or separated by commas.")] = []


class ThreadQuery(Query):
    include: Annotated[list[str], doc("Accepted for compatibility; all members are returned.")] = []


class HistoryQuery(Query):
    limit: Annotated[int, doc("Maximum number of states.", 10, ge=1, le=MAX_STATES)] = 10
    before: CheckpointId | None = None


class ItemPut(Body):
    """An item of the store and its new value."""

    namespace: Labels | None = None
    key: ItemKey | None = None
    value: Annotated[dict[str, Any] | None, doc("The value.", {"language": "en"})] = None
    index: Annotated[Any, doc("Accepted for compatibility; every text is searchable.")] = None
    ttl: Annotated[float | None, doc("Lifetime in minutes.", 60)] = None


class ItemAddress(Body):
    """The namespace and key of an item of the store."""

    namespace: Labels | None = None
    key: ItemKey | None = None


class ItemSearch(Body):
    """Conditions that the returned items of the store meet."""

    namespace_prefix: Labels | None = None
    filter: Annotated[
        dict[str, Any] | None,
        doc(
            "Conditions on members of the value: equality, or `$eq $ne $gt $gte $lt $lte`.",
            {"language": "en"},
        ),
    ] = None
    query: Annotated[str | None, doc("Words that the value must contain.", "vegetarian")] = None
    refresh_ttl: Annotated[bool | None, doc("Must be false.", False)] = None
    limit: Limit | None = None
    offset: Offset | None = None


class NamespaceSearch(Body):
    """Conditions that the returned namespaces of the store meet."""

    prefix: Annotated[
        list[str] | None, doc("First labels; `*` stands for any label.", ["users"])
    ] = None
    suffix: Annotated[list[str] | None, doc("Last labels; `*` stands for any label.", ["*"])] = None
    max_depth: Annotated[Positive | None, doc("Cut namespaces to so many labels.", 2)] = None
    limit: Limit | None = None
    offset: Offset | None = None


class ThreadCreate(Body):
    """The id and metadata of a new thread, and what to do if it exists."""

    thread_id: ThreadId | None = None
    metadata: Annotated[dict[str, Any] | None, doc("Metadata: an object.", {"user": "u1"})] = None
    if_exists: Annotated[
        Literal["raise", "do_nothing"] | None,
        doc("Whether an existing thread is an error or the response.", "raise"),
    ] = None
    ttl: Annotated[Any, doc("Not supported; must be absent.")] = None
    supersteps: Annotated[Any, doc("Not supported; must be absent.")] = None


class ThreadConditions(Body):
    """Conditions that the counted threads meet."""

    metadata: Annotated[
        dict[str, Any] | None, doc("Metadata that the thread contains.", {"user": "u1"})
    ] = None
    values: Annotated[
        dict[str, Any] | None, doc("Values that the state contains, by state key.")
    ] = None
    status: Annotated[
        Literal["idle", "busy", "interrupted", "error"] | None,
        doc("Only threads with this status."),
    ] = None


class ThreadSearch(ThreadConditions):
    """Which threads to return, and in which order."""

    ids: Annotated[list[str] | None, doc("Only these threads.", ["thread-1"])] = None
    limit: Limit | None = None
    offset: Offset | None = None
    sort_by: Annotated[
        Literal["thread_id", "created_at", "updated_at", "status"] | None,
        doc("Order of the result."),
    ] = None
    sort_order: Annotated[Literal["asc", "desc"] | None, doc("Direction of the order.")] = None
    select: Select | None = None
    extract: Annotated[Any, doc("Not supported; must be absent.")] = None


class ThreadPatch(Body):
    """Metadata and state to change, and messages to append."""

    metadata: Annotated[dict[str, Any] | None, doc("Merged into the metadata.", {"user": "u1"})] = (
        None
    )
    values: Annotated[dict[str, Any] | None, doc("State values to write as a new checkpoint.")] = (
        None
    )
    messages: Annotated[
        list[Annotated[Any, doc("A message.")]] | None,
        doc("Messages to append.", [{"role": "user", "content": "Hi"}]),
    ] = None
    checkpoint: Annotated[
        dict[str, Any] | None, doc("Write only if this checkpoint is the newest.")
    ] = None
    ttl: Annotated[Any, doc("Not supported; must be absent.")] = None


class StateUpdate(Body):
    """Values that are written to the state of a thread."""

    values: Annotated[
        Any, doc("State values to write: an object, or an array of objects.", {"plan": ["search"]})
    ] = None
    checkpoint_id: CheckpointId | None = None
    checkpoint: Annotated[
        dict[str, Any] | None, doc("Write only if this checkpoint is the newest.")
    ] = None
    as_node: Annotated[str | None, doc("Recorded as the reason of the change.", "planner")] = None


class StateAt(Body):
    """The checkpoint whose state is read."""

    checkpoint: Annotated[dict[str, Any] | None, doc("The checkpoint to read.")] = None
    subgraphs: Annotated[
        bool | None, doc("Accepted for compatibility; there are no subgraphs.")
    ] = None
    select: Select | None = None


class HistorySearch(Body):
    """Which states of the thread to return."""

    limit: Annotated[int, doc("Maximum number of states.", 10, ge=1, le=MAX_STATES)] | None = None
    before: Annotated[Any, doc("Only states before this checkpoint.")] = None
    metadata: Annotated[Any, doc("Not supported; must be absent.")] = None
    checkpoint: Annotated[dict[str, Any] | None, doc("Accepted for compatibility.")] = None
    select: Select | None = None


def _operation(name: str, method: str, path: str, summary: str, **rest: Any) -> Operation:
    return Operation(
        id=name,
        route=f"{method} /agent-protocol{path}",
        tag=TAG,
        summary=summary,
        kept=False,
        api_key=True,
        problem_type=JSON_TYPE,
        **rest,
    )


_READS = {"role": Role.VIEWER}
_GUARDS = {"headers": ("If-Match", "If-None-Match")}

GET_ITEM = _operation(
    "get_store_item", "GET", "/store/items", "Read a store item",
    description="The item, or null if it does not exist.",
    query=ItemQuery, answers={200: StoreItem | None}, problems=("invalid",),
)  # fmt: skip
PUT_ITEM = _operation(
    "put_store_item", "PUT", "/store/items", "Write a store item",
    description="Last write wins; with If-Match, only on top of that `version`. The first item that an "
    "admin writes registers the namespace `agent_store`.",
    body=ItemPut, answers={204: None},
    problems=("not-registered", "quota-exceeded", "version-conflict"), **_GUARDS,
)  # fmt: skip
DELETE_ITEM = _operation(
    "delete_store_item", "DELETE", "/store/items", "Delete a store item",
    description="Deletes the item if it exists; with If-Match, only that `version`.",
    body=ItemAddress, answers={204: None}, problems=("version-conflict",), **_GUARDS,
)  # fmt: skip
SEARCH_ITEMS = _operation(
    "search_store_items", "POST", "/store/items/search", "Search store items",
    description="Items below `namespace_prefix`, newest change first.",
    body=ItemSearch, answers={200: StoreItems}, **_READS,
)  # fmt: skip
LIST_NAMESPACES = _operation(
    "list_store_namespaces", "POST", "/store/namespaces", "List store namespaces",
    description="Store namespaces that contain items, in alphabetical order.",
    body=NamespaceSearch, answers={200: StoreNamespaces}, **_READS,
)  # fmt: skip
CREATE_THREAD = _operation(
    "create_agent_thread", "POST", "/threads", "Create a thread",
    description="An existing thread is a conflict, or the response with `if_exists: do_nothing`.",
    body=ThreadCreate, answers={200: AgentThread}, problems=("conflict", "quota-exceeded"),
)  # fmt: skip
SEARCH_THREADS = _operation(
    "search_agent_threads", "POST", "/threads/search", "Search threads",
    body=ThreadSearch, answers={200: (list[AgentThread], list[Selected])},
    response_headers=("X-Pagination-Total", "X-Pagination-Next"), **_READS,
)  # fmt: skip
COUNT_THREADS = _operation(
    "count_agent_threads", "POST", "/threads/count", "Count threads",
    body=ThreadConditions, answers={200: int}, **_READS,
)  # fmt: skip
COPY_THREAD = _operation(
    "copy_agent_thread", "POST", "/threads/{thread_id}/copy", "Copy a thread",
    description="A new thread with the same state and messages.",
    answers={200: AgentThread}, problems=("quota-exceeded",),
)  # fmt: skip
LIST_HISTORY = _operation(
    "list_agent_history", "GET", "/threads/{thread_id}/history", "List the states of a thread",
    description="The retained checkpoints, newest first.",
    query=HistoryQuery, answers={200: list[AgentState]}, problems=("invalid",), replica=True,
)  # fmt: skip
SEARCH_HISTORY = _operation(
    "search_agent_history", "POST", "/threads/{thread_id}/history", "Search the states of a thread",
    description="The retained checkpoints, newest first.",
    body=HistorySearch, answers={200: (list[AgentState], list[Selected])}, **_READS,
)  # fmt: skip
READ_STATE_OF = _operation(
    "get_agent_state_of", "POST", "/threads/{thread_id}/state/checkpoint",
    "Read the state at a checkpoint object",
    body=StateAt, answers={200: (AgentState, Selected)}, **_READS,
)  # fmt: skip
READ_STATE_AT = _operation(
    "get_agent_state_at", "GET", "/threads/{thread_id}/state/{checkpoint_id}",
    "Read the state at a checkpoint",
    query=StateQuery, answers={200: (AgentState, Selected)}, problems=("invalid",),
)  # fmt: skip
READ_STATE = _operation(
    "get_agent_state", "GET", "/threads/{thread_id}/state", "Read the current state",
    query=StateQuery, answers={200: (AgentState, Selected)}, problems=("invalid",),
)  # fmt: skip
UPDATE_STATE = _operation(
    "update_agent_state", "POST", "/threads/{thread_id}/state", "Update the state",
    description="Writes `values` as a new checkpoint; with `checkpoint_id` or `checkpoint`, only if that "
    "is the newest. State does not branch: copy the thread instead.",
    body=StateUpdate, answers={200: StateUpdated},
    problems=("conflict", "revision-conflict", "quota-exceeded"),
)  # fmt: skip
GET_THREAD = _operation(
    "get_agent_thread", "GET", "/threads/{thread_id}", "Read a thread",
    description="The thread with its state and messages.",
    query=ThreadQuery, answers={200: AgentThreadWithMessages}, problems=("too-large",),
)  # fmt: skip
PATCH_THREAD = _operation(
    "patch_agent_thread", "PATCH", "/threads/{thread_id}", "Change a thread",
    description="Merges `metadata`, writes `values` as a new checkpoint and appends `messages`, all or "
    "nothing; with a `checkpoint`, only if that is the newest.",
    body=ThreadPatch, answers={200: AgentThreadWithMessages},
    problems=("conflict", "revision-conflict", "quota-exceeded"),
)  # fmt: skip
DELETE_THREAD = _operation(
    "delete_agent_thread", "DELETE", "/threads/{thread_id}", "Delete a thread",
    description="Deletes the thread with everything that belongs to it. Its children stay.",
    answers={204: None}, role=Role.ADMIN,
)  # fmt: skip
