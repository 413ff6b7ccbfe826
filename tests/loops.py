"""Runs a coroutine from a test, also where Playwright has left its event loop in the main thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections


def run(work: Coroutine[Any, Any, Any], seconds: float = 60) -> Any:
    def in_thread() -> Any:
        try:
            return asyncio.run(asyncio.wait_for(work, seconds))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(in_thread).result()
