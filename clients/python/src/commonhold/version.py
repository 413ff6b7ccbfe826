"""The version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("commonhold")
except PackageNotFoundError:
    # Imported from a source tree, which has no version before it is built.
    __version__ = "0+source"
