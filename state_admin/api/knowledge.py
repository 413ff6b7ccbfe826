"""What runs knew and read: /runs/{id}/knowledge, /runs/{id}/reads, /reads/{ns}/{key}."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain import scopes
from state_admin.models import RunRead
from state_admin.models.knowledge_sql import Known
from state_admin.services import knowledge, runs
from state_admin.services.errors import BadRequest

from . import pagination
from .bodies import answer, verbatim
from .endpoint import Endpoint

# Separates namespace and key in a cursor: neither can hold it.
_BETWEEN = "\n"


def show_known(row: Known) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "key": row.key,
        "scope_kind": scopes.scope_kind(row.key).value,
        "registered": row.registered,
        "version": row.version,
        "value": verbatim(row.value) if row.value is not None and not row.lost else None,
        "kept": not row.lost,
        "updated_at": row.at,
        "actor": row.actor_name,
        "reason": row.reason,
        "run_id": row.run or None,
        "redacted_at": row.redacted_at,
        "current_version": row.current,
    }


def show_read(row: RunRead) -> dict[str, Any]:
    """`current` is the annotation of RunReadQuerySet.with_current."""
    current: int = row.current  # type: ignore[attr-defined]
    return {
        "step": row.step,
        "revision": row.revision,
        "namespace": row.namespace,
        "key": row.key,
        "version": row.version,
        "version_at_commit": row.held,
        "current_version": current,
        "stale_at_commit": row.held != row.version,
        "stale": current != row.version,
        "at": row.at,
    }


class RunKnowledge(Endpoint):
    @extend_schema(operation_id="read_knowledge")
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """What the run could see at a step: its thread's state, and every entry of its scopes."""
        step = self.query.get("step")
        revision = self.query.get("revision")
        if step is not None and revision is not None:
            raise BadRequest("choose step or revision, not both")
        page = pagination.read_page(self, str)
        namespace, _, key = (page.after or "").partition(_BETWEEN)
        known = knowledge.read_knowledge(
            actor=self.actor,
            run_id=run_id,
            step=step,
            revision=revision,
            after=(namespace, key),
            limit=page.limit + 1,
        )
        shown, cursor = page.close(known.entries, lambda row: row.namespace + _BETWEEN + row.key)
        return answer(
            {
                "run_id": run_id,
                "thread_id": known.run.thread.public_id,
                "step": known.revision.step,
                "steps": known.steps,
                "revision": known.revision.number,
                "at": known.revision.at,
                "exact": known.exact,
                "scopes": list(known.keys),
                "state": known.state
                and {
                    "revision": known.state.revision,
                    "extensions": {
                        name: verbatim(text) for name, text in known.state.extensions.items()
                    },
                },
                "reads": [show_read(row) for row in known.reads],
                "items": [show_known(row) for row in shown],
                "next_cursor": cursor,
            }
        )


class RunReads(Endpoint):
    @extend_schema(operation_id="list_run_reads")
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """The versions that the run says it read, newest first; `stale=true`: those overtaken."""
        page = pagination.read_page(self)
        stale = self.query["stale"]
        run = runs.find_run(self.actor, run_id)
        rows = knowledge.reads_of_run(self.actor, run, stale=stale)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        return answer({"items": [show_read(row) for row in shown], "next_cursor": cursor})


class EntryReaders(Endpoint):
    @extend_schema(operation_id="list_readers")
    def get(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Who acted on this value: the steps of runs that read the entry, or one version of it."""
        page = pagination.read_page(self, str)
        version = self.query.get("version")
        rows = knowledge.readers_of(self.actor, namespace, key, version)
        if page.after is not None:
            rows = rows.behind(*_place(page.after))
        found = list(rows[: page.limit + 1])
        shown, cursor = page.close(found, lambda row: f"{row.version}.{row.pk}")
        items = [
            show_read(row)
            | {
                "run_id": row.run.public_id,
                "thread_id": row.run.thread.public_id,
                "agent_id": row.run.agent_id,
            }
            for row in shown
        ]
        return answer({"items": items, "next_cursor": cursor})


def _place(after: str) -> tuple[int, int]:
    version, _, row_id = after.partition(".")
    try:
        return int(version), int(row_id)
    except ValueError:
        raise BadRequest("cursor must be one that this API gave out") from None
