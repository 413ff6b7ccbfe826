"""The first steps in a workspace without state: a namespace, a token, an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.urls import reverse

from state_admin.domain.access import Actor, Role
from state_admin.models import Namespace
from state_admin.models.counts import Counts

from . import snippets
from .addresses import with_query

_EXAMPLE = '{"goal": "Ship the feature"}'
_KEY = "global"


class Step(NamedTuple):
    """`done`: the step is not needed any more. `url` and `action`: where the reader can do it, or
    see the result; empty if the role does not permit it."""

    title: str
    text: str
    done: bool
    url: str
    action: str
    curl: str = ""


def list_first_steps(
    actor: Actor, counts: Counts, namespaces: Sequence[str], entries: int
) -> list[Step]:
    """The steps, until the workspace has a second entry or a thread; then none. `namespaces` and
    `entries` are those that the actor sees."""
    if entries > 1 or counts.threads:
        return []
    steps = [_create_namespace(actor, namespaces)]
    if actor.may(Role.ADMIN):
        steps.append(_create_token(counts, namespaces))
    return [*steps, _write_entry(actor, namespaces, entries)]


def _create_namespace(actor: Actor, namespaces: Sequence[str]) -> Step:
    url, action = "", ""
    if namespaces:
        url, action = reverse("web:namespace-list"), "Namespaces"
    elif actor.may(Role.ADMIN):
        url, action = reverse("web:namespace-new"), "New namespace"
    text = "It has a name and a JSON Schema, which every entry in it must match."
    if not namespaces and not url:
        text += " Ask an admin of this workspace to register one."
    return Step("Register a namespace", text, bool(namespaces), url, action)


def _create_token(counts: Counts, namespaces: Sequence[str]) -> Step:
    exists = bool(counts.tokens)
    url = reverse("web:token-list" if exists else "web:token-new")
    if not exists and len(namespaces) == 1:
        url = with_query(url, namespaces=namespaces[0])
    return Step(
        "Create a token for an agent",
        "The agent sends it with each request. A token can be limited to namespaces and threads.",
        exists,
        url,
        "Tokens" if exists else "New token",
    )


def _write_entry(actor: Actor, namespaces: Sequence[str], entries: int) -> Step:
    title = "Write an entry, and watch it arrive"
    text = "An entry is a JSON value under a key. It appears on this page when it is written, without a reload."
    if entries:
        return Step(title, text, True, reverse("web:entry-list"), "State browser")
    if not namespaces:
        return Step(title, text, False, "", "")
    name = namespaces[0]
    default = Namespace.objects.visible_to(actor).values_list("default", flat=True).get(name=name)
    value = _EXAMPLE if default == "null" else default
    path = snippets.state_path(name, _KEY)
    url, action = "", ""
    if actor.may(Role.EDITOR):
        url = with_query(reverse("web:entry-new"), namespace=name, at=_KEY)
        action = "New entry"
        text += " COMMONHOLD_TOKEN is the token of the agent."
    return Step(
        title, text, False, url, action, snippets.curl("PUT", path, f'{{"value": {value}}}')
    )
