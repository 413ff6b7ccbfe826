"""Deleting an entry and restoring an old version, each after a confirmation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpResponse

from state_admin.domain import config, diffs, values
from state_admin.domain.access import Role
from state_admin.services.config import restore_record
from state_admin.services.entries import Precondition, delete_entry, restore_entry
from state_admin.services.entry_views import read_entry, read_past
from state_admin.services.errors import NotFound, VersionConflict
from state_admin.services.namespaces import find_definition
from state_admin.templatetags.ui import plural

from .actors import FORM
from .addresses import entry_action_url, entry_url
from .confirm import PREVIEW, Confirm, ask, reason_of, show_details
from .entry_address import entry_page, entry_paths
from .entry_detail import COMPARED_LATER
from .entry_undo import undo_of, undo_of_delete
from .htmx import Request, see_other, toast
from .paging import number_in
from .state_changes import sentence_of

_CHANGED = "The entry was changed in the meantime. Nothing was done; this is the current version"


@entry_page(methods=FORM, role=Role.EDITOR)
def entry_delete(request: Request, namespace: str, key: str) -> HttpResponse:
    address: Any = {"actor": request.actor, "namespace": namespace, "key": key}
    back = entry_url(namespace, key)
    if request.method == "GET":
        now = read_entry(**address)
        if not now.exists:
            raise NotFound(f"entry not found: {namespace}/{key}")
        tracked = find_definition(request.actor, namespace).tracked
        question = Confirm(
            title=f"Delete {key}?",
            verb="Delete",
            url=entry_action_url("delete", namespace, key),
            back=back,
            lines=[
                f"Version {now.version} of {namespace}/{key}, {now.size_bytes:,} bytes, "
                f"last written by {now.actor}.",
                "Reads then return the default. The history is kept and can be restored."
                if tracked
                else f"The namespace {namespace} is untracked: the entry cannot be restored.",
            ],
            fields=[("expected_version", now.version)],
        )
        return ask(request, question, part="entry")
    expected = Precondition(number_in(request.POST, "expected_version"))
    try:
        written = delete_entry(**address, precondition=expected, reason=reason_of(request))
    except VersionConflict:
        toast(request, _CHANGED, kind="failed")
    else:
        undo = undo_of_delete(request.actor, namespace, key, written=written)
        toast(request, f"Deleted {key}", undo=undo)
    return see_other(request, back, part="entry")


@entry_page(methods=FORM, role=Role.EDITOR)
def entry_restore(request: Request, namespace: str, key: str) -> HttpResponse:
    address: Any = {"actor": request.actor, "namespace": namespace, "key": key}
    parameters = request.GET if request.method == "GET" else request.POST
    version = number_in(parameters, "version")
    if request.method == "GET":
        now = read_entry(**address)
        old = read_past(**address, at_version=version)
        if not old.exists:
            raise NotFound(f"version {version} of {namespace}/{key} has no value")
        question = Confirm(
            title=f"Restore version {version}?",
            verb=f"Restore version {version}",
            kind="primary",
            url=entry_action_url("restore", namespace, key),
            back=entry_url(namespace, key, version=version),
            lines=[
                f"The value of version {version} is written as a new version of {namespace}/{key}."
            ],
            fields=[("version", version), ("expected_version", now.version)],
        )
        whole = "whole" in request.GET
        if not whole and len(now.value) + len(old.value) > COMPARED_LATER:
            url = entry_action_url("restore", namespace, key, version=version, whole="yes")
            return ask(request, replace(question, details_url=url), part="entry")
        rows = diffs.rows(values.load(now.value), values.load(old.value))
        question = replace(
            question,
            names_title=f"{plural(len(rows), 'difference,differences')}:"
            if rows
            else f"Version {version} and the current version have the same value.",
            names=[sentence_of(row) for row in rows[:PREVIEW]],
            total=len(rows),
        )
        return show_details(request, question) if whole else ask(request, question, part="entry")
    expected_version = number_in(request.POST, "expected_version")
    precondition = Precondition(expected_version)
    written: Any = {"version": version, "precondition": precondition, "reason": reason_of(request)}
    try:
        if kind := config.kind_of(namespace):
            restored = restore_record(actor=request.actor, kind=kind, identity=key, **written)
        else:
            restored = restore_entry(**address, **written)
    except VersionConflict:
        toast(request, _CHANGED, kind="failed")
    else:
        undo = undo_of(
            request.actor, namespace, key, written=restored.entry.version, before=expected_version
        )
        toast(request, f"Restored version {version} as {restored.entry.version}", undo=undo)
    return see_other(request, entry_url(namespace, key), part="entry")


urlpatterns = [
    *entry_paths("entry/delete", entry_delete, "entry-delete"),
    *entry_paths("entry/restore", entry_restore, "entry-restore"),
]
