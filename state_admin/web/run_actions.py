"""The ways out of a run that is stuck or not wanted any more, and the decision of a ticket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods, require_POST

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Fault, Raw
from state_admin.models import Run, Ticket
from state_admin.services.errors import Invalid
from state_admin.services.runs import RunChange, cancel_run, change_run, find_run, heartbeat
from state_admin.services.tickets import decide_ticket, find_ticket

from .addresses import run_action_url, run_url
from .confirm import Confirm, ask
from .htmx import Request, render, see_other, toast
from .id_address import id_page, id_paths
from .runs import run_context


@dataclass(frozen=True)
class Act:
    """Something a person can do with a run. `do` gets the actor, the run's id and the reason."""

    title: str
    verb: str
    line: str
    said: str
    do: Callable[[Actor, str, str], Run]
    kind: str = "danger"


def _cancel(actor: Actor, run_id: str, reason: str) -> Run:
    return cancel_run(actor=actor, run_id=run_id, reason=reason)


def _fail(actor: Actor, run_id: str, reason: str) -> Run:
    ended = {"type": "error", "value": reason or f"failed by {actor.name}"}
    change = RunChange(status="done", termination_reason=ended)
    return change_run(actor=actor, run_id=run_id, change=change, reason=reason)


def _resume(actor: Actor, run_id: str, reason: str) -> Run:
    return change_run(actor=actor, run_id=run_id, change=RunChange(status="running"), reason=reason)


def _renew(actor: Actor, run_id: str, reason: str) -> Run:
    return heartbeat(actor=actor, run_id=run_id, reason=reason)


ACTS = {
    "cancel": Act(
        "Cancel this run?",
        "Cancel run",
        "It ends as cancelled. Its pending tickets become void, the thread is free for a new run, "
        "and the agent's next commit is refused.",
        "Run cancelled",
        _cancel,
    ),
    "fail": Act(
        "End this run as failed?",
        "End as failed",
        "It ends with an error: the reason below. Its pending tickets become void, the thread is "
        "free for a new run, and the agent's next commit is refused.",
        "Run ended as failed",
        _fail,
    ),
    "resume": Act(
        "Resume this run?",
        "Resume run",
        "It goes from waiting to running, and its lease starts anew. Do this when the agent is "
        "there to go on.",
        "Run resumed",
        _resume,
        "primary",
    ),
    "renew": Act(
        "Renew the lease?",
        "Renew lease",
        "The run counts as alive for one more lease. Do this when you know that its agent still "
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
    if request.method == "GET":
        touched = f"Run {run_id} on thread {run.thread.public_id}, now {run.status}."
        confirm = Confirm(
            title=act.title,
            verb=act.verb,
            url=run_action_url(action, run_id),
            back=run_url(run_id),
            lines=[touched, act.line],
            kind=act.kind,
        )
        return ask(request, confirm, part="run")
    act.do(request.actor, run_id, request.POST.get("reason", "").strip())
    toast(request, act.said)
    return see_other(request, run_url(run_id), part="run")


@require_POST
@id_page(role=Role.EDITOR)
def decide(request: Request, ticket_id: str) -> HttpResponse:
    """Resume with a payload or cancel. A mistake shows the run again, with what was typed."""
    ticket = find_ticket(request.actor, ticket_id)
    run_id = ticket.run.public_id
    action = request.POST.get("action", "")
    typed = request.POST.get("payload", "")
    try:
        decide_ticket(
            actor=request.actor,
            ticket_id=ticket_id,
            action=action,
            payload=_payload(typed) if action == "resume" else Raw("null", None),
            reason=request.POST.get("reason", "").strip(),
        )
    except Invalid as refused:
        return _again(request, ticket, typed, refused)
    toast(request, "Resumed" if action == "resume" else "Call refused")
    return see_other(request, run_url(run_id), part="run")


def _payload(typed: str) -> Raw:
    if not typed.strip():
        return Raw("null", None)
    try:
        return values.read(typed.strip())
    except values.MalformedJSON as malformed:
        raise Invalid("the answer is not JSON", [Fault("", str(malformed))]) from malformed
    except values.RefusedJSON as refused:
        raise Invalid("the answer cannot be stored", refused.faults) from refused


def _again(request: Request, ticket: Ticket, typed: str, refused: Invalid) -> HttpResponse:
    errors = refused.data.get("errors", [])
    context = run_context(request, find_run(request.actor, ticket.run.public_id))
    for question in context["questions"]:
        if question.ticket.pk == ticket.pk:
            question.typed, question.errors, question.mistake = typed, errors, refused.title
    return render(request, "runs/detail.html", context, part="run", status=422)


urlpatterns = [
    *id_paths("run/<str:action>", run_act, "run-act"),
    *id_paths("ticket", decide, "ticket-decide"),
]
