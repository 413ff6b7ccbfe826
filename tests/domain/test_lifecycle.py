"""Runs: legal moves and reasons."""

from __future__ import annotations

import pytest

from state_admin.domain.lifecycle import (
    ACTIVE,
    TERMINATION_TYPES,
    WAITING_REASONS,
    RunStatus,
    can_move,
    check_termination,
    check_waiting,
    status_reason,
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
def test_move__every_pair__is_as_the_contract_says(old: str, new: str) -> None:
    assert can_move(old, new) is (old == new or (old, new) in LEGAL)


@pytest.mark.parametrize(
    "pair", [("running", "flying"), ("flying", "running"), ("flying", "flying")]
)
def test_move__unknown_status__is_illegal(pair: tuple[str, str]) -> None:
    assert not can_move(*pair)


def test_active__statuses__are_all_but_done() -> None:
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
def test_termination__legal_reason__has_the_references_text(reason: object, text: str) -> None:
    assert check_termination(reason) == []
    assert status_reason("done", reason) == text


@pytest.mark.parametrize(
    ("reason", "where"),
    [
        (None, ""),
        ("natural_end", ""),
        ({}, "/type"),
        ({"type": "flying"}, "/type"),
        ({"type": ["error"]}, "/type"),
        ({"type": "suspended"}, "/type"),
        ({"type": "stopped"}, "/code"),
        ({"type": "stopped", "value": {}}, "/value/code"),
        ({"type": "stopped", "value": "x"}, "/value"),
        ({"type": "stopped", "code": "c", "detail": 1}, "/detail"),
        ({"type": "blocked", "value": 1}, "/value"),
        ({"type": "natural_end", "value": "x"}, "/value"),
    ],
)
def test_termination__broken_reason__is_told_where(reason: object, where: str) -> None:
    assert [fault.pointer for fault in check_termination(reason)] == [where]


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
def test_waiting__each_reason__has_the_references_text(reason: str, text: str) -> None:
    assert check_waiting({"reason": reason}) == []
    assert status_reason("waiting", {"reason": reason}) == text


def test_waiting__with_tickets__is_legal() -> None:
    ticket = {"ticket_id": "k", "tool_call_id": "c1", "tool_name": "refund", "arguments": {"a": 1}}
    more = {"tool_call_id": "c2", "tool_name": "t", "resume_mode": "pass_decision_to_tool",
            "response_schema": {"type": "object"}, "reason": "money", "expires_at": "2030-01-01T00:00:00Z"}  # fmt: skip
    assert check_waiting({"reason": "tool_permission", "tickets": [ticket, more]}) == []


@pytest.mark.parametrize(
    ("waiting", "where"),
    [
        (None, [""]),
        ({}, ["/reason"]),
        ({"reason": "flying"}, ["/reason"]),
        ({"reason": "rate_limit", "tickets": {}}, ["/tickets"]),
        ({"reason": "rate_limit", "tickets": [1]}, ["/tickets/0"]),
        ({"reason": "rate_limit", "tickets": [{}]}, ["/tickets/0/tool_call_id", "/tickets/0/tool_name"]),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "ticket_id": 1}]},
            ["/tickets/0/ticket_id"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "ticket_id": ""}]},
            ["/tickets/0/ticket_id"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "resume_mode": "x"}]},
            ["/tickets/0/resume_mode"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "response_schema": 1}]},
            ["/tickets/0/response_schema"],
        ),
        (
            {"reason": "rate_limit", "tickets": [{"tool_call_id": "c", "tool_name": "t", "ticket_id": "k"}] * 2},
            ["/tickets/1/ticket_id"],
        ),
    ],
)  # fmt: skip
def test_waiting__broken_body__is_told_where(waiting: object, where: list[str]) -> None:
    assert [fault.pointer for fault in check_waiting(waiting)] == where


def test_status_reason__while_running__is_none() -> None:
    assert status_reason("running", {"type": "cancelled", "reason": "rate_limit"}) is None
    assert status_reason("done", None) is None
    assert len(TERMINATION_TYPES) == 6
