"""The actions that end, resume or recover a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods

from state_admin.domain.access import Actor, Role
from state_admin.models import Run
from state_admin.services.leases import release_lease
from state_admin.services.recoveries import fail_run, resume_run
from state_admin.services.runs import cancel_run, find_run, heartbeat

from .addresses import run_action_url, run_url
from .confirm import Confirm, ask
from .htmx import Request, see_other, toast
from .id_address import id_page, id_path
from .paging import whole_number


@dataclass(frozen=True)
class RunAction:
    """An action on a run. `do` takes the actor, the run's id and the reason."""

    title: str
    verb: str
    line: str
    message: str
    do: Callable[[Actor, str, str], Run]
    kind: str = "danger"


def _cancel(actor: Actor, run_id: str, reason: str) -> Run:
    return cancel_run(actor=actor, run_id=run_id, reason=reason)


def _fail(actor: Actor, run_id: str, reason: str) -> Run:
    return fail_run(actor=actor, run_id=run_id, reason=reason)


def _resume(actor: Actor, run_id: str, reason: str) -> Run:
    return resume_run(actor=actor, run_id=run_id, reason=reason)


def _release(actor: Actor, run_id: str, reason: str) -> Run:
    return release_lease(actor=actor, run_id=run_id, reason=reason)


def _renew(actor: Actor, run_id: str, reason: str) -> Run:
    return heartbeat(actor=actor, run_id=run_id, reason=reason)


ACTS = {
    "cancel": RunAction(
        "Cancel this run?",
        "Cancel run",
        "It ends as cancelled. Its pending tickets become void, the thread is free for a new run, "
        "and the agent's next commit is refused.",
        "Run cancelled",
        _cancel,
    ),
    "fail": RunAction(
        "End this run as failed?",
        "End as failed",
        "It ends with an error: the reason below. Its pending tickets become void, the thread is "
        "free for a new run, and the agent's next commit is refused.",
        "Run ended as failed",
        _fail,
    ),
    "resume": RunAction(
        "Resume this run?",
        "Resume run",
        "The run continues with a new fencing token and lease, without the answers "
        "it waits for: its pending tickets become void. Resume it when an agent can continue.",
        "Run resumed",
        _resume,
        "primary",
    ),
    "release": RunAction(
        "Release the lease?",
        "Release lease",
        "The worker that holds the run loses its lease: commits with its fencing token are refused. "
        "The run counts as stuck until another worker takes it.",
        "Lease released",
        _release,
    ),
    "renew": RunAction(
        "Renew the lease?",
        "Renew lease",
        "The lease is extended by one period. Renew it only when you know that the agent still "
        "works.",
        "Lease renewed",
        _renew,
        "primary",
    ),
}


@require_http_methods(["GET", "POST"])
@id_page(role=Role.EDITOR)
def run_act(request: Request, run_id: str, action: str) -> HttpResponse:
    act = ACTS.get(action)
    if act is None:
        raise Http404
    run = find_run(request.actor, run_id)
    revision = whole_number(request, "revision") if action == "resume" else None
    if request.method == "GET":
        lines = [f"Run {run_id} on thread {run.thread.public_id}, now {run.status}.", act.line]
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
            kind=act.kind,
        )
        return ask(request, confirm, part="run")
    reason = request.POST.get("reason", "").strip()
    if revision is not None:
        resume_run(actor=request.actor, run_id=run_id, revision=revision, reason=reason)
    else:
        act.do(request.actor, run_id, reason)
    toast(request, act.message)
    return see_other(request, run_url(run_id), part="run")


urlpatterns = [
    id_path("run/<str:action>", run_act, "run-act"),
]
