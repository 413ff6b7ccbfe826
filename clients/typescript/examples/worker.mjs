// A worker claims work from a thread's mailbox, asks a person, and commits the result as one step.

import { Commonhold, stateKey } from "@commonhold/client";

const spent = stateKey("spent_eur", { reducer: "add", merge: "commutative", default: 0 });

const state = Commonhold.fromEnv();
await state.stateKeys.register(spent);
const { id: thread } = await state.threads.create({ title: "Lisbon in May" });
await state.dispatches.enqueue(thread, { agent_id: "buyer", payload: { buy: "a ticket", eur: 80 } });

const [work] = await state.dispatches.claim({ agent_id: "buyer", thread_id: thread, consumer: "w1", wait: 30 });
const run = await state.runs.start(thread, { agent_id: "buyer" });
await state.runs.change(run.id, {
  status: "waiting",
  waiting: {
    reason: "tool_permission",
    tickets: [{ tool_call_id: "c1", tool_name: "pay", arguments: work.payload }],
  },
});

const [question] = (await state.runs.tickets(run.id)).items;
// Usually a person decides, at /inbox.
setTimeout(() => state.tickets.decide(question.id, { action: "resume" }), 100);
let { status } = question;
while (status === "pending") {
  await state.dispatches.extend(work, { lease_seconds: 60 }); // otherwise, another worker could claim it meanwhile
  ({ status } = await state.tickets.get(question.id, { wait: 30 }));
}
if (status !== "resumed") throw new Error(`not permitted: ${status}`);

const { revision } = await state.runs.commit(run.id, {
  updates: [spent.update(work.payload.eur)],
  messages: [{ role: "assistant", content: `Bought ${work.payload.buy}.` }],
  run: { status: "done", termination_reason: { type: "natural_end" } },
});
await state.dispatches.ack(work);
console.log(`${status}; ${await state.threads.read(thread, spent)} € spent at revision ${revision}`);
