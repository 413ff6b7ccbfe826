// A server that sends the responses of a test, and records the requests.

import { createServer } from "node:http";
import { once } from "node:events";

import { Commonhold } from "../dist/index.js";

/** `answers` are sent in order; the last one is repeated. Each: `(request, response) => void`. */
export async function serving(t, ...answers) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  const retries = { first_seconds: 0.001, longest_seconds: 0.001 };
  const client = (options = {}) => new Commonhold({ url, token: "ch_test", retries, ...options });
  return { url, asked, client, state: client() };
}

export const json = (document, status = 200, headers = {}) => (_, response) => {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(document));
};

export const problem = (slug, status, data = {}, headers = {}) =>
  json({ type: `/problems/${slug}`, title: slug, detail: slug, status, ...data }, status, headers);

export const hangUp = (request) => request.socket.destroy();

export const silence = () => undefined;

/** Blocks of an event stream; the connection stays open unless `end`. */
export const stream = (blocks, { end = false } = {}) => (_, response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const block of blocks) response.write(block);
  if (end) response.end();
};

export const hello = (cursor) => `retry: 2\n: heartbeat\nid: ${cursor}\n\n`;

export const change = (cursor) =>
  `id: ${cursor}\nevent: change\ndata: ${JSON.stringify({ cursor, kind: "entry.put", version: 1 })}\n\n`;
