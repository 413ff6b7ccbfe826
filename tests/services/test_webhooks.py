"""Webhooks: permissions, secrets, pause, resume, replay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.test import override_settings

from state_admin.contract.webhooks import WebhookFilter as Filter
from state_admin.domain import signatures
from state_admin.domain.access import Role
from state_admin.models import (
    ApiToken,
    AuditRow,
    Change,
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    WebhookSecret,
    feed_sql,
)
from state_admin.services import (
    deliveries,
    tokens,
    webhook_flow,
    webhook_pump,
    webhook_secrets,
    webhooks,
)
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    QuotaExceeded,
)
from state_admin.services.webhook_secrets import live_secrets
from state_admin.streams import cursors
from tests import builders, feeding
from tests.builders import Person, make_namespace, make_token, put
from tests.feeding import wait_for_feed
from tests.services.faults import fail_everywhere
from tests.services.racing import interleave, overlap, race

# The feed contains committed changes only.
pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://example.com/hook"


def make(actor: Any, **fields: Any) -> Webhook:
    wait_for_feed(actor.workspace_id)
    return webhooks.create_webhook(actor=actor, **{"name": "hook", "url": URL, **fields})[0]


def pump(hook: Webhook) -> list[WebhookDelivery]:
    """Read the feed; returns all deliveries of the webhook, in order."""
    feeding.pump(hook)
    return list(WebhookDelivery.objects.filter(webhook=hook).order_by("pk"))


def delivered_subjects(hook: Webhook) -> list[str]:
    return [f"{row.kind} {row.subject}" for row in pump(hook)]


def cursor_of_now(person: Person) -> str:
    wait_for_feed(person.workspace.pk)
    end = feed_sql.read_end(person.workspace.pk)
    return cursors.seal(end.position, end.at)


# Creating ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 129}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"url": "ftp://example.com"}, "/url"),
        ({"url": "https://u:p@example.com"}, "/url"),
        ({"filters": Filter(kinds=("entry put",))}, "/filter/kinds/0"),
        ({"filters": Filter(kinds=("entry.*", "entry.puts"))}, "/filter/kinds/1"),
        ({"filters": Filter(kinds=("no.*",))}, "/filter/kinds/0"),
        ({"filters": Filter(kinds=("entry.*", "x" * 200))}, "/filter/kinds/1"),
        ({"filters": Filter(kinds=("a",) * 51)}, "/filter/kinds"),
        ({"filters": Filter(namespaces=("a/b",))}, "/filter/namespaces/0"),
        ({"filters": Filter(key="é" * 257)}, "/filter/key"),
        ({"filters": Filter(thread_id="a\0")}, "/filter/thread_id"),
    ],
)
def test_create__invalid_field__is_located(alice: Person, fields: Any, pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        make(alice.actor, **fields)
    assert [error["pointer"] for error in caught.value.data["errors"]] == [pointer]
    assert not Webhook.objects.exists()


def test_create__editor__is_refused(alice: Person) -> None:
    _, editor = make_token(alice, Role.EDITOR)
    with pytest.raises(Forbidden):
        make(editor)


def test_create__hundred_and_first__is_over_the_quota(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MOST_PER_WORKSPACE", 1)
    make(alice.actor)
    with pytest.raises(QuotaExceeded, match="quota exceeded: webhooks"):
        make(alice.actor)


def test_create__two_for_the_last_place__one_is_over_the_quota(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MOST_PER_WORKSPACE", 1)
    with pytest.raises(QuotaExceeded):
        overlap(partial(make, alice.actor), partial(make, alice.actor))


def test_create__any__stores_no_secret(alice: Person) -> None:
    hook, secret = webhooks.create_webhook(actor=alice.actor, name="hook", url=URL)
    stored = repr(list(WebhookSecret.objects.values())) + repr(list(Webhook.objects.values()))
    stored += repr(list(AuditRow.objects.values()))
    for encoded in (secret, secret.removeprefix("whsec_"), live_secrets(hook.pk)[0].hex()):
        assert encoded not in stored


# What it receives -----------------------------------------------------------------------------


@pytest.fixture
def notes(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    make_namespace(alice.actor, "team_a")
    put(alice.actor, "notes", "before", 1)


@pytest.mark.usefixtures("notes")
def test_pump__new_webhook__begins_with_the_next_change(alice: Person) -> None:
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    put(alice.actor, "notes", "k", 1)
    assert delivered_subjects(hook) == ["entry.put state/notes/k"]


@pytest.mark.usefixtures("notes")
def test_pump__webhook_with_a_cursor__begins_after_it(alice: Person) -> None:
    cursor = cursor_of_now(alice)
    put(alice.actor, "notes", "between", 1)
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)), cursor=cursor)
    put(alice.actor, "notes", "after", 1)
    assert delivered_subjects(hook) == [
        "entry.put state/notes/between",
        "entry.put state/notes/after",
    ]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filter(namespaces=("team_*",)), ["entry.put state/team_a/x"]),
        (Filter(kinds=("entry.delete",)), ["entry.delete state/notes/thread%3A%3A1"]),
        (Filter(key="x", namespaces=("notes",)), ["entry.put state/notes/x"]),
        (Filter(prefix="thread::", kinds=("*.put",)), ["entry.put state/notes/thread%3A%3A1"]),
        (Filter(thread_id="t1"), ["thread.create threads/t1", "run.start runs/r1"]),
        (Filter(run_id="r1"), ["run.start runs/r1"]),
    ],
)
@pytest.mark.usefixtures("notes")
def test_pump__filter__matching_changes_only(
    alice: Person, filters: Filter, expected: list[str]
) -> None:
    hook = make(alice.actor, filters=filters)
    put(alice.actor, "notes", "x", 1)
    put(alice.actor, "team_a", "x", 1)
    put(alice.actor, "notes", "thread::1", 1)
    builders.entries.delete_entry(actor=alice.actor, namespace="notes", key="thread::1")
    builders.make_thread(alice.actor, "t1")
    builders.make_thread(alice.actor, "t2")
    builders.make_run(alice.actor, "t1", "r1")
    assert delivered_subjects(hook) == expected


@pytest.mark.usefixtures("notes")
def test_pump__restricted_creator__keeps_the_permissions_of_its_creation(
    alice: Person,
) -> None:
    _, narrow = make_token(alice, Role.ADMIN, namespaces=["team_*"], thread_prefixes=["mine-"])
    hook = make(narrow)
    tokens.revoke_token(actor=alice.actor, token_id=int(narrow.id))
    ApiToken.objects.filter(pk=narrow.id).delete()
    put(alice.actor, "notes", "secret", 1)
    put(alice.actor, "team_a", "open", 1)
    builders.make_thread(alice.actor, "mine-1")
    builders.make_thread(alice.actor, "theirs-1")
    bodies = "".join(row.body for row in pump(hook))
    assert "open" in bodies
    assert "mine-1" in bodies
    assert "secret" not in bodies
    assert "theirs-1" not in bodies


@pytest.mark.usefixtures("notes")
def test_pump__filter_beyond_the_permissions__does_not_extend_them(alice: Person) -> None:
    _, narrow = make_token(alice, Role.ADMIN, namespaces=["team_*"])
    hook = make(narrow)
    webhooks.change_webhook(
        actor=alice.actor, webhook_id=hook.public_id, filters=Filter(namespaces=("*",))
    )
    put(alice.actor, "notes", "k", 1)
    assert delivered_subjects(hook) == []


def test_pump__other_workspace__gets_nothing(alice: Person, mallory: Person) -> None:
    hook = make(mallory.actor, filters=Filter(kinds=("entry.*",)))
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "k", 1)
    assert delivered_subjects(hook) == []


@pytest.mark.usefixtures("notes")
def test_pump__many_concurrent__create_one_delivery_per_change_in_order(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_pump, "PAGE", 3)
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    for number in range(20):
        put(alice.actor, "notes", f"k{number:02}", 1)
    wait_for_feed(alice.workspace.pk)
    queued = race([lambda: webhook_pump.pump_webhook(hook.public_id)] * 4)
    rows = pump(hook)
    assert sum(queued) <= 20
    assert [row.subject for row in rows] == [f"state/notes/k{number:02}" for number in range(20)]


@pytest.mark.usefixtures("notes")
def test_pump__transaction_commits_late__is_neither_missed_nor_out_of_order(alice: Person) -> None:
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    seen_meanwhile: list[int] = []

    def late() -> None:
        with transaction.atomic():
            put(alice.actor, "notes", "first", 1)
            race([lambda: put(alice.actor, "notes", "second", 1)])
            race([lambda: seen_meanwhile.append(webhook_pump.pump_webhook(hook.public_id))])

    late()
    assert seen_meanwhile == [0]
    assert delivered_subjects(hook) == [
        "entry.put state/notes/first",
        "entry.put state/notes/second",
    ]


@pytest.mark.usefixtures("notes")
def test_pump__filter_widened_meanwhile__later_changes_match_the_new_one(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make(alice.actor, filters=Filter(kinds=("run.*",)))

    def widen() -> None:
        wide = Filter(kinds=("entry.*",))
        webhooks.change_webhook(actor=alice.actor, webhook_id=hook.public_id, filters=wide)
        put(alice.actor, "notes", "later", 1)
        wait_for_feed(alice.workspace.pk)

    # After the pump has read the filter.
    with interleave(monkeypatch, feed_sql, "read_end", widen):
        webhook_pump.pump_webhook(hook.public_id)
    assert delivered_subjects(hook) == ["entry.put state/notes/later"]


@pytest.mark.usefixtures("notes")
def test_pump__expired_position_skipped_meanwhile__webhook_stays_active(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make(alice.actor)
    put(alice.actor, "notes", "a", 1)
    Webhook.objects.update(place_at=datetime(2020, 1, 1, tzinfo=UTC))

    def skip() -> None:
        webhook_flow.resume_webhook(actor=alice.actor, webhook_id=hook.public_id, skip=True)

    wait_for_feed(alice.workspace.pk)
    with interleave(monkeypatch, webhook_pump, "has_lost_position", skip):
        webhook_pump.pump_webhook(hook.public_id)
    hook.refresh_from_db()
    assert hook.status == "active"


@pytest.mark.usefixtures("notes")
def test_pump__receiver_is_far_behind__queues_a_bounded_number(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_pump, "MOST_WAITING", 3)
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", 1)
    assert len(pump(hook)) == 3
    WebhookDelivery.objects.update(status=DeliveryStatus.DELIVERED)
    assert delivered_subjects(hook) == [f"entry.put state/notes/k{number}" for number in range(5)]


@pytest.mark.usefixtures("notes")
def test_pump__failure_at_any_statement__stores_all_or_nothing(alice: Person) -> None:
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    put(alice.actor, "notes", "k", 1)
    wait_for_feed(alice.workspace.pk)
    assert fail_everywhere(lambda: webhook_pump.pump_webhook(hook.public_id)) > 3


@pytest.mark.usefixtures("notes")
def test_pump__position_older_than_the_feed__disables_it_with_the_reason(alice: Person) -> None:
    hook = make(alice.actor)
    Webhook.objects.update(place_at=Now() - timedelta(days=8))
    put(alice.actor, "notes", "k", 1)
    assert delivered_subjects(hook) == []
    hook.refresh_from_db()
    assert hook.status == "disabled"
    assert "deleted before" in hook.status_reason
    with pytest.raises(Gone, match="position in the change feed has expired"):
        webhook_flow.resume_webhook(actor=alice.actor, webhook_id=hook.public_id)
    wait_for_feed(alice.workspace.pk)
    webhook_flow.resume_webhook(actor=alice.actor, webhook_id=hook.public_id, skip=True)
    put(alice.actor, "notes", "l", 1)
    assert [line for line in delivered_subjects(hook) if "state/" in line] == [
        "entry.put state/notes/l"
    ]


@pytest.mark.usefixtures("notes")
def test_pump__no_changes__advances_the_position(alice: Person) -> None:
    hook = make(alice.actor)
    pump(hook)
    Webhook.objects.update(place_at=Now() - timedelta(days=6))
    WebhookDelivery.objects.all().delete()
    assert delivered_subjects(hook) == []
    hook.refresh_from_db()
    assert Webhook.objects.filter(place_at__gt=Now() - timedelta(minutes=1)).exists()


# Secrets -------------------------------------------------------------------------------------


def test_rotate__overlap__both_sign_until_it_ends(alice: Person) -> None:
    hook, first = webhooks.create_webhook(actor=alice.actor, name="hook", url=URL)
    _, second = webhooks.rotate_secret(actor=alice.actor, webhook_id=hook.public_id)
    assert first != second
    assert len(live_secrets(hook.pk)) == 2
    _, third = webhooks.rotate_secret(
        actor=alice.actor, webhook_id=hook.public_id, overlap_seconds=0
    )
    assert [signatures.spell(key) for key in live_secrets(hook.pk)] == [third]


def test_rotate__many_times__only_the_newest_sign(alice: Person) -> None:
    hook = make(alice.actor)
    for _ in range(6):
        _, newest = webhooks.rotate_secret(actor=alice.actor, webhook_id=hook.public_id)
    live = live_secrets(hook.pk)
    assert len(live) == 4
    assert signatures.spell(live[0]) == newest


@pytest.mark.parametrize("overlap", [-1, 31 * 24 * 3600])
def test_rotate__overlap_out_of_bounds__is_refused(alice: Person, overlap: int) -> None:
    hook = make(alice.actor)
    with pytest.raises(Invalid, match="overlap_seconds"):
        webhooks.rotate_secret(
            actor=alice.actor, webhook_id=hook.public_id, overlap_seconds=overlap
        )


def test_secret__secret_key_is_rotated__fallback_still_derives_it(alice: Person) -> None:
    with override_settings(SECRET_KEY="old key", SECRET_KEY_FALLBACKS=[]):
        hook, first = webhooks.create_webhook(actor=alice.actor, name="hook", url=URL)
    with override_settings(SECRET_KEY="new key", SECRET_KEY_FALLBACKS=["old key"]):
        assert [signatures.spell(key) for key in live_secrets(hook.pk)] == [first]
        webhooks.rotate_secret(actor=alice.actor, webhook_id=hook.public_id)
        assert len(live_secrets(hook.pk)) == 2
        # The old secret signs until it expires.
        assert list(webhook_secrets.of_former_keys()) == ["acme/hook"]
        webhooks.rotate_secret(actor=alice.actor, webhook_id=hook.public_id, overlap_seconds=0)
        assert list(webhook_secrets.of_former_keys()) == []
    with override_settings(SECRET_KEY="new key", SECRET_KEY_FALLBACKS=[]):
        assert len(live_secrets(hook.pk)) == 1
    with override_settings(SECRET_KEY="another key", SECRET_KEY_FALLBACKS=[]):
        assert live_secrets(hook.pk) == []


def test_secret__of_a_new_key__is_derived_where_this_key_is_only_a_fallback(alice: Person) -> None:
    """While processes with the former key still run (docs/operations.md#rotate-secret_key)."""
    with override_settings(SECRET_KEY="new key", SECRET_KEY_FALLBACKS=["old key"]):
        hook, secret = webhooks.create_webhook(actor=alice.actor, name="hook", url=URL)
    with override_settings(SECRET_KEY="old key", SECRET_KEY_FALLBACKS=["new key"]):
        assert [signatures.spell(key) for key in live_secrets(hook.pk)] == [secret]


# Pause, resume, replay -----------------------------------------------------------------------


@pytest.mark.usefixtures("notes")
def test_pause__changes_meanwhile__are_delivered_after_the_resume(alice: Person) -> None:
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    paused = webhook_flow.pause_webhook(
        actor=alice.actor, webhook_id=hook.public_id, reason="moving house"
    )
    assert (paused.status, paused.status_reason) == ("paused", "moving house")
    put(alice.actor, "notes", "k", 1)
    assert delivered_subjects(hook) == []
    webhook_flow.resume_webhook(actor=alice.actor, webhook_id=hook.public_id)
    assert delivered_subjects(hook) == ["entry.put state/notes/k"]


@pytest.mark.usefixtures("notes")
def test_pause__queued_delivery__is_not_delivered(alice: Person) -> None:
    hook = make(alice.actor)
    put(alice.actor, "notes", "k", 1)
    (*_, waiting) = pump(hook)
    webhook_flow.pause_webhook(actor=alice.actor, webhook_id=hook.public_id)
    assert deliveries.drain(hook.public_id) == 0
    assert deliveries.deliver(waiting.public_id) is None
    waiting.refresh_from_db()
    assert (waiting.status, waiting.attempts) == ("queued", 0)


@pytest.mark.usefixtures("notes")
def test_resume__skip__queued_deliveries_become_dead_letters(alice: Person) -> None:
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    put(alice.actor, "notes", "waits", 1)
    pump(hook)
    put(alice.actor, "notes", "unread", 1)
    webhook_flow.pause_webhook(actor=alice.actor, webhook_id=hook.public_id)
    wait_for_feed(alice.workspace.pk)
    webhook_flow.resume_webhook(actor=alice.actor, webhook_id=hook.public_id, skip=True)
    put(alice.actor, "notes", "new", 1)
    assert [(row.subject, row.status) for row in pump(hook)] == [
        ("state/notes/waits", "dead"),
        ("state/notes/new", "queued"),
    ]


@pytest.mark.usefixtures("notes")
def test_replay_from__cursor__delivers_everything_after_it_in_order(alice: Person) -> None:
    cursor = cursor_of_now(alice)
    hook = make(alice.actor, filters=Filter(kinds=("entry.*",)))
    for key in "abc":
        put(alice.actor, "notes", key, 1)
    first, *_ = pump(hook)
    WebhookDelivery.objects.filter(pk=first.pk).update(status="delivered")
    webhook_flow.replay_from(actor=alice.actor, webhook_id=hook.public_id, cursor=cursor)
    rows = pump(hook)
    assert [(row.subject[-1], row.status) for row in rows] == [
        ("a", "delivered"), ("a", "queued"), ("b", "queued"), ("c", "queued"),
    ]  # fmt: skip
    assert rows[0].body == rows[1].body


def test_replay_from__future_cursor__is_refused(alice: Person) -> None:
    hook = make(alice.actor)
    make_namespace(alice.actor, "notes")
    with pytest.raises(Conflict, match="ahead of the webhook"):
        webhook_flow.replay_from(
            actor=alice.actor, webhook_id=hook.public_id, cursor=cursor_of_now(alice)
        )


@pytest.mark.parametrize(("cursor", "error"), [("nonsense", BadRequest), ("", Conflict)])
def test_replay_from__not_a_cursor__is_refused(
    alice: Person, cursor: str, error: type[Exception]
) -> None:
    hook = make(alice.actor)
    make_namespace(alice.actor, "notes")
    with pytest.raises(error):
        webhook_flow.replay_from(actor=alice.actor, webhook_id=hook.public_id, cursor=cursor)


@pytest.mark.usefixtures("notes")
def test_replay_from__expired_cursor__is_gone(alice: Person) -> None:
    hook = make(alice.actor)
    end = feed_sql.read_end(alice.workspace.pk)
    old = cursors.seal(end.position, end.at - timedelta(days=8))
    with pytest.raises(Gone):
        webhook_flow.replay_from(actor=alice.actor, webhook_id=hook.public_id, cursor=old)


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("status", ["queued", "delivering"])
def test_replay__delivery_in_progress__is_refused(alice: Person, status: str) -> None:
    hook = make(alice.actor)
    put(alice.actor, "notes", "k", 1)
    row = pump(hook)[0]
    WebhookDelivery.objects.filter(pk=row.pk).update(status=status)
    with pytest.raises(Conflict, match=f"the delivery is already {status}"):
        webhook_flow.replay_delivery(actor=alice.actor, delivery_id=row.public_id)


def test_test__replayed__is_refused(alice: Person) -> None:
    row = webhook_flow.send_test(actor=alice.actor, webhook_id=make(alice.actor).public_id)
    with pytest.raises(Conflict, match="send a new test"):
        webhook_flow.replay_delivery(actor=alice.actor, delivery_id=row.public_id)


# Everyone else -------------------------------------------------------------------------------


def test_find__inaccessible__is_not_found(alice: Person, mallory: Person) -> None:
    hook = make(alice.actor)
    _, narrow = make_token(alice, Role.ADMIN, namespaces=["team_*"])
    own = make(narrow)
    for actor in (mallory.actor, narrow):
        with pytest.raises(NotFound, match="webhook not found"):
            webhooks.find_webhook(actor, hook.public_id)
        with pytest.raises(NotFound, match="webhook not found"):
            webhooks.delete_webhook(actor=actor, webhook_id=hook.public_id)
    assert webhooks.find_webhook(narrow, own.public_id)
    assert webhooks.find_webhook(alice.actor, own.public_id)


@pytest.mark.usefixtures("notes")
def test_delete__with_deliveries__keeps_an_audit_row_only(alice: Person) -> None:
    hook = make(alice.actor)
    put(alice.actor, "notes", "k", 1)
    pump(hook)
    webhooks.delete_webhook(actor=alice.actor, webhook_id=hook.public_id, reason="moved")
    assert not WebhookDelivery.objects.exists()
    assert not WebhookSecret.objects.exists()
    assert AuditRow.objects.get(action="webhook.delete").reason == "moved"


VERBS: dict[str, Any] = {
    "create": lambda a, hook, row: make(a, name="second"),
    "change": lambda a, hook, row: webhooks.change_webhook(
        actor=a, webhook_id=hook.public_id, name="x", url="https://example.org/"
    ),
    "rotate": lambda a, hook, row: webhooks.rotate_secret(actor=a, webhook_id=hook.public_id),
    "delete": lambda a, hook, row: webhooks.delete_webhook(actor=a, webhook_id=hook.public_id),
    "pause": lambda a, hook, row: webhook_flow.pause_webhook(actor=a, webhook_id=hook.public_id),
    "resume": lambda a, hook, row: webhook_flow.resume_webhook(
        actor=a, webhook_id=hook.public_id, skip=True
    ),
    "test": lambda a, hook, row: webhook_flow.send_test(actor=a, webhook_id=hook.public_id),
    "replay one": lambda a, hook, row: webhook_flow.replay_delivery(
        actor=a, delivery_id=row.public_id
    ),
    "replay all": lambda a, hook, row: webhook_flow.replay_dead_letters(
        actor=a, webhook_id=hook.public_id
    ),
    "replay from": lambda a, hook, row: webhook_flow.replay_from(
        actor=a, webhook_id=hook.public_id, cursor=cursors.seal(hook.place, hook.place_at)
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("notes")
def test_operation__failure_at_any_statement__leaves_nothing_but_an_audit_row(
    alice: Person, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make(alice.actor)
    put(alice.actor, "notes", "k", 1)
    row = pump(hook)[-1]
    WebhookDelivery.objects.filter(pk=row.pk).update(status="dead", finished_at=Now())
    # A random value would look like a row that was left behind.
    monkeypatch.setattr(webhook_secrets.secrets, "token_hex", lambda size: "5a" * size)
    monkeypatch.setattr(webhook_pump, "uuid7", lambda: "the same")
    monkeypatch.setattr(webhook_pump.timezone, "now", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    with transaction.atomic():
        assert fail_everywhere(lambda: VERBS[verb](alice.actor, hook, row)) > 2
    before = AuditRow.objects.count()
    VERBS[verb](alice.actor, hook, row)
    assert AuditRow.objects.count() == Change.objects.count() == before + 1
