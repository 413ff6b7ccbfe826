"""Removes a secret permanently from every version of an entry.

It is overwritten in place: in the history, the current value, the search index and stored
responses. Backups and PostgreSQL's dead rows before the next vacuum are not reached
(docs/security/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models.functions import Now

from state_admin.contract.redactions import Redaction
from state_admin.domain import config, json_pointers, redaction, tokens, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Fault
from state_admin.models import Entry, EntryRevision, Operation, SearchDocument
from state_admin.models import search as search_models

from . import idempotency, journal, replicas
from .actors import require
from .batching import split_by_size
from .config_secrets import keep_secrets
from .errors import Invalid, NotFound
from .namespaces import define


def redact_entry(
    *, actor: Actor, namespace: str, key: str, reason: str, pointers: Sequence[str] = ()
) -> Redaction:
    """Replace the parts at `pointers` (none: the whole value) by a tombstone in every version, and
    create a new version `redact`, so that clients notice that their copy is outdated.

    Also works for deleted entries and unregistered namespaces. In an untracked namespace, the current
    value is the only version. The result may not satisfy the schema; reads then say so. Cannot be
    undone. Raises NotFound and Invalid (no reason, or a
    pointer that exists in no version, because the secret is then somewhere else).
    """
    require(actor, Role.ADMIN)
    _check(pointers, reason)
    report = partial(Redaction, namespace=namespace, key=key)
    with transaction.atomic():
        search_models.lock_documents(actor.workspace_id)
        entry = (
            Entry.objects.visible_to(actor)
            .select_related("namespace")
            .select_for_update(of=("self",))
            .filter(namespace__name=namespace, key=key)
            .first()
        )
        if entry is None:
            raise NotFound(f"entry not found: {namespace}/{key}")
        if entry.namespace.tracked:
            rewritten, matched = _rewrite_history(actor, entry, pointers)
        else:
            _, matched, changed = _redact(entry.value or "null", pointers)
            rewritten = int(changed)  # _make_version writes the redacted value
        missing = [pointer for pointer in pointers if pointer not in matched]
        if missing:
            raise Invalid(
                "no version has a value at these pointers",
                [Fault(pointer, "no version has a value at this pointer") for pointer in missing],
                hint="Nothing was redacted. Compare the pointers with the versions of the entry.",
            )
        if not rewritten:
            return report(version=entry.version, rewritten=0, withdrawn_answers=0)
        # The change that _make_version records makes the indexer add it again, without the secret.
        SearchDocument.objects.filter(entry_id=entry.pk).delete()
        _make_version(actor, entry, pointers, reason)
        if kind := config.kind_of(namespace):
            keep_secrets(entry, kind, [])
        answers = idempotency.expire_responses(actor.workspace_id)
        detail = {"pointers": list(pointers), "versions": rewritten}
        trace = journal.Trace(
            "entry.redact", namespace=namespace, key=key, version=entry.version, detail=detail
        )
        journal.record(actor, [trace], reason=reason)
        replicas.expire_older_states()
    return report(version=entry.version, rewritten=rewritten, withdrawn_answers=answers)


def _check(pointers: Sequence[str], reason: str) -> None:
    if not reason.strip():
        raise Invalid(
            "a redaction requires a reason",
            [Fault("/reason", "is required")],
            hint="The reason is stored in the history and the audit log.",
        )
    for index, pointer in enumerate(pointers):
        try:
            json_pointers.parts_of(pointer, "pointer")
        except json_pointers.Mismatch as bad:
            raise Invalid(
                "pointers must be JSON Pointers", [Fault(f"/pointers/{index}", str(bad))]
            ) from None


def _rewrite_history(actor: Actor, entry: Entry, pointers: Sequence[str]) -> tuple[int, set[str]]:
    """How many versions were rewritten, and the pointers that existed in one of them."""
    history = EntryRevision.objects.filter(entry=entry, value__isnull=False)
    rewritten, matched = 0, set[str]()
    for part in split_by_size(
        list(history.order_by("version").values_list("version", "size_bytes"))
    ):
        rows = history.filter(version__in=part).values_list("version", "value")
        for version, text in rows:
            text, led, changed = _redact(text or "null", pointers)
            matched |= led
            if changed:
                rewritten += 1
                history.filter(version=version).update(
                    value=text,
                    size_bytes=len(text.encode()),
                    schema_version=0,  # no schema has validated the redacted value
                    redacted_at=Now(),
                    redacted_by=actor.name,
                )
    return rewritten, matched


def _redact(text: str, pointers: Sequence[str]) -> tuple[str, set[str], bool]:
    before = values.load(text)
    after, matched = redaction.redact(before, pointers)
    return (values.dump(after), matched, True) if after is not before else (text, matched, False)


def _make_version(actor: Actor, entry: Entry, pointers: Sequence[str], reason: str) -> None:
    text = None
    if not entry.deleted:
        text, _, _ = _redact(entry.value or "null", pointers)
    definition = define(entry.namespace)
    fits = text is not None and definition.validator.accepts(values.load(text))
    columns = {
        "value": text,
        "version": entry.version + 1,
        "schema_version": definition.schema_version if fits else 0,
        "size_bytes": len(text.encode()) if text is not None else 0,
        "estimated_tokens": tokens.estimate_text(text) if text is not None else 0,
        "actor_kind": actor.kind,
        "actor_name": actor.name,
        "updated_at": Now(),
    }
    for name, column in columns.items():
        setattr(entry, name, column)
    entry.save(update_fields=columns)
    if not entry.namespace.tracked:
        return
    entry.refresh_from_db(fields=["updated_at"])
    EntryRevision.objects.create(
        entry=entry,
        version=entry.version,
        operation=Operation.REDACT,
        value=text,
        schema_version=entry.schema_version,
        size_bytes=entry.size_bytes,
        expires_at=entry.expires_at,
        run=actor.run_id,
        at=entry.updated_at,
        redacted_at=Now(),
        redacted_by=actor.name,
        **journal.stamp(actor, reason),
    )
