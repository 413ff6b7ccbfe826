"""Registers state keys and finds their definitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models.functions import Now

from state_admin.domain import reducers, schemas, scopes, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.json_pointers import Budget
from state_admin.domain.merging import Update
from state_admin.domain.values import MAX_VALUE_BYTES, Raw
from state_admin.models import Merge, StateKey, StateScope, Thread, database, hot, snapshots_sql
from state_admin.models.snapshots_sql import SlotRow

from . import journal
from .actors import require, require_unrestricted
from .errors import Conflict, Invalid, TooLarge, check_storable
from .finding import checked
from .namespaces import changed_columns, check_definition, check_patterns

AFFECTS_ALL = "State keys and plugins affect the whole workspace."


@dataclass(frozen=True)
class Slot:
    """A state key, with its compiled schema and its current value on one thread."""

    name: str
    reducer: str
    commutative: bool
    scope: str
    persistent: bool
    default: str
    validator: schemas.Validator
    # The JSON text of the current value on the thread; None: absent.
    held: str | None = None


def register_state_key(
    *,
    actor: Actor,
    name: str,
    schema: Raw,
    default: Raw,
    merge: str = Merge.EXCLUSIVE,
    scope: str = StateScope.RUN,
    reducer: str = reducers.Reducer.REPLACE.value,
    persistent: bool = True,
    retain_on_uninstall: bool = False,
    plugin: str = "",
    description: str = "",
    reason: str = "",
) -> tuple[StateKey, bool]:
    """Register `name`, or change it. Returns the key, and whether it is new. Idempotent.

    Raises Invalid for an invalid name, schema or default, for a default to which the reducer cannot
    be applied, and for `merge` commutative with a reducer that is not. Raises Conflict `key already
    registered: …` if it belongs to another plugin or to the runtime, and Forbidden for a restricted
    token.
    """
    require(actor, Role.ADMIN)
    require_unrestricted(actor, AFFECTS_ALL)
    checked("state key name", scopes.check_name, name)
    if name in reducers.RUNTIME_KEYS:
        raise Conflict(
            f"key already registered: {name}",
            hint="The runtime defines it in every workspace. Use another name.",
        )
    if merge == Merge.COMMUTATIVE and not reducers.may_commute(name, reducer):
        able = ", ".join(sorted(r.value for r in reducers.COMMUTATIVE))
        raise Invalid(
            f"the reducer {reducer} cannot be commutative",
            [values.Fault("/merge", f"only {able} give the same result in any order")],
        )
    named = StateKey.objects.filter(workspace_id=actor.workspace_id, name=name)
    check_patterns(schema, MAX_VALUE_BYTES, named, {"schema": schema.text})
    check_definition(schema, default, null_is_absent=True)
    content = {
        "schema": schema.text,
        "default": default.text,
        "merge": merge,
        "scope": scope,
        "reducer": reducer,
        "persistent": persistent,
        "retain_on_uninstall": retain_on_uninstall,
        "plugin": plugin,
        "description": description,
    }
    with transaction.atomic():
        row, created = StateKey.objects.select_for_update().get_or_create(
            workspace_id=actor.workspace_id, name=name, defaults=content
        )
        if row.plugin and row.plugin != plugin:
            raise Conflict(
                f"key already registered: {name}",
                hint=f"It belongs to the plugin {row.plugin}. To change it, send this name as plugin.",
                plugin=row.plugin,
            )
        changed = changed_columns(row, content)
        # Keys that earlier versions accepted can be registered again, and changed otherwise.
        if created or changed_columns(row, {"reducer": reducer, "default": default.text}):
            _check_default(reducer, default)
        if changed:
            StateKey.objects.filter(pk=row.pk).update(**content, updated_at=Now())
        if created or changed:
            action = "state_key.register" if created else "state_key.change"
            journal.record(actor, [journal.Trace(action, key=name)], reason=reason)
            row.refresh_from_db()
    return row, created


def _check_default(reducer: str, default: Raw) -> None:
    try:
        reducers.check_default(reducer, default.value)
    except reducers.UpdateRefused as refused:
        faults = [values.Fault("/default", str(refused))]
        raise Invalid(f"the reducer {reducer} cannot start from the default", faults) from refused


def hold_registry(actor: Actor) -> None:
    """Take a shared lock that prevents unregistering state keys until this transaction ends.

    Transactions that write values of registered keys must call this before they lock a thread,
    because close_registry is held while threads are locked.
    """
    database.lock("state keys", actor.workspace_id, shared=True)


def holding_registries(workspaces: Iterable[int]) -> hot.Call:
    """Return the statement that tries to take the lock of `hold_registry` for several workspaces,
    without waiting. Its rows are the workspace id, and whether the lock was taken."""
    return (
        """SELECT id, pg_try_advisory_xact_lock_shared(hashtext('state keys'), id::int)
        FROM unnest(%(workspaces)b::bigint[]) AS id""",
        {"workspaces": list(workspaces)},
    )


def close_registry(actor: Actor) -> None:
    """Take the exclusive lock that conflicts with `hold_registry`, until this transaction ends."""
    database.lock("state keys", actor.workspace_id)


def find_slots(actor: Actor, thread: Thread, names: Iterable[str]) -> dict[str, Slot]:
    """Return the registered keys and the runtime keys among `names`, with their current values on
    `thread`."""
    return slots_of(
        snapshots_sql.read_slots(
            workspace_id=actor.workspace_id, thread_id=thread.pk, names=sorted(set(names))
        )
    )


def slots_of(rows: Iterable[SlotRow]) -> dict[str, Slot]:
    """Return the slots of `rows` by name, without names that are neither registered nor runtime
    keys."""
    found: dict[str, Slot] = {}
    for row in rows:
        if row.reducer is not None:
            found[row.name] = Slot(
                name=row.name,
                reducer=row.reducer,
                commutative=row.commutative,
                scope=row.scope,
                persistent=row.persistent,
                default=row.default,
                validator=schemas.compile_schema(row.schema),
                held=row.held,
            )
        elif row.name in reducers.RUNTIME_KEYS:
            found[row.name] = replace(runtime_slot(row.name), held=row.held)
    return found


class SlotValue:
    """The value of a state key while the updates of a commit are applied to it in order. It is
    parsed and serialized once, regardless of the number of updates."""

    def __init__(self, slot: Slot, text: str | None, budget: Budget) -> None:
        """`text` None: absent. `budget` is shared by all keys of the commit."""
        self._slot = slot
        self._text = text
        self._budget = budget
        self._reduction: reducers.Reduction | None = None

    def apply(self, update: Update) -> None:
        """Apply one update; a missing value starts from the default.

        Raises reducers.UpdateRefused and patches.PatchTestFailed. The value must not be used then.
        """
        raw: Raw = update.update
        if update.clear or self._slot.reducer == reducers.Reducer.REPLACE.value:
            self._text = None if update.clear else raw.text
            self._reduction = None
            return
        if self._reduction is None:
            start = self._slot.default if self._text is None else self._text
            self._reduction = reducers.Reduction(
                self._slot.reducer, values.load(start), self._budget
            )
        self._reduction.apply(values.load(raw.text))

    @property
    def text(self) -> str | None:
        """The JSON text of the value; None: absent. Raises values.RefusedJSON if it is too deep."""
        if self._reduction is None:
            return self._text
        values.check_depth(self._reduction.value)
        return values.dump(self._reduction.value)


def check_value(slot: Slot, text: str) -> None:
    """Raise TooLarge or Invalid for an updated value that exceeds a limit, cannot be stored, or
    does not satisfy the schema."""
    size = len(text.encode())
    if size > MAX_VALUE_BYTES:
        raise TooLarge(
            (
                f"the value of {slot.name} would have {size} bytes; the limit is "
                f"{MAX_VALUE_BYTES} bytes"
            ),
            hint="Divide it among several state keys, or store parts of it as entries.",
            limit=MAX_VALUE_BYTES,
            actual=size,
        )
    value = values.load(text)
    check_storable(Raw(text, value), f"the value of {slot.name}", key=slot.name)
    if faults := slot.validator.faults(value):
        raise Invalid(
            f"the value of {slot.name} would not satisfy its schema", faults, key=slot.name
        )


def runtime_slot(name: str) -> Slot:
    """Return a runtime key, as the reference implementation declares it."""
    declaration = reducers.RUNTIME_KEYS[name]
    return Slot(
        name=name,
        reducer=declaration["reducer"],
        commutative=declaration["merge"] == Merge.COMMUTATIVE,
        scope=declaration["scope"],
        persistent=declaration["persistent"],
        default=values.dump(declaration["default"]),
        validator=schemas.compile_schema("{}"),
    )
