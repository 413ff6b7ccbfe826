"""Files that are complete or absent: a command writes a draft beside the file and renames it at the end."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def draft_of(path: Path) -> Path:
    """The draft of a file. IsADirectoryError for a folder, which the rename would refuse only after all
    was written."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f"{path.name}.part")
