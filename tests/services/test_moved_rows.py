"""What reverts and the audit stream do with the rows of a workspace that is moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from project.audit_stream import Destination
from state_admin.domain.access import Role
from state_admin.models import ApiToken, Entry, MoveState, Revert
from state_admin.models.database import read_time
from state_admin.services import revert_jobs, tokens
from state_admin.services.audit_stream import stream_audit
from state_admin.services.errors import Conflict
from tests.builders import Person, make_person, make_token, put
from tests.services.moving import Cell, acme, cells, expect, mover_to, target
from tests.services.test_workspace_moves import STEPS, Crash, crash_after

__all__ = ["acme", "cells", "target"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("cells")]


def test_run__unfinished_reverts__continue_in_the_target_by_the_same_requesters(
    acme: Person, target: Cell
) -> None:
    for key, actor in {"k0": acme.actor, "k1": make_token(acme)[1]}.items():
        put(replace(actor, request_id=f"wrong {key}"), "notes", key, "wrong")
        revert_jobs.request_revert(actor=actor, request_id=f"wrong {key}")
    with target.used():
        make_person("zoe", "other", Role.ADMIN)  # another user has the number of alice
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()

    with target.used():
        for job in Revert.objects.order_by("pk"):
            assert revert_jobs.run_revert(job.pk) == "done"
        values = Entry.objects.filter(key__in=["k0", "k1"]).order_by("key")
        assert list(values.values_list("value", flat=True)) == ['{"n": 0}', '{"n": 1}']


def test_run__revert_that_searches__continues_in_the_target(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 1)
    at = read_time()
    for key in ("k0", "k1"):
        put(replace(acme.actor, request_id="wrong"), "notes", key, "wrong")
    for reverted in ({"request_id": "wrong"}, {"at": at, "namespace": "notes"}):
        job = revert_jobs.request_revert(actor=acme.actor, **reverted)
        assert revert_jobs.run_revert(job.pk, seconds=0) == "queued"
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()

    with target.used():
        for job in Revert.objects.order_by("pk"):
            assert revert_jobs.run_revert(job.pk) == "done"
        values = Entry.objects.filter(key__in=["k0", "k1"]).order_by("key")
        assert list(values.values_list("value", flat=True)) == ['{"n": 0}', '{"n": 1}']


def test_run__revoked_requester_of_a_revert__is_not_mistaken_for_another_token(
    acme: Person, target: Cell
) -> None:
    actor = make_token(acme)[1]
    put(replace(actor, request_id="wrong"), "notes", "k0", "wrong")
    revert_jobs.request_revert(actor=actor, request_id="wrong")
    tokens.revoke_token(actor=acme.actor, token_id=int(actor.id))
    with target.used():
        zoe = make_person("zoe", "other", Role.ADMIN)
        ApiToken.objects.filter(workspace=zoe.workspace).update(id=int(actor.id))
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()

    with target.used():
        assert revert_jobs.run_revert(Revert.objects.get().pk) == "failed"


def test_forget__rows_that_the_audit_stream_has_not_sent__is_refused_until_it_has(
    acme: Person,
    target: Cell,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def use_folder(name: str) -> None:
        path = str(tmp_path / name)
        settings.AUDIT_STREAM = Destination(f"file://{path}", "file", "", 0, path)

    def sent(name: str) -> int:
        lines = "".join(each.read_text() for each in (tmp_path / name).rglob("*.ndjson"))
        return lines.count('"entry.put"')

    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        with monkeypatch.context() as patch:
            crash_after(patch, STEPS.index("begin") + 1)
            with pytest.raises(Crash):
                mover.run()
        with target.used():  # its stream passes the reserved numbers
            make_person("zoe", "other", Role.ADMIN)
            use_folder("target")
            stream_audit()
        mover.run()
        with target.used():
            stream_audit()
        assert sent("target") == 0

        use_folder("source")
        with pytest.raises(Conflict, match="audit stream"):
            mover.forget()
        assert mover.read().states == (MoveState.MOVED, MoveState.OPEN)
        stream_audit()
        mover.forget()
    assert sent("source") == 5
