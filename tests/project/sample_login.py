"""The deployment, except that a hash waits for the file $HASHING. The file $HASHING.started is
created when the first hash begins. Static files need not be collected."""

from __future__ import annotations

import os
import time
from pathlib import Path

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from project.settings import *

STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
_encode = PBKDF2PasswordHasher.encode


def _wait_and_encode(self: PBKDF2PasswordHasher, password: str, salt: str, _: int | None) -> str:
    Path(f"{os.environ['HASHING']}.started").touch()
    while not Path(os.environ["HASHING"]).exists():
        time.sleep(0.01)
    return _encode(self, password, salt, 10)


PBKDF2PasswordHasher.encode = _wait_and_encode  # type: ignore[method-assign]
