"""Measures the storage of workspaces, namespaces and threads, and its growth. A sweep stores one
sample per day; one namespace or thread is measured exactly on request. quotas.py has the limits."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from state_admin.domain.access import Actor
from state_admin.domain.storage import Counts, growth_per_day
from state_admin.models import Namespace, StorageSample, Sweep, Thread, Workspace, storage_sql
from state_admin.models.database import read_time
from state_admin.models.storage import StorageSampleQuerySet

from .batching import Report, Rest, rest_after
from .errors import NotFound, NotRegistered
from .threads import find_thread

Group = Literal["workspace", "namespace", "thread"]
ThreadGroup = Literal["agent", "resource"]

# How often a worker starts the sweep (tasks/sweeps.py).
INTERVAL: Final = timedelta(minutes=1)

# The number of threads of a workspace that get a sample, the largest ones.
THREADS: Final = 100
_CHUNK = 500
_rest = Rest()
_COUNTED = (*Counts().to_json(), "total_rows", "total_bytes")


@dataclass(frozen=True)
class Level:
    """The storage of a workspace, a namespace or a thread. `days`: its samples, oldest first.
    `exact`: measured now, and not by the last sweep."""

    newest: StorageSample
    name: str
    days: Sequence[StorageSample]
    exact: bool = False

    @property
    def group(self) -> Group:
        if self.newest.thread_id:
            return "thread"
        return "namespace" if self.newest.namespace_id else "workspace"

    @property
    def growth(self) -> float | None:
        """Bytes per day, over `days`."""
        return growth_per_day([(sample.day, sample.total_bytes) for sample in self.days])


def sweep_storage() -> Report:
    """Call `measure_storage`, unless it ran recently (Rest)."""
    return _rest.run(measure_storage)


def measure_storage() -> Report:
    """Count everything, in short statements, and store today's samples of every workspace, of its
    namespaces and of its largest threads. Deletes samples older than STORAGE_RETENTION."""
    at = read_time()
    totals = {
        pk: Counts() for pk in Workspace.objects.filter(frozen_at=None).values_list("pk", flat=True)
    }
    samples: dict[int, list[StorageSample]] = defaultdict(list)
    for namespace_id, workspace_id, counts in _namespaces():
        if workspace_id in totals:
            totals[workspace_id].add(counts)
            samples[workspace_id].append(
                StorageSample.of(
                    counts, workspace_id=workspace_id, measured_at=at, namespace_id=namespace_id
                )
            )
    largest: dict[int, list[tuple[int, int, Counts]]] = defaultdict(list)
    for thread_id, workspace_id, counts in storage_sql.threads():
        if workspace_id in totals:
            totals[workspace_id].add(counts)
            heapq.heappush(largest[workspace_id], (counts.bytes, thread_id, counts))
            if len(largest[workspace_id]) > THREADS:
                heapq.heappop(largest[workspace_id])
    report = {"workspaces": 0, "samples": 0, "forgotten": _forget(at)}
    for workspace_id, counts in totals.items():
        mine = samples[workspace_id]
        mine += (
            StorageSample.of(each, workspace_id=workspace_id, measured_at=at, thread_id=thread_id)
            for _, thread_id, each in largest[workspace_id]
        )
        mine.append(StorageSample.of(counts, workspace_id=workspace_id, measured_at=at))
        _store(workspace_id, mine, at)
        report["workspaces"] += 1
        report["samples"] += len(mine)
    return report


def _namespaces() -> Iterable[tuple[int, int, Counts]]:
    counted: dict[int, Counts] = defaultdict(Counts)
    for walk in (storage_sql.entries(), storage_sql.histories()):
        for namespace_id, counts in walk:
            counted[namespace_id].add(counts)
    for namespace_id, workspace_id in Namespace.objects.values_list("pk", "workspace_id"):
        if namespace_id in counted:
            yield namespace_id, workspace_id, counted[namespace_id]


def _store(workspace_id: int, samples: list[StorageSample], at: datetime) -> None:
    """Replace today's samples. Also updates yesterday's savings, because compactions may have ended
    after its last measurement."""
    with transaction.atomic():
        StorageSample.objects.bulk_create(
            samples,
            batch_size=_CHUNK,
            update_conflicts=True,
            unique_fields=["workspace", "namespace", "thread", "day"],
            update_fields=["measured_at", *_COUNTED],
        )
        today = StorageSample.objects.filter(workspace_id=workspace_id, day=at.date())
        today.filter(measured_at__lt=at).delete()  # now empty, or no longer among the largest
        for day in (at.date() - timedelta(days=1), at.date()):
            storage_sql.settle_savings(workspace_id=workspace_id, day=day)


def _forget(at: datetime) -> int:
    old = StorageSample.objects.filter(day__lt=(at - settings.STORAGE_RETENTION).date())
    deleted, _ = StorageSample.objects.filter(pk__in=old.values("pk")[:50_000]).delete()
    return deleted


def read_series(
    actor: Actor, *, days: int, namespace_id: int | None = None, thread_id: int | None = None
) -> list[StorageSample]:
    """Return the samples of the last `days`, oldest first: of a namespace or thread, which the
    caller has checked that the actor may see, or of the workspace."""
    of = Q(namespace=namespace_id, thread=thread_id)
    return list(_series(actor, days).filter(of).order_by("day"))


def read_workspace(actor: Actor, *, days: int) -> Level | None:
    """Return the storage of the workspace. None: it was not measured in the last `days`."""
    samples = read_series(actor, days=days)
    return Level(samples[-1], "", samples) if samples else None


def read_groups(actor: Actor, *, group: ThreadGroup, days: int) -> dict[str, dict[date, int]]:
    """Return the bytes of messages and state of the largest threads (THREADS per day) by agent (of
    their newest run) or by resource id, and by day; "" is that of threads without one."""
    samples = _series(actor, days).filter(namespace=None).exclude(thread=None)
    sizes = samples.values_list("thread_id", "day", F("message_bytes") + F("state_bytes"))
    rows = list(sizes.order_by())
    # Separate, because PostgreSQL would join all threads with their runs.
    threads = Thread.objects.filter(pk__in={thread_id for thread_id, _, _ in rows})
    name = "latest_run__agent_id" if group == "agent" else "resource_id"
    names = dict(threads.values_list("pk", Coalesce(name, Value(""))))
    found: dict[str, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    for thread_id, day, size in rows:
        if thread_id in names:  # else it was deleted
            found[names[thread_id]][day] += size
    return found


def next_measurement() -> datetime | None:
    """Return when the next measurement is expected, by the last one and its rest; None if no worker
    has measured yet. The sweep also runs, without an effect, while it rests."""
    sweep = Sweep.objects.filter(name="measure storage").first()
    if sweep is None or sweep.last_effect_at is None:
        return None
    rest = timedelta(seconds=rest_after(sweep.last_effect.get("seconds", 0)))
    return max(sweep.last_effect_at + rest, timezone.now()) + INTERVAL


def list_levels(
    actor: Actor, *, group: Group, days: int, limit: int, after: tuple[int, int] | None = None
) -> list[Level]:
    """Return the levels of the newest day, largest first, starting after (total_bytes, id of the
    sample).

    `namespace`: all non-empty ones outside the config registry. `thread`: the largest ones.
    """
    newest = StorageSample.objects.totals().filter(workspace_id=actor.workspace_id)
    day = newest.order_by("-day").values_list("day", flat=True).first()
    if day is None:
        return []
    rows = _of_group(actor, group).filter(day=day).biggest_first()
    rows = rows.select_related("namespace", "thread").defer(
        "namespace__schema", "namespace__default", "thread__metadata", "thread__created_from"
    )
    if after is not None:
        size, pk = after
        rows = rows.filter(total_bytes__lte=size).exclude(total_bytes=size, pk__gte=pk)
    return _with_days(actor, list(rows[:limit]), days)


def measure_namespace(actor: Actor, name: str, *, days: int) -> Level:
    """Measure a namespace now. If it is too large, returns the result of the last sweep. Raises
    NotRegistered, and NotFound if there is no such result."""
    namespace = Namespace.objects.visible_to(actor).open().filter(name=name).first()
    if namespace is None:
        raise NotRegistered(name)
    counts = storage_sql.measure_namespace(namespace.pk)
    return _measured(actor, counts, name, days, namespace_id=namespace.pk)


def measure_thread(actor: Actor, thread_id: str, *, days: int) -> Level:
    """Measure a thread now. If it is too large, returns the result of the last sweep. Raises
    NotFound, also if there is no such result."""
    thread = find_thread(actor, thread_id)
    return _measured(
        actor, storage_sql.measure_thread(thread.pk), thread_id, days, thread_id=thread.pk
    )


def _measured(
    actor: Actor,
    counts: Counts | None,
    name: str,
    days: int,
    *,
    namespace_id: int | None = None,
    thread_id: int | None = None,
) -> Level:
    series = read_series(actor, days=days, namespace_id=namespace_id, thread_id=thread_id)
    if counts is not None:
        now = StorageSample.of(
            counts, workspace_id=actor.workspace_id, namespace_id=namespace_id, thread_id=thread_id
        )
        if series and series[-1].day == now.day:
            now.tokens_saved = series[-1].tokens_saved
            now.rows_removed = series[-1].rows_removed
            series.pop()
        return Level(now, name, [*series, now], exact=True)
    if not series:
        raise NotFound(f"{name} is too large to measure on request; the next sweep measures it")
    return Level(series[-1], name, series)


def _with_days(actor: Actor, rows: list[StorageSample], days: int) -> list[Level]:
    series: dict[tuple[int | None, int | None], list[StorageSample]] = defaultdict(list)
    found = _series(actor, days).filter(
        namespace_id__in=[row.namespace_id for row in rows if row.namespace_id], thread=None
    ) | _series(actor, days).filter(
        namespace=None, thread_id__in=[row.thread_id for row in rows if row.thread_id]
    )
    for sample in found.order_by("day"):
        series[sample.namespace_id, sample.thread_id].append(sample)
    return [
        Level(row, _name(row), series[row.namespace_id, row.thread_id] or [row]) for row in rows
    ]


def _name(row: StorageSample) -> str:
    if row.namespace:
        return row.namespace.name
    return row.thread.public_id if row.thread else ""


def _of_group(actor: Actor, group: Group) -> StorageSampleQuerySet:
    rows = StorageSample.objects.visible_to(actor)
    if group == "namespace":
        open_to_all = Namespace.objects.visible_to(actor).open()
        return rows.filter(namespace__in=open_to_all, thread=None)
    if group == "thread":
        # A join, because a sample may exist for a thread that was deleted during the sweep.
        return rows.filter(namespace=None, thread__public_id__isnull=False)
    return rows.totals()


def _series(actor: Actor, days: int) -> StorageSampleQuerySet:
    since: date = timezone.now().date() - timedelta(days=days)
    return StorageSample.objects.filter(workspace_id=actor.workspace_id, day__gt=since)
