"""Saved views: owners, visibility, traces; and who edits an entry."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from state_admin.domain.access import Role
from state_admin.models import AuditRow, DefaultView, Presence, SavedView, ViewPage
from state_admin.services import saved_views
from state_admin.services.errors import Forbidden, Invalid, NotFound, NotRegistered, QuotaExceeded
from state_admin.services.presence import announce_editing
from state_admin.services.saved_views import (
    choose_default,
    delete_view,
    list_views,
    save_view,
)
from tests.builders import Person, make_namespace, make_person
from tests.services.racing import overlap

STATE = ViewPage.STATE


def names(person: Person) -> list[str]:
    return [view.name for view in list_views(person.actor, STATE)]


def test_save__private__is_only_its_owners_and_writes_no_audit_row(
    alice: Person, bob: Person, mallory: Person
) -> None:
    save_view(actor=bob.actor, page=STATE, name="  my   own ", query="scope=thread")
    save_view(actor=alice.actor, page=STATE, name="all", query="tag=x", shared=True)
    assert names(bob) == ["all", "my own"]
    assert names(alice) == ["all"]
    assert names(mallory) == []
    assert [row.key for row in AuditRow.objects.filter(action="saved_view.put")] == ["all"]


def test_save__same_name__replaces_the_users_own(alice: Person) -> None:
    for query in ("tag=x", "tag=y"):
        save_view(actor=alice.actor, page=STATE, name="v", query=query)
    assert [view.query for view in list_views(alice.actor, STATE)] == ["tag=y"]


@pytest.mark.django_db(transaction=True)
def test_save__two_for_the_last_place__one_is_over_the_quota(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_views, "MOST", 1)
    save = partial(save_view, actor=alice.actor, page=STATE, query="")
    with pytest.raises(QuotaExceeded):
        overlap(partial(save, name="a"), partial(save, name="b"))


def test_save__shared_by_a_viewer__is_refused(bob: Person) -> None:
    with pytest.raises(Forbidden):
        save_view(actor=bob.actor, page=STATE, name="v", query="", shared=True)


@pytest.mark.parametrize(
    "given", [{"name": " "}, {"name": "a\0"}, {"name": "x" * 65}, {"query": "x" * 2001}]
)
def test_save__empty_or_too_long__is_refused(given: dict[str, str], alice: Person) -> None:
    with pytest.raises(Invalid):
        save_view(actor=alice.actor, page=STATE, **({"name": "v", "query": ""} | given))


def test_save__beyond_the_limit__is_refused(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MOST", 1)
    save_view(actor=alice.actor, page=STATE, name="a", query="")
    save_view(actor=alice.actor, page=STATE, name="a", query="tag=x")
    with pytest.raises(QuotaExceeded):
        save_view(actor=alice.actor, page=STATE, name="b", query="")


def test_delete__of_others__only_shared_and_only_by_an_admin(alice: Person, bob: Person) -> None:
    erin = make_person("erin", "acme", Role.EDITOR)
    shared = save_view(actor=erin.actor, page=STATE, name="s", query="", shared=True)
    private = save_view(actor=erin.actor, page=STATE, name="p", query="")
    with pytest.raises(Forbidden):
        delete_view(actor=bob.actor, view_id=shared.pk)
    with pytest.raises(NotFound):
        delete_view(actor=alice.actor, view_id=private.pk)
    assert delete_view(actor=alice.actor, view_id=shared.pk) == "s"
    assert AuditRow.objects.filter(action="saved_view.delete", actor_name="alice").count() == 1
    assert list(SavedView.objects.all()) == [private]


def test_default__of_a_user__is_removed_when_the_view_is_no_longer_shared(
    alice: Person, bob: Person
) -> None:
    row = save_view(actor=alice.actor, page=STATE, name="v", query="", shared=True)
    choose_default(actor=bob.actor, view_id=row.pk)
    assert [view.default for view in list_views(bob.actor, STATE)] == [True]
    assert [view.default for view in list_views(alice.actor, STATE)] == [False]
    save_view(actor=alice.actor, page=STATE, name="v", query="")
    assert not DefaultView.objects.exists()
    choose_default(actor=alice.actor, view_id=row.pk)
    choose_default(actor=alice.actor, view_id=row.pk, chosen=False)
    assert not DefaultView.objects.exists()


def test_default__inaccessible_view__appears_absent(alice: Person, mallory: Person) -> None:
    row = save_view(actor=alice.actor, page=STATE, name="v", query="", shared=True)
    with pytest.raises(NotFound):
        choose_default(actor=mallory.actor, view_id=row.pk)


def announce(person: Person, key: str = "k") -> list[str]:
    return [each.name for each in announce_editing(actor=person.actor, namespace="n", key=key)]


def test_presence__other_editors_of_the_entry__are_returned_for_a_minute(
    alice: Person, mallory: Person
) -> None:
    erin = make_person("erin", "acme", Role.EDITOR)
    make_namespace(alice.actor, "n")
    make_namespace(mallory.actor, "n")
    assert announce(alice) == []
    assert announce(mallory) == []
    assert announce(erin, "other") == []
    assert announce(erin) == ["alice"]
    assert announce(alice) == ["erin"]
    long_ago = Now() - timedelta(seconds=61)
    Presence.objects.filter(user=erin.user).update(seen_at=long_ago, since=long_ago)
    assert announce(alice) == []
    announce(erin)
    row = Presence.objects.get(user=erin.user, key="k")
    assert row.since == row.seen_at
    assert not AuditRow.objects.filter(key="k").exists()


def test_presence__viewer_and_inaccessible_namespace__are_refused(
    alice: Person, bob: Person, mallory: Person
) -> None:
    make_namespace(alice.actor, "n")
    with pytest.raises(Forbidden):
        announce(bob)
    with pytest.raises(NotRegistered):
        announce(mallory)
