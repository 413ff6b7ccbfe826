/** Calls on the jobs of workers: compactions and reverts. */

import { segment, type Sending, type Writing } from "./calls.js";
import type { Paged } from "./pages.js";
import type { Body, Compaction, Message, Query, Revert, SkippedEntry } from "./schemas.js";
import { Group, read, write } from "./threads.js";

const compaction = (id: string, verb = "") => `/compactions/${segment(id)}${verb}`;
const revert = (id: string, verb = "") => `/reverts/${segment(id)}${verb}`;

/** Compactions, which `state.threads.compact` and `state.namespaces.compact` request and a worker performs. */
export class Compactions extends Group {
  /** The compactions of the workspace, newest first. */
  list(query: Query<"list_compactions"> & Sending = {}): Paged<Compaction> {
    return this.api.paged("/compactions", query);
  }

  /** The compaction. It has ended when `finished_at` is not null; `detail` says why it was skipped or failed. */
  get(id: string, options: Sending = {}): Promise<Compaction> {
    return this.api.send(read(compaction(id), options));
  }

  /** Cancel it: a queued one does not start, a running one stops at its next step. What was removed remains removed. Throws Conflict if it has ended. */
  cancel(id: string, options: Writing = {}): Promise<Compaction> {
    return this.api.send(write("POST", compaction(id, "/cancel"), options));
  }

  /** Request a context compaction again, after it failed for example. Returns a new one. Throws Conflict if this one is queued, running or done, or of another kind. */
  retry(id: string, options: Writing = {}): Promise<Compaction> {
    return this.api.send(write("POST", compaction(id, "/retry"), options));
  }

  /**
   * Give the context its original messages back, in place of the summary. Only for a context compaction that is done, and not before the
   * later ones that include its summary, else Conflict; `document.later` names the next of them.
   */
  undo(id: string, options: Writing = {}): Promise<Compaction> {
    return this.api.send(write("POST", compaction(id, "/undo"), options));
  }

  /** The messages that the summary replaces in the context, in order. */
  messages(id: string, query: Query<"list_folded_messages"> & Sending = {}): Paged<Message> {
    return this.api.paged(compaction(id, "/messages"), query);
  }
}

/** Reverts: a worker undoes all writes of a request, such as a bulk action, a batch or another revert, or all writes since a moment. */
export class Reverts extends Group {
  /**
   * Revert the writes of a request: each entry gets the value that it had before, as a new version, and entries that the request created
   * are deleted. `requestId` is the `request_id` of a version or an audit row, or the id of a revert. Entries that were written since are
   * skipped.
   *
   * With `{ at, ...filters }` instead of `requestId`: each entry that all filters select (at least one is required), and that was written
   * since that time, gets the value that it had then, as by `restoreEntries`, but for any number of entries.
   *
   * A worker performs it: read `get` until `finished_at` is not null. If you have an unfinished revert of
   * the same, that one is returned. With `dry_run` only count, for at most about one second: the counts are complete if `status` is `done`.
   */
  request(
    what: string | Omit<Body<"RevertRequest", { at: Date | string }>, "request_id">,
    { dry_run, ...options }: { dry_run?: boolean } & Writing = {},
  ): Promise<Revert> {
    const selection = typeof what === "string" ? { request_id: what } : what;
    const call = write("POST", "/reverts", { ...selection, ...options });
    return this.api.send({ ...call, query: { dry_run } });
  }

  /** The reverts of the workspace, newest first. They are kept for 30 days after their end. A token that is limited to namespaces or threads sees only those that it requested. */
  list(query: Query<"list_reverts"> & Sending = {}): Paged<Revert> {
    return this.api.paged("/reverts", query);
  }

  /** The revert, with its status and counts. */
  get(id: string, options: Sending = {}): Promise<Revert> {
    return this.api.send(read(revert(id), options));
  }

  /** Stop it before its next batch. Entries that were reverted keep their reverted values. Throws Conflict if it has ended. */
  cancel(id: string, options: Writing = {}): Promise<Revert> {
    return this.api.send(write("POST", revert(id, "/cancel"), options));
  }

  /** The entries that it skipped, with the reasons, in the order in which they were examined. */
  skipped(id: string, query: Query<"list_skipped_entries"> & Sending = {}): Paged<SkippedEntry> {
    return this.api.paged(revert(id, "/skipped"), query);
  }
}
