"""JSON Patch against the public test suite (npm: json-patch-test-suite), fetched when it runs.

RFC 7396, appendix A, is a table in test_patches.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from state_admin.domain.patches import PatchRefused, PatchTestFailed, json_patch
from state_admin.domain.values import same
from tests.patience import PATIENCE

_PACKAGE = "json-patch-test-suite@1.1.0"
_FEWEST = 90


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the public suite cannot be fetched")
    folder = tmp_path_factory.mktemp("suite")
    try:
        subprocess.run(
            [npm, "pack", _PACKAGE, "--silent", "--fetch-retries=0", "--fetch-timeout=20000"],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot fetch {_PACKAGE}: {error}")
    return list(_read(next(folder.glob("*.tgz"))))


def _read(archive: Path) -> Iterator[dict[str, Any]]:
    with tarfile.open(archive) as files:
        for name in ("package/tests.json", "package/spec_tests.json"):
            file = files.extractfile(name)
            assert file is not None
            # Cases without a patch are comments; disabled cases do not apply.
            for case in json.load(file):
                if "patch" in case and not case.get("disabled"):
                    yield case


def test_json_patch__public_suite__passes(cases: list[dict[str, Any]]) -> None:
    assert len(cases) >= _FEWEST
    wrong = [(case, told) for case in cases if (told := _fault(case))]
    assert wrong == []


def _fault(case: dict[str, Any]) -> str:
    """The deviation from the suite's result; "" if there is none."""
    try:
        made = json_patch(case["doc"], case["patch"])
    except (PatchRefused, PatchTestFailed) as refused:
        return "" if "error" in case else f"refused: {refused}"
    if "error" in case:
        return f"taken, although: {case['error']}"
    # Cases without `expected` only require that the patch is accepted.
    return "" if "expected" not in case or same(made, case["expected"]) else f"made {made}"
