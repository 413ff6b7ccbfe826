"""How the tables are emptied after each test that commits (tests/emptying.py)."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from state_admin.domain.access import Role
from tests import emptying
from tests.builders import Person, make_namespace, make_person, make_run, make_thread, put


@pytest.mark.parametrize("most", [emptying.MOST_BYTES_TO_DELETE, 0])
def test_empty_tables__rows_that_refer_to_each_other__are_gone_and_ids_continue(
    alice: Person, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emptying, "MOST_BYTES_TO_DELETE", most)
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    make_thread(alice.actor)
    make_run(alice.actor)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # TRUNCATE runs without pending checks only
    types = ContentType.objects.count()
    emptying.empty_tables()
    for name in emptying.tables():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {name.as_string()}")
            assert cursor.fetchone() == (0,)
    assert ContentType.objects.count() == types > 0
    assert make_person("alice", "acme", Role.ADMIN).workspace.pk > alice.workspace.pk
