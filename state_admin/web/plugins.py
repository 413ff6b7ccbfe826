"""Uninstalling a plugin: what is removed and what is kept, before it happens. Plugins are listed
with the state keys (web/state_keys.py)."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract.plugins import Removed
from state_admin.domain.access import Role
from state_admin.services.plugins import keys_of, namespaces_of, uninstall_plugin
from state_admin.templatetags.ui import plural

from .actors import FORM, page
from .confirm import ENTRY_CHOICES, Confirm, ask, reason_of
from .htmx import Request, see_other, toast


@page(methods=FORM, role=Role.ADMIN)
def plugin_uninstall(request: Request, name: str) -> HttpResponse:
    if request.method == "POST":
        removal = uninstall_plugin(
            actor=request.actor,
            name=name,
            entries=request.POST.get("entries", ""),
            reason=reason_of(request),
        )
        toast(request, f"Uninstalled {name}; cleared {plural(removal.values, 'value,values')}")
        return see_other(request, reverse("web:state-key-list"))
    would = uninstall_plugin(actor=request.actor, name=name, dry_run=True)
    parts = [
        *(
            f"{key.name}{' (values stay)' if key.retain_on_uninstall else ''}"
            for key in keys_of(request.actor, name)
        ),
        *(f"{space.name} (namespace)" for space in namespaces_of(request.actor, name)),
    ]
    question = Confirm(
        title=f"Uninstall {name}?",
        verb="Uninstall",
        back=reverse("web:state-key-list"),
        lines=_lines(would),
        names=parts,
        choices_name="entries",
        choices_label="Entries in its namespaces",
        choices=ENTRY_CHOICES if would.entries else (),
    )
    return ask(request, question)


def _lines(would: Removed) -> list[str]:
    lines = [
        "It unregisters "
        f"{plural(would.state_keys, 'state key,state keys')} and "
        f"{plural(would.namespaces, 'namespace,namespaces')}: commits and writes to them are then "
        "refused.",
    ]
    if would.values:
        lines.append(
            f"{plural(would.values, 'value,values')} in {plural(would.threads, 'thread,threads')} "
            "will be cleared, as one revision of each thread. Older revisions keep them."
        )
    if would.retained:
        lines.append(f"{plural(would.retained, 'value stays,values stay')} readable in state.")
    if would.entries:
        lines.append(f"Its namespaces have {plural(would.entries, 'entry,entries')}.")
    return lines


urlpatterns = [path("plugins/<str:name>/uninstall", plugin_uninstall, name="plugin-uninstall")]
