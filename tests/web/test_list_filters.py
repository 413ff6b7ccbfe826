"""What the lists have in common: a search field, filters in a menu and as chips, headings that order the
rows, and their number."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest
from django.test import Client

from state_admin.models import Run, Thread
from state_admin.services.compactions import request_compaction
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.revert_jobs import request_revert
from state_admin.web import compactions, mailbox, reverts, runs, tables, threads
from tests.builders import Person, make_run, make_thread, raw
from tests.web.test_threads import htmx, page, walk

LISTS = [
    ("/threads", "thread-table", "status=idle&resource=u%261&since=day&size=10"),
    ("/runs", "run-table", "status=done&age=1h&until=2030-01-31T18:30"),
    ("/namespaces", "namespace-table", "show=unregistered"),
    ("/mailbox", "mailbox", "status=Queued&agent=a%22b"),
    ("/compactions", "compaction-table", "status=done&kind=context"),
    ("/inbox", "inbox", "agent=a"),
    ("/changes", "change-table", "namespace=team&actor=alice"),
    ("/audit", "audit-table", "actor=alice&action=entry&until=2030-01-31T18:30"),
    ("/members", "member-table", "role=viewer"),
    ("/tokens", "token-table", "state=live&role=editor"),
    ("/webhooks", "webhook-table", "status=paused"),
]


def chips(shown: str) -> dict[str, str]:
    """The labels of the chips, and their URLs."""
    found = re.findall(r'<a href="([^"]+)"[^>]*aria-label="Remove the filter ([^"]+)"', shown)
    return {html.unescape(label): html.unescape(url) for url, label in found}


def headings(shown: str) -> dict[str, tuple[str, str]]:
    """How the list is ordered by each column, and the URL of its heading."""
    row = shown[shown.index("<thead>") : shown.index("</thead>")]
    found = {}
    for attributes, content in re.findall(r'<th scope="col"([^>]*)>(.*?)</th>', row):
        order = re.search('aria-sort="([^"]+)"', attributes)
        link = re.match('<a href="([^"]+)"', content)
        label = re.sub("<[^>]+>", "", content)
        found[label] = (order[1] if order else "", html.unescape(link[1]) if link else "")
    return found


def started(days_ago: int, *public_ids: str) -> None:
    at = datetime.now(UTC) - timedelta(days=days_ago)
    Run.objects.filter(public_id__in=public_ids).update(created_at=at)
    Thread.objects.filter(public_id__in=public_ids).update(created_at=at)


@pytest.mark.parametrize(("path", "part", "query"), LISTS)
def test_list__filtered__has_a_chip_and_a_field_for_each_filter(
    path: str, part: str, query: str, admin: Client
) -> None:
    shown = page(admin, f"{path}?{query}")
    names = [each.partition("=")[0] for each in query.split("&")]
    removed = chips(shown)
    assert len(removed) == len(names)
    for url in removed.values():
        kept = [each.partition("=")[0] for each in url.partition("?")[2].split("&") if each]
        assert len(set(names) - set(kept)) == 1
        assert set(kept) < set(names)
    assert 'id="filter-menu" popover' in shown
    for name in names:
        assert f'name="{name}"' in shown
    assert "Clear filters" in shown


@pytest.mark.parametrize(("path", "part", "query"), LISTS)
def test_list__empty_fields_of_the_form__are_not_in_the_address(
    path: str, part: str, query: str, admin: Client
) -> None:
    headers = htmx(part) | {"HX-Source": "form#filters"}
    response = admin.get(f"{path}?{query}&before=&from=&tool=&text=", headers=headers)
    address = response["HX-Replace-Url"]
    assert address.startswith(f"{path}?")
    assert "=&" not in address
    assert not address.endswith("=")
    shown = response.content.decode()
    assert re.match(rf'\s*<div( class="stack")? id="{part}"', shown)
    assert 'class="chip"' in shown


@pytest.mark.parametrize("path", ["/threads", "/runs"])
@pytest.mark.parametrize("query", ["since=soon", "until=2026-13-01T00:00", "from=x"])
def test_list__malformed_time__is_refused(path: str, query: str, admin: Client) -> None:
    response = admin.get(f"{path}?{query}")
    assert response.status_code == 400
    assert "must be a time like 2026-01-31T18:30" in response.content.decode()
    assert admin.get(f"{path}.json?{query}").status_code == 400


@pytest.mark.parametrize("path", ["/threads.json", "/runs.json"])
def test_list__period__contains_what_began_in_it(path: str, admin: Client, alice: Person) -> None:
    for name in ("old", "middle", "new"):
        make_thread(alice.actor, name)
        make_run(alice.actor, name, name)
    started(10, "old")
    started(3, "middle")
    now = datetime.now(UTC)
    between = now - timedelta(days=5), now - timedelta(days=1)
    since, until = (f"{each:%Y-%m-%dT%H:%M}" for each in between)
    for query, found in (
        ("since=week", ["new", "middle"]),
        ("since=hour", ["new"]),
        (f"since={since}&until={until}", ["middle"]),
        (f"from={since}", ["new", "middle"]),
        (f"since=hour&from={since}", ["new"]),
        (f"until={until}&sort=oldest", ["old", "middle"]),
    ):
        assert walk(admin, f"{path}?{query}") == [found], query


def test_runs__older_than_and_period__are_combined(admin: Client, alice: Person) -> None:
    for name in ("a", "b", "c"):
        make_thread(alice.actor, name)
        make_run(alice.actor, name, name)
    started(10, "a")
    started(3, "b")
    assert walk(admin, "/runs.json?age=1d") == [["b", "a"]]
    assert walk(admin, "/runs.json?age=1d&since=week") == [["b"]]
    assert walk(admin, "/runs.json?age=7d&status=active") == [["a"]]


def test_threads__headings__order_the_list(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    first = headings(page(admin, "/threads?status=idle"))
    assert first["Created"] == ("descending", "/threads?status=idle&sort=oldest")
    assert first["Thread"] == ("", "/threads?status=idle&sort=id")
    assert first["Context tokens"] == ("", "/threads?status=idle&sort=tokens")
    assert first["Messages"] == ("", "/threads?status=idle&sort=-messages")
    oldest = headings(page(admin, first["Created"][1]))
    assert oldest["Created"] == ("ascending", "/threads?status=idle")
    by_id = headings(page(admin, "/threads?sort=id"))
    assert by_id["Thread"] == ("ascending", "")
    assert by_id["Created"] == ("", "/threads")
    of_prefix = headings(page(admin, "/threads?prefix=t&sort=tokens"))
    assert of_prefix["Thread"] == ("ascending", "")
    assert not any(url for _, url in of_prefix.values())


def test_threads__ordered__keep_the_order_in_the_form_and_the_next_page(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 1)
    for name in ("a", "b"):
        make_thread(alice.actor, name)
    shown = page(admin, "/threads?sort=oldest", headers=htmx("thread-table"))
    assert '<input type="hidden" name="sort" value="oldest" form="filters">' in shown
    assert re.search(r'href="/threads\?sort=oldest&amp;after=\d+" rel="next"', shown)


def test_runs__oldest_first__are_paged_in_that_order(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PAGE", 2)
    for name in ("a", "b", "c"):
        make_thread(alice.actor, name)
        make_run(alice.actor, name, name)
    assert walk(admin, "/runs.json?sort=oldest") == [["a", "b"], ["c"]]
    assert walk(admin, "/runs.json?sort=nonsense") == [["c", "b"], ["a"]]
    assert headings(page(admin, "/runs"))["Started"] == ("descending", "/runs?sort=oldest")
    assert headings(page(admin, "/runs?sort=oldest"))["Started"] == ("ascending", "/runs")


@pytest.mark.parametrize(
    ("module", "path", "label"),
    [
        (compactions, "/compactions", "When"),
        (mailbox, "/mailbox", "When"),
        (reverts, "/reverts", "Requested"),
    ],
)
def test_list__oldest_first__is_paged_in_that_order(
    module: ModuleType, path: str, label: str, admin: Client, alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "PAGE", 2)
    for number in range(3):
        make_thread(alice.actor, f"t{number}")
        enqueue_dispatch(actor=alice.actor, thread_id=f"t{number}", payload=raw({}))
        request_compaction(actor=alice.actor, thread_id=f"t{number}")
        request_revert(actor=alice.actor, request_id=f"r{number}")
    newest = walk(admin, f"{path}.json")
    oldest = walk(admin, f"{path}.json?sort=oldest")
    assert [len(each) for each in oldest] == [2, 1]
    assert [key for each in oldest for key in each] == [key for each in newest for key in each][
        ::-1
    ]
    assert headings(page(admin, path))[label] == ("descending", f"{path}?sort=oldest")
    shown = page(admin, f"{path}?sort=oldest")
    assert headings(shown)[label] == ("ascending", path)
    assert '<input type="hidden" name="sort" value="oldest" form="filters">' in shown


def test_lists__more_than_a_page__are_counted_up_to_a_limit(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d"):
        make_thread(alice.actor, name)
        make_run(alice.actor, name, name)
    assert "4 threads</span>" in page(admin, "/threads")
    assert "1 thread</span>" in page(admin, "/threads?prefix=a")
    assert "4 runs</span>" in page(admin, "/runs")
    monkeypatch.setattr(threads, "PAGE", 2)
    monkeypatch.setattr(runs, "PAGE", 2)
    assert "4 threads</span>" in page(admin, "/threads")
    assert "4 threads</span>" in page(admin, page_after(admin, "/threads"))
    assert "4 runs</span>" in page(admin, page_after(admin, "/runs"))
    assert "threads</span>" not in page(admin, "/threads?sort=activity")
    monkeypatch.setattr(tables, "COUNTED", 3)
    assert "3+ threads</span>" in page(admin, "/threads")
    assert "3+ runs</span>" in page(admin, "/runs?status=active")


def page_after(client: Client, path: str) -> str:
    """The address of the next page."""
    link = re.search(r'href="([^"]+)" rel="next"', page(client, path))
    assert link
    return html.unescape(link[1])


def test_runs__stuck_ones__are_the_first_group_of_the_unfiltered_list(
    admin: Client, alice: Person
) -> None:
    for name in ("a", "b"):
        make_thread(alice.actor, name)
        make_run(alice.actor, name, name)
    past = datetime.now(UTC) - timedelta(hours=1)
    Run.objects.filter(public_id="a").update(times_out_at=past)
    shown = page(admin, "/runs")
    assert shown.index("1 run needs attention") < shown.index('href="/runs/a"')
    assert shown.index('href="/runs/a"') < shown.index("Other runs") < shown.index('href="/runs/b"')
    assert "needs attention" not in page(admin, "/runs?status=active")


@pytest.mark.parametrize(
    ("path", "part", "name"),
    [
        ("/namespaces", "namespace-table", "prefix"),
        ("/config/models", "config", "prefix"),
        ("/state-keys", "state-keys", "prefix"),
        ("/members", "member-table", "text"),
        ("/tokens", "token-table", "text"),
        ("/webhooks", "webhook-table", "text"),
        ("/policies", "policy-table", "text"),
    ],
)
def test_list_by_name__searched__is_in_the_address(
    path: str, part: str, name: str, admin: Client
) -> None:
    headers = htmx(part) | {"HX-Source": "form#filters"}
    response = admin.get(f"{path}?{name}=te", headers=headers)
    assert response["HX-Replace-Url"] == f"{path}?{name}=te"
    assert f'id="{part}"' in response.content.decode()
    assert admin.get(f"{path}?{name}=", headers=headers)["HX-Replace-Url"] == path
    assert f'name="{name}" value="te"' in page(admin, f"{path}?{name}=te")


def test_audit__times_at_the_ends_of_the_calendar__limit_nothing(alice: Person) -> None:
    browser = alice.browser()
    for query in ("since=0001-01-01T00:00", "until=9999-12-31T23:59:59.999999"):
        answer = browser.get(f"/audit?{query}")
        assert answer.status_code == 200
        assert "token.create" in answer.content.decode()
