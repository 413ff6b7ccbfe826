"""Three users and their data, created by services so that fixtures satisfy the invariants.

alice is an admin and bob a viewer of the workspace "acme"; mallory is an admin of "rival". Each has
a token, as an API client.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import update_last_login
from django.db import transaction
from django.test import Client
from django.test.client import ClientHandler
from django.utils.encoding import iri_to_uri

from project.paths import RAW_PATH
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.config import Kind
from state_admin.domain.merging import Batch, Update
from state_admin.domain.values import Raw
from state_admin.models import ApiToken, Namespace, Run, StateKey, Thread, User, Workspace
from state_admin.models.access import digest
from state_admin.models.sessions import SessionStore
from state_admin.services import (
    commits,
    config,
    entries,
    entry_views,
    messages,
    namespaces,
    runs,
    state_keys,
    threads,
    tokens,
    users,
    workspaces,
)
from state_admin.services.actors import actor_of_token, actor_of_user, system_actor
from tests.copying import Copier, added_rows, place_of, read_rows

TEAM_SCHEMA = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "constraints": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
    },
    "additionalProperties": False,
}


MERGE_PATCH = "application/merge-patch+json"

# Loading the middleware once is enough for all requests.
_HANDLER = ClientHandler(enforce_csrf_checks=False)


def raw(value: Any) -> Raw:
    """A value as if a client had sent it."""
    return values.read(json.dumps(value, ensure_ascii=False))


@dataclass(frozen=True)
class Person:
    """A user with a login and a token in one workspace."""

    user: User
    workspace: Workspace
    actor: Actor
    token: str

    def api(self, method: str, path: str, body: Any = None, **extra: Any) -> Any:
        """Call the API as this user; `body` is sent as JSON unless it is bytes."""
        return call(self.token, method, path, body, **extra)

    def browser(self) -> Client:
        """A client that is signed in, as by `force_login`, which takes three times as many
        statements: it creates a second session and deletes the first."""
        session = SessionStore()
        session[SESSION_KEY] = str(self.user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = self.user.get_session_auth_hash()
        session.create()
        update_last_login(None, self.user)
        client = anonymous()
        client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
        return client


def anonymous() -> Client:
    """A client that is not signed in."""
    client = Client()
    client.handler = _HANDLER
    return client


def call(
    token: str | None,
    method: str,
    path: str,
    body: Any = None,
    *,
    content_type: str = "application/json",
    **headers: str,
) -> Any:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return anonymous().generic(
        method,
        f"/api/v1{path}",
        data=data,
        content_type=content_type if body is not None else "application/octet-stream",
        headers=sent,
        **{RAW_PATH: iri_to_uri(f"/api/v1{path.partition('?')[0]}")},
    )


def make_person(name: str, workspace_slug: str, role: Role) -> Person:
    """A new user who is a member of a workspace, which is created if it does not exist."""
    usual = _usual_people.get((name, workspace_slug, role))
    return (usual and usual.copy()) or create_person(name, workspace_slug, role)


def create_person(name: str, workspace_slug: str, role: Role) -> Person:
    workspace, _ = workspaces.ensure_workspace(workspace_slug)
    user, _ = users.ensure_user(name)
    workspaces.add_member(workspace=workspace, user=user, role=role)
    _, token = tokens.create_token(
        actor=system_actor(workspace.pk, "builder"), name=f"{name}'s token", role=role
    )
    actor = actor_of_user(user, workspace_slug)
    assert actor is not None
    return Person(user, workspace, actor, token)


class UsualPerson:
    """A user that many tests have, and that is copied because services take long."""

    def __init__(self, name: str, workspace_slug: str, role: Role) -> None:
        before = read_rows()
        self._original = create_person(name, workspace_slug, role)
        rows = added_rows(before, read_rows())
        self._is_first = Workspace in rows
        self._lookup, self._secret = self._original.token.split("_")[1:]
        given = {
            (ApiToken, "lookup", f"'{self._lookup}'"): "lookup",
            (ApiToken, "digest", f"'{digest(self._secret)}'"): "digest",
        }
        if not self._is_first:
            given[place_of(self._original.workspace)] = "workspace"
        self._copier = Copier(rows, given)

    def copy(self) -> Person | None:
        """None if another user or workspace has the name, or new tokens have another form."""
        original = self._original
        found = Workspace.objects.filter(slug=original.workspace.slug).first()
        if settings.CELL or (found is None) != self._is_first:
            return None
        if found and (found.frozen_at or found.moved_to):
            return None
        if User.objects.filter(username=original.user.username).exists():
            return None
        lookup, secret = secrets.token_hex(6), secrets.token_hex(32)
        given = {"lookup": f"'{lookup}'", "digest": f"'{digest(secret)}'"}
        ids, now = self._copier.insert(given | ({"workspace": str(found.pk)} if found else {}))
        user = deepcopy(original.user)
        user.pk, user.date_joined = ids[place_of(original.user)], now
        workspace = found or deepcopy(original.workspace)
        if found is None:
            workspace.pk, workspace.created_at = ids[place_of(original.workspace)], now
        actor = replace(original.actor, id=str(user.pk), workspace_id=workspace.pk)
        token = original.token.replace(self._lookup, lookup).replace(self._secret, secret)
        return Person(user, workspace, actor, token)


_usual_people: dict[tuple[str, str, Role], UsualPerson] = {}


def create_usual_people() -> None:
    """Create the users of the fixtures once, in a transaction that is rolled back. The database must
    be empty and used by nobody else."""
    with transaction.atomic():
        for usual in (
            ("alice", "acme", Role.ADMIN),
            ("bob", "acme", Role.VIEWER),
            ("erin", "acme", Role.EDITOR),
            ("mallory", "rival", Role.ADMIN),
        ):
            _usual_people[usual] = UsualPerson(*usual)
        transaction.set_rollback(True)


def make_token(
    person: Person,
    role: Role = Role.EDITOR,
    namespaces: Sequence[str] = (),
    thread_prefixes: Sequence[str] = (),
) -> tuple[str, Actor]:
    """A restricted token in the user's workspace, and its actor."""
    _, secret = tokens.create_token(
        actor=person.actor,
        name="narrow",
        role=role,
        namespaces=namespaces,
        thread_prefixes=thread_prefixes,
    )
    actor = actor_of_token(secret)
    assert actor is not None
    return secret, actor


def make_namespace(
    actor: Actor, name: str = "notes", schema: Any = None, default: Any = None, **policy: Any
) -> Namespace:
    return namespaces.register_namespace(
        actor=actor, name=name, schema=raw(schema or {}), default=raw(default), **policy
    ).namespace


def put(
    actor: Actor, namespace: str, key: str, value: Any, **options: Any
) -> entry_views.EntryView:
    return entries.put_entry(
        actor=actor, namespace=namespace, key=key, value=raw(value), **options
    ).entry


def make_record(actor: Actor, kind: str, identity: str, value: Any) -> entry_views.EntryView:
    return config.put_record(
        actor=actor, kind=Kind(kind), identity=identity, value=raw(value)
    ).entry


def make_thread(actor: Actor, thread_id: str = "t1", **fields: Any) -> Thread:
    return threads.create_thread(actor=actor, thread_id=thread_id, **fields)[0]


def make_state_key(actor: Actor, name: str, **fields: Any) -> StateKey:
    fields["schema"] = raw(fields.get("schema", {}))
    fields["default"] = raw(fields.get("default"))
    return state_keys.register_state_key(actor=actor, name=name, **fields)[0]


def make_run(actor: Actor, thread_id: str = "t1", run_id: str = "r1", **fields: Any) -> Run:
    return runs.start_run(actor=actor, thread_id=thread_id, run_id=run_id, **fields)[0]


def step(updates: dict[str, Any] | None = None, **fields: Any) -> commits.Step:
    """A commit's step from plain values: one update per key."""
    batch = Batch(tuple(Update(key, raw(value)) for key, value in (updates or {}).items()))
    if "messages" in fields:
        fields["messages"] = [raw(message) for message in fields["messages"]]
    return commits.Step(batches=(batch,), **fields)


def commit(
    actor: Actor, run_id: str = "r1", updates: Any = None, **fields: Any
) -> commits.Committed:
    return commits.commit(actor=actor, run_id=run_id, step=step(updates, **fields))


def append(actor: Actor, thread_id: str, *bodies: dict[str, Any]) -> messages.Appended:
    return messages.append_messages(
        actor=actor, thread_id=thread_id, messages=[raw(body) for body in bodies]
    )


def conversation(turns: int, *, rounds: int = 1, words: int = 60) -> list[dict[str, Any]]:
    """A generated conversation: each turn has a question, `rounds` tool rounds, and an answer."""
    made: list[dict[str, Any]] = [{"role": "system", "content": "You book trips. Be exact."}]
    filler = "and please keep the earlier booking in mind " * (words // 8)
    for turn in range(turns):
        made.append({"role": "user", "content": f"Question {turn}: find trip T{turn:04d} {filler}"})
        for number in range(rounds):
            call_id = f"c{turn}-{number}"
            arguments = json.dumps({"trip": f"T{turn:04d}", "page": number})
            made.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": call_id,
                            "type": "function",
                            "function": {"name": "find_trip", "arguments": arguments},
                        }
                    ],
                }
            )
            result = json.dumps({"trip": f"T{turn:04d}", "price": 100 + turn, "note": filler})
            made.append(
                {"role": "tool", "tool_call_id": call_id, "name": "find_trip", "content": result}
            )
        made.append({"role": "assistant", "content": f"Trip T{turn:04d} costs {100 + turn} euros."})
    return made


def entry_path(namespace: str, key: str, noun: str = "state") -> str:
    return f"/{noun}/{namespace}/{quote(key, safe='')}"


@pytest.fixture
def alice(db: None) -> Person:
    return make_person("alice", "acme", Role.ADMIN)


@pytest.fixture(scope="module")
def one_alice(module_transaction: None) -> Person:
    """alice, created once for all tests of a module, whose fixture `alice` returns her."""
    return make_person("alice", "acme", Role.ADMIN)


@pytest.fixture
def bob(alice: Person) -> Person:
    return make_person("bob", "acme", Role.VIEWER)


@pytest.fixture
def mallory(db: None) -> Person:
    return make_person("mallory", "rival", Role.ADMIN)
