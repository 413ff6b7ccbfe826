"""Searches threads by their titles and messages.

Titles have an index, so a search finds them in all threads. Messages have none: one would cost a
commit 80 us for a message of 300 characters and 1.2 ms for one of 4,000, of 3 to 4 ms in total. So
each page searches the newest messages of the next threads only, and says how far it searched.
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

    Those of `rows` with all of `words` in their title, or in one of their newest messages. The
    messages are those of the next threads of `walked`, which are `rows` without filters that no
    index supports. Each thread has `found`, the message that matches, or None.

    Titles may be much older than the threads whose messages were searched, so the cursor has a place
    for each of both searches. Threads with such a title are found by it alone."""
    titles_after, _, messages_after = after.partition(".")
    title_place, message_place = read_whole(titles_after), read_whole(messages_after)
    ids, reach = _next_threads(_behind(walked, message_place))
    said = {each.thread_id: each for each in thread_search_sql.find_messages(ids, words)}
    by_title = _behind(filter_by_title(rows, words), title_place).order_by("-pk").whole()
    titled = {thread.pk: thread for thread in by_title[: limit + 1]}
    messages = {thread.pk: thread for thread in rows.filter(pk__in=said).whole()}
    for titled_id in rows.titled(words).filter(pk__in=said).values_list("pk", flat=True):
        messages.pop(titled_id, None)
    found = sorted((titled | messages).values(), key=lambda thread: -thread.pk)[:limit]
    for thread in found:
        thread.found = _found(thread, said.get(thread.pk))
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


def _next_threads(rows: ThreadQuerySet) -> tuple[list[int], Reach]:
    """The ids of the next threads whose messages are searched, one at least if there is one."""
    ids: list[int] = []
    back_to, left = None, MESSAGES
    columns = rows.order_by("-pk").values_list("pk", "message_count", "created_at")
    for pk, count, created_at in columns[: SEARCHED + 1]:
        left -= min(count, thread_search_sql.NEWEST)
        if (ids and left < 0) or len(ids) == SEARCHED:
            return ids, Reach(len(ids), back_to, complete=False)
        ids.append(pk)
        back_to = created_at
    return ids, Reach(len(ids), back_to, complete=True)


def _behind(rows: ThreadQuerySet, place: int | None) -> ThreadQuerySet:
    return rows if place is None else rows.filter(pk__lt=place)


def _found(thread: Thread, message: FoundMessage | None) -> FoundText | None:
    if message is None:
        return None
    snippet = " ".join(message.snippet.split())
    url = thread_url(thread.public_id, message=message.seq)
    return FoundText(message.seq, snippet, url)
