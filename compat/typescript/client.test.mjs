// The client against a running server: COMMONHOLD_URL, COMMONHOLD_TOKEN (an admin's).

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, test } from "node:test";

import {
  Conflict,
  Gone,
  Invalid,
  NotRegistered,
  RevisionConflict,
  StateScope,
  Commonhold,
  Superseded,
  Unauthenticated,
  VersionConflict,
  profileKey,
  stateKey,
} from "@commonhold/client";

const state = Commonhold.fromEnv();
const mark = randomUUID().slice(0, 8);
const Team = profileKey(`team_${mark}`, {
  default: { goal: "", constraints: [] },
  json_schema: {
    type: "object",
    properties: { goal: { type: "string" }, constraints: { type: "array" } },
  },
});
const Counter = profileKey(`counter_${mark}`, { default: { n: 0 } });
const offers = stateKey(`offers_${mark}`, { reducer: "add", merge: "commutative", default: 0 });
const plan = stateKey(`plan_${mark}`, { scope: "thread" });

before(async () => {
  await state.register(Team, Counter);
  await state.stateKeys.register(offers);
  await state.stateKeys.register(plan);
});

async function all(list) {
  const items = [];
  for await (const each of list) items.push(each);
  return items;
}

test("me says what the token is", async () => {
  assert.equal((await state.me()).role, "admin");
  const stranger = new Commonhold({ url: process.env.COMMONHOLD_URL, token: "ch_nobody" });
  await assert.rejects(stranger.me(), Unauthenticated);
});

test("a typed value: default, write, read, edit", async () => {
  const scope = StateScope.parentThread("t1");
  assert.deepEqual(await state.read(Team, scope), { goal: "", constraints: [] });
  assert.equal((await state.get(Team, scope)).version, 0);
  await state.write(Team, scope, { goal: "Lisbon", constraints: [] });
  await state.edit(Team, scope, (team) => void team.constraints.push("no night flights"));
  assert.deepEqual(await state.read(Team, scope), { goal: "Lisbon", constraints: ["no night flights"] });
  await assert.rejects(state.write(Team, scope, { goal: 1, constraints: [] }), Invalid);
});

test("100 concurrent edits lose no update", async () => {
  await Promise.all(
    Array.from({ length: 100 }, () => state.edit(Counter, "edited", (counter) => void (counter.n += 1))),
  );
  assert.deepEqual(await state.read(Counter, "edited"), { n: 100 });
});

test("100 concurrent updates on the server lose none", async () => {
  const add = () => state.update(Counter, "updated", { op: "add", path: "/n", value: 1 });
  await Promise.all(Array.from({ length: 100 }, add));
  assert.equal((await state.get(Counter, "updated")).value.n, 100);
});

test("versions: compare-and-set, merge, create only", async () => {
  const first = await state.put(Counter, "cas", { n: 1 }, { if_version: 0 });
  await state.put(Counter, "cas", { n: 1, a: 1 }, { if_version: first.version });
  const late = state.put(Counter, "cas", { n: 9 }, { if_version: first.version });
  await assert.rejects(late, (error) => {
    assert.ok(error instanceof VersionConflict);
    assert.deepEqual([error.expected, error.actual, error.detail], [1, 2, "version conflict: expected 1, actual 2"]);
    return true;
  });
  const joined = await state.put(Counter, "cas", { n: 1, b: 2 }, { if_version: first.version, merge: true });
  assert.deepEqual(joined.value, { n: 1, a: 1, b: 2 });
  await assert.rejects(state.put(Counter, "cas", {}, { if_version: 0 }), VersionConflict);
  const same = await state.put(Counter, "cas", joined.value, { if_changed: true });
  assert.equal(same.version, joined.version);
});

test("patches: merge, JSON Patch, updates", async () => {
  await state.put(Counter, "patched", { n: 1, list: [] });
  await state.patch(Counter, "patched", { gone: null, name: "x" });
  await state.patch(Counter, "patched", [{ op: "replace", path: "/n", value: 2 }], { kind: "json" });
  const { value } = await state.update(Counter, "patched", [
    { op: "add", path: "/n", value: 1 },
    { op: "append", path: "/list", value: "a" },
  ]);
  assert.deepEqual(value, { n: 3, name: "x", list: ["a"] });
});

test("history, diff, restore, delete", async () => {
  const key = "past/with spaces & ümläut::%";
  await state.put(Counter, key, { n: 1 }, { reason: "größer" });
  await state.put(Counter, key, { n: 2 });
  const versions = await all(state.history(Counter, key, { include: "value", limit: 1 }));
  assert.deepEqual(versions.map(({ version, reason }) => [version, reason]), [[2, ""], [1, "größer"]]);
  assert.equal((await state.diff(Counter, key, 1, 2)).patch[0].path, "/n");
  assert.deepEqual((await state.get(Counter, key, { at_version: 1 })).value, { n: 1 });
  assert.deepEqual((await state.restore(Counter, key, 1, { if_version: 2 })).value, { n: 1 });
  await state.delete(Counter, key);
  await state.delete(Counter, key);
  assert.equal((await state.get(Counter, key)).exists, false);
  assert.ok((await state.put(Counter, key, { n: 5 })).version > 3);
});

test("a batch is atomic, and reaches keys that no address can hold", async () => {
  const results = await state.batch([
    { op: "put", namespace: Counter.name, key: "..", value: { n: 1 } },
    { op: "patch", namespace: Counter.name, key: "..", patch: { n: 2 } },
    { op: "get", namespace: Counter.name, key: ".." },
  ]);
  assert.deepEqual(results[2].entry.value, { n: 2 });
  const failing = state.batch([
    { op: "put", namespace: Counter.name, key: "half", value: { n: 1 } },
    { op: "put", namespace: Counter.name, key: "..", value: { n: 1 }, if_version: 99 },
  ]);
  await assert.rejects(failing, VersionConflict);
  assert.equal((await state.get(Counter, "half")).exists, false);
});

test("lists over pages, by key, by words", async () => {
  for (const n of [1, 2, 3]) await state.put(Counter, `listed-${mark}/${n}`, { n, word: `zebra${mark}` }, { tags: ["z"] });
  const rows = await all(state.list(Counter, { prefix: `listed-${mark}/`, limit: 2, include: "value" }));
  assert.deepEqual(rows.map(({ key, value }) => [key, value.n]), [[`listed-${mark}/1`, 1], [`listed-${mark}/2`, 2], [`listed-${mark}/3`, 3]]);
  assert.equal((await state.list(Counter, { prefix: `listed-${mark}/`, limit: 2 })).items.length, 2);
  assert.equal((await all(state.listKey(`listed-${mark}/1`)))[0].namespace, Counter.name);
  assert.equal((await all(state.search({ text: `zebra${mark}`, limit: 2 }))).length, 3);
  assert.deepEqual((await state.clearKey(`listed-${mark}/1`, { dry_run: true })).matched, 1);
});

test("a namespace nobody registered is NotRegistered", async () => {
  await assert.rejects(state.get("nobody", "k"), {
    constructor: NotRegistered,
    detail: "profile key not registered: nobody",
  });
});

test("a repeat under one idempotency key has one effect", async () => {
  const idempotency_key = randomUUID();
  const add = () => state.update(Counter, "once", { op: "add", path: "/n", value: 1 }, { idempotency_key });
  await add();
  await add();
  assert.equal((await state.get(Counter, "once")).value.n, 1);
});

test("threads, messages, context", async () => {
  const { id } = await state.threads.create({ title: "Lisbon", metadata: { a: 1 } });
  await state.threads.append(id, [{ id: "u1", role: "user", content: "hi", mine: 1 }], { expected_message_count: 0 });
  await assert.rejects(state.threads.append(id, [{ role: "user", content: "x" }], { expected_message_count: 0 }), VersionConflict);
  await state.threads.append(id, [{ role: "assistant", content: "hello" }]);
  const messages = await all(state.threads.messages(id, { limit: 1 }));
  assert.deepEqual(messages.map(({ content, mine }) => [content, mine]), [["hi", 1], ["hello", undefined]]);
  assert.equal((await state.threads.context(id)).messages.length, 2);
  assert.equal((await state.threads.change(id, { title: "Porto" })).title, "Porto");
  const fork = await state.threads.fork(id, { message_count: 1 });
  assert.equal(fork.message_count, 1);
  assert.equal((await state.threads.delete(id, { dry_run: true })).would_delete.messages, 2);
  await state.threads.delete(id);
});

test("a run: commits, typed state, snapshots, restore, leases", async () => {
  const { id } = await state.threads.create();
  const run = await state.runs.start(id, { agent_id: "planner" });
  const step = await state.runs.commit(run.id, {
    updates: [offers.update(6), plan.update({ goal: "x" })],
    messages: [{ role: "user", content: "Find me a flight." }],
    fencing_token: run.fencing_token,
  });
  assert.equal(await state.threads.read(id, offers), 6);
  await state.runs.commit(run.id, { batches: [[offers.update(1)], [offers.update(2)]], base_revision: step.revision });
  assert.equal(await state.threads.read(id, offers), 9);
  assert.equal(await state.threads.read(id, offers, { revision: step.revision }), 6);
  await assert.rejects(state.runs.commit(run.id, { updates: [plan.clear()], base_revision: 0 }), RevisionConflict);
  assert.ok((await all(state.threads.snapshots(id))).length >= 2);
  assert.ok((await state.threads.diff(id, step.revision, step.revision + 1)).rows.length);
  await state.threads.restore(id, step.revision);
  assert.equal(await state.threads.read(id, offers), 6);
  const taken = await state.runs.takeLease(run.id, { fencing_token: run.fencing_token });
  await assert.rejects(state.runs.heartbeat(run.id, { fencing_token: run.fencing_token }), Superseded);
  await state.runs.heartbeat(run.id, { fencing_token: taken.fencing_token });
  const exported = await state.threads.state(id, { export: true });
  const other = await state.threads.create();
  await state.threads.importState(other.id, exported, { mode: "merge" });
  assert.deepEqual(await state.threads.read(other.id, plan), { goal: "x" });
  const done = await state.runs.change(run.id, { status: "done", termination_reason: { type: "natural_end" } });
  assert.equal(done.status, "done");
  await assert.rejects(state.runs.change(run.id, { status: "running" }), Conflict);
});

test("100 concurrent commits of a commutative key lose none", async () => {
  const { id } = await state.threads.create();
  const run = await state.runs.start(id);
  await Promise.all(Array.from({ length: 100 }, () => state.runs.commit(run.id, { updates: [offers.update(1)] })));
  assert.equal(await state.threads.read(id, offers), 100);
});

test("a ticket is waited for and decided once", async () => {
  const { id } = await state.threads.create();
  const run = await state.runs.start(id);
  const ticket = { ticket_id: `k-${randomUUID()}`, tool_call_id: "c1", tool_name: "pay", arguments: { eur: 5 } };
  await state.runs.change(run.id, { status: "waiting", waiting: { reason: "tool_permission", tickets: [ticket] } });
  const [pending] = (await state.runs.tickets(run.id)).items;
  const waiting = state.tickets.get(pending.id, { wait: 30 });
  await state.tickets.decide(pending.id, { action: "resume" });
  assert.equal((await waiting).status, "resumed");
  await assert.rejects(state.tickets.decide(pending.id, { action: "cancel" }), Conflict);
});

test("the mailbox: enqueue, claim by long poll, nack, ack", async () => {
  const agent_id = `worker-${mark}`;
  const { id } = await state.threads.create();
  const claiming = state.dispatches.claim({ agent_id, consumer: "w1", wait: 30 });
  await state.dispatches.enqueue(id, { agent_id, payload: { task: "check" } });
  const [held] = await claiming;
  assert.deepEqual(held.payload, { task: "check" });
  await state.dispatches.extend(held, { lease_seconds: 60 });
  await state.dispatches.nack(held, { error: "again", retry_after: 0 });
  const [again] = await state.dispatches.claim({ agent_id, consumer: "w1", wait: 30 });
  assert.equal(again.id, held.id);
  await assert.rejects(state.dispatches.ack(held), Conflict);
  assert.equal((await state.dispatches.ack(again)).status, "Acked");
});

test("a long poll answers as soon as there is a newer version", async () => {
  const { version } = await state.put(Counter, "polled", { n: 1 });
  const newer = state.get(Counter, "polled", { since: version, wait: 30 });
  await state.put(Counter, "polled", { n: 2 });
  assert.deepEqual((await newer).value, { n: 2 });
});

test("watch: changes from now on, resumed behind a cursor", async () => {
  const watch = await state.watch({ namespace: Counter, key: "watched" }).open();
  await state.put(Counter, "watched", { n: 1 });
  await state.put(Counter, "watched", { n: 2 });
  const seen = [];
  for await (const change of watch) {
    seen.push(change);
    if (seen.length === 2) break;
  }
  assert.deepEqual(seen.map(({ version }) => version), [1, 2]);
  const again = state.watch({ namespace: Counter, key: "watched" }, { cursor: seen[0].cursor });
  assert.equal((await again.next()).value.version, 2);
  await again.return();
  const page = await state.changes({ namespace: Counter, key: "watched", cursor: seen[0].cursor, wait: 30 });
  assert.deepEqual(page.items.map(({ version }) => version), [2]);
});

test("plugins install and uninstall", async () => {
  const name = `plugin_${mark}`;
  await state.plugins.install(name, { state_keys: [{ key: `pk_${mark}` }], namespaces: [{ name: `pn_${mark}` }] });
  await assert.rejects(state.plugins.install(name, {}), Conflict);
  await state.plugins.uninstall(name);
});

test("what has no method is a request", async () => {
  assert.ok(await state.request("GET", "/webhooks"));
});

test("an old revision that was never there is refused, not silence", async () => {
  const { id } = await state.threads.create();
  const error = await state.threads.state(id, { revision: 99 }).catch((each) => each);
  assert.ok(error.status === 404 || error instanceof Gone);
});
