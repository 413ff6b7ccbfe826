// Imported before the module of a page: lets its blocks start one by one. The module awaits
// `nextBlock(n)` before its n-th block; the number is written to the file descriptor GUIDE_RESULTS,
// which says that all before it succeeded, and a line of standard input starts it.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

const commands = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

globalThis.nextBlock = async (number) => {
  writeSync(Number(process.env.GUIDE_RESULTS), `${number}\n`);
  await commands.next();
};

// Pages that call a model of OpenAI run without a key and without the network.
const send = globalThis.fetch;
globalThis.fetch = async (resource, options) => {
  const { host } = new URL(resource instanceof Request ? resource.url : resource);
  if (host !== "api.openai.com") return send(resource, options);
  const message = { role: "assistant", content: "Faro" };
  return Response.json({ choices: [{ message, finish_reason: "stop" }] });
};
