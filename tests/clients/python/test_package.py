"""The client depends on nothing of the server, and uses only what the OpenAPI document contains."""

from __future__ import annotations

import ast
import inspect
import os
import random
import re
import subprocess
import sys
import typing
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commonhold
import pytest
from commonhold import (
    AsyncCommonhold,
    AsyncWatch,
    Commonhold,
    Retries,
    Watch,
    calls,
    entries,
    problems,
)
from commonhold.verbs import Group, Verb

from project.env import BASE_DIR

HOME = BASE_DIR / "clients/python"
SOURCES = sorted(HOME.rglob("*.py"))
# What an adapter may import in addition, by the prefix of its module's or example's name.
FRAMEWORKS = {
    "openai_agents": {"agents"},
    "google_adk": {"google", "pydantic_core"},
    "crewai": {"crewai", "pydantic_core"},
    "acp": {"acp"},
    "a2a": {"a2a", "google", "httpx", "starlette"},
    "langgraph": {"langgraph", "langchain_core"},
    "mcp_agent": {"mcp"},
}


def test_client__imported__imports_no_server_module() -> None:
    allowed = {*sys.stdlib_module_names, "httpx2", "pydantic", "commonhold"}
    found = {
        (
            str(path.relative_to(HOME)).removeprefix("src/commonhold/").removeprefix("examples/"),
            name.partition(".")[0],
        )
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert len(SOURCES) > 15
    found -= {
        (path, name)
        for path, name in found
        if any(path.startswith(at) and name in theirs for at, theirs in FRAMEWORKS.items())
    }
    # Used if the program has it, to send its trace.
    found.discard(("calls.py", "opentelemetry"))
    assert {(path, name) for path, name in found if name not in allowed} == set()


def test_package__exports__exist_and_are_typed() -> None:
    assert [name for name in commonhold.__all__ if not hasattr(commonhold, name)] == []
    assert (BASE_DIR / "clients/python/src/commonhold/py.typed").exists()


# Names that a caller needs for annotations -------------------------------------------------------


def annotations_of(member: Any) -> Iterator[Any]:
    """The resolved annotations of a function, method, property, verb or class body."""
    if isinstance(member, Verb):
        member = member.build
    if isinstance(member, property):
        member = member.fget
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    if inspect.isfunction(member) or inspect.isclass(member):
        # Modules import some names for the type checker only.
        names = {"Call": calls.Call, "AsyncCommonhold": AsyncCommonhold, "Commonhold": Commonhold}
        yield from typing.get_type_hints(member, localns=names, include_extras=True).values()


def classes_in(annotation: Any) -> Iterator[type]:
    """The classes of this package that an annotation consists of."""
    if isinstance(annotation, list | tuple):
        for each in annotation:
            yield from classes_in(each)
    if isinstance(annotation, type) and annotation.__module__.split(".")[0] == "commonhold":
        yield annotation
    for each in (typing.get_origin(annotation), *typing.get_args(annotation)):
        if each is not None and each is not annotation:
            yield from classes_in(each)


# Objects that only the client constructs.
RETURNED = (Watch, AsyncWatch)


def test_package__types_of_public_signatures__are_exported() -> None:
    public = [getattr(commonhold, name) for name in commonhold.__all__ if name != "__version__"]
    missing = {
        found.__name__: f"{getattr(each, '__name__', each)}.{name}"
        for each in public
        for name, member in {**vars(each), "": each}.items()
        if not name.startswith("_") or (name == "__init__" and each not in RETURNED)
        for annotation in annotations_of(member)
        for found in classes_in(annotation)
        if found not in public
    }
    # Attributes that __init__ sets, such as `state.threads`.
    for made in (Commonhold("http://localhost", "t"), AsyncCommonhold("http://localhost", "t")):
        for name, value in vars(made).items():
            if not name.startswith("_") and type(value) not in public:
                missing[type(value).__name__] = f"{type(made).__name__}.{name}"
    assert missing == {}


def test_random_ids__uuid4_replaced_by_a_counter__remain_unique(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LangGraph's test suite replaces uuid.uuid4; a repeated idempotency key drops a write."""
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=1))
    monkeypatch.setattr(random, "getrandbits", lambda bits: 1)
    random.seed(1)
    requests = [next(calls.exchange(entries.put_entry("n", "k", 1), Retries())) for _ in range(2)]
    keys = [dict(each.headers)["Idempotency-Key"] for each in requests]
    assert keys[0] != keys[1]
    assert all(re.fullmatch(rb"[0-9a-f]{32}", key) for key in keys)


def test_client__source__does_not_use_uuid4() -> None:
    package = HOME / "src"
    assert [path.name for path in package.rglob("*.py") if "import uuid" in path.read_text()] == []


def test_methods__of_all_groups__have_their_own_names_in_editors_and_errors() -> None:
    called = []
    with Commonhold("http://127.0.0.1:1", "t") as state:
        for group in (state, *(each for each in vars(state).values() if isinstance(each, Group))):
            verbs = [
                name
                for each in type(group).__mro__
                for name, verb in vars(each).items()
                if isinstance(verb, Verb)
            ]
            for name in verbs:
                method = getattr(group, name)
                own = f"{type(group).__name__}.{name}"
                assert (method.__name__, method.__qualname__) == (name, own)
                with pytest.raises(
                    commonhold.InvalidArgument, match=rf"^{own}\(\) got an unexpected"
                ):
                    method(no_such_option=1)
                called.append(own)
    assert {"Commonhold.put", "Threads.create"} < set(called)


PROBE = """
from __future__ import annotations
from typing import assert_type
from commonhold import *
from commonhold import Entry, FileBackend, MemoryBackend, Message, Profile, Thread, Threads

class Team(ProfileKey):
    goal: str = ""

LOCALE = profile_key("locale", str, default="x")

def blocking(state: Commonhold) -> None:
    assert_type(state.threads.get("t"), Thread)
    assert_type(state.read(Team, "k"), Team)
    assert_type(state.edit(LOCALE, "k", str.lower), str)
    with state.edit(Team, "k") as team:
        assert_type(team, Team)
    for backend in (MemoryBackend(), FileBackend("x")):
        ProfileAccess(backend)
    ProfileAccess(state)
    state.threads.get(3)  # type: ignore[arg-type]
    state.put("n", "k", 1, nonsense=1)  # type: ignore[call-arg]
    Team(goal=1)  # type: ignore[arg-type]
    Commonhold("u", "t", timeoutt=1)  # type: ignore[call-arg]
    for message in state.every(state.threads.messages("t")):
        assert_type(message, Message)
    for message in state.every(Threads.messages("t")):
        assert_type(message, Message)
    state.every(state.threads.get("t"))  # type: ignore[arg-type]
    state.runs.commit("r", {"key": "k", "update": 1})  # type: ignore[arg-type]

async def waiting(state: AsyncCommonhold) -> None:
    assert_type(await state.threads.get("t"), Thread)
    assert_type(await state.put("n", "k", 1), Entry)
    assert_type(await state.edit(LOCALE, "k", str.lower), str)
    async with state.edit(Team, "k") as team:
        assert_type(team, Team)
    state.watch(namspace="x")  # type: ignore[call-arg]
    async for message in state.every(state.threads.messages("t")):
        assert_type(message, Message)
    async for message in state.every(Threads.messages("t")):
        assert_type(message, Message)
"""


@pytest.mark.system
def test_types__of_results__are_exact_in_both_clients(tmp_path: Path) -> None:
    """Each `type: ignore` is a mistake that must be found: an unused one is an error too."""
    (tmp_path / "probe.py").write_text(PROBE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "probe.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(BASE_DIR / "clients" / "python" / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_public_names__all_classes__have_a_description_for_editors() -> None:
    classes = [each for each in vars(commonhold).values() if inspect.isclass(each)]
    assert len(classes) > 30
    # `vars`, because `__doc__` of a class may be inherited.
    assert [each for each in classes if not vars(each).get("__doc__")] == []


def test_errors__all_that_the_client_raises__are_exported() -> None:
    kinds = {kind for kind in vars(problems).values() if _is_error(kind)}
    hidden = {kind.__name__ for kind in kinds} - set(commonhold.__all__)
    assert {name for name in hidden if not name.startswith("_")} == set()


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, commonhold.CommonholdError)


def test_reference__of_the_methods__has_each_of_them() -> None:
    text = (BASE_DIR / "docs/reference/python.md").read_text()
    listed = re.findall(r"^### (?:state|Commonhold)\.(\S+)$", text, re.MULTILINE)
    with Commonhold("http://127.0.0.1:1", "t") as state:
        groups = {
            f"{name}.": each
            for name, each in vars(state).items()
            if isinstance(each, Group) and name != "_client"
        }
        methods = {
            prefix + name
            for prefix, owner in {"": state, **groups}.items()
            for name in dir(type(owner))
            if not name.startswith("_")
        }
    assert sorted(listed) == sorted(methods)
