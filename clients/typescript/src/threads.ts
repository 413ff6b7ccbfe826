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
  Committed,
  Context,
  Diff,
  Dispatch,
  Message,
  NewMessage,
  Plugin,
  Query,
  Revision,
  Run,
  Snapshot,
  StateKeyInfo,
  Thread,
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
function write<F extends Guarded>(method: "PUT" | "POST" | "PATCH", path: string, fields: F): Call {
  requireObject(`the fields of ${method} ${path}`, fields);
  const { signal, reason, idempotency_key, if_version, ...body } = fields;
  return { method, path, body, signal, reason, idempotency_key, if_version };
}

function read<Q extends Sending & { wait?: number }>(path: string, { signal, ...query }: Q): Call {
  return { method: "GET", path, query, wait: query.wait, signal };
}

abstract class Group {
  constructor(protected readonly api: Sender) {}
}

const thread = (id: string, verb = "") => `/threads/${segment(id)}${verb}`;
const run = (id: string, verb = "") => `/runs/${segment(id)}${verb}`;

export type ThreadFields = Body<"NewThread", { metadata?: Json; compaction_policy?: Json }>;

export class Threads extends Group {
  /** Create a thread. A repetition returns the stored one; other content throws Conflict. */
  create(fields: ThreadFields & Writing = {}): Promise<Thread> {
    return this.api.send(write("POST", "/threads", fields));
  }

  get(id: string, options: Sending = {}): Promise<Thread> {
    return this.api.send(read(thread(id), options));
  }

  list(query: Query<"list_threads"> & Sending = {}): Paged<Thread> {
    return this.api.paged("/threads", query);
  }

  /**
   * Change the given fields. `merge`: metadata and policy merge with what is stored, and null removes a member (RFC
   * 7396); without it they replace it. `if_version`: only if the thread is at that version.
   */
  change(
    id: string,
    { merge = false, ...fields }: Omit<ThreadFields, "id"> & { merge?: boolean } & Guarded,
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
    { dry_run, ...options }: { children?: "detach" | "reject" | "cascade"; dry_run?: boolean } & Writing = {},
  ): Promise<ItemResult[]> {
    const call = { ...write("POST", "/threads/delete", { ids, ...options }), query: { dry_run } };
    return (await this.api.send<{ results: ItemResult[] }>(call)).results;
  }

  /** A new thread from this one as of a revision and message count. */
  fork(id: string, fields: Body<"NewFork", { metadata?: Json }> & Writing = {}): Promise<Thread> {
    return this.api.send(write("POST", thread(id, "/fork"), fields));
  }

  /**
   * Append messages, which are stored unchanged. `expected_message_count`: only if the thread has that many. `operations`
   * on entries, as those of `batch`, are stored together with the messages or not at all.
   */
  append(
    id: string,
    messages: readonly NewMessage[],
    options: { expected_message_count?: number; operations?: readonly BatchOperation[] } & Writing = {},
  ): Promise<Appended> {
    return this.api.send(write("POST", thread(id, "/messages"), { messages, ...options }));
  }

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

  snapshots(id: string, query: Query<"list_snapshots"> & Sending = {}): Paged<Revision> {
    return this.api.paged(thread(id, "/snapshots"), query);
  }

  diff(id: string, from: number, to: number, options: Sending = {}): Promise<Diff> {
    return this.api.send(read(thread(id, "/diff"), { from, to, ...options }));
  }

  /** A new revision with the state of an old one. `if_version`: only over that revision. */
  restore(id: string, revision: number, options: Guarded = {}): Promise<Snapshot> {
    return this.api.send(write("POST", thread(id, "/restore"), { revision, ...options }));
  }

  /** Import `{revision, extensions}` as one new revision. */
  importState(
    id: string,
    snapshot: Snapshot,
    options: { mode?: "replace" | "merge"; unknown_keys?: "error" | "skip" } & Guarded = {},
  ): Promise<Snapshot> {
    return this.api.send(write("POST", thread(id, "/import"), { snapshot, ...options }));
  }
}

/** One atomic step: state, messages and the change of the run are stored together, or nothing is. */
export type Commit = Body<
  "Commit",
  {
    /** `stateKey.update(…)`, `stateKey.clear()`, or objects as in the API; in order. */
    updates?: readonly Update[];
    /** The updates of parallel branches, which the server merges. */
    batches?: readonly (readonly Update[])[];
    messages?: readonly NewMessage[];
    run?: Json;
    /** The entries that the step used. */
    reads?: readonly { namespace: string; key: string; version: number }[];
  }
>;

interface Fenced {
  fencing_token?: number;
}

export class Runs extends Group {
  /** Start a run, which clears run-scoped state. Throws Conflict if the thread has an active run. */
  start(threadId: string, fields: Body<"NewRun", { metadata?: Json }> & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", thread(threadId, "/runs"), fields));
  }

  /** The run. `wait`: wait up to so many seconds (at most 30) for a revision greater than `since`. */
  get(id: string, query: Query<"get_run"> & Sending = {}): Promise<Run> {
    return this.api.send(read(run(id), query));
  }

  list(query: Query<"list_runs"> & Sending = {}): Paged<Run> {
    return this.api.paged("/runs", query);
  }

  /** Change the status, counts or metadata: `{ status: "done", termination_reason: { type: "natural_end" } }`. */
  change(
    id: string,
    fields: Body<"RunChange", { termination_reason?: Json; waiting?: Json; metadata?: Json }> & Writing,
  ): Promise<Run> {
    return this.api.send(write("PATCH", run(id), fields));
  }

  commit(id: string, step: Commit & Writing): Promise<Committed> {
    if (step.updates !== undefined && !Array.isArray(step.updates)) {
      throw new TypeError("updates must be a list, such as [stateKey.update(1)]");
    }
    return this.api.send(write("POST", run(id, "/commits"), step));
  }

  heartbeat(id: string, fields: Fenced & Writing = {}): Promise<Run> {
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

  cancel(id: string, options: Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/cancel"), options));
  }

  fail(id: string, fields: { message?: string } & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/fail"), fields));
  }

  /** Take over the run. Its `fencing_token` grows, so commits of the previous worker are refused. */
  takeLease(id: string, fields: Fenced & { only_if_free?: boolean } & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/lease"), fields));
  }

  releaseLease(id: string, { fencing_token, ...options }: Fenced & Writing = {}): Promise<Run> {
    return this.api.send({ method: "DELETE", path: run(id, "/lease"), query: { fencing_token }, ...options });
  }

  resume(id: string, fields: Body<"RunRecovery"> & Writing = {}): Promise<Run> {
    return this.api.send(write("POST", run(id, "/resume"), fields));
  }

  /** The tickets of a run, in the order they were opened. */
  tickets(id: string, query: Query<"list_run_tickets"> & Sending = {}): Paged<Ticket> {
    return this.api.paged(run(id, "/tickets"), query);
  }
}

export class Tickets extends Group {
  /** The ticket. `wait`: wait up to so many seconds (at most 30) for a decision. */
  get(id: string, query: Query<"get_ticket"> & Sending = {}): Promise<Ticket> {
    return this.api.send(read(`/tickets/${segment(id)}`, query));
  }

  list(query: Query<"list_tickets"> & Sending = {}): Paged<Ticket> {
    return this.api.paged("/tickets", query);
  }

  /** Decide the ticket. The first decision is final; a second one throws Conflict. */
  decide(id: string, decision: { action: "resume" | "cancel"; payload?: unknown } & Writing): Promise<Ticket> {
    return this.api.send(write("POST", `/tickets/${segment(id)}/decision`, decision));
  }
}

/** A claimed dispatch: its id and claim token. */
type Held = Pick<Claimed, "id" | "claim_token">;

export class Dispatches extends Group {
  /** Put work into a thread's mailbox. Lower `priority` first, 0 to 255. */
  enqueue(threadId: string, fields: Body<"NewDispatch", { payload?: unknown }> & Writing = {}): Promise<Dispatch> {
    return this.api.send(write("POST", thread(threadId, "/dispatches"), fields));
  }

  /**
   * Claim work. Waits up to `wait` seconds (at most 30) until there is some. If the response is lost, the work can be
   * claimed again when its lease ends.
   */
  async claim({ wait, ...fields }: Body<"ClaimRequest"> & { wait?: number } & Writing = {}): Promise<Claimed[]> {
    const call = write("POST", "/dispatches/claim", fields);
    const { items } = await this.api.send<{ items: Claimed[] }>({ ...call, query: { wait }, wait, keyed: !wait });
    return items;
  }

  /** Acknowledge the dispatch: it was delivered. Throws Conflict if the claim is no longer valid. */
  ack(held: Held, options: Writing = {}): Promise<Dispatch> {
    return this.hold(held, "ack", options);
  }

  nack(held: Held, fields: { error?: string; retry_after?: number } & Writing = {}): Promise<Dispatch> {
    return this.hold(held, "nack", fields);
  }

  extend(held: Held, fields: { lease_seconds?: number } & Writing = {}): Promise<Dispatch> {
    return this.hold(held, "extend", fields);
  }

  cancel(id: string, options: Writing = {}): Promise<Dispatch> {
    return this.api.send(write("POST", `/dispatches/${segment(id)}/cancel`, options));
  }

  replay(id: string, options: Writing = {}): Promise<Dispatch> {
    return this.api.send(write("POST", `/dispatches/${segment(id)}/replay`, options));
  }

  get(id: string, options: Sending = {}): Promise<Dispatch> {
    return this.api.send(read(`/dispatches/${segment(id)}`, options));
  }

  list(query: Query<"list_dispatches"> & Sending = {}): Paged<Dispatch> {
    return this.api.paged("/dispatches", query);
  }

  /** Supersede the queued dispatches of the thread, and the claim of a claimed one. */
  interrupt(threadId: string, options: Writing = {}): Promise<Json> {
    return this.api.send(write("POST", thread(threadId, "/interrupt"), options));
  }

  private hold({ id, claim_token }: Held, verb: string, fields: Guarded): Promise<Dispatch> {
    return this.api.send(write("POST", `/dispatches/${segment(id)}/${verb}`, { claim_token, ...fields }));
  }
}

export class StateKeys extends Group {
  /** Register a state key, or change it. */
  register(key: StateKey<any, any>, options: Writing = {}): Promise<StateKeyInfo> {
    if (!isObject(key?.options)) throw new TypeError(`register() takes a key of stateKey(), not ${shown(key)}`);
    const { schema: _, json_schema: __, ...fields } = key.options;
    const body = { ...fields, schema: jsonSchemaOf(key.options), ...options };
    return this.api.send(write("PUT", `/state-keys/${segment(key.name)}`, body));
  }

  get(name: string, options: Sending = {}): Promise<StateKeyInfo> {
    return this.api.send(read(`/state-keys/${segment(name)}`, options));
  }

  list(query: Query<"list_state_keys"> & Sending = {}): Paged<StateKeyInfo> {
    return this.api.paged("/state-keys", query);
  }
}

export class Plugins extends Group {
  /** Install a plugin: register all its keys and namespaces, or none. */
  install(
    name: string,
    fields: Body<"Installation", { state_keys?: readonly Json[]; namespaces?: readonly Json[] }> & Writing,
  ): Promise<Plugin> {
    return this.api.send(write("PUT", `/plugins/${segment(name)}`, fields));
  }

  uninstall(name: string, { entries, dry_run, ...options }: Query<"uninstall_plugin"> & Writing = {}): Promise<unknown> {
    return this.api.send({ method: "DELETE", path: `/plugins/${segment(name)}`, query: { entries, dry_run }, ...options });
  }

  list(query: Query<"list_plugins"> & Sending = {}): Paged<Json> {
    return this.api.paged("/plugins", query);
  }
}
