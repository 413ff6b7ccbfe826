"""Runs coroutines from a test, also where Playwright has left its event loop in the main thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connections

from tests.patience import PATIENCE

T = TypeVar("T")


def run(work: Coroutine[Any, Any, Any], seconds: float = PATIENCE) -> Any:
    return in_thread(lambda: asyncio.run(asyncio.wait_for(work, seconds)))


def in_thread(work: Callable[[], T]) -> T:
    """The result of `work` in another thread, in which no event loop runs."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(closing(work)).result()


def closing(work: Callable[[], T]) -> Callable[[], T]:
    """`work`, for another thread: closes the connections that it opened."""

    def in_thread() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    return in_thread
