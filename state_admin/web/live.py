"""Polled by a page after changes or silence of the change stream: the counts of the navigation, and
whether the stream can be resumed."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.urls import path

from state_admin.models.counts import bounded_counts
from state_admin.streams import cursors

from . import paging
from .actors import page
from .htmx import Request
from .shell import cursor_of, items_for


@page()
def live(request: Request) -> HttpResponse:
    """`cursor`: the current end of the feed. `resumes`: whether the stream can resume after the
    `cursor` of the query string. `items`: count and health of each navigation item, by its letter."""
    counts = bounded_counts(request.actor)
    resumes = True
    if cursor := paging.text(request, "cursor"):
        try:
            cursors.resume(cursor, counts.end, settings.CHANGE_RETENTION)
        except (cursors.BadCursor, cursors.ExpiredCursor):
            resumes = False
    items = {
        item.key: {"count": item.count(counts), "health": item.health(counts)}
        for _, items in items_for(request.actor)
        for item in items
    }
    return JsonResponse({"cursor": cursor_of(counts), "resumes": resumes, "items": items})


urlpatterns = [path("live", live, name="live")]
