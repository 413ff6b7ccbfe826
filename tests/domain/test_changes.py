"""The kinds of changes, and the globs that match them."""

from __future__ import annotations

import pytest

from state_admin.domain.changes import KINDS, kinds_matching
from state_admin.models import Operation, RunStatus
from state_admin.web.changes import VERBS


@pytest.mark.parametrize(
    ("glob", "kinds"),
    [
        ("entry.put", ("entry.put",)),
        ("plugin.*", ("plugin.install", "plugin.uninstall")),
        ("*.unregister", ("namespace.unregister", "state_key.unregister")),
        ("*", tuple(sorted(KINDS))),
        ("entry", ()),
        ("entry.", ()),
        ("no.such.kind", ()),
        ("", ()),
    ],
)
def test_kinds_matching__glob__returns_those_it_matches(glob: str, kinds: tuple[str, ...]) -> None:
    assert kinds_matching(glob) == kinds


def test_kinds__in_hand_written_sql__are_declared() -> None:
    """The others are checked when they are written (services/journal.py)."""
    assert {f"entry.{operation}" for operation in Operation.values} <= KINDS
    assert {f"run.{status}" for status in RunStatus.values} <= KINDS
    assert {"message.append", "mailbox.ready"} <= KINDS


def test_kinds__each__has_a_phrase_for_the_page() -> None:
    assert set(VERBS) == KINDS
