/** Calls on namespaces. */

import { segment, type Sending, type Writing } from "./calls.js";
import { requireObject } from "./json.js";
import { nameOf, type Namespace } from "./keys.js";
import type { Paged } from "./pages.js";
import type { Body, CompactionOr, HistoryPreview, NamespaceInfo, NamespaceRemoval, Query, RegistrationOr } from "./schemas.js";
import { Group, read } from "./threads.js";

/** How a registered namespace may change. */
export interface Replacing {
  /** Replace what is registered. */
  replace?: boolean;
  /** Replace only that schema version (0: not registered), else VersionConflict. */
  if_version?: number;
}

const place = (namespace: Namespace, verb = "") => `/namespaces/${segment(nameOf(namespace))}${verb}`;

/** Namespaces: the schema, the default and the retention of entries. For keys of `profileKey`, use `state.register`. */
export class Namespaces extends Group {
  /**
   * Register, or accept what is registered, unchanged, if its schema and default are compatible: the same except for
   * optional fields; else SchemaConflict. The other settings are used only when the namespace is created. With
   * `replace` everything is replaced, and the last of several programs wins; `if_version` is the schema version to
   * replace (0: not registered), else VersionConflict.
   */
  register<D extends boolean = false>(
    name: string,
    {
      signal,
      reason,
      idempotency_key,
      replace = false,
      if_version,
      dry_run,
      ...body
    }: Body<"NamespaceDefinition", { schema?: unknown; default?: unknown }> & { dry_run?: D } & Replacing & Writing = {},
  ): Promise<RegistrationOr<D>> {
    requireObject("the definition of a namespace", body);
    const path = `/namespaces/${segment(name)}`;
    const query = { if_exists: replace ? undefined : "accept", dry_run };
    return this.api.send({ method: "PUT", path, query, body, signal, reason, idempotency_key, if_version });
  }

  /** The registered namespace. Throws NotRegistered if there is none. */
  get(namespace: Namespace, options: Sending = {}): Promise<NamespaceInfo> {
    return this.api.send(read(place(namespace), options));
  }

  /** The registered namespaces by name, without those of the config registry. */
  list(query: Query<"list_namespaces"> & Sending = {}): Paged<NamespaceInfo> {
    return this.api.paged("/namespaces", query);
  }

  /** Unregister. `entries` is required if there are live entries, else Conflict: `"delete"` deletes them, `"retain"` leaves them unreadable. With `dry_run` only count. */
  unregister(
    namespace: Namespace,
    { entries, dry_run, ...options }: Query<"unregister_namespace"> & Writing = {},
  ): Promise<NamespaceRemoval | undefined> {
    return this.api.send({ method: "DELETE", path: place(namespace), query: { entries, dry_run }, ...options });
  }

  /** How many versions the entries of the namespace have, and how many a compaction of its history would remove now. */
  previewCompaction(namespace: Namespace, options: Sending = {}): Promise<HistoryPreview> {
    return this.api.send(read(place(namespace, "/compactions"), options));
  }

  /**
   * Remove the versions that the `history` of the namespace does not retain. They cannot be restored. A worker performs it: read
   * `compactions.get` until its `finished_at` is not null. With `dry_run` only preview it.
   */
  compact<D extends boolean = false>(
    namespace: Namespace,
    { dry_run, ...options }: { dry_run?: D } & Writing = {},
  ): Promise<CompactionOr<HistoryPreview, D>> {
    const path = place(namespace, "/compactions");
    return this.api.send({ method: "POST", path, query: { dry_run }, ...options });
  }
}
