// The real AG-UI client reads a thread: state by snapshot and delta, messages, tool calls, runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpAgent, parseSSEStream, runHttpRequest, verifyEvents } from "@ag-ui/client";
import jsonpatch from "fast-json-patch";
import { runExample } from "../shared/examples.mjs";
import { api, commit, finish, headers, startRun, url } from "../shared/server.mjs";

const stream = (thread) => `${url}/api/v1/threads/${thread}/ag-ui/stream`;
const agentOf = (thread) => new HttpAgent({ url: stream(thread), headers, threadId: thread });
const call = { id: "c1", type: "function", function: { name: "find", arguments: '{"a":1}' } };

async function watch(thread, subscriber, work) {
  const agent = agentOf(thread);
  let ready;
  const begun = new Promise((resolve) => (ready = resolve));
  const seen = [];
  const done = agent.runAgent({}, {
    onEvent: ({ event }) => void seen.push(event),
    onMessagesSnapshotEvent: () => ready(),
    ...subscriber,
  });
  await Promise.race([begun, done]);
  await work();
  return { agent, seen, result: await done };
}

test("HttpAgent follows a run and holds its state, messages and tool calls", async () => {
  const { thread, run } = await startRun();
  await commit(run, {
    updates: [{ key: "ui_plan", update: { steps: ["look"], note: "x".repeat(500) } }],
    messages: [{ role: "user", content: "Find it." }],
  });
  const { agent, seen } = await watch(thread, {}, async () => {
    await commit(run, { messages: [{ id: "m2", role: "assistant", content: null, tool_calls: [call] }] });
    await commit(run, { messages: [{ role: "tool", tool_call_id: "c1", content: "7" }] });
    await commit(run, {
      updates: [{ key: "ui_plan", update: { steps: ["look", "tell"], note: "x".repeat(500) } }],
      messages: [{ role: "assistant", content: "Seven." }],
    });
    await finish(run);
  });
  const state = await api("GET", `/threads/${thread}/state`);
  assert.deepEqual(agent.state, state);
  assert.deepEqual(agent.messages.map((m) => [m.role, m.content]), [
    ["user", "Find it."], ["assistant", undefined], ["tool", "7"], ["assistant", "Seven."],
  ]);
  assert.deepEqual(agent.messages[1].toolCalls, [call]);
  assert.equal(seen[0].type, "RUN_STARTED");
  assert.equal(seen[1].type, "STATE_SNAPSHOT");
  assert.ok(seen.some((event) => event.type === "STATE_DELTA"));
  assert.equal(seen.at(-1).type, "RUN_FINISHED");
});

test("HttpAgent joins a run late and ends with the same state and messages", async () => {
  const { thread, run } = await startRun();
  const early = watch(thread, {}, async () => {
    for (let step = 1; step <= 20; step++) {
      await commit(run, {
        updates: [{ key: "ui_plan", update: { step, "a/b~c": [step], pad: "y".repeat(300) } }],
        messages: [{ role: "assistant", content: `step ${step}` }],
      });
    }
    await finish(run);
  });
  const { agent } = await early;
  const late = agentOf(thread);
  await late.runAgent({ runId: run });
  assert.deepEqual(late.state, agent.state);
  assert.deepEqual(late.messages, agent.messages);
});

test("HttpAgent on a thread without a run gets the thread as it is", async () => {
  const { thread, run } = await startRun();
  await commit(run, { messages: [{ role: "user", content: "hi" }] });
  await finish(run);
  const { agent } = await watch(thread, {}, async () => {});
  assert.deepEqual(agent.messages.map((m) => m.content), ["hi"]);
});

test("a run that fails is an error of the agent", async () => {
  const { thread, run } = await startRun();
  let told;
  await watch(thread, { onRunErrorEvent: ({ event }) => void (told = event) }, () =>
    finish(run, { type: "error", message: "out of money" }),
  ).catch(() => {});
  assert.equal(told.message, "out of money");
});

test("a run that asks a person leaves the agent with a pending interrupt", async () => {
  const { thread, run } = await startRun();
  const ticket = `k-${crypto.randomUUID()}`;
  const tickets = [{ ticket_id: ticket, tool_call_id: "c1", tool_name: "refund", reason: "Refund?" }];
  const { seen } = await watch(thread, {}, () =>
    api("PATCH", `/runs/${run}`, { status: "waiting", waiting: { reason: "tool_permission", tickets } }),
  );
  assert.equal(seen.at(-1).outcome.type, "interrupt");
  assert.deepEqual(seen.at(-1).outcome.interrupts.map((each) => each.id), [ticket]);
  await finish(run);
});

test("files and reasoning arrive as AG-UI parts and messages", async () => {
  const { thread, run } = await startRun();
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const { agent } = await watch(thread, {}, async () => {
    await commit(run, { messages: [{ role: "user", content: [{ type: "text", text: "see" }, image] }] });
    await commit(run, { messages: [{ role: "assistant", reasoning_content: "hm", content: "A dot." }] });
    await finish(run);
  });
  assert.deepEqual(agent.messages.map((m) => m.role), ["user", "reasoning", "assistant"]);
  assert.deepEqual(agent.messages[0].content[1].source, {
    type: "data", value: "AAAA", mimeType: "image/png",
  });
});

test("a refused request is an error with our problem in it", async () => {
  const agent = new HttpAgent({ url: stream("absent"), headers, threadId: "absent" });
  await assert.rejects(agent.runAgent(), /404.*thread not found: absent/s);
});

test("the client's own verifier and patch library accept every delta of hostile states", async () => {
  const { thread, run } = await startRun();
  const hostile = [
    { "": 1, "/": { "~": 1 }, "~1": [null, [], {}] },
    JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": 2}}'),
    JSON.parse('{"__proto__": {"polluted": 2}, "constructor": {"prototype": 3}}'),
    [[1, 2, 3, 4], "é\u2028\ud83d\ude00"],
    [[1, 3, 4], "é"],
    null,
    1e300,
  ];
  let held;
  let arrived = () => {};
  const arrival = () => new Promise((resolve) => (arrived = resolve));
  const apply = (event) => {
    if (event.type === "STATE_SNAPSHOT") held = event.snapshot;
    if (event.type === "STATE_DELTA") {
      held = jsonpatch.applyPatch(held, event.delta, true, false).newDocument;
    }
    arrived();
  };
  const verified = new Promise((resolve, reject) => {
    runHttpRequestOf(thread, run).pipe(verifyEvents()).subscribe({
      next: apply, error: reject, complete: resolve,
    });
  });
  for (const value of hostile) {
    const { revision } = await commit(run, { updates: [{ key: "ui_plan", update: value }] });
    while (held?.revision !== revision) await arrival();
  }
  const state = await fetch(`${url}/api/v1/threads/${thread}/state`, { headers });
  await finish(run);
  await verified;
  assert.deepEqual(held.extensions.ui_plan, (await state.json()).extensions.ui_plan);
  assert.equal({}.polluted, undefined);
});

function runHttpRequestOf(thread, run) {
  return parseSSEStream(
    runHttpRequest(() =>
      fetch(stream(thread), {
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json" },
        body: JSON.stringify({ threadId: thread, runId: run, messages: [], tools: [], context: [] }),
      }),
    ),
  );
}

test("The example shows state and the reply of a scripted agent", async () => {
  const printed = await runExample(new URL("example.mjs", import.meta.url));
  assert.match(printed, /^state \["look for trains"\]$/m);
  assert.match(printed, /^said There is one at nine\.$/m);
});
