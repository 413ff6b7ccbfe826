"""The users of the fixtures, which are copies (tests/copying.py), are as services create them."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models import AutoField, DateTimeField, Field

from state_admin.domain.access import Role
from tests.builders import Person, create_person, make_person
from tests.copying import Rows, added_rows, read_rows

# Random, or the clock of the feed.
_NEW = {"lookup", "digest", "password", "xid"}


def comparable(rows: Rows) -> dict[str, list[dict[str, str]]]:
    """Without what is new in each row."""

    def is_same(field: Field[object, object]) -> bool:
        is_new = isinstance(field, AutoField | DateTimeField) or field.column in _NEW
        return not is_new and not field.related_model

    return {
        table.__name__: sorted(
            ({f.column: row[f] for f in row if is_same(f)} for row in all_rows),
            key=lambda row: list(row.values()),  # rows reuse the places of deleted ones
        )
        for table, all_rows in rows.items()
    }


@pytest.mark.parametrize(("name", "role"), [("bob", Role.VIEWER), ("erin", Role.EDITOR)])
def test_copy__user_of_the_fixtures__has_the_rows_that_services_write(
    name: str, role: Role, db: None
) -> None:
    found = []
    for make in (create_person, make_person):
        before = read_rows()
        with transaction.atomic():
            people = [make("alice", "acme", Role.ADMIN), make(name, "acme", role)]
            found.append(comparable(added_rows(before, read_rows())))
            for person in people:
                assert person.api("GET", "/namespaces").status_code == 200
                person.user.refresh_from_db()
                person.workspace.refresh_from_db()
            transaction.set_rollback(True)
    assert found[0] == found[1]


def test_copy__name_is_taken__is_created_by_services(bob: Person) -> None:
    again = make_person("bob", "acme", Role.VIEWER)
    assert again.user == bob.user
    assert again.token != bob.token
