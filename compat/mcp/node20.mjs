// The suite imports `globSync` of node:fs, which Node 20 does not have, and needs it for another command than this one.
// `node --import ./node20.mjs …` gives it an empty one.
import { register } from "node:module";

const fs = "export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = () => [];";
const shim = "data:text/javascript," + encodeURIComponent(fs);
const hook = `export const resolve = (name, context, next) =>
  name === "fs" && context.parentURL?.includes("/conformance/dist/")
    ? { url: ${JSON.stringify(shim)}, shortCircuit: true }
    : next(name, context);`;
register("data:text/javascript," + encodeURIComponent(hook));
