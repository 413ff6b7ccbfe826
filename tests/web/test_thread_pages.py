"""Every page of threads, runs, compactions, tokens: permissions, number of queries, hidden data."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.builders import Person
from tests.web.conftest import CheckQueries
from tests.web.stories import Story, create_story

pytestmark = pytest.mark.django_db

JOB = "{job}"
PAGES = {
    "threads": "/threads",
    "threads, filtered": "/threads?prefix=t&resource=user-1&agent=helper-7&status=waiting",
    "threads, stuck": "/threads?status=stuck",
    "threads, by text": "/threads?text=refund",
    "threads, by tokens": "/threads?sort=tokens",
    "threads, by activity": "/threads?sort=activity",
    "threads, by period": "/threads?since=week&until=2030-01-31T18:30&sort=oldest",
    "threads as JSON": "/threads.json",
    "thread": "/threads/t1",
    "thread, around a message": "/threads/t1?message=5",
    "thread, context": "/threads/t1?tab=context",
    "thread, state": "/threads/t1?tab=state",
    "thread, state at": "/threads/t1?tab=state&at=3",
    "thread, difference": "/threads/t1?tab=state&at=3&from=2&to=5",
    "thread, compactions": "/threads/t1?tab=compactions",
    "thread, runs": "/threads/t1?tab=runs",
    "thread, lineage": "/threads/t1?tab=lineage",
    "run, lineage": "/run/lineage/r1",
    "thread, delete": "/thread/delete/t1",
    "thread, restore": "/thread/restore/t1?at=3",
    "thread, fork": "/thread/fork/t1?at=3",
    "message": "/thread/message/3/t1",
    "message, as sent": "/thread/sent/3/t1",
    "message, part": "/thread/piece/3/call.0/t1",
    "state value, part": "/thread/value/3/plan/t1",
    "runs": "/runs",
    "runs, filtered": "/runs?status=waiting&agent=helper-7",
    "runs, by period": "/runs?since=week&age=10m&sort=oldest",
    "runs as JSON": "/runs.json",
    "run": "/runs/r1",
    "run, cancel": "/run/cancel/r1",
    "compactions": "/compactions",
    "compactions as JSON": "/compactions.json",
    "compaction": f"/compactions/{JOB}",
    "compaction, undo": f"/compactions/{JOB}/undo",
    "policies": "/policies",
    "policy of the workspace": "/policy",
    "policy of an agent": "/policy?scope=agent&name=helper-7",
    "policy of a thread": "/policy?scope=thread&name=t1",
    "state keys": "/state-keys",
    "plugin, uninstall": "/plugins/kit/uninstall",
    "plugin, install": "/plugins/+install",
    "tokens": "/tokens",
}
EDITORS_ONLY = {"thread, restore", "thread, fork", "run, cancel", "compaction, undo"}
ADMINS_ONLY = {"thread, delete", "tokens", "plugin, uninstall", "plugin, install"}
# Lists are open to every member, each with its own rows.
LISTS = {
    "threads", "threads, filtered", "threads, stuck", "threads, by text", "threads, by tokens",
    "threads, by activity", "threads as JSON", "runs", "runs, filtered", "threads, by period", "runs, by period",
    "runs as JSON", "compactions", "compactions as JSON", "policies", "policy of the workspace",
    "policy of an agent", "state keys", "tokens", "plugin, install",
}  # fmt: skip


@pytest.fixture(scope="module")
def story(one_alice: Person) -> Story:
    return create_story(one_alice.actor)


@pytest.fixture
def alice(one_alice: Person, db: None) -> Person:
    return one_alice


def address(name: str, story: Story) -> str:
    return PAGES[name].replace(JOB, story.compaction.public_id)


@pytest.mark.parametrize("name", PAGES)
def test_page__admin__uses_a_bounded_number_of_queries(
    name: str, admin: Client, story: Story, check_queries: CheckQueries
) -> None:
    check_queries(name, admin, address(name, story))


@pytest.mark.parametrize("name", PAGES)
def test_page__anonymous__redirects_to_login(name: str, client: Client, story: Story) -> None:
    response = client.get(address(name, story))
    assert response.status_code == 302
    assert response["Location"].startswith("/login?next=/")


@pytest.mark.parametrize("name", PAGES)
def test_page__viewer__can_read_but_not_act(name: str, viewer: Client, story: Story) -> None:
    response = viewer.get(address(name, story))
    if name in EDITORS_ONLY | ADMINS_ONLY:
        assert response.status_code == 403
        return
    assert response.status_code == 200
    page = response.content.decode()
    for act in (
        "Restore…",
        "Fork…",
        "Cancel…",
        "Cancel run…",
        "Undo…",
        "Delete…",
        "Compact now",
        "Resume with",
        "Retry",
    ):
        assert act not in page


@pytest.mark.parametrize("name", sorted(PAGES.keys() - LISTS))
def test_page__other_workspace__is_404(name: str, stranger: Client, story: Story) -> None:
    response = stranger.get(address(name, story))
    assert response.status_code == 404
    assert b">Refund of order" not in response.content


@pytest.mark.parametrize("name", sorted(LISTS - {"tokens"}))
def test_list__other_workspace__is_empty(name: str, stranger: Client, story: Story) -> None:
    page = stranger.get(address(name, story)).content.decode()
    rows = (
        ">Refund of order",
        "/runs/r1",
        ">helper-7</td>",
        story.compaction.public_id[-8:],
        ">plan<",
    )
    for ours in rows:
        assert ours not in page


POSTS = {
    "/thread/mark/t1?at=3": "editor",
    "/thread/restore/t1?at=3": "editor",
    "/thread/compact/t1": "editor",
    "/thread/delete/t1": "admin",
    "/run/cancel/r1": "editor",
    "/run/fail/r1": "editor",
    "/run/resume/r1": "editor",
    "/run/renew/r1": "editor",
    "/ticket/tk1": "editor",
    f"/compactions/{JOB}/undo": "editor",
    f"/compactions/{JOB}/cancel": "editor",
    f"/compactions/{JOB}/retry": "editor",
    "/tokens/+new": "admin",
    "/tokens/1/revoke": "admin",
}


@pytest.mark.parametrize("path", POSTS)
def test_post__lower_role__is_refused(
    path: str, viewer: Client, editor: Client, story: Story
) -> None:
    path_now = path.replace(JOB, story.compaction.public_id)
    assert viewer.post(path_now).status_code == 403
    if POSTS[path] == "admin":
        assert editor.post(path_now).status_code == 403


@pytest.mark.parametrize("path", POSTS)
def test_post__non_member__is_404(path: str, stranger: Client, story: Story) -> None:
    if path == "/tokens/+new":  # creates a token of its own
        pytest.skip("the list of tokens is everybody's own")
    path = path.replace(JOB, story.compaction.public_id)
    response = stranger.post(path, {"action": "resume", "payload": '{"approved": true}'})
    assert response.status_code == 404


@pytest.mark.parametrize("path", POSTS)
def test_post__anonymous__redirects_to_login(path: str, client: Client, story: Story) -> None:
    assert client.post(path.replace(JOB, story.compaction.public_id)).status_code == 302
