// The built client as a module in a page of Chromium, talking to a running server.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const { COMMONHOLD_URL: url, COMMONHOLD_TOKEN: token } = process.env;
const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);
const skip = executablePath ? false : "no Chromium here: name one in CHROMIUM";
const dist = new URL(".", import.meta.resolve("@commonhold/client"));
let browser;

before(async () => {
  if (!skip) browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(() => browser?.close());

/** What is at /client/: an empty page, and the built client as modules. */
async function file(pathname) {
  const name = pathname.slice("/client/".length);
  if (name === "") return { contentType: "text/html", body: "<!doctype html><title>client</title><link rel=icon href=data:,>" };
  return { contentType: "text/javascript", body: await readFile(fileURLToPath(new URL(name, dist)), "utf8") };
}

test("a page of the server's origin reads, writes, edits and watches", { skip }, async () => {
  const { origin } = new URL(url);
  const page = await browser.newPage();
  await page.route(`${origin}/client/**`, async (route) => route.fulfill(await file(new URL(route.request().url()).pathname)));
  await page.goto(`${origin}/client/`);
  const seen = await page.evaluate(
    async ({ url, token, name }) => {
      const { Commonhold, VersionConflict, profileKey } = await import("/client/index.js");
      const state = new Commonhold({ url, token });
      const Counter = profileKey(name, { default: { n: 0 } });
      await state.register(Counter);
      const watch = await state.watch({ namespace: Counter }).open();
      await Promise.all(Array.from({ length: 20 }, () => state.edit(Counter, "größe/1", (each) => void each.n++)));
      const versions = [];
      for await (const change of watch) if (versions.push(change.version) === 20) break;
      const late = await state.put(Counter, "größe/1", {}, { if_version: 1, reason: "größer" }).catch((error) => error);
      return { value: await state.read(Counter, "größe/1"), versions, conflict: late instanceof VersionConflict };
    },
    { url, token, name: `browser_${randomUUID().slice(0, 8)}` },
  );
  assert.deepEqual(seen.value, { n: 20 });
  assert.deepEqual(seen.versions, Array.from({ length: 20 }, (_, n) => n + 1));
  assert.equal(seen.conflict, true);
});

test("a page of another origin is let in by CORS_ORIGINS only", { skip }, async (t) => {
  const server = createServer(async (request, response) => {
    const { contentType, body } = await file(request.url);
    response.writeHead(200, { "Content-Type": contentType }).end(body);
  });
  // To see it let in, start the server with CORS_ORIGINS=http://127.0.0.1:{PAGE_PORT}.
  server.listen(Number(process.env.PAGE_PORT ?? 0), "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.closeAllConnections() ?? server.close());
  const origin = `http://127.0.0.1:${server.address().port}`;
  const page = await browser.newPage();
  await page.goto(`${origin}/client/`);
  const answer = await page.evaluate(
    async ({ url, token }) => {
      const { Commonhold } = await import("/client/index.js");
      const state = new Commonhold({ url, token, retries: { attempts: 1 } });
      try {
        const watch = await state.watch({}, { cursor: (await state.changes({ limit: 1 })).next_cursor }).open();
        await watch.return();
        const { detail } = await state.get("nobody", "k", { at_version: 1 }).catch((problem) => problem);
        const thread = await state.threads.create({ reason: "größer" });
        return [(await state.me()).role, detail, thread.message_count];
      } catch (error) {
        return error.name;
      }
    },
    { url, token },
  );
  const preflight = await fetch(`${url}/api/v1/me`, {
    method: "OPTIONS",
    headers: { Origin: origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization" },
  });
  const allowed = preflight.headers.get("Access-Control-Allow-Origin") === origin;
  assert.deepEqual(answer, allowed ? ["admin", "profile key not registered: nobody", 0] : "Unreachable");
});
