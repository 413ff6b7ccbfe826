"""Reverts in the admin: the confirmation, small ones at once, and the page of a large one."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from state_admin.models import AuditRow, Entry, EntryRevision, Revert
from state_admin.services import revert_jobs
from state_admin.web import reverts
from tests.builders import Person, make_namespace, make_thread, put
from tests.web.test_entry_bulk import hidden, undo

URL = "/requests/revert"
NEW = "/reverts/+new"


@pytest.fixture
def written(alice: Person) -> dict[str, Any]:
    """What the button of the audit log sends for a request that changed `a` and `b`."""
    make_namespace(alice.actor, "n")
    actor = replace(alice.actor, request_id="r")
    for key in "ab":
        put(alice.actor, "n", key, "old")
        put(actor, "n", key, "new")
    near = AuditRow.objects.filter(request_id="r").latest("pk").pk
    return {"request": "r", "near": near, "back": "/audit"}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done at once, and one entry per batch."""
    monkeypatch.setattr(revert_jobs, "AT_ONCE", 0)
    monkeypatch.setattr(revert_jobs, "MOST", 1)


def values() -> list[str | None]:
    return list(Entry.objects.order_by("key").values_list("value", flat=True))


def test_revert__small__is_confirmed_and_done_at_once(
    admin: Client, written: dict[str, Any]
) -> None:
    question = admin.post(URL, written).content.decode()
    assert "Revert 2 entries?" in question
    assert "n/b" in question
    assert values() == ['"new"', '"new"']
    fields = {**hidden(question), "reason": "a mistake"}
    assert admin.post(URL, fields)["Location"] == "/audit"
    assert values() == ['"old"', '"old"']
    assert Revert.objects.get().reason == "a mistake"
    page = admin.get("/audit").content.decode()
    assert "Reverted 2 entries" in page
    assert "reverted entries of" in page
    url, fields = undo(page)
    admin.post(url, fields)
    assert values() == ['"new"', '"new"']


def test_revert__some_skipped__shows_the_page_with_the_reasons(
    admin: Client, alice: Person, written: dict[str, Any]
) -> None:
    put(alice.actor, "n", "a", "mine")
    page = admin.post(URL, {**written, "confirmed": "yes"}, follow=True).content.decode()
    assert "Reverted 1 entry; skipped 1" in page
    assert "it was written since then" in page
    assert "data-live-key" not in page
    url, fields = undo(page)
    admin.post(url, fields)
    assert values() == ['"mine"', '"new"']


@pytest.mark.usefixtures("slow")
def test_revert__large__has_a_page_that_follows_the_job(
    admin: Client, viewer: Client, written: dict[str, Any]
) -> None:
    url = admin.post(URL, {**written, "confirmed": "yes"})["Location"]
    job = Revert.objects.get()
    assert url == f"/reverts/{job.public_id}?back=%2Faudit"
    page = admin.get(url).content.decode()
    assert "Searching the audit log" in page
    assert 'data-live-key="r"' in page
    while not Revert.objects.filter(reverted=1):
        revert_jobs.run_revert(job.pk, seconds=0)
    page = admin.get(url).content.decode()
    assert "1 of 2 entries" in page
    assert '<progress aria-label="Progress" max="2" value="1"' in page
    assert ">Cancel revert</button>" in page
    assert ">Cancel revert</button>" not in viewer.get(url).content.decode()
    assert revert_jobs.run_revert(job.pk) == "done"
    page = admin.get(url).content.decode()
    assert "Reverted 2 entries" in page
    assert "<progress" not in page
    assert "Undo this revert" in page
    assert "Undo this revert" not in viewer.get(url).content.decode()
    button = page[page.index(f'<form method="post" action="{URL}">') :]
    admin.post(URL, hidden(button[: button.index("</form>")]))
    assert revert_jobs.run_revert(Revert.objects.latest("pk").pk) == "done"
    assert values() == ['"new"', '"new"']


@pytest.mark.usefixtures("slow")
def test_revert__cancelled__keeps_what_it_did(admin: Client, written: dict[str, Any]) -> None:
    url = admin.post(URL, {**written, "confirmed": "yes"})["Location"]
    job = Revert.objects.get()
    while not Revert.objects.filter(reverted=1):
        revert_jobs.run_revert(job.pk, seconds=0)
    stop = f"/reverts/{job.public_id}/cancel"
    assert admin.post(stop, {"back": "/audit"})["Location"] == url
    page = admin.get(url).content.decode()
    assert "Revert cancelled" in page
    assert "Entries that were already reverted keep their reverted values." in page
    assert values() == ['"old"', '"new"']
    again = admin.post(stop, {"back": "/audit"}, follow=True).content.decode()
    assert "the revert is already cancelled" in again


def test_revert__skipped_more_than_a_page__are_paged(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch, written: dict[str, Any]
) -> None:
    monkeypatch.setattr(reverts, "PAGE", 1)
    for key in "ab":
        put(alice.actor, "n", key, "mine")
    url = admin.post(URL, {**written, "confirmed": "yes"})["Location"]
    page = admin.get(url).content.decode()
    assert "n/a</a>" in page
    assert "n/b</a>" not in page
    after = Revert.objects.get().entries.order_by("pk").values_list("pk", flat=True)[0]
    page = admin.get(f"{url}&after={after}").content.decode()
    assert "n/b</a>" in page
    assert "First page" in page


def test_revert__request_without_entries__says_so(admin: Client) -> None:
    admin.post(URL, {"request": "unknown", "near": "1"})
    assert b"The request changed no entry" in admin.get("/state").content
    page = admin.post(URL, {"request": "unknown", "confirmed": "yes"}, follow=True).content.decode()
    assert "Revert failed: the audit log contains no changes to entries by this request" in page


@pytest.mark.parametrize("fields", [{}, {"request": "r", "near": "x"}])
def test_revert__malformed__is_refused(fields: dict[str, str], admin: Client) -> None:
    assert admin.post(URL, fields).status_code == 400


def test_revert__id_too_long__is_refused(admin: Client) -> None:
    fields = {"request": "x" * 65, "confirmed": "yes"}
    assert admin.post(URL, fields).status_code == 422


def test_revert__viewer_and_non_member__change_nothing(
    admin: Client, viewer: Client, stranger: Client, written: dict[str, Any]
) -> None:
    fields = {**written, "confirmed": "yes"}
    assert viewer.post(URL, fields).status_code == 403
    stranger.post(URL, fields)
    assert values() == ['"new"', '"new"']
    url = admin.post(URL, fields)["Location"]
    job = Revert.objects.filter(status="done").get()
    assert url == "/audit"
    assert stranger.get(f"/reverts/{job.public_id}").status_code == 404
    assert viewer.post(f"/reverts/{job.public_id}/cancel").status_code == 403


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["user", "agent"])
def test_changes__change_of_an_entry__has_a_button_that_reverts_its_request(
    by: str, admin: Client, written: dict[str, Any]
) -> None:
    if by == "agent":  # which stated no request id
        AuditRow.objects.filter(request_id="r").update(request_id="")
        EntryRevision.objects.filter(request_id="r").update(request_id="")
    page = admin.get("/changes").content.decode()
    changes = [unescape(each) for each in re.findall(r'name="change" value="([^"]+)"', page)]
    assert changes[:2] == ['["n","b",2]', '["n","b",1]']
    answer = admin.post(URL, {"change": changes[0], "back": "/changes?kind=entry"})
    if by == "agent":
        assert answer["Location"] == "/changes?kind=entry"
        assert "This version has no request id" in admin.get("/changes").content.decode()
        return
    question = answer.content.decode()
    assert "Revert 2 entries?" in question
    assert admin.post(URL, hidden(question))["Location"] == "/changes?kind=entry"
    assert values() == ['"old"', '"old"']


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/changes", "/audit"])
def test_record_of_a_revert__request__links_to_its_reverts(
    path: str, admin: Client, written: dict[str, Any]
) -> None:
    admin.post(URL, {"request": "r", "confirmed": "yes"})
    shown = admin.get(path).content.decode()
    link = re.search(
        r'reverted entries of</span> <a data-row class="mono" href="([^"]+)">r</a>', shown
    )
    assert link
    reverts = admin.get(link[1]).content.decode()
    assert re.search(r'href="/reverts/[^"]+">r</a>', reverts)


def test_changes__request_far_below_the_newest__is_found(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch, written: dict[str, Any]
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 3)
    AuditRow.objects.update(at=Now() - timedelta(hours=1))
    EntryRevision.objects.update(at=Now() - timedelta(hours=1))
    for number in range(9):
        put(alice.actor, "n", f"c{number}", 1)
    assert "Revert 2 entries" in admin.post(URL, {"change": '["n","a",2]'}).content.decode()


@pytest.mark.django_db(transaction=True)
def test_changes__no_reverts__for_viewers_and_for_other_kinds(
    admin: Client, viewer: Client, alice: Person, written: dict[str, Any]
) -> None:
    make_thread(alice.actor, "t1")
    page = admin.get("/changes?kind=thread").content.decode()
    assert 'name="change"' not in page
    assert 'name="change"' not in viewer.get("/changes").content.decode()
    assert viewer.post(URL, {"change": '["n","a",2]'}).status_code == 403


@pytest.mark.parametrize(
    ("change", "status"),
    [("[", 400), ("[" * 300, 400), ('{"a":1,"a":1}', 400), ("{}", 400), ('["n","a"]', 400), ('["n","a","2"]', 400), ('["n","a",true]', 400),
     ('["n","a",9]', 404), ('["n","x",1]', 404), ('["other","a",1]', 404)],
)  # fmt: skip
def test_changes__malformed_or_unknown_version__is_refused(
    change: str, status: int, admin: Client, written: dict[str, Any]
) -> None:
    assert admin.post(URL, {"change": change}).status_code == status


@pytest.mark.usefixtures("slow")
def test_list__filtered__contains_only_matches(
    admin: Client, viewer: Client, alice: Person, written: dict[str, Any]
) -> None:
    job = revert_jobs.request_revert(actor=alice.actor, request_id="other", reason="<b>")
    admin.post(URL, {**written, "confirmed": "yes"})
    assert revert_jobs.run_revert(Revert.objects.latest("pk").pk) == "done"
    page = viewer.get("/reverts").content.decode()
    assert page.index(">r</a>") < page.index(">other</a>")
    assert f"/reverts/{job.public_id}?back=%2Freverts" in page
    assert "&lt;b&gt;" in page
    for query, found in (("request=r", ["r"]), ("status=queued", ["other"]), ("", ["r", "other"]),
                         ("status=failed", []), ("request=r&status=queued", [])):  # fmt: skip
        items = admin.get(f"/reverts.json?{query}").json()["items"]
        assert [item["request_id"] for item in items] == found
    assert "No reverts match" in admin.get("/reverts?status=failed").content.decode()


def test_list__pages__have_each_revert_once(
    admin: Client, stranger: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverts, "PAGE", 2)
    for number in range(5):
        revert_jobs.request_revert(actor=alice.actor, request_id=f"r{number}")
    path, pages = "/reverts.json", []
    while path:
        body = admin.get(path).json()
        pages.append([item["request_id"] for item in body["items"]])
        path = body["next"]
    assert pages == [["r4", "r3"], ["r2", "r1"], ["r0"]]
    last = Revert.objects.get(target="r1").pk
    assert "First page" in admin.get(f"/reverts?after={last}").content.decode()
    assert stranger.get("/reverts.json").json()["items"] == []


# To a moment --------------------------------------------------------------------------------------


@pytest.fixture
def since(alice: Person) -> dict[str, Any]:
    """What the form sends for everything that was written to `n` since its entries had the value "old"."""
    make_namespace(alice.actor, "n")
    for key in "ab":
        put(alice.actor, "n", key, "old")
    past = Now() - timedelta(hours=1)
    Entry.objects.update(updated_at=past)
    EntryRevision.objects.update(at=past)
    put(alice.actor, "n", "a", "new")
    put(alice.actor, "n", "c", "new")
    moment = datetime.now(UTC) - timedelta(minutes=1)
    return {"at": f"{moment:%Y-%m-%dT%H:%M:%S}", "namespace": "n"}


def test_moment__from_the_state_browser__is_previewed_performed_and_undone(
    admin: Client, viewer: Client, since: dict[str, Any]
) -> None:
    link = "/reverts/+new?namespace=n&amp;begins=x&amp;scope_kind=custom"
    browser = "/state?namespace=n&prefix=x&scope=custom"
    assert link in admin.get(browser).content.decode()
    assert link not in viewer.get(browser).content.decode()
    assert 'href="/reverts/+new"' in admin.get("/reverts").content.decode()
    form = admin.get(unescape(link)).content.decode()
    assert 'name="namespace" value="n"' in form
    assert 'name="begins" value="x"' in form
    assert '<option value="custom" selected>' in form

    answer = admin.post(NEW, since)
    assert answer["HX-Retarget"] == "#dialog"
    question = answer.content.decode()
    assert f"Revert 2 entries to {since['at'].replace('T', ' ')} UTC?" in question
    assert '<li class="mono">n/a</li>' in question
    assert values() == ['"new"', '"old"', '"new"']
    page = admin.post(NEW, {**hidden(question), "reason": "oops"}, follow=True).content.decode()
    assert "Reverted 2 entries" in page
    assert values() == ['"old"', '"old"', None]
    job = Revert.objects.get()
    assert job.reason == "oops"
    assert (
        f"namespace n since {since['at'].replace('T', ' ')} UTC"
        in admin.get("/reverts").content.decode()
    )
    assert "requested a revert of" in admin.get("/audit").content.decode()
    button = admin.get(f"/reverts/{job.public_id}").content.decode()
    button = button[button.index(f'<form method="post" action="{URL}">') :]
    admin.post(URL, hidden(button[: button.index("</form>")]))
    assert values() == ['"new"', '"old"', '"new"']


@pytest.mark.usefixtures("slow")
def test_moment__large__has_a_page_that_follows_the_job(
    admin: Client, monkeypatch: pytest.MonkeyPatch, since: dict[str, Any]
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 1)
    assert "Revert 1 entry or more to " in admin.post(NEW, since).content.decode()
    url = admin.post(NEW, {**since, "confirmed": "yes"})["Location"]
    job = Revert.objects.get()
    assert url == f"/reverts/{job.public_id}?back=%2Freverts"
    page = admin.get(url).content.decode()
    assert "Reverting to a moment" in page
    assert "Searching the entries" in page
    while revert_jobs.run_revert(job.pk, seconds=0) == "queued":
        pass
    assert "Reverted 2 entries" in admin.get(url).content.decode()


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"at": ""}, "This field is required."),
        ({"at": "yesterday"}, "at must be a time like 2026-01-31T18:30"),
        ({"at": "2999-01-01T00:00"}, "at must not be in the future"),
        ({"namespace": ""}, "Fill in at least one filter."),
        ({"namespace": "unknown"}, "unknown"),
        ({"begins": "no such"}, "No matching entry was written since then"),
    ],
)
def test_moment__refused__shows_the_form_with_the_reason(
    admin: Client, since: dict[str, Any], fields: dict[str, str], refusal: str
) -> None:
    answer = admin.post(NEW, {**since, **fields})
    assert answer.status_code == 422
    assert refusal in unescape(answer.content.decode())
    assert not Revert.objects.exists()
