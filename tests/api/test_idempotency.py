"""Idempotency-Key: a repeat returns the first response and has no second effect."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models.functions import Now

from state_admin.models import (
    ApiToken,
    Entry,
    EntryRevision,
    IdempotencyRecord,
    Message,
    Run,
    database,
)
from state_admin.services import entries, idempotency
from tests import builders
from tests.builders import Person, call, make_namespace, make_thread
from tests.patience import PATIENCE
from tests.services.racing import race


@pytest.fixture
def notes(alice: Person) -> Person:
    make_namespace(alice.actor)
    return alice


def put(person: Person, value: Any = 1, key: str = "once", **headers: str) -> Any:
    return person.api("PUT", "/state/notes/k", {"value": value}, Idempotency_Key=key, **headers)


def writes() -> int:
    return EntryRevision.objects.count()


def test_repeat__same_request__returns_the_first_response_byte_for_byte(notes: Person) -> None:
    first, second = put(notes), put(notes)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert first["ETag"] == second["ETag"]
    assert (second["Idempotent-Replayed"], "Idempotent-Replayed" in first) == ("true", False)
    assert second["X-Request-ID"] != first["X-Request-ID"]
    assert writes() == 1


def test_repeat__other_body_path_or_method__is_422(notes: Person) -> None:
    put(notes)
    again = {"Idempotency_Key": "once"}
    for answer in (
        put(notes, 2),
        notes.api("PUT", "/state/notes/other", {"value": 1}, **again),
        notes.api("DELETE", "/state/notes/k", **again),
    ):
        assert answer.status_code == 422
        assert answer["Content-Type"] == "application/problem+json"
    assert writes() == 1


@pytest.mark.parametrize(
    ("headers", "others"),
    [
        ({"If_Match": '"9"'}, {"If_Match": '"0"'}),
        ({}, {"If_Match": '"1"'}),
        ({}, {"If_None_Match": "*"}),
        ({}, {"If_Changed": "true"}),
        ({"If_Match": '"1"'}, {"If_Match": '"1"', "On_Conflict": "merge"}),
    ],
)
def test_repeat__other_precondition__is_422(
    notes: Person, headers: dict[str, str], others: dict[str, str]
) -> None:
    put(notes, **headers)
    assert put(notes, **others).status_code == 422


def test_repeat__other_kind_of_patch__is_422(notes: Person) -> None:
    body, again = {"op": "add", "path": "/n", "value": 1}, {"Idempotency_Key": "once"}
    kinds = ("application/merge-patch+json", "application/vnd.commonhold.update+json")
    answers = [
        notes.api("PATCH", "/state/notes/k", body, content_type=kind, **again) for kind in kinds
    ]
    assert [answer.status_code for answer in answers] == [201, 422]


def test_repeat__after_the_secret_key_was_rotated__returns_the_first_response(
    notes: Person, settings: Any
) -> None:
    first = put(notes)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", [settings.SECRET_KEY]
    assert put(notes).content == first.content
    assert put(notes, 2).status_code == 422
    assert writes() == 1


def test_repeat__of_a_refused_request__returns_the_refusal(notes: Person) -> None:
    stale = {"If_Match": '"5"'}
    first = put(notes, **stale)
    entries.put_entry(actor=notes.actor, namespace="notes", key="k", value=builders.raw(0))
    assert [first.status_code, put(notes, **stale).status_code] == [412, 412]
    assert writes() == 1


def test_keys__of_two_clients__never_collide(notes: Person, mallory: Person) -> None:
    make_namespace(mallory.actor)
    other, _ = builders.make_token(notes)
    put(notes)
    assert put(mallory, 2).status_code == 201
    answer = call(other, "PUT", "/state/notes/k", {"value": 3}, Idempotency_Key="once")
    assert answer.status_code == 200
    assert IdempotencyRecord.objects.count() == 3


def test_get__with_a_key__is_not_recorded(notes: Person) -> None:
    notes.api("GET", "/state/notes/k", Idempotency_Key="once")
    assert not IdempotencyRecord.objects.exists()
    assert put(notes).status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"text": "first"}),
        ("/state/batch", {"operations": [{"op": "get", "namespace": "notes", "key": "k"}]}),
    ],
)
def test_post__that_only_reads__is_not_recorded(notes: Person, path: str, body: Any) -> None:
    for value in ("first", "second"):
        put(notes, value, key=value)
        before = IdempotencyRecord.objects.count()
        found = notes.api("POST", path, body, Idempotency_Key="once")
        assert found.status_code == 200
        assert IdempotencyRecord.objects.count() == before
    if path == "/state/batch":
        assert found.json()["results"][0]["entry"]["value"] == "second"


@pytest.mark.parametrize("column", ["revoked_at", "expires_at"])
def test_repeat__with_a_revoked_token__is_401_without_the_response(
    notes: Person, column: str
) -> None:
    """A stored response must not be returned to a revoked token."""
    row, secret = builders.tokens.create_token(
        actor=notes.actor, name="x", role=builders.Role.EDITOR
    )
    first = call(secret, "PUT", "/state/notes/k", {"value": "secret"}, Idempotency_Key="once")
    assert first.status_code == 201
    if column == "revoked_at":
        builders.tokens.revoke_token(actor=notes.actor, token_id=row.pk)
    else:
        ApiToken.objects.filter(pk=row.pk).update(
            expires_at=Now() - builders.tokens.timedelta(seconds=1)
        )
        forget_tokens()
    again = call(secret, "PUT", "/state/notes/k", {"value": "secret"}, Idempotency_Key="once")
    assert again.status_code == 401
    assert b"secret" not in again.content


def forget_tokens() -> None:
    """As if this process had not cached the token."""
    from state_admin.services import token_cache

    for name in ("clear", "forget_all", "reset"):
        if hasattr(token_cache, name):
            getattr(token_cache, name)()


def test_unauthenticated__with_a_key__leaves_no_record(notes: Person) -> None:
    answer = call(None, "PUT", "/state/notes/k", {"value": 1}, Idempotency_Key="once")
    assert answer.status_code == 401
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_key__empty_or_too_long__is_400(notes: Person, key: str) -> None:
    assert put(notes, key=key).status_code == 400
    assert writes() == 0


def test_crash__after_the_write__rolls_back_write_and_record(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any, **__: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as broken:
        broken.setattr(idempotency, "keep", crash)
        answer = put(notes)
    assert answer.status_code == 503
    assert (writes(), IdempotencyRecord.objects.count()) == (0, 0)
    assert put(notes).status_code == 201
    assert writes() == 1


def test_failure__of_the_database__is_not_recorded_and_can_be_retried(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(**_: Any) -> None:
        raise OperationalError("canceling statement due to statement timeout")

    with monkeypatch.context() as broken:
        broken.setattr(entries, "put_entry", slow)
        answer = put(notes)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert put(notes).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_race__repeats_of_one_request__have_one_effect(notes: Person) -> None:
    answers = race([partial(put, notes)] * 12)
    statuses = {answer.status_code for answer in answers}
    assert statuses <= {201, 409}
    assert 201 in statuses
    assert writes() == 1
    for answer in answers:
        if answer.status_code == 409:
            assert answer["Retry-After"]
            assert answer.json()["type"] == "/problems/in-flight"
    assert put(notes)["Idempotent-Replayed"] == "true"


@pytest.mark.django_db(transaction=True)
def test_repeat__while_the_first_is_in_progress__is_409(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()
    put_entry = entries.put_entry

    def slow(**fields: Any) -> Any:
        entered.set()
        assert leave.wait(PATIENCE)
        return put_entry(**fields)

    def second() -> Any:
        assert entered.wait(PATIENCE)
        try:
            return put(notes)
        finally:
            leave.set()

    monkeypatch.setattr(entries, "put_entry", slow)
    first, repeat = race([partial(put, notes), second])
    assert (first.status_code, repeat.status_code) == (201, 409)
    assert repeat.json()["type"] == "/problems/in-flight"
    assert writes() == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/threads", {"title": "x"}, 201),
        ("POST", "/threads/t1/messages", {"messages": [{"role": "user", "content": "x"}]}, 201),
        ("POST", "/runs/r1/commits", {"updates": [{"key": "sum", "update": 1}]}, 200),
        ("POST", "/runs/r1/heartbeat", None, 200),
        ("POST", "/threads/t1/compactions", {}, 202),
        ("POST", "/state/batch",
         {"operations": [{"op": "put", "namespace": "notes", "key": "k", "value": 1}]}, 200),
        ("DELETE", "/state/notes/k", None, 204),
        ("PUT", "/state-keys/fresh", {}, 201),
        ("PATCH", "/runs/r1", {"step_count": 3}, 200),
    ],
)  # fmt: skip
def test_repeat__any_unsafe_path__has_one_effect(
    notes: Person, method: str, path: str, body: Any, status: int
) -> None:
    builders.make_state_key(notes.actor, "sum", default=0, reducer="add", merge="commutative")
    make_thread(notes.actor, "t1")
    builders.make_run(notes.actor, "t1", "r1")
    first = notes.api(method, path, body, Idempotency_Key="k")
    before = everything()
    second = notes.api(method, path, body, Idempotency_Key="k")
    assert (first.status_code, second.status_code) == (status, status), first.content
    assert first.content == second.content
    assert everything() == before
    if status == 204:
        assert second.content == b""
    if "Location" in first:
        assert second["Location"] == first["Location"]


def everything() -> list[Any]:
    from tests.services.faults import fingerprint

    return [fingerprint(), Message.objects.count(), Run.objects.values().get()]


@pytest.mark.django_db(transaction=True)
def test_repeat__of_an_operation_that_was_undone_after_its_commit__is_refused_too(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(notes)
    notes.api("DELETE", "/state/notes/k")

    def write_late(seconds: float) -> None:
        """As a transaction that began before the request and commits after it."""
        Entry.objects.update(deleted=False, value="1")

    monkeypatch.setattr(database, "wait_for_others", write_late)
    first = notes.api("DELETE", "/namespaces/notes", Idempotency_Key="late")
    monkeypatch.undo()
    second = notes.api("DELETE", "/namespaces/notes", Idempotency_Key="late")
    for answer in (first, second):
        assert (answer.status_code, answer.json()["count"]) == (409, 1)
    assert "Idempotent-Replayed" not in second
    assert notes.api("GET", "/namespaces/notes").status_code == 200
