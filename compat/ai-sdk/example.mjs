// A scripted agent, without a model, replies on a thread; the AI SDK joins the reply and shows its parts as they
// arrive.
import { DefaultChatTransport, readUIMessageStream } from "ai";
import { commit, finish, headers, startRun, url } from "../shared/server.mjs";

const { thread, run } = await startRun();
await commit(run, { messages: [{ role: "user", content: "Is there a train?" }] });
const transport = new DefaultChatTransport({
  prepareReconnectToStreamRequest: ({ id }) => ({
    api: `${url}/api/v1/threads/${id}/ui-messages/stream`,
    headers,
  }),
});
const stream = await transport.reconnectToStream({ chatId: thread });
const shown = (async () => {
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  for (const part of last.parts) console.log(part.type, JSON.stringify(part.data ?? part.text ?? ""));
})();
await commit(run, {
  updates: [{ key: "ui_plan", update: ["look for trains"] }],
  messages: [{ role: "assistant", content: "There is one at nine." }],
});
await finish(run);
await shown;
