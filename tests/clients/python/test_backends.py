"""The typed layer without a server: the backends for memory and files behave like the server."""

from __future__ import annotations

import enum
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import pytest
from commonhold import (
    KV,
    AsyncCommonhold,
    FileBackend,
    InvalidArgument,
    KeyDecode,
    KeyEncode,
    Kv,
    MemoryBackend,
    NotRegistered,
    ProfileAccess,
    ProfileKey,
    StateScope,
    VersionConflict,
    documents,
    profile_key,
    shapes,
)
from commonhold.documents import identity, same
from commonhold.three_way import merge
from hypothesis import given
from hypothesis import strategies as some

from project.env import BASE_DIR
from state_admin.domain import three_way as server
from state_admin.domain import values
from tests.domain.strategies import keyed_arrays
from tests.patience import PATIENCE

SOURCE = BASE_DIR / "clients" / "python" / "src"


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Place:
    city: str = ""
    floor: int | None = None


class Prefs(ProfileKey, key="user.prefs"):
    theme: Literal["dark", "light"] = "dark"
    mood: Mood = Mood.GOOD
    ratio: float = 1.0
    home: Place = None  # type: ignore[assignment]  # set in __post_init__, like a dataclass
    tags: list[str] = []
    seen: dict[str, int] = {}
    anything: Any = None

    def __post_init__(self) -> None:
        self.home = self.home or Place()


class TeamContext(ProfileKey):
    goal: str = ""
    count: int = 0


@pytest.fixture(params=["memory", "file"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryBackend | FileBackend:
    made = MemoryBackend() if request.param == "memory" else FileBackend(tmp_path)
    made.register(Prefs, TeamContext, KV)
    return made


def test_backend__changed_value_of_a_conflict__is_not_stored(
    backend: MemoryBackend | FileBackend,
) -> None:
    backend.put("team_context", "k", {"count": 1})
    with pytest.raises(VersionConflict) as refused:
        backend.put("team_context", "k", {"count": 2}, if_version=0)
    refused.value.theirs["count"] = 3
    assert backend.get("team_context", "k").value == {"count": 1}


def test_edit__no_attempts__is_refused(backend: MemoryBackend | FileBackend) -> None:
    access = ProfileAccess(backend)
    with pytest.raises(InvalidArgument), access.edit(TeamContext, "k", attempts=0) as team:
        team.goal = "lost"
    with pytest.raises(InvalidArgument):
        access.edit(TeamContext, "k", lambda team: TeamContext(goal="lost"), attempts=0)


def test_profile_key__of_a_class__has_its_namespace_and_its_own_default() -> None:
    assert (TeamContext.KEY, Prefs.KEY) == ("team_context", "user.prefs")
    one, other = Prefs(), Prefs(theme="light")
    one.tags.append("x")
    assert (other.tags, other.theme) == ([], "light")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"goal": ""}, "Bad.goal has no annotation and would not be stored"),
        ({"SCOPE": "thread"}, "Bad.SCOPE has no annotation and would not be stored"),
        ({"KEY": "other.name"}, "Bad.KEY: name the namespace in the class header"),
        ({"KEY": "bad", "__annotations__": {"KEY": str}}, "Bad.KEY: name the namespace"),
    ],
)
def test_profile_key__unsupported_attribute__is_refused_at_creation(
    attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match="^" + re.escape(message)):
        type("Bad", (ProfileKey,), attributes)


def test_profile_key__misspelled_attribute__is_refused_when_it_is_set() -> None:
    prefs = Prefs()
    prefs.theme = "light"
    with pytest.raises(
        AttributeError, match=r"^Prefs has no field 'tehme'; its fields are theme, "
    ):
        prefs.tehme = "dark"  # type: ignore[attr-defined]


def test_profile_key__methods_and_class_variables__are_allowed() -> None:
    class Budget(ProfileKey):
        cents: int = 0
        LIMIT: ClassVar[int] = 100

        @property
        def left(self) -> int:
            return self.LIMIT - self.cents

        @classmethod
        def full(cls) -> Budget:
            return cls(cents=cls.LIMIT)

    assert (Budget.KEY, Budget.full().left, Budget().left) == ("budget", 0, 100)


def test_scopes__of_each_kind__have_the_documented_keys() -> None:
    made = [
        StateScope.global_(),
        StateScope.parent_thread("p"),
        StateScope.agent_type("a"),
        StateScope.thread("t"),
        StateScope.new("x y"),
    ]
    assert made == ["global", "parent_thread::p", "agent_type::a", "thread::t", "x y"]
    assert made[0].as_str() == "global"


def test_write__then_read__returns_the_same_value(backend: MemoryBackend) -> None:
    access = ProfileAccess(backend)
    prefs = Prefs("light", Mood.BAD, 0.5, Place("Lisbon", 3), ["a"], {"x": 1}, [None, {"y": 1.5}])
    assert access.read(Prefs, "alice") == Prefs()
    access.write(Prefs, "alice", prefs)
    assert access.read(Prefs, "alice") == prefs
    access.delete(Prefs, "alice")
    access.delete(Prefs, "alice")
    assert access.read(Prefs, "alice") == Prefs()
    access.write(Prefs, "alice", prefs)
    assert backend.get(Prefs.KEY, "alice").version == 3, "an old version never means a new value"


def test_edit__a_function_in_place_of_the_scope__is_refused(backend: MemoryBackend) -> None:
    def forget_the_scope(prefs: Prefs) -> None:
        prefs.theme = "dark"

    edit: Any = ProfileAccess(backend).edit
    with pytest.raises(InvalidArgument, match=r"^scope must be a str, not function$"):
        edit(Prefs, forget_the_scope)
    edit = AsyncCommonhold("http://127.0.0.1:1", "ch_x").edit
    with pytest.raises(InvalidArgument, match=r"^scope must be a str, not function$"):
        edit(Prefs, forget_the_scope)


def test_errors__are_the_exact_texts(backend: MemoryBackend) -> None:
    access = ProfileAccess(backend)
    nobody = profile_key("nobody", str)
    for call in (
        lambda: access.read(nobody, "k"),
        lambda: access.write(nobody, "k", ""),
        lambda: access.delete(nobody, "k"),
    ):
        with pytest.raises(NotRegistered, match=r"^profile key not registered: nobody$"):
            call()
    backend.put(Prefs.KEY, "k", {"home": {"floor": "two"}})
    with pytest.raises(KeyDecode, match=r"^failed to decode key user\.prefs: /home/floor: 'two'"):
        access.read(Prefs, "k")
    with pytest.raises(
        KeyEncode, match=r"^failed to encode key user\.prefs: /anything: set is not JSON$"
    ):
        access.write(Prefs, "k", Prefs(anything={1}))
    for wrong in (int, "user.prefs"):
        with pytest.raises(TypeError, match=r"not a ProfileKey.*get, put and patch also take"):
            access.read(wrong, "k")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{"theme": "dark"}, Place(), "dark", None])
def test_write__value_of_another_class__is_refused(backend: MemoryBackend, value: Any) -> None:
    access = ProfileAccess(backend)
    access.write(Prefs, "k", Prefs(anything=1))
    message = f"^failed to encode key user.prefs: must be a Prefs, not {type(value).__name__}$"
    with pytest.raises(KeyEncode, match=message):
        access.write(Prefs, "k", value)
    if value is not None:  # None: the function changed its argument
        with pytest.raises(KeyEncode, match=message):
            access.edit(Prefs, "k", lambda _: value)
    assert access.read(Prefs, "k") == Prefs(anything=1)


def test_keys__similar__never_collide(backend: MemoryBackend) -> None:
    keys = ["thread::a", "thread__a", "thread//a", "../../etc", "A", "a", "x" * 512, "🙂"]
    for key in keys:
        backend.put("team_context", key, {"goal": key})
    assert [backend.get("team_context", key).value["goal"] for key in keys] == keys


def test_orphans__are_listed_and_cleared(backend: MemoryBackend) -> None:
    backend.put("user.prefs", "k", 1)
    backend.put("team_context", "k", 2)
    backend._registered.clear()
    listed = [(entry.namespace, entry.registered) for entry in backend.list_key("k")]
    assert listed == [("team_context", False), ("user.prefs", False)]
    assert backend.clear_key("k") == 2
    assert backend.list_key("k") == []


def test_compare_and_set__any_version__behaves_as_on_the_server(backend: MemoryBackend) -> None:
    backend.put("team_context", "k", 1, if_version=0)
    with pytest.raises(VersionConflict, match=r"^version conflict: expected 0, actual 1$"):
        backend.put("team_context", "k", 2, if_version=0)
    assert backend.put("team_context", "k", 2, if_version=1).version == 2


def test_edit__hundred_concurrent__lose_nothing(backend: MemoryBackend) -> None:
    access = ProfileAccess(backend)

    def add(value: TeamContext) -> None:
        value.count += 1

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: access.edit(TeamContext, "k", add), range(100)))
    assert access.read(TeamContext, "k").count == 100


def test_file__several_processes__lose_nothing(tmp_path: Path) -> None:
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from commonhold import FileBackend, ProfileAccess, profile_key
N = profile_key("n", int)
backend = FileBackend(sys.argv[2])
backend.register(N)
for _ in range(25):
    ProfileAccess(backend).edit(N, "k", lambda n: n + 1)
"""
    arguments = [sys.executable, "-c", program, str(SOURCE), str(tmp_path)]
    running = [subprocess.Popen(arguments) for _ in range(3)]
    assert [process.wait(PATIENCE) for process in running] == [0, 0, 0]
    backend = FileBackend(tmp_path)
    backend.register("n")
    assert (backend.get("n", "k").value, backend.get("n", "k").version) == (75, 75)


def test_file__namespaces_in_one_folder__do_not_overwrite_each_other(tmp_path: Path) -> None:
    """As on a file system that ignores case."""
    backend = FileBackend(tmp_path)
    backend.register("notes", "Notes")
    backend.put("notes", "k", 1)
    (tmp_path / "Notes").symlink_to("notes")
    for use in (lambda: backend.put("Notes", "k", 2), lambda: backend.get("Notes", "k")):
        with pytest.raises(ValueError, match="'notes' and 'Notes' share a folder"):
            use()
    assert backend.get("notes", "k").value == 1


def test_kv__agentkit_interface__works(backend: MemoryBackend) -> None:
    kv = Kv(backend, StateScope.thread("t1"))
    kv.set("user-name", "Alice")
    kv.set("files", {"a.py": "1"})
    assert kv.get("user-name") == "Alice"
    assert (kv.has("user-name"), kv.has("nobody"), kv.get("nobody")) == (True, False, None)
    assert (kv.delete("user-name"), kv.delete("user-name")) == (True, False)
    assert kv.all() == {"files": {"a.py": "1"}}


# Values --------------------------------------------------------------------------------------

TREES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=3),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(TREES, TREES)
def test_equality__of_two_values__is_that_of_the_server(one: Any, other: Any) -> None:
    assert same(one, other) == values.same(one, other)
    assert (identity(one) == identity(other)) == same(one, other)


def assert_merged_as_on_the_server(base: Any, theirs: Any, yours: Any) -> None:
    merged, clashes = merge(base, theirs, yours)
    stored, refused = server.merge(base, theirs, yours)
    assert same(merged, stored)
    assert list(map(astuple, clashes)) == list(map(astuple, refused))


@given(TREES, TREES, TREES)
def test_merge__of_any_three__gives_the_result_of_the_server(
    base: Any, theirs: Any, yours: Any
) -> None:
    assert_merged_as_on_the_server(base, theirs, yours)


@given(keyed_arrays, keyed_arrays, keyed_arrays)
def test_merge__of_arrays_with_identities__gives_the_result_of_the_server(
    base: Any, theirs: Any, yours: Any
) -> None:
    assert_merged_as_on_the_server(base, theirs, yours)


def test_merge__of_decimals__compares_by_value() -> None:
    base, theirs = [Decimal("1.0"), "a"], [1, "a", "b"]
    assert merge(base, theirs, [0, Decimal("1.00"), "a"]) == ([0, 1, "a", "b"], [])


@given(TREES)
def test_documents__any_value__round_trips(value: Any) -> None:
    assert same(documents.load(documents.dump(value)), value)


def test_schema__of_a_record__is_satisfied_by_its_values() -> None:
    schema = shapes.schema_of(Prefs)
    assert schema["properties"]["theme"] == {"enum": ["dark", "light"]}
    assert schema["properties"]["mood"] == {"enum": ["good", "bad"]}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["home"]["properties"]["floor"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}]
    }
    assert schema["properties"]["seen"]["additionalProperties"] == {"type": "integer"}


@pytest.mark.parametrize("document", [True, 1.5, "1", None, [], {}])
def test_build__integer_field__refuses_other_types(document: Any) -> None:
    with pytest.raises(ValueError, match="is not of type integer"):
        shapes.build(int, document)


def test_build__numbers__become_the_types_of_the_class() -> None:
    for kind, document, wanted in (
        (int, 1.0, "1"),
        (int, Decimal("2.0"), "2"),
        (float, Decimal("1.5"), "1.5"),
        (Decimal, 1.1, "1.1"),
        (Decimal, Decimal("1.10"), "1.10"),
    ):
        built: Any = shapes.build(kind, document)  # type: ignore[type-var]
        assert (type(built), str(built)) == (kind, wanted)


def test_edit__that_returns_another_record__keeps_unknown_members(
    backend: MemoryBackend,
) -> None:
    backend.put("team_context", "k", {"goal": "a", "later": 1})
    ProfileAccess(backend).edit(TeamContext, "k", lambda team: replace(team, goal="b"))
    assert backend.get("team_context", "k").value == {"goal": "b", "count": 0, "later": 1}


def test_record__unknown_members__round_trip() -> None:
    document = {"goal": "g", "count": 1, "later": {"deep": [1]}}
    assert shapes.plain(shapes.build(TeamContext, document)) == document


def test_pydantic_model__installed__is_supported_as_a_value(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the methods that the client uses: pydantic is not a dependency of the server's tests."""

    class BaseModel:
        def __init__(self, goal: str = "") -> None:
            self.goal = goal

        @classmethod
        def model_validate(cls, document: Any) -> BaseModel:
            if not isinstance(document["goal"], str):
                raise ValueError("goal: Input should be a valid string")
            return cls(**document)

        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            return {"title": cls.__name__}

        model_fields: ClassVar[dict[str, Any]] = {}

        def model_dump(self, mode: str, by_alias: bool) -> dict[str, Any]:
            return {"goal": self.goal}

    class Team(BaseModel):
        pass

    monkeypatch.setitem(sys.modules, "pydantic", SimpleNamespace(BaseModel=BaseModel))
    team = profile_key("team_context", Team)
    access = ProfileAccess(backend)
    with access.edit(team, "k") as value:
        value.goal = "x"
    assert access.read(team, "k").goal == "x"
    assert shapes.schema_of(Team) == {"title": "Team"}
    backend.put("team_context", "k", {"goal": 1})
    with pytest.raises(KeyDecode, match=r"^failed to decode key team_context: goal: Input"):
        access.read(team, "k")


@dataclass
class Deep:
    moods: dict[str, list[Mood]] = field(default_factory=dict)
    inner: Deep | None = None
    anything: Any = None
    ratio: float = 0.0
    count: int = 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            Deep(anything={"at": [datetime(2026, 1, 1, tzinfo=UTC)]}),
            "/anything/at/0: datetime is not",
        ),
        (Deep(inner=Deep(ratio=float("nan"))), "/inner/ratio: nan is not JSON"),
        (Deep(anything=["\ud800"]), "/anything/0: the string contains a lone surrogate"),
        (Deep(anything={"a": {1: 2}}), "/anything/a: names of members must be strings"),
    ],
)
def test_write__value_without_json__reports_the_place(value: Deep, message: str) -> None:
    backend = MemoryBackend()
    deep = profile_key("deep", Deep)
    backend.register(deep)
    with pytest.raises(KeyEncode, match=f"^failed to encode key deep: {re.escape(message)}"):
        ProfileAccess(backend).write(deep, "k", value)
    assert not backend.get("deep", "k").exists


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"moods": {"a/b": ["good", "sad"]}}, "/moods/a/b/1: 'sad' is not one of ['good', 'bad']"),
        ({"count": float("inf")}, "/count: inf is not of type integer"),
    ],
)
def test_build__invalid_value__reports_the_place(document: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        shapes.build(Deep, document)


def test_schema__of_a_recursive_dataclass__terminates() -> None:
    members = shapes.schema_of(Deep)["properties"]
    assert members["inner"] == {"anyOf": [{"type": "object"}, {"type": "null"}]}


@dataclass(slots=True)
class Slotted:
    city: str = ""


@dataclass
class Derived:
    city: str = ""
    size: int = field(init=False, default=0)


def test_edit__dataclass_with_slots_or_without_init__round_trips() -> None:
    backend = MemoryBackend()
    slotted, derived = profile_key("slotted", Slotted), profile_key("derived", Derived)
    backend.register(slotted, derived)
    access = ProfileAccess(backend)
    with access.edit(slotted, "k") as one, access.edit(derived, "k") as other:
        one.city, other.city, other.size = "Lisbon", "Porto", 5
    assert access.read(slotted, "k") == Slotted("Lisbon")
    assert access.read(derived, "k").size == 5
    backend.put("slotted", "k", {"city": "Lisbon", "later": 1})
    with pytest.raises(KeyDecode, match="no room to keep 'later'"):
        access.read(slotted, "k")
