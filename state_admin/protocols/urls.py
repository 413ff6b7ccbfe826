"""The protocols' paths, below /api/."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import PathConverter

from . import ag_ui, ai_sdk
from .agent_protocol import store, threads

app_name = "protocols"


class IdConverter(PathConverter):
    """Any text, newlines too: what cannot be an id is then refused in the protocol's own form."""

    regex = "(?s:.+)"


register_converter(IdConverter, "id")

# What LangGraph's SDK takes as its url.
_AGENT = "v1/agent-protocol/"
_THREAD = f"{_AGENT}threads/<id:thread_id>"

urlpatterns = [
    path(f"{_AGENT}store/items", store.StoreItems.as_view(), name="store-items"),
    path(f"{_AGENT}store/items/search", store.StoreSearch.as_view(), name="store-search"),
    path(f"{_AGENT}store/namespaces", store.StoreNamespaces.as_view(), name="store-namespaces"),
    path(f"{_AGENT}threads", threads.Threads.as_view(), name="agent-threads"),
    path(f"{_AGENT}threads/search", threads.ThreadSearch.as_view(), name="agent-thread-search"),
    path(f"{_AGENT}threads/count", threads.ThreadCount.as_view(), name="agent-thread-count"),
    path(f"{_THREAD}/copy", threads.ThreadCopy.as_view(), name="agent-thread-copy"),
    path(f"{_THREAD}/history", threads.ThreadHistory.as_view(), name="agent-history"),
    path(
        f"{_THREAD}/state/checkpoint",
        threads.ThreadStateCheckpoint.as_view(),
        name="agent-state-checkpoint",
    ),
    path(
        f"{_THREAD}/state/<str:checkpoint_id>",
        threads.ThreadStateAt.as_view(),
        name="agent-state-at",
    ),
    path(f"{_THREAD}/state", threads.ThreadState.as_view(), name="agent-state"),
    path(_THREAD, threads.ThreadDetail.as_view(), name="agent-thread"),
    path("v1/threads/<path:thread_id>/ag-ui/stream", ag_ui.AgUiStream.as_view(), name="ag-ui"),
    path(
        "v1/threads/<path:thread_id>/ui-messages/stream",
        ai_sdk.UiMessageStream.as_view(),
        name="ui-message-stream",
    ),
    path(
        "v1/threads/<path:thread_id>/ui-messages",
        ai_sdk.UiMessages.as_view(),
        name="ui-messages",
    ),
]
