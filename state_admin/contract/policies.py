"""Compaction policies: when and how threads are compacted, by workspace, agent and thread."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain import policies as domain
from state_admin.domain import values
from state_admin.domain.access import Role

from .base import Answer, Body, DryRun, Operation, Page, doc
from .types import AgentId, JsonIn, JsonOut, ThreadId, Time, Version, json_of

if TYPE_CHECKING:
    from state_admin.services.policies import PolicyView

MaxContextTokens = Annotated[
    int, doc("Size of the context window of the model, in estimated tokens.", 200_000, ge=1)
]
MaxOutputTokens = Annotated[
    int, doc("Part of the window that is reserved for the model's output, in tokens.", 16_384, ge=1)
]
Threshold = Annotated[
    int,
    doc(
        "Size of the context, in estimated tokens, from which it is compacted automatically;"
        " null: never by size.",
        60_000,
        ge=1,
    ),
]
Hours = Annotated[
    int,
    doc(
        "Compact a thread with new messages when its last compaction is so many hours old; null:"
        " never by schedule.",
        24,
        ge=1,
        le=8_760,
    ),
]
Mode = Annotated[
    Literal["keep_recent_raw_suffix", "compact_to_safe_frontier"],
    doc(
        "How many of the newest messages are retained: `raw_suffix_messages`, or with"
        " `compact_to_safe_frontier` the number `min_recent_messages`.",
        "keep_recent_raw_suffix",
    ),
]
SuffixMessages = Annotated[
    int, doc("Newest messages that are retained with `mode` `keep_recent_raw_suffix`.", 2, ge=0)
]
RecentMessages = Annotated[
    int,
    doc(
        "Newest messages that are retained with `mode` `compact_to_safe_frontier`, and within a"
        " long turn.",
        10,
        ge=0,
    ),
]
GainTokens = Annotated[
    int, doc("Fewest estimated tokens of messages that are worth a summary.", 1_024, ge=0)
]
_RATIO = doc(
    "Smallest share of the summarized tokens, from 0 to 1, that a summary must save; one that saves"
    " less is discarded.",
    0.3,
    schema={"type": "number", "minimum": 0, "maximum": 1},
)
Summarizer = Annotated[
    Literal["extractive", "model"],
    doc(
        "What writes the summary: `extractive` needs no model, `model` calls `summary_model`; null:"
        " `extractive`.",
        "model",
    ),
]
SummaryModel = Annotated[
    str,
    doc(
        "Id of the model, in `config.models`, that writes the summary; null: none.",
        "small",
        min_length=1,
        max_length=128,
    ),
]
SummaryTokens = Annotated[
    int, doc("Largest size of a summary, in estimated tokens; longer ones are cut.", 1_024, ge=1)
]
Prompt = Annotated[
    str,
    doc(
        "Instructions for the model; null: the built-in instructions.",
        "Summarize the conversation. Keep every id.",
        min_length=1,
        max_length=domain.LONGEST_PROMPT,
    ),
]
Fallback = Annotated[
    Literal["extractive"],
    doc(
        "What writes the summary when the model is not available; null: nothing, the compaction"
        " fails.",
        "extractive",
    ),
]
KeepLast = Annotated[
    int,
    doc(
        "Snapshots of a thread to retain, the newest; null: none are removed automatically, and 100"
        " are retained on request.",
        100,
        ge=1,
    ),
]
KeepEvery = Annotated[
    int, doc("Also retain every revision that is a multiple of this number; null: none.", 10, ge=1)
]


class PolicyFields(Body):
    """The fields that a scope sets. The others come from the scope below it: the agent's policy
    below the thread's, the workspace's below the agent's, and the defaults. Null sets a field to
    null whatever the scopes below it set."""

    max_context_tokens: MaxContextTokens | UnsetType = UNSET
    max_output_tokens: MaxOutputTokens | UnsetType = UNSET
    autocompact_threshold: Threshold | UnsetType | None = UNSET
    every_hours: Hours | UnsetType | None = UNSET
    mode: Mode | UnsetType = UNSET
    raw_suffix_messages: SuffixMessages | UnsetType = UNSET
    min_recent_messages: RecentMessages | UnsetType = UNSET
    min_gain_tokens: GainTokens | UnsetType = UNSET
    min_savings_ratio: Annotated[JsonIn, _RATIO] | UnsetType = UNSET
    summarizer: Summarizer | UnsetType | None = UNSET
    summary_model: SummaryModel | UnsetType | None = UNSET
    summary_max_tokens: SummaryTokens | UnsetType = UNSET
    prompt: Prompt | UnsetType | None = UNSET
    fallback: Fallback | UnsetType | None = UNSET
    snapshot_keep_last: KeepLast | UnsetType | None = UNSET
    snapshot_keep_every: KeepEvery | UnsetType | None = UNSET


class EffectivePolicy(Answer):
    """All fields of a policy."""

    max_context_tokens: MaxContextTokens
    max_output_tokens: MaxOutputTokens
    autocompact_threshold: Threshold | None
    every_hours: Hours | None
    mode: Mode
    raw_suffix_messages: SuffixMessages
    min_recent_messages: RecentMessages
    min_gain_tokens: GainTokens
    min_savings_ratio: Annotated[JsonOut, _RATIO]
    summarizer: Summarizer | None
    summary_model: SummaryModel | None
    summary_max_tokens: SummaryTokens
    prompt: Prompt | None
    fallback: Fallback | None
    snapshot_keep_last: KeepLast | None
    snapshot_keep_every: KeepEvery | None

    @classmethod
    def of(cls, policy: domain.Policy) -> Self:
        ratio = json_of(values.dump(policy.min_savings_ratio))
        return cls(**{**policy.to_json(), "min_savings_ratio": ratio})


Sources = Annotated[
    dict[str, str],
    doc(
        "Where the value of each field comes from: `default`, `workspace`, `agent`, `thread`, or"
        " `model` where the window of the agent's model is smaller.",
        {"autocompact_threshold": "workspace", "mode": "default"},
    ),
]


class CompactionPolicy(Answer):
    """The policy of one scope, and the policy that results for it."""

    scope: Annotated[
        str, doc("What has the policy.", "agent", choices=("workspace", "agent", "thread"))
    ]
    agent_id: Annotated[AgentId | None, doc("The agent; null in the other scopes.", "planner")]
    thread_id: Annotated[ThreadId | None, doc("The thread; null in the other scopes.", None)]
    policy: Annotated[
        JsonOut,
        doc(
            "The fields that this scope sets; `{}` if none.",
            {"autocompact_threshold": 60_000},
            schema={"type": "object"},
        ),
    ]
    effective: Annotated[EffectivePolicy, doc("The policy that applies to this scope.")]
    sources: Sources
    version: Annotated[
        Version, doc("Version of the policy, of a thread that of the thread; 0: never set.")
    ]
    updated_at: Annotated[
        Time | None, doc("When the policy was set; null if never, and in the thread scope.")
    ]
    updated_by: Annotated[
        str | None, doc("Who set it; null if nobody, and in the thread scope.", "alice")
    ]

    @classmethod
    def of(cls, view: PolicyView) -> Self:
        return cls.from_attributes(
            view,
            agent_id=view.name if view.scope == "agent" else None,
            thread_id=view.name if view.scope == "thread" else None,
            policy=json_of(view.body),
            effective=EffectivePolicy.of(view.effective.policy),
            sources=view.effective.sources,
            updated_by=view.updated_by or None,
        )


_operation = partial(Operation, tag="compaction policies")
LIST_POLICIES = _operation(
    id="list_policies",
    route="GET /compaction-policies",
    summary="List compaction policies",
    description="The policy of the workspace and those of agents, on one page. The policy of a"
    " thread is read at its own path.",
    answers={200: Page[CompactionPolicy]},
)


def _operations(
    scope: str, path: str, role: Role, problems: tuple[str, ...] = ()
) -> tuple[Operation, Operation, Operation]:
    """Read, replace and delete the policy of a scope."""
    path = f"/compaction-policies/{path}"
    absent = ("not-found",) if scope == "thread" else ()
    return (
        _operation(
            id=f"get_{scope}_policy",
            route=f"GET {path}",
            summary=f"Read the compaction policy of {_NAMES[scope]}",
            description="Returns the fields that it sets, and the policy that applies, with the"
            " source of each field.",
            answers={200: CompactionPolicy},
            problems=("invalid",) if scope == "agent" else (),
            etag=True,
        ),
        _operation(
            id=f"put_{scope}_policy",
            route=f"PUT {path}",
            summary=f"Replace the compaction policy of {_NAMES[scope]}",
            description="Fields that the body leaves out are no longer set. Queued compactions keep"
            " the policy with which they were requested. Setting `snapshot_keep_last` or"
            " `snapshot_keep_every` requires the role admin.",
            role=role,
            body=PolicyFields,
            answers={200: CompactionPolicy},
            headers=("If-Match",),
            problems=("version-conflict", *problems),
            etag=True,
        ),
        _operation(
            id=f"delete_{scope}_policy",
            route=f"DELETE {path}",
            summary=f"Delete the compaction policy of {_NAMES[scope]}",
            description="None of its fields is set any more.",
            role=role,
            answers={204: None},
            headers=("If-Match",),
            dry_run=DryRun,
            problems=("version-conflict", *absent),
        ),
    )


_NAMES = {"workspace": "the workspace", "agent": "an agent", "thread": "a thread"}
GET_WORKSPACE_POLICY, PUT_WORKSPACE_POLICY, DELETE_WORKSPACE_POLICY = _operations(
    "workspace", "workspace", Role.ADMIN
)
GET_AGENT_POLICY, PUT_AGENT_POLICY, DELETE_AGENT_POLICY = _operations(
    "agent", "agents/{agent_id}", Role.ADMIN, ("quota-exceeded",)
)
GET_THREAD_POLICY, PUT_THREAD_POLICY, DELETE_THREAD_POLICY = _operations(
    "thread", "threads/{thread_id}", Role.EDITOR, ("not-found",)
)
