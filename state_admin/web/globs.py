"""Warnings about namespaces given as globs."""

from __future__ import annotations

from collections.abc import Sequence

from state_admin.domain.access import Actor
from state_admin.services.namespaces import find_unmatched


def warn_unmatched(actor: Actor, globs: Sequence[str]) -> list[str]:
    """One sentence for each glob that matches no namespace."""
    return [f"No namespace matches {glob} yet." for glob in find_unmatched(actor, globs)]
