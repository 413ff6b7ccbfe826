"""All paths of the API. Ids and keys may hold slashes, so the longer patterns come first.

Django tries one pattern after the other; those below one prefix cost the others a single look, and
the paths that are asked most stand at the top.
"""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from state_admin.domain.config import Kind

from . import (
    access,
    audit,
    batches,
    blame,
    changes,
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


def _below(prefix: str, *patterns: URLPattern) -> URLResolver:
    return path(prefix, include(list(patterns)))


urlpatterns = [
    _below(
        "v1/state/",
        path("batch", batches.Batch.as_view(), name="batch"),
        re_path(
            r"^(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
            entries.EntryDetail.as_view(),
            name="entry",
        ),
        path("<str:namespace>", entries.EntryList.as_view(), name="entries"),
    ),
    _below(
        "v1/runs/",
        path("<path:run_id>/commits", runs.RunCommits.as_view(), name="run-commits"),
        path("<path:run_id>/heartbeat", runs.RunHeartbeat.as_view(), name="run-heartbeat"),
        path("<path:run_id>/cancel", runs.RunCancel.as_view(), name="run-cancel"),
        path("<path:run_id>/lease", runs.RunLease.as_view(), name="run-lease"),
        path("<path:run_id>/fail", runs.RunFail.as_view(), name="run-fail"),
        path("<path:run_id>/resume", runs.RunResume.as_view(), name="run-resume"),
        path(
            "<path:run_id>/knowledge",
            knowledge.RunKnowledge.as_view(),
            name="run-knowledge",
        ),
        path("<path:run_id>/reads", knowledge.RunReads.as_view(), name="run-reads"),
        path("<path:run_id>/tickets", tickets.RunTickets.as_view(), name="run-tickets"),
        path("<path:run_id>", runs.RunDetail.as_view(), name="run"),
    ),
    path("v1/namespaces", namespaces.NamespaceList.as_view(), name="namespaces"),
    _below(
        "v1/namespaces/",
        path(
            "<str:namespace>/compactions",
            compactions.NamespaceCompactions.as_view(),
            name="namespace-compactions",
        ),
        path("<path:namespace>", namespaces.NamespaceDetail.as_view(), name="namespace"),
    ),
    path("v1/state", entries.StateList.as_view(), name="state"),
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
    _below(
        "v1/config/",
        re_path(
            rf"^(?P<kind>{KINDS})/(?P<record_id>[^/]+)/history\Z",
            config.RecordHistory.as_view(),
            name="config-history",
        ),
        re_path(
            rf"^(?P<kind>{KINDS})/(?P<record_id>[^/]+)/restore\Z",
            config.RecordRestore.as_view(),
            name="config-restore",
        ),
        re_path(
            rf"^(?P<kind>{KINDS})/(?P<record_id>[^/]+)/dependents\Z",
            config.RecordDependents.as_view(),
            name="config-dependents",
        ),
        re_path(
            rf"^(?P<kind>{KINDS})/(?P<record_id>[^/]+)\Z",
            config.RecordDetail.as_view(),
            name="config-record",
        ),
        re_path(rf"^(?P<kind>{KINDS})\Z", config.RecordList.as_view(), name="config-records"),
    ),
    path("v1/state-keys", state_keys.StateKeyList.as_view(), name="state-keys"),
    path("v1/state-keys/<path:name>", state_keys.StateKeyDetail.as_view(), name="state-key"),
    path("v1/threads", threads.ThreadList.as_view(), name="threads"),
    _below(
        "v1/threads/",
        path(
            "<path:thread_id>/messages",
            threads.ThreadMessages.as_view(),
            name="thread-messages",
        ),
        path(
            "<path:thread_id>/context",
            threads.ThreadContext.as_view(),
            name="thread-context",
        ),
        path("<path:thread_id>/state", snapshots.ThreadState.as_view(), name="thread-state"),
        path(
            "<path:thread_id>/snapshots",
            snapshots.ThreadSnapshots.as_view(),
            name="thread-snapshots",
        ),
        path(
            "<path:thread_id>/snapshots/<int:revision>",
            snapshots.ThreadSnapshotDetail.as_view(),
            name="thread-snapshot",
        ),
        path("<path:thread_id>/diff", snapshots.ThreadDiff.as_view(), name="thread-diff"),
        path(
            "<path:thread_id>/restore",
            snapshots.ThreadRestore.as_view(),
            name="thread-restore",
        ),
        path("<path:thread_id>/import", snapshots.ThreadImport.as_view(), name="thread-import"),
        path("<path:thread_id>/fork", threads.ThreadFork.as_view(), name="thread-fork"),
        path(
            "<path:thread_id>/lineage",
            threads.ThreadLineage.as_view(),
            name="thread-lineage",
        ),
        path("<path:thread_id>/runs", runs.RunStart.as_view(), name="thread-runs"),
        path(
            "<path:thread_id>/compactions",
            compactions.ThreadCompactions.as_view(),
            name="thread-compactions",
        ),
        path(
            "<path:thread_id>/dispatches",
            dispatches.ThreadDispatches.as_view(),
            name="thread-dispatches",
        ),
        path(
            "<path:thread_id>/interrupt",
            dispatches.ThreadInterrupt.as_view(),
            name="thread-interrupt",
        ),
        path("<path:thread_id>", threads.ThreadDetail.as_view(), name="thread"),
    ),
    path("v1/runs", runs.RunList.as_view(), name="runs"),
    re_path(
        r"^v1/reads/(?P<namespace>[^/]+)/(?P<key>(?s:.+))\Z",
        knowledge.EntryReaders.as_view(),
        name="entry-readers",
    ),
    path("v1/tickets", tickets.TicketList.as_view(), name="tickets"),
    _below(
        "v1/tickets/",
        path(
            "<path:ticket_id>/decision",
            tickets.TicketDecision.as_view(),
            name="ticket-decision",
        ),
        path("<path:ticket_id>", tickets.TicketDetail.as_view(), name="ticket"),
    ),
    path("v1/dispatches", dispatches.DispatchList.as_view(), name="dispatches"),
    _below(
        "v1/dispatches/",
        path("claim", dispatches.DispatchClaim.as_view(), name="dispatch-claim"),
        path("counts", dispatches.DispatchCounts.as_view(), name="dispatch-counts"),
        path("replay", dispatches.LettersReplay.as_view(), name="letters-replay"),
        path("clear", dispatches.LettersClear.as_view(), name="letters-clear"),
        path("<str:dispatch_id>", dispatches.DispatchDetail.as_view(), name="dispatch"),
        path(
            "<str:dispatch_id>/extend",
            dispatches.DispatchExtend.as_view(),
            name="dispatch-extend",
        ),
        path(
            "<str:dispatch_id>/ack",
            dispatches.DispatchAck.as_view(),
            name="dispatch-ack",
        ),
        path(
            "<str:dispatch_id>/nack",
            dispatches.DispatchNack.as_view(),
            name="dispatch-nack",
        ),
        path(
            "<str:dispatch_id>/cancel",
            dispatches.DispatchCancel.as_view(),
            name="dispatch-cancel",
        ),
        path(
            "<str:dispatch_id>/replay",
            dispatches.DispatchReplay.as_view(),
            name="dispatch-replay",
        ),
    ),
    path("v1/compactions", compactions.CompactionList.as_view(), name="compactions"),
    _below(
        "v1/compactions/",
        path(
            "<str:compaction_id>/undo",
            compactions.CompactionUndo.as_view(),
            name="compaction-undo",
        ),
        path(
            "<str:compaction_id>/cancel",
            compactions.CompactionCancel.as_view(),
            name="compaction-cancel",
        ),
        path(
            "<str:compaction_id>/retry",
            compactions.CompactionRetry.as_view(),
            name="compaction-retry",
        ),
        path(
            "<str:compaction_id>/messages",
            compactions.CompactionMessages.as_view(),
            name="compaction-messages",
        ),
        path(
            "<str:compaction_id>",
            compactions.CompactionDetail.as_view(),
            name="compaction",
        ),
    ),
    path("v1/compaction-policies", policies.PolicyList.as_view(), name="policies"),
    _below(
        "v1/compaction-policies/",
        path(
            "workspace",
            policies.WorkspacePolicy.as_view(),
            name="workspace-policy",
        ),
        path(
            "agents/<path:agent_id>",
            policies.AgentPolicy.as_view(),
            name="agent-policy",
        ),
        path(
            "threads/<path:thread_id>",
            policies.ThreadPolicy.as_view(),
            name="thread-policy",
        ),
    ),
    path("v1/changes/stream", streams.ChangeStreamDetail.as_view(), name="change-stream"),
    path("v1/changes", changes.ChangeList.as_view(), name="changes"),
    path("v1/webhooks", webhooks.WebhookList.as_view(), name="webhooks"),
    _below(
        "v1/webhooks/",
        path("<str:webhook_id>", webhooks.WebhookDetail.as_view(), name="webhook"),
        path(
            "<str:webhook_id>/pause",
            webhooks.WebhookPause.as_view(),
            name="webhook-pause",
        ),
        path(
            "<str:webhook_id>/resume",
            webhooks.WebhookResume.as_view(),
            name="webhook-resume",
        ),
        path(
            "<str:webhook_id>/rotate",
            webhooks.WebhookRotate.as_view(),
            name="webhook-rotate",
        ),
        path("<str:webhook_id>/test", webhooks.WebhookTest.as_view(), name="webhook-test"),
        path(
            "<str:webhook_id>/replay",
            webhooks.WebhookReplay.as_view(),
            name="webhook-replay",
        ),
        path(
            "<str:webhook_id>/deliveries",
            webhooks.WebhookDeliveries.as_view(),
            name="webhook-deliveries",
        ),
    ),
    path(
        "v1/deliveries/<str:delivery_id>/replay",
        webhooks.DeliveryReplay.as_view(),
        name="delivery-replay",
    ),
    path("v1/audit", audit.AuditList.as_view(), name="audit"),
    path("v1/me", access.Me.as_view(), name="me"),
    _below(
        "v1/usage/",
        path(
            "storage/namespaces/<path:namespace>",
            storage.StorageOfNamespace.as_view(),
            name="namespace-storage",
        ),
        path(
            "storage/threads/<path:thread_id>",
            storage.StorageOfThread.as_view(),
            name="thread-storage",
        ),
        path("storage", storage.StorageList.as_view(), name="storage"),
    ),
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
