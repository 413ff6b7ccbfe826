"""Finding one row for a verb."""

from __future__ import annotations

import pytest

from state_admin.models import Thread
from state_admin.services.errors import NotFound
from state_admin.services.finding import find_row
from tests.builders import Person, make_thread

pytestmark = pytest.mark.django_db


def test_find_row__exists__is_returned(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    thread = make_thread(alice.actor, "t2")
    assert find_row(Thread.objects.all(), "thread", public_id="t2") == thread


def test_find_row__outside_the_rows__says_what_does_not_exist(
    alice: Person, mallory: Person
) -> None:
    make_thread(mallory.actor, "t1")
    visible = Thread.objects.visible_to(alice.actor)
    with pytest.raises(NotFound, match=r"^thread not found: t1$"):
        find_row(visible, "thread", public_id="t1")
