"""The URL patterns of the admin, collected from the modules of the pages."""

from __future__ import annotations

from . import (
    access,
    account,
    audit,
    changes,
    choosers,
    compactions,
    config,
    conversations,
    documentation,
    entry_actions,
    entry_bulk,
    entry_cells,
    entry_detail,
    entry_edit,
    entry_list,
    entry_parts,
    entry_undo,
    favicon,
    health,
    inbox,
    lineages,
    live,
    mailbox,
    members,
    metrics,
    namespace_edit,
    namespace_list,
    overview,
    palette,
    plugin_install,
    plugins,
    policies,
    problem_pages,
    retention,
    reverts,
    run_actions,
    run_knowledge,
    runs,
    saved_views,
    sessions,
    sign_in,
    state_keys,
    system,
    thread_compactions,
    thread_delete,
    thread_forks,
    thread_states,
    threads,
    tickets,
    tokens,
    usage,
    webhooks,
)

app_name = "web"

# In the order in which Django looks for the pattern of a URL.
_MODULES = (
    favicon, health, metrics, account, palette, live, overview, changes, audit, entry_list,
    entry_bulk, reverts, entry_cells, entry_edit, run_knowledge, retention, entry_actions,
    entry_undo, entry_parts, entry_detail, choosers, namespace_edit, namespace_list, system,
    usage, threads, thread_delete, conversations, thread_states, thread_forks, thread_compactions,
    saved_views, runs, lineages, run_actions, inbox, tickets, mailbox, compactions, policies,
    problem_pages, documentation, state_keys, plugin_install, plugins, config, members, tokens,
    access, sessions, sign_in, webhooks,
)  # fmt: skip

urlpatterns = [pattern for module in _MODULES for pattern in module.urlpatterns]
