"""manage.py set_quota."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from tests.builders import Person

pytestmark = pytest.mark.django_db


def set_quota(*arguments: str) -> str:
    out = io.StringIO()
    call_command("set_quota", *arguments, stdout=out)
    return out.getvalue().strip()


def test_set_quota__zero__is_no_entry_and_not_unlimited(alice: Person) -> None:
    told = set_quota("--workspace", "acme", "--entries", "0", "--bytes", "5")
    assert told == "acme: entries 0, bytes 5, threads unlimited"


def test_set_quota__unknown_workspace__is_refused() -> None:
    with pytest.raises(CommandError, match="workspace not found: nope"):
        set_quota("--workspace", "nope")


@pytest.mark.parametrize("limit", ["-1", "99999999999999999999"])
def test_set_quota__number_outside_the_limits__is_refused(alice: Person, limit: str) -> None:
    with pytest.raises(CommandError, match="from 0 to 9,223,372,036,854,775,807"):
        set_quota("--workspace", "acme", "--entries", limit)
