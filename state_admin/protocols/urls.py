"""The protocols' paths, below /api/."""

from __future__ import annotations

from django.urls import include, path

from project.paths import shadowing

from . import ag_ui, ai_sdk
from .agent_protocol import store, threads

app_name = "protocols"

# What LangGraph's SDK takes as its url.
_AGENT = [
    path("store/items", store.StoreItems.as_view(), name="store-items"),
    path("store/items/search", store.StoreSearch.as_view(), name="store-search"),
    path("store/namespaces", store.StoreNamespaces.as_view(), name="store-namespaces"),
    path("threads", threads.Threads.as_view(), name="agent-threads"),
    path(
        "threads/search",
        shadowing(threads.ThreadSearch, threads.ThreadDetail, thread_id="search"),
        name="agent-thread-search",
    ),
    path(
        "threads/count",
        shadowing(threads.ThreadCount, threads.ThreadDetail, thread_id="count"),
        name="agent-thread-count",
    ),
    path(
        "threads/<segment:thread_id>/copy", threads.ThreadCopy.as_view(), name="agent-thread-copy"
    ),
    path(
        "threads/<segment:thread_id>/history", threads.ThreadHistory.as_view(), name="agent-history"
    ),
    path(
        "threads/<segment:thread_id>/state/checkpoint",
        threads.ThreadStateCheckpoint.as_view(),
        name="agent-state-checkpoint",
    ),
    path(
        "threads/<segment:thread_id>/state/<segment:checkpoint_id>",
        threads.ThreadStateAt.as_view(),
        name="agent-state-at",
    ),
    path("threads/<segment:thread_id>/state", threads.ThreadState.as_view(), name="agent-state"),
    path("threads/<segment:thread_id>", threads.ThreadDetail.as_view(), name="agent-thread"),
]

_THREADS = [
    path("<segment:thread_id>/ag-ui/stream", ag_ui.AgUiStream.as_view(), name="ag-ui"),
    path(
        "<segment:thread_id>/ui-messages/stream",
        ai_sdk.UiMessageStream.as_view(),
        name="ui-message-stream",
    ),
    path("<segment:thread_id>/ui-messages", ai_sdk.UiMessages.as_view(), name="ui-messages"),
]

urlpatterns = [
    path("v1/agent-protocol/", include(_AGENT)),
    path("v1/threads/", include(_THREADS)),
]
