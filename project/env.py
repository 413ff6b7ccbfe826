"""Reads the environment once, typed. Every variable the deployment honours is named here.

Secrets may come from a file: FOO_FILE wins over FOO (the way of container secrets).
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from environs import Env

BASE_DIR = Path(__file__).resolve().parent.parent

env = Env()


class BadSetting(Exception):
    """A setting nobody can start with; the message is one sentence for the operator."""


def secret(name: str) -> str | None:
    """The secret `name`, from the file that NAME_FILE points to, else from NAME, else None."""
    path = env.str(f"{name}_FILE", None)
    if path:
        return Path(path).read_text().strip()
    value: str | None = env.str(name, None)
    return value


def data_dir() -> Path:
    """Where the embedded PostgreSQL and generated secrets live. Created on first use, mode 0700; other
    users lose the right to read or write a folder that was there before."""
    path = Path(env.str("COMMONHOLD_DATA_DIR", str(BASE_DIR / ".data"))).expanduser().absolute()
    advice = "set COMMONHOLD_DATA_DIR to a folder that you own"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = os.access(path, os.R_OK | os.W_OK | os.X_OK)
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        usable, mode = False, 0
    if not usable:
        raise BadSetting(f"Cannot use the data folder {path}; {advice}")
    if mode & stat.S_ISVTX:
        raise BadSetting(f"The data folder {path} is shared by all users; {advice}")
    if mode & 0o066:  # passing through is allowed: PostgreSQL may run as another user (binaries.py)
        try:
            path.chmod(mode & 0o700)
        except OSError:
            raise BadSetting(
                f"The data folder {path} is accessible to other users and its mode cannot be changed; {advice}"
            ) from None
    return path


def secret_key() -> str:
    """SECRET_KEY, or one made on the first start and kept in the data folder.

    O_EXCL decides between processes that start together: the loser reads the winner's key.
    """
    given = secret("SECRET_KEY")
    if given:
        return given
    path = data_dir() / "secret_key"
    if not path.exists():
        draft = path.with_name(f".secret_key.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
