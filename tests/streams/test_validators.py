"""The guarantees of the feed under load: subscribers connect and disconnect, transactions stay
open, PostgreSQL is killed.

A real server with two workers, on its own PostgreSQL that is killed with -9 meanwhile.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from project.postgres.cluster import Cluster
from state_admin.models.feed_sql import Position
from state_admin.streams import cursors
from tests.availability.traffic import Record
from tests.patience import PATIENCE
from tests.project.running import Running, free_port, wait_for
from tests.streams import validators
from tests.streams.listening import Listener
from tests.streams.validators import Item

LAST = "the last one"
BROKEN = (OSError, http.client.HTTPException, json.JSONDecodeError)


@dataclass
class World:
    port: int
    workspace: int
    whole: str
    narrow: str
    cluster: Cluster
    start: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    # (key, version) of every write that was acknowledged, and those of one transaction together
    acked: list[tuple[str, int]] = field(default_factory=list)
    transactions: list[list[tuple[str, int]]] = field(default_factory=list)
    # of these, atomic batches of several statements
    conditional: int = 0

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            headers = {"Authorization": f"Bearer {self.whole}", "Content-Type": "application/json"}
            sent = json.dumps(body) if body is not None else None
            client.request(method, f"/api/v1{path}", sent, headers)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            client.close()

    def page(self, after: str) -> tuple[list[Item], str]:
        status, body = self.call("GET", f"/changes?cursor={after}&limit=200")
        assert status == 200, body
        return body["items"], body["next_cursor"]

    def feed(self) -> list[Item]:
        """Everything since the start."""
        found: list[Item] = []
        cursor = self.start
        while page := self.page(cursor):
            items, cursor = page
            found += items
            if not items:
                return found
        raise AssertionError("unreachable")


@pytest.fixture
def world(start: Callable[..., Running], folder: Path) -> World:
    prepared = start("-m", "tests.streams.prepared")
    assert prepared.wait() == 0, prepared.output()
    names = json.loads(prepared.output().strip().splitlines()[-1])
    server = start("-m", "project.processes", "web", WEB_WORKERS="2", PORT=str(free_port()))
    server.wait_until_it_answers("/healthz")
    made = World(server.port, cluster=Cluster(folder / "data" / "postgres"), **names)
    made.start = made.call("GET", "/changes?limit=200")[1]["next_cursor"]
    return made


# Writers -------------------------------------------------------------------------------------


def write_by_api(world: World, seed: int) -> None:
    """Puts and atomic batches; half of these are several statements, and are sometimes refused
    completely."""
    dice = random.Random(seed)
    version: dict[str, int] = {}  # of the writer's own keys
    while not world.over.is_set():
        namespace = dice.choice(("notes", "team.x"))
        keys = dice.sample([f"{namespace}-{n}" for n in range(6)], dice.randint(1, 5))
        own = f"{namespace}-of-{seed}"
        operations: list[dict[str, Any]] = [
            {"op": "put", "namespace": namespace, "key": key, "value": dice.random()}
            for key in keys
        ]
        if dice.random() < 0.5:
            expected = version.get(own, 0) + (dice.random() < 0.2)
            operations.append({**operations[0], "key": own, "if_version": expected})
        try:
            if len(operations) == 1:
                path = f"/state/{namespace}/{keys[0]}"
                status, body = world.call("PUT", path, {"value": 1})
                landed = [(keys[0], body.get("version"))]
            else:
                status, body = world.call("POST", "/state/batch", {"operations": operations})
                landed = [
                    (r["entry"]["key"], r["entry"]["version"]) for r in body.get("results", [])
                ]
        except BROKEN:
            continue  # the outcome is unknown: it may be in the feed
        assert status in (200, 201, 412, 503), body
        if status == 412:
            version[own] = body["actual"]
        if status < 300:
            version |= dict(landed)
            world.acked += landed
            world.transactions.append(landed)
            world.conditional += operations[-1].get("key") == own


def write_slowly(world: World, seed: int) -> None:
    """Transactions that take their ids early and commit late, or never."""
    dice = random.Random(seed)
    number = 0
    while not world.over.is_set():
        try:
            where = str(world.cluster.socket_folder)
            with psycopg.connect(
                host=where, port=5432, user="postgres", dbname="commonhold"
            ) as link:
                while not world.over.is_set():
                    number += 1
                    rows = [(f"slow-{seed}-{number}-{n}", n) for n in range(dice.randint(1, 4))]
                    link.execute("SELECT pg_current_xact_id()")
                    time.sleep(dice.random() * 0.03)
                    link.execute(
                        "INSERT INTO changes (workspace_id, kind, key, version)"
                        " SELECT %s, 'test.slow', * FROM unnest(%s::text[], %s::int[])",
                        (world.workspace, [key for key, _ in rows], [n for _, n in rows]),
                    )
                    time.sleep(dice.random() * 0.03)
                    if dice.random() < 0.2:
                        link.rollback()
                        continue
                    link.commit()
                    world.acked += rows
                    world.transactions.append(rows)
        except psycopg.OperationalError:
            time.sleep(0.05)


# Subscribers ---------------------------------------------------------------------------------


@dataclass
class Subscriber:
    """Reads, disconnects, resumes with its last id, until it has received the last change."""

    world: World
    seed: int
    wanted: Callable[[Item], bool]
    token: str = ""
    filters: dict[str, str] = field(default_factory=dict)
    history: list[Item] = field(default_factory=list)
    connections: int = 0

    def run(self) -> None:
        dice = random.Random(self.seed)
        last = self.world.start
        while not self.history or self.history[-1]["key"] != LAST:
            try:
                stream = Listener(
                    self.world.port, self.token or self.world.whole, last_event_id=last,
                    timeout=PATIENCE, **self.filters,
                )  # fmt: skip
            except BROKEN:
                continue
            with stream:
                if stream.status != 200:  # PostgreSQL is down
                    assert stream.status == 503, stream.problem()
                    time.sleep(0.05)
                    continue
                self.connections += 1
                self._read(stream, dice.choice((0, 1, 5, 50, 500)))
                last = stream.last_id

    def _read(self, stream: Listener, most: int) -> None:
        if most == 0:
            return  # its first id is enough to resume from
        for number, event in enumerate(stream, 1):
            if event.name == "change":
                assert event.id == event.data["cursor"]
                self.history.append(event.data)
            if number >= most or event.data.get("key") == LAST:
                return


def in_threads(jobs: list[Callable[[], None]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    return threads


def play(world: World, *, seed: int, seconds: float, kills: int) -> list[Subscriber]:
    """Run the load for a while; returns the subscribers when all have received the last change."""
    team = world.narrow
    subscribers = [
        *(Subscriber(world, seed + n, lambda item: True) for n in range(3)),
        Subscriber(world, seed + 3, lambda item: item["namespace"] != "notes", token=team),
        Subscriber(
            world, seed + 4,
            lambda item: item["kind"] in ("entry.put",), filters={"kind": "entry.put"},
        ),
    ]  # fmt: skip
    readers = in_threads([s.run for s in subscribers])
    writers = in_threads(
        [lambda n=n: write_by_api(world, seed + n) for n in range(3)]
        + [lambda n=n: write_slowly(world, seed + n) for n in range(3)]
    )
    for _ in range(kills):
        time.sleep(seconds / (kills + 1))
        postmaster = world.cluster.postmaster()
        if postmaster is not None:
            os.kill(postmaster, signal.SIGKILL)
    time.sleep(seconds / (kills + 1))
    wait_for(lambda: has_seen_enough(world, subscribers), "traffic that can show something")
    world.over.set()
    for writer in writers:
        writer.join(PATIENCE)
        assert not writer.is_alive()
    wait_for(lambda: write_last(world), "the last change is written")
    for reader in readers:
        reader.join(PATIENCE)
        assert not reader.is_alive(), "a subscriber never saw the last change"
    return subscribers


def has_seen_enough(world: World, subscribers: list[Subscriber]) -> bool:
    """Whether there were changes of every kind; a slow machine needs longer."""
    resumed = all(subscriber.connections > 1 for subscriber in subscribers)
    return resumed and len(world.transactions) > 20 and world.conditional > 10


def write_last(world: World) -> bool:
    try:
        status, _ = world.call("PUT", f"/state/team.x/{LAST.replace(' ', '%20')}", {"value": 1})
    except BROKEN:
        return False
    return status < 300


def check(world: World, subscribers: list[Subscriber], seed: int, record: Record) -> None:
    reference = world.feed()
    dice = random.Random(seed)
    there = {(item["key"], item["version"]) for item in reference}
    lost = [change for change in world.acked if change not in there]
    record("acknowledged writes", len(world.acked))
    record("acknowledged writes lost", len(lost))
    assert lost == []
    assert validators.broke_unique(reference) == []
    assert validators.broke_versions(reference) == []
    assert validators.broke_atomic(reference, world.transactions) == []
    places = [dice.randrange(len(reference)) for _ in range(20)]
    read = lambda cursor: world.page(cursor)[0]  # noqa: E731
    assert validators.broke_resumable(reference, places, read) == []
    for subscriber in subscribers:
        history = subscriber.history
        assert validators.broke_ordered(history, reference) == []
        assert validators.broke_unique(history) == []
        assert validators.broke_reliable(history, reference, subscriber.wanted) == []
    for subscriber in subscribers[:3]:  # those that require complete transactions
        assert validators.broke_atomic(subscriber.history, world.transactions) == []


def test_feed__changing_writers_and_subscribers_while_postgresql_is_killed__has_no_violation(
    world: World, record_property: Record
) -> None:
    check(world, play(world, seed=1, seconds=6, kills=1), 1, record_property)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_feed__for_minutes__has_no_violation(
    world: World, seed: int, record_property: Record
) -> None:
    check(world, play(world, seed=seed * 100, seconds=60, kills=5), seed, record_property)


# The validators themselves -------------------------------------------------------------------

AT = datetime(2026, 1, 1, tzinfo=UTC)
CURSORS = [cursors.seal(Position(xid, n), AT) for n, xid in enumerate((1, 2, 2, 3, 4))]
FEED: list[Item] = [
    {"cursor": CURSORS[n], "key": key, "version": version, "kind": "entry.put"}
    for n, (key, version) in enumerate([("a", 1), ("b", 1), ("a", 2), ("b", 2), ("c", 1)])
]
PAIR = [[("b", 1), ("a", 2)]]


def everything(item: Item) -> bool:
    return True


def test_validators__correct_history__report_nothing() -> None:
    assert validators.broke_ordered(FEED, FEED) == []
    assert validators.broke_unique(FEED) == []
    assert validators.broke_reliable(FEED, FEED, everything) == []
    assert validators.broke_atomic(FEED, PAIR) == []
    assert validators.broke_versions(FEED) == []
    read = lambda cursor: FEED[CURSORS.index(cursor) + 1 :][:2]  # noqa: E731
    assert validators.broke_resumable(FEED, range(5), read) == []


def test_validators__each_kind_of_violation__is_reported() -> None:
    swapped = [FEED[0], FEED[2], FEED[1], FEED[3], FEED[4]]
    torn = [FEED[0], FEED[1], FEED[3], FEED[2], FEED[4]]

    assert validators.broke_ordered(swapped, FEED) == [CURSORS[1]]
    assert validators.broke_unique([*FEED, FEED[2]]) == [CURSORS[2]]
    assert validators.broke_reliable(FEED[:2] + FEED[3:], FEED, everything) == [CURSORS[2]]
    assert validators.broke_reliable(FEED, FEED, lambda item: item["key"] != "c") == [CURSORS[4]]
    assert validators.broke_atomic(torn, PAIR) == [str(PAIR[0])]
    assert validators.broke_atomic(FEED[:2], PAIR) == [str(PAIR[0])]
    assert validators.broke_versions([FEED[0], FEED[3]]) == ["b v2"]
    assert validators.broke_resumable(FEED, [1], lambda cursor: FEED[3:]) == [CURSORS[1]]
    assert validators.broke_resumable(FEED, [1], lambda cursor: []) == [CURSORS[1]]
