import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, rm } from "node:fs/promises";
import { test } from "node:test";
import { promisify } from "node:util";

test("the example runs", async (t) => {
  // In here, so that the packages are found.
  const program = new URL(`.run-${process.pid}.mjs`, import.meta.url).pathname;
  t.after(() => rm(program));
  await copyFile(new URL("../../clients/typescript/examples/agentkit.mjs", import.meta.url), program);
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 60_000 });
  assert.equal(stdout.trim(), "city 1, city 2; messages: user, assistant, tool, user, assistant, tool");
});
