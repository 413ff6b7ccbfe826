import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import {
  Forbidden,
  Gone,
  InFlight,
  Invalid,
  NotFound,
  NotRegistered,
  Problem,
  QuotaExceeded,
  RateLimited,
  RevisionConflict,
  SchemaConflict,
  Commonhold,
  CommonholdError,
  Superseded,
  Unavailable,
  Unreachable,
  VersionConflict,
  profileKey,
} from "../dist/index.js";
import { hangUp, json, problem, serving, silence } from "./server.mjs";

test("a read: token, path and query as the server wants them", async (t) => {
  const { asked, state } = await serving(t, json({ version: 1 }));
  await state.get("notes", "a/b ü::%", { at_version: 3, at: new Date(0) });
  const [{ method, url, headers }] = asked;
  assert.equal(method, "GET");
  assert.equal(url, "/api/v1/state/notes/a%2Fb%20%C3%BC%3A%3A%25?at_version=3&at=1970-01-01T00%3A00%3A00.000Z");
  assert.equal(headers.authorization, "Bearer ch_test");
  assert.equal(headers["idempotency-key"], undefined);
});

test("more headers are computed for each call, and replace none of the client's own", async (t) => {
  let calls = 0;
  const headers = () => ({ traceparent: `00-${"a".repeat(32)}-${"b".repeat(15)}${++calls}-01`, Authorization: "other" });
  const { asked, client } = await serving(t, json({ version: 1 }));
  const state = client({ headers });
  await state.get("notes", "a");
  await state.get("notes", "b");
  assert.deepEqual(asked.map(({ headers }) => headers.traceparent.slice(-4)), ["1-01", "2-01"]);
  assert.equal(asked[0].headers.authorization, "Bearer ch_test");
});

test("a wait of parts of a second is sent as the next whole one, as the server takes it", async (t) => {
  const { asked, state } = await serving(t, json({ items: [], next_cursor: "c" }));
  await state.get("notes", "k", { wait: 0.5, since: 1 });
  await state.runs.get("r", { wait: 2 });
  await state.changes({ wait: 1.2 });
  await state.dispatches.claim({ wait: 0.1 });
  const waits = asked.map(({ url }) => new URL(url, "http://h").searchParams.get("wait"));
  assert.deepEqual(waits, ["1", "2", "2", "1"]);
});

test("a list in a query is a repeated parameter, a flag true or false", async (t) => {
  const { asked, state } = await serving(t, json({ items: [], next_cursor: null }));
  for await (const _ of state.list("notes", { tag: ["a,b", "c"], valid: false, limit: undefined }));
  await state.clearKey("k", { dry_run: true });
  assert.deepEqual(asked.map(({ url }) => url), ["/api/v1/state/notes?tag=a%2Cb&tag=c&valid=false", "/api/v1/keys/k?dry_run=true"]);
});

test("a write: version, reason in UTF-8 and a key of its own", async (t) => {
  const { asked, state } = await serving(t, json({ version: 4 }));
  await state.put("notes", "k", { n: 1 }, { if_version: 3, reason: "größer", tags: ["a"] });
  await state.put("notes", "k", null, { if_version: 0, idempotency_key: "mine" });
  const [first, second] = asked;
  assert.deepEqual(JSON.parse(first.body), { value: { n: 1 }, tags: ["a"] });
  assert.equal(first.headers["if-match"], '"3"');
  assert.equal(Buffer.from(first.headers["change-reason"], "latin1").toString(), "größer");
  assert.match(first.headers["idempotency-key"], /^[0-9a-f]{32}$/);
  assert.deepEqual(JSON.parse(second.body), { value: null });
  assert.equal(second.headers["if-match"], '"0"');
  assert.equal(second.headers["idempotency-key"], "mine");
});

test("a state at revision 0 is guarded by its revision, as any other", async (t) => {
  const { asked, state } = await serving(t, json({ revision: 1, extensions: {} }));
  await state.threads.importState("t1", { revision: 3, extensions: {} }, { if_version: 0 });
  await state.threads.restore("t1", 0, { if_version: 0 });
  assert.deepEqual(asked.map(({ headers }) => headers["if-match"]), ['"0"', '"0"']);
});

test("a change of a thread: merged or replaced, guarded by its version", async (t) => {
  const { asked, state } = await serving(t, json({ version: 2 }));
  await state.threads.change("t1", { metadata: { a: null }, merge: true, if_version: 1 });
  await state.threads.change("t1", { metadata: {} });
  await state.threads.delete("t1", { expected_revision: 4, if_version: 2 });
  const [merged, replaced, deleted] = asked;
  assert.deepEqual(JSON.parse(merged.body), { metadata: { a: null } });
  assert.equal(merged.headers["content-type"], "application/merge-patch+json");
  assert.equal(merged.headers["if-match"], '"1"');
  assert.equal(replaced.headers["content-type"], "application/json");
  assert.equal(deleted.headers["if-match"], '"2"');
  assert.equal(deleted.url, "/api/v1/threads/t1?expected_revision=4");
});

test("idempotency keys differ although a test suite has replaced randomUUID", async (t) => {
  const { asked, state } = await serving(t, json({ version: 1 }));
  t.mock.method(globalThis.crypto, "randomUUID", () => "00000000-0000-4000-8000-000000000000");
  await state.put("notes", "k", 1);
  await state.put("notes", "k", 1);
  const [first, second] = asked.map(({ headers }) => headers["idempotency-key"]);
  assert.notEqual(first, second);
});

test("a commit whose updates is an object is refused saying that a list is expected", async (t) => {
  const { asked, state } = await serving(t, json({}));
  const updates = { key: "offers", update: 1 };
  assert.throws(() => state.runs.commit("r1", { updates }), { name: "TypeError", message: /^updates must be a list/ });
  assert.deepEqual(asked, []);
});

test("register accepts what is compatible, and replaces schema and default only when asked", async (t) => {
  const { asked, state } = await serving(t, json({ schema_version: 4 }));
  const key = profileKey("team", { default: { goal: "" }, json_schema: { type: "object" } });
  await state.register(key);
  await state.register(key, { replace: true });
  await state.register(key, { replace: true, if_version: 3 });
  await state.register(profileKey("open", { default: 1 }), { replace: true });
  const definition = { schema: { type: "object" }, default: { goal: "" } };
  assert.deepEqual(
    asked.map(({ method, url, headers, body }) => [method, url, headers["if-match"], JSON.parse(body)]),
    [
      ["PUT", "/api/v1/namespaces/team?if_exists=accept", undefined, definition],
      ["PUT", "/api/v1/namespaces/team?if_exists=update", undefined, definition],
      ["PUT", "/api/v1/namespaces/team?if_exists=update", '"3"', definition],
      ["PUT", "/api/v1/namespaces/open?if_exists=update", undefined, { schema: {}, default: 1 }],
    ],
  );
});

test("options of register: a reason and a signal are used, and a misspelled one is refused", async (t) => {
  const { asked, state } = await serving(t, json({ schema_version: 4 }));
  const key = profileKey("team", { default: {} });
  await state.register(key, { replace: true, reason: "new field" });
  assert.equal(asked[0].headers["change-reason"], "new field");
  await assert.rejects(state.register(key, { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  await assert.rejects(state.register(key, { replce: true }), { message: /^unknown option of register\(\): replce\. Known/ });
  assert.equal(asked.length, 1);
});

test("entries of a namespace are cleared, and messages appended together with operations", async (t) => {
  const { asked, state } = await serving(t, json({ matched: 1, deleted: 0 }));
  assert.deepEqual(await state.clear("notes", { prefix: "a/", limit: 9, dry_run: true, reason: "old" }), { matched: 1, deleted: 0 });
  const operations = [{ op: "put", namespace: "notes", key: "k", value: 1 }];
  await state.threads.append("t1", [], { operations });
  const [cleared, appended] = asked;
  assert.deepEqual([cleared.method, cleared.url], ["DELETE", "/api/v1/state/notes?prefix=a%2F&limit=9&dry_run=true"]);
  assert.equal(cleared.headers["change-reason"], "old");
  assert.deepEqual(JSON.parse(appended.body), { messages: [], operations });
});

test("a reason of several lines and a token out of a file are sent as one line", async (t) => {
  const { asked, client } = await serving(t, json({ version: 1 }));
  await client({ token: "ch_test\n", run_id: "r\n日" }).put("notes", "k", 1, { reason: " one\r\ntwo\u0000\tü " });
  const [{ headers }] = asked;
  assert.equal(Buffer.from(headers["change-reason"], "latin1").toString(), "one two \tü");
  assert.equal(headers.authorization, "Bearer ch_test");
  assert.equal(Buffer.from(headers["run-id"], "latin1").toString(), "r 日");
});

test("a key that fetch would resolve away is refused before anything is sent", async (t) => {
  const { asked, state } = await serving(t, json({}));
  for (const key of [".", ".."]) {
    assert.throws(() => state.delete("notes", key), CommonholdError);
    assert.throws(() => state.threads.get(key), CommonholdError);
  }
  assert.throws(() => state.delete("notes", ""), { name: "TypeError", message: "a name, key or id must not be empty" });
  assert.equal(asked.length, 0);
});

test("lost connections, 429, 502, 503, 504 and in-flight are tried again under one idempotency key", async (t) => {
  const again = [429, 502, 503, 504].map((status) => problem("unavailable", status));
  const { asked, client } = await serving(t, hangUp, ...again, problem("in-flight", 409), json({ version: 1 }));
  const state = client({ retries: { attempts: 7, first_seconds: 0.001, longest_seconds: 0.001 } });
  assert.equal((await state.put("notes", "k", 1)).version, 1);
  assert.equal(asked.length, 7);
  assert.equal(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size, 1);
});

test("what will not pass is not tried again", async (t) => {
  const { asked, state } = await serving(t, problem("conflict", 409));
  await assert.rejects(state.put("notes", "k", 1));
  assert.equal(asked.length, 1);
});

test("Retry-After is waited for", async (t) => {
  const { setTimeout } = globalThis;
  const waited = [];
  const isPause = (milliseconds) => milliseconds >= 20_000 && milliseconds < 21_000; // others are timeouts of attempts
  t.mock.method(globalThis, "setTimeout", (done, milliseconds, ...given) => {
    waited.push(milliseconds);
    return setTimeout(done, isPause(milliseconds) ? 0 : milliseconds, ...given);
  });
  const { asked, state } = await serving(t, problem("rate-limited", 429, {}, { "Retry-After": "20" }), json({}));
  await state.me();
  assert.equal(asked.length, 2);
  assert.equal(waited.filter(isPause).length, 1);
});

test("a server that asks for more than our patience is not waited for", async (t) => {
  const later = new Date(Date.now() + 600_000).toUTCString();
  const { asked, state } = await serving(t, problem("rate-limited", 429, {}, { "Retry-After": later }));
  const error = await state.me().catch((each) => each);
  assert.ok(error instanceof RateLimited);
  assert.ok(error.retry_after > 500);
  assert.equal(asked.length, 1);
});

test("no answer after all attempts: Unreachable, with its cause", async (t) => {
  const { asked, state } = await serving(t, hangUp);
  const error = await state.me().catch((each) => each);
  assert.ok(error instanceof Unreachable && error instanceof CommonholdError);
  assert.ok(error.cause instanceof Error);
  assert.equal(asked.length, 6);
});

test("an attempt without an answer ends after its timeout, a long poll after its wait on top", async (t) => {
  const { asked, client } = await serving(t, silence, silence, json({ id: "k1" }));
  const state = client({ timeout_seconds: 0.05 });
  assert.equal((await state.tickets.get("k1", { wait: 0.05 })).id, "k1");
  assert.ok(asked.length >= 3);
});

test("a body that stops arriving is a timeout, also where fetch throws an AbortError for it", async (t) => {
  const { client } = await serving(t, silence);
  let attempts = 0;
  const fetch = async (_, { signal }) => {
    attempts++;
    const fail = (body) => signal.addEventListener("abort", () => body.error(new DOMException("aborted", "AbortError")));
    return new Response(new ReadableStream({ start: fail }));
  };
  await assert.rejects(client({ fetch, timeout_seconds: 0.05 }).me(), Unreachable);
  assert.equal(attempts, 6);
});

test("an attempt ends after its timeout although a signal is given and garbage is collected", async (t) => {
  setFlagsFromString("--expose-gc");
  const timer = setInterval(runInNewContext("gc"), 10);
  t.after(() => clearInterval(timer));
  const { client } = await serving(t, silence);
  const state = client({ timeout_seconds: 0.5, retries: { attempts: 1 } });
  const { signal } = new AbortController();
  const calls = Array.from({ length: 10 }, () => assert.rejects(state.me({ signal }), /none within 0.5 s/));
  const late = sleep(10_000, undefined, { ref: false }).then(() => assert.fail("a call does not end"));
  await Promise.race([Promise.all(calls), late]);
});

test("a signal ends a call, and a pause between two attempts, with its own reason", async (t) => {
  const { state, client } = await serving(t, silence, problem("unavailable", 503, {}, { "Retry-After": "20" }));
  const first = new AbortController();
  const call = state.me({ signal: first.signal });
  first.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  await assert.rejects(client().me({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await assert.rejects(client().me({ signal: AbortSignal.abort(new Error("never")) }), /never/);
});

test("a signal that outlives calls, pauses and watches keeps nothing of them", async (t) => {
  const { signal } = new AbortController();
  const kept = () => {
    const sources = Object.getOwnPropertySymbols(signal).filter(({ description }) => description === "kDependantSignals");
    return getEventListeners(signal, "abort").length + sources.reduce((sum, each) => sum + signal[each].size, 0);
  };
  const { client, state } = await serving(t, problem("unavailable", 503), json({}));
  const calls = Array.from({ length: 12 }, () => state.me({ signal }));
  assert.equal(kept(), 1); // one listener: Node warns of more than ten
  await Promise.all(calls);
  assert.equal(kept(), 0);
  const hello = () => new Response("id: c0\n\n", { headers: { "Content-Type": "text/event-stream" } });
  const watch = await client({ fetch: async () => hello() }).watch({}, { signal }).open();
  await watch.return();
  assert.ok((await watch.next()).done);
  const gone = await serving(t, problem("gone", 410));
  await assert.rejects(gone.state.watch({}, { signal }).open(), Gone);
  assert.equal(kept(), 0);
});

test("every problem has its class, chosen by type, else by status", async (t) => {
  const cases = [
    ["invalid", 422, Invalid],
    ["not-registered", 404, NotRegistered],
    ["quota-exceeded", 403, QuotaExceeded],
    ["version-conflict", 412, VersionConflict],
    ["revision-conflict", 409, RevisionConflict],
    ["schema-conflict", 409, SchemaConflict],
    ["fencing-token-superseded", 409, Superseded],
    ["gone", 410, Gone],
    ["something-new", 404, NotFound],
    ["something-new", 403, Forbidden],
    ["something-new", 418, Problem],
  ];
  const { client } = await serving(t, ...cases.map(([slug, status]) => problem(slug, status)));
  for (const [slug, status, Kind] of cases) {
    const error = await client({ retries: { attempts: 1 } })
      .me()
      .catch((each) => each);
    assert.equal(error.constructor, Kind, slug);
    assert.equal(error.name, Kind.name);
    assert.equal(error.status, status);
  }
  assert.ok(InFlight.prototype instanceof Problem);
});

test("a problem carries what it says", async (t) => {
  const data = { detail: "version conflict: expected 1, actual 2", expected: 1, actual: 2, theirs: 5, instance: "r-1" };
  const { state } = await serving(t, problem("version-conflict", 412, data));
  const error = await state.put("notes", "k", 1, { if_version: 1 }).catch((each) => each);
  assert.deepEqual(
    [error.message, error.expected, error.actual, error.theirs, error.request_id, error.clashes],
    [data.detail, 1, 2, 5, "r-1", []],
  );
});

test("refused places stand in the message", async (t) => {
  const errors = [{ pointer: "/value/n", message: "is not a number" }];
  const { state } = await serving(t, problem("invalid", 422, { detail: "the value is invalid", hint: "Correct it", errors }));
  await assert.rejects(state.put("notes", "k", 1), { message: "the value is invalid. /value/n is not a number. Correct it", errors });
});

test("a proxy's response is a problem too, which says from where it came and how it begins", async (t) => {
  const page = (_, response) => response.writeHead(502, { "Content-Type": "text/html" }).end("<html>\r\n <p>" + "x".repeat(200));
  const { client, url } = await serving(t, page, json({ error: "denied" }, 403), json([], 500));
  const failure = () =>
    client({ retries: { attempts: 1 } })
      .list("notes", { prefix: "a" })
      .catch((each) => each);
  const error = await failure();
  assert.ok(error instanceof Unavailable);
  assert.equal(error.title, "502 Bad Gateway");
  const place = `The response of ${url}/api/v1/state/notes is not from Commonhold`;
  const advice = "check the address, and any proxy before the server.";
  assert.equal(error.message, `502 Bad Gateway. ${place} (502, text/html, begins with "<html> <p>${"x".repeat(90)}…"): ${advice}`);
  const denied = await failure();
  assert.equal(denied.document.error, "denied");
  assert.ok(denied.message.startsWith(`403 Forbidden. ${place} (403, application/json, begins with "{\\"error\\":`), denied.message);
  assert.match((await failure()).message, /^500 Internal Server Error. /);
});

test("a redirect is not followed, and its target is named", async (t) => {
  const { asked, state } = await serving(t, (_, response) => {
    response.writeHead(301, { Location: "/elsewhere" });
    response.end();
  });
  const message = /^Problem: 301 Moved Permanently\. http:.*\/threads redirects to \/elsewhere, which is not followed/;
  await assert.rejects(state.threads.create(), (error) => error instanceof Problem && message.test(String(error)));
  await assert.rejects(state.watch().open(), Problem);
  assert.deepEqual(asked.map(({ method, url }) => [method, url]), [["POST", "/api/v1/threads"], ["GET", "/api/v1/changes/stream"]]);
});

test("errors that a proxy means otherwise are left out", async (t) => {
  for (const errors of [["x"], "x", [{ code: 1 }], { a: 1 }]) {
    const { state } = await serving(t, json({ title: "bad gateway", errors }, 500));
    await assert.rejects(state.me(), (error) => error instanceof Problem && error.message === "bad gateway");
  }
});

test("an answer that is no JSON says so, also one without content", async (t) => {
  const html = (_, response) => response.setHeader("Content-Type", "text/html").end("<html>");
  const { url, state } = await serving(t, html, (_, response) => response.end());
  const message = (what) => `the response of ${url}/api/v1/me is not JSON (${what}); is this the address of a Commonhold server?`;
  await assert.rejects(state.me(), { name: "Unreachable", message: message('200, text/html, begins with "<html>"') });
  await assert.rejects(state.me(), { name: "Unreachable", message: message("200, no content type, empty") });
});

test("a batch that only reads carries no idempotency key: the server would store the values", async (t) => {
  const { asked, state } = await serving(t, json({ results: [] }));
  const read = { op: "get", namespace: "notes", key: "a" };
  await state.batch([read, read]);
  await state.batch([read, { op: "delete", namespace: "notes", key: "a" }]);
  const [reads, writes] = asked.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(reads, undefined);
  assert.ok(writes);
});

test("a list awaited is a page, iterated all pages", async (t) => {
  const { asked, state } = await serving(
    t,
    json({ items: [1, 2], next_cursor: "c1" }),
    json({ items: [1, 2], next_cursor: "c1" }),
    json({ items: [3], next_cursor: null }),
  );
  const list = state.list("notes", { prefix: "a", include: "value", valid: true });
  assert.equal(asked.length, 0);
  assert.deepEqual((await list).items, [1, 2]);
  const all = [];
  for await (const each of list) all.push(each);
  assert.deepEqual(all, [1, 2, 3]);
  assert.equal(asked[2].url, "/api/v1/state/notes?prefix=a&include=value&valid=true&cursor=c1");
});

test("an awaited list has catch and finally, as a promise has", async (t) => {
  const { state } = await serving(t, problem("not-registered", 404), json({ items: [], next_cursor: null }));
  assert.ok((await state.list("notes").catch((error) => error)) instanceof NotRegistered);
  let ended = 0;
  assert.deepEqual((await state.list("notes").finally(() => void ended++)).items, []);
  assert.equal(ended, 1);
});

test("a claim that waits carries no idempotency key: its answer may not be replayed", async (t) => {
  const { asked, state } = await serving(t, json({ items: [] }));
  await state.dispatches.claim({ consumer: "w", wait: 1 });
  await state.dispatches.claim({ consumer: "w" });
  await state.dispatches.claim({ consumer: "w", wait: 1, idempotency_key: "mine" }); // the server says why it cannot be
  assert.equal(asked[2].headers["idempotency-key"], "mine");
  assert.equal(asked[0].headers["idempotency-key"], undefined);
  assert.equal(asked[0].url, "/api/v1/dispatches/claim?wait=1");
  assert.deepEqual(JSON.parse(asked[0].body), { consumer: "w" });
  assert.ok(asked[1].headers["idempotency-key"]);
});

test("the address may end in a slash or in /api/v1", async (t) => {
  const { url, asked } = await serving(t, json({}));
  for (const each of [url, `${url}/`, `${url}/api/v1`, `${url}/api/v1/`, `${url}/api/v1/api/v1`]) {
    await new Commonhold({ url: each, token: "t" }).me();
  }
  assert.deepEqual(new Set(asked.map((each) => each.url)), new Set(["/api/v1/me"]));
});

test("fromEnv names what is missing and not given", () => {
  const { COMMONHOLD_URL, COMMONHOLD_TOKEN } = process.env;
  delete process.env.COMMONHOLD_URL;
  delete process.env.COMMONHOLD_TOKEN;
  assert.throws(() => Commonhold.fromEnv(), /set COMMONHOLD_URL and COMMONHOLD_TOKEN in the environment$/);
  assert.throws(() => Commonhold.fromEnv({ token: "t" }), /set COMMONHOLD_URL in the environment$/);
  assert.ok(Commonhold.fromEnv({ token: "t", url: "http://127.0.0.1:8000" }));
  Object.assign(process.env, COMMONHOLD_URL && { COMMONHOLD_URL }, COMMONHOLD_TOKEN && { COMMONHOLD_TOKEN });
});
