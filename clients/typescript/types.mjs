// Writes src/openapi.ts from docs/openapi.json; with --check only says whether it is current.

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../docs/openapi.json", import.meta.url);
const target = new URL("src/openapi.ts", import.meta.url);

const document = await readFile(source);
const hash = createHash("sha256").update(document).digest("hex");
const nodes = await openapiTS(document.toString(), { emptyObjectsUnknown: true });
const text = `// Made from docs/openapi.json by \`make client-types\`; do not edit.
// sha256 of docs/openapi.json: ${hash}

${astToString(nodes)}`;

if (!process.argv.includes("--check")) {
  await writeFile(target, text);
} else if ((await readFile(target, "utf8")) !== text) {
  console.error("src/openapi.ts is not made from docs/openapi.json: run `make client-types`");
  process.exit(1);
}
