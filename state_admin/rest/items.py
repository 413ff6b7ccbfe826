"""Bulk operations: the same operation on several items, independently of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.http import HttpResponse

from state_admin.contract.items import ItemResult, ItemResults
from state_admin.contract.problems import failure_of
from state_admin.services.errors import Problem

from .bodies import answer


def answer_items(ids: Sequence[str], work: Callable[[str], int]) -> HttpResponse:
    """Call `work`, which returns an HTTP status, for each id. The result of an item that fails has
    its problem."""
    return answer(ItemResults(results=[_result(each, work) for each in ids]))


def _result(item: str, work: Callable[[str], int]) -> ItemResult:
    try:
        return ItemResult(id=item, status=work(item))
    except Problem as refused:
        return ItemResult(id=item, status=refused.status, problem=failure_of(refused))
