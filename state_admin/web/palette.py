"""The command palette (Ctrl-K): pages, actions, namespaces, entries, threads, runs and messages, best
match first.

Words of keys, values and titles, and prefixes of keys and ids, have indexes, so they are found among all
rows. Other parts of words, and messages, are found among recent rows (models/recent_sql.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.domain.access import Role
from state_admin.models import Entry, Namespace, Run, Thread, recent_sql, thread_search_sql
from state_admin.models.browsing import EntryFilter, entry_page
from state_admin.models.thread_search_sql import MessageRange
from state_admin.services.errors import Invalid
from state_admin.services.search import search_entries
from state_admin.services.threads import filter_by_title, read_words

from .actors import page
from .addresses import entry_url, namespace_url, run_url, thread_url, with_query
from .htmx import Request, render
from .shell import PREFERENCES, items_for
from .thread_search import place_of

_EACH = 6
# The most values that a search of the palette reads.
_MOST_OPENED = 500
# The messages that are searched: in total, and the newest ones of each of the threads that changed last;
# and the size of a body (bytes, as stored) up to which one is. 500 messages of 4 kB take 25 ms.
_MESSAGES = 500
_NEWEST_MESSAGES = 100
_ACTIVE_THREADS = 100
_LARGEST_MESSAGE = 4_000
_OTHER_PAGES = (
    ("fold-vertical", "Compaction policies", "web:policy-list"),
    ("monitor", "Your sessions", "web:sessions"),
    ("key-round", "Sign-in methods", "web:sign-in"),
)
_ADMIN_ACTIONS = (
    ("plus", "New namespace", "web:namespace-new", "Register namespace"),
    ("key-round", "New token", "web:token-new", "Create token"),
    ("zap", "New webhook", "web:webhook-new", "Create webhook"),
    ("users", "New member", "web:member-new", "Add member"),
)

# What the lists search.
_SEARCHES = {
    "keys and values": "web:entry-list",
    "titles and messages of threads": "web:thread-list",
}


@dataclass(frozen=True)
class PaletteItem:
    """A link to `url`; with `form`, the button `name=value` of a form that every page has; with
    `does`, an event for the scripts of the page."""

    icon: str
    label: str
    note: str
    url: str = ""
    form: str = ""
    name: str = ""
    value: str = ""
    does: str = ""
    # The id of a thread, or the text around what a search found.
    text: str = ""
    # The label of the button of a page that does the same: the words under which a user knows an action.
    button: str = ""


@page()
def palette(request: Request) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()
    return render(
        request,
        "palette.html",
        {"q": query, "hits": list(enumerate(_hits(request, query)))},
        part="palette-results",
    )


def _hits(request: Request, query: str) -> list[PaletteItem]:
    """Exact matches; pages and actions with a word that begins with the query; resources; pages and
    actions that contain the query; the lists that search for it."""
    if not query:
        return list(_pages(request))
    commands = [*_pages(request), *_actions(request), *_other_pages()]
    items = commands + list(_places(request, query))
    ranked = [(rank, hit) for hit in items if (rank := _rank(hit, query)) is not None]
    return [hit for _, hit in sorted(ranked, key=itemgetter(0))] + list(_searches(query))


def _rank(hit: PaletteItem, query: str) -> int | None:
    label, text = f"{hit.label} {hit.button}".rstrip().lower(), query.lower()
    if hit.note != "message" and text in (label, label.partition("/")[2], hit.text):
        return 0
    if hit.note in _PLACES:
        return 2
    if label.startswith(text) or f" {text}" in label:
        return 1
    return 3 if text in label else None


_PLACES = ("namespace", "entry", "thread", "run", "message")


def _places(request: Request, query: str) -> Iterator[PaletteItem]:
    actor = request.actor
    namespaces = Namespace.objects.visible_to(actor).registered().open()
    names = namespaces.filter(name__icontains=query).order_by("name")
    for name in names.values_list("name", flat=True)[:_EACH]:
        yield PaletteItem("layers", name, "namespace", namespace_url(name))
    namespace, slash, key = query.partition("/")
    entry_filter = EntryFilter(namespace, prefix=key) if slash else EntryFilter(prefix=query)
    snippets = {
        (line.namespace_name, line.key): "" for line in entry_page(actor, entry_filter, limit=_EACH)
    }
    for each, snippet in _found(request, query):
        snippets.setdefault((each.namespace.name, each.key), snippet)
    if len(snippets) < _EACH:
        for each_key in _entries_inside(request, query):
            snippets.setdefault(each_key, "")
    if len(snippets) < _EACH and (words := _parts(query)):
        for each_key, snippet in recent_sql.find_values(actor, words, _EACH):
            snippets.setdefault(each_key, snippet)
    for (name, key), snippet in snippets.items():
        url = entry_url(name, key)
        yield PaletteItem("database", f"{name}/{key}", "entry", url, text=snippet)
    titles = {
        thread.public_id: thread.title
        for found in _threads(request, query)
        for thread in found.only("public_id", "title")[:_EACH]
    }
    if len(titles) < _EACH and (words := _parts(query)):
        titles |= dict(recent_sql.find_threads(actor, words, _EACH))
    for identifier, title in titles.items():
        label, text = (title, identifier) if title else (identifier, "")
        yield PaletteItem("messages-square", label, "thread", thread_url(identifier), text=text)
    runs = Run.objects.visible_to(actor).filter(public_id__startswith=query)
    for identifier in runs.order_by("public_id").values_list("public_id", flat=True)[:_EACH]:
        yield PaletteItem("play", identifier, "run", run_url(identifier))
    yield from _messages(request, query)


def _threads(request: Request, query: str) -> Iterator[QuerySet[Thread]]:
    """Threads whose id begins with the query, and those with its words in their title."""
    threads = Thread.objects.visible_to(request.actor)
    yield threads.filter(public_id__startswith=query).order_by("public_id")
    with suppress(Invalid):  # no letter or digit
        yield filter_by_title(threads, read_words(query)).order_by("-pk")


def _found(request: Request, query: str) -> Iterator[tuple[Entry, str]]:
    """The newest entries with the words of the query, and the text around the first one in the
    value. None for a single character, which begins too many words."""
    if len(query) < 2:
        return
    try:
        hits = search_entries(
            actor=request.actor, text=query, limit=_EACH, most_opened=_MOST_OPENED
        ).hits
    except Invalid:  # nothing to search for, or a condition that is still being typed
        return
    for hit in hits:
        yield hit.entry, hit.matches[0].snippet if hit.matches else ""


def _parts(query: str) -> list[str]:
    """What a text may contain anywhere. None for a single character, which most texts contain."""
    if len(query) < 2:
        return []
    try:
        return read_words(query)
    except Invalid:  # no letter or digit, or too many words
        return []


def _entries_inside(request: Request, query: str) -> Iterator[tuple[str, str]]:
    """Namespace and key of entries whose key contains the words of the query: of those that changed
    last, and of the first ones. A key may contain a slash, too."""
    namespace, slash, key = query.partition("/")
    places = [(namespace, key), ("", query)] if slash else [("", query)]
    for name, text in places:
        if not (words := _parts(text)):
            continue
        yield from recent_sql.find_entries(request.actor, words, name, _EACH)


def _messages(request: Request, query: str) -> Iterator[PaletteItem]:
    """For each thread that changed last, its newest message with the words of the query."""
    words = _parts(query)
    if not words:
        return
    threads, ranges, left = [], [], _MESSAGES
    for thread in recent_sql.find_active(request.actor, _ACTIVE_THREADS):
        count = min(thread.message_count, _NEWEST_MESSAGES)
        left -= count
        if left < 0:
            break
        threads.append(thread)
        last = thread.message_count
        ranges.append(MessageRange(thread.id, last - count + 1, last))
    found = thread_search_sql.find_messages(ranges, words, _LARGEST_MESSAGE)
    messages = {message.thread_id: message for message in found}
    for thread in [thread for thread in threads if thread.id in messages][:_EACH]:
        place = place_of(thread.public_id, messages[thread.id])
        label = thread.title or thread.public_id
        yield PaletteItem("message-square", label, "message", place.url, text=place.snippet)


def _searches(query: str) -> Iterator[PaletteItem]:
    for what, page_name in _SEARCHES.items():
        url = with_query(reverse(page_name), text=query)
        yield PaletteItem("search", f"Search {what} for “{query}”", "search", url)


def _pages(request: Request) -> Iterator[PaletteItem]:
    for group, items in items_for(request.actor):
        for item in items:
            yield PaletteItem(item.icon, item.label, group or "page", reverse(item.url_name))


def _other_pages() -> Iterator[PaletteItem]:
    """Pages that are not in the navigation."""
    for icon, label, name in _OTHER_PAGES:
        yield PaletteItem(icon, label, "page", reverse(name))


def _actions(request: Request) -> Iterator[PaletteItem]:
    """The actions that need no page of their own and that the actor may perform."""
    may = request.actor.may
    if may(Role.EDITOR):
        yield PaletteItem("plus", "New entry", "action", reverse("web:entry-new"))
    if may(Role.ADMIN):
        for icon, label, name, button in _ADMIN_ACTIONS:
            yield PaletteItem(icon, label, "action", reverse(name), button=button)
    yield PaletteItem("pause", "Pause or resume live updates", "action", does="live-toggle")
    yield PaletteItem("rotate-ccw", "Show new changes", "action", does="live-show")
    yield PaletteItem("keyboard", "Keyboard shortcuts", "action", does="keys-show")
    for name, kind in PREFERENCES.items():
        for choice in kind.choices:
            label = f"{kind.label}: {choice}"
            yield PaletteItem(
                kind.icon, label, "action", form="preferences", name=name, value=choice
            )
    yield PaletteItem("layers", "Switch workspace", "action", reverse("web:workspaces"))
    yield PaletteItem("key-round", "Change password", "action", reverse("web:password"))
    yield PaletteItem("log-out", "Sign out", "action", form="sign-out")


urlpatterns = [path("go", palette, name="palette")]
