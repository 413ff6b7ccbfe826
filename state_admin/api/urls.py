"""All paths of the API. Ids and keys may hold slashes, so the longer patterns come first."""

from __future__ import annotations

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from . import (
    access,
    audit,
    batches,
    blame,
    changes,
    clearing,
    compactions,
    endpoint,
    entries,
    erasures,
    namespaces,
    redactions,
    restores,
    runs,
    search,
    snapshots,
    state_keys,
    streams,
    threads,
    tickets,
    webhooks,
)

app_name = "api"

urlpatterns = [
    path("v1/namespaces", namespaces.NamespaceList.as_view(), name="namespaces"),
    path("v1/namespaces/<path:namespace>", namespaces.NamespaceDetail.as_view(), name="namespace"),
    path("v1/state/batch", batches.Batch.as_view(), name="batch"),
    re_path(
        r"^v1/state/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        entries.EntryDetail.as_view(),
        name="entry",
    ),
    path("v1/state", clearing.StateClear.as_view(), name="state"),
    path("v1/state/<str:namespace>", entries.EntryList.as_view(), name="entries"),
    re_path(
        r"^v1/history/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        entries.EntryHistory.as_view(),
        name="entry-history",
    ),
    re_path(
        r"^v1/diff/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        entries.EntryDiff.as_view(),
        name="entry-diff",
    ),
    path("v1/restore", restores.Restore.as_view(), name="restore"),
    re_path(
        r"^v1/restore/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        entries.EntryRestore.as_view(),
        name="entry-restore",
    ),
    re_path(
        r"^v1/redact/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        redactions.EntryRedact.as_view(),
        name="entry-redact",
    ),
    re_path(
        r"^v1/blame/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        blame.EntryBlame.as_view(),
        name="entry-blame",
    ),
    re_path(r"^v1/keys/(?P<key>(?s:.+))\Z", entries.KeyDetail.as_view(), name="key"),
    path("v1/search", search.Search.as_view(), name="search"),
    path("v1/erase", erasures.Erase.as_view(), name="erase"),
    path("v1/state-keys", state_keys.StateKeyList.as_view(), name="state-keys"),
    path("v1/state-keys/<path:name>", state_keys.StateKeyDetail.as_view(), name="state-key"),
    path("v1/threads", threads.ThreadList.as_view(), name="threads"),
    path(
        "v1/threads/<path:thread_id>/messages",
        threads.ThreadMessages.as_view(),
        name="thread-messages",
    ),
    path(
        "v1/threads/<path:thread_id>/context",
        threads.ThreadContext.as_view(),
        name="thread-context",
    ),
    path("v1/threads/<path:thread_id>/state", snapshots.ThreadState.as_view(), name="thread-state"),
    path(
        "v1/threads/<path:thread_id>/snapshots",
        snapshots.ThreadSnapshots.as_view(),
        name="thread-snapshots",
    ),
    path(
        "v1/threads/<path:thread_id>/snapshots/<int:revision>",
        snapshots.ThreadSnapshotDetail.as_view(),
        name="thread-snapshot",
    ),
    path("v1/threads/<path:thread_id>/diff", snapshots.ThreadDiff.as_view(), name="thread-diff"),
    path(
        "v1/threads/<path:thread_id>/restore",
        snapshots.ThreadRestore.as_view(),
        name="thread-restore",
    ),
    path("v1/threads/<path:thread_id>/runs", runs.RunStart.as_view(), name="thread-runs"),
    path(
        "v1/threads/<path:thread_id>/compactions",
        compactions.ThreadCompactions.as_view(),
        name="thread-compactions",
    ),
    path("v1/threads/<path:thread_id>", threads.ThreadDetail.as_view(), name="thread"),
    path("v1/runs", runs.RunList.as_view(), name="runs"),
    path("v1/runs/<path:run_id>/commits", runs.RunCommits.as_view(), name="run-commits"),
    path("v1/runs/<path:run_id>/heartbeat", runs.RunHeartbeat.as_view(), name="run-heartbeat"),
    path("v1/runs/<path:run_id>/cancel", runs.RunCancel.as_view(), name="run-cancel"),
    path("v1/runs/<path:run_id>/tickets", tickets.RunTickets.as_view(), name="run-tickets"),
    path("v1/runs/<path:run_id>", runs.RunDetail.as_view(), name="run"),
    path("v1/tickets", tickets.TicketList.as_view(), name="tickets"),
    path(
        "v1/tickets/<path:ticket_id>/decision",
        tickets.TicketDecision.as_view(),
        name="ticket-decision",
    ),
    path("v1/tickets/<path:ticket_id>", tickets.TicketDetail.as_view(), name="ticket"),
    path("v1/compactions", compactions.CompactionList.as_view(), name="compactions"),
    path(
        "v1/compactions/<str:compaction_id>/undo",
        compactions.CompactionUndo.as_view(),
        name="compaction-undo",
    ),
    path(
        "v1/compactions/<str:compaction_id>/cancel",
        compactions.CompactionCancel.as_view(),
        name="compaction-cancel",
    ),
    path(
        "v1/compactions/<str:compaction_id>/retry",
        compactions.CompactionRetry.as_view(),
        name="compaction-retry",
    ),
    path(
        "v1/compactions/<str:compaction_id>",
        compactions.CompactionDetail.as_view(),
        name="compaction",
    ),
    path("v1/changes/stream", streams.ChangeStreamDetail.as_view(), name="change-stream"),
    path("v1/changes", changes.ChangeList.as_view(), name="changes"),
    path("v1/webhooks", webhooks.WebhookList.as_view(), name="webhooks"),
    path("v1/webhooks/<str:webhook_id>", webhooks.WebhookDetail.as_view(), name="webhook"),
    path(
        "v1/webhooks/<str:webhook_id>/pause",
        webhooks.WebhookPause.as_view(),
        name="webhook-pause",
    ),
    path(
        "v1/webhooks/<str:webhook_id>/resume",
        webhooks.WebhookResume.as_view(),
        name="webhook-resume",
    ),
    path(
        "v1/webhooks/<str:webhook_id>/rotate",
        webhooks.WebhookRotate.as_view(),
        name="webhook-rotate",
    ),
    path("v1/webhooks/<str:webhook_id>/test", webhooks.WebhookTest.as_view(), name="webhook-test"),
    path(
        "v1/webhooks/<str:webhook_id>/replay",
        webhooks.WebhookReplay.as_view(),
        name="webhook-replay",
    ),
    path(
        "v1/webhooks/<str:webhook_id>/deliveries",
        webhooks.WebhookDeliveries.as_view(),
        name="webhook-deliveries",
    ),
    path(
        "v1/deliveries/<str:delivery_id>/replay",
        webhooks.DeliveryReplay.as_view(),
        name="delivery-replay",
    ),
    path("v1/audit", audit.AuditList.as_view(), name="audit"),
    path("v1/me", access.Me.as_view(), name="me"),
    path("v1/usage", access.UsageDetail.as_view(), name="usage"),
    path("v1/access/explain", access.AccessExplain.as_view(), name="access-explain"),
    path(
        "schema",
        SpectacularAPIView.as_view(authentication_classes=[], permission_classes=[]),
        name="schema",
    ),
    path(
        "docs",
        SpectacularSwaggerView.as_view(
            url_name="api:schema", authentication_classes=[], permission_classes=[]
        ),
        name="docs",
    ),
    re_path(r"^(?P<rest>(?s:.*))\Z", endpoint.UnknownPath.as_view(), name="unknown"),
]
