"""State in process: the engine's rules and the exact texts of its errors."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from commonhold import (
    CommitEvent,
    KeyAlreadyRegistered,
    KeyDecode,
    KeyScope,
    MergeStrategy,
    MutationBaseRevisionMismatch,
    MutationBatch,
    ParallelMergeConflict,
    PersistedState,
    Plugin,
    PluginAlreadyInstalled,
    PluginNotInstalled,
    PluginRegistrar,
    ProfileKey,
    RevisionConflict,
    RevisionMismatch,
    StateError,
    StateKey,
    StateKeyOptions,
    StateStore,
    UnknownKey,
)
from commonhold import store as stores
from hypothesis import given
from hypothesis import strategies as some

from state_admin.domain import merging
from tests.patience import PATIENCE


class Counter(StateKey[int, int]):
    KEY = "counter"
    MERGE = MergeStrategy.COMMUTATIVE
    VALUE = int

    @staticmethod
    def apply(value: int, update: int) -> int:
        return value + update


class Log(StateKey[list[str], str]):
    KEY = "log"
    VALUE = list[str]

    @staticmethod
    def apply(value: list[str], update: str) -> list[str]:
        value.append(update)
        return value


class Note(StateKey[str, str]):
    KEY = "note"
    VALUE = str


KEYS: list[Any] = [Counter, Log]


@pytest.fixture
def store() -> StateStore:
    made = StateStore()
    for key in KEYS:
        made.register_key(key)
    return made


def batch(*counts: int, base: int | None = None) -> MutationBatch:
    made = MutationBatch(base)
    for count in counts:
        made.update(Counter, count)
    return made


def test_read__before_the_first_write__is_none(store: StateStore) -> None:
    assert (store.revision, store.read(Counter)) == (0, None)
    assert Counter not in store.snapshot()


def test_commit__several_updates__are_one_revision_in_order(store: StateStore) -> None:
    made = store.begin_mutation().update(Counter, 2).update(Log, "a").update(Log, "b")
    assert store.commit(made) == 1
    assert (store.read(Counter), store.read(Log)) == (2, ["a", "b"])
    assert store.commit(batch(0)) == 2, "also when nothing is different afterwards"


def test_commit__empty__changes_nothing_and_ignores_its_base(store: StateStore) -> None:
    store.commit(batch(1))
    told: list[CommitEvent] = []
    store.add_hook(told.append)
    assert store.commit(MutationBatch(99)) == 1
    assert told == []


def test_commit__stale_base__conflicts_before_unknown_keys_are_checked(store: StateStore) -> None:
    store.commit(batch(1))
    stale = MutationBatch(0).update(Note, "x")
    with pytest.raises(
        RevisionMismatch, match=r"^revision conflict: expected 0, actual 1$"
    ) as caught:
        store.commit(stale)
    assert isinstance(caught.value, RevisionConflict), "as the server's refusal of the same"
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    with pytest.raises(UnknownKey, match=r"^unknown key: note$"):
        store.commit(batch(5).update(Note, "x"))
    assert (store.revision, store.read(Counter)) == (1, 1), "nothing of it happened"


def test_snapshot__later_commits_and_mutations__do_not_change_it(store: StateStore) -> None:
    store.commit(MutationBatch().update(Log, "a"))
    before = store.snapshot()
    held = before.get(Log)
    assert held is not None
    held.append("mine")
    store.commit(MutationBatch().update(Log, "b"))
    assert (before.revision, before.get(Log), store.read(Log)) == (1, ["a"], ["a", "b"])


def test_hooks__after_a_commit__run_in_order_and_may_read(store: StateStore) -> None:
    told: list[Any] = []
    store.add_hook(lambda event: told.append((1, event.previous_revision, event.new_revision)))
    store.add_hook(lambda event: told.append((2, event.op_count, event.snapshot.get(Counter))))
    store.add_hook(lambda event: told.append((3, store.read(Counter))))
    store.commit(batch(1, 2))
    assert told == [(1, 0, 1), (2, 2, 3), (3, 3)]


def test_hooks__one_fails__commit_and_other_hooks_succeed(store: StateStore) -> None:
    told: list[int] = []
    store.add_hook(lambda event: told.append(1 // event.previous_revision))
    store.add_hook(lambda event: told.append(event.new_revision))
    assert store.commit(batch(1)) == 1
    assert told == [1]


def test_commit__sixteen_threads_without_base__all_succeed(store: StateStore) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: store.commit(batch(1)), range(16)))
    assert (store.revision, store.read(Counter)) == (16, 16)


def test_commit__eight_threads_with_one_base__one_succeeds(store: StateStore) -> None:
    together = threading.Barrier(8)

    def race(_: int) -> str:
        together.wait(PATIENCE)
        try:
            store.commit(batch(1, base=0))
        except RevisionMismatch as conflict:
            return str(conflict)
        return "won"

    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(race, range(8)))
    assert found == ["revision conflict: expected 0, actual 1"] * 7 + ["won"]


# Merging -------------------------------------------------------------------------------------


def strategy(key: str) -> MergeStrategy:
    return {"counter": MergeStrategy.COMMUTATIVE}.get(key, MergeStrategy.EXCLUSIVE)


def test_merge__exclusive_overlap__refuses_all(store: StateStore) -> None:
    left, right = batch(1).update(Log, "a"), batch(2).update(Log, "b")
    with pytest.raises(
        ParallelMergeConflict, match=r"^parallel merge conflict on exclusive key: log$"
    ):
        store.merge_parallel(left, right)
    assert (len(left), len(right)) == (2, 2)


def test_merge__cleared_key__counts_as_updated() -> None:
    with pytest.raises(ParallelMergeConflict):
        MutationBatch().clear(Log).merge_parallel(MutationBatch().update(Log, "a"), strategy)


def test_merge__different_bases__is_a_mismatch_in_either_order() -> None:
    with pytest.raises(
        MutationBaseRevisionMismatch, match=r"^patch base revision mismatch: 1 vs 2$"
    ):
        batch(1, base=1).merge_parallel(batch(1, base=2), strategy)
    with pytest.raises(MutationBaseRevisionMismatch):
        batch(base=1).extend(batch(base=2))
    assert batch(base=1).extend(batch()).base_revision == 1
    assert batch().merge_parallel(batch(base=2), strategy).base_revision == 2


OPS = some.lists(some.tuples(some.sampled_from(["counter", "log", "note", "who"]), some.integers()))


def made_of(ops: list[tuple[str, int]]) -> MutationBatch:
    made = MutationBatch()
    for key, update in ops:
        made.update(type("Key", (StateKey,), {"KEY": key}), update)
    return made


@given(OPS, OPS)
def test_merge__any_two__merges_in_order_or_refuses_a_shared_exclusive_key(
    left: list[tuple[str, int]], right: list[tuple[str, int]]
) -> None:
    shared = {key for key, _ in left} & {key for key, _ in right}
    exclusive = shared - {"counter"}
    one, other = made_of(left), made_of(right)
    if exclusive:
        with pytest.raises(ParallelMergeConflict) as caught:
            one.merge_parallel(other, strategy)
        assert caught.value.key == next(key for key, _ in left if key in exclusive)
    else:
        merged = one.merge_parallel(other, strategy)
        assert [(op.key, op.update) for op in merged] == left + right
    assert [(op.key, op.update) for op in one] == left, "neither is changed"


@given(some.lists(some.lists(some.integers()), max_size=5))
def test_merge__commutative_branches__equals_sequential_updates(
    branches: list[list[int]],
) -> None:
    together, apart = StateStore(), StateStore()
    for store in (together, apart):
        store.register_key(Counter)
    together.commit(together.merge_parallel(*(batch(*each) for each in branches)))
    for each in branches:
        apart.commit(batch(*each))
    assert together.read(Counter) == apart.read(Counter)


# Attributes and options of keys --------------------------------------------------------------


class Preferences(StateKey[str, str]):
    KEY = "preferences"
    VALUE = str
    SCOPE = KeyScope.THREAD


class Hidden(StateKey[str, str]):
    KEY = "hidden"
    VALUE = str
    PERSISTENT = False
    RETAIN_ON_UNINSTALL = True


def test_scope__thread_on_the_class__value_survives_the_start_of_a_run(store: StateStore) -> None:
    store.register_key(Preferences)
    store.register_key(Note)
    store.commit(MutationBatch().update(Preferences, "aisle").update(Note, "run only"))
    store.clear_run_scoped()
    assert (store.read(Preferences), store.read(Note)) == ("aisle", None)
    assert store.export_thread_scoped().extensions == {"preferences": "aisle"}


def test_options__of_the_registration__override_only_what_they_set() -> None:
    store = StateStore()
    store.register_key(Preferences, StateKeyOptions(persistent=False))
    store.register_key(Hidden, StateKeyOptions(persistent=True))
    store.commit(MutationBatch().update(Preferences, "aisle").update(Hidden, "shown"))
    assert store.export_persisted().extensions == {"hidden": "shown"}
    store.clear_run_scoped()
    assert (store.read(Preferences), store.read(Hidden)) == ("aisle", None)
    run_scoped = StateStore()
    run_scoped.register_key(Preferences, StateKeyOptions(scope=KeyScope.RUN))
    run_scoped.commit(MutationBatch().update(Preferences, "aisle"))
    run_scoped.clear_run_scoped()
    assert run_scoped.read(Preferences) is None


def test_plugin__key_with_attributes__keeps_them(store: StateStore) -> None:
    class Keeper(Plugin):
        def register(self, registrar: PluginRegistrar) -> None:
            registrar.register_key(Hidden)

    store.install_plugin(Keeper())
    store.commit(MutationBatch().update(Hidden, "kept"))
    store.uninstall_plugin(Keeper)
    assert store.read(Hidden) == "kept"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"SCOPES": KeyScope.THREAD}, "Bad.SCOPES: a StateKey has no attribute 'SCOPES'"),
        ({"scope": KeyScope.THREAD}, "Bad.scope: a StateKey has no attribute 'scope'"),
        ({"__annotations__": {"DEFAULT": int}}, "Bad.DEFAULT: a StateKey has no attribute"),
        ({"aply": staticmethod(max)}, "Bad.aply: a StateKey has no attribute 'aply'"),
        ({"SCOPE": "thread"}, "Bad.SCOPE must be of type KeyScope, not 'thread'"),
        ({"MERGE": True}, "Bad.MERGE must be of type MergeStrategy, not True"),
        ({"PERSISTENT": None}, "Bad.PERSISTENT must be of type bool, not None"),
        ({"KEY": 5}, "Bad.KEY must be of type str, not 5"),
        ({"default": 0}, "Bad.default must be a method"),
    ],
)
def test_state_key__unknown_or_mistyped_attribute__is_refused_at_creation(
    attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match="^" + re.escape(message)):
        type("Bad", (StateKey,), {"KEY": "bad", **attributes})


def test_state_key__private_helper__is_allowed() -> None:
    made: Any = type("Fine", (StateKey,), {"KEY": "fine", "_limit": 3})
    assert made._limit == 3


def test_options__mistyped__are_refused() -> None:
    wrong: Any = "thread"
    with pytest.raises(TypeError, match=r"^scope must be of type KeyScope, not 'thread'$"):
        StateKeyOptions(scope=wrong)


# Plugins -------------------------------------------------------------------------------------


class Prefs(ProfileKey):
    theme: str = "dark"


class Notes(Plugin):
    name = "notes"

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.register_key(Note)
        registrar.register_key(Counter, StateKeyOptions(retain_on_uninstall=True))
        registrar.register_profile_key(Prefs)


class Greedy(Plugin):
    def register(self, registrar: PluginRegistrar) -> None:
        registrar.register_key(Log)
        registrar.register_key(Note)


class Twice(Plugin):
    def register(self, registrar: PluginRegistrar) -> None:
        registrar.register_key(Note)
        registrar.register_key(Note)


def test_plugin__installed_twice_or_with_a_registered_key__is_refused_completely() -> None:
    store = StateStore()
    store.install_plugin(Notes())
    assert (store.revision, store.profile_keys()) == (0, [Prefs])
    with pytest.raises(PluginAlreadyInstalled, match=r"^plugin already installed: notes$"):
        store.install_plugin(Notes())
    for plugin in (Greedy(), Twice()):
        with pytest.raises(KeyAlreadyRegistered, match=r"^key already registered: note$"):
            store.install_plugin(plugin)
    with pytest.raises(UnknownKey, match="log"):
        store.commit(MutationBatch().update(Log, "a"))


def test_plugin__profile_key_of_another_plugin__is_refused_as_on_the_server() -> None:
    class Rival(Plugin):
        def register(self, registrar: PluginRegistrar) -> None:
            registrar.register_key(Log)
            registrar.register_profile_key(Prefs)

    store = StateStore()
    store.install_plugin(Notes())
    with pytest.raises(KeyAlreadyRegistered, match=r"^key already registered: prefs$"):
        store.install_plugin(Rival())
    assert store.profile_keys() == [Prefs]
    with pytest.raises(UnknownKey, match="log"):
        store.commit(MutationBatch().update(Log, "a"))
    store.uninstall_plugin(Notes)
    store.install_plugin(Rival())
    assert store.profile_keys() == [Prefs]


def test_plugin__uninstalled__clears_once_keeps_retained_keys_and_unregisters() -> None:
    store = StateStore()
    told: list[int] = []
    store.add_hook(lambda event: told.append(event.new_revision))
    store.install_plugin(Notes())
    store.commit(batch(3).update(Note, "x"))
    store.uninstall_plugin(Notes)
    assert (store.revision, told) == (2, [1, 2])
    assert (store.read(Note), store.read(Counter)) == (None, 3)
    assert store.export_persisted().extensions == {}
    with pytest.raises(UnknownKey):
        store.commit(batch(1))
    with pytest.raises(PluginNotInstalled, match=r"^plugin not installed: notes$"):
        store.uninstall_plugin(Notes)
    store.install_plugin(Notes())
    assert (store.read(Note), store.read(Counter)) == (None, 3)


# Export and restore --------------------------------------------------------------------------


@pytest.fixture
def scoped() -> StateStore:
    store = StateStore()
    store.register_key(Counter, StateKeyOptions(scope=KeyScope.THREAD))
    store.register_key(Log)
    store.register_key(Note, StateKeyOptions(persistent=False))
    store.commit(batch(3).update(Log, "a").update(Note, "secret"))
    return store


def test_export__by_scope__leaves_out_what_is_not_persistent(scoped: StateStore) -> None:
    assert scoped.export_persisted().document() == {
        "revision": 1,
        "extensions": {"counter": 3, "log": ["a"]},
    }
    assert scoped.export_thread_scoped().extensions == {"counter": 3}
    assert scoped.export_run_scoped().extensions == {"log": ["a"]}


def test_restore__snapshot__replaces_values_and_revision_without_hooks(scoped: StateStore) -> None:
    told: list[CommitEvent] = []
    scoped.add_hook(told.append)
    scoped.restore_persisted(PersistedState(7, {"log": ["z"]}))
    assert (scoped.revision, scoped.read(Log), scoped.read(Counter)) == (7, ["z"], None)
    assert told == []


def test_restore__unknown_or_invalid__changes_nothing(scoped: StateStore) -> None:
    with pytest.raises(UnknownKey, match=r"^unknown key: who$"):
        scoped.restore_persisted(PersistedState(7, {"who": 1}))
    with pytest.raises(KeyDecode, match=r"^failed to decode key log: "):
        scoped.restore_persisted(PersistedState(7, {"counter": 1, "log": 5}))
    assert (scoped.revision, scoped.read(Counter)) == (1, 3)
    scoped.restore_persisted(PersistedState(7, {"who": 1, "counter": 4}), "skip")
    assert (scoped.revision, scoped.read(Counter)) == (7, 4)


def test_seed_and_thread_restore__snapshot__merge_and_keep_the_revision(scoped: StateStore) -> None:
    scoped.apply_seed(PersistedState(9, {"note": "n"}))
    scoped.restore_thread_scoped(PersistedState(9, {"counter": 8, "log": ["ignored"]}))
    assert (scoped.revision, scoped.read(Note)) == (1, "n")
    assert (scoped.read(Counter), scoped.read(Log)) == (8, ["a"])
    scoped.clear_run_scoped()
    assert (scoped.read(Counter), scoped.read(Log)) == (8, None)


def test_save__then_load__round_trips(scoped: StateStore, tmp_path: Path) -> None:
    scoped.save(tmp_path / "state.json")
    scoped.commit(batch(1))
    scoped.load(tmp_path / "state.json")
    assert (scoped.revision, scoped.read(Counter), scoped.read(Note)) == (1, 3, None)
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_save__while_another_thread_saves_a_newer_revision__does_not_replace_it(
    scoped: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write, newer = tmp_path / "state.json", stores.write_atomically, []

    def commit_and_save() -> None:
        scoped.commit(batch(1))
        scoped.save(path)

    def overtaken(*given: Any) -> None:
        monkeypatch.setattr(stores, "write_atomically", write)
        newer.append(other.submit(commit_and_save))
        wait([newer[0]], timeout=0.5)  # until it is stored, or waits for this one
        write(*given)

    with ThreadPoolExecutor(1) as other:
        monkeypatch.setattr(stores, "write_atomically", overtaken)
        scoped.save(path)
        newer[0].result(PATIENCE)
    revision = scoped.revision
    scoped.load(path)
    assert scoped.revision == revision


# The server's rules --------------------------------------------------------------------------


@given(OPS, OPS, some.none() | some.integers(0, 2), some.none() | some.integers(0, 2))
def test_merge__any_two__gives_the_result_of_the_server(
    left: list[tuple[str, int]], right: list[tuple[str, int]], base: int | None, other: int | None
) -> None:
    there = [
        merging.Batch(tuple(merging.Update(*op) for op in ops), at)
        for ops, at in ((left, base), (right, other))
    ]
    here = made_of(left), made_of(right)
    here[0].base_revision, here[1].base_revision = base, other
    told = expected = ""
    try:
        joined = merging.merge_batches(there, lambda key: key == "counter")
    except ValueError as error:
        expected = str(error).partition(": ")[0]
        with pytest.raises(StateError) as caught:
            here[0].merge_parallel(here[1], strategy)
        # Which of several keys is reported first differs: the reference implementation checks the
        # left branch.
        told = str(caught.value).partition(": ")[0]
    else:
        merged = here[0].merge_parallel(here[1], strategy)
        assert [(op.key, op.update) for op in merged] == [
            (update.key, update.update) for update in joined.updates
        ]
        assert merged.base_revision == joined.base_revision
    assert told == expected
