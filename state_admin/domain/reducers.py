"""How an update changes the value of a state key, and the keys of the runtime itself.

Not here: merging parallel batches (merging), and whether a result matches its schema (schemas).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from state_admin.domain import patches
from state_admin.domain.json_pointers import Budget, Mismatch, WorkingCopy
from state_admin.domain.lifecycle import RESUME_MODES, can_move
from state_admin.domain.values import JSON


class Reducer(StrEnum):
    """How `apply` combines a value with an update."""

    REPLACE = "replace"
    ADD = "add"
    MAX = "max"
    MIN = "min"
    APPEND = "append"
    UNION = "union"
    MERGE = "merge"
    JSON_PATCH = "json_patch"
    LIFECYCLE = "lifecycle"
    TOOL_CALLS = "tool_calls"


COMMUTATIVE: Final = frozenset({Reducer.ADD, Reducer.MAX, Reducer.MIN, Reducer.UNION})
"""The reducers that a client may mark commutative: the same result in any order (of a union: the
same members)."""


def _runtime_key(
    merge: str = "exclusive",
    scope: str = "run",
    reducer: Reducer | None = None,
    default: JSON = None,
) -> dict[str, Any]:
    """The definition of a runtime key. A commutative one without a reducer is an object of
    independent members."""
    if reducer is None and merge == "commutative":
        reducer, default = Reducer.MERGE, {}
    return {
        "reducer": (reducer or Reducer.REPLACE).value,
        "merge": merge,
        "scope": scope,
        "default": default,
        "persistent": True,
    }


RUNTIME_KEYS: Final[dict[str, dict[str, Any]]] = {
    "__runtime.run_lifecycle": _runtime_key(
        reducer=Reducer.LIFECYCLE,
        default={"run_id": "", "status": "running", "updated_at": 0, "step_count": 0},
    ),
    "__runtime.tool_call_states": _runtime_key(
        "commutative", "thread", reducer=Reducer.TOOL_CALLS, default={}
    ),
    "__runtime.active_agent": _runtime_key(scope="thread"),
    "__runtime.context_message_store": _runtime_key("commutative"),
    "__runtime.context_throttle": _runtime_key(),
    "__runtime.failed_scheduled_actions": _runtime_key(),
    "__runtime.inference_override_state": _runtime_key("commutative"),
    "__runtime.pending_scheduled_actions": _runtime_key(),
    "__runtime.pending_work": _runtime_key(),
    "__runtime.stop_condition_stats": _runtime_key(),
    "__runtime.tool_filter_state": _runtime_key("commutative"),
    "__context_compaction": _runtime_key(),
}
"""The runtime's own keys, defined as in the reference implementation. They exist in every workspace
and cannot be registered with another definition."""


EXTENSION_KEYS: Final = frozenset(
    {
        "permission_policy",
        "permission_overrides",
        "skills.visibility",
        "deferred_tools.registry",
        "deferred_tools.state",
        "deferred_tools.usage_stats",
        "deferred_tools.disc_beta",
    }
)
"""The keys of the reference's extensions that it marks commutative: objects of
independent members. A workspace has those that it registers."""


def may_commute(name: str, reducer: str) -> bool:
    """Whether a client may mark the key commutative: its reducer gives the same result in any
    order, or the reference implementation marks the key so, as it does its own keys."""
    return reducer in COMMUTATIVE or (name in EXTENSION_KEYS and reducer == Reducer.MERGE)


# Updates that change nothing, of the reducers that need a value of one type.
_NEUTRAL: Final[dict[str, JSON]] = {
    Reducer.ADD: 0,
    Reducer.MAX: 0,
    Reducer.MIN: 0,
    Reducer.APPEND: [],
    Reducer.UNION: [],
    Reducer.MERGE: {},
}


class UpdateRefused(ValueError):
    """The update is not valid for the reducer or the value. `str(e)` says why."""


def apply(reducer: str, value: JSON, update: JSON) -> JSON:
    """The value after one update; neither input is changed. Raises as Reduction.apply does."""
    reduction = Reduction(reducer, value)
    reduction.apply(update)
    return reduction.value


def check_default(reducer: str, default: JSON) -> None:
    """Raise UpdateRefused if the reducer accepts no update of a key that has this default."""
    if reducer in _NEUTRAL:
        apply(reducer, default, _NEUTRAL[reducer])


class Reduction:
    """A value to which updates are applied. Each update costs as much as it changes, not the size
    of the value."""

    def __init__(self, reducer: str, value: JSON, budget: Budget | None = None) -> None:
        """`budget` limits all reductions of a request together. UpdateRefused if the reducer does
        not exist."""
        try:
            self._reducer = Reducer(reducer)
        except ValueError:
            raise UpdateRefused(f"unknown reducer '{reducer}'") from None
        self._copy = WorkingCopy(value, budget)

    @property
    def value(self) -> JSON:
        return self._copy.document

    def apply(self, update: JSON) -> None:
        """Apply one update. The reduction must not be used after an error.

        A null value counts as 0, [] or {} where one is needed. `append` and `union` take a list of
        items, or one item that is not a list. `json_patch` takes RFC 6902 operations, or one.
        `lifecycle` and `tool_calls` take the forms of `_lifecycle` and `_tool_calls`. Raises
        UpdateRefused; a failing `test` of a JSON Patch raises patches.PatchTestFailed.
        """
        reducer = self._reducer
        try:
            if reducer in _FUNCTIONS:
                self._copy.put([], _FUNCTIONS[reducer](self.value, update))
            elif reducer is Reducer.JSON_PATCH:
                operations = [update] if isinstance(update, dict) else update
                patches.apply_json_patch(self._copy, operations)
            else:
                listed = reducer in (Reducer.APPEND, Reducer.UNION)
                if listed and not isinstance(update, list):
                    update = [update]
                patches.combine(self._copy, [], reducer.value, update)
        except (Mismatch, patches.PatchRefused) as error:
            raise UpdateRefused(str(error)) from None


def _lifecycle(value: JSON, update: JSON) -> JSON:
    """The lifecycle of the run in the state. The update is one of `{"start": {"run_id",
    "updated_at"}}`, `{"step_completed": {"updated_at"}}`, `{"set_waiting": {"reason"?,
    "updated_at"}}`, `{"set_running": {"updated_at"}}`, `{"done": {"reason", "updated_at"}}`;
    `updated_at` in milliseconds, `reason` a text of `lifecycle.status_reason`. Names may be written
    as the variants of the reference implementation (`StepCompleted`). An invalid transition leaves
    the value unchanged."""
    verb, body = _variant(update, _LIFECYCLE_VERBS)
    at = _require_member(body, "updated_at", int)
    # Earlier versions of the reference implementation had one member per kind of reason.
    old = {**RUNTIME_KEYS["__runtime.run_lifecycle"]["default"], **_object(value)}
    reason = old.pop("done_reason", None) or old.pop("pause_reason", None)
    reason = old.pop("status_reason", reason)
    if verb == "start":
        return _build_lifecycle(_require_member(body, "run_id", str), "running", None, at, 0)
    run_id, status = _require_member(old, "run_id", str), _require_member(old, "status", str)
    steps = _require_member(old, "step_count", int)
    if verb == "step_completed":
        return _build_lifecycle(run_id, status, reason, at, steps + 1)
    new = {"set_waiting": "waiting", "set_running": "running", "done": "done"}[verb]
    if not can_move(status, new):
        return value
    reason = None if verb == "set_running" else body.get("reason")
    if not isinstance(reason, (str, type(None))):
        raise UpdateRefused("lifecycle: 'reason' must be a string")
    return _build_lifecycle(run_id, new, reason, at, steps)


def _build_lifecycle(run_id: str, status: str, reason: str | None, at: int, steps: int) -> JSON:
    optional = {} if reason is None else {"status_reason": reason}
    return {"run_id": run_id, "status": status, **optional, "updated_at": at, "step_count": steps}


def _tool_calls(value: JSON, update: JSON) -> JSON:
    """The tool calls of a step by call id. The update is `{"put": {"call_id", "tool_name",
    "status", "updated_at", "arguments"?, "resume_mode"?, "suspension_id"?, "suspension_reason"?,
    "resume_input"?}}`, or `"clear"` (also `{"clear": …}`), which removes all. An invalid transition
    leaves the value unchanged."""
    verb, body = _variant({update: {}} if isinstance(update, str) else update, _TOOL_CALL_VERBS)
    if verb == "clear":
        return {}
    call_id = _require_member(body, "call_id", str)
    _require_member(body, "tool_name", str)
    _require_member(body, "updated_at", int)
    status = _require_member(body, "status", str)
    if status not in _TOOL_CALL_MOVES:
        raise UpdateRefused(f"tool_calls: unknown status '{status[:40]}'")
    call = {"arguments": None, "resume_mode": RESUME_MODES[0], **body}
    if call["resume_mode"] not in RESUME_MODES:
        raise UpdateRefused(f"tool_calls: 'resume_mode' must be one of {', '.join(RESUME_MODES)}")
    calls = _object(value)
    if call_id in calls:
        before = _require_member(_object(calls[call_id]), "status", str)
        if status != before and status not in _TOOL_CALL_MOVES.get(before, _ENDS):
            return value
    return {**calls, call_id: call}


def suspended_calls(value: JSON) -> dict[str, dict[str, JSON]]:
    """The calls in a value of `tool_calls` that wait for an answer. UpdateRefused if the value is
    malformed."""
    calls = {name: _object(call) for name, call in _object(value).items()}
    return {
        name: call
        for name, call in calls.items()
        if _require_member(call, "status", str) == "suspended"
    }


_ENDS: Final = {"succeeded", "failed", "cancelled"}
_TOOL_CALL_MOVES: Final[dict[str, set[str]]] = {
    "new": {"running", "suspended", "resuming", *_ENDS},
    "running": {"suspended", *_ENDS},
    "suspended": {"resuming", "cancelled"},
    "resuming": {"running", "suspended", *_ENDS},
    "succeeded": set(),
    "failed": set(),
    "cancelled": set(),
}
_TOOL_CALL_VERBS: Final = {"put": "put", "Put": "put", "clear": "clear", "Clear": "clear"}
_LIFECYCLE_VERBS: Final = {
    spelling: verb
    for verb in ("start", "step_completed", "set_waiting", "set_running", "done")
    for spelling in (verb, verb.title().replace("_", ""))
}


def _variant(update: JSON, verbs: dict[str, str]) -> tuple[str, dict[str, JSON]]:
    """The one verb of an update such as `{"start": {…}}`, and its body."""
    if isinstance(update, dict) and len(update) == 1:
        ((name, body),) = update.items()
        if name in verbs:
            if isinstance(body, dict) or verbs[name] == "clear":
                return verbs[name], body
            raise UpdateRefused(f"'{name}' must be an object")
    allowed = ", ".join(dict.fromkeys(verbs.values()))
    raise UpdateRefused(f"the update must be an object with exactly one of: {allowed}")


def _object(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, (dict, type(None))):
        raise UpdateRefused("the stored value must be an object for this reducer")
    return value or {}


def _require_member(body: dict[str, JSON], name: str, kind: type) -> Any:
    found = body.get(name)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise UpdateRefused(f"'{name}' must be {'a string' if kind is str else 'an integer'}")
    return found


_FUNCTIONS: Final[dict[Reducer, Callable[[JSON, JSON], JSON]]] = {
    Reducer.REPLACE: lambda value, update: update,
    Reducer.LIFECYCLE: _lifecycle,
    Reducer.TOOL_CALLS: _tool_calls,
}
