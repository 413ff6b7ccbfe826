"""The overview: how many items of each kind need attention, the oldest of each, and its link."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from state_admin.models import Change, Compaction, Dispatch, Run, Traffic, Webhook, counts
from state_admin.services import forks
from state_admin.services.dispatches import enqueue_dispatch
from state_admin.services.webhooks import create_webhook
from tests.builders import (
    Person,
    append,
    conversation,
    make_namespace,
    make_run,
    make_thread,
    put,
    raw,
)
from tests.web.stories import compact, create_story
from tests.web.test_threads import page


def sums(client: Client) -> dict[str, tuple[str, str]]:
    """The number and the URL of each kind, by its label."""
    found = re.findall(
        r'<a class="stat" href="([^"]+)"><span><span class="pill" data-state="[^"]*">([^<]+)</span>'
        r"</span><strong>([^<]+)</strong>",
        page(client, "/"),
    )
    return {label: (count, url.replace("&amp;", "&")) for url, label, count in found}


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
    assert "2+ do not match the schema" in page(admin, "/")
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


def test_overview__fork_of_a_compacted_thread__counts_its_savings_once(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(12))
    job = compact(alice.actor, "t1")
    forks.fork_thread(actor=alice.actor, thread_id="t1")
    saved = (job.tokens_before or 0) - (job.tokens_after or 0)
    assert f"<strong>{saved:,}</strong>" in page(admin, "/")


def test_overview__of_another_workspace__counts_nothing(stranger: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert sums(stranger) == {}


def test_overview__busiest_namespaces__are_ordered_by_writes_per_day(
    admin: Client, stranger: Client, alice: Person
) -> None:
    assert "No entries written in the last 24 hours" in page(admin, "/")
    for name, times in (("quiet", 1), ("loud", 3)):
        make_namespace(alice.actor, name)
        for number in range(times):
            put(alice.actor, name, "k", number)
    Change.objects.filter(namespace="loud", version=1).update(at=Now() - timedelta(hours=5))
    Change.objects.filter(namespace="loud", version=2).update(at=Now() - timedelta(days=2))
    shown = page(admin, "/").partition("Busiest namespaces")[2]
    assert shown.index(">loud<") < shown.index(">quiet<")
    assert re.findall(
        r'<span class="num">(\d+) <span class="muted">in a day, (\d+) in an hour',
        shown,
    ) == [
        ("2", "1"),
        ("1", "1"),
    ]
    assert ">loud<" not in page(stranger, "/")


def test_overview__more_changes_than_it_reads__extrapolates_the_day(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "loud")
    for number in range(4):
        put(alice.actor, "loud", "k", number)
    monkeypatch.setattr(counts, "MOST", 4)
    Change.objects.filter(version=1).update(at=Now() - timedelta(hours=6))
    (writes,) = counts.namespace_writes(alice.actor)
    assert (writes.namespace, writes.day, writes.hour, writes.about) == ("loud", 16, 3, True)
    assert "≈ 16" in page(admin, "/")
    assert "≈ 16" in page(admin, "/namespaces")


# Traffic -------------------------------------------------------------------------------------


def busy(person: Person) -> None:
    for ago, reads, writes, conflicts, queued in ((3, 40, 5, 0, 6), (2, 2, 7, 1, 2)):
        Traffic.objects.create(
            workspace=person.workspace,
            minute=Now() - timedelta(minutes=ago),
            reads=reads,
            writes=writes,
            conflicts=conflicts,
            queued=queued,
        )


def test_overview__busy_hour__has_lines_numbers_and_texts(admin: Client, alice: Person) -> None:
    busy(alice)
    shown = page(admin, "/")
    for said in (
        "42 read requests in the last hour, at most 40 a minute",
        "12 write requests in the last hour, at most 7 a minute",
        "1 conflict in the last hour, at most 1 a minute",
        "2 waiting now, at most 6 in the last hour",
    ):
        assert f'role="img" aria-label="{said}"' in shown
    numbers = re.findall(
        r'<span class="muted">([^<]+ in 60 minutes)</span>\s*<strong>(\d+)<', shown
    )
    assert numbers == [
        ("Read requests in 60 minutes", "42"),
        ("Write requests in 60 minutes", "12"),
        ("Conflicts in 60 minutes", "1"),
    ]


def test_overview__no_traffic__says_so(admin: Client, stranger: Client, alice: Person) -> None:
    busy(alice)
    assert "No API calls in the last hour" not in page(admin, "/")
    assert "No API calls in the last hour" in page(stranger, "/")
