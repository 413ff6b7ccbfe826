"""Savers and stores of one run of the suite, isolated from data of earlier runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from commonhold import Commonhold
from commonhold.langgraph import CommonholdSaver, CommonholdStore


@pytest.fixture
def namespace() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def state() -> Iterator[Commonhold]:
    with Commonhold.from_env() as client:
        yield client


@pytest.fixture
def saver(namespace: str) -> Iterator[CommonholdSaver]:
    with CommonholdSaver.from_env(namespace=namespace) as made:
        yield made


@pytest.fixture
def store(namespace: str) -> Iterator[CommonholdStore]:
    with CommonholdStore.from_env(namespace=namespace) as made:
        yield made


@pytest.fixture
def thread() -> str:
    return str(uuid.uuid4())
