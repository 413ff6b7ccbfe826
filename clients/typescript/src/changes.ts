/** Following the change feed: server-sent events by fetch, over any number of connections. */

import { address, after, isTransport, onAbort, pause, sleep, unreachable, type Settings } from "./calls.js";
import { refuseOthers, requireObject, shown } from "./json.js";
import { notOfCommonhold, Problem, problemIn, Unreachable } from "./problems.js";
import type { Change } from "./schemas.js";

export interface WatchOptions {
  /** The cursor to continue after; by default from now on. */
  cursor?: string | undefined;
  /** Ends the watch: the loop over it ends. */
  signal?: AbortSignal | undefined;
  /** Silence after which a connection counts as dead; the server's heartbeat is 15 s. */
  heartbeat_timeout_seconds?: number | undefined;
}

const TRY_AGAIN = new Set([429, 500, 502, 503, 504]);

/**
 * Iterates over all changes after the cursor, without end. It continues after lost connections and restarts of
 * the server, without gaps or repetitions. Store `cursor` to continue later.
 *
 * "Now" is when `open()` has resolved or, without it, when the first change is requested. Throws Gone if the cursor
 * has expired: watch from now on, then read the state. Leaving the loop ends the watch: a second loop gets nothing.
 * To continue, create a watch with the `cursor` of this one.
 */
export class Watch implements AsyncIterableIterator<Change> {
  cursor: string;
  private rest = 2;
  private failed = 0;
  private everOpen = false;
  private blocks: AsyncGenerator<Block, void, undefined> | undefined;
  private opening: Promise<void> | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private readonly ended = new AbortController();
  private connection: AbortController | undefined;
  private readonly signal: AbortSignal | undefined;
  private forgetSignal: (() => void) | undefined;
  private readonly silence: number;

  constructor(
    private readonly settings: Settings,
    private readonly filters: object,
    { cursor = "", signal, heartbeat_timeout_seconds = 40, ...others }: WatchOptions,
  ) {
    requireObject("the filters of watch()", filters);
    refuseOthers("watch", others, ["cursor", "signal", "heartbeat_timeout_seconds"]);
    if (!(typeof heartbeat_timeout_seconds === "number" && heartbeat_timeout_seconds > 0)) {
      throw new TypeError(`heartbeat_timeout_seconds must be a number greater than 0, not ${shown(heartbeat_timeout_seconds)}`);
    }
    this.cursor = cursor;
    this.silence = heartbeat_timeout_seconds;
    this.signal = signal;
  }

  /** Connect: from here on no change is missed. */
  async open(): Promise<this> {
    this.opening ??= this.connectUntilOpen().finally(() => (this.opening = undefined));
    await this.opening;
    return this;
  }

  private async connectUntilOpen(): Promise<void> {
    if (this.signal?.aborted) this.end();
    if (this.ended.signal.aborted) return;
    this.forgetSignal ??= onAbort(this.signal, () => this.end());
    try {
      while (!this.blocks && !this.ended.signal.aborted) {
        const pause = await this.connect();
        if (pause !== undefined) await this.wait(pause);
      }
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** The next change. Calls that do not wait for each other get theirs in order, as those of an async generator. */
  next(): Promise<IteratorResult<Change, void>> {
    const result = this.turn.then(() => this.nextChange());
    this.turn = result.catch(() => undefined);
    return result;
  }

  private async nextChange(): Promise<IteratorResult<Change, void>> {
    for (;;) {
      await this.open();
      if (this.ended.signal.aborted) return { done: true, value: undefined };
      const change = await this.read();
      if (change) return { done: false, value: change };
    }
  }

  /** Stop, and free the connection. */
  async return(): Promise<IteratorResult<Change, void>> {
    this.end();
    await this.blocks?.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  private end(): void {
    this.ended.abort();
    this.connection?.abort();
    this.forget();
  }

  /** The signal may outlive this watch. */
  private forget(): void {
    this.forgetSignal?.();
    this.forgetSignal = undefined;
  }

  /** One connection; the seconds to wait if there is none. */
  private async connect(): Promise<number | undefined> {
    const { settings, filters, cursor } = this;
    const connection = (this.connection = new AbortController());
    const headers = new Headers({ ...settings.headers(), ...(cursor ? { "Last-Event-ID": cursor } : {}) });
    const timer = after(this.silence, () => connection.abort());
    try {
      const url = address(settings.base, { path: "/changes/stream", query: filters });
      const response = await settings.fetch(url, { headers, signal: connection.signal, cache: "no-store", redirect: "manual" });
      if (!response.ok) {
        const problem = await problemIn(response);
        const wanted = problem.retry_after ?? 0;
        const { patience_seconds } = settings.retries;
        // If the server requests a longer pause than `patience_seconds`, the first connection fails, and later ones are
        // tried again after `patience_seconds`.
        if (!TRY_AGAIN.has(response.status) || (wanted > patience_seconds && !this.everOpen)) throw problem;
        return Math.max(Math.min(wanted, patience_seconds), this.refused(problem));
      }
      if (!response.body || !/^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "")) {
        const text = await beginning(response);
        connection.abort();
        throw notOfCommonhold(response, text, "a stream");
      }
      const blocks = read(response.body, this.silence, connection);
      // The first block contains the position: from then on no change is missed.
      const first = await blocks.next();
      if (first.done) return this.refused(new Error("the stream ended before it began"));
      this.take(first.value);
      this.blocks = blocks;
      this.failed = 0;
      this.everOpen = true;
      return undefined;
    } catch (error) {
      if (this.ended.signal.aborted) return undefined;
      if (error instanceof Unreachable || (!isTransport(error) && !connection.signal.aborted)) throw error;
      return this.refused(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The next change of this connection; undefined if it has ended. */
  private async read(): Promise<Change | undefined> {
    try {
      for (;;) {
        const { done, value } = await this.blocks!.next();
        if (done) break;
        const change = this.take(value);
        if (change) return change;
      }
    } catch (error) {
      if (!isTransport(error) && !isAbort(error)) throw error;
    }
    this.blocks = undefined;
    // Random, so that not all clients of a restarted server reconnect at once.
    await this.wait((this.rest * (1 + Math.random())) / 2);
    return undefined;
  }

  private take(block: Block): Change | undefined {
    if (/^\d+$/.test(block.retry ?? "")) this.rest = Number(block.retry) / 1000;
    this.cursor = block.id || this.cursor;
    return block.event === "change" ? (JSON.parse(block.data ?? "") as Change) : undefined;
  }

  private refused(error: Error): number {
    this.failed += 1;
    const { retries } = this.settings;
    // Before the first connection, the attempts are limited.
    if (!this.everOpen && this.failed >= retries.attempts) {
      throw error instanceof Problem ? error : unreachable("GET /changes/stream", this.settings, error);
    }
    return pause(retries, Math.min(this.failed, 10));
  }

  private async wait(seconds: number): Promise<void> {
    await sleep(seconds, this.ended.signal).catch(() => undefined);
  }
}

interface Block {
  id?: string;
  event?: string;
  data?: string;
  retry?: string;
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The first part of a response, which may have no end. */
async function beginning({ body }: Response): Promise<string> {
  const part = await body?.getReader().read();
  return new TextDecoder().decode(part?.value);
}

/** Blocks of an event stream; silence for too long ends the connection. */
async function* read(
  body: ReadableStream<Uint8Array>,
  silence: number,
  connection: AbortController,
): AsyncGenerator<Block, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let block: Block = {};
  let rest = "";
  try {
    for (;;) {
      const timer = after(silence, () => connection.abort());
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines.map((each) => each.replace(/\r$/, ""))) {
        if (line === "") {
          yield block;
          block = {};
          continue;
        }
        const colon = line.indexOf(":");
        const [name, text] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1)];
        block[name as keyof Block] = text.replace(/^ /, "");
      }
    }
  } finally {
    connection.abort();
  }
}
