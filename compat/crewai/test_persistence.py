from __future__ import annotations

import copy
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, cast

import commonhold.crewai as adapter
import httpx2
import pytest
from commonhold import AsyncCommonhold, Commonhold, Invalid, InvalidArgument, VersionConflict
from commonhold.crewai import CommonholdFlowPersistence
from crewai.flow import Flow, listen, start
from crewai.flow.persistence import FlowPersistence, SQLiteFlowPersistence
from flows import (
    FLOWS,
    Planning,
    Trip,
    context,
    kickoff,
    persisted,
    steps,
)
from pydantic import BaseModel, Field, SecretStr

# Like CrewAI's own ----------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Inner(BaseModel):
    at: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)
    tags: set[str] = {"a"}


class Rich(BaseModel):
    id: str = "x"
    inner: Inner = Inner()
    colour: Colour = Colour.RED
    secret: SecretStr = SecretStr("hunter2")
    city: str = Field(default="Lisbon", serialization_alias="town")


STATES = [
    {"id": "x", "plain": [1, 2.5, None, True, "✈"], "nested": {"a": {"b": []}}},
    {
        "id": "x",
        "tuple": (1, 2),
        "set": {1},
        "model": Inner(),
        5: "five",
        "object": ValueError("e"),
    },
    Rich(),
    Trip(id="x", city="Lisbon"),
]


@pytest.mark.parametrize("value", STATES, ids=["dict", "no JSON", "rich model", "model"])
def test_persistence__same_calls__answers_like_sqlite(
    persistence: CommonholdFlowPersistence, flow_id: str, tmp_path: Path, value: Any
) -> None:
    def play(backend: FlowPersistence) -> list[Any]:
        asked = context(flow_id, metadata={"channel": 7}, trace_context=(1, 2))
        seen: list[Any] = [backend.load_state(flow_id), backend.load_pending_feedback(flow_id)]
        backend.clear_pending_feedback(flow_id)
        backend.save_state(flow_id, "plan", {"id": "x"})
        seen += [backend.load_state(flow_id), backend.load_pending_feedback(flow_id)]
        backend.save_state(flow_id, "book", value)
        seen.append(backend.load_state(flow_id))
        backend.save_pending_feedback(flow_id, asked, value)
        loaded = backend.load_pending_feedback(flow_id)
        assert loaded is not None
        assert loaded[1] == asked
        seen += [loaded[0], backend.load_state(flow_id)]
        backend.clear_pending_feedback(flow_id)
        return [*seen, backend.load_pending_feedback(flow_id), backend.load_state(flow_id)]

    theirs = json.loads(json.dumps(play(SQLiteFlowPersistence(str(tmp_path / "flows.db")))))
    assert play(persistence) == theirs


def test_save_state__secret__is_masked(
    persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    persistence.save_state(flow_id, "plan", Rich())
    persistence.save_pending_feedback(flow_id, context(flow_id), Rich().model_dump())
    found = persistence.load_state(flow_id)
    assert found is not None
    assert found["secret"] == "**********"
    assert Rich.model_validate(found).colour is Colour.RED


@pytest.mark.parametrize("value", [{"n": float("nan")}, {"n": "nul \0"}, {"n": "\ud800"}, [1]])
def test_save_state__no_json__is_refused_and_nothing_stored(
    persistence: CommonholdFlowPersistence, flow_id: str, value: Any
) -> None:
    with pytest.raises((Invalid, InvalidArgument, ValueError)):
        persistence.save_state(flow_id, "plan", value)
    assert persistence.load_state(flow_id) is None


def test_save_state__method_of_another_alphabet__is_the_reason(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    persistence.save_state(flow_id, "größe_测试", {"id": flow_id})
    assert steps(state, flow_id) == ["größe_测试"]


def test_save_state__answer_lost__is_one_version(
    state: Commonhold,
    persistence: CommonholdFlowPersistence,
    flow_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persistence.save_state(flow_id, "plan", {"id": flow_id})
    request, lost = state._http.request, []

    def lossy(**arguments: Any) -> httpx2.Response:
        answer = request(**arguments)
        if not lost:
            lost.append(answer)
            raise httpx2.ReadError("the answer was lost")
        return answer

    monkeypatch.setattr(state._http, "request", lossy)
    persistence.save_state(flow_id, "book", {"id": flow_id})
    assert lost
    assert steps(state, flow_id) == ["plan", "book"]


# Several writers ------------------------------------------------------------------------------


def test_save_state__another_process_has_saved__is_refused(
    state: Commonhold,
    persistence: CommonholdFlowPersistence,
    other: CommonholdFlowPersistence,
    flow_id: str,
) -> None:
    persistence.save_state(flow_id, "plan", {"id": flow_id, "by": "us"})
    assert other.load_state(flow_id) == {"id": flow_id, "by": "us"}
    other.save_state(flow_id, "book", {"id": flow_id, "by": "them"})
    with pytest.raises(VersionConflict, match="Another process has saved") as refused:
        persistence.save_state(flow_id, "book", {"id": flow_id, "by": "us"})
    assert 'inputs={"id": …}' in refused.value.hint
    assert state.get(FLOWS, flow_id).value["by"] == "them"
    persistence.load_state(flow_id)
    persistence.save_state(flow_id, "pay", {"id": flow_id, "by": "us"})
    assert steps(state, flow_id) == ["plan", "book", "pay"]


def test_save_state__person_has_changed_the_entry__is_not_overwritten(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    @persisted
    class Interrupted(Flow[Trip]):
        @start()
        def plan(self) -> None:
            self.state.steps += 1

        @listen(plan)
        def book(self) -> None:
            if self.state.steps == 1:
                state.patch(FLOWS, flow_id, {"city": "Porto"})

    with pytest.raises(
        RuntimeError, match=r"State persistence failed: .*Another process has saved"
    ):
        kickoff(Interrupted, persistence, id=flow_id)
    kickoff(Interrupted, persistence, id=flow_id)
    assert state.get(FLOWS, flow_id).value | {"said": 0} == {
        "id": flow_id,
        "city": "Porto",
        "steps": 2,
        "said": 0,
    }


def test_flow__deleted_while_it_runs__is_not_created_again(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    persistence.save_state(flow_id, "plan", {"id": flow_id})
    state.delete(FLOWS, flow_id)
    with pytest.raises(VersionConflict, match="or removed"):
        persistence.save_state(flow_id, "book", {"id": flow_id})
    assert persistence.load_state(flow_id) is None
    persistence.save_state(flow_id, "plan", {"id": flow_id})


def test_flow__started_by_10_processes_at_once__one_saves(flow_id: str) -> None:
    clients = [Commonhold.from_env() for _ in range(10)]
    backends = [CommonholdFlowPersistence(client) for client in clients]
    assert [each.load_state(flow_id) for each in backends] == [None] * 10

    def save(n: int) -> bool:
        try:
            backends[n].save_state(flow_id, "plan", {"id": flow_id, "n": n})
        except VersionConflict:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        saved = list(pool.map(save, range(10)))
    assert saved.count(True) == 1
    assert backends[0].load_state(flow_id) == {"id": flow_id, "n": saved.index(True)}
    for client in clients:
        client.close()


def test_save_state__without_refusal__last_wins_and_all_are_kept(
    state: Commonhold, other_process: Commonhold, flow_id: str
) -> None:
    ours = CommonholdFlowPersistence(state, refuse_stale=False)
    theirs = CommonholdFlowPersistence(other_process, refuse_stale=False)
    for backend, method in ((ours, "a"), (theirs, "b"), (ours, "c")):
        backend.save_pending_feedback(flow_id, context(flow_id), {"id": flow_id, "by": method})
        backend.load_pending_feedback(flow_id)
    assert ours.load_state(flow_id) == {"id": flow_id, "by": "c"}
    values = [each.value["by"] for each in state.history(FLOWS, flow_id, values=True)]
    assert values == ["c", "b", "a"]
    for backend in (ours, theirs):
        backend.clear_pending_feedback(flow_id)


def test_memory__more_flows_than_it_keeps__oldest_is_saved_without_precondition(
    state: Commonhold,
    persistence: CommonholdFlowPersistence,
    other: CommonholdFlowPersistence,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adapter, "_REMEMBERED", 2)
    ids = [f"compat-{uuid.uuid4()}" for _ in range(3)]
    for flow_id in ids:
        persistence.save_state(flow_id, "plan", {"id": flow_id})
        other.save_state(flow_id, "plan", {"id": flow_id})
    assert len(adapter._MEMORIES[state]._flows) == 2
    with pytest.raises(VersionConflict):
        persistence.save_state(ids[2], "book", {"id": ids[2]})
    persistence.save_state(ids[0], "book", {"id": ids[0]})


# Settings -------------------------------------------------------------------------------------


def test_state_type__schema__the_server_refuses_what_does_not_fit(
    state: Commonhold, flow_id: str
) -> None:
    name = f"compat{uuid.uuid4().hex[:8]}"
    backend = CommonholdFlowPersistence(state, namespace=name, state_type=Trip)
    assert kickoff(Planning, backend, id=flow_id) == 2
    assert state.namespaces.get(f"{name}.flows").schema["properties"]["steps"]["type"] == "integer"
    with pytest.raises(Invalid, match="/steps"):
        state.patch(f"{name}.flows", flow_id, {"steps": "two"})
    with pytest.raises(Invalid, match="/steps"):
        backend.save_state(flow_id, "book", {"id": flow_id, "steps": "two"})


def test_namespaces__of_two_apps__do_not_meet(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    apart = CommonholdFlowPersistence(state, namespace=f"compat{uuid.uuid4().hex[:8]}")
    persistence.save_state(flow_id, "plan", {"id": flow_id})
    assert apart.load_state(flow_id) is None


def test_persistence__as_json__has_its_settings_and_no_token(
    state: Commonhold, persistence: CommonholdFlowPersistence
) -> None:
    backend = CommonholdFlowPersistence(state, namespace="travel", refuse_stale=False)
    dumped = backend.model_dump(mode="json")
    assert dumped == {
        "persistence_type": "CommonholdFlowPersistence",
        "namespace": "travel",
        "refuse_stale": False,
    }
    flow = Planning(persistence=dumped, suppress_flow_events=True)
    assert isinstance(flow.persistence, CommonholdFlowPersistence)
    assert flow.persistence.model_dump() == dumped
    token = state._settings.headers[b"Authorization"].decode().removeprefix("Bearer ")
    declared = Planning.flow_definition().model_dump_json()
    assert '"CommonholdFlowPersistence"' in declared
    assert token not in declared + repr(backend) + flow.model_dump_json(include={"persistence"})


def test_persistence__copied__shares_the_client(
    persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    copied = [copy.deepcopy(persistence), persistence.model_copy(), copy.copy(persistence)]
    persistence.save_state(flow_id, "plan", {"id": flow_id})
    for each in copied:
        each.save_state(flow_id, "book", {"id": flow_id})


def test_persistence__without_a_client__all_objects_share_one() -> None:
    first, second = CommonholdFlowPersistence(), CommonholdFlowPersistence(namespace="travel")
    assert first._backend._client is second._backend._client


def test_persistence__token_may_not_register__error_names_the_namespace(
    state: Commonhold, flow_id: str
) -> None:
    token = state.request("POST", "/tokens", {"name": flow_id, "role": "editor"})["secret"]
    name = f"compat{uuid.uuid4().hex[:8]}"
    with Commonhold(state._settings.address, token) as editor:
        backend = CommonholdFlowPersistence(editor, namespace=name)
        with pytest.raises(
            adapter.NotRegistered, match="Register it once with a token of the role"
        ):
            backend.load_state(flow_id)
        CommonholdFlowPersistence(state, namespace=name).init_db()
        assert backend.load_state(flow_id) is None
        backend.save_state(flow_id, "plan", {"id": flow_id})


def test_persistence__mistaken_arguments__are_refused(
    state: Commonhold, persistence: CommonholdFlowPersistence
) -> None:
    with pytest.raises(InvalidArgument, match=r"^state must be a Commonhold, not AsyncCommonhold"):
        CommonholdFlowPersistence(cast(Any, AsyncCommonhold("http://127.0.0.1:1", "t")))
    with pytest.raises(InvalidArgument, match=r"^namespace must not be empty"):
        CommonholdFlowPersistence(state, namespace="")
    with pytest.raises(InvalidArgument, match=r"^state_type must be a pydantic model"):
        CommonholdFlowPersistence(state, state_type=dict)
    with pytest.raises(InvalidArgument, match=r"^flow_uuid must be a str, not 5"):
        persistence.load_state(cast(Any, 5))
    with pytest.raises(InvalidArgument, match="state_data must be a dict or a pydantic model"):
        persistence.save_state("f", "plan", cast(Any, "text"))
