"""JSON documents become objects of the classes that are generated from the contract."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from commonhold import answers
from commonhold.reading import Answer

from project.env import BASE_DIR
from state_admin.contract.openapi import example_of

COMPONENTS = json.loads((BASE_DIR / "docs/openapi.json").read_text())["components"]["schemas"]
CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(answers, inspect.isclass)
    if issubclass(kind, Answer) and name in COMPONENTS
}


def read(name: str, **more: Any) -> Any:
    document = example_of(COMPONENTS[name], COMPONENTS)
    assert isinstance(document, dict)
    return CLASSES[name].read({**document, **more})


@pytest.mark.parametrize("name", CLASSES)
def test_read__example_of_the_contract__has_its_members(name: str) -> None:
    found = read(name, unknown={"a": 1})
    members = set(COMPONENTS[name]["properties"])
    assert {each.removesuffix("_") for each in vars(found)} == members | {"document"}
    assert found.document["unknown"] == {"a": 1}


def test_read__times__are_datetimes() -> None:
    entry = read("Entry", updated_at="2026-01-31T12:00:00.000000Z", expires_at=None)
    assert (entry.updated_at, entry.expires_at) == (datetime(2026, 1, 31, 12, tzinfo=UTC), None)


def test_read__objects_within__are_read_too() -> None:
    assert isinstance(read("Committed").run, answers.Run)
    (result,) = read("Appended", results=[{"status": 404}]).results
    assert result == answers.BatchResult(status=404, document={})
    entry = example_of(COMPONENTS["Entry"], COMPONENTS)
    assert answers.BatchResult.read({"status": 200, "entry": entry}).entry == read("Entry")


def test_read__missing_member__is_refused() -> None:
    with pytest.raises(TypeError, match="'role'"):
        answers.Me.read({"workspace": "acme"})
