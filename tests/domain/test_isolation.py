"""Validations that may take long run in another process with limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from state_admin.domain import isolation
from state_admin.domain.schemas import STOPPED, Validator, compile_schema
from state_admin.domain.values import Fault
from tests.project.running import wait_for

# Takes 20 s of CPU time on TOO_LONG, 60 ms on LONG.
SLOW = r"(\w{1,50}y?){200}!"
LONG = "ab" * 150 + "!"
TOO_LONG = "ab" * 50_000 + "!"
# Seven schemas that refer to one another at the same place: the library tries every path.
LOOP = {
    "$defs": {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{m}"} for m in range(7) if m != n]}
        for n in range(7)
    },
    "$ref": "#/$defs/a0",
}


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[isolation.Child]:
    made = isolation.Child()
    monkeypatch.setattr(isolation, "CHILD", made)
    yield made
    made.stop()


@pytest.fixture
def sent_requests(child: isolation.Child, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests sent to the child."""
    requests: list[Any] = []
    ask = child.ask

    def noted(request: Any) -> Any:
        requests.append(request)
        return ask(request)

    monkeypatch.setattr(child, "ask", noted)
    return requests


def compiled(schema: object) -> Validator:
    return compile_schema(json.dumps(schema))


@pytest.mark.parametrize(
    ("schema", "small", "large"),
    [
        ({"items": {"pattern": "^[a-z][a-z0-9_.-]{0,127}$"}}, ["a-b"] * 100, ["a" * 90] * 900),
        ({"items": {"enum": [{"a": n} for n in range(900)]}}, [{"a": 1}] * 20, [{"a": 1}] * 900),
        (
            {"additionalProperties": {"allOf": [{"minimum": -n} for n in range(900)]}},
            {"a": 1},
            {f"k{n}": n for n in range(2_000)},
        ),
    ],
)
def test_validator__expensive_validation__is_isolated_with_the_same_result(
    sent_requests: list[Any], schema: Any, small: Any, large: Any
) -> None:
    validator = compiled(schema)
    wrong = [*large, "-"] if isinstance(large, list) else {**large, "z": -9_999}
    assert validator.accepts(small)
    assert not sent_requests
    assert validator.accepts(large)
    assert validator.faults(large) == []
    assert not validator.accepts(wrong)
    assert validator.faults(wrong) == validator.faults_here(wrong, 20)
    assert len(sent_requests) == 4


def test_validator__ordinary_schema_with_the_largest_value__is_not_isolated(
    sent_requests: list[Any],
) -> None:
    fields = {f"f{n}": {"type": "string", "maxLength": 100, "minLength": 0} for n in range(9)}
    schema = {"items": {"type": "object", "properties": fields, "required": [*fields]}}
    validator = compiled(schema)
    assert validator.accepts([dict.fromkeys(fields, "x" * 90)] * 999)
    assert not sent_requests


def test_isolated__more_processor_time_than_allowed__is_stopped_and_refused(
    child: isolation.Child,
) -> None:
    validator = compiled(LOOP)
    assert validator.faults(1) == [Fault("", STOPPED)]
    assert not validator.accepts(1)
    # The next value has a child again.
    assert compiled({"pattern": SLOW}).accepts(LONG)


def test_isolated__expensive_pattern__is_stopped_while_others_are_served(
    child: isolation.Child,
) -> None:
    validator, found = compiled({"pattern": SLOW}), list[Any]()
    other = threading.Thread(target=lambda: found.append(validator.faults(TOO_LONG)))
    other.start()
    wait_for(child.is_busy, "the validation begins")
    assert compiled({"type": "object"}).faults(1) == [Fault("", '1 is not of type "object"')]
    assert other.is_alive()
    other.join(60)
    assert found == [[Fault("", STOPPED)]]


@pytest.fixture
def limited(request: pytest.FixtureRequest) -> Iterator[isolation.Child]:
    """A child with another memory limit, and enough time."""
    made = isolation.Child(60, request.param)
    yield made
    made.stop()


# Each takes 64 bytes once it is parsed.
_MANY: Any = {"schema": "{}", "mask": None, "limit": 0, "value": "[" + "{}," * 4_000_000 + "{}]"}


@pytest.mark.parametrize("limited", [1 << 28], indirect=True)
def test_isolated__more_memory_than_allowed__is_stopped(limited: isolation.Child) -> None:
    with pytest.raises(isolation.ValidationLimitExceeded):
        limited.ask(_MANY)


@pytest.mark.parametrize("limited", [1 << 30], indirect=True)
def test_isolated__within_its_memory__returns_the_result(limited: isolation.Child) -> None:
    assert limited.ask(_MANY) is True


def test_isolated__child_fails__is_an_error_and_not_a_refusal(
    child: isolation.Child, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="status 1"):
        child.ask({"schema": "{", "mask": None, "limit": 0, "value": "1"})
    assert "InvalidSchema" in capfd.readouterr().err
    assert child.ask({"schema": "{}", "mask": None, "limit": 0, "value": "1"}) is True


def process_id_of(child: isolation.Child) -> int | None:
    process = child._process
    return process.pid if process is not None and process.poll() is None else None


def test_isolated__child_that_died__is_replaced(child: isolation.Child) -> None:
    validator = compiled({"pattern": SLOW})
    assert not validator.accepts("ab!")
    assert process_id_of(child) is None  # short: not isolated
    assert validator.accepts(LONG)
    first = process_id_of(child)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: process_id_of(child) is None, "the child ends")
    assert validator.accepts(LONG)
    assert process_id_of(child) not in (None, first)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_isolated__signal_to_all_processes__child_finishes(
    child: isolation.Child, number: signal.Signals
) -> None:
    """systemd stops a service so: the web process finishes its requests."""
    validator = compiled({"pattern": SLOW})
    assert validator.accepts(LONG)
    first = process_id_of(child)
    assert first is not None

    os.kill(first, number)

    assert validator.accepts(LONG)
    assert process_id_of(child) == first


def test_isolated__child_is_busy__is_not_waited_for(
    child: isolation.Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "_TURN_SECONDS", 0)
    with child.turn(), pytest.raises(isolation.Busy):
        compiled({"pattern": SLOW}).faults(LONG)


def test_isolated__values_and_masks__are_transmitted_unchanged(sent_requests: list[Any]) -> None:
    schema = {
        "additionalProperties": {
            "anyOf": [{"type": "string", "pattern": SLOW}, {"type": "integer"}]
        }
    }
    validator = compile_schema(json.dumps(schema), mask="the value")
    value = {"é/~\n": "canary" * 500, "n": 10**30, "f": 1.5}
    found = validator.faults(value)
    assert sent_requests
    message = "the value is not valid under any of the schemas listed in the 'anyOf' keyword"
    assert found == [Fault("/é~1~0\n", message), Fault("/f", message)]


def test_isolated__fork__the_child_belongs_to_the_parent(child: isolation.Child) -> None:
    validator = compiled({"pattern": SLOW})
    assert validator.accepts(LONG)
    forked = os.fork()
    if not forked:
        fine = process_id_of(child) is None and validator.accepts(LONG)
        child.stop()
        os._exit(0 if fine else 1)
    assert os.waitpid(forked, 0)[1] == 0
    assert validator.accepts(LONG)


_PARENT = """
import os, sys
from state_admin.domain import isolation
isolation.CHILD.ask({"schema": "{}", "mask": None, "limit": 0, "value": "1"})
print(isolation.CHILD._process.pid, flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_isolated__parent_ended__ends_too(how: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        cwd=Path(isolation.__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if how == "is killed":
        parent.kill()
    parent.communicate()
    wait_for(lambda: not _runs(pid), "the child ends")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
