"""Storage accounting: counting, one sample per day, and reports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from state_admin.domain.ids import uuid7
from state_admin.models import (
    Compaction,
    CompactionKind,
    CompactionStatus,
    Entry,
    EntryRevision,
    Message,
    StateValue,
    StorageSample,
    Thread,
    Trigger,
    hot,
    storage_sql,
)
from state_admin.services import batching, forks, storage
from state_admin.services.entries import delete_entry
from state_admin.services.erasures import erase
from state_admin.services.errors import NotFound
from state_admin.services.maintenance import run_sweep
from tests.builders import (
    Person,
    append,
    commit,
    conversation,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    make_token,
    put,
)
from tests.web.stories import compact


@pytest.fixture
def filled(alice: Person) -> Person:
    """Two namespaces with histories, two threads with messages and state."""
    make_namespace(alice.actor, "notes")
    make_namespace(alice.actor, "plans")
    for value in ("é" * 10, "b" * 50):
        put(alice.actor, "notes", "a", value)
    put(alice.actor, "notes", "gone", 1)
    delete_entry(actor=alice.actor, namespace="notes", key="gone")
    put(alice.actor, "plans", "a", {"goal": "x"})
    make_state_key(alice.actor, "plan", scope="thread")
    make_state_key(alice.actor, "zeal", scope="thread")
    for thread_id, turns in (("t1", 2), ("t2", 5)):
        make_thread(alice.actor, thread_id, resource_id=f"of-{thread_id}")
        append(alice.actor, thread_id, *conversation(turns))
        make_run(alice.actor, thread_id, f"run-{thread_id}")
        for count in range(3):
            commit(alice.actor, f"run-{thread_id}", {"plan": {"count": count}, "zeal": count})
    return alice


def sample(**of: Any) -> StorageSample:
    return StorageSample.objects.get(**{"day": timezone.now().date(), **of})


def of_workspace(person: Person, **of: Any) -> StorageSample:
    return sample(workspace=person.workspace, namespace=None, thread=None, **of)


def test_sweep__workspace__counts_its_rows(filled: Person) -> None:
    storage.measure_storage()
    found = of_workspace(filled)
    live = Entry.objects.filter(deleted=False)
    assert (found.entries, found.entry_bytes) == (2, sum(row.size_bytes for row in live))
    past = StateValue.objects.exclude(valid_to=None)
    versions = EntryRevision.objects.all()
    assert found.history_rows == versions.count() + past.count()
    assert found.history_bytes == sum(
        [*(row.size_bytes for row in versions), *(len(row.value or "") for row in past)]
    )
    messages = Message.objects.all()
    assert (found.threads, found.messages) == (2, messages.count())
    assert found.message_bytes == sum(len((row.body or "").encode()) for row in messages)
    assert found.state_rows == StateValue.objects.current().count()
    tokens = [row.estimated_tokens for row in (*live, *messages)]
    assert found.estimated_tokens == sum(tokens)
    assert found.total_rows == (
        found.entries + found.history_rows + found.messages + found.state_rows
    )
    assert found.total_bytes == (
        found.entry_bytes + found.history_bytes + found.message_bytes + found.state_bytes
    )


def test_sweep__clock_of_the_worker_is_wrong__uses_that_of_the_database(
    filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.measure_storage()
    right = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: right + timedelta(days=4000))
    assert storage.measure_storage()["forgotten"] == 0
    assert {row.day for row in StorageSample.objects.all()} == {right.date()}


def test_sweep__parts__add_up_to_the_total(filled: Person) -> None:
    storage.measure_storage()
    whole = of_workspace(filled)
    parts = StorageSample.objects.exclude(namespace=None, thread=None)
    assert {row.namespace.name for row in parts if row.namespace} == {"notes", "plans"}
    assert {row.thread.public_id for row in parts if row.thread} == {"t1", "t2"}
    for name in ("total_rows", "total_bytes", "estimated_tokens", "history_bytes", "state_bytes"):
        assert sum(getattr(row, name) for row in parts) == getattr(whole, name), name


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_sweep__any_batch_size__has_the_same_result(
    batch: int, filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.measure_storage()
    at_once = list(StorageSample.objects.order_by("pk").values_list("pk", "total_rows", *_FIELDS))
    monkeypatch.setattr(storage_sql, "BATCH", batch)
    storage.measure_storage()
    again = list(StorageSample.objects.order_by("pk").values_list("pk", "total_rows", *_FIELDS))
    assert again == at_once


_FIELDS = ("total_bytes", "entries", "history_bytes", "messages", "state_rows", "estimated_tokens")


def test_sweep__batches__are_statements_of_bounded_size(
    filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_sql, "BATCH", 2)
    seen: list[str] = []
    fetch_all = hot.fetch_all

    def watched(statement: str, parameters: Any) -> Any:
        seen.append(statement)
        return fetch_all(statement, parameters)

    monkeypatch.setattr(hot, "fetch_all", watched)
    storage.measure_storage()
    walks = [text for text in seen if "storage_samples" not in text and "FROM" in text]
    assert len(walks) > 10
    assert all("LIMIT 2" in text for text in walks)


def test_sweep__same_day_again__replaces_and_deletes_empty_samples(filled: Person) -> None:
    storage.measure_storage()
    first = of_workspace(filled)
    put(filled.actor, "plans", "b", "more")
    erase(actor=filled.actor, resource_id="of-t1", reason="asked")
    storage.measure_storage()
    second = of_workspace(filled)
    assert (second.pk, second.entries, second.threads) == (first.pk, 3, 1)
    assert second.measured_at > first.measured_at
    assert {row.thread.public_id for row in StorageSample.objects.exclude(thread=None)} == {"t2"}


def test_sweep__only_the_largest_threads__get_a_sample(
    filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.measure_storage()
    monkeypatch.setattr(storage, "THREADS", 1)
    storage.measure_storage()
    (only,) = StorageSample.objects.exclude(thread=None)
    assert only.thread is not None
    assert only.thread.public_id == "t2"
    assert of_workspace(filled).threads == 2


def test_sweep__other_workspace__is_counted_separately(filled: Person, mallory: Person) -> None:
    make_namespace(mallory.actor, "notes")
    put(mallory.actor, "notes", "a", 1)
    storage.measure_storage()
    assert of_workspace(mallory).entries == 1
    assert of_workspace(filled).entries == 2
    for group in ("namespace", "thread"):
        names = [level.name for level in levels(mallory, group)]
        assert names == (["notes"] if group == "namespace" else [])


def test_sweep__old_samples__are_deleted(filled: Person, settings: Any) -> None:
    settings.STORAGE_RETENTION = timedelta(days=10)
    storage.measure_storage()
    for days in (9, 11):
        age(filled, days)
    storage.measure_storage()
    today = timezone.now().date()
    found = set(StorageSample.objects.totals().values_list("day", flat=True))
    assert found == {today, today - timedelta(days=9)}


def age(person: Person, days: int, **changes: Any) -> None:
    """A copy of today's samples of a person's workspace, `days` ago."""
    for row in StorageSample.objects.filter(workspace=person.workspace, day=timezone.now().date()):
        row.pk = None
        row.day -= timedelta(days=days)
        for name, value in changes.items():
            setattr(row, name, value)
        row.save(force_insert=True)


def test_sweep__slow__pauses(filled: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1000.0, 1002.0, 1060.0, 1063.0, 1070.0])
    monkeypatch.setattr(batching, "monotonic", lambda: next(clock))
    monkeypatch.setattr(storage, "_rest", batching.Rest())
    assert storage.sweep_storage()["workspaces"] == 1
    assert storage.sweep_storage() == {}, "two seconds of work, sixty of rest"
    assert storage.sweep_storage()["workspaces"] == 1


def test_next_measurement__worker_rests__is_after_the_rest(
    filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert storage.next_measurement() is None
    clock = iter([1000.0, 1090.5, 1150.0])
    monkeypatch.setattr(batching, "monotonic", lambda: next(clock))
    monkeypatch.setattr(storage, "_rest", batching.Rest())
    started = timezone.now()
    for _ in range(2):  # the second rests, and takes no time
        run_sweep("measure storage", storage.sweep_storage)
    expected = storage.next_measurement()
    assert expected is not None
    assert expected - started > timedelta(seconds=30 * 90.5)
    assert expected - started < timedelta(hours=1)


# What compaction saved ------------------------------------------------------------------------


def removed(person: Person, rows: int, **fields: Any) -> Compaction:
    return Compaction.objects.create(
        workspace=person.workspace,
        public_id=uuid7(),
        kind=CompactionKind.HISTORY,
        status=CompactionStatus.DONE,
        trigger=Trigger.SCHEDULE,
        rows_removed=rows,
        **{"finished_at": Now(), **fields},
    )


def test_savings__of_the_day__are_stored_by_namespace_and_thread(filled: Person) -> None:
    append(filled.actor, "t1", *conversation(12))
    job = compact(filled.actor, "t1")
    assert job.status == CompactionStatus.DONE
    notes = make_namespace(filled.actor, "notes")
    removed(filled, 7, namespace=notes)
    removed(filled, 5)
    storage.measure_storage()
    saved = (job.tokens_before or 0) - (job.tokens_after or 0)
    assert saved > 0
    whole = of_workspace(filled)
    assert (whole.tokens_saved, whole.rows_removed) == (saved, 12)
    assert sample(thread=Thread.objects.get(public_id="t1")).tokens_saved == saved
    assert sample(namespace=notes).rows_removed == 7


def test_savings__of_a_forked_thread__count_once(filled: Person) -> None:
    append(filled.actor, "t1", *conversation(12))
    job = compact(filled.actor, "t1")
    for fork_id, source in (("f1", "t1"), ("f2", "f1")):
        forks.fork_thread(actor=filled.actor, thread_id=source, fork_id=fork_id)
    assert Compaction.objects.filter(status=CompactionStatus.DONE).count() == 3
    storage.measure_storage()
    saved = (job.tokens_before or 0) - (job.tokens_after or 0)
    assert of_workspace(filled).tokens_saved == saved > 0
    append(filled.actor, "f1", *conversation(12)[1:])
    own = compact(filled.actor, "f1")
    storage.measure_storage()
    saved += (own.tokens_before or 0) - (own.tokens_after or 0)
    assert of_workspace(filled).tokens_saved == saved, "what the fork folds itself"


def test_savings__undone__do_not_count(filled: Person) -> None:
    job = removed(filled, 7)
    storage.measure_storage()
    assert of_workspace(filled).rows_removed == 7
    Compaction.objects.filter(pk=job.pk).update(status=CompactionStatus.UNDONE)
    storage.measure_storage()
    assert of_workspace(filled).rows_removed == 0


def test_savings__after_the_last_measurement_of_a_day__still_count(filled: Person) -> None:
    storage.measure_storage()
    age(filled, 1)
    removed(filled, 9, finished_at=Now() - timedelta(days=1))
    storage.measure_storage()
    yesterday = timezone.now().date() - timedelta(days=1)
    assert of_workspace(filled, day=yesterday).rows_removed == 9
    assert of_workspace(filled).rows_removed == 0


# Reading --------------------------------------------------------------------------------------


def levels(person: Person, group: Any, **page: Any) -> list[storage.Level]:
    return storage.list_levels(person.actor, group=group, days=30, **{"limit": 50, **page})


def test_levels__grown__contain_the_days_and_the_growth(filled: Person) -> None:
    storage.measure_storage()
    age(filled, 10, total_bytes=100)
    age(filled, 40, total_bytes=1)
    (level, _) = levels(filled, "namespace")
    assert level.name == "notes"
    assert [row.total_bytes for row in level.days] == [100, level.newest.total_bytes]
    assert level.growth == (level.newest.total_bytes - 100) / 10


def test_levels__one_day__have_no_growth(filled: Person) -> None:
    storage.measure_storage()
    assert [level.growth for level in levels(filled, "thread")] == [None, None]


def test_levels__pages__are_largest_first_without_repeats(filled: Person) -> None:
    storage.measure_storage()
    StorageSample.objects.exclude(thread=None).update(total_bytes=7)
    first, second = levels(filled, "thread")
    after = (first.newest.total_bytes, first.newest.pk)
    assert [row.name for row in levels(filled, "thread", after=after)] == [second.name]
    assert levels(filled, "thread", after=(7, second.newest.pk)) == []


def test_levels__thread_deleted_during_the_sweep__is_absent(filled: Person) -> None:
    storage.measure_storage()
    newest = of_workspace(filled)
    StorageSample.objects.create(
        workspace=filled.workspace,
        thread_id=10**9,
        day=newest.day,
        measured_at=newest.measured_at,
    )
    assert len(levels(filled, "thread")) == 2
    storage.measure_storage()
    assert not StorageSample.objects.filter(thread_id=10**9).exists()


def test_levels__never_measured__are_empty(alice: Person) -> None:
    assert levels(alice, "namespace") == []
    assert storage.read_workspace(alice.actor, days=30) is None


def test_measure__namespace_and_thread__are_exact(filled: Person) -> None:
    storage.measure_storage()
    put(filled.actor, "notes", "new", "x" * 100)
    append(filled.actor, "t2", {"role": "user", "content": "one more"})
    before, after = sample(namespace__name="notes"), measured(filled, namespace="notes")
    assert after.exact
    assert after.newest.entries == before.entries + 1
    assert after.newest.entry_bytes == before.entry_bytes + 102
    assert after.days[-1] is after.newest
    before, after = sample(thread__public_id="t2"), measured(filled, thread="t2")
    assert after.newest.messages == before.messages + 1


def measured(person: Person, namespace: str = "", thread: str = "") -> storage.Level:
    if namespace:
        return storage.measure_namespace(person.actor, namespace, days=30)
    return storage.measure_thread(person.actor, thread, days=30)


@pytest.mark.parametrize("subject", [{"namespace": "notes"}, {"thread": "t2"}])
def test_measure__on_request__equals_the_sweep(subject: dict[str, str], filled: Person) -> None:
    storage.measure_storage()
    (name,) = subject.values()
    of = {"namespace__name": name} if "namespace" in subject else {"thread__public_id": name}
    swept, now = sample(**of), measured(filled, **subject).newest
    for field in ("total_rows", "estimated_tokens", *_FIELDS):
        assert getattr(now, field) == getattr(swept, field), field


def test_measure__beyond_the_limit__returns_the_sample_of_the_sweep(
    filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_sql, "MOST", 1)
    with pytest.raises(NotFound, match="too large to measure on request"):
        measured(filled, namespace="notes")
    storage.measure_storage()
    found = measured(filled, namespace="notes")
    assert (found.exact, found.newest) == (False, sample(namespace__name="notes"))


def test_measure__of_another_workspace_or_reserved__appears_absent(
    filled: Person, mallory: Person
) -> None:
    with pytest.raises(NotFound, match="not registered: notes"):
        measured(mallory, namespace="notes")
    with pytest.raises(NotFound, match="thread not found"):
        measured(mallory, thread="t1")
    with pytest.raises(NotFound, match=r"not registered: config\.agents"):
        measured(filled, namespace="config.agents")


def test_levels__restricted_token__contain_permitted_ones(filled: Person) -> None:
    storage.measure_storage()
    _, narrow = make_token(filled, namespaces=["pl*"], thread_prefixes=["t2"])
    for group, name in (("namespace", "plans"), ("thread", "t2")):
        found = storage.list_levels(narrow, group=group, days=30, limit=9)  # type: ignore[arg-type]
        assert [level.name for level in found] == [name]


def test_levels__any_number__use_the_same_number_of_queries(filled: Person) -> None:
    storage.measure_storage()
    with CaptureQueriesContext(connection) as few:
        levels(filled, "thread", limit=1)
    with CaptureQueriesContext(connection) as many:
        levels(filled, "thread")
    assert len(few) == len(many)


def test_erase__resource__deletes_its_samples(filled: Person) -> None:
    storage.measure_storage()
    erased = erase(actor=filled.actor, resource_id="of-t1", reason="asked")
    assert erased.counts["storage_samples"] == 1
    assert not StorageSample.objects.filter(thread__public_id="t1").exists()
