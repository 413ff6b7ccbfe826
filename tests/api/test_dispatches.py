"""The mailbox over HTTP: formats, refusals, pages. Its behaviour is tested in tests/services."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.models import Dispatch
from tests.builders import Person, make_run
from tests.services.test_dispatches import box

__all__ = ["box"]


def enqueue(person: Person, thread: str = "t1", **body: Any) -> str:
    answer = person.api("POST", f"/threads/{thread}/dispatches", body)
    assert answer.status_code == 201, answer.content
    made: str = answer.json()["id"]
    assert answer["Location"] == f"/api/v1/dispatches/{made}"
    return made


def claim(person: Person, **body: Any) -> list[dict[str, Any]]:
    answer = person.api("POST", "/dispatches/claim", body)
    assert answer.status_code == 200, answer.content
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_dispatch__from_enqueue_to_ack__each_response_has_its_documented_form(box: Person) -> None:
    make_run(box.actor, "t1", "r1", agent_id="planner")
    made = enqueue(box, payload={"n": 1}, run_id="r1", priority=5, dedupe_key="d")
    (got,) = claim(box, consumer="w1", lease_seconds=60)
    assert {
        name: got[name]
        for name in ("id", "thread_id", "run_id", "agent_id", "payload", "priority", "dedupe_key")
    } == {
        "id": made,
        "thread_id": "t1",
        "run_id": "r1",
        "agent_id": "planner",
        "payload": {"n": 1},
        "priority": 5,
        "dedupe_key": "d",
    }
    assert (got["status"], got["claimed_by"], got["attempts"]) == ("Claimed", "w1", 0)
    token = {"claim_token": got["claim_token"]}
    longer = box.api("POST", f"/dispatches/{made}/extend", {**token, "lease_seconds": 600}).json()
    assert longer["lease_until"] > got["lease_until"]
    assert "claim_token" not in longer
    acked = box.api("POST", f"/dispatches/{made}/ack", token).json()
    assert (acked["status"], acked["claimed_by"], acked["lease_until"]) == ("Acked", None, None)
    assert box.api("GET", f"/dispatches/{made}").json() == acked


def test_enqueue__payload__is_kept_byte_for_byte(box: Person) -> None:
    text = '{"b":1.10,"a":[1e2, 12345678901234567890]}'
    body = f'{{"payload": {text}}}'.encode()
    made = box.api("POST", "/threads/t1/dispatches", body).json()["id"]
    assert text in box.api("GET", f"/dispatches/{made}").content.decode()
    assert text in box.api("POST", "/dispatches/claim", {}).content.decode()


def test_nack__until_it_is_a_dead_letter__can_be_replayed_and_cleared(box: Person) -> None:
    made = enqueue(box, max_attempts=1)
    (got,) = claim(box)
    body = {"claim_token": got["claim_token"], "error": "boom", "retry_after": 5}
    dead = box.api("POST", f"/dispatches/{made}/nack", body).json()
    assert (dead["status"], dead["attempts"], dead["last_error"]) == ("DeadLetter", 1, "boom")
    letters = box.api("GET", "/dispatches?status=DeadLetter").json()["items"]
    assert [row["id"] for row in letters] == [made]
    again = box.api("POST", f"/dispatches/{made}/replay").json()
    assert (again["status"], again["attempts"], again["replays"]) == ("Queued", 0, 1)
    box.api("POST", f"/dispatches/{made}/cancel")
    Dispatch.objects.update(status="DeadLetter")
    assert box.api("POST", "/dispatches/clear?dry_run=true", {}).json() == {
        "deleted": 0,
        "matched": 1,
        "dry_run": True,
    }
    assert box.api("POST", "/dispatches/replay", {"thread_id": "t1"}).json() == {"replayed": 1}
    assert box.api("POST", "/dispatches/clear", {}).json()["deleted"] == 0


def test_interrupt__response__names_the_active_dispatch_without_its_token(box: Person) -> None:
    enqueue(box), enqueue(box)
    (got,) = claim(box)
    done = box.api("POST", "/threads/t1/interrupt").json()
    assert (done["thread_id"], done["epoch"], done["superseded_dispatches"]) == ("t1", 1, 1)
    assert done["active"]["id"] == got["id"]
    assert "claim_token" not in done["active"]
    assert box.api("POST", "/threads/t1/interrupt").json()["superseded_dispatches"] == 0
    answer = box.api("POST", f"/dispatches/{got['id']}/ack", {"claim_token": got["claim_token"]})
    assert answer.status_code == 409
    assert answer.json()["detail"] == f"dispatch superseded: {got['id']}"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"priority": 256}, "/priority"),
        ({"priority": -1}, "/priority"),
        ({"priority": "high"}, "/priority"),
        ({"max_attempts": 0}, "/max_attempts"),
        ({"available_at": "tomorrow"}, "/available_at"),
        ({"available_at": "2026-01-01T00:00:00"}, "/available_at"),
        ({"available_at": "2026-13-01T00:00:00Z"}, "/available_at"),
        ({"dedupe_key": "x" * 257}, "/dedupe_key"),
        ({"run_id": "nope"}, "/run_id"),
        ({"payload": {"a": ["\u0000"]}}, "/payload/a/0"),
    ],
)
def test_enqueue__bad_field__is_named_by_its_pointer(box: Person, body: Any, pointer: str) -> None:
    answer = box.api("POST", "/threads/t1/dispatches", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert not Dispatch.objects.exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/threads/t1/dispatches", {"colour": 1}),
        ("/dispatches/claim", {"colour": 1}),
        ("/dispatches/x/ack", {"claim_token": "t", "colour": 1}),
        ("/dispatches/clear", {"colour": 1}),
        ("/dispatches/claim?colour=1", {}),
    ],
)
def test_unknown_field__anywhere__is_a_400(box: Person, path: str, body: Any) -> None:
    assert box.api("POST", path, body).status_code == 400


@pytest.mark.parametrize("token", [None, 1, "", "x" * 129, "\u0000"])
def test_ack__malformed_token__is_a_422(box: Person, token: Any) -> None:
    made = enqueue(box)
    answer = box.api("POST", f"/dispatches/{made}/ack", {"claim_token": token})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/claim_token"


def test_ack__token_with_lone_surrogates__is_refused(box: Person) -> None:
    made = enqueue(box)
    answer = box.api("POST", f"/dispatches/{made}/ack", b'{"claim_token": "\\ud800"}')
    assert answer.status_code in (409, 422)


def test_dedupe__while_open__is_a_409_that_names_the_open_one(box: Person) -> None:
    made = enqueue(box, dedupe_key="d")
    answer = box.api("POST", "/threads/t1/dispatches", {"dedupe_key": "d"})
    assert answer.status_code == 409
    problem = answer.json()
    assert problem["detail"] == "dispatch already enqueued: d"
    assert (problem["dispatch_id"], problem["dispatch_status"]) == (made, "Queued")


def test_enqueue__same_idempotency_key__is_enqueued_once(box: Person) -> None:
    answers = [
        box.api("POST", "/threads/t1/dispatches", {"payload": 1}, Idempotency_Key="k")
        for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert Dispatch.objects.count() == 1


def test_claim__wait_with_an_idempotency_key__is_refused(box: Person) -> None:
    enqueue(box)
    answer = box.api("POST", "/dispatches/claim?wait=1", {}, Idempotency_Key="k")
    assert answer.status_code == 400
    assert Dispatch.objects.get().status == "Queued"
    assert len(box.api("POST", "/dispatches/claim", {}, Idempotency_Key="k2").json()["items"]) == 1


def test_list__cursor_of_other_filters__is_refused(box: Person) -> None:
    ids = [enqueue(box, thread=t, agent_id=a) for t, a in (("t1", "x"), ("t1", "y"), ("t2", "x"))]
    everything = box.api("GET", "/dispatches").json()["items"]
    assert [row["id"] for row in everything] == ids[::-1]

    def listed(query: str) -> list[str]:
        return [row["id"] for row in box.api("GET", f"/dispatches?{query}").json()["items"]]

    assert listed("thread_id=t1") == [ids[1], ids[0]]
    assert listed("agent_id=x&thread_id=t1") == [ids[0]]
    assert listed("status=Claimed") == []
    first = box.api("GET", "/dispatches?thread_id=t1&limit=1").json()
    cursor = first["next_cursor"]
    assert listed(f"thread_id=t1&limit=1&cursor={cursor}") == [ids[0]]
    assert box.api("GET", f"/dispatches?thread_id=t2&cursor={cursor}").status_code == 400
    assert box.api("GET", "/dispatches?status=lost").status_code == 400
    assert box.api("GET", "/dispatches?colour=red").status_code == 400


def test_counts__by_status__include_zeros(box: Person) -> None:
    enqueue(box), enqueue(box), enqueue(box, thread="t2")
    claim(box, thread_id="t1")
    zero = {"Acked": 0, "Cancelled": 0, "Superseded": 0, "DeadLetter": 0}
    assert box.api("GET", "/dispatches/counts").json() == {"Queued": 2, "Claimed": 1, **zero}
    assert box.api("GET", "/dispatches/counts?thread_id=t2").json()["Queued"] == 1
