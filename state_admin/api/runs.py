"""Runs and their commits: /runs, /runs/{id}, …/commits, …/heartbeat, …/lease, and the ways out."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from msgspec import UNSET
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.merging import Batch, Update
from state_admin.domain.values import Raw
from state_admin.models import Origin, Run
from state_admin.models.feed_sql import FeedFilter
from state_admin.services import commits, entries, leases, recoveries, runs
from state_admin.services.commits import Step
from state_admin.services.errors import BadRequest, Invalid, Problem
from state_admin.services.knowledge import MOST_READS
from state_admin.services.runs import UNCHANGED, RunChange
from state_admin.services.snapshots import Read

from . import etags, pagination, waiting
from .bodies import Body, Flag, RawField, Text, Whole, answer, verbatim
from .endpoint import Endpoint
from .threads import read_list, read_object


class StartBody(Body):
    id = Text(required=False)
    agent_id = Text(required=False, allow_blank=True, max_length=128)
    parent_run_id = Text(required=False, allow_blank=True, max_length=128)
    parent_thread_id = Text(required=False, allow_blank=True, max_length=128)
    origin = serializers.ChoiceField(choices=Origin.choices, required=False)
    metadata = RawField(required=False)
    status = serializers.ChoiceField(choices=["created", "running"], required=False)
    lease_seconds = Whole(min_value=1, max_value=86_400, required=False)
    max_rounds = Whole(min_value=0, max_value=1_000_000, required=False)
    timeout_seconds = Whole(
        min_value=1, max_value=10 * 365 * 86400, required=False, allow_null=True
    )


class RunBody(Body):
    status = Text(required=False)
    waiting = RawField(required=False)
    termination_reason = RawField(required=False)
    step_count = Whole(min_value=0, max_value=2**31 - 1, required=False)
    input_tokens = Whole(min_value=0, max_value=2**53, required=False)
    output_tokens = Whole(min_value=0, max_value=2**53, required=False)
    cost_usd = serializers.DecimalField(
        max_digits=14, decimal_places=6, min_value=0, required=False
    )
    metadata = RawField(required=False)


class ChangeBody(RunBody):
    fencing_token = Whole(min_value=1, required=False, allow_null=True)


class FencedBody(Body):
    fencing_token = Whole(min_value=1, required=False, allow_null=True)


class LeaseBody(FencedBody):
    only_if_free = Flag(required=False)


class FailBody(Body):
    message = Text(required=False, allow_blank=True, max_length=10_000)


class RecoveryBody(FencedBody):
    revision = Whole(min_value=0, required=False, allow_null=True)
    expected_revision = Whole(min_value=0, required=False, allow_null=True)


class CommitBody(FencedBody):
    base_revision = Whole(min_value=0, required=False, allow_null=True)
    on_conflict = serializers.ChoiceField(choices=["fail", "rebase"], required=False)
    updates = RawField(required=False)
    batches = RawField(required=False)
    messages = RawField(required=False)
    expected_message_count = Whole(min_value=0, required=False, allow_null=True)
    run = RawField(required=False)
    reads = RawField(required=False)
    label = Text(  # type: ignore[assignment]  # the wire name
        required=False, allow_blank=True, max_length=128
    )


class ReadBody(Body):
    namespace = Text(max_length=128)
    key = Text()
    version = Whole(min_value=0)


class UpdateBody(Body):
    key = Text(max_length=128)
    update = RawField(required=False)  # type: ignore[assignment]  # the wire name
    clear = Flag(required=False)


def show_run(row: Run, actor: Actor, above: Container[str] | None = None) -> dict[str, Any]:
    """The run as `actor` may see it: a parent outside a token's prefixes does not exist. `above`:
    runs.parents_of, where many are shown."""
    parent = row.parent_thread_id
    above = runs.parents_of(actor, [row]) if above is None else above
    return {
        "id": row.public_id,
        "thread_id": row.thread.public_id,
        "agent_id": row.agent_id,
        "status": row.status,
        "waiting": row.waiting,
        "termination_reason": row.termination_reason,
        "parent_run_id": row.parent_run_id if row.parent_run_id in above else None,
        "parent_thread_id": parent if parent and actor.sees_thread(parent) else None,
        "origin": row.origin,
        "metadata": verbatim(row.metadata or "{}"),
        "step_count": row.step_count,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cost_usd": row.cost_usd,
        "max_rounds": row.max_rounds,
        "fencing_token": row.fencing_token,
        "lease_expires_at": row.lease_expires_at,
        "times_out_at": row.times_out_at,
        "deadline_at": row.deadline_at,
        "stuck_reason": row.stuck_reason(row.read_at) or None,
        "flagged_stuck_at": row.flagged_at,
        "start_revision": row.start_revision,
        "last_revision": row.last_revision,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "updated_at": row.updated_at,
    }


class RunStart(Endpoint):
    @extend_schema(operation_id="start_run", request=StartBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Start a run: clears what belonged to the run before, as one revision."""
        body = StartBody.take(request.data)
        given = {
            "run_id": body.pop("id", None),
            "metadata": read_object(body.get("metadata", UNSET), "metadata"),
        }
        body.pop("metadata", None)
        run, created = runs.start_run(
            actor=self.actor, thread_id=thread_id, reason=self.reason, **given, **body
        )
        return answer(show_run(run, self.actor), 201 if created else 200, etag=run.last_revision)


class RunList(Endpoint):
    @extend_schema(operation_id="list_runs")
    def get(self, request: Request) -> HttpResponse:
        """Runs, newest first, by thread, status, agent; `stuck=true` for those in trouble."""
        page = pagination.read_page(self)
        query = self.query
        rows = Run.objects.visible_to(self.actor).timed().select_related("thread").order_by("-id")
        if query.get("thread_id"):
            rows = rows.filter(thread__public_id=query["thread_id"])
        if status := self.query.get("status"):
            rows = rows.filter(status=status)
        if query.get("agent_id"):
            rows = rows.filter(agent_id=query["agent_id"])
        if self.query["stuck"]:
            rows = rows.stuck()
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        above = runs.parents_of(self.actor, shown)
        items = [show_run(row, self.actor, above) for row in shown]
        return answer({"items": items, "next_cursor": cursor})


class RunDetail(Endpoint):
    conditional = ("PATCH",)

    @extend_schema(operation_id="get_run")
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """A run. `wait=30&since={last_revision}` answers when it has a newer revision."""
        since = self.query.get("since")
        if since is None:
            since = waiting.memory_of(request)
        if since is None:
            since = runs.find_run(self.actor, run_id).last_revision
        return waiting.answer_news(
            self,
            FeedFilter(run=run_id),
            look=lambda: runs.find_run(self.actor, run_id),
            is_news=lambda run: run.last_revision > since,
            show=lambda run: answer(show_run(run, self.actor), etag=run.last_revision),
            memory=since,
        )

    @extend_schema(operation_id="change_run", request=ChangeBody)
    def patch(self, request: Request, run_id: str) -> HttpResponse:
        """Move a run between statuses, or update its counts (totals, not increments); with
        `If-Match` only while its last revision is that."""
        body = ChangeBody.take(request.data)
        run = runs.change_run(
            actor=self.actor,
            run_id=run_id,
            change=read_change(body),
            fencing_token=body.get("fencing_token"),
            expected_revision=etags.expected_version(request),
            reason=self.reason,
        )
        return answer(show_run(run, self.actor), etag=run.last_revision)


class RunHeartbeat(Endpoint):
    @extend_schema(operation_id="heartbeat_run", request=FencedBody)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        """Renew the lease."""
        body = read_optional(FencedBody, request)
        return answer(show_run(runs.heartbeat(actor=self.actor, run_id=run_id, **body), self.actor))


class RunLease(Endpoint):
    @extend_schema(operation_id="take_lease", request=LeaseBody)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        """Take the run over: a new fencing token; the worker before is refused from now on."""
        body = read_optional(LeaseBody, request)
        run = leases.take_lease(actor=self.actor, run_id=run_id, reason=self.reason, **body)
        return answer(show_run(run, self.actor))

    @extend_schema(operation_id="release_lease")
    def delete(self, request: Request, run_id: str) -> HttpResponse:
        """Take the run from its worker, or give it back (`?fencing_token=`)."""
        token = self.query.get("fencing_token")
        run = leases.release_lease(
            actor=self.actor, run_id=run_id, fencing_token=token, reason=self.reason
        )
        return answer(show_run(run, self.actor))


class RunFail(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="fail_run", request=FailBody)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        """End the run with an error; its pending tickets become void. `If-Match` as for a change."""
        body = read_optional(FailBody, request)
        run = recoveries.fail_run(
            actor=self.actor,
            run_id=run_id,
            expected_revision=etags.expected_version(request),
            reason=self.reason,
            **body,
        )
        return answer(show_run(run, self.actor), etag=run.last_revision)


class RunResume(Endpoint):
    @extend_schema(operation_id="resume_run", request=RecoveryBody)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        """Let the run go on, from the state of `revision` if given, with a new fencing token."""
        body = read_optional(RecoveryBody, request)
        run = recoveries.resume_run(actor=self.actor, run_id=run_id, reason=self.reason, **body)
        return answer(show_run(run, self.actor))


class RunCancel(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="cancel_run", request=None)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        """End the run as cancelled; its pending tickets become void. `If-Match` as for a change."""
        run = runs.cancel_run(
            actor=self.actor,
            run_id=run_id,
            expected_revision=etags.expected_version(request),
            reason=self.reason,
        )
        return answer(show_run(run, self.actor), etag=run.last_revision)


class RunCommits(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="commit", request=CommitBody)
    def post(self, request: Request, run_id: str) -> HttpResponse:
        """The atomic step: updates, messages and run fields land together, as one revision.
        `If-Match` is its `base_revision`."""
        body = CommitBody.take(request.data)
        match = etags.expected_version(request)
        if match is not None:
            if body.get("base_revision") not in (None, match):
                raise BadRequest(
                    f"If-Match says {match}, base_revision {body['base_revision']}",
                    hint="Both name the revision you started from: leave one out.",
                )
            body["base_revision"] = match
        done = commits.commit(
            actor=self.actor, run_id=run_id, step=read_step(body), reason=self.reason
        )
        shown = {
            "revision": done.revision,
            "touched_keys": list(done.touched),
            "message_count": done.message_count,
            "run": show_run(done.run, self.actor),
        }
        return answer(shown, etag=done.revision)


def read_step(body: dict[str, Any]) -> Step:
    if "updates" in body and "batches" in body:
        raise Invalid("choose updates or batches, not both")
    batches: tuple[Batch, ...] = ()
    if "updates" in body:
        batches = (Batch(_updates(body["updates"], "updates")),)
    elif "batches" in body:
        batches = tuple(
            _batch(raw, f"batches/{index}")
            for index, raw in enumerate(read_list(body["batches"], "batches"))
        )
    change = UNCHANGED
    if "run" in body:
        change = read_change(RunBody.take(body["run"], "/run"))
    return Step(
        batches=batches,
        base_revision=body.get("base_revision"),
        rebase=body.get("on_conflict") == "rebase",
        messages=read_list(body["messages"], "messages") if "messages" in body else (),
        expected_message_count=body.get("expected_message_count"),
        run=change,
        label=body.get("label", ""),
        reads=_reads(body["reads"]) if "reads" in body else (),
        fencing_token=body.get("fencing_token"),
    )


def read_optional(body: type[Body], request: Request) -> dict[str, Any]:
    """The body of a request that may also come without one."""
    return body.take(request.data) if request.data else {}


def _reads(raw: Raw) -> tuple[Read, ...]:
    items = read_list(raw, "reads")
    if len(items) > MOST_READS:
        fault = values.Fault("/reads", f"takes at most {MOST_READS}")
        raise Invalid("too many reads", [fault])
    found = []
    for index, item in enumerate(items):
        pointer = f"/reads/{index}"
        read = Read(**ReadBody.take(item, pointer))
        try:
            entries.check_address(read.namespace, read.key)
        except Problem as bad:
            fault = values.Fault(pointer, bad.detail)
            raise Invalid("a read is not acceptable", [fault]) from bad
        found.append(read)
    return tuple(found)


def read_change(body: dict[str, Any]) -> RunChange:
    cost = body.get("cost_usd")
    return RunChange(
        status=body.get("status"),
        waiting=_read_value(body, "waiting"),
        termination_reason=_read_value(body, "termination_reason"),
        step_count=body.get("step_count"),
        input_tokens=body.get("input_tokens"),
        output_tokens=body.get("output_tokens"),
        cost_usd=cost,
        metadata=read_object(body.get("metadata", UNSET), "metadata")
        if "metadata" in body
        else None,
    )


def _read_value(body: dict[str, Any], name: str) -> Any:
    raw: Raw | None = body.get(name)
    if raw is None:
        return None
    values.check(raw, f"/{name}")
    return values.load(raw.text)


def _batch(raw: Raw, name: str) -> Batch:
    """A batch: a list of updates, or an object with a base_revision of its own beside them."""
    if not isinstance(raw.value, dict):
        return Batch(_updates(raw, name))
    parts = values.members(raw)
    if parts.keys() - {"updates", "base_revision"} or "updates" not in parts:
        message = f"{name} must be a list of updates or an object with updates and base_revision"
        raise Invalid(message, [values.Fault(f"/{name}", "not a list of updates")])
    base_raw = parts.get("base_revision")
    base = base_raw.value if base_raw else None
    if base is not None and (type(base) is not int or base < 0):
        fault = values.Fault(f"/{name}/base_revision", "must be a non-negative integer")
        raise Invalid("base_revision must be a non-negative integer", [fault])
    return Batch(_updates(parts["updates"], f"{name}/updates"), base)


def _updates(raw: Raw, name: str) -> tuple[Update, ...]:
    updates: list[Update] = []
    items = read_list(raw, name)
    commits.check_count(len(items))
    for index, item in enumerate(items):
        pointer = f"/{name}/{index}"
        given = UpdateBody.take(item, pointer)
        clear = given.get("clear", False)
        if clear == ("update" in given):
            fault = values.Fault(pointer, "give an update, or clear: true")
            raise Invalid("an update needs exactly one of update and clear", [fault])
        updates.append(Update(given["key"], given.get("update"), clear))
    return tuple(updates)
