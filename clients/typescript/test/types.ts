// What a caller sees: compiled, never run. Each `@ts-expect-error` is a mistake that must be found.

import { z } from "zod";

import { Commonhold, profileKey, stateKey } from "@commonhold/client";

const state = new Commonhold({ url: "http://127.0.0.1:8000", token: "ch_" });

const Team = profileKey("team", { default: { goal: "", tags: [] as string[] } });
const Checked = profileKey("checked", { schema: z.object({ n: z.number() }), default: { n: 0 } });
const offers = stateKey<number, "add">("offers", { reducer: "add", default: 0 });
const notes = stateKey<string[], "append">("notes", { reducer: "append" });
const plan = stateKey<{ goal: string; done: boolean }, "merge">("plan", { reducer: "merge" });

export async function calls(): Promise<void> {
  const team = await state.read(Team, "global");
  const goal: string = team.goal;
  // @ts-expect-error: no such member
  team.gaol = goal;
  await state.edit(Team, "global", (each) => void each.tags.push("x"));
  // @ts-expect-error: a push returns the new length
  await state.edit(Team, "global", (each) => each.tags.push("x"));
  // @ts-expect-error: the value has another type
  await state.write(Team, "global", { goal: 1, tags: [] });
  const n: number = (await state.read(Checked, "global")).n;
  // @ts-expect-error: the default must fit the schema
  profileKey("checked", { schema: z.object({ n: z.number() }), default: { n: "0" } });

  const entry = await state.get<{ n: number }>("counter", "k", { wait: 30, since: 3 });
  const value: number = entry.value.n + entry.version + n;
  // @ts-expect-error: options are named as on the wire
  await state.put("counter", "k", value, { ifVersion: 3 });
  // @ts-expect-error: no such query
  await state.list("counter", { prefx: "a" });
  for await (const row of state.list("counter", { include: "value", valid: true })) row.key.toUpperCase();

  await state.runs.commit("r1", {
    updates: [offers.update(1), notes.update("a"), notes.update(["a", "b"]), plan.update({ done: true }), plan.clear()],
    messages: [{ role: "user", content: "hi", anything: 1 }],
    on_conflict: "rebase",
  });
  // @ts-expect-error: a key that adds takes numbers
  offers.update("1");
  // @ts-expect-error: of another item type
  notes.update(1);
  // @ts-expect-error: no such role
  await state.threads.append("t1", [{ role: "robot", content: "hi" }]);
  // @ts-expect-error: an operation needs its value's place
  await state.update("counter", "k", { op: "add", value: 1 });
  const claimed = await state.dispatches.claim({ consumer: "w1", wait: 30 });
  for (const each of claimed) await state.dispatches.ack(each);
  const job: string = (await state.threads.compact("t1")).status;
  const folded = (await state.threads.compact("t1", { dry_run: true })).would_fold?.tokens_before;
  const removed: number = (await state.threads.previewCompaction("t1", { kind: "snapshot" })).snapshots_removed;
  const rows: number = (await state.namespaces.compact("counter", { dry_run: true })).rows_removed;
  const maybe = await state.namespaces.compact("counter", { dry_run: rows > removed });
  if ("finished_at" in maybe) maybe.status.concat(job, String(folded));
  const removal = await state.namespaces.unregister("counter", { dry_run: true });
  const held: number | undefined = removal?.held.entries;
  const registered = await state.namespaces.register("counter", { tracked: true });
  const wouldChange: boolean = (await state.namespaces.register("counter", { dry_run: true })).would_change;
  registered.name.concat(String(held), String(wouldChange));
  await state.runs.cancel("r1", { if_version: (await state.runs.get("r1")).last_revision });
  // @ts-expect-error: a registration has no preview
  (await state.namespaces.register("counter")).would_change;
  // @ts-expect-error: a heartbeat has no condition
  await state.runs.heartbeat("r1", { if_version: 1 });
  // @ts-expect-error: a job has no preview
  (await state.threads.compact("t1")).would_fold;
  // @ts-expect-error: no such kind
  await state.threads.compact("t1", { kind: "history" });
  // @ts-expect-error: a reason is required
  await state.redact("counter", "k", { pointers: ["/n"] });
  await state.restoreEntries({ at: new Date(), namespace: "counter", dry_run: true });
  // @ts-expect-error: no such filter
  await state.dispatches.clearDead({ thread: "t1" });
  for await (const part of state.blame("counter", "k")) part.pointer.toUpperCase();
  for await (const change of state.watch({ namespace: Team })) change.cursor.toUpperCase();
}
