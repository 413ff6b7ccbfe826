"""Plugins: all or nothing, one revision per thread, retained values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from msgspec.structs import asdict

from state_admin.contract.plugins import Removed
from state_admin.domain.access import Role
from state_admin.models import (
    AuditRow,
    Change,
    Entry,
    Namespace,
    Plugin,
    Revision,
    StateKey,
    StateValue,
    Thread,
)
from state_admin.services import (
    messages,
    namespaces,
    plugins,
    snapshots,
    state_keys,
    state_removals,
)
from state_admin.services.batches import BatchOperation
from state_admin.services.errors import Conflict, Forbidden, Invalid, NotFound
from state_admin.services.plugins import install_plugin, uninstall_plugin
from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    make_token,
    put,
    raw,
)
from tests.services.racing import interleave, race, split

GONE = "unknown key: kit.plan"


def key(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "schema": raw({}), "default": raw(None), **fields}


def install(
    person: Person, name: str = "kit", keys: Any = None, spaces: Any = None, **fields: Any
) -> Plugin:
    """By default: a key that is removed, one that is retained, a namespace."""
    if keys is None:
        keys = [key(f"{name}.plan"), key(f"{name}.facts", retain_on_uninstall=True, scope="thread")]
    return install_plugin(
        actor=person.actor,
        name=name,
        state_keys=keys,
        namespaces=[key(f"{name}.notes")] if spaces is None else spaces,
        **fields,
    )


def uninstall(person: Person, name: str = "kit", **fields: Any) -> Removed:
    return uninstall_plugin(actor=person.actor, name=name, **fields)


def state(person: Person, thread_id: str, revision: int | None = None) -> dict[str, Any]:
    found = snapshots.read_snapshot(actor=person.actor, thread_id=thread_id, revision=revision)
    return {name: value for name, value in found.parsed().items() if not name.startswith("__")}


def revisions() -> dict[str, int]:
    return dict(Thread.objects.values_list("public_id", "revision"))


@pytest.fixture
def used(alice: Person) -> Person:
    """The plugin "kit", used by t1 and t2 (both keys) and t3 (the retained one); t4 has a key
    without a plugin."""
    install(alice)
    make_state_key(alice.actor, "own")
    for number, update in enumerate(
        ({"kit.plan": 1, "kit.facts": 1}, {"kit.plan": 2, "kit.facts": 2}, {"kit.facts": 3},
         {"own": 4}), start=1,
    ):  # fmt: skip
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}")
        commit(alice.actor, f"r{number}", update)
    return alice


# Install -------------------------------------------------------------------------------------


def test_install__complete_plugin__is_registered_with_audit_and_feed(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    install(alice, description="Plans", reason="needed")
    assert set(StateKey.objects.values_list("name", "plugin")) == {
        ("kit.plan", "kit"), ("kit.facts", "kit"),
    }  # fmt: skip
    assert Namespace.objects.open().get().plugin == "kit"
    assert revisions() == {"t1": 0}
    row = AuditRow.objects.get(action="plugin.install")
    assert (row.key, row.reason) == ("kit", "needed")
    assert row.detail == {"state_keys": ["kit.plan", "kit.facts"]}
    assert AuditRow.objects.filter(action="namespace.register", namespace="kit.notes").exists()
    assert Change.objects.filter(kind="plugin.install", key="kit").exists()


def test_install__dry_run__validates_everything_and_stores_nothing(alice: Person) -> None:
    before = (StateKey.objects.count(), Namespace.objects.open().count(), AuditRow.objects.count())
    made = install(alice, dry_run=True)
    assert made.name == "kit"
    now = (StateKey.objects.count(), Namespace.objects.open().count(), AuditRow.objects.count())
    assert now == before
    assert not Plugin.objects.exists()
    assert not Change.objects.filter(kind="plugin.install").exists()
    with pytest.raises(Invalid):
        install(alice, keys=[key("k", merge="commutative")], dry_run=True)
    install(alice)
    with pytest.raises(Conflict):
        install(alice, dry_run=True)


def test_install__twice__is_refused_by_its_name(alice: Person) -> None:
    install(alice)
    with pytest.raises(Conflict) as refused:
        install(alice)
    assert refused.value.detail == "plugin already installed: kit"


def test_install__empty_plugin__is_installed(alice: Person) -> None:
    install(alice, keys=[], spaces=[])
    assert uninstall(alice).threads == 0
    with pytest.raises(NotFound):
        uninstall(alice)


@pytest.mark.parametrize(
    ("keys", "spaces", "detail", "pointer", "advice"),
    [
        (["new", "other.plan"], [], "key already registered: other.plan", "/state_keys/1",
         "the plugin other. Use another name, or uninstall that plugin."),
        (["new"], ["fresh", "other.notes"], "key already registered: other.notes", "/namespaces/1",
         "the plugin other. Use another name, or uninstall that plugin."),
        (["new", "own"], [], "key already registered: own", "/state_keys/1",
         "To add it to kit, register it again with this name as plugin."),
        (["new"], ["mine"], "key already registered: mine", "/namespaces/0",
         "To add it to kit, register it again with this name as plugin."),
        (["new", "new"], [], "key already registered: new", "/state_keys/1",
         "lists it twice. Remove one of the two."),
        (["__runtime.pending_work"], [], "key already registered: __runtime.pending_work",
         "/state_keys/0", "Use another name."),
    ],
)  # fmt: skip
def test_install__key_in_use__registers_nothing_and_reports_the_item(
    alice: Person, keys: list[str], spaces: list[str], detail: str, pointer: str, advice: str
) -> None:
    install(alice, "other")
    make_state_key(alice.actor, "own")
    make_namespace(alice.actor, "mine")
    before = (StateKey.objects.count(), Namespace.objects.open().count(), AuditRow.objects.count())
    with pytest.raises(Conflict) as refused:
        install(alice, keys=[key(name) for name in keys], spaces=[key(name) for name in spaces])
    assert refused.value.detail == detail
    assert refused.value.data["pointer"] == pointer
    assert refused.value.hint.endswith(advice)
    now = (StateKey.objects.count(), Namespace.objects.open().count(), AuditRow.objects.count())
    assert now == before
    assert list(Plugin.objects.values_list("name", flat=True)) == ["other"]


@pytest.mark.parametrize(
    ("keys", "spaces", "pointers"),
    [
        ([key("a"), key("b", merge="commutative", reducer="append")], [], ["/state_keys/1/merge"]),
        ([key("a", schema=raw({"type": "object"}), default=raw(1))], [], ["/state_keys/0/default"]),
        ([key("a")], [key("n", schema=raw({"properties": {"g": {"type": "no"}}}))],
         ["/namespaces/0/schema/properties/g/type"]),
        ([key("a")], [key("n", schema=raw({"properties": {"g": {"type": "string"}}}),
                          default=raw({"g": 1}))],
         ["/namespaces/0/default/g"]),
        ([key("a"), key("no spaces")], [], []),
    ],
)  # fmt: skip
def test_install__invalid_item__registers_nothing_and_reports_its_place(
    alice: Person, keys: Any, spaces: Any, pointers: list[str]
) -> None:
    with pytest.raises(Invalid) as refused:
        install(alice, keys=keys, spaces=spaces)
    told = [error["pointer"] for error in refused.value.data["errors"]]
    assert told == pointers
    assert refused.value.data["pointer"] in ("/state_keys/0", "/state_keys/1", "/namespaces/0")
    assert not Namespace.objects.open().exists()
    assert [kind.objects.count() for kind in (StateKey, Plugin)] == [0, 0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["state_key", "namespace"])
def test_install__name_registered_meanwhile_without_plugin__registers_nothing(
    alice: Person, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mine = {"description": "mine"}

    def register() -> None:
        if kind == "state_key":
            state_keys.register_state_key(actor=alice.actor, **key("kit.plan", **mine))
        else:
            namespaces.register_namespace(actor=alice.actor, **key("kit.notes", **mine))

    with (
        interleave(monkeypatch, plugins, f"register_{kind}", register),
        pytest.raises(Conflict, match="key already registered: kit") as refused,
    ):
        install(alice)
    assert refused.value.data["pointer"] in ("/state_keys/0", "/namespaces/0")
    assert not Plugin.objects.exists()
    rows = StateKey.objects.all() if kind == "state_key" else Namespace.objects.registered()
    assert rows.filter(name__startswith="kit").get().description == "mine"


def test_install__key_registered_for_the_plugin__is_adopted(alice: Person) -> None:
    make_state_key(alice.actor, "kit.plan", plugin="kit", reducer="merge")
    install(alice)
    assert StateKey.objects.get(name="kit.plan").reducer == "replace"


def test_install__same_name_in_another_workspace__is_independent(
    alice: Person, mallory: Person
) -> None:
    install(alice)
    install(mallory)
    uninstall(mallory)
    assert StateKey.objects.filter(workspace=alice.workspace).count() == 2
    assert not StateKey.objects.filter(workspace=mallory.workspace).exists()


def test_plugin__its_key__is_changed_only_by_it(used: Person) -> None:
    for plugin in ("", "other"):
        with pytest.raises(Conflict) as refused:
            make_state_key(used.actor, "kit.plan", plugin=plugin, reducer="merge")
        assert refused.value.detail == "key already registered: kit.plan"
    make_state_key(used.actor, "kit.plan", plugin="kit", reducer="merge")
    with pytest.raises(Conflict) as refused:
        state_removals.unregister_state_key(actor=used.actor, name="kit.plan")
    assert refused.value.detail == "state key kit.plan belongs to the installed plugin kit"
    assert StateKey.objects.get(name="kit.plan").reducer == "merge"


@pytest.mark.parametrize("entries", ["", "retain", "delete"])
def test_plugin__its_namespace__is_unregistered_only_with_it(used: Person, entries: str) -> None:
    put(used.actor, "kit.notes", "k", 1)
    with pytest.raises(Conflict) as refused:
        namespaces.unregister_namespace(actor=used.actor, name="kit.notes", entries=entries)
    assert refused.value.detail == "namespace kit.notes belongs to the installed plugin kit"
    assert refused.value.data["plugin"] == "kit"
    assert Entry.objects.live().exists()
    uninstall(used, entries="delete")
    assert not Namespace.objects.open().registered().exists()


def test_unregister__namespace_of_a_plugin_that_is_not_installed__succeeds(alice: Person) -> None:
    make_namespace(alice.actor, "notes", plugin="kit")
    assert namespaces.unregister_namespace(actor=alice.actor, name="notes") == 0


# Uninstall -----------------------------------------------------------------------------------


def test_uninstall__not_installed__is_not_found(alice: Person) -> None:
    with pytest.raises(NotFound) as refused:
        uninstall(alice)
    assert refused.value.detail == "plugin not installed: kit"


def test_uninstall__with_values__creates_one_revision_per_thread(used: Person) -> None:
    before = revisions()
    removal = uninstall(used, reason="unused")
    assert asdict(removal) == {
        "state_keys": 2, "threads": 2, "values": 2, "retained": 3, "namespaces": 1, "entries": 0,
    }  # fmt: skip
    assert revisions() == {
        **before, "t1": before["t1"] + 1, "t2": before["t2"] + 1,
    }  # fmt: skip
    row = Revision.objects.get(thread__public_id="t1", number=before["t1"] + 1)
    assert (row.kind, row.touched, row.reason) == ("uninstall", ["kit.plan"], "unused")
    assert not StateKey.objects.filter(plugin="kit").exists()
    assert list(AuditRow.objects.filter(action="thread.uninstall").values_list("thread")) == [
        ("t1",), ("t2",),
    ]  # fmt: skip
    assert AuditRow.objects.filter(action="state_key.unregister").count() == 2
    assert AuditRow.objects.filter(action="plugin.uninstall", key="kit").count() == 1


def test_uninstall__all_keys_retained__creates_no_revision(alice: Person) -> None:
    install(alice, keys=[key("kit.facts", retain_on_uninstall=True)])
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"kit.facts": 1})
    before = revisions()
    uninstall(alice)
    assert revisions() == before


def test_uninstall__several_keys_in_a_thread__are_one_revision(alice: Person) -> None:
    install(alice, keys=[key(f"kit.{n}") for n in range(5)])
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {f"kit.{n}": n for n in range(5)})
    before = revisions()["t1"]
    assert asdict(uninstall(alice)) | {"values": 5, "threads": 1} == {
        "state_keys": 5, "threads": 1, "values": 5, "retained": 0, "namespaces": 1, "entries": 0,
    }  # fmt: skip
    assert revisions()["t1"] == before + 1
    assert len(state(alice, "t1", before)) == 5


def test_uninstall__retained_value__is_readable_and_cannot_be_committed(used: Person) -> None:
    last = revisions()["t1"]
    uninstall(used)
    assert state(used, "t1") == {"kit.facts": 1}
    assert state(used, "t1", last) == {"kit.plan": 1, "kit.facts": 1}
    for name in ("kit.facts", "kit.plan"):
        with pytest.raises(Invalid) as refused:
            commit(used.actor, "r1", {name: 9})
        assert refused.value.detail == f"unknown key: {name}"
    assert state(used, "t4") == {"own": 4}


def test_reinstall__after_uninstall__has_retained_values_and_no_others(
    used: Person,
) -> None:
    uninstall(used, entries="retain")
    install(used)
    assert state(used, "t1") == {"kit.facts": 1}
    commit(used.actor, "r1", {"kit.plan": 5, "kit.facts": 6})
    assert state(used, "t1") == {"kit.plan": 5, "kit.facts": 6}


def test_uninstall__dry_run__reports_removals_and_removes_nothing(used: Person) -> None:
    put(used.actor, "kit.notes", "k", 1)
    before = (revisions(), StateKey.objects.count(), AuditRow.objects.count())
    would = uninstall(used, dry_run=True)
    assert asdict(would) == {
        "state_keys": 2, "threads": 2, "values": 2, "retained": 3, "namespaces": 1, "entries": 1,
    }  # fmt: skip
    assert (revisions(), StateKey.objects.count(), AuditRow.objects.count()) == before
    assert uninstall(used, entries="delete") == would


def test_uninstall__existing_entries__require_a_choice(used: Person) -> None:
    put(used.actor, "kit.notes", "k", 1)
    before = revisions()
    with pytest.raises(Conflict) as refused:
        uninstall(used)
    assert "kit.notes still holds 1 entries" in refused.value.detail
    assert "cannot be read or written until" in (refused.value.hint or "")
    assert revisions() == before
    assert Plugin.objects.exists()
    uninstall(used, entries="retain")
    assert Entry.objects.live().count() == 1
    with pytest.raises(NotFound):
        namespaces.find_definition(used.actor, "kit.notes", fresh=True)
    install(used)
    uninstall(used, entries="delete")
    assert not Entry.objects.live().exists()


def test_uninstall__more_threads_than_a_batch__clears_all(
    used: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_removals, "_CHUNK", 2)
    for number in range(10, 17):
        make_thread(used.actor, f"t{number}")
        make_run(used.actor, f"t{number}", f"r{number}")
        commit(used.actor, f"r{number}", {"kit.plan": number})
    assert uninstall(used).threads == 9
    assert not StateValue.objects.current().filter(key="kit.plan").exists()


def test_plugin__viewer_restricted_token_or_non_member__is_refused(
    used: Person, bob: Person, mallory: Person
) -> None:
    for how in ({"namespaces": ["kit.*"]}, {"thread_prefixes": ["t"]}):
        _, narrow = make_token(used, Role.ADMIN, **how)  # type: ignore[arg-type]
        with pytest.raises(Forbidden):
            install_plugin(actor=narrow, name="more")
        with pytest.raises(NotFound):
            uninstall_plugin(actor=narrow, name="kit")
        for beyond in ({}, {"clear": True}, {"dry_run": True}):
            with pytest.raises(Forbidden):
                state_removals.unregister_state_key(actor=narrow, name="own", **beyond)
        for name in ("own", "new"):
            with pytest.raises(Forbidden):
                make_state_key(narrow, name, schema={"type": "integer"})
    assert list(StateKey.objects.filter(name__in=["own", "new"]).values_list("name", "schema")) == [
        ("own", "{}")
    ]
    for verb in (
        partial(install_plugin, name="more"),
        partial(uninstall_plugin, name="kit"),
        partial(state_removals.unregister_state_key, name="own"),
    ):
        with pytest.raises(Forbidden):
            verb(actor=bob.actor)
    with pytest.raises(NotFound):
        uninstall(mallory)


# One state key -------------------------------------------------------------------------------


def test_unregister__state_key__keeps_its_values_unless_clear_is_requested(used: Person) -> None:
    before = revisions()["t4"]
    held = state_removals.unregister_state_key(actor=used.actor, name="own")
    assert (held.threads, held.values) == (1, 1)
    assert state(used, "t4") == {"own": 4}
    with pytest.raises(Invalid):
        commit(used.actor, "r4", {"own": 5})
    make_state_key(used.actor, "own")
    commit(used.actor, "r4", {"own": 5})
    asked = partial(state_removals.unregister_state_key, actor=used.actor, name="own", clear=True)
    assert asked(dry_run=True).threads == 1
    assert state(used, "t4") == {"own": 5}
    asked()
    assert state(used, "t4") == {}
    assert revisions()["t4"] == before + 2
    with pytest.raises(NotFound) as refused:
        asked()
    assert refused.value.detail == "unknown key: own"


# Races ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_", range(3))
def test_race__commits_and_uninstall__each_value_is_cleared_or_refused(
    used: Person, _: int
) -> None:
    works = [
        partial(commit, used.actor, f"r{number}", {"kit.plan": 7, "own": 7})
        for number in (1, 2, 3, 4)
        for _ in range(3)
    ]
    works.insert(5, partial(uninstall, used))  # type: ignore[arg-type]
    outcomes = race(works)
    _, lost = split(outcomes)
    assert not isinstance(outcomes[5], Exception)
    assert {problem.detail for problem in lost} <= {GONE}
    assert not StateValue.objects.current().filter(key="kit.plan").exists()
    assert not StateKey.objects.filter(name="kit.plan").exists()
    # Each successful commit has one revision, and so has the clearing of its value.
    for thread in Thread.objects.all():
        kinds = Revision.objects.filter(thread=thread).order_by("number")
        assert [row.number for row in kinds] == list(range(1, thread.revision + 1))
        uninstalls = [row for row in kinds if row.kind == "uninstall"]
        touched = any("kit.plan" in row.touched for row in kinds if row.kind == "commit")
        assert len(uninstalls) == touched


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("writer", ["commit", "restore", "append"])
def test_registry__locked__writers_wait_before_they_lock_a_thread(
    used: Person, writer: str
) -> None:
    """Otherwise an uninstallation that processes threads in order could deadlock with a writer."""
    make_namespace(used.actor)
    verbs = {
        "commit": partial(commit, used.actor, "r1", {"own": 1}),
        "restore": partial(
            snapshots.restore_snapshot, actor=used.actor, thread_id="t1", revision=1
        ),
        "append": partial(
            messages.append_messages,
            actor=used.actor,
            thread_id="t1",
            messages=[raw({"role": "user", "content": "hi"})],
            operations=[BatchOperation("put", "notes", "k", raw(1))],
        ),
    }

    def write_impatiently() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '100ms'")
            verbs[writer]()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            state_keys.close_registry(used.actor)
            with pytest.raises(OperationalError, match="lock timeout"):
                other.submit(write_impatiently).result()
            assert Thread.objects.select_for_update(nowait=True).count() == 4
        other.submit(write_impatiently).result()


@pytest.mark.django_db(transaction=True)
def test_race__8_installs_of_one_plugin__exactly_one_lands(alice: Person) -> None:
    won, lost = split(race([partial(install, alice)] * 8))
    assert len(won) == 1
    assert {problem.detail for problem in lost} == {"plugin already installed: kit"}


@pytest.mark.django_db(transaction=True)
def test_race__plugins_with_the_same_keys_in_another_order__one_registers_all(
    alice: Person,
) -> None:
    names = [f"k{number}" for number in range(8)]
    works = [
        partial(install, alice, f"p{number}", [key(name) for name in order], [])
        for number, order in enumerate((names, names[::-1], names[::2] + names[1::2]))
    ]
    won, lost = split(race(works))
    assert (len(won), len(lost)) == (1, 2)
    assert all(problem.detail.startswith("key already registered: ") for problem in lost)
    assert StateKey.objects.values("plugin").distinct().count() == 1
