"""Form fields that name namespaces or threads. While a user types, they show matches and suggest names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path, reverse_lazy
from django.utils.html import escape

from state_admin.domain.access import Actor
from state_admin.models import Namespace, Thread
from state_admin.services.errors import Invalid
from state_admin.services.namespaces import find_matching, find_unmatched
from state_admin.services.threads import filter_by_title, read_words
from state_admin.templatetags.ui import plural

from .actors import page
from .htmx import Request, render

LONGEST = 2000
_COUNTED = 100
_MOST_NAMES = 5
_OFFERED = 6
_CONSIDERED = 500
# The common prefix of ids or names of one kind: a word and a separator.
_FIRST_WORD = re.compile(r"[^-_.:/]+[-_.:/]+")


class Offer(NamedTuple):
    """A suggested text, and a note that explains it."""

    text: str
    note: str = ""


class Chooser(forms.CharField):
    """A text field. The page shows what its text matches, and suggests names: by the URLs with these
    names."""

    def __init__(self, matches: str, offers: str, **more: Any) -> None:
        attributes = {
            "autocomplete": "off",
            "spellcheck": "false",
            "hx-get": reverse_lazy(matches),
            "hx-trigger": "input changed delay:250ms, load",
            "hx-target": "next .matches",
            "hx-swap": "innerHTML",
            "hx-sync": "replace",
        }
        super().__init__(required=False, widget=forms.TextInput(attrs=attributes), **more)
        self.offers_url = reverse_lazy(offers)  # components/_field.html


def namespace_globs_field(empty: str) -> Chooser:
    """A field for globs of namespaces, separated by spaces."""
    text = f"Globs, separated by spaces: team_* notes. {empty}"
    return Chooser(
        "web:namespace-matches", "web:namespace-offers", max_length=LONGEST, help_text=text
    )


def thread_prefixes_field(empty: str) -> Chooser:
    """A field for prefixes of thread ids, separated by spaces."""
    text = f"Prefixes of thread ids, separated by spaces. {empty}"
    return Chooser("web:thread-matches", "web:thread-offers", max_length=LONGEST, help_text=text)


@page()
def namespace_matches(request: Request) -> HttpResponse:
    """A sentence about the namespaces that the globs match; empty for an empty field."""
    globs = _words(request)
    return _say(describe_matches(request.actor, globs) if globs else "")


@page()
def thread_matches(request: Request) -> HttpResponse:
    prefixes = _words(request)
    if not prefixes:
        return _say("")
    found = list(matching_ids(request.actor, prefixes)[: _COUNTED + 1])
    return _say(_describe(found, "thread", "threads"))


@page()
def thread_named(request: Request) -> HttpResponse:
    """The title of the thread with the id in the field."""
    if not (text := _text(request).strip()):
        return _say("")
    thread = Thread.objects.visible_to(request.actor).filter(public_id=text).first()
    if thread is None:
        return _say("No thread has this id yet.")
    return _say(f"Matches {thread.title or 'one thread'}.")


@page()
def namespace_offers(request: Request) -> HttpResponse:
    """Suggest namespaces whose name contains the last word of the field, and globs for common prefixes."""
    last, words = _last_word(request)
    names = Namespace.objects.visible_to(request.actor).registered().open().order_by("name")
    found = list(names.filter(name__icontains=last).values_list("name", flat=True)[:_CONSIDERED])
    globs = [
        Offer(f"{text}*", plural(count, "namespace,namespaces")) for text, count in _shared(found)
    ]
    return _offer(request, words, [*globs, *map(Offer, found)])


@page()
def thread_offers(request: Request) -> HttpResponse:
    """Suggest threads whose id begins with the last word of the field, or whose title contains it, and
    common prefixes of their ids. After a space, suggest the newest threads."""
    last, words = _last_word(request)
    rows = _find_threads(request.actor, last)
    shared = _shared(public_id for public_id, _ in rows)
    prefixes = [Offer(text, "and other threads") for text, _ in shared]
    return _offer(request, words, [*prefixes, *(Offer(*row) for row in rows)])


@page()
def thread_id_offers(request: Request) -> HttpResponse:
    """Threads whose id begins with the text of the field, or whose title contains it. One of them
    replaces the text."""
    text = _text(request).strip()
    rows = _find_threads(request.actor, text)
    return _offer(request, {text}, [Offer(*row) for row in rows], single=True)


def _find_threads(actor: Actor, last: str) -> list[tuple[str, str]]:
    threads = Thread.objects.visible_to(actor)
    found = (
        threads.filter(public_id__startswith=last).order_by("public_id")
        if last
        else threads.order_by("-pk")
    )
    rows = list(found.values_list("public_id", "title")[:_CONSIDERED])
    if not rows:
        with suppress(Invalid):  # there is no word that a title could contain
            found = filter_by_title(threads, read_words(last)).order_by("-pk")
            rows = list(found.values_list("public_id", "title")[:_OFFERED])
    return rows


def describe_matches(actor: Actor, globs: Sequence[str]) -> str:
    names = find_matching(actor, globs, _COUNTED + 1)
    return _describe(names, "namespace", "namespaces")


def matching_ids(actor: Actor, prefixes: Sequence[str]) -> QuerySet[Thread, str]:
    """The ids of the first threads that begin with one of the prefixes, in order. Each prefix is a range of
    the unique index: a condition with OR would read the ids of all threads of the workspace."""
    threads = Thread.objects.visible_to(actor).order_by("public_id")
    ranges = [
        threads.filter(public_id__startswith=prefix).values_list("public_id", flat=True)[
            : _COUNTED + 1
        ]
        for prefix in _widest(prefixes)
    ]
    first, *others = ranges
    return first.union(*others, all=True).order_by("public_id") if others else first


def _widest(prefixes: Sequence[str]) -> list[str]:
    """The prefixes without those that begin with another one, whose threads are the same."""
    widest: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not widest or not prefix.startswith(widest[-1]):
            widest.append(prefix)
    return widest


def _describe(names: Sequence[str], one: str, many: str) -> str:
    if not names:
        return f"Matches no {one} yet."
    counted = len(names) <= _COUNTED
    count = plural(len(names), f"{one},{many}") if counted else f"more than {_COUNTED} {many}"
    return f"Matches {count}: {', '.join(names[:_MOST_NAMES])}{', …' if len(names) > _MOST_NAMES else ''}"


def warn_unmatched(actor: Actor, globs: Sequence[str]) -> list[str]:
    """One sentence for each glob that matches no namespace."""
    return [f"No namespace matches {glob} yet." for glob in find_unmatched(actor, globs)]


def _text(request: Request) -> str:
    """The text of the field, which is the only parameter."""
    text = next(iter(request.GET.values()), "")
    return str(text).replace("\0", "")[:LONGEST]


def _words(request: Request) -> list[str]:
    return _text(request).split()


def _last_word(request: Request) -> tuple[str, set[str]]:
    """The word that is being typed, "" after a space, and all words."""
    text, words = _text(request), _words(request)
    if not words or text[-1:].isspace():
        return "", set(words)
    return words[-1], set(words)


def _shared(names: Iterable[str]) -> list[tuple[str, int]]:
    """The common prefixes of two or more names, the most frequent first."""
    first = Counter(found[0] for name in names if (found := _FIRST_WORD.match(name)))
    return [(text, count) for text, count in first.most_common(2) if count > 1]


def _say(sentence: str) -> HttpResponse:
    return HttpResponse(escape(sentence))


def _offer(
    request: Request, words: set[str], offers: Iterable[Offer], *, single: bool = False
) -> HttpResponse:
    chosen = [each for each in offers if each.text not in words][:_OFFERED]
    return render(request, "components/_offers.html", {"offers": chosen, "single": single})


urlpatterns = [
    path("namespaces/+matches", namespace_matches, name="namespace-matches"),
    path("namespaces/+offers", namespace_offers, name="namespace-offers"),
    path("tokens/+matches", thread_matches, name="thread-matches"),
    path("webhooks/+thread", thread_named, name="thread-named"),
    path("webhooks/+offers", thread_id_offers, name="thread-id-offers"),
    path("tokens/+offers", thread_offers, name="thread-offers"),
]
