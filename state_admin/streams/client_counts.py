"""A question to all web processes: how many of their clients would receive a change now?

It is sent by NOTIFY to the connection of each process's hub, which answers on the channel of the
question. A process without such a connection has no clients.
"""

from __future__ import annotations

import msgspec

from state_admin.models.feed_sql import FeedRow, change_of_run
from state_admin.models.hot import Call

# The name of a hub's connection in pg_stat_activity.
HUB_CONNECTION = "commonhold feed"

CHANNEL = "commonhold_clients"
LISTEN: Call = (f"LISTEN {CHANNEL}", {})

_ANSWER = "SELECT pg_notify(%(channel)s, %(clients)s)"


class Question(msgspec.Struct, frozen=True):
    id: str
    workspace_id: int
    kind: str
    thread_id: str
    run_id: str

    @property
    def channel(self) -> str:
        """Where the answers arrive."""
        return f"{CHANNEL}_{self.id}"

    @property
    def change(self) -> FeedRow:
        return change_of_run(self.kind, self.thread_id, self.run_id)

    def dump(self) -> str:
        return msgspec.json.encode(self).decode()

    def answer(self, clients: int) -> Call:
        return _ANSWER, {"channel": self.channel, "clients": str(clients)}


def read_question(payload: bytes) -> Question:
    return msgspec.json.decode(payload, type=Question)
