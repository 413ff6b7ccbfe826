"""Values of the client's typed layer as real pydantic models, against a running server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from commonhold import (
    AsyncCommonhold,
    Commonhold,
    Invalid,
    KeyDecode,
    MemoryBackend,
    ProfileAccess,
    profile_key,
)
from pydantic import BaseModel, Field


class Step(BaseModel):
    title: str
    done: bool = False


class Plan(BaseModel):
    goal: str = ""
    steps: list[Step] = Field(default_factory=list, max_length=200)
    count: int = Field(default=0, ge=0)


@pytest.fixture
def state() -> Iterator[Commonhold]:
    with Commonhold.from_env() as client:
        yield client


@pytest.fixture
def name(state: Commonhold) -> str:
    name = f"plans-{uuid.uuid4().hex}"
    state.register(profile_key(name, Plan, Plan()))
    return name


def test_model__nothing_stored__reads_as_its_default(state: Commonhold, name: str) -> None:
    assert state.read(profile_key(name, Plan, Plan()), "global") == Plan()


def test_model__edited__comes_back_as_a_model_with_its_parts(state: Commonhold, name: str) -> None:
    plans = profile_key(name, Plan, Plan())
    with state.edit(plans, "global") as plan:
        plan.goal = "Ship"
        plan.steps.append(Step(title="build"))
    read = state.read(plans, "global")
    assert read == Plan(goal="Ship", steps=[Step(title="build")])
    assert isinstance(read.steps[0], Step)


def test_schema__registered_from_the_model__is_kept_by_the_server(
    state: Commonhold, name: str
) -> None:
    for value in ({"goal": 7}, {"count": -1}, {"steps": [{"done": True}]}):
        with pytest.raises(Invalid, match="does not satisfy the schema"):
            state.put(name, "global", value)


def test_stored_value__not_of_the_model__is_said_and_never_replaced(
    state: Commonhold, name: str
) -> None:
    loose = f"{name}-loose"
    state.register(profile_key(loose, dict, {}))
    state.put(loose, "global", {"goal": 1})
    with pytest.raises(KeyDecode, match="goal"):
        state.read(profile_key(loose, Plan, Plan()), "global")
    assert state.get(loose, "global").value == {"goal": 1}


def test_edit__hundred_at_once__loses_nothing(name: str) -> None:
    plans = profile_key(name, Plan, Plan())

    def count(plan: Plan) -> None:
        plan.count += 1

    async def race() -> int:
        async with AsyncCommonhold.from_env() as state:
            await asyncio.gather(*(state.edit(plans, "race", count) for _ in range(100)))
            return (await state.read(plans, "race")).count

    assert asyncio.run(race()) == 100


def test_model__in_memory__needs_no_server() -> None:
    backend = MemoryBackend()
    plans = profile_key("plans", Plan, Plan())
    backend.register(plans)
    access = ProfileAccess(backend)
    with access.edit(plans, "k") as plan:
        plan.goal = "x"
    assert access.read(plans, "k") == Plan(goal="x")


class Named(BaseModel):
    home_city: str = Field("", alias="homeCity")
    steps: list[Step] = []


class Told(BaseModel):
    home_city: str = Field("", serialization_alias="homeCity")


def test_model__with_aliases__reads_what_it_wrote() -> None:
    backend = MemoryBackend()
    named, told = profile_key("named", Named), profile_key("told", Told)
    backend.register(named, told)
    access = ProfileAccess(backend)
    with access.edit(named, "k") as one, access.edit(told, "k") as other:
        one.home_city = other.home_city = "Lisbon"
    assert backend.get("named", "k").value == {"homeCity": "Lisbon", "steps": []}
    assert access.read(named, "k").home_city == "Lisbon"
    assert access.read(told, "k").home_city == "Lisbon"


def test_model__within_a_list__says_which_and_where() -> None:
    backend = MemoryBackend()
    steps = profile_key("steps", list[Step], [])
    backend.register(steps)
    backend.put("steps", "k", [{"title": "a"}, {"title": 7}])
    with pytest.raises(KeyDecode, match=r"^failed to decode key steps: /1/title: "):
        ProfileAccess(backend).read(steps, "k")


def test_command_line__put_and_get__speak_to_the_same_state(state: Commonhold, name: str) -> None:
    def commonhold(*arguments: str) -> str:
        command = [os.path.join(os.path.dirname(sys.executable), "commonhold"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    commonhold("put", name, "cli", '{"goal": "typed"}')
    assert '"typed"' in commonhold("get", name, "cli")
    assert state.read(profile_key(name, Plan, Plan()), "cli").goal == "typed"
