"""The fuzzing of test_openapi.py with all systematic cases and more random ones: `make exhaustive`."""

from __future__ import annotations

import pytest
from hypothesis import settings
from schemathesis.generation.feedback import FeedbackSources

from tests.builders import Person
from tests.contract.test_openapi import (
    FEW,
    FUZZED,
    feedback,
    fuzz,
    one_transaction,
    systematic_cases,
    world,
    world_of_all,
)

__all__ = ["feedback", "one_transaction", "world", "world_of_all"]


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FUZZED)
def test_fuzz__each_operation_for_long__conforms_to_the_document(
    name: str, world: Person, one_transaction: None, feedback: FeedbackSources
) -> None:
    cases = systematic_cases(name, feedback)
    fuzz(name, world, feedback, cases, settings(FEW, max_examples=120))
