// What an example prints, run as a reader would.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

export async function runExample(url) {
  const { stdout } = await promisify(execFile)(process.execPath, [url.pathname], { timeout: 60_000 });
  return stdout;
}
