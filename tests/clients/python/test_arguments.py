"""Mistakes of programs: each is refused before anything is sent, with the name of the argument."""

from __future__ import annotations

import dataclasses
import math
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, cast

import pytest
from commonhold import (
    AsyncCommonhold,
    ClientClosed,
    Commonhold,
    CommonholdError,
    Dispatches,
    InvalidArgument,
    MemoryBackend,
    ProfileAccess,
    ProfileKey,
    Retries,
    StateScope,
)
from commonhold.client import _Settings

from tests.loops import run
from tests.project.running import free_port


class Goal(ProfileKey, key="goal"):
    text: str = ""


class Color(StrEnum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int = 1


class Shade(Enum):
    DARK = 1


DEEP: list[Any] = []
DEEP.append(DEEP)
NOWHERE: Any = Commonhold(f"http://127.0.0.1:{free_port()}", "t", retries=Retries(attempts=1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, r"/value: nan is not JSON; send None or a string"),
        ({"a": [1, {"b/c": math.inf}]}, r"/value/a/1/b~1c: inf is not JSON"),
        (datetime(2026, 1, 1, tzinfo=UTC), r"/value: datetime is not JSON; send ….isoformat\(\)"),
        ([{1}], r"/value/0: set is not JSON; send list"),
        (b"x", r"/value: bytes is not JSON; send a string, for example in Base64"),
        (Point(), r"/value: Point is not JSON; send dataclasses.asdict"),
        (Shade.DARK, r"/value: Shade is not JSON; send ….value"),
        (uuid.UUID(int=1), r"/value: UUID is not JSON; send str"),
        (Path("/x"), r"/value: .*Path is not JSON; send str"),
        (Point, r"/value: type is not JSON$"),
        (Goal, r"/value: type is not JSON; send Goal\.KEY$"),
        ({"a": {1: 2}}, r"/value/a: names of members must be strings, not int: 1"),
        (["\ud800"], r"/value/0: the string contains a lone surrogate"),
        ({"\ud800": 1}, r"/value: the name of a member contains a lone surrogate"),
        (DEEP, r"/value/0.*: the value is nested too deeply, or contains itself"),
    ],
)
def test_value__not_json__is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{message}"):
        NOWHERE.put("n", "k", value)


def test_memory_backend__value_not_json__is_refused_with_its_place() -> None:
    backend = MemoryBackend()
    backend.register("n")
    for value in ({"a": {1}}, {"a": "\ud800"}):
        with pytest.raises(InvalidArgument, match=r"^/a: "):
            backend.put("n", "k", value)
    assert not backend.get("n", "k").exists


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # None in place of an id would otherwise be stored under "None".
        (lambda: NOWHERE.put("n", None, 1), "key must be a str, not NoneType"),
        (lambda: NOWHERE.put("n", b"k", 1), "key must be a str, not bytes"),
        (lambda: NOWHERE.get("n", ""), "key must not be empty"),
        (lambda: NOWHERE.get("", "k"), "namespace must not be empty"),
        (lambda: NOWHERE.get(None, "k"), "not a ProfileKey"),
        (lambda: NOWHERE.read(Goal, None), "key must be a str"),
        (lambda: StateScope.thread(cast(str, None)), "thread_id must be a str, not NoneType"),
        (lambda: StateScope.parent_thread(""), "thread_id must not be empty"),
        (lambda: NOWHERE.threads.get(None), "thread_id must be a str, not NoneType"),
        (lambda: NOWHERE.threads.messages(object()), "thread_id must be a str, not object"),
        (lambda: NOWHERE.runs.get(""), "run_id must not be empty"),
        (lambda: NOWHERE.tickets.get(5), "ticket_id must be a str, not 5"),
        (lambda: NOWHERE.dispatches.get(uuid.uuid4()), "dispatch_id must be a str, not UUID"),
        (lambda: NOWHERE.state_keys.get(None), "name must be a str"),
        # An empty version would otherwise be no precondition at all.
        (lambda: NOWHERE.put("n", "k", 1, if_version=""), "if_version must be an int"),
        (lambda: NOWHERE.put("n", "k", 1, if_version=False), "if_version must be an int"),
        (lambda: NOWHERE.delete("n", "k", if_version=-1), "if_version must be an int"),
        (lambda: NOWHERE.threads.restore("t", 1, if_revision=1.5), "if_revision must be an int"),
        (lambda: NOWHERE.put("n", "k", 1, tags="ab"), "tags must be a list of str, not str"),
        (lambda: NOWHERE.put("n", "k", 1, reason=5), "reason must be a str, not 5"),
        (lambda: NOWHERE.get("n", "k", wait=math.nan), "wait must be a number of seconds"),
        (lambda: NOWHERE.dispatches.claim(wait="3"), "wait must be a number of seconds"),
        (lambda: NOWHERE.watch(heartbeat_timeout=math.inf), "heartbeat_timeout must be a number"),
        (lambda: NOWHERE.patch("n", "k", [], kind="jsonpatch"), "kind must be one of merge, json"),
        # As a merge patch, operations would be stored in the value, or replace it.
        (
            lambda: NOWHERE.patch("n", "k", {"op": "add", "path": "/n", "value": 1}),
            "kind is required",
        ),
        (lambda: NOWHERE.patch("n", "k", [{"op": "add", "path": "/n"}]), "kind is required"),
        (lambda: NOWHERE.update("n", "k"), "operations must not be empty"),
        (lambda: NOWHERE.update("n", "k", "add"), r"operations\[0\] must be a dict, not str"),
        (lambda: NOWHERE.batch({"op": "get"}), "operations must be a list of dicts, not dict"),
        (lambda: NOWHERE.batch(["get"]), r"operations\[0\] must be a dict, not str"),
        (lambda: NOWHERE.threads.append("t", [{}]), r"messages\[0\] must be a dict, not list"),
        (lambda: NOWHERE.runs.commit("r", "x"), "updates must be a list of dicts, not str"),
        (lambda: NOWHERE.runs.commit("r", messages={}), "messages must be a list of dicts"),
        (lambda: NOWHERE.threads.delete_many("t1"), "thread_ids must be a list of str"),
        (lambda: NOWHERE.runs.cancel_many("r1"), "run_ids must be a list of str"),
        (lambda: NOWHERE.list("n", prefix=["a"]), "prefix must be a str, a number, a bool or"),
        (lambda: NOWHERE.request("GET", "usage"), "path must be a path below /api/v1"),
        (lambda: NOWHERE.request("GET", "/api/v1/usage"), "path must be a path below /api/v1"),
        (lambda: MemoryBackend().list_key(cast(str, None)), "key must be a str"),
    ],
)
def test_call__mistaken_argument__is_named_before_anything_is_sent(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"^{message}") as refused:
        call()
    assert isinstance(refused.value, CommonholdError | TypeError)


def test_filter__none__is_no_filter() -> None:
    found = Commonhold.changes(thread_id=cast(str, None), namespace="n")
    assert dict(found.query) == {"namespace": "n"}


def test_key__enum_of_strings__is_sent_as_its_value() -> None:
    assert Commonhold.get("n", Color.RED).path == "/state/n/red"


def test_wait__less_than_a_second__waits_for_one() -> None:
    assert Commonhold.get("n", "k", since=1, wait=0.2).query == {"since": 1, "wait": 1}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "url must be a str"),
        ("127.0.0.1:8000", "it must begin with http:// or https://"),
        ("http://", "it has no host"),
        ("http://127.0.0.1:99999", "the port must be 1 to 65535"),
        ("http://127.0.0.1:8000?x=1", "it must not contain"),
        ("http://me:pa55word@127.0.0.1:8000", "it contains a user name or password"),
    ],
)
def test_client__mistaken_url__is_refused_without_its_password(url: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as refused:
        Commonhold(url, "t")
    assert "pa55word" not in str(refused.value)


@pytest.mark.parametrize("suffix", ["", "/", "//", "/api/v1", "/api/v1/", "\n", " "])
def test_client__url_with_slashes_or_spaces_at_its_end__is_the_same_server(suffix: str) -> None:
    assert _Settings(f"http://h:8000{suffix}", "t").base == "http://h:8000/api/v1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": ""}, "token must not be empty"),
        ({"token": " \n"}, "token must not be empty"),
        ({"token": None}, "token must be a str"),
        ({"timeout": None}, "timeout must be a number of seconds"),
        ({"timeout": "5"}, "timeout must be a number of seconds"),
        ({"timeout": math.inf}, "timeout must be a number of seconds"),
        ({"timeout": 0}, "timeout must be greater than 0"),
        ({"retries": 3}, r"retries must be a Retries\(…\), not 3"),
        ({"run_id": 5}, "run_id must be a str, not 5"),
    ],
)
def test_client__mistaken_option__is_named(options: dict[str, Any], message: str) -> None:
    for kind in (Commonhold, AsyncCommonhold):
        with pytest.raises(InvalidArgument, match=f"^{message}"):
            kind(**{"url": "http://h", "token": "t", **options})


@pytest.mark.parametrize("members", [{"attempts": 0}, {"attempts": 1.5}, {"first": -1}])
def test_retries__mistaken_member__is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"^{next(iter(members))} must be"):
        Retries(**members)


def test_edit__async_function__is_refused_and_leaves_no_coroutine() -> None:
    async def change(goal: Goal) -> None:
        goal.text = "x"

    backend = MemoryBackend()
    backend.register(Goal)
    with pytest.raises(InvalidArgument, match="not an async one"):
        cast(Any, ProfileAccess(backend)).edit(Goal, "k", change)
    assert not backend.get("goal", "k").exists


def test_profile_key__field_without_default__is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match=r"Bare\.goal needs a default"):

        class Bare(ProfileKey):
            goal: str


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: NOWHERE.put("n", "k", 1, ttl=3),
            "Commonhold.put() got an unexpected keyword "
            "argument 'ttl'. Did you mean 'ttl_seconds'?",
        ),
        (
            lambda: NOWHERE.put("n", "k", 1, ifVersion=3),
            "Commonhold.put() got an unexpected keyword "
            "argument 'ifVersion'. Did you mean 'if_version'?",
        ),
        (
            lambda: NOWHERE.put("n", "k"),
            "Commonhold.put() missing 1 required positional argument: 'value'",
        ),
        (
            lambda: cast(Any, Commonhold).delete("n", "k", zzz=1),
            "Commonhold.delete() got an unexpected "
            "keyword argument 'zzz'. Its parameters are namespace, key, if_version, dry_run, reason.",
        ),
        (
            lambda: NOWHERE.threads.list(limmit=3),
            "Threads.list() got an unexpected keyword argument 'limmit'. Did you mean 'limit'?",
        ),
        (
            lambda: NOWHERE.watch(namspace="n"),
            "Commonhold.watch() got an unexpected keyword argument "
            "'namspace'. Did you mean 'namespace'?",
        ),
        (
            lambda: cast(Any, AsyncCommonhold)("http://h", "t", retry=1),
            "AsyncCommonhold() got an unexpected keyword argument 'retry'. Did you mean 'retries'?",
        ),
    ],
)
def test_method__wrong_arguments__names_the_method_and_the_nearest_option(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        call()
    assert str(refused.value) == message


def test_enqueue__time_without_a_zone__is_local_as_in_queries() -> None:
    local = datetime(2026, 1, 1, tzinfo=UTC).astimezone().replace(tzinfo=None)
    call = Dispatches.enqueue("t", available_at=local)
    assert call.body["available_at"] == "2026-01-01T00:00:00+00:00"


def test_client__closed__says_so_also_to_its_watch() -> None:
    state = Commonhold("http://127.0.0.1:1", "t")
    watch = state.watch()
    state.close()
    state.close()
    for use in (state.me, watch.__enter__):
        with pytest.raises(ClientClosed, match="the client is closed"):
            use()


def test_async_client__closed__says_so() -> None:
    async def use_after_close() -> None:
        async with AsyncCommonhold("http://127.0.0.1:1", "t") as state:
            pass
        with pytest.raises(ClientClosed, match="the client is closed"):
            await state.me()

    run(use_after_close())


def test_client__shown__has_its_address_and_no_token() -> None:
    for kind in (Commonhold, AsyncCommonhold):
        assert repr(kind("http://h:8000/", "s3cret")) == f"{kind.__name__}('http://h:8000')"
