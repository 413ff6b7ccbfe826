"""All parts of a release have one version."""

from __future__ import annotations

import json
import re
import tomllib

from django.conf import settings

from state_admin import __version__
from tests.builders import Person


def test_version__of_server_clients_and_changelog__is_the_same() -> None:
    clients = settings.BASE_DIR / "clients"
    python = tomllib.loads((clients / "python/pyproject.toml").read_text())
    typescript = json.loads((clients / "typescript/package.json").read_text())
    assert python["project"]["version"] == typescript["version"] == __version__
    changelog = (settings.BASE_DIR / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## \[(\d\S+)\]", changelog, re.MULTILINE)
    assert releases[0] == __version__


def test_get_version__any_token__is_the_version_of_the_server(alice: Person) -> None:
    assert alice.api("GET", "/version").json() == {"version": __version__, "api_version": "v1"}
