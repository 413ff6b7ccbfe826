"""Searches threads by their titles and messages.

Titles have an index, so a search finds them in all threads. Messages have none, so each page
searches the newest messages of the next threads only, and states this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from state_admin.domain.numbers import read_whole
from state_admin.models import Thread, thread_search_sql
from state_admin.models.thread_search_sql import FoundMessage
from state_admin.models.threads import ThreadQuerySet
from state_admin.services.threads import filter_by_title

from .addresses import thread_url

# Threads whose messages a page searches.
SEARCHED = 100
# Before the cursor of a page on which all titles were found already.
_MESSAGES_ONLY = "m"


@dataclass(frozen=True)
class FoundText:
    """The message of a thread that matches: the text around the match, and its URL."""

    seq: int
    snippet: str
    url: str


def search(
    rows: ThreadQuerySet, walked: ThreadQuerySet, words: Sequence[str], after: str, limit: int
) -> tuple[list[Thread], str]:
    """A page of threads, newest first, and the cursor of the next one, or "".

    Those of `rows` with all of `words` in their title, or in one of their newest messages. The
    messages are those of the next SEARCHED of `walked`, which are `rows` without filters that no
    index supports. Each thread has `found`, the message that matches, or None."""
    messages_only = after.startswith(_MESSAGES_ONLY)
    place = read_whole(after.removeprefix(_MESSAGES_ONLY))
    if place is not None:
        rows, walked = rows.filter(pk__lt=place), walked.filter(pk__lt=place)
    ids = list(walked.order_by("-pk").values_list("pk", flat=True)[: SEARCHED + 1])
    said = {each.thread_id: each for each in thread_search_sql.find_messages(ids[:SEARCHED], words)}
    threads = {thread.pk: thread for thread in rows.filter(pk__in=said).whole()}
    if messages_only:
        for known in rows.titled(words).filter(pk__in=said).values_list("pk", flat=True):
            threads.pop(known, None)
    else:
        titled = filter_by_title(rows, words).order_by("-pk").whole()
        threads |= {thread.pk: thread for thread in titled[: limit + 1]}
    found = sorted(threads.values(), key=lambda thread: -thread.pk)
    for thread in found:
        thread.found = _found(thread, said.get(thread.pk))
    if len(found) > limit:
        mark = _MESSAGES_ONLY if messages_only else ""
        return found[:limit], f"{mark}{found[limit - 1].pk}"
    more = len(ids) > SEARCHED
    return found, f"{_MESSAGES_ONLY}{ids[SEARCHED - 1]}" if more else ""


def _found(thread: Thread, message: FoundMessage | None) -> FoundText | None:
    if message is None:
        return None
    snippet = " ".join(message.snippet.split())
    url = thread_url(thread.public_id, message=message.seq)
    return FoundText(message.seq, snippet, url)
