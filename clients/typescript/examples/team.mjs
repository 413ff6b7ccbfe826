// Two agents share the knowledge of their team; neither overwrites the changes of the other.

import { StateScope, Commonhold, profileKey } from "@commonhold/client";

const TeamContext = profileKey("team_context", {
  default: { goal: "", constraints: [] },
  json_schema: {
    type: "object",
    properties: { goal: { type: "string" }, constraints: { type: "array", items: { type: "string" } } },
  },
});

const state = Commonhold.fromEnv();
const scope = StateScope.parentThread("trip");
await state.register(TeamContext);

async function agent(name) {
  for (let n = 1; n <= 6; n++) {
    await state.edit(TeamContext, scope, (team) => void team.constraints.push(`${name}: finding ${n}`));
  }
}

await Promise.all([agent("scout"), agent("clerk")]);
const { constraints } = await state.read(TeamContext, scope);
console.log(`${constraints.length} findings`);
