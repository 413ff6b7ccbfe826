import assert from "node:assert/strict";
import { test } from "node:test";

import { BadRequest, Gone, Unavailable, Unreachable } from "../dist/index.js";
import { change, hangUp, hello, problem, serving, silence, stream } from "./server.mjs";

async function take(watch, count) {
  const cursors = [];
  for await (const each of watch) {
    cursors.push(each.cursor);
    if (cursors.length === count) break;
  }
  return cursors;
}

test("changes come in order, also when a block is cut anywhere", async (t) => {
  const text = hello("c0") + change("c1") + ": heartbeat\r\nid: c2\r\n\r\n" + change("c3");
  const { asked, state } = await serving(t, stream([...Buffer.from(text)].map((byte) => Buffer.from([byte]))));
  const watch = state.watch({ namespace: "notes", prefix: "a" });
  assert.deepEqual(await take(watch, 2), ["c1", "c3"]);
  assert.equal(watch.cursor, "c3");
  assert.equal(asked[0].url, "/api/v1/changes/stream?prefix=a&namespace=notes");
});

test("a lost connection is resumed behind the last id", async (t) => {
  const { asked, state } = await serving(
    t,
    stream([hello("c0"), change("c1")], { end: true }),
    hangUp,
    problem("unavailable", 503),
    stream([hello("c1"), change("c2")]),
  );
  assert.deepEqual(await take(state.watch(), 2), ["c1", "c2"]);
  const resumed = asked.map(({ headers }) => headers["last-event-id"]);
  assert.deepEqual(resumed, [undefined, "c1", "c1", "c1"]);
});

test("a heartbeat moves the cursor, so that who was silent for days resumes from there", async (t) => {
  const { asked, state } = await serving(
    t,
    stream([hello("c0"), ": heartbeat\nid: c7\n\n"], { end: true }),
    stream([hello("c7"), change("c8")]),
  );
  assert.deepEqual(await take(state.watch({}, { cursor: "c0" }), 1), ["c8"]);
  assert.deepEqual([asked[0], asked[1]].map(({ headers }) => headers["last-event-id"]), ["c0", "c7"]);
});

test("silence is a dead connection, before the first byte and after it", async (t) => {
  const { asked, state } = await serving(t, silence, stream([hello("c0")]), stream([hello("c0"), change("c1")]));
  assert.deepEqual(await take(state.watch({}, { heartbeat_timeout_seconds: 0.1 }), 1), ["c1"]);
  assert.ok(asked.length >= 3);
});

test("an endless wait is no short one", async (t) => {
  const { state } = await serving(t, stream([hello("c0"), change("c1")]), problem("bad-request", 400));
  assert.deepEqual(await take(state.watch({}, { heartbeat_timeout_seconds: Infinity }), 1), ["c1"]);
  await assert.rejects(state.get("notes", "k", { wait: Infinity }), BadRequest);
});

test("a heartbeat timeout that is no duration is refused, because each connection would end at once", async (t) => {
  const { asked, state } = await serving(t, stream([hello("c0")]));
  for (const heartbeat_timeout_seconds of [NaN, 0, "40"]) {
    assert.throws(() => state.watch({}, { heartbeat_timeout_seconds }), { name: "TypeError", message: /^heartbeat_timeout_seconds must be/ });
  }
  assert.equal(asked.length, 0);
});

test("headers that cannot be sent are an error, and no timer keeps the program running", async (t) => {
  const { client } = await serving(t, stream([hello("c0")]));
  const timers = t.mock.method(globalThis, "setTimeout");
  await assert.rejects(client({ headers: () => ({ tracestate: "日" }) }).watch().open(), TypeError);
  assert.equal(timers.mock.callCount(), 0);
});

test("after open() nothing is missed", async (t) => {
  const { asked, state } = await serving(t, stream([hello("c0"), change("c1")]));
  const watch = await state.watch().open();
  assert.equal(watch.cursor, "c0");
  assert.deepEqual(await take(watch, 1), ["c1"]);
  assert.equal(asked.length, 1);
});

test("an expired cursor is Gone, and a server that never answers Unreachable", async (t) => {
  const gone = await serving(t, problem("gone", 410));
  await assert.rejects(take(gone.state.watch({}, { cursor: "old" }), 1), Gone);
  const { asked, state } = await serving(t, hangUp);
  await assert.rejects(take(state.watch(), 1), Unreachable);
  assert.equal(asked.length, 6);
});

test("a page of something else is no stream, and a server that is away for longer than our patience not waited for", async (t) => {
  const page = await serving(t, (_, response) => response.writeHead(200, { "Content-Type": "text/html" }).write("<p>\n\n</p>\n"));
  await assert.rejects(page.state.watch({ key: "k" }).open(), (error) => {
    assert.ok(error instanceof Unreachable);
    assert.match(error.message, /\/changes\/stream is not a stream \(200, text\/html, begins with "<p> <\/p>"\)/);
    return true;
  });
  assert.equal(page.asked.length, 1);
  const away = await serving(t, problem("unavailable", 503, {}, { "Retry-After": "86400" }));
  await assert.rejects(away.state.watch().open(), Unavailable);
  assert.equal(away.asked.length, 1);
});

test("a signal ends the loop", async (t) => {
  const { state } = await serving(t, stream([hello("c0")]));
  const stop = new AbortController();
  const watch = await state.watch({}, { signal: stop.signal }).open();
  const seen = take(watch, 1);
  stop.abort();
  assert.deepEqual(await seen, []);
});

test("leaving the loop frees the connection", async (t) => {
  let closed;
  const freed = new Promise((done) => (closed = done));
  const { state } = await serving(t, (request, response) => {
    response.on("close", closed);
    stream([hello("c0"), change("c1")])(request, response);
  });
  await take(state.watch(), 1);
  await freed;
});

test("parallel calls of next and open share one connection, and each change comes once", async (t) => {
  const lost = stream([hello("c0"), change("c1")], { end: true });
  const { asked, state } = await serving(t, hangUp, lost, stream([hello("c1"), change("c2"), change("c3")]));
  const watch = state.watch();
  const [opened, ...taken] = await Promise.all([watch.open(), watch.next(), watch.next(), watch.next()]);
  assert.equal(opened, watch);
  assert.deepEqual(taken.map(({ value }) => value.cursor), ["c1", "c2", "c3"]);
  assert.equal(asked.length, 3);
  const waiting = [watch.next(), watch.next()];
  await watch.return();
  assert.deepEqual(await Promise.all(waiting), Array(2).fill({ done: true, value: undefined }));
});

test("parallel calls of next fail alike if the cursor has expired", async (t) => {
  const { state } = await serving(t, problem("gone", 410));
  const watch = state.watch({}, { cursor: "old" });
  const results = await Promise.allSettled([watch.next(), watch.next()]);
  assert.deepEqual(results.map(({ reason }) => reason?.name), ["Gone", "Gone"]);
});

test("a server that refuses all attempts is not Unreachable: the error is its problem", async (t) => {
  const { asked, state } = await serving(t, problem("rate-limited", 429, { detail: "too many streams" }));
  await assert.rejects(state.watch().open(), { name: "RateLimited", message: "too many streams" });
  assert.equal(asked.length, 6);
});
