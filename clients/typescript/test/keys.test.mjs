import assert from "node:assert/strict";
import { test } from "node:test";

import { z } from "zod";

import { KeyDecode, KeyEncode, StateScope, VersionConflict, profileKey, stateKey } from "../dist/index.js";
import { json, problem, serving } from "./server.mjs";

const Counter = profileKey("counter", { default: { n: 0 } });
const entry = (value, members = {}) => json({ exists: true, valid: true, version: 3, value, ...members });
const lost = problem("version-conflict", 412, { expected: 3, actual: 4 });

test("scopes make the usual keys", () => {
  assert.deepEqual(
    [StateScope.global(), StateScope.parentThread("t"), StateScope.agentType("a"), StateScope.thread("t"), StateScope.new("x")],
    ["global", "parent_thread::t", "agent_type::a", "thread::t", "x"],
  );
});

test("nothing stored reads as the default, each time another object", async (t) => {
  const { state } = await serving(t, json({ exists: false, valid: true, version: 0, value: null }));
  const first = await state.read(Counter, "k");
  first.n = 5;
  assert.deepEqual(await state.read(Counter, "k"), { n: 0 });
});

test("an edit is made again on the new value until it lands", async (t) => {
  const { asked, state } = await serving(t, entry({ n: 1 }), lost, entry({ n: 7 }, { version: 4 }), entry({ n: 8 }));
  const seen = [];
  const value = await state.edit(Counter, "k", async (counter) => {
    seen.push(counter.n);
    counter.n += 1;
  });
  assert.deepEqual(seen, [1, 7]);
  assert.deepEqual(value, { n: 8 });
  assert.deepEqual(JSON.parse(asked[3].body), { value: { n: 8 } });
  assert.equal(asked[3].headers["if-match"], '"4"');
  assert.notEqual(asked[1].headers["idempotency-key"], asked[3].headers["idempotency-key"]);
});

test("an edit of nothing creates, one that changes nothing writes nothing, one that throws neither", async (t) => {
  const missing = json({ exists: false, valid: true, version: 0, value: { n: 0 } });
  const { asked, state } = await serving(t, missing, entry({ n: 1 }), entry({ n: 1 }));
  await state.edit(Counter, "k", ({ n }) => ({ n: n + 1 }));
  assert.equal(asked[1].headers["if-match"], '"0"');
  await state.edit(Counter, "k", () => undefined);
  await assert.rejects(
    state.edit(Counter, "k", () => {
      throw new Error("mine");
    }),
    /mine/,
  );
  assert.equal(asked.length, 4);
});

test("an edit may return null, but not a number for an object: the arrow of a push returns one", async (t) => {
  const { asked, state } = await serving(t, entry("x"), entry(null), entry(null), entry(1), entry({ n: 1, tags: [] }));
  const Note = profileKey("note", { default: null });
  assert.equal(await state.edit(Note, "k", () => null), null);
  assert.deepEqual(JSON.parse(asked[1].body), { value: null });
  assert.equal(await state.edit(Note, "k", () => 1), 1);
  const push = ({ tags }) => tags.push("a");
  await assert.rejects(state.edit(Counter, "k", push), { name: "TypeError", message: /returned 1 for an object: return nothing/ });
  assert.equal(asked.length, 5);
});

test("an edit that never lands is a VersionConflict", async (t) => {
  const { state } = await serving(t, entry({ n: 1 }), lost, entry({ n: 1 }), lost);
  await assert.rejects(state.edit(Counter, "k", (counter) => void counter.n++, { attempts: 2 }), VersionConflict);
});

test("an edit keeps all numbers, and refuses a value with one that a double cannot hold", async (t) => {
  const value = (number) => `{"exists": true, "valid": true, "version": 1, "value": {"n": 1, "\\\\": "\\"1e999", "other": [${number}]}}`;
  const edited = async (number) => {
    const { asked, state } = await serving(t, (_, response) => response.end(value(number)));
    const error = await state.edit(Counter, "k", (counter) => void counter.n++).catch((each) => each);
    assert.equal(asked.length, error instanceof KeyDecode ? 1 : 2, number);
    return error instanceof KeyDecode ? error.message : asked[1].body;
  };
  const floats = ["1e300", "1E+300", "-1.5e-7", "1.10", "0.30000000000000004", "0.10000000000000001", "5e-324", "0.000", "-0.0", "1e21"];
  for (const number of [...floats, "9007199254740991", "-9007199254740992", "-0"]) {
    assert.equal(JSON.parse(await edited(number)).value.other[0], Number(number) || 0, number);
  }
  const long = ["0.1234567890123456789", "99999999999999.999", "1e400", "1e-400"];
  for (const number of [...long, "9007199254740993", "-12345678901234567890", "1" + "0".repeat(21)]) {
    const reason = `JavaScript cannot keep all digits of ${number}, and edit() writes the whole value: use update() or patch()`;
    assert.equal(await edited(number), `cannot decode counter: ${reason}`);
  }
});

test("what has no JSON is refused before it is sent", async (t) => {
  const { asked, state } = await serving(t, json({}));
  const Any = profileKey("any", { default: null });
  for (const value of [undefined, { n: NaN }, [Infinity], 1n, () => 1]) {
    await assert.rejects(state.write(Any, "k", value), KeyEncode);
  }
  assert.equal(asked.length, 0);
});

const Team = profileKey("team", {
  schema: z.object({ goal: z.string(), tags: z.array(z.string()).default([]), lead: z.object({ name: z.string() }).optional() }),
  default: { goal: "", tags: [] },
});

test("a schema checks what is read, fills in what it defaults and keeps what it does not know", async (t) => {
  const stored = { goal: "x", colour: "red", lead: { name: "Ada", age: 36 } };
  const { asked, state } = await serving(t, entry(stored), entry({}), entry({ goal: 1 }), entry({ goal: "x" }, { valid: false }));
  const changed = await state.edit(Team, "k", (team) => void (team.goal = "y"));
  assert.deepEqual(changed, { ...stored, goal: "y", tags: [] });
  assert.deepEqual(JSON.parse(asked[1].body).value, changed);
  await assert.rejects(state.read(Team, "k"), { constructor: KeyDecode, message: /\/goal/ });
  await assert.rejects(state.read(Team, "k"), KeyDecode);
});

test("a schema checks what is written", async (t) => {
  const { asked, state } = await serving(t, json({}));
  await assert.rejects(state.write(Team, "k", { goal: 1 }), { constructor: KeyEncode, message: /\/goal/ });
  assert.equal(asked.length, 0);
});

test("the server is told the JSON Schema of a schema that has one", async (t) => {
  const { asked, state } = await serving(t, json({}));
  await state.register(Team, Counter, profileKey("strict", { default: 1, json_schema: { type: "integer" } }));
  const [team, counter, strict] = asked.map(({ body }) => JSON.parse(body));
  assert.deepEqual(team.schema.required, ["goal"]);
  assert.deepEqual(team.default, { goal: "", tags: [] });
  assert.deepEqual(counter, { default: { n: 0 } });
  assert.deepEqual(strict, { schema: { type: "integer" }, default: 1 });
});

test("updates of state keys, and reading one typed", async (t) => {
  const offers = stateKey("offers", { reducer: "add", merge: "commutative", default: 0, schema: z.number() });
  assert.deepEqual(offers.update(6), { key: "offers", update: 6 });
  assert.deepEqual(offers.clear(), { key: "offers", clear: true });
  const { asked, state } = await serving(t, json({ revision: 1, extensions: { offers: 6 } }), json({ revision: 0, extensions: {} }), json({}));
  assert.equal(await state.threads.read("t", offers), 6);
  assert.equal(await state.threads.read("t", offers), undefined);
  await state.stateKeys.register(offers);
  const { schema, ...rest } = JSON.parse(asked[2].body);
  assert.deepEqual(rest, { reducer: "add", merge: "commutative", default: 0 });
  assert.equal(schema.type, "number");
});
