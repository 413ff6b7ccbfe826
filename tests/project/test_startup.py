"""How processes start, and the sentences with which a command ends if the database did not do what it
needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import OperationalError, connection

from project.postgres.replication import UnconfirmedCommit
from project.startup import explain
from tests.project.running import run_python

pytestmark = pytest.mark.django_db(transaction=True)

FROZEN = """
DO $$ BEGIN
    RAISE EXCEPTION 'the workspace is frozen: 1'
        USING ERRCODE = 'object_not_in_prerequisite_state', CONSTRAINT = 'workspace_is_frozen';
END $$
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "SET statement_timeout = 1; SELECT pg_sleep(60)",
            "The database did not complete the command: OperationalError (SQLSTATE 57014): "
            "canceling statement due to statement timeout",
        ),
        (
            FROZEN,
            "The workspace refuses writes, because it is being moved to another cell or was moved. "
            "What the command did in other workspaces is stored. Run manage.py doctor.",
        ),
    ],
)
def test_explain__database_refuses_a_statement__does_not_blame_the_connection(
    statement: str, expected: str
) -> None:
    with pytest.raises(OperationalError) as caught, connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()  # as Django does at the end of each command

    assert explain(caught.value) == expected


def test_explain__commit_not_confirmed_by_a_standby__says_that_the_change_is_stored() -> None:
    error = OperationalError()
    error.__cause__ = UnconfirmedCommit()

    assert explain(error).startswith("The change is stored, but no standby server has confirmed it")


_START = """
import sys
from types import SimpleNamespace
from project import beat, celery

def work():
    celery.app.loader.init_worker()
    print(*(name in sys.modules for name in ("state_admin.tasks.sweeps", "state_admin.web.urls")))

beat.Beat = lambda **_: SimpleNamespace(run=work)
celery.run("beat", needs_tables=False)
"""


@pytest.mark.system
def test_beat__starts__imports_jobs_and_no_pages(tmp_path: Path) -> None:
    done = run_python(tmp_path, "-c", _START)

    assert done.stdout == "True False\n", done.stderr
