"""Webhooks: the list, creating one, whose secret is shown once, and the actions on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import F, OrderBy
from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.debug import sensitive_variables

from state_admin import egress
from state_admin.contract import webhooks as contract
from state_admin.domain.access import Role
from state_admin.models import Webhook, WebhookStatus
from state_admin.services import webhook_flow, webhooks
from state_admin.services.errors import Invalid, QuotaExceeded
from state_admin.services.webhooks import find_webhook
from state_admin.templatetags.ui import plural

from . import snippets, webhook_deliveries
from .actors import FORM, POST, page
from .choosers import Chooser, namespace_globs_field, warn_unmatched
from .confirm import Choice, Confirm, ask, reason_of
from .creation import Creation, created_once, show_form
from .errors import sentences_of
from .htmx import Request, render_list, see_other, target_id, toast
from .lists import table_paths
from .tables import Field, Orders, Table, choices_of

# The statuses of the list and their colours. An active webhook whose last attempt failed is failing;
# for the API, it is active.
_FAILING = "failing"
_STATES = {
    WebhookStatus.ACTIVE.value: "running",
    _FAILING: "failed",
    WebhookStatus.PAUSED.value: "waiting",
    WebhookStatus.DISABLED.value: "failed",
}
_TABLE = Table(
    "web:webhook-list",
    (
        # The default is newest first, which no column shows.
        Orders("Webhook", {"": "other", "name": "ascending", "-name": "descending"}),
        Orders("Status"),
        Orders("Events"),
        Orders("Queued", {"queued": "descending"}, numeric=True),
        Orders("Dead letters", {"dead": "descending"}, numeric=True),
        Orders("Last delivered", {"delivered": "descending"}),
    ),
    search=Field("text", "Search", placeholder="Name or URL"),
    menu=(Field("status", "Status", choices=choices_of(_STATES)),),
)
_SORTS: dict[str, Sequence[str | OrderBy]] = {
    "": ["-pk"],
    "name": ["name", "pk"],
    "-name": ["-name", "-pk"],
    "queued": ["-waiting", "-pk"],
    "dead": ["-dead", "-pk"],
    "delivered": [F("last_delivered_at").desc(nulls_last=True), "-pk"],
}
_CREATION = Creation("Webhooks", "web:webhook-list", "webhooks", "New webhook", "Create webhook")
_TEXT = {"autocomplete": "off", "spellcheck": "false"}
_BODY = '{"name": "billing", "url": "https://example.com/hook", "filter": {"kinds": ["run.*"]}}'


class WebhookForm(forms.Form):
    """The events that a webhook receives. All conditions must match; of several globs, any."""

    name = forms.CharField(
        max_length=128, widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True})
    )
    url = forms.CharField(
        label="URL",
        max_length=egress.LONGEST_URL,
        help_text="Receives the POST requests. Redirects are not followed.",
        widget=forms.TextInput(attrs={**_TEXT, "inputmode": "url"}),
    )
    kinds = forms.CharField(
        label="Events",
        required=False,
        max_length=2000,
        help_text="Globs, separated by spaces: entry.* run.done. Empty means all.",
        widget=forms.TextInput(attrs=_TEXT),
    )
    namespaces = namespace_globs_field("Empty means all, including threads and runs.")
    key = forms.CharField(required=False, strip=False, widget=forms.TextInput(attrs=_TEXT))
    # Not named `prefix`, which is an argument of Django's forms.
    begins = forms.CharField(
        label="Key begins with", required=False, strip=False, widget=forms.TextInput(attrs=_TEXT)
    )
    thread = Chooser("web:thread-named", "web:thread-id-offers", max_length=128)
    run = forms.CharField(required=False, strip=False, widget=forms.TextInput(attrs=_TEXT))

    def filters(self) -> contract.WebhookFilter:
        cleaned = self.cleaned_data
        return contract.WebhookFilter(
            kinds=cleaned["kinds"].split(),
            namespaces=cleaned["namespaces"].split(),
            key=cleaned["key"],
            prefix=cleaned["begins"],
            thread_id=cleaned["thread"],
            run_id=cleaned["run"],
        )


@dataclass(frozen=True)
class WebhookLine:
    """A webhook in the list. Only users who may change it see the whole URL. `status`: its label, in
    the colour of `state`."""

    hook: Webhook
    status: str
    state: str
    url: str
    wants: list[str]
    sees: list[str]


def line_of(request: Request, hook: Webhook) -> WebhookLine:
    wants = [*hook.kinds, *(f"namespace {glob}" for glob in hook.namespaces)]
    wants += [
        f"{label} {text}"
        for label, text in (
            ("key", hook.key),
            ("keys that begin with", hook.prefix),
            ("thread", hook.thread),
            ("run", hook.run),
        )
        if text
    ]
    sees = [f"namespaces {glob}" for glob in hook.grant_namespaces]
    sees += [f"threads {prefix}…" for prefix in hook.grant_thread_prefixes]
    whole = request.actor.may(Role.ADMIN)
    url = hook.url if whole else egress.origin_of(hook.url)
    failing = hook.status == WebhookStatus.ACTIVE and hook.failing_since
    status = _FAILING if failing else hook.status
    return WebhookLine(hook, status, _STATES[status], url, wants, sees)


@page(methods=FORM, role=Role.ADMIN)
@created_once
@sensitive_variables("secret")
def webhook_new(request: Request) -> HttpResponse:
    """The form. The response to its POST is the only page that shows the secret."""
    if request.method != "POST":
        return show_form(request, _CREATION, WebhookForm())
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return show_form(request, _CREATION, form, status=422)
    try:
        hook, secret = webhooks.create_webhook(
            actor=request.actor,
            name=form.cleaned_data["name"],
            url=form.cleaned_data["url"],
            filters=form.filters(),
        )
    except Invalid as problem:
        for error in problem.data["errors"]:
            # /url, /filter/kinds/0: the field is the last segment that is not a number.
            words = [word for word in error["pointer"].split("/") if not word.isdigit()]
            field = {"prefix": "begins", "thread_id": "thread", "run_id": "run"}.get(
                words[-1], words[-1]
            )
            form.add_error(field, error["message"])
        return show_form(request, _CREATION, form, status=422)
    except QuotaExceeded as problem:
        form.add_error(None, sentences_of(problem))
        return show_form(request, _CREATION, form, status=422)
    warnings = warn_unmatched(request.actor, form.filters().namespaces)
    if not settings.WEBHOOK_ALLOW_PRIVATE and egress.is_private(hook.url):
        warnings.append(
            "Deliveries will fail: the address is not public. The operator of the server can permit"
            " private addresses with WEBHOOK_ALLOW_PRIVATE=true."
        )
    created = {"created": hook, "secret": secret, "warnings": warnings}
    return _list(request, created)


def _find(request: Request, filters: dict[str, str], _: str) -> tuple[list[WebhookLine], str]:
    """Webhooks, newest first unless sorted otherwise. A workspace has at most a hundred, so there are
    no pages. A text is searched in what the list shows: URLs contain secrets."""
    rows = Webhook.objects.visible_to(request.actor).with_counts()
    rows = rows.order_by(*_SORTS[filters["sort"]])
    text = filters["text"].casefold()
    lines = [
        line
        for line in (line_of(request, hook) for hook in rows)
        if filters["status"] in ("", line.status)
        and text in f"{line.hook.name}\n{line.url}".casefold()
    ]
    return lines, ""


def _item(line: WebhookLine) -> contract.Webhook:
    return contract.Webhook.of(line.hook, line.url)


def _list(request: Request, created: dict[str, Any] | None = None) -> HttpResponse:
    _, lines, table = _TABLE.load(request, _find)
    context = {
        **table,
        "lines": lines,
        "count": plural(len(lines), "webhook,webhooks"),
        "may_change": request.actor.may(Role.ADMIN),
        **snippets.both(
            "POST",
            "webhooks",
            _BODY,
            call=f'request("POST", "/webhooks", {snippets.literal(_BODY)})',
        ),
        **(created or {}),
    }
    status = 201 if created else 200
    return render_list(
        request, "webhooks/list.html", context, part="webhooks", rows="webhook-table", status=status
    )


def _detail(request: Request, webhook_id: str, **extra: Any) -> HttpResponse:
    hook = find_webhook(request.actor, webhook_id)
    table = webhook_deliveries.rows_for(request, hook)
    line = line_of(request, hook)
    context = {
        "line": line,
        "blocking": hook.next_delivery if line.status == _FAILING else None,
        "behind": max(hook.waiting - 1, 0),
        "may_change": request.actor.may(Role.ADMIN),
        **table,
        **extra,
    }
    part, url = "webhook", _url(hook)
    if target_id(request) == "delivery-table":
        part, url = "delivery-table", table["list_url"]
    return render_list(request, "webhooks/detail.html", context, part=part, url=url)


def _url(hook: Webhook) -> str:
    return reverse("web:webhook-detail", args=[hook.public_id])


def _redirect_back(request: Request, webhook_id: str, message: str) -> HttpResponse:
    toast(request, message)
    return see_other(request, reverse("web:webhook-detail", args=[webhook_id]), part="webhook")


@page(methods=POST, role=Role.ADMIN)
def pause(request: Request, webhook_id: str) -> HttpResponse:
    webhook_flow.pause_webhook(actor=request.actor, webhook_id=webhook_id)
    return _redirect_back(request, webhook_id, "Webhook paused")


@page(methods=POST, role=Role.ADMIN)
def send_test(request: Request, webhook_id: str) -> HttpResponse:
    webhook_flow.send_test(actor=request.actor, webhook_id=webhook_id)
    return _redirect_back(request, webhook_id, "Test event queued")


@page(methods=FORM, role=Role.ADMIN)
def resume(request: Request, webhook_id: str) -> HttpResponse:
    if request.method == "POST":
        webhook_flow.resume_webhook(
            actor=request.actor,
            webhook_id=webhook_id,
            skip=request.POST.get("from") == "now",
            if_stopped=True,
            reason=reason_of(request),
        )
        return _redirect_back(request, webhook_id, "Webhook resumed")
    hook = find_webhook(request.actor, webhook_id)
    confirm = Confirm(
        title=f"Resume “{hook.name}”?",
        verb="Resume",
        back=_url(hook),
        lines=[hook.status_reason] if hook.status_reason else [],
        choices_name="from",
        choices_label="Resume position",
        choices=[
            Choice("place", "Last position: deliver everything since then", True),
            Choice("now", "Now: queued deliveries become dead letters"),
        ],
        kind="primary",
    )
    return ask(request, confirm, part="webhook")


@page(methods=FORM, role=Role.ADMIN)
@sensitive_variables("secret")
def rotate(request: Request, webhook_id: str) -> HttpResponse:
    if request.method == "POST":
        overlap = 0 if request.POST.get("overlap") == "0" else webhooks.DEFAULT_OVERLAP
        _, secret = webhooks.rotate_secret(
            actor=request.actor,
            webhook_id=webhook_id,
            overlap_seconds=overlap,
            reason=reason_of(request),
        )
        return _detail(request, webhook_id, secret=secret)
    hook = find_webhook(request.actor, webhook_id)
    confirm = Confirm(
        title="Rotate the signing secret?",
        verb="Rotate secret",
        back=_url(hook),
        choices_name="overlap",
        choices_label="Current secret",
        choices=[
            Choice(str(webhooks.DEFAULT_OVERLAP), "remains valid for one more day", True),
            Choice("0", "expires now (for example, because it leaked)"),
        ],
    )
    return ask(request, confirm, part="webhook")


@page(methods=FORM, role=Role.ADMIN)
def replay_dead(request: Request, webhook_id: str) -> HttpResponse:
    if request.method == "POST":
        number = webhook_flow.replay_dead_letters(
            actor=request.actor, webhook_id=webhook_id, reason=reason_of(request)
        )
        message = f"{plural(number, 'delivery,deliveries')} requeued"
        return _redirect_back(request, webhook_id, message)
    hook = find_webhook(request.actor, webhook_id)
    confirm = Confirm(
        title="Redeliver all dead letters?",
        verb="Redeliver",
        back=_url(hook),
        lines=[f"{hook.dead} events are delivered before queued ones, with their original ids."],
        kind="primary",
    )
    return ask(request, confirm, part="webhook")


@page(methods=FORM, role=Role.ADMIN)
def delete(request: Request, webhook_id: str) -> HttpResponse:
    hook = find_webhook(request.actor, webhook_id)
    if request.method == "POST":
        webhooks.delete_webhook(
            actor=request.actor, webhook_id=webhook_id, reason=reason_of(request)
        )
        toast(request, f"Webhook “{hook.name}” deleted")
        return see_other(request, reverse("web:webhook-list"))
    confirm = Confirm(
        title=f"Delete the webhook “{hook.name}”?",
        verb="Delete webhook",
        back=_url(hook),
        lines=[
            f"{hook.waiting} queued deliveries and {hook.dead} dead letters are deleted with it, and "
            "its secret. This cannot be undone. To stop deliveries temporarily, pause it.",
        ],
    )
    return ask(request, confirm, part="webhook")


urlpatterns = [
    path("webhooks", page(replica=True)(_list), name="webhook-list"),
    *table_paths("webhooks", _TABLE, _find, _item),
    path("webhooks/+new", webhook_new, name="webhook-new"),
    path("webhooks/<str:webhook_id>", page(replica=True)(_detail), name="webhook-detail"),
    path("webhooks/<str:webhook_id>/pause", pause, name="webhook-pause"),
    path("webhooks/<str:webhook_id>/resume", resume, name="webhook-resume"),
    path("webhooks/<str:webhook_id>/rotate", rotate, name="webhook-rotate"),
    path("webhooks/<str:webhook_id>/test", send_test, name="webhook-test"),
    path("webhooks/<str:webhook_id>/replay", replay_dead, name="webhook-replay"),
    path("webhooks/<str:webhook_id>/delete", delete, name="webhook-delete"),
    *webhook_deliveries.urlpatterns,
]
