"""Bulk operations: the selected items, and the result for each."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from .base import MAX_LIMIT, Answer, Body, NonEmpty, doc
from .problems import Failure
from .types import ItemStatus


class Selection(Body):
    """The items of a bulk operation."""

    ids: Annotated[
        list[NonEmpty], doc("Ids of the items.", ["a", "b"], min_length=1, max_length=MAX_LIMIT)
    ]


class ItemResult(Answer):
    """The result of a bulk operation for one item."""

    id: Annotated[str, doc("Id of the item.", "a")]
    status: ItemStatus
    problem: Failure | UnsetType = UNSET


class ItemResults(Answer):
    """The results of a bulk operation."""

    results: Annotated[list[ItemResult], doc("The results in the order of the ids.")]
