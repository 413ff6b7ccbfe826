"""The key with which Django signs sessions, and which encrypts secrets in the database."""

from __future__ import annotations

import os
import secrets

from project.env import data_dir, read_environment


def read_secret_key() -> str:
    """SECRET_KEY, or a key generated on the first start and stored in the data folder.

    `os.link` decides between processes that start at once: the loser reads the winner's key.
    """
    configured = read_environment().secret_key
    if configured:
        return configured
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
