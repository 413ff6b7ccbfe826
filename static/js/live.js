// Live pages: follow the change stream instead of polling. Each tab has one connection, which is
// closed while the tab is hidden (browsers open at most six per server for all tabs) or updates are
// paused. It then resumes after the last change received.
//
// A region declares the changes that affect it: data-live lists prefixes of kinds ("run. ticket."),
// or is empty for all; data-live-namespace, -key, -prefix, -thread, -run and -actor restrict it.
// It is fetched again by hx-trigger="live": immediately with data-live-now (numbers whose position
// does not change), else when the user requests it, so that nothing moves while it is being read.
//
// Data that is not in the stream (deliveries, system load) is polled by hx-trigger="every 10s". Its
// region has data-every, and the pill shows the interval.
//
// @ts-check

/**
 * @typedef {object} Change An event of GET /changes/stream.
 * @property {string} kind
 * @property {string | null} namespace
 * @property {string | null} key
 * @property {string | null} thread_id
 * @property {string | null} run_id
 * @property {string} actor
 *
 * @typedef {"connecting" | "live" | "paused" | "reconnecting" | "ended"} State
 *
 * @typedef {object} Status The response of GET /live.
 * @property {string} cursor
 * @property {boolean} resumes
 * @property {Record<string, {count: string, health: string}>} items
 */

/** Milliseconds. */
const FIRST_WAIT = 500, LONGEST_WAIT = 30_000;
const UNNOTICED = 1500; // shorter interruptions are not reported
const SPOKEN_EVERY = 5000;
const REFRESHED_EVERY = 1500, COUNTED_EVERY = 3000;
const OWN_COUNTED = 200; // after the response to a write
const OWN_WRITE = 3000; // changes this soon after the response to a write of this tab are its own
const LONGEST_WRITE = 60_000; // and so are those before the response, which may never arrive
const LONG_AWAY = 300_000; // after a longer absence, missed changes are not replayed

/** @type {Record<State, [string, string]>} */
const SHOWN = {
  connecting: ["", "connecting"],
  live: ["done", "live"],
  paused: ["waiting", "paused"],
  reconnecting: ["failed", "reconnecting"],
  ended: ["failed", "ended"],
};
/** @type {Record<State, string>} */
const HINTS = {
  connecting: "Pause live updates (p)",
  live: "Pause live updates (p)",
  paused: "Resume live updates (p)",
  reconnecting: "The server did not respond; retrying automatically",
  ended: "You signed out or switched workspace. Reload the page.",
};
/** The field of a change that an attribute of a region must equal.
 * @type {Record<string, keyof Change>} */
const FIELDS = {
  liveNamespace: "namespace",
  liveKey: "key",
  liveThread: "thread_id",
  liveRun: "run_id",
  liveActor: "actor",
};

const pill = /** @type {HTMLButtonElement | null} */ (document.querySelector("#live"));
const updates = /** @type {HTMLButtonElement | null} */ (document.querySelector("#updates"));
const liveStatus = document.querySelector("#live-status");

/** @type {EventSource | null} */
let source = null;
/** @type {State} */
let state = "connecting";
let paused = sessionStorage.getItem("paused") === "yes";
let cursor = pill?.dataset.cursor ?? "";
let failures = 0;
let leftAt = 0; // when the tab was hidden or paused
let ownUntil = 0;
let word = ""; // to be announced next
let waiting = 0; // changes that the page does not show yet
/** @type {Set<string>} ids of regions */
const stale = new Set();
/** The newest changes and when they arrived: a response to an earlier request may lack them.
 * @type {{at: number, change: Change}[]} */
const recent = [];
const MOST_RECENT = 200;
/** When each request began, by its htmx context. @type {WeakMap<object, number>} */
const began = new WeakMap();
/** @type {Record<string, number>} */
const timers = {};

/** Run `work` after `wait` ms, unless a timer with this name is pending.
 * @param {string} name @param {number} wait @param {() => void} work */
function soon(name, wait, work) {
  timers[name] ??= setTimeout(() => {
    delete timers[name];
    work();
  }, wait);
}

/** @param {string} name */
function forget(name) {
  clearTimeout(timers[name]);
  delete timers[name];
}

// Status ---------------------------------------------------------------------------------------

/** @param {State} next */
function show(next) {
  if (!pill) return;
  forget("reconnecting");
  if (next !== state && !(state === "connecting" && next === "live")) say(SHOWN[next][1]);
  state = next;
  pill.hidden = false;
  pill.dataset.state = SHOWN[next][0];
  const text = document.createElement("span");
  text.textContent = SHOWN[next][1];
  const every = document.querySelector("[data-every]")?.getAttribute("data-every");
  if (every && next === "live") {
    const interval = document.createElement("span");
    interval.className = "wide-only"; // the search field needs the room
    interval.textContent = `, every ${every} s`;
    text.append(interval);
  }
  pill.replaceChildren(text);
  pill.title = HINTS[next];
  pill.setAttribute("aria-pressed", String(next === "paused"));
}

/** Announce `text` to screen readers: only the newest text, at most once per SPOKEN_EVERY.
 * @param {string} text */
function say(text) {
  word = text;
  soon("speak", timers.quiet ? SPOKEN_EVERY : 0, () => {
    if (liveStatus) liveStatus.textContent = word;
    soon("quiet", SPOKEN_EVERY, () => {});
  });
}

function showNews() {
  if (!updates) return;
  updates.hidden = !stale.size;
  if (!stale.size) return;
  const many = waiting > 999 ? "999+" : String(waiting);
  const text = waiting ? `${many} new ${waiting === 1 ? "change" : "changes"}` : "New changes";
  updates.textContent = `${text} — show`;
  say(`${text}. Press . to show`);
}

// Connection -----------------------------------------------------------------------------------

function connect() {
  if (!pill || source || paused || document.hidden || state === "ended") return;
  const query = cursor ? `?${new URLSearchParams({ cursor })}` : "";
  source = new EventSource(`${pill.dataset.stream}${query}`);
  source.onopen = () => {
    failures = 0;
    show("live");
  };
  source.onerror = again;
  source.addEventListener("change", (event) => {
    cursor = event.lastEventId;
    take(JSON.parse(event.data));
  });
  source.addEventListener("closed", (event) => {
    if (JSON.parse(event.data).type.endsWith("/unauthenticated")) end();
    else again();
  });
}

function disconnect() {
  source?.close();
  source = null;
  forget("again");
  forget("reconnecting");
}

/** Reconnect with increasing pauses. From the second attempt on, check the status first. */
function again() {
  disconnect();
  const wait = Math.min(FIRST_WAIT * 2 ** failures, LONGEST_WAIT) * (0.75 + Math.random() / 2);
  failures += 1;
  soon("reconnecting", failures > 1 ? 0 : UNNOTICED, () => show("reconnecting"));
  const probe = failures > 1;
  soon("again", wait, async () => {
    if (!probe || (await look())) connect();
  });
}

function end() {
  disconnect();
  show("ended");
}

/** Resume after a pause: after the last change received or, after LONG_AWAY, from now. */
async function come() {
  if (source || paused || document.hidden || state === "ended") return;
  const away = leftAt ? Date.now() - leftAt : 0;
  leftAt = 0;
  if (state === "paused") show("connecting");
  if (away > LONG_AWAY) {
    cursor = "";
    if (!(await look())) return;
  }
  connect();
}

function leave() {
  leftAt ||= Date.now();
  disconnect();
}

/** Update the counts of the navigation. Returns whether the stream may be opened. If not, the
 * session has ended or a reconnection is scheduled. */
async function look() {
  if (!pill) return false;
  let answer;
  try {
    const query = new URLSearchParams(cursor ? { cursor } : {});
    const headers = { "X-Workspace": pill.dataset.workspace ?? "", "X-Background": "true" };
    answer = await fetch(`${pill.dataset.status}?${query}`, { redirect: "manual", headers });
  } catch {
    answer = null;
  }
  if (answer?.type === "opaqueredirect" || [403, 409].includes(answer?.status ?? 0)) {
    end(); // the login page, or another workspace
    return false;
  }
  if (!answer?.ok) {
    if (!source && !paused) again();
    return false;
  }
  /** @type {Status} */
  const status = await answer.json();
  for (const [letter, item] of Object.entries(status.items)) {
    const link = document.querySelector(`[data-go="${CSS.escape(letter)}"]`);
    if (!(link instanceof HTMLElement)) continue;
    link.dataset.health = item.health;
    const count = link.querySelector(".count");
    if (count) count.textContent = item.count;
  }
  if (!paused && (!cursor || !status.resumes)) {
    // The changes since then are unknown, so every region may be outdated.
    cursor = status.cursor;
    for (const region of regions()) outdate(region);
    showNews();
  }
  return true;
}

// Updates of the page --------------------------------------------------------------------------

/** @returns {HTMLElement[]} */
function regions() {
  return [...document.querySelectorAll("[data-live]")].filter((each) => each instanceof HTMLElement);
}

/** @param {HTMLElement} region @param {Change} change */
function concerns(region, change) {
  const { live, livePrefix } = region.dataset;
  const kinds = live?.split(" ").filter(Boolean) ?? [];
  if (kinds.length && !kinds.some((kind) => change.kind.startsWith(kind))) return false;
  if (livePrefix && !change.key?.startsWith(livePrefix)) return false;
  return Object.entries(FIELDS).every(
    ([name, field]) => !region.dataset[name] || region.dataset[name] === change[field],
  );
}

/** Whether the user has the focus or a selection in the region, which is then not replaced.
 * @param {HTMLElement} region */
function isBusy(region) {
  const selection = getSelection();
  const selects = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  return selects || region.contains(document.activeElement);
}

/** @param {HTMLElement} region @returns {boolean} whether it waits for the user */
function outdate(region) {
  const own = Date.now() < ownUntil;
  if (own || (region.dataset.liveNow !== undefined && !isBusy(region))) {
    soon(`refresh ${region.id}`, own ? 100 : REFRESHED_EVERY, () => refresh(region.id));
    return false;
  }
  stale.add(region.id);
  return true;
}

/** @param {string} id */
function refresh(id) {
  document.getElementById(id)?.dispatchEvent(new CustomEvent("live"));
}

/** @param {Change} change */
function take(change) {
  recent.push({ at: Date.now(), change });
  if (recent.length > MOST_RECENT) recent.shift();
  const waits = regions().filter((region) => concerns(region, change) && outdate(region));
  if (waits.length) {
    waiting += 1;
    showNews();
  }
  soon("look", COUNTED_EVERY, look);
}

function showWaiting() {
  const ids = [...stale];
  stale.clear();
  waiting = 0;
  showNews();
  ids.forEach(refresh);
}

function toggle() {
  if (state === "ended") return location.reload();
  paused = !paused;
  sessionStorage.setItem("paused", paused ? "yes" : "no");
  if (!paused) return come();
  leave();
  return show("paused");
}

// Listeners ------------------------------------------------------------------------------------

if (pill) {
  if (paused) show("paused");
  connect();
  pill.addEventListener("click", toggle);
  updates?.addEventListener("click", showWaiting);
  document.addEventListener("live-toggle", toggle);
  document.addEventListener("live-show", showWaiting);
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : come()));
  addEventListener("offline", again);
  addEventListener("online", () => {
    disconnect();
    connect();
  });
  addEventListener("pagehide", disconnect);
}

const isWrite = (ctx) => !["GET", "HEAD"].includes((ctx.request?.method ?? "GET").toUpperCase());
const isLive = (ctx) => ["live", "every"].includes(ctx.sourceEvent?.type);

document.addEventListener("htmx:before:request", (event) => {
  const { ctx } = event.detail;
  began.set(ctx, Date.now());
  // Does not keep a session alive whose user has left (state_admin/models/sessions.py).
  if (isLive(ctx)) ctx.request.headers["X-Background"] = "true";
  if (ctx.sourceEvent?.type === "every" && (paused || document.hidden)) event.preventDefault();
  else if (isWrite(ctx)) ownUntil = Date.now() + LONGEST_WRITE;
});
for (const answered of ["htmx:after:request", "htmx:error"]) {
  document.addEventListener(answered, (event) => {
    if (!event.detail.ctx || !isWrite(event.detail.ctx)) return;
    ownUntil = Date.now() + OWN_WRITE;
    forget("look"); // the navigation counts what was just written as soon as the page shows it
    soon("look", OWN_COUNTED, look);
  });
}
document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  // The content stays; the pill shows that it is not current.
  if (isLive(ctx) && ctx.response.status >= 400) event.preventDefault();
});
document.addEventListener("htmx:after:swap", (event) => {
  const { ctx } = event.detail;
  // With HX-Retarget in the response, the target is a selector.
  const target = typeof ctx.target === "string" ? document.querySelector(ctx.target) : ctx.target;
  if (!(target instanceof HTMLElement)) return;
  for (const id of stale) {
    const region = document.getElementById(id);
    if (!region || target.id === id || target.contains(region)) stale.delete(id);
  }
  const at = began.get(ctx) ?? Date.now();
  const missed = recent.filter((each) => each.at >= at).map((each) => each.change);
  const swapped = (target.id && document.getElementById(target.id)) || target;
  for (const region of regions().filter((each) => swapped.contains(each))) {
    if (missed.some((change) => concerns(region, change))) outdate(region);
  }
  if (!stale.size) waiting = 0;
  showNews();
});
