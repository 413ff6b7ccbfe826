import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

test("docs/reference/typescript.md is generated from this source", () => {
  const script = new URL("../reference.mjs", import.meta.url).pathname;
  assert.doesNotThrow(() => execFileSync(process.execPath, [script, "--check"], { stdio: "pipe" }));
});
