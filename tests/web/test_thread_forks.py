"""Forking from the State tab, and the lineage that pages show."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from state_admin.models import AuditRow, Thread
from state_admin.services.snapshots import read_snapshot
from tests.builders import Person, make_thread
from tests.web.stories import create_story


def text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, response.content.decode()[-2000:]
    return response.content.decode()


def test_fork__confirmed__is_a_new_thread(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert 'href="/thread/fork/t1?at=3"' in text(admin, "/threads/t1?tab=state&at=3")
    asked = text(admin, "/thread/fork/t1?at=3")
    count = Thread.objects.get(public_id="t1").revisions.get(number=3).message_count
    assert f"first {count} messages" in asked
    found = re.search(r'name="fork" value="([^"]+)"', asked)
    assert found is not None
    for _ in range(2):  # sent twice, created once
        sent = {"fork": found[1], "reason": "what if", "title": "What if"}
        answer = admin.post("/thread/fork/t1?at=3", sent)
        assert answer["Location"] == f"/threads/{found[1]}?tab=state"
    assert Thread.objects.count() == 3
    now = read_snapshot(actor=alice.actor, thread_id=found[1]).parsed()
    assert now["plan"] == {"count": 1}
    assert "__runtime.run_lifecycle" not in now
    assert Thread.objects.get(public_id=found[1]).title == "What if"
    title = Thread.objects.get(public_id="t1").title
    assert f'name="title" maxlength="512" value="Fork of {title}"' in asked
    assert AuditRow.objects.filter(action="thread.fork", reason="what if").count() == 1
    page = text(admin, f"/threads/{found[1]}")
    assert 'href="/threads/t1?tab=state&amp;at=3">t1</a>' in page
    assert f'href="/threads/{found[1]}"' in text(admin, "/threads/t1")


@pytest.mark.parametrize(("title", "proposed"), [("", ""), ("x" * 512, "Fork of " + "x" * 504)])
def test_fork__title_of_the_source__proposes_one_that_fits(
    title: str, proposed: str, admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "source", title=title)
    asked = text(admin, "/thread/fork/source?at=0")
    found = re.search(r'name="title" maxlength="512"(?: value="([^"]*)")?', asked)
    assert found is not None
    assert (found[1] or "") == proposed
    admin.post("/thread/fork/source?at=0", {"fork": "copy", "title": proposed})
    assert Thread.objects.get(public_id="copy").title == proposed


def test_fork__missing_revision__is_refused(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert admin.get("/thread/fork/t1?at=99").status_code == 404
    assert admin.get("/thread/fork/t1").status_code == 400
    Thread.objects.get(public_id="t1").revisions.filter(number=2).update(dropped=True)
    assert admin.get("/thread/fork/t1?at=2").status_code == 410
    assert admin.post("/thread/fork/t1?at=2").status_code == 410
    assert Thread.objects.count() == 2


def test_fork__source_deleted__page_still_shows_the_origin(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "source")
    admin.post("/thread/fork/source?at=0", {"fork": "copy"})
    admin.post("/thread/delete/source", {"children": "reject"})
    assert "forked from" in text(admin, "/threads/copy")
    assert admin.get("/threads/source?tab=state&at=0").status_code == 404


def test_lineage__tree__links_from_the_root_to_children_and_forks(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "root")
    make_thread(alice.actor, "middle", parent_thread_id="root")
    make_thread(alice.actor, "here", parent_thread_id="middle")
    make_thread(alice.actor, "below", parent_thread_id="here")
    make_thread(alice.actor, "alone")
    admin.post("/thread/fork/here?at=0", {"fork": "copy"})
    shown = text(admin, "/threads/here")
    tree = shown[
        shown.index('aria-label="Lineage"') : shown.index("</nav>", shown.index("Lineage"))
    ]
    places = [tree.index(said) for said in (">root<", ">middle<", "here", ">below<", ">copy<")]
    assert places == sorted(places)
    assert tree.count("<ul>") == tree.count("</ul>") == 4
    assert 'aria-label="Lineage"' not in text(admin, "/threads/alone")
