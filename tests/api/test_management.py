"""Workspaces, members and tokens by the API, for infrastructure as code."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from state_admin.domain.access import Role
from state_admin.models import ApiToken, AuditRow, IdempotencyRecord, LoginLink, Membership
from state_admin.services import tokens
from state_admin.services.actors import system_actor
from tests.builders import Person, call, make_person, make_token


@pytest.fixture
def operator(alice: Person) -> str:
    """The secret of an operator's token, created by the command."""
    shell = system_actor(alice.workspace.pk, "operator")
    return tokens.create_token(actor=shell, name="terraform", role=Role.ADMIN, operator=True)[1]


def audited(action: str) -> list[tuple[str, str]]:
    rows = AuditRow.objects.filter(action=action).order_by("pk")
    return [(row.actor_name, row.workspace.slug) for row in rows.select_related("workspace")]


# Tokens ------------------------------------------------------------------------------------------


def test_token__created_used_rotated_and_revoked(alice: Person) -> None:
    body = {"name": "planner", "role": "editor", "namespaces": ["team_*"], "rate_per_minute": 60}
    created = alice.api("POST", "/tokens", body)
    assert created.status_code == 201
    secret, token = created.json()["secret"], created.json()["token"]
    assert {"name", "role", "namespaces", "rate_per_minute"} <= token.keys()
    assert secret.startswith(token["prefix"])
    assert secret not in alice.api("GET", "/tokens").text
    me = call(secret, "GET", "/me").json()
    assert (me["role"], me["namespaces"]) == ("editor", ["team_*"])

    rotated = alice.api("POST", f"/tokens/{token['id']}/rotate", {"overlap_seconds": 60})
    assert rotated.status_code == 201
    assert rotated.json()["token"]["namespaces"] == ["team_*"]
    assert call(secret, "GET", "/me").status_code == 200
    again = alice.api("POST", f"/tokens/{token['id']}/rotate")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/conflict")

    for _ in range(2):
        assert alice.api("DELETE", f"/tokens/{token['id']}").status_code == 204
    assert call(secret, "GET", "/me").status_code == 401
    assert alice.api("GET", f"/tokens/{token['id']}").json()["revoked_at"]
    assert audited("token.revoke") == [("alice's token", "acme")]


def test_token__repeated_with_one_key__is_created_once_and_its_secret_is_not_stored(
    alice: Person,
) -> None:
    body = {"name": "planner", "role": "viewer"}
    first = alice.api("POST", "/tokens", body, Idempotency_Key="k1")
    repeated = alice.api("POST", "/tokens", body, Idempotency_Key="k1")
    assert repeated.json() == first.json() | {"secret": None}
    assert ApiToken.objects.filter(name="planner").count() == 1
    secret = first.json()["secret"].encode()
    assert not any(secret in bytes(row.body) for row in IdempotencyRecord.objects.all())


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"role": "viewer"}, "/name"),
        ({"name": "", "role": "viewer"}, "/name"),
        ({"name": "x", "role": "root"}, "/role"),
        ({"name": "x", "role": "viewer", "expires_in_seconds": 0}, "/expires_in_seconds"),
        ({"name": "x", "role": "viewer", "namespaces": [1]}, "/namespaces/0"),
    ],
)
def test_token__bad_field__is_named(alice: Person, body: Any, pointer: str) -> None:
    answer = alice.api("POST", "/tokens", body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_token__permissions_beyond_its_creator__is_refused(alice: Person) -> None:
    narrow, _ = make_token(alice, Role.ADMIN, namespaces=["team_*"])
    for namespaces, status in (([], 403), (["other"], 403), (["team_a"], 201)):
        body = {"name": "x", "role": "admin", "namespaces": namespaces}
        assert call(narrow, "POST", "/tokens", body).status_code == status
    assert call(narrow, "GET", "/tokens").json()["items"] == []


def test_token__changed__keeps_its_secret_and_what_was_not_sent(alice: Person) -> None:
    body = {"name": "planner", "role": "editor", "namespaces": ["team_*"], "rate_per_minute": 60}
    created = alice.api("POST", "/tokens", body).json()
    path, secret = f"/tokens/{created['token']['id']}", created["secret"]
    ends = "2031-01-31T12:00:00.000000Z"
    changes = {"role": "viewer", "rate_per_minute": None, "expires_at": ends}
    tried = alice.api("PATCH", f"{path}?dry_run=true", changes).json()
    assert (tried["dry_run"], tried["role"]) == (True, "viewer")
    assert alice.api("GET", path).json() == created["token"] | {"last_used_at": None}
    changed = alice.api("PATCH", path, changes)
    assert (changed.status_code, changed.json()) == (200, created["token"] | changes)
    me = call(secret, "GET", "/me").json()
    assert (me["role"], me["namespaces"]) == ("viewer", ["team_*"])
    assert len(audited("token.change")) == 1
    refused = alice.api("PATCH", path, {"role": "admin"}, If_Match='"1"')
    assert refused.status_code == 400
    alice.api("DELETE", path)
    conflict = alice.api("PATCH", path, {"name": "x"})
    assert (conflict.status_code, conflict.json()["type"]) == (409, "/problems/conflict")
    assert conflict.json()["detail"] == f"token is revoked: {created['token']['id']}"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"role": "emperor"}, "/role"),
        ({"role": None}, "/role"),
        ({"namespaces": None}, "/namespaces"),
        ({"expires_at": "2031-01-31T12:00:00"}, "/expires_at"),
        ({"expires_at": "2020-01-31T12:00:00Z"}, "/expires_at"),
        ({"rate_per_minute": 0}, "/rate_per_minute"),
    ],
)
def test_token__bad_change__is_named(alice: Person, body: Any, pointer: str) -> None:
    token = alice.api("POST", "/tokens", {"name": "x", "role": "viewer"}).json()["token"]
    refused = alice.api("PATCH", f"/tokens/{token['id']}", body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)


def test_token__that_outlives_the_expiring_token_that_creates_it__is_refused(alice: Person) -> None:
    creator, actor = make_token(alice, Role.ADMIN)
    ApiToken.objects.filter(pk=actor.id).update(expires_at=timezone.now() + timedelta(hours=1))
    ends = ApiToken.objects.get(pk=actor.id).expires_at
    assert ends is not None
    for seconds in (None, 3601):
        body = {"name": "x", "role": "viewer", "expires_in_seconds": seconds}
        refused = call(creator, "POST", "/tokens", body)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert error["pointer"] == "/expires_in_seconds"
        assert f"{ends:%Y-%m-%dT%H:%M:%S}+00:00" in error["message"]
    body["expires_in_seconds"] = 3000
    created = call(creator, "POST", "/tokens", body)
    assert created.status_code == 201
    assert created.json()["token"]["expires_at"] < ends.isoformat()


def test_token__rotation_by_a_token_that_expires_sooner__is_refused(alice: Person) -> None:
    creator, actor = make_token(alice, Role.ADMIN)
    _, endless = make_token(alice, Role.VIEWER)
    _, brief = make_token(alice, Role.VIEWER)
    now = timezone.now()
    for of, created, expires in (
        (actor, now, now + timedelta(hours=1)),
        (brief, now, now + timedelta(minutes=30)),
    ):
        ApiToken.objects.filter(pk=of.id).update(created_at=created, expires_at=expires)
    refused = call(creator, "POST", f"/tokens/{endless.id}/rotate")
    assert refused.status_code == 403
    assert refused.json()["detail"] == "the successor would outlive the token that rotates it"
    assert ApiToken.objects.get(pk=endless.id).rotated_at is None
    for of in (brief, actor):
        assert call(creator, "POST", f"/tokens/{of.id}/rotate").status_code == 201


@pytest.mark.parametrize(
    "permissions", [{"role": "editor"}, {"namespaces": []}, {"thread_prefixes": ["a", "b"]}]
)
def test_token__more_permissions_by_a_token_that_expires_sooner__are_refused(
    alice: Person, permissions: dict[str, Any]
) -> None:
    changer, actor = make_token(alice, Role.ADMIN)
    ends = timezone.now() + timedelta(hours=1)
    ApiToken.objects.filter(pk=actor.id).update(expires_at=ends)
    _, endless = make_token(alice, Role.VIEWER, ["team_*"], ["a"])
    path = f"/tokens/{endless.id}"
    refused = call(changer, "PATCH", path, permissions)
    assert refused.status_code == 422
    assert refused.json()["detail"] == "a token cannot outlive the token that changes it"
    assert (
        call(changer, "PATCH", path, permissions | {"expires_at": ends.isoformat()}).status_code
        == 200
    )


def test_token__fewer_permissions_by_a_token_that_expires_sooner__are_permitted(
    alice: Person,
) -> None:
    changer, actor = make_token(alice, Role.ADMIN)
    ApiToken.objects.filter(pk=actor.id).update(expires_at=timezone.now() + timedelta(hours=1))
    _, endless = make_token(alice, Role.ADMIN)
    fewer = {"name": "x", "role": "viewer", "namespaces": ["team_*"], "thread_prefixes": ["a"]}
    assert call(changer, "PATCH", f"/tokens/{endless.id}", fewer).status_code == 200


# Members -----------------------------------------------------------------------------------------


def test_member__invited_changed_and_removed(alice: Person) -> None:
    invited = alice.api("POST", "/members", {"username": "carol", "role": "viewer"})
    assert invited.status_code == 201
    member = invited.json()["member"]
    assert "/login/" in invited.json()["login_url"]
    assert LoginLink.objects.filter(user__username="carol", used_at=None).count() == 1
    renewed = alice.api("POST", f"/members/{member['id']}/invitation")
    assert renewed.json()["login_url"] != invited.json()["login_url"]
    changed = alice.api("PATCH", f"/members/{member['id']}", {"role": "editor"})
    assert changed.json()["role"] == "editor"
    assert alice.api("DELETE", f"/members/{member['id']}/sessions").json() == {"ended": 0}
    assert alice.api("DELETE", f"/members/{member['id']}").status_code == 204
    assert alice.api("GET", f"/members/{member['id']}").status_code == 404


def test_member__removed_with_their_tokens__revokes_them(alice: Person) -> None:
    carol = make_person("carol", "acme", Role.ADMIN)
    _, secret = tokens.create_token(actor=carol.actor, name="ci", role=Role.ADMIN)
    member = Membership.objects.get(user=carol.user).pk
    tried = alice.api("DELETE", f"/members/{member}?revoke_tokens=true&dry_run=true")
    assert tried.json() == {"dry_run": True, "revoked_tokens": 1}
    tried = alice.api("DELETE", f"/members/{member}?dry_run=true")
    assert tried.json() == {"dry_run": True, "revoked_tokens": 0}
    # With the token that is revoked.
    removed = call(secret, "DELETE", f"/members/{member}?revoke_tokens=true")
    assert (removed.status_code, removed.content) == (204, b"")
    assert call(secret, "GET", "/me").status_code == 401


def test_member__repeated_with_one_key__stores_no_link(alice: Person) -> None:
    body = {"username": "carol", "role": "viewer"}
    first = alice.api("POST", "/members", body, Idempotency_Key="k1")
    repeated = alice.api("POST", "/members", body, Idempotency_Key="k1")
    assert repeated.json() == first.json() | {"login_url": None}


def test_member__last_admin__cannot_be_removed(alice: Person) -> None:
    own = Membership.objects.get(workspace=alice.workspace, user__username=alice.actor.name)
    for method, body in (("DELETE", None), ("PATCH", {"role": "viewer"})):
        answer = alice.api(method, f"/members/{own.pk}", body)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/conflict")


# Workspaces --------------------------------------------------------------------------------------


def test_workspace__created_by_an_operator__gets_quotas_and_its_first_token(
    operator: str, alice: Person
) -> None:
    body = {"slug": "globex", "name": "Globex"}
    assert call(operator, "POST", "/workspaces", body).status_code == 201
    assert call(operator, "POST", "/workspaces", body).status_code == 200
    change = {"max_entries": 1, "max_threads": None}
    changed = call(operator, "PATCH", "/workspaces/globex", change).json()
    assert (changed["max_entries"], changed["max_bytes"], changed["name"]) == (1, None, "Globex")
    first = {"name": "app", "role": "admin"}
    secret = call(operator, "POST", "/workspaces/globex/tokens", first).json()["secret"]
    assert call(secret, "GET", "/me").json()["workspace"] == "globex"
    assert audited("workspace.change") == [("terraform", "globex")]
    assert audited("workspace.create")[-1] == ("terraform", "globex")
    slugs = [item["slug"] for item in call(operator, "GET", "/workspaces").json()["items"]]
    assert {"acme", "globex"} <= set(slugs)
    assert slugs == sorted(slugs)
    # An admin of one workspace sees only that one.
    assert [w["slug"] for w in call(secret, "GET", "/workspaces").json()["items"]] == ["globex"]
    assert call(secret, "GET", "/workspaces/acme").status_code == 404


def test_workspace__quota__is_enforced(operator: str) -> None:
    call(operator, "POST", "/workspaces", {"slug": "globex"})
    call(operator, "PATCH", "/workspaces/globex", {"max_threads": 0})
    first = {"name": "app", "role": "admin"}
    secret = call(operator, "POST", "/workspaces/globex/tokens", first).json()["secret"]
    refused = call(secret, "POST", "/threads", {"id": "t1"})
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/quota-exceeded")


def test_workspace__deleted_by_an_operator__is_gone_and_its_name_is_free(operator: str) -> None:
    path = "/workspaces/globex"
    call(operator, "POST", "/workspaces", {"slug": "globex"})
    first = {"name": "app", "role": "admin"}
    secret = call(operator, "POST", f"{path}/tokens", first).json()["secret"]
    call(secret, "POST", "/threads", {"id": "t1"})

    refused = call(operator, "DELETE", path)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
    assert refused.json()["detail"] == "the workspace is not empty (entries: 0, threads: 1)"
    tried = call(operator, "DELETE", f"{path}?contents=delete&dry_run=true")
    counts = {"entries": 0, "threads": 1, "tokens": 1, "members": 0, "webhooks": 0}
    assert tried.json() == {"dry_run": True, "would_delete": counts}
    assert call(secret, "GET", "/me").status_code == 200

    for _ in range(2):
        gone = call(
            operator,
            "DELETE",
            f"{path}?contents=delete",
            Idempotency_Key="k1",
            Change_Reason="contract ended",
        )
        assert (gone.status_code, gone.content) == (204, b"")
    assert call(operator, "DELETE", path).status_code == 204
    assert call(secret, "GET", "/me").status_code == 401
    assert call(operator, "GET", path).status_code == 404
    assert call(operator, "PATCH", path, {"name": "x"}).status_code == 404
    assert call(operator, "POST", f"{path}/tokens", first).status_code == 404
    slugs = [item["slug"] for item in call(operator, "GET", "/workspaces").json()["items"]]
    assert slugs == ["acme"]
    (row,) = call(operator, "GET", "/audit?action=workspace.delete").json()["items"]
    assert (row["key"], row["actor"], row["reason"]) == ("globex", "terraform", "contract ended")
    assert call(operator, "POST", "/workspaces", {"slug": "globex"}).status_code == 201


def test_workspace__of_an_operator_token__cannot_be_deleted(operator: str) -> None:
    refused = call(operator, "DELETE", "/workspaces/acme?contents=delete")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
    assert call(operator, "GET", "/me").status_code == 200


def test_operator_token__is_created_by_operators_only(alice: Person) -> None:
    answer = alice.api("POST", "/tokens", {"name": "x", "role": "admin", "operator": True})
    assert answer.status_code == 400  # not a field of the API
    row = ApiToken.objects.get(name="x") if ApiToken.objects.filter(name="x") else None
    assert row is None


def test_operator_token__rotated_by_an_admin__is_refused(operator: str, alice: Person) -> None:
    row = ApiToken.objects.get(name="terraform")
    assert alice.api("POST", f"/tokens/{row.pk}/rotate").status_code == 403
    successor = call(operator, "POST", f"/tokens/{row.pk}/rotate").json()
    assert successor["token"]["operator"] is True
