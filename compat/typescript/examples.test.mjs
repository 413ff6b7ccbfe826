// The examples run as they are, against a running server.

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

test("the example worker does not pay if the person refuses", async () => {
  const text = await readFile(new URL("clients/typescript/examples/worker.mjs", root), "utf8");
  await writeFile(`${folder}/refused.mjs`, text.replace('action: "resume"', 'action: "cancel"'));
  const refused = run(process.execPath, [`${folder}/refused.mjs`], { timeout: 60_000 });
  await assert.rejects(refused, /not permitted: cancelled/);
});
