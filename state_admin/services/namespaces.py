"""Registers and unregisters namespaces, and caches their compiled definitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.functions import Now

from state_admin.domain import config, evolution, schemas, scopes, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import DEFAULT_MAX_VALUE_BYTES, Fault, Raw
from state_admin.models import Entry, Namespace, NamespaceVersion, database
from state_admin.models.visibility import glob_regex

from . import journal
from .actors import require, require_open
from .clearing import addresses_of, clear_entries
from .errors import (
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotRegistered,
    SchemaConflict,
    VersionConflict,
    check_storable,
)
from .finding import checked, find_row, refuse_installed

_SHOWN_VIOLATIONS = 100
# How long an unregistration waits for open transactions, in seconds.
LATE_SECONDS = 5.0


@dataclass(frozen=True)
class Definition:
    """A namespace with its compiled validator and resolved limits."""

    id: int
    name: str
    schema_version: int
    schema: str
    default: str
    max_value_bytes: int
    ttl_seconds: int | None
    tracked: bool
    validator: schemas.Validator


@dataclass(frozen=True)
class Violations:
    """The number of live entries that violate a schema, and the first hundred of them. `complete`:
    whether all entries were examined."""

    count: int
    first: list[dict[str, Any]]
    complete: bool = True


@dataclass(frozen=True)
class NamespaceRegistration:
    namespace: Namespace
    created: bool
    changed: bool
    violations: Violations | None = None


# The columns of a Definition; the description, the plugin and the retention of histories are not.
_VERSIONED = ("schema", "default", "max_value_bytes", "ttl_seconds")
# The columns whose values the audit names: the history of a namespace does not have all of them.
LIMITS = ("max_value_bytes", "ttl_seconds", "history_keep_last", "history_keep_seconds")

# Definitions by (workspace, name). A stale one is harmless: every write has the schema version that
# it was validated against, and the statement refuses an old one (models/entries_sql.py). A value
# that a cached definition refuses is validated again with the current one (definition_for in
# entries.py).
_definitions: dict[tuple[int, str], Definition] = {}
_DEFINITIONS_KEPT = 10_000


def find_untracked(actor: Actor, names: Collection[str]) -> list[str]:
    """The untracked ones of these namespaces. Entries that are deleted there cannot be restored."""
    rows = Namespace.objects.visible_to(actor).filter(name__in=names, tracked=False)
    return list(rows.order_by("name").values_list("name", flat=True))


def require_history(namespace: Namespace | Definition) -> None:
    """Raises Gone if the namespace is untracked."""
    if not namespace.tracked:
        raise Gone(
            f"the namespace {namespace.name} is untracked and has no history",
            hint="Entries of an untracked namespace have their current value only.",
        )


def find_definition(actor: Actor, name: str, *, fresh: bool = False) -> Definition:
    """The definition of a registered namespace that `actor` may see. Raises NotRegistered.

    `fresh`: read the database even if a definition is cached.
    """
    cached = None if fresh else cached_definition(actor, name)
    if cached is not None:
        return cached
    return define(find_registered(actor, name))


def find_registered(actor: Actor, name: str) -> Namespace:
    """A registered namespace that `actor` may see. Its definition is cached. Raises NotRegistered."""
    if not actor.sees_namespace(name):
        raise NotRegistered(name)
    address = (actor.workspace_id, name)
    row = Namespace.find_registered(*address)
    if row is None:
        _definitions.pop(address, None)
        raise NotRegistered(name)
    if len(_definitions) >= _DEFINITIONS_KEPT:
        _definitions.clear()
    _definitions[address] = define(row)
    return row


def find_namespace(actor: Actor, name: str) -> Namespace:
    """A namespace, also one that is no longer registered. Raises NotFound."""
    return find_row(Namespace.objects.visible_to(actor), "namespace", name=name)


def definitions_for(actor: Actor) -> Callable[[str], Definition]:
    """`find_definition` for one verb that handles many entries: reads each namespace once, fresh."""
    return cache(partial(find_definition, actor, fresh=True))


def cached_definition(actor: Actor, name: str) -> Definition | None:
    """What find_definition returns, without a query. None: it is not cached, or `actor` may not see
    the namespace."""
    return _definitions.get((actor.workspace_id, name)) if actor.sees_namespace(name) else None


def reserve_namespaces(actor: Actor) -> None:
    """Register the namespaces of the config registry in a new workspace. The caller owns the
    transaction and writes the audit row."""
    content = {kind: values.dump(config.SCHEMAS[kind]) for kind in config.Kind}
    rows = Namespace.objects.bulk_create(
        Namespace(workspace_id=actor.workspace_id, name=kind.namespace, schema=schema)
        for kind, schema in content.items()
    )
    NamespaceVersion.objects.bulk_create(
        NamespaceVersion(
            namespace=row,
            schema_version=row.schema_version,
            schema=row.schema,
            default=row.default,
            **journal.stamp(actor),
        )
        for row in rows
    )


def define(row: Namespace) -> Definition:
    """The definition in a row, which may be unregistered."""
    return Definition(
        id=row.pk,
        name=row.name,
        schema_version=row.schema_version,
        schema=row.schema or "{}",
        default=row.default or "null",
        max_value_bytes=row.max_value_bytes or DEFAULT_MAX_VALUE_BYTES,
        ttl_seconds=row.ttl_seconds,
        tracked=row.tracked,
        validator=schemas.compile_schema(row.schema or "{}"),
    )


def register_namespace(
    *,
    actor: Actor,
    name: str,
    schema: Raw,
    default: Raw,
    description: str = "",
    plugin: str = "",
    max_value_bytes: int | None = None,
    ttl_seconds: int | None = None,
    history_keep_last: int | None = None,
    history_keep_seconds: int | None = None,
    tracked: bool | None = None,
    expected_version: int | None = None,
    expected_time: datetime | None = None,
    dry_run: bool = False,
    examined: int | None = None,
    reason: str = "",
) -> NamespaceRegistration:
    """Register `name`, or change it. The same content again changes nothing. Only a change of the
    fields in _VERSIONED increases the schema version. `tracked` None: unchanged or, if it was never
    registered, True.

    `expected_version`: the schema version that it must have (0: not registered). `expected_time`:
    the `updated_at` that it must have, which every change sets. With `dry_run` nothing is stored or
    locked, and the result contains the entries that would violate the new schema, among the first
    `examined` ones (None: all). Raises Invalid
    (schema or default), Conflict (`key already registered: …`, or another time), VersionConflict.
    """
    require(actor, Role.ADMIN)
    _check_name(actor, name)
    if max_value_bytes == DEFAULT_MAX_VALUE_BYTES:
        max_value_bytes = None  # a client that writes back the default does not change it
    content = {
        "schema": schema.text,
        "default": default.text,
        "description": description,
        "plugin": plugin,
        "max_value_bytes": max_value_bytes,
        "ttl_seconds": ttl_seconds,
        "history_keep_last": history_keep_last,
        "history_keep_seconds": history_keep_seconds,
    }
    sized = {column: content[column] for column in ("schema", "max_value_bytes")}
    rows = Namespace.objects.filter(workspace_id=actor.workspace_id, name=name)
    check_patterns(schema, max_value_bytes or DEFAULT_MAX_VALUE_BYTES, rows, sized)
    validator = check_definition(schema, default)

    if dry_run:
        row = rows.first()
        _refuse_tracking(row, tracked)
        _refuse_owned(row, plugin, expected_version)
        if row is None:
            return NamespaceRegistration(
                Namespace(name=name, **content), True, True, Violations(0, [])
            )
        changed = bool(changed_columns(row, content))
        return NamespaceRegistration(row, False, changed, find_violations(row, validator, examined))
    with transaction.atomic():
        namespace, created = Namespace.objects.select_for_update(no_key=True).get_or_create(
            workspace_id=actor.workspace_id,
            name=name,
            defaults={**content, "tracked": tracked is not False},
        )
        _refuse_tracking(namespace, tracked)
        _refuse_owned(None if created else namespace, plugin, expected_version)
        if expected_time not in (None, namespace.updated_at):
            raise Conflict("this namespace was changed in the meantime")
        fields = changed_columns(namespace, content)
        changed, renewed = bool(fields), not set(_VERSIONED).isdisjoint(fields)
        revived = namespace.unregistered_at is not None
        detail = _describe_change(namespace, content, fields) if changed else {}
        namespace.schema_version += renewed
        if changed or revived:
            Namespace.objects.filter(pk=namespace.pk).update(
                **content,
                schema_version=namespace.schema_version,
                unregistered_at=None,
                updated_at=Now(),
            )
        if created or renewed:
            NamespaceVersion.objects.create(
                namespace=namespace,
                schema_version=namespace.schema_version,
                schema=schema.text,
                default=default.text,
                **journal.stamp(actor, reason),
            )
        if created or changed or revived:
            action = "namespace.register" if created or revived else "namespace.change"
            trace = journal.Trace(
                action, namespace=name, version=namespace.schema_version, detail=detail
            )
            journal.record(actor, [trace], reason=reason)
            namespace.refresh_from_db()
    _definitions.pop((actor.workspace_id, name), None)
    return NamespaceRegistration(namespace, created or revived, changed)


def ensure_namespace(
    *,
    actor: Actor,
    name: str,
    schema: Raw | None,
    default: Raw | None,
    plugin: str = "",
    expected_version: int | None = None,
    dry_run: bool = False,
    **settings: Any,
) -> NamespaceRegistration:
    """Register `name` if it is not registered. A registered namespace is returned unchanged.

    Raises SchemaConflict if the registered schema or default is not compatible with the given one
    (domain/evolution.py). None is compatible with everything. `settings`, the other arguments of
    register_namespace, are used only to create the namespace.
    """
    require(actor, Role.ADMIN)
    _check_name(actor, name)
    created = schema or Raw("{}", {}), default or Raw("null", None)
    if default is None:  # whether null satisfies the schema is checked on creation
        _compile(created[0])
    else:
        check_definition(*created)
    while True:
        namespace = Namespace.objects.visible_to(actor).registered().filter(name=name).first()
        if namespace is not None:
            _refuse_owned(namespace, plugin, expected_version)
            if faults := _differences(namespace, schema, default):
                raise SchemaConflict(name, namespace.schema_version, faults)
            return NamespaceRegistration(
                namespace, False, False, Violations(0, []) if dry_run else None
            )
        try:
            return register_namespace(
                actor=actor,
                name=name,
                schema=created[0],
                default=created[1],
                plugin=plugin,
                expected_version=expected_version or 0,
                dry_run=dry_run,
                **settings,
            )
        except VersionConflict:
            if expected_version is not None:
                raise
            # It was registered meanwhile: compare with that definition.


def _differences(namespace: Namespace, schema: Raw | None, default: Raw | None) -> list[Fault]:
    """Why the registered definition is not compatible with the given one; [] if it is."""
    registered = values.load(namespace.schema or "{}")
    faults: list[Fault] = []
    if schema is not None:
        faults = evolution.schema_differences(registered, schema.value)
    if faults or default is None:
        return [fault.inside("/schema") for fault in faults]
    faults = evolution.default_differences(
        values.load(namespace.default or "null"),
        default.value,
        registered,
        {} if schema is None else schema.value,
    )
    # Without a schema of its own, the default has to satisfy the registered one.
    faults = faults or define(namespace).validator.faults(default.value)
    return [fault.inside("/default") for fault in faults]


def check_definition(
    schema: Raw, default: Raw, *, null_is_absent: bool = False
) -> schemas.Validator:
    """The compiled schema. Raises Invalid for what cannot be registered. `null_is_absent`: the default
    null means that there is none, and need not satisfy the schema."""
    validator = _compile(schema)
    check_storable(default, "the default", "/default")
    if null_is_absent and default.value is None:
        return validator
    if faults := validator.faults(default.value):
        hint = (
            "Without a default, a missing entry reads as null. Send one that satisfies the schema."
        )
        raise Invalid(
            "the default does not satisfy the schema",
            faults,
            hint=hint if default.value is None else "",
            within="/default",
        )
    return validator


def _refuse_owned(namespace: Namespace | None, plugin: str, expected_version: int | None) -> None:
    """Raise Conflict for a namespace of another plugin, and VersionConflict if it does not have the
    expected version."""
    registered = namespace if namespace is not None and namespace.unregistered_at is None else None
    if registered is not None and registered.plugin and registered.plugin != plugin:
        raise Conflict(
            f"key already registered: {registered.name}",
            hint=f"It belongs to the plugin {registered.plugin}. To change it, send this name as plugin.",
            plugin=registered.plugin,
        )
    actual = registered.schema_version if registered is not None else 0
    if expected_version is not None and expected_version != actual:
        raise VersionConflict(expected_version, actual, of="namespace")


def _refuse_tracking(namespace: Namespace | None, tracked: bool | None) -> None:
    """Refuse to change whether the entries are tracked: their history would have gaps."""
    if namespace is not None and tracked not in (None, namespace.tracked):
        raise Conflict(
            f"tracked cannot be changed after the first registration: {namespace.name}",
            hint="Register a namespace with another name.",
        )


def changed_columns(row: Model, content: Mapping[str, Any]) -> list[str]:
    """The columns of a stored definition that differ from `content`. White space in JSON is ignored."""
    return [
        column
        for column, value in content.items()
        if getattr(row, column) != value
        and not (column in ("schema", "default") and values.same_text(getattr(row, column), value))
    ]


def _describe_change(
    row: Namespace, content: Mapping[str, Any], fields: Sequence[str]
) -> dict[str, Any]:
    """The detail of an audit row: the fields that change, and the limits before and after."""
    limits = [column for column in fields if column in LIMITS]
    return {
        "fields": fields,
        "before": {column: getattr(row, column) for column in limits},
        "after": {column: content[column] for column in limits},
    }


def unregister_namespace(*, actor: Actor, name: str, entries: str = "", reason: str = "") -> int:
    """Unregister `name`. Returns the number of its live entries.

    If there are any, the caller must choose: `entries="retain"` leaves them as orphans, `"delete"`
    deletes them (their history is kept; raises Invalid for too many). Otherwise, raises Conflict,
    as for a namespace of an installed plugin.

    Writes do not lock their namespace, so a write that began earlier may commit after the
    unregistration. Therefore a second pass waits for all open transactions, up to LATE_SECONDS, and
    treats late entries like the others: with `"delete"` they are deleted; without a choice the
    namespace is registered again and Conflict is raised. Only entries of a transaction that stays
    open for longer remain as orphans. In a transaction of the caller, the second pass runs after
    its commit.
    """
    require(actor, Role.ADMIN)
    namespace, count = withdraw_namespace(actor, name, entries, reason)
    late: list[int] = []
    if entries != "retain":
        transaction.on_commit(
            lambda: late.append(settle_namespaces(actor, [namespace], entries, reason))
        )
    return count + sum(late)


def withdraw_namespace(actor: Actor, name: str, entries: str, reason: str) -> tuple[Namespace, int]:
    """The first pass of unregister_namespace, for callers that check the role and start the second
    pass (settle_namespaces)."""
    require_open(name)
    with transaction.atomic():
        namespace = (
            Namespace.objects.visible_to(actor)
            .registered()
            .select_for_update(no_key=True)
            .filter(name=name)
            .first()
        )
        if namespace is None:
            raise NotRegistered(name)
        refuse_installed(actor, f"namespace {name}", namespace.plugin)
        live = Entry.objects.filter(namespace=namespace).live()
        count = live.count()
        if count and entries not in ("retain", "delete"):
            raise _still_holds(name, count)
        if entries == "delete":
            clear_entries(actor, addresses_of(live), reason)
        Namespace.objects.filter(pk=namespace.pk).update(unregistered_at=Now(), updated_at=Now())
        namespace.refresh_from_db(fields=["unregistered_at"])
        trace = journal.Trace(
            "namespace.unregister", namespace=name, version=namespace.schema_version
        )
        journal.record(actor, [trace], reason=reason)
        journal.align_feed_clock(actor)
    _definitions.pop((actor.workspace_id, name), None)
    return namespace, count


def settle_namespaces(
    actor: Actor, withdrawn: Sequence[Namespace], entries: str, reason: str
) -> int:
    """The second pass of unregister_namespace, after the commit of the first. Returns the number of
    late entries."""
    database.wait_for_others(LATE_SECONDS)
    return sum(_settle(actor, namespace, entries, reason) for namespace in withdrawn)


def _settle(actor: Actor, namespace: Namespace, entries: str, reason: str) -> int:
    with transaction.atomic():
        # If the name was registered meanwhile, the late entries are visible and stay.
        mine = Namespace.objects.filter(pk=namespace.pk, unregistered_at=namespace.unregistered_at)
        if not mine.select_for_update(no_key=True).exists():
            return 0
        late = Entry.objects.filter(namespace=namespace).live()
        if entries == "delete":
            rows = late.values_list("namespace_id", "namespace__name", "key")
            cleared = clear_entries(actor, rows, reason)
            journal.align_feed_clock(actor)
            return cleared
        count = late.count()
        if not count:
            return 0
        mine.update(unregistered_at=None, updated_at=Now())
        trace = journal.Trace(
            "namespace.register", namespace=namespace.name, version=namespace.schema_version
        )
        journal.record(actor, [trace], reason="entries were written while it was unregistered")
    raise _still_holds(namespace.name, count)


def _still_holds(name: str, count: int) -> Conflict:
    return Conflict(
        f"namespace {name} still holds {count} entries; choose entries=retain or entries=delete",
        hint="retain keeps them; they cannot be read or written until the name is registered again.",
        count=count,
    )


def find_matching(actor: Actor, globs: Sequence[str], limit: int) -> list[str]:
    """The names of up to `limit` registered namespaces that one of the globs matches."""
    names = Namespace.objects.visible_to(actor).registered().order_by("name")
    found = names.filter(name__regex=glob_regex(globs)) if globs else names
    return list(found.values_list("name", flat=True)[:limit])


def find_unmatched(actor: Actor, globs: Sequence[str]) -> list[str]:
    """The globs that match no registered namespace yet."""
    names = Namespace.objects.visible_to(actor).registered()
    return [glob for glob in globs if not names.filter(name__regex=glob_regex([glob])).exists()]


def find_violations(
    namespace: Namespace, validator: schemas.Validator, examined: int | None = None
) -> Violations:
    """The live entries of `namespace` that `validator` refuses, among the first `examined` ones by key
    (None: all). Streams them, without a lock."""
    count = 0
    first: list[dict[str, Any]] = []
    live = Entry.objects.filter(namespace=namespace).live().order_by("key")
    rows = live.values_list("key", "version", "value")
    rows = rows[: examined and examined + 1]
    for number, (key, version, text) in enumerate(rows.iterator(2000)):
        if number == examined:
            return Violations(count, first, complete=False)
        value = values.load(text or "null")
        if len(first) == _SHOWN_VIOLATIONS:
            count += not validator.accepts(value)
        elif faults := validator.faults(value, 3):
            count += 1
            first.append({"key": key, "version": version, "errors": [vars(f) for f in faults]})
    return Violations(count, first)


def _check_name(actor: Actor, name: str) -> None:
    checked("namespace name", scopes.check_name, name)
    if name.startswith(config.RESERVED):
        raise Forbidden(
            f"namespace {name} is reserved",
            hint=f"Names that begin with {config.RESERVED} belong to the config registry.",
        )
    if not actor.sees_namespace(name):
        raise Forbidden(
            "this token is limited to other namespaces",
            hint="Use a token whose namespace globs cover this name.",
        )


def check_patterns(
    schema: Raw, max_value_bytes: int, rows: QuerySet[Any], content: Mapping[str, Any]
) -> None:
    """Raise Invalid for patterns that are too large for values of this size, unless the row in `rows`
    already has this `content`."""
    try:
        schemas.check_patterns(schema.text, max_value_bytes)
    except schemas.InvalidSchema as invalid:
        row = rows.first()
        if row is None or changed_columns(row, content):
            raise _invalid_schema(invalid) from invalid


def _compile(schema: Raw) -> schemas.Validator:
    try:
        return schemas.compile_schema(schema.text)
    except schemas.InvalidSchema as invalid:
        raise _invalid_schema(invalid) from invalid


def _invalid_schema(invalid: schemas.InvalidSchema) -> Invalid:
    faults = [fault.inside("/schema") for fault in invalid.faults]
    return Invalid("the schema is not valid", faults)
