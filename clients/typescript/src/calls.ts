/** A call of the API, and its execution with retries. */

import { lostNumber, refuseOthers, requireObject, shown, stringify } from "./json.js";
import { InFlight, CommonholdError, KeyDecode, KeyEncode, Problem, Unreachable, notOfCommonhold, problemIn } from "./problems.js";

export interface Sending {
  /** Aborts the call, which then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
}

export interface Writing extends Sending {
  /** Why, for history and audit. */
  reason?: string | undefined;
  /** By default a random one for each call. Pass your own to repeat a call after a restart of your program. */
  idempotency_key?: string | undefined;
}

export interface Guarded extends Writing {
  /** The version to replace (0: only if the entry does not exist). Throws VersionConflict for another one. */
  if_version?: number | undefined;
}

/** A request of the API. */
export interface Call extends Guarded {
  /** The HTTP method. */
  method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  /** Below /api/v1. */
  path: string;
  /** The parameters of the URL. A list repeats its parameter. */
  query?: object | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** More headers of the request. */
  headers?: Record<string, string | undefined>;
  /** The media type of the body. Default: `application/json`. */
  media_type?: string;
  /** False: carries no random Idempotency-Key. */
  keyed?: boolean;
  /** Seconds that the server may wait before it responds (long polling). */
  wait?: number | undefined;
  /** The name of a profile key whose value will be written back: KeyDecode if JavaScript cannot keep a number of it. @internal */
  edited?: string;
}

/**
 * How often a call is repeated, and after which pauses: after lost connections, timeouts, 429, 502, 503, 504
 * and 409 `in-flight`. The pause before attempt n+1 is random between 0 and `first_seconds * 2 ** n`, at most
 * `longest_seconds` ("full jitter"). `Retry-After` is added to it, up to `patience_seconds`. If the server
 * requests a longer pause, the call fails.
 */
export interface Retries {
  /** All attempts, the first included. */
  attempts: number;
  /** The longest pause before the second attempt; it doubles with each further one. */
  first_seconds: number;
  /** No pause is longer, without `Retry-After`. */
  longest_seconds: number;
  /** The longest `Retry-After` that is honoured. */
  patience_seconds: number;
}

/** The default of the option `retries`. */
export const RETRIES: Retries = {
  attempts: 6,
  first_seconds: 0.1,
  longest_seconds: 5,
  patience_seconds: 30,
};

export interface Settings {
  /** With /api/v1. */
  base: string;
  /** A function, so that no log of a client shows the token. */
  headers: () => Record<string, string>;
  timeout_seconds: number;
  retries: Retries;
  fetch: typeof globalThis.fetch;
}

const AGAIN = new Set([429, 502, 503, 504]);

const OPTIONS = ["if_version", "reason", "idempotency_key", "signal"];
/** The options of `request()`. */
export const REQUEST_OPTIONS = ["body", "query", "headers", "media_type", "keyed", "wait", ...OPTIONS];
const MEMBERS = [...REQUEST_OPTIONS, "method", "path", "edited"];

/** Seconds after the failed attempt number `attempt`, which counts from 0. */
export function pause(retries: Retries, attempt: number): number {
  return Math.random() * Math.min(retries.longest_seconds, retries.first_seconds * 2 ** attempt);
}

/** `setTimeout` in seconds. It takes 24 days at most: instead of more, it would wait for 1 ms. */
export function after(seconds: number, action: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(action, Math.min(seconds, 2_000_000) * 1000);
}

export async function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  await new Promise<void>((done, refuse) => {
    signal?.throwIfAborted();
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      refuse(signal!.reason);
    });
    const timer = after(seconds, () => {
      forget();
      done();
    });
  });
}

const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Call `stop` when the signal is aborted, unless the returned function is called before. A signal may outlive any
 * number of calls: `AbortSignal.any` would leave something in it each time, and a listener for each of more than
 * ten calls at once makes Node warn of a leak.
 */
export function onAbort(signal: AbortSignal | undefined, stop: () => void): () => void {
  if (!signal) return () => undefined;
  const all = callbacks.get(signal) ?? new Set();
  callbacks.set(signal, all.add(stop));
  signal.addEventListener("abort", callBack); // The same listener again has no effect.
  return () => {
    all.delete(stop);
    if (!all.size) signal.removeEventListener("abort", callBack);
  };
}

function callBack(this: AbortSignal): void {
  callbacks.get(this)?.forEach((stop) => stop());
}

/**
 * Make the call. Returns the JSON of the response, undefined if it has none. Throws the Problem that the server
 * returns, or Unreachable. An unsafe call carries one Idempotency-Key over all attempts: it has one effect.
 */
export async function exchange(call: Call, settings: Settings): Promise<unknown> {
  const url = address(settings.base, call);
  const init = request(call, settings);
  const { retries } = settings;
  for (let attempt = 0; ; attempt++) {
    const last = attempt >= retries.attempts - 1;
    let rest: number;
    try {
      const answer = await within(settings.timeout_seconds + (call.wait ?? 0), call.signal, async (signal) => {
        const response = await settings.fetch(url, { ...init, signal });
        return response.ok ? document(call, response) : problemIn(response);
      });
      if (!(answer instanceof Problem)) return answer;
      const problem = answer;
      rest = problem.retry_after ?? 0;
      if (last || !mayPass(problem) || rest > retries.patience_seconds) throw problem;
    } catch (error) {
      call.signal?.throwIfAborted();
      if (!isTransport(error)) throw error;
      if (last) throw unreachable(`${call.method} ${call.path}`, settings, error);
      rest = 0;
    }
    await sleep(rest + pause(retries, attempt), call.signal);
  }
}

/** Names the server and the reason, which fetch hides in the cause of its error. */
export function unreachable(request: string, { base }: Settings, error: Error): Unreachable {
  const cause = error.cause as { message?: string; code?: string } | undefined;
  const reason = cause?.message || cause?.code || error.message;
  return new Unreachable(`no response from ${new URL(base).origin} to ${request}: ${reason}`, { cause: error });
}

/** Whether there was no complete response: what fetch throws, also for its own timeout. */
export function isTransport(error: unknown): error is Error {
  return error instanceof TypeError || (error instanceof DOMException && error.name === "TimeoutError");
}

/** A name or key as one segment of a path, which cannot contain a separator. */
export function segment(text: string): string {
  if (typeof text !== "string") throw new TypeError(`a name, key or id must be a string, not ${shown(text)}`);
  if (text === "") throw new TypeError("a name, key or id must not be empty");
  // fetch removes dots, encoded ones too: the call would reach another address.
  if (text === "." || text === "..") {
    throw new CommonholdError(`"${text}" cannot be a part of a URL, because fetch removes it; use batch() for this key`);
  }
  return encodeURIComponent(text);
}

export function address(base: string, { path, query = {} }: Pick<Call, "path" | "query">): string {
  requireObject(`the parameters of ${path}`, query);
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const search = new URLSearchParams(
    given.flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((each) => [name, spelled(name, each)])),
  );
  return base + path + (given.length ? `?${search}` : "");
}

function spelled(name: string, value: unknown): string {
  // The server takes whole seconds.
  if (name === "wait" && typeof value === "number") return String(Math.ceil(value));
  return value instanceof Date ? value.toISOString() : String(value);
}

function request(call: Call, settings: Settings): RequestInit {
  const { method, if_version, reason = "", signal } = call;
  requireObject(`the options of ${method} ${call.path}`, call);
  refuseOthers(`${method} ${call.path}`, call, MEMBERS, `${OPTIONS.join(", ")}, and those of the method`);
  if (if_version !== undefined && !(Number.isSafeInteger(if_version) && if_version >= 0)) {
    throw new TypeError(`if_version must be a version, such as entry.version, or 0, not ${shown(if_version)}`);
  }
  if (typeof reason !== "string") throw new TypeError(`reason must be a string, not ${shown(reason)}`);
  if (signal && typeof signal.throwIfAborted !== "function") {
    throw new TypeError("signal must be an AbortSignal, such as controller.signal");
  }
  const headers: Record<string, string | undefined> = {
    ...settings.headers(),
    ...call.headers,
    "If-Match": if_version === undefined ? undefined : `"${if_version}"`,
    "Change-Reason": bytes(oneLine(reason)) || undefined,
    "Content-Type": call.body === undefined ? undefined : (call.media_type ?? "application/json"),
    "Idempotency-Key": call.idempotency_key ?? (method === "GET" || call.keyed === false ? undefined : randomId()),
  };
  const given = Object.entries(headers).filter((each): each is [string, string] => each[1] !== undefined);
  for (const [name, value] of given) {
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) throw new TypeError(`${name} has a character that a header cannot carry`);
  }
  // A redirect would drop the token or turn a POST into a GET.
  return { method, redirect: "manual", headers: new Headers(given), ...(call.body === undefined ? {} : { body: encoded(call)! }) };
}

function encoded({ method, path, body }: Call): string | undefined {
  try {
    return stringify(body);
  } catch (error) {
    const reason = error instanceof RangeError ? "it is nested too deeply" : (error as Error).message;
    throw new KeyEncode(`the body of ${method} ${path}`, reason);
  }
}

/** The text as a header value: line breaks and other control characters become spaces. */
export function oneLine(text: string): string {
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f]+/g, " ").trim();
}

/** The text as a header value: one character for each byte of its UTF-8. */
export function bytes(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

/**
 * Run an attempt until `signal` or the time ends it. Not by `AbortSignal.timeout`: Node 20 may collect one that nothing
 * else refers to as garbage, and then the attempt waits for minutes.
 */
async function within<R>(
  seconds: number,
  signal: AbortSignal | undefined,
  attempt: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const late = new DOMException(`none within ${seconds} s`, "TimeoutError");
  const timer = after(seconds, () => controller.abort(late));
  const forget = onAbort(signal, () => controller.abort(signal!.reason));
  try {
    return await attempt(controller.signal);
  } catch (error) {
    // Node 20.3 throws an AbortError of its own if the body of the response is aborted.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    forget();
  }
}

function mayPass(problem: Problem): boolean {
  return AGAIN.has(problem.status) || problem instanceof InFlight;
}

/** The JSON of a success, undefined if it has none. */
async function document({ method, edited }: Call, response: Response): Promise<unknown> {
  const text = await response.text();
  if (!text && (response.status === 204 || method === "DELETE")) return undefined;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw notOfCommonhold(response, text, "JSON", error);
  }
  const lost = edited === undefined ? undefined : lostNumber(text);
  if (edited === undefined || lost === undefined) return found;
  const number = lost.length > 60 ? `${lost.slice(0, 60)}…` : lost;
  throw new KeyDecode(edited, `JavaScript cannot keep all digits of ${number}, and edit() writes the whole value: use update() or patch()`);
}

/** 128 random bits in hexadecimal. Not `randomUUID`: pages without https lack it, and test suites replace it. */
export function randomId(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
