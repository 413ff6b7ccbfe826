"""`wait=` on a claim, through the real server with a single thread: it waits without the thread."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from state_admin.models import Dispatch
from state_admin.services import dispatches
from tests.builders import Person, make_thread
from tests.patience import PATIENCE
from tests.project.running import Running, wait_for
from tests.services.test_dispatches import enqueue, take
from tests.streams.test_long_polls import connections

pytestmark = pytest.mark.django_db(transaction=True)

Post = Callable[..., http.client.HTTPConnection]


@pytest.fixture
def post(web: Running, alice: Person) -> Iterator[Post]:
    clients: list[http.client.HTTPConnection] = []

    def begin(path: str, body: Any) -> http.client.HTTPConnection:
        client = http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE)
        headers = {
            "Authorization": f"Bearer {alice.token}",
            "Content-Type": "application/json",
        }
        client.request("POST", f"/api/v1{path}", json.dumps(body), headers)
        clients.append(client)
        return client

    yield begin
    for client in clients:
        client.close()


def items(client: http.client.HTTPConnection) -> list[dict[str, Any]]:
    answer = client.getresponse()
    found: list[dict[str, Any]] = json.load(answer)["items"]
    assert answer.status == 200
    return found


def served(post: Post) -> bool:
    """Whether the one thread is free: the previous long poll does not use it."""
    return items(post("/dispatches/claim", {"agent_id": "nobody"})) == []


def test_claim__waiting__gets_dispatches_enqueued_meanwhile(alice: Person, post: Post) -> None:
    make_thread(alice.actor, "t1")
    poll = post("/dispatches/claim?wait=30", {"consumer": "patient", "lease_seconds": 60})
    assert served(post)
    made = enqueue(alice, {"n": 1})
    (got,) = items(poll)
    assert (got["id"], got["claimed_by"], got["payload"]) == (made, "patient", {"n": 1})


def test_claim__waiting_for_a_busy_thread__gets_the_next_when_it_is_free(
    alice: Person, post: Post
) -> None:
    make_thread(alice.actor, "t1")
    first, second = enqueue(alice), enqueue(alice)
    _, token = take(alice)
    poll = post("/dispatches/claim?wait=30", {"thread_id": "t1"})
    assert served(post)
    dispatches.ack_dispatch(actor=alice.actor, dispatch_id=first, claim_token=token)
    (got,) = items(poll)
    assert got["id"] == second


def test_claim__waiting_in_vain__is_empty_at_the_end(alice: Person, post: Post) -> None:
    assert items(post("/dispatches/claim?wait=1", {})) == []


def test_claims__two_waiting_for_one__one_gets_it(alice: Person, post: Post) -> None:
    make_thread(alice.actor, "t1")
    make_thread(alice.actor, "t2")
    polls = [post("/dispatches/claim?wait=30", {"consumer": f"w{n}"}) for n in range(2)]
    assert served(post)
    first = enqueue(alice)
    wait_for(lambda: Dispatch.objects.get().status == "Claimed", "one gets it")
    second = enqueue(alice, thread="t2")
    got = [[row["id"] for row in items(poll)] for poll in polls]
    assert sorted(got) == sorted([[first], [second]])
    assert {row.attempts for row in Dispatch.objects.all()} == {0}
    wait_for(lambda: connections("web") <= 3, "nobody holds a connection")
