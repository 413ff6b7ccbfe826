// AgentKit in two runs of a program: the second one has the messages and the typed state of the first. The model is
// scripted. Run it where @inngest/agent-kit is installed: compat/agentkit.

import { createServer } from "node:http";

import { createAgent, createNetwork, createState, createTool, openai } from "@inngest/agent-kit";
import { StateScope, Commonhold, profileKey } from "@commonhold/client";
import { commonholdHistory } from "@commonhold/client/agentkit";

const Trip = profileKey("trip", { default: { cities: [] } });
const api = Commonhold.fromEnv();
await api.register(Trip);

const note = createTool({
  name: "note",
  description: "Remembers the city",
  handler: (_, { network }) => {
    const { data } = network.state;
    data.cities = [...(data.cities ?? []), `city ${(data.cities ?? []).length + 1}`];
  },
});
const model = await scripted({ tool: "note" });
const planner = createAgent({ name: "planner", system: "You plan trips.", model, tools: [note] });
const network = () =>
  createNetwork({
    name: "trip",
    agents: [planner],
    history: commonholdHistory(api, { data: Trip, thread: ({ input }) => ({ title: input }) }),
    router: ({ callCount }) => (callCount === 0 ? planner : undefined),
  });

const { state } = await network().run("Somewhere warm");
await network().run("And another", { state: createState({}, { threadId: state.threadId }) });

const { cities } = await api.read(Trip, StateScope.thread(state.threadId));
const { items } = await api.threads.messages(state.threadId);
console.log(`${cities.join(", ")}; messages: ${items.map(({ role }) => role).join(", ")}`);

/** An OpenAI-compatible server that calls one tool each time. */
async function scripted({ tool }) {
  const server = createServer((_, response) => {
    const call = { id: `call-${crypto.randomUUID()}`, type: "function", function: { name: tool, arguments: "{}" } };
    const message = { role: "assistant", content: null, tool_calls: [call] };
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ choices: [{ message, finish_reason: "tool_calls" }] }));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  const baseUrl = `http://127.0.0.1:${server.address().port}/v1/`;
  return openai({ model: "scripted", apiKey: "none", baseUrl });
}
