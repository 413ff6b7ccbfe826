/**
 * The errors of this package.
 *
 * The server returns every error as a problem document (RFC 9457); its `type` selects the class. All of
 * them are `CommonholdError`: `Problem` is a response, `Unreachable` means that there was none.
 */

import { isObject } from "./json.js";

/** The base of all errors of this package, except the reason of your own `signal`. */
export class CommonholdError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** There was no response, in spite of all retries. A write may have been stored nevertheless. */
export class Unreachable extends CommonholdError {}

/** A value is not JSON, or does not satisfy its schema. Nothing was sent. */
export class KeyEncode extends CommonholdError {
  constructor(readonly key: string, why: string) {
    super(`cannot encode ${key}: ${why}`);
  }
}

/** The stored value does not satisfy the key's schema. It is never replaced by the default. */
export class KeyDecode extends CommonholdError {
  constructor(readonly key: string, why: string) {
    super(`cannot decode ${key}: ${why}`);
  }
}

/** The JSON of a problem (RFC 9457), with the members of its type. */
export interface ProblemDocument {
  /** The address of the problem type, such as `/problems/not-found`. */
  type?: string;
  /** Constant per problem type. */
  title?: string;
  /** The HTTP status. */
  status?: number;
  /** The message of this occurrence. */
  detail?: string;
  /** What to do. */
  hint?: string;
  /** The id of the request. */
  instance?: string;
  /** What is not valid, and where. */
  errors?: { pointer: string; message: string }[];
  [member: string]: unknown;
}

/**
 * The server returned a problem document (RFC 9457). `title` is constant per problem type, `detail` is the
 * message of this occurrence, `hint` says what to do, `document` is the whole document.
 */
export class Problem extends CommonholdError {
  readonly title: string;
  readonly detail: string;
  readonly hint: string;
  readonly status: number;
  readonly request_id: string;
  /** The errors with their places. */
  readonly errors: { pointer: string; message: string }[];

  constructor(
    readonly document: ProblemDocument,
    /** Seconds to wait, if the server says so. */
    readonly retry_after?: number,
  ) {
    const message = document.detail || document.title || "no message";
    // A response of a proxy may have another member with this name.
    const given: unknown = document.errors;
    const errors = Array.isArray(given) ? given.filter((each) => isObject(each) && "pointer" in each && "message" in each) : [];
    const places = errors.map((each) => `${each.pointer || "/"} ${each.message}`).join("; ");
    super([message, places, document.hint].filter(Boolean).join(". "));
    this.title = document.title ?? "";
    this.detail = document.detail ?? "";
    this.hint = document.hint ?? "";
    this.status = document.status ?? 0;
    this.request_id = document.instance ?? "";
    this.errors = errors;
  }
}

/** The request is malformed, or has a field or parameter that the operation does not have. */
export class BadRequest extends Problem {}
/** The content of the request is not valid. `errors` says where and why. */
export class Invalid extends Problem {}
/** The token is missing, not valid, expired or revoked. */
export class Unauthenticated extends Problem {}
/** The token does not permit the operation. */
export class Forbidden extends Problem {}
/** A quota of the workspace is used up. */
export class QuotaExceeded extends Forbidden {}
/** It does not exist, or the token has no access to it. */
export class NotFound extends Problem {}
/** The namespace is not registered in this workspace: `profile key not registered: {namespace}`. */
export class NotRegistered extends NotFound {}
/** The path does not have this method. */
export class MethodNotAllowed extends Problem {}
/** The server has no response in a media type of `Accept`. */
export class NotAcceptable extends Problem {}
/** The body of the request arrived too slowly. */
export class RequestTimeout extends Problem {}
/** The current state does not permit it. */
export class Conflict extends Problem {}

/** A commit's base revision is not the current one. No part of the commit was applied. */
export class RevisionConflict extends Conflict {
  readonly expected = this.document["expected"] as number;
  readonly actual = this.document["actual"] as number;
}

/** A namespace is registered with an incompatible schema or default; `errors` lists the differences. */
export class SchemaConflict extends Conflict {
  /** Of the registered one. */
  readonly schema_version = this.document["schema_version"] as number;
}

/**
 * A precondition on a version failed; nothing changed. `base`: the value you started from, `theirs`:
 * the stored value, `yours`: the value you sent; `clashes`: the pointers both changed, with `pointers` for
 * the sides where an item of an array has another index. A member that is not known is absent.
 */
export class VersionConflict extends Problem {
  readonly expected = this.document["expected"] as number;
  readonly actual = this.document["actual"] as number;
  readonly base = this.document["base"];
  readonly theirs = this.document["theirs"];
  readonly yours = this.document["yours"];
  readonly clashes = (this.document["clashes"] ?? []) as {
    pointer: string;
    pointers?: Partial<Record<"base" | "theirs" | "yours", string>>;
    base: unknown;
    theirs: unknown;
    yours: unknown;
  }[];
}

/** Another worker has the run: stop working on it. */
export class Superseded extends Conflict {}
/** A stored secret cannot be decrypted, because its encryption key is missing. */
export class Unreadable extends Conflict {}
/** The same call is still in progress. */
export class InFlight extends Conflict {}
/** It existed and is no longer available, such as an old cursor or a compacted revision. */
export class Gone extends Problem {}
/** The body, the resulting value or the response is too large. */
export class TooLarge extends Problem {}
/** The operation does not accept the media type of the body. */
export class UnsupportedMediaType extends Problem {}
/** The server does not serve the host of the request. */
export class MisdirectedRequest extends Problem {}
/** Too many calls, after all retries; `retry_after` says how many seconds to wait. */
export class RateLimited extends Problem {}
/** An unexpected error in the server. `request_id` finds it in the server's log. */
export class InternalError extends Problem {}
/** The server, its database or a proxy cannot process the request now, after all retries. */
export class Unavailable extends Problem {}
/** Writes are refused while the workspace is moved to another cell. */
export class WorkspaceFrozen extends Unavailable {}
/** The workspace is in another cell, to which requests are not sent yet. */
export class WorkspaceMoved extends Unavailable {}
/** The last event of a stream whose reader does not keep up. */
export class TooSlow extends Problem {}

const BY_SLUG: Record<string, typeof Problem> = {
  "bad-request": BadRequest,
  invalid: Invalid,
  unauthenticated: Unauthenticated,
  forbidden: Forbidden,
  "quota-exceeded": QuotaExceeded,
  "not-found": NotFound,
  "not-registered": NotRegistered,
  "method-not-allowed": MethodNotAllowed,
  "not-acceptable": NotAcceptable,
  "request-timeout": RequestTimeout,
  conflict: Conflict,
  "revision-conflict": RevisionConflict,
  "schema-conflict": SchemaConflict,
  "version-conflict": VersionConflict,
  "fencing-token-superseded": Superseded,
  unreadable: Unreadable,
  "in-flight": InFlight,
  gone: Gone,
  "too-large": TooLarge,
  "unsupported-media-type": UnsupportedMediaType,
  "misdirected-request": MisdirectedRequest,
  "rate-limited": RateLimited,
  internal: InternalError,
  unavailable: Unavailable,
  "workspace-frozen": WorkspaceFrozen,
  "workspace-moved": WorkspaceMoved,
  "too-slow": TooSlow,
};

const BY_STATUS: Record<number, typeof Problem> = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  405: MethodNotAllowed,
  406: NotAcceptable,
  408: RequestTimeout,
  409: Conflict,
  410: Gone,
  413: TooLarge,
  415: UnsupportedMediaType,
  421: MisdirectedRequest,
  422: Invalid,
  429: RateLimited,
  500: InternalError,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
};

/** The error for a response, also for one that a proxy sent. @internal */
export async function problemIn(response: Response): Promise<Problem> {
  const text = await response.text();
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    document = undefined;
  }
  // A browser hides the status and the target of a redirect.
  const isRedirect = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  const target = response.headers.get("Location") ?? "another address";
  const members: ProblemDocument = isObject(document) ? document : {};
  const known = ["type", "title", "detail"].some((name) => name in members)
    ? members
    : {
        ...members,
        title: response.status ? `${response.status} ${response.statusText}`.trim() : "redirect",
        hint: isRedirect
          ? `${placeOf(response)} redirects to ${target}, which is not followed: correct the URL of the client.`
          : `The response of ${placeOf(response)} is not from Commonhold (${describe(response, text)}): check the address, and any proxy before the server.`,
      };
  const slug = String(known["type"] ?? "").split("/").pop()!;
  const Kind = BY_SLUG[slug] ?? BY_STATUS[response.status] ?? Problem;
  return new Kind({ ...known, status: response.status }, seconds(response.headers.get("Retry-After")));
}

/** The error for a success that cannot come from this API. @internal */
export function notOfCommonhold(response: Response, text: string, expected: string, cause?: unknown): Unreachable {
  const message = `the response of ${placeOf(response)} is not ${expected} (${describe(response, text)}); is this the address of a Commonhold server?`;
  return new Unreachable(message, { cause });
}

/** Without the query, which may be long. */
function placeOf({ url }: Response): string {
  return url.replace(/[?#].*/s, "") || "the server";
}

/** Status, type and beginning of a response that does not come from Commonhold. */
function describe({ status, headers }: Response, text: string): string {
  const start = text.slice(0, 400).replace(/[\s\x00-\x1f\x7f]+/g, " ").trim();
  const shown = start.length > 100 || text.length > 400 ? `${start.slice(0, 100)}…` : start;
  return `${status}, ${headers.get("Content-Type") || "no content type"}, ${shown ? `begins with ${JSON.stringify(shown)}` : "empty"}`;
}

/** The seconds of a Retry-After header, which is a number or a date. */
function seconds(text: string | null): number | undefined {
  if (text === null) return undefined;
  const wanted = text.trim() === "" ? NaN : Number(text);
  const until = Number.isNaN(wanted) ? (Date.parse(text) - Date.now()) / 1000 : wanted;
  return Number.isNaN(until) ? undefined : Math.max(0, until);
}
