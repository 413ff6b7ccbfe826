/**
 * AgentKit's history in a Commonhold thread.
 *
 * A user message and each result are messages of the thread in OpenAI's shape, so that other programs can read them;
 * the member `agentkit` contains what AgentKit needs to restore the same results.
 */

import {
  AgentResult,
  type HistoryConfig,
  type Message,
  type State,
  type StateData,
  type TextMessage,
  type ToolMessage,
  type ToolResultMessage,
} from "@inngest/agent-kit";

import { randomId } from "./calls.js";
import type { Commonhold } from "./client.js";
import { same } from "./json.js";
import { StateScope, decode, encode, type ProfileKey } from "./keys.js";
import { Conflict, KeyDecode } from "./problems.js";
import type { Entry, NewMessage } from "./schemas.js";
import type { ThreadFields } from "./threads.js";

export interface HistoryOptions<T extends StateData> {
  /**
   * Keeps `state.data` between runs, as the entry of this key under `thread::{id}`. Stored values take precedence over
   * the initial state of a run. Register the key once.
   */
  data?: ProfileKey<T>;
  /** Fields of a thread that is created: title, metadata, resource_id (the user or customer), … */
  thread?: (context: { state: State<T>; input: string }) => Omit<ThreadFields, "id">;
  /** Returns the ids of new threads; by default 128 random bits in hexadecimal. */
  newThreadId?: () => string;
  /** The maximum of the thread to load, newest messages first. */
  max_tokens?: number;
}

/** For `history` of createNetwork or createAgent. Every hook is idempotent. */
export function commonholdHistory<T extends StateData>(
  api: Commonhold,
  { data, thread = () => ({}), newThreadId = randomId, max_tokens }: HistoryOptions<T> = {},
): Required<HistoryConfig<T>> {
  const asked = new WeakMap<State<T>, string>();
  const loaded = new WeakMap<State<T>, Entry>();

  async function load(state: State<T>, threadId: string): Promise<void> {
    if (!data) return;
    const entry = await api.get(data, StateScope.thread(threadId));
    if (!entry.valid) throw new KeyDecode(data.name, "the stored value does not satisfy the schema");
    loaded.set(state, entry);
    if (entry.exists) Object.assign(state.data, await decode(data, entry.value));
  }

  /** The server merges concurrent changes of others; throws VersionConflict if both changed the same part. */
  async function save(state: State<T>, threadId: string): Promise<void> {
    if (!data) return;
    const { exists, version } = loaded.get(state) ?? { exists: false, version: 0 };
    const value = (await encode(data, { ...state.data })) as T;
    const options = { if_version: exists ? version : 0, merge: true, if_changed: true };
    const stored = await api.put(data, StateScope.thread(threadId), value, options);
    loaded.set(state, stored);
    if (same(value, stored.value)) return;
    // Includes the changes of others; otherwise, the next save would revert them.
    Object.assign(state.data, await decode(data, stored.value));
    for (const name of Object.keys(value)) if (!Object.hasOwn(stored.value, name)) delete state.data[name];
  }

  return {
    /** Also called for threads that exist. */
    async createThread({ state, input }) {
      const threadId = state.threadId ?? newThreadId();
      try {
        await api.threads.create({ id: threadId, ...thread({ state, input }) });
      } catch (error) {
        if (!(error instanceof Conflict)) throw error; // It exists, with other content.
      }
      await load(state, threadId);
      return { threadId };
    },

    async appendUserMessage({ state, threadId = state.threadId!, userMessage: { id, content, timestamp } }) {
      asked.set(state, id);
      const agentkit = { createdAt: timestamp };
      await appendNew(api, threadId, [{ id, role: "user", content, agentkit }]);
    },

    /** Without the message that started the run: AgentKit adds it itself. */
    async get({ state, threadId = state.threadId! }) {
      const { messages } = await api.threads.context(threadId, { max_tokens });
      const current = asked.get(state);
      return resultsOf(messages.filter((message) => !current || message.id !== current));
    },

    async appendResults({ state, threadId = state.threadId!, newResults }) {
      await appendNew(api, threadId, newResults.flatMap(messagesOf));
      await save(state, threadId);
    },
  };
}

/** Append the messages whose ids the thread does not have, because a repeated call may contain some again. */
async function appendNew(api: Commonhold, threadId: string, messages: NewMessage[]): Promise<void> {
  if (!messages.length) return;
  try {
    await api.threads.append(threadId, messages);
  } catch (error) {
    if (!(error instanceof Conflict) || !error.detail.startsWith("message already committed: ")) throw error;
    const ids = new Set(messages.map(({ id }) => id));
    for await (const { id } of api.threads.messages(threadId, { order: "desc", limit: 200 })) ids.delete(id);
    const missing = messages.filter(({ id }) => ids.has(id));
    if (missing.length) await api.threads.append(threadId, missing);
  }
}

/** One result as messages: the assistant's, then one for each result of a tool. */
function messagesOf(result: AgentResult): NewMessage[] {
  const { agentName, output, toolCalls } = result;
  // Inngest's steps convert results to plain objects, and dates to strings.
  const createdAt = new Date(result.createdAt).toISOString();
  const id = result.id ?? (result.checksum ? `${agentName}:${result.checksum}` : randomId());
  const calls = output.flatMap((message) => (message.type === "tool_call" ? message.tools : []));
  const texts = output.flatMap((message) => (message.type === "text" ? [textOf(message)] : []));
  const answer: NewMessage = {
    id,
    role: "assistant",
    name: agentName,
    content: texts.length ? texts.join("\n") : null,
    ...(calls.length ? { tool_calls: calls.map(openaiCall) } : {}),
    agentkit: { agentName, output, createdAt },
  };
  const answers = toolCalls.map((call, n): NewMessage => ({
    id: `${id}:${n}`,
    role: "tool",
    tool_call_id: call.tool.id,
    content: JSON.stringify(call.content ?? null),
    agentkit: call,
  }));
  return [answer, ...answers];
}

/** Messages as results: one for a user's turn, and one for an assistant's with the following results of tools. */
function resultsOf(messages: NewMessage[]): AgentResult[] {
  const results: AgentResult[] = [];
  for (const message of messages) {
    const last = results.at(-1);
    if (message.role === "tool" && last) last.toolCalls.push(toolResult(message, last));
    else results.push(resultOf(message));
  }
  return results;
}

interface Kept {
  agentName?: string;
  output?: Message[];
  createdAt?: string;
}

function resultOf(message: NewMessage): AgentResult {
  const { agentName, output, createdAt } = (message["agentkit"] ?? {}) as Kept;
  return new AgentResult(
    agentName ?? (message["name"] as string | undefined) ?? message.role,
    output ?? outputOf(message),
    [],
    createdAt ? new Date(createdAt) : new Date(),
    undefined,
    undefined,
    undefined,
    message.id,
  );
}

/** The result of a message that another program wrote. */
function outputOf({ role, content, tool_calls }: NewMessage): Message[] {
  const text = typeof content === "string" ? content : (content ?? []).map((block) => block["text"] ?? "").join("");
  const output: Message[] = [];
  const speaker = role === "tool" ? "assistant" : role;
  if (text) output.push({ type: "text", role: speaker, content: text, stop_reason: tool_calls ? "tool" : "stop" });
  if (tool_calls?.length) {
    output.push({ type: "tool_call", role: "assistant", tools: tool_calls.map(toolOf), stop_reason: "tool" });
  }
  return output;
}

function toolResult(message: NewMessage, { output }: AgentResult): ToolResultMessage {
  const kept = message["agentkit"] as ToolResultMessage | undefined;
  if (kept) return kept;
  const calls = output.flatMap((each) => (each.type === "tool_call" ? each.tools : []));
  const id = message.tool_call_id!;
  const tool = calls.find((call) => call.id === id) ?? { type: "tool", id, name: "unknown", input: {} };
  return { type: "tool_result", role: "tool_result", tool, content: { data: message.content }, stop_reason: "tool" };
}

function toolOf(call: { id: string } & Record<string, unknown>): ToolMessage {
  const { name, arguments: given } = (call["function"] ?? call) as { name: string; arguments?: unknown };
  return { type: "tool", id: call.id, name, input: inputOf(given) };
}

function inputOf(given: unknown): Record<string, unknown> {
  if (typeof given !== "string") return (given ?? {}) as Record<string, unknown>;
  try {
    return JSON.parse(given) as Record<string, unknown>;
  } catch {
    return { arguments: given }; // Invalid JSON of a model.
  }
}

function openaiCall({ id, name, input }: ToolMessage) {
  return { id, type: "function", function: { name, arguments: JSON.stringify(input ?? {}) } };
}

function textOf({ content }: TextMessage): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("");
}
