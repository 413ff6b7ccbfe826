"""The overview: how many items of each kind need attention, the oldest of each, and its link."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now, TruncMinute
from django.test import Client

from state_admin.models import (
    Change,
    Compaction,
    Dispatch,
    Run,
    Sweep,
    Thread,
    Traffic,
    Webhook,
    counts,
)
from state_admin.services import storage
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.webhooks import create_webhook
from state_admin.web import overview
from tests.builders import (
    Person,
    make_namespace,
    make_run,
    make_thread,
    put,
    raw,
)
from tests.web.stories import create_story
from tests.web.test_threads import htmx, page

# The URL of the page with the charts, which it otherwise loads afterwards.
CHARTS = "/?hours=24&charts=1"


def sums(client: Client) -> dict[str, tuple[str, str]]:
    """The number and the URL of each kind, by its label."""
    found = re.findall(
        r'<a class="stat" href="([^"]+)"><span><span class="pill" data-state="[^"]*">([^<]+)</span>'
        r"</span><strong>([^<]+)</strong>",
        page(client, "/"),
    )
    return {label: (count, url.replace("&amp;", "&")) for url, label, count in found}


def make_runs(person: Person, count: int) -> None:
    """Runs `r0`, `r1`, …, each in a thread of its own."""
    for number in range(count):
        make_thread(person.actor, f"t{number}")
        make_run(person.actor, f"t{number}", f"r{number}")


def test_overview__nothing_pending__says_so(admin: Client) -> None:
    assert sums(admin) == {}
    assert "no stuck runs, pending tickets" in page(admin, "/")


def test_overview__entries_of_an_older_schema__are_counted_only_if_invalid(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    for number in range(60):
        put(alice.actor, "notes", f"k{number:02}", number)
    make_namespace(alice.actor, "notes", schema={"type": "integer"}, default=0)
    assert sums(admin) == {}
    make_namespace(alice.actor, "notes", schema={"minimum": 2}, default=2)
    assert sums(admin)["invalid entries"][0] == "2+"
    assert "2+ entries do not match the schema" in page(admin, "/")
    assert "50 of an older schema version checked" in page(admin, "/")
    assert "2 invalid</span></a>" in page(admin, "/namespaces")


def test_overview__failing_webhooks__need_attention(admin: Client, alice: Person) -> None:
    hooks = [
        create_webhook(actor=alice.actor, name=name, url=f"https://{name}.example")[0]
        for name in ("well", "billing", "old", "paused")
    ]
    failing = {"failing_since": datetime.now(UTC) - timedelta(hours=2), "last_error": "HTTP 500"}
    Webhook.objects.exclude(name="well").update(**failing)
    Webhook.objects.filter(name="old").update(status="disabled", status_reason="410 Gone")
    Webhook.objects.filter(name="paused").update(status="paused")
    count, url = sums(admin)["failing webhooks"]
    assert (count, url) == ("2", "/webhooks")
    shown = page(admin, "/")
    assert "failing webhook</span>" in shown
    assert "disabled webhook</span>" in shown
    for text in (f'href="/webhooks/{hooks[1].public_id}"', "HTTP 500", "410 Gone"):
        assert text in shown
    assert hooks[0].public_id not in shown


def test_overview__each_kind__has_count_oldest_and_link(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r2")
    Run.objects.filter(public_id="r2").update(
        lease_expires_at=datetime.now(UTC) - timedelta(minutes=9)
    )
    Compaction.objects.update(status="failed", detail="no answer")
    enqueue_dispatch(actor=alice.actor, thread_id="t2", payload=raw(1))
    Dispatch.objects.update(status="DeadLetter", last_error="worker crashed")
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", {"x": 1})
    make_namespace(alice.actor, "notes", schema={"type": "string"}, default="")
    found = sums(admin)
    assert {label: count for label, (count, _) in found.items()} == {
        "tickets": "1",
        "stuck runs": "1",
        "dead letters": "1",
        "failed jobs": "1",
        "failing webhooks": "0",
        "invalid entries": "1",
    }
    shown = page(admin, "/")
    assert shown.count("oldest <relative-time") == 4
    assert "worker crashed" in shown
    for name, (_, url) in found.items():
        assert admin.get(url).status_code == 200, name


def test_navigation__failed_compaction_and_a_later_one__counts_as_the_overview(
    admin: Client, alice: Person
) -> None:
    for number, (thread_id, kind, status) in enumerate(
        (
            ("t1", "context", "failed"),
            ("t2", "context", "failed"),
            ("t2", "context", "failed"),
            ("t3", "context", "failed"),
            ("t3", "context", "done"),
            ("t4", "snapshot", "failed"),
        )
    ):
        if not Thread.objects.filter(public_id=thread_id).exists():
            make_thread(alice.actor, thread_id)
        Compaction.objects.create(
            workspace=alice.workspace, public_id=f"c{number}", kind=kind, status=status,
            trigger="hand", thread=Thread.objects.get(public_id=thread_id), requested_by="alice",
        )  # fmt: skip
    assert counts.bounded_counts(alice.actor).failed_compactions == 2
    assert sums(admin)["failed jobs"][0] == "2"
    Compaction.objects.filter(status="failed").update(status="done")
    assert counts.bounded_counts(alice.actor).failed_compactions == 0


def test_overview__more_than_it_lists__counts_all_and_links_to_the_rest(
    admin: Client, alice: Person
) -> None:
    make_runs(alice, 8)
    Run.objects.update(lease_expires_at=Now() - timedelta(minutes=9))
    shown = page(admin, "/")
    assert 'Needs attention</h2><span class="count">8</span>' in shown
    assert 'href="/runs?status=stuck">2 more stuck runs</a>' in shown
    Run.objects.filter(public_id="r7").delete()
    assert 'href="/runs?status=stuck">1 more stuck run</a>' in page(admin, "/")
    Run.objects.filter(public_id="r6").delete()
    shown = page(admin, "/")
    assert 'Needs attention</h2><span class="count">6</span>' in shown
    assert "more stuck" not in shown


def test_overview__numbers_of_what_needs_attention__are_updated_at_once(
    admin: Client, alice: Person
) -> None:
    tag = 'id="overview-sums" data-live="run. ticket. dispatch. compaction. webhook." data-live-now'
    assert tag in page(admin, "/")
    create_story(alice.actor)
    part = page(admin, "/", headers=htmx("overview-sums"))
    assert part.lstrip().startswith('<div class="part" id="overview-sums"')
    assert '<span class="count">1</span>' in part
    assert ">tickets</span></span><strong>1</strong>" in part
    assert 'id="needs"' not in part


def test_overview__of_another_workspace__counts_nothing(stranger: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert sums(stranger) == {}


def test_overview__busiest_namespaces__are_ordered_by_writes_per_day(
    admin: Client, stranger: Client, alice: Person
) -> None:
    assert "No entries written in the last 24 hours" in page(admin, CHARTS)
    for name, times in (("quiet", 1), ("loud", 3)):
        make_namespace(alice.actor, name)
        for number in range(times):
            put(alice.actor, name, "k", number)
    Change.objects.filter(namespace="loud", version=1).update(at=Now() - timedelta(hours=5))
    Change.objects.filter(namespace="loud", version=2).update(at=Now() - timedelta(days=2))
    shown = page(admin, CHARTS).partition("Busiest namespaces")[2]
    assert shown.index(">loud<") < shown.index(">quiet<")
    assert re.findall(
        r'<span class="num"><a [^>]+>(\d+)</a> <span class="muted">in a day, (\d+) in an hour',
        shown,
    ) == [
        ("2", "1"),
        ("1", "1"),
    ]
    assert 'href="/changes?namespace=loud&amp;kind=entry"' in shown
    assert 'href="/state?namespace=loud"' in page(admin, CHARTS)
    assert ">loud<" not in page(stranger, CHARTS)


def test_overview__more_changes_than_it_reads__shows_lower_bounds(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "loud")
    for number in range(4):
        put(alice.actor, "loud", "k", number)
    for module in (counts, overview):
        monkeypatch.setattr(module, "MOST", 4)
    Change.objects.filter(version=1).update(at=Now() - timedelta(hours=6))
    assert counts.namespace_writes(alice.actor) == ([("loud", 4, 3)], True, False)
    assert re.search(r">4\+</a> <span[^>]*>in a day, 3 in an hour", page(admin, CHARTS))
    make_namespace(alice.actor, "quiet")
    shown = page(admin, "/namespaces")
    assert re.findall(r'data-label="writes in a day">([^<]+)<', shown) == ["3+", "0+"]
    Change.objects.filter(kind__startswith="entry").update(kind="run.start")
    assert counts.namespace_writes(alice.actor) == ([], True, True)
    assert "No entry writes among the newest 4 changes." in page(admin, CHARTS)


# Traffic -------------------------------------------------------------------------------------


def busy(person: Person) -> None:
    for ago, reads, writes, conflicts, queued in ((3, 40, 5, 0, 6), (2, 2, 7, 1, 2)):
        Traffic.objects.create(
            workspace=person.workspace,
            minute=TruncMinute(Now() - timedelta(minutes=ago)),
            reads=reads,
            writes=writes,
            conflicts=conflicts,
            queued=queued,
        )


def chart(shown: str, name: str) -> str:
    """The HTML of a chart."""
    found = re.search(rf'<figure class="chart" id="chart-{name}">.*?</figure>', shown, re.DOTALL)
    assert found is not None, name
    return found[0]


def rows(figure: str) -> list[tuple[str, ...]]:
    """The values of the table of a chart, newest first, without the times."""
    return [tuple(re.findall(r"<td[^>]*>([^<]*)<", row)) for row in figure.split("<tr>")[2:]]


def test_overview__busy_hour__has_totals_axes_and_a_table(admin: Client, alice: Person) -> None:
    busy(alice)
    shown = page(admin, "/?hours=1&charts=1")
    for name, total in (("reads", "42"), ("writes", "12"), ("conflicts", "1"), ("queued", "2")):
        assert re.search(rf"<strong>(<a [^>]*>)?{total}<", chart(shown, name)), name
    reads = chart(shown, "reads")
    assert "<span>40</span><span>30</span>" in reads.replace("\n", ""), "the vertical axis"
    assert "per minute" in reads
    assert re.search(r'<text x="[\d.]+%" y="12" data-end="[a-z]*">\d\d:(00|15|30|45)</text>', reads)
    newest_first = rows(reads)
    assert newest_first.index(("40", "0")) == newest_first.index(("2", "0")) + 1
    assert rows(chart(shown, "queued"))[0] == ("2", "0"), "as last measured"
    assert len(rows(reads)) == 60


def test_overview__day__is_compared_with_the_same_hours_a_day_earlier(
    admin: Client, alice: Person
) -> None:
    for hours, writes in ((0.5, 30), (5.5, 30), (24.5, 20), (29.5, 20), (23.5, 7), (47.5, 9)):
        Traffic.objects.create(
            workspace=alice.workspace, minute=Now() - timedelta(hours=hours), writes=writes
        )
    writes = chart(page(admin, CHARTS), "writes")
    assert "+37 % against 49 a day earlier" in writes
    assert (len(rows(writes)), rows(writes)[0], rows(writes)[5]) == (24, ("30", "20"), ("30", "20"))
    assert rows(writes)[23] == ("7", "9")
    assert 'data-series="earlier" d="M' in writes


def test_overview__ended_runs__are_counted_by_outcome(admin: Client, alice: Person) -> None:
    ended = [("natural_end", 1), ("behavior_requested", 1), ("error", 2), ("stopped", 30)]
    for number, (kind, hours) in enumerate(ended):
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}")
        Run.objects.filter(public_id=f"r{number}").update(
            status="done",
            termination_reason={"type": kind},
            finished_at=Now() - timedelta(hours=hours, minutes=5),
        )
    figure = chart(page(admin, CHARTS), "runs")
    assert re.findall(r'<th scope="col" class="num" data-series="([^"]*)">([^<]*)<', figure) == [
        ("ok", "Completed"), ("bad", "Failed"), ("earlier", "A day earlier"),
    ]  # fmt: skip
    assert rows(figure)[:3] == [("0", "0", "0"), ("2", "0", "0"), ("0", "1", "0")]
    assert rows(figure)[6] == ("0", "0", "1")
    assert 'href="/runs?status=done"' in figure


def test_overview__more_runs_than_it_reads__says_so(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_runs(alice, 2)
    Run.objects.update(status="done", finished_at=Now())
    assert "of the newest" not in page(admin, CHARTS)
    monkeypatch.setattr(counts, "RUNS", 1)
    figure = chart(page(admin, CHARTS), "runs")
    assert "of the newest" in figure
    assert rows(figure)[0] == ("1", "0")


def test_overview__no_traffic__says_when_it_is_counted(
    admin: Client, stranger: Client, alice: Person
) -> None:
    busy(alice)
    text = "No read requests in this period or a day earlier."
    assert text not in page(admin, CHARTS)
    figure = chart(page(stranger, CHARTS), "reads")
    assert text in figure
    assert "<svg" not in figure


def test_overview__first_day__says_when_the_first_sample_arrives(
    admin: Client, alice: Person
) -> None:
    assert "the first sample arrives within a minute of a worker's start" in chart(
        html.unescape(page(admin, CHARTS)), "storage"
    )
    now = datetime.now(UTC)
    Sweep.objects.create(
        name="measure storage", last_effect={"workspaces": 1, "seconds": 10}, last_effect_at=now
    )
    # Ten seconds of work, 300 of rest, and a minute until the next start.
    expected = now + timedelta(seconds=360)
    assert f"arrives at about {expected:%H:%M} UTC" in chart(page(admin, CHARTS), "storage")
    storage.measure_storage()
    assert "Collecting: one sample per day. The second arrives on" in chart(
        page(admin, CHARTS), "storage"
    )


def test_overview__status__links_to_its_rows(admin: Client, alice: Person) -> None:
    shown = page(admin, "/")
    strip = shown.partition('id="overview-now"')[2].partition("</section>")[0]
    urls = re.findall(r'<a href="([^"]+)"', strip)
    assert urls[:3] == [
        "/runs?status=running", "/runs?status=waiting", "/runs?status=created",
    ]  # fmt: skip
    assert set(urls[3:]) == {"/system"}
    assert shown.index("overview-now") < shown.index("Needs attention") < shown.index("Activity")


def test_overview__stuck_runs__are_named_beside_those_of_their_status(
    admin: Client, alice: Person
) -> None:
    make_runs(alice, 4)
    late = Now() - timedelta(minutes=9)
    Run.objects.filter(public_id__in=("r0", "r1")).update(lease_expires_at=late)
    Run.objects.filter(public_id="r3").update(status="created", times_out_at=late)
    strip = page(admin, "/").partition('id="overview-now"')[2].partition("</section>")[0]
    assert re.findall(r"<strong>(\d+)</strong>.*?</a>", strip)[:3] == ["3", "0", "1"]
    assert re.findall(r">(\d+ stuck)<", strip) == ["2 stuck", "1 stuck"]


@pytest.mark.parametrize("hours", ["", "24", "1"])
def test_overview__any_period__loads_its_charts_afterwards(
    hours: str, admin: Client, alice: Person
) -> None:
    busy(alice)
    shown = page(admin, f"/?hours={hours}" if hours else "/")
    assert "chart-reads" not in shown
    (url,) = re.findall(r'id="overview-charts"[^>]* hx-get="([^"]+)" hx-trigger="load"', shown)
    assert url == f"/?hours={hours or 24}"
    headers = {
        "HX-Request": "true",
        "HX-Request-Type": "partial",
        "HX-Target": "section#overview-charts",
    }
    loaded = admin.get(url, headers=headers).content.decode()
    assert f'aria-current="true" href="{url}#activity"' in loaded
    # Without JavaScript, a link opens the page with `charts=1`, whose links keep that parameter.
    assert f'<noscript><p class="note"><a href="{url}&amp;charts=1#activity">' in shown
    whole = page(admin, f"{url}&charts=1")
    assert chart(loaded, "reads") == chart(whole, "reads")
    assert f'aria-current="true" href="{url}&amp;charts=1#activity"' in whole


def test_overview__failed_sweep__needs_attention(admin: Client, alice: Person) -> None:
    Sweep.objects.create(name="expire entries", started_at=Now(), finished_at=Now())
    assert "failed sweep" not in page(admin, "/")
    Sweep.objects.update(error="division by zero")
    shown = page(admin, "/")
    assert "failed sweep</span>" in shown
    assert "division by zero" in shown
    assert "1 failed" in shown.partition('href="/system"')[2].partition("</a>")[0]


def test_overview__more_runs_than_are_counted__numbers_have_a_plus(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_runs(alice, 3)
    assert "<strong>3</strong>" in page(admin, "/")
    monkeypatch.setattr(counts, "MOST", 1)
    monkeypatch.setattr(overview, "MOST", 1)
    assert "<strong>2+</strong>" in page(admin, "/")


@pytest.mark.parametrize(
    ("part", "has", "lacks"),
    [("overview-now", "database", "chart-reads"), ("overview-charts", "chart-reads", "database")],
)
def test_overview__refreshed_part__is_all_that_is_returned(
    admin: Client, alice: Person, part: str, has: str, lacks: str
) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": f"section#{part}"}
    shown = admin.get("/", headers=headers).content.decode()
    assert f'id="{part}"' in shown
    assert has in shown
    assert lacks not in shown
    assert "Needs attention" not in shown
