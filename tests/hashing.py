"""The deployment's password hasher with few iterations: one of its hashes takes half a second."""

from __future__ import annotations

from project.hashing import QueuedPasswordHasher


class QuickPasswordHasher(QueuedPasswordHasher):
    iterations = 10
