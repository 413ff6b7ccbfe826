"""Remembers for up to five seconds whose token it was, so that a call asks the database once.

A revocation reaches every process at once: it notifies, and each process listens on a connection
of its own. Without that connection nothing is remembered, so a token never outlives its end by
more than the five seconds even when a notification is lost.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import structlog
from django.db import connection

from state_admin.domain.access import Actor

CHANNEL = "commonhold_tokens"
SECONDS = 5.0
_KEPT = 10_000
# How long the listener sleeps before it looks whether it is still connected.
_TICK = 1.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Credential:
    """What a presented secret stands for."""

    actor: Actor
    token_id: int
    rate_per_minute: int | None


class TokenCache:
    """Credentials by the digest of the presented secret."""

    def __init__(self) -> None:
        # The web server turns it on: a command or a test has no use for a listener.
        self.enabled = False
        self._held: dict[str, tuple[Credential, float]] = {}
        self._listening = threading.Event()
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def find(self, digest: str) -> Credential | None:
        if not self._listening.is_set():
            return None
        credential = self._held.get(digest)
        if credential is None or time.monotonic() >= credential[1]:
            return None
        return credential[0]

    def keep(self, digest: str, credential: Credential) -> None:
        if self.enabled:
            self._listen()
        if self._listening.is_set():
            if len(self._held) >= _KEPT:
                self._held.clear()
            self._held[digest] = (credential, time.monotonic() + SECONDS)

    def clear(self) -> None:
        self._held.clear()

    def _listen(self) -> None:
        """Start the listener of this process, once; a forked child starts its own."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._follow, name="revoked tokens", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Give the listener's connection back."""
        self.enabled = False
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(5)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                connection.ensure_connection()
                raw = connection.connection
                raw.execute(f"LISTEN {CHANNEL}")
                self.clear()
                self._listening.set()
                while not self._stopping.is_set():
                    for _ in raw.notifies(timeout=_TICK):
                        self.clear()
                    raw.execute("SELECT 1")
            except Exception as error:
                self._listening.clear()
                self.clear()
                log.info("tokens.listen_failed", error=type(error).__name__)
                self._stopping.wait(_TICK)
            finally:
                connection.close()


cache = TokenCache()


def announce_revocation() -> None:
    """Tell every process to forget, when the present transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")
    cache.clear()
