"""Threads and their messages."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import IntegrityError, connection, transaction

from state_admin.contract import threads as contract
from state_admin.domain.access import Role
from state_admin.models import (
    AuditRow,
    Change,
    Compaction,
    Entry,
    Message,
    Revision,
    Run,
    StateValue,
    Thread,
    hot,
)
from state_admin.services import (
    compaction_jobs,
    compactions,
    erasures,
    forks,
    runs,
    state_removals,
    threads,
)
from state_admin.services.entry_views import read_entry
from state_admin.services.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)
from tests import builders
from tests.builders import Person, append, call, make_namespace, make_thread, make_token, put, raw
from tests.services.canary import tables_with
from tests.services.racing import overlap, race, split

USER = {"role": "user", "content": "hi"}


def parent(person: Person, thread_id: str, above: str | None) -> Thread:
    return threads.change_thread(
        actor=person.actor, thread_id=thread_id, parent_thread_id=above, reparent=True
    )


# Lineage -------------------------------------------------------------------------------------


def test_create__same_id_and_content__is_the_stored_thread(alice: Person) -> None:
    first, created = threads.create_thread(
        actor=alice.actor, thread_id="t1", title="a", metadata=raw({"x": 1, "y": [2]})
    )
    again, anew = threads.create_thread(
        actor=alice.actor, thread_id="t1", title="a", metadata=raw({"y": [2], "x": 1})
    )
    assert (created, anew, first) == (True, False, again)
    with pytest.raises(Conflict):
        make_thread(alice.actor, "t1", title="b")
    assert Change.objects.filter(kind="thread.create").count() == 1


@pytest.mark.parametrize("bad", ["", "x" * 129, "é" * 65, "a\nb", "a\0"])
def test_create__invalid_id__is_refused(alice: Person, bad: str) -> None:
    with pytest.raises(Invalid):
        make_thread(alice.actor, bad)


def test_lineage__self_missing_and_cycles__are_refused_with_the_exact_texts(alice: Person) -> None:
    told = []
    for refused in (
        lambda: make_thread(alice.actor, "t1", parent_thread_id="t1"),
        lambda: make_thread(alice.actor, "t1", parent_thread_id="nope"),
    ):
        with pytest.raises(Invalid) as caught:
            refused()
        told.append(caught.value.detail)
    for number in range(4):
        make_thread(
            alice.actor, f"t{number}", parent_thread_id=f"t{number - 1}" if number else None
        )
    for above in ("t0", "t1", "t3"):
        with pytest.raises(Invalid) as caught:
            parent(alice, "t0", above)
        told.append(caught.value.detail)
    assert told == [
        "thread 't1' cannot parent itself",
        "parent thread not found: nope",
        "thread 't0' cannot parent itself",
        "thread hierarchy cycle detected at 't0'",
        "thread hierarchy cycle detected at 't0'",
    ]
    assert parent(alice, "t3", None).parent is None


def test_lineage__parent_of_another_workspace__is_not_found(alice: Person, mallory: Person) -> None:
    make_thread(mallory.actor, "theirs")
    with pytest.raises(Invalid) as refused:
        make_thread(alice.actor, "t1", parent_thread_id="theirs")
    assert refused.value.detail == "parent thread not found: theirs"


@pytest.mark.django_db(transaction=True)
def test_race__two_reparents_that_form_a_cycle__only_one_succeeds(alice: Person) -> None:
    for _ in range(3):
        for name in ("a", "b"):
            threads.create_thread(actor=alice.actor, thread_id=name)
            parent(alice, name, None)
        won, lost = split(race([partial(parent, alice, *pair) for pair in ("ab", "ba")]))
        assert (len(won), len(lost)) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_race__creators_of_one_id__one_thread_is_created(alice: Person) -> None:
    works = [partial(threads.create_thread, actor=alice.actor, thread_id="t1", title="a")] * 8
    won, lost = split(race(works))
    assert lost == []
    assert sorted(created for _, created in won) == [False] * 7 + [True]


# Deletion ------------------------------------------------------------------------------------


@pytest.fixture
def family(alice: Person) -> Person:
    """root > child > grandchild, and an unrelated thread; root has one of everything."""
    a = alice.actor
    builders.make_namespace(a, "notes")
    builders.make_state_key(a, "plan")
    make_thread(a, "root")
    make_thread(a, "child", parent_thread_id="root")
    make_thread(a, "grandchild", parent_thread_id="child")
    make_thread(a, "stranger")
    for thread_id in ("root", "grandchild", "stranger"):
        builders.make_run(a, thread_id, f"run-{thread_id}")
        builders.commit(a, f"run-{thread_id}", {"plan": 1}, messages=[USER])
        builders.put(a, "notes", f"thread::{thread_id}", 1)
    return alice


def delete(person: Person, thread_id: str = "root", **options: Any) -> contract.ThreadContents:
    return threads.delete_thread(actor=person.actor, thread_id=thread_id, **options)


def thread_ids() -> list[str]:
    return list(Thread.objects.order_by("public_id").values_list("public_id", flat=True))


def test_delete__detach__makes_children_roots_and_keeps_others(family: Person) -> None:
    report = delete(family, children="detach")
    assert report == contract.ThreadContents(
        threads=1, messages=1, runs=1, state_values=2, entries=1
    )
    assert thread_ids() == ["child", "grandchild", "stranger"]
    assert Thread.objects.get(public_id="child").parent is None
    live = Entry.objects.live().order_by("key").values_list("key", flat=True)
    assert list(live) == ["thread::grandchild", "thread::stranger"]
    assert {row.public_id for row in Run.objects.all()} == {"run-grandchild", "run-stranger"}


def test_delete__reject__requires_no_children(family: Person) -> None:
    with pytest.raises(Conflict) as refused:
        delete(family, children="reject")
    assert refused.value.detail == ("thread 'root' has child threads; choose 'detach' or 'cascade'")
    delete(family, "stranger", children="reject")
    assert thread_ids() == ["child", "grandchild", "root"]


def test_delete__cascade__deletes_all_descendants(family: Person) -> None:
    dry = delete(family, children="cascade", dry_run=True)
    assert len(thread_ids()) == 4
    assert delete(family, children="cascade") == dry
    assert dry == contract.ThreadContents(threads=3, messages=2, runs=2, state_values=4, entries=2)
    assert thread_ids() == ["stranger"]
    for model in (Message, Run, Revision):
        assert model.objects.count() == (2 if model is Revision else 1)
    assert StateValue.objects.count() == 2
    with pytest.raises(NotFound):
        delete(family)


def test_parent__outside_the_tokens_prefixes__appears_absent(family: Person) -> None:
    secret, _ = make_token(family, Role.ADMIN, thread_prefixes=["child"])
    ask = partial(call, secret)
    shown = ask("GET", "/threads/child")
    assert (shown.status_code, shown.json()["parent_thread_id"]) == (200, None)
    assert ask("GET", "/threads/child/lineage").json()["ancestors"] == []
    assert ask("PATCH", "/threads/child", {"title": "x"}).json()["parent_thread_id"] is None
    assert {row["parent_thread_id"] for row in ask("GET", "/threads").json()["items"]} == {None}
    assert ask("GET", "/threads?parent_thread_id=root").json()["items"] == []
    started = ask("POST", "/threads/child/runs", {"id": "below", "agent_id": "a"}).json()
    assert started["parent_thread_id"] is None
    assert family.api("GET", "/runs/below").json()["parent_thread_id"] == "root"
    assert family.api("GET", "/threads/child").json()["parent_thread_id"] == "root"


def test_delete__child_outside_the_tokens_prefixes__is_forbidden(family: Person) -> None:
    _, narrow = make_token(family, Role.ADMIN, thread_prefixes=["root"])
    with pytest.raises(Forbidden):
        threads.delete_thread(actor=narrow, thread_id="root", children="cascade")
    assert len(thread_ids()) == 4


@pytest.mark.parametrize("how", [{}, {"dry_run": True}, {"children": "cascade"}])
def test_delete__entries_outside_the_tokens_namespaces__is_forbidden(
    family: Person, how: Any
) -> None:
    """A thread that is created again with the id must not inherit them."""
    make_namespace(family.actor, "secrets", default={})
    make_namespace(family.actor, "open", default={})
    _, narrow = make_token(family, Role.ADMIN, namespaces=["open"])
    under = "child" if "children" in how else "root"
    put(family.actor, "open", f"thread::{under}", 1)
    put(family.actor, "secrets", f"thread::{under}", {"owner": "old"})
    with pytest.raises(Forbidden, match="outside this token's namespaces"):
        threads.delete_thread(actor=narrow, thread_id="root", **how)
    assert len(thread_ids()) == 4
    assert read_entry(actor=family.actor, namespace="open", key=f"thread::{under}").exists


def test_delete__all_entries_within_the_tokens_namespaces__deletes_them(family: Person) -> None:
    make_namespace(family.actor, "open", default={})
    _, narrow = make_token(family, Role.ADMIN, namespaces=["open", "notes"])
    put(family.actor, "open", "thread::stranger", 1)
    put(family.actor, "open", "thread::root", 1)
    assert threads.delete_thread(actor=narrow, thread_id="stranger").entries == 2
    assert read_entry(actor=family.actor, namespace="open", key="thread::root").exists


def test_delete__then_created_again__is_empty(family: Person) -> None:
    delete(family)
    assert make_thread(family.actor, "root").revision == 0


# Trees and pages -----------------------------------------------------------------------------


def statements(work: Any) -> int:
    """The number of SQL statements, hand-written or Django's."""
    seen: list[Any] = []
    by_hand = hot.fetch_all
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hot, "fetch_all", lambda *a: seen.append(a) or by_hand(*a))
        with connection.execute_wrapper(lambda do, *a: seen.append(a) or do(*a)):
            work()
    return len(seen)


def plant(person: Person, root: str, deep: int, wide: int) -> None:
    """A chain of `deep` threads below `root`, and `wide` children of the last, by SQL, because the
    builder would take a minute."""
    make_thread(person.actor, root)
    for number in range(deep):
        above = f"{root}-d{number - 1}" if number else root
        make_thread(person.actor, f"{root}-d{number}", parent_thread_id=above)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO threads (workspace_id, public_id, resource_id, parent_id, title, metadata,"
            " created_from, revision, message_count, context_tokens)"
            " SELECT workspace_id, public_id || '-w' || n, '', id, '', '{}', '{}', 0, 0, 0"
            " FROM threads, generate_series(1, %s) n WHERE public_id = %s",
            [wide, f"{root}-d{deep - 1}"],
        )


def test_delete__deep_and_wide_tree__uses_as_many_statements_as_a_small_one(alice: Person) -> None:
    for root, deep, wide in (("small", 2, 1), ("large", 30, 970)):
        plant(alice, root, deep, wide)
    small = statements(lambda: delete(alice, "small", children="cascade"))
    report: list[contract.ThreadContents] = []
    large = statements(lambda: report.append(delete(alice, "large", children="cascade")))
    assert report[0].threads == 1001
    # Audit rows and changes are inserted in batches.
    assert large <= small + 30
    assert thread_ids() == []
    assert AuditRow.objects.filter(action="thread.delete").count() == 1001 + 4


def test_lineage__long_chain__refuses_a_cycle_and_returns_all_ancestors(alice: Person) -> None:
    plant(alice, "root", 40, 1)
    last = "root-d39-w1"
    lineage = threads.read_lineage(actor=alice.actor, thread_id=last)
    assert len(lineage.ancestors) == 41
    assert (lineage.ancestors[0], lineage.ancestors[-1]) == ("root-d39", "root")
    with pytest.raises(Invalid) as refused:
        parent(alice, "root", last)
    assert refused.value.detail == "thread hierarchy cycle detected at 'root'"


def test_ancestor__missing__is_not_included(family: Person) -> None:
    """The reference implementation checks it at each save; here the database prevents it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(IntegrityError):
            cursor.execute("DELETE FROM threads WHERE public_id = 'child'")
        transaction.set_rollback(True)


def test_create__again_after_its_parent_was_deleted__returns_the_stored_thread(
    alice: Person,
) -> None:
    make_thread(alice.actor, "above")
    body = {"id": "t1", "parent_thread_id": "above"}
    assert alice.api("POST", "/threads", body).status_code == 201
    delete(alice, "above", children="detach")
    again = alice.api("POST", "/threads", body)
    assert (again.status_code, again.json()["parent_thread_id"]) == (200, None)


def test_delete__any_content__remains_only_in_the_history_of_entries(alice: Person) -> None:
    """Deleted entries keep their history; nothing else of a thread remains."""
    a, secret = alice.actor, "canary-7fd1"
    builders.make_namespace(a, "notes")
    builders.make_state_key(a, "plan")
    make_thread(a, "t1", title=secret, resource_id=secret, metadata=raw({"x": secret}))
    builders.make_run(a, "t1", "r1", metadata=raw({"x": secret}), agent_id=secret)
    ticket = {"ticket_id": "k1", "tool_call_id": "c", "tool_name": "f", "arguments": {"x": secret}}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    builders.commit(
        a, "r1", {"plan": secret}, messages=[{**USER, "content": secret}], label=secret,
        run=builders.runs.RunChange(status="waiting", waiting=waiting),
    )  # fmt: skip
    log = builders.conversation(8)
    log[1]["content"] += f" and always remember {secret}"
    append(a, "t1", *log)
    job = compactions.request_compaction(actor=a, thread_id="t1").public_id
    assert compaction_jobs.run_compaction(job) == "done"
    builders.put(a, "notes", "thread::t1", secret)
    held = tables_with(secret)
    assert held >= {"threads", "runs", "tickets", "messages", "state_values", "revisions"}
    delete(alice, "t1")
    assert tables_with(secret) == {"entry_revisions"}
    assert not Compaction.objects.exists()


def test_read__thread_deleted_meanwhile__can_still_be_shown(family: Person) -> None:
    a = family.actor
    make_thread(a, "leaf", parent_thread_id="root")
    builders.make_run(a, "leaf", "run-leaf")
    found = [
        threads.read_thread(a, "leaf"),
        make_thread(a, "leaf", parent_thread_id="root"),
        threads.change_thread(actor=a, thread_id="leaf", title=""),
    ]
    delete(family, children="cascade")
    for thread in found:
        shown = contract.Thread.of(thread, a)
        assert (shown.parent_thread_id, shown.active_run_id) == ("root", "run-leaf")


@pytest.mark.django_db(transaction=True)
def test_race__delete_commits_and_children__is_never_an_error(family: Person) -> None:
    a = family.actor
    works: list[Any] = [
        partial(builders.commit, a, "run-grandchild", {"plan": n}) for n in range(5)
    ]
    works += [partial(make_thread, a, f"new-{n}", parent_thread_id="child") for n in range(5)]
    works += [partial(delete, family, children="cascade")]
    _, lost = split(race(works))
    for problem in lost:
        assert problem.detail in ("run not found: run-grandchild", "parent thread not found: child")
    assert thread_ids() == ["stranger"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["detach", "cascade", "erase", "clear"])
def test_race__work_on_a_child_and_locks_of_its_parent__both_succeed(
    family: Person, verb: str
) -> None:
    """At commit PostgreSQL checks the parent of a thread that was changed twice."""
    a = family.actor
    parent(family, "grandchild", "root")
    Thread.objects.update(resource_id="x")
    verbs = {
        "detach": partial(delete, family),
        "cascade": partial(delete, family, children="cascade"),
        "erase": partial(erasures.erase, actor=a, resource_id="x", reason="asked"),
        "clear": partial(state_removals.unregister_state_key, actor=a, name="plan", clear=True),
    }
    overlap(partial(runs.cancel_run, actor=a, run_id="run-grandchild"), verbs[verb])
    rest = {"detach": ["child", "grandchild", "stranger"], "cascade": ["stranger"], "erase": []}
    assert thread_ids() == rest.get(verb, ["child", "grandchild", "root", "stranger"])
    assert not StateValue.objects.current().filter(key="plan", thread__public_id="root").exists()


@pytest.mark.django_db(transaction=True)
def test_race__fork_and_child_of_one_id__one_is_refused(family: Person) -> None:
    child = partial(make_thread, family.actor, "same", parent_thread_id="root")
    fork = partial(forks.fork_thread, actor=family.actor, thread_id="root", fork_id="same")
    with pytest.raises(Conflict, match="already exists"):
        overlap(child, fork)


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("/threads?resource_id=x", "/threads?resource_id=y"),
        ("/threads?resource_id=x", "/threads"),
        ("/threads", "/threads?root=true"),
        ("/threads?prefix=t", "/threads?prefix=u"),
        ("/threads", "/threads?forked_from=t1"),
        ("/threads/t1/messages", "/threads/t1/messages?order=desc"),
        ("/threads/t1/messages", "/threads/t1/messages?visibility=all"),
        ("/threads/t1/messages", "/threads/t2/messages"),
        ("/threads/t1/snapshots", "/threads/t2/snapshots"),
        ("/threads/t1/messages", "/threads/t1/snapshots"),
    ],
)
def test_cursor__with_other_filters__is_refused(alice: Person, path: str, other: str) -> None:
    for name in ("t1", "t2"):
        make_thread(alice.actor, name, resource_id="x")
        append(alice.actor, name, USER, USER)
        builders.make_run(alice.actor, name, f"run-{name}")
        builders.commit(alice.actor, f"run-{name}", label="x")

    def get(url: str, **query: str) -> Any:
        mark = "&" if "?" in url else "?"
        return alice.api("GET", f"{url}{mark}limit=1&" + urlencode(query))

    cursor = get(path).json()["next_cursor"]
    assert get(path, cursor=cursor).status_code == 200
    answer = get(other, cursor=cursor)
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "cursor does not match the filters",
    )
    for garbage in ("x", "17", cursor[:-3], "e30", "\u00e9", "a" * 500):
        answer = get(path, cursor=garbage)
        assert answer.status_code == 400
        assert answer.json()["detail"] == "cursor must be a value that this API returned"
