/** Typed keys of shared state: what is stored (ProfileKey, StateKey) and which instance of it (StateScope). */

import { isObject, refuseOthers, shown, stringify } from "./json.js";
import { KeyDecode, KeyEncode } from "./problems.js";
import type { Validator } from "./standard.js";

/** Keys of the usual forms. Any other string is a key too. */
export const StateScope = {
  /** For all agents everywhere. */
  global: () => "global",
  /** For one delegation tree. */
  parentThread: (id: string) => `parent_thread::${id}`,
  /** For all agents of one kind. */
  agentType: (name: string) => `agent_type::${name}`,
  /** For one thread. */
  thread: (id: string) => `thread::${id}`,
  /** Any other grouping, verbatim. */
  new: (key: string) => key,
} as const;

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Record<string, unknown> | boolean;

/** A namespace whose values have a type, created by `profileKey`. */
export interface ProfileKey<T> {
  /** The name of the namespace. */
  readonly name: string;
  /** The value of an entry that does not exist. */
  readonly default: T;
  /** Checks the values that are read and written: any Standard Schema (zod, valibot, arktype, …). */
  readonly schema?: Validator<T> | undefined;
  /** The JSON Schema with which the server checks the writes of all clients. */
  readonly json_schema?: JsonSchema | undefined;
}

export interface KeyOptions<T> {
  /** The value of an entry that does not exist. */
  default: T;
  /** Checks the values that are read and written. */
  schema?: Validator<T>;
  /** The JSON Schema with which the server checks the writes of all clients. Default: that of `schema`. */
  json_schema?: JsonSchema;
}

/**
 * A namespace for values of one type:
 *
 *     const TeamContext = profileKey("team_context", { default: { goal: "", constraints: [] as string[] } });
 *
 * `schema` checks every value that is read or written. It may fill in defaults but not change existing members,
 * because its output is written back. `json_schema` is derived from `schema` if the library supports it (zod 4.2). Without
 * either, `register` of a new namespace registers the schema `{}`. A Python program that then registers its class for the
 * namespace gets `SchemaConflict`.
 */
export function profileKey<T>(name: string, options: KeyOptions<T>): ProfileKey<T> {
  if (options?.default === undefined) throw new TypeError(`profileKey(${shown(name)}) needs a default: { default: … }`);
  refuseOthers("profileKey", options, ["default", "schema", "json_schema"]);
  return { ...options, name, json_schema: jsonSchemaOf(options) };
}

/** The JSON Schema of a key, or that of its schema. Some schemas have none and throw: pass `json_schema: true` then. */
export function jsonSchemaOf({ schema, json_schema }: Pick<KeyOptions<any>, "schema" | "json_schema">): JsonSchema | undefined {
  return json_schema ?? schema?.["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
}

/** How the server applies an update to the stored value. */
export type Reducer = "replace" | "add" | "max" | "min" | "append" | "union" | "merge" | "json_patch";

/** The form of an update of a key with values V, by reducer. */
export type UpdateOf<V, R extends Reducer> = R extends "add" | "max" | "min"
  ? number
  : R extends "append" | "union"
    ? V extends readonly (infer Item)[]
      ? Item | readonly Item[]
      : never
    : R extends "merge"
      ? MergePatch<V>
      : R extends "json_patch"
        ? object | readonly object[]
        : V;

/** RFC 7396: null removes. */
export type MergePatch<V> = V extends readonly unknown[]
  ? V
  : V extends object
    ? { [K in keyof V]?: MergePatch<V[K]> | null }
    : V;

/** An update of one key of the state, or the removal of its value: `stateKey.update(…)` and `stateKey.clear()` return them. */
export type Update = { key: string; update: unknown } | { key: string; clear: true };

export interface StateKeyOptions<V, R extends Reducer> {
  /** How updates change the value. Default: `replace`. */
  reducer?: R;
  /** `exclusive` (the default): concurrent updates of the key conflict. `commutative`: they are all applied, because the reducer gives the same result in any order. */
  merge?: "exclusive" | "commutative";
  /** How long a value lives: until the next `run` starts (the default), or as long as the `thread`. */
  scope?: "run" | "thread";
  /** The value where a thread has none. Default: null. */
  default?: V;
  /** False: values live until their run ends, and exports leave them out. Default: true. */
  persistent?: boolean;
  /** Whether threads retain their values when the plugin is uninstalled. Default: false. */
  retain_on_uninstall?: boolean;
  /** Checks the values that `threads.read` returns. */
  schema?: Validator<V>;
  /** The JSON Schema with which the server checks the values. Default: that of `schema`. */
  json_schema?: JsonSchema;
  /** For people. */
  description?: string;
  /** The plugin that owns the key. */
  plugin?: string;
}

/** A typed key of the state of a run or thread. The server applies updates with its reducer. */
export class StateKey<V, R extends Reducer = "replace"> {
  constructor(
    readonly name: string,
    readonly options: StateKeyOptions<V, R> = {},
  ) {}

  /** For `commit`: this update of the key. */
  update(update: UpdateOf<V, R>): Update {
    return { key: this.name, update };
  }

  /** For `commit`: removes the value. */
  clear(): Update {
    return { key: this.name, clear: true };
  }
}

/**
 * A typed key of the state of runs and threads, which `stateKeys.register` registers:
 *
 *     const offers = stateKey("offers_seen", { reducer: "add", merge: "commutative", default: 0 });
 */
export function stateKey<V, R extends Reducer = "replace">(
  name: string,
  options: StateKeyOptions<V, R> = {},
): StateKey<V, R> {
  return new StateKey(name, options);
}

/** The name of a namespace, or the key that has it. */
export type Namespace = string | ProfileKey<any>;

export function nameOf(namespace: Namespace): string {
  return typeof namespace === "string" ? namespace : namespace?.name;
}

interface Checked<T> {
  name: string;
  schema?: Validator<T> | undefined;
}

/** The JSON of a value, which shares no object with it. Throws KeyEncode if it has none, or the schema refuses it. */
export async function encode<T>({ name, schema }: Checked<T>, value: T): Promise<unknown> {
  let document: unknown;
  try {
    document = JSON.parse(stringify(value)!);
  } catch (error) {
    throw new KeyEncode(name, (error as Error).message);
  }
  const result = await schema?.["~standard"].validate(document);
  if (result?.issues) throw new KeyEncode(name, told(result.issues));
  return document;
}

/**
 * The value of a JSON document. Throws KeyDecode if it is not valid for the key. Members of objects that the schema
 * drops are kept, so that writing the value back does not remove members of other programs.
 */
export async function decode<T>({ name, schema }: Checked<T>, document: unknown): Promise<T> {
  if (!schema) return document as T;
  const result = await schema["~standard"].validate(structuredClone(document));
  if (result.issues) throw new KeyDecode(name, told(result.issues));
  return withOthers(document, result.value) as T;
}

function told(issues: readonly { message: string; path?: readonly unknown[] | undefined }[]): string {
  const steps = (path: readonly unknown[] = []) =>
    path.map((step) => `/${typeof step === "object" ? (step as { key: PropertyKey }).key.toString() : String(step)}`);
  return issues.map(({ path, message }) => [steps(path).join(""), message].filter(Boolean).join(" ")).join("; ");
}

function withOthers(stored: unknown, made: unknown): unknown {
  if (Array.isArray(stored) && Array.isArray(made) && stored.length === made.length) {
    return made.map((each, n) => withOthers(stored[n], each));
  }
  if (!isObject(stored) || !isObject(made)) return made;
  const joined = Object.entries(made).map(([name, value]) => [
    name,
    Object.hasOwn(stored, name) ? withOthers(stored[name], value) : value,
  ]);
  return { ...stored, ...Object.fromEntries(joined) };
}
