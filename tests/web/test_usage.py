"""The usage page, its charts, and the sparklines on other pages."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from state_admin.models import ModelSpending, Run, StorageSample, Thread
from state_admin.services import quotas, storage
from state_admin.templatetags.charts import (
    Chart,
    Series,
    Tick,
    day_ticks,
    nice_scale,
    plot,
    span_of_days,
    sparkline,
    time_axis,
)
from state_admin.web import health
from tests.builders import Person, make_namespace, put
from tests.services.test_storage import age
from tests.web.conftest import CheckQueries

from .stories import HOSTILE, create_story


@pytest.fixture
def measured(alice: Person) -> Person:
    """A story with a compaction, measured on two days."""
    create_story(alice.actor)
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", "x" * 1000)
    storage.measure_storage()
    age(alice, 4, total_bytes=500)
    return alice


def text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def test_usage__measured__shows_storage_and_growth(admin: Client, measured: Person) -> None:
    assert "from 500 B on" in text(admin, "/usage?by=kind")
    page = text(admin, "/usage")
    assert "Largest namespaces" in page
    assert ">notes</a>" in page
    assert ">t1</a>" in page
    assert '<svg class="sparkline"' in page
    assert "tokens less in contexts in 30 days" in page


def test_usage__first_day__has_no_columns_of_growth(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", "x")
    storage.measure_storage()
    first_day = text(admin, "/usage")
    assert ">notes</a>" in first_day
    assert "Per day" not in first_day
    assert ">30 days</th>" not in first_day
    assert "—" not in first_day
    age(alice, 4, total_bytes=500)
    make_namespace(alice.actor, "fresh")
    put(alice.actor, "fresh", "a", "x")
    storage.measure_storage()
    second_day = text(admin, "/usage")
    assert "Per day" in second_day
    assert ">30 days</th>" in second_day
    assert '<td class="wide-only">—</td>' in second_day


def test_usage__chart__has_a_text_and_a_table(admin: Client, measured: Person) -> None:
    page = text(admin, "/usage?by=kind")
    svg = re.search(r'<svg class="plot".*?</svg>', page)
    assert svg is not None
    assert 'aria-labelledby="storage-title storage-text"' in svg[0]
    assert 'id="storage-title">Storage<' in page
    assert '<th scope="row">' in page


def test_usage__tokens__are_shown_by_day(admin: Client, measured: Person) -> None:
    assert 'id="tokens-title">Tokens stored<' in text(admin, "/usage")
    StorageSample.objects.totals().filter(total_bytes=500).update(estimated_tokens=123_456)
    page = text(admin, "/usage")
    assert "in entries and messages; 123.5 k on" in page
    StorageSample.objects.update(estimated_tokens=0)
    assert "Tokens stored" not in text(admin, "/usage")


def storage_table(client: Client, by: str) -> dict[str, list[str]]:
    """The columns of the chart of storage, newest day first, without days not measured."""
    figure = text(client, f"/usage?by={by}").partition('id="chart-storage"')[2]
    table = figure.partition("</table>")[0]
    heads = re.findall(r'<th scope="col" class="num"[^>]*>([^<]*)<', table)
    rows = [re.findall(r"<td[^>]*>([^<]*)<", row) for row in table.split("<tr>")[2:]]
    kept = [row for row in rows if row[-1] != "—"]
    return {head: [row[place] for row in kept] for place, head in enumerate(heads)}


def test_usage__storage__is_divided_by_namespace_agent_resource_and_kind(
    admin: Client, measured: Person
) -> None:
    Thread.objects.update(resource_id="customer-7")
    StorageSample.objects.filter(namespace=None).update(
        entry_bytes=9_000, history_bytes=0, message_bytes=70, state_bytes=7
    )
    StorageSample.objects.filter(namespace__name="notes").update(entry_bytes=5_000, history_bytes=0)
    by_namespace = storage_table(admin, "namespace")
    assert by_namespace["notes"][0] == "5.0 kB"
    assert "Other namespaces, state history" in by_namespace
    StorageSample.objects.totals().update(message_bytes=200)
    by_resource = storage_table(admin, "resource")
    assert (by_resource["customer-7"][0], by_resource["Other threads"][0]) == ("154 B", "53 B")
    Run.objects.filter(thread__public_id="t1").update(agent_id="planner")
    by_agent = storage_table(admin, "agent")
    assert (by_agent["planner"][0], by_agent["No agent"][0]) == ("77 B", "77 B")
    StorageSample.objects.totals().update(message_bytes=70)
    kinds = storage_table(admin, "kind")
    assert {name: values[0] for name, values in kinds.items()} == {
        "Entries": "9.0 kB", "Versions": "0 B", "Messages": "70 B", "Thread state": "7 B",
    }  # fmt: skip


def test_usage__never_measured__shows_how_to_measure(admin: Client) -> None:
    page = text(admin, "/usage")
    assert "No measurements yet" in page
    assert "Collecting: the first sample arrives" in page
    assert "/api/v1/usage/storage/namespaces/team_context" in page


def test_usage__period__is_in_the_url(admin: Client, measured: Person) -> None:
    age(measured, 60, total_bytes=7)
    assert "from 7 B on" not in text(admin, "/usage?by=kind")
    assert "from 7 B on" in text(admin, "/usage?by=kind&days=90")
    assert "from 7 B on" not in text(admin, "/usage?by=kind&days=nonsense")


def test_usage__spending__is_shown_with_the_cap(
    admin: Client, alice: Person, settings: Any
) -> None:
    settings.SUMMARY_DAILY_USD = Decimal(2)
    today = timezone.now().date()
    for ago, cost in ((0, "0.5"), (3, "0.25"), (40, "1.9")):
        ModelSpending.objects.create(
            workspace=alice.workspace, day=today - timedelta(days=ago), cost_usd=Decimal(cost)
        )
    page = text(admin, "/usage")
    assert "$0.50 of $2.00" in page
    assert '<meter min="0" max="2.0" value="0.5"' in page
    assert "$0.75</" in page or "$0.75<span" in page
    assert "for summaries in 30 days" in page


def test_usage__quotas__are_shown_as_meters(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    quotas.set_quota(actor=alice.actor, entries=10, bytes=None, threads=None)
    page = text(admin, "/usage")
    assert "1 of 10" in page
    assert 'max="10" value="1" aria-label="Entries used"' in page
    assert "0, no limit" in page


def test_usage__other_workspace__is_not_included(stranger: Client, measured: Person) -> None:
    assert ">notes</a>" not in text(stranger, "/usage")


@pytest.mark.parametrize("path", ["/usage", "/namespaces/notes", "/compactions"])
def test_other_pages__measured__have_a_sparkline(
    path: str, admin: Client, measured: Person
) -> None:
    assert '<svg class="sparkline"' in text(admin, path)


def test_usage__nothing_saved__says_so(admin: Client, measured: Person) -> None:
    StorageSample.objects.update(tokens_saved=0)
    assert "No compaction saved tokens in the last 30 days" in text(admin, "/usage")


PAGES = {
    "usage": "/usage",
    "usage, 90 days": "/usage?days=90",
    "usage, by agent": "/usage?by=agent",
    "usage, by resource": "/usage?by=resource",
}


@pytest.mark.parametrize("name", PAGES)
def test_page__member__uses_a_bounded_number_of_queries(
    name: str, admin: Client, measured: Person, check_queries: CheckQueries
) -> None:
    check_queries(name, admin, PAGES[name])


def test_page__anonymous__redirects_to_login(client: Client, db: None) -> None:
    assert client.get("/usage")["Location"] == "/login?next=/usage"


# Parts ----------------------------------------------------------------------------------------


def test_worker__just_started__is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_STARTED", health.monotonic())
    assert health.worker_state(None) == "starting"
    long_ago = timezone.now() - timedelta(hours=1)
    assert health.worker_state(long_ago) == "starting"
    monkeypatch.setattr(health, "_STARTED", health.monotonic() - health.STARTING_SECONDS)
    assert health.worker_state(None) == health.worker_state(long_ago) == "silent"
    assert health.worker_state(timezone.now()) == "running"


def chart(*values: float | None, words: str = "x", stacked: bool = True, **fields: Any) -> Chart:
    series = [Series(words, values, words)]
    labels = [words] * len(values)
    return Chart(
        words, words, words, words, words, words, labels, [Tick(0.5, words)], series, str,
        stacked=stacked, **fields,
    )  # fmt: skip


def test_plot__bars__follow_the_values() -> None:
    drawn = plot(chart(50, None, 100, 0.001))
    assert re.findall(r"M(\d+) 100V([\d.]+)h8", drawn) == [("1", "50"), ("21", "0"), ("31", "99")]


def test_plot__parts_of_bars__are_stacked() -> None:
    parts = [Series("a", [30], "1"), Series("b", [None], "2"), Series("c", [70], "3")]
    drawn = plot(replace(chart(0), series=parts))
    assert re.findall(r'data-series="(.)" d="([^"]*)"', drawn) == [
        ("1", "M1 100V70h8V100z"), ("2", ""), ("3", "M1 70V0h8V70z"),
    ]  # fmt: skip


def test_plot__line__has_gaps_where_nothing_was_measured() -> None:
    drawn = plot(chart(0, 100, None, 50, stacked=False))
    assert 'class="line" data-series="x" d="M5 100L15 0M35 50h0"' in drawn


def test_plot__day_earlier__has_the_same_scale() -> None:
    drawn = plot(chart(50, stacked=False, earlier=Series("before", [100], "earlier")))
    assert 'data-series="earlier" d="M5 0h0"' in drawn
    assert 'data-series="x" d="M5 50h0"' in drawn


@pytest.mark.parametrize(
    ("highest", "scale"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (42, [0, 20, 40, 60]),
        (100, [0, 50, 100]),
        (0.3, [0, 0.1, 0.2, 0.3]),
        (12_345, [0, 5_000, 10_000, 15_000]),
    ],
)
def test_scale__has_round_numbers_up_to_the_highest(highest: float, scale: list[float]) -> None:
    assert nice_scale(highest) == scale


def test_days__ticks__are_labelled_and_end_at_the_last_day() -> None:
    span = span_of_days(date(2026, 3, 2), 30)
    assert [tick.label for tick in day_ticks(span)] == ["10 Feb", "20 Feb", "2 Mar"]
    assert day_ticks(span)[-1].place > 0.98


def test_sparkline__values__go_from_left_to_right_and_end_in_a_dot() -> None:
    drawn = sparkline([0, 5, 10], "up")
    assert 'points="3.0,21.0 60.0,12.0 117.0,3.0"' in drawn
    assert '<circle cx="117.0" cy="3.0"' in drawn
    assert sparkline([5], "one") == sparkline([], "none") == ""


@pytest.mark.parametrize("words", HOSTILE)
def test_charts__hostile_texts__are_escaped(words: str) -> None:
    drawn_charts = (plot(chart(1, 2, words=words)), time_axis(chart(1, words=words)))
    for drawn in (*drawn_charts, sparkline([1, 2], words)):
        assert "<script" not in drawn
        assert "<img" not in drawn
        assert "onmouseover=alert(1) x='" not in drawn
