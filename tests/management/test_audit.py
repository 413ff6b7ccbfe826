"""What each command changes is in the audit, as the operator's work. A command without a row fails."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from django.apps import apps
from django.core.management import call_command, get_commands
from django.db import connection

from state_admin.models import AuditRow
from tests.builders import Person, make_namespace, make_record, put

pytestmark = pytest.mark.django_db

# Of each command: its arguments, and what it adds to the audit as the system. Nothing: it changes no row.
Arguments = Callable[[Path], list[str]]
TABLE: Final[dict[str, tuple[Arguments, set[str]]]] = {
    "cells": (lambda folder: ["--output", str(folder)], set()),
    "create_login_link": (lambda folder: ["--user", "alice"], {"member.link"}),
    "create_token": (
        lambda folder: ["--workspace", "new", "--role", "viewer", "--name", "monitor"],
        {"workspace.create", "token.create"},
    ),
    "doctor": (lambda folder: ["--json"], set()),
    "export_workspace": (lambda folder: ["acme", "--to", str(folder / "acme.ndjson")], set()),
    "import_transcripts": (
        lambda folder: [str(transcript(folder)), "--workspace", "new"],
        {"workspace.create", "run.start", "run.done"},
    ),
    "import_workspace": (
        lambda folder: [str(exported(folder)), "--as", "copy"],
        {"workspace.import"},
    ),
    "load_demo": (lambda folder: [], {"workspace.create"}),
    "rotate_secrets": (lambda folder: [], set()),
    "set_quota": (lambda folder: ["--workspace", "acme", "--entries", "9"], {"workspace.quota"}),
    "setup": (lambda folder: ["--check"], set()),
    "upgrade": (lambda folder: ["--check"], set()),
    "verify_state": (lambda folder: ["--write", str(folder / "digests")], set()),
}
# Their audit has tests elsewhere: of moves, of deletions, of authenticators. An era of the feed belongs to no workspace. The others
# run a process, or write the documentation.
OTHERS: Final = {
    *("move_workspace", "delete_workspace", "reset_totp", "begin_feed_era"),
    *("beat", "serve", "web", "worker", "write_docs"),
}


def transcript(folder: Path) -> Path:
    file = folder / "chats.jsonl"
    line = {"episode": "chat", "messages": [{"role": "user", "content": "hello"}]}
    file.write_text(json.dumps(line))
    return file


def exported(folder: Path) -> Path:
    file = folder / "acme.ndjson"
    call_command("export_workspace", "acme", "--to", str(file), stderr=io.StringIO())
    return file


def digest_rows() -> dict[str, Any]:
    """A digest of the rows of each table."""
    tables = [model._meta.db_table for model in apps.get_app_config("state_admin").get_models()]
    found = {}
    with connection.cursor() as cursor:
        for table in tables:
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {name} t")
            found[table] = cursor.fetchone()
    return found


def test_table__every_command__has_a_row() -> None:
    names = {name for name, app in get_commands().items() if app == "state_admin"}
    assert names == TABLE.keys() | OTHERS


@pytest.mark.parametrize("name", sorted(TABLE))
def test_command__what_it_changes__is_in_the_audit(
    alice: Person, tmp_path: Path, settings: Any, name: str
) -> None:
    settings.CELL = "eu1"
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1})
    make_record(
        alice.actor, "providers", "openai", {"adapter": "openai", "api_key": "canary-of-commands"}
    )
    arguments, actions = TABLE[name]
    words = arguments(tmp_path)
    rows = digest_rows()
    newest = AuditRow.objects.latest("pk").pk

    with suppress(SystemExit):  # the doctor has findings: a test has no broker
        call_command(name, *words, stdout=io.StringIO(), stderr=io.StringIO())

    added = AuditRow.objects.filter(pk__gt=newest)
    assert actions <= set(added.filter(actor_kind="system").values_list("action", flat=True))
    if not actions:
        assert digest_rows() == rows
