/** Names for requests and responses. The types are generated from the server's OpenAPI document (openapi.ts). */

import type { components, operations } from "./openapi.js";

type Schemas = components["schemas"];

/** An entry. Missing: `exists` is false, `value` the namespace's default, `version` 0. */
export type Entry<T = unknown> = Omit<Schemas["Entry"], "value"> & { value: T } & Partial<Schemas["DryRun"]>;
/** An entry in a list. It has a `value` only with `include: "value"`. */
export type EntryRow = Schemas["EntryRow"];
export type EntryVersion = Schemas["EntryVersion"];
/** A part of a value, and the write that set it. */
export type Attribution = Schemas["Attribution"];
/** The step of a run that reported a version of an entry as read. */
export type EntryReader = Schemas["EntryReader"];
export type Diff = Schemas["Diff"];
export type Hit = Schemas["Hit"];
export type NamespaceInfo = Schemas["Namespace"];
/** What the removal of a namespace would affect. */
export type NamespaceRemoval = Schemas["NamespaceRemoval"] & Schemas["DryRun"];
/** With `dry_run: true` what the registration would change, else the namespace. */
export type RegistrationOr<D extends boolean> = D extends true ? Schemas["RegistrationPreview"] & Schemas["DryRun"] : NamespaceInfo;
export type StateKeyInfo = Schemas["StateKey"];
/** What the removal of a state key would remove. */
export type StateKeyRemoval = Schemas["StateKeyRemoval"] & Schemas["DryRun"];
export type Thread = Schemas["Thread"];
export type Lineage = Schemas["Lineage"];
export type ThreadDeletion = Schemas["ThreadDeletion"];
/** A message, with the members that its writer added. */
export type Message = Schemas["Message"] & { [member: string]: unknown };
export type Appended = Schemas["Appended"];
export type ItemResult = Schemas["ItemResult"];
/** The context that a model should see: with summaries, and with at most `max_tokens`. */
export type Context = Omit<Schemas["Context"], "messages"> & { messages: NewMessage[] };
/** A thread's state at one revision. */
export type Snapshot = Omit<Schemas["Snapshot"], "extensions"> & { extensions: Record<string, unknown> } & Partial<Schemas["DryRun"]>;
export type Revision = Schemas["Revision"];
export type Run = Schemas["Run"];
export type Committed = Schemas["Committed"] & Partial<Schemas["DryRun"]>;
export type Ticket = Schemas["Ticket"];
export type Dispatch = Schemas["Dispatch"];
export type DispatchCounts = Schemas["DispatchCounts"];
/** A claimed dispatch, with its claim token. */
export type Claimed = Schemas["Claims"]["items"][number];
export type Change = Schemas["Change"];
export type Cleared = Schemas["Cleared"] & Partial<Schemas["DryRun"]>;
export type Restoration = Schemas["Restoration"] & Partial<Schemas["DryRun"]>;
export type Redaction = Schemas["Redaction"] & Partial<Schemas["DryRun"]>;
export type Replayed = Schemas["Replayed"] & Partial<Schemas["DryRun"]>;
export type Interruption = Schemas["Interruption"] & Partial<Schemas["DryRun"]>;
export type Me = Schemas["Me"];
export type Usage = Schemas["Usage"];
export type AuditRow = Schemas["AuditRow"];
export type Plugin = Schemas["Plugin"] & Partial<Schemas["DryRun"]>;
export type PluginSummary = Schemas["PluginSummary"];
/** What the removal of a plugin would remove. */
export type PluginRemoval = Schemas["PluginRemoval"] & Schemas["DryRun"];
/** What a run could see when it committed a step, with a page of entries. */
export type Knowledge = Schemas["Knowledge"];
/** An entry that a step of a run reported as read. */
export type RunRead = Schemas["RunRead"];
/** A compaction: a job of a worker, and its result. */
export type Compaction = Schemas["Compaction"];
export type CompactionPreview = Schemas["CompactionPreview"];
export type SnapshotPreview = Schemas["SnapshotPreview"];
export type HistoryPreview = Schemas["HistoryPreview"];
/** The preview of a compaction of a thread, by its kind. */
export type PreviewOf<K extends ThreadCompactionKind> = K extends "snapshot" ? SnapshotPreview : CompactionPreview;
/** What is compacted in a thread: messages of its context, or old snapshots. */
export type ThreadCompactionKind = NonNullable<Schemas["CompactionRequest"]["kind"]>;
/** With `dry_run: true` the preview, else the job. */
export type CompactionOr<Preview, D extends boolean> = D extends true ? Preview & Schemas["DryRun"] : Compaction;
/** A revert: a job of a worker, and its result. */
export type Revert = Schemas["Revert"] & Partial<Schemas["DryRun"]>;
export type SkippedEntry = Schemas["SkippedEntry"];

/** A message to append, in the format of OpenAI or of Commonhold; unknown members are kept. */
export interface NewMessage {
  /** Unique in the thread. Default: generated. */
  id?: string;
  /** Who wrote it. */
  role: Schemas["Message"]["role"];
  /** Text, or a list of parts. */
  content?: string | ({ type: string } & Record<string, unknown>)[] | null;
  /** `internal`: people do not see it. Default: `all`. */
  visibility?: Schemas["Message"]["visibility"];
  /** The tool call that a message with the role `tool` answers. */
  tool_call_id?: string;
  /** The tool calls of an assistant. */
  tool_calls?: ({ id: string } & Record<string, unknown>)[] | null;
  [member: string]: unknown;
}

/** Changes that the server makes while it holds the lock of the entry, so that no retry is needed. `path` is a JSON Pointer. */
export interface Operation {
  /** The change. */
  op: "add" | "max" | "min" | "append" | "union" | "remove" | "merge" | "set";
  /** A JSON Pointer; the empty string is the whole value. */
  path: string;
  /** The operand. `remove` has none, or the value that it removes from an array wherever it occurs. */
  value?: unknown;
}

/** An operation of a batch, on one entry. `if_version`: only if it has that version (0: only if it does not exist). */
export type BatchOperation = { namespace: string; key: string; if_version?: number } &
  (
    | { op: "get" }
    | { op: "put"; value: unknown; ttl_seconds?: number | null; tags?: string[]; pinned?: boolean }
    | { op: "patch"; patch: unknown; patch_type?: "merge" | "json" | "update" }
    | { op: "delete" }
  );

/** The result of one operation of a batch. */
export interface Outcome {
  /** The HTTP status that the operation alone would have. */
  status: number;
  /** The entry. Absent after a `delete` or a failure, and after any write with `minimal`. */
  entry?: Entry | null;
  /** The version that a `delete` created (0: there was no entry); with `minimal` also the version that a `put` or `patch` wrote. */
  version?: number;
  /** Why the operation failed, without `atomic`. */
  problem?: Record<string, unknown>;
}

/** The body of a call; `Named` replaces the types of members that contain any JSON. */
export type Body<K extends keyof Schemas, Named = object> = {
  // A mapped type of the schema keeps its descriptions, which editors and the reference show.
  [M in keyof Schemas[K]]: M extends keyof Named ? Named[M] : Schemas[K][M];
};

type Parameters<T> = {
  [K in keyof T]: T[K] extends string[] | undefined ? T[K] | string : T[K] | Since<K>;
};
/** Times may be Dates. */
type Since<K> = K extends "at" | "updated_since" | "created_after" | "created_before" ? Date : never;

/** The query of an operation. A parameter that may be repeated takes a string or a list. */
export type Query<K extends keyof operations> = Parameters<NonNullable<operations[K]["parameters"]["query"]>>;
