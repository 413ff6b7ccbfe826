"""The server of Commonhold."""

from __future__ import annotations

# The clients and the CHANGELOG have the same version (tests/project/test_version.py).
__version__ = "0.1.0"
