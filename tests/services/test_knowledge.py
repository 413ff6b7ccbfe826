"""The context of a run at a step, exact despite concurrent commits (ADR 9)."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_admin.contract import knowledge as contract
from state_admin.models import Entry, EntryRevision, Revision, Run, RunRead, Thread, knowledge_sql
from state_admin.models.feed_eras import begin_era
from state_admin.services import entries, knowledge, threads
from state_admin.services.errors import Invalid, NotFound, NotRegistered
from state_admin.services.knowledge import Knowledge
from state_admin.services.snapshots import Read
from tests import builders
from tests.builders import Person, make_namespace, make_run, make_thread, make_token, put
from tests.patience import PATIENCE
from tests.services.racing import race
from tests.services.test_history_compaction import compact_histories

KEYS = ("global", "agent_type::helper", "parent_thread::t0", "parent_thread::t1", "thread::t1")


@pytest.fixture
def run(alice: Person) -> Person:
    """r1 of the agent `helper` on t1, a child of t0."""
    for name in ("notes", "team"):
        make_namespace(alice.actor, name)
    make_thread(alice.actor, "t0")
    make_thread(alice.actor, "t1", parent_thread_id="t0")
    make_run(alice.actor, "t1", "r1", agent_id="helper")
    return alice


@pytest.fixture(params=["first era", "later era"])
def era(request: pytest.FixtureRequest) -> None:
    """The same with numbers that PostgreSQL did not assign."""
    if request.param == "later era":
        begin_era()


def commit(person: Person, *reads: tuple[str, str, int], **fields: Any) -> int:
    made = builders.commit(
        person.actor, "r1", label="step", reads=[Read(*each) for each in reads], **fields
    )
    return made.revision


def knowledge_at(person: Any, **options: Any) -> Knowledge:
    actor = getattr(person, "actor", person)
    return knowledge.read_knowledge(actor=actor, run_id="r1", **options)


def values(known: Knowledge) -> dict[tuple[str, str], str | None]:
    return {(row.namespace, row.key): row.value for row in known.entries}


transactional = pytest.mark.django_db(transaction=True)


@transactional
@pytest.mark.usefixtures("era")
def test_knowledge__later_writes__do_not_change_a_step(run: Person) -> None:
    put(run.actor, "notes", "global", "one")
    put(run.actor, "team", "thread::t1", "mine")
    first = commit(run)
    put(run.actor, "notes", "global", "two")
    entries.delete_entry(actor=run.actor, namespace="team", key="thread::t1")
    put(run.actor, "team", "global", "new")
    commit(run)
    then = {("notes", "global"): '"one"', ("team", "thread::t1"): '"mine"'}
    now = {("notes", "global"): '"two"', ("team", "global"): '"new"'}
    assert values(knowledge_at(run, step=2)) == values(knowledge_at(run, revision=first)) == then
    assert values(knowledge_at(run)) == values(knowledge_at(run, step=3)) == now
    assert values(knowledge_at(run, step=1)) == {}
    told = knowledge_at(run, step=2)
    assert (told.revision.number, told.steps, told.exact) == (2, 3, True)
    assert [(row.version, row.current, row.actor_name) for row in told.entries] == [
        (1, 2, "alice"),
        (1, 0, "alice"),
    ]


@transactional
def test_knowledge__scopes__are_those_of_the_run(run: Person) -> None:
    for key in (*KEYS, "thread::t0", "agent_type::other", "custom", "system"):
        put(run.actor, "notes", key, key)
    commit(run)
    known = knowledge_at(run)
    assert tuple(known.keys) == KEYS
    assert sorted(row.key for row in known.entries) == sorted(KEYS)
    assert Run.objects.get().parent_thread_id == "t0"


@transactional
def test_knowledge__state__is_the_snapshot_of_that_revision(run: Person) -> None:
    builders.make_state_key(run.actor, "plan")
    builders.commit(run.actor, "r1", {"plan": 1})
    builders.commit(run.actor, "r1", {"plan": 2})
    states = [knowledge_at(run, step=step).state for step in (2, 3)]
    assert [state.extensions["plan"] for state in states if state] == ["1", "2"]
    Revision.objects.filter(number=2).update(dropped=True)
    assert knowledge_at(run, step=2).state is None


@transactional
@pytest.mark.usefixtures("era")
def test_knowledge__write_committed_after_the_step__was_not_visible(run: Person) -> None:
    """By the time of its transaction it precedes the step, but it was not visible."""
    put(run.actor, "notes", "global", "old")
    begun, go_on = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with transaction.atomic():
                put(run.actor, "notes", "global", "new")
                begun.set()
                assert go_on.wait(PATIENCE)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(PATIENCE)
    commit(run)
    go_on.set()
    writer.join()
    commit(run)
    late = EntryRevision.objects.get(version=2)
    assert late.at < Revision.objects.get(thread__public_id="t1", number=2).at
    assert values(knowledge_at(run, step=2)) == {("notes", "global"): '"old"'}
    assert values(knowledge_at(run, step=3)) == {("notes", "global"): '"new"'}


@transactional
@pytest.mark.usefixtures("era")
def test_knowledge__write_committed_while_the_step_waited__was_visible(run: Person) -> None:
    """By the time of its transaction the step came first, but the write was visible to it."""
    put(run.actor, "notes", "global", "old")
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            (begun,) = cursor.fetchone()
        other = threading.Thread(target=_put_and_close, args=(run, "new"))
        other.start()
        other.join()
        commit(run, ("notes", "global", 2))
    assert EntryRevision.objects.get(version=2).at > begun
    assert values(knowledge_at(run)) == {("notes", "global"): '"new"'}
    assert RunRead.objects.get().held == 2


def _put_and_close(person: Person, value: Any) -> None:
    try:
        put(person.actor, "notes", "global", value)
    finally:
        connection.close()


@transactional
@pytest.mark.usefixtures("era")
def test_race__writers_and_steps__equals_what_the_step_itself_read(
    run: Person,
) -> None:
    """Each step records, in its own snapshot, the current version of each key (`held`). What is
    computed later from the transactions of the history must be the same."""
    places = [(namespace, key) for namespace in ("notes", "team") for key in KEYS[:3]]
    nothing = [(*place, 0) for place in places]

    def write(offset: int) -> None:
        for number in range(12):
            namespace, key = places[(number + offset) % len(places)]
            if number % 5 == 4:
                entries.delete_entry(actor=run.actor, namespace=namespace, key=key)
            else:
                put(run.actor, namespace, key, number)

    def step() -> None:
        for _ in range(12):
            commit(run, *nothing)

    commit(run, *nothing)
    race([partial(write, offset) for offset in range(4)] + [step, step])
    commit(run, *nothing)
    changed = set()
    for revision in Revision.objects.filter(label="step"):
        rows = RunRead.objects.filter(thread=revision.thread_id, revision=revision.number)
        held = {(row.namespace, row.key): row.held for row in rows}
        assert len(held) == len(places)
        found = {(row.namespace, row.key): row.version
                 for row in knowledge_at(run, revision=revision.number).entries}  # fmt: skip
        assert {place: version for place, version in held.items() if version} == found
        changed.add(tuple(sorted(found.items())))
    assert len(changed) > 1


@transactional
def test_knowledge__expired_at_the_step__was_absent(run: Person) -> None:
    put(run.actor, "notes", "global", 1, ttl_seconds=3600)
    commit(run)
    EntryRevision.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert values(knowledge_at(run)) == {}


@transactional
def test_knowledge__history_compacted__is_reported_as_lost(run: Person) -> None:
    make_namespace(run.actor, "short", history_keep_last=1)
    put(run.actor, "short", "global", 1)
    commit(run)
    put(run.actor, "short", "global", 2)
    commit(run)
    compact_histories()
    (lost,) = knowledge_at(run, step=2).entries
    assert (lost.lost, lost.value) == (True, None)
    assert values(knowledge_at(run, step=3)) == {("short", "global"): "2"}


@transactional
def test_knowledge__revision_without_a_snapshot__uses_the_time_and_reports_it(
    run: Person,
) -> None:
    put(run.actor, "notes", "global", 1)
    commit(run)
    put(run.actor, "notes", "global", 2)
    Revision.objects.update(seen=None)
    known = knowledge_at(run)
    assert not known.exact
    assert values(known) == {("notes", "global"): "1"}


@transactional
def test_knowledge__restricted_token__sees_permitted_namespaces_only(
    run: Person, mallory: Person
) -> None:
    for namespace in ("notes", "team"):
        put(run.actor, namespace, "global", namespace)
    commit(run, ("notes", "global", 1), ("team", "global", 1))
    _, narrow = make_token(run, namespaces=["team"])
    known = knowledge_at(narrow)
    assert [row.namespace for row in known.entries] == ["team"]
    assert [row.namespace for row in known.reads] == ["team"]
    _, elsewhere = make_token(run, thread_prefixes=["x"])
    for stranger in (mallory.actor, elsewhere):
        with pytest.raises(NotFound):
            knowledge_at(stranger)


def test_knowledge__unknown_step__is_not_found(run: Person) -> None:
    for asked, detail in (({"step": 9}, "run r1 has no step 9"),
                         ({"revision": 9}, "run r1 has no revision 9")):  # fmt: skip
        with pytest.raises(NotFound) as refused:
            knowledge_at(run, **asked)
        assert refused.value.detail == detail


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(newest=st.integers(1, 40), kept=st.sets(st.integers(1, 39)), seen=st.integers(0, 41))
def test_search__any_gaps__finds_the_newest_visible_version(
    run: Person, newest: int, kept: set[int], seen: int
) -> None:
    """Binary search against the definition; transaction n wrote version n."""
    Entry.objects.all().delete()
    put(run.actor, "notes", "global", "x")
    entry = Entry.objects.get()
    Entry.objects.update(version=newest)
    EntryRevision.objects.all().delete()
    versions = sorted({each for each in kept if each < newest} | {newest})
    EntryRevision.objects.bulk_create(
        EntryRevision(entry=entry, version=v, operation="put", value="1", schema_version=1, xid=v)
        for v in versions
    )
    revision = Revision.objects.get(thread__public_id="t1", number=1)
    revision.seen = f"{seen + 1}:{seen + 1}:"
    visible = max((v for v in versions if v <= seen), default=0)
    lost = visible < newest and visible + 1 not in versions
    found = knowledge_sql.read_visible(run.actor, revision, ["global"], limit=5)
    if visible or lost:
        assert [(row.version, row.lost) for row in found] == [(visible, lost)]
    else:
        assert found == []


# Reads ---------------------------------------------------------------------------------------


def test_reads__reported__contain_the_current_version_and_become_stale(run: Person) -> None:
    put(run.actor, "notes", "global", 1)
    put(run.actor, "notes", "global", 2)
    commit(run, ("notes", "global", 1), ("notes", "thread::t1", 0), ("team", "global", 0))
    put(run.actor, "team", "global", 1)
    stale = knowledge.reads_of_run(run.actor, Run.objects.get(), stale=True)
    assert [(r.namespace, r.key, r.version, r.held, r.current) for r in stale] == [  # type: ignore[attr-defined]
        ("team", "global", 0, 0, 1),
        ("notes", "global", 1, 2, 2),
    ]
    assert knowledge.reads_of_run(run.actor, Run.objects.get()).count() == 3


def test_readers__of_a_bad_value__are_found_and_filtered(run: Person, mallory: Person) -> None:
    make_thread(run.actor, "t2")
    make_run(run.actor, "t2", "r2")
    put(run.actor, "notes", "global", "bad")
    commit(run, ("notes", "global", 1))
    builders.commit(run.actor, "r2", reads=[Read("notes", "global", 1)])
    put(run.actor, "notes", "global", "good")
    commit(run, ("notes", "global", 2))
    found = knowledge.readers_of(run.actor, "notes", "global", 1)
    assert [(r.run.public_id, r.step, r.revision) for r in found] == [("r2", 2, 2), ("r1", 2, 2)]
    assert knowledge.readers_of(run.actor, "notes", "global").count() == 3
    _, narrow = make_token(run, thread_prefixes=["t2"])
    assert [r.run.public_id for r in knowledge.readers_of(narrow, "notes", "global", 1)] == ["r2"]
    _, blind = make_token(run, namespaces=["team"])
    for actor in (blind, mallory.actor):
        with pytest.raises(NotRegistered):
            knowledge.readers_of(actor, "notes", "global", 1)


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (("notes", "global", 1), Invalid),
        (("notes", "nothing", 1), Invalid),
        (("nowhere", "global", 0), NotRegistered),
    ],
)
def test_reads__of_impossible_versions__are_refused_and_nothing_is_stored(
    run: Person, read: tuple[str, str, int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        commit(run, ("team", "global", 0), read)
    assert not RunRead.objects.exists()
    assert Revision.objects.filter(thread__public_id="t1").count() == 1


def test_reads__inaccessible_namespace__appears_absent(run: Person) -> None:
    put(run.actor, "notes", "global", 1)
    _, narrow = make_token(run, namespaces=["team"])
    details = []
    for namespace in ("notes", "nowhere"):
        with pytest.raises(NotRegistered) as refused:
            builders.commit(narrow, "r1", reads=[Read(namespace, "global", 1)])
        details.append(refused.value.detail.replace(namespace, "X"))
    assert details[0] == details[1]
    assert not RunRead.objects.exists()


def test_reads__thread_deleted__are_deleted_with_it(run: Person) -> None:
    commit(run, ("notes", "global", 0))
    threads.delete_thread(actor=run.actor, thread_id="t1")
    assert not RunRead.objects.exists()


@transactional
def test_api__knowledge_reads_and_readers__are_paged(run: Person) -> None:
    for namespace in ("notes", "team"):
        for key in ("global", "thread::t1"):
            put(run.actor, namespace, key, {"in": namespace})
    reads = [{"namespace": n, "key": "global", "version": 1} for n in ("notes", "team")]
    sent = run.api("POST", "/runs/r1/commits", {"label": "x", "reads": reads})
    assert sent.status_code == 200
    put(run.actor, "team", "global", "newer")

    def pages(path: str) -> list[Any]:
        items, cursor = [], ""
        while True:
            answer = run.api("GET", f"{path}{cursor}")
            assert answer.status_code == 200, answer.content
            items += answer.json()["items"]
            if not answer.json()["next_cursor"]:
                return items
            cursor = f"&cursor={answer.json()['next_cursor']}"

    known = pages("/runs/r1/knowledge?step=2&limit=1")
    assert [(row["namespace"], row["key"]) for row in known] == [
        ("notes", "global"), ("notes", "thread::t1"), ("team", "global"), ("team", "thread::t1"),
    ]  # fmt: skip
    shown = run.api("GET", "/runs/r1/knowledge?revision=2").json()
    assert set(shown) == set(contract.Knowledge.__struct_fields__)
    assert set(shown["items"][0]) == set(contract.KnownEntry.__struct_fields__)
    assert set(shown["reads"][0]) == set(contract.RunRead.__struct_fields__)
    assert (shown["step"], shown["steps"], shown["exact"]) == (2, 2, True)
    assert shown["state"]["revision"] == 2
    assert [row["stale"] for row in shown["reads"]] == [False, True]
    stale = pages("/runs/r1/reads?stale=true&limit=1")
    assert [(row["namespace"], row["version"], row["current_version"]) for row in stale] == [
        ("team", 1, 2)
    ]
    readers = pages("/reads/team/global?version=1&limit=1")
    assert [(row["run_id"], row["step"]) for row in readers] == [("r1", 2)]
    assert pages("/reads/team/global?version=2") == []


@pytest.mark.parametrize(
    ("reads", "pointer", "status"),
    [
        ([{"namespace": "notes", "key": "global"}], "/reads/0/version", 422),
        ([{"namespace": "notes", "key": "global", "version": -1}], "/reads/0/version", 422),
        ([{"namespace": "notes", "key": "", "version": 0}], "/reads/0/key", 422),
        ([{"namespace": "no no", "key": "k", "version": 0}], "/reads/0", 422),
        ([{"namespace": "notes", "key": "k", "version": 0, "at": 1}], "/reads/0/at", 400),
        ([{"namespace": "notes", "key": "k", "version": 0}] * 201, "/reads", 422),
    ],
)
def test_api__invalid_reads__are_located(
    run: Person, reads: Any, pointer: str, status: int
) -> None:
    answer = run.api("POST", "/runs/r1/commits", {"reads": reads})
    assert answer.status_code == status
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]


@pytest.mark.parametrize(
    "query", ["step=0", "step=1&revision=1", "step=x", "cursor=abc", "when=1", "limit=0"]
)
def test_api__knowledge__invalid_queries_are_refused(run: Person, query: str) -> None:
    assert run.api("GET", f"/runs/r1/knowledge?{query}").status_code == 400


def test_shared__thread__contains_its_scopes_in_every_namespace_page_by_page(run: Person) -> None:
    for key in (*KEYS, "thread::t0", "agent_type::other", "custom"):
        put(run.actor, "notes", key, key)
    put(run.actor, "team", "global", 1)
    entries.delete_entry(actor=run.actor, namespace="notes", key="global")
    keys = knowledge.keys_of_thread(Thread.objects.get(public_id="t1"))
    assert tuple(keys) == KEYS
    seen, after = [], ("", "")
    while rows := knowledge_sql.read_shared(run.actor, keys, after=after, limit=2):
        seen += [(row.namespace, row.key) for row in rows]
        after = seen[-1]
    assert seen == [
        *(("notes", key) for key in sorted(KEYS) if key != "global"),
        ("team", "global"),
    ]


def test_shared__restricted_token_and_other_workspace__see_permitted_entries_only(
    run: Person, mallory: Person
) -> None:
    for name in ("notes", "team"):
        put(run.actor, name, "global", 1)
    narrow = replace(run.actor, namespaces=("team",))
    rows = knowledge_sql.read_shared(narrow, ["global"])
    assert [row.namespace for row in rows] == ["team"]
    assert knowledge_sql.read_shared(mallory.actor, ["global"]) == []
