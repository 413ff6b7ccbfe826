"""Storage: what is stored, where, how fast it grows, what compaction saved."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import storage as contract
from state_admin.contract.base import Page
from state_admin.domain.numbers import read_whole
from state_admin.rest import pagination
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import storage
from state_admin.services.feed_cursors import bad_cursor


@handles(contract.LIST_STORAGE)
def list_storage(call: Endpoint) -> HttpResponse:
    page = pagination.read_page(call, position=str)
    levels = storage.list_levels(
        call.actor,
        group=call.query.group,
        days=call.query.days,
        limit=page.limit + 1,
        after=_place(page.after),
    )
    page_levels, cursor = page.close(
        levels, lambda level: f"{level.newest.total_bytes}:{level.newest.pk}"
    )
    return answer(Page(items=list(map(contract.Storage.of, page_levels)), next_cursor=cursor))


@handles(contract.MEASURE_NAMESPACE)
def measure_namespace(call: Endpoint, namespace: str) -> HttpResponse:
    level = storage.measure_namespace(call.actor, namespace, days=call.query.days)
    return answer(contract.Storage.of(level))


@handles(contract.MEASURE_THREAD)
def measure_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    level = storage.measure_thread(call.actor, thread_id, days=call.query.days)
    return answer(contract.Storage.of(level))


def _place(position: str | None) -> tuple[int, int] | None:
    if position is None:
        return None
    size, pk = map(read_whole, position.partition(":")[::2])
    if size is None or pk is None:
        raise bad_cursor()
    return size, pk
