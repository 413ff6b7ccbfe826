"""UUIDv7 (RFC 9562)."""

from __future__ import annotations

import os
import threading
import uuid

import pytest
import time_machine

from state_admin.domain import ids
from state_admin.domain.ids import uuid7


def test_uuid7__many__are_unique_sorted_and_of_version_7() -> None:
    made = [uuid7() for _ in range(5_000)]
    assert made == sorted(set(made))
    parsed = [uuid.UUID(text) for text in made]
    assert {(each.version, each.variant) for each in parsed} == {(7, uuid.RFC_4122)}


def test_uuid7__time__is_in_its_first_48_bits() -> None:
    with time_machine.travel("2100-01-01T00:00:00Z", tick=False):
        assert uuid.UUID(uuid7()).int >> 80 == 4_102_444_800_000


def test_uuid7__clock_goes_back__still_increases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_last", (0, 0))
    with time_machine.travel("2050-01-01", tick=False):
        first = uuid7()
    with time_machine.travel("2049-01-01", tick=False):
        assert uuid7() > first


def test_uuid7__random_part_at_its_maximum__uses_the_next_millisecond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with time_machine.travel("2050-01-01", tick=False):
        monkeypatch.setattr(ids, "_last", (2_524_608_000_000, (1 << 74) - 1))
        assert uuid.UUID(uuid7()).int >> 80 == 2_524_608_000_001


def test_uuid7__many_threads__never_create_duplicates() -> None:
    made: list[str] = []
    workers = [
        threading.Thread(target=lambda: made.extend([uuid7() for _ in range(500)]))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(made)) == 4_000


def test_uuid7__forked_child__does_not_repeat_its_parent() -> None:
    with time_machine.travel("2060-01-01", tick=False):
        uuid7()
        read_end, write_end = os.pipe()
        if not (child := os.fork()):
            os.write(write_end, uuid7().encode())
            os._exit(0)
        os.waitpid(child, 0)
        theirs, ours = os.read(read_end, 36).decode(), uuid7()
    os.close(read_end)
    os.close(write_end)
    # If the child had continued the parent's random part, all but the last 33 bits would be equal.
    assert uuid.UUID(theirs).int >> 34 != uuid.UUID(ours).int >> 34


def test_uuid7__random_part__fills_every_bit_beside_time_version_and_variant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ids, "_last", (0, 0))
    monkeypatch.setattr(ids.secrets, "randbits", lambda bits: (1 << bits) - 1)
    with time_machine.travel("2050-01-01", tick=False):
        assert uuid7() == "024bce5c-f000-7fff-bfff-ffffffffffff"
    monkeypatch.setattr(ids, "_last", (0, 0))
    monkeypatch.setattr(ids.secrets, "randbits", lambda bits: 1 << 62 | 2)
    with time_machine.travel("2050-01-01", tick=False):
        assert uuid7() == "024bce5c-f000-7001-8000-000000000002"


def test_uuid7__within_a_millisecond__increases_by_up_to_33_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with time_machine.travel("2050-01-01", tick=False):
        for step, end in ((0, "000000000006"), ((1 << 32) - 1, "000100000005")):
            monkeypatch.setattr(ids, "_last", (2_524_608_000_000, 5))
            monkeypatch.setattr(ids.secrets, "randbits", lambda bits, step=step: step)
            assert uuid7().endswith("-" + end)


def test_uuid7__after_the_random_part_overflowed__starts_in_its_lower_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(ids, "_last", (2_524_608_000_000, (1 << 74) - 1))
    monkeypatch.setattr(ids.secrets, "randbits", lambda bits: asked.append(bits) or 0)
    with time_machine.travel("2050-01-01", tick=False):
        uuid7()
    assert asked == [74, 32, 73]
