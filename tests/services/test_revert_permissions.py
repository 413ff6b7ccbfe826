"""On whose behalf a revert writes: permissions that its requester loses, and the limits of a token."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now

from state_admin.models import ApiToken, Entry, EntryRevision, Membership, User
from state_admin.services import revert_jobs
from state_admin.services.errors import NotFound
from tests.builders import Person, call, make_namespace, make_token, put
from tests.services.test_revert_jobs import request, revert, write_many

_OF_TOKEN: dict[str, dict[str, Any]] = {
    "revoked": {"revoked_at": Now()},
    "demoted": {"role": "viewer"},
    "narrowed": {"namespaces": ["other"]},
}


@pytest.mark.parametrize("change", ["removed", "viewer", "inactive", *_OF_TOKEN])
def test_revert__requester_may_no_longer_write__stops(alice: Person, change: str) -> None:
    write_many(alice, 3)
    actor = make_token(alice)[1] if change in _OF_TOKEN else alice.actor
    job = revert_jobs.request_revert(actor=actor, request_id="r")
    members = Membership.objects.filter(user_id=alice.user.pk)
    match change:
        case "removed":
            members.delete()
        case "viewer":
            members.update(role="viewer")
        case "inactive":
            User.objects.filter(pk=alice.user.pk).update(is_active=False)
        case _:
            ApiToken.objects.update(**_OF_TOKEN[change])

    assert revert_jobs.run_revert(job.pk) == "failed"

    job.refresh_from_db()
    assert job.detail == "the requester is no longer permitted to change entries"
    assert not EntryRevision.objects.filter(request_id=job.public_id).exists()


def test_token__limited_to_namespaces__reverts_only_those_and_sees_its_own_jobs(
    alice: Person,
) -> None:
    for name in ("notes", "other"):
        make_namespace(alice.actor, name)
        put(request(alice, "r"), name, "k", 1)
    _, limited = make_token(alice, namespaces=["no*"])
    job = revert_jobs.request_revert(actor=limited, request_id="r")
    assert revert_jobs.run_revert(job.pk) == "done"
    assert set(Entry.objects.live().values_list("namespace__name", flat=True)) == {"other"}
    assert revert_jobs.find_revert(limited, job.public_id).reverted == 1
    theirs = revert(alice, "unknown")
    with pytest.raises(NotFound):
        revert_jobs.find_revert(limited, theirs.public_id)


def test_token__with_more_permissions_than_before__continues_its_revert(alice: Person) -> None:
    write_many(alice, 3)
    _, actor = make_token(alice, namespaces=["notes"])
    job = revert_jobs.request_revert(actor=actor, request_id="r")
    ApiToken.objects.filter(pk=actor.id).update(role="admin", namespaces=["no*", "other"])
    assert revert_jobs.run_revert(job.pk) == "done"


def test_token__narrowed_since__does_not_see_skipped_entries_outside_its_limits(
    alice: Person,
) -> None:
    for name in ("notes", "other"):
        make_namespace(alice.actor, name)
        put(request(alice, "r"), name, "k", 1)
        put(alice.actor, name, "k", 2)
    secret, actor = make_token(alice)
    job = revert_jobs.request_revert(actor=actor, request_id="r")
    assert revert_jobs.run_revert(job.pk) == "done"
    ApiToken.objects.filter(pk=actor.id).update(namespaces=["notes"])
    skipped = call(secret, "GET", f"/reverts/{job.public_id}/skipped").json()["items"]
    assert [each["namespace"] for each in skipped] == ["notes"]
