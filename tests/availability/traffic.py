"""Writers that repeat each write until it is acknowledged, and a reader of the change feed."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.project.running import call_api, wait_for
from tests.promises import TOTALS

WRITERS = 4
Record = Callable[[str, object], None]
# Seconds after which a client abandons a call and repeats it.
_TIMEOUT = 15.0
# Between two calls of a client, in seconds. Without it, clients take the processors from the servers and from
# the other tests of `make chaos`, which then wait for them.
_PAUSE = 0.03


class Traffic:
    """Each writer counts up the value of its own key, so that version n has the value n."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        self.acknowledged: Counter[str] = Counter()
        self.times: list[float] = []  # of all acknowledgements
        self.refused: Counter[int] = Counter()  # by status; 0: no answer
        self.followed: list[tuple[str, int]] = []  # key and version of each change, in feed order
        # Cursors that were refused, because the reader had got changes that were lost later. It starts
        # again.
        self.gone = 0
        # All writers have ended: what they wrote is what the reader has to read.
        self._stopped, self._written, self._follows = threading.Event(), threading.Event(), True
        assert self.call("PUT", "/namespaces/counters", {"schema": True})[0] in (200, 201)
        self._writers = [
            threading.Thread(target=self._write, args=(f"writer-{n}",)) for n in range(WRITERS)
        ]
        self._reader = threading.Thread(target=self._follow)
        for thread in (*self._writers, self._reader):
            thread.start()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """As call_api; status 0 if there is no response."""
        try:
            return call_api(self.port, self.token, method, path, body, seconds=_TIMEOUT, **headers)
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None

    def wait_for_more(self, count: int = 50) -> None:
        """Wait for at least one more write of every writer, and `count` more writes in total."""
        before, enough = Counter(self.acknowledged), len(self.times) + count

        def written() -> bool:
            moved = all(self.acknowledged[key] > before[key] for key in before)
            return moved and len(self.times) >= enough

        wait_for(written, lambda: f"{count} more writes; refused: {dict(self.refused)}")

    def longest_pause(self, since: float) -> float:
        """The longest time between two acknowledgements after `since`, in seconds."""
        times = [since, *(moment for moment in self.times if moment > since)]
        return max(b - a for a, b in itertools.pairwise(times))

    def stop(self, *, follow: bool = True) -> None:
        """Stop the writers, and the reader once it has read all acknowledged writes (`follow`)."""
        self._follows = follow
        self._stopped.set()
        for thread in self._writers:
            thread.join()
        self._written.set()
        self._reader.join()

    def _write(self, key: str) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            while True:
                status, entry = self.call(
                    "PUT",
                    f"/state/counters/{key}",
                    {"value": number},
                    **{"Idempotency-Key": f"{key}-{number}"},
                )
                if status in (200, 201):
                    assert entry["version"] == number, (key, number, entry)
                    self.acknowledged[key] = number
                    self.times.append(time.monotonic())
                    break
                self.refused[status] += 1
                time.sleep(0.1)
            time.sleep(_PAUSE)

    def _follow(self) -> None:
        cursor = ""
        while not (self._written.is_set() and (not self._follows or self._has_followed_all())):
            after = f"&cursor={cursor}" if cursor else ""
            status, page = self.call("GET", f"/changes?namespace=counters&limit=200{after}")
            if status == 200:
                cursor = page["next_cursor"]
                self.followed += [
                    (item["key"], item["version"])
                    for item in page["items"]
                    if item["kind"] == "entry.put" and item["key"].startswith("writer-")
                ]
            elif status == 410:
                self.gone += 1
                self.followed, cursor = [], ""
            assert status in (0, 200, 410) or status >= 500, page
            time.sleep(_PAUSE if status == 200 else 0.1)

    def _has_followed_all(self) -> bool:
        return len(set(self.followed)) >= sum(self.acknowledged.values())

    def history(self, key: str) -> list[tuple[int, Any]]:
        """All versions of a key with their values, the oldest first."""
        found: list[tuple[int, Any]] = []
        cursor = ""
        while cursor is not None:
            after = f"&cursor={cursor}" if cursor else ""
            path = f"/history/counters/{key}?limit=200&include=value{after}"
            status, page = self.call("GET", path)
            assert status == 200, page
            found += [(item["version"], item["value"]) for item in page["items"]]
            cursor = page["next_cursor"]
        return sorted(found)


def check_history(traffic: Traffic, record: Record, *, gone: bool = False) -> None:
    """End the traffic: every acknowledged write is there once, and the reader got each change once, in
    order. `gone`: its cursors may have been refused."""
    traffic.stop()
    lost = holes = skipped = repeated = 0
    for key, last in traffic.acknowledged.items():
        versions = traffic.history(key)
        lost += len(set(range(1, last + 1)) - {value for _, value in versions})
        holes += sum(version != value for version, value in versions)
        followed = [version for each, version in traffic.followed if each == key]
        skipped += len(set(range(1, last + 1)) - set(followed))
        repeated += len(followed) - len(set(followed))
        assert followed == sorted(followed)
    writes = sum(traffic.acknowledged.values())
    for name, number in zip(TOTALS, (writes, lost, holes, skipped, repeated), strict=True):
        record(name, number)
    record("cursors refused", traffic.gone)

    assert (lost, holes, skipped, repeated) == (0, 0, 0, 0)
    assert gone or traffic.gone == 0
