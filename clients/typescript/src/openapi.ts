// Made from docs/openapi.json by `make client-types`; do not edit.
// sha256 of docs/openapi.json: d16a81db54e09da867652f4d0baac53fb602fc2a806b3ccc1d91f3b1779ddf2a

export interface paths {
    "/api/v1/access/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Explain access
         * @description What a token (`token_id`) or a member (`username`) may do, in general or with a namespace, a key or a thread, and why. Exactly one of the two is required.
         */
        get: operations["explain_access"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/store/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a store item
         * @description The item, or null if it does not exist.
         */
        get: operations["get_store_item"];
        /**
         * Write a store item
         * @description Last write wins; with If-Match, only on top of that `version`. The first item that an admin writes registers the namespace `agent_store`.
         */
        put: operations["put_store_item"];
        post?: never;
        /**
         * Delete a store item
         * @description Deletes the item if it exists; with If-Match, only that `version`.
         */
        delete: operations["delete_store_item"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/store/items/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search store items
         * @description Items below `namespace_prefix`, newest change first.
         */
        post: operations["search_store_items"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/store/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List store namespaces
         * @description Store namespaces that contain items, in alphabetical order.
         */
        post: operations["list_store_namespaces"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a thread
         * @description An existing thread is a conflict, or the response with `if_exists: do_nothing`.
         */
        post: operations["create_agent_thread"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count threads
         * @description Count threads.
         */
        post: operations["count_agent_threads"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search threads
         * @description Search threads.
         */
        post: operations["search_agent_threads"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/{thread_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a thread
         * @description The thread with its state and messages.
         */
        get: operations["get_agent_thread"];
        put?: never;
        post?: never;
        /**
         * Delete a thread
         * @description Deletes the thread with everything that belongs to it. Its children stay.
         */
        delete: operations["delete_agent_thread"];
        options?: never;
        head?: never;
        /**
         * Change a thread
         * @description Merges `metadata`, writes `values` as a new checkpoint and appends `messages`, all or nothing; with a `checkpoint`, only if that is the newest.
         */
        patch: operations["patch_agent_thread"];
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/{thread_id}/copy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Copy a thread
         * @description A new thread with the same state and messages.
         */
        post: operations["copy_agent_thread"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/{thread_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the states of a thread
         * @description The retained checkpoints, newest first.
         */
        get: operations["list_agent_history"];
        put?: never;
        /**
         * Search the states of a thread
         * @description The retained checkpoints, newest first.
         */
        post: operations["search_agent_history"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/{thread_id}/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the current state
         * @description Read the current state.
         */
        get: operations["get_agent_state"];
        put?: never;
        /**
         * Update the state
         * @description Writes `values` as a new checkpoint; with `checkpoint_id` or `checkpoint`, only if that is the newest. State does not branch: copy the thread instead.
         */
        post: operations["update_agent_state"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/{thread_id}/state/checkpoint": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read the state at a checkpoint object
         * @description Read the state at a checkpoint object.
         */
        post: operations["get_agent_state_of"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent-protocol/threads/{thread_id}/state/{checkpoint_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the state at a checkpoint
         * @description Read the state at a checkpoint.
         */
        get: operations["get_agent_state_at"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the audit
         * @description Every write of the workspace, newest first. With filters, a page may have fewer items than `limit`, or none: there are more as long as `next_cursor` is not null.
         */
        get: operations["list_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/blame/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Attribute the parts of an entry
         * @description Who set each part of the current value, in which version, request and run. Items of arrays are followed when they get another index. What history compaction removed is attributed to the oldest version that is kept. All parts are on one page.
         */
        get: operations["blame_entry"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List changes
         * @description Changes in commit order, after `cursor` or from the oldest retained one. `next_cursor` is never null: send it as `cursor` to continue without a gap or a repetition. With `wait`, the response is held until there is a change. 410 if the cursor has expired: read the current state, then continue without a cursor.
         */
        get: operations["list_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/changes/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream changes
         * @description Server-sent events: `change` with an item of `GET /changes` as data and its cursor as id, and at the end `closed` with a problem document. The stream starts after `Last-Event-ID` or `cursor`, otherwise with the next change. A comment follows after 15 seconds of silence; its id is the current position.
         */
        get: operations["stream_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compaction-policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List compaction policies
         * @description The policy of the workspace and those of agents, on one page. The policy of a thread is read at its own path.
         */
        get: operations["list_policies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compaction-policies/agents/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the compaction policy of an agent
         * @description Returns the fields that it sets, and the policy that applies, with the source of each field.
         */
        get: operations["get_agent_policy"];
        /**
         * Replace the compaction policy of an agent
         * @description Fields that the body leaves out are no longer set. Queued compactions keep the policy with which they were requested. Setting `snapshot_keep_last` or `snapshot_keep_every` requires the role admin.
         */
        put: operations["put_agent_policy"];
        post?: never;
        /**
         * Delete the compaction policy of an agent
         * @description None of its fields is set any more.
         */
        delete: operations["delete_agent_policy"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compaction-policies/threads/{thread_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the compaction policy of a thread
         * @description Returns the fields that it sets, and the policy that applies, with the source of each field.
         */
        get: operations["get_thread_policy"];
        /**
         * Replace the compaction policy of a thread
         * @description Fields that the body leaves out are no longer set. Queued compactions keep the policy with which they were requested. Setting `snapshot_keep_last` or `snapshot_keep_every` requires the role admin.
         */
        put: operations["put_thread_policy"];
        post?: never;
        /**
         * Delete the compaction policy of a thread
         * @description None of its fields is set any more.
         */
        delete: operations["delete_thread_policy"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compaction-policies/workspace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the compaction policy of the workspace
         * @description Returns the fields that it sets, and the policy that applies, with the source of each field.
         */
        get: operations["get_workspace_policy"];
        /**
         * Replace the compaction policy of the workspace
         * @description Fields that the body leaves out are no longer set. Queued compactions keep the policy with which they were requested. Setting `snapshot_keep_last` or `snapshot_keep_every` requires the role admin.
         */
        put: operations["put_workspace_policy"];
        post?: never;
        /**
         * Delete the compaction policy of the workspace
         * @description None of its fields is set any more.
         */
        delete: operations["delete_workspace_policy"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List compactions
         * @description Compactions of the workspace, newest first.
         */
        get: operations["list_compactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compactions/{compaction_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a compaction
         * @description Read a compaction.
         */
        get: operations["get_compaction"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compactions/{compaction_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a compaction
         * @description A queued one does not start, a running one stops at its next step. What a removal has removed stays removed. 409 if the compaction has ended.
         */
        post: operations["cancel_compaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compactions/{compaction_id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the messages behind a summary
         * @description The messages that the summary replaces in the context, in order.
         */
        get: operations["list_folded_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compactions/{compaction_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request a compaction again
         * @description Returns a new compaction of the context of the same thread. 409 if this one is queued, running or done, or of another kind.
         */
        post: operations["retry_compaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compactions/{compaction_id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo a compaction
         * @description The context has the original messages again instead of the summary. Only a context compaction that is done can be undone, and not before the later ones that include its summary: 409 names the next of them in `later`.
         */
        post: operations["undo_compaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/config/{kind}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the records of a kind
         * @description By id. Each secret is replaced by a marker.
         */
        get: operations["list_config"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/config/{kind}/{record_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a record
         * @description Each secret is replaced by a marker.
         */
        get: operations["read_config"];
        /**
         * Write a record
         * @description Creates (201) or replaces (200) a record. A missing `id` in the value is filled in. The records that it names must exist.
         */
        put: operations["write_config"];
        post?: never;
        /**
         * Delete a record
         * @description Deletes a record and its secrets. If other records name it, the status is 409 and `dependents` lists them, unless `force` is true. The dry run only lists them.
         */
        delete: operations["delete_config"];
        options?: never;
        head?: never;
        /**
         * Patch a record
         * @description Changes a record on the server. The media type selects the form of the patch, as for entries. The patch is applied to the value with markers in place of secrets.
         */
        patch: operations["patch_config"];
        trace?: never;
    };
    "/api/v1/config/{kind}/{record_id}/dependents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what names a record
         * @description The other records that name this one, and where. All of them are on one page.
         */
        get: operations["list_config_dependents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/config/{kind}/{record_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of a record
         * @description The versions that history compaction has not removed, newest first. Each secret is replaced by a marker.
         */
        get: operations["read_config_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/config/{kind}/{record_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a version of a record
         * @description Writes a new version with the value of an old one. Secrets stay as they are now.
         */
        post: operations["restore_config"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/deliveries/{delivery_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay a delivery
         * @description Sends a finished delivery again, or retries a failed one now. 409 if it is queued or being sent, and for a test event.
         */
        post: operations["replay_delivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/diff/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare two versions
         * @description What changed between two versions. A deletion counts as the default of the namespace. Items of arrays are followed when they get another index: an insert is one difference.
         */
        get: operations["diff_entry"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List dispatches
         * @description Newest first. `status=DeadLetter` lists the dead letters.
         */
        get: operations["list_dispatches"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Claim dispatches
         * @description Claims the next dispatch of up to `limit` threads in which none is claimed. With `wait`, the response is held until there is one; `wait` cannot be combined with Idempotency-Key. A dispatch whose lease expires returns to the queue. Claims fewer than `limit` if their payloads would exceed 16 MiB.
         */
        post: operations["claim_dispatches"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/clear": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete dead letters
         * @description Deletes those that the body selects: with `{}`, all dead letters of the workspace. It cannot be undone.
         */
        post: operations["clear_dead_letters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count dispatches
         * @description How many there are of each status.
         */
        get: operations["count_dispatches"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay dead letters
         * @description Enqueues them again with all their attempts. Leaves out those whose `dedupe_key` an open dispatch or a newer dead letter has.
         */
        post: operations["replay_dead_letters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/{dispatch_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a dispatch
         * @description With its payload and status. The claim token is not returned.
         */
        get: operations["get_dispatch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/{dispatch_id}/ack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge a dispatch
         * @description Finishes it as delivered; whether the work succeeded is recorded by the run. Refused if the claim is no longer valid or the thread was interrupted.
         */
        post: operations["ack_dispatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/{dispatch_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a dispatch
         * @description Only while it is queued; to stop a claimed one, interrupt the thread.
         */
        post: operations["cancel_dispatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/{dispatch_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extend the lease of a dispatch
         * @description Refused if the claim is no longer valid or the thread was interrupted.
         */
        post: operations["extend_dispatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/{dispatch_id}/nack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Return a dispatch
         * @description Counts a failed attempt. The dispatch returns to the queue, or becomes a dead letter when its attempts are used up. If the thread was interrupted, it is superseded.
         */
        post: operations["nack_dispatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dispatches/{dispatch_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay a dead letter
         * @description Enqueues it again with all its attempts. Refused if it is not a dead letter, or an open dispatch has its `dedupe_key`.
         */
        post: operations["replay_dispatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase a resource or a key
         * @description Removes everything of one `resource_id` (its threads with messages, runs, tickets and state, and the entries of their scopes) or all entries of one `key`, with the history, permanently. Exactly one of the two is required. The token must not be limited to namespaces or threads.
         */
        post: operations["erase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of an entry
         * @description The versions that history compaction has not removed, newest first.
         */
        get: operations["read_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Pin a version
         * @description History compaction keeps a pinned version. `pinned: false` removes the pin.
         */
        patch: operations["pin_version"];
        trace?: never;
    };
    "/api/v1/keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the entries of a key
         * @description The entries with this key in all namespaces, also in unregistered ones, by namespace. A page with values ends before they exceed 16 MiB.
         */
        get: operations["list_key"];
        put?: never;
        post?: never;
        /**
         * Delete the entries of a key
         * @description Deletes the entries with this key in all namespaces, also in unregistered ones: all of them or none. Their history stays.
         */
        delete: operations["clear_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the caller
         * @description The workspace, role and limits of the token or user that calls.
         */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List members
         * @description In the order in which they joined.
         */
        get: operations["list_members"];
        put?: never;
        /**
         * Add a member
         * @description A new name gets an account and an invitation: `login_url` signs the person in, once. For an existing account it is null, and unused login links of the account stop working.
         */
        post: operations["add_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/members/{member_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a member
         * @description Read a member.
         */
        get: operations["get_member"];
        put?: never;
        post?: never;
        /**
         * Remove a member
         * @description Takes effect at once. The account remains, and so do the tokens that the person created, unless you send `revoke_tokens=true`. The last admin cannot be removed.
         */
        delete: operations["remove_member"];
        options?: never;
        head?: never;
        /**
         * Change the role of a member
         * @description The last admin keeps the role.
         */
        patch: operations["change_member"];
        trace?: never;
    };
    "/api/v1/members/{member_id}/invitation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew the invitation of a member
         * @description A new one-time login link. Refused for a person who belongs to other workspaces too, and for a superuser.
         */
        post: operations["invite_member"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/members/{member_id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Sign a member out everywhere
         * @description Ends all sessions and unused login links.
         */
        delete: operations["end_member_sessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List namespaces
         * @description The registered namespaces, by name, without those of the config registry.
         */
        get: operations["list_namespaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/namespaces/{namespace}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a namespace
         * @description The ETag is the schema version, which a change of the description, the plugin or the retention of histories does not increase.
         */
        get: operations["get_namespace"];
        /**
         * Register a namespace
         * @description Registers a namespace (201), or replaces its definition (200). With If-Match, only if the schema version is the one that it names; with `If-None-Match: *`, only if the namespace is not registered. The dry run returns the entries that a new schema would refuse.
         *
         *     With `if_exists=accept`, a registered namespace never changes: its definition is returned if it is compatible; otherwise the response is 409 `schema-conflict`, and `errors` lists the differences. Schemas are compatible if they are the same except for optional fields: `properties` of one schema that the other lacks, that neither requires, and that the other allows (it does not restrict `additionalProperties`). Annotations such as `title` and `description` do not count. Defaults may differ by such fields only. A `schema` or `default` that the body omits is compatible; the other members of the body are used only when the namespace is created.
         *
         *     With `if_exists=update`, a registered namespace keeps the members that the body omits, except that a namespace of a plugin requires its name as `plugin`.
         */
        put: operations["register_namespace"];
        post?: never;
        /**
         * Unregister a namespace
         * @description If it has live entries, `entries` must say what happens to them. 409 if it belongs to an installed plugin, which `plugin` names.
         */
        delete: operations["unregister_namespace"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/namespaces/{namespace}/compactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Preview a history compaction of a namespace
         * @description How many versions the entries have, and how many would be removed now.
         */
        get: operations["preview_history_compaction"];
        put?: never;
        /**
         * Request a history compaction of a namespace
         * @description Removes the versions that the `history` of the namespace does not retain. They cannot be restored. A worker performs it: read `GET /compactions/{id}`, whose path is in the Location header, until it has ended.
         */
        post: operations["request_history_compaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List plugins
         * @description Installed plugins by name, with the names of what belongs to them.
         */
        get: operations["list_plugins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/plugins/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a plugin
         * @description The plugin with its state keys and namespaces as they are now.
         */
        get: operations["get_plugin"];
        /**
         * Install a plugin
         * @description Registers all of its state keys and namespaces, or none.
         */
        put: operations["install_plugin"];
        post?: never;
        /**
         * Uninstall a plugin
         * @description Removes the values of its state keys from every thread, except those that are retained on uninstallation, then unregisters its state keys and namespaces.
         */
        delete: operations["uninstall_plugin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reads/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the readers of an entry
         * @description The steps of runs that reported it as read, the newest version first.
         */
        get: operations["list_readers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/redact/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redact an entry
         * @description Removes parts of the value from every version, permanently. `{"$redacted": true}` takes their place, and a new version records it. The entry may be deleted, and its namespace unregistered. Every pointer must lead to something in at least one version.
         */
        post: operations["redact_entry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore entries to a moment
         * @description Gives the entries that all given filters select, one of which is required, the values that they had at a moment, as new versions. An entry that did not exist then is deleted. All of them or none; at most 10,000 entries that were written since: `POST /reverts` with the same members restores more, in batches. An entry whose old value does not satisfy the current schema, or is no longer kept, is refused and left as it is.
         */
        post: operations["restore_entries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/restore/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a version
         * @description Writes a new version with the value of an old one. Tags, pin and expiry stay. With If-Match, only if the current version is the one that it names.
         */
        post: operations["restore_entry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reverts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List reverts
         * @description Reverts of the workspace, newest first. They are kept for 30 days after their end. A token that is limited to namespaces or threads sees only the reverts that it requested.
         */
        get: operations["list_reverts"];
        put?: never;
        /**
         * Revert a request, or to a moment
         * @description Either `request_id`, or `at` with one or more of the filters `namespace`, `key`, `prefix` and `scope_kind`, is required.
         *
         *     With `request_id`, each entry that the request wrote gets the value and expiry that it had before, as a new version, and entries that it created are deleted. Tags that a bulk action added are removed, and tags that it removed are added again. Entries that were written since then are skipped, and so are those whose earlier version is not kept, has expired or was redacted, or that the schema refuses.
         *
         *     With `at`, each entry that all filters select, and that was written or has expired since that moment, gets the value that it had then, as in `POST /restore`, but for any number of entries. Entries that did not exist then are deleted. An entry that is written after the job has found it is skipped.
         *
         *     A worker performs it in batches: read `GET /reverts/{id}`, whose path is in the Location header, until it has ended. If the caller has an unfinished revert of the same request, or with the same moment and filters, that one is returned. A dry run stops after about one second. Its counts are complete only if its status is `done`.
         */
        post: operations["request_revert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reverts/{revert_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a revert
         * @description Read a revert.
         */
        get: operations["get_revert"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reverts/{revert_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a revert
         * @description The job stops before its next batch. Entries that it has already reverted keep their reverted values. Returns 409 if the job has ended.
         */
        post: operations["cancel_revert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reverts/{revert_id}/skipped": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the entries that a revert skipped
         * @description In the order in which they were examined, with the reasons.
         */
        get: operations["list_skipped_entries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs
         * @description Newest first.
         */
        get: operations["list_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel runs
         * @description Cancels up to 200 runs independently of each other. If a run cannot be cancelled, for example because it does not exist, its result contains a problem and the others are still cancelled. A run that has ended stays as it is.
         */
        post: operations["cancel_runs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a run
         * @description With `wait`, the response is held until the run has a newer revision.
         */
        get: operations["get_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a run
         * @description Moves the run to another status, or updates its counts or metadata. With `If-Match`, only if its `last_revision` is that one.
         */
        patch: operations["change_run"];
        trace?: never;
    };
    "/api/v1/runs/{run_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a run
         * @description Ends the run as cancelled; its pending tickets become void. A run that has ended stays as it is. With `If-Match`, only if its `last_revision` is that one.
         */
        post: operations["cancel_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/commits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Commit a step
         * @description State updates, messages and changes of the run are stored together as one revision, or not at all. `If-Match` is another way to send `base_revision`. An empty commit returns the current revision.
         */
        post: operations["commit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/fail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fail a run
         * @description Ends the run with an error; its pending tickets become void. With `If-Match`, only if its `last_revision` equals the given one.
         */
        post: operations["fail_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew the lease of a run
         * @description The lease lasts `lease_seconds` of the run from now. Recorded in the audit log and in the change feed only if there is a `Change-Reason`.
         */
        post: operations["heartbeat_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/knowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what a run could see
         * @description The state of the thread and the entries of the run's scopes, as they were when the run committed a step.
         */
        get: operations["read_knowledge"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/lease": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take the lease of a run
         * @description Makes the caller the worker of the run, with a new fencing token. Requests with an older token are refused from then on.
         */
        post: operations["take_lease"];
        /**
         * Release the lease of a run
         * @description The run counts as stuck until another worker takes it. Requests with an older fencing token are refused from then on.
         */
        delete: operations["release_lease"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/reads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the reads of a run
         * @description The versions of entries that its commits reported as read, newest first.
         */
        get: operations["list_run_reads"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a run
         * @description Sets the run to `running` with a new fencing token and lease, from the state of a revision if one is given. Its pending tickets become void; its messages stay. A finished run cannot be resumed.
         */
        post: operations["resume_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run_id}/tickets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tickets of a run
         * @description In the order in which they were opened.
         */
        get: operations["list_run_tickets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search entries
         * @description The entries of registered namespaces that meet `text` and `where`, at least one of which is required; the newest entry first. A page may have fewer items than `limit`, or none: there are more as long as `next_cursor` is not null.
         */
        post: operations["search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List entries
         * @description The entries of all namespaces, also of unregistered ones, by namespace and key. With filters, a page may have fewer items than `limit`, or none: there are more as long as `next_cursor` is not null. A page with values ends before they exceed 16 MiB.
         */
        get: operations["list_state"];
        put?: never;
        post?: never;
        /**
         * Delete entries
         * @description Deletes the entries that `prefix` or `scope_kind`, one of which is required, select in all namespaces, also in unregistered ones: all of them or none, at most 100,000 in one request. Their history stays.
         */
        delete: operations["clear_state"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/state-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List state keys
         * @description Registered state keys, by name.
         */
        get: operations["list_state_keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/state-keys/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a state key
         * @description Read a state key.
         */
        get: operations["get_state_key"];
        /**
         * Register a state key
         * @description Registers the key, or replaces its definition. 409 if it belongs to another plugin or to the runtime.
         */
        put: operations["register_state_key"];
        post?: never;
        /**
         * Unregister a state key
         * @description Values that threads retain become usable again when the name is registered again. 409 if it belongs to an installed plugin, which `plugin` names.
         */
        delete: operations["unregister_state_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/state/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a batch
         * @description Gets, puts, patches and deletes up to 1,000 entries. All `get` operations read the same snapshot of the database, and the writes of the batch that come before them. A batch with only `get` operations needs the role viewer, any other batch the role editor. The values that patches produce have at most 32 MiB in all, and the values that `get` operations return have at most another 32 MiB.
         */
        post: operations["run_batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/state/{namespace}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the entries of a namespace
         * @description By key. With `valid`, tags or `scope_kind=custom`, a page may have fewer items than `limit`, or none: there are more as long as `next_cursor` is not null. A page with values ends before they exceed 16 MiB.
         */
        get: operations["list_entries"];
        put?: never;
        post?: never;
        /**
         * Delete the entries of a namespace
         * @description Deletes all entries, or those that the parameters select: all of them or none, at most 100,000 in one request. Their history stays.
         */
        delete: operations["clear_namespace"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/state/{namespace}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an entry
         * @description A missing entry is no error: the response has the default of the namespace, version 0 and `exists: false`. `at_version` or `at`, without other parameters, reads the past. With `wait`, the response is held until there is a version newer than `since`, such as a deletion; entries of untracked namespaces cannot be waited for (400). With If-None-Match, the status is 304 while the version is the one that it names.
         */
        get: operations["read_entry"];
        /**
         * Write an entry
         * @description Creates the entry (201) or writes a new version of it (200). With If-Match, only if the version is the one that it names; with `If-None-Match: *`, only if the entry does not exist; without either, the last write wins. `On-Conflict: merge` together with If-Match merges with concurrent changes of other paths.
         */
        put: operations["write_entry"];
        post?: never;
        /**
         * Delete an entry
         * @description A missing entry is no error. The history stays, and the version continues to count if the entry is created again.
         */
        delete: operations["delete_entry"];
        options?: never;
        head?: never;
        /**
         * Patch an entry
         * @description Changes the value on the server, so that no concurrent write is lost. The media type selects the form of the patch: a JSON Merge Patch (RFC 7396), a JSON Patch (RFC 6902), or update operations. A missing entry is created from the default of the namespace. A failed `test` operation is a conflict (409).
         */
        patch: operations["patch_entry"];
        trace?: never;
    };
    "/api/v1/threads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List threads
         * @description Newest first.
         */
        get: operations["list_threads"];
        put?: never;
        /**
         * Create a thread
         * @description Repeating a request with the same `id` and content returns the stored thread with status 200; other content is a conflict. Some fields of a compaction policy need the role admin.
         */
        post: operations["create_thread"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete threads
         * @description Deletes up to 200 threads independently of each other. If a thread cannot be deleted, its result contains a problem and the others are still deleted. It cannot be undone.
         */
        post: operations["delete_threads"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a thread
         * @description Without its messages and state, which have their own paths.
         */
        get: operations["get_thread"];
        put?: never;
        post?: never;
        /**
         * Delete a thread
         * @description With its messages, runs, state and entries. It cannot be undone. Refused if a child thread or an entry to be deleted is outside the limits of the token.
         */
        delete: operations["delete_thread"];
        options?: never;
        head?: never;
        /**
         * Change a thread
         * @description Changes title, metadata, resource, parent or compaction policy as one new version. With `application/merge-patch+json`, `metadata` and `compaction_policy` are merged with the stored ones (RFC 7396); otherwise they replace them. Some fields of a compaction policy need the role admin.
         */
        patch: operations["change_thread"];
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/ag-ui/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow a thread as AG-UI events
         * @description STATE_SNAPSHOT and MESSAGES_SNAPSHOT first, then every change, over all runs. With Last-Event-ID, the runs missed since are included.
         */
        get: operations["watch_thread"];
        put?: never;
        /**
         * Follow a run as AG-UI events
         * @description For AG-UI's HttpAgent: the run `runId`, otherwise the active one, until it ends or waits. Without a run, the thread as it is.
         */
        post: operations["join_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/compactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Preview a compaction of a thread
         * @description What a compaction would do now. `would_fold` has the messages that it would summarize, or `skip` the reason why it would do nothing. With `kind=snapshot`, the number of snapshots and rows that would be removed.
         */
        get: operations["preview_compaction"];
        put?: never;
        /**
         * Request a compaction of a thread
         * @description A worker performs it: read `GET /compactions/{id}`, whose path is in the Location header, until it has ended. If a compaction of this kind is queued or running already, that one is returned. `kind` `snapshot` requires the role admin, because removed snapshots cannot be restored.
         */
        post: operations["request_compaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/context": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the context for a model
         * @description Compacted messages are replaced by their summary. A tool call without a result gets one that says that it was interrupted, because model providers refuse it otherwise. A context that exceeds 32 MiB gets 413.
         */
        get: operations["read_context"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare two revisions
         * @description What changed in the state of the thread between them. Items of arrays are followed when they get another index.
         */
        get: operations["diff_snapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/dispatches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enqueue a dispatch
         * @description Puts work into the mailbox of the thread. A `dedupe_key` that an open dispatch of the thread has is a conflict.
         */
        post: operations["enqueue_dispatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fork a thread
         * @description Copies the state at a revision and the first messages into a new, independent thread without runs and parent. Values of state keys with the scope `run` are not copied. Repeating a request with the same `id` and content returns the stored thread with status 200; other content is a conflict.
         */
        post: operations["fork_thread"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import a snapshot
         * @description Makes a new revision from an exported snapshot. Each value must match the schema of its state key.
         */
        post: operations["import_snapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/interrupt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Interrupt a thread
         * @description Begins a new epoch, which supersedes all queued dispatches. A claimed one can no longer be extended or acked; the thread waits until its worker lets it go or its lease expires.
         */
        post: operations["interrupt_thread"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/lineage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the lineage of a thread
         * @description Its ancestors, what it was copied from, and the number of its children and forks.
         */
        get: operations["read_lineage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List messages
         * @description All messages of the thread, compacted ones and summaries included. For what a model should receive, read the context.
         */
        get: operations["list_messages"];
        put?: never;
        /**
         * Append messages
         * @description State and revision of the thread do not change. With `If-Match`, only if the state is at that revision. A message id that the thread contains already is a conflict.
         */
        post: operations["append_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a revision
         * @description Makes a new revision whose state equals that of an old one. Runs, messages and history do not change. Values of the scope `run` return only during the run that wrote them.
         */
        post: operations["restore_snapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a run
         * @description A thread has at most one run that is not finished. Starting clears the state keys of the scope `run` as one revision. Repeating a request with the same `id` and content returns the active run with status 200.
         */
        post: operations["start_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the revisions of a thread
         * @description Newest first: what each changed, by whom and why.
         */
        get: operations["list_snapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/snapshots/{revision}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Label or pin a revision
         * @description Compaction keeps the state at a labelled or pinned revision.
         */
        patch: operations["mark_snapshot"];
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the state of a thread
         * @description The newest state, or the state at a revision. A revision whose state compaction removed is gone. A state that exceeds 32 MiB gets 413. `If-None-Match` has no effect with `export=true`.
         */
        get: operations["read_state"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/ui-messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List messages for the AI SDK
         * @description The newest messages as UIMessage[], oldest first, without internal ones.
         */
        get: operations["list_ui_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{thread_id}/ui-messages/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the reply of the active run
         * @description A UI message stream of the AI SDK, from the beginning of the reply until the run ends or waits. 204 without an active run.
         */
        get: operations["stream_ui_message"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tickets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tickets
         * @description Tickets of the workspace, newest first. `status=pending` is the inbox.
         */
        get: operations["list_tickets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tickets/{ticket_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a ticket
         * @description With `wait`, the response is held until the ticket is decided.
         */
        get: operations["get_ticket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tickets/{ticket_id}/decision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decide a ticket
         * @description The first decision counts. Another one with the same content returns the ticket; a different one is refused.
         */
        post: operations["decide_ticket"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API tokens
         * @description Tokens of the workspace, newest first, including revoked and expired ones.
         */
        get: operations["list_tokens"];
        put?: never;
        /**
         * Create an API token
         * @description The response contains the secret, once. A token cannot reach further than the caller that creates it, nor be valid for longer than a token that creates it.
         */
        post: operations["create_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens/{token_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an API token
         * @description Read an API token.
         */
        get: operations["get_token"];
        put?: never;
        post?: never;
        /**
         * Revoke an API token
         * @description The token is refused at once, for good. Revoking it again changes nothing.
         */
        delete: operations["revoke_token"];
        options?: never;
        head?: never;
        /**
         * Change an API token
         * @description The secret stays valid. The next request with the token has the changed permissions, and streams that are open with the previous ones are closed. After the change, the token must not have more permissions than the caller. If the change adds permissions or sets `expires_at`, it must not expire later than the caller's token. Refused for a token that was rotated or revoked or has expired. Only an operator's token can change an operator's token.
         */
        patch: operations["change_token"];
        trace?: never;
    };
    "/api/v1/tokens/{token_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate an API token
         * @description Creates a successor with the same name, role and reach. The response contains its secret, once. The old token remains valid for `overlap_seconds`. The successor has the lifetime of the old token; a token that expires sooner can only rotate itself.
         */
        post: operations["rotate_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the usage of the workspace
         * @description The counts are those of the last measurement, which a worker repeats regularly.
         */
        get: operations["get_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/storage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List storage
         * @description What was stored at the last measurement, largest first. Of threads, the 100 largest are measured.
         */
        get: operations["list_storage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/storage/namespaces/{namespace}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Measure a namespace
         * @description What the namespace holds now. If it is too large to be measured in a request, the last measurement is returned with `exact` false.
         */
        get: operations["measure_namespace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/storage/threads/{thread_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Measure a thread
         * @description What the thread holds now. If it is too large to be measured in a request, the last measurement is returned with `exact` false.
         */
        get: operations["measure_thread"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the version
         * @description The version of the server and of its API.
         */
        get: operations["get_version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks
         * @description Webhooks of the workspace, newest first.
         */
        get: operations["list_webhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description The response contains the signing secret, which is not returned again. The webhook sees what its creator sees now. A workspace has at most 100. 410 if the cursor has expired.
         */
        post: operations["create_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a webhook
         * @description Read a webhook.
         */
        get: operations["get_webhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description Deletes its deliveries too. One that is being sent may still arrive.
         */
        delete: operations["delete_webhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description A new filter applies to later changes, not to deliveries that are queued.
         */
        patch: operations["change_webhook"];
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of a webhook
         * @description Newest first. Delivered ones and dead letters are deleted after the retention time.
         */
        get: operations["list_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a webhook
         * @description Nothing is sent until it is resumed. Its position in the change feed is retained as long as changes are.
         */
        post: operations["pause_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay events
         * @description Sends all dead letters again, or every matching change behind a cursor. 409 if the cursor is ahead of the webhook, 410 if it has expired.
         */
        post: operations["replay_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a webhook
         * @description Continues where it stopped, or with `skip` from now on. 410 if the changes since then are no longer retained: resume with `skip`.
         */
        post: operations["resume_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook
         * @description Returns the new secret, once. The previous one signs beside it for `overlap_seconds`.
         */
        post: operations["rotate_webhook_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test event
         * @description Sent once, whatever the status of the webhook. A worker sends it: read the deliveries for the result.
         */
        post: operations["test_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List workspaces
         * @description In alphabetical order. Needs an operator's token.
         */
        get: operations["list_workspaces"];
        put?: never;
        /**
         * Create a workspace
         * @description An existing one is returned as it is, with 200. Needs an operator's token.
         */
        post: operations["create_workspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workspaces/{workspace}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a workspace
         * @description The workspace and its quotas. Needs an operator's token.
         */
        get: operations["get_workspace"];
        put?: never;
        post?: never;
        /**
         * Delete a workspace
         * @description With everything in it. It cannot be undone. Its tokens are refused and its name is free at once; a job deletes the rows. Refused if the workspace has an operator token, or if its move to another cell has not ended. Needs an operator's token.
         */
        delete: operations["delete_workspace"];
        options?: never;
        head?: never;
        /**
         * Change a workspace
         * @description Its name and its quotas. Needs an operator's token.
         */
        patch: operations["change_workspace"];
        trace?: never;
    };
    "/api/v1/workspaces/{workspace}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an API token of a workspace
         * @description For the first token of a new workspace. The response contains the secret, once. Needs an operator's token.
         */
        post: operations["create_workspace_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Acknowledges a claimed dispatch: it was delivered and is not enqueued again. */
        Acknowledgement: {
            /**
             * @description `claim_token` of the claim.
             * @example 4Yq1…
             */
            claim_token: string;
        };
        /** @description The state of a thread at a checkpoint. */
        AgentState: {
            /** @description A checkpoint object: `thread_id`, `checkpoint_ns` and `checkpoint_id`. */
            checkpoint: Record<string, unknown>;
            /**
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            created_at: string | null;
            /**
             * @description Pending tickets of the active run.
             * @example []
             */
            interrupts: Record<string, unknown>[];
            /**
             * @description The messages up to the checkpoint.
             * @example []
             */
            messages: Record<string, unknown>[];
            /**
             * @description A JSON object.
             * @example {
             *       "language": "en"
             *     }
             */
            metadata: Record<string, unknown>;
            /**
             * @description The agent or run that is active.
             * @example []
             */
            next: string[];
            /**
             * @description The previous checkpoint; null for the first.
             * @example null
             */
            parent_checkpoint: Record<string, unknown> | null;
            /**
             * @description Always empty.
             * @example []
             */
            tasks: Record<string, unknown>[];
            /**
             * @description Values by state key.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            values: Record<string, unknown>;
        };
        /** @description A thread as the protocol shows it. */
        AgentThread: {
            /**
             * Format: date-time
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            created_at: string;
            /**
             * @description Pending tickets by task id.
             * @example {}
             */
            interrupts: Record<string, unknown>;
            /**
             * @description A JSON object.
             * @example {
             *       "language": "en"
             *     }
             */
            metadata: Record<string, unknown>;
            /**
             * @description `busy` while a run is active, `interrupted` while it waits, `error` if the last run failed.
             * @example idle
             * @enum {string}
             */
            status: "idle" | "busy" | "interrupted" | "error";
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /**
             * Format: date-time
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            updated_at: string;
            /**
             * @description The state: values by state key.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            values: Record<string, unknown>;
        };
        /** @description A thread and all its messages. */
        AgentThreadWithMessages: {
            /**
             * Format: date-time
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            created_at: string;
            /**
             * @description Pending tickets by task id.
             * @example {}
             */
            interrupts: Record<string, unknown>;
            /**
             * @description The messages of the thread, oldest first.
             * @example []
             */
            messages: Record<string, unknown>[];
            /**
             * @description A JSON object.
             * @example {
             *       "language": "en"
             *     }
             */
            metadata: Record<string, unknown>;
            /**
             * @description `busy` while a run is active, `interrupted` while it waits, `error` if the last run failed.
             * @example idle
             * @enum {string}
             */
            status: "idle" | "busy" | "interrupted" | "error";
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /**
             * Format: date-time
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            updated_at: string;
            /**
             * @description The state: values by state key.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            values: Record<string, unknown>;
        };
        /** @description What was appended to a thread. */
        Appended: {
            /**
             * @description Number of messages of the thread now.
             * @example 9
             */
            message_count: number;
            /** @description The new messages, in order. */
            messages: components["schemas"]["AppendedMessage"][];
            /**
             * @description Results of `operations`, in order; absent without operations.
             * @example []
             */
            results?: components["schemas"]["BatchResult"][];
        };
        /** @description The id and the position of a message that was appended. */
        AppendedMessage: {
            /**
             * @description Id of the message, unique in its thread.
             * @example m-1
             */
            id: string;
            /**
             * @description Position of the message in its thread: 1 for the first one, without gaps.
             * @example 8
             */
            seq: number;
        };
        /** @description A part of the value and the version that set it. */
        Attribution: {
            /**
             * @description Who made the version.
             * @example planner-token
             */
            actor: string;
            /**
             * @description What the actor is: a person, an API token, or the server itself.
             * @example token
             * @enum {string}
             */
            actor_kind: "user" | "token" | "system";
            /**
             * Format: date-time
             * @description When it was made.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description What made the version.
             * @example put
             * @enum {string}
             */
            operation: "put" | "patch" | "delete" | "restore" | "expire" | "import" | "redact";
            /**
             * @description The part, with all below it that has no attribution of its own.
             * @example /goal
             */
            pointer: string;
            /**
             * @description Why it was done: `Change-Reason` of the request; empty if none was given.
             * @example Retry
             */
            reason: string;
            /**
             * @description Id of the request that did it.
             * @example 0199f3c2a41c7d3e9b1f6f0f4a5e8c21
             */
            request_id: string;
            /** @description The run on whose behalf it was made. Null: none. */
            run_id: string | null;
            /**
             * @description The version that set it.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        AttributionPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Attribution"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A write, and who did it. */
        AuditRow: {
            /**
             * @description What was done to what: a kind of change.
             * @example entry.put
             */
            action: string;
            /**
             * @description Name of the user, token or job that did it.
             * @example planner-token
             */
            actor: string;
            /**
             * @description What the actor is: a person, an API token, or the server itself.
             * @example token
             * @enum {string}
             */
            actor_kind: "user" | "token" | "system";
            /**
             * Format: date-time
             * @description When it was done.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description More about the action, depending on its kind.
             * @example {
             *       "merged": true
             *     }
             */
            detail: Record<string, unknown>;
            /** @description The key, or the name of the thing; null: it has none. */
            key: string | null;
            /** @description The namespace; null: not about one. */
            namespace: string | null;
            /**
             * @description Why it was done: `Change-Reason` of the request; empty if none was given.
             * @example Retry
             */
            reason: string;
            /**
             * @description Id of the request that did it.
             * @example 0199f3c2a41c7d3e9b1f6f0f4a5e8c21
             */
            request_id: string;
            /**
             * @description The run that was written, or on whose behalf; null: none.
             * @example null
             */
            run_id: string | null;
            /**
             * @description The thread; null: not about one.
             * @example null
             */
            thread_id: string | null;
            /**
             * @description Version or revision that the write created; 0: none.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        AuditRowPage: {
            /** @description The items of this page. */
            items: components["schemas"]["AuditRow"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description Operations on entries, which are performed in this order. */
        Batch: {
            /**
             * @description True: all operations are performed or none, and the first failure is the response. False: each on its own, with a problem in the results of those that failed.
             * @default true
             */
            atomic?: boolean;
            /**
             * @description 1 to 1,000 operations.
             * @example [
             *       {
             *         "key": "task::42",
             *         "namespace": "team_context",
             *         "op": "put",
             *         "value": {
             *           "goal": "Ship it"
             *         }
             *       },
             *       {
             *         "key": "task::41",
             *         "namespace": "team_context",
             *         "op": "get"
             *       }
             *     ]
             */
            operations: components["schemas"]["BatchOperation"][];
        };
        /**
         * @description One operation of a batch.
         *
         *     Besides `op`, `namespace` and `key`, a `put` uses `value`, `if_version`, `ttl_seconds`, `tags` and
         *     `pinned`; a `patch` uses `patch`, `patch_type` and `if_version`; a `delete` uses `if_version`; a
         *     `get` uses no other member. Members that the operation does not use are refused.
         */
        BatchOperation: {
            /**
             * @description Only if the entry has this version; 0: only if it does not exist. Default: whatever version it has.
             * @example 2
             */
            if_version?: number;
            /**
             * @description Key of the entry.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Namespace of the entry.
             * @example team_context
             */
            namespace: string;
            /**
             * @description What to do.
             * @example put
             * @enum {unknown}
             */
            op: "delete" | "get" | "patch" | "put";
            /**
             * @description The patch of a `patch`, which needs one.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            patch?: unknown;
            /**
             * @description Form of `patch`: a JSON Merge Patch (RFC 7396), a JSON Patch (RFC 6902), or update operations. Default: `merge`. Required if `patch` is an array or has the members `op` and `path`.
             * @enum {unknown}
             */
            patch_type?: "json" | "merge" | "update";
            /**
             * @description Whether the entry is marked as important. Default: as it is.
             * @example false
             */
            pinned?: boolean;
            /**
             * @description Labels for filtering. Default: those that the entry has.
             * @example [
             *       "draft"
             *     ]
             */
            tags?: string[];
            /**
             * @description Time to live in seconds: the entry is deleted when it is over. Default: that of the namespace.
             * @example 86400
             */
            ttl_seconds?: number | null;
            /**
             * @description The value of a `put`, which needs one.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value?: unknown;
        };
        /** @description The result of one operation of a batch. */
        BatchResult: {
            /** @description The entry. Absent after a `delete` or a failure, and after any write with `Prefer: return=minimal`. */
            entry?: components["schemas"]["Entry"];
            /**
             * @description Why the operation failed. Absent if it succeeded.
             * @example {
             *       "detail": "thread not found: thread-1",
             *       "status": 404,
             *       "title": "Resource not found",
             *       "type": "/problems/not-found"
             *     }
             */
            problem?: components["schemas"]["Problem"];
            /**
             * @description HTTP status that the operation would return as a separate request.
             * @example 200
             */
            status: number;
            /**
             * @description Version that a `delete` created; 0: there was no entry. With `Prefer: return=minimal` also the version that a `put` or `patch` wrote. Absent otherwise.
             * @example 3
             */
            version?: number;
        };
        /** @description What a batch did. */
        BatchResults: {
            /**
             * @description The results in the order of the operations.
             * @example [
             *       {
             *         "status": 204,
             *         "version": 3
             *       }
             *     ]
             */
            results: components["schemas"]["BatchResult"][];
        };
        /** @description A change that was committed. */
        Change: {
            /**
             * @description Name of the user, token or job that did it.
             * @example planner-token
             */
            actor: string;
            /**
             * Format: date-time
             * @description When it was done.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description Position of this change: send it as `cursor` to continue after it.
             * @example WzcsMywxNzY5ODYwODAwXQ
             */
            cursor: string;
            /** @description The key; null: not about one. */
            key: string | null;
            /**
             * @description What was done to what.
             * @example entry.put
             */
            kind: string;
            /** @description The namespace; null: not about one. */
            namespace: string | null;
            /**
             * @description The run; null: not about one.
             * @example null
             */
            run_id: string | null;
            /**
             * @description The thread; null: not about one.
             * @example null
             */
            thread_id: string | null;
            /**
             * @description Version or revision that the change created; 0: none.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        ChangePage: {
            /** @description The items of this page. */
            items: components["schemas"]["Change"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description Which dispatches to claim, and for how long. */
        ClaimRequest: {
            /**
             * @description Claim only where the next dispatch is for this agent.
             * @example planner
             */
            agent_id?: string;
            /**
             * @description Name of the worker, shown to people. Default: the name of the token.
             * @example worker-1
             */
            consumer?: string;
            /**
             * @description Seconds from now until the lease expires.
             * @default 30
             * @example 60
             */
            lease_seconds?: number;
            /**
             * @description Claim at most this number.
             * @default 1
             * @example 10
             */
            limit?: number;
            /**
             * @description Claim only of this thread.
             * @example thread-1
             */
            thread_id?: string;
        };
        /** @description A dispatch that the caller has claimed. */
        ClaimedDispatch: {
            /**
             * @description Id of the agent that it is for; empty: any.
             * @example planner
             */
            agent_id: string;
            /**
             * @description Number of failed attempts.
             * @example 0
             */
            attempts: number;
            /**
             * Format: date-time
             * @description Cannot be claimed before this time.
             * @example 2026-01-31T12:00:00.000000Z
             */
            available_at: string;
            /**
             * @description Secret of the claim, needed to extend, ack and nack.
             * @example 4Yq1…
             */
            claim_token: string;
            /**
             * @description When it was claimed; null: not claimed.
             * @example null
             */
            claimed_at: string | null;
            /**
             * @description Name of the worker; null: not claimed.
             * @example null
             */
            claimed_by: string | null;
            /**
             * Format: date-time
             * @description When it was enqueued.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description No second dispatch of the thread with this key while it is open; null: none.
             * @example null
             */
            dedupe_key: string | null;
            /**
             * @description Epoch of the thread when it was enqueued; interrupts begin a new one.
             * @example 0
             */
            epoch: number;
            /**
             * @description When it was finished; null: it is open.
             * @example null
             */
            finished_at: string | null;
            /**
             * @description Id of the dispatch.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /**
             * @description Why the last attempt failed; null: none did.
             * @example null
             */
            last_error: string | null;
            /**
             * @description When the worker's lease expires; null: not claimed.
             * @example null
             */
            lease_until: string | null;
            /**
             * @description Number of failed attempts at which it becomes a dead letter.
             * @example 5
             */
            max_attempts: number;
            /**
             * @description What to do.
             * @example {
             *       "task": "check"
             *     }
             */
            payload: unknown;
            /**
             * @description 0 is first. Equal priorities are in order of age.
             * @example 128
             */
            priority: number;
            /**
             * @description How often it was replayed as a dead letter.
             * @example 0
             */
            replays: number;
            /** @description The run that it belongs to; null: none. */
            run_id: string | null;
            /**
             * @description `Acked`: delivered, which does not mean that the work succeeded; `Superseded`: the thread was interrupted; `DeadLetter`: all attempts failed.
             * @example Queued
             * @enum {string}
             */
            status: "Queued" | "Claimed" | "Acked" | "Cancelled" | "Superseded" | "DeadLetter";
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
        };
        /** @description The dispatches that the caller has claimed. */
        Claims: {
            /** @description What was claimed, each of another thread; may be empty. */
            items: components["schemas"]["ClaimedDispatch"][];
        };
        /** @description How much a bulk deletion removed. */
        Cleared: {
            /**
             * @description Number of deleted items; 0 in a dry run.
             * @example 3
             */
            deleted: number;
            /**
             * @description Number of items that the conditions match.
             * @example 3
             */
            matched: number;
        };
        /** @description One step of a run: everything in it is stored together, or nothing. */
        Commit: {
            /**
             * @description Revision of the state that the updates were made for; null: any.
             * @example 12
             */
            base_revision?: number | null;
            /**
             * @description Instead of `updates`: the updates of parallel branches. Two branches may touch one key only if its merge strategy is `commutative`.
             * @example []
             */
            batches?: (components["schemas"]["Update"][] | components["schemas"]["UpdateBatch"])[];
            /**
             * @description Commit only if the thread has this number of messages; null: any.
             * @example 8
             */
            expected_message_count?: number | null;
            /**
             * @description The worker's fencing token. A token that is not the newest is refused. Null: no check.
             * @example 1
             */
            fencing_token?: number | null;
            /**
             * @description Label of the revision; compaction keeps labelled ones.
             * @default
             * @example planned
             */
            label?: string;
            /** @description 1 to 1,000 messages, in order. */
            messages?: {
                /** @description Text of the message, or a list of content parts. */
                content?: unknown;
                /** @description Id of the message, unique in its thread. Default: generated. */
                id?: string;
                /**
                 * @description Who speaks.
                 * @enum {string}
                 */
                role: "system" | "user" | "assistant" | "tool";
                /** @description Of a `tool` message: the tool call that it answers. */
                tool_call_id?: string;
                /** @description Tool calls of an `assistant` message. */
                tool_calls?: Record<string, unknown>[];
                /**
                 * @description `internal`: hidden from lists of messages unless requested.
                 * @default all
                 * @enum {string}
                 */
                visibility?: "all" | "internal";
            }[];
            /**
             * @description What happens if the state is not at `base_revision`: `fail` refuses the commit, `rebase` applies it if the revisions since then touched none of its keys.
             * @default fail
             * @example fail
             * @enum {unknown}
             */
            on_conflict?: "fail" | "rebase";
            /**
             * @description Entries that the step was based on, at most 200; kept as provenance.
             * @example []
             */
            reads?: components["schemas"]["EntryRead"][];
            /** @description What changes of the run itself. */
            run?: components["schemas"]["RunFields"];
            /** @description Updates of the state, in order; at most 10,000 in one commit. */
            updates?: components["schemas"]["Update"][];
        };
        /** @description The outcome of a commit. */
        Committed: {
            /**
             * @description Number of messages of the thread now.
             * @example 9
             */
            message_count: number;
            /**
             * @description Revision of the thread's state; 0 before the first one.
             * @example 12
             */
            revision: number;
            run: components["schemas"]["Run"];
            /**
             * @description State keys that were written or cleared.
             * @example [
             *       "plan"
             *     ]
             */
            touched_keys: string[];
        };
        /** @description A compaction: a job that a worker performs, and its result. */
        Compaction: {
            /**
             * @description How many times a worker started it.
             * @example 1
             */
            attempts: number;
            /**
             * @description Bytes after; null: not counted.
             * @example null
             */
            bytes_after: number | null;
            /**
             * @description Bytes before; null: not counted.
             * @example null
             */
            bytes_before: number | null;
            /**
             * @description User message within that range that the context retains; null: none.
             * @example null
             */
            carried_seq: number | null;
            /**
             * @description Cost of all calls of the model, in US dollars.
             * @example 0.000000
             */
            cost_usd: string;
            /**
             * Format: date-time
             * @description When it was requested.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Why it was skipped or failed, in plain text; else empty.
             * @example
             */
            detail: string;
            /** @description When it ended; null: not yet. */
            finished_at: string | null;
            /**
             * @description First summarized message; null: no messages were selected.
             * @example 1
             */
            from_seq: number | null;
            /**
             * @description Id of a compaction.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /**
             * @description Input tokens of all calls of the model.
             * @example 0
             */
            input_tokens: number;
            /**
             * @description The instructions that the model got.
             * @example null
             */
            instructions: string | null;
            /**
             * @description `context`: messages of a thread are summarized. `snapshot`: old snapshots of a thread are removed. `history`: old versions of the entries of a namespace are removed.
             * @example context
             * @enum {string}
             */
            kind: "context" | "snapshot" | "history";
            /**
             * @description The model that was called.
             * @example null
             */
            model: string | null;
            /**
             * @description The namespace; only for `history`.
             * @example null
             */
            namespace: string | null;
            /**
             * @description Output tokens of all calls of the model.
             * @example 0
             */
            output_tokens: number;
            /**
             * @description What the worker is doing; null: it is not running.
             * @example null
             */
            phase: ("claimed" | "planning" | "asking" | "applying") | null;
            /**
             * RequestedPolicy
             * @description The policy with which it was requested.
             * @example {
             *       "min_gain_tokens": 1024
             *     }
             */
            policy: Record<string, unknown>;
            /**
             * @description Provider of the model that was called.
             * @example null
             */
            provider: string | null;
            /**
             * @description Why it was done: `Change-Reason` of the request; empty if none was given.
             * @example Retry
             */
            reason: string;
            /**
             * @description Name of the user, token or job that did it.
             * @example planner-token
             */
            requested_by: string;
            /**
             * @description Rows after; null: not counted.
             * @example null
             */
            rows_after: number | null;
            /**
             * @description Rows before; null: not counted.
             * @example null
             */
            rows_before: number | null;
            /**
             * @description Rows removed so far.
             * @example 0
             */
            rows_removed: number;
            /** @description When a worker first started it; null: not yet. */
            started_at: string | null;
            /**
             * @description `skipped`: there was nothing worth compacting. `superseded`: the thread changed meanwhile. `undone`: the context has the original messages again.
             * @example done
             * @enum {string}
             */
            status: "queued" | "running" | "done" | "skipped" | "failed" | "superseded" | "cancelled" | "undone";
            /**
             * @description What wrote the summary, `extractive` or `model`.
             * @example extractive
             */
            summarizer: string | null;
            /**
             * @description The summary; null: none.
             * @example The user asked for a refund.
             */
            summary: string | null;
            /**
             * @description Id of the message that holds the summary; null: none.
             * @example summary-1
             */
            summary_message_id: string | null;
            /**
             * @description The thread; null for `history`.
             * @example thread-1
             */
            thread_id: string | null;
            /**
             * @description For `snapshot`, the newest revision that could be removed.
             * @example null
             */
            to_revision: number | null;
            /**
             * @description Last summarized message; null: none.
             * @example 8
             */
            to_seq: number | null;
            /**
             * @description Estimated tokens of the summary; null: no summary.
             * @example 300
             */
            tokens_after: number | null;
            /** @description Estimated tokens of the summarized messages; null: not measured. */
            tokens_before: number | null;
            /**
             * @description What requested it: the size of the context, a user or program, or the schedule.
             * @example hand
             * @enum {string}
             */
            trigger: "threshold" | "hand" | "schedule";
            /**
             * @description When it was undone; null: never.
             * @example null
             */
            undone_at: string | null;
            /**
             * @description Who undid it; null: nobody.
             * @example null
             */
            undone_by: string | null;
        };
        /** @description One page of a list. */
        CompactionPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Compaction"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description The messages that a compaction would summarize. */
        CompactionPlan: {
            /**
             * @description Id of that message.
             * @example message-8
             */
            boundary_message_id: string;
            /**
             * @description Last message to summarize.
             * @example 8
             */
            boundary_seq: number;
            /**
             * @description User message within the range that the context retains; null: none.
             * @example null
             */
            carried_seq: number | null;
            /**
             * @description Number of later messages, which are retained.
             * @example 2
             */
            kept: number;
            /**
             * @description Estimated tokens of the messages to summarize.
             * @example 1800
             */
            tokens_before: number;
        };
        /** @description The policy of one scope, and the policy that results for it. */
        CompactionPolicy: {
            /**
             * @description The agent; null in the other scopes.
             * @example planner
             */
            agent_id: string | null;
            /** @description The policy that applies to this scope. */
            effective: components["schemas"]["EffectivePolicy"];
            /**
             * @description The fields that this scope sets; `{}` if none.
             * @example {
             *       "autocompact_threshold": 60000
             *     }
             */
            policy: Record<string, unknown>;
            /**
             * @description What has the policy.
             * @example agent
             * @enum {string}
             */
            scope: "workspace" | "agent" | "thread";
            /**
             * @description Where the value of each field comes from: `default`, `workspace`, `agent`, `thread`, or `model` where the window of the agent's model is smaller.
             * @example {
             *       "autocompact_threshold": "workspace",
             *       "mode": "default"
             *     }
             */
            sources: {
                [key: string]: string;
            };
            /**
             * @description The thread; null in the other scopes.
             * @example null
             */
            thread_id: string | null;
            /** @description When the policy was set; null if never, and in the thread scope. */
            updated_at: string | null;
            /**
             * @description Who set it; null if nobody, and in the thread scope.
             * @example alice
             */
            updated_by: string | null;
            /**
             * @description Version of the policy, of a thread that of the thread; 0: never set.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        CompactionPolicyPage: {
            /** @description The items of this page. */
            items: components["schemas"]["CompactionPolicy"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What a context compaction would do now. */
        CompactionPreview: {
            /**
             * @description Size of the context now, in estimated tokens.
             * @example 4000
             */
            context_tokens: number;
            /** @description The policy that applies to the thread. */
            policy: components["schemas"]["EffectivePolicy"];
            /**
             * @description Why the summary cannot be written at present; null: it can.
             * @example null
             */
            problem: string | null;
            /**
             * @description Smallest share of `would_fold.tokens_before` that is saved, from 0 to 1.
             * @example 0.75
             */
            savings_ratio: number | null;
            /**
             * @description Why nothing would be summarized; null otherwise.
             * @example null
             */
            skip: string | null;
            /**
             * @description Where the value of each field comes from: `default`, `workspace`, `agent`, `thread`, or `model` where the window of the agent's model is smaller.
             * @example {
             *       "autocompact_threshold": "workspace",
             *       "mode": "default"
             *     }
             */
            sources: {
                [key: string]: string;
            };
            /**
             * @description Largest size of the summary; null: nothing to summarize.
             * @example 300
             */
            tokens_after: number | null;
            /**
             * @description What to consider before requesting it; null: nothing.
             * @example null
             */
            warning: string | null;
            /** @description What would be summarized; null: see `skip`. */
            would_fold: components["schemas"]["CompactionPlan"] | null;
        };
        /** @description What to compact in the thread. */
        CompactionRequest: {
            /**
             * @description `context`: summarize messages. `snapshot`: remove old snapshots.
             * @default context
             * @example context
             * @enum {unknown}
             */
            kind?: "context" | "snapshot";
        };
        /** @description A condition on the value at `path`: either `equals`, or `operator` and `value`. */
        Condition: {
            /**
             * @description What must be at `path`. Numbers are compared by value.
             * @example open
             */
            equals?: unknown;
            /**
             * @description `>`, `>=`, `<` and `<=` compare numbers with numbers and strings with strings. `contains`: a string contains the text, ignoring case; an array the item; an object the name. `exists` takes no `value`.
             * @example >
             * @enum {unknown}
             */
            operator?: "!=" | "<" | "<=" | "=" | ">" | ">=" | "contains" | "exists";
            /**
             * @description JSON Pointer to a part of the value. If it does not exist, the condition is not met.
             * @example /price
             */
            path: string;
            /**
             * @description What is compared with the value at `path`.
             * @example 100
             */
            value?: unknown;
        };
        /** @description The messages to send to a model. */
        Context: {
            /**
             * @description Estimated tokens of `messages`.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description `seq` of the last message in the summary; null: no summary.
             * @example null
             */
            folded_to_seq: number | null;
            /**
             * @description Messages left out because of `max_tokens`.
             * @example 0
             */
            left_out: number;
            /**
             * @description Number of messages of the thread.
             * @example 8
             */
            message_count: number;
            /** @description In order: the summary of compacted messages, if any, then the messages after it. */
            messages: Record<string, unknown>[];
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
        };
        /** @description A new token with its secret, which is never shown again. */
        CreatedToken: {
            /**
             * @description Send as `Authorization: Bearer …`. Null in the response to a repeated request.
             * @example ch_12124b793e09_206007e22b64b18b8c9f4ff82ba440f6
             */
            secret: string | null;
            token: components["schemas"]["Token"];
        };
        /** @description Filters that select dead letters. Without a filter: all dead letters of the workspace. */
        DeadLetterScope: {
            /**
             * @description Only dead letters for this agent.
             * @example planner
             */
            agent_id?: string;
            /**
             * @description Only dead letters of this thread.
             * @example thread-1
             */
            thread_id?: string;
        };
        /** @description How the ticket is decided. */
        Decision: {
            /**
             * @description `resume` continues the tool call with `payload`, `cancel` refuses it.
             * @example resume
             * @enum {unknown}
             */
            action: "cancel" | "resume";
            /**
             * @description The answer, which must match `response_schema`.
             * @example {
             *       "approved": true
             *     }
             */
            payload?: unknown;
        };
        /** @description An event on its way to a webhook. */
        Delivery: {
            /** @description When the last attempt began; null: none yet. */
            attempted_at: string | null;
            /**
             * @description Attempts since it was last queued.
             * @example 1
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was queued first.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Why the last attempt failed; null: it did not.
             * @example null
             */
            error: string | null;
            /**
             * @description The CloudEvent that is sent.
             * @example {
             *       "specversion": "1.0",
             *       "type": "commonhold.entry.put"
             *     }
             */
            event: unknown;
            /** @description When it was delivered, or the last attempt failed; null: not yet. */
            finished_at: string | null;
            /**
             * @description Id of the delivery.
             * @example 0199f3c2-b6d2-7f10-8a55-1f0c92d1e3aa
             */
            id: string;
            /**
             * @description Duration of the last attempt in milliseconds; null: none.
             * @example 85
             */
            latency_ms: number | null;
            /**
             * @description When the next attempt is due; null: none is planned.
             * @example null
             */
            next_attempt_at: string | null;
            /**
             * @description How many times it was replayed.
             * @example 0
             */
            replays: number;
            /**
             * @description HTTP status of the last response; null: there was none.
             * @example 200
             */
            response_status: number | null;
            /**
             * @description `failed`: the last attempt failed and another one follows. `dead`: no attempts are left; a dead letter, which can be replayed.
             * @example delivered
             * @enum {string}
             */
            status: "queued" | "delivering" | "delivered" | "failed" | "dead";
            /**
             * @description Whether it is a test event.
             * @example false
             */
            test: boolean;
            /**
             * @description Id of the webhook.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            webhook_id: string;
        };
        /** @description One page of a list. */
        DeliveryPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Delivery"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A place that names a record. */
        Dependent: {
            /**
             * @description Id of the record that names the other.
             * @example gpt-5
             */
            id: string;
            /**
             * @description Kind of the record that names the other.
             * @example providers
             * @enum {string}
             */
            kind: "agents" | "models" | "providers";
            /**
             * @description Where in its value.
             * @example /provider_id
             */
            pointer: string;
        };
        /** @description One page of a list. */
        DependentPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Dependent"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What names a record that is to be deleted. */
        Dependents: {
            /** @description The records that name it and that the token permits to see. */
            dependents: components["schemas"]["Dependent"][];
            /**
             * @description Number of records that name it and that the token does not permit to see.
             * @example 0
             */
            hidden: number;
        };
        /** @description What changed between two versions or revisions. */
        Diff: {
            /**
             * @description Version or revision of the old value.
             * @example 1
             */
            from: number;
            /** @description The JSON Patch that turns the old value into the new one. */
            patch: components["schemas"]["PatchOperation"][];
            /** @description The same changes with both values, at most 500 of them. */
            rows: components["schemas"]["Difference"][];
            /**
             * @description Version or revision of the new value.
             * @example 2
             */
            to: number;
        };
        /** @description One difference between two values. */
        Difference: {
            /**
             * @description The value after. Null if it was removed.
             * @example Ship it
             */
            after: unknown;
            /**
             * @description The value before. Null if it was added.
             * @example Plan it
             */
            before: unknown;
            /**
             * @description Whether the place was added, removed or changed.
             * @example changed
             * @enum {string}
             */
            kind: "added" | "removed" | "changed";
            /**
             * @description JSON Pointer (RFC 6901).
             * @example /goal
             */
            pointer: string;
        };
        /** @description A unit of background work for a thread. */
        Dispatch: {
            /**
             * @description Id of the agent that it is for; empty: any.
             * @example planner
             */
            agent_id: string;
            /**
             * @description Number of failed attempts.
             * @example 0
             */
            attempts: number;
            /**
             * Format: date-time
             * @description Cannot be claimed before this time.
             * @example 2026-01-31T12:00:00.000000Z
             */
            available_at: string;
            /**
             * @description When it was claimed; null: not claimed.
             * @example null
             */
            claimed_at: string | null;
            /**
             * @description Name of the worker; null: not claimed.
             * @example null
             */
            claimed_by: string | null;
            /**
             * Format: date-time
             * @description When it was enqueued.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description No second dispatch of the thread with this key while it is open; null: none.
             * @example null
             */
            dedupe_key: string | null;
            /**
             * @description Epoch of the thread when it was enqueued; interrupts begin a new one.
             * @example 0
             */
            epoch: number;
            /**
             * @description When it was finished; null: it is open.
             * @example null
             */
            finished_at: string | null;
            /**
             * @description Id of the dispatch.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /**
             * @description Why the last attempt failed; null: none did.
             * @example null
             */
            last_error: string | null;
            /**
             * @description When the worker's lease expires; null: not claimed.
             * @example null
             */
            lease_until: string | null;
            /**
             * @description Number of failed attempts at which it becomes a dead letter.
             * @example 5
             */
            max_attempts: number;
            /**
             * @description What to do.
             * @example {
             *       "task": "check"
             *     }
             */
            payload: unknown;
            /**
             * @description 0 is first. Equal priorities are in order of age.
             * @example 128
             */
            priority: number;
            /**
             * @description How often it was replayed as a dead letter.
             * @example 0
             */
            replays: number;
            /** @description The run that it belongs to; null: none. */
            run_id: string | null;
            /**
             * @description `Acked`: delivered, which does not mean that the work succeeded; `Superseded`: the thread was interrupted; `DeadLetter`: all attempts failed.
             * @example Queued
             * @enum {string}
             */
            status: "Queued" | "Claimed" | "Acked" | "Cancelled" | "Superseded" | "DeadLetter";
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
        };
        /** @description Number of dispatches by status. */
        DispatchCounts: {
            /**
             * @description Dispatches with this status.
             * @example 0
             */
            Acked: number;
            /**
             * @description Dispatches with this status.
             * @example 0
             */
            Cancelled: number;
            /**
             * @description Dispatches with this status.
             * @example 0
             */
            Claimed: number;
            /**
             * @description Dispatches with this status.
             * @example 0
             */
            DeadLetter: number;
            /**
             * @description Dispatches with this status.
             * @example 0
             */
            Queued: number;
            /**
             * @description Dispatches with this status.
             * @example 0
             */
            Superseded: number;
        };
        /** @description One page of a list. */
        DispatchPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Dispatch"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description The mark of the response to a dry run, beside the members of the response itself. */
        DryRun: {
            /**
             * @description Nothing was changed.
             * @example true
             * @constant
             */
            dry_run: true;
        };
        /** @description All fields of a policy. */
        EffectivePolicy: {
            /**
             * @description Size of the context, in estimated tokens, from which it is compacted automatically; null: never by size.
             * @example 60000
             */
            autocompact_threshold: number | null;
            /**
             * @description Compact a thread with new messages when its last compaction is so many hours old; null: never by schedule.
             * @example 24
             */
            every_hours: number | null;
            /**
             * @description What writes the summary when the model is not available; null: nothing, the compaction fails.
             * @example extractive
             */
            fallback: "extractive" | null;
            /**
             * @description Size of the context window of the model, in estimated tokens.
             * @example 200000
             */
            max_context_tokens: number;
            /**
             * @description Part of the window that is reserved for the model's output, in tokens.
             * @example 16384
             */
            max_output_tokens: number;
            /**
             * @description Fewest estimated tokens of messages that are worth a summary.
             * @example 1024
             */
            min_gain_tokens: number;
            /**
             * @description Newest messages that are retained with `mode` `compact_to_safe_frontier`, and within a long turn.
             * @example 10
             */
            min_recent_messages: number;
            /**
             * @description Smallest share of the summarized tokens, from 0 to 1, that a summary must save; one that saves less is discarded.
             * @example 0.3
             */
            min_savings_ratio: number;
            /**
             * @description How many of the newest messages are retained: `raw_suffix_messages`, or with `compact_to_safe_frontier` the number `min_recent_messages`.
             * @example keep_recent_raw_suffix
             * @enum {unknown}
             */
            mode: "compact_to_safe_frontier" | "keep_recent_raw_suffix";
            /**
             * @description Instructions for the model; null: the built-in instructions.
             * @example Summarize the conversation. Keep every id.
             */
            prompt: string | null;
            /**
             * @description Newest messages that are retained with `mode` `keep_recent_raw_suffix`.
             * @example 2
             */
            raw_suffix_messages: number;
            /**
             * @description Also retain every revision that is a multiple of this number; null: none.
             * @example 10
             */
            snapshot_keep_every: number | null;
            /**
             * @description Snapshots of a thread to retain, the newest; null: none are removed automatically, and 100 are retained on request.
             * @example 100
             */
            snapshot_keep_last: number | null;
            /**
             * @description What writes the summary: `extractive` needs no model, `model` calls `summary_model`; null: `extractive`.
             * @example model
             */
            summarizer: ("extractive" | "model") | null;
            /**
             * @description Largest size of a summary, in estimated tokens; longer ones are cut.
             * @example 1024
             */
            summary_max_tokens: number;
            /**
             * @description Id of the model, in `config.models`, that writes the summary; null: none.
             * @example small
             */
            summary_model: string | null;
        };
        /** @description How many sessions of the member were ended. */
        EndedSessions: {
            /**
             * @description Number of sessions that were ended.
             * @example 2
             */
            ended: number;
        };
        /** @description An entry as a reader sees it. A missing one has the default of its namespace and version 0. */
        Entry: {
            /**
             * @description Who wrote this version. Empty if the entry does not exist.
             * @example planner-token
             */
            actor: string;
            /** @description When the entry was created. Null if it does not exist, or in the past. */
            created_at: string | null;
            /**
             * @description Estimated number of tokens.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description False if the value is the default of the namespace.
             * @example true
             */
            exists: boolean;
            /**
             * @description When the entry expires. Null: never.
             * @example null
             */
            expires_at: string | null;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Whether the entry is marked as important.
             * @example false
             */
            pinned: boolean;
            /**
             * Format: date-time
             * @description When a part of the value was redacted. Absent if none was.
             * @example 2026-01-31T12:00:00.000000Z
             */
            redacted_at?: string;
            /**
             * @description Who redacted it. Absent if nothing was redacted.
             * @example alice
             */
            redacted_by?: string;
            /**
             * @description Version of the namespace's schema at the time of the write. 0: not validated, as after a redaction.
             * @example 1
             */
            schema_version: number;
            /**
             * @description Scope that the form of the key implies.
             * @example parent_thread
             * @enum {string}
             */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /**
             * @description Size of the value in bytes of UTF-8.
             * @example 512
             */
            size_bytes: number;
            /**
             * @description Labels for filtering.
             * @example [
             *       "draft"
             *     ]
             */
            tags: string[];
            /** @description When this version was written. Null if the entry does not exist. */
            updated_at: string | null;
            /**
             * @description Whether the current schema accepts the value.
             * @example true
             */
            valid: boolean;
            /**
             * @description The value: any JSON, as it was written.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value: unknown;
            /**
             * @description Version, which grows by 1 with each write. 0: never written.
             * @example 3
             */
            version: number;
        };
        /** @description A version of an entry that the step was based on. */
        EntryRead: {
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of the namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description The version that was read; 0: the entry was absent.
             * @example 3
             */
            version: number;
        };
        /** @description A step that read an entry. */
        EntryReader: {
            /**
             * @description Id of the run's agent; empty: none.
             * @example planner
             */
            agent_id: string;
            /**
             * Format: date-time
             * @description When the step was committed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description The version now; 0: absent.
             * @example 4
             */
            current_version: number;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Revision of the thread that reported it.
             * @example 12
             */
            revision: number;
            /**
             * @description Id of a run.
             * @example run-1
             */
            run_id: string;
            /**
             * @description Whether another version is current now.
             * @example true
             */
            stale: boolean;
            /**
             * @description Whether another version was current at the commit.
             * @example false
             */
            stale_at_commit: boolean;
            /**
             * @description Which revision of its run reported it, from 1.
             * @example 2
             */
            step: number;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /**
             * @description The version that was read; 0: the entry was absent.
             * @example 3
             */
            version: number;
            /**
             * @description The version when the step was committed; 0: absent.
             * @example 3
             */
            version_at_commit: number;
        };
        /** @description One page of a list. */
        EntryReaderPage: {
            /** @description The items of this page. */
            items: components["schemas"]["EntryReader"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description An entry in a list. */
        EntryRow: {
            /**
             * @description Who wrote this version. Empty if the entry does not exist.
             * @example planner-token
             */
            actor: string;
            /** @description When the entry was created. Null if it does not exist, or in the past. */
            created_at: string | null;
            /**
             * @description Estimated number of tokens.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description When the entry expires. Null: never.
             * @example null
             */
            expires_at: string | null;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Whether the entry is marked as important.
             * @example false
             */
            pinned: boolean;
            /**
             * @description False if the namespace of the entry is no longer registered.
             * @example true
             */
            registered: boolean;
            /**
             * @description Version of the namespace's schema at the time of the write. 0: not validated, as after a redaction.
             * @example 1
             */
            schema_version: number;
            /**
             * @description Scope that the form of the key implies.
             * @example parent_thread
             * @enum {string}
             */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /**
             * @description Size of the value in bytes of UTF-8.
             * @example 512
             */
            size_bytes: number;
            /**
             * @description Labels for filtering.
             * @example [
             *       "draft"
             *     ]
             */
            tags: string[];
            /** @description When this version was written. Null if the entry does not exist. */
            updated_at: string | null;
            /**
             * @description Whether the current schema accepts the value.
             * @example true
             */
            valid: boolean;
            /**
             * @description The value. Present only with `include=value`.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value?: unknown;
            /**
             * @description Version, which grows by 1 with each write. 0: never written.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        EntryRowPage: {
            /** @description The items of this page. */
            items: components["schemas"]["EntryRow"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description One version of an entry's history. */
        EntryVersion: {
            /**
             * @description Who made it.
             * @example planner-token
             */
            actor: string;
            /**
             * @description What the actor is: a person, an API token, or the server itself.
             * @example token
             * @enum {string}
             */
            actor_kind: "user" | "token" | "system";
            /**
             * Format: date-time
             * @description When it was made.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description False if the version is a deletion.
             * @example true
             */
            exists: boolean;
            /**
             * @description What made the version.
             * @example put
             * @enum {string}
             */
            operation: "put" | "patch" | "delete" | "restore" | "expire" | "import" | "redact";
            /**
             * @description Whether history compaction keeps the version.
             * @example false
             */
            pinned: boolean;
            /**
             * @description Why it was done: `Change-Reason` of the request; empty if none was given.
             * @example Retry
             */
            reason: string;
            /**
             * Format: date-time
             * @description When a part of the value was redacted. Absent if none was.
             * @example 2026-01-31T12:00:00.000000Z
             */
            redacted_at?: string;
            /**
             * @description Who redacted it. Absent if nothing was redacted.
             * @example alice
             */
            redacted_by?: string;
            /**
             * @description Id of the request that did it.
             * @example 0199f3c2a41c7d3e9b1f6f0f4a5e8c21
             */
            request_id: string;
            /** @description The run on whose behalf it was made. Null: none. */
            run_id: string | null;
            /**
             * @description Version of the namespace's schema at that time.
             * @example 1
             */
            schema_version: number;
            /**
             * @description Size of the value in bytes of UTF-8.
             * @example 512
             */
            size_bytes: number;
            /**
             * @description The value; null for a deletion. Present only with `include=value`.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value?: unknown;
            /**
             * @description The version.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        EntryVersionPage: {
            /** @description The items of this page. */
            items: components["schemas"]["EntryVersion"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What an erasure removed. */
        Erasure: {
            /**
             * @description Number of removed rows by kind.
             * @example {
             *       "entries": 4,
             *       "threads": 1
             *     }
             */
            counts: {
                [key: string]: number;
            };
            /**
             * @description Hash that takes the place of the id or key in the audit.
             * @example sha256:9f86d081…
             */
            erased: string;
        };
        /** @description The resource or key to erase, and the reason. */
        ErasureRequest: {
            /** @description Erase the entries with this key. */
            key?: string;
            /**
             * @description Why; kept in the audit.
             * @example Request of the user
             */
            reason: string;
            /**
             * @description Erase what belongs to this resource.
             * @example user-7
             */
            resource_id?: string;
        };
        /** @description What a token or a member may do, and why. */
        Explanation: {
            /**
             * @description Whether it may administer.
             * @example false
             */
            may_administer: boolean;
            /**
             * @description Whether it may read.
             * @example true
             */
            may_read: boolean;
            /**
             * @description Whether it may write.
             * @example true
             */
            may_write: boolean;
            /**
             * @description The reasons in plain text, in the order of the decision.
             * @example [
             *       "the token is active"
             *     ]
             */
            reasons: string[];
            /** @description Its role; null: not a member. */
            role: ("viewer" | "editor" | "admin") | null;
            /**
             * @description Name of the token or member.
             * @example planner-token
             */
            who: string;
        };
        /** @description A snapshot as `GET …/state?export=true` returns it. */
        ExportedSnapshot: {
            /**
             * @description The values by state key.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            extensions: {
                [key: string]: unknown;
            };
            /**
             * @description Revision of the thread that it comes from.
             * @example 12
             */
            revision: number;
        };
        /** @description A longer lease for a claimed dispatch. */
        Extension: {
            /**
             * @description `claim_token` of the claim.
             * @example 4Yq1…
             */
            claim_token: string;
            /**
             * @description Seconds from now until the lease expires.
             * @default 30
             * @example 60
             */
            lease_seconds?: number;
        };
        /** @description One place in a document, and what is wrong there. */
        Fault: {
            /**
             * @description What is wrong.
             * @example is not of type integer
             */
            message: string;
            /**
             * @description JSON Pointer (RFC 6901).
             * @example /goal
             */
            pointer: string;
        };
        /** @description What a thread was copied from. */
        ForkOrigin: {
            /**
             * @description Number of messages that were copied.
             * @example 8
             */
            message_count: number;
            /**
             * @description Revision whose state was copied.
             * @example 12
             */
            revision: number;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
        };
        /** @description Renews the lease that the worker of a run holds. */
        Heartbeat: {
            /**
             * @description The worker's fencing token. A token that is not the newest is refused. Null: no check.
             * @example 1
             */
            fencing_token?: number | null;
        };
        /** @description The entries of a namespace. */
        HeldEntries: {
            /**
             * @description Number of live entries.
             * @example 3
             */
            entries: number;
        };
        /** @description Which versions history compaction keeps. */
        History: {
            /**
             * @description Number of versions that history compaction keeps. Null, the default: all.
             * @example 100
             */
            keep_last: number | null;
            /**
             * @description Age in seconds up to which versions are kept. Null, the default: any.
             * @example null
             */
            keep_seconds: number | null;
        };
        /** @description How many old versions the entries of a namespace keep, and for how long. */
        HistoryPolicy: {
            /**
             * @description Number of versions that history compaction keeps. Null, the default: all.
             * @example 100
             */
            keep_last?: number | null;
            /**
             * @description Age in seconds up to which versions are kept. Null, the default: any.
             * @example 2592000
             */
            keep_seconds?: number | null;
        };
        /** @description What a removal of old versions would do now. */
        HistoryPreview: {
            /**
             * @description Bytes of the stored values.
             * @example 5120
             */
            bytes: number;
            /**
             * @description How many of them would be removed.
             * @example 1024
             */
            bytes_removed: number;
            /**
             * @description Stored rows.
             * @example 40
             */
            rows: number;
            /**
             * @description How many of them would be removed.
             * @example 12
             */
            rows_removed: number;
        };
        /** @description Which states of the thread to return. */
        HistorySearch: {
            /** @description Only states before this checkpoint. */
            before?: unknown;
            /** @description Accepted for compatibility. */
            checkpoint?: Record<string, unknown> | null;
            /**
             * @description Maximum number of states.
             * @example 10
             */
            limit?: number | null;
            /** @description Not supported; must be absent. */
            metadata?: unknown;
            /**
             * @description Members to return; others are left out.
             * @example [
             *       "values"
             *     ]
             */
            select?: string[] | null;
        };
        /** @description An entry that meets the query. */
        Hit: {
            /**
             * @description Who wrote this version. Empty if the entry does not exist.
             * @example planner-token
             */
            actor: string;
            /** @description When the entry was created. Null if it does not exist, or in the past. */
            created_at: string | null;
            /**
             * @description Estimated number of tokens.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description When the entry expires. Null: never.
             * @example null
             */
            expires_at: string | null;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /** @description Where the value meets the query. */
            matches: components["schemas"]["Match"][];
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Whether the entry is marked as important.
             * @example false
             */
            pinned: boolean;
            /**
             * @description False if the namespace of the entry is no longer registered.
             * @example true
             */
            registered: boolean;
            /**
             * @description Version of the namespace's schema at the time of the write. 0: not validated, as after a redaction.
             * @example 1
             */
            schema_version: number;
            /**
             * @description Scope that the form of the key implies.
             * @example parent_thread
             * @enum {string}
             */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /**
             * @description Size of the value in bytes of UTF-8.
             * @example 512
             */
            size_bytes: number;
            /**
             * @description Labels for filtering.
             * @example [
             *       "draft"
             *     ]
             */
            tags: string[];
            /** @description When this version was written. Null if the entry does not exist. */
            updated_at: string | null;
            /**
             * @description Whether the current schema accepts the value.
             * @example true
             */
            valid: boolean;
            /**
             * @description The value. Present only with `include=value`.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value?: unknown;
            /**
             * @description Version, which grows by 1 with each write. 0: never written.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        HitPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Hit"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description The state of a thread after an import. */
        ImportedSnapshot: {
            /**
             * @description All values by state key, imported or not.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            extensions: {
                [key: string]: unknown;
            };
            /**
             * @description Revision of the thread's state; 0 before the first one.
             * @example 12
             */
            revision: number;
            /**
             * @description Keys that were left out because they are not registered. A thread that has had a run keeps its `__runtime.run_lifecycle`, which is not listed.
             * @example [
             *       "scratch"
             *     ]
             */
            skipped_keys: string[];
        };
        /** @description The state keys and namespaces of a plugin. */
        Installation: {
            /**
             * @description Description, for people.
             * @default
             * @example The steps that are left.
             */
            description?: string;
            /**
             * @description Namespaces to register. Their `plugin` can only be this one.
             * @default []
             */
            namespaces?: components["schemas"]["NamespacePart"][];
            /**
             * @description State keys to register. Their `plugin` can only be this one.
             * @default []
             */
            state_keys?: components["schemas"]["StateKeyPart"][];
        };
        /** @description The outcome of an interrupt. */
        Interruption: {
            /** @description The claimed dispatch, whose worker should stop; null: none. */
            active: components["schemas"]["Dispatch"] | null;
            /**
             * @description The new epoch of the thread.
             * @example 1
             */
            epoch: number;
            /**
             * @description How many queued dispatches it superseded.
             * @example 2
             */
            superseded_dispatches: number;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
        };
        /** @description A member, and the link with which a new person signs in. */
        Invitation: {
            /**
             * @description A link that signs the person in, once. Null for somebody who has an account, and in the response to a repeated request.
             * @example https://commonhold.example/login/once/4f1c…
             */
            login_url: string | null;
            member: components["schemas"]["Member"];
        };
        /** @description The namespace and key of an item of the store. */
        ItemAddress: {
            /**
             * @description Key of the item.
             * @example preferences
             */
            key?: string | null;
            /**
             * @description Labels of the store namespace. No label is empty or contains `.`.
             * @example [
             *       "users",
             *       "u1"
             *     ]
             */
            namespace?: string[] | null;
        };
        /** @description An item of the store and its new value. */
        ItemPut: {
            /** @description Accepted for compatibility; every text is searchable. */
            index?: unknown;
            /**
             * @description Key of the item.
             * @example preferences
             */
            key?: string | null;
            /**
             * @description Labels of the store namespace. No label is empty or contains `.`.
             * @example [
             *       "users",
             *       "u1"
             *     ]
             */
            namespace?: string[] | null;
            /**
             * @description Lifetime in minutes.
             * @example 60
             */
            ttl?: number | null;
            /**
             * @description The value.
             * @example {
             *       "language": "en"
             *     }
             */
            value?: Record<string, unknown> | null;
        };
        /** @description The result of a bulk operation for one item. */
        ItemResult: {
            /**
             * @description Id of the item.
             * @example a
             */
            id: string;
            /**
             * @description Why the operation failed. Absent if it succeeded.
             * @example {
             *       "detail": "thread not found: thread-1",
             *       "status": 404,
             *       "title": "Resource not found",
             *       "type": "/problems/not-found"
             *     }
             */
            problem?: components["schemas"]["Problem"];
            /**
             * @description HTTP status that the operation would return as a separate request.
             * @example 200
             */
            status: number;
        };
        /** @description The results of a bulk operation. */
        ItemResults: {
            /** @description The results in the order of the ids. */
            results: components["schemas"]["ItemResult"][];
        };
        /** @description Conditions that the returned items of the store meet. */
        ItemSearch: {
            /**
             * @description Conditions on members of the value: equality, or `$eq $ne $gt $gte $lt $lte`.
             * @example {
             *       "language": "en"
             *     }
             */
            filter?: Record<string, unknown> | null;
            /**
             * @description Maximum number of items.
             * @example 10
             */
            limit?: number | null;
            /**
             * @description Labels of the store namespace. No label is empty or contains `.`.
             * @example [
             *       "users",
             *       "u1"
             *     ]
             */
            namespace_prefix?: string[] | null;
            /**
             * @description Number of items to skip.
             * @example 0
             */
            offset?: number | null;
            /**
             * @description Words that the value must contain.
             * @example vegetarian
             */
            query?: string | null;
            /**
             * @description Must be false.
             * @example false
             */
            refresh_ttl?: boolean | null;
        };
        /** @description What a run could see when it committed a step: a page of entries, and the rest. */
        Knowledge: {
            /**
             * Format: date-time
             * @description When it was committed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description False: the revision is from an old release of the server, and entries are found by their times.
             * @example true
             */
            exact: boolean;
            /** @description The entries of this page. */
            items: components["schemas"]["KnownEntry"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
            /** @description What the step said that it read. */
            reads: components["schemas"]["RunRead"][];
            /**
             * @description Revision of the thread.
             * @example 12
             */
            revision: number;
            /**
             * @description Id of a run.
             * @example run-1
             */
            run_id: string;
            /**
             * @description Keys of the scopes that the run sees.
             * @example [
             *       "global",
             *       "thread::thread-1"
             *     ]
             */
            scopes: string[];
            /** @description State of the thread; null: compaction removed it. */
            state: components["schemas"]["Snapshot"] | null;
            /**
             * @description Which revision of the run it is, from 1; null: unknown.
             * @example 2
             */
            step: number | null;
            /**
             * @description Number of revisions of the run.
             * @example 3
             */
            steps: number;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
        };
        /** @description An entry as it was when a step was committed. */
        KnownEntry: {
            /**
             * @description Who wrote that version; null: unknown.
             * @example planner-token
             */
            actor: string | null;
            /**
             * @description Version now; 0: the entry is absent.
             * @example 4
             */
            current_version: number;
            /**
             * @description False: history compaction may have removed the version.
             * @example true
             */
            kept: boolean;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Why; empty if no reason was given, null: unknown.
             * @example Retry
             */
            reason: string | null;
            /**
             * @description When the value was redacted; null: it is not redacted.
             * @example null
             */
            redacted_at: string | null;
            /**
             * @description Whether the namespace is registered now.
             * @example true
             */
            registered: boolean;
            /** @description The run that wrote it; null: none, or unknown. */
            run_id: string | null;
            /**
             * @description Scope of the key.
             * @example parent_thread
             * @enum {string}
             */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /** @description When that version was written; null: unknown. */
            updated_at: string | null;
            /**
             * @description Value at that time; null also if it is not kept.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value: unknown;
            /**
             * @description Version at that time.
             * @example 3
             */
            version: number;
        };
        /** @description The lease that a worker requests. */
        LeaseRequest: {
            /**
             * @description The worker's fencing token. A token that is not the newest is refused. Null: no check.
             * @example 1
             */
            fencing_token?: number | null;
            /**
             * @description `true`: refuse if another worker has a live lease.
             * @default false
             */
            only_if_free?: boolean;
        };
        /** @description The relatives of a thread. Threads that you may not see are left out. */
        Lineage: {
            /**
             * @description Ids of the threads above it, the parent first.
             * @example [
             *       "thread-0"
             *     ]
             */
            ancestors: string[];
            /**
             * @description Number of its children.
             * @example 2
             */
            child_count: number;
            /**
             * @description Number of threads copied from it.
             * @example 1
             */
            fork_count: number;
            /** @description What it was copied from; null: nothing, or a thread that you may not see. */
            forked_from: components["schemas"]["ForkOrigin"] | null;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
        };
        /** @description A place in the value that contains words of `text`, or that a condition names. */
        Match: {
            /**
             * @description JSON Pointer (RFC 6901).
             * @example /goal
             */
            pointer: string;
            /**
             * @description The text around the match, without markup.
             * @example Ship it
             */
            snippet: string;
        };
        /** @description The caller, and what it may do. */
        Me: {
            /**
             * @description Name of the token or user.
             * @example planner-token
             */
            actor: string;
            /**
             * @description What the actor is: a person, an API token, or the server itself.
             * @example token
             * @enum {string}
             */
            actor_kind: "user" | "token" | "system";
            /**
             * @description Globs of the namespaces that it may access; empty: all.
             * @example [
             *       "team_*"
             *     ]
             */
            namespaces: string[];
            /**
             * @description A viewer reads, an editor also writes, an admin does everything.
             * @example editor
             * @enum {string}
             */
            role: "viewer" | "editor" | "admin";
            /**
             * @description Prefixes of the ids of the threads that it may access; empty: all.
             * @example []
             */
            thread_prefixes: string[];
            /**
             * @description Name of the workspace in addresses.
             * @example default
             */
            workspace: string;
        };
        /** @description A person of the workspace. */
        Member: {
            /**
             * @description Id of the membership.
             * @example 3
             */
            id: string;
            /**
             * Format: date-time
             * @description When the person became a member.
             * @example 2026-01-31T12:00:00.000000Z
             */
            joined_at: string;
            /** @description When the person last signed in; null: never. */
            last_login_at: string | null;
            /**
             * @description What the person may do.
             * @example editor
             * @enum {string}
             */
            role: "viewer" | "editor" | "admin";
            /**
             * @description Name of the person.
             * @example alice
             */
            username: string;
        };
        /** @description The new role of a member. */
        MemberChange: {
            /**
             * @description The new role.
             * @example admin
             * @enum {unknown}
             */
            role: "admin" | "editor" | "viewer";
        };
        /** @description One page of a list. */
        MemberPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Member"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What removing a member would revoke. */
        MemberRemoval: {
            /**
             * @description Number of API tokens that would be revoked.
             * @example 2
             */
            revoked_tokens: number;
        };
        /**
         * @description A message as it was sent, with the members that the server adds. Further members of the
         *     message are kept.
         */
        Message: {
            /** @description Only on a summary. */
            compaction?: components["schemas"]["Summarized"];
            /**
             * @description Text of the message, or a list of content parts.
             * @example Where is my refund?
             */
            content?: unknown;
            /**
             * Format: date-time
             * @description When it was stored.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Estimated number of tokens.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description Id of the message, unique in its thread.
             * @example m-1
             */
            id: string;
            /**
             * @description Who speaks.
             * @example user
             * @enum {string}
             */
            role: "system" | "user" | "assistant" | "tool";
            /** @description The run that committed it; null: appended without one. */
            run_id: string | null;
            /**
             * @description Position of the message in its thread: 1 for the first one, without gaps.
             * @example 8
             */
            seq: number;
            /**
             * @description Of a `tool` message: the tool call that it answers.
             * @example call-1
             */
            tool_call_id?: string;
            /** @description Tool calls of an `assistant` message. */
            tool_calls?: Record<string, unknown>[];
            /**
             * @description `internal`: hidden from lists of messages unless requested.
             * @example all
             * @enum {string}
             */
            visibility: "all" | "internal";
        };
        /** @description Which run appended the message, and when. */
        MessageMetadata: {
            /**
             * Format: date-time
             * @description RFC 3339 time in UTC, with microseconds.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Id of a run.
             * @example run-1
             */
            run_id: string | null;
        };
        /** @description One page of a list. */
        MessagePage: {
            /** @description The items of this page. */
            items: components["schemas"]["Message"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A time, and the entries to restore to their values at that time. */
        Moment: {
            /**
             * @description The moment: an RFC 3339 time in the past.
             * @example 2026-01-31T12:00:00Z
             */
            at: string;
            /**
             * @description Only entries with this key.
             * @example global
             */
            key?: string;
            /**
             * @description Only entries of this namespace.
             * @example team_context
             */
            namespace?: string;
            /**
             * @description Only entries whose key begins with this.
             * @example thread::
             */
            prefix?: string;
            /**
             * @description Only entries with this scope.
             * @example thread
             * @enum {unknown}
             */
            scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
        };
        /** @description A registered namespace. */
        Namespace: {
            /**
             * Format: date-time
             * @description When it was registered for the first time.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Value of an entry that does not exist. Default: null.
             * @example {}
             */
            default: unknown;
            /**
             * @description Description, for people.
             * @example Shared by the team.
             */
            description: string;
            history: components["schemas"]["History"];
            /**
             * @description Largest size of a value in bytes. Default: 1 MiB.
             * @example 1048576
             */
            max_value_bytes: number;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            name: string;
            /**
             * @description The plugin that owns it. Empty, the default: none.
             * @example planning
             */
            plugin: string;
            /**
             * @description JSON Schema (2020-12) of the values. Default: `{}`, any value.
             * @example {
             *       "type": "object"
             *     }
             */
            schema: Record<string, unknown> | boolean;
            /**
             * @description Version, which grows by 1 when the schema, the default, `max_value_bytes` or `ttl_seconds` changes.
             * @example 1
             */
            schema_version: number;
            /**
             * @description False: writes leave no history, no changes in the feed and no audit rows, searches do not find the entries, and versions begin at 1 again after a deletion. For data that a program writes often and that nobody follows, such as checkpoints.
             * @example true
             */
            tracked: boolean;
            /**
             * @description Time to live in seconds of entries that are written without one. Null, the default: none.
             * @example null
             */
            ttl_seconds: number | null;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
        };
        /**
         * @description The definition of a namespace. A member that is left out has its default, unless
         *     `if_exists` says otherwise.
         */
        NamespaceDefinition: {
            /**
             * @description Value of an entry that does not exist. Default: null.
             * @example {}
             */
            default?: unknown;
            /**
             * @description Description, for people.
             * @example Shared by the team.
             */
            description?: string;
            /** @description Which versions history compaction keeps. */
            history?: components["schemas"]["HistoryPolicy"];
            /**
             * @description Largest size of a value in bytes. Default: 1 MiB.
             * @example 1048576
             */
            max_value_bytes?: number | null;
            /**
             * @description The plugin that owns it. Empty, the default: none.
             * @example planning
             */
            plugin?: string;
            /**
             * @description JSON Schema (2020-12) of the values. Default: `{}`, any value.
             * @example {
             *       "type": "object"
             *     }
             */
            schema?: Record<string, unknown> | boolean;
            /**
             * @description False: writes leave no history, no changes in the feed and no audit rows, searches do not find the entries, and versions begin at 1 again after a deletion. For data that a program writes often and that nobody follows, such as checkpoints. It cannot be changed later. Default: as it is, or true for a new namespace.
             * @example true
             */
            tracked?: boolean;
            /**
             * @description Time to live in seconds of entries that are written without one. Null, the default: none.
             * @example 86400
             */
            ttl_seconds?: number | null;
        };
        /** @description One page of a list. */
        NamespacePage: {
            /** @description The items of this page. */
            items: components["schemas"]["Namespace"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A namespace of a plugin. */
        NamespacePart: {
            /**
             * @description Value of an entry that does not exist. Default: null.
             * @example {}
             */
            default?: unknown;
            /**
             * @description Description, for people.
             * @example Shared by the team.
             */
            description?: string;
            /** @description Which versions history compaction keeps. */
            history?: components["schemas"]["HistoryPolicy"];
            /**
             * @description Largest size of a value in bytes. Default: 1 MiB.
             * @example 1048576
             */
            max_value_bytes?: number | null;
            /**
             * @description Name.
             * @example team_context
             */
            name: string;
            /**
             * @description The plugin that owns it. Empty, the default: none.
             * @example planning
             */
            plugin?: string;
            /**
             * @description JSON Schema (2020-12) of the values. Default: `{}`, any value.
             * @example {
             *       "type": "object"
             *     }
             */
            schema?: Record<string, unknown> | boolean;
            /**
             * @description False: writes leave no history, no changes in the feed and no audit rows, searches do not find the entries, and versions begin at 1 again after a deletion. For data that a program writes often and that nobody follows, such as checkpoints. It cannot be changed later. Default: as it is, or true for a new namespace.
             * @example true
             */
            tracked?: boolean;
            /**
             * @description Time to live in seconds of entries that are written without one. Null, the default: none.
             * @example 86400
             */
            ttl_seconds?: number | null;
        };
        /** @description What would lose its namespace. */
        NamespaceRemoval: {
            held: components["schemas"]["HeldEntries"];
        };
        /** @description Conditions that the returned namespaces of the store meet. */
        NamespaceSearch: {
            /**
             * @description Maximum number of items.
             * @example 10
             */
            limit?: number | null;
            /**
             * @description Cut namespaces to so many labels.
             * @example 2
             */
            max_depth?: number | null;
            /**
             * @description Number of items to skip.
             * @example 0
             */
            offset?: number | null;
            /**
             * @description First labels; `*` stands for any label.
             * @example [
             *       "users"
             *     ]
             */
            prefix?: string[] | null;
            /**
             * @description Last labels; `*` stands for any label.
             * @example [
             *       "*"
             *     ]
             */
            suffix?: string[] | null;
        };
        /** @description Returns a claimed dispatch to the queue, because the attempt failed. */
        NegativeAcknowledgement: {
            /**
             * @description `claim_token` of the claim.
             * @example 4Yq1…
             */
            claim_token: string;
            /**
             * @description Why the attempt failed.
             * @default
             * @example The order service is down.
             */
            error?: string;
            /**
             * @description Seconds until it can be claimed again. Default: 0.25, doubled with each failure, at most 30.
             * @example 60
             */
            retry_after?: number;
        };
        /** @description Work to enqueue in the mailbox of a thread. */
        NewDispatch: {
            /**
             * @description Agent that it is for. Default: the agent of the run, otherwise any.
             * @example planner
             */
            agent_id?: string;
            /**
             * Format: date-time
             * @description RFC 3339 time before which it cannot be claimed. Default: now.
             * @example 2026-01-31T12:00:00Z
             */
            available_at?: string;
            /**
             * @description Refuse it while another dispatch of the thread with this key is open.
             * @example check-order-9921
             */
            dedupe_key?: string;
            /**
             * @description Number of failed attempts at which it becomes a dead letter.
             * @default 5
             * @example 5
             */
            max_attempts?: number;
            /**
             * @description What to do: any JSON.
             * @example {
             *       "task": "check"
             *     }
             */
            payload?: unknown;
            /**
             * @description 0 is first.
             * @default 128
             * @example 128
             */
            priority?: number;
            /**
             * @description The run of this thread that it belongs to. Default: none.
             * @example run-1
             */
            run_id?: string;
        };
        /** @description A new thread with the messages and the state of this one, up to a revision. */
        NewFork: {
            /**
             * @description Id of the new thread. Default: generated.
             * @example thread-2
             */
            id?: string;
            /**
             * @description How many messages are copied, from the first one. Default: as many as there were at `revision`; without a `revision`, all.
             * @example 8
             */
            message_count?: number;
            /**
             * @description Any JSON object. Default: that of the source.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata?: Record<string, unknown>;
            /**
             * @description Revision whose state is copied. Default: the newest.
             * @example 12
             */
            revision?: number;
            /** @description Title for people. Default: that of the source. */
            title?: string;
        };
        /** @description A person to add to the workspace. */
        NewMember: {
            /**
             * @description What the person may do.
             * @example editor
             * @enum {unknown}
             */
            role: "admin" | "editor" | "viewer";
            /**
             * @description Name of the person; an account is created for a new name.
             * @example alice
             */
            username: string;
        };
        /** @description Messages to append, and operations on entries that are performed with them. */
        NewMessages: {
            /**
             * @description Append only if the thread has this number of messages.
             * @example 8
             */
            expected_message_count?: number;
            /** @description 1 to 1,000 messages, in order. */
            messages: {
                /** @description Text of the message, or a list of content parts. */
                content?: unknown;
                /** @description Id of the message, unique in its thread. Default: generated. */
                id?: string;
                /**
                 * @description Who speaks.
                 * @enum {string}
                 */
                role: "system" | "user" | "assistant" | "tool";
                /** @description Of a `tool` message: the tool call that it answers. */
                tool_call_id?: string;
                /** @description Tool calls of an `assistant` message. */
                tool_calls?: Record<string, unknown>[];
                /**
                 * @description `internal`: hidden from lists of messages unless requested.
                 * @default all
                 * @enum {string}
                 */
                visibility?: "all" | "internal";
            }[];
            /**
             * @description Operations on entries, performed together with the messages or not at all.
             * @example [
             *       {
             *         "key": "task::42",
             *         "namespace": "team_context",
             *         "op": "put",
             *         "value": {
             *           "goal": "Ship it"
             *         }
             *       },
             *       {
             *         "key": "task::41",
             *         "namespace": "team_context",
             *         "op": "get"
             *       }
             *     ]
             */
            operations?: components["schemas"]["BatchOperation"][];
        };
        /** @description The agent, origin and initial fields of a new run. */
        NewRun: {
            /**
             * @description Id of the agent.
             * @default
             * @example planner
             */
            agent_id?: string;
            /**
             * @description Id of the run. Default: generated.
             * @example run-1
             */
            id?: string;
            /**
             * @description Length of the worker's lease; a heartbeat renews it.
             * @default 60
             * @example 60
             */
            lease_seconds?: number;
            /**
             * @description Number of steps at which the run counts as stuck; 0: no limit.
             * @default 0
             * @example 20
             */
            max_rounds?: number;
            /**
             * @description Any JSON object to store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata?: Record<string, unknown>;
            /**
             * @description What started it.
             * @default user
             * @example user
             * @enum {unknown}
             */
            origin?: "internal" | "mcp" | "subagent" | "user";
            /**
             * @description Id of the run that started it; empty: none.
             * @default
             * @example run-0
             */
            parent_run_id?: string;
            /**
             * @description Thread whose shared entries the run sees; empty: the parent of its thread.
             * @default
             * @example thread-0
             */
            parent_thread_id?: string;
            /**
             * @description `created`: it is started later.
             * @default running
             * @example running
             * @enum {unknown}
             */
            status?: "created" | "running";
            /**
             * @description Seconds after which the run counts as stuck; null: never.
             * @example 3600
             */
            timeout_seconds?: number | null;
        };
        /** @description The initial fields of a new thread. */
        NewThread: {
            /**
             * @description Compaction policy of the thread: only the fields in which it differs from the policy of its agent or workspace. See `PUT /compaction-policies/workspace`.
             * @example {
             *       "autocompact_threshold": 8000
             *     }
             */
            compaction_policy?: Record<string, unknown>;
            /**
             * @description Id of the thread. Default: generated.
             * @example thread-1
             */
            id?: string;
            /**
             * @description Any JSON object to store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata?: Record<string, unknown>;
            /**
             * @description Id of the parent thread; null: none.
             * @example null
             */
            parent_thread_id?: string | null;
            /**
             * @description What the thread is about, for example a user.
             * @default
             * @example user-7
             */
            resource_id?: string;
            /**
             * @description Title for people.
             * @default
             * @example Refund of order 9921
             */
            title?: string;
        };
        /** @description The name, role and limits of a new API token. */
        NewToken: {
            /**
             * @description Lifetime; absent or null: no end. If the caller is a token that expires, the new one must not expire later.
             * @example 86400
             */
            expires_in_seconds?: number | null;
            /**
             * @description The program that will use the token.
             * @example planner
             */
            name: string;
            /**
             * @description At most your own reach.
             * @default []
             * @example [
             *       "team_*"
             *     ]
             */
            namespaces?: string[];
            /**
             * @description Requests per minute; null: no limit.
             * @example 600
             */
            rate_per_minute?: number | null;
            /**
             * @description What the token may do; at most your own role.
             * @example editor
             * @enum {unknown}
             */
            role: "admin" | "editor" | "viewer";
            /**
             * @description At most your own reach.
             * @default []
             * @example [
             *       "support-"
             *     ]
             */
            thread_prefixes?: string[];
        };
        /** @description The address of a new webhook, and the changes that are sent to it. */
        NewWebhook: {
            /**
             * @description Position in the change feed. It expires with the retention time.
             * @example WzcsMywxNzY5ODYwODAwXQ
             */
            cursor?: string;
            /** @description Which changes are sent. Default: all. */
            filter?: components["schemas"]["WebhookFilter"];
            /**
             * @description Name, for people.
             * @example billing
             */
            name: string;
            /**
             * @description http:// or https:// URL to which events are sent.
             * @example https://example.com/hooks/commonhold
             */
            url: string;
        };
        /** @description A workspace to create. */
        NewWorkspace: {
            /** @description Name for people; default: the slug. */
            name?: string;
            /**
             * @description Letters, digits, `_`, `-` and `.`; cannot be changed.
             * @example acme
             */
            slug: string;
        };
        /** @description An operation of a JSON Patch (RFC 6902). */
        PatchOperation: {
            /**
             * @description What it does.
             * @example replace
             * @enum {string}
             */
            op: "add" | "remove" | "replace";
            /**
             * @description JSON Pointer (RFC 6901).
             * @example /goal
             */
            path: string;
            /**
             * @description The new value. Absent if `op` is `remove`.
             * @example Ship it
             */
            value?: unknown;
        };
        /** @description An installed plugin, with what belongs to it as it is now. */
        Plugin: {
            /**
             * @description Description, for people.
             * @example The steps that are left.
             */
            description: string;
            /**
             * Format: date-time
             * @description When it was installed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            installed_at: string;
            /**
             * @description Name of the plugin.
             * @example planning
             */
            name: string;
            /** @description Its namespaces. */
            namespaces: components["schemas"]["Namespace"][];
            /** @description Its state keys. */
            state_keys: components["schemas"]["StateKey"][];
        };
        /** @description The response to a dry run of an uninstallation. */
        PluginRemoval: {
            would_remove: components["schemas"]["Removed"];
        };
        /** @description An installed plugin, with the names of what belongs to it. */
        PluginSummary: {
            /**
             * @description Description, for people.
             * @example The steps that are left.
             */
            description: string;
            /**
             * Format: date-time
             * @description When it was installed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            installed_at: string;
            /**
             * @description Name of the plugin.
             * @example planning
             */
            name: string;
            /**
             * @description Names of its namespaces.
             * @example [
             *       "team_context"
             *     ]
             */
            namespaces: string[];
            /**
             * @description Names of its state keys.
             * @example [
             *       "plan"
             *     ]
             */
            state_keys: string[];
        };
        /** @description One page of a list. */
        PluginSummaryPage: {
            /** @description The items of this page. */
            items: components["schemas"]["PluginSummary"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /**
         * @description The fields that a scope sets. The others come from the scope below it: the agent's policy
         *     below the thread's, the workspace's below the agent's, and the defaults. Null sets a field to
         *     null whatever the scopes below it set.
         */
        PolicyFields: {
            /**
             * @description Size of the context, in estimated tokens, from which it is compacted automatically; null: never by size.
             * @example 60000
             */
            autocompact_threshold?: number | null;
            /**
             * @description Compact a thread with new messages when its last compaction is so many hours old; null: never by schedule.
             * @example 24
             */
            every_hours?: number | null;
            /**
             * @description What writes the summary when the model is not available; null: nothing, the compaction fails.
             * @example extractive
             */
            fallback?: "extractive" | null;
            /**
             * @description Size of the context window of the model, in estimated tokens.
             * @example 200000
             */
            max_context_tokens?: number;
            /**
             * @description Part of the window that is reserved for the model's output, in tokens.
             * @example 16384
             */
            max_output_tokens?: number;
            /**
             * @description Fewest estimated tokens of messages that are worth a summary.
             * @example 1024
             */
            min_gain_tokens?: number;
            /**
             * @description Newest messages that are retained with `mode` `compact_to_safe_frontier`, and within a long turn.
             * @example 10
             */
            min_recent_messages?: number;
            /**
             * @description Smallest share of the summarized tokens, from 0 to 1, that a summary must save; one that saves less is discarded.
             * @example 0.3
             */
            min_savings_ratio?: number;
            /**
             * @description How many of the newest messages are retained: `raw_suffix_messages`, or with `compact_to_safe_frontier` the number `min_recent_messages`.
             * @example keep_recent_raw_suffix
             * @enum {unknown}
             */
            mode?: "compact_to_safe_frontier" | "keep_recent_raw_suffix";
            /**
             * @description Instructions for the model; null: the built-in instructions.
             * @example Summarize the conversation. Keep every id.
             */
            prompt?: string | null;
            /**
             * @description Newest messages that are retained with `mode` `keep_recent_raw_suffix`.
             * @example 2
             */
            raw_suffix_messages?: number;
            /**
             * @description Also retain every revision that is a multiple of this number; null: none.
             * @example 10
             */
            snapshot_keep_every?: number | null;
            /**
             * @description Snapshots of a thread to retain, the newest; null: none are removed automatically, and 100 are retained on request.
             * @example 100
             */
            snapshot_keep_last?: number | null;
            /**
             * @description What writes the summary: `extractive` needs no model, `model` calls `summary_model`; null: `extractive`.
             * @example model
             */
            summarizer?: ("extractive" | "model") | null;
            /**
             * @description Largest size of a summary, in estimated tokens; longer ones are cut.
             * @example 1024
             */
            summary_max_tokens?: number;
            /**
             * @description Id of the model, in `config.models`, that writes the summary; null: none.
             * @example small
             */
            summary_model?: string | null;
        };
        /**
         * @description A problem document (RFC 9457). Some types have further members, such as `expected` and `actual`
         *     of a conflict, `limit`, or `retry_after`; the page of the type lists them.
         */
        Problem: {
            /**
             * @description What is wrong with this request.
             * @example thread not found: thread-1
             */
            detail: string;
            /**
             * @description Each wrong place in the request body.
             * @example []
             */
            errors?: components["schemas"]["Fault"][];
            /**
             * @description What to do.
             * @example Check the id.
             */
            hint?: string;
            /**
             * @description Id of the request.
             * @example 0199f3c2a41c7d3e9b1f6f0f4a5e8c21
             */
            instance?: string;
            /**
             * @description HTTP status code.
             * @example 404
             */
            status: number;
            /**
             * @description Name of the type; constant.
             * @example Resource not found
             */
            title: string;
            /**
             * @description Problem type, and the path of the page that explains it.
             * @example /problems/not-found
             */
            type: string;
        };
        /** @description A record of the config registry: an entry whose value has markers in place of secrets. */
        Record: {
            /**
             * @description Who wrote this version. Empty if the entry does not exist.
             * @example planner-token
             */
            actor: string;
            /** @description When the entry was created. Null if it does not exist, or in the past. */
            created_at: string | null;
            /**
             * @description Estimated number of tokens.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description False if the value is the default of the namespace.
             * @example true
             */
            exists: boolean;
            /**
             * @description When the entry expires. Null: never.
             * @example null
             */
            expires_at: string | null;
            /**
             * @description Id of the record.
             * @example openai
             */
            id: string;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Kind of the record.
             * @example providers
             * @enum {string}
             */
            kind: "agents" | "models" | "providers";
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Whether the entry is marked as important.
             * @example false
             */
            pinned: boolean;
            /**
             * Format: date-time
             * @description When a part of the value was redacted. Absent if none was.
             * @example 2026-01-31T12:00:00.000000Z
             */
            redacted_at?: string;
            /**
             * @description Who redacted it. Absent if nothing was redacted.
             * @example alice
             */
            redacted_by?: string;
            /**
             * @description Version of the namespace's schema at the time of the write. 0: not validated, as after a redaction.
             * @example 1
             */
            schema_version: number;
            /**
             * @description Scope that the form of the key implies.
             * @example parent_thread
             * @enum {string}
             */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /**
             * @description Size of the value in bytes of UTF-8.
             * @example 512
             */
            size_bytes: number;
            /**
             * @description Labels for filtering.
             * @example [
             *       "draft"
             *     ]
             */
            tags: string[];
            /** @description When this version was written. Null if the entry does not exist. */
            updated_at: string | null;
            /**
             * @description Whether the current schema accepts the value.
             * @example true
             */
            valid: boolean;
            /**
             * @description The value: any JSON, as it was written.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value: unknown;
            /**
             * @description Version, which grows by 1 with each write. 0: never written.
             * @example 3
             */
            version: number;
        };
        /** @description A record in a list. */
        RecordRow: {
            /**
             * @description Who wrote this version. Empty if the entry does not exist.
             * @example planner-token
             */
            actor: string;
            /** @description When the entry was created. Null if it does not exist, or in the past. */
            created_at: string | null;
            /**
             * @description Estimated number of tokens.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description When the entry expires. Null: never.
             * @example null
             */
            expires_at: string | null;
            /**
             * @description Id of the record.
             * @example openai
             */
            id: string;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Kind of the record.
             * @example providers
             * @enum {string}
             */
            kind: "agents" | "models" | "providers";
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Whether the entry is marked as important.
             * @example false
             */
            pinned: boolean;
            /**
             * @description False if the namespace of the entry is no longer registered.
             * @example true
             */
            registered: boolean;
            /**
             * @description Version of the namespace's schema at the time of the write. 0: not validated, as after a redaction.
             * @example 1
             */
            schema_version: number;
            /**
             * @description Scope that the form of the key implies.
             * @example parent_thread
             * @enum {string}
             */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /**
             * @description Size of the value in bytes of UTF-8.
             * @example 512
             */
            size_bytes: number;
            /**
             * @description Labels for filtering.
             * @example [
             *       "draft"
             *     ]
             */
            tags: string[];
            /** @description When this version was written. Null if the entry does not exist. */
            updated_at: string | null;
            /**
             * @description Whether the current schema accepts the value.
             * @example true
             */
            valid: boolean;
            /**
             * @description The value. Present only with `include=value`.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value?: unknown;
            /**
             * @description Version, which grows by 1 with each write. 0: never written.
             * @example 3
             */
            version: number;
        };
        /** @description One page of a list. */
        RecordRowPage: {
            /** @description The items of this page. */
            items: components["schemas"]["RecordRow"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description The new value of a record. */
        RecordWrite: {
            /**
             * @description The record; its members depend on the kind, and the example is a provider. In the place of a secret: a string sets it, the marker that was read keeps it, null or no member removes it.
             * @example {
             *       "adapter": "openai",
             *       "api_key": "sk-0123456789abcdef"
             *     }
             */
            value: unknown;
        };
        /** @description What a redaction removed. */
        Redaction: {
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Number of versions from which something was removed.
             * @example 5
             */
            rewritten: number;
            /**
             * @description The version that records the redaction; the current one if it changed nothing.
             * @example 6
             */
            version: number;
            /**
             * @description Number of stored responses of idempotent requests that were deleted.
             * @example 0
             */
            withdrawn_answers: number;
        };
        /** @description Which parts of the value to remove from all versions, and why. */
        RedactionRequest: {
            /**
             * @description The parts to remove. Absent: the whole value.
             * @example [
             *       "/api_key"
             *     ]
             */
            pointers?: string[];
            /**
             * @description Why; kept in history and audit.
             * @example API key leaked
             */
            reason: string;
            /**
             * @description The versions: always all of them.
             * @example all
             * @enum {unknown}
             */
            versions?: "all";
        };
        /**
         * @description How `apply` combines a value with an update.
         * @enum {unknown}
         */
        Reducer: "add" | "append" | "json_patch" | "lifecycle" | "max" | "merge" | "min" | "replace" | "tool_calls" | "union";
        /** @description What a registration would do. */
        RegistrationPreview: {
            violations: components["schemas"]["Violations"];
            /**
             * @description Whether the definition would change.
             * @example true
             */
            would_change: boolean;
        };
        /** @description What an uninstallation removes. */
        Removed: {
            /**
             * @description Live entries of these namespaces.
             * @example 12
             */
            entries: number;
            /**
             * @description Namespaces that are unregistered.
             * @example 1
             */
            namespaces: number;
            /**
             * @description Values that remain readable in threads.
             * @example 0
             */
            retained: number;
            /**
             * @description State keys that are unregistered.
             * @example 2
             */
            state_keys: number;
            /**
             * @description Threads that lose values; each gets one revision.
             * @example 5
             */
            threads: number;
            /**
             * @description Values that are removed from threads.
             * @example 5
             */
            values: number;
        };
        /** @description Either `dead_letters` or `cursor`. */
        Replay: {
            /**
             * @description Position in the change feed. It expires with the retention time.
             * @example WzcsMywxNzY5ODYwODAwXQ
             */
            cursor?: string;
            /**
             * @description Send all dead letters again.
             * @default false
             * @example true
             */
            dead_letters?: boolean;
        };
        /** @description How many dead letters were enqueued again. */
        Replayed: {
            /**
             * @description Number of dead letters that were enqueued again.
             * @example 3
             */
            replayed: number;
        };
        /** @description What a restore did. */
        Restoration: {
            /**
             * Format: date-time
             * @description The moment, as the request says.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description Number of entries with a new version.
             * @example 2
             */
            changed: number;
            /**
             * @description Number of entries that were created again.
             * @example 1
             */
            created: number;
            /**
             * @description Number of entries that did not exist then.
             * @example 0
             */
            deleted: number;
            /** @description The first 100 of these entries. */
            first: components["schemas"]["RestoredEntry"][];
            /**
             * @description Number of entries that were left as they are.
             * @example 0
             */
            refused: number;
        };
        /** @description What happens to one entry. */
        RestoredEntry: {
            /**
             * @description What is done. `refuse`: the entry is left as it is, and `reason` says why.
             * @example change
             * @enum {string}
             */
            action: "change" | "create" | "delete" | "refuse";
            /**
             * @description What the schema refuses. Absent if nothing is refused.
             * @example []
             */
            errors?: components["schemas"]["Fault"][];
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Why it is refused. Absent otherwise.
             * @example the version is not kept
             */
            reason?: string;
            /**
             * @description Version at the moment, which may be a deletion or have expired. Null: there was none.
             * @example 3
             */
            then_version: number | null;
            /**
             * @description Version before the restore; 0: never written.
             * @example 5
             */
            version: number;
        };
        /** @description How to resume a paused or disabled webhook. */
        Resumption: {
            /**
             * @description `true`: discard what is waiting and continue with the next change.
             * @default false
             * @example false
             */
            skip?: boolean;
        };
        /** @description A revert: a job that a worker performs, and its result. */
        Revert: {
            /** @description Moment since which writes are reverted; null for a revert of a request. */
            at: string | null;
            /**
             * Format: date-time
             * @description When it was requested.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Why it failed or waits for another attempt, in plain text; else empty.
             * @example
             */
            detail: string;
            /** @description When it ended; null: not yet. */
            finished_at: string | null;
            /**
             * @description Id of a revert, and the request id of its writes: a revert of it undoes them.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /** @description Filter of a revert to a moment; null if it has none. */
            key: string | null;
            /** @description Filter of a revert to a moment; null if it has none. */
            namespace: string | null;
            /**
             * @description Filter of a revert to a moment; null if it has none.
             * @example thread::
             */
            prefix: string | null;
            /**
             * @description Why it was done: `Change-Reason` of the request; empty if none was given.
             * @example Retry
             */
            reason: string;
            /** @description Request whose writes are reverted; null for a revert to a moment. */
            request_id: string | null;
            /**
             * @description Name of the user, token or job that did it.
             * @example planner-token
             */
            requested_by: string;
            /**
             * @description Entries that were reverted so far.
             * @example 40
             */
            reverted: number;
            /** @description Filter of a revert to a moment; null if it has none. */
            scope_kind: ("agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread") | null;
            /**
             * @description Entries that were skipped so far.
             * @example 2
             */
            skipped: number;
            /** @description When a worker last started it; null: not yet. */
            started_at: string | null;
            /**
             * @description `failed`: `detail` has the reason. Entries that were already reverted keep their reverted values.
             * @example done
             * @enum {string}
             */
            status: "queued" | "running" | "done" | "failed" | "cancelled";
            /**
             * @description Entries that the job found; null while it searches for them.
             * @example 42
             */
            total: number | null;
        };
        /** @description One page of a list. */
        RevertPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Revert"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What is reverted: the writes of a request, or those since a moment. */
        RevertRequest: {
            /**
             * @description The moment: an RFC 3339 time in the past.
             * @example 2026-01-31T12:00:00Z
             */
            at?: string;
            /**
             * @description Only entries with this key.
             * @example global
             */
            key?: string;
            /**
             * @description Only entries of this namespace.
             * @example team_context
             */
            namespace?: string;
            /**
             * @description Only entries whose key begins with this.
             * @example thread::
             */
            prefix?: string;
            /**
             * @description Id of the request whose writes are reverted: its `X-Request-ID`, or the id of a revert.
             * @example 0199f3c2a41c7d3e9b1f6f0f4a5e8c21
             */
            request_id?: string;
            /**
             * @description Only entries with this scope.
             * @example thread
             * @enum {unknown}
             */
            scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
        };
        /** @description One change of the state of a thread. */
        Revision: {
            /**
             * @description Name of the user, token or job that did it.
             * @example planner-token
             */
            actor: string;
            /**
             * Format: date-time
             * @description When it was made.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description False: compaction removed the state at this revision.
             * @example true
             */
            kept: boolean;
            /**
             * @description What made it. `start`, `end`: start and end of a run; `uninstall`: a plugin and its state keys were uninstalled.
             * @example commit
             * @enum {string}
             */
            kind: "start" | "commit" | "end" | "restore" | "import" | "fork" | "uninstall";
            /**
             * @description Label for people; empty: none.
             * @example before the refund
             */
            label: string;
            /**
             * @description Number of messages of the thread at this revision.
             * @example 8
             */
            message_count: number;
            /**
             * @description Whether compaction must keep the state at this revision.
             * @example false
             */
            pinned: boolean;
            /**
             * @description Why it was done: `Change-Reason` of the request; empty if none was given.
             * @example Retry
             */
            reason: string;
            /**
             * @description Id of the request that did it.
             * @example 0199f3c2a41c7d3e9b1f6f0f4a5e8c21
             */
            request_id: string;
            /**
             * @description Number of the revision, from 1.
             * @example 12
             */
            revision: number;
            /** @description The run that made it; null: no run. */
            run_id: string | null;
            /**
             * @description State keys that the revision wrote or cleared.
             * @example [
             *       "plan"
             *     ]
             */
            touched_keys: string[];
        };
        /** @description One page of a list. */
        RevisionPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Revision"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description How long the old token remains valid after the rotation. */
        Rotation: {
            /**
             * @description How long the old token remains valid.
             * @default 0
             * @example 3600
             */
            overlap_seconds?: number;
        };
        /** @description One activation of an agent on a thread. */
        Run: {
            /**
             * @description Id of the agent; empty if none was given.
             * @example planner
             */
            agent_id: string;
            /**
             * @description Cost so far in US dollars, as a decimal number.
             * @example 0.041200
             */
            cost_usd: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /** @description When the run counts as stuck if it still waits; null: never. */
            deadline_at: string | null;
            /**
             * @description Newest fencing token: 1 more with each change of the worker.
             * @example 1
             */
            fencing_token: number;
            /**
             * @description When it ended; null: not yet.
             * @example null
             */
            finished_at: string | null;
            /**
             * @description When the server noticed that it is stuck; null: it is not.
             * @example null
             */
            flagged_stuck_at: string | null;
            /**
             * @description Id of a run.
             * @example run-1
             */
            id: string;
            /**
             * @description Input tokens used so far.
             * @example 5200
             */
            input_tokens: number;
            /**
             * @description Newest revision of the thread that the run made. The ETag.
             * @example 12
             */
            last_revision: number;
            /** @description When the worker's lease expires; null: no lease. */
            lease_expires_at: string | null;
            /**
             * @description Number of steps at which the run counts as stuck; 0: no limit.
             * @example 20
             */
            max_rounds: number;
            /**
             * @description Any JSON object that clients store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata: Record<string, unknown>;
            /**
             * @description What started it.
             * @example user
             * @enum {string}
             */
            origin: "user" | "mcp" | "subagent" | "internal";
            /**
             * @description Output tokens used so far.
             * @example 800
             */
            output_tokens: number;
            /**
             * @description Id of the parent run; null: none, or none that you may see.
             * @example null
             */
            parent_run_id: string | null;
            /**
             * @description Id of the parent thread; null: none, or none that you may see.
             * @example null
             */
            parent_thread_id: string | null;
            /**
             * @description Revision of the thread that started the run.
             * @example 9
             */
            start_revision: number;
            /** @description When it began to run; null: not yet. */
            started_at: string | null;
            /**
             * @description `created`: not started; `waiting`: suspended; `done`: finished.
             * @example running
             * @enum {string}
             */
            status: "created" | "running" | "waiting" | "done";
            /**
             * @description Steps of the agent so far.
             * @example 3
             */
            step_count: number;
            /**
             * @description Why a person should look at the run; null: no need.
             * @example null
             */
            stuck_reason: string | null;
            /**
             * @description Why it ended; null: it is not finished.
             * @example null
             */
            termination_reason: Record<string, unknown> | null;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /** @description When the run counts as stuck because of `timeout_seconds`; null: never. */
            times_out_at: string | null;
            /**
             * Format: date-time
             * @description When it was changed last.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
            /**
             * @description Why it waits, without the tickets; null: it does not wait.
             * @example null
             */
            waiting: Record<string, unknown> | null;
        };
        /** @description AG-UI's request. Its other members are accepted and not used. */
        RunAgentInput: {
            /**
             * @description Id of a run.
             * @example run-1
             */
            runId: string;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            threadId: string;
        };
        /** @description What changes of a run. Counts are totals, not increments. */
        RunChange: {
            /**
             * @description Cost so far in US dollars: a decimal number of at least 0 with at most 8 digits before and 6 after the decimal point; best as a string.
             * @example 0.041200
             */
            cost_usd?: number | string;
            /**
             * @description The worker's fencing token. A token that is not the newest is refused. Null: no check.
             * @example 1
             */
            fencing_token?: number | null;
            /**
             * @description Input tokens used so far.
             * @example 5200
             */
            input_tokens?: number;
            /**
             * @description Any JSON object to store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata?: Record<string, unknown>;
            /**
             * @description Output tokens used so far.
             * @example 800
             */
            output_tokens?: number;
            /**
             * @description New status. From `created` to `running` or `done`; from `running` to `waiting` or `done`; from `waiting` to `running` or `done`.
             * @example done
             * @enum {unknown}
             */
            status?: "created" | "done" | "running" | "waiting";
            /**
             * @description Steps of the agent so far.
             * @example 3
             */
            step_count?: number;
            /**
             * @description Only with the status `done`: why the run ended. Default: `{"type": "natural_end"}`.
             * @example {
             *       "type": "natural_end"
             *     }
             */
            termination_reason?: {
                /**
                 * @description Why it ended.
                 * @enum {string}
                 */
                type: "natural_end" | "behavior_requested" | "stopped" | "cancelled" | "blocked" | "error";
                /** @description Of `blocked` and `error`: a text. Of `stopped`: an object with `code` and, optionally, `detail`. */
                value?: unknown;
            } | null;
            /**
             * @description Only with the status `waiting`: what the run waits for. Default: `{"reason": "external_event"}`.
             * @example {
             *       "reason": "tool_permission",
             *       "tickets": [
             *         {
             *           "tool_call_id": "call-1",
             *           "tool_name": "refund"
             *         }
             *       ]
             *     }
             */
            waiting?: {
                /**
                 * Format: date-time
                 * @description When the run counts as stuck if it still waits.
                 */
                deadline_at?: string | null;
                /** @description A text for people, which the page of the run shows. */
                message?: string | null;
                /**
                 * @description Why it waits.
                 * @enum {string}
                 */
                reason: "tool_permission" | "user_input" | "background_tasks" | "external_event" | "rate_limit" | "manual_pause";
                /** @description Tickets to open, one per decision that is needed. */
                tickets?: {
                    /** @description Arguments of the tool call. */
                    arguments?: unknown;
                    /**
                     * Format: date-time
                     * @description When the ticket expires.
                     */
                    expires_at?: string | null;
                    /** @description What happens at that time. */
                    on_expiry?: ("keep" | "cancel") | null;
                    /** @description Why a decision is needed. */
                    reason?: string | null;
                    /** @description JSON Schema that the decision's payload must match. */
                    response_schema?: Record<string, unknown> | boolean | null;
                    /** @description What the agent does with the decision. */
                    resume_mode?: ("replay_tool_call" | "use_decision_as_tool_result" | "pass_decision_to_tool") | null;
                    /** @description Id of the ticket. Default: generated. */
                    ticket_id?: string | null;
                    /** @description Id of the tool call to decide about. */
                    tool_call_id: string;
                    /** @description Name of the tool. */
                    tool_name: string;
                }[] | null;
                /** @description `dispatch`: the last decision enqueues a dispatch for the thread. */
                wake?: "dispatch" | null;
            } | null;
        };
        /** @description Why the run failed. */
        RunFailure: {
            /**
             * @description What went wrong. Empty: the Change-Reason header, or who failed it.
             * @default
             * @example The model refused the request.
             */
            message?: string;
        };
        /** @description What changes of a run. Counts are totals, not increments. */
        RunFields: {
            /**
             * @description Cost so far in US dollars: a decimal number of at least 0 with at most 8 digits before and 6 after the decimal point; best as a string.
             * @example 0.041200
             */
            cost_usd?: number | string;
            /**
             * @description Input tokens used so far.
             * @example 5200
             */
            input_tokens?: number;
            /**
             * @description Any JSON object to store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata?: Record<string, unknown>;
            /**
             * @description Output tokens used so far.
             * @example 800
             */
            output_tokens?: number;
            /**
             * @description New status. From `created` to `running` or `done`; from `running` to `waiting` or `done`; from `waiting` to `running` or `done`.
             * @example done
             * @enum {unknown}
             */
            status?: "created" | "done" | "running" | "waiting";
            /**
             * @description Steps of the agent so far.
             * @example 3
             */
            step_count?: number;
            /**
             * @description Only with the status `done`: why the run ended. Default: `{"type": "natural_end"}`.
             * @example {
             *       "type": "natural_end"
             *     }
             */
            termination_reason?: {
                /**
                 * @description Why it ended.
                 * @enum {string}
                 */
                type: "natural_end" | "behavior_requested" | "stopped" | "cancelled" | "blocked" | "error";
                /** @description Of `blocked` and `error`: a text. Of `stopped`: an object with `code` and, optionally, `detail`. */
                value?: unknown;
            } | null;
            /**
             * @description Only with the status `waiting`: what the run waits for. Default: `{"reason": "external_event"}`.
             * @example {
             *       "reason": "tool_permission",
             *       "tickets": [
             *         {
             *           "tool_call_id": "call-1",
             *           "tool_name": "refund"
             *         }
             *       ]
             *     }
             */
            waiting?: {
                /**
                 * Format: date-time
                 * @description When the run counts as stuck if it still waits.
                 */
                deadline_at?: string | null;
                /** @description A text for people, which the page of the run shows. */
                message?: string | null;
                /**
                 * @description Why it waits.
                 * @enum {string}
                 */
                reason: "tool_permission" | "user_input" | "background_tasks" | "external_event" | "rate_limit" | "manual_pause";
                /** @description Tickets to open, one per decision that is needed. */
                tickets?: {
                    /** @description Arguments of the tool call. */
                    arguments?: unknown;
                    /**
                     * Format: date-time
                     * @description When the ticket expires.
                     */
                    expires_at?: string | null;
                    /** @description What happens at that time. */
                    on_expiry?: ("keep" | "cancel") | null;
                    /** @description Why a decision is needed. */
                    reason?: string | null;
                    /** @description JSON Schema that the decision's payload must match. */
                    response_schema?: Record<string, unknown> | boolean | null;
                    /** @description What the agent does with the decision. */
                    resume_mode?: ("replay_tool_call" | "use_decision_as_tool_result" | "pass_decision_to_tool") | null;
                    /** @description Id of the ticket. Default: generated. */
                    ticket_id?: string | null;
                    /** @description Id of the tool call to decide about. */
                    tool_call_id: string;
                    /** @description Name of the tool. */
                    tool_name: string;
                }[] | null;
                /** @description `dispatch`: the last decision enqueues a dispatch for the thread. */
                wake?: "dispatch" | null;
            } | null;
        };
        /** @description One page of a list. */
        RunPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Run"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A read of an entry that a commit reported. */
        RunRead: {
            /**
             * Format: date-time
             * @description When the step was committed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            at: string;
            /**
             * @description The version now; 0: absent.
             * @example 4
             */
            current_version: number;
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Revision of the thread that reported it.
             * @example 12
             */
            revision: number;
            /**
             * @description Whether another version is current now.
             * @example true
             */
            stale: boolean;
            /**
             * @description Whether another version was current at the commit.
             * @example false
             */
            stale_at_commit: boolean;
            /**
             * @description Which revision of its run reported it, from 1.
             * @example 2
             */
            step: number;
            /**
             * @description The version that was read; 0: the entry was absent.
             * @example 3
             */
            version: number;
            /**
             * @description The version when the step was committed; 0: absent.
             * @example 3
             */
            version_at_commit: number;
        };
        /** @description One page of a list. */
        RunReadPage: {
            /** @description The items of this page. */
            items: components["schemas"]["RunRead"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description How a stuck or suspended run continues. */
        RunRecovery: {
            /**
             * @description Resume only if the state of the thread is at this revision; null: any.
             * @example 12
             */
            expected_revision?: number | null;
            /**
             * @description The worker's fencing token. A token that is not the newest is refused. Null: no check.
             * @example 1
             */
            fencing_token?: number | null;
            /**
             * @description Revision whose state is restored first; null: the state stays.
             * @example 10
             */
            revision?: number | null;
        };
        /** @description What to search for, and in which entries. */
        Search: {
            /**
             * @description Position to continue from: `next_cursor` of the previous page.
             * @example null
             */
            cursor?: string | null;
            /**
             * @description `value`: the items have their values. Default: without values.
             * @example value
             * @enum {unknown}
             */
            include?: "value";
            /**
             * @description Items per page. Default: 50.
             * @example 50
             */
            limit?: number;
            /**
             * @description Only entries of this namespace.
             * @example team_context
             */
            namespace?: string;
            /**
             * @description Only entries whose key begins with this.
             * @example parent_thread::
             */
            prefix?: string;
            /**
             * @description Only entries with this scope.
             * @example parent_thread
             * @enum {unknown}
             */
            scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
            /**
             * @description Words that the key or the value contains, all of them: in strings, numbers, booleans, null and the names of members. A word of at least two characters also finds words that begin with it. `*part` finds words that contain `part`; no index has them, so the values are read one by one, and a page may be empty. `"a phrase"` finds exactly these words in this order. Conditions may be part of the text: `/price > 100`.
             * @example ship /price > 100
             */
            text?: string;
            /**
             * @description Conditions that the value meets, all of them.
             * @example [
             *       {
             *         "operator": ">",
             *         "path": "/price",
             *         "value": 100
             *       }
             *     ]
             */
            where?: components["schemas"]["Condition"][];
        };
        /** @description How long deliveries are signed with both the previous and the new secret. */
        SecretRotation: {
            /**
             * @description How long, in seconds, the previous secret signs too; 0: it ends at once. Default: a day.
             * @example 86400
             */
            overlap_seconds?: number;
        };
        /** @description The items of a bulk operation. */
        Selection: {
            /**
             * @description Ids of the items.
             * @example [
             *       "a",
             *       "b"
             *     ]
             */
            ids: string[];
        };
        /** @description An entry that a revert left as it is. */
        SkippedEntry: {
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Name of a namespace.
             * @example team_context
             */
            namespace: string;
            /**
             * @description Why, in plain text.
             * @example its previous version was removed by history compaction
             */
            reason: string;
        };
        /** @description One page of a list. */
        SkippedEntryPage: {
            /** @description The items of this page. */
            items: components["schemas"]["SkippedEntry"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description The state of a thread at a revision. */
        Snapshot: {
            /**
             * @description The values by state key. A key without a value is absent.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            extensions: {
                [key: string]: unknown;
            };
            /**
             * @description Revision of the thread's state; 0 before the first one.
             * @example 12
             */
            revision: number;
        };
        /** @description A snapshot, and how it is combined with the state of the thread. */
        SnapshotImport: {
            /**
             * @description `replace` clears keys that the snapshot does not contain, `merge` keeps them.
             * @default replace
             * @enum {unknown}
             */
            mode?: "merge" | "replace";
            snapshot: components["schemas"]["ExportedSnapshot"];
            /**
             * @description What happens if a key is not registered: refuse the import, or leave the key out.
             * @default error
             * @enum {unknown}
             */
            unknown_keys?: "error" | "skip";
        };
        /** @description The label of a revision, and whether it is kept. */
        SnapshotMark: {
            /**
             * @description Label for people; empty: none.
             * @example before the refund
             */
            label?: string;
            /**
             * @description Whether compaction must keep the state at this revision.
             * @example true
             */
            pinned?: boolean;
        };
        /**
         * @description What a removal of old snapshots would do now. Rows and bytes are those of the state values of
         *     the thread.
         */
        SnapshotPreview: {
            /**
             * @description Bytes of the stored values.
             * @example 5120
             */
            bytes: number;
            /**
             * @description How many of them would be removed.
             * @example 1024
             */
            bytes_removed: number;
            /**
             * @description Revisions that are a multiple of it are retained too; null: none.
             * @example null
             */
            keep_every: number | null;
            /**
             * @description Newest snapshots that are retained.
             * @example 100
             */
            keep_last: number;
            /**
             * @description Stored rows.
             * @example 40
             */
            rows: number;
            /**
             * @description How many of them would be removed.
             * @example 12
             */
            rows_removed: number;
            /**
             * @description Snapshots of the thread.
             * @example 140
             */
            snapshots: number;
            /**
             * @description How many of them would be removed.
             * @example 40
             */
            snapshots_removed: number;
        };
        /** @description The revision whose state is restored. */
        SnapshotRestoration: {
            /**
             * @description Number of the revision to restore; 0 is the empty state.
             * @example 7
             */
            revision: number;
        };
        /** @description The checkpoint whose state is read. */
        StateAt: {
            /** @description The checkpoint to read. */
            checkpoint?: Record<string, unknown> | null;
            /**
             * @description Members to return; others are left out.
             * @example [
             *       "values"
             *     ]
             */
            select?: string[] | null;
            /** @description Accepted for compatibility; there are no subgraphs. */
            subgraphs?: boolean | null;
        };
        /** @description A name in the state of threads. */
        StateKey: {
            /**
             * Format: date-time
             * @description When it was registered.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Value of the key where a thread has none. Default: null.
             * @example []
             */
            default: unknown;
            /**
             * @description Description, for people.
             * @example The steps that are left.
             */
            description: string;
            /**
             * @description Name of a state key.
             * @example plan
             */
            key: string;
            /**
             * @description `exclusive`: concurrent updates of the key conflict. `commutative`: they are all applied, because the reducer gives the same result in any order. Default: `exclusive`.
             * @example exclusive
             * @enum {string}
             */
            merge: "exclusive" | "commutative";
            /**
             * @description `false`: values live until their run ends, and exports leave them out. Default: `true`.
             * @example true
             */
            persistent: boolean;
            /**
             * @description The plugin that owns it; empty: none.
             * @example planning
             */
            plugin: string;
            /**
             * @description How an update changes the value. Default: `replace`.
             * @example append
             * @enum {string}
             */
            reducer: "replace" | "add" | "max" | "min" | "append" | "union" | "merge" | "json_patch" | "lifecycle" | "tool_calls";
            /**
             * @description Whether threads retain their values when the plugin is uninstalled. Default: `false`.
             * @example false
             */
            retain_on_uninstall: boolean;
            /**
             * @description JSON Schema of the values. Default: `{}`, any value.
             * @example {
             *       "items": {
             *         "type": "string"
             *       },
             *       "type": "array"
             *     }
             */
            schema: Record<string, unknown> | boolean;
            /**
             * @description How long a value lives: until the next `run` starts, or as long as the `thread`. Default: `run`.
             * @example thread
             * @enum {string}
             */
            scope: "run" | "thread";
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
        };
        /** @description The definition of a state key. A member that is left out has its default. */
        StateKeyDefinition: {
            /**
             * @description Value of the key where a thread has none. Default: null.
             * @example []
             */
            default?: unknown;
            /**
             * @description Description, for people.
             * @example The steps that are left.
             */
            description?: string;
            /**
             * @description `exclusive`: concurrent updates of the key conflict. `commutative`: they are all applied, because the reducer gives the same result in any order. Default: `exclusive`.
             * @example exclusive
             * @enum {unknown}
             */
            merge?: "commutative" | "exclusive";
            /**
             * @description `false`: values live until their run ends, and exports leave them out. Default: `true`.
             * @example true
             */
            persistent?: boolean;
            /**
             * @description The plugin that owns it; empty: none.
             * @example planning
             */
            plugin?: string;
            /**
             * @description How an update changes the value. Default: `replace`.
             * @example append
             */
            reducer?: components["schemas"]["Reducer"];
            /**
             * @description Whether threads retain their values when the plugin is uninstalled. Default: `false`.
             * @example false
             */
            retain_on_uninstall?: boolean;
            /**
             * @description JSON Schema of the values. Default: `{}`, any value.
             * @example {
             *       "items": {
             *         "type": "string"
             *       },
             *       "type": "array"
             *     }
             */
            schema?: Record<string, unknown> | boolean;
            /**
             * @description How long a value lives: until the next `run` starts, or as long as the `thread`. Default: `run`.
             * @example thread
             * @enum {unknown}
             */
            scope?: "run" | "thread";
        };
        /** @description One page of a list. */
        StateKeyPage: {
            /** @description The items of this page. */
            items: components["schemas"]["StateKey"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A state key of a plugin. */
        StateKeyPart: {
            /**
             * @description Value of the key where a thread has none. Default: null.
             * @example []
             */
            default?: unknown;
            /**
             * @description Description, for people.
             * @example The steps that are left.
             */
            description?: string;
            /**
             * @description Name of a state key.
             * @example plan
             */
            key: string;
            /**
             * @description `exclusive`: concurrent updates of the key conflict. `commutative`: they are all applied, because the reducer gives the same result in any order. Default: `exclusive`.
             * @example exclusive
             * @enum {unknown}
             */
            merge?: "commutative" | "exclusive";
            /**
             * @description `false`: values live until their run ends, and exports leave them out. Default: `true`.
             * @example true
             */
            persistent?: boolean;
            /**
             * @description The plugin that owns it; empty: none.
             * @example planning
             */
            plugin?: string;
            /**
             * @description How an update changes the value. Default: `replace`.
             * @example append
             */
            reducer?: components["schemas"]["Reducer"];
            /**
             * @description Whether threads retain their values when the plugin is uninstalled. Default: `false`.
             * @example false
             */
            retain_on_uninstall?: boolean;
            /**
             * @description JSON Schema of the values. Default: `{}`, any value.
             * @example {
             *       "items": {
             *         "type": "string"
             *       },
             *       "type": "array"
             *     }
             */
            schema?: Record<string, unknown> | boolean;
            /**
             * @description How long a value lives: until the next `run` starts, or as long as the `thread`. Default: `run`.
             * @example thread
             * @enum {unknown}
             */
            scope?: "run" | "thread";
        };
        /** @description What would lose its state key. */
        StateKeyRemoval: {
            held: components["schemas"]["StateKeyValues"];
        };
        /** @description What threads hold of a state key. */
        StateKeyValues: {
            /**
             * @description Number of threads with a value.
             * @example 2
             */
            threads: number;
            /**
             * @description Number of values.
             * @example 2
             */
            values: number;
        };
        /** @description Values that are written to the state of a thread. */
        StateUpdate: {
            /**
             * @description Recorded as the reason of the change.
             * @example planner
             */
            as_node?: string | null;
            /** @description Write only if this checkpoint is the newest. */
            checkpoint?: Record<string, unknown> | null;
            /**
             * @description Id of a checkpoint: a revision of the thread's state.
             * @example 3
             */
            checkpoint_id?: string | null;
            /**
             * @description State values to write: an object, or an array of objects.
             * @example {
             *       "plan": [
             *         "search"
             *       ]
             *     }
             */
            values?: unknown;
        };
        /** @description The checkpoint that the update created. */
        StateUpdated: {
            /** @description A checkpoint object: `thread_id`, `checkpoint_ns` and `checkpoint_id`. */
            checkpoint: Record<string, unknown>;
            /**
             * @description Id of a checkpoint: a revision of the thread's state.
             * @example 3
             */
            checkpoint_id: string;
            /** @description A checkpoint object: `thread_id`, `checkpoint_ns` and `checkpoint_id`. */
            configurable: Record<string, unknown>;
        };
        /** @description What a workspace, a namespace or a thread holds. Bytes are those of the values as stored. */
        Storage: {
            /**
             * @description Bytes in total.
             * @example 65536
             */
            bytes: number;
            /** @description The last measurement of each day, oldest first. */
            days: components["schemas"]["StorageDay"][];
            /**
             * @description Number of entries.
             * @example 120
             */
            entries: number;
            /**
             * @description Bytes of the entries.
             * @example 512
             */
            entry_bytes: number;
            /**
             * @description Estimated tokens of all messages.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description Whether it was measured for this request; otherwise by the last sweep.
             * @example true
             */
            exact: boolean;
            /**
             * @description What was measured.
             * @example namespace
             * @enum {string}
             */
            group: "workspace" | "namespace" | "thread";
            /**
             * @description Growth in bytes per day, over `days`; null: too few measurements.
             * @example 512
             */
            growth_bytes_per_day: number | null;
            /**
             * @description Bytes of the versions.
             * @example 512
             */
            history_bytes: number;
            /**
             * @description Number of versions of entries.
             * @example 120
             */
            history_rows: number;
            /**
             * Format: date-time
             * @description When it was measured.
             * @example 2026-01-31T12:00:00.000000Z
             */
            measured_at: string;
            /**
             * @description Bytes of the messages.
             * @example 512
             */
            message_bytes: number;
            /**
             * @description Number of messages.
             * @example 120
             */
            messages: number;
            /**
             * @description Name of the namespace or id of the thread; null: the workspace.
             * @example team_context
             */
            name: string | null;
            /**
             * @description Rows in total.
             * @example 120
             */
            rows: number;
            /**
             * @description Bytes of the state values.
             * @example 512
             */
            state_bytes: number;
            /**
             * @description Number of state values of threads.
             * @example 120
             */
            state_rows: number;
        };
        /** @description A measurement of one day. */
        StorageDay: {
            /**
             * @description Bytes in total.
             * @example 65536
             */
            bytes: number;
            /**
             * Format: date
             * @description The day, in UTC.
             * @example 2026-01-31
             */
            day: string;
            /**
             * @description Estimated tokens of all messages.
             * @example 1800
             */
            estimated_tokens: number;
            /**
             * @description Rows in total.
             * @example 120
             */
            rows: number;
            /**
             * @description Rows that compactions of this day removed.
             * @example 0
             */
            rows_removed: number;
            /**
             * @description Estimated tokens that compactions of this day saved.
             * @example 0
             */
            tokens_saved: number;
        };
        /** @description One page of a list. */
        StoragePage: {
            /** @description The items of this page. */
            items: components["schemas"]["Storage"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description An item of the store: an entry of the namespace `agent_store`. */
        StoreItem: {
            /**
             * Format: date-time
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            created_at: string;
            /**
             * @description Key of the item.
             * @example preferences
             */
            key: string;
            /**
             * @description Labels of the store namespace. No label is empty or contains `.`.
             * @example [
             *       "users",
             *       "u1"
             *     ]
             */
            namespace: string[];
            /**
             * Format: date-time
             * @description RFC 3339 time.
             * @example 2026-01-31T12:00:00.000000+00:00
             */
            updated_at: string;
            /**
             * @description A JSON object.
             * @example {
             *       "language": "en"
             *     }
             */
            value: Record<string, unknown>;
            /**
             * @description Version of the entry; send it as If-Match.
             * @example 3
             */
            version: number;
        };
        /** @description The items of the store that were found. */
        StoreItems: {
            /** @description Items, newest change first. */
            items: components["schemas"]["StoreItem"][];
        };
        /** @description The namespaces of the store that were found. */
        StoreNamespaces: {
            /**
             * @description Store namespaces that contain items.
             * @example [
             *       [
             *         "users",
             *         "u1"
             *       ]
             *     ]
             */
            namespaces: string[][];
        };
        /** @description Which messages a summary replaces in the context. */
        Summarized: {
            /**
             * @description `seq` of the first of them.
             * @example 1
             */
            from_seq: number;
            /**
             * @description `seq` of the last of them.
             * @example 6
             */
            to_seq: number;
            /**
             * @description When the compaction was undone; null: the summary is in effect.
             * @example null
             */
            undone_at: string | null;
        };
        /** @description A conversation: messages and a versioned state. */
        Thread: {
            /** @description The run that is not finished; null: none. */
            active_run_id: string | null;
            /**
             * @description The thread's own compaction policy: only the fields in which it differs.
             * @example {}
             */
            compaction_policy: Record<string, unknown>;
            /**
             * @description Estimated tokens of the context that a model receives.
             * @example 1800
             */
            context_tokens: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /** @description What it was copied from; null: nothing, or a thread that you may not see. */
            forked_from: components["schemas"]["ForkOrigin"] | null;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            id: string;
            /** @description The run that was started last; null: none. */
            latest_run_id: string | null;
            /**
             * @description Number of messages of the thread.
             * @example 8
             */
            message_count: number;
            /**
             * @description Any JSON object that clients store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata: Record<string, unknown>;
            /**
             * @description Id of the parent thread; null: none, or none that you may see.
             * @example null
             */
            parent_thread_id: string | null;
            /**
             * @description What the thread is about, for example a user; null: nothing.
             * @example user-7
             */
            resource_id: string | null;
            /**
             * @description Revision of the thread's state; 0 before the first one.
             * @example 12
             */
            revision: number;
            /**
             * @description Title for people; may be empty.
             * @example Refund of order 9921
             */
            title: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
            /**
             * @description Version of these fields: 1 more with each change of them. The ETag.
             * @example 1
             */
            version: number;
        };
        /** @description Only the given members change. */
        ThreadChange: {
            /**
             * @description Compaction policy of the thread: only the fields in which it differs from the policy of its agent or workspace. See `PUT /compaction-policies/workspace`.
             * @example {
             *       "autocompact_threshold": 8000
             *     }
             */
            compaction_policy?: Record<string, unknown>;
            /**
             * @description Any JSON object to store with it.
             * @example {
             *       "channel": "web"
             *     }
             */
            metadata?: Record<string, unknown>;
            /**
             * @description Id of the new parent; null: remove it from its parent.
             * @example null
             */
            parent_thread_id?: string | null;
            /**
             * @description Empty: no longer about anything.
             * @example user-7
             */
            resource_id?: string;
            /**
             * @description Title for people.
             * @example Refund of order 9921
             */
            title?: string;
        };
        /** @description Conditions that the counted threads meet. */
        ThreadConditions: {
            /**
             * @description Metadata that the thread contains.
             * @example {
             *       "user": "u1"
             *     }
             */
            metadata?: Record<string, unknown> | null;
            /** @description Only threads with this status. */
            status?: ("busy" | "error" | "idle" | "interrupted") | null;
            /** @description Values that the state contains, by state key. */
            values?: Record<string, unknown> | null;
        };
        /** @description How much threads contain. */
        ThreadContents: {
            /**
             * @description Entries under the keys of the threads.
             * @example 3
             */
            entries: number;
            /**
             * @description Messages.
             * @example 8
             */
            messages: number;
            /**
             * @description Runs.
             * @example 2
             */
            runs: number;
            /**
             * @description Values of state keys, past ones included.
             * @example 20
             */
            state_values: number;
            /**
             * @description Threads, with those deleted by `children=cascade`.
             * @example 1
             */
            threads: number;
        };
        /** @description The id and metadata of a new thread, and what to do if it exists. */
        ThreadCreate: {
            /**
             * @description Whether an existing thread is an error or the response.
             * @example raise
             */
            if_exists?: ("do_nothing" | "raise") | null;
            /**
             * @description Metadata: an object.
             * @example {
             *       "user": "u1"
             *     }
             */
            metadata?: Record<string, unknown> | null;
            /** @description Not supported; must be absent. */
            supersteps?: unknown;
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id?: string | null;
            /** @description Not supported; must be absent. */
            ttl?: unknown;
        };
        /** @description What a dry run of the deletion reports. */
        ThreadDeletion: {
            /** @description What the deletion would remove. */
            would_delete: components["schemas"]["ThreadContents"];
        };
        /** @description One page of a list. */
        ThreadPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Thread"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description Metadata and state to change, and messages to append. */
        ThreadPatch: {
            /** @description Write only if this checkpoint is the newest. */
            checkpoint?: Record<string, unknown> | null;
            /**
             * @description Messages to append.
             * @example [
             *       {
             *         "content": "Hi",
             *         "role": "user"
             *       }
             *     ]
             */
            messages?: unknown[] | null;
            /**
             * @description Merged into the metadata.
             * @example {
             *       "user": "u1"
             *     }
             */
            metadata?: Record<string, unknown> | null;
            /** @description Not supported; must be absent. */
            ttl?: unknown;
            /** @description State values to write as a new checkpoint. */
            values?: Record<string, unknown> | null;
        };
        /** @description Which threads to return, and in which order. */
        ThreadSearch: {
            /** @description Not supported; must be absent. */
            extract?: unknown;
            /**
             * @description Only these threads.
             * @example [
             *       "thread-1"
             *     ]
             */
            ids?: string[] | null;
            /**
             * @description Maximum number of items.
             * @example 10
             */
            limit?: number | null;
            /**
             * @description Metadata that the thread contains.
             * @example {
             *       "user": "u1"
             *     }
             */
            metadata?: Record<string, unknown> | null;
            /**
             * @description Number of items to skip.
             * @example 0
             */
            offset?: number | null;
            /**
             * @description Members to return; others are left out.
             * @example [
             *       "values"
             *     ]
             */
            select?: string[] | null;
            /** @description Order of the result. */
            sort_by?: ("created_at" | "status" | "thread_id" | "updated_at") | null;
            /** @description Direction of the order. */
            sort_order?: ("asc" | "desc") | null;
            /** @description Only threads with this status. */
            status?: ("busy" | "error" | "idle" | "interrupted") | null;
            /** @description Values that the state contains, by state key. */
            values?: Record<string, unknown> | null;
        };
        /** @description The threads to delete. */
        ThreadSelection: {
            /**
             * @description What happens to child threads, as in `DELETE /threads/{thread_id}`.
             * @default detach
             * @enum {unknown}
             */
            children?: "cascade" | "detach" | "reject";
            /**
             * @description Ids of the items.
             * @example [
             *       "a",
             *       "b"
             *     ]
             */
            ids: string[];
        };
        /** @description A decision that a suspended run waits for. */
        Ticket: {
            /**
             * @description Arguments of the tool call.
             * @example {
             *       "amount": 120
             *     }
             */
            arguments: unknown;
            /**
             * Format: date-time
             * @description When the run opened it.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /** @description When it was decided. */
            decided_at: string | null;
            /**
             * @description Who decided.
             * @example alice
             */
            decided_by: string | null;
            /** @description When the ticket expires; null: never. */
            expires_at: string | null;
            /**
             * @description Id of a ticket.
             * @example ticket-1
             */
            id: string;
            /**
             * @description What happens at that time: `keep` leaves it pending, `cancel` cancels it.
             * @example keep
             * @enum {string}
             */
            on_expiry: "keep" | "cancel";
            /**
             * @description Payload of the decision.
             * @example {
             *       "approved": true
             *     }
             */
            payload: unknown;
            /**
             * @description Why a decision is needed.
             * @example The amount exceeds 100.
             */
            reason: string;
            /**
             * @description JSON Schema that `payload` of the decision must match; null: any payload.
             * @example null
             */
            response_schema: unknown;
            /**
             * @description What the agent does with the decision.
             * @example replay_tool_call
             */
            resume_mode: string;
            /**
             * @description Id of a run.
             * @example run-1
             */
            run_id: string;
            /**
             * @description `pending` until somebody decides; `void` when the run ended without a decision.
             * @example pending
             * @enum {string}
             */
            status: "pending" | "resumed" | "cancelled" | "void";
            /**
             * @description Id of a thread.
             * @example thread-1
             */
            thread_id: string;
            /**
             * @description Id of the tool call to decide about.
             * @example call-1
             */
            tool_call_id: string;
            /**
             * @description Name of the tool.
             * @example refund
             */
            tool_name: string;
        };
        /** @description One page of a list. */
        TicketPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Ticket"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description An API token, without its secret. */
        Token: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Who created it.
             * @example alice
             */
            created_by: string;
            /** @description When it expires; null: never. */
            expires_at: string | null;
            /**
             * @description Id of the token.
             * @example 17
             */
            id: string;
            /** @description When it was last used, to the minute; null: never. */
            last_used_at: string | null;
            /**
             * @description The program that uses the token.
             * @example planner
             */
            name: string;
            /**
             * @description Globs of the namespaces that the token is limited to; empty: all.
             * @example [
             *       "team_*"
             *     ]
             */
            namespaces: string[];
            /**
             * @description Whether the token may manage all workspaces.
             * @example false
             */
            operator: boolean;
            /**
             * @description Public first part of the token.
             * @example ch_12124b793e09_
             */
            prefix: string;
            /**
             * @description Requests per minute; null: no limit.
             * @example 600
             */
            rate_per_minute: number | null;
            /** @description When it was revoked; null: not revoked. */
            revoked_at: string | null;
            /**
             * @description What the token may do.
             * @example editor
             * @enum {string}
             */
            role: "viewer" | "editor" | "admin";
            /** @description When a successor was created; null: not rotated. */
            rotated_at: string | null;
            /**
             * @description Prefixes of the thread ids that the token is limited to; empty: all.
             * @example [
             *       "support-"
             *     ]
             */
            thread_prefixes: string[];
        };
        /** @description The fields of a token to change; all others stay. */
        TokenChanges: {
            /**
             * @description When it expires, at most ten years from now; null: never. If the caller is a token that expires, the changed one must not expire later.
             * @example 2031-01-31T12:00:00Z
             */
            expires_at?: string | null;
            /**
             * @description The program that uses the token.
             * @example planner
             */
            name?: string;
            /**
             * @description Globs of the namespaces that the token is limited to; empty: all.
             * @example [
             *       "team_*"
             *     ]
             */
            namespaces?: string[];
            /**
             * @description Requests per minute; null: no limit.
             * @example 600
             */
            rate_per_minute?: number | null;
            /**
             * @description What the token may do; at most your own role.
             * @example viewer
             * @enum {unknown}
             */
            role?: "admin" | "editor" | "viewer";
            /**
             * @description Prefixes of the thread ids that the token is limited to; empty: all.
             * @example [
             *       "support-"
             *     ]
             */
            thread_prefixes?: string[];
        };
        /** @description One page of a list. */
        TokenPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Token"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A message as the AI SDK renders it. */
        UIMessage: {
            /**
             * @description Id of the message.
             * @example message-1
             */
            id: string;
            metadata: components["schemas"]["MessageMetadata"];
            /**
             * @description Parts as the AI SDK defines them.
             * @example [
             *       {
             *         "text": "Done.",
             *         "type": "text"
             *       }
             *     ]
             */
            parts: Record<string, unknown>[];
            /**
             * @description Who says it.
             * @example assistant
             * @enum {string}
             */
            role: "system" | "user" | "assistant";
        };
        /** @description An update of one state key: exactly one of `update` and `clear`. */
        Update: {
            /**
             * @description `true`: remove the value.
             * @default false
             */
            clear?: boolean;
            /**
             * @description Name of the state key.
             * @example plan
             */
            key: string;
            /**
             * @description What the reducer of the key is given.
             * @example [
             *       "search"
             *     ]
             */
            update?: unknown;
        };
        /** @description The updates of one parallel branch. */
        UpdateBatch: {
            /**
             * @description Revision of the state that the updates were made for; null: any.
             * @example 12
             */
            base_revision?: number | null;
            /** @description The updates of the branch, in order. */
            updates: components["schemas"]["Update"][];
        };
        /** @description How much the workspace holds, as last measured, and its quotas. */
        Usage: {
            /**
             * @description Bytes of all values.
             * @example 524288
             */
            bytes: number;
            /**
             * @description Number of entries.
             * @example 1200
             */
            entries: number;
            /**
             * @description The quotas of `entries`, `bytes` and `threads`; null: unlimited.
             * @example {
             *       "bytes": null,
             *       "entries": 10000,
             *       "threads": null
             *     }
             */
            limits: {
                [key: string]: number | null;
            };
            /** @description When it was measured; null: never. */
            measured_at: string | null;
            /**
             * @description Number of messages.
             * @example 2400
             */
            messages: number;
            /**
             * @description Number of threads.
             * @example 80
             */
            threads: number;
        };
        /** @description The version of the server. */
        Version: {
            /**
             * @description Version of the API: the part of the path after `/api/`.
             * @example v1
             */
            api_version: string;
            /**
             * @description Version of the server, as in its CHANGELOG.
             * @example 0.1.0
             */
            version: string;
        };
        /** @description A version, and whether history compaction keeps it. */
        VersionPin: {
            /**
             * @description Whether history compaction keeps the version.
             * @example true
             */
            pinned: boolean;
            /**
             * @description The version.
             * @example 1
             */
            version: number;
        };
        /** @description The version whose value is written again as a new version. */
        VersionToRestore: {
            /**
             * @description The version whose value is written again.
             * @example 1
             */
            version: number;
        };
        /** @description An entry that the new schema refuses. */
        Violation: {
            /** @description What the schema refuses, at most 3 places. */
            errors: components["schemas"]["Fault"][];
            /**
             * @description Key within the namespace.
             * @example parent_thread::thread-1
             */
            key: string;
            /**
             * @description Version of the entry.
             * @example 3
             */
            version: number;
        };
        /** @description The entries that the new schema refuses. */
        Violations: {
            /**
             * @description Number of these entries.
             * @example 1
             */
            count: number;
            /** @description The first 100 of them, by key. */
            first: components["schemas"]["Violation"][];
        };
        /** @description A URL to which changes are sent. */
        Webhook: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Who created it.
             * @example planner-token
             */
            created_by: string;
            /**
             * @description Deliveries with the status `dead`.
             * @example 0
             */
            dead_letters: number;
            /**
             * @description Since when every attempt has failed; null: the last one did not.
             * @example null
             */
            failing_since: string | null;
            /** @description Which changes are sent. */
            filter: components["schemas"]["WebhookFilter"];
            /**
             * @description Id of the webhook.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /** @description Time of the last delivery; null: none yet. */
            last_delivered_at: string | null;
            /**
             * @description Why the last attempt failed; null: it did not.
             * @example null
             */
            last_error: string | null;
            /**
             * @description Name, for people.
             * @example billing
             */
            name: string;
            sees: components["schemas"]["WebhookGrant"];
            /**
             * @description `disabled`: the server stopped it, see `status_reason`.
             * @example active
             * @enum {string}
             */
            status: "active" | "paused" | "disabled";
            /**
             * @description Why the server disabled it; null otherwise.
             * @example null
             */
            status_reason: string | null;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
            /**
             * @description URL to which events are sent. Without the role admin only scheme, host and port.
             * @example https://example.com/hooks/commonhold
             */
            url: string;
            /**
             * @description Deliveries that have not ended.
             * @example 0
             */
            waiting: number;
        };
        /** @description The fields of a webhook to change; all others stay. */
        WebhookChanges: {
            /** @description Which changes are sent; replaces the whole filter. */
            filter?: components["schemas"]["WebhookFilter"];
            /**
             * @description Name, for people.
             * @example billing
             */
            name?: string;
            /**
             * @description http:// or https:// URL to which events are sent.
             * @example https://example.com/hooks/commonhold
             */
            url?: string;
        };
        /** @description Which changes are sent: those that meet all conditions. An empty condition is always met. */
        WebhookFilter: {
            /**
             * @description Key of the change.
             * @default
             * @example
             */
            key?: string;
            /**
             * @description Kinds of changes, or globs of kinds; one of them must match. At most 50.
             * @default []
             * @example [
             *       "run.*"
             *     ]
             */
            kinds?: string[];
            /**
             * @description Globs of namespaces; one of them must match. Changes without a namespace, such as those of threads and runs, then do not match. At most 50.
             * @default []
             * @example [
             *       "team_*"
             *     ]
             */
            namespaces?: string[];
            /**
             * @description Prefix of the key.
             * @default
             * @example
             */
            prefix?: string;
            /**
             * @description Id of the run.
             * @default
             * @example
             */
            run_id?: string;
            /**
             * @description Id of the thread.
             * @default
             * @example
             */
            thread_id?: string;
        };
        /** @description What the webhook can see: the limits of its creator at the time of its creation. */
        WebhookGrant: {
            /**
             * @description Globs of namespaces; empty: all.
             * @example [
             *       "team_*"
             *     ]
             */
            namespaces: string[];
            /**
             * @description Prefixes of thread ids; empty: all.
             * @example []
             */
            thread_prefixes: string[];
        };
        /** @description One page of a list. */
        WebhookPage: {
            /** @description The items of this page. */
            items: components["schemas"]["Webhook"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A webhook that sends events again. */
        WebhookReplayed: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Who created it.
             * @example planner-token
             */
            created_by: string;
            /**
             * @description Deliveries with the status `dead`.
             * @example 0
             */
            dead_letters: number;
            /**
             * @description Since when every attempt has failed; null: the last one did not.
             * @example null
             */
            failing_since: string | null;
            /** @description Which changes are sent. */
            filter: components["schemas"]["WebhookFilter"];
            /**
             * @description Id of the webhook.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /** @description Time of the last delivery; null: none yet. */
            last_delivered_at: string | null;
            /**
             * @description Why the last attempt failed; null: it did not.
             * @example null
             */
            last_error: string | null;
            /**
             * @description Name, for people.
             * @example billing
             */
            name: string;
            /**
             * @description Number of dead letters that are sent again; null with `cursor`.
             * @example 2
             */
            replayed: number | null;
            sees: components["schemas"]["WebhookGrant"];
            /**
             * @description `disabled`: the server stopped it, see `status_reason`.
             * @example active
             * @enum {string}
             */
            status: "active" | "paused" | "disabled";
            /**
             * @description Why the server disabled it; null otherwise.
             * @example null
             */
            status_reason: string | null;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
            /**
             * @description URL to which events are sent. Without the role admin only scheme, host and port.
             * @example https://example.com/hooks/commonhold
             */
            url: string;
            /**
             * @description Deliveries that have not ended.
             * @example 0
             */
            waiting: number;
        };
        /** @description A webhook with a new signing secret. */
        WebhookWithSecret: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /**
             * @description Who created it.
             * @example planner-token
             */
            created_by: string;
            /**
             * @description Deliveries with the status `dead`.
             * @example 0
             */
            dead_letters: number;
            /**
             * @description Since when every attempt has failed; null: the last one did not.
             * @example null
             */
            failing_since: string | null;
            /** @description Which changes are sent. */
            filter: components["schemas"]["WebhookFilter"];
            /**
             * @description Id of the webhook.
             * @example 0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21
             */
            id: string;
            /** @description Time of the last delivery; null: none yet. */
            last_delivered_at: string | null;
            /**
             * @description Why the last attempt failed; null: it did not.
             * @example null
             */
            last_error: string | null;
            /**
             * @description Name, for people.
             * @example billing
             */
            name: string;
            /**
             * @description The signing secret. It is returned once: null in the repetition of a request with the same Idempotency-Key.
             * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
             */
            secret: string | null;
            sees: components["schemas"]["WebhookGrant"];
            /**
             * @description `disabled`: the server stopped it, see `status_reason`.
             * @example active
             * @enum {string}
             */
            status: "active" | "paused" | "disabled";
            /**
             * @description Why the server disabled it; null otherwise.
             * @example null
             */
            status_reason: string | null;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T12:00:00.000000Z
             */
            updated_at: string;
            /**
             * @description URL to which events are sent. Without the role admin only scheme, host and port.
             * @example https://example.com/hooks/commonhold
             */
            url: string;
            /**
             * @description Deliveries that have not ended.
             * @example 0
             */
            waiting: number;
        };
        /** @description A tenant. */
        Workspace: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T12:00:00.000000Z
             */
            created_at: string;
            /** @description Maximum size in bytes; null: no limit. */
            max_bytes: number | null;
            /** @description Maximum number of entries; null: no limit. */
            max_entries: number | null;
            /** @description Maximum number of threads; null: no limit. */
            max_threads: number | null;
            /**
             * @description Name for people.
             * @example Acme Inc.
             */
            name: string;
            /**
             * @description Name in URLs and commands.
             * @example acme
             */
            slug: string;
        };
        /** @description Absent members stay as they are; null lifts a quota. */
        WorkspaceChange: {
            /** @description Maximum size in bytes. */
            max_bytes?: number | null;
            /** @description Maximum number of entries. */
            max_entries?: number | null;
            /** @description Maximum number of threads. */
            max_threads?: number | null;
            /**
             * @description Name for people.
             * @example Acme Inc.
             */
            name?: string;
        };
        /** @description What a workspace contains. */
        WorkspaceContents: {
            /**
             * @description Number of live entries; above 1,000: at the last measurement.
             * @example 1200
             */
            entries: number;
            /**
             * @description Number of members.
             * @example 5
             */
            members: number;
            /**
             * @description Number of threads; above 1,000: at the last measurement.
             * @example 40
             */
            threads: number;
            /**
             * @description Number of live API tokens, up to 10,001.
             * @example 3
             */
            tokens: number;
            /**
             * @description Number of webhooks.
             * @example 1
             */
            webhooks: number;
        };
        /** @description One page of a list. */
        WorkspacePage: {
            /** @description The items of this page. */
            items: components["schemas"]["Workspace"][];
            /**
             * @description Send as `cursor` to fetch the next page. Null on the last page.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What the deletion of a workspace would delete. */
        WorkspaceRemoval: {
            /** @description What the workspace contains. */
            would_delete: components["schemas"]["WorkspaceContents"];
        };
        /** @description The new value of an entry, with its lifetime, tags and pin. */
        Write: {
            /**
             * @description Whether the entry is marked as important. Default: as it is.
             * @example false
             */
            pinned?: boolean;
            /**
             * @description Labels for filtering. Default: those that the entry has.
             * @example [
             *       "draft"
             *     ]
             */
            tags?: string[];
            /**
             * @description Time to live in seconds: the entry is deleted when it is over. Default: that of the namespace.
             * @example 86400
             */
            ttl_seconds?: number | null;
            /**
             * @description The value: any JSON that the schema of the namespace accepts.
             * @example {
             *       "goal": "Ship it"
             *     }
             */
            value: unknown;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The media types that the operation accepts for the request body. */
        Accept: string;
        /** @description The media types that the operation accepts for the request body. */
        "Accept-Patch": string;
        /** @description Version or revision of the resource, in quotes. Send it as If-Match. */
        ETag: string;
        /** @description `true`: the response to an earlier request with this Idempotency-Key; this one changed nothing. Absent otherwise. */
        "Idempotent-Replayed": "true";
        /** @description Path of the new resource, or of the job that a worker performs. */
        Location: string;
        /** @description The preference that the response follows. Absent without one. */
        "Preference-Applied": string;
        /** @description `r`: remaining requests. `t`: seconds until all requests are available again if none is sent; with status 429, seconds until the next request is accepted. */
        RateLimit: string;
        /** @description The rate limit of the token: `q` requests per `w` seconds. Absent if it has no limit. */
        "RateLimit-Policy": string;
        /** @description `replica`: a read replica responded, whose state may be some seconds old. Absent otherwise. */
        "Read-From": "replica";
        /** @description Seconds to wait before the request is repeated. */
        "Retry-After": number;
        /** @description The scheme of authentication. */
        "WWW-Authenticate": string;
        /** @description The `offset` of the next page. Absent on the last one. */
        "X-Pagination-Next": number;
        /** @description The number of threads that the search finds. */
        "X-Pagination-Total": number;
        /** @description The version of the AI SDK's stream protocol. */
        "x-vercel-ai-ui-message-stream": "v1";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    explain_access: {
        parameters: {
            query?: {
                /** @description Id of the token to explain. */
                token_id?: number;
                /** @description Name of the user to explain. */
                username?: string;
                /** @description Access to this namespace. */
                namespace?: string;
                /** @description Access to this key of the namespace. */
                key?: string;
                /** @description Access to this thread. */
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
        };
    };
    get_store_item: {
        parameters: {
            query?: {
                /** @description Labels of the store namespace, joined by `.`. */
                namespace?: string;
                /** @description Key of the item. */
                key?: string;
                /** @description Must be false: a read does not extend the lifetime. */
                refresh_ttl?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreItem"] | null;
                };
            };
        };
    };
    put_store_item: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemPut"];
            };
        };
        responses: {
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    delete_store_item: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemAddress"];
            };
        };
        responses: {
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    search_store_items: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemSearch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreItems"];
                };
            };
        };
    };
    list_store_namespaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NamespaceSearch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreNamespaces"];
                };
            };
        };
    };
    create_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadCreate"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThread"];
                };
            };
        };
    };
    count_agent_threads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadConditions"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": number;
                };
            };
        };
    };
    search_agent_threads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadSearch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "X-Pagination-Next": components["headers"]["X-Pagination-Next"];
                    "X-Pagination-Total": components["headers"]["X-Pagination-Total"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThread"][] | Record<string, unknown>[];
                };
            };
        };
    };
    get_agent_thread: {
        parameters: {
            query?: {
                /** @description Accepted for compatibility; all members are returned. */
                include?: string[];
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThreadWithMessages"];
                };
            };
        };
    };
    delete_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    patch_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadPatch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThreadWithMessages"];
                };
            };
        };
    };
    copy_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThread"];
                };
            };
        };
    };
    list_agent_history: {
        parameters: {
            query?: {
                /** @description Maximum number of states. */
                limit?: number;
                /** @description Id of a checkpoint: a revision of the thread's state. */
                before?: string;
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"][];
                };
            };
        };
    };
    search_agent_history: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HistorySearch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"][] | Record<string, unknown>[];
                };
            };
        };
    };
    get_agent_state: {
        parameters: {
            query?: {
                /** @description Accepted for compatibility; there are no subgraphs. */
                subgraphs?: boolean;
                /** @description Members to return, repeated or separated by commas. */
                select?: string[];
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"] | Record<string, unknown>;
                };
            };
        };
    };
    update_agent_state: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StateUpdate"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateUpdated"];
                };
            };
        };
    };
    get_agent_state_of: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StateAt"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"] | Record<string, unknown>;
                };
            };
        };
    };
    get_agent_state_at: {
        parameters: {
            query?: {
                /** @description Accepted for compatibility; there are no subgraphs. */
                subgraphs?: boolean;
                /** @description Members to return, repeated or separated by commas. */
                select?: string[];
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
                /** @description Id of the checkpoint. Send a slash in it as %2F. */
                checkpoint_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"] | Record<string, unknown>;
                };
            };
        };
    };
    list_audit: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only rows about this namespace. */
                namespace?: string;
                /** @description Only rows about this key. */
                key?: string;
                /** @description Only rows about this thread. */
                thread_id?: string;
                /** @description Only rows about this run. */
                run_id?: string;
                /** @description Only rows with this action, or with an action that matches this glob. */
                action?: string;
                /** @description Only rows of this request. */
                request_id?: string;
                /** @description Only rows of the actor with this name. */
                actor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditRowPage"];
                };
            };
        };
    };
    blame_entry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AttributionPage"];
                };
            };
        };
    };
    list_changes: {
        parameters: {
            query?: {
                /** @description Only changes in this namespace. */
                namespace?: string;
                /** @description Only changes of this key. */
                key?: string;
                /** @description Only changes of keys that begin with it. */
                prefix?: string;
                /** @description Only changes of this thread. */
                thread_id?: string;
                /** @description Only changes by or of this run. */
                run_id?: string;
                /** @description Only changes of this kind, or of the kinds that match a glob. */
                kind?: string;
                /** @description Only changes after this position: a cursor of the feed. */
                cursor?: string;
                /** @description Items per page. */
                limit?: number;
                /** @description Long polling: hold the response for up to so many seconds, until there is news. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangePage"];
                };
            };
        };
    };
    stream_changes: {
        parameters: {
            query?: {
                /** @description Only changes in this namespace. */
                namespace?: string;
                /** @description Only changes of this key. */
                key?: string;
                /** @description Only changes of keys that begin with it. */
                prefix?: string;
                /** @description Only changes of this thread. */
                thread_id?: string;
                /** @description Only changes by or of this run. */
                run_id?: string;
                /** @description Only changes of this kind, or of the kinds that match a glob. */
                kind?: string;
                /** @description Only changes after this position: a cursor of the feed. */
                cursor?: string;
            };
            header?: {
                /** @description Id of the last event received; the stream continues after it. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    list_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicyPage"];
                };
            };
        };
    };
    get_agent_policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the agent. Send a slash in it as %2F. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
        };
    };
    put_agent_policy: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the agent. Send a slash in it as %2F. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
        };
    };
    delete_agent_policy: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the agent. Send a slash in it as %2F. */
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    get_thread_policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
        };
    };
    put_thread_policy: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
        };
    };
    delete_thread_policy: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    get_workspace_policy: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
        };
    };
    put_workspace_policy: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
        };
    };
    delete_workspace_policy: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_compactions: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only compactions of this thread. */
                thread_id?: string;
                /** @description Only compactions of this kind. */
                kind?: "context" | "snapshot" | "history";
                /** @description Only compactions with this status. */
                status?: "queued" | "running" | "done" | "skipped" | "failed" | "superseded" | "cancelled" | "undone";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPage"];
                };
            };
        };
    };
    get_compaction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the compaction. Send a slash in it as %2F. */
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
        };
    };
    cancel_compaction: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the compaction. Send a slash in it as %2F. */
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
        };
    };
    list_folded_messages: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                /** @description Id of the compaction. Send a slash in it as %2F. */
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
        };
    };
    retry_compaction: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the compaction. Send a slash in it as %2F. */
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
        };
    };
    undo_compaction: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the compaction. Send a slash in it as %2F. */
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
        };
    };
    list_config: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
                /** @description `value`: the items have their values. Default: without values. */
                include?: "value";
                /** @description Only records whose id begins with this. */
                prefix?: string;
            };
            header?: never;
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecordRowPage"];
                };
            };
        };
    };
    read_config: {
        parameters: {
            query?: never;
            header?: {
                /** @description An ETag: 304 if the version is still this one. */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    write_config: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `true`: a write of an equal value creates no new version. */
                "If-Changed"?: "true" | "false";
                /** @description `merge`, together with If-Match: merge with concurrent changes that do not overlap instead of refusing the write. Objects are merged by member, arrays by item. */
                "On-Conflict"?: "merge";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecordWrite"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"] | (components["schemas"]["DryRun"] & components["schemas"]["Record"]);
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"];
                };
            };
        };
    };
    delete_config: {
        parameters: {
            query?: {
                /** @description Delete the record even if others name it. */
                force?: boolean;
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `merge`, together with If-Match: merge with concurrent changes that do not overlap instead of refusing the write. Objects are merged by member, arrays by item. */
                "On-Conflict"?: "merge";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["Dependents"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    patch_config: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `true`: a write of an equal value creates no new version. */
                "If-Changed"?: "true" | "false";
                /** @description `merge`, together with If-Match: merge with concurrent changes that do not overlap instead of refusing the write. Objects are merged by member, arrays by item. */
                "On-Conflict"?: "merge";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json-patch+json": unknown;
                "application/merge-patch+json": unknown;
                "application/vnd.commonhold.update+json": unknown;
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"] | (components["schemas"]["DryRun"] & components["schemas"]["Record"]);
                };
            };
        };
    };
    list_config_dependents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DependentPage"];
                };
            };
        };
    };
    read_config_history: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description `value`: the items have their values. Default: without values. */
                include?: "value";
            };
            header?: never;
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryVersionPage"];
                };
            };
        };
    };
    restore_config: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `true`: a write of an equal value creates no new version. */
                "If-Changed"?: "true" | "false";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Kind of config record. */
                kind: "agents" | "models" | "providers";
                /** @description Id of the record. */
                record_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VersionToRestore"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"] | (components["schemas"]["DryRun"] & components["schemas"]["Record"]);
                };
            };
        };
    };
    replay_delivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the delivery. Send a slash in it as %2F. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    diff_entry: {
        parameters: {
            query: {
                /** @description Version of the old value. */
                from: number;
                /** @description Version of the new value. */
                to: number;
            };
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Diff"];
                };
            };
        };
    };
    list_dispatches: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only dispatches of this thread. */
                thread_id?: string;
                /** @description Only dispatches for this agent. */
                agent_id?: string;
                /** @description Only dispatches with this status. */
                status?: "Queued" | "Claimed" | "Acked" | "Cancelled" | "Superseded" | "DeadLetter";
                /** @description Only dispatches with this key. */
                dedupe_key?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DispatchPage"];
                };
            };
        };
    };
    claim_dispatches: {
        parameters: {
            query?: {
                /** @description Long polling: hold the response for up to so many seconds, until there is news. */
                wait?: number;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClaimRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Claims"];
                };
            };
        };
    };
    clear_dead_letters: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeadLetterScope"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
        };
    };
    count_dispatches: {
        parameters: {
            query?: {
                /** @description Only dispatches of this thread. */
                thread_id?: string;
                /** @description Only dispatches for this agent. */
                agent_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DispatchCounts"];
                };
            };
        };
    };
    replay_dead_letters: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeadLetterScope"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Replayed"] | (components["schemas"]["DryRun"] & components["schemas"]["Replayed"]);
                };
            };
        };
    };
    get_dispatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the dispatch. Send a slash in it as %2F. */
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    ack_dispatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the dispatch. Send a slash in it as %2F. */
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Acknowledgement"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    cancel_dispatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the dispatch. Send a slash in it as %2F. */
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    extend_dispatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the dispatch. Send a slash in it as %2F. */
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Extension"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    nack_dispatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the dispatch. Send a slash in it as %2F. */
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NegativeAcknowledgement"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    replay_dispatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the dispatch. Send a slash in it as %2F. */
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    erase: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ErasureRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"] | (components["schemas"]["DryRun"] & components["schemas"]["Erasure"]);
                };
            };
        };
    };
    read_history: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description `value`: the items have their values. Default: without values. */
                include?: "value";
            };
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryVersionPage"];
                };
            };
        };
    };
    pin_version: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VersionPin"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryVersion"];
                };
            };
        };
    };
    list_key: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
                /** @description `value`: the items have their values. Default: without values. */
                include?: "value";
            };
            header?: never;
            path: {
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryRowPage"];
                };
            };
        };
    };
    clear_key: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
        };
    };
    get_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
        };
    };
    list_members: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberPage"];
                };
            };
        };
    };
    add_member: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMember"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invitation"];
                };
            };
        };
    };
    get_member: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the member. Send a slash in it as %2F. */
                member_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
        };
    };
    remove_member: {
        parameters: {
            query?: {
                /** @description `true`: also revoke the API tokens that the person created in this workspace, for good. A token may revoke itself in this way: this request is then its last one. */
                revoke_tokens?: boolean;
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the member. Send a slash in it as %2F. */
                member_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["MemberRemoval"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    change_member: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the member. Send a slash in it as %2F. */
                member_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemberChange"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
        };
    };
    invite_member: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the member. Send a slash in it as %2F. */
                member_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invitation"];
                };
            };
        };
    };
    end_member_sessions: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the member. Send a slash in it as %2F. */
                member_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndedSessions"] | (components["schemas"]["DryRun"] & components["schemas"]["EndedSessions"]);
                };
            };
        };
    };
    list_namespaces: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
                /** @description Only namespaces whose name begins with this. */
                prefix?: string;
                /** @description Only namespaces of this plugin. */
                plugin?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NamespacePage"];
                };
            };
        };
    };
    get_namespace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
        };
    };
    register_namespace: {
        parameters: {
            query?: {
                /** @description If the namespace is registered: `replace` its definition, `accept` it if it is compatible, or `update` the members that the body contains and keep the others. */
                if_exists?: "accept" | "replace" | "update";
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NamespaceDefinition"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"] | (components["schemas"]["DryRun"] & components["schemas"]["RegistrationPreview"]);
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
        };
    };
    unregister_namespace: {
        parameters: {
            query?: {
                /** @description What happens to live entries. `retain` keeps them: they are listed, but not usable until the name is registered again. `delete` deletes them. Required if there are any. */
                entries?: "delete" | "retain";
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["NamespaceRemoval"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    preview_history_compaction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryPreview"];
                };
            };
        };
    };
    request_history_compaction: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["HistoryPreview"];
                };
            };
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
        };
    };
    list_plugins: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PluginSummaryPage"];
                };
            };
        };
    };
    get_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plugin"];
                };
            };
        };
    };
    install_plugin: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Installation"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["Plugin"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plugin"];
                };
            };
        };
    };
    uninstall_plugin: {
        parameters: {
            query?: {
                /** @description Required if namespaces of the plugin have live entries. `retain` keeps them: they are listed, but not usable until the namespace is registered again. `delete` deletes them. */
                entries?: "delete" | "retain";
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["PluginRemoval"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_readers: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only reads of this version; 0: of its absence. */
                version?: number;
            };
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryReaderPage"];
                };
            };
        };
    };
    redact_entry: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RedactionRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Redaction"] | (components["schemas"]["DryRun"] & components["schemas"]["Redaction"]);
                };
            };
        };
    };
    restore_entries: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Moment"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Restoration"] | (components["schemas"]["DryRun"] & components["schemas"]["Restoration"]);
                };
            };
        };
    };
    restore_entry: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `true`: a write of an equal value creates no new version. */
                "If-Changed"?: "true" | "false";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VersionToRestore"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"] | (components["schemas"]["DryRun"] & components["schemas"]["Entry"]);
                };
            };
        };
    };
    list_reverts: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only reverts of this request. */
                request_id?: string;
                /** @description Only reverts with this status. */
                status?: "queued" | "running" | "done" | "failed" | "cancelled";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevertPage"];
                };
            };
        };
    };
    request_revert: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RevertRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["Revert"];
                };
            };
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Revert"];
                };
            };
        };
    };
    get_revert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the revert. Send a slash in it as %2F. */
                revert_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Revert"];
                };
            };
        };
    };
    cancel_revert: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the revert. Send a slash in it as %2F. */
                revert_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Revert"];
                };
            };
        };
    };
    list_skipped_entries: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                /** @description Id of the revert. Send a slash in it as %2F. */
                revert_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SkippedEntryPage"];
                };
            };
        };
    };
    list_runs: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only runs of this thread. */
                thread_id?: string;
                /** @description Only runs with this status. */
                status?: "created" | "running" | "waiting" | "done";
                /** @description Only runs of this agent. */
                agent_id?: string;
                /** @description `true`: only runs that a person should look at. */
                stuck?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunPage"];
                };
            };
        };
    };
    cancel_runs: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Selection"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ItemResults"] | (components["schemas"]["DryRun"] & components["schemas"]["ItemResults"]);
                };
            };
        };
    };
    get_run: {
        parameters: {
            query?: {
                /** @description Long polling: hold the response for up to so many seconds, until there is news. */
                wait?: number;
                /** @description With `wait`: news is a `last_revision` greater than this one. Default: the current one. */
                since?: number;
            };
            header?: never;
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    change_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunChange"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    cancel_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    commit: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Commit"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Committed"] | (components["schemas"]["DryRun"] & components["schemas"]["Committed"]);
                };
            };
        };
    };
    fail_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RunFailure"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    heartbeat_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Heartbeat"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    read_knowledge: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Which revision of the run, from 1. Default: the newest. Excludes `revision`. */
                step?: number;
                /** @description Which revision of the thread. Excludes `step`. */
                revision?: number;
            };
            header?: never;
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Knowledge"];
                };
            };
        };
    };
    take_lease: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LeaseRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    release_lease: {
        parameters: {
            query?: {
                /** @description The worker's fencing token; refused if it is not the newest. */
                fencing_token?: number;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    list_run_reads: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description `true`: only reads of a version that is not current now, or was not current when the step was committed. */
                stale?: boolean;
            };
            header?: never;
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunReadPage"];
                };
            };
        };
    };
    resume_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RunRecovery"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    list_run_tickets: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                /** @description Id of the run. Send a slash in it as %2F. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TicketPage"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Search"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HitPage"];
                };
            };
        };
    };
    list_state: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description Only entries whose key begins with this. */
                prefix?: string;
                /** @description Only entries with this scope. */
                scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
                /** @description Only entries written at that time or later. */
                updated_since?: string;
                /** @description Only entries with this tag. May be repeated: entries that have all of them. */
                tag?: string[];
                /** @description The same for several tags, separated by commas: `tags=draft,urgent`. */
                tags?: string[];
                /** @description Only entries whose value the current schema accepts, or refuses. */
                valid?: boolean;
                /** @description `value`: the items have their values. Default: without values. */
                include?: "value";
                /** @description Only entries in namespaces of this plugin. */
                plugin?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryRowPage"];
                };
            };
        };
    };
    clear_state: {
        parameters: {
            query?: {
                /** @description Only entries whose key begins with this. */
                prefix?: string;
                /** @description Only entries with this scope. */
                scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
                /** @description Delete at most this many entries, in no particular order; `matched` is then at most this number. Repeat the request until `deleted` is 0. Default: all that match; refused if there are more than 100,000. */
                limit?: number;
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
        };
    };
    list_state_keys: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKeyPage"];
                };
            };
        };
    };
    get_state_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKey"];
                };
            };
        };
    };
    register_state_key: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StateKeyDefinition"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKey"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKey"];
                };
            };
        };
    };
    unregister_state_key: {
        parameters: {
            query?: {
                /** @description `retain`: values of the key stay readable in the threads. `clear`: they are removed, as one revision of each thread. */
                values?: "retain" | "clear";
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["StateKeyRemoval"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    run_batch: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description `return=minimal` (RFC 7240): the response has the version of what was written, but not the value. Other preferences are ignored, and so is this one in a dry run. */
                Prefer?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Batch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchResults"] | (components["schemas"]["DryRun"] & components["schemas"]["BatchResults"]);
                };
            };
        };
    };
    list_entries: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description Only entries whose key begins with this. */
                prefix?: string;
                /** @description Only entries with this scope. */
                scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
                /** @description Only entries written at that time or later. */
                updated_since?: string;
                /** @description Only entries with this tag. May be repeated: entries that have all of them. */
                tag?: string[];
                /** @description The same for several tags, separated by commas: `tags=draft,urgent`. */
                tags?: string[];
                /** @description Only entries whose value the current schema accepts, or refuses. */
                valid?: boolean;
                /** @description `value`: the items have their values. Default: without values. */
                include?: "value";
                /** @description By key, ascending or descending. */
                order?: "asc" | "desc";
                /** @description Only entries whose key is less than this. */
                before?: string;
            };
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryRowPage"];
                };
            };
        };
    };
    clear_namespace: {
        parameters: {
            query?: {
                /** @description Only entries whose key begins with this. */
                prefix?: string;
                /** @description Only entries with this scope. */
                scope_kind?: "agent_type" | "custom" | "global" | "parent_thread" | "system" | "thread";
                /** @description Delete at most this many entries, in no particular order; `matched` is then at most this number. Repeat the request until `deleted` is 0. Default: all that match; refused if there are more than 100,000. */
                limit?: number;
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
        };
    };
    read_entry: {
        parameters: {
            query?: {
                /** @description Long polling: hold the response for up to so many seconds, until there is news. */
                wait?: number;
                /** @description Read the value that this version had. */
                at_version?: number;
                /** @description Read the value that the entry had at this time. */
                at?: string;
                /** @description With `wait`: return when the version is higher than this one, also if the entry was deleted or has expired. Default: the version when the request arrives. */
                since?: number;
            };
            header?: {
                /** @description An ETag: 304 if the version is still this one. */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    write_entry: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `true`: a write of an equal value creates no new version. */
                "If-Changed"?: "true" | "false";
                /** @description `merge`, together with If-Match: merge with concurrent changes that do not overlap instead of refusing the write. Objects are merged by member, arrays by item. */
                "On-Conflict"?: "merge";
                /** @description `return=minimal` (RFC 7240): the response has the version of what was written, but not the value. Other preferences are ignored, and so is this one in a dry run. */
                Prefer?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Write"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"] | (components["schemas"]["DryRun"] & components["schemas"]["Entry"]);
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Stored */
            204: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    delete_entry: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `merge`, together with If-Match: merge with concurrent changes that do not overlap instead of refusing the write. Objects are merged by member, arrays by item. */
                "On-Conflict"?: "merge";
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["Cleared"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    patch_entry: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description `*`: create only, never replace. */
                "If-None-Match"?: "*";
                /** @description `true`: a write of an equal value creates no new version. */
                "If-Changed"?: "true" | "false";
                /** @description `merge`, together with If-Match: merge with concurrent changes that do not overlap instead of refusing the write. Objects are merged by member, arrays by item. */
                "On-Conflict"?: "merge";
                /** @description `return=minimal` (RFC 7240): the response has the version of what was written, but not the value. Other preferences are ignored, and so is this one in a dry run. */
                Prefer?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Name of the namespace. */
                namespace: string;
                /** @description Key within the namespace, such as `global` or `thread::thread-1`. Slashes may be sent as they are. */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json-patch+json": unknown;
                "application/merge-patch+json": unknown;
                "application/vnd.commonhold.update+json": unknown;
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"] | (components["schemas"]["DryRun"] & components["schemas"]["Entry"]);
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Stored */
            204: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_threads: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only threads with this `resource_id`. */
                resource_id?: string;
                /** @description Only children of this thread. */
                parent_thread_id?: string;
                /** @description `true`: only threads without a parent. Excludes `parent_thread_id`. */
                root?: boolean;
                /** @description Only threads whose id begins with this. */
                prefix?: string;
                /** @description Only threads whose title has words that begin with each word of this, in any case. */
                text?: string;
                /** @description Only forks of this thread. */
                forked_from?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ThreadPage"];
                };
            };
        };
    };
    create_thread: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewThread"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
        };
    };
    delete_threads: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadSelection"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ItemResults"] | (components["schemas"]["DryRun"] & components["schemas"]["ItemResults"]);
                };
            };
        };
    };
    get_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
        };
    };
    delete_thread: {
        parameters: {
            query?: {
                /** @description What happens to child threads: `detach` makes them roots, `cascade` deletes them too, `reject` refuses the deletion if there are any. */
                children?: "detach" | "reject" | "cascade";
                /** @description Delete only if the state is at this revision. */
                expected_revision?: number;
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["ThreadDeletion"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    change_thread: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadChange"];
                "application/merge-patch+json": components["schemas"]["ThreadChange"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
        };
    };
    watch_thread: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the last event received; the stream continues after it. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    join_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunAgentInput"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    preview_compaction: {
        parameters: {
            query?: {
                /** @description `context`: summarize messages. `snapshot`: remove old snapshots. */
                kind?: "context" | "snapshot";
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPreview"] | components["schemas"]["SnapshotPreview"];
                };
            };
        };
    };
    request_compaction: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompactionRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": (components["schemas"]["DryRun"] & components["schemas"]["CompactionPreview"]) | (components["schemas"]["DryRun"] & components["schemas"]["SnapshotPreview"]);
                };
            };
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
        };
    };
    read_context: {
        parameters: {
            query?: {
                /** @description Leave out the oldest messages so that the rest has at most this number of estimated tokens. A tool call is never separated from its results. */
                max_tokens?: number;
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Context"];
                };
            };
        };
    };
    diff_snapshots: {
        parameters: {
            query: {
                /** @description Revision to compare from. */
                from: number;
                /** @description Revision to compare to. */
                to: number;
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Diff"];
                };
            };
        };
    };
    enqueue_dispatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDispatch"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
        };
    };
    fork_thread: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewFork"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
        };
    };
    import_snapshot: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SnapshotImport"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportedSnapshot"] | (components["schemas"]["DryRun"] & components["schemas"]["ImportedSnapshot"]);
                };
            };
        };
    };
    interrupt_thread: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Interruption"] | (components["schemas"]["DryRun"] & components["schemas"]["Interruption"]);
                };
            };
        };
    };
    read_lineage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lineage"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
                /** @description Only messages with a greater `seq`. */
                after?: number;
                /** @description Only messages with a smaller `seq`. */
                before?: number;
                /** @description `external`: those that people see; `internal`: the others; `all`: both. */
                visibility?: "external" | "internal" | "all";
                /** @description Only messages that this run committed. */
                run_id?: string;
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
        };
    };
    append_messages: {
        parameters: {
            query?: never;
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMessages"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Appended"];
                };
            };
        };
    };
    restore_snapshot: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description Perform the operation only if the current version or revision is this one: the ETag of a previous response, with its quotes. */
                "If-Match"?: string;
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SnapshotRestoration"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"] | (components["schemas"]["DryRun"] & components["schemas"]["Snapshot"]);
                };
            };
        };
    };
    start_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRun"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    list_snapshots: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevisionPage"];
                };
            };
        };
    };
    mark_snapshot: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
                /** @description Revision of the thread's state. */
                revision: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SnapshotMark"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Revision"];
                };
            };
        };
    };
    read_state: {
        parameters: {
            query?: {
                /** @description The state at this revision. Default: the newest. */
                revision?: number;
                /** @description Only keys with this scope. */
                scope?: "run" | "thread";
                /** @description `true`: only what another thread or server can import: the values of state keys that are registered and persistent. */
                export?: boolean;
            };
            header?: {
                /** @description An ETag: 304 if the version is still this one. */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_ui_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UIMessage"][];
                };
            };
        };
    };
    stream_ui_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "x-vercel-ai-ui-message-stream": components["headers"]["x-vercel-ai-ui-message-stream"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "x-vercel-ai-ui-message-stream": components["headers"]["x-vercel-ai-ui-message-stream"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_tickets: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only tickets with this status. */
                status?: "pending" | "resumed" | "cancelled" | "void";
                /** @description Only tickets of this thread. */
                thread_id?: string;
                /** @description Only tickets of this run. */
                run_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TicketPage"];
                };
            };
        };
    };
    get_ticket: {
        parameters: {
            query?: {
                /** @description Long polling: hold the response for up to so many seconds, until there is news. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description Id of the ticket. Send a slash in it as %2F. */
                ticket_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ticket"];
                };
            };
        };
    };
    decide_ticket: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the ticket. Send a slash in it as %2F. */
                ticket_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Decision"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ticket"];
                };
            };
        };
    };
    list_tokens: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenPage"];
                };
            };
        };
    };
    create_token: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewToken"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
        };
    };
    get_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the token. Send a slash in it as %2F. */
                token_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
        };
    };
    revoke_token: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the token. Send a slash in it as %2F. */
                token_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    change_token: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the token. Send a slash in it as %2F. */
                token_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenChanges"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"] | (components["schemas"]["DryRun"] & components["schemas"]["Token"]);
                };
            };
        };
    };
    rotate_token: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the token. Send a slash in it as %2F. */
                token_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Rotation"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
        };
    };
    get_usage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
        };
    };
    list_storage: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description What to list: the workspace, its namespaces, or its largest threads. */
                group?: "workspace" | "namespace" | "thread";
                /** @description Length of the series `days`. */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoragePage"];
                };
            };
        };
    };
    measure_namespace: {
        parameters: {
            query?: {
                /** @description Length of the series `days`. */
                days?: number;
            };
            header?: never;
            path: {
                /** @description Name of the namespace. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Storage"];
                };
            };
        };
    };
    measure_thread: {
        parameters: {
            query?: {
                /** @description Length of the series `days`. */
                days?: number;
            };
            header?: never;
            path: {
                /** @description Id of the thread. Send a slash in it as %2F. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Storage"];
                };
            };
        };
    };
    get_version: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Version"];
                };
            };
        };
    };
    list_webhooks: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only webhooks with this status. */
                status?: "active" | "paused" | "disabled";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookPage"];
                };
            };
        };
    };
    create_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    get_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    delete_webhook: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    change_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChanges"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    list_deliveries: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `asc`: in the reverse order, oldest first. */
                order?: "asc" | "desc";
                /** @description Only deliveries with this status. */
                status?: "queued" | "delivering" | "delivered" | "failed" | "dead";
            };
            header?: never;
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Read-From": components["headers"]["Read-From"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryPage"];
                };
            };
        };
    };
    pause_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    replay_webhook: {
        parameters: {
            query?: {
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Replay"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["WebhookReplayed"];
                };
            };
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookReplayed"];
                };
            };
        };
    };
    resume_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Resumption"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    rotate_webhook_secret: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SecretRotation"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    test_webhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Id of the webhook. Send a slash in it as %2F. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted; processed in the background */
            202: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    list_workspaces: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description Position to continue from: `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Only items created at this time or later. */
                created_after?: string;
                /** @description Only items created before this time. */
                created_before?: string;
                /** @description `desc`: in the reverse order, from the last item. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkspacePage"];
                };
            };
        };
    };
    create_workspace: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWorkspace"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
        };
    };
    get_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Slug of the workspace. */
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
        };
    };
    delete_workspace: {
        parameters: {
            query?: {
                /** @description `delete`: also if the workspace has entries or threads. Required if it has any. */
                contents?: "delete";
                /** @description `true`: validate and count, but change nothing. The response has `dry_run: true`. */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Slug of the workspace. */
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["WorkspaceRemoval"];
                };
            };
            /** @description Deleted, or already absent */
            204: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    change_workspace: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Slug of the workspace. */
                workspace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkspaceChange"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workspace"];
                };
            };
        };
    };
    create_workspace_token: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of this request. A repetition with the same key within 24 hours returns the first response and does nothing. */
                "Idempotency-Key"?: string;
                /** @description Why the change is made; kept in history and audit. UTF-8. */
                "Change-Reason"?: string;
                /** @description The run on whose behalf the change is made; kept in history and audit. UTF-8. */
                "Run-Id"?: string;
            };
            path: {
                /** @description Slug of the workspace. */
                workspace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewToken"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
        };
    };
}
