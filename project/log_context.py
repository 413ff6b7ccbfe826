"""The ids that every log line of a request or a job has. Ids only, because names may be values.

They are context variables of structlog (project/logging.py adds them to each line). A request starts
with none (project/middleware.py), and so does a job, which gets those of the call that queued it
(project/celery.py).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

import structlog

from project import tracing
from state_admin.domain import scopes
from state_admin.domain.access import Actor

# Those that a job takes over from the call that queued it.
SHARED: Final = ("request_id", "actor", "workspace", "run_id", "thread_id")
_SAFE_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}\Z")


def choose_request_id(given: str) -> str:
    """The client's X-Request-ID if it is valid, else a new id."""
    return given if _SAFE_ID.match(given) else uuid.uuid4().hex


def begin(**ids: Any) -> None:
    """Forget the ids of earlier work in this thread, and bind these."""
    structlog.contextvars.clear_contextvars()
    _bind(ids)


def bind_actor(actor: Actor) -> None:
    """Bind who acts, in which workspace, and on behalf of which run."""
    _bind(ids_of(actor))


def bind_path(ids: Mapping[str, Any]) -> None:
    """Bind the run and the thread that a path names. A name that cannot be an id is left out: it may
    be anything that somebody pasted."""
    _bind(ids_in(ids))


def ids_in(values: Mapping[str, Any]) -> dict[str, str]:
    """The ids of the run and the thread among values, without what cannot be an id."""
    names = ("run_id", "thread_id")
    return {name: values[name] for name in names if _is_id(values.get(name))}


def bound(**ids: Any) -> AbstractContextManager[None]:
    """Bind ids inside a `with` block, except those that are empty."""
    given = {name: each for name, each in ids.items() if each}
    _describe(given)
    return structlog.contextvars.bound_contextvars(**given)


def ids_of(actor: Actor) -> dict[str, Any]:
    """The ids of an actor and its request."""
    ids = {"actor": f"{actor.kind}:{actor.id}", "workspace": actor.workspace_id}
    if actor.request_id:
        ids["request_id"] = actor.request_id
    if actor.run_id:
        ids["run_id"] = actor.run_id
    return ids


def shared() -> dict[str, Any]:
    """The ids for a job that is queued now."""
    ids = structlog.contextvars.get_contextvars()
    return {name: ids[name] for name in SHARED if name in ids}


def _bind(ids: Mapping[str, Any]) -> None:
    structlog.contextvars.bind_contextvars(**ids)
    _describe(ids)


def _describe(ids: Mapping[str, Any]) -> None:
    """The current span gets them as attributes."""
    if tracing.is_on():
        tracing.describe(attributes_of(ids))


def attributes_of(ids: Mapping[str, Any]) -> dict[str, Any]:
    """Ids as attributes of a span."""
    return {f"commonhold.{name}": each for name, each in ids.items()}


def _is_id(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    try:
        scopes.check_id(text)
    except scopes.BadName:
        return False
    return True
