"""Finds threads by words in their messages.

Messages have no index of words, so a search compares texts. Its caller bounds the work: it chooses ranges
of messages, and `fit` shortens them to a size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import hot
from .recent_sql import excerpt, patterns_of

_RANGES = """
unnest(%(threads)b::bigint[], %(firsts)b::bigint[], %(lasts)b::bigint[]) WITH ORDINALITY
    AS t(id, first, last, place)
"""

# The size of a body is read without its text.
_TOO_MUCH = f"""
SELECT id, max(seq) + 1 FROM (
    SELECT t.id, m.seq, m.size, sum(m.size) OVER (ORDER BY t.place, m.seq DESC) AS total
    FROM {_RANGES}
    CROSS JOIN LATERAL (
        SELECT seq, pg_column_size(body) AS size FROM messages
        WHERE thread_id = t.id AND seq BETWEEN t.first AND t.last
    ) m
) sized
WHERE total - size >= %(most)s
GROUP BY id
"""

_FOUND = f"""
SELECT t.id, found.seq, found.snippet
FROM {_RANGES}
CROSS JOIN LATERAL (
    SELECT m.seq, {excerpt("x.content", 60, 200)} AS snippet
    FROM (
        SELECT seq, body FROM messages WHERE thread_id = t.id AND seq BETWEEN t.first AND t.last
    ) m
    CROSS JOIN LATERAL (
        SELECT CASE WHEN pg_column_size(m.body) > %(largest)s THEN ''
            WHEN json_typeof(m.body -> 'content') = 'array'
                THEN jsonb_path_query_array(m.body::jsonb, '$.content[*].text')::text
            ELSE coalesce(m.body ->> 'content', '') END AS content
    ) x
    WHERE lower(x.content) LIKE ALL (%(patterns)b::text[])
    ORDER BY m.seq DESC LIMIT 1
) found
"""
# No body is larger, in bytes as stored.
_ANY_SIZE = 1 << 30
_ARRAYS = ("threads", "firsts", "lasts")


class MessageRange(NamedTuple):
    """The messages `first` to `last` of a thread, both included."""

    thread_id: int
    first: int
    last: int


class FoundMessage(NamedTuple):
    """The newest message of a range with the words, and the text around the first of them."""

    thread_id: int
    seq: int
    snippet: str


def fit(ranges: Sequence[MessageRange], most: int) -> dict[int, int]:
    """Reads the ranges in their order, each from its last message, until the bodies have `most` bytes
    as stored; at least one message, whatever its size. Returns the threads of the ranges that do not
    fit, each with the first message that does."""
    if not ranges:
        return {}
    return dict(hot.fetch_all(_TOO_MUCH, {**hot.unzip(_ARRAYS, ranges), "most": most}))


def find_messages(
    ranges: Sequence[MessageRange], words: Sequence[str], largest: int = _ANY_SIZE
) -> list[FoundMessage]:
    """For each of the ranges the newest message of at most `largest` bytes whose text contains all
    of `words`, in any case."""
    if not ranges:
        return []
    parameters = {
        **hot.unzip(_ARRAYS, ranges),
        "word": words[0].lower(),
        "patterns": patterns_of(words),
        "largest": largest,
    }
    return [FoundMessage._make(row) for row in hot.fetch_all(_FOUND, parameters)]
