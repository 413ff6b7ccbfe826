"""Fixtures of all tests: three users (tests/builders.py) and an embedded PostgreSQL."""

from __future__ import annotations

import functools
import gc
import json
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import TransactionTestCase
from hypothesis import HealthCheck, Phase, settings
from pytest_django import DjangoDbBlocker
from xdist.workermanage import NodeManager

from project.env import data_dir
from state_admin.contract.openapi import problems_of
from state_admin.management.commands.write_docs import openapi
from state_admin.rest.endpoint import Endpoint
from state_admin.services import revert_jobs
from state_admin.services.errors import problem_types
from tests import promises
from tests.builders import alice, bob, create_usual_people, mallory, one_alice
from tests.data_folder import choose_data_folder, free_memory
from tests.emptying import empty_tables
from tests.patience import PATIENCE

# Beside the data of `make run`, never in it. The server starts with the first connection, so this
# is early enough although pytest-django has already read the settings.
# A cluster for each worker: an open transaction delays the change feed of every database of its
# cluster, so workers that share one would wait for each other's tests. A worker inherits the folder
# of the process that started it.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["COMMONHOLD_DATA_DIR"] = str(
        Path(os.environ["COMMONHOLD_DATA_DIR"]).with_name(worker)
    )
else:
    folder = os.environ.get("COMMONHOLD_DATA_DIR") or choose_data_folder()
    os.environ["COMMONHOLD_DATA_DIR"] = f"{folder}/main"


# A pipeline is deterministic; local runs and `make exhaustive` generate new examples each time.
# `make mutation` runs the tests thousands of times, and needs no minimal example of a failure.
_PROFILES: dict[str, dict[str, Any]] = {
    "local": {},
    "pipeline": {"derandomize": True},
    "mutation": {"derandomize": True, "phases": (Phase.explicit, Phase.generate)},
}
for name, profile in _PROFILES.items():
    # A slow machine fails no test.
    settings.register_profile(
        name, deadline=None, suppress_health_check=[HealthCheck.too_slow], **profile
    )
settings.load_profile("pipeline" if os.environ.get("CI") else "local")


def pytest_configure(config: pytest.Config) -> None:
    promises.register_reporter(config)
    # A worker stops its PostgreSQL at its end, which may take longer than 10 s on a slow machine.
    NodeManager.EXIT_TIMEOUT = 120
    TransactionTestCase._fixture_teardown = lambda self: empty_tables()
    # On a slow machine, too, a page finishes a small revert. There is no worker that would continue.
    revert_jobs.AT_ONCE = PATIENCE


def pytest_unconfigure() -> None:
    free_memory(data_dir())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collected tests live until the end: keep the garbage collector from examining them
    repeatedly."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


# All tests of these folders, and all that use one of these fixtures, start processes.
_SYSTEM_FOLDERS = {"availability", "docs", "e2e"}
_SYSTEM_FIXTURES = {
    "cluster", "folder", "impatient", "live_server", "patient", "server", "shared", "start", "web",
}  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """The tests are marked before some are selected by their marks. The longest tests run
    first: otherwise the other workers would wait at the end for the last one. These are the files with the most
    slow tests, then tests that start processes, then tests that have timeouts of their own."""
    promises.mark_promises(items)
    for item in items:
        if item.path.parent.name in _SYSTEM_FOLDERS or _SYSTEM_FIXTURES & _fixtures_of(item):
            item.add_marker(pytest.mark.system)
    result = yield
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))

    def rank(item: pytest.Item) -> tuple[int, bool, bool]:
        lacks_system, lacks_timeout = (
            item.get_closest_marker(name) is None for name in ("system", "timeout")
        )
        return -slow[item.path], lacks_system, lacks_timeout

    items.sort(key=rank)
    return result


def _fixtures_of(item: pytest.Item) -> set[str]:
    """The names of the fixtures of a test, without its parameters."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return {*item.fixturenames} - parameters.keys()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="write pictures of all pages")
    promises.add_options(parser)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Closes what is still connected to the test database, so that it can be dropped: threads of this
    process, and processes that a test has stopped and that may take a moment to end."""
    with django_db_blocker.unblock():
        postpone_autovacuum()
        create_usual_people()
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def postpone_autovacuum() -> None:
    """It would run at any time: an open transaction of it delays the feed, its locks delay a test, and
    new statistics change a plan. The cluster is that of the tests alone."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER SYSTEM SET autovacuum_naptime = '10d'")
        cursor.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction for a module: what its fixtures write is visible to each of its tests, which
    run in savepoints that are rolled back. For modules without transactions of their own; `now()`
    is the time at which it began."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


# Those of HTTP itself, which OpenAPI does not declare or which all responses have.
COMMON_HEADERS = {"Allow", "Cache-Control", "Content-Type", "Vary", "X-Accel-Buffering"}
STANDARD_MEMBERS = {"type", "title", "status", "detail", "hint", "instance"}


@functools.cache
def declared_headers() -> dict[str, dict[str, set[str]]]:
    """The response headers that the OpenAPI document declares, by the id of the operation and the status."""
    return {
        operation["operationId"]: {
            status: {*response.get("headers", {}), *COMMON_HEADERS}
            for status, response in operation["responses"].items()
        }
        for path in json.loads(openapi())["paths"].values()
        for operation in path.values()
    }


@pytest.fixture(autouse=True)
def declared_responses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails if an operation returns a problem or a header that the contract does not declare for it, or
    a problem with a member that the page of its type does not list."""
    undeclared: set[tuple[str, str]] = set()
    members = {kind.slug: STANDARD_MEMBERS | kind.all_members().keys() for kind in problem_types()}
    dispatch = Endpoint.dispatch

    def checked(self: Endpoint, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = dispatch(self, request, *args, **kwargs)
        method = "GET" if request.method == "HEAD" else request.method
        operation = self.operations.get(method or "")
        if operation is not None:
            headers = declared_headers()[operation.id].get(str(response.status_code))
            if headers is not None:
                undeclared.update((operation.id, name) for name in {*response.headers} - headers)
        if operation is not None and response.status_code >= 400 and not response.streaming:
            document = json.loads(response.content)
            slug = document["type"].rpartition("/")[2]
            if slug not in problems_of(operation):
                undeclared.add((operation.id, slug))
            undeclared.update((slug, name) for name in document.keys() - members[slug])
        return response

    monkeypatch.setattr(Endpoint, "dispatch", checked)
    yield
    assert not undeclared


__all__ = ["alice", "bob", "mallory", "one_alice"]
