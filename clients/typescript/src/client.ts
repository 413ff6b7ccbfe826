/** The client: entries and typed values here, the rest in groups. */

import {
  REQUEST_OPTIONS,
  RETRIES,
  bytes,
  exchange,
  oneLine,
  pause,
  segment,
  sleep,
  type Call,
  type Guarded,
  type Retries,
  type Sending,
  type Settings,
  type Writing,
} from "./calls.js";
import { Watch, type WatchOptions } from "./changes.js";
import { Compactions, Reverts } from "./jobs.js";
import { isObject, refuseOthers, requireObject, same, shown } from "./json.js";
import { decode, encode, nameOf, type Namespace, type ProfileKey } from "./keys.js";
import { Namespaces, type Replacing } from "./namespaces.js";
import { Paged, type Page } from "./pages.js";
import { CommonholdError, KeyDecode, VersionConflict } from "./problems.js";
import type {
  Attribution,
  AuditRow,
  BatchOperation,
  Body,
  Change,
  Cleared,
  Diff,
  Entry,
  EntryReader,
  EntryRow,
  EntryVersion,
  Hit,
  Me,
  NamespaceInfo,
  Operation,
  Outcome,
  Query,
  Redaction,
  Restoration,
  Usage,
} from "./schemas.js";
import { Dispatches, Plugins, Runs, StateKeys, Threads, Tickets, write } from "./threads.js";

export interface ClientOptions {
  /** Where the server is: `http://127.0.0.1:8000`. */
  url: string;
  /** The API token, `ch_…`. */
  token: string;
  /** For one attempt, in addition to the `wait` of a long poll. Default: 30. */
  timeout_seconds?: number;
  /** How often calls are repeated, and after which pauses. Default: `RETRIES`. */
  retries?: Partial<Retries>;
  /** The run to which the writes are attributed. Blame and history show it. */
  run_id?: string;
  /** More headers, computed for each call. For example the `traceparent` of the active span. */
  headers?: () => Record<string, string>;
  /** Called in place of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** Filters of the change feed. A change must match all of them. */
export interface Filters {
  /** Only changes of this namespace. */
  namespace?: Namespace | undefined;
  /** Only changes of entries with this key. */
  key?: string | undefined;
  /** Only changes of entries whose key begins with this. */
  prefix?: string | undefined;
  /** Only changes of this thread. */
  thread_id?: string | undefined;
  /** Only changes of this run. */
  run_id?: string | undefined;
  /** Only changes of this kind, such as `entry.put`. */
  kind?: string | undefined;
}

/** The options of writes of an entry. */
interface Changing extends Guarded {
  /** Write nothing if the value is equal. */
  if_changed?: boolean | undefined;
  dry_run?: boolean | undefined;
}

const MEDIA = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  update: "application/vnd.commonhold.update+json",
};

const EDIT_PAUSES: Retries = { ...RETRIES, first_seconds: 0.005, longest_seconds: 0.5 };

/**
 * The client. Members and options have the names of the API (snake_case). Times are RFC 3339 strings.
 * Every method throws Problem or Unreachable.
 */
export class Commonhold {
  readonly namespaces = new Namespaces(this);
  readonly threads = new Threads(this);
  readonly runs = new Runs(this);
  readonly tickets = new Tickets(this);
  readonly dispatches = new Dispatches(this);
  readonly stateKeys = new StateKeys(this);
  readonly plugins = new Plugins(this);
  readonly compactions = new Compactions(this);
  readonly reverts = new Reverts(this);
  private readonly settings: Settings;

  constructor({ url, token, timeout_seconds = 30, retries = {}, run_id, headers, fetch, ...others }: ClientOptions = {} as ClientOptions) {
    refuseOthers("Commonhold", others, ["url", "token", "timeout_seconds", "retries", "run_id", "headers", "fetch"]);
    if (headers !== undefined && typeof headers !== "function") throw new TypeError("headers must be a function that returns headers");
    const base = origin(url);
    const own = { Authorization: `Bearer ${credentials(token)}`, ...(run_id ? { "Run-Id": bytes(oneLine(run_id)) } : {}) };
    this.settings = {
      base,
      headers: () => ({ ...headers?.(), ...own }),
      timeout_seconds: within("timeout_seconds", timeout_seconds, 0.001, 1e6),
      retries: patience(retries),
      // Looked up at each call, because tracing libraries replace it later.
      fetch: fetch ?? ((...call) => (globalThis.fetch ?? noFetch)(...call)),
    };
  }

  /** A client from the environment variables COMMONHOLD_URL and COMMONHOLD_TOKEN. Throws an Error if one of them is not set. */
  static fromEnv(options: Partial<ClientOptions> = {}): Commonhold {
    const { env = {} } = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process ?? {};
    const { url = env["COMMONHOLD_URL"], token = env["COMMONHOLD_TOKEN"] } = options;
    const missing = [!url && "COMMONHOLD_URL", !token && "COMMONHOLD_TOKEN"].filter(Boolean);
    if (missing.length) throw new Error(`set ${missing.join(" and ")} in the environment`);
    return new Commonhold({ ...options, url: url!, token: token! });
  }

  /** Make a call, with retries. Returns the JSON of the response. */
  async send<R>(call: Call): Promise<R> {
    return (await exchange(call, this.settings)) as R;
  }

  /** Make a call that has no method here, such as `request("POST", "/erase", { body: { … } })`; `path` is below /api/v1. Returns the JSON of the response. */
  async request<R>(method: Call["method"], path: string, options: Omit<Call, "method" | "path"> = {}): Promise<R> {
    if (!path.startsWith("/") || /^\/api\/v1(\/|$)/.test(path)) {
      throw new TypeError(`path must begin with / and continue below /api/v1, such as /usage, not ${shown(path)}`);
    }
    requireObject(`the options of ${method} ${path}`, options);
    refuseOthers(`${method} ${path}`, options, REQUEST_OPTIONS);
    return this.send({ method, path, ...options });
  }

  /** The list at a path below /api/v1, such as `paged("/webhooks")`. The options are the parameters of the operation. */
  paged<R>(path: string, { signal, ...query }: Sending & object = {}): Paged<R> {
    return new Paged((cursor) => this.send({ method: "GET", path, query: { ...query, ...(cursor ? { cursor } : {}) }, signal }));
  }

  // Entries and the change feed -----------------------------------------------------------------------------------

  /**
   * Read an entry. One that does not exist has the default and version 0. `at_version`, `at`: the entry as of that
   * version or time. `wait`: wait up to so many seconds (at most 30) for a version greater than `since`.
   */
  get<T = unknown>(
    namespace: Namespace,
    key: string,
    { signal, ...query }: Query<"read_entry"> & Sending = {},
  ): Promise<Entry<T>> {
    return this.send({ method: "GET", path: place("state", namespace, key), query, wait: query.wait, signal });
  }

  /**
   * Write the whole value. With `merge`, the server merges changes that do not clash with those since
   * `if_version`. With `if_changed`, an equal value creates no version.
   */
  put<T = unknown>(
    namespace: Namespace,
    key: string,
    value: T,
    {
      ttl_seconds,
      tags,
      pinned,
      merge,
      if_changed,
      dry_run,
      ...options
    }: Omit<Body<"Write">, "value"> & {
      /** Merge with the changes since `if_version`, which is required. */
      merge?: boolean;
    } & Changing = {},
  ): Promise<Entry<T>> {
    return this.send({
      method: "PUT",
      path: place("state", namespace, key),
      query: { dry_run },
      body: { value, ttl_seconds, tags, pinned },
      headers: {
        ...changed(if_changed),
        "On-Conflict": merge ? "merge" : undefined, // without a version, the server refuses it
      },
      ...options,
    });
  }

  /**
   * Change a part on the server, under its lock: a merge patch (RFC 7396), `kind: "json"` a JSON Patch, `kind: "update"` operations.
   * An array, or an object with `op` and `path`, requires `kind`: as a merge patch, operations would be stored in the value, or replace it.
   */
  patch<T = unknown>(
    namespace: Namespace,
    key: string,
    patch: unknown,
    {
      kind,
      if_changed,
      dry_run,
      ...options
    }: {
      /** The form of the patch. Default: `merge`. */
      kind?: keyof typeof MEDIA;
    } & Changing = {},
  ): Promise<Entry<T>> {
    if (kind === undefined && looksLikeOperations(patch))
      throw new TypeError(
        'kind is required for this patch, because it looks like operations: send kind: "update" (as update() does), "json" for a JSON Patch, or "merge" for a merge patch',
      );
    const path = place("state", namespace, key);
    const media_type = MEDIA[kind ?? "merge"];
    return this.send({ method: "PATCH", path, query: { dry_run }, body: patch, media_type, headers: changed(if_changed), ...options });
  }

  /** Change parts of the value on the server, in one step. */
  update<T = unknown>(
    namespace: Namespace,
    key: string,
    operations: Operation | readonly Operation[],
    options: Changing = {},
  ): Promise<Entry<T>> {
    return this.patch(namespace, key, [operations].flat(), { kind: "update", ...options });
  }

  /** Delete an entry. Deleting it again changes nothing. History and the version counter are kept. With `dry_run` only count. */
  delete(namespace: Namespace, key: string, { dry_run, ...options }: { dry_run?: boolean } & Guarded = {}): Promise<Cleared | undefined> {
    return this.send({ method: "DELETE", path: place("state", namespace, key), query: { dry_run }, ...options });
  }

  /** Entries of a namespace, by key; with `include: "value"` the values too. */
  list(namespace: Namespace, query: Query<"list_entries"> & Sending = {}): Paged<EntryRow> {
    return this.paged(`/state/${segment(nameOf(namespace))}`, query);
  }

  /**
   * Entries of all namespaces, unregistered ones too, by namespace and key. With filters, a page may have few items or none although more
   * pages follow.
   */
  listAll(query: Query<"list_state"> & Sending = {}): Paged<EntryRow> {
    return this.paged("/state", query);
  }

  /** Everything under one key over all namespaces, unregistered ones too. */
  listKey(key: string, query: Query<"list_key"> & Sending = {}): Paged<EntryRow> {
    return this.paged(`/keys/${segment(key)}`, query);
  }

  /** Delete everything under one key over all namespaces. With `dry_run` only count. */
  clearKey(key: string, { dry_run, ...options }: { dry_run?: boolean } & Writing = {}): Promise<Cleared> {
    return this.send({ method: "DELETE", path: `/keys/${segment(key)}`, query: { dry_run }, ...options });
  }

  /**
   * Delete every entry of a namespace, or those whose key begins with `prefix` or has this scope, all or none, up to 100,000. With `limit`,
   * at most that many, in no particular order: repeat the call until `deleted` is 0. With `dry_run` only count.
   */
  clear(
    namespace: Namespace,
    { prefix, scope_kind, limit, dry_run, ...options }: Query<"clear_namespace"> & Writing = {},
  ): Promise<Cleared> {
    const query = { prefix, scope_kind, limit, dry_run };
    return this.send({ method: "DELETE", path: `/state/${segment(nameOf(namespace))}`, query, ...options });
  }

  /**
   * Delete the entries of all namespaces, unregistered ones too, whose key begins with `prefix` or has this scope; one of them is
   * required. Otherwise as `clear`.
   */
  clearAll({ prefix, scope_kind, limit, dry_run, ...options }: Query<"clear_state"> & Writing): Promise<Cleared> {
    return this.send({ method: "DELETE", path: "/state", query: { prefix, scope_kind, limit, dry_run }, ...options });
  }

  /** Every kept version, newest first. */
  history(namespace: Namespace, key: string, query: Query<"read_history"> & Sending = {}): Paged<EntryVersion> {
    return this.paged(place("history", namespace, key), query);
  }

  /** Pin a version, so that history compaction keeps it; `pinned: false` removes the pin. */
  pinVersion(
    namespace: Namespace,
    key: string,
    version: number,
    {
      pinned = true,
      ...options
    }: {
      /** Whether history compaction keeps the version. Default: true. */
      pinned?: boolean;
    } & Writing = {},
  ): Promise<EntryVersion> {
    return this.send(write("PATCH", place("history", namespace, key), { version, pinned, ...options }));
  }

  /** What changed between two versions. */
  diff(namespace: Namespace, key: string, from: number, to: number, { signal }: Sending = {}): Promise<Diff> {
    return this.send({ method: "GET", path: place("diff", namespace, key), query: { from, to }, signal });
  }

  /** Write a new version equal to an old one. */
  restore<T = unknown>(
    namespace: Namespace,
    key: string,
    version: number,
    { if_changed, dry_run, ...options }: Changing = {},
  ): Promise<Entry<T>> {
    const path = place("restore", namespace, key);
    return this.send({ method: "POST", path, query: { dry_run }, body: { version }, headers: changed(if_changed), ...options });
  }

  /**
   * Give the entries that all given filters select (at least one is required) the values that they had at the time `at`, as new
   * versions, and delete those that did not exist then. All of them or none; at most 10,000 that were written since. Entries whose old
   * value is no longer kept, or does not satisfy the current schema, are left unchanged and counted as `refused`. With `dry_run` only count.
   */
  restoreEntries(options: Body<"Moment", { at: Date | string }> & { dry_run?: boolean } & Writing): Promise<Restoration> {
    requireObject("the options of restoreEntries()", options);
    const { dry_run, ...fields } = options;
    return this.send({ ...write("POST", "/restore", fields), query: { dry_run } });
  }

  /**
   * Remove the parts at `pointers` (JSON Pointers; by default the whole value) from every version, permanently, and record it in a new
   * version. `reason` is required. Each pointer must exist in at least one version, else Invalid. With `dry_run` only count.
   */
  redact(
    namespace: Namespace,
    key: string,
    options: Body<"RedactionRequest"> & { dry_run?: boolean } & Omit<Writing, "reason">,
  ): Promise<Redaction> {
    requireObject("the options of redact()", options);
    const { dry_run, signal, idempotency_key, ...body } = options;
    const path = place("redact", namespace, key);
    return this.send({ method: "POST", path, query: { dry_run }, body, signal, idempotency_key });
  }

  /** Who set each part of the current value: in which version, request and run. A part that is not listed was set by the write of the part that contains it. All are on one page. */
  blame(namespace: Namespace, key: string, query: Sending = {}): Paged<Attribution> {
    return this.paged(place("blame", namespace, key), query);
  }

  /** The steps of runs that reported the entry as read, the newest version first. With `version` only those that read that version (0: its absence). */
  readers(namespace: Namespace, key: string, query: Query<"list_readers"> & Sending = {}): Paged<EntryReader> {
    return this.paged(place("reads", namespace, key), query);
  }

  /** 1 to 1,000 operations. With `atomic` (the default), all are stored, or none is and the Problem names the first that failed (`index`). `minimal`: the results of writes have only the new version, not the entry. */
  async batch(
    operations: readonly BatchOperation[],
    {
      atomic = true,
      minimal = false,
      dry_run,
      ...options
    }: {
      /** All or none. Default: true. */
      atomic?: boolean;
      /** Leave the entries out of the results of writes. Default: false. */
      minimal?: boolean;
      dry_run?: boolean;
    } & Writing = {},
  ): Promise<Outcome[]> {
    const body = { atomic, operations };
    const headers = { Prefer: minimal ? "return=minimal" : undefined };
    // Reads are safe to repeat; with a key, the server would store all values for a repetition.
    const keyed = !Array.isArray(operations) || operations.some((each) => each?.op !== "get");
    const call = { method: "POST", path: "/state/batch", query: { dry_run }, body, headers, keyed, ...options } as const;
    return (await this.send<{ results: Outcome[] }>(call)).results;
  }

  /** Current entries whose values contain the words and "phrases" of `text` and meet its conditions, such as `/price > 100`, and those of `where`. */
  search(query: Body<"Search"> & Sending): Paged<Hit> {
    requireObject("the query of search()", query);
    const { signal, ...wanted } = query;
    return new Paged((cursor) =>
      this.send({
        method: "POST",
        path: "/search",
        body: { ...wanted, ...(cursor ? { cursor } : {}) },
        keyed: false,
        signal,
      }),
    );
  }

  /** A page of the change feed after `cursor`. `next_cursor` is always present: continue with it. */
  changes({
    signal,
    namespace,
    ...query
  }: Filters & Pick<Query<"list_changes">, "cursor" | "wait" | "limit"> & Sending = {}): Promise<Page<Change>> {
    const named = { ...query, namespace: namespace && nameOf(namespace) };
    return this.send({ method: "GET", path: "/changes", query: named, wait: query.wait, signal });
  }

  /** Follow the change feed: `for await (const change of state.watch({ namespace: "notes" })) …`. */
  watch({ namespace, ...filters }: Filters = {}, options: WatchOptions = {}): Watch {
    return new Watch(this.settings, { ...filters, namespace: namespace && nameOf(namespace) }, options);
  }

  // The workspace -----------------------------------------------------------------------------

  /** The token of the client, and its permissions. */
  me({ signal }: Sending = {}): Promise<Me> {
    return this.send({ method: "GET", path: "/me", signal });
  }

  /** How many entries, bytes, threads and messages the workspace has, as last measured by a worker, and its limits. */
  usage({ signal, ...query }: Sending = {}): Promise<Usage> {
    return this.send({ method: "GET", path: "/usage", query, signal });
  }

  /** Every write of the workspace, newest first. `action` may be a glob such as `entry.*`. With filters, a page may have few items or none although more pages follow. */
  audit(query: Query<"list_audit"> & Sending = {}): Paged<AuditRow> {
    return this.paged("/audit", query);
  }

  // Typed values ------------------------------------------------------------------------------

  /**
   * Register the namespaces of keys, with their default and JSON Schema; needs the role admin. A namespace that is
   * registered already is not changed. It is accepted if its schema and default are the same except for optional
   * fields; otherwise SchemaConflict lists the differences. With `{ replace: true }` after the keys, schema and default
   * are replaced and the other settings kept; the last of several programs wins unless `if_version` is the schema version
   * to replace. Throws VersionConflict if the schema version is not `if_version`, or if
   * another client registers the namespace at the same time.
   */
  async register(
    ...keys: ProfileKey<any>[] | [...keys: ProfileKey<any>[], options: Replacing & Omit<Writing, "idempotency_key">]
  ): Promise<NamespaceInfo[]> {
    const other = keys.find((each) => !isObject(each));
    if (other !== undefined) {
      throw new TypeError(`register() takes keys of profileKey(), not ${shown(other)}; with a name, use namespaces.register()`);
    }
    const registered: NamespaceInfo[] = [];
    const options = (keys.find((each) => !("name" in each)) ?? {}) as Replacing & Writing;
    refuseOthers("register()", options, ["replace", "if_version", "reason", "signal"]);
    const { replace, ...others } = options;
    const query = { if_exists: replace ? "update" : "accept" };
    for (const key of keys) {
      if (!("name" in key)) continue;
      const path = `/namespaces/${segment(key.name)}`;
      const body = { schema: key.json_schema ?? (replace ? {} : undefined), default: key.default };
      registered.push(await this.send({ method: "PUT", path, query, body, ...others }));
    }
    return registered;
  }

  /** Read the value; the default if there is none (nothing is written). Throws KeyDecode if the stored value is not valid. */
  async read<T>(key: ProfileKey<T>, scope: string, options: Sending = {}): Promise<T> {
    return opened(key, await this.get(key, scope, options));
  }

  /** Write the whole value. The last writer wins unless `if_version` is the version to replace. */
  async write<T>(key: ProfileKey<T>, scope: string, value: T, options: Guarded = {}): Promise<Entry<T>> {
    return this.put(key, scope, (await encode(key, value)) as T, options);
  }

  /**
   * Read, change, compare-and-set. `change` changes its argument or returns another value. If another writer was
   * faster, it is called again with the new value, up to `attempts` times (100), then VersionConflict. No update is
   * lost. A change that changes nothing writes nothing.
   */
  async edit<T>(
    key: ProfileKey<T>,
    scope: string,
    change: (value: T) => T | void | Promise<T | void>,
    {
      attempts = 100,
      ...options
    }: {
      /** How often the function is called at most. Default: 100. */
      attempts?: number;
    } & Omit<Writing, "idempotency_key"> = {},
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const path = place("state", key, scope);
      const entry = await this.send<Entry>({ method: "GET", path, signal: options.signal, edited: key.name });
      const value = await opened(key, entry);
      const before = await encode(key, value);
      const result = await change(value);
      const isObjectType = typeof value === "object" && value !== null && !key.schema && !key.json_schema;
      if (isObjectType && result !== null && !["object", "undefined"].includes(typeof result)) {
        // Such as `(team) => team.tags.push("x")`, whose new length would replace the value.
        throw new TypeError(`the function of edit() returned ${shown(result)} for an object: return nothing, or the new value`);
      }
      const changed = result === undefined ? value : (result as T);
      const document = await encode(key, changed);
      if (same(before, document)) return changed;
      try {
        await this.put(key, scope, document, { if_version: entry.exists ? entry.version : 0, ...options });
        return changed;
      } catch (error) {
        if (!(error instanceof VersionConflict) || attempt >= attempts - 1) throw error;
      }
      await sleep(pause(EDIT_PAUSES, attempt), options.signal);
    }
  }
}

/** The base URL of the API. Throws TypeError for an invalid URL. */
function origin(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const wanted = "url must be the address of the server, such as http://127.0.0.1:8000";
  if (parsed?.username || parsed?.password) throw new TypeError(`${wanted}, without user and password`);
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.search || parsed.hash) {
    throw new TypeError(`${wanted}, not ${shown(url)}`);
  }
  return parsed.href.replace(/\/+$/, "").replace(/(\/api\/v1)+$/, "") + "/api/v1";
}

/** The token as a header value. A token that was read from a file ends with a line break. Messages do not contain the token. */
function credentials(token: string): string {
  const text = typeof token === "string" ? oneLine(token) : "";
  if (!/^[\x21-\x7e]+$/.test(text)) throw new TypeError("token must be an API token without spaces, such as ch_1a2b…");
  return text;
}

function patience(retries: Partial<Retries>): Retries {
  if (!isObject(retries)) throw new TypeError(`retries must be an object, such as { attempts: 3 }, not ${shown(retries)}`);
  refuseOthers("retries", retries, Object.keys(RETRIES));
  const given = Object.entries(retries).filter(([, each]) => each !== undefined);
  const all = { ...RETRIES, ...Object.fromEntries(given) };
  for (const [name, each] of Object.entries(all)) within(name, each, name === "attempts" ? 1 : 0);
  return all;
}

function within(name: string, value: number, least: number, most = Infinity): number {
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw new TypeError(`${name} must be a number from ${least} to ${most}, not ${shown(value)}`);
}

function noFetch(): never {
  throw new CommonholdError("this runtime has no fetch: use Node 20.3 or newer, or give the client one as the option fetch");
}

function changed(if_changed: boolean | undefined): Record<string, string | undefined> {
  return { "If-Changed": if_changed ? "true" : undefined };
}

function looksLikeOperations(patch: unknown): boolean {
  return Array.isArray(patch) || (typeof patch === "object" && patch !== null && "op" in patch && "path" in patch);
}

function place(verb: string, namespace: Namespace, key: string): string {
  return `/${verb}/${segment(nameOf(namespace))}/${segment(key)}`;
}

async function opened<T>(key: ProfileKey<T>, entry: Entry): Promise<T> {
  if (!entry.exists && entry.value === null) return structuredClone(key.default);
  if (!entry.valid) throw new KeyDecode(key.name, "the stored value does not satisfy the schema");
  return decode(key, entry.value);
}
