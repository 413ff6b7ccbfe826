"""Finds threads by words in their newest messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import hot
from .recent_sql import patterns_of

# The newest messages of a thread that are searched, and the size of a body (bytes, as stored) up to
# which it is: there is no index, so this bounds the work.
NEWEST = 100
LARGEST = 16_000

_FOUND = f"""
SELECT t.id, found.seq, found.snippet
FROM unnest(%(threads)b::bigint[]) AS t(id)
CROSS JOIN LATERAL (
    SELECT m.seq, substr(x.content, greatest(strpos(lower(x.content), %(first)s) - 60, 1), 200) AS snippet
    FROM (
        SELECT seq, body FROM messages WHERE thread_id = t.id ORDER BY seq DESC LIMIT {NEWEST}
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


class FoundMessage(NamedTuple):
    """The newest message of a thread with the words, and the text around the first of them."""

    thread_id: int
    seq: int
    snippet: str


def find_messages(
    threads: Sequence[int], words: Sequence[str], largest: int = LARGEST
) -> list[FoundMessage]:
    """For each of the threads the newest message of at most `largest` bytes whose text contains all
    of `words`, in any case."""
    if not threads:
        return []
    parameters = {
        "threads": list(threads),
        "first": words[0].lower(),
        "patterns": patterns_of(words),
        "largest": largest,
    }
    return [FoundMessage._make(row) for row in hot.fetch_all(_FOUND, parameters)]
