"""Changes of tokens, and their rotation: both secrets work for a while, then only the new one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from state_admin.domain.access import Role
from state_admin.domain.moments import timestamp
from state_admin.models import ApiToken, AuditRow
from state_admin.services import tokens
from state_admin.services.actors import actor_of_token, system_actor
from state_admin.services.errors import Conflict, Forbidden, Invalid, NotFound
from tests.builders import Person, make_token
from tests.services.racing import overlap, race, split

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


@pytest.mark.django_db(transaction=True)
def test_rotate__while_the_token_is_narrowed__successor_is_narrow_too(alice: Person) -> None:
    old, _ = make(alice)
    rotated: list[ApiToken] = []
    overlap(
        lambda: tokens.change_token(actor=alice.actor, token_id=old.pk, changes={"role": "viewer"}),
        lambda: rotated.append(
            tokens.rotate_token(actor=alice.actor, token_id=old.pk, overlap=DAY)[0]
        ),
    )
    assert rotated[0].role == "viewer"


def test_change__all_fields__apply_to_the_same_secret(alice: Person) -> None:
    token, secret = make(alice)
    ends = datetime.now(UTC) + DAY
    changes = {
        "name": " deploy ",
        "role": "viewer",
        "namespaces": ["team_a"],
        "thread_prefixes": [],
        "rate_per_minute": None,
        "expires_at": ends,
    }
    changed = tokens.change_token(
        actor=alice.actor, token_id=token.pk, changes=changes, reason="smaller"
    )
    changed.refresh_from_db()
    assert (changed.name, changed.rate_per_minute, changed.expires_at) == ("deploy", None, ends)
    actor = actor_of_token(secret)
    assert actor is not None
    assert (actor.name, actor.role, actor.namespaces) == ("deploy", Role.VIEWER, ("team_a",))
    assert actor.thread_prefixes == ()
    row = AuditRow.objects.get(action="token.change")
    assert (row.key, row.reason) == ("deploy", "smaller")
    assert row.detail["from"] == {
        "expires_at": None,
        "name": "ci",
        "namespaces": ["team_*"],
        "rate_per_minute": 60,
        "role": "editor",
        "thread_prefixes": ["order-"],
    }
    assert row.detail["to"] == changes | {"name": "deploy", "expires_at": timestamp(ends)}


def test_change__same_values__writes_nothing(alice: Person) -> None:
    token, _ = make(alice)
    same = {"name": "ci", "namespaces": ["team_*"], "expires_at": None, "role": "editor"}
    for changes in (same, {}):
        tokens.change_token(actor=alice.actor, token_id=token.pk, changes=changes)
    assert not AuditRow.objects.filter(action="token.change").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "  "},
        {"name": "x" * 129},
        {"rate_per_minute": 0},
        {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)},
        {"expires_at": datetime(2999, 1, 1, tzinfo=UTC)},
    ],
)
def test_change__invalid_value__is_refused(changes: dict[str, object], alice: Person) -> None:
    token, _ = make(alice)
    with pytest.raises(Invalid):
        tokens.change_token(actor=alice.actor, token_id=token.pk, changes=changes)


def test_change__token_that_expires__cannot_extend_itself_or_others(alice: Person) -> None:
    own, secret = tokens.create_token(
        actor=alice.actor, name="ci", role=Role.ADMIN, expires_in_seconds=3600
    )
    actor = actor_of_token(secret)
    assert actor is not None
    assert own.expires_at is not None
    other, _ = make(alice, expires_in_seconds=60)
    for token in (own, other):
        for ends in (None, own.expires_at + DAY):
            with pytest.raises(Invalid, match="cannot outlive"):
                tokens.change_token(
                    actor=actor, token_id=token.pk, changes={"expires_at": ends, "name": "x"}
                )
    tokens.change_token(actor=actor, token_id=other.pk, changes={"expires_at": own.expires_at})
    # What does not change the end is permitted, also of a token that is valid for longer.
    eternal, _ = make(alice)
    tokens.change_token(actor=actor, token_id=eternal.pk, changes={"expires_at": None, "name": "y"})


def test_change__operator_token__needs_an_operator_and_stays_without_limits(alice: Person) -> None:
    shell = system_actor(alice.workspace.pk, "shell")
    token, secret = tokens.create_token(
        actor=shell, name="terraform", role=Role.ADMIN, operator=True
    )
    with pytest.raises(Forbidden, match="operator"):
        tokens.change_token(actor=alice.actor, token_id=token.pk, changes={"name": "x"})
    operator = actor_of_token(secret)
    assert operator is not None
    for changes in ({"role": "editor"}, {"namespaces": ["x"]}):
        with pytest.raises(Invalid, match="no limits"):
            tokens.change_token(actor=operator, token_id=token.pk, changes=changes)
    tokens.change_token(actor=operator, token_id=token.pk, changes={"rate_per_minute": 5})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"revoked_at": Now()}, "token is revoked"),
        ({"expires_at": Now()}, "token has expired"),
        ({"rotated_at": Now()}, "token is already rotated"),
    ],
)
def test_change__inactive__is_a_conflict(
    fields: dict[str, object], message: str, alice: Person
) -> None:
    token, _ = make(alice)
    ApiToken.objects.filter(pk=token.pk).update(**fields)
    with pytest.raises(Conflict, match=message):
        tokens.change_token(actor=alice.actor, token_id=token.pk, changes={"expires_at": None})


def test_change__non_member_editor_or_restricted_admin__is_refused(
    alice: Person, bob: Person, mallory: Person
) -> None:
    token, _ = make(alice)
    change = partial(tokens.change_token, token_id=token.pk, changes={"role": "admin"})
    with pytest.raises(Forbidden):
        change(actor=bob.actor)
    with pytest.raises(NotFound):
        change(actor=mallory.actor)
    _, narrow = make_token(alice, Role.ADMIN, namespaces=["other"])
    with pytest.raises(NotFound):
        change(actor=narrow)
