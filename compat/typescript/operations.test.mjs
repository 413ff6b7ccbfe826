// Provenance, restores, redactions, compactions and reverts against a running server and its worker: COMMONHOLD_URL, COMMONHOLD_TOKEN (an admin's).

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { BadRequest, Conflict, Invalid, NotFound, NotRegistered, Commonhold, profileKey } from "@commonhold/client";

const state = Commonhold.fromEnv();
const mark = randomUUID().slice(0, 8);
const Notes = profileKey(`notes_${mark}`, { default: {} });

before(() => state.register(Notes));

async function all(list) {
  const items = [];
  for await (const each of list) items.push(each);
  return items;
}

/** The job when it has ended. */
async function ended(read) {
  for (let attempt = 0; attempt < 300; attempt++) {
    const job = await read();
    if (job.finished_at !== null) return job;
    await sleep(200);
  }
  throw new Error("the job does not end: is there a worker?");
}

test("blame: who set each part, in which version", async () => {
  await state.put(Notes, "blamed/1", { a: 1 }, { reason: "first" });
  await state.patch(Notes, "blamed/1", { b: 2 });
  const parts = await all(state.blame(Notes, "blamed/1"));
  const setBy = Object.fromEntries(parts.map(({ pointer, version }) => [pointer, version]));
  assert.deepEqual(setBy, { "/a": 1, "": 2 }); // what is not listed was set with what contains it
  await assert.rejects(async () => await state.blame("nobody", "k"), NotRegistered);
});

test("reads: of an entry, of a run, and what the run could see", async () => {
  const { id, scopes } = await started();
  const key = `thread::${scopes.thread}`;
  const { version } = await state.put(Notes, key, { seen: true });
  await state.runs.commit(id, { messages: [{ role: "user", content: "Hi" }], reads: [{ namespace: Notes.name, key, version }] });
  const readers = await all(state.readers(Notes, key, { version, limit: 1 }));
  assert.deepEqual(readers.map(({ run_id }) => run_id), [id]);
  assert.deepEqual(await all(state.readers(Notes, key, { version: 0 })), []);
  assert.deepEqual(await all(state.runs.reads(id, { stale: true })), []);
  await state.put(Notes, key, { seen: false });
  const stale = await all(state.runs.reads(id, { stale: true }));
  assert.deepEqual(stale.map((read) => [read.key, read.version]), [[key, version]]);
  const known = await state.runs.knowledge(id, { limit: 1 });
  assert.deepEqual(known.items.map((entry) => [entry.namespace, entry.key, entry.value]), [[Notes.name, key, { seen: true }]]);
  assert.equal(known.run_id, id);
  await assert.rejects(state.runs.knowledge(id, { stp: 1 }), BadRequest);
});

async function started() {
  const thread = await state.threads.create();
  const run = await state.runs.start(thread.id, { agent_id: `reader-${mark}` });
  return { id: run.id, scopes: { thread: thread.id } };
}

test("entries of a namespace are restored to a moment, all at once", async () => {
  const prefix = "restored/";
  const { updated_at } = await state.put(Notes, `${prefix}old`, { n: 1 });
  await state.put(Notes, `${prefix}old`, { n: 2 });
  await state.put(Notes, `${prefix}new`, { n: 3 });
  const moment = { at: updated_at, namespace: Notes.name, prefix, reason: "bad import" };
  const preview = await state.restoreEntries({ ...moment, dry_run: true });
  assert.deepEqual([preview.dry_run, preview.changed, preview.deleted], [true, 1, 1]);
  assert.equal((await state.get(Notes, `${prefix}old`)).value.n, 2);
  const { changed, deleted, dry_run } = await state.restoreEntries(moment);
  assert.deepEqual([changed, deleted, dry_run], [1, 1, undefined]);
  assert.equal((await state.get(Notes, `${prefix}old`)).value.n, 1);
  assert.equal((await state.get(Notes, `${prefix}new`)).exists, false);
  assert.equal((await all(state.history(Notes, `${prefix}old`)))[0].reason, "bad import");
  await assert.rejects(state.restoreEntries({ at: new Date(), namespc: Notes.name }), BadRequest);
  assert.equal((await state.restoreEntries({ at: new Date(updated_at), key: "absent" })).changed, 0);
});

test("a redaction removes parts from every version", async () => {
  await state.put(Notes, "redacted", { secret: "x", n: 1 });
  await state.put(Notes, "redacted", { secret: "y", n: 2 });
  const redaction = { pointers: ["/secret"], reason: "größer" };
  const preview = await state.redact(Notes, "redacted", { ...redaction, dry_run: true });
  assert.deepEqual([preview.dry_run, preview.rewritten], [true, 2]);
  assert.equal((await state.get(Notes, "redacted")).value.secret, "y");
  assert.equal((await state.redact(Notes, "redacted", redaction)).rewritten, 2);
  const first = await state.get(Notes, "redacted", { at_version: 1 });
  assert.deepEqual(first.value, { secret: { $redacted: true }, n: 1 });
  assert.equal((await all(state.history(Notes, "redacted")))[0].reason, "größer");
  await assert.rejects(state.redact(Notes, "redacted", { pointer: "/n", reason: "x" }), BadRequest);
  await assert.rejects(state.redact(Notes, "redacted", { pointers: ["/absent"], reason: "x" }), Invalid);
});

test("usage and audit of the workspace", async () => {
  assert.ok("entries" in (await state.usage()).limits);
  await state.put(Notes, "audited", {}, { reason: "seen by the auditor" });
  const [row] = (await state.audit({ namespace: Notes.name, key: "audited", action: "entry.*", limit: 1 })).items;
  assert.deepEqual([row.action, row.reason], ["entry.put", "seen by the auditor"]);
  await assert.rejects(async () => await state.audit({ namespc: "x" }), BadRequest);
});

test("a revert undoes the writes of a request, and lists what it skipped", async () => {
  const keys = ["reverted/a", "reverted/b"];
  await state.batch(keys.map((key) => ({ op: "put", namespace: Notes.name, key, value: { n: 1 } })));
  await state.batch(keys.map((key) => ({ op: "put", namespace: Notes.name, key, value: { n: 2 } })));
  const [{ request_id }] = await all(state.history(Notes, keys[0]));
  await state.put(Notes, keys[1], { n: 3 });
  const preview = await state.reverts.request(request_id, { dry_run: true });
  assert.deepEqual([preview.dry_run, preview.reverted, preview.skipped], [true, 1, 1]);
  const { id } = await state.reverts.request(request_id, { reason: "wrong file" });
  const done = await ended(() => state.reverts.get(id));
  assert.deepEqual([done.status, done.reverted, done.skipped, done.reason], ["done", 1, 1, "wrong file"]);
  assert.deepEqual((await all(state.reverts.skipped(id, { limit: 1 }))).map(({ key }) => key), [keys[1]]);
  assert.deepEqual(await Promise.all(keys.map(async (key) => (await state.get(Notes, key)).value.n)), [1, 3]);
  assert.deepEqual((await all(state.reverts.list({ request_id }))).map((each) => each.id), [id]);
  await assert.rejects(state.reverts.cancel(id), Conflict);
  await assert.rejects(state.reverts.request(request_id, { dryrun: true }), BadRequest);
});

test("a compaction of a thread: preview, request, summary, undo", async () => {
  const { id } = await state.threads.create();
  const long = (n) => [
    { role: "user", content: `Question ${n}` },
    { role: "assistant", content: `Answer ${n}.` + " There are many trains.".repeat(40) },
  ];
  await state.threads.append(id, Array.from({ length: 10 }, (_, n) => long(n)).flat());
  const preview = await state.threads.previewCompaction(id);
  assert.equal(preview.skip, null);
  assert.ok(preview.would_fold.tokens_before > 0);
  const tried = await state.threads.compact(id, { dry_run: true });
  assert.deepEqual([tried.dry_run, tried.would_fold], [true, preview.would_fold]);
  const job = await state.threads.compact(id, { kind: "context", reason: "too long" });
  const done = await ended(() => state.compactions.get(job.id));
  assert.deepEqual([done.status, done.kind, done.reason], ["done", "context", "too long"]);
  assert.equal((await all(state.compactions.messages(job.id, { limit: 7 }))).length, preview.would_fold.boundary_seq);
  assert.deepEqual((await all(state.compactions.list({ thread_id: id }))).map((each) => each.id), [job.id]);
  assert.ok((await state.threads.context(id)).messages.length < 20);
  await assert.rejects(state.compactions.retry(job.id), Conflict);
  await assert.rejects(state.compactions.cancel(job.id), Conflict);
  assert.equal((await state.compactions.undo(job.id)).status, "undone");
  assert.equal((await state.threads.context(id)).messages.length, 20);
  const again = await state.compactions.retry(job.id);
  assert.notEqual(again.id, job.id);
  await ended(() => state.compactions.get(again.id));
  await assert.rejects(state.threads.compact(id, { knd: "context" }), BadRequest);
});

test("a compaction of old snapshots, and of the history of a namespace", async () => {
  const { id } = await state.threads.create();
  assert.ok("snapshots_removed" in (await state.threads.previewCompaction(id, { kind: "snapshot" })));
  assert.equal((await state.threads.compact(id, { kind: "snapshot", dry_run: true })).dry_run, true);
  const History = profileKey(`history_${mark}`, { default: 0 });
  await state.register(History);
  for (const n of [1, 2, 3]) await state.put(History, "k", n);
  assert.equal((await state.namespaces.previewCompaction(History)).rows, 3);
  assert.equal((await state.namespaces.compact(History, { dry_run: true })).dry_run, true);
  const { id: job } = await state.namespaces.compact(History, { reason: "tidy" });
  const { kind, namespace } = await ended(() => state.compactions.get(job));
  assert.deepEqual([kind, namespace], ["history", History.name]);
});

test("dead letters are replayed and deleted by thread", async () => {
  const agent_id = `dead-${mark}`;
  const { id } = await state.threads.create();
  await state.dispatches.enqueue(id, { agent_id, payload: 1, max_attempts: 1 });
  const die = async () => {
    const [held] = await state.dispatches.claim({ agent_id, consumer: "w1" });
    assert.equal((await state.dispatches.nack(held, { error: "no" })).status, "DeadLetter");
  };
  await die();
  assert.deepEqual(await state.dispatches.replayDead({ agent_id, dry_run: true }), { replayed: 1, dry_run: true });
  assert.deepEqual(await state.dispatches.replayDead({ thread_id: id }), { replayed: 1 });
  await die();
  // A misspelled filter would select all dead letters of the workspace.
  await assert.rejects(state.dispatches.clearDead({ threadId: id }), BadRequest);
  assert.deepEqual(await state.dispatches.clearDead({ thread_id: id, dry_run: true }), { matched: 1, deleted: 0, dry_run: true });
  assert.deepEqual(await state.dispatches.clearDead({ thread_id: id, agent_id }), { matched: 1, deleted: 1 });
  assert.deepEqual(await all(state.dispatches.list({ thread_id: id })), []);
});

test("a plugin is read, listed and removed", async () => {
  const name = `read_${mark}`;
  await state.plugins.install(name, { state_keys: [{ key: `pr_${mark}` }] });
  const { state_keys } = await state.plugins.get(name);
  assert.deepEqual(state_keys.map(({ key }) => key), [`pr_${mark}`]);
  assert.ok((await all(state.plugins.list())).some((plugin) => plugin.name === name && plugin.state_keys.length === 1));
  assert.deepEqual((await state.plugins.uninstall(name, { dry_run: true })).dry_run, true);
  await state.plugins.uninstall(name);
  await assert.rejects(state.plugins.get(name), NotFound);
});
