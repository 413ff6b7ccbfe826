"""Caches the credentials of tokens for up to five seconds, so that most calls need no query.

A change or a revocation is sent to every process by NOTIFY; each process listens on a connection of its
own. Without that connection, nothing is cached. If a notification is lost, a revoked token is accepted
for at most five seconds, and a changed one has its previous permissions for as long.
"""

from __future__ import annotations

import select
import threading
import time
from dataclasses import dataclass

import structlog
from django.db import connection

from state_admin.domain.access import Actor

CHANNEL = "commonhold_tokens"
SECONDS = 5.0
_KEPT = 10_000
# Seconds between two checks of the listener's connection.
_TICK = 1.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Credential:
    """The actor and the rate limit of a token."""

    actor: Actor
    token_id: int
    rate_per_minute: int | None


class TokenCache:
    """Credentials by the digest of the presented secret."""

    def __init__(self) -> None:
        # Set by the web server; commands and tests need no listener.
        self.enabled = False
        self._held: dict[str, tuple[Credential, float]] = {}
        # Incremented by each `clear`.
        self.generation = 0
        self._changing = threading.Lock()
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

    def keep(self, digest: str, credential: Credential, generation: int) -> None:
        """Cache a credential that was just read from the database. `generation`: that before the read; if
        a token was changed since then, nothing is cached."""
        if self.enabled:
            self._listen()
        with self._changing:
            if generation != self.generation or not self._listening.is_set():
                return
            if len(self._held) >= _KEPT:
                self._held.clear()
            self._held[digest] = (credential, time.monotonic() + SECONDS)

    def clear(self) -> None:
        with self._changing:
            self.generation += 1
            self._held.clear()

    def _listen(self) -> None:
        """Start the listener of this process, unless it is running. A forked child starts its
        own."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._follow, name="revoked tokens", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Stop the listener and close its connection."""
        self.enabled = False
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(5)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                connection.ensure_connection()
                raw = connection.connection
                raw.add_notify_handler(lambda _: self.clear())
                raw.execute(f"LISTEN {CHANNEL}")
                self.clear()
                self._listening.set()
                # To wait for a notification, psycopg itself would wake up ten times per second.
                waiting = select.poll()
                waiting.register(raw.fileno(), select.POLLIN)
                while not self._stopping.is_set():
                    waiting.poll(1000 * _TICK)
                    raw.execute("SELECT 1")  # calls the handler of what has arrived
            except Exception as error:
                self._listening.clear()
                self.clear()
                log.info("tokens.listen_failed", error=type(error).__name__)
                self._stopping.wait(_TICK)
            finally:
                connection.close()


cache = TokenCache()


def announce_change() -> None:
    """Clear the cache of every process when the current transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")
    cache.clear()
