"""Runs the commands of a guide as a reader would: in a shell, against a real server."""

from __future__ import annotations

import os
import subprocess

from tests.patience import PATIENCE


def run_commands(script: str, *, token: str, url: str) -> subprocess.CompletedProcess[str]:
    """`script` by bash, which ends at the first command that fails or that the server refuses."""
    strict = script.replace("curl -sS", "curl -sS --fail-with-body")
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", strict],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "no_proxy": "*", "TOKEN": token, "URL": f"{url}/api/v1"},
        check=False,
    )
