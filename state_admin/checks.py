"""System checks of our own: what would lose data or leak it is said at start."""

from __future__ import annotations
