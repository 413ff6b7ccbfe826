"""The lineage of threads and runs as a drawing."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from state_admin.models import Run, Thread
from state_admin.web import lineages
from tests.builders import Person, make_run, make_thread
from tests.web.test_threads import page


def nodes(shown: str) -> dict[str, str]:
    """What each node says, with its URL."""
    found = re.findall(r'<a href="([^"]+)" aria-label="([^"]+)"[^>]*data-row>', shown)
    return {html.unescape(said): html.unescape(url) for url, said in found}


def titles(shown: str) -> list[str]:
    return [said.partition(",")[0] for said in nodes(shown)]


@pytest.fixture
def family(admin: Client, alice: Person) -> None:
    """root → middle → (left, right); fork is a fork of middle, and has a fork of its own."""
    make_thread(alice.actor, "root")
    make_thread(alice.actor, "middle", parent_thread_id="root")
    for name in ("left", "right"):
        make_thread(alice.actor, name, parent_thread_id="middle")
    admin.post("/thread/fork/middle?at=0", {"fork": "fork"})
    admin.post("/thread/fork/fork?at=0", {"fork": "fork-2"})
    make_thread(alice.actor, "alone")


@pytest.mark.usefixtures("family")
@pytest.mark.parametrize("name", ["root", "middle", "right", "fork", "fork-2"])
def test_lineage__of_any_thread__is_the_whole_tree(name: str, admin: Client, alice: Person) -> None:
    make_run(alice.actor, "left", "r1")
    shown = page(admin, f"/threads/{name}?tab=lineage")
    assert nodes(shown) == {
        "root, idle": "/threads/root?tab=lineage",
        "middle, idle · child, from root": "/threads/middle?tab=lineage",
        "left, running · child, from middle": "/threads/left?tab=lineage",
        "right, idle · child, from middle": "/threads/right?tab=lineage",
        "fork, idle · fork at revision 0, from middle": "/threads/fork?tab=lineage",
        "fork-2, idle · fork at revision 0, from fork": "/threads/fork-2?tab=lineage",
    }
    current = re.findall(r'aria-label="([\w-]+),[^>]*id="lineage-current" aria-current', shown)
    assert current == [name]
    assert shown.count('data-kind="fork"') == 2
    assert "not shown" not in shown


@pytest.mark.usefixtures("family")
def test_lineage__no_relatives__says_so(admin: Client, alice: Person) -> None:
    assert "no parent, no children and no forks" in page(admin, "/threads/alone?tab=lineage")
    make_run(alice.actor, "alone", "r1")
    assert "has not delegated to one" in page(admin, "/run/lineage/r1")


def test_lineage__of_a_run__has_the_delegated_runs_and_their_status(
    admin: Client, alice: Person
) -> None:
    for name, parent in (("r1", ""), ("r2", "r1"), ("r3", "r1"), ("r4", "r3")):
        make_thread(alice.actor, f"t-{name}")
        make_run(alice.actor, f"t-{name}", name, parent_run_id=parent, agent_id="planner")
    ended = {"status": "done", "termination_reason": {"type": "error"}}
    Run.objects.filter(public_id="r3").update(**ended)
    for name in ("r1", "r2", "r4"):
        shown = page(admin, f"/run/lineage/{name}")
        assert nodes(shown) == {
            "r1, running · planner": "/runs/r1",
            "r2, running · planner, from r1": "/runs/r2",
            "r3, error · planner, from r1": "/runs/r3",
            "r4, running · planner, from r3": "/runs/r4",
        }
    assert 'data-state="failed"' in shown
    assert 'href="/run/lineage/r1"' in page(admin, "/runs/r1")


def test_lineage__large__is_bounded_and_contains_the_path_to_the_current_node(
    admin: Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    count_queries: Callable[[Client, str], int],
) -> None:
    root = make_thread(alice.actor, "root")
    assert root
    parent = Thread.objects.get(public_id="root")

    def children(prefix: str, of: Thread, count: int) -> None:
        Thread.objects.bulk_create(
            Thread(workspace=of.workspace, parent=of, public_id=f"{prefix}{number:04}")
            for number in range(count)
        )

    children("a", parent, 3)
    few = count_queries(admin, "/threads/a0001?tab=lineage")
    children("b", parent, 400)
    last = Thread.objects.get(public_id="b0399")
    children("c", last, 300)
    of_root = page(admin, "/threads/root?tab=lineage")
    assert len(nodes(of_root)) == lineages.MOST
    assert "504 more threads are not shown" in of_root
    here = page(admin, "/threads/b0399?tab=lineage")
    assert len(nodes(here)) == lineages.MOST
    assert {"root", "b0399", "c0000"} <= set(titles(here))
    assert len(here) < 300 * 1024
    deep = page(admin, "/threads/c0299?tab=lineage")
    assert {"root", "b0399", "c0299"} <= set(titles(deep))
    assert count_queries(admin, "/threads/c0299?tab=lineage") <= few + 2
    monkeypatch.setattr(lineages, "COUNTED", 300)
    assert "101+ more threads" in page(admin, "/threads/root?tab=lineage")


def test_lineage__circles_that_clients_declare__end(admin: Client, alice: Person) -> None:
    for name, parent in (("a", "c"), ("b", "a"), ("c", "b"), ("d", "c")):
        make_thread(alice.actor, f"t-{name}")
        make_run(alice.actor, f"t-{name}", name, parent_run_id=parent)
    for name in "abcd":
        assert sorted(titles(page(admin, f"/run/lineage/{name}"))) == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("family")
def test_lineage__same_ids_in_another_workspace__are_not_shown(
    admin: Client, stranger: Client, mallory: Person, alice: Person
) -> None:
    make_thread(mallory.actor, "fork")
    make_thread(mallory.actor, "secret", parent_thread_id="fork")
    stranger.post("/thread/fork/fork?at=0", {"fork": "hidden"})
    assert "fork-2" in titles(page(admin, "/threads/fork?tab=lineage"))
    assert not {"secret", "hidden"} & set(titles(page(admin, "/threads/fork?tab=lineage")))
    assert titles(page(stranger, "/threads/fork?tab=lineage")) == ["fork", "secret", "hidden"]
    assert stranger.get("/threads/root?tab=lineage").status_code == 404
    for person, names in ((alice, ("r1", "r2")), (mallory, ("r1", "r3"))):
        for name in names:
            make_thread(person.actor, f"t-{name}")
            make_run(person.actor, f"t-{name}", name, parent_run_id="r1" if name != "r1" else "")
    assert titles(page(admin, "/run/lineage/r1")) == ["r1", "r2"]
    assert titles(page(stranger, "/run/lineage/r1")) == ["r1", "r3"]
    assert stranger.get("/run/lineage/r2").status_code == 404
