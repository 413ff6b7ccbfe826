"""Sessions of the Agent Client Protocol (ACP) in threads, for any agent: `commonhold acp -- AGENT …`.

An editor starts this command in place of the agent; it starts the agent, forwards the messages of
both, stores them in a thread per session, and answers `session/load` and `session/list` from the
threads. Implements version 1 of the protocol over stdio. Needs only this package, and POSIX.
"""

from __future__ import annotations

from commonhold.acp.bridge import run

__all__ = ["run"]
