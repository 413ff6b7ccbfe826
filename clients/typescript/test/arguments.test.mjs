import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { Commonhold, CommonholdError, KeyEncode, Unreachable, profileKey } from "../dist/index.js";
import { json, serving } from "./server.mjs";

const refused = (call, message) => assert.rejects(async () => call(), { name: "TypeError", message });

test("a client with a wrong address, token or option is refused, and no message has the token", async () => {
  const given = { url: "http://127.0.0.1:8000", token: "ch_secret" };
  const cases = [
    [{ url: "127.0.0.1:8000" }, /such as http:\/\/127.0.0.1:8000, not "127.0.0.1:8000"/],
    [{ url: "localhost:8000" }, /^url must be/],
    [{ url: "http://127.0.0.1:8000/?x=1" }, /^url must be/],
    [{ url: "http://user:ch_secret@127.0.0.1:8000" }, /without user and password$/],
    [{ url: undefined }, /not undefined$/],
    [{ token: undefined }, /^token must be/],
    [{ token: "ch_secret…" }, /^token must be/],
    [{ token: "Bearer ch_secret" }, /without spaces/],
    [{ timeout: 3 }, /^unknown option of Commonhold: timeout\. Known options: url, token, timeout_seconds/],
    [{ timeout_seconds: 0 }, /^timeout_seconds must be a number from 0.001/],
    [{ retries: 3 }, /^retries must be an object/],
    [{ retries: { attempts: 0 } }, /^attempts must be a number from 1/],
    [{ retries: { attempts: NaN } }, /^attempts must be/],
    [{ retries: { max: 1 } }, /^unknown option of retries: max/],
    [{ headers: { a: "b" } }, /^headers must be a function/],
  ];
  for (const [options, message] of cases) {
    const make = () => new Commonhold({ ...given, ...options });
    await refused(make, message);
    assert.throws(make, (error) => !error.message.includes("secret"));
  }
  assert.throws(() => new Commonhold(), /^TypeError: url must be/);
});

test("a logged client or watch does not show the token", () => {
  const state = new Commonhold({ url: "http://127.0.0.1:8000", token: "ch_secret", run_id: "r1" });
  for (const each of [state, state.watch()]) {
    assert.match(inspect(each, { depth: 10 }), /127\.0\.0\.1:8000/);
    assert.doesNotMatch(inspect(each, { depth: 10, showHidden: true }), /ch_secret/);
  }
});

test("a name instead of a state key is refused", async () => {
  const state = new Commonhold({ url: "http://127.0.0.1:8000", token: "ch_secret" });
  await refused(() => state.stateKeys.register("offers"), /^register\(\) takes a key of stateKey\(\), not "offers"$/);
});

test("an attempt that is not limited by mistake ends", async (t) => {
  const { asked, client } = await serving(t, (request) => request.socket.destroy());
  const retries = { attempts: undefined, first_seconds: 0, longest_seconds: 0 };
  await assert.rejects(client({ retries }).me(), Unreachable);
  assert.equal(asked.length, 6);
});

test("no response: the message names the server and the reason", async () => {
  const state = new Commonhold({ url: "http://127.0.0.1:1", token: "t", retries: { attempts: 1 } });
  await assert.rejects(state.me(), { name: "Unreachable", message: /^no response from http:\/\/127.0.0.1:1 to GET \/me: .+/ });
});

test("without fetch, the error says what to use", async (t) => {
  const { fetch } = globalThis;
  t.after(() => (globalThis.fetch = fetch));
  delete globalThis.fetch;
  const state = new Commonhold({ url: "http://127.0.0.1:8000", token: "t" });
  await assert.rejects(state.me(), { constructor: CommonholdError, message: /Node 20\.3/ });
});

test("a page that is not from the API names its address", async (t) => {
  const { url, state } = await serving(t, (_, response) => response.writeHead(404).end("<html>"));
  await assert.rejects(state.me(), (error) => error.message.startsWith(`404 Not Found. The response of ${url}/api/v1/me is not`));
});

test("wrong arguments of a call are refused before it is sent", async (t) => {
  const { asked, state, client } = await serving(t, json({ version: 1 }));
  const put = (options) => state.put("notes", "k", 1, options);
  await refused(() => put({ ifVersion: 1 }), /^unknown option of PUT \/state\/notes\/k: ifVersion. Known options: if_version/);
  for (const each of ["1", NaN, null, -1, 1.5, {}]) await refused(() => put({ if_version: each }), /^if_version must be a version/);
  const operation = { op: "add", path: "/n", value: 1 };
  for (const patch of [operation, [operation], []]) await refused(() => state.patch("notes", "k", patch), /^kind is required for this patch/);
  await refused(() => put({ reason: {} }), /^reason must be a string, not an object/);
  await refused(() => put({ signal: new AbortController() }), /such as controller.signal/);
  await refused(() => put({ idempotency_key: "…" }), /^Idempotency-Key has a character/);
  await refused(() => client({ headers: () => ({ traceparent: "…" }) }).me(), /^traceparent has a character/);
  for (const each of [undefined, null, 5, {}]) {
    await refused(() => state.get("notes", each), /^a name, key or id must be a string, not /);
    await refused(() => state.get(each, "k"), /^a name, key or id must be a string, not /);
    await refused(() => state.threads.get(each), /^a name, key or id must be a string, not /);
  }
  for (const each of ["usage", "/api/v1/usage"]) await refused(() => state.request("GET", each), /^path must begin with/);
  await refused(() => state.request("POST", "/erase", { key: "k" }), /^unknown option of POST \/erase: key\. Known options: body, query, /);
  await refused(() => state.request("POST", "/erase", "k"), /^the options of POST \/erase must be an object, not "k"$/);
  await refused(() => state.watch({}, { curser: "c" }), /^unknown option of watch: curser/);
  await refused(() => state.register("notes"), /namespaces.register\(\)/);
  await refused(() => profileKey("notes", { default: 1, jsonSchema: {} }), /^unknown option of profileKey: jsonSchema/);
  await refused(() => profileKey("notes"), /needs a default/);
  await refused(() => state.search("x"), /^the query of search\(\) must be an object, not "x"$/);
  await refused(() => state.tickets.decide("k1", "resume", {}), /^the fields of POST \/tickets\/k1\/decision must be an object, not "resume"$/);
  for (const each of ["x", ["x"]]) {
    await refused(() => put(each), /^the options of PUT \/state\/notes\/k must be an object, not a string or an array$/);
    await refused(() => state.threads.append("t", [], each), /^the fields of POST \/threads\/t\/messages must be/);
    await refused(() => state.dispatches.claim(each), /^the fields of POST \/dispatches\/claim must be/);
    await refused(() => state.namespaces.register("notes", each), /^the definition of a namespace must be/);
    await refused(() => state.list("notes", each), /^the parameters of \/state\/notes must be/);
    await refused(() => state.watch(each), /^the filters of watch\(\) must be/);
  }
  assert.equal(asked.length, 0);
});

test("merge is sent without a version, which the server refuses, and with version 0, whose value is the default", async (t) => {
  const { asked, state } = await serving(t, json({ version: 1 }));
  await state.put("notes", "k", 1, { merge: true });
  await state.put("notes", "k", 1, { merge: true, if_version: 0 });
  const sent = asked.map(({ headers }) => [headers["if-match"], headers["on-conflict"]]);
  assert.deepEqual(sent, [[undefined, "merge"], ['"0"', "merge"]]);
});

test("a body that JSON would change without a word is refused, with its place", async (t) => {
  const { asked, state } = await serving(t, json({ version: 1 }));
  const itself = { "a/b": [] };
  itself["a/b"].push(itself);
  const deep = [];
  for (let level = deep, n = 0; n < 100_000; n++) level.push((level = []));
  const cases = [
    [{ n: [0, NaN] }, /: \/value\/n\/1 is NaN, which JSON does not have/],
    [-Infinity, /: \/value is -Infinity/],
    [10n, /: \/value is a BigInt/],
    [[undefined], /: \/value\/0 is undefined/],
    [[, 1], /: \/value\/0 is undefined/],
    [{ f() {} }, /: \/value\/f is a function/],
    [Symbol("s"), /: \/value is a symbol/],
    [{ at: new Date(NaN) }, /: \/value\/at is an invalid Date/],
    [{ m: new Map() }, /: \/value\/m is of the type Map/],
    [new Set(), /Set/],
    [new Uint8Array(2), /Uint8Array/],
    [new Error("x"), /Error/],
    [Promise.resolve(1), /: \/value is a Promise: await it first/],
    [itself, /: \/value\/a~1b\/0 contains itself/],
    [deep, /: it is nested too deeply/],
  ];
  for (const [value, message] of cases) await assert.rejects(state.put("notes", "k", value), { constructor: KeyEncode, message });
  await assert.rejects(state.threads.append("t", [{ role: "user", content: "x", score: NaN }]), { message: /\/messages\/0\/score is NaN/ });
  assert.equal(asked.length, 0);
  const twice = { x: 1 };
  const value = { at: new Date(0), gone: undefined, twice: [twice, twice], own: new (class { n = 1 })(), url: new URL("http://a/") };
  await state.put("notes", "k", value);
  assert.deepEqual(JSON.parse(asked[0].body).value, {
    at: "1970-01-01T00:00:00.000Z",
    twice: [twice, twice],
    own: { n: 1 },
    url: "http://a/",
  });
});
