"""Limits of validation: a value that is invalid deep inside a recursive schema, and patterns that
are too large, are refused with little work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from state_admin.domain import isolation, schema_costs, schemas
from state_admin.models import Namespace
from state_admin.services import entries, exports, namespaces
from state_admin.services.errors import Invalid
from state_admin.services.runs import RunChange
from state_admin.services.tickets import decide_ticket
from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
    raw,
)
from tests.domain.test_isolation import LONG, SLOW
from tests.domain.test_schema_faults import expression

SCHEMA, WRONG = expression(28)


def _put(alice: Person) -> Any:
    make_namespace(alice.actor, schema=SCHEMA)
    put(alice.actor, "notes", "k", WRONG)


def _batch(alice: Person) -> Any:
    make_namespace(alice.actor, schema=SCHEMA)
    entries.put_entries(actor=alice.actor, puts=[("notes", "k", raw(WRONG))])


def _patch(alice: Person) -> Any:
    make_namespace(alice.actor, schema=SCHEMA)
    operation = {"op": "set", "path": "", "value": WRONG}
    entries.patch_entry(
        actor=alice.actor, namespace="notes", key="k", kind="update", operations=operation
    )


def _default(alice: Person) -> Any:
    make_namespace(alice.actor, schema=SCHEMA, default=WRONG)


def _state_key(alice: Person) -> Any:
    make_state_key(alice.actor, "plan", schema=SCHEMA, default=WRONG)


def _commit(alice: Person) -> Any:
    make_state_key(alice.actor, "plan", schema=SCHEMA)
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"plan": WRONG})


def _import(alice: Person) -> Any:
    make_state_key(alice.actor, "plan", schema=SCHEMA)
    make_thread(alice.actor, "t1")
    exports.import_snapshot(
        actor=alice.actor, thread_id="t1", revision=1, extensions={"plan": raw(WRONG)}
    )


def _ticket(alice: Person) -> Any:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    waiting = {
        "reason": "tool_permission",
        "tickets": [
            {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "x", "response_schema": SCHEMA}
        ],
    }
    commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=waiting))
    decide_ticket(actor=alice.actor, ticket_id="k1", action="resume", payload=raw(WRONG))


@pytest.mark.parametrize(
    "work", [_put, _batch, _patch, _default, _state_key, _commit, _import, _ticket]
)
def test_refusal__deep_in_a_recursive_schema__takes_few_steps(
    alice: Person, work: Callable[[Person], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = []

    class Counted(schemas.FaultSearch):
        def faults(self, value: Any, limit: int) -> Any:
            found = super().faults(value, limit)
            walks.append(schemas.MAX_STEPS - self._steps)
            return found

    monkeypatch.setattr(schemas, "FaultSearch", Counted)
    with pytest.raises(Invalid) as refused:
        work(alice)
    (error,) = refused.value.data["errors"]
    assert "is not valid under any of the schemas" in error["message"]
    assert len(walks) in (1, 2)  # again under the newest definition
    assert max(walks) < 100_000


def test_dry_run__many_invalid_entries__explains_only_those_it_returns(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", WRONG)
    monkeypatch.setattr(namespaces, "_SHOWN_VIOLATIONS", 2)
    explained = []
    faults = schemas.Validator.faults
    monkeypatch.setattr(
        schemas.Validator, "faults", lambda *args: explained.append(args) or faults(*args)
    )
    tried = namespaces.register_namespace(
        actor=alice.actor, name="notes", schema=raw(SCHEMA), default=raw(None), dry_run=True
    )
    assert tried.violations is not None
    assert (tried.violations.count, len(tried.violations.first)) == (5, 2)
    assert len(explained) == 3  # the default, and two entries


LARGE = {"properties": {"name": {"pattern": r"^\p{L}{1,64}$"}}}
POINTER = "/properties/name/pattern"


def _register(alice: Person, **fields: Any) -> Any:
    return namespaces.register_namespace(
        actor=alice.actor,
        name="notes",
        schema=raw(fields.pop("schema", LARGE)),
        default=raw(None),
        **fields,
    )


@pytest.mark.parametrize("fields", [{}, {"dry_run": True}, {"max_value_bytes": 1 << 20}])
def test_namespace__pattern_too_large_for_its_values__is_refused_at_its_place(
    alice: Person, fields: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as refused:
        _register(alice, **fields)
    assert [error["pointer"] for error in refused.value.data["errors"]] == ["/schema" + POINTER]
    assert not Namespace.objects.filter(name="notes").exists()
    assert _register(alice, max_value_bytes=64 << 10).created


def test_namespace__registered_before_the_limit__remains_valid(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(schema_costs, "MAX_PATTERN_WORK", 1 << 50)
        _register(alice)
    assert not _register(alice).changed
    assert _register(alice, description="names").changed
    assert put(alice.actor, "notes", "k", {"name": "é"}).version == 1
    for fields in ({"max_value_bytes": 8 << 20}, {"schema": {**LARGE, "title": "x"}}):
        with pytest.raises(Invalid):
            _register(alice, **fields)


def test_state_key_and_ticket__pattern_too_large__is_refused_at_its_place(alice: Person) -> None:
    with pytest.raises(Invalid) as refused:
        make_state_key(alice.actor, "plan", schema=LARGE)
    assert [error["pointer"] for error in refused.value.data["errors"]] == ["/schema" + POINTER]
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "x", "response_schema": LARGE}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    with pytest.raises(Invalid) as refused:
        commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=waiting))
    (error,) = refused.value.data["errors"]
    assert error["pointer"] == "/waiting/tickets/0/response_schema" + POINTER


def test_api__validations_keep_the_server_busy__is_503(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, schema={"pattern": SLOW}, max_value_bytes=1_000)
    child = isolation.Child()
    monkeypatch.setattr(isolation, "CHILD", child)
    monkeypatch.setattr(isolation, "_TURN_SECONDS", 0)
    with child.turn():
        answer = alice.api("PUT", "/state/notes/k", {"value": LONG})
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["detail"] == "the server is busy with other validations"
    assert alice.api("PUT", "/state/notes/k", {"value": LONG}).status_code == 201
    child.stop()
