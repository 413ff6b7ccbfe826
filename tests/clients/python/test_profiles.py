"""The typed layer over a real server: defaults, refusals, and edits that lose nothing."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from commonhold import (
    AsyncCommonhold,
    Commonhold,
    KeyDecode,
    NotRegistered,
    ProfileKey,
    SchemaConflict,
    StateScope,
    VersionConflict,
    profile_key,
)
from commonhold.calls import Call
from commonhold.namespaces import get_namespace

from project.env import BASE_DIR
from tests.builders import Person, make_namespace
from tests.clients.python.conftest import SWIFT
from tests.loops import run
from tests.patience import PATIENCE
from tests.project.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


class TeamContext(ProfileKey):
    goal: str = ""
    constraints: list[str] = []
    counts: dict[str, int] = {}


LOCALE = profile_key("locale", str, default="en-US")
SCOPE = StateScope.parent_thread("t1")


@pytest.fixture
def team(state: Commonhold) -> Commonhold:
    state.register(TeamContext, LOCALE)
    return state


def test_first_hour__example__runs_as_written(
    team: Commonhold, web: Running, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONHOLD_URL", f"http://127.0.0.1:{web.port}")
    monkeypatch.setenv("COMMONHOLD_TOKEN", alice.token)
    state = Commonhold.from_env()
    with state.edit(TeamContext, StateScope.parent_thread("t1")) as team_context:
        team_context.goal = "Ship the feature"
    assert state.get("team_context", "parent_thread::t1").value["goal"] == "Ship the feature"
    state.close()


@pytest.mark.parametrize(
    "path", ["docs/guides/typescript.md", "clients/typescript/examples/team.mjs"]
)
def test_register__namespace_of_the_typescript_example__is_accepted(
    state: Commonhold, alice: Person, path: str
) -> None:
    found = re.search(r"json_schema: (.*?),\n\}\);", (BASE_DIR / path).read_text(), re.DOTALL)
    assert found
    quoted = re.sub(r"(\w+):", r'"\1":', found[1])
    schema = json.loads(re.sub(r",(\s*\})", r"\1", quoted))
    default = {"goal": "", "constraints": []}
    make_namespace(alice.actor, "team_context", schema, default)
    state.register(TeamContext)
    # What the TypeScript client registers from a default alone.
    make_namespace(alice.actor, "locale", {}, "en-US")
    with pytest.raises(SchemaConflict, match="locale"):
        state.register(LOCALE)


def test_read__no_entry__returns_the_default_and_writes_nothing(team: Commonhold) -> None:
    assert team.read(TeamContext, SCOPE) == TeamContext()
    assert team.read(LOCALE, "alice") == "en-US"
    assert not team.get(TeamContext, SCOPE).exists
    team.write(LOCALE, "alice", "pt-PT")
    assert team.read(LOCALE, "alice") == "pt-PT"
    team.profile.delete(LOCALE, "alice")
    assert team.read(LOCALE, "alice") == "en-US"


def test_read__unregistered_namespace__raises_the_exact_error(state: Commonhold) -> None:
    with pytest.raises(NotRegistered, match=r"^profile key not registered: team_context"):
        state.read(TeamContext, SCOPE)


def test_read__value_invalid_under_the_schema__raises_instead_of_returning_the_default(
    team: Commonhold,
) -> None:
    team.namespaces.register("team_context", schema={}, default={}, replace=True)
    team.put("team_context", SCOPE, {"goal": "x", "extra": 1})
    strict = {"type": "object", "properties": {"extra": {"type": "string"}}}
    team.namespaces.register("team_context", schema=strict, default={}, replace=True)
    assert team.get("team_context", SCOPE).valid is False
    with pytest.raises(KeyDecode, match=r"^failed to decode key team_context: the stored value"):
        team.read(TeamContext, SCOPE)
    with pytest.raises(KeyDecode), team.edit(TeamContext, SCOPE):
        pass


def test_read__a_value_of_another_type__raises(team: Commonhold) -> None:
    team.namespaces.register("team_context", schema={}, default={}, replace=True)
    team.put("team_context", SCOPE, {"goal": 7})
    with pytest.raises(KeyDecode, match=r"^failed to decode key team_context: /goal: 7 is not"):
        team.read(TeamContext, SCOPE)


def test_edit__changes_nothing__writes_nothing(team: Commonhold) -> None:
    with team.edit(TeamContext, SCOPE):
        pass
    assert not team.get(TeamContext, SCOPE).exists
    with pytest.raises(ZeroDivisionError), team.edit(TeamContext, SCOPE) as half:
        half.goal = "half" * (1 // 0)
    assert not team.get(TeamContext, SCOPE).exists


def test_edit__unknown_members__are_kept(team: Commonhold) -> None:
    team.namespaces.register("team_context", schema={}, default={}, replace=True)
    team.put("team_context", SCOPE, {"goal": "a", "later": {"n": [1]}})
    with team.edit(TeamContext, SCOPE) as value:
        value.goal = "b"
    assert team.get(TeamContext, SCOPE).value["later"] == {"n": [1]}


@pytest.mark.parametrize("writers", [30, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_edit_by_function__many_concurrent__lose_nothing(team: Commonhold, writers: int) -> None:
    """Without compare-and-set, concurrent edits would lose updates."""
    together = threading.Barrier(writers)

    def count(n: int) -> None:
        together.wait(PATIENCE)

        def add(value: TeamContext) -> None:
            value.counts["all"] = value.counts.get("all", 0) + 1
            value.constraints.append(str(n))

        team.edit(TeamContext, SCOPE, add)

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(count, range(writers)))
    found = team.read(TeamContext, SCOPE)
    assert found.counts["all"] == writers
    assert sorted(found.constraints, key=int) == [str(n) for n in range(writers)]
    assert team.get(TeamContext, SCOPE).version == writers


def test_edit_by_function__always_conflicting__stops_at_the_limit(team: Commonhold) -> None:
    calls = []

    def slow(value: TeamContext) -> None:
        calls.append(value.goal)
        team.write(TeamContext, SCOPE, TeamContext(goal=f"theirs {len(calls)}"))
        value.goal = "mine"

    with pytest.raises(VersionConflict):
        team.edit(TeamContext, SCOPE, slow, attempts=3)
    assert calls == ["", "theirs 1", "theirs 2"]


def test_edit_by_function__returning_a_value__replaces_the_value(team: Commonhold) -> None:
    assert team.edit(LOCALE, "alice", lambda value: value.lower()) == "en-us"
    assert team.read(LOCALE, "alice") == "en-us"


def test_edit_by_block__concurrent_change_elsewhere__keeps_both(team: Commonhold) -> None:
    with team.edit(TeamContext, SCOPE) as mine:
        mine.goal = "mine"
        with team.edit(TeamContext, SCOPE) as theirs:
            theirs.counts["x"] = 1
    found = team.read(TeamContext, SCOPE)
    assert (found.goal, found.counts) == ("mine", {"x": 1})


def test_edit_by_block__concurrent_change_of_the_same_place__is_refused_with_the_place(
    team: Commonhold,
) -> None:
    block = team.edit(TeamContext, SCOPE)
    mine = block.__enter__()
    mine.goal = "mine"
    team.write(TeamContext, SCOPE, TeamContext(goal="theirs"))
    with pytest.raises(VersionConflict) as caught:
        block.__exit__(None, None, None)
    conflict = caught.value
    assert (conflict.expected, conflict.actual) == (0, 1)
    assert conflict.clashes == [
        {"pointer": "/goal", "base": "", "theirs": "theirs", "yours": "mine"}
    ]
    assert team.read(TeamContext, SCOPE).goal == "theirs"


def test_edit__async__by_block_and_by_function(
    team: Commonhold, web: Running, alice: Person
) -> None:
    async def work() -> Any:
        async with AsyncCommonhold(
            f"http://127.0.0.1:{web.port}", alice.token, retries=SWIFT
        ) as state:

            def add(value: TeamContext) -> None:
                value.counts["n"] = value.counts.get("n", 0) + 1

            async def write_elsewhere(_: TeamContext) -> TeamContext:
                await state.put(LOCALE, "ana", "en", if_version=99)
                return TeamContext()

            async with state.edit(TeamContext, SCOPE) as value:
                value.goal = "async"

            async def add_later(value: TeamContext) -> None:
                await asyncio.sleep(0)
                add(value)

            edits = [state.edit(TeamContext, SCOPE, each) for each in (add, add_later) * 10]
            await asyncio.gather(*edits)
            with pytest.raises(VersionConflict) as stale:
                await state.edit(TeamContext, SCOPE, write_elsewhere)
            assert stale.value.expected == 99
            await state.write(LOCALE, "bob", "de")
            assert await state.read(LOCALE, "bob") == "de"
            return await state.read(TeamContext, SCOPE)

    found = run(work())
    assert (found.goal, found.counts) == ("async", {"n": 20})


# Registering in a rolling deployment -------------------------------------------------------------


class OldPlan(ProfileKey, key="plan"):
    goal: str = ""


class NewPlan(ProfileKey, key="plan"):
    goal: str = ""
    budget: float = 0.0


class OtherPlan(ProfileKey, key="plan"):
    goal: list[str] = []


def exchange(state: Commonhold) -> None:
    """Workers of both versions process each other's values."""
    with state.edit(NewPlan, "k") as new:
        new.goal, new.budget = "Ship", 5.5
    with state.edit(OldPlan, "k") as old:
        assert old.goal == "Ship"
        old.goal = "Rest"
    assert state.read(NewPlan, "k") == NewPlan("Rest", 5.5)
    state.write(OldPlan, "fresh", OldPlan("Old"))
    assert state.read(NewPlan, "fresh") == NewPlan("Old", 0.0)
    assert (state.read(NewPlan, "none"), state.read(OldPlan, "none").goal) == (NewPlan(), "")


@pytest.mark.parametrize("first", [OldPlan, NewPlan])
def test_register__old_and_new_workers_alternately__are_compatible(
    state: Commonhold, first: type[ProfileKey]
) -> None:
    (registered,) = state.register(first)
    for worker in (NewPlan, OldPlan, NewPlan, OldPlan):
        (accepted,) = state.register(worker)
        assert accepted.document == registered.document
    exchange(state)


def test_register__incompatible__raises_the_differences_and_changes_nothing(
    state: Commonhold,
) -> None:
    (registered,) = state.register(OldPlan)
    state.write(OldPlan, "k", OldPlan("Ship"))
    with pytest.raises(SchemaConflict, match="plan is registered with an incompatible") as caught:
        state.register(OtherPlan)
    assert caught.value.schema_version == registered.schema_version == 1
    assert {error["pointer"]: error["message"] for error in caught.value.errors} == {
        "/schema/properties/goal/type": 'registered: "string"; offered: "array"',
        "/schema/properties/goal/items": 'registered: nothing; offered: {"type":"string"}',
    }
    assert state.namespaces.get("plan").document == registered.document
    assert state.read(OldPlan, "k").goal == "Ship"


def test_register__another_default__is_a_difference(state: Commonhold) -> None:
    state.register(profile_key("language", str, default="de"))
    with pytest.raises(SchemaConflict) as caught:
        state.register(profile_key("language", str, default="en"))
    assert caught.value.errors == [
        {"pointer": "/default", "message": 'registered: "de"; offered: "en"'}
    ]


def test_register__replace__requires_the_version_and_keeps_other_settings(
    state: Commonhold,
) -> None:
    state.namespaces.register(
        "plan", description="kept", ttl_seconds=3600, history={"keep_last": 5}, replace=True
    )
    with pytest.raises(SchemaConflict):
        state.register(OldPlan)
    with pytest.raises(VersionConflict):
        state.register(OldPlan, replace=True, if_version=7)
    (replaced,) = state.register(OldPlan, replace=True, if_version=1)
    assert (replaced.schema_version, replaced.default) == (2, {"goal": ""})
    assert (replaced.description, replaced.ttl_seconds) == ("kept", 3600)
    assert replaced.document["history"] == {"keep_last": 5, "keep_seconds": None}
    (replaced,) = state.register(OtherPlan, replace=True)
    assert replaced.schema_version == 3
    assert state.register(OtherPlan, replace=True)[0].schema_version == 3
    (created,) = state.register(profile_key("absent", str, default=""), replace=True)
    assert created.schema_version == 1


def test_register__replace_while_the_description_changes__keeps_the_newer_one(
    state: Commonhold, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.register(OldPlan)
    send = state.send

    def send_after_change(call: Call[Any]) -> Any:
        if call.method == "PUT":
            stored = send(get_namespace("plan")).document
            body = {"schema": stored["schema"], "default": stored["default"]}
            changed = {"description": "newer", "history": {"keep_last": 5}}
            send(Call("PUT", "/namespaces/plan", dict, body=body | changed))
        return send(call)

    monkeypatch.setattr(state, "send", send_after_change)
    (replaced,) = state.register(OtherPlan, replace=True)
    assert (replaced.schema_version, replaced.document["description"]) == (2, "newer")
    assert replaced.document["history"] == {"keep_last": 5, "keep_seconds": None}


def test_register__async__behaves_like_sync(state: Commonhold, web: Running, alice: Person) -> None:
    state.register(OldPlan)

    async def work() -> tuple[int, int]:
        async with AsyncCommonhold(f"http://127.0.0.1:{web.port}", alice.token) as client:
            (accepted,) = await client.register(NewPlan)
            with pytest.raises(SchemaConflict):
                await client.register(OtherPlan)
            (replaced,) = await client.register(OtherPlan, replace=True)
            return accepted.schema_version, replaced.schema_version

    assert run(work()) == (1, 2)
