"""Filters and events of webhooks, and that their signatures follow the standard."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone

import pytest

from state_admin.domain import signatures, webhooks
from state_admin.domain.webhooks import Choice


@pytest.mark.parametrize(
    ("choice", "takes"),
    [
        (Choice(), True),
        (Choice(kinds=("entry.*",)), True),
        (Choice(kinds=("run.*", "entry.put")), True),
        (Choice(kinds=("run.*",)), False),
        (Choice(kinds=("entry",)), False),
        (Choice(namespaces=("team_*",)), True),
        (Choice(namespaces=("*",)), True),
        (Choice(namespaces=("team",)), False),
        (Choice(kinds=("entry.*",), namespaces=("other",)), False),
    ],
)
def test_choice__change_of_an_entry__is_matched_by_kind_and_namespace(
    choice: Choice, takes: bool
) -> None:
    assert choice.takes("entry.put", "team_context") is takes


def test_choice__namespaces_and_a_change_without_one__does_not_match() -> None:
    assert not Choice(namespaces=("*",)).takes("run.start", "")


@pytest.mark.parametrize(
    ("place", "subject"),
    [
        (("notes", "a/b c", "", ""), "state/notes/a%2Fb%20c"),
        (("notes", "", "", ""), "namespaces/notes"),
        (("", "", "t/1", ""), "threads/t%2F1"),
        (("", "", "t1", "r1"), "runs/r1"),
        (("", "token", "", ""), ""),
    ],
)
def test_subject__each_resource__is_its_path_in_the_api(
    place: tuple[str, str, str, str], subject: str
) -> None:
    assert webhooks.subject_of(*place) == subject


def test_cloud_event__without_subject__omits_it() -> None:
    event = webhooks.cloud_event(
        event_id="chg_1", source="/w", kind="commonhold.x", at=datetime(2026, 1, 2, tzinfo=UTC),
        data={},
    )  # fmt: skip
    assert event == {
        "specversion": "1.0",
        "id": "chg_1",
        "source": "/w",
        "type": "commonhold.x",
        "time": "2026-01-02T00:00:00.000000Z",
        "datacontenttype": "application/json",
        "data": {},
    }


def test_sign__example_of_the_standard__has_its_signature() -> None:
    """From the Standard Webhooks specification's reference libraries."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    signed = signatures.sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_sign__several_secrets__has_one_signature_each_in_order() -> None:
    both = signatures.sign([b"new", b"old"], "m", 1, b"{}")
    assert both.split(" ") == [signatures.sign([key], "m", 1, b"{}") for key in (b"new", b"old")]


def test_spell__secret__is_base64_with_the_prefix_of_the_standard() -> None:
    assert signatures.spell(b"\x00\xff") == "whsec_AP8="


def test_cloud_event__with_subject_and_sequence__has_both_and_the_time_in_utc() -> None:
    event = webhooks.cloud_event(
        event_id="chg_1",
        source="/w",
        kind="commonhold.x",
        at=datetime(2026, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))),
        data={"a": 1},
        subject="state/notes/k",
        sequence="007",
    )
    assert (event["subject"], event["sequence"]) == ("state/notes/k", "007")
    assert (event["time"], event["data"]) == ("2026-01-02T00:00:00.000000Z", {"a": 1})
