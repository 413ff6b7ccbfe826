"""Runs: valid transitions and reasons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from state_admin.domain.lifecycle import (
    ACTIVE,
    TERMINATION_TYPES,
    WAITING_REASONS,
    RunStatus,
    can_move,
    check_termination,
    check_waiting,
    format_duration,
    status_reason,
    stuck_reason,
)

LEGAL = {
    ("created", "running"),
    ("created", "done"),
    ("running", "waiting"),
    ("running", "done"),
    ("waiting", "running"),
    ("waiting", "done"),
}


@pytest.mark.parametrize("old", list(RunStatus))
@pytest.mark.parametrize("new", list(RunStatus))
def test_move__every_pair__is_valid_by_the_contract(old: str, new: str) -> None:
    assert can_move(old, new) is (old == new or (old, new) in LEGAL)


@pytest.mark.parametrize(
    "pair", [("running", "flying"), ("flying", "running"), ("flying", "flying")]
)
def test_move__unknown_status__is_invalid(pair: tuple[str, str]) -> None:
    assert not can_move(*pair)


def test_active__statuses__are_all_except_done() -> None:
    assert set(RunStatus) - {"done"} == ACTIVE


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ({"type": "natural_end"}, "natural"),
        ({"type": "behavior_requested"}, "behavior_requested"),
        ({"type": "plugin_requested"}, "behavior_requested"),
        ({"type": "cancelled"}, "cancelled"),
        ({"type": "blocked", "value": "policy"}, "blocked:policy"),
        ({"type": "blocked"}, "blocked"),
        ({"type": "error", "value": "boom"}, "error"),
        ({"type": "stopped", "value": {"code": "max_rounds", "detail": "9"}}, "stopped:max_rounds"),
        ({"type": "stopped", "code": "max_rounds"}, "stopped:max_rounds"),
    ],
)
def test_termination__valid_reason__has_the_text_of_the_reference_implementation(
    reason: object, text: str
) -> None:
    assert check_termination(reason) == []
    assert status_reason("done", reason) == text


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        (None, "must be an object with a type"),
        ("natural_end", "must be an object with a type"),
        (
            {},
            "/type: must be one of natural_end, behavior_requested, stopped, cancelled, blocked, error",
        ),
        (
            {"type": "flying"},
            "/type: must be one of natural_end, behavior_requested, stopped, cancelled, blocked, error",
        ),
        (
            {"type": ["error"]},
            "/type: must be one of natural_end, behavior_requested, stopped, cancelled, blocked, error",
        ),
        ({"type": "suspended"}, "/type: a suspended run must have the status waiting, not done"),
        ({"type": "stopped"}, "/code: must be a non-empty string"),
        ({"type": "stopped", "value": {}}, "/value/code: must be a non-empty string"),
        ({"type": "stopped", "value": "x"}, "/value: must be an object with a code"),
        ({"type": "stopped", "code": "c", "detail": 1}, "/detail: must be a string"),
        ({"type": "blocked", "value": 1}, "/value: must be a string"),
        ({"type": "natural_end", "value": "x"}, "/value: must be absent for natural_end"),
    ],
)
def test_termination__invalid_reason__is_located(reason: object, fault: str) -> None:
    assert [str(found) for found in check_termination(reason)] == [fault]


@pytest.mark.parametrize(
    ("reason", "text"),
    list(
        zip(
            WAITING_REASONS,
            ["suspended", "input_required", "awaiting_tasks", "external_event", "rate_limit", "manual_pause"],
            strict=True,
        )
    ),
)  # fmt: skip
def test_waiting__each_reason__has_the_text_of_the_reference_implementation(
    reason: str, text: str
) -> None:
    assert check_waiting({"reason": reason}) == []
    assert status_reason("waiting", {"reason": reason}) == text


def test_waiting__with_tickets__is_valid() -> None:
    ticket = {"ticket_id": "k", "tool_call_id": "c1", "tool_name": "refund", "arguments": {"a": 1}}
    more = {"tool_call_id": "c2", "tool_name": "t", "resume_mode": "pass_decision_to_tool", "on_expiry": "cancel",
            "response_schema": {"type": "object"}, "reason": "money", "expires_at": "2030-01-01T00:00:00Z"}  # fmt: skip
    waiting = {"reason": "tool_permission", "tickets": [ticket, more], "wake": "dispatch"}
    assert check_waiting(waiting) == []


@pytest.mark.parametrize(
    ("waiting", "faults"),
    [
        (None, ["must be an object with a reason"]),
        ({}, ["/reason: must be one of tool_permission, user_input, background_tasks, external_event, rate_limit, manual_pause"]),
        ({"reason": "flying"}, ["/reason: must be one of tool_permission, user_input, background_tasks, external_event, rate_limit, manual_pause"]),
        ({"reason": "rate_limit", "tickets": {}}, ["/tickets: must be an array"]),
        ({"reason": "rate_limit", "wake": "x"}, ["/wake: must be dispatch or absent"]),
        ({"reason": "rate_limit", "message": 1}, ["/message: must be a string"]),
        (
            {"reason": "rate_limit", "tickets": [
                {"tool_call_id": "c", "tool_name": "t", "reason": 1, "expires_at": 2, "on_expiry": "x"}
            ]},
            [
                "/tickets/0/reason: must be a string",
                "/tickets/0/expires_at: must be a string",
                "/tickets/0/on_expiry: must be one of keep, cancel",
            ],
        ),
        ({"reason": "rate_limit", "tickets": [1]}, ["/tickets/0: must be an object"]),
        (
            {"reason": "rate_limit", "a/b": 1, "tickets": [{"tool_call_id": "c", "tool_name": "t", "args": {}}]},
            [
                "/a~1b: unknown field; must be one of reason, message, deadline_at, wake, tickets",
                "/tickets/0/args: unknown field; must be one of ticket_id, tool_call_id, tool_name, arguments, reason, "
                "resume_mode, response_schema, expires_at, on_expiry",
            ],
        ),
        ({"reason": "rate_limit", "tickets": [{}]}, ["/tickets/0/tool_call_id: must be a non-empty string", "/tickets/0/tool_name: must be a non-empty string"]),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "ticket_id": 1}]},
            ["/tickets/0/ticket_id: must be a string"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "ticket_id": ""}]},
            ["/tickets/0/ticket_id: must be a non-empty string"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "resume_mode": "x"}]},
            ["/tickets/0/resume_mode: must be one of replay_tool_call, use_decision_as_tool_result, pass_decision_to_tool"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "response_schema": 1}]},
            ["/tickets/0/response_schema: must be a JSON Schema"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "ticket_id": "k"}] * 2},
            ["/tickets/1/ticket_id: two tickets have this id"],
        ),
    ],
)  # fmt: skip
def test_waiting__invalid_body__is_located(waiting: object, faults: list[str]) -> None:
    assert [str(found) for found in check_waiting(waiting)] == faults


def test_status_reason__while_running__is_none() -> None:
    assert status_reason("running", {"type": "cancelled", "reason": "rate_limit"}) is None
    assert status_reason("done", None) is None
    assert len(TERMINATION_TYPES) == 6


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (48 * 3600 - 1, "47 h"),
        (48 * 3600, "2 days"),
        (86400 * 1234, "1,234 days"),
    ],
)
def test_duration__any_length__is_in_its_largest_unit(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            {"status": "running", "lease_expires_at": NOW, "lease_seconds": 300},
            "silent for 5 min: no commit or heartbeat since 2026-01-31 11:55:00 UTC",
        ),
        ({"status": "running", "lease_expires_at": NOW + MINUTE, "lease_released_at": NOW}, ""),
        ({"status": "waiting", "lease_expires_at": NOW - MINUTE}, ""),
        (
            {"status": "running", "lease_released_at": NOW - 2 * MINUTE},
            "its lease was released 2 min ago and no worker has taken it over",
        ),
        ({"status": "created", "lease_released_at": NOW - 2 * MINUTE}, ""),
        (
            {"status": "waiting", "ticket_due_at": NOW},
            "a ticket expired undecided at 2026-01-31 12:00:00 UTC",
        ),
        ({"status": "waiting", "ticket_due_at": NOW + MINUTE}, ""),
        ({"status": "running", "ticket_due_at": NOW}, ""),
        (
            {"status": "waiting", "deadline_at": NOW - MINUTE},
            "waiting 1 min past its deadline of 2026-01-31 11:59:00 UTC",
        ),
        (
            {"status": "waiting", "deadline_at": NOW},
            "waiting 0 s past its deadline of 2026-01-31 12:00:00 UTC",
        ),
        ({"status": "waiting", "deadline_at": NOW + MINUTE}, ""),
        ({"status": "running", "deadline_at": NOW - MINUTE}, ""),
        (
            {"status": "running", "step_count": 1000, "max_rounds": 1000},
            "all of its 1,000 rounds are used: it has taken 1,000 steps",
        ),
        (
            {"status": "created", "step_count": 2, "max_rounds": 1},
            "all of its 1 rounds are used: it has taken 2 steps",
        ),
        ({"status": "running", "step_count": 9, "max_rounds": 10}, ""),
        ({"status": "running", "step_count": 9, "max_rounds": 0}, ""),
        ({"status": "running", "step_count": 9}, ""),
        (
            {"status": "running", "lease_expires_at": NOW},
            "silent for 0 s: no commit or heartbeat since 2026-01-31 12:00:00 UTC",
        ),
        ({"status": "created", "times_out_at": NOW}, "0 s over its time limit"),
        ({"status": "created", "times_out_at": NOW - MINUTE}, "1 min over its time limit"),
        ({"status": "created", "times_out_at": NOW + MINUTE}, ""),
        ({"status": "done", "times_out_at": NOW, "step_count": 2, "max_rounds": 1}, ""),
        (
            {"status": "waiting", "ticket_due_at": NOW, "times_out_at": NOW},
            "a ticket expired undecided at 2026-01-31 12:00:00 UTC; 0 s over its time limit",
        ),
    ],
)
def test_stuck__each_reason__has_a_text(run: dict[str, Any], text: str) -> None:
    assert stuck_reason(now=NOW, **run) == text
