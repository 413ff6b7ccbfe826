"""The classes of the Python client have the members of the documents that they read."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields

import pytest
from commonhold import answers
from commonhold.answers import Answer

from project.env import BASE_DIR

COMPONENTS = json.loads((BASE_DIR / "docs/openapi.json").read_text())["components"]["schemas"]
# The components that a class reads.
READS: dict[type[Answer], tuple[str, ...]] = {
    answers.Entry: ("Entry", "EntryRow", "Hit"),
    answers.Version: ("EntryVersion",),
    answers.Diff: ("Diff",),
    answers.Namespace: ("Namespace",),
    answers.StateKeyInfo: ("StateKey",),
    answers.Thread: ("Thread",),
    answers.Message: ("Message",),
    answers.Appended: ("Appended",),
    answers.Context: ("Context",),
    answers.Extensions: ("Snapshot",),
    answers.Run: ("Run",),
    answers.Committed: ("Committed",),
    answers.Ticket: ("Ticket",),
    answers.Dispatch: ("Dispatch", "ClaimedDispatch"),
    answers.Change: ("Change",),
    answers.Outcome: ("BatchResult",),
    answers.ItemResult: ("ItemResult",),
    answers.Me: ("Me",),
}


def test_classes__all_are_compared() -> None:
    found = {each for each in vars(answers).values() if isinstance(each, type)}
    assert {each for each in found if issubclass(each, Answer)} - {Answer} == set(READS)


@pytest.mark.parametrize("kind", READS, ids=lambda kind: kind.__name__)
def test_class__has_the_members_of_its_documents(kind: type[Answer]) -> None:
    components = [COMPONENTS[name] for name in READS[kind]]
    members = {each.name.removesuffix("_"): each for each in fields(kind)}
    del members["document"]

    assert set(members) == {name for each in components for name in each["properties"]}
    always = set.intersection(*(set(each["required"]) for each in components))
    needed = {
        name
        for name, each in members.items()
        if each.default is MISSING and each.default_factory is MISSING
    }
    assert needed <= always
