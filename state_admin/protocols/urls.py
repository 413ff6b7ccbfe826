"""The protocols' paths, below /api/."""

from __future__ import annotations

from django.urls import include, path, register_converter
from django.urls.converters import PathConverter

from . import ag_ui, ai_sdk
from .agent_protocol import store, threads

app_name = "protocols"


class IdConverter(PathConverter):
    """Any text, newlines too: what cannot be an id is then refused in the protocol's own form."""

    regex = "(?s:.+)"


register_converter(IdConverter, "id")

# What LangGraph's SDK takes as its url.
_AGENT = [
    path("store/items", store.StoreItems.as_view(), name="store-items"),
    path("store/items/search", store.StoreSearch.as_view(), name="store-search"),
    path("store/namespaces", store.StoreNamespaces.as_view(), name="store-namespaces"),
    path("threads", threads.Threads.as_view(), name="agent-threads"),
    path("threads/search", threads.ThreadSearch.as_view(), name="agent-thread-search"),
    path("threads/count", threads.ThreadCount.as_view(), name="agent-thread-count"),
    path("threads/<id:thread_id>/copy", threads.ThreadCopy.as_view(), name="agent-thread-copy"),
    path("threads/<id:thread_id>/history", threads.ThreadHistory.as_view(), name="agent-history"),
    path(
        "threads/<id:thread_id>/state/checkpoint",
        threads.ThreadStateCheckpoint.as_view(),
        name="agent-state-checkpoint",
    ),
    path(
        "threads/<id:thread_id>/state/<str:checkpoint_id>",
        threads.ThreadStateAt.as_view(),
        name="agent-state-at",
    ),
    path("threads/<id:thread_id>/state", threads.ThreadState.as_view(), name="agent-state"),
    path("threads/<id:thread_id>", threads.ThreadDetail.as_view(), name="agent-thread"),
]

_THREADS = [
    path("<path:thread_id>/ag-ui/stream", ag_ui.AgUiStream.as_view(), name="ag-ui"),
    path(
        "<path:thread_id>/ui-messages/stream",
        ai_sdk.UiMessageStream.as_view(),
        name="ui-message-stream",
    ),
    path("<path:thread_id>/ui-messages", ai_sdk.UiMessages.as_view(), name="ui-messages"),
]

urlpatterns = [
    path("v1/agent-protocol/", include(_AGENT)),
    path("v1/threads/", include(_THREADS)),
]
