"""Finds in the database where an effective view may be cut: planning a thread of 100,000 messages
transfers a few rows. tests/domain/reference_boundaries.py states the rules in Python, and a test
compares the two."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from state_admin.domain.boundaries import CutPoint, PendingToolCall, Turn

from . import hot
from .messages import Message

# A compaction loads about this many bytes of messages into memory at most. If even the messages up to the
# first cut point have more, it loads those. The next compaction continues.
MOST_BYTES: Final = 32 << 20

# The size of a message, estimated without reading its body: the greater of its stored size, which may be
# compressed, and the size of its text according to the estimate of its tokens.
_BYTES: Final = "greatest(pg_column_size(body), 4 * estimated_tokens)"

# `held` is the number of open calls of an id after each message that opens or answers it. It is
# never below 0: a result of a call that is not open does not count.
_LINES = f"""
WITH seen AS (
    SELECT 0 AS part, folds_to AS seq, public_id, role, visibility, estimated_tokens, opens, answers,
        {_BYTES} AS bytes
    FROM messages WHERE id = %(summary)s
    UNION ALL
    SELECT 1, seq, public_id, role, visibility, estimated_tokens, opens, answers,
        {_BYTES}
    FROM messages WHERE thread_id = %(thread)s AND folds_to IS NULL AND seq = %(carried)s
    UNION ALL
    SELECT 2, seq, public_id, role, visibility, estimated_tokens, opens, answers,
        {_BYTES}
    FROM messages WHERE thread_id = %(thread)s AND folds_to IS NULL AND seq > %(folded)s
), lines AS (
    SELECT row_number() OVER (ORDER BY part, seq) - 1 AS at, * FROM seen
), events AS (
    SELECT l.at, o.place, o.call, 1 AS step
    FROM lines l CROSS JOIN jsonb_array_elements_text(l.opens) WITH ORDINALITY AS o(call, place)
    UNION ALL
    SELECT l.at, 2147483647, l.answers, -1 FROM lines l WHERE l.answers IS NOT NULL
), walked AS (
    SELECT *, sum(step) OVER (PARTITION BY call ORDER BY at, place) AS walk FROM events
), held AS (
    SELECT at, place, call, step,
        walk - least(0, min(walk) OVER (PARTITION BY call ORDER BY at, place)) AS times
    FROM walked
)
"""

_MEASURE = f"""{_LINES}
SELECT whole.*, turn.*, stuck.*
FROM (SELECT count(*), coalesce(sum(estimated_tokens), 0)::bigint FROM lines) whole
LEFT JOIN (
    SELECT at, seq, estimated_tokens FROM lines
    WHERE role = 'user' AND visibility <> 'internal' ORDER BY at DESC LIMIT 1
) turn ON true
LEFT JOIN (
    SELECT l.at, l.seq, h.call
    FROM (
        SELECT call, (array_agg(times ORDER BY at DESC, place DESC))[1] AS left_open,
            max(at) FILTER (WHERE times = 1 AND step = 1) AS since
        FROM held GROUP BY call
    ) h JOIN lines l ON l.at = h.since
    WHERE h.left_open > 0 ORDER BY l.at, h.call COLLATE "C" LIMIT 1
) stuck ON true
"""

# The last cut point up to which the messages fit, else the first one. A cut point that only the previous
# summary and a retained message precede is used only if there is no other.
_CUT_POINT = f"""{_LINES}, changes AS (
    SELECT at, sum(change) AS change
    FROM (
        SELECT at, times - lag(times, 1, 0::bigint) OVER (PARTITION BY call ORDER BY at, place)
            AS change
        FROM held
    ) each
    GROUP BY at
), marked AS (
    SELECT l.at, l.seq, l.public_id,
        sum(coalesce(c.change, 0)) OVER upto = 0 AND l.seq = max(l.seq) OVER upto
            AND lead(l.role) OVER (ORDER BY l.at) IS DISTINCT FROM 'tool' AS safe,
        sum(l.estimated_tokens) OVER upto AS tokens,
        sum(l.bytes) OVER upto <= %(most)s AS fits,
        count(*) FILTER (WHERE l.visibility <> 'internal') OVER upto AS external
    FROM lines l LEFT JOIN changes c USING (at)
    WINDOW upto AS (ORDER BY l.at)
)
SELECT at, seq, public_id, tokens::bigint, external FROM marked
WHERE safe AND at < %(end)s
ORDER BY external > 1 DESC, fits DESC, CASE WHEN fits THEN -at ELSE at END LIMIT 1
"""


class LogView:
    """The effective view of a thread under its current summary, as boundaries.plan reads it."""

    def __init__(self, thread_id: int, summary: Message | None) -> None:
        self._place: dict[str, Any] = {
            "thread": thread_id,
            "summary": summary.pk if summary else None,
            "folded": summary.folds_to if summary else 0,
            "carried": summary.fold_carries if summary else None,
        }

    @cached_property
    def _measures(self) -> hot.Row:
        return hot.fetch_row(_MEASURE, self._place)

    @property
    def count(self) -> int:
        return int(self._measures[0])

    @property
    def tokens(self) -> int:
        return int(self._measures[1])

    @property
    def turn(self) -> Turn | None:
        at, seq, tokens = self._measures[2:5]
        return None if at is None else Turn(at, seq, tokens)

    @property
    def unanswered(self) -> PendingToolCall | None:
        at, seq, call = self._measures[5:8]
        return None if at is None else PendingToolCall(at, seq, call)

    def find_cut_point(self, end: int) -> CutPoint | None:
        row = hot.fetch_one(_CUT_POINT, {**self._place, "end": end, "most": MOST_BYTES})
        return CutPoint(*row) if row else None
