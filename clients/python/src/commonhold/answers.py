"""What the server answers, as read-only objects. `document` holds the JSON as it came, so a member
that this version of the package does not know is not lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from commonhold.calls import Call

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer:
    document: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        # A member that would be a Python keyword has an underscore behind it here.
        names = {each.name.removesuffix("_"): each.name for each in fields(cls)}
        del names["document"]
        members = {names[k]: _moment(k, v) for k, v in document.items() if k in names}
        return cls(document=document, **members)


def _moment(name: str, value: Any) -> Any:
    if isinstance(value, str) and (name in ("at", "lease_until") or name.endswith("_at")):
        return datetime.fromisoformat(value)
    return value


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list. Iterating gives its items. `next_cursor` fetches the next page and is None
    on the last one. `state.every(page)` gives the items of this page and of all that follow."""

    items: list[T]
    next_cursor: str | None
    call: Call[Page[T]] | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def next_call(self) -> Call[Page[T]] | None:
        """The call that fetches the next page, None on the last one."""
        if self.next_cursor is None:
            return None
        if self.call is None:
            raise ValueError("a page without the call that fetched it has no next page")
        cursor = {"cursor": self.next_cursor}
        if self.call.method == "GET":
            return replace(self.call, query={**self.call.query, **cursor})
        return replace(self.call, body={**self.call.body, **cursor})


def page_of(read: Callable[[dict[str, Any]], T]) -> Callable[[Any], Page[T]]:
    return lambda document: Page(
        [read(item) for item in document["items"]], document.get("next_cursor")
    )


@dataclass(frozen=True, kw_only=True)
class Entry(Answer):
    """An entry. Missing: `exists` is False, `value` the namespace's default, `version` 0. `registered`:
    in lists. `matches`: where the value meets a search, `{pointer, snippet}`."""

    namespace: str
    key: str
    value: Any = None
    version: int
    exists: bool = True
    valid: bool = True
    registered: bool = True
    schema_version: int = 0
    scope_kind: str = "custom"
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    actor: str = ""
    tags: list[str] = field(default_factory=list)
    pinned: bool = False
    size_bytes: int = 0
    estimated_tokens: int = 0
    redacted_at: datetime | None = None
    redacted_by: str | None = None
    matches: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Version(Answer):
    """One row of an entry's history."""

    version: int
    operation: str
    exists: bool
    value: Any = None
    actor: str = ""
    reason: str = ""
    request_id: str = ""
    run_id: str | None = None
    at: datetime
    actor_kind: str
    schema_version: int
    size_bytes: int
    pinned: bool
    redacted_at: datetime | None = None
    redacted_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Diff(Answer):
    """`patch`: RFC 6902; `rows`: for people, `{pointer, kind, before, after}`. `from_` and `to`: the
    versions or revisions that are compared."""

    patch: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    from_: int
    to: int


@dataclass(frozen=True, kw_only=True)
class Namespace(Answer):
    name: str
    schema: Any
    default: Any
    description: str
    plugin: str
    schema_version: int
    ttl_seconds: int | None
    max_value_bytes: int
    history: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class StateKeyInfo(Answer):
    """A state key as the server knows it."""

    key: str
    schema: Any
    default: Any
    merge: str
    scope: str
    reducer: str
    persistent: bool
    retain_on_uninstall: bool
    plugin: str
    description: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Thread(Answer):
    """A thread. `version` counts changes of its title, metadata, resource, parent and policy;
    `revision` those of its state."""

    id: str
    version: int
    revision: int
    message_count: int
    title: str = ""
    metadata: dict[str, Any]
    compaction_policy: dict[str, Any]
    context_tokens: int
    forked_from: dict[str, Any] | None = None
    resource_id: str | None = None
    parent_thread_id: str | None = None
    active_run_id: str | None = None
    latest_run_id: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Message(Answer):
    """A message; `document` is the message as it was sent, unknown members and all."""

    id: str
    seq: int
    role: str
    content: Any = None
    visibility: str = "all"
    run_id: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    created_at: datetime
    estimated_tokens: int
    compaction: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Appended(Answer):
    """`messages`: id and seq of each; `results`: what became of the operations."""

    message_count: int
    messages: list[dict[str, Any]]
    results: list[Outcome] = field(default_factory=list)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        made = super().read(document)
        results = [Outcome.read(each) for each in document.get("results", [])]
        object.__setattr__(made, "results", results)
        return made


@dataclass(frozen=True, kw_only=True)
class Context(Answer):
    """What a model should see: `messages`, summaries folded in, at most `max_tokens`."""

    thread_id: str
    messages: list[dict[str, Any]]
    estimated_tokens: int
    message_count: int
    left_out: int
    folded_to_seq: int | None


@dataclass(frozen=True, kw_only=True)
class Extensions(Answer):
    """A thread's state at one revision, in the reference's wire form."""

    revision: int
    extensions: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Run(Answer):
    id: str
    thread_id: str
    agent_id: str
    status: str
    waiting: Any = None
    termination_reason: Any = None
    origin: str = "user"
    metadata: dict[str, Any]
    step_count: int
    input_tokens: int
    output_tokens: int
    fencing_token: int
    last_revision: int
    stuck_reason: str | None = None
    lease_expires_at: datetime | None = None
    created_at: datetime
    finished_at: datetime | None = None
    started_at: datetime | None = None
    updated_at: datetime
    deadline_at: datetime | None = None
    times_out_at: datetime | None = None
    flagged_stuck_at: datetime | None = None
    cost_usd: str
    max_rounds: int
    start_revision: int
    parent_run_id: str | None = None
    parent_thread_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Committed(Answer):
    """What a commit made: the thread's new revision and message count, and the run after it."""

    revision: int
    message_count: int
    touched_keys: list[str]
    run: Run

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        made = super().read(document)
        object.__setattr__(made, "run", Run.read(document["run"]))
        return made


@dataclass(frozen=True, kw_only=True)
class Ticket(Answer):
    """A question to a person. `status`: pending, resumed, cancelled, void."""

    id: str
    run_id: str
    thread_id: str
    status: str
    tool_name: str
    tool_call_id: str
    arguments: Any = None
    payload: Any = None
    reason: str = ""
    decided_by: str | None = None
    decided_at: datetime | None = None
    expires_at: datetime | None = None
    created_at: datetime
    resume_mode: str
    response_schema: Any = None
    on_expiry: str


@dataclass(frozen=True, kw_only=True)
class Dispatch(Answer):
    """A unit of work. `claim_token` is there only for who claimed it."""

    id: str
    thread_id: str
    status: str
    payload: Any = None
    agent_id: str = ""
    run_id: str | None = None
    priority: int
    attempts: int
    max_attempts: int
    dedupe_key: str | None = None
    claim_token: str | None = None
    lease_until: datetime | None = None
    last_error: str | None = None
    available_at: datetime
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    claimed_at: datetime | None = None
    claimed_by: str | None = None
    epoch: int
    replays: int


@dataclass(frozen=True, kw_only=True)
class Change(Answer):
    """One change: what changed, not the value. `cursor` goes on exactly behind it."""

    cursor: str
    kind: str
    namespace: str | None = None
    key: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    version: int = 0
    actor: str = ""
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Outcome(Answer):
    """What became of one operation of a batch: `entry`, or `problem`."""

    status: int
    entry: Entry | None = None
    version: int | None = None
    problem: dict[str, Any] | None = None

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        made = super().read(document)
        if made.entry is not None:
            object.__setattr__(made, "entry", Entry.read(document["entry"]))
        return made


@dataclass(frozen=True, kw_only=True)
class ItemResult(Answer):
    """What a bulk operation did to one item; `problem` if it was refused."""

    id: str
    status: int
    problem: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Me(Answer):
    workspace: str
    actor: str
    actor_kind: str
    role: str
    namespaces: list[str]
    thread_prefixes: list[str]
