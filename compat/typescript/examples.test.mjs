// The guide's blocks and the examples run as they stand, in order, against a running server.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = new URL("../../", import.meta.url);
let folder;

before(async () => {
  // In here, so that @commonhold/client is found.
  folder = await mkdtemp(new URL(".run-", import.meta.url).pathname);
});
after(() => rm(folder, { recursive: true }));

for (const [name, printed] of [
  ["team", /^12 findings$|^\d+ findings$/],
  ["worker", /^resumed; 80 € spent at revision \d+$/],
]) {
  test(`the example ${name} runs`, async () => {
    await copyFile(new URL(`clients/typescript/examples/${name}.mjs`, root), `${folder}/${name}.mjs`);
    const { stdout } = await run(process.execPath, [`${folder}/${name}.mjs`], { timeout: 60_000 });
    assert.match(stdout.trim(), printed);
  });
}

test("the guide's blocks run", async () => {
  const guide = await readFile(new URL("docs/guides/typescript.md", root), "utf8");
  const blocks = [...guide.matchAll(/```ts\n(.*?)```/gs)].map(([, block]) => block);
  assert.equal(blocks.length, 5);
  await writeFile(`${folder}/guide.mjs`, blocks.join("\n"));
  const { stdout } = await run(process.execPath, [`${folder}/guide.mjs`], { timeout: 60_000 });
  assert.match(stdout, /profile key not registered: nobody/);
});
