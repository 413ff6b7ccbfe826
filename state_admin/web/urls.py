"""The addresses of the pages, collected from the page families: each names its own."""

from __future__ import annotations

from . import (
    account,
    compactions,
    conversations,
    entry_actions,
    entry_bulk,
    entry_detail,
    entry_edit,
    entry_list,
    entry_undo,
    health,
    namespace_edit,
    namespace_list,
    overview,
    palette,
    run_actions,
    runs,
    state_keys,
    system,
    thread_compactions,
    thread_delete,
    thread_states,
    threads,
    tokens,
)

app_name = "web"

urlpatterns = [
    *health.urlpatterns,
    *account.urlpatterns,
    *palette.urlpatterns,
    *overview.urlpatterns,
    *entry_list.urlpatterns,
    *entry_bulk.urlpatterns,
    *entry_edit.urlpatterns,
    *entry_actions.urlpatterns,
    *entry_undo.urlpatterns,
    *entry_detail.urlpatterns,
    *namespace_edit.urlpatterns,
    *namespace_list.urlpatterns,
    *system.urlpatterns,
    *threads.urlpatterns,
    *thread_delete.urlpatterns,
    *conversations.urlpatterns,
    *thread_states.urlpatterns,
    *thread_compactions.urlpatterns,
    *runs.urlpatterns,
    *run_actions.urlpatterns,
    *compactions.urlpatterns,
    *state_keys.urlpatterns,
    *tokens.urlpatterns,
]
