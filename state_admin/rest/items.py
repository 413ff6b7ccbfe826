"""Bulk operations: the same work on each of several items, each on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.http import HttpResponse

from state_admin.contract.items import ItemResult, ItemResults
from state_admin.contract.problems import failure_of
from state_admin.services.errors import Problem

from .bodies import answer


def answer_items(ids: Sequence[str], work: Callable[[str], int]) -> HttpResponse:
    """Do `work`, which returns a status, with each id. The results have the problems of those that
    were refused."""
    return answer(ItemResults(results=[_result(each, work) for each in ids]))


def _result(item: str, work: Callable[[str], int]) -> ItemResult:
    try:
        return ItemResult(id=item, status=work(item))
    except Problem as refused:
        return ItemResult(id=item, status=refused.status, problem=failure_of(refused))
