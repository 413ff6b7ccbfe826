"""States of the Agent Protocol that are read while they are deleted."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from state_admin.models import Revision, snapshots_sql
from state_admin.protocols.agent_protocol import states
from state_admin.services import snapshots, threads
from tests.builders import Person, commit, make_run, make_state_key, make_thread
from tests.services.racing import interleave

BASE = "/agent-protocol"


@pytest.fixture
def thread(alice: Person) -> Person:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"plan": 1}, messages=[{"role": "user", "content": "hi"}])
    return alice


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("owner", "name"), [(snapshots_sql, "read_state"), (states, "read_messages")]
)
def test_state__thread_deleted_while_it_is_read__is_not_found(
    thread: Person, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    delete = partial(threads.delete_thread, actor=thread.actor, thread_id="t1")
    with interleave(monkeypatch, owner, name, delete):
        answer = thread.api("GET", f"{BASE}/threads/t1/state")
    assert answer.status_code == 404, answer.text


def test_history__state_removed_while_it_is_read__has_the_others(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(thread.actor, "r1", {"plan": 2})
    read_kept = snapshots.read_kept

    def read_just_after_a_removal(*args: Any) -> Any:
        Revision.objects.filter(number=2).update(dropped=True)
        return read_kept(*args)

    monkeypatch.setattr(snapshots, "read_kept", read_just_after_a_removal)
    found = thread.api("GET", f"{BASE}/threads/t1/history").json()
    assert [each["checkpoint"]["checkpoint_id"] for each in found] == ["3", "1"]
