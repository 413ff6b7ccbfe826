"""The actions that end, resume or recover a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from django.http import Http404, HttpResponse

from state_admin.domain.access import Actor, Role
from state_admin.domain.lifecycle import format_duration
from state_admin.models import Dispatch, DispatchStatus, Run, RunStatus, Webhook
from state_admin.models.feed_sql import change_of_run, matcher
from state_admin.models.runs import IN_PROGRESS
from state_admin.services.client_counts import count_clients
from state_admin.services.errors import Conflict, RevisionConflict, Superseded
from state_admin.services.leases import release_lease
from state_admin.services.recoveries import fail_run, resume_run
from state_admin.services.runs import cancel_run, find_run, heartbeat
from state_admin.templatetags.threads import ended_as
from state_admin.templatetags.ui import plural

from .actors import FORM
from .addresses import run_action_url, run_url
from .bulk_actions import BulkAction, BulkList, Outlook, bulk_path
from .confirm import Confirm, ask, reason_of
from .handovers import Handover
from .htmx import Request, see_other, toast
from .id_address import id_page, id_path
from .paging import read_number, whole_number

# The newest dispatches of a workspace among which claims of an agent are looked for.
_RECENT = 200
_CHANGED = "the run has changed since this confirmation was opened"


@dataclass(frozen=True)
class RunAction:
    """An action on a run. `do` is a service that takes `actor`, `run_id` and `reason`."""

    title: str
    verb: str
    line: str
    message: str
    do: Callable[..., Run]
    icon: str
    kind: str = "danger"


ACTS = {
    "cancel": RunAction(
        "Cancel this run?",
        "Cancel run",
        "It ends as cancelled. Its pending tickets become void, the thread is free for a new run, "
        "and the agent's next commit is refused.",
        "Run cancelled",
        cancel_run,
        "ban",
    ),
    "fail": RunAction(
        "End this run as failed?",
        "End as failed",
        "It ends with an error, whose text is your reason. Its pending tickets become void, the thread is "
        "free for a new run, and the agent's next commit is refused.",
        "Run ended as failed",
        fail_run,
        "circle-alert",
    ),
    "resume": RunAction(
        "Resume this run?",
        "Resume run",
        "The run continues without the answers it waits for: its pending tickets become void. It gets a "
        "new fencing token, and commits with the old one are refused. A worker that waits for it sees "
        "it running and takes the lease to continue.",
        "Run resumed",
        resume_run,
        "play",
        "primary",
    ),
    "release": RunAction(
        "Release the lease?",
        "Release lease",
        "The worker that holds the run loses its lease: commits with its fencing token are refused. "
        "The run counts as stuck until another worker takes it.",
        "Lease released",
        release_lease,
        "log-out",
    ),
    "renew": RunAction(
        "Renew the lease?",
        "Renew lease",
        "The lease is extended by one period. Renew it only when you know that the agent still "
        "works.",
        "Lease renewed",
        heartbeat,
        "heart-pulse",
        "primary",
    ),
}


@dataclass(frozen=True)
class Suggestion:
    """What to do about a stuck run, why, and what else to know. `verb` is the label of the link."""

    why: str
    more: str
    verb: str
    url: str
    dialog: bool = True
    # The change after which a worker should take the run; "" if none should.
    kind: str = ""


def actions_of(run: Run) -> list[tuple[str, RunAction, str]]:
    """The actions that are possible now: name, action and URL."""
    if run.status == RunStatus.DONE:
        return []
    stuck = bool(run.stuck_reason(run.read_at))
    possible = {
        "renew": run.status in IN_PROGRESS,
        "release": run.lease_expires_at is not None,
        "resume": stuck or run.status == RunStatus.WAITING,
        "fail": True,
        "cancel": True,
    }
    names = [name for name, is_possible in possible.items() if is_possible]
    return [(name, ACTS[name], run_action_url(name, run.public_id)) for name in names]


def suggest(run: Run, *, can_decide: bool, handover: Handover | None = None) -> Suggestion | None:
    """The action that a stuck run most likely needs. `can_decide`: it waits for tickets, and all of
    them can still be decided. `handover`: it waits for a worker."""
    now = run.read_at
    if not run.stuck_reason(now) or (handover and handover.recent):
        return None

    def action(name: str, why: str, more: str) -> Suggestion:
        url = run_action_url(name, run.public_id)
        return Suggestion(why, more, ACTS[name].verb, url, kind=_HANDED_ON.get(name, ""))

    out_of_time = run.times_out_at is not None and run.times_out_at <= now
    if out_of_time or 0 < run.max_rounds <= run.step_count:
        return action(
            "fail",
            "It has reached its limit, so no worker should continue it.",
            "The next commit of its worker is refused, its state and messages stay, and the thread is "
            "free for a new run.",
        )
    if can_decide:
        return Suggestion(
            "The run continues as soon as its tickets are decided, and its worker gets the answers.",
            "",
            "Decide the ticket",
            "#tickets",
            dialog=False,
        )
    if run.status == RunStatus.WAITING:
        return action(
            "resume",
            "What it waits for did not come in time.",
            "The run continues without it: its worker sees it running and takes the lease to continue.",
        )
    if run.lease_expires_at is not None and handover is None:
        return action(
            "release",
            "Another worker can then take it over and continue after the last step.",
            "If the silent worker comes back, its next commit is refused. If you know that it still "
            "works, renew its lease instead.",
        )
    return action(
        "fail",
        "Use this only if no worker will take the run. No worker holds its lease, so no work is interrupted.",
        "Its state and messages stay, and the thread is free for a new run. To continue the run instead, "
        "start a worker of its agent.",
    )


# The actions after which a worker should take the run, and their kinds in the change feed.
_HANDED_ON = {"resume": "run.resume", "release": "run.release"}


def describe_listeners(request: Request, run: Run, kind: str) -> str:
    """Sentences about who is notified of the change `kind` of a run, as far as the server knows: active
    webhooks, clients that wait for it, and claims of dispatches. It does not know which workers poll."""
    actor, thread = request.actor, run.thread.public_id
    change = change_of_run(kind, thread, run.public_id)
    names = [
        f"“{hook.name}”"
        for hook in Webhook.objects.visible_to(actor).active()
        if hook.choice.takes(kind, "") and matcher(hook.reader, hook.feed_filter)(change)
    ]
    found = []
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        what = plural(len(names), "webhook,webhooks")
        found.append(f"{what} will receive the event: {', '.join(names[:3])}{more}.")
    count = count_clients(actor.workspace_id, kind, thread_id=thread, run_id=run.public_id)
    if count.clients:
        what = plural(count.clients, "client is waiting,clients are waiting")
        found.append(f"{what} for this event in a stream or long poll.")
    silent = ""
    if count.silent:
        what = plural(count.silent, "web process,web processes")
        silent = f" {what} did not respond and may have such clients."
    dispatches = Dispatch.objects.visible_to(actor)
    # Of a run that is not waiting, the worker may be the silent one.
    waits = run.status == RunStatus.WAITING
    claimed = dispatches.concerning(thread_id=thread).filter(status=DispatchStatus.CLAIMED)
    if waits and claimed.exists():
        found.append("A worker has claimed a dispatch of this thread.")
    if found:
        return " ".join(found) + silent
    newest = dispatches.order_by("-pk").values("pk")[:_RECENT]
    claims = Dispatch.objects.filter(
        pk__in=newest, agent_id__in=("", run.agent_id), claimed_at__isnull=False
    ).order_by("-claimed_at", "-pk")
    taken = "dispatch" + (
        f" for the agent {run.agent_id} or without an agent" if run.agent_id else ""
    )
    last = f"No worker has claimed a {taken} among the newest {_RECENT} dispatches."
    if claim := claims.values_list("claimed_by", "claimed_at").first():
        worker, at = claim
        ago = format_duration(run.read_at - cast(datetime, at))
        last = f"The last worker that claimed a {taken} is {worker}, {ago} ago."
    return (
        "No active webhook receives this event, and no client waits for it in a stream or long poll."
        f"{silent} {last} The run continues only if a worker follows the change feed or polls the run."
    )


def _expectations(run: Run, action: str) -> dict[str, int]:
    """What the confirmation of an action is based on; the service refuses if it has changed by then.

    Another worker or a resumption changes the fencing token. If the run is silent, its next commit and
    the decision of its ticket change the revision. The revision of a running agent always changes:
    ending such a run must not depend on it."""
    expected = {"fencing_token": run.fencing_token}
    is_silent = run.status == RunStatus.WAITING or bool(run.stuck_reason(run.read_at))
    if action == "resume":
        expected["expected_revision"] = run.thread.revision
    elif action in ("cancel", "fail") and is_silent:
        expected["expected_revision"] = run.last_revision
    return expected


def _read_expectations(request: Request, action: str) -> dict[str, int]:
    """As in the form. Without them, for example from a page of an older version, nothing is checked."""
    names = ["fencing_token"]
    if action in ("cancel", "fail", "resume"):
        names.append("expected_revision")
    numbers = {name: read_number(name, request.POST.get(name, "")) for name in names}
    return {name: number for name, number in numbers.items() if number is not None}


@id_page(methods=FORM, role=Role.EDITOR)
def run_act(request: Request, run_id: str, action: str) -> HttpResponse:
    act = ACTS.get(action)
    if act is None:
        raise Http404
    run = find_run(request.actor, run_id)
    revision = whole_number(request, "revision") if action == "resume" else None
    if request.method == "GET":
        lines = [f"Run {run_id} on thread {run.thread.public_id}, now {run.status}.", act.line]
        if action in _HANDED_ON:
            lines.append(describe_listeners(request, run, _HANDED_ON[action]))
        if revision is not None:
            lines.append(
                f"The state of revision {revision} is restored as a new revision. Later "
                "revisions stay readable, and the messages are kept."
            )
        confirm = Confirm(
            title=act.title if revision is None else f"Resume from revision {revision}?",
            verb=act.verb,
            url=run_action_url(action, run_id, revision=revision),
            back=run_url(run_id),
            lines=lines,
            fields=list(_expectations(run, action).items()),
            kind=act.kind,
        )
        return ask(request, confirm, part="run")
    if run.status == RunStatus.DONE:
        raise Conflict(f"the run has already ended ({ended_as(run)})")
    arguments = _read_expectations(request, action)
    if revision is not None:
        arguments["revision"] = revision
    try:
        act.do(actor=request.actor, run_id=run_id, reason=reason_of(request), **arguments)
    except (RevisionConflict, Superseded) as problem:
        raise Conflict(
            _CHANGED,
            hint="Nothing was changed. Check its current status, then open the action again.",
        ) from problem
    toast(request, act.message)
    return see_other(request, run_url(run_id), part="run")


def _look(line: str) -> Callable[[Actor, Sequence[str]], Outlook]:
    def look(actor: Actor, ids: Sequence[str]) -> Outlook:
        runs = Run.objects.visible_to(actor).active().timed().select_related("thread")
        found = {run.public_id: run for run in runs.filter(public_id__in=ids).order_by("-pk")}
        return Outlook(
            {
                run_id: f"{run_id}: {run.status}, thread {run.thread.public_id}"
                for run_id, run in found.items()
            },
            [line],
            seen={
                run_id: " ".join(map(str, _expectations(run, "cancel").values()))
                for run_id, run in found.items()
            },
        )

    return look


def _each(change: Callable[..., Run]) -> Callable[[Actor, str, str, str], int]:
    def do(actor: Actor, run_id: str, reason: str, seen: str) -> int:
        numbers = [read_number("seen", text) for text in seen.split()]
        expected = dict(zip(("fencing_token", "expected_revision"), numbers, strict=False))
        try:
            run = change(actor=actor, run_id=run_id, reason=reason, **expected)
        except (RevisionConflict, Superseded) as problem:
            raise Conflict(_CHANGED) from problem
        if run.finished_at != run.read_at:  # ending a run again changes nothing
            raise Conflict(f"the run has already ended ({ended_as(run)})")
        return 1

    return do


RUNS = BulkList(
    name="run-list",
    part="run-table",
    nouns="run,runs",
    actions={
        "cancel": BulkAction(
            verb="Cancel",
            past="Cancelled",
            only="Only runs that have not ended can be cancelled",
            look=_look(
                "They end as cancelled. Their pending tickets become void, their threads are free for "
                "new runs, and the next commits of their agents are refused. This cannot be undone."
            ),
            do=_each(cancel_run),
        ),
        "fail": BulkAction(
            verb="Fail",
            past="Ended as failed:",
            only="Only runs that have not ended can fail",
            look=_look(
                "They end with an error, whose text is your reason. Their pending tickets become void, "
                "their threads are free for new runs, and the next commits of their agents are refused. "
                "This cannot be undone."
            ),
            do=_each(fail_run),
        ),
    },
    url=run_url,
)

urlpatterns = [
    bulk_path("run/bulk", RUNS),
    id_path("run/<str:action>", run_act, "run-act"),
]
