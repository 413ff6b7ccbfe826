import assert from "node:assert/strict";
import { test } from "node:test";

import { json, serving } from "./server.mjs";

test("a dry run is a parameter, a reason a header, and the rest the body", async (t) => {
  const { asked, state } = await serving(t, json({}));
  const how = { dry_run: true, reason: "why", idempotency_key: "mine" };
  await state.restoreEntries({ at: new Date(0), prefix: "a/", ...how });
  await state.reverts.request("r/1", how);
  await state.reverts.request({ at: new Date(0), prefix: "a/" }, how);
  await state.threads.compact("t/1", { kind: "snapshot", ...how });
  await state.dispatches.clearDead({ thread_id: "t1", ...how });
  await state.dispatches.replayDead({ agent_id: "a1", ...how });
  await state.namespaces.compact("notes", how);
  await state.stateKeys.unregister("mood", { values: "clear", ...how });
  await state.clearAll({ prefix: "a/", limit: 5, ...how });
  await state.namespaces.register("notes", { tracked: true, ...how });
  await state.namespaces.unregister("notes", { entries: "delete", ...how });
  await state.plugins.install("team", { state_keys: [], ...how });
  await state.dispatches.interrupt("t1", how);
  await state.threads.restore("t1", 2, how);
  await state.threads.importState("t1", { revision: 1, extensions: {} }, { mode: "merge", ...how });
  await state.runs.commit("r1", { label: "x", ...how });
  await state.put("notes", "k", 1, { tags: ["x"], ...how });
  await state.patch("notes", "k", { n: 1 }, how);
  await state.update("notes", "k", { op: "remove", path: "/n" }, how);
  await state.restore("notes", "k", 3, how);
  await state.delete("notes", "k", how);
  assert.deepEqual(
    asked.map(({ method, url, body }) => [method, url, body && JSON.parse(body)]),
    [
      ["POST", "/api/v1/restore?dry_run=true", { at: "1970-01-01T00:00:00.000Z", prefix: "a/" }],
      ["POST", "/api/v1/reverts?dry_run=true", { request_id: "r/1" }],
      ["POST", "/api/v1/reverts?dry_run=true", { at: "1970-01-01T00:00:00.000Z", prefix: "a/" }],
      ["POST", "/api/v1/threads/t%2F1/compactions?dry_run=true", { kind: "snapshot" }],
      ["POST", "/api/v1/dispatches/clear?dry_run=true", { thread_id: "t1" }],
      ["POST", "/api/v1/dispatches/replay?dry_run=true", { agent_id: "a1" }],
      ["POST", "/api/v1/namespaces/notes/compactions?dry_run=true", ""],
      ["DELETE", "/api/v1/state-keys/mood?values=clear&dry_run=true", ""],
      ["DELETE", "/api/v1/state?prefix=a%2F&limit=5&dry_run=true", ""],
      ["PUT", "/api/v1/namespaces/notes?if_exists=accept&dry_run=true", { tracked: true }],
      ["DELETE", "/api/v1/namespaces/notes?entries=delete&dry_run=true", ""],
      ["PUT", "/api/v1/plugins/team?dry_run=true", { state_keys: [] }],
      ["POST", "/api/v1/threads/t1/interrupt?dry_run=true", {}],
      ["POST", "/api/v1/threads/t1/restore?dry_run=true", { revision: 2 }],
      ["POST", "/api/v1/threads/t1/import?dry_run=true", { snapshot: { revision: 1, extensions: {} }, mode: "merge" }],
      ["POST", "/api/v1/runs/r1/commits?dry_run=true", { label: "x" }],
      ["PUT", "/api/v1/state/notes/k?dry_run=true", { value: 1, tags: ["x"] }],
      ["PATCH", "/api/v1/state/notes/k?dry_run=true", { n: 1 }],
      ["PATCH", "/api/v1/state/notes/k?dry_run=true", [{ op: "remove", path: "/n" }]],
      ["POST", "/api/v1/restore/notes/k?dry_run=true", { version: 3 }],
      ["DELETE", "/api/v1/state/notes/k?dry_run=true", ""],
    ],
  );
  for (const { headers } of asked) assert.deepEqual([headers["change-reason"], headers["idempotency-key"]], ["why", "mine"]);
});

test("the reason of a redaction is a member of the body, which requires it", async (t) => {
  const { asked, state } = await serving(t, json({}));
  await state.redact("notes", "a/b", { reason: "größer", pointers: ["/x"], idempotency_key: "mine", dry_run: false });
  const [{ url, headers, body }] = asked;
  assert.equal(url, "/api/v1/redact/notes/a%2Fb?dry_run=false");
  assert.deepEqual(JSON.parse(body), { reason: "größer", pointers: ["/x"] });
  assert.deepEqual([headers["change-reason"], headers["idempotency-key"]], [undefined, "mine"]);
});

test("conditions on versions, revisions and values are headers", async (t) => {
  const { asked, state } = await serving(t, json({ results: [] }));
  await state.runs.change("r1", { step_count: 1, if_version: 4 });
  await state.runs.cancel("r1", { if_version: 4 });
  await state.runs.fail("r1", { message: "x", if_version: 4 });
  await state.threads.append("t1", [], { if_version: 4 });
  await state.update("notes", "k", { op: "remove", path: "/n" }, { if_version: 4, if_changed: true });
  await state.restore("notes", "k", 1, { if_version: 4, if_changed: true });
  for (const { headers, body } of asked) assert.deepEqual([headers["if-match"], /if_/.test(body)], ['"4"', false]);
  assert.deepEqual(asked.map(({ headers }) => headers["if-changed"]).slice(-3), [undefined, "true", "true"]);
  await state.batch([], { dry_run: true });
  assert.equal(asked.at(-1).url, "/api/v1/state/batch?dry_run=true");
});

test("versions and revisions are marked", async (t) => {
  const { asked, state } = await serving(t, json({}));
  await state.pinVersion("notes", "a/b", 3, { reason: "why" });
  await state.pinVersion("notes", "k", 3, { pinned: false });
  await state.threads.markSnapshot("t1", 2, { label: "start", pinned: true, reason: "why" });
  assert.deepEqual(
    asked.map(({ method, url, headers, body }) => [method, url, headers["change-reason"], JSON.parse(body)]),
    [
      ["PATCH", "/api/v1/history/notes/a%2Fb", "why", { version: 3, pinned: true }],
      ["PATCH", "/api/v1/history/notes/k", undefined, { version: 3, pinned: false }],
      ["PATCH", "/api/v1/threads/t1/snapshots/2", "why", { label: "start", pinned: true }],
    ],
  );
});

test("jobs, reads and lists: paths and parameters", async (t) => {
  const { asked, state } = await serving(t, json({ items: [], next_cursor: null }));
  for (const verb of ["cancel", "retry", "undo"]) await state.compactions[verb]("c1", { reason: "why" });
  await state.reverts.cancel("v1");
  const lists = [
    state.blame("notes", "a/b"),
    state.readers("notes", "k", { version: 0 }),
    state.runs.reads("r1", { stale: true }),
    state.audit({ action: "entry.*", created_after: new Date(0) }),
    state.compactions.list({ status: "failed" }),
    state.compactions.messages("c1", { order: "desc" }),
    state.reverts.list({ status: "done" }),
    state.reverts.skipped("v1"),
  ];
  for (const each of lists) for await (const _ of each);
  await state.runs.knowledge("r1", { step: 2, cursor: "c" });
  await state.threads.previewCompaction("t1", { kind: "snapshot" });
  for (const group of [state.compactions, state.reverts, state.plugins]) await group.get("j1");
  await state.namespaces.previewCompaction("notes");
  await state.usage();
  await state.dispatches.counts({ agent_id: "a1" });
  await state.threads.lineage("t/1");
  await state.listAll({ scope_kind: "team", tag: ["x", "y"] });
  const addresses = asked.map(({ method, url }) => `${method} ${url.replace("/api/v1", "")}`);
  assert.deepEqual(addresses, [
    "POST /compactions/c1/cancel",
    "POST /compactions/c1/retry",
    "POST /compactions/c1/undo",
    "POST /reverts/v1/cancel",
    "GET /blame/notes/a%2Fb",
    "GET /reads/notes/k?version=0",
    "GET /runs/r1/reads?stale=true",
    "GET /audit?action=entry.*&created_after=1970-01-01T00%3A00%3A00.000Z",
    "GET /compactions?status=failed",
    "GET /compactions/c1/messages?order=desc",
    "GET /reverts?status=done",
    "GET /reverts/v1/skipped",
    "GET /runs/r1/knowledge?step=2&cursor=c",
    "GET /threads/t1/compactions?kind=snapshot",
    "GET /compactions/j1",
    "GET /reverts/j1",
    "GET /plugins/j1",
    "GET /namespaces/notes/compactions",
    "GET /usage",
    "GET /dispatches/counts?agent_id=a1",
    "GET /threads/t%2F1/lineage",
    "GET /state?scope_kind=team&tag=x&tag=y",
  ]);
});

test("options that are missing or misspelled are refused before anything is sent", async (t) => {
  const { asked, state } = await serving(t, json({}));
  const refused = (call, message) => assert.rejects(async () => call(), { name: "TypeError", message });
  await refused(() => state.redact("notes", "k"), /^the options of redact\(\) must be an object, not undefined$/);
  await refused(() => state.restoreEntries("yesterday"), /^the options of restoreEntries\(\) must be an object/);
  await refused(() => state.namespaces.compact("notes", { dryRun: true }), /^unknown option of POST \/namespaces\/notes\/compactions: dryRun/);
  await refused(() => state.compactions.get(7), /^a name, key or id must be a string, not 7$/);
  assert.equal(asked.length, 0);
});
