"""The pages Changes and Audit: content, search window, number of queries."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest
from django.test import Client

from state_admin.domain.values import Raw
from state_admin.models import AuditRow, Change
from state_admin.models.creation_times import id_at
from state_admin.services.entries import delete_entry, put_entries
from state_admin.web import audit, changes, tables
from tests.builders import Person, append, make_namespace, make_run, make_thread, put
from tests.web.conftest import CheckQueries

# The feed contains only committed changes.
pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
def team(alice: Person) -> None:
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "thread::t1", {"goal": "one"})
    put(alice.actor, "team", "thread::t1", {"goal": "two"})
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")


def text(response: object) -> str:
    page: str = response.content.decode()  # type: ignore[attr-defined]
    return page[page.index("<main") :] if "<main" in page else page


@pytest.mark.usefixtures("team")
def test_changes__every_kind__links_to_its_resource(admin: Client) -> None:
    shown = text(admin.get("/changes"))
    assert 'href="/state/team/thread::t1?version=2"' in shown
    assert 'href="/namespaces/team"' in shown
    assert 'href="/runs/r1"' in shown
    assert 'href="/threads/t1"' in shown
    assert re.search(r'revision <a class="mono" href="/threads/t1\?tab=state&amp;at=\d+"', shown)


def test_changes__messages__link_to_the_last_one(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *({"role": "user", "content": text} for text in "ab"))
    shown = text(admin.get("/changes?thread=t1"))
    assert "added messages to thread" in shown
    assert 'message <a class="mono" href="/threads/t1?message=2#m2"' in shown
    assert "tab=state" not in shown


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("namespace=team", {"namespace.register", "entry.put"}),
        ("prefix=thread::", {"entry.put"}),
        ("key=thread::t1&kind=entry.put", {"entry.put"}),
        ("kind=entry", {"entry.put"}),
        ("kind=entr", set()),
        ("run=r1", {"run.start"}),
        ("actor=nobody", set()),
    ],
)
@pytest.mark.usefixtures("team")
def test_changes__filtered__contains_only_matches(
    query: str, kinds: set[str], admin: Client
) -> None:
    items = admin.get(f"/changes.json?{query}").json()["items"]
    assert {item["kind"] for item in items} == kinds


@pytest.mark.usefixtures("team")
def test_changes__pages__contain_every_change_once(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "PAGE", 2)
    seen, url = [], "/changes.json"
    while url:
        page = admin.get(url).json()
        seen += [item["cursor"] for item in page["items"]]
        url = page["next"]
    assert len(seen) == len(set(seen)) == Change.objects.count()


@pytest.mark.usefixtures("team")
def test_changes__no_match_in_the_window__has_a_next_page(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "WINDOW", 2)
    page = admin.get("/changes.json?kind=namespace.register").json()
    assert page["items"] == []
    while not page["items"]:
        page = admin.get(page["next"]).json()
    assert [item["kind"] for item in page["items"]] == ["namespace.register"]


def test_changes__forged_cursor__is_refused(admin: Client) -> None:
    assert admin.get("/changes?before=x-1").status_code == 400
    assert admin.get("/changes?before=1").status_code == 400


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("path", ["/changes", "/changes.json", "/changes.csv"])
def test_changes__non_member__sees_nothing(path: str, stranger: Client) -> None:
    response = stranger.get(path)
    body = b"".join(response) if response.streaming else response.content
    assert b"team" not in body


@pytest.mark.usefixtures("team")
def test_changes__later_page__is_not_live(admin: Client) -> None:
    assert "data-live=" in text(admin.get("/changes?namespace=team"))
    assert "data-live=" not in text(admin.get("/changes?before=999999-9"))


def test_audit__one_request__is_one_group(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    first = replace(alice.actor, request_id="request-one")
    for key in ("a", "b", "c"):
        put(first, "team", key, 1)
    put(replace(alice.actor, request_id="request-two"), "team", "d", 1)
    shown = text(admin.get("/audit"))
    groups = re.split(r'<li id="act-', shown)[1:]
    (group,) = (group for group in groups if "request-one" in group)
    assert group[group.index('class="acts"') :].count("data-row") == 3
    assert "3 actions" in group
    assert "request-two" not in group
    only = text(admin.get("/audit?request=request-one"))
    assert only.count('id="act-') == 1


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ("actor=alice&action=entry", {"entry.put", "entry.delete"}),
        ("action=entry.delete", {"entry.delete"}),
        ("actor=bob", set()),
        ("subject=team/thread::t1", {"entry.put", "entry.delete"}),
        ("subject=team", {"namespace.register", "entry.put", "entry.delete"}),
        ("subject=r1", {"run.start"}),
        ("since=2000-01-01T00:00&subject=r1", {"run.start"}),
        ("until=2000-01-01T00:00", set()),
        ("since=2999-01-01T00:00", set()),
    ],
)
@pytest.mark.usefixtures("team")
def test_audit__filtered__contains_only_matches(
    query: str, actions: set[str], admin: Client, alice: Person
) -> None:
    delete_entry(actor=alice.actor, namespace="team", key="thread::t1")
    items = admin.get(f"/audit.json?{query}").json()["items"]
    assert {item["action"] for item in items} == actions


def test_audit__not_a_time__is_refused(admin: Client) -> None:
    for wrong in ("yesterday", "2026-13-45T00:00"):
        response = admin.get(f"/audit?since={wrong}")
        assert response.status_code == 400
        assert b"since must be a time like" in response.content.lower()


@pytest.mark.usefixtures("team")
def test_audit__pages__contain_every_row_once(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PAGE", 2)
    monkeypatch.setattr(audit, "WINDOW", 2)
    seen, url = 0, "/audit.json?action=entry.put"
    while url:
        page = admin.get(url).json()
        seen += len(page["items"])
        url = page["next"]
    assert seen == 2


@pytest.mark.usefixtures("team")
def test_audit__entry_write__shows_its_difference(admin: Client) -> None:
    row = AuditRow.objects.filter(action="entry.put").latest("pk")
    assert f'hx-get="/audit/{row.pk}/diff"' in text(admin.get("/audit"))
    part = text(admin.get(f"/audit/{row.pk}/diff", headers=HTMX))
    assert "<html" not in part
    assert "one" in part
    assert "two" in part
    created = AuditRow.objects.filter(action="entry.put").earliest("pk")
    assert "one" in text(admin.get(f"/audit/{created.pk}/diff"))


def test_audit__count__is_bounded_and_left_out_of_searches(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "n")
    number = AuditRow.objects.filter(workspace=alice.workspace).count() + 6
    for each in range(6):
        put(alice.actor, "n", f"k{each}", each)
    assert f">{number} records<" in text(admin.get("/audit"))
    assert ">6 records<" in text(admin.get("/audit?action=entry.put"))
    assert "records<" not in text(admin.get("/audit?action=none"))
    monkeypatch.setattr(audit, "PAGE", 4)
    assert f">{number} records<" in text(admin.get("/audit"))
    assert f">{number} records<" in text(admin.get("/audit?since=2020-01-01T00:00"))
    assert "records<" not in text(admin.get("/audit?action=entry.put"))
    monkeypatch.setattr(tables, "COUNTED", 5)
    assert ">5+ records<" in text(admin.get("/audit"))


def test_changes__count__is_bounded_and_left_out_of_searches(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "n")
    for each in range(6):
        put(alice.actor, "n", f"k{each}", each)
    number = Change.objects.filter(workspace=alice.workspace).count()
    assert number >= 7
    assert f">{number} changes<" in text(admin.get("/changes"))
    assert ">6 changes<" in text(admin.get("/changes?kind=entry.put"))
    monkeypatch.setattr(changes, "PAGE", 4)
    first = text(admin.get("/changes"))
    assert f">{number} changes</span>" in first
    following = re.findall(r'href="([^"]+)" rel="next"', first)
    assert f">{number} changes<" in text(admin.get(following[0]))
    assert " changes</span>" not in text(admin.get("/changes?kind=entry.put"))
    monkeypatch.setattr(changes, "COUNTED", 5)
    monkeypatch.setattr(tables, "COUNTED", 5)
    assert ">5+ changes<" in text(admin.get("/changes"))


@pytest.mark.parametrize("path", ["/", "/changes", "/audit"])
def test_line__write_of_an_entry__shows_what_changed(
    path: str, admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "k", {"goal": "<rest>", "n": 1})
    put(alice.actor, "team", "k", {"goal": "ship", "n": 1})
    put(alice.actor, "team", "large", "x" * 5000)
    delete_entry(actor=alice.actor, namespace="team", key="k")
    shown = re.sub(r"<[^>]+>", "", text(admin.get(path)))
    assert "goal: &lt;rest&gt; → ship" in shown
    assert "ship" in shown
    assert "xxxx" not in shown


def test_changes__one_transaction__is_one_group(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    puts = [("team", key, Raw("1", 1)) for key in ("a", "b", "c")]
    put_entries(actor=alice.actor, puts=puts)
    put(alice.actor, "team", "d", 1)
    shown = text(admin.get("/changes"))
    lines = re.split(r'<li>\s*<div class="event">', shown.partition("</details>")[0])
    line, _, others = "".join(lines[2:]).partition("<details")
    assert re.search(r'title="Changes in the same transaction">2 more</span>', line)
    assert [line.count("/state/team/"), others.count("/state/team/")] == [1, 2]
    assert "2 more changes in the transaction of: alice wrote team/c" in others
    assert {f"/state/team/{key}" in shown for key in "abcd"} == {True}


@pytest.mark.parametrize(
    ("module", "path", "pages"),
    [
        (audit, "/audit", ["3+ actions", "2+ actions"]),
        (changes, "/changes", ["2+ more", "1+ more"]),
    ],
)
def test_group__cut_by_the_page__does_not_count_as_complete(
    module: ModuleType,
    path: str,
    pages: list[str],
    admin: Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_namespace(alice.actor, "team")
    actor = replace(alice.actor, request_id="request-one")
    put_entries(actor=actor, puts=[("team", key, Raw("1", 1)) for key in "abcde"])
    monkeypatch.setattr(module, "PAGE", 3)
    first = text(admin.get(path))
    (older,) = re.findall(rf'href="({path}\?before=[^"]+)"', first)[:1]
    assert pages[0] in first
    assert pages[1] in text(admin.get(older))
    monkeypatch.setattr(module, "PAGE", 50)
    assert not re.search(r"\d\+ (actions|more)", text(admin.get(path)))


@pytest.mark.usefixtures("team")
def test_audit__difference_of_no_entry_or_for_a_non_member__is_404(
    admin: Client, stranger: Client
) -> None:
    other = AuditRow.objects.filter(action="run.start").latest("pk")
    assert admin.get(f"/audit/{other.pk}/diff").status_code == 404
    mine = AuditRow.objects.filter(action="entry.put").latest("pk")
    assert stranger.get(f"/audit/{mine.pk}/diff").status_code == 404


@pytest.mark.parametrize("path", ["/audit", "/audit.json", "/audit.csv", "/audit/1/diff"])
def test_audit__viewer_or_editor__is_refused(path: str, viewer: Client, editor: Client) -> None:
    assert viewer.get(path).status_code == 403
    assert editor.get(path).status_code == 403
    assert 'href="/audit"' not in viewer.get("/").content.decode()


@pytest.mark.usefixtures("team")
def test_id_at__any_moment__splits_the_rows_by_time(alice: Person) -> None:
    owner = {"workspace_id": alice.workspace.pk}
    rows = list(AuditRow.objects.order_by("pk"))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number, row in enumerate(rows):
        AuditRow.objects.filter(pk=row.pk).update(at=start + timedelta(hours=number))
    rows[2].delete()  # ids have gaps
    left = [number for number in range(len(rows)) if number != 2]
    for number in left:
        moment = start + timedelta(hours=number)
        assert list(
            AuditRow.objects.filter(pk__gte=id_at(AuditRow, "at", moment, owner)).order_by("pk")
        ) == [rows[each] for each in left if each >= number]
    assert id_at(AuditRow, "at", start - timedelta(days=1), owner) <= rows[0].pk
    assert id_at(AuditRow, "at", start + timedelta(days=1), owner) > rows[-1].pk


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("changes", "/changes"),
        ("changes, filtered", "/changes?kind=entry"),
        ("changes as JSON", "/changes.json"),
        ("audit", "/audit"),
        ("audit, filtered", "/audit?action=entry&since=2026-01-01T00:00"),
        ("audit, difference", "/audit/{row}/diff"),
        ("live", "/live"),
    ],
)
@pytest.mark.usefixtures("team")
def test_page__member__uses_a_bounded_number_of_queries(
    name: str, path: str, admin: Client, check_queries: CheckQueries
) -> None:
    row = AuditRow.objects.filter(action="entry.put").latest("pk")
    check_queries(name, admin, path.format(row=row.pk))
