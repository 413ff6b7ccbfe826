// Mastra's storage on PostgreSQL, called in this process. It follows the protocol of ../frameworks.py:
//
//     node frameworks.mjs SOCKET_FOLDER USER DATABASE

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { randomBytes, randomUUID } from "node:crypto";
import { PostgresStore } from "@mastra/pg";

const WARM_UP_MS = 300;
const [host, user, database] = process.argv.slice(2);
const text = (length) => randomBytes(length / 2).toString("hex");

// Each caller has a resource and a thread of its own.
const ROWS = {
  "read an entry": (store, name) => store.getResourceById({ resourceId: name }),
  "write an entry": (store, name) =>
    store.updateResource({ resourceId: name, workingMemory: text(1000) }),
  "commit of a step": async (store, name) => {
    const metadata = Object.fromEntries(["a", "b", "c"].map((key) => [key, { text: text(100) }]));
    await store.updateThread({ id: name, title: "bench", metadata });
    const messages = [["user", 70], ["assistant", 270]].map(([role, length]) => ({
      id: randomUUID(),
      threadId: name,
      resourceId: name,
      role,
      createdAt: new Date(),
      content: { format: 2, parts: [{ type: "text", text: text(length) }] },
    }));
    await store.saveMessages({ messages, format: "v2" });
  },
};

async function measure({ row, connections, seconds }) {
  // The password is required, and not asked for.
  const store = new PostgresStore({ host, port: 5432, user, password: "-", database, max: connections });
  await store.init();
  const names = [];
  for (let caller = 0; caller < connections; caller++) {
    const id = randomUUID();
    const dates = { createdAt: new Date(), updatedAt: new Date() };
    await store.saveResource({ resource: { id, workingMemory: text(1000), metadata: {}, ...dates } });
    await store.saveThread({ thread: { id, resourceId: id, title: "bench", metadata: {}, ...dates } });
    names.push(id);
  }
  const start = performance.now() + WARM_UP_MS;
  const end = start + 1000 * seconds;
  const latencies = [];
  await Promise.all(
    names.map(async (name) => {
      for (let began = performance.now(); began < end || !latencies.length; began = performance.now()) {
        await ROWS[row](store, name);
        if (began >= start) latencies.push((performance.now() - began) / 1000);
      }
    }),
  );
  const took = (performance.now() - start) / 1000;
  await store.close();
  return { latencies, seconds: took };
}

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
const installed = new URL("node_modules/@mastra/pg/package.json", import.meta.url);
const { version } = JSON.parse(readFileSync(installed, "utf8"));
say({ "Mastra PostgresStore": { version, rows: Object.keys(ROWS) } });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(await measure(JSON.parse(line)));
  } catch (error) {
    say({ missing: String(error).slice(0, 300) });
  }
}
