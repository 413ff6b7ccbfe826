"""Members: how they are added, that the last admin cannot be removed, and that sessions end."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from state_admin.domain.access import Actor, Role
from state_admin.models import ApiToken, AuditRow, Change, LoginLink, Membership, User
from state_admin.models.access import digest
from state_admin.models.sessions import SessionStore
from state_admin.services import actors, members, tokens, users
from state_admin.services.actors import actor_of_user
from state_admin.services.errors import Conflict, Forbidden, Invalid, NotFound
from tests.builders import Person, make_person, make_token
from tests.services.racing import interleave, overlap, race, split


def membership(person: Person) -> Membership:
    return Membership.objects.get(user=person.user, workspace=person.workspace)


def test_add__new_user__is_created_and_signs_in_once_by_link(alice: Person) -> None:
    added = members.add_member(actor=alice.actor, username=" carol ", role=Role.EDITOR, reason="hi")
    user = users.use_login_link(added.link)
    assert user is not None
    assert user.get_username() == "carol"
    assert users.use_login_link(added.link) is None
    actor = actor_of_user(user)
    assert actor is not None
    assert (actor.workspace_id, actor.role) == (alice.workspace.pk, Role.EDITOR)
    row = AuditRow.objects.get(action="member.add")
    assert (row.actor_name, row.key, row.reason) == ("alice", "carol", "hi")
    assert row.detail == {"role": "editor", "new_user": True}
    assert Change.objects.filter(kind="member.add", key="carol").exists()


def test_add__known_user__gets_no_link(alice: Person, mallory: Person) -> None:
    added = members.add_member(actor=alice.actor, username="mallory", role=Role.VIEWER)
    assert added.link == ""
    assert actor_of_user(mallory.user, "acme") is not None
    assert membership(mallory).role == "admin"


def test_add__existing_member__is_refused_and_keeps_the_role(alice: Person, bob: Person) -> None:
    with pytest.raises(Conflict, match="already a member: bob"):
        members.add_member(actor=alice.actor, username="bob", role=Role.ADMIN)
    assert membership(bob).role == "viewer"


@pytest.mark.parametrize("name", ["", "  ", "a b", "<script>", "x" * 151, "a\0"])
def test_add__no_name__is_refused(name: str, alice: Person) -> None:
    with pytest.raises(Invalid):
        members.add_member(actor=alice.actor, username=name, role=Role.VIEWER)
    assert User.objects.count() == 1


def test_role__changed__applies_from_the_next_request(alice: Person, bob: Person) -> None:
    members.change_role(actor=alice.actor, member_id=membership(bob).pk, role=Role.EDITOR)
    actor = actor_of_user(bob.user)
    assert actor is not None
    assert actor.role is Role.EDITOR
    assert AuditRow.objects.get(action="member.role").detail == {
        "role": "editor",
        "before": "viewer",
    }


def test_role__unchanged__writes_nothing(alice: Person) -> None:
    members.change_role(actor=alice.actor, member_id=membership(alice).pk, role=Role.ADMIN)
    assert not AuditRow.objects.filter(action="member.role").exists()


def test_remove__member__loses_access_at_once(alice: Person, bob: Person) -> None:
    members.remove_member(actor=alice.actor, member_id=membership(bob).pk, reason="left")
    assert actor_of_user(bob.user) is None
    assert AuditRow.objects.get(action="member.remove").reason == "left"


def token_of(actor: Actor, name: str) -> tuple[ApiToken, str]:
    return tokens.create_token(actor=actor, name=name, role=Role.ADMIN)


def test_remove__with_tokens__revokes_the_active_ones_that_the_user_created(alice: Person) -> None:
    carol = make_person("carol", "acme", Role.ADMIN)
    _, secret = token_of(carol.actor, "ci")
    token_of(carol.actor, "cd")
    expired, _ = token_of(carol.actor, "old")
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=Now())
    program = actors.actor_of_token(token_of(alice.actor, "carol")[1])
    assert program is not None
    token_of(program, "created by a token named carol")
    members.remove_member(actor=alice.actor, member_id=membership(carol).pk, reason="left")
    assert actors.actor_of_token(secret) is not None  # the default
    members.add_member(actor=alice.actor, username="carol", role=Role.ADMIN)

    removed = members.remove_member(
        actor=alice.actor, member_id=membership(carol).pk, revoke_tokens=True, reason="left"
    )

    revoked = {row.name for row in ApiToken.objects.filter(revoked_at__isnull=False)}
    assert (revoked, removed.revoked) == ({"ci", "cd"}, 2)
    assert actors.actor_of_token(secret) is None
    rows = AuditRow.objects.filter(action="token.revoke", reason="left")
    assert sorted(rows.values_list("key", flat=True)) == ["cd", "ci"]
    detail = AuditRow.objects.filter(action="member.remove").latest("pk").detail
    assert detail == {"role": "admin", "revoked_tokens": 2}


def test_remove__with_tokens_of_before_creators_were_recorded__revokes_those_of_the_name(
    alice: Person,
) -> None:
    carol = make_person("carol", "acme", Role.ADMIN)
    token, _ = token_of(carol.actor, "ci")
    ApiToken.objects.filter(pk=token.pk).update(created_by_kind="")
    members.remove_member(actor=alice.actor, member_id=membership(carol).pk, revoke_tokens=True)
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_remove__refused__revokes_nothing(alice: Person) -> None:
    _, secret = token_of(alice.actor, "ci")
    with pytest.raises(Conflict):
        members.remove_member(actor=alice.actor, member_id=membership(alice).pk, revoke_tokens=True)
    assert actors.actor_of_token(secret) is not None


def test_last_admin__removed_or_demoted__is_refused(alice: Person, bob: Person) -> None:
    mine = membership(alice).pk
    for attempt in (
        partial(members.remove_member, actor=alice.actor, member_id=mine),
        partial(members.change_role, actor=alice.actor, member_id=mine, role=Role.EDITOR),
    ):
        with pytest.raises(Conflict, match="the last admin cannot be removed"):
            attempt()
    assert membership(alice).role == "admin"
    members.change_role(actor=alice.actor, member_id=membership(bob).pk, role=Role.ADMIN)
    members.remove_member(actor=alice.actor, member_id=mine)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rotate", [False, True])
def test_remove__member_creates_a_token_meanwhile__it_is_revoked_too(
    alice: Person, monkeypatch: pytest.MonkeyPatch, rotate: bool
) -> None:
    carol = make_person("carol", "acme", Role.ADMIN)
    old, _ = token_of(carol.actor, "ci")

    def remove() -> None:
        members.remove_member(actor=alice.actor, member_id=membership(carol).pk, revoke_tokens=True)

    with interleave(monkeypatch, tokens, "digest", remove):
        if rotate:
            tokens.rotate_token(actor=carol.actor, token_id=old.pk, overlap=timedelta(hours=1))
        else:
            tokens.create_token(actor=carol.actor, name="late", role=Role.ADMIN)
    assert not ApiToken.objects.live().created_by_user("carol").exists()


@pytest.mark.django_db(transaction=True)
def test_last_admins__each_removes_the_other_at_once__one_stays(alice: Person) -> None:
    erin = make_person("erin", "acme", Role.ADMIN)
    ours = {person.user.pk: membership(person).pk for person in (alice, erin)}
    won, lost = split(
        race(
            [
                partial(members.remove_member, actor=alice.actor, member_id=ours[erin.user.pk]),
                partial(
                    members.change_role,
                    actor=erin.actor,
                    member_id=ours[alice.user.pk],
                    role=Role.VIEWER,
                ),
            ]
        )
    )
    assert (len(won), [type(problem) for problem in lost]) == (1, [Conflict])
    assert Membership.objects.filter(workspace=alice.workspace, role="admin").count() == 1


def test_members__viewer_or_editor__may_do_nothing(alice: Person, bob: Person) -> None:
    erin = make_person("erin", "acme", Role.EDITOR)
    mine = membership(alice).pk
    for actor in (bob.actor, erin.actor):
        for attempt in (
            partial(members.add_member, actor=actor, username="eve", role=Role.VIEWER),
            partial(members.change_role, actor=actor, member_id=mine, role=Role.VIEWER),
            partial(members.remove_member, actor=actor, member_id=mine),
            partial(members.renew_link, actor=actor, member_id=mine),
            partial(members.end_member_sessions, actor=actor, member_id=mine),
        ):
            with pytest.raises(Forbidden):
                attempt()


def test_members__of_another_workspace__are_absent(alice: Person, mallory: Person) -> None:
    theirs = membership(mallory).pk
    for attempt in (
        partial(members.change_role, actor=alice.actor, member_id=theirs, role=Role.VIEWER),
        partial(members.remove_member, actor=alice.actor, member_id=theirs),
        partial(members.renew_link, actor=alice.actor, member_id=theirs),
        partial(members.end_member_sessions, actor=alice.actor, member_id=theirs),
    ):
        with pytest.raises(NotFound):
            attempt()


def test_link__member_of_this_workspace_only__gets_a_new_one(alice: Person, bob: Person) -> None:
    secret = members.renew_link(actor=alice.actor, member_id=membership(bob).pk)
    assert users.use_login_link(secret) == bob.user
    assert secret not in str(AuditRow.objects.values_list("detail"))


def test_link__member_of_another_workspace_too__is_refused(alice: Person, mallory: Person) -> None:
    added = members.add_member(actor=alice.actor, username="mallory", role=Role.VIEWER)
    with pytest.raises(Forbidden, match="other workspaces too"):
        members.renew_link(actor=alice.actor, member_id=added.membership.pk)
    assert not LoginLink.objects.exists()


def sign_in(person: Person) -> str:
    """The key of a new session."""
    return person.browser().session.session_key or ""


def is_in(key: str) -> bool:
    return SessionStore(key).get("_auth_user_id") is not None


def test_sessions__of_a_member__end_with_unused_links(alice: Person, bob: Person) -> None:
    keys, stays = [sign_in(bob), sign_in(bob)], sign_in(alice)
    assert all(map(is_in, [*keys, stays]))
    secret = users.make_login_link(bob.user)
    ended = members.end_member_sessions(actor=alice.actor, member_id=membership(bob).pk)
    assert ended == 2
    assert [is_in(key) for key in [*keys, stays]] == [False, False, True]
    assert users.use_login_link(secret) is None
    assert AuditRow.objects.get(action="session.end").detail == {"ended": 2}


def test_sessions__own_one__keeps_the_others(bob: Person) -> None:
    here, there = sign_in(bob), sign_in(bob)
    assert members.end_own_sessions(actor=bob.actor, key_digest=digest(there)) == 1
    assert (is_in(here), is_in(there)) == (True, False)


def test_sessions__key_of_another_user__ends_nothing(alice: Person, bob: Person) -> None:
    theirs = sign_in(alice)
    assert members.end_own_sessions(actor=bob.actor, key_digest=digest(theirs)) == 0
    assert is_in(theirs)


def test_sessions__of_a_token__do_not_exist(alice: Person) -> None:
    _, token = make_token(alice, Role.ADMIN)
    with pytest.raises(Forbidden, match="only users have sessions"):
        members.end_own_sessions(actor=token)


def test_add__user_with_an_unused_link_of_another_admin__link_stops_working(
    alice: Person, mallory: Person
) -> None:
    added = members.add_member(actor=mallory.actor, username="carol", role=Role.VIEWER)
    renewed = members.renew_link(actor=mallory.actor, member_id=added.membership.pk)
    members.add_member(actor=alice.actor, username="carol", role=Role.EDITOR)
    assert users.use_login_link(added.link) is None
    assert users.use_login_link(renewed) is None


@pytest.mark.django_db(transaction=True)
def test_add__while_another_admin_renews_the_link__no_link_remains(
    alice: Person, mallory: Person
) -> None:
    added = members.add_member(actor=mallory.actor, username="carol", role=Role.VIEWER)
    member_id = added.membership.pk

    overlap(
        lambda: members.renew_link(actor=mallory.actor, member_id=member_id),
        lambda: members.add_member(actor=alice.actor, username="carol", role=Role.EDITOR),
    )
    assert not LoginLink.objects.filter(used_at=None).exists()


def test_link__superuser__is_refused(alice: Person, bob: Person) -> None:
    User.objects.filter(pk=bob.user.pk).update(is_superuser=True)
    with pytest.raises(Forbidden, match="superuser"):
        members.renew_link(actor=alice.actor, member_id=membership(bob).pk)
