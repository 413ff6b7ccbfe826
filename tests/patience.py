"""Timeouts of tests: so long that only a hang reaches them, even on a slow machine."""

from __future__ import annotations

PATIENCE = 300.0
