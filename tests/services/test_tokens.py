"""Rotation of tokens: both secrets work for a while, then only the new one."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from state_admin.domain.access import Role
from state_admin.models import ApiToken, AuditRow
from state_admin.services import tokens
from state_admin.services.actors import actor_of_token
from state_admin.services.errors import Conflict, Forbidden, Invalid, NotFound
from tests.builders import Person, make_token
from tests.services.racing import race, split

DAY = timedelta(days=1)


def make(alice: Person, **options: object) -> tuple[ApiToken, str]:
    return tokens.create_token(
        actor=alice.actor,
        name="ci",
        role=Role.EDITOR,
        namespaces=["team_*"],
        thread_prefixes=["order-"],
        rate_per_minute=60,
        **options,  # type: ignore[arg-type]
    )


def test_rotate__overlap__both_secrets_work(alice: Person) -> None:
    old, old_secret = make(alice)
    new, new_secret = tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=DAY)
    before, after = actor_of_token(old_secret), actor_of_token(new_secret)
    assert before is not None
    assert after is not None
    for name in ("name", "role", "namespaces", "thread_prefixes", "workspace_id"):
        assert getattr(before, name) == getattr(after, name)
    assert (new.rate_per_minute, new.expires_at, new.created_by) == (60, None, "alice")
    old.refresh_from_db()
    assert old.expires_at is not None
    assert old.expires_at == old.rotated_at + DAY  # type: ignore[operator]
    row = AuditRow.objects.get(action="token.rotate")
    assert row.detail == {"from": old.lookup, "to": new.lookup, "overlap": 86400.0}


def test_rotate__overlap_over__only_the_new_one_works(alice: Person) -> None:
    old, old_secret = make(alice)
    _, new_secret = tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=DAY)
    ApiToken.objects.filter(pk=old.pk).update(expires_at=Now() - DAY)
    assert actor_of_token(old_secret) is None
    assert actor_of_token(new_secret) is not None


def test_rotate__no_overlap__ends_the_old_one(alice: Person) -> None:
    old, _ = make(alice)
    tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=timedelta(0))
    old.refresh_from_db()
    assert old.expires_at == old.rotated_at


def test_rotate__earlier_expiry__is_kept_and_the_new_one_expires_as_late(alice: Person) -> None:
    old, _ = make(alice, expires_in_seconds=3600)
    new, _ = tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=DAY)
    ends = old.expires_at
    old.refresh_from_db()
    assert old.expires_at == ends
    assert new.expires_at is not None
    assert new.expires_at - new.created_at == timedelta(hours=1)


@pytest.mark.django_db(transaction=True)
def test_rotate__two_at_once__creates_one_successor(alice: Person) -> None:
    old, _ = make(alice)
    before = ApiToken.objects.count()
    work = partial(tokens.rotate_token, actor=alice.actor, token_id=old.pk, overlap=DAY)
    won, lost = split(race([work, work, work]))
    assert (len(won), {type(problem) for problem in lost}) == (1, {Conflict})
    assert "already rotated" in lost[0].detail
    assert ApiToken.objects.count() == before + 1


def test_rotate__expired__is_refused(alice: Person) -> None:
    old, _ = make(alice)
    tokens.revoke_token(actor=alice.actor, token_id=old.pk)
    with pytest.raises(Conflict, match="no longer active"):
        tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=DAY)


@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=31)])
def test_rotate__overlap_out_of_bounds__is_refused(overlap: timedelta, alice: Person) -> None:
    old, _ = make(alice)
    with pytest.raises(Invalid):
        tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=overlap)


def test_rotate__non_member_editor_or_restricted_admin__is_refused(
    alice: Person, bob: Person, mallory: Person
) -> None:
    old, _ = make(alice)
    rotate = partial(tokens.rotate_token, token_id=old.pk, overlap=DAY)
    with pytest.raises(Forbidden):
        rotate(actor=bob.actor)
    with pytest.raises(NotFound):
        rotate(actor=mallory.actor)
    _, narrow = make_token(alice, Role.ADMIN, namespaces=["other"])
    with pytest.raises(NotFound):
        rotate(actor=narrow)
