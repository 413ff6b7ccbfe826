// Writes src/openapi.ts from docs/openapi.json; with --check only says whether it is current.

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../docs/openapi.json", import.meta.url);
const target = new URL("src/openapi.ts", import.meta.url);

const document = await readFile(source);
const hash = createHash("sha256").update(document).digest("hex");
// Problems are classes of their own (problems.ts), and examples of whole bodies are not types.
const contract = JSON.parse(document);
for (const operation of Object.values(contract.paths).flatMap((path) => Object.values(path))) {
  const failed = Object.keys(operation.responses).filter((status) => status >= "400");
  for (const status of failed) delete operation.responses[status];
  const bodies = [operation.requestBody, ...Object.values(operation.responses)];
  for (const content of bodies.flatMap((body) => Object.values(body?.content ?? {}))) {
    delete content.example;
  }
}
const nodes = await openapiTS(contract, { defaultNonNullable: false, emptyObjectsUnknown: true });
const text = `// Made from docs/openapi.json by \`make client-types\`; do not edit.
// sha256 of docs/openapi.json: ${hash}

${astToString(nodes)}`;

if (!process.argv.includes("--check")) {
  await writeFile(target, text);
} else if ((await readFile(target, "utf8")) !== text) {
  console.error("src/openapi.ts is not made from docs/openapi.json: run `make client-types`");
  process.exit(1);
}
