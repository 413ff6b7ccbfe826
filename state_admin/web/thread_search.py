"""Searches threads by their titles and messages.

The words of titles have an index, so a search finds them in all threads. Messages have none: one
would cost a commit 80 us for a message of 300 characters and 1.2 ms for one of 4,000, of 3 to 4 ms in
total. The middle of a word of a title or an id has none either. So each page searches these in the
next threads only, says how far it searched, and the next one continues there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from state_admin.domain.numbers import read_whole
from state_admin.models import Thread, thread_search_sql
from state_admin.models.thread_search_sql import FoundMessage, MessageRange
from state_admin.models.threads import ThreadQuerySet
from state_admin.services.threads import filter_by_title

from .addresses import thread_url

# What a page searches: threads, messages, and bytes of these as stored. Messages of 4 MB in total take
# 60 ms, whether 1,000 of 4 kB or 5,000 of 800 bytes.
SEARCHED = 500
MESSAGES = 5_000
BYTES = 4_000_000


class _Place(NamedTuple):
    """Where a search of messages continues: with the messages of `thread` (a primary key) before
    `seq`, then those of older threads."""

    thread: int
    seq: int


# The place of a search that is complete: no thread is behind it.
_DONE = _Place(0, 1)


@dataclass(frozen=True)
class FoundText:
    """The message of a thread that matches: the text around the match, and its URL."""

    seq: int
    snippet: str
    url: str


@dataclass(frozen=True)
class Reach:
    """What a page searched: the numbers of messages and of their threads, and when the oldest of these
    was created. `complete`: no message is left."""

    messages: int
    threads: int
    back_to: datetime | None
    complete: bool


@dataclass(frozen=True)
class _Batch:
    """The messages that a page searches, and the primary keys of their threads whose title and id contain
    all words. `end` is the place behind it."""

    ranges: Sequence[MessageRange]
    named: set[int]
    end: _Place
    reach: Reach


def search(
    rows: ThreadQuerySet, walked: ThreadQuerySet, words: Sequence[str], after: str, limit: int
) -> tuple[list[Thread], str, Reach]:
    """A page of threads, newest first, the cursor of the next one, or "", and what was searched.

    Those of `rows` whose title has words that begin with all of `words`; and of the next threads of
    `walked`, which are `rows` without filters that no index supports, those that contain all of
    `words` in their title and id, or in one of the next messages. Each thread has `found`, the newest
    of these that matches, or None.

    Titles may be much older than the threads whose messages were searched, so the cursor has a place
    for each of both searches. Threads with such a title are found by it alone."""
    titles_after, _, messages_after = after.partition(".")
    title_place, message_place = read_whole(titles_after), _read_place(messages_after)
    batch = _next_messages(walked, words, message_place)
    said = {each.thread_id: each for each in thread_search_sql.find_messages(batch.ranges, words)}
    by_title = filter_by_title(rows, words).order_by("-pk").whole()
    if title_place is not None:
        by_title = by_title.filter(pk__lt=title_place)
    titled = {thread.pk: thread for thread in by_title[: limit + 1]}
    near = batch.named | said.keys()
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
        title_place = _DONE.thread
    else:
        title_place = min(titled.keys() & listed, default=title_place)
    if messages.keys() <= listed:
        message_place = batch.end
        if message_place.thread in near:  # Its older messages would find it again.
            message_place = _Place(message_place.thread, 1)
    elif behind := messages.keys() & listed:
        message_place = _Place(min(behind), 1)
    if title_place == _DONE.thread and message_place == _DONE:
        return found, "", batch.reach
    titles = "" if title_place is None else str(title_place)
    return found, f"{titles}.{_spell_place(message_place)}", batch.reach


def _next_messages(rows: ThreadQuerySet, words: Sequence[str], place: _Place | None) -> _Batch:
    """The next messages and threads that are searched, one at least if there is one."""
    if place:
        rows = rows.filter(pk__lt=place.thread + (place.seq > 1))
    columns = ("pk", "message_count", "created_at", "title", "public_id")
    found = list(rows.order_by("-pk").values_list(*columns)[: SEARCHED + 1])
    counted, left = [], MESSAGES
    for pk, count, *_ in found[:SEARCHED]:
        last = min(count, place.seq - 1) if place and pk == place.thread else count
        counted.append(MessageRange(pk, max(last - max(left, 0), 0) + 1, last))
        left -= last
    firsts = thread_search_sql.fit(counted, BYTES)
    ranges: list[MessageRange] = []
    named: set[int] = set()
    back_to, end = None, _DONE
    for each, (_, _, created_at, *names) in zip(counted, found, strict=False):
        pk, first, last = each
        first = firsts.get(pk, first)
        if first > last > 0 and ranges:
            end = _Place(ranges[-1].thread_id, 1)
            break
        ranges.append(MessageRange(pk, first, last))
        back_to = created_at
        if all(word.lower() in " ".join(names).lower() for word in words):
            named.add(pk)
        if first > 1 and last > 0:
            end = _Place(pk, first)
            break
    else:
        if len(found) > SEARCHED:
            end = _Place(ranges[-1].thread_id, 1)
    number = sum(each.last - each.first + 1 for each in ranges)
    return _Batch(ranges, named, end, Reach(number, len(ranges), back_to, complete=end == _DONE))


def _read_place(text: str) -> _Place | None:
    """The place that a cursor spells; None, the beginning, for any other text."""
    thread, _, seq = text.partition("-")
    pk, before = read_whole(thread), read_whole(seq or "1")
    return None if pk is None or before is None else _Place(pk, before)


def _spell_place(place: _Place | None) -> str:
    if place is None:
        return ""
    return str(place.thread) if place.seq == 1 else f"{place.thread}-{place.seq}"


def place_of(thread_id: str, message: FoundMessage) -> FoundText:
    """Where a message was found in the thread with this public id."""
    snippet = " ".join(message.snippet.split())
    url = f"{thread_url(thread_id, message=message.seq)}#m{message.seq}"
    return FoundText(message.seq, snippet, url)
