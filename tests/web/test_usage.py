"""The usage page, its charts, and the sparklines on other pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from state_admin.models import ModelSpending, StorageSample
from state_admin.models.counts import hourly_changes
from state_admin.services import quotas, storage
from state_admin.templatetags.charts import Bar, Chart, bars, daily, sparkline
from state_admin.web import health
from tests.builders import Person, make_namespace, put
from tests.services.test_storage import age

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
    page = text(admin, "/usage")
    assert "Largest namespaces" in page
    assert ">notes</a>" in page
    assert ">t1</a>" in page
    assert "Stored from 500 B on" in page
    assert '<svg class="sparkline"' in page
    assert "tokens less in contexts in 30 days" in page


def test_usage__chart__has_a_text_and_a_table(admin: Client, measured: Person) -> None:
    page = text(admin, "/usage")
    svg = re.search(r'<svg class="plot".*?</svg>', page)
    assert svg is not None
    assert 'aria-labelledby="storage-title storage-desc"' in svg[0]
    assert '<title id="storage-title">Bytes stored</title>' in svg[0]
    assert '<td class="num">500 B</td>' in page


def test_usage__tokens__are_shown_by_day(admin: Client, measured: Person) -> None:
    assert '<title id="tokens-title">Tokens over time</title>' in text(admin, "/usage")
    StorageSample.objects.totals().filter(total_bytes=500).update(estimated_tokens=123_456)
    page = text(admin, "/usage")
    assert "tokens in entries and messages, 123.5 k on" in page
    StorageSample.objects.update(estimated_tokens=0)
    assert "Tokens over time" not in text(admin, "/usage")


def test_usage__never_measured__shows_how_to_measure(admin: Client) -> None:
    page = text(admin, "/usage")
    assert "No measurements yet" in page
    assert "/api/v1/usage/storage/namespaces/team_context" in page


def test_usage__period__is_in_the_url(admin: Client, measured: Person) -> None:
    age(measured, 60, total_bytes=7)
    assert "from 7 B on" not in text(admin, "/usage")
    assert "from 7 B on" in text(admin, "/usage?days=90")
    assert "from 7 B on" not in text(admin, "/usage?days=nonsense")


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
    assert "$0.75 for summaries in 30 days" in page


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


@pytest.mark.parametrize("path", ["/", "/namespaces/notes", "/compactions"])
def test_other_pages__measured__have_a_sparkline(
    path: str, admin: Client, measured: Person
) -> None:
    assert '<svg class="sparkline"' in text(admin, path)


def test_usage__nothing_saved__says_so(admin: Client, measured: Person) -> None:
    StorageSample.objects.update(tokens_saved=0)
    assert "No compaction saved tokens in the last 30 days" in text(admin, "/usage")


def test_overview__polled_part__excludes_the_trends(admin: Client, measured: Person) -> None:
    headers = {
        "HX-Request": "true",
        "HX-Request-Type": "partial",
        "HX-Target": "section#overview-now",
    }
    assert b"sparkline" not in admin.get("/", headers=headers).content


PAGES = {"usage": "/usage", "usage, 90 days": "/usage?days=90"}


@pytest.mark.parametrize("name", PAGES)
def test_page__member__uses_a_bounded_number_of_queries(
    name: str,
    admin: Client,
    measured: Person,
    count_queries: Callable[[Client, str], int],
    baseline: Callable[[str, int], None],
) -> None:
    baseline(name, count_queries(admin, PAGES[name]))


def test_page__anonymous__redirects_to_login(client: Client, db: None) -> None:
    assert client.get("/usage")["Location"] == "/login?next=/usage"


# Parts ----------------------------------------------------------------------------------------


def test_hourly_changes__of_a_workspace__include_only_its_own(
    alice: Person, mallory: Person
) -> None:
    make_namespace(alice.actor, "notes")
    before = sum(hourly_changes(alice.actor))
    put(alice.actor, "notes", "a", 1)
    make_namespace(mallory.actor, "notes")
    hours = hourly_changes(alice.actor)
    assert (len(hours), sum(hours), hours[-1]) == (24, before + 1, before + 1)


def test_worker__just_started__is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_STARTED", health.monotonic())
    assert health.worker_state(None) == "starting"
    long_ago = timezone.now() - timedelta(hours=1)
    assert health.worker_state(long_ago) == "starting"
    monkeypatch.setattr(health, "_STARTED", health.monotonic() - health.STARTING_SECONDS)
    assert health.worker_state(None) == health.worker_state(long_ago) == "silent"
    assert health.worker_state(timezone.now()) == "running"


def test_daily__days_without_a_value__are_gaps() -> None:
    last = date(2026, 3, 2)
    made = daily({last: (3, "three"), date(2026, 2, 28): (1, "one")}, last=last, days=4)
    assert [(bar.label, bar.value, bar.text) for bar in made] == [
        ("27 Feb", 0.0, ""), ("28 Feb", 1, "one"), ("1 Mar", 0.0, ""), ("2 Mar", 3, "three"),
    ]  # fmt: skip


def chart(*values: float, words: str = "x") -> Chart:
    return Chart("c", words, words, words, [Bar(words, value, words) for value in values])


def test_bars__heights__follow_the_values() -> None:
    drawn = bars(chart(50, 0, 100, 0.001))
    assert re.findall(r' y="([\d.]+)" width="8" height="([\d.]+)"', drawn) == [
        ("50.0", "50.0"), ("0.0", "100.0"), ("98.0", "2.0"),
    ]  # fmt: skip
    assert drawn.count('class="now"') == 1


def test_bars__no_values__are_empty() -> None:
    assert bars(chart()) == ""
    assert "<rect" not in bars(chart(0, 0))


def test_sparkline__values__go_from_left_to_right_and_end_in_a_dot() -> None:
    drawn = sparkline([0, 5, 10], "up")
    assert 'points="3.0,21.0 60.0,12.0 117.0,3.0"' in drawn
    assert '<circle cx="117.0" cy="3.0"' in drawn
    assert sparkline([5], "one") == sparkline([], "none") == ""


@pytest.mark.parametrize("words", HOSTILE)
def test_charts__hostile_texts__are_escaped(words: str) -> None:
    for drawn in (bars(chart(1, 2, words=words)), sparkline([1, 2], words)):
        assert "<script" not in drawn
        assert "<img" not in drawn
        assert "onmouseover=alert(1) x='" not in drawn
