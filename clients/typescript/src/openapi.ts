// Made from docs/openapi.json by `make client-types`; do not edit.
// sha256 of docs/openapi.json: 200247432ce65ead8d6a7ad4200dc86cbebfb2635add398285f7ca6601ac3ec7

export interface paths {
    "/api/v1/access/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description What a token (`token_id`) or a member (`username`) may do with a namespace, a key in it
         *     or a thread, and why.
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
        /** @description The item at `namespace` (labels joined by full stops) and `key`, or null. */
        get: operations["get_store_item"];
        /**
         * @description Store an item; the last write wins, or with If-Match (its `version`) only on top of what
         *     was read. `ttl` is in minutes. The first item of an admin registers the namespace.
         */
        put: operations["put_store_item"];
        post?: never;
        /** @description Delete an item, if it is there; with If-Match only that version. */
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
         * @description Items below `namespace_prefix`, newest change first: those that fit `filter` (equality, $eq
         *     $ne $gt $gte $lt $lte) and hold the words of `query`.
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
         * @description The namespaces that hold items, in order; `prefix` and `suffix` may hold `*` for any label,
         *     `max_depth` cuts.
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
         * @description Make a thread. One that is there already is a 409, or the answer with `if_exists`
         *     do_nothing. Ids are any of ours, not only UUIDs.
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
        /** @description How many threads fit, as a number. */
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
         * @description Threads whose `metadata` and `values` hold what is asked, by `status` and `ids`; newest first.
         *     The headers X-Pagination-Total and X-Pagination-Next go with it.
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
        /** @description A thread with its state and messages. */
        get: operations["get_agent_thread"];
        put?: never;
        post?: never;
        /** @description Delete a thread with all that belongs to it; its children stay. */
        delete: operations["delete_agent_thread"];
        options?: never;
        head?: never;
        /**
         * @description Merge `metadata`, set `values` as a new checkpoint, append `messages`: all or nothing. With a
         *     `checkpoint` only while that is the newest (409).
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
        /** @description A new thread with the same state and messages. */
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
        /** @description The kept checkpoints, newest first; `limit`, `before` a checkpoint id. */
        get: operations["list_agent_history"];
        put?: never;
        /** @description The kept checkpoints, newest first. */
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
        /** @description The state now. */
        get: operations["get_agent_state"];
        put?: never;
        /**
         * @description Set `values` as a new checkpoint; with `checkpoint_id` or `checkpoint` only while that is the
         *     newest (409): state does not branch here, copy the thread for that.
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
        /** @description The state at a checkpoint given as a whole. */
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
        /** @description The state at a checkpoint. */
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
        /** @description The audit, newest first, by any of its columns. */
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
        /** @description Who set each path of the entry, in which version, request and run. */
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
         * @description Changes in commit order behind `after`; with `wait` the answer waits for the first.
         *
         *     `next_cursor` is always there: pass it as `after` to go on without gap or repeat.
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
        /** @description Changes as server-sent events: behind `Last-Event-ID` or `after`, else from now on. */
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
        /** @description The workspace's compaction policy and those of agents. A thread's is with the thread. */
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
        /** @description What it says itself, and what holds there, with the source of each field. */
        get: operations["get_agent_policy"];
        /** @description Replace what it says. Jobs that are queued keep the policy they were asked for with. */
        put: operations["put_agent_policy"];
        post?: never;
        /** @description Take back all that it says. */
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
        /** @description What it says itself, and what holds there, with the source of each field. */
        get: operations["get_thread_policy"];
        /** @description Replace what it says. Jobs that are queued keep the policy they were asked for with. */
        put: operations["put_thread_policy"];
        post?: never;
        /** @description Take back all that it says. */
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
        /** @description What it says itself, and what holds there, with the source of each field. */
        get: operations["get_workspace_policy"];
        /** @description Replace what it says. Jobs that are queued keep the policy they were asked for with. */
        put: operations["put_workspace_policy"];
        post?: never;
        /** @description Take back all that it says. */
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
        /** @description Compactions, newest first, by thread, kind or status. */
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
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
        /** @description The messages that the summary stands for, as they are in the log, in order. */
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
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
         * @description Lift the fold: the context shows the original messages again. 409 with `later` while a
         *     later compaction stands on it.
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
        /** @description The records of a kind, by id. `include=value` brings the values, with markers. */
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
        /** @description One record; a marker stands for each secret. */
        get: operations["read_config"];
        /**
         * @description Write a record. A string sets its secret, the marker that was read keeps it, null or
         *     nothing clears it.
         */
        put: operations["write_config"];
        post?: never;
        /**
         * @description Delete a record and its secrets; 409 with `dependents` while others name it, unless
         *     `?force=true`. `?dry_run=true` only tells who does; `hidden` counts those that the token does
         *     not see.
         */
        delete: operations["delete_config"];
        options?: never;
        head?: never;
        /** @description Patch a record on the server, by the media types of entries. */
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
        /** @description The records that name this one, and where. */
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
        /** @description Every kept version, newest first. `include=value` brings the values, with markers. */
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
        /** @description Write a new version equal to an old one; secrets stay as they are now. */
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
        /** @description Deliver one again, or try one that failed now instead of later. */
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
        /** @description What changed between two versions: as JSON Patch, and as rows for people. */
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
        /** @description Dispatches, newest first, by thread, agent, status; `status=DeadLetter` for the dead. */
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
         * @description Claim up to `limit` dispatches, each of another thread; with `wait` not before there is
         *     one. `claim_token` is shown here only: extend, ack and nack ask for it.
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
        /** @description Delete dead letters for good, of one thread or agent or all. */
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
        /** @description How many there are of each status, of a thread, an agent, or all. */
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
        /** @description Replay all dead letters, of one thread or agent or all. */
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
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
        /** @description Delivered, which does not say that the work succeeded. */
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
        /** @description Take a queued one out of the line. */
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
        /** @description Let the lease end `lease_seconds` from now. */
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
        /** @description Give it back: tried again after `retry_after` seconds or the usual pause, or dead. */
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
        /** @description Put a dead letter back into line, with all its attempts. */
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
         * @description Erase everything of one `resource_id`, or of one `key` over all namespaces, history
         *     included, for good. Needs a token that is not narrowed.
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
        /** @description Every kept version, newest first. `include=value` brings the values. */
        get: operations["read_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** @description Pin a version, so that history compaction keeps it, or let it go. */
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
        /** @description Everything under one key over all namespaces, unregistered ones too. */
        get: operations["list_key"];
        put?: never;
        post?: never;
        /** @description Delete everything under one key. */
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
        /** @description What this token is and may do. */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
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
        /** @description Registered namespaces, by name; not those of the config registry. */
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
        /** @description One namespace. ETag is its schema version. */
        get: operations["get_namespace"];
        /**
         * @description Register, or replace what is registered. `If-Match` names the schema version to replace,
         *     and `If-None-Match: *` only registers. `?dry_run=true` returns the entries that a new schema
         *     would make invalid.
         *
         *     `?if_exists=accept` never changes a registered namespace: the registered definition is
         *     returned if it is compatible, otherwise the response is 409 `schema-conflict` and `errors`
         *     lists the differences. Schemas are compatible if they are the same except for optional
         *     fields: `properties` of one schema that the other lacks, that neither requires, and that
         *     the other allows (it does not restrict `additionalProperties`). Annotations such as `title`
         *     and `description` do not count. Defaults may differ by such fields only. A `schema` or
         *     `default` that the body omits is compatible; the other members of the body are used only
         *     when the namespace is created.
         */
        put: operations["register_namespace"];
        post?: never;
        /** @description Unregister. With live entries choose `?entries=retain` or `?entries=delete`. */
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
        /** @description How many versions the namespace's entries have, and how many would go now. */
        get: operations["preview_history_compaction"];
        put?: never;
        /**
         * @description Remove the versions that the namespace's `history` no longer keeps. They do not come back.
         *     202: a worker does it; follow the id.
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
        /** @description Installed plugins, by name, with the names of what belongs to them. */
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
        /** @description A plugin with its state keys and namespaces as they are now. */
        get: operations["get_plugin"];
        /** @description Install: all its state keys and namespaces, or none. */
        put: operations["install_plugin"];
        post?: never;
        /**
         * @description Uninstall: clear its values in every thread but those it retains, then unregister. With
         *     live entries choose `?entries=retain` or `?entries=delete`; `?dry_run=true` only counts.
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
        /** @description Who acted on this value: the steps of runs that read the entry, or one version of it. */
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
         * @description Remove what stands at `pointers` (none: the whole value) from every version, for good.
         *     A tombstone `{"$redacted": true}` takes its place.
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
         * @description Take a key, a prefix, a scope kind or a namespace back to a moment, as new versions.
         *     All or none. The answer shows the first hundred changes.
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
        /** @description Write a new version equal to an old one; with `If-Match` it refuses to clobber. */
        post: operations["restore_entry"];
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
        /** @description Runs, newest first, by thread, status, agent; `stuck=true` for those in trouble. */
        get: operations["list_runs"];
        put?: never;
        post?: never;
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
        /** @description A run. `wait=30&since={last_revision}` answers when it has a newer revision. */
        get: operations["get_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * @description Move a run between statuses, or update its counts (totals, not increments); with
         *     `If-Match` only while its last revision is that.
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
        /** @description End the run as cancelled; its pending tickets become void. `If-Match` as for a change. */
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
         * @description The atomic step: updates, messages and run fields land together, as one revision.
         *     `If-Match` is its `base_revision`.
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
        /** @description End the run with an error; its pending tickets become void. `If-Match` as for a change. */
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
        /** @description Renew the lease. */
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
        /** @description What the run could see at a step: its thread's state, and every entry of its scopes. */
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
        /** @description Take the run over: a new fencing token; the worker before is refused from now on. */
        post: operations["take_lease"];
        /** @description Take the run from its worker, or give it back (`?fencing_token=`). */
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
        /** @description The versions that the run says it read, newest first; `stale=true`: those overtaken. */
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
        /** @description Let the run go on, from the state of `revision` if given, with a new fencing token. */
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
        /** @description The tickets of a run, in the order they were opened. */
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
         * @description Live entries whose strings hold all words of `text` (`word*`, `"a phrase"`) and whose
         *     value at each `path` of `where` equals `equals`. Newest entry first. A page may be short:
         *     there is more as long as there is a `next_cursor`.
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
         * @description Live entries of all namespaces, unregistered ones too, or of those of a `plugin`, by
         *     namespace and key. `include=value` brings the values. With filters a page may come short:
         *     `next_cursor` goes on.
         */
        get: operations["list_state"];
        put?: never;
        post?: never;
        /**
         * @description Delete the entries of all namespaces, unregistered ones too, by `prefix` or
         *     `scope_kind`. All or none.
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
        /** @description Registered state keys, by name. */
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
         */
        get: operations["get_state_key"];
        /** @description Register, or change. Idempotent. */
        put: operations["register_state_key"];
        post?: never;
        /**
         * @description Unregister. What threads hold of it stays readable and comes back with the name;
         *     `?values=clear` clears it, as one revision of each thread. `?dry_run=true` only counts.
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
        /** @description 1 to 1,000 gets, puts, patches and deletes. `atomic` (the default): all or nothing. */
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
         * @description Live entries of a namespace, by key; `order=desc` from the last one, `before` a key.
         *     `include=value` brings the values. With `valid` a page may come short: `next_cursor` goes
         *     on.
         */
        get: operations["list_entries"];
        put?: never;
        post?: never;
        /** @description Delete every entry of a namespace, or those of a `prefix` or `scope_kind`. All or none. */
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
         * @description The entry, or the namespace's default with version 0. `at_version` and `at` read the
         *     past; `wait` and `since` wait for a version newer than `since`.
         */
        get: operations["read_entry"];
        /** @description Write. `If-Match` compares, `If-None-Match: *` creates, neither: last write wins. */
        put: operations["write_entry"];
        post?: never;
        /** @description Delete; again changes nothing. History and the version counter stay. */
        delete: operations["delete_entry"];
        options?: never;
        head?: never;
        /** @description Patch on the server: a merge patch, a JSON patch, or update operations, by media type. */
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
        /** @description Threads, newest first; by resource, parent, root or what they were forked from. */
        get: operations["list_threads"];
        put?: never;
        /** @description Make a thread. The same id and content again: 200 with what is stored. */
        post: operations["create_thread"];
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
         */
        get: operations["get_thread"];
        put?: never;
        post?: never;
        /**
         * @description Delete with all that belongs to it. `children=detach|reject|cascade`; `dry_run=true`
         *     counts what it would delete; with `If-Match` only while the thread is at that version, with
         *     `expected_revision` only while its state is at that revision.
         */
        delete: operations["delete_thread"];
        options?: never;
        head?: never;
        /**
         * @description Change title, metadata, resource, parent or compaction policy, as one new version; with
         *     `If-Match` only while the thread is at that version. As `application/merge-patch+json` the
         *     given metadata and policy merge with the stored ones (RFC 7396); else they replace them.
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
         * @description The thread as AG-UI events for onlookers: STATE_SNAPSHOT and MESSAGES_SNAPSHOT first, then
         *     what changes, over all runs. With `Last-Event-ID` also the runs missed.
         */
        get: operations["watch_thread"];
        put?: never;
        /**
         * @description One run as AG-UI events, for AG-UI's HttpAgent: the run `runId` of the thread, else the
         *     active one, until it ends or waits. Without one: the thread as it is.
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
         * @description What compaction would do to this thread now, and why: `would_fold` or `skip`. The summary
         *     can have `tokens_after` at most, so `savings_ratio` is the least; `problem` says why nobody
         *     could write it now, `warning` what to know before. `?kind=snapshot`: how many snapshots and rows would go.
         */
        get: operations["preview_compaction"];
        put?: never;
        /**
         * @description Ask for a compaction of the thread's context, or with `kind: snapshot` of its old snapshots:
         *     an admin's, because they do not come back. 202: a worker does it; follow the id.
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
         * @description What a model should see: folded beginning as summary, then the rest; within
         *     `max_tokens`, never cut between a tool call and its results.
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
        /** @description What changed in state between two revisions. */
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
        /** @description Put work into the thread's mailbox. While one with the same `dedupe_key` is open: 409. */
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
         * @description Copy state at `revision` and the first `message_count` messages into a new thread that
         *     shares nothing with this one. The same id and content again: 200 with what is stored.
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
         * @description Take an exported snapshot as a new revision. `mode` replace (default) or merge;
         *     `unknown_keys` error (default) or skip.
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
        /** @description Supersede all that is queued, under a new epoch; says who is still at work. */
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
        /** @description The threads above this one, nearest first; how many are below it and copied from it. */
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
        /** @description The log. `after`, `before` (seq), `order`, `visibility=external|internal|all`, `run_id`. */
        get: operations["list_messages"];
        put?: never;
        /**
         * @description Append messages; `expected_message_count` guards against a log that moved, `If-Match`
         *     against a state that did. `operations` on entries, as of an atomic batch, land together
         *     with them or not at all.
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
        /** @description Make a new revision whose state equals an old one. */
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
        /** @description Start a run: clears what belonged to the run before, as one revision. */
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
        /** @description The revisions of a thread, newest first: what each touched, by whom, why. */
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
        /** @description Label or pin a revision, so that compaction keeps it. */
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
         * @description The state now, or at `?revision=`; `?scope=run|thread` narrows it. `?export=true`: only
         *     what another place can take, the values of registered and persistent keys.
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
        /** @description The thread as UIMessage[] of the AI SDK: the newest, in order, without internal ones. */
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
         * @description The reply of the active run as a UI message stream, from its beginning until the run ends
         *     or waits. 204 when no run is active: there is nothing to resume.
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
        /** @description Tickets, newest first; `status=pending` is the inbox. */
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
        /** @description A ticket. `wait=30` answers when it is no longer pending. */
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
        /** @description Resume with a payload, or cancel. The first decision wins. */
        post: operations["decide_ticket"];
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
        /** @description What the workspace holds, as last measured, and what it may hold. */
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
         * @description What was stored at the last measurement, with a sample for each day: of the workspace, or
         *     of its namespaces or its largest threads, biggest first.
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
         * @description What a namespace holds now. `exact` false: it is too large for that, and this is what the
         *     last sweep found.
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
         * @description What a thread holds now. `exact` false: it is too large for that, and this is what the
         *     last sweep found.
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
    "/api/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Webhooks, newest first, with what waits and what was given up. */
        get: operations["list_webhooks"];
        put?: never;
        /** @description Make a webhook. The answer holds its signing secret, which is never shown again. */
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
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
         */
        get: operations["get_webhook"];
        put?: never;
        post?: never;
        /**
         * @description One path. `roles` names the role a method needs; without a word: viewer to read, editor to
         *     write. Services check again: an interface can forget.
         */
        delete: operations["delete_webhook"];
        options?: never;
        head?: never;
        /** @description Change name, URL or filter; a filter is replaced as a whole. */
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
        /** @description Deliveries, newest first, by status. */
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
        /** @description Send nothing more for now. Its place in the feed is kept as long as changes are. */
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
        /** @description Send again: all dead letters, or every wanted change behind a cursor. */
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
        /** @description Go on where it stopped; with `skip`, from now. */
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
         * @description A new secret, shown once; the former one goes on signing beside it for a day, or for
         *     `overlap_seconds`.
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
        /** @description Send a test event, once, whatever the status. 202: a worker does it; see deliveries. */
        post: operations["test_webhook"];
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
        AckBody: {
            claim_token: string;
        };
        AgentState: Record<string, unknown>;
        AgentThread: {
            /** Format: date-time */
            created_at: string;
            interrupts: Record<string, unknown>;
            metadata: Record<string, unknown>;
            /** @enum {string} */
            status: "idle" | "busy" | "interrupted" | "error";
            thread_id: string;
            /** Format: date-time */
            updated_at: string;
            values: Record<string, unknown>;
        };
        Appended: {
            message_count: number;
            messages: {
                id: string;
                seq: number;
            }[];
            results?: components["schemas"]["BatchResult"][];
        };
        Attribution: {
            actor: string;
            actor_kind: string;
            /** Format: date-time */
            at: string;
            /** @enum {string} */
            operation: "put" | "patch" | "delete" | "restore" | "expire" | "import" | "redact";
            pointer: string;
            reason: string;
            request_id: string;
            run_id: string | null;
            version: number;
        };
        AuditRow: {
            action: string;
            actor: string;
            actor_kind: string;
            /** Format: date-time */
            at: string;
            detail: Record<string, unknown>;
            key: string | null;
            namespace: string | null;
            reason: string;
            request_id: string;
            run_id: string | null;
            thread_id: string | null;
            version: number;
        };
        BatchBody: {
            atomic?: boolean;
            operations: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        BatchResult: {
            entry?: components["schemas"]["Entry"] | null;
            problem?: Record<string, unknown>;
            status: number;
            version?: number;
        };
        BatchResults: {
            results: components["schemas"]["BatchResult"][];
        };
        Change: {
            actor: string;
            /** Format: date-time */
            at: string;
            cursor: string;
            key: string | null;
            kind: string;
            namespace: string | null;
            run_id: string | null;
            thread_id: string | null;
            version: number;
        };
        ClaimBody: {
            agent_id?: string;
            consumer?: string;
            lease_seconds?: number;
            limit?: number;
            thread_id?: string;
        };
        Claims: {
            items: {
                agent_id: string;
                attempts: number;
                /** Format: date-time */
                available_at: string;
                claim_token: string;
                /** Format: date-time */
                claimed_at: string | null;
                claimed_by: string | null;
                /** Format: date-time */
                created_at: string;
                dedupe_key: string | null;
                epoch: number;
                /** Format: date-time */
                finished_at: string | null;
                id: string;
                last_error: string | null;
                /** Format: date-time */
                lease_until: string | null;
                max_attempts: number;
                payload: unknown;
                priority: number;
                replays: number;
                run_id: string | null;
                /** @enum {string} */
                status: "Queued" | "Claimed" | "Acked" | "Cancelled" | "Superseded" | "DeadLetter";
                thread_id: string;
                /** Format: date-time */
                updated_at: string;
            }[];
        };
        Cleared: {
            deleted: number;
            matched: number;
        };
        CommitBody: {
            /** Format: int64 */
            base_revision?: number | null;
            batches?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** Format: int64 */
            expected_message_count?: number | null;
            /** Format: int64 */
            fencing_token?: number | null;
            label?: string;
            messages?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** @enum {string} */
            on_conflict?: "fail" | "rebase";
            reads?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            run?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            updates?: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        Committed: {
            message_count: number;
            revision: number;
            run: components["schemas"]["Run"];
            touched_keys: string[];
        };
        Compaction: {
            attempts: number;
            bytes_after: number | null;
            bytes_before: number | null;
            carried_seq: number | null;
            cost_usd: string;
            /** Format: date-time */
            created_at: string;
            detail: string;
            /** Format: date-time */
            finished_at: string | null;
            from_seq: number | null;
            id: string;
            input_tokens: number;
            instructions: string | null;
            /** @enum {string} */
            kind: "context" | "snapshot" | "history";
            model: string | null;
            namespace: string | null;
            output_tokens: number;
            phase: ("claimed" | "planning" | "asking" | "applying") | null;
            policy: Record<string, unknown>;
            provider: string | null;
            reason: string;
            requested_by: string;
            rows_after: number | null;
            rows_before: number | null;
            rows_removed: number;
            /** Format: date-time */
            started_at: string | null;
            /** @enum {string} */
            status: "queued" | "running" | "done" | "skipped" | "failed" | "superseded" | "cancelled" | "undone";
            summarizer: string | null;
            summary: string | null;
            summary_message_id: string | null;
            thread_id: string | null;
            to_revision: number | null;
            to_seq: number | null;
            tokens_after: number | null;
            tokens_before: number | null;
            /** @enum {string} */
            trigger: "threshold" | "hand" | "schedule";
            /** Format: date-time */
            undone_at: string | null;
            undone_by: string | null;
        };
        CompactionBody: {
            /** @enum {string} */
            kind?: "context" | "snapshot";
        };
        CompactionPolicy: {
            agent_id: string | null;
            effective: Record<string, unknown>;
            policy: Record<string, unknown>;
            /** @enum {string} */
            scope: "workspace" | "agent" | "thread";
            sources: {
                autocompact_threshold: string;
                every_hours: string;
                fallback: string;
                max_context_tokens: string;
                max_output_tokens: string;
                min_gain_tokens: string;
                min_recent_messages: string;
                min_savings_ratio: string;
                mode: string;
                prompt: string;
                raw_suffix_messages: string;
                snapshot_keep_every: string;
                snapshot_keep_last: string;
                summarizer: string;
                summary_max_tokens: string;
                summary_model: string;
            };
            thread_id: string | null;
            /** Format: date-time */
            updated_at: string | null;
            updated_by: string | null;
            version: number;
        };
        CompactionPreview: {
            context_tokens: number;
            policy: Record<string, unknown>;
            problem: string | null;
            savings_ratio: number | null;
            skip: string | null;
            sources: {
                autocompact_threshold: string;
                every_hours: string;
                fallback: string;
                max_context_tokens: string;
                max_output_tokens: string;
                min_gain_tokens: string;
                min_recent_messages: string;
                min_savings_ratio: string;
                mode: string;
                prompt: string;
                raw_suffix_messages: string;
                snapshot_keep_every: string;
                snapshot_keep_last: string;
                summarizer: string;
                summary_max_tokens: string;
                summary_model: string;
            };
            tokens_after: number | null;
            warning: string | null;
            would_fold: Record<string, unknown> | null;
        };
        Context: {
            estimated_tokens: number;
            folded_to_seq: number | null;
            left_out: number;
            message_count: number;
            messages: Record<string, unknown>[];
            thread_id: string;
        };
        DecisionBody: {
            action: string;
            payload?: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        Delivery: {
            /** Format: date-time */
            attempted_at: string | null;
            attempts: number;
            /** Format: date-time */
            created_at: string;
            error: string | null;
            event: unknown;
            /** Format: date-time */
            finished_at: string | null;
            id: string;
            latency_ms: number | null;
            /** Format: date-time */
            next_attempt_at: string | null;
            replays: number;
            response_status: number | null;
            /** @enum {string} */
            status: "queued" | "delivering" | "delivered" | "failed" | "dead";
            test: boolean;
            webhook_id: string;
        };
        Dependent: {
            id: string;
            /** @enum {string} */
            kind: "agents" | "models" | "providers";
            pointer: string;
        };
        Dependents: {
            dependents: components["schemas"]["Dependent"][];
            dry_run: boolean;
            hidden: number;
        };
        Diff: {
            from?: number;
            patch: {
                /** @enum {string} */
                op: "add" | "remove" | "replace";
                path: string;
                value?: unknown;
            }[];
            rows: {
                after: unknown;
                before: unknown;
                kind: string;
                pointer: string;
            }[];
            to?: number;
        };
        Dispatch: {
            agent_id: string;
            attempts: number;
            /** Format: date-time */
            available_at: string;
            /** Format: date-time */
            claimed_at: string | null;
            claimed_by: string | null;
            /** Format: date-time */
            created_at: string;
            dedupe_key: string | null;
            epoch: number;
            /** Format: date-time */
            finished_at: string | null;
            id: string;
            last_error: string | null;
            /** Format: date-time */
            lease_until: string | null;
            max_attempts: number;
            payload: unknown;
            priority: number;
            replays: number;
            run_id: string | null;
            /** @enum {string} */
            status: "Queued" | "Claimed" | "Acked" | "Cancelled" | "Superseded" | "DeadLetter";
            thread_id: string;
            /** Format: date-time */
            updated_at: string;
        };
        DispatchBody: {
            agent_id?: string;
            available_at?: string;
            dedupe_key?: string;
            max_attempts?: number;
            payload?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            priority?: number;
            run_id?: string;
        };
        DispatchCounts: {
            Acked: number;
            Cancelled: number;
            Claimed: number;
            DeadLetter: number;
            Queued: number;
            Superseded: number;
        };
        DryRegistration: {
            dry_run: boolean;
            violations: {
                count: number;
                first: {
                    errors: {
                        message: string;
                        pointer: string;
                    }[];
                    key: string;
                    version: number;
                }[];
            };
            would_change: boolean;
        };
        DryRun: {
            /** @constant */
            dry_run: true;
        };
        Entry: {
            actor: string;
            /** Format: date-time */
            created_at: string | null;
            estimated_tokens: number;
            exists: boolean;
            /** Format: date-time */
            expires_at: string | null;
            key: string;
            namespace: string;
            pinned: boolean;
            schema_version: number;
            /** @enum {string} */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            size_bytes: number;
            tags: string[];
            /** Format: date-time */
            updated_at: string | null;
            valid: boolean;
            value: unknown;
            version: number;
        };
        EntryBody: {
            pinned?: boolean;
            tags?: string[];
            ttl_seconds?: number | null;
            value: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        EntryReader: {
            agent_id: string;
            /** Format: date-time */
            at: string;
            current_version: number;
            key: string;
            namespace: string;
            revision: number;
            run_id: string;
            stale: boolean;
            stale_at_commit: boolean;
            step: number;
            thread_id: string;
            version: number;
            version_at_commit: number;
        };
        EntryRow: {
            actor: string;
            /** Format: date-time */
            created_at: string | null;
            estimated_tokens: number;
            /** Format: date-time */
            expires_at: string | null;
            key: string;
            namespace: string;
            pinned: boolean;
            registered: boolean;
            schema_version: number;
            /** @enum {string} */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            size_bytes: number;
            tags: string[];
            /** Format: date-time */
            updated_at: string | null;
            valid: boolean;
            value?: unknown;
            version: number;
        };
        EntryVersion: {
            actor: string;
            actor_kind: string;
            /** Format: date-time */
            at: string;
            exists: boolean;
            /** @enum {string} */
            operation: "put" | "patch" | "delete" | "restore" | "expire" | "import" | "redact";
            pinned: boolean;
            reason: string;
            redacted?: boolean;
            request_id: string;
            run_id?: string | null;
            schema_version: number;
            size_bytes: number;
            value?: unknown;
            version: number;
        };
        EraseBody: {
            key?: string;
            reason: string;
            resource_id?: string;
        };
        Erasure: {
            counts: Record<string, unknown>;
            erased: unknown;
        };
        Explanation: Record<string, unknown>;
        ExtendBody: {
            claim_token: string;
            lease_seconds?: number;
        };
        FailBody: {
            message?: string;
        };
        FencedBody: {
            /** Format: int64 */
            fencing_token?: number | null;
        };
        FilterBody: {
            key?: string;
            kinds?: string[];
            namespaces?: string[];
            prefix?: string;
            run?: string;
            thread?: string;
        };
        ForkBody: {
            id?: string;
            /** Format: int64 */
            message_count?: number;
            metadata?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** Format: int64 */
            revision?: number;
            title?: string;
        };
        HistoryPolicy: {
            keep_last?: number | null;
            keep_seconds?: number | null;
        };
        HistoryPreview: {
            bytes: number;
            bytes_removed: number;
            rows: number;
            rows_removed: number;
        };
        Hit: {
            actor: string;
            /** Format: date-time */
            created_at: string | null;
            estimated_tokens: number;
            /** Format: date-time */
            expires_at: string | null;
            key: string;
            matches: {
                pointer: string;
                snippet: string;
            }[];
            namespace: string;
            pinned: boolean;
            registered: boolean;
            schema_version: number;
            /** @enum {string} */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            size_bytes: number;
            tags: string[];
            /** Format: date-time */
            updated_at: string | null;
            valid: boolean;
            value?: unknown;
            version: number;
        };
        ImportSnapshotBody: {
            /** @enum {string} */
            mode?: "replace" | "merge";
            snapshot: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** @enum {string} */
            unknown_keys?: "error" | "skip";
        };
        ImportedSnapshot: {
            extensions: Record<string, unknown>;
            revision: number;
            skipped_keys: string[];
        };
        Interruption: {
            active: components["schemas"]["Dispatch"] | null;
            epoch: number;
            superseded_dispatches: number;
            thread_id: string;
        };
        Knowledge: {
            /** Format: date-time */
            at: string;
            exact: boolean;
            items: components["schemas"]["KnownEntry"][];
            next_cursor: string | null;
            reads: components["schemas"]["RunRead"][];
            revision: number;
            run_id: string;
            scopes: string[];
            state: components["schemas"]["Snapshot"] | null;
            step: number | null;
            steps: number;
            thread_id: string;
        };
        KnownEntry: {
            actor: string | null;
            current_version: number;
            kept: boolean;
            key: string;
            namespace: string;
            reason: string | null;
            /** Format: date-time */
            redacted_at: string | null;
            registered: boolean;
            run_id: string | null;
            /** @enum {string} */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            /** Format: date-time */
            updated_at: string | null;
            value: unknown;
            version: number;
        };
        LeaseBody: {
            /** Format: int64 */
            fencing_token?: number | null;
            only_if_free?: boolean;
        };
        LettersBody: {
            agent_id?: string;
            thread_id?: string;
        };
        Lineage: {
            ancestors: string[];
            child_count: number;
            fork_count: number;
            forked_from: Record<string, unknown> | null;
            thread_id: string;
        };
        Me: {
            actor: string;
            actor_kind: string;
            namespaces: string[];
            /** @enum {string} */
            role: "viewer" | "editor" | "admin";
            thread_prefixes: string[];
            workspace: string;
        };
        /** @description The message as it was sent, with the server's own fields beside. */
        Message: {
            content?: unknown;
            /** Format: date-time */
            created_at: string;
            estimated_tokens: number;
            id: string;
            /** @enum {string} */
            role: "system" | "user" | "assistant" | "tool";
            run_id: string | null;
            seq: number;
            tool_call_id?: string;
            tool_calls?: Record<string, unknown>[];
            /** @enum {string} */
            visibility: "all" | "internal";
        };
        MessagesBody: {
            /** Format: int64 */
            expected_message_count?: number;
            messages: unknown[] | boolean | number | Record<string, unknown> | string | null;
            operations?: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        NackBody: {
            claim_token: string;
            error?: string;
            retry_after?: number;
        };
        Namespace: {
            /** Format: date-time */
            created_at: string;
            default: unknown;
            description: string;
            history: {
                keep_last: number | null;
                keep_seconds: number | null;
            };
            max_value_bytes: number;
            name: string;
            plugin: string;
            schema: Record<string, unknown> | boolean;
            schema_version: number;
            ttl_seconds: number | null;
            /** Format: date-time */
            updated_at: string;
        };
        NamespaceBody: {
            default?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            description?: string;
            history?: components["schemas"]["HistoryPolicy"];
            max_value_bytes?: number | null;
            plugin?: string;
            schema?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            ttl_seconds?: number | null;
        };
        NamespaceRemoval: {
            dry_run: boolean;
            held: {
                entries: number;
            };
        };
        PatchedChangeBody: {
            /** Format: decimal */
            cost_usd?: string;
            /** Format: int64 */
            fencing_token?: number | null;
            /** Format: int64 */
            input_tokens?: number;
            metadata?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** Format: int64 */
            output_tokens?: number;
            status?: string;
            step_count?: number;
            termination_reason?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            waiting?: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        PatchedMarkBody: {
            label?: string;
            pinned?: boolean;
        };
        PatchedPinBody: {
            pinned?: boolean;
            /** Format: int64 */
            version?: number;
        };
        PatchedThreadChangeBody: {
            compaction_policy?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            metadata?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            parent_thread_id?: string | null;
            resource_id?: string;
            title?: string;
        };
        PatchedWebhookChange: {
            filter?: components["schemas"]["FilterBody"];
            name?: string;
            url?: string;
        };
        Plugin: {
            description: string;
            /** Format: date-time */
            installed_at: string;
            name: string;
            namespaces: components["schemas"]["Namespace"][];
            state_keys: components["schemas"]["StateKey"][];
        };
        PluginBody: {
            description?: string;
            namespaces?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            state_keys?: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        PluginRemoval: {
            dry_run: boolean;
            would_remove: {
                entries: number;
                namespaces: number;
                retained: number;
                state_keys: number;
                threads: number;
                values: number;
            };
        };
        PluginRow: {
            description: string;
            /** Format: date-time */
            installed_at: string;
            name: string;
            namespaces: string[];
            state_keys: string[];
        };
        PolicyBody: {
            /** Format: int64 */
            autocompact_threshold?: number | null;
            every_hours?: number | null;
            /** @enum {string|null} */
            fallback?: "extractive" | null;
            /** Format: int64 */
            max_context_tokens?: number;
            /** Format: int64 */
            max_output_tokens?: number;
            /** Format: int64 */
            min_gain_tokens?: number;
            /** Format: int64 */
            min_recent_messages?: number;
            min_savings_ratio?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** @enum {string} */
            mode?: "keep_recent_raw_suffix" | "compact_to_safe_frontier";
            prompt?: string | null;
            /** Format: int64 */
            raw_suffix_messages?: number;
            /** Format: int64 */
            snapshot_keep_every?: number | null;
            /** Format: int64 */
            snapshot_keep_last?: number | null;
            summarizer?: string | null;
            /** Format: int64 */
            summary_max_tokens?: number;
            summary_model?: string | null;
        };
        /** @description A problem document (RFC 9457). Some types have further members: `expected` and `actual` of a conflict, `limit`, `retry_after`. */
        Problem: {
            /** @description The message of this occurrence */
            detail: string;
            /** @description Each JSON pointer and what is wrong there */
            errors?: {
                message: string;
                pointer: string;
            }[];
            /** @description What to do */
            hint?: string;
            /** @description The id of the request */
            instance?: string;
            /** @description The HTTP status code */
            status: number;
            /** @description Constant per problem type */
            title: string;
            /** @description The problem type, and the path of the page that explains it: `/problems/bad-request` (400 Malformed request), `/problems/unauthenticated` (401 Authentication required), `/problems/forbidden` (403 Permission denied), `/problems/quota-exceeded` (403 Quota exceeded), `/problems/not-found` (404 Resource not found), `/problems/not-registered` (404 Profile key not registered), `/problems/method-not-allowed` (405 Method not allowed), `/problems/not-acceptable` (406 No acceptable media type), `/problems/request-timeout` (408 Request timeout), `/problems/conflict` (409 Conflict with the current state), `/problems/revision-conflict` (409 Revision conflict), `/problems/schema-conflict` (409 Schema conflict), `/problems/fencing-token-superseded` (409 Fencing token superseded), `/problems/unreadable` (409 Secret cannot be decrypted), `/problems/in-flight` (409 Request in progress), `/problems/gone` (410 No longer available), `/problems/version-conflict` (412 Version conflict), `/problems/too-large` (413 Content too large), `/problems/unsupported-media-type` (415 Unsupported media type), `/problems/misdirected-request` (421 Host not served here), `/problems/invalid` (422 Validation failed), `/problems/rate-limited` (429 Rate limit exceeded), `/problems/internal` (500 Internal server error), `/problems/unavailable` (503 Service unavailable), `/problems/too-slow` (503 Stream reader too slow) */
            type: string;
        } & {
            [key: string]: unknown;
        };
        Record: {
            actor: string;
            /** Format: date-time */
            created_at: string | null;
            estimated_tokens: number;
            exists: boolean;
            /** Format: date-time */
            expires_at: string | null;
            id: string;
            key: string;
            /** @enum {string} */
            kind: "agents" | "models" | "providers";
            namespace: string;
            pinned: boolean;
            schema_version: number;
            /** @enum {string} */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            size_bytes: number;
            tags: string[];
            /** Format: date-time */
            updated_at: string | null;
            valid: boolean;
            value: unknown;
            version: number;
        };
        RecordBody: {
            value: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        RecordRow: {
            actor: string;
            /** Format: date-time */
            created_at: string | null;
            estimated_tokens: number;
            /** Format: date-time */
            expires_at: string | null;
            id: string;
            key: string;
            /** @enum {string} */
            kind: "agents" | "models" | "providers";
            namespace: string;
            pinned: boolean;
            registered: boolean;
            schema_version: number;
            /** @enum {string} */
            scope_kind: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            size_bytes: number;
            tags: string[];
            /** Format: date-time */
            updated_at: string | null;
            valid: boolean;
            value?: unknown;
            version: number;
        };
        RecoveryBody: {
            /** Format: int64 */
            expected_revision?: number | null;
            /** Format: int64 */
            fencing_token?: number | null;
            /** Format: int64 */
            revision?: number | null;
        };
        RedactBody: {
            pointers?: string[];
            reason: string;
            /** @enum {string} */
            versions?: "all";
        };
        Redaction: {
            key: string;
            namespace: string;
            rewritten: number;
            version: number;
            withdrawn_answers: number;
        };
        ReplayBody: {
            cursor?: string;
            dead_letters?: boolean;
        };
        Replayed: {
            replayed: number;
        };
        Restoration: {
            /** Format: date-time */
            at: string;
            changed: number;
            created: number;
            deleted: number;
            first: Record<string, unknown>[];
            refused: number;
        };
        RestoreBody: {
            /** Format: int64 */
            version: number;
        };
        RestoreSnapshotBody: {
            /** Format: int64 */
            revision: number;
        };
        RestoreToMomentBody: {
            at: string;
            key?: string;
            namespace?: string;
            prefix?: string;
            /** @enum {string} */
            scope_kind?: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
        };
        ResumeBody: {
            skip?: boolean;
        };
        Revision: {
            actor: string;
            /** Format: date-time */
            at: string;
            kept: boolean;
            /** @enum {string} */
            kind: "start" | "commit" | "end" | "restore" | "import" | "fork" | "uninstall";
            label: string;
            message_count: number;
            pinned: boolean;
            reason: string;
            request_id: string;
            revision: number;
            run_id: string | null;
            touched_keys: string[];
        };
        RotateBody: {
            /** Format: int64 */
            overlap_seconds?: number;
        };
        Run: {
            agent_id: string;
            cost_usd: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            deadline_at: string | null;
            fencing_token: number;
            /** Format: date-time */
            finished_at: string | null;
            /** Format: date-time */
            flagged_stuck_at: string | null;
            id: string;
            input_tokens: number;
            last_revision: number;
            /** Format: date-time */
            lease_expires_at: string | null;
            max_rounds: number;
            metadata: Record<string, unknown>;
            /** @enum {string} */
            origin: "user" | "mcp" | "subagent" | "internal";
            output_tokens: number;
            parent_run_id: string | null;
            parent_thread_id: string | null;
            start_revision: number;
            /** Format: date-time */
            started_at: string | null;
            /** @enum {string} */
            status: "created" | "running" | "waiting" | "done";
            step_count: number;
            stuck_reason: string | null;
            termination_reason: Record<string, unknown> | null;
            thread_id: string;
            /** Format: date-time */
            times_out_at: string | null;
            /** Format: date-time */
            updated_at: string;
            waiting: Record<string, unknown> | null;
        };
        RunRead: {
            /** Format: date-time */
            at: string;
            current_version: number;
            key: string;
            namespace: string;
            revision: number;
            stale: boolean;
            stale_at_commit: boolean;
            step: number;
            version: number;
            version_at_commit: number;
        };
        SearchBody: {
            cursor?: string | null;
            /** @enum {string} */
            include?: "value";
            limit?: number;
            namespace?: string;
            prefix?: string;
            /** @enum {string} */
            scope_kind?: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            text?: string;
            where?: unknown[] | boolean | number | Record<string, unknown> | string | null;
        };
        Snapshot: {
            extensions: Record<string, unknown>;
            revision: number;
        };
        SnapshotPreview: {
            bytes: number;
            bytes_removed: number;
            keep_every: number | null;
            keep_last: number;
            rows: number;
            rows_removed: number;
            snapshots: number;
            snapshots_removed: number;
        };
        StartBody: {
            agent_id?: string;
            id?: string;
            lease_seconds?: number;
            max_rounds?: number;
            metadata?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** @enum {string} */
            origin?: "user" | "mcp" | "subagent" | "internal";
            parent_run_id?: string;
            parent_thread_id?: string;
            /** @enum {string} */
            status?: "created" | "running";
            timeout_seconds?: number | null;
        };
        StateKey: {
            /** Format: date-time */
            created_at: string;
            default: unknown;
            description: string;
            key: string;
            /** @enum {string} */
            merge: "exclusive" | "commutative";
            persistent: boolean;
            plugin: string;
            reducer: string;
            retain_on_uninstall: boolean;
            schema: Record<string, unknown> | boolean;
            /** @enum {string} */
            scope: "run" | "thread";
            /** Format: date-time */
            updated_at: string;
        };
        StateKeyBody: {
            default?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            description?: string;
            /** @enum {string} */
            merge?: "exclusive" | "commutative";
            persistent?: boolean;
            plugin?: string;
            /** @enum {string} */
            reducer?: "replace" | "add" | "max" | "min" | "append" | "union" | "merge" | "json_patch" | "lifecycle" | "tool_calls";
            retain_on_uninstall?: boolean;
            schema?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            /** @enum {string} */
            scope?: "run" | "thread";
        };
        StateKeyRemoval: {
            dry_run: boolean;
            held: {
                threads: number;
                values: number;
            };
        };
        Storage: {
            bytes: number;
            days: {
                bytes: number;
                /** Format: date */
                day: string;
                estimated_tokens: number;
                rows: number;
                rows_removed: number;
                tokens_saved: number;
            }[];
            entries: number;
            entry_bytes: number;
            estimated_tokens: number;
            exact: boolean;
            /** @enum {string} */
            group: "workspace" | "namespace" | "thread";
            growth_bytes_per_day: number | null;
            history_bytes: number;
            history_rows: number;
            /** Format: date-time */
            measured_at: string;
            message_bytes: number;
            messages: number;
            name: string | null;
            rows: number;
            state_bytes: number;
            state_rows: number;
        };
        StoreItem: {
            /** Format: date-time */
            created_at: string;
            key: string;
            namespace: string[];
            /** Format: date-time */
            updated_at: string;
            value: Record<string, unknown>;
            version: number;
        };
        Thread: {
            active_run_id: string | null;
            compaction_policy: Record<string, unknown>;
            context_tokens: number;
            /** Format: date-time */
            created_at: string;
            forked_from: Record<string, unknown> | null;
            id: string;
            latest_run_id: string | null;
            message_count: number;
            metadata: Record<string, unknown>;
            parent_thread_id: string | null;
            resource_id: string | null;
            revision: number;
            title: string;
            /** Format: date-time */
            updated_at: string;
            version: number;
        };
        ThreadBody: {
            compaction_policy?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            id?: string;
            metadata?: unknown[] | boolean | number | Record<string, unknown> | string | null;
            parent_thread_id?: string | null;
            resource_id?: string;
            title?: string;
        };
        ThreadDeletion: {
            dry_run: boolean;
            would_delete: Record<string, unknown>;
        };
        Ticket: {
            arguments: unknown;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            decided_at: string | null;
            decided_by: string | null;
            /** Format: date-time */
            expires_at: string | null;
            id: string;
            /** @enum {string} */
            on_expiry: "keep" | "cancel";
            payload: unknown;
            reason: string;
            response_schema: unknown;
            resume_mode: string;
            run_id: string;
            /** @enum {string} */
            status: "pending" | "resumed" | "cancelled" | "void";
            thread_id: string;
            tool_call_id: string;
            tool_name: string;
        };
        UIMessage: {
            id: string;
            metadata: {
                /** Format: date-time */
                created_at: string;
                run_id: string | null;
            };
            parts: Record<string, unknown>[];
            /** @enum {string} */
            role: "system" | "user" | "assistant";
        };
        Usage: {
            bytes: number;
            entries: number;
            limits: Record<string, unknown>;
            /** Format: date-time */
            measured_at: string | null;
            messages: number;
            threads: number;
        };
        Webhook: {
            /** Format: date-time */
            created_at: string;
            created_by: string;
            dead_letters: number;
            /** Format: date-time */
            failing_since: string | null;
            filter: Record<string, unknown>;
            id: string;
            /** Format: date-time */
            last_delivered_at: string | null;
            last_error: string | null;
            name: string;
            sees: Record<string, unknown>;
            /** @enum {string} */
            status: "active" | "paused" | "disabled";
            status_reason: string | null;
            /** Format: date-time */
            updated_at: string;
            url: string;
            waiting: number;
        };
        WebhookBody: {
            cursor?: string;
            filter?: components["schemas"]["FilterBody"];
            name: string;
            url: string;
        };
        WebhookReplayed: {
            /** Format: date-time */
            created_at: string;
            created_by: string;
            dead_letters: number;
            /** Format: date-time */
            failing_since: string | null;
            filter: Record<string, unknown>;
            id: string;
            /** Format: date-time */
            last_delivered_at: string | null;
            last_error: string | null;
            name: string;
            replayed: number | null;
            sees: Record<string, unknown>;
            /** @enum {string} */
            status: "active" | "paused" | "disabled";
            status_reason: string | null;
            /** Format: date-time */
            updated_at: string;
            url: string;
            waiting: number;
        };
        WebhookWithSecret: {
            /** Format: date-time */
            created_at: string;
            created_by: string;
            dead_letters: number;
            /** Format: date-time */
            failing_since: string | null;
            filter: Record<string, unknown>;
            id: string;
            /** Format: date-time */
            last_delivered_at: string | null;
            last_error: string | null;
            name: string;
            secret: string | null;
            sees: Record<string, unknown>;
            /** @enum {string} */
            status: "active" | "paused" | "disabled";
            status_reason: string | null;
            /** Format: date-time */
            updated_at: string;
            url: string;
            waiting: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    explain_access: {
        parameters: {
            query?: {
                key?: string;
                namespace?: string;
                thread_id?: string;
                token_id?: number;
                username?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_store_item: {
        parameters: {
            query?: {
                key?: string;
                namespace?: string;
                refresh_ttl?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreItem"] | null;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_store_item: {
        parameters: {
            query?: never;
            header?: {
                "If-Match"?: string;
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_store_item: {
        parameters: {
            query?: never;
            header?: {
                "If-Match"?: string;
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
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
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
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
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
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
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThread"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
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
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": number;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
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
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>[];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_agent_thread: {
        parameters: {
            query?: {
                include?: string[];
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    patch_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    copy_agent_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentThread"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_agent_history: {
        parameters: {
            query?: {
                before?: string;
                limit?: number;
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"][];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    search_agent_history: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"][];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_agent_state: {
        parameters: {
            query?: {
                select?: string[];
                subgraphs?: boolean;
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    update_agent_state: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_agent_state_of: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_agent_state_at: {
        parameters: {
            query?: {
                select?: string[];
                subgraphs?: boolean;
            };
            header?: never;
            path: {
                checkpoint_id: string;
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentState"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_audit: {
        parameters: {
            query?: {
                action?: string;
                actor?: string;
                cursor?: string;
                key?: string;
                limit?: number;
                namespace?: string;
                request_id?: string;
                run_id?: string;
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["AuditRow"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    blame_entry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Attribution"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_changes: {
        parameters: {
            query?: {
                after?: string;
                key?: string;
                kind?: string;
                limit?: number;
                namespace?: string;
                prefix?: string;
                run?: string;
                thread?: string;
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Change"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    stream_changes: {
        parameters: {
            query?: {
                after?: string;
                key?: string;
                kind?: string;
                namespace?: string;
                prefix?: string;
                run?: string;
                thread?: string;
            };
            header?: {
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
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
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["CompactionPolicy"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_agent_policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_agent_policy: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PolicyBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_agent_policy: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_thread_policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_thread_policy: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PolicyBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_thread_policy: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
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
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_workspace_policy: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PolicyBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPolicy"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_workspace_policy: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_compactions: {
        parameters: {
            query?: {
                cursor?: string;
                kind?: "context" | "snapshot" | "history";
                limit?: number;
                status?: "queued" | "running" | "done" | "skipped" | "failed" | "superseded" | "cancelled" | "undone";
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Compaction"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_compaction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_compaction: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_folded_messages: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Message"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    retry_compaction: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Taken on: a worker does it */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    undo_compaction: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_config: {
        parameters: {
            query?: {
                cursor?: string;
                include?: "value";
                limit?: number;
                prefix?: string;
            };
            header?: never;
            path: {
                kind: "agents" | "models" | "providers";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["RecordRow"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_config: {
        parameters: {
            query?: never;
            header?: {
                "If-None-Match"?: string;
            };
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"];
                };
            };
            /** @description Nothing is newer */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    write_config: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Changed"?: "true" | "false";
                "If-Match"?: string;
                "If-None-Match"?: string;
                "On-Conflict"?: "merge";
            };
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecordBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"] | (components["schemas"]["DryRun"] & components["schemas"]["Record"]);
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_config: {
        parameters: {
            query?: {
                dry_run?: boolean;
                force?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
                "If-None-Match"?: string;
                "On-Conflict"?: "merge";
            };
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dependents"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    patch_config: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Changed"?: "true" | "false";
                "If-Match"?: string;
                "If-None-Match"?: string;
                "On-Conflict"?: "merge";
            };
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json-patch+json": unknown;
                "application/merge-patch+json": unknown;
                "application/vnd.commonhold.update+json": unknown;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"] | (components["schemas"]["DryRun"] & components["schemas"]["Record"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_config_dependents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Dependent"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_config_history: {
        parameters: {
            query?: {
                cursor?: string;
                include?: "value";
                limit?: number;
            };
            header?: never;
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EntryVersion"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    restore_config: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Changed"?: "true" | "false";
                "If-Match"?: string;
                "If-None-Match"?: string;
            };
            path: {
                kind: "agents" | "models" | "providers";
                record_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"] | (components["schemas"]["DryRun"] & components["schemas"]["Record"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    replay_delivery: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Taken on: a worker does it */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    diff_entry: {
        parameters: {
            query: {
                from: number;
                to: number;
            };
            header?: never;
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Diff"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_dispatches: {
        parameters: {
            query?: {
                agent_id?: string;
                cursor?: string;
                dedupe_key?: string;
                limit?: number;
                status?: "Queued" | "Claimed" | "Acked" | "Cancelled" | "Superseded" | "DeadLetter";
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Dispatch"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    claim_dispatches: {
        parameters: {
            query?: {
                wait?: number;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ClaimBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Claims"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    clear_dead_letters: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LettersBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    count_dispatches: {
        parameters: {
            query?: {
                agent_id?: string;
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DispatchCounts"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    replay_dead_letters: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LettersBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Replayed"] | (components["schemas"]["DryRun"] & components["schemas"]["Replayed"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_dispatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ack_dispatch: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AckBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_dispatch: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    extend_dispatch: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExtendBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    nack_dispatch: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NackBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    replay_dispatch: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                dispatch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    erase: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EraseBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"] | (components["schemas"]["DryRun"] & components["schemas"]["Erasure"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_history: {
        parameters: {
            query?: {
                cursor?: string;
                include?: "value";
                limit?: number;
            };
            header?: never;
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EntryVersion"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pin_version: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PatchedPinBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryVersion"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_key: {
        parameters: {
            query?: {
                cursor?: string;
                include?: "value";
                limit?: number;
            };
            header?: never;
            path: {
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EntryRow"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    clear_key: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
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
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_namespaces: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                plugin?: string;
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Namespace"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_namespace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    register_namespace: {
        parameters: {
            query?: {
                dry_run?: boolean;
                if_exists?: "replace" | "accept";
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
                "If-None-Match"?: string;
            };
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NamespaceBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"] | components["schemas"]["DryRegistration"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    unregister_namespace: {
        parameters: {
            query?: {
                dry_run?: boolean;
                entries?: "retain" | "delete";
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NamespaceRemoval"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    preview_history_compaction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryPreview"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    request_history_compaction: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["HistoryPreview"];
                };
            };
            /** @description Taken on: a worker does it */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_plugins: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["PluginRow"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_plugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plugin"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    install_plugin: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PluginBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["Plugin"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plugin"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    uninstall_plugin: {
        parameters: {
            query?: {
                dry_run?: boolean;
                entries?: "retain" | "delete";
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PluginRemoval"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_readers: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                version?: number;
            };
            header?: never;
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EntryReader"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    redact_entry: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RedactBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Redaction"] | (components["schemas"]["DryRun"] & components["schemas"]["Redaction"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    restore_entries: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreToMomentBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Restoration"] | (components["schemas"]["DryRun"] & components["schemas"]["Restoration"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    restore_entry: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Changed"?: "true" | "false";
                "If-Match"?: string;
                "If-None-Match"?: string;
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"] | (components["schemas"]["DryRun"] & components["schemas"]["Entry"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_runs: {
        parameters: {
            query?: {
                agent_id?: string;
                cursor?: string;
                limit?: number;
                status?: "created" | "running" | "waiting" | "done";
                stuck?: boolean;
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Run"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_run: {
        parameters: {
            query?: {
                since?: number;
                wait?: number;
            };
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    change_run: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PatchedChangeBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_run: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    commit: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CommitBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Committed"] | (components["schemas"]["DryRun"] & components["schemas"]["Committed"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fail_run: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FailBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    heartbeat_run: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FencedBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_knowledge: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                revision?: number;
                step?: number;
            };
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Knowledge"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    take_lease: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LeaseBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    release_lease: {
        parameters: {
            query?: {
                fencing_token?: number;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_run_reads: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                stale?: boolean;
            };
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["RunRead"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_run: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RecoveryBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_run_tickets: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Ticket"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SearchBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Hit"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_state: {
        parameters: {
            query?: {
                cursor?: string;
                include?: "value";
                limit?: number;
                plugin?: string;
                prefix?: string;
                scope_kind?: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
                tag?: string[];
                tags?: string[];
                updated_since?: string;
                valid?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EntryRow"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    clear_state: {
        parameters: {
            query?: {
                dry_run?: boolean;
                prefix?: string;
                scope_kind?: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_state_keys: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["StateKey"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_state_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKey"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    register_state_key: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StateKeyBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKey"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKey"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    unregister_state_key: {
        parameters: {
            query?: {
                dry_run?: boolean;
                values?: "retain" | "clear";
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateKeyRemoval"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    run_batch: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchResults"] | (components["schemas"]["DryRun"] & components["schemas"]["BatchResults"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_entries: {
        parameters: {
            query?: {
                before?: string;
                cursor?: string;
                include?: "value";
                limit?: number;
                order?: "asc" | "desc";
                prefix?: string;
                scope_kind?: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
                tag?: string[];
                tags?: string[];
                updated_since?: string;
                valid?: boolean;
            };
            header?: never;
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EntryRow"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    clear_namespace: {
        parameters: {
            query?: {
                dry_run?: boolean;
                prefix?: string;
                scope_kind?: "global" | "parent_thread" | "agent_type" | "thread" | "system" | "custom";
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cleared"] | (components["schemas"]["DryRun"] & components["schemas"]["Cleared"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_entry: {
        parameters: {
            query?: {
                at?: string;
                at_version?: number;
                since?: number;
                wait?: number;
            };
            header?: {
                "If-None-Match"?: string;
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Nothing is newer */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    write_entry: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Changed"?: "true" | "false";
                "If-Match"?: string;
                "If-None-Match"?: string;
                "On-Conflict"?: "merge";
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntryBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"] | (components["schemas"]["DryRun"] & components["schemas"]["Entry"]);
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_entry: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
                "If-None-Match"?: string;
                "On-Conflict"?: "merge";
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["Cleared"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    patch_entry: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Changed"?: "true" | "false";
                "If-Match"?: string;
                "If-None-Match"?: string;
                "On-Conflict"?: "merge";
            };
            path: {
                key: string;
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json-patch+json": unknown;
                "application/merge-patch+json": unknown;
                "application/vnd.commonhold.update+json": unknown;
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"] | (components["schemas"]["DryRun"] & components["schemas"]["Entry"]);
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_threads: {
        parameters: {
            query?: {
                cursor?: string;
                forked_from?: string;
                limit?: number;
                parent_thread_id?: string;
                prefix?: string;
                resource_id?: string;
                root?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Thread"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_thread: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ThreadBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_thread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_thread: {
        parameters: {
            query?: {
                children?: "detach" | "reject" | "cascade";
                dry_run?: boolean;
                expected_revision?: number;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ThreadDeletion"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    change_thread: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PatchedThreadChangeBody"];
                "application/merge-patch+json": components["schemas"]["PatchedThreadChangeBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    watch_thread: {
        parameters: {
            query?: never;
            header?: {
                "Last-Event-ID"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    join_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    runId: string;
                    threadId: string;
                };
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    preview_compaction: {
        parameters: {
            query?: {
                kind?: "context" | "snapshot";
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactionPreview"] | components["schemas"]["SnapshotPreview"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    request_compaction: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CompactionBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": (components["schemas"]["DryRun"] & components["schemas"]["CompactionPreview"]) | (components["schemas"]["DryRun"] & components["schemas"]["SnapshotPreview"]);
                };
            };
            /** @description Taken on: a worker does it */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_context: {
        parameters: {
            query?: {
                max_tokens?: number;
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Context"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    diff_snapshots: {
        parameters: {
            query: {
                from: number;
                to: number;
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Diff"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    enqueue_dispatch: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DispatchBody"];
            };
        };
        responses: {
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fork_thread: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ForkBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Thread"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    import_snapshot: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportSnapshotBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportedSnapshot"] | (components["schemas"]["DryRun"] & components["schemas"]["ImportedSnapshot"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    interrupt_thread: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Interruption"] | (components["schemas"]["DryRun"] & components["schemas"]["Interruption"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_lineage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lineage"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                after?: number;
                before?: number;
                cursor?: string;
                limit?: number;
                order?: "asc" | "desc";
                run_id?: string;
                visibility?: "external" | "internal" | "all";
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Message"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    append_messages: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessagesBody"];
            };
        };
        responses: {
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Appended"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    restore_snapshot: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
                "If-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreSnapshotBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"] | (components["schemas"]["DryRun"] & components["schemas"]["Snapshot"]);
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    start_run: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StartBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_snapshots: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Revision"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    mark_snapshot: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                revision: number;
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PatchedMarkBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Revision"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    read_state: {
        parameters: {
            query?: {
                export?: boolean;
                revision?: number;
                scope?: "run" | "thread";
            };
            header?: {
                "If-None-Match"?: string;
            };
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            /** @description Nothing is newer */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_ui_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UIMessage"][];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    stream_ui_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_tickets: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                status?: "pending" | "resumed" | "cancelled" | "void";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Ticket"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_ticket: {
        parameters: {
            query?: {
                wait?: number;
            };
            header?: never;
            path: {
                ticket_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ticket"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    decide_ticket: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                ticket_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ticket"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
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
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_storage: {
        parameters: {
            query?: {
                cursor?: string;
                days?: number;
                group?: "workspace" | "namespace" | "thread";
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Storage"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    measure_namespace: {
        parameters: {
            query?: {
                days?: number;
            };
            header?: never;
            path: {
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Storage"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    measure_thread: {
        parameters: {
            query?: {
                days?: number;
            };
            header?: never;
            path: {
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Storage"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_webhooks: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                status?: "active" | "paused" | "disabled";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Webhook"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_webhook: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookBody"];
            };
        };
        responses: {
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_webhook: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Gone, or it was not there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    change_webhook: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PatchedWebhookChange"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_deliveries: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                status?: "queued" | "delivering" | "delivered" | "failed" | "dead";
            };
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Delivery"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pause_webhook: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    replay_webhook: {
        parameters: {
            query?: {
                dry_run?: boolean;
            };
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReplayBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"] & components["schemas"]["WebhookReplayed"];
                };
            };
            /** @description Taken on: a worker does it */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookReplayed"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_webhook: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResumeBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rotate_webhook_secret: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateBody"];
            };
        };
        responses: {
            /** @description Done, or read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    test_webhook: {
        parameters: {
            query?: never;
            header?: {
                "Change-Reason"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Taken on: a worker does it */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            /** @description Refused, or failed: a problem document */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
