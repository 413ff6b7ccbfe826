"""LangGraph's own conformance suite over CommonholdSaver: every capability, nothing skipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from commonhold.langgraph import CommonholdSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.report import CapabilityReport


@checkpointer_test(name="CommonholdSaver")
async def commonhold_saver() -> AsyncGenerator[CommonholdSaver, None]:
    async with CommonholdSaver.from_env(namespace="conformance") as saver:
        yield saver


@pytest.fixture(scope="module")
def report() -> CapabilityReport:
    return asyncio.run(validate(commonhold_saver))


@pytest.mark.parametrize("capability", [each.value for each in Capability])
def test_conformance__capability__is_detected_and_passes_all_of_its_tests(
    report: CapabilityReport, capability: str
) -> None:
    result = report.results[capability]
    assert result.detected
    assert result.failures == []
    assert result.passed is True
    assert result.tests_passed > 0
    assert (result.tests_failed, result.tests_skipped) == (0, 0)


def test_conformance__level__is_full(report: CapabilityReport) -> None:
    assert report.passed_all_base()
    assert report.conformance_level() == "FULL"
