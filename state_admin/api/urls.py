"""All paths of the API. Ids and keys may hold slashes, so the longer patterns come first."""

from __future__ import annotations

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from state_admin.domain.config import Kind

from . import (
    access,
    audit,
    batches,
    blame,
    changes,
    clearing,
    compactions,
    config,
    dispatches,
    endpoint,
    entries,
    erasures,
    knowledge,
    namespaces,
    plugins,
    policies,
    redactions,
    restores,
    runs,
    search,
    snapshots,
    state_keys,
    storage,
    streams,
    threads,
    tickets,
    webhooks,
)

app_name = "api"

KINDS = "|".join(Kind)

urlpatterns = [
    path("v1/namespaces", namespaces.NamespaceList.as_view(), name="namespaces"),
    path(
        "v1/namespaces/<str:namespace>/compactions",
        compactions.NamespaceCompactions.as_view(),
        name="namespace-compactions",
    ),
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
    path("v1/plugins", plugins.PluginList.as_view(), name="plugins"),
    path("v1/plugins/<path:name>", plugins.PluginDetail.as_view(), name="plugin"),
    re_path(
        rf"^v1/config/(?P<kind>{KINDS})/(?P<record_id>[^/]+)/history\Z",
        config.RecordHistory.as_view(),
        name="config-history",
    ),
    re_path(
        rf"^v1/config/(?P<kind>{KINDS})/(?P<record_id>[^/]+)/restore\Z",
        config.RecordRestore.as_view(),
        name="config-restore",
    ),
    re_path(
        rf"^v1/config/(?P<kind>{KINDS})/(?P<record_id>[^/]+)/dependents\Z",
        config.RecordDependents.as_view(),
        name="config-dependents",
    ),
    re_path(
        rf"^v1/config/(?P<kind>{KINDS})/(?P<record_id>[^/]+)\Z",
        config.RecordDetail.as_view(),
        name="config-record",
    ),
    re_path(rf"^v1/config/(?P<kind>{KINDS})\Z", config.RecordList.as_view(), name="config-records"),
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
    path(
        "v1/threads/<path:thread_id>/import", snapshots.ThreadImport.as_view(), name="thread-import"
    ),
    path("v1/threads/<path:thread_id>/fork", threads.ThreadFork.as_view(), name="thread-fork"),
    path(
        "v1/threads/<path:thread_id>/lineage",
        threads.ThreadLineage.as_view(),
        name="thread-lineage",
    ),
    path("v1/threads/<path:thread_id>/runs", runs.RunStart.as_view(), name="thread-runs"),
    path(
        "v1/threads/<path:thread_id>/compactions",
        compactions.ThreadCompactions.as_view(),
        name="thread-compactions",
    ),
    path(
        "v1/threads/<path:thread_id>/dispatches",
        dispatches.ThreadDispatches.as_view(),
        name="thread-dispatches",
    ),
    path(
        "v1/threads/<path:thread_id>/interrupt",
        dispatches.ThreadInterrupt.as_view(),
        name="thread-interrupt",
    ),
    path("v1/threads/<path:thread_id>", threads.ThreadDetail.as_view(), name="thread"),
    path("v1/runs", runs.RunList.as_view(), name="runs"),
    path("v1/runs/<path:run_id>/commits", runs.RunCommits.as_view(), name="run-commits"),
    path("v1/runs/<path:run_id>/heartbeat", runs.RunHeartbeat.as_view(), name="run-heartbeat"),
    path("v1/runs/<path:run_id>/cancel", runs.RunCancel.as_view(), name="run-cancel"),
    path("v1/runs/<path:run_id>/lease", runs.RunLease.as_view(), name="run-lease"),
    path("v1/runs/<path:run_id>/fail", runs.RunFail.as_view(), name="run-fail"),
    path("v1/runs/<path:run_id>/resume", runs.RunResume.as_view(), name="run-resume"),
    path(
        "v1/runs/<path:run_id>/knowledge",
        knowledge.RunKnowledge.as_view(),
        name="run-knowledge",
    ),
    path("v1/runs/<path:run_id>/reads", knowledge.RunReads.as_view(), name="run-reads"),
    path("v1/runs/<path:run_id>/tickets", tickets.RunTickets.as_view(), name="run-tickets"),
    path("v1/runs/<path:run_id>", runs.RunDetail.as_view(), name="run"),
    re_path(
        r"^v1/reads/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        knowledge.EntryReaders.as_view(),
        name="entry-readers",
    ),
    path("v1/tickets", tickets.TicketList.as_view(), name="tickets"),
    path(
        "v1/tickets/<path:ticket_id>/decision",
        tickets.TicketDecision.as_view(),
        name="ticket-decision",
    ),
    path("v1/tickets/<path:ticket_id>", tickets.TicketDetail.as_view(), name="ticket"),
    path("v1/dispatches", dispatches.DispatchList.as_view(), name="dispatches"),
    path("v1/dispatches/claim", dispatches.DispatchClaim.as_view(), name="dispatch-claim"),
    path("v1/dispatches/counts", dispatches.DispatchCounts.as_view(), name="dispatch-counts"),
    path("v1/dispatches/replay", dispatches.LettersReplay.as_view(), name="letters-replay"),
    path("v1/dispatches/clear", dispatches.LettersClear.as_view(), name="letters-clear"),
    path("v1/dispatches/<str:dispatch_id>", dispatches.DispatchDetail.as_view(), name="dispatch"),
    path(
        "v1/dispatches/<str:dispatch_id>/extend",
        dispatches.DispatchExtend.as_view(),
        name="dispatch-extend",
    ),
    path(
        "v1/dispatches/<str:dispatch_id>/ack",
        dispatches.DispatchAck.as_view(),
        name="dispatch-ack",
    ),
    path(
        "v1/dispatches/<str:dispatch_id>/nack",
        dispatches.DispatchNack.as_view(),
        name="dispatch-nack",
    ),
    path(
        "v1/dispatches/<str:dispatch_id>/cancel",
        dispatches.DispatchCancel.as_view(),
        name="dispatch-cancel",
    ),
    path(
        "v1/dispatches/<str:dispatch_id>/replay",
        dispatches.DispatchReplay.as_view(),
        name="dispatch-replay",
    ),
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
        "v1/compactions/<str:compaction_id>/messages",
        compactions.CompactionMessages.as_view(),
        name="compaction-messages",
    ),
    path(
        "v1/compactions/<str:compaction_id>",
        compactions.CompactionDetail.as_view(),
        name="compaction",
    ),
    path("v1/compaction-policies", policies.PolicyList.as_view(), name="policies"),
    path(
        "v1/compaction-policies/workspace",
        policies.WorkspacePolicy.as_view(),
        name="workspace-policy",
    ),
    path(
        "v1/compaction-policies/agents/<path:agent_id>",
        policies.AgentPolicy.as_view(),
        name="agent-policy",
    ),
    path(
        "v1/compaction-policies/threads/<path:thread_id>",
        policies.ThreadPolicy.as_view(),
        name="thread-policy",
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
    path(
        "v1/usage/storage/namespaces/<path:namespace>",
        storage.StorageOfNamespace.as_view(),
        name="namespace-storage",
    ),
    path(
        "v1/usage/storage/threads/<path:thread_id>",
        storage.StorageOfThread.as_view(),
        name="thread-storage",
    ),
    path("v1/usage/storage", storage.StorageList.as_view(), name="storage"),
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
