"""The software bill of materials: whole, and valid for the programs that read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.sbom import LOCKS, main
from project.env import BASE_DIR


@pytest.fixture(scope="module")
def sbom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sbom") / "dist" / "commonhold.cdx.json"
    main(target)
    return target


@pytest.fixture(scope="module")
def components(sbom: Path) -> dict[str, dict[str, Any]]:
    return {each["bom-ref"]: each for each in json.loads(sbom.read_text())["components"]}


def test_sbom__format__is_valid(sbom: Path) -> None:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom.read_text())
    assert error is None, error.data.message  # its text without the schema


def test_sbom__packages__are_those_of_the_image_with_all_hashes(
    components: dict[str, dict[str, Any]],
) -> None:
    installed = re.search(
        r"/venv/bin/pip install (.*?)\\$", (BASE_DIR / "Dockerfile").read_text(), re.M
    )
    assert installed
    assert tuple(re.findall(r"-r (\S+)", installed[1])) == LOCKS
    pinned: dict[str, tuple[str, set[str]]] = {}
    for lock in LOCKS:
        for block in re.split(r"\n(?=\S)", (BASE_DIR / lock).read_text()):
            if name := re.match(r"([a-z0-9-]+)==([^ ;]+)", block):
                pinned[name[1]] = name[2], set(re.findall(r"--hash=sha256:(\w+)", block))
    listed = {
        each["name"]: (
            each["version"],
            {digest["content"] for digest in each["externalReferences"][0]["hashes"]},
        )
        for ref, each in components.items()
        if ref.startswith("pypi:")
    }
    assert listed == pinned
    assert components["pypi:django"]["purl"] == f"pkg:pypi/django@{pinned['django'][0]}"
    assert components["pypi:django"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]


def test_sbom__vendored_files__are_all_listed(components: dict[str, dict[str, Any]]) -> None:
    files = {
        f"static/{path.relative_to(BASE_DIR / 'static')}"
        for path in (BASE_DIR / "static/vendor").rglob("*")
        if path.suffix in {".js", ".mjs", ".css", ".woff2"}
    }
    listed = {ref for ref, each in components.items() if each["type"] == "file"}
    assert listed == files | {"static/icons.svg"}
    assert components["npm:@codemirror/view"]["purl"].startswith("pkg:npm/%40codemirror/view@")
