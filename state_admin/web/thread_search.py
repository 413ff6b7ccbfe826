"""Searches threads by their titles and messages.

The words of titles have an index, so a search finds them in all threads. Messages have none: one
would cost a commit 80 us for a message of 300 characters and 1.2 ms for one of 4,000, of 3 to 4 ms in
total. The middle of a word of a title or an id has none either. So each page searches these in the
next threads only, and says how far it searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from state_admin.domain.numbers import read_whole
from state_admin.models import Thread, thread_search_sql
from state_admin.models.thread_search_sql import FoundMessage
from state_admin.models.threads import ThreadQuerySet
from state_admin.services.threads import filter_by_title

from .addresses import thread_url

# Threads and messages that a page searches. 1,000 messages of 4 kB take 50 ms.
SEARCHED = 100
MESSAGES = 1_000
# The place of a search that is complete: no thread is behind it.
_DONE = 0


@dataclass(frozen=True)
class FoundText:
    """The message of a thread that matches: the text around the match, and its URL."""

    seq: int
    snippet: str
    url: str


@dataclass(frozen=True)
class Reach:
    """The threads whose messages a page searched: their number, and when the oldest one was
    created. `complete`: they are the last ones."""

    threads: int
    back_to: datetime | None
    complete: bool


def search(
    rows: ThreadQuerySet, walked: ThreadQuerySet, words: Sequence[str], after: str, limit: int
) -> tuple[list[Thread], str, Reach]:
    """A page of threads, newest first, the cursor of the next one, or "", and what was searched.

    Those of `rows` whose title has words that begin with all of `words`; and of the next threads of
    `walked`, which are `rows` without filters that no index supports, those that contain all of
    `words` in their title and id, or in one of their newest messages. Each thread has `found`, the
    message that matches, or None.

    Titles may be much older than the threads whose messages were searched, so the cursor has a place
    for each of both searches. Threads with such a title are found by it alone."""
    titles_after, _, messages_after = after.partition(".")
    title_place, message_place = read_whole(titles_after), read_whole(messages_after)
    ids, named, reach = _next_threads(_behind(walked, message_place), words)
    said = {each.thread_id: each for each in thread_search_sql.find_messages(ids, words)}
    by_title = _behind(filter_by_title(rows, words), title_place).order_by("-pk").whole()
    titled = {thread.pk: thread for thread in by_title[: limit + 1]}
    near = named | said.keys()
    messages = {thread.pk: thread for thread in rows.filter(pk__in=near).whole()}
    for titled_id in rows.titled(words).filter(pk__in=near).values_list("pk", flat=True):
        messages.pop(titled_id, None)
    found = sorted((titled | messages).values(), key=lambda thread: -thread.pk)[:limit]
    for thread in found:
        message = said.get(thread.pk)
        thread.found = place_of(thread.public_id, message) if message else None
    # Each search continues behind its last thread on this page.
    listed = {thread.pk for thread in found}
    if titled.keys() <= listed:
        title_place = _DONE
    else:
        title_place = min(titled.keys() & listed, default=title_place)
    if not messages.keys() <= listed:
        message_place = min(messages.keys() & listed, default=message_place)
    else:
        message_place = _DONE if reach.complete else ids[-1]
    if title_place == message_place == _DONE:
        return found, "", reach
    places = ("" if place is None else str(place) for place in (title_place, message_place))
    return found, ".".join(places), reach


def _next_threads(rows: ThreadQuerySet, words: Sequence[str]) -> tuple[list[int], set[int], Reach]:
    """The primary keys of the next threads that are searched, one at least if there is one, and of
    those whose title and id contain all of `words`."""
    ids: list[int] = []
    named: set[int] = set()
    back_to, left = None, MESSAGES
    columns = ("pk", "message_count", "created_at", "title", "public_id")
    found = rows.order_by("-pk").values_list(*columns)
    for pk, count, created_at, *names in found[: SEARCHED + 1]:
        left -= min(count, thread_search_sql.NEWEST)
        if (ids and left < 0) or len(ids) == SEARCHED:
            return ids, named, Reach(len(ids), back_to, complete=False)
        ids.append(pk)
        if all(word.lower() in " ".join(names).lower() for word in words):
            named.add(pk)
        back_to = created_at
    return ids, named, Reach(len(ids), back_to, complete=True)


def _behind(rows: ThreadQuerySet, place: int | None) -> ThreadQuerySet:
    return rows if place is None else rows.filter(pk__lt=place)


def place_of(thread_id: str, message: FoundMessage) -> FoundText:
    """Where a message was found in the thread with this public id."""
    snippet = " ".join(message.snippet.split())
    url = f"{thread_url(thread_id, message=message.seq)}#m{message.seq}"
    return FoundText(message.seq, snippet, url)
