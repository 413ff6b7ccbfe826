// The server under test, as its API is called without any client.
export const url = process.env.COMMONHOLD_URL ?? "http://127.0.0.1:8000";
export const headers = { Authorization: `Bearer ${process.env.COMMONHOLD_TOKEN}` };

export async function api(method, path, body) {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { ...headers, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

// A thread with an active run. Ids are new each time: the server is shared.
export async function startRun() {
  const thread = `t-${crypto.randomUUID()}`;
  const run = `r-${crypto.randomUUID()}`;
  await api("PUT", "/state-keys/ui_plan", { scope: "thread" });
  await api("POST", "/threads", { id: thread });
  await api("POST", `/threads/${thread}/runs`, { id: run });
  return { thread, run };
}

export const commit = (run, body) => api("POST", `/runs/${run}/commits`, body);
export const finish = (run, reason) =>
  api("PATCH", `/runs/${run}`, { status: "done", termination_reason: reason ?? { type: "natural_end" } });
