"""Explain access: the result and its reasons."""

from __future__ import annotations

import pytest

from state_admin.domain.access import Role
from state_admin.models import ApiToken
from state_admin.services import access, actors, tokens
from state_admin.services.errors import Forbidden
from tests.builders import Person, call, make_token


def newest() -> int:
    return ApiToken.objects.latest("id").pk


def test_explain__restricted_token_inside_its_permissions__may_write(alice: Person) -> None:
    make_token(alice, Role.EDITOR, namespaces=["team_*"])
    found = alice.api("GET", f"/access/explain?token_id={newest()}&namespace=team_a").json()
    assert (found["may_read"], found["may_write"], found["may_administer"]) == (True, True, False)
    assert "team_a is within its grant: team_*" in found["reasons"]


def test_explain__restricted_token_outside_its_permissions__may_do_nothing(alice: Person) -> None:
    make_token(alice, Role.EDITOR, namespaces=["team_*"])
    found = alice.api("GET", f"/access/explain?token_id={newest()}&namespace=other").json()
    assert (found["may_read"], found["may_write"]) == (False, False)
    assert "other is outside its grant: team_*" in found["reasons"]


def test_explain__revoked_token__reports_it(alice: Person) -> None:
    make_token(alice, Role.VIEWER)
    tokens.revoke_token(actor=alice.actor, token_id=newest())
    found = alice.api("GET", f"/access/explain?token_id={newest()}").json()
    assert found["may_read"] is False
    assert found["reasons"][0] == "the token was revoked"


def test_explain__member_and_non_member__are_distinguished(
    alice: Person, bob: Person, mallory: Person
) -> None:
    found = alice.api("GET", "/access/explain?username=bob").json()
    assert (found["role"], found["may_read"], found["may_write"]) == ("viewer", True, False)
    found = alice.api("GET", "/access/explain?username=mallory").json()
    assert (found["role"], found["may_read"]) == (None, False)


def test_explain__restricted_token_asks_for_a_member__sees_none(alice: Person, bob: Person) -> None:
    """As in GET /members."""
    token, _ = make_token(alice, Role.ADMIN, namespaces=["team_*"])
    found = call(token, "GET", "/access/explain?username=bob").json()
    assert (found["role"], found["may_read"]) == (None, False)


def test_explain__token_of_another_workspace__is_not_found(alice: Person, mallory: Person) -> None:
    make_token(mallory, Role.VIEWER)
    assert alice.api("GET", f"/access/explain?token_id={newest()}").status_code == 404


def test_explain__both_or_neither_subject__is_refused(alice: Person) -> None:
    for query in ("", "?token_id=1&username=bob"):
        answer = alice.api("GET", f"/access/explain{query}")
        assert (answer.status_code, answer.json()["parameter"]) == (400, "token_id")


def test_who_reaches__namespace__lists_members_by_role_and_permitted_tokens(
    alice: Person, bob: Person, mallory: Person
) -> None:
    ApiToken.objects.filter(workspace=alice.workspace).delete()
    for name, globs in (("all", []), ("team", ["team_*"]), ("other", ["x"]), ("gone", [])):
        tokens.create_token(actor=alice.actor, name=name, role=Role.VIEWER, namespaces=globs)
    tokens.revoke_token(actor=alice.actor, token_id=newest())
    tokens.create_token(actor=mallory.actor, name="foreign", role=Role.ADMIN)
    reach = access.read_namespace_access(actor=alice.actor, namespace="team_a")
    assert reach.members == {Role.ADMIN: 1, Role.VIEWER: 1}
    assert [token.name for token in reach.tokens] == ["team", "all"]
    assert not reach.partly
    with pytest.raises(Forbidden):
        access.read_namespace_access(actor=bob.actor, namespace="team_a")


def test_who_reaches__more_than_the_limit__reports_it(
    alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MOST", 1)
    reach = access.read_namespace_access(actor=alice.actor, namespace="n")
    assert (reach.members, len(reach.tokens), reach.partly) == ({Role.ADMIN: 1}, 1, True)


def test_require__role_of_a_token_or_a_member_is_too_low__says_whose(
    alice: Person, bob: Person
) -> None:
    token, _ = make_token(alice, Role.EDITOR)
    refused = call(token, "PUT", "/namespaces/n", {"default": 1}).json()
    assert refused["detail"] == "the role admin is required"
    assert refused["hint"] == "The role of this token is editor. Use a token with a higher role."
    with pytest.raises(Forbidden, match="the role admin is required") as caught:
        actors.require(bob.actor, Role.ADMIN)
    assert caught.value.hint == (
        "Your role is viewer. Ask an admin of the workspace for a higher role."
    )
