// The real AI SDK takes a thread's messages, reads the reply of a run, and joins it again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { convertToModelMessages, DefaultChatTransport, readUIMessageStream, safeValidateUIMessages } from "ai";
import { runExample } from "../shared/examples.mjs";
import { api, commit, finish, headers, startRun, url } from "../shared/server.mjs";

const path = (thread) => `${url}/api/v1/threads/${thread}/ui-messages`;
const transport = new DefaultChatTransport({
  headers,
  prepareReconnectToStreamRequest: ({ id }) => ({ api: `${path(id)}/stream`, headers }),
});
const join = (thread) => transport.reconnectToStream({ chatId: thread });
const call = (id) => ({ id, type: "function", function: { name: "find", arguments: '{"a":1}' } });

async function read(stream, onEach = () => {}) {
  let last;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
    await onEach(message);
  }
  return last;
}

async function messagesOf(thread) {
  const messages = await (await fetch(path(thread), { headers })).json();
  const checked = await safeValidateUIMessages({ messages });
  assert.ok(checked.success, checked.error?.message);
  return checked.data;
}

// Without the state, which only the stream brings, and fields that are not set.
const plain = (message) =>
  JSON.parse(JSON.stringify(message.parts.filter((part) => part.type !== "data-state")));

async function turn(run) {
  await commit(run, {
    updates: [{ key: "ui_plan", update: ["look"] }],
    messages: [{ role: "user", content: "Find it." }],
  });
  await commit(run, {
    messages: [{ role: "assistant", reasoning_content: "hm", content: "Let me.", tool_calls: [call("c1"), call("c2")] }],
  });
  await commit(run, {
    updates: [{ key: "ui_plan", update: ["tell"] }],
    messages: [
      { role: "tool", tool_call_id: "c1", content: '{"n":7}' },
      { role: "tool", tool_call_id: "c2", content: "no", is_error: true },
      { role: "assistant", content: [
        { type: "text", text: "Seven." },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        { type: "chart", points: [1, 2] },
      ] },
    ],
  });
}

test("safeValidateUIMessages accepts text, reasoning, tools, files and data", async () => {
  const { thread, run } = await startRun();
  await turn(run);
  await finish(run);
  const [user, reply] = await messagesOf(thread);
  assert.equal(user.parts[0].text, "Find it.");
  assert.deepEqual(
    reply.parts.map((part) => [part.type, part.state]),
    [
      ["step-start", undefined], ["reasoning", "done"], ["text", "done"],
      ["tool-find", "output-available"], ["tool-find", "output-error"],
      ["step-start", undefined], ["text", "done"], ["file", undefined], ["data-block", undefined],
    ],
  );
  assert.ok((await convertToModelMessages([user, reply])).length >= 3);
});

test("readUIMessageStream builds the reply of a live run, with the state as data", async () => {
  const { thread, run } = await startRun();
  await commit(run, { messages: [{ role: "user", content: "hi" }] });
  const reading = read(await join(thread));
  await commit(run, {
    updates: [{ key: "ui_plan", update: ["tell"] }],
    messages: [{ role: "assistant", content: "Hello." }],
  });
  await finish(run);
  const message = await reading;
  const [, reply] = await messagesOf(thread);
  assert.equal(message.id, reply.id);
  assert.deepEqual(plain(message), plain(reply));
  const states = message.parts.filter((part) => part.type === "data-state");
  assert.equal(states.length, 1);
  assert.deepEqual(states[0].data, await api("GET", `/threads/${thread}/state`));
});

test("DefaultChatTransport reconnects to a reply and gets all of it", async () => {
  const { thread, run } = await startRun();
  await turn(run);
  const abandoned = (await join(thread)).getReader();
  await abandoned.read();
  await abandoned.cancel();
  const reading = read(await join(thread));
  await commit(run, { messages: [{ role: "assistant", content: "And done." }] });
  await finish(run);
  const message = await reading;
  const [, reply] = await messagesOf(thread);
  assert.deepEqual(plain(message), plain(reply));
  assert.ok((await safeValidateUIMessages({ messages: [message] })).success);
});

test("reconnecting without a run that is going on gives nothing", async () => {
  const { thread, run } = await startRun();
  await finish(run);
  assert.equal(await join(thread), null);
});

test("a call that waits for a person is a tool part with an approval", async () => {
  const { thread, run } = await startRun();
  await commit(run, { messages: [{ role: "user", content: "pay" }] });
  await commit(run, { messages: [{ role: "assistant", content: null, tool_calls: [call("c1")] }] });
  const ticket = `k-${crypto.randomUUID()}`;
  const tickets = [{ ticket_id: ticket, tool_call_id: "c1", tool_name: "find" }];
  await api("PATCH", `/runs/${run}`, { status: "waiting", waiting: { reason: "tool_permission", tickets } });
  const message = await read(await join(thread));
  const [, reply] = await messagesOf(thread);
  assert.deepEqual(plain(message), plain(reply));
  assert.deepEqual(plain(reply)[1].approval, { id: ticket });

  await api("POST", `/tickets/${ticket}/decision`, { action: "cancel" });
  const [, denied] = await messagesOf(thread);
  assert.equal(denied.parts[1].state, "output-denied");
  await finish(run);
});

test("a run that fails is an error of the stream", async () => {
  const { thread, run } = await startRun();
  const reading = read(await join(thread));
  await finish(run, { type: "error", message: "out of money" });
  await assert.rejects(reading, /out of money/);
});

test("an unknown thread is an error of the transport", async () => {
  await assert.rejects(join("absent"), /thread not found: absent/);
});

test("The example shows the reply of a scripted agent and its state", async () => {
  const printed = await runExample(new URL("example.mjs", import.meta.url));
  assert.match(printed, /^text "There is one at nine\."$/m);
  assert.match(printed, /^data-state .*look for trains/m);
});
