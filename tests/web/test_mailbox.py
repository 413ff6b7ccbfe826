"""The mailbox page: queued and dead dispatches, and the actions on them."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from state_admin.models import AuditRow, Dispatch
from tests.builders import Person, make_run, make_thread
from tests.services.test_dead_letters import make_dead_letter
from tests.services.test_dispatches import enqueue, status, take
from tests.web.conftest import CheckQueries
from tests.web.stories import HOSTILE
from tests.web.test_threads import htmx, page


@pytest.fixture
def box(alice: Person) -> dict[str, str]:
    """A dead letter and a claimed dispatch on t1, a queued one on t2, by status."""
    make_thread(alice.actor, "t1", title=HOSTILE[0])
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    ids = {
        "DeadLetter": make_dead_letter(alice, run_id="r1"),
        "Claimed": enqueue(alice, HOSTILE[0]),
    }
    take(alice)
    return ids | {"Queued": enqueue(alice, thread="t2", agent_id="writer")}


PAGES = {
    "mailbox": "/mailbox",
    "mailbox, filtered": "/mailbox?status=DeadLetter&thread=t1&agent=planner",
    "mailbox as JSON": "/mailbox.json",
    "mailbox, replay": "/mailbox/replay",
    "mailbox, clear": "/mailbox/clear?thread=t1",
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("box")
def test_mailbox__each_page__uses_a_bounded_number_of_queries(
    name: str, admin: Client, check_queries: CheckQueries
) -> None:
    check_queries(name, admin, PAGES[name])


def test_mailbox__empty__shows_how_to_enqueue(admin: Client) -> None:
    shown = page(admin, "/mailbox")
    assert "The mailbox is empty" in shown
    assert "curl -X POST" in shown


def test_mailbox__list__shows_status_reason_thread_and_claimer(
    box: dict[str, str], admin: Client
) -> None:
    shown = page(admin, "/mailbox")
    for text in (
        "boom",
        "w1, lease ends",
        'href="/threads/t2"',
        'href="/runs/r1"',
        "1 dead",
        "dead letter</span>",
    ):
        assert text in shown, text
    assert "<script>alert" not in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Queued", "Claimed", "DeadLetter"]),
        ("status=DeadLetter", ["DeadLetter"]),
        ("thread=t2", ["Queued"]),
        ("agent=planner", ["DeadLetter"]),
        ("status=Acked", []),
    ],
)
def test_mailbox__filtered__contains_only_matches(
    query: str, found: list[str], box: dict[str, str], admin: Client
) -> None:
    rows = admin.get(f"/mailbox.json?{query}").json()["items"]
    assert [row["id"] for row in rows] == [box[status] for status in found]
    assert ("No dispatches match" in page(admin, f"/mailbox?{query}")) == (not found)


def test_mailbox__many__are_paged_newest_first(alice: Person, admin: Client) -> None:
    make_thread(alice.actor, "t1")
    ids = [enqueue(alice) for _ in range(60)]
    first = admin.get("/mailbox.json").json()
    second = admin.get(first["next"]).json()
    assert [row["id"] for row in first["items"] + second["items"]] == ids[::-1]
    assert second["next"] is None
    assert ">60 dispatches<" in page(admin, "/mailbox")
    assert ">60 dispatches<" in page(admin, first["next"].replace(".json", ""))
    assert ">60 dispatches<" in page(admin, "/mailbox?status=Queued")


def test_dead_letter__replayed__is_queued_again(box: dict[str, str], admin: Client) -> None:
    response = admin.post(f"/mailbox/{box['DeadLetter']}/replay", headers=htmx("mailbox"))
    assert "mailbox" in response["HX-Location"]
    assert status(box["DeadLetter"]) == "Queued"
    assert admin.post(f"/mailbox/{box['DeadLetter']}/replay").status_code == 409


def test_dead_letter__replayed__keeps_the_filters_of_the_list(
    box: dict[str, str], admin: Client
) -> None:
    here = {"HX-Current-URL": "http://testserver/mailbox?status=DeadLetter"}
    response = admin.post(f"/mailbox/{box['DeadLetter']}/replay", headers=htmx("mailbox") | here)
    assert json.loads(response["HX-Location"])["path"] == "/mailbox?status=DeadLetter"


def test_dead_letters__replayed__after_a_confirmation(box: dict[str, str], editor: Client) -> None:
    asked = page(editor, "/mailbox/replay?thread=t1")
    assert "Replay 1" in asked
    assert "t1: boom" in asked
    response = editor.post("/mailbox/replay?thread=t1", {"reason": "fixed"})
    assert response["Location"] == "/mailbox?thread=t1"
    assert status(box["DeadLetter"]) == "Queued"
    assert AuditRow.objects.get(action="dispatch.replay").reason == "fixed"


def test_dead_letters__cleared__by_admins_only_and_with_a_reason(
    box: dict[str, str], admin: Client, editor: Client
) -> None:
    assert editor.get("/mailbox/clear").status_code == 403
    assert "Clear dead letters" not in page(editor, "/mailbox")
    assert "deleted permanently" in page(admin, "/mailbox/clear")
    assert Dispatch.objects.filter(public_id=box["DeadLetter"]).exists()
    admin.post("/mailbox/clear", {"reason": "old news"})
    assert not Dispatch.objects.filter(public_id=box["DeadLetter"]).exists()
    assert AuditRow.objects.get(action="dispatch.clear").reason == "old news"


def test_dispatch__not_queued__cannot_be_cancelled(box: dict[str, str], admin: Client) -> None:
    assert "No worker will process it" in page(admin, f"/mailbox/{box['Queued']}/cancel")
    admin.post(f"/mailbox/{box['Queued']}/cancel", {"reason": "not needed"})
    assert status(box["Queued"]) == "Cancelled"
    assert admin.post(f"/mailbox/{box['Claimed']}/cancel").status_code == 409


def test_mailbox__viewer_and_non_member__have_their_access_and_change_nothing(
    box: dict[str, str], viewer: Client, stranger: Client
) -> None:
    shown = page(viewer, "/mailbox")
    assert "boom" in shown
    for act in ("Replay</button>", "Cancel…", "Replay dead letters", "Clear dead letters"):
        assert act not in shown
    assert viewer.post(f"/mailbox/{box['DeadLetter']}/replay").status_code == 403
    assert viewer.post("/mailbox/replay").status_code == 403
    assert "The mailbox is empty" in page(stranger, "/mailbox")
    assert stranger.post(f"/mailbox/{box['DeadLetter']}/replay").status_code == 404
    stranger.post("/mailbox/clear")
    assert status(box["DeadLetter"]) == "DeadLetter"
