/** Calls on threads, runs, tickets, the mailbox, state keys and plugins. */

import { segment, type Call, type Guarded, type Sending, type Writing } from "./calls.js";
import { isObject, requireObject, shown } from "./json.js";
import { decode, jsonSchemaOf, type Reducer, type StateKey, type Update } from "./keys.js";
import type { Paged } from "./pages.js";
import type {
  Appended,
  BatchOperation,
  ItemResult,
  Body,
  Claimed,
  Cleared,
  Committed,
  CompactionOr,
  Context,
  Diff,
  Dispatch,
  DispatchCounts,
  Interruption,
  Knowledge,
  Lineage,
  Message,
  NewMessage,
  Plugin,
  PluginRemoval,
  PluginSummary,
  PreviewOf,
  Query,
  Replayed,
  Revision,
  Run,
  RunRead,
  Snapshot,
  StateKeyInfo,
  StateKeyRemoval,
  Thread,
  ThreadCompactionKind,
  ThreadDeletion,
  Ticket,
} from "./schemas.js";

/** Sends calls: the client. */
export interface Sender {
  send<R>(call: Call): Promise<R>;
  paged<R>(path: string, query: object): Paged<R>;
}

type Json = Record<string, unknown>;

/** A write whose JSON body consists of the fields except those of `Guarded`. */
export function write<F extends Guarded>(method: "PUT" | "POST" | "PATCH", path: string, fields: F): Call {
  requireObject(`the fields of ${method} ${path}`, fields);
  const { signal, reason, idempotency_key, if_version, ...body } = fields;
  return { method, path, body, signal, reason, idempotency_key, if_version };
}

export function read<Q extends Sending & { wait?: number }>(path: string, { signal, ...query }: Q): Call {
  return { method: "GET", path, query, wait: query.wait, signal };
}

export abstract class Group {
  constructor(protected readonly api: Sender) {}
}

const thread = (id: string, verb = "") => `/threads/${segment(id)}${verb}`;
const run = (id: string, verb = "") => `/runs/${segment(id)}${verb}`;

/** The fields of a thread. */
export type ThreadFields = Body<"NewThread", { metadata?: Json; compaction_policy?: Json }>;

/** Threads: messages and a versioned state. */
export class Threads extends Group {
  /** Create a thread. A repetition returns the stored one; other content throws Conflict. */
  create(fields: ThreadFields & Writing = {}): Promise<Thread> {
    return this.api.send(write("POST", "/threads", fields));
  }

  /** The thread, without its messages and state. */
  get(id: string, options: Sending = {}): Promise<Thread> {
    return this.api.send(read(thread(id), options));
  }

  /** The threads of the workspace, newest first. */
  list(query: Query<"list_threads"> & Sending = {}): Paged<Thread> {
    return this.api.paged("/threads", query);
  }

  /**
   * Change the given fields. `merge`: metadata and policy merge with what is stored, and null removes a member (RFC
   * 7396); without it they replace it. `if_version`: only if the thread is at that version.
   */
  change(
    id: string,
    {
      merge = false,
      ...fields
    }: Omit<ThreadFields, "id"> & {
      /** Merge metadata and policy with what is stored (RFC 7396). */
      merge?: boolean;
    } & Guarded,
  ): Promise<Thread> {
    const media_type = merge ? "application/merge-patch+json" : "application/json";
    return this.api.send({ ...write("PATCH", thread(id), fields), media_type });
  }

  /** Delete the thread with its messages, runs, state and the entries under `thread::{id}`; with `dry_run`, only count them. */
  delete(
    id: string,
    { children, dry_run, expected_revision, ...options }: Query<"delete_thread"> & Guarded = {},
  ): Promise<ThreadDeletion | undefined> {
    const query = { children, dry_run, expected_revision };
    return this.api.send({ method: "DELETE", path: thread(id), query, ...options });
  }

  /** Delete up to 200 threads, independently of each other. */
  async deleteMany(
    ids: readonly string[],
    { dry_run, ...options }: Omit<Body<"ThreadSelection">, "ids"> & { dry_run?: boolean } & Writing = {},
  ): Promise<ItemResult[]> {
    const call = { ...write("POST", "/threads/delete", { ids, ...options }), query: { dry_run } };
    return (await this.api.send<{ results: ItemResult[] }>(call)).results;
  }

  /** A new thread from this one as of a revision and message count. */
  fork(id: string, fields: Body<"NewFork", { metadata?: Json }> & Writing = {}): Promise<Thread> {
    return this.api.send(write("POST", thread(id, "/fork"), fields));
  }

  /** The ancestors of the thread, what it was copied from, and the number of its children and forks. */
  lineage(id: string, options: Sending = {}): Promise<Lineage> {
    return this.api.send(read(thread(id, "/lineage"), options));
  }

  /**
   * Append messages, which are stored unchanged. `expected_message_count`: only if the thread has that many. `operations`
   * on entries, as those of `batch`, are stored together with the messages or not at all. `if_version`: only if the state is
   * at that revision.
   */
  append(
    id: string,
    messages: readonly NewMessage[],
    options: Omit<Body<"NewMessages", { operations?: readonly BatchOperation[] }>, "messages"> & Guarded = {},
  ): Promise<Appended> {
    return this.api.send(write("POST", thread(id, "/messages"), { messages, ...options }));
  }

  /** All messages of the thread, in order: compacted ones and summaries too. For what a model should see, read `context`. */
  messages(id: string, query: Query<"list_messages"> & Sending = {}): Paged<Message> {
    return this.api.paged(thread(id, "/messages"), query);
  }

  /** The context that a model should see. */
  context(id: string, query: Query<"read_context"> & Sending = {}): Promise<Context> {
    return this.api.send(read(thread(id, "/context"), query));
  }

  /** The state, now or at a retained revision. `export`: only registered keys that are persistent. */
  state(id: string, query: Query<"read_state"> & Sending = {}): Promise<Snapshot> {
    return this.api.send(read(thread(id, "/state"), query));
  }

  /** One key of the state; undefined where it is absent. */
  async read<V>(id: string, key: StateKey<V, Reducer>, query: Query<"read_state"> & Sending = {}): Promise<V | undefined> {
    const { extensions } = await this.state(id, query);
    if (!Object.hasOwn(extensions, key.name)) return undefined;
    return decode<V>({ name: key.name, schema: key.options.schema }, extensions[key.name]);
  }

  /** The kept revisions of the state, newest first: what each changed, by whom and why. */
  snapshots(id: string, query: Query<"list_snapshots"> & Sending = {}): Paged<Revision> {
    return this.api.paged(thread(id, "/snapshots"), query);
  }

  /** Label or pin a revision: compaction keeps its state. An empty label removes the label. */
  markSnapshot(id: string, revision: number, fields: Body<"SnapshotMark"> & Writing): Promise<Revision> {
    return this.api.send(write("PATCH", thread(id, `/snapshots/${segment(String(revision))}`), fields));
  }

  /** What changed in the state between two revisions. Throws Gone if compaction removed one of them. */
  diff(id: string, from: number, to: number, options: Sending = {}): Promise<Diff> {
    return this.api.send(read(thread(id, "/diff"), { from, to, ...options }));
  }

  /** A new revision with the state of an old one. `if_version`: only if the state is at that revision. */
  restore(id: string, revision: number, { dry_run, ...options }: { dry_run?: boolean } & Guarded = {}): Promise<Snapshot> {
    return this.api.send({ ...write("POST", thread(id, "/restore"), { revision, ...options }), query: { dry_run } });
  }

  /** Import `{revision, extensions}` as one new revision. `if_version`: only if the state is at that revision. */
  importState(
    id: string,
    snapshot: Snapshot,
    { dry_run, ...options }: Omit<Body<"SnapshotImport">, "snapshot"> & { dry_run?: boolean } & Guarded = {},
  ): Promise<Snapshot> {
    return this.api.send({ ...write("POST", thread(id, "/import"), { snapshot, ...options }), query: { dry_run } });
  }

  /** What a compaction would do now. `would_fold` has the messages that it would summarize, or `skip` the reason why it would do nothing. */
  previewCompaction<K extends ThreadCompactionKind = "context">(
    id: string,
    query: {
      /** What the compaction would remove or replace. Default: `context`. */
      kind?: K;
    } & Sending = {},
  ): Promise<PreviewOf<K>> {
    return this.api.send(read(thread(id, "/compactions"), query));
  }

  /**
   * Request a compaction, which a worker performs: read `compactions.get` until its `finished_at` is not null. `kind`:
   * `"context"` summarizes messages; `"snapshot"` removes old snapshots, which cannot be restored, and needs the role
   * admin. If one of this kind is queued or running, that one is returned. With `dry_run` only preview it.
   */
  compact<K extends ThreadCompactionKind = "context", D extends boolean = false>(
    id: string,
    {
      dry_run,
      ...fields
    }: {
      /** What it removes or replaces. Default: `context`. */
      kind?: K;
      dry_run?: D;
    } & Writing = {},
  ): Promise<CompactionOr<PreviewOf<K>, D>> {
    return this.api.send({ ...write("POST", thread(id, "/compactions"), fields), query: { dry_run } });
  }
}

/** One atomic step: state, messages and the change of the run are stored together, or nothing is. */
export type Commit = Body<
  "Commit",
  {
    updates?: readonly Update[];
    batches?: readonly (readonly Update[])[];
    messages?: readonly NewMessage[];
    run?: Json;
    reads?: readonly { namespace: string; key: string; version: number }[];
  }
>;

/** Runs: one execution of an agent on a thread, whose steps are committed atomically. */
export class Runs extends Group {
  /** Start a run, which clears run-scoped state. Throws Conflict if the thread has an active run. */
  start(threadId: string, fields: Body<"NewRun", { metadata?: Json }> & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", thread(threadId, "/runs"), fields));
  }

  /** The run. `wait`: wait up to so many seconds (at most 30) for a revision greater than `since`. */
  get(id: string, query: Query<"get_run"> & Sending = {}): Promise<Run> {
    return this.api.send(read(run(id), query));
  }

  /** The runs of the workspace, newest first. */
  list(query: Query<"list_runs"> & Sending = {}): Paged<Run> {
    return this.api.paged("/runs", query);
  }

  /**
   * Change the status, counts or metadata: `{ status: "done", termination_reason: { type: "natural_end" } }`. `if_version`: only if
   * `last_revision` of the run is that revision.
   */
  change(
    id: string,
    fields: Body<"RunChange", { termination_reason?: Json; waiting?: Json; metadata?: Json }> & Guarded,
  ): Promise<Run> {
    return this.api.send(write("PATCH", run(id), fields));
  }

  /**
   * Store a step of the run: all of it as one revision, or nothing. An empty commit returns the current revision. Throws
   * RevisionConflict if `base_revision` is not the current one, and Superseded if `fencing_token` is not the current one.
   */
  commit(id: string, step: Commit & { dry_run?: boolean } & Writing): Promise<Committed> {
    const path = run(id, "/commits");
    requireObject(`the fields of POST ${path}`, step);
    const { dry_run, ...fields } = step;
    if (step.updates !== undefined && !Array.isArray(step.updates)) {
      throw new TypeError("updates must be a list, such as [stateKey.update(1)]");
    }
    return this.api.send({ ...write("POST", path, fields), query: { dry_run } });
  }

  /** Extend the lease: it lasts `lease_seconds` of the run from now. Throws Superseded if `fencing_token` is not the current one. */
  heartbeat(id: string, fields: Body<"Heartbeat"> & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/heartbeat"), fields));
  }

  /** Cancel up to 200 runs, independently of each other. */
  async cancelMany(
    ids: readonly string[],
    { dry_run, ...options }: { dry_run?: boolean } & Writing = {},
  ): Promise<ItemResult[]> {
    const call = { ...write("POST", "/runs/cancel", { ids, ...options }), query: { dry_run } };
    return (await this.api.send<{ results: ItemResult[] }>(call)).results;
  }

  /** End the run as cancelled. Its pending tickets become void. A run that has ended does not change. `if_version`: only if its `last_revision` is that revision. */
  cancel(id: string, options: Guarded = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/cancel"), options));
  }

  /** End the run with an error. Its pending tickets become void. `if_version`: only if its `last_revision` is that revision. */
  fail(id: string, fields: Body<"RunFailure"> & Guarded = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/fail"), fields));
  }

  /** Take over the run. Its `fencing_token` grows, so commits of the previous worker are refused. */
  takeLease(id: string, fields: Body<"LeaseRequest"> & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/lease"), fields));
  }

  /** Release the lease. The run counts as stuck until another worker takes it. */
  releaseLease(id: string, { fencing_token, ...options }: Query<"release_lease"> & Writing = {}): Promise<Run> {
    return this.api.send({ method: "DELETE", path: run(id, "/lease"), query: { fencing_token }, ...options });
  }

  /**
   * Set a run that has not ended to `running`, with a new fencing token and lease, from the state of a revision if
   * one is given. Its pending tickets become void. Its messages are kept.
   */
  resume(id: string, fields: Body<"RunRecovery"> & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/resume"), fields));
  }

  /** The tickets of a run, in the order they were opened. */
  tickets(id: string, query: Query<"list_run_tickets"> & Sending = {}): Paged<Ticket> {
    return this.api.paged(run(id, "/tickets"), query);
  }

  /**
   * What the run could see when it committed a step, by default its last one: the state of the thread, and the entries of its scopes as
   * `items`, one page of them. Pass the `next_cursor` of a page as `cursor` to get the next.
   */
  knowledge(id: string, query: Query<"read_knowledge"> & Sending = {}): Promise<Knowledge> {
    return this.api.send(read(run(id, "/knowledge"), query));
  }

  /** The versions of entries that the commits of the run reported as read, newest first. `stale`: only versions that are not current now, or were not when the step was committed. */
  reads(id: string, query: Query<"list_run_reads"> & Sending = {}): Paged<RunRead> {
    return this.api.paged(run(id, "/reads"), query);
  }
}

/** Tickets: decisions that a suspended run waits for. */
export class Tickets extends Group {
  /** The ticket. `wait`: wait up to so many seconds (at most 30) for a decision. */
  get(id: string, query: Query<"get_ticket"> & Sending = {}): Promise<Ticket> {
    return this.api.send(read(`/tickets/${segment(id)}`, query));
  }

  /** The tickets of the workspace, newest first. `{ status: "pending" }` is the inbox. */
  list(query: Query<"list_tickets"> & Sending = {}): Paged<Ticket> {
    return this.api.paged("/tickets", query);
  }

  /** Decide the ticket. The first decision is final; a second one throws Conflict. */
  decide(id: string, decision: Body<"Decision", { payload?: unknown }> & Writing): Promise<Ticket> {
    return this.api.send(write("POST", `/tickets/${segment(id)}/decision`, decision));
  }
}

/** A claimed dispatch: its id and claim token. */
type Held = Pick<Claimed, "id" | "claim_token">;

/** Dispatches: the mailbox of a thread, with work that agents claim, acknowledge and retry. */
export class Dispatches extends Group {
  /** Put work into a thread's mailbox. Lower `priority` first, 0 to 255. */
  enqueue(threadId: string, fields: Body<"NewDispatch", { payload?: unknown }> & Writing = {}): Promise<Dispatch> {
    return this.api.send(write("POST", thread(threadId, "/dispatches"), fields));
  }

  /**
   * Claim work. Waits up to `wait` seconds (at most 30) until there is some. If the response is lost, the work can be
   * claimed again when its lease ends.
   */
  async claim({ wait, ...fields }: Body<"ClaimRequest"> & Query<"claim_dispatches"> & Writing = {}): Promise<Claimed[]> {
    const call = write("POST", "/dispatches/claim", fields);
    const { items } = await this.api.send<{ items: Claimed[] }>({ ...call, query: { wait }, wait, keyed: !wait });
    return items;
  }

  /** Acknowledge the dispatch: it was delivered. Throws Conflict if the claim is no longer valid. */
  ack(held: Held, options: Writing = {}): Promise<Dispatch> {
    return this.hold(held, "ack", options);
  }

  /**
   * Report a failed attempt. The dispatch returns to the queue after `retry_after` seconds, or becomes a dead letter when
   * its attempts are used up. Throws Conflict if the claim is no longer valid.
   */
  nack(held: Held, fields: Omit<Body<"NegativeAcknowledgement">, "claim_token"> & Writing = {}): Promise<Dispatch> {
    return this.hold(held, "nack", fields);
  }

  /** Extend the claim: it lasts `lease_seconds` from now. Throws Conflict if it is no longer valid. */
  extend(held: Held, fields: Omit<Body<"Extension">, "claim_token"> & Writing = {}): Promise<Dispatch> {
    return this.hold(held, "extend", fields);
  }

  /** Cancel a queued dispatch. To stop a claimed one, interrupt the thread. */
  cancel(id: string, options: Writing = {}): Promise<Dispatch> {
    return this.api.send(write("POST", `/dispatches/${segment(id)}/cancel`, options));
  }

  /** Enqueue a dead letter again with all its attempts. Throws Conflict if an open dispatch has its `dedupe_key`. */
  replay(id: string, options: Writing = {}): Promise<Dispatch> {
    return this.api.send(write("POST", `/dispatches/${segment(id)}/replay`, options));
  }

  /** The dispatch with its payload and status, without the claim token. */
  get(id: string, options: Sending = {}): Promise<Dispatch> {
    return this.api.send(read(`/dispatches/${segment(id)}`, options));
  }

  /** The dispatches of the workspace, newest first. `{ status: "DeadLetter" }` lists the dead letters. */
  list(query: Query<"list_dispatches"> & Sending = {}): Paged<Dispatch> {
    return this.api.paged("/dispatches", query);
  }

  /** How many dispatches have each status, in the workspace or with these filters: `{ Queued: 3, DeadLetter: 0, … }`. */
  counts(query: Query<"count_dispatches"> & Sending = {}): Promise<DispatchCounts> {
    return this.api.send(read("/dispatches/counts", query));
  }

  /** Delete the dead letters of a thread or for an agent; without a filter, all of the workspace. It cannot be undone. With `dry_run` only count. */
  clearDead({ dry_run, ...fields }: Body<"DeadLetterScope"> & { dry_run?: boolean } & Writing = {}): Promise<Cleared> {
    return this.api.send({ ...write("POST", "/dispatches/clear", fields), query: { dry_run } });
  }

  /**
   * Enqueue the dead letters of a thread or for an agent again, with all their attempts; without a filter, all of the workspace. Those
   * whose `dedupe_key` an open dispatch or a newer dead letter has are left out. With `dry_run` only count.
   */
  replayDead({ dry_run, ...fields }: Body<"DeadLetterScope"> & { dry_run?: boolean } & Writing = {}): Promise<Replayed> {
    return this.api.send({ ...write("POST", "/dispatches/replay", fields), query: { dry_run } });
  }

  /** Supersede the queued dispatches of the thread, and the claim of a claimed one. */
  interrupt(threadId: string, { dry_run, ...options }: { dry_run?: boolean } & Writing = {}): Promise<Interruption> {
    return this.api.send({ ...write("POST", thread(threadId, "/interrupt"), options), query: { dry_run } });
  }

  private hold({ id, claim_token }: Held, verb: string, fields: Guarded): Promise<Dispatch> {
    return this.api.send(write("POST", `/dispatches/${segment(id)}/${verb}`, { claim_token, ...fields }));
  }
}

/** State keys: typed keys of the state of a thread. */
export class StateKeys extends Group {
  /** Register a state key, or change it. */
  register(key: StateKey<any, any>, options: Writing = {}): Promise<StateKeyInfo> {
    if (!isObject(key?.options)) throw new TypeError(`register() takes a key of stateKey(), not ${shown(key)}`);
    const { schema: _, json_schema: __, ...fields } = key.options;
    const body = { ...fields, schema: jsonSchemaOf(key.options), ...options };
    return this.api.send(write("PUT", `/state-keys/${segment(key.name)}`, body));
  }

  /**
   * Unregister a state key. `values`: `"retain"` (the default) leaves its values readable in the threads, `"clear"` removes them, as one
   * revision of each thread. With `dry_run` only count. Throws Conflict if the key belongs to an installed plugin.
   */
  unregister(
    name: string,
    { values, dry_run, ...options }: Query<"unregister_state_key"> & Writing = {},
  ): Promise<StateKeyRemoval | undefined> {
    return this.api.send({ method: "DELETE", path: `/state-keys/${segment(name)}`, query: { values, dry_run }, ...options });
  }

  /** The definition of a state key. */
  get(name: string, options: Sending = {}): Promise<StateKeyInfo> {
    return this.api.send(read(`/state-keys/${segment(name)}`, options));
  }

  /** The registered state keys, by name. */
  list(query: Query<"list_state_keys"> & Sending = {}): Paged<StateKeyInfo> {
    return this.api.paged("/state-keys", query);
  }
}

/** Plugins: sets of state keys and namespaces that are installed together. */
export class Plugins extends Group {
  /** Install a plugin: register all its keys and namespaces, or none. */
  install(
    name: string,
    {
      dry_run,
      ...fields
    }: Body<"Installation", { state_keys?: readonly Json[]; namespaces?: readonly Json[] }> & { dry_run?: boolean } & Writing,
  ): Promise<Plugin> {
    return this.api.send({ ...write("PUT", `/plugins/${segment(name)}`, fields), query: { dry_run } });
  }

  /**
   * Unregister its state keys and namespaces, and remove the values of its state keys from every thread, except those that
   * are retained on uninstallation. `entries`: what happens to live entries of its namespaces (`"delete"`, or `"retain"`, which leaves
   * them unreadable); required if there are any, else Conflict. With `dry_run` only count.
   */
  uninstall(
    name: string,
    { entries, dry_run, ...options }: Query<"uninstall_plugin"> & Writing = {},
  ): Promise<PluginRemoval | undefined> {
    return this.api.send({ method: "DELETE", path: `/plugins/${segment(name)}`, query: { entries, dry_run }, ...options });
  }

  /** The plugin, with its state keys and namespaces as they are now. */
  get(name: string, options: Sending = {}): Promise<Plugin> {
    return this.api.send(read(`/plugins/${segment(name)}`, options));
  }

  /** The installed plugins by name, with the names of what belongs to them. */
  list(query: Query<"list_plugins"> & Sending = {}): Paged<PluginSummary> {
    return this.api.paged("/plugins", query);
  }
}
