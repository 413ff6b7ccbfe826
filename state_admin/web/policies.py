"""Compaction policies: the list, and the form of one with the values that apply to its scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from django import forms
from django.forms.boundfield import BoundField
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import policies as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.domain.policies import BY_MODEL, DESTRUCTIVE, EXTRACTIVE, LONGEST_PROMPT, MODES
from state_admin.models import Thread
from state_admin.services import policies
from state_admin.services.compactions import Preview
from state_admin.services.errors import Invalid, NotFound, QuotaExceeded, VersionConflict
from state_admin.services.policies import SCOPES, PolicyView, Scope
from state_admin.services.policy_previews import Effect, preview_policy
from state_admin.services.presence import announce_editing_policy
from state_admin.services.retention import preview_snapshots
from state_admin.templatetags.ui import number, plural, tokens

from . import paging, snippets
from .actors import FORM, POST, page
from .addresses import thread_url, with_query
from .confirm import reason_of
from .entry_undo import MOST_CARRIED, REFUSED
from .errors import sentences_of
from .htmx import Request, Undo, render, render_list, see_other, target_id, toast, wants_part
from .lists import table_paths
from .namespace_edit import CONCURRENT_EDIT
from .tables import Field, Orders, Table

_TEXT = {"autocomplete": "off", "spellcheck": "false"}
# Sets a field back to the value of the wider scope; an empty field leaves it unset.
NONE = "none"
_MOST = (1 << 53) - 1
_BODY = '{"autocompact_threshold": 60000}'
# The names of values, in the form and wherever a policy is shown.
_NAMES: Final = {
    "mode": dict(zip(MODES, ("keep the newest messages", "keep a minimum"), strict=True)),
    "summarizer": {EXTRACTIVE: EXTRACTIVE, BY_MODEL: BY_MODEL, NONE: f"default ({EXTRACTIVE})"},
    "fallback": {EXTRACTIVE: EXTRACTIVE, NONE: NONE},
}
# The fields of the form in groups, with the unit of each.
_GROUPS: Final = {
    "When a thread is compacted": {"autocompact_threshold": "tokens", "every_hours": "hours"},
    "What is summarized": {
        "mode": "",
        "raw_suffix_messages": "messages",
        "min_recent_messages": "messages",
        "min_gain_tokens": "tokens",
        "min_savings_ratio": "",
    },
    "How it is summarized": {
        "summarizer": "",
        "summary_model": "",
        "summary_max_tokens": "tokens",
        "prompt": "",
        "fallback": "",
    },
    "Snapshots": {"snapshot_keep_last": "snapshots", "snapshot_keep_every": ""},
    "Context window": {"max_context_tokens": "tokens", "max_output_tokens": "tokens"},
}
# The list shows at most so many.
MOST = 200
# A descending order by time has the policies that were never changed last.
_FIRST = datetime.fromtimestamp(0, UTC)
_TABLE = Table(
    "web:policy-list",
    (
        Orders("Applies to", {"": "ascending", "-name": "descending"}),
        Orders("Settings"),
        Orders("Changed", {"changed": "descending"}),
    ),
    search=Field("text", "Search agents", placeholder="Agent id"),
)
_SOURCES: Final = {
    "default": "default",
    "workspace": "from the workspace",
    "agent": "from the agent",
    "thread": "from the thread",
    "model": "limited by the agent's model",
}


def _count(label: str, least: int = 1, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label, required=False, min_value=least, max_value=_MOST, help_text=help_text
    )


def _choice(name: str, label: str) -> forms.ChoiceField:
    choices = [("", "inherited"), *_NAMES[name].items()]
    return forms.ChoiceField(label=label, required=False, choices=choices)


def _count_of(mode: str, label: str, note: str = "") -> forms.IntegerField:
    return _count(label, 0, f"Used in the mode “{_NAMES['mode'][mode]}”{note}.")


def _number_or_none(label: str, none: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=16,
        help_text=f"A number, or {NONE}: {none}.",
        widget=forms.TextInput(attrs={**_TEXT, "inputmode": "numeric"}),
    )


class PolicyForm(forms.Form):
    """The policy of one scope. Its fields are those of domain.policies.Policy."""

    autocompact_threshold = _number_or_none(
        "Compact automatically at", "no automatic compaction by size"
    )
    every_hours = _number_or_none(
        "Compact on a schedule, every", "no schedule. Only threads with new messages are compacted"
    )
    mode = _choice("mode", "Boundary mode")
    raw_suffix_messages = _count_of(MODES[0], "Newest messages to keep")
    min_recent_messages = _count_of(MODES[1], "Messages to keep, at least", ", and in long turns")
    min_gain_tokens = _count("Minimum to summarize", 0)
    min_savings_ratio = forms.FloatField(
        label="Minimum savings, from 0 to 1", required=False, min_value=0, max_value=1
    )
    summarizer = _choice("summarizer", "Summarizer")
    summary_model = forms.CharField(
        label="Model id", required=False, max_length=128, widget=forms.TextInput(_TEXT)
    )
    summary_max_tokens = _count("Longest summary")
    prompt = forms.CharField(
        label="Instructions for the model",
        required=False,
        max_length=LONGEST_PROMPT,
        help_text="Replaces the default instructions. The protection against instructions in the conversation is always added.",
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    fallback = _choice("fallback", "Summarizer if the model is unavailable")
    snapshot_keep_last = _number_or_none(
        "Newest to keep per thread", "keep all snapshots. Removed snapshots cannot be restored"
    )
    snapshot_keep_every = _number_or_none("Of older snapshots, keep every n-th", "keep none")
    max_context_tokens = _count("Context window")
    max_output_tokens = _count("Reserved for the response")
    # The version that was edited.
    version = forms.IntegerField(
        required=False, min_value=0, max_value=_MOST, widget=forms.HiddenInput
    )

    def body(self) -> dict[str, Any]:
        """The fields that are set."""
        policy: dict[str, Any] = {}
        for name, value in self.cleaned_data.items():
            if name == "version" or value in (None, ""):
                continue
            policy[name] = None if value == NONE else value
        for name in ("autocompact_threshold", "every_hours", *DESTRUCTIVE):
            if (number := read_whole(policy.get(name))) is not None:
                policy[name] = number
        return policy


def _initial(view: PolicyView) -> dict[str, Any]:
    policy = values.load(view.body)
    initial = {name: NONE if value is None else value for name, value in policy.items()}
    return {**initial, "version": view.version}


def policy_url(scope: Scope, name: str = "") -> str:
    return with_query(reverse("web:policy"), scope=scope, name=name)


@page(replica=True)
def policy_list(request: Request) -> HttpResponse:
    _, views, table = _TABLE.load(request, _find)
    context = {
        **table,
        "lines": [
            (view, policy_url(view.scope, view.name), _describe_fields(view))
            for view in views[:MOST]
        ],
        "more": len(views) > MOST,
        "most": MOST,
        "count": plural(len(views), "policy,policies"),
        "may_change": request.actor.may(Role.ADMIN),
        **snippets.both(
            "PUT",
            "compaction-policies/workspace",
            _BODY,
            call=f'request("PUT", "/compaction-policies/workspace", {snippets.literal(_BODY)})',
        ),
    }
    return render_list(request, "policies/list.html", context, part="policies", rows="policy-table")


@page(role=Role.ADMIN)
def policy_new(request: Request) -> HttpResponse:
    """Asks for the agent. Its form leads to policy_detail."""
    return render(request, "policies/new.html")


def _find(request: Request, filters: dict[str, str], _: str) -> tuple[list[PolicyView], str]:
    """The policies of the workspace and of agents whose names, as listed, contain the text."""
    text = filters["text"].casefold()
    views = [
        view
        for view in policies.list_policies(request.actor)
        if text in (view.name or "the workspace").casefold()
    ]
    if filters["sort"] == "changed":
        views.sort(key=lambda view: view.updated_at or _FIRST, reverse=True)
    elif filters["sort"] == "-name":
        views.reverse()
    return views, ""


def _describe_fields(view: PolicyView) -> list[str]:
    units = {name: unit for group in _GROUPS.values() for name, unit in group.items()}
    found = []
    for name, value in values.load(view.body).items():
        label = str(PolicyForm.base_fields[name].label)
        if name == "prompt":
            found.append(label)
        elif isinstance(value, int):
            found.append(f"{label}: {value:,} {units[name]}".rstrip())
        else:
            found.append(f"{label}: {_plain(name, value)}")
    return found


def _plain(name: str, value: Any) -> str:
    text = NONE if value is None else str(value)
    return _NAMES.get(name, {}).get(text, text)


@page(methods=FORM)
def policy_detail(request: Request) -> HttpResponse:
    """GET shows the form, POST saves it. The scope and its name are in the query string."""
    scope, name = _requested_scope(request)
    view = policies.read_policy(actor=request.actor, scope=scope, name=name)
    if request.method == "GET":
        return _show(request, view, PolicyForm(initial=_initial(view)))
    form = PolicyForm(request.POST)
    if "preview" in request.POST or target_id(request) == "policy-preview":
        return _show(request, view, form, preview=_preview(request.actor, view, form))
    if not form.is_valid():
        return _show(request, view, form, status=422)
    removal = _removal(request.actor, view, form.body())
    if removal and request.POST.get("accepted") != removal.rule:
        return _show(request, view, form, removal=removal)
    try:
        saved = policies.put_policy(
            actor=request.actor,
            scope=scope,
            name=name,
            body=values.read(values.dump(form.body())),
            expected_version=form.cleaned_data["version"],
            reason=reason_of(request),
        )
    except Invalid as problem:
        for error in problem.data["errors"]:
            form.add_error(error["pointer"].strip("/") or None, error["message"])
        return _show(request, view, form, status=422)
    except VersionConflict:
        noun = "thread" if scope == "thread" else "policy"
        message = (
            f"This {noun} was changed since you opened the form. Reload to see the current version."
        )
        form.add_error(None, message)
        return _show(request, view, form, status=409)
    except QuotaExceeded as problem:
        form.add_error(None, sentences_of(problem))
        return _show(request, view, form, status=422)
    toast(request, "Policy saved", undo=_undo_of(view, saved))
    return _redirect_back(request, scope, name)


@dataclass(frozen=True)
class Removal:
    """What a changed policy removes permanently. `rule` says what it keeps; the form sends it back
    to confirm exactly this rule."""

    rule: str
    text: str


def _removal(actor: Actor, view: PolicyView, body: dict[str, Any]) -> Removal | None:
    """None if the policy removes no snapshots, or if its rule does not change."""
    before = values.load(view.body)
    keep_last, keep_every = (body.get(name) for name in DESTRUCTIVE)
    if not isinstance(keep_last, int) or not isinstance(keep_every, int | None):
        return None  # refused when it is saved
    if all(body.get(name) == before.get(name) for name in DESTRUCTIVE):
        return None
    rule = f"the newest {keep_last:,}"
    rule += f", one of every {keep_every:,} older ones" if keep_every else ""
    text = (
        f"Compactions will remove all snapshots except {rule}, the last of each run, and those with a label"
        " or a pin"
    )
    if view.scope == "workspace":
        text += ", in each thread of this workspace."
    elif view.scope == "agent":
        text += f", in each thread of the agent {view.name}."
    else:
        preview = preview_snapshots(actor=actor, thread_id=view.name, rule=(keep_last, keep_every))
        count = plural(preview.snapshots, "snapshot,snapshots")
        text += f": now {preview.dropped:,} of {count}."
    return Removal(rule, f"{text} Removed snapshots cannot be restored.")


@dataclass(frozen=True)
class EffectLine:
    """A thread in the preview: when and how it is compacted now, and under the changed policy."""

    thread: Thread
    when: tuple[str, str]
    plan: tuple[str, str]

    @property
    def differs(self) -> bool:
        return len({*self.when}) + len({*self.plan}) > 2

    @classmethod
    def of(cls, effect: Effect) -> EffectLine:
        thread, now, then = effect.thread, effect.now, effect.then
        return cls(
            thread,
            (_describe_time(thread, now), _describe_time(thread, then)),
            (_describe_plan(now), _describe_plan(then)),
        )


def _preview(actor: Actor, view: PolicyView, form: PolicyForm) -> dict[str, list[Any]]:
    """What the values in the form would do (`lines`), or why they cannot be saved (`errors`)."""
    if not form.is_valid():
        errors = [
            f"{form[name].label}: {' '.join(map(str, each))}" for name, each in form.errors.items()
        ]
        return {"errors": errors}
    body = values.read(values.dump(form.body()))
    try:
        effects = preview_policy(actor=actor, scope=view.scope, name=view.name, body=body)
    except Invalid as problem:
        return {"errors": [each["message"] for each in problem.data["errors"]]}
    return {"lines": list(map(EffectLine.of, effects))}


def _describe_time(thread: Thread, preview: Preview) -> str:
    threshold, hours = preview.policy.autocompact_threshold, preview.policy.every_hours
    times = []
    if threshold is not None:
        due = thread.context_tokens >= threshold
        times.append("with the next message" if due else f"from {tokens(threshold)} tokens")
    if hours is not None:
        times.append(f"every {plural(hours, 'hour,hours')}")
    return " and ".join(times) or "only on request"


def _describe_plan(preview: Preview) -> str:
    if preview.plan is None:
        return f"nothing to compact: {preview.skip}"
    text = (
        f"summarizes up to message {number(preview.plan.boundary_seq)}, at least"
        f" {preview.percent_saved} % less than {tokens(preview.plan.tokens_before)} tokens"
    )
    return f"{text}; {preview.problem}" if preview.problem else text


def _undo_of(old: PolicyView, saved: PolicyView) -> Undo | None:
    """The Undo of a change. It carries the previous policy, which is stored nowhere; None if it is
    too long or unchanged."""
    if len(old.body) + len(saved.body) > MOST_CARRIED or old.body == saved.body:
        return None
    url = with_query(reverse("web:policy-undo"), scope=saved.scope, name=saved.name)
    return Undo(url, {"before": old.body, "version": saved.version})


@page(methods=POST)
def policy_undo(request: Request) -> HttpResponse:
    """Restore the previous policy, unless it was changed since then."""
    scope, name = _requested_scope(request)
    try:
        policies.put_policy(
            actor=request.actor,
            scope=scope,
            name=name,
            body=paging.parse_json_field(
                request.POST.get("before", ""), "an undo requires the previous policy"
            ),
            expected_version=paging.number_in(request.POST, "version"),
            reason="undo",
        )
    except VersionConflict:
        toast(request, REFUSED, kind="failed")
    else:
        toast(request, "Undone")
    return _redirect_back(request, scope, name)


@page(methods=POST, role=Role.EDITOR)
def policy_presence(request: Request) -> HttpResponse:
    """As entry_edit.entry_presence."""
    scope, name = _requested_scope(request)
    others = announce_editing_policy(actor=request.actor, scope=scope, name=name)
    context = {"others": others, "beating": True, **_presence(scope, name)}
    return render(request, "entries/_presence.html", context)


def _presence(scope: Scope, name: str) -> dict[str, str]:
    return {
        "presence_url": with_query(reverse("web:policy-presence"), scope=scope, name=name),
        "second": CONCURRENT_EDIT,
    }


def _requested_scope(request: Request) -> tuple[Scope, str]:
    """The scope and the name of what it applies to, from the query string."""
    scope = request.GET.get("scope", "workspace")
    if scope not in SCOPES:
        raise NotFound(f"unknown scope: {scope}")
    return cast(Scope, scope), request.GET.get("name", "").strip()


def _redirect_back(request: Request, scope: Scope, name: str) -> HttpResponse:
    if scope == "thread":
        return see_other(request, thread_url(name, tab="compactions"))
    return see_other(request, reverse("web:policy-list"), part="policies")


@dataclass(frozen=True)
class SettingLine:
    """A field in the form, the value that applies, and where that comes from. `else_`: what applies
    if the field is emptied; "" if the field is empty."""

    field: BoundField
    unit: str
    value: str
    source: str
    else_: str


def _lines(actor: Actor, view: PolicyView, form: PolicyForm) -> dict[str, list[SettingLine]]:
    inherited = policies.inherited_policy(actor=actor, scope=view.scope, name=view.name)

    def line(name: str, unit: str) -> SettingLine:
        source = view.effective.sources[name]
        own = source == view.scope
        value = _with_unit(name, getattr(view.effective.policy, name), unit)
        otherwise = _with_unit(name, getattr(inherited.policy, name), unit)
        otherwise += f" ({_SOURCES[inherited.sources[name]]})"
        words = "set here" if own else _SOURCES[source]
        return SettingLine(form[name], unit, value, words, otherwise if own else "")

    return {
        title: [line(name, unit) for name, unit in fields.items()]
        for title, fields in _GROUPS.items()
    }


def _with_unit(name: str, value: Any, unit: str) -> str:
    text = number(value) if isinstance(value, int) else _plain(name, value)
    return f"{text} {unit}" if unit and value is not None else text


def _show(
    request: Request,
    view: PolicyView,
    form: PolicyForm,
    status: int = 200,
    removal: Removal | None = None,
    preview: dict[str, list[Any]] | None = None,
) -> HttpResponse:
    may_change = request.actor.may(policies.role_of(view.scope))
    context: dict[str, Any] = {
        "view": view,
        "form": form,
        "removal": removal,
        "preview": preview,
        "may_change": may_change,
        "post_url": policy_url(view.scope, view.name),
        **_presence(view.scope, view.name),
    }
    part = "policy-preview" if target_id(request) == "policy-preview" else "policy"
    if part == "policy" or not wants_part(request):
        context["groups"] = _lines(request.actor, view, form)
    return render(request, "policies/detail.html", context, part=part, status=status)


urlpatterns = [
    path("policies", policy_list, name="policy-list"),
    *table_paths("policies", _TABLE, _find, contract.CompactionPolicy.of),
    path("policies/+new", policy_new, name="policy-new"),
    path("policy", policy_detail, name="policy"),
    path("policy/presence", policy_presence, name="policy-presence"),
    path("policy/undo", policy_undo, name="policy-undo"),
]
