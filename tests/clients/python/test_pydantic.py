"""Edits of pydantic models: what the model writes in another form stays as it is stored."""

from __future__ import annotations

import enum
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from commonhold import MemoryBackend, ProfileAccess, profile_key
from pydantic import BaseModel


class Shade(enum.Enum):
    LIGHT = "light"
    DARK = 1


class Item(BaseModel):
    id: str
    price: Decimal = Decimal(0)


class Offer(BaseModel):
    count: int = 0
    price: Decimal = Decimal(1)
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    day: date = date(2026, 1, 1)
    uuid: UUID = UUID(int=1)
    shade: Shade = Shade.LIGHT
    pause: timedelta = timedelta(0)
    tags: set[int] = set()
    items: list[Item] = []
    prices: list[Decimal] = []
    by_day: dict[date, Decimal] = {}


OFFER = profile_key("offer", Offer)
STORED: dict[str, Any] = {
    "count": 0,
    "price": 1.5,
    "at": "2026-01-01T00:00:00+00:00",
    "day": "2026-01-01",
    "uuid": "{00000000-0000-0000-0000-000000000001}",
    "shade": 1,
    "pause": 90,
    "tags": [3, 1, 2],
    "items": [{"id": "a", "price": 1}, {"id": "b", "price": 2}],
    "prices": [1.5, 2],
    "by_day": {"2026-01-01": 7},
}


@pytest.fixture
def offers() -> ProfileAccess:
    backend = MemoryBackend()
    backend.register(OFFER)
    backend.put("offer", "k", STORED)
    return ProfileAccess(backend)


def stored(offers: ProfileAccess) -> Any:
    backend: Any = offers._backend
    return backend.get("offer", "k").value


def test_edit__of_one_field__leaves_the_others_as_they_are_stored(offers: ProfileAccess) -> None:
    with offers.edit(OFFER, "k") as offer:
        offer.count = 1
    assert stored(offers) == STORED | {"count": 1}
    offers.edit(OFFER, "k", lambda offer: offer.model_copy(update={"count": 2}))
    assert stored(offers) == STORED | {"count": 2}


def test_edit__inside_lists_and_maps__leaves_the_other_items(offers: ProfileAccess) -> None:
    with offers.edit(OFFER, "k") as offer:
        offer.price += 1
        offer.items.insert(0, Item(id="new", price=Decimal(3)))
        offer.items[2].price = Decimal(9)
        del offer.prices[0]
        offer.by_day[date(2026, 1, 2)] = Decimal(8)
    assert stored(offers) == STORED | {
        "price": "2.5",
        "items": [
            {"id": "new", "price": "3"},
            {"id": "a", "price": 1},
            {"id": "b", "price": "9"},
        ],
        "prices": [2],
        "by_day": {"2026-01-01": 7, "2026-01-02": "8"},
    }


def test_edit__of_a_set_stored_in_another_order__removes_the_right_item(
    offers: ProfileAccess,
) -> None:
    with offers.edit(OFFER, "k") as offer:
        offer.tags.remove(2)
    assert offers.read(OFFER, "k").tags == {1, 3}
    assert stored(offers) == STORED | {"tags": [1, 3]}


def test_edit__merged_with_another__leaves_the_rest_as_it_is_stored(offers: ProfileAccess) -> None:
    with offers.edit(OFFER, "k") as offer:
        with offers.edit(OFFER, "k") as faster:
            faster.prices.append(Decimal(3))
        offer.count = 5
    assert stored(offers) == STORED | {"count": 5, "prices": [1.5, 2, "3"]}
