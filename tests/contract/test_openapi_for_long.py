"""The fuzzing of test_openapi.py with more examples. tests/conftest.py collects it for `-m slow` only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from tests.builders import Person
from tests.contract.test_openapi import (
    FEW,
    FUZZED,
    check_answer,
    one_transaction,
    world,
    world_of_all,
)

__all__ = ["one_transaction", "world", "world_of_all"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@FUZZED.parametrize()
@settings(FEW, max_examples=120)
def test_fuzz__each_operation_for_long__conforms_to_the_document(
    case: Any, world: Person, one_transaction: None
) -> None:
    check_answer(case, world)
