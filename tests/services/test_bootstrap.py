"""A new installation: one workspace, one admin, one token, created once."""

from __future__ import annotations

from functools import partial

import pytest

from state_admin.domain.access import Role
from state_admin.models import ApiToken, Membership, User, Workspace
from state_admin.services.actors import actor_of_token
from state_admin.services.bootstrap import ensure_first_run
from state_admin.services.workspace_deletions import delete_workspace
from state_admin.services.workspaces import add_member, ensure_workspace
from tests.services.racing import race


def test_first_run__empty_database__creates_user_workspace_and_token(db: None) -> None:
    first = ensure_first_run()
    assert first.token is not None
    assert first.login_url is not None
    assert "/login/once/" in first.login_url
    actor = actor_of_token(first.token)
    assert actor is not None
    assert actor.role is Role.ADMIN
    assert Membership.objects.get().role == "admin"


def test_first_run__again__shows_no_token_but_a_link_until_the_first_login(db: None) -> None:
    first, second = ensure_first_run(), ensure_first_run()
    assert second.token is None
    assert second.login_url not in (None, first.login_url)
    User.objects.update(last_login="2026-01-01T00:00:00Z")
    assert ensure_first_run().login_url is None
    assert ensure_first_run(fresh_login=True).login_url is not None
    counts = [model.objects.count() for model in (Workspace, User, ApiToken, Membership)]
    assert counts == [1, 1, 1, 1]


def test_first_run__default_deleted_and_another_workspace_left__creates_nothing(db: None) -> None:
    ensure_first_run()
    acme, _ = ensure_workspace("acme")
    delete_workspace(slug="default")
    again = ensure_first_run(fresh_login=True)
    assert (again.token, again.login_url) == (None, None)
    assert list(Workspace.objects.present()) == [acme]
    add_member(workspace=acme, user=User.objects.get(), role=Role.VIEWER)
    assert ensure_first_run().login_url is not None


def test_first_run__last_workspace_deleted__can_be_used_again(db: None) -> None:
    ensure_first_run()
    delete_workspace(slug="default")
    again = ensure_first_run()
    assert again.token is not None
    assert actor_of_token(again.token) is not None
    assert again.login_url is not None
    assert Membership.objects.get().workspace.slug == "default"


def test_first_run__workspace_created_before_it__creates_the_default(db: None) -> None:
    ensure_workspace("acme")
    assert ensure_first_run().token is not None
    assert Workspace.objects.filter(slug="default").exists()


@pytest.mark.django_db(transaction=True)
def test_race__several_processes_start__one_token_is_shown() -> None:
    shown = [first.token for first in race([partial(ensure_first_run)] * 6)]
    assert sum(token is not None for token in shown) == 1
    assert ApiToken.objects.count() == 1
