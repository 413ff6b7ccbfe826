"""Where the PostgreSQL of the tests stores its files: in memory, where there is room.

Tests commit thousands of times, and each commit waits for the disk. Tests whose subject is durability
start servers of their own, whose files are on the disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from project.env import BASE_DIR
from project.postgres.base import embedded

_ON_DISK: Final = BASE_DIR / ".data" / "test"
# A file system in memory, on Linux. A container's own may be small.
_IN_MEMORY: Final = Path("/dev/shm")
# For two clusters, each with at most max_wal_size of WAL.
_ENOUGH_BYTES: Final = 8_000_000_000


def choose_data_folder() -> Path:
    """The folder in memory has a name of its own for each user and checkout."""
    try:
        has_room = shutil.disk_usage(_IN_MEMORY).free >= _ENOUGH_BYTES
    except OSError:
        has_room = False
    if not has_room or not os.access(_IN_MEMORY, os.W_OK):
        return _ON_DISK
    digest = hashlib.sha256(os.fsencode(BASE_DIR)).hexdigest()[:12]
    return _IN_MEMORY / f"commonhold-test-{os.getuid()}-{digest}"


def free_memory(folder: Path) -> None:
    """Delete the files of this process, if they are in memory. Another run of the tests may use them
    still; its process that ends last deletes them."""
    if folder.is_relative_to(_IN_MEMORY):
        embedded().release()
        if not embedded().is_up():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # other processes have folders in it
                folder.parent.rmdir()
