// A scripted agent, without a model, works on a thread; an AG-UI client shows what it does.
import { HttpAgent } from "@ag-ui/client";
import { commit, finish, headers, startRun, url } from "../shared/server.mjs";

const { thread, run } = await startRun();
const agent = new HttpAgent({
  url: `${url}/api/v1/threads/${thread}/ag-ui/stream`,
  headers,
  threadId: thread,
});
let joined;
const begun = new Promise((resolve) => (joined = resolve));
const shown = agent.runAgent({}, {
  onMessagesSnapshotEvent: () => joined(), // from here on it sees what the agent does
  onStateChanged: ({ state }) => console.log("state", JSON.stringify(state.extensions.ui_plan ?? null)),
  onTextMessageEndEvent: ({ textMessageBuffer }) => console.log("said", textMessageBuffer),
});
await begun;
await commit(run, { updates: [{ key: "ui_plan", update: ["look for trains"] }] });
await commit(run, { messages: [{ role: "assistant", content: "There is one at nine." }] });
await finish(run);
await shown;
