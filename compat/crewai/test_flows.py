from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from commonhold import Commonhold, TooLarge, VersionConflict
from commonhold.crewai import CommonholdFlowPersistence
from crewai.flow import Flow, HumanFeedbackPending, persist, router, start
from crewai.flow.persistence.factory import set_flow_persistence_factory
from flows import (
    BOOKED,
    FEEDBACK,
    FLOWS,
    Planning,
    Reviewed,
    Trip,
    context,
    kickoff,
    persisted,
    resume,
    steps,
)

# Flows ----------------------------------------------------------------------------------------


def test_flow__typed_state__each_method_is_a_version(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    assert kickoff(Planning, persistence, id=flow_id, city="Porto") == 2
    entry = state.get(FLOWS, flow_id)
    assert entry.value == {"id": flow_id, "city": "Porto", "steps": 2, "said": []}
    assert Trip.model_validate(entry.value).steps == 2
    assert steps(state, flow_id) == ["plan", "book"]


def test_flow__dict_state__continues_in_another_process(
    persistence: CommonholdFlowPersistence, other: CommonholdFlowPersistence, flow_id: str
) -> None:
    @persisted
    class Counting(Flow):  # type: ignore[type-arg]
        @start()
        def count(self) -> int:
            self.state["n"] = self.state.get("n", 0) + 1
            return cast(int, self.state["n"])

    ran = [kickoff(Counting, each, id=flow_id) for each in (persistence, other, persistence)]
    assert ran == [1, 2, 3]


def test_flow__forked__leaves_the_source_as_it_was(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    kickoff(Planning, persistence, id=flow_id)
    flow = Planning(persistence=persistence, suppress_flow_events=True)
    assert flow.kickoff(restore_from_state_id=flow_id) == 4
    assert flow.state.id != flow_id
    assert state.get(FLOWS, flow_id).value["steps"] == 2
    assert state.get(FLOWS, flow.state.id).value["steps"] == 4


def test_flow__an_object_per_method__none_is_stale(state: Commonhold, flow_id: str) -> None:
    class Looping(Flow[Trip]):
        @start("again")
        @persist(CommonholdFlowPersistence(state))
        def first(self) -> None:
            self.state.steps += 1

        @router(first)
        @persist(CommonholdFlowPersistence(state))
        def second(self) -> str:
            return "again" if self.state.steps < 3 else "end"

    Looping(suppress_flow_events=True).kickoff(inputs={"id": flow_id})
    assert steps(state, flow_id) == ["first", "second"] * 3


def test_flow__30_parallel_methods__last_version_has_all(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    def method(n: int) -> Callable[[Any], Any]:
        async def run(self: Any) -> None:
            await asyncio.sleep(0)
            self.state.said.append(str(n))

        run.__name__ = f"step{n}"
        return start()(run)

    methods = [f"step{n}" for n in range(30)]
    body = {name: method(n) for n, name in enumerate(methods)}
    parallel: Any = persisted(type("Parallel", (Flow[Trip],), body))
    kickoff(parallel, persistence, id=flow_id)
    assert sorted(steps(state, flow_id)) == sorted(methods)
    newest = state.get(FLOWS, flow_id).value
    assert sorted(newest["said"], key=int) == [str(n) for n in range(30)]


def test_flow__async__saves_outside_of_the_event_loop(
    persistence: CommonholdFlowPersistence, flow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    save = CommonholdFlowPersistence.save_state

    def saved(self: Any, *arguments: Any, **named: Any) -> None:
        threads.append(threading.get_ident())
        save(self, *arguments, **named)

    monkeypatch.setattr(CommonholdFlowPersistence, "save_state", saved)

    async def run() -> int:
        flow = Planning(persistence=persistence, suppress_flow_events=True)
        await flow.kickoff_async(inputs={"id": flow_id})
        return threading.get_ident()

    loop = asyncio.run(run())
    assert len(threads) == 2
    assert loop not in threads


def test_flow__default_persistence__is_the_factorys(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    set_flow_persistence_factory(lambda: CommonholdFlowPersistence(state))
    try:
        paused = Reviewed(suppress_flow_events=True).kickoff(inputs={"id": flow_id})
    finally:
        set_flow_persistence_factory(None)
    assert isinstance(paused, HumanFeedbackPending)
    assert persistence.load_pending_feedback(flow_id) is not None


# Feedback -------------------------------------------------------------------------------------


def test_feedback__given_in_another_process__flow_continues(
    state: Commonhold,
    persistence: CommonholdFlowPersistence,
    other: CommonholdFlowPersistence,
    flow_id: str,
) -> None:
    paused = kickoff(Reviewed, persistence, id=flow_id, city="Lisbon")
    assert isinstance(paused, HumanFeedbackPending)
    waiting = state.get(FEEDBACK, flow_id)
    assert (waiting.value["message"], waiting.value["method_name"]) == ("Book it?", "draft")
    assert resume(Reviewed, other, flow_id, "yes") == "booked Lisbon"
    assert not state.get(FEEDBACK, flow_id).exists
    assert state.get(FLOWS, flow_id).value["said"] == ["yes"]
    assert steps(state, flow_id) == ["plan", "draft", "draft", "decide", "book"]
    with pytest.raises(ValueError, match="No pending feedback found"):
        Reviewed.from_pending(flow_id, persistence)


def test_feedback__asked_again_by_the_same_object__is_given(
    persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    kickoff(Reviewed, persistence, id=flow_id, city="Lisbon")
    flow = Reviewed.from_pending(flow_id, persistence, suppress_flow_events=True)
    for _ in range(2):
        assert isinstance(flow.resume("change it"), HumanFeedbackPending)
    assert resume(Reviewed, persistence, flow_id, "yes") == "booked Lisbon"


def test_feedback__state_corrected_meanwhile__flow_continues_with_it(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    kickoff(Reviewed, persistence, id=flow_id, city="Lisbon")
    state.patch(FLOWS, flow_id, {"city": "Porto"}, reason="Lisbon is full")
    assert resume(Reviewed, persistence, flow_id, "yes") == "booked Porto"


@pytest.mark.parametrize("same_process", [True, False])
def test_feedback__given_twice__flow_continues_once(
    persistence: CommonholdFlowPersistence,
    other: CommonholdFlowPersistence,
    flow_id: str,
    same_process: bool,
) -> None:
    kickoff(Reviewed, persistence, id=flow_id)
    backends = [persistence, persistence if same_process else other]
    flows = [Reviewed.from_pending(flow_id, each, suppress_flow_events=True) for each in backends]
    assert flows[0].resume("yes").startswith("booked")
    with pytest.raises((VersionConflict, RuntimeError), match="Another process has"):
        flows[1].resume("yes")
    assert BOOKED.count(flow_id) == 1


def test_feedback__state_is_refused__nothing_is_stored(
    state: Commonhold, persistence: CommonholdFlowPersistence, flow_id: str
) -> None:
    persistence.init_db()
    big = {"id": flow_id, "text": "x" * 1_100_000}
    with pytest.raises(TooLarge):
        persistence.save_pending_feedback(flow_id, context(flow_id), big)
    assert not state.get(FLOWS, flow_id).exists
    assert not state.get(FEEDBACK, flow_id).exists
