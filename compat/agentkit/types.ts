// The history is one to AgentKit's real types: compiled, never run.

import { createAgent, createNetwork, createState, openai } from "@inngest/agent-kit";
import { Commonhold, profileKey } from "@commonhold/client";
import { commonholdHistory } from "@commonhold/client/agentkit";

interface Trip {
  budget: number;
}

const api = new Commonhold({ url: "http://127.0.0.1:8000", token: "ch_" });
const data = profileKey<Trip>("trip", { default: { budget: 0 } });
const history = commonholdHistory(api, { data, thread: ({ state, input }) => ({ title: `${state.data.budget} ${input}` }) });
const model = openai({ model: "gpt-4o", apiKey: "k" });
const agent = createAgent<Trip>({ name: "a", system: "s", model });

export const network = createNetwork<Trip>({
  name: "n",
  agents: [agent],
  history,
  defaultState: createState<Trip>({ budget: 1 }),
});
export const alone = createAgent({ name: "b", system: "s", model, history: commonholdHistory(api) });
