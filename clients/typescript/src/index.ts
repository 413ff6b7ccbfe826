/** Commonhold, the state server for AI agents: its client for Node 20 and browsers. */

export { RETRIES, type Call, type Guarded, type Retries, type Sending, type Writing } from "./calls.js";
export { Watch, type WatchOptions } from "./changes.js";
export { Commonhold, type ClientOptions, type Filters } from "./client.js";
export type { Compactions, Reverts } from "./jobs.js";
export {
  StateKey,
  StateScope,
  profileKey,
  stateKey,
  type JsonSchema,
  type KeyOptions,
  type Namespace,
  type ProfileKey,
  type Reducer,
  type StateKeyOptions,
  type Update,
  type UpdateOf,
} from "./keys.js";
export type { Namespaces, Replacing } from "./namespaces.js";
export type { components, operations, paths } from "./openapi.js";
export { Paged, type Page } from "./pages.js";
export * from "./problems.js";
export * from "./schemas.js";
export type { Validator } from "./standard.js";
export type { Commit, Dispatches, Plugins, Runs, StateKeys, ThreadFields, Threads, Tickets } from "./threads.js";
