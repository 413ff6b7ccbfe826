// AgentKit as it is, with a scripted model, and its history in a running Commonhold:
// COMMONHOLD_URL, COMMONHOLD_TOKEN (an admin's).

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, beforeEach, test } from "node:test";

import { AgentResult, createAgent, createNetwork, createState, createTool, openai } from "@inngest/agent-kit";
import { NotFound, Commonhold, StateScope, Unreachable, VersionConflict, profileKey } from "@commonhold/client";
import { commonholdHistory } from "@commonhold/client/agentkit";
import { z } from "zod";

const api = Commonhold.fromEnv();
const mark = randomUUID().slice(0, 8);
const Trip = profileKey(`trip_${mark}`, { default: {} });
const model = openai({ model: "gpt-4o", apiKey: "none", baseUrl: "http://model.invalid/v1/" });

// The model: what it was asked, and what it answers. Everything else goes to the real fetch.
const real = globalThis.fetch;
let asked = [];
let script = [];
globalThis.fetch = async (input, init) => {
  const url = String(input instanceof Request ? input.url : input);
  if (!url.startsWith("http://model.invalid/")) return real(input, init);
  asked.push(JSON.parse(init.body));
  const message = script.shift() ?? { role: "assistant", content: `answer ${asked.length}` };
  return Response.json({ choices: [{ message, finish_reason: message.tool_calls ? "tool_calls" : "stop" }] });
};

before(() => api.register(Trip));
beforeEach(() => {
  asked = [];
  script = [];
});

const say = (content) => ({ role: "assistant", content });
const call = (id, name, input) => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(input) } }],
});

const search = createTool({
  name: "search",
  description: "finds flights",
  parameters: z.object({ to: z.string() }),
  handler: ({ to }, { network }) => {
    network.state.data.found = [...(network.state.data.found ?? []), to];
    return { flights: [`TP1 to ${to}`] };
  },
});

function networkOf(options = {}, { agents, ...others } = {}) {
  const planner = createAgent({ name: "planner", system: "You plan.", model, tools: [search] });
  return createNetwork({
    name: "trip",
    agents: agents ?? [planner],
    history: commonholdHistory(api, options),
    router: ({ callCount }) => (callCount < 1 ? planner : undefined),
    ...others,
  });
}

const turns = (request) => request.messages.map(({ role, content }) => [role, content]);
const stateOf = (threadId, data = {}) => createState(data, { threadId });

async function logged(threadId) {
  const items = [];
  for await (const each of api.threads.messages(threadId)) items.push(each);
  return items;
}

test("a run without a thread makes one, with the user's message and the result in OpenAI's shape", async () => {
  const { state } = await networkOf({ thread: ({ input }) => ({ title: input, resource_id: "ada" }) }).run("Lisbon?");
  assert.match(state.threadId, /^[0-9a-f]{32}$/);
  const thread = await api.threads.get(state.threadId);
  assert.deepEqual([thread.title, thread.resource_id], ["Lisbon?", "ada"]);
  const [user, answer] = await logged(state.threadId);
  assert.deepEqual([user.role, user.content], ["user", "Lisbon?"]);
  assert.deepEqual([answer.role, answer.content, answer.name], ["assistant", "answer 1", "planner"]);
  assert.equal(answer.id, state.results[0].id);
});

test("a second run reads the first, in order, and the current turn once", async () => {
  const threadId = randomUUID();
  await networkOf().run("Lisbon?", { state: stateOf(threadId) });
  await networkOf().run("And Porto?", { state: stateOf(threadId) });
  assert.deepEqual(turns(asked[1]).filter(([role]) => role !== "system").sort(), [
    ["assistant", "answer 1"],
    ["user", "And Porto?"],
    ["user", "Lisbon?"],
  ]);
  const log = await logged(threadId);
  assert.deepEqual(log.map(({ content }) => content), ["Lisbon?", "answer 1", "And Porto?", "answer 2"]);
});

test("createThread for a thread that is there already changes nothing of it", async () => {
  const { id } = await api.threads.create({ title: "mine", metadata: { kept: true } });
  const { state } = await networkOf({ thread: () => ({ title: "other" }) }).run("hi", { state: stateOf(id) });
  assert.equal(state.threadId, id);
  const thread = await api.threads.get(id);
  assert.deepEqual([thread.title, thread.metadata, thread.message_count], ["mine", { kept: true }, 2]);
});

test("tool calls and results come back as they were, and read as OpenAI's for others", async () => {
  const threadId = randomUUID();
  script = [call("c1", "search", { to: "LIS" })];
  const first = await networkOf().run("Find", { state: stateOf(threadId) });
  const [, opens, answers] = await logged(threadId);
  assert.equal(opens.tool_calls[0].function.name, "search");
  assert.deepEqual([answers.role, answers.tool_call_id], ["tool", "c1"]);
  assert.deepEqual(JSON.parse(answers.content), { data: { flights: ["TP1 to LIS"] } });

  const loaded = await loadedBy(threadId);
  const before = first.state.results.map((each) => [each.id, each.checksum, each.export()]);
  const after = loaded.filter(({ agentName }) => agentName !== "user").map((each) => [each.id, each.checksum, each.export()]);
  assert.deepEqual(JSON.parse(JSON.stringify(after)), JSON.parse(JSON.stringify(before)));
  assert.ok(loaded.every((each) => each instanceof AgentResult && each.createdAt instanceof Date));

  await networkOf().run("Book it", { state: stateOf(threadId) });
  const roles = turns(asked[1]).map(([role]) => role);
  assert.ok(roles.includes("tool"));
});

async function loadedBy(threadId) {
  const state = stateOf(threadId);
  const results = await commonholdHistory(api).get({ state, threadId, input: "", network: undefined });
  state.setResults(results);
  return state.results;
}

test("hooks called again, as Inngest does on replay, add nothing twice", async () => {
  const history = commonholdHistory(api);
  const state = createState({}, { threadId: randomUUID() });
  const context = { state, input: "hi", threadId: state.threadId, network: undefined };
  const userMessage = { id: randomUUID(), role: "user", content: "hi", timestamp: new Date() };
  const text = { type: "text", role: "assistant", content: "hello", stop_reason: "stop" };
  const result = new AgentResult("planner", [text], [], new Date(), undefined, undefined, undefined, randomUUID());
  const other = new AgentResult("planner", [text], [], new Date());
  for (let replay = 0; replay < 2; replay++) {
    assert.deepEqual(await history.createThread(context), { threadId: state.threadId });
    await history.appendUserMessage({ ...context, userMessage: { ...userMessage, timestamp: new Date() } });
    await history.appendResults({ ...context, newResults: [result] });
    await history.appendResults({ ...context, newResults: [result, other] });
  }
  assert.deepEqual((await logged(state.threadId)).map(({ role }) => role), ["user", "assistant", "assistant"]);
});

test("results that a step turned into plain objects are kept as well", async () => {
  const history = commonholdHistory(api);
  const { threadId } = await history.createThread({ state: createState(), input: "" });
  const text = { type: "text", role: "assistant", content: [{ type: "text", text: "hel" }, { type: "text", text: "lo" }] };
  const result = new AgentResult("planner", [text], [], new Date(0), undefined, undefined, undefined, "r-1");
  const context = { state: stateOf(threadId), threadId, input: "" };
  await history.appendResults({ ...context, newResults: [JSON.parse(JSON.stringify({ ...result.export(), id: result.id }))] });
  const [loaded] = await loadedBy(threadId);
  assert.equal(loaded.createdAt.getTime(), 0);
  assert.deepEqual(loaded.output, [text]);
  assert.equal((await logged(threadId))[0].content, "hello");
});

test("two equal texts in one second are two results", async () => {
  const threadId = randomUUID();
  script = [say("same"), say("same")];
  const network = networkOf({}, { router: ({ callCount, network }) => (callCount < 2 ? network.agents.get("planner") : undefined) });
  await network.run("twice", { state: stateOf(threadId) });
  assert.deepEqual((await logged(threadId)).map(({ content }) => content), ["twice", "same", "same"]);
});

test("state that brings its own results is left to its owner, and only what is new is stored", async () => {
  const threadId = randomUUID();
  const { state } = await networkOf().run("one", { state: stateOf(threadId) });
  const mine = createState({}, { threadId, results: state.results });
  await networkOf().run("two", { state: mine });
  assert.equal((await logged(threadId)).length, 4);
});

test("messages of other programs are history too", async () => {
  const { id } = await api.threads.create();
  await api.threads.append(id, [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "Where" }, { type: "text", text: " to?" }] },
    { role: "assistant", content: "Looking", tool_calls: [{ id: "c9", type: "function", function: { name: "search", arguments: '{"to":"OPO"}' } }] },
    { role: "tool", tool_call_id: "c9", content: "TP2" },
    { role: "assistant", content: null, tool_calls: [{ id: "c10", type: "function", function: { name: "search", arguments: "{broken" } }] },
  ]);
  const loaded = await loadedBy(id);
  assert.deepEqual(loaded.map(({ agentName }) => agentName), ["system", "user", "assistant", "assistant"]);
  assert.equal(loaded[1].output[0].content, "Where to?");
  assert.deepEqual(loaded[2].output[1].tools[0].input, { to: "OPO" });
  assert.deepEqual(loaded[2].toolCalls[0].content, { data: "TP2" });
  assert.equal(loaded[3].toolCalls[0].content.data, "[Tool execution was interrupted]");
  await networkOf().run("go on", { state: stateOf(id) });
  assert.ok(turns(asked[0]).some(([role, content]) => role === "tool" && JSON.stringify(content).includes("TP2")));
});

test("max_tokens bounds what is loaded", async () => {
  const { id } = await api.threads.create();
  await api.threads.append(id, Array.from({ length: 20 }, (_, n) => ({ role: "user", content: `${n} ${"x".repeat(400)}` })));
  await networkOf({ max_tokens: 500 }).run("short", { state: stateOf(id) });
  assert.ok(asked[0].messages.length < 8);
  assert.ok(JSON.stringify(asked[0]).includes("19 xxx"));
});

test("typed state is kept from run to run: data of the second run starts where the first ended", async () => {
  const threadId = randomUUID();
  script = [call("c1", "search", { to: "LIS" })];
  await networkOf({ data: Trip }).run("Find", { state: stateOf(threadId, { budget: 500 }) });
  assert.deepEqual((await api.read(Trip, StateScope.thread(threadId))), { budget: 500, found: ["LIS"] });
  script = [call("c2", "search", { to: "OPO" })];
  const { state } = await networkOf({ data: Trip }).run("And Porto", { state: stateOf(threadId, { budget: 1, fresh: true }) });
  assert.deepEqual({ ...state.data }, { budget: 500, found: ["LIS", "OPO"], fresh: true });
  assert.deepEqual(await api.read(Trip, StateScope.thread(threadId)), { ...state.data });
});

test("state that others changed meanwhile is joined; a clash fails the run and overwrites nothing", async () => {
  const threadId = randomUUID();
  const scope = StateScope.thread(threadId);
  await api.put(Trip, scope, { budget: 500 });
  const meanwhile = (change) =>
    createTool({
      name: "search",
      description: "d",
      parameters: z.object({ to: z.string() }),
      handler: async ({ to }, { network }) => {
        network.state.data.to = to;
        await api.patch(Trip, scope, change);
        return "ok";
      },
    });
  const run = (change) => {
    script = [call("c1", "search", { to: "LIS" })];
    const agent = createAgent({ name: "planner", system: "s", model, tools: [meanwhile(change)] });
    const router = ({ callCount }) => (callCount < 1 ? agent : undefined);
    return networkOf({ data: Trip }, { agents: [agent], router }).run("Find", { state: stateOf(threadId) });
  };
  await run({ seen: true });
  assert.deepEqual(await api.read(Trip, scope), { budget: 500, seen: true, to: "LIS" });
  await api.patch(Trip, scope, { to: "" });
  await assert.rejects(run({ to: "OPO" }), VersionConflict);
  assert.equal((await api.read(Trip, scope)).to, "OPO");
});

test("what others changed meanwhile is kept when a hook is called again", async () => {
  const scope = StateScope.thread(randomUUID());
  await api.put(Trip, scope, { budget: 500, old: true });
  const threadId = scope.slice("thread::".length);
  const history = commonholdHistory(api, { data: Trip });
  const state = stateOf(threadId);
  const context = { state, input: "hi", threadId, newResults: [] };
  await history.createThread(context);
  await api.patch(Trip, scope, { seen: true, old: null });
  state.data.to = "LIS";
  for (let replay = 0; replay < 2; replay++) {
    await history.appendResults(context);
    assert.deepEqual(await api.read(Trip, scope), { budget: 500, seen: true, to: "LIS" });
  }
});

test("100 concurrent edits of a thread's typed state lose nothing", async () => {
  const scope = StateScope.thread(randomUUID());
  await Promise.all(Array.from({ length: 100 }, () => api.edit(Trip, scope, (trip) => void (trip.n = (trip.n ?? 0) + 1))));
  assert.equal((await api.read(Trip, scope)).n, 100);
});

test("a standalone agent reads the thread and keeps its state", async () => {
  const threadId = randomUUID();
  await networkOf().run("Lisbon?", { state: stateOf(threadId) });
  const alone = createAgent({ name: "alone", system: "s", model, history: commonholdHistory(api, { data: Trip }) });
  await alone.run("And?", { state: stateOf(threadId, { budget: 3 }) });
  assert.ok(turns(asked[1]).some(([, content]) => content === "Lisbon?"));
  assert.equal((await api.read(Trip, StateScope.thread(threadId))).budget, 3);
  assert.equal((await logged(threadId)).length, 2);
});

test("a user message of one's own keeps its id", async () => {
  const threadId = randomUUID();
  const message = { id: randomUUID(), role: "user", content: "mine", clientTimestamp: new Date(0) };
  await networkOf().run(message, { state: stateOf(threadId) });
  assert.equal((await logged(threadId))[0].id, message.id);
});

test("a run that throws leaves the user's message, and the next run goes on", async () => {
  const threadId = randomUUID();
  const failing = networkOf({}, { router: () => { throw new Error("broken"); } });
  await assert.rejects(failing.run("first", { state: stateOf(threadId) }), /broken/);
  await networkOf().run("second", { state: stateOf(threadId) });
  assert.deepEqual((await logged(threadId)).map(({ content }) => content), ["first", "second", "answer 1"]);
  assert.equal(turns(asked[0]).filter(([, content]) => content === "first").length, 1);
  assert.equal(turns(asked[0]).filter(([, content]) => content === "second").length, 1);
});

test("a server that cannot be reached fails the run, before the model is asked", async () => {
  const nowhere = new Commonhold({ url: "http://127.0.0.1:9", token: "t", retries: { attempts: 1 } });
  const history = commonholdHistory(nowhere);
  await assert.rejects(networkOf({}, { history }).run("hi"), Unreachable);
  assert.equal(asked.length, 0);
});

test("a thread that the token may not see fails the run", async () => {
  const history = commonholdHistory(api);
  const context = { state: stateOf("gone"), threadId: `gone-${mark}`, input: "" };
  const userMessage = { id: "u", role: "user", content: "x", timestamp: new Date() };
  await assert.rejects(history.appendUserMessage({ ...context, userMessage }), NotFound);
});
