// Shortcuts, palette, toasts, copying. Every page works without this file. Live updates: live.js.
// All listeners are on the document, because htmx may replace any element below it.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Preferences: applied at once, stored by the server in cookies, and reverted if it does not --------

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-preferences]") || !event.submitter) return;
  event.preventDefault();
  const { name, value } = event.submitter;
  const before = document.documentElement.dataset[name];
  const show = (choice) => {
    document.documentElement.dataset[name] = choice;
    for (const button of $$(`button[name=${name}]`, form)) {
      button.setAttribute("aria-pressed", String(button.value === choice));
    }
  };
  show(value);
  const body = new URLSearchParams(new FormData(form));
  body.set(name, value);
  const refuse = () => {
    show(before);
    showToast({ text: "The preference was not saved: the server did not respond.", kind: "failed" });
  };
  // keepalive: also stored if the next click opens another page before the response.
  fetch(form.action, { method: "POST", body, headers: { "HX-Request": "true" }, keepalive: true })
    .then((response) => response.ok || refuse())
    .catch(refuse);
});

// Toasts ---------------------------------------------------------------------------------------

const SECONDS_TO_UNDO = 10;

function startToast(toast) {
  let left = SECONDS_TO_UNDO;
  const countdown = $("[data-countdown]", toast);
  const tick = () => {
    if (!toast.isConnected) return clearInterval(timer);
    if (toast.matches(":hover, :focus-within")) return undefined;
    if (left <= 0) {
      clearInterval(timer);
      toast.remove();
    } else if (countdown) {
      countdown.textContent = `${left} s`;
    }
    left -= 1;
    return undefined;
  };
  const timer = setInterval(tick, 1000);
  tick();
}

// The response to a write and a concurrent live update may contain the same toast.
const shown = new Set();

function showToast({ id, text, kind, undo, unreachable }) {
  if (shown.has(id)) return;
  if (id) shown.add(id);
  const toast = $("#toast-template").content.firstElementChild.cloneNode(true);
  toast.dataset.kind = kind;
  if (unreachable) toast.dataset.unreachable = "";
  $("[data-text]", toast).textContent = text;
  const form = $("[data-undo]", toast);
  if (undo) {
    form.action = undo.url;
    for (const [name, value] of Object.entries(undo.fields)) {
      const input = document.createElement("input");
      Object.assign(input, { type: "hidden", name, value });
      form.append(input);
    }
  } else {
    form.remove();
  }
  $("#toasts").append(toast);
  startToast(toast);
}

document.addEventListener("toast", (event) => event.detail.toasts.forEach(showToast));
for (const toast of $$("[data-toast]")) startToast(toast);

// Failures of background requests (live.js) are shown by the pill and not by a toast.
const isLive = (ctx) => ["live", "every"].includes(ctx.sourceEvent?.type);

// A request without a response of the server. The next one that succeeds removes the message.
function reportUnreachable(ctx, problem) {
  if (isLive(ctx)) return;
  const isRead = /^(get|head)$/i.test(ctx.request?.method ?? "get");
  const advice = isRead ? "The page was not updated. Try again." : "Check whether the change was saved, then try again.";
  showToast({ text: `${problem} ${advice}`, kind: "failed", unreachable: true });
}

document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
  if (ctx) reportUnreachable(ctx, "The server did not respond.");
});
document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
  if (ctx.response?.status < 400 && !isLive(ctx)) $$("[data-toast][data-unreachable]").forEach((toast) => toast.remove());
});

// An error page of a proxy, which has no X-Request-ID, must not be swapped into the page.
document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  const { status, headers } = ctx.response;
  if (status < 400 || headers.get("X-Request-ID")) return;
  event.preventDefault();
  reportUnreachable(ctx, `The server is not available (${status}).`);
});

// Slow answers: after 100 ms, the part of the page that waits is marked as busy. Refreshes in the background are not.
const SLOW = 100;
const busy = new WeakMap();

document.addEventListener("htmx:before:request", (event) => {
  const { ctx } = event.detail;
  if (isLive(ctx)) return;
  const target = typeof ctx.target === "string" ? $(ctx.target) : ctx.target;
  // A dialog is still empty; of a page that loads a part later, the rest can be read; and a field
  // that requests suggestions must stay readable while its user types.
  const isLate = ctx.sourceEvent?.type === "load";
  const isField = ctx.sourceElement.matches("input, textarea");
  const part = target && (isField || (target.childElementCount && !isLate)) ? target : ctx.sourceElement;
  busy.set(ctx, [part, setTimeout(() => part.setAttribute("aria-busy", "true"), SLOW)]);
});
for (const ended of ["htmx:before:swap", "htmx:finally:request"]) {
  document.addEventListener(ended, ({ detail: { ctx } }) => {
    const [part, timer] = busy.get(ctx) ?? [];
    clearTimeout(timer);
    part?.removeAttribute("aria-busy");
  });
}

// A response may replace the search field in which a person types. The text stays as it is; if some of it
// was typed since the request, it is searched for.
const typing = new WeakMap();

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const field = document.activeElement;
  const goesBack = ctx.request.headers["HX-History-Restore-Request"]; // to the text of that page
  if (field?.matches("input[data-filter]") && !goesBack) typing.set(ctx, { field, text: field.value });
});
document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
  const { field, text } = typing.get(ctx) ?? {};
  const next = field && document.getElementById(field.id);
  if (!next || next === field || next.value === field.value) return;
  next.value = field.value;
  next.setSelectionRange(field.selectionStart, field.selectionEnd);
  if (field.value !== text) next.dispatchEvent(new Event("input", { bubbles: true }));
});

// A refresh keeps open what a person has opened, which the new HTML does not contain.
globalThis.htmx?.registerExtension("open-details", {
  htmx_before_morph_attr: (element, { attrName }) => !(attrName === "open" && element.matches("details")),
});

// The same for a part that is replaced: its details with an id.
const opened = new WeakMap();

document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
  opened.set(ctx, [...document.querySelectorAll("details[id][open]")].map(({ id }) => id));
});
document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
  for (const id of opened.get(ctx) ?? []) document.getElementById(id)?.setAttribute("open", "");
});

// Dialogs --------------------------------------------------------------------------------------

let menu = null; // the menu whose item has opened the dialog

document.addEventListener("htmx:after:swap", (event) => {
  const { ctx } = event.detail;
  const dialog = $("#dialog > dialog[data-open]");
  if (dialog && !dialog.open) {
    menu = document.activeElement.closest("[popover]");
    dialog.showModal();
  }
  const problem = $("#problem > .problem");
  if (problem && ctx.response?.status >= 400 && !isLive(ctx)) {
    problem.scrollIntoView({ block: "center" });
  } else if (problem && !isLive(ctx)) {
    problem.remove();
  }
});
document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const isLate = ctx.sourceEvent?.type === "load"; // a part that the dialog loads
  if (!isLate) ctx.sourceElement.closest?.("#dialog > dialog")?.close();
});
document.addEventListener(
  "close",
  (event) => {
    if (!event.target.matches("#dialog > dialog")) return;
    event.target.remove();
    if (document.activeElement !== document.body) return; // the browser has returned the focus
    // A menu closes when a dialog opens, and the result of a dialog can replace the button that opened it.
    ((menu && $(`[popovertarget="${menu.id}"]`)) ?? $("#main")).focus({ preventScroll: true });
  },
  true,
);

// Focus ----------------------------------------------------------------------------------------

// If a swap removes the focused element, the focus moves to the row at the same position, else to
// the control with the same label, else to the main content: keyboard users keep their position.
// The rows of another kind of list, which the swap may show instead, have no position in common.
const rows = () => $$("main [data-row]").filter((row) => row.checkVisibility());
const itemOf = (row) => row.closest("tr, li, [data-ticket]") ?? row;
const current = () => rows().findIndex((row) => itemOf(row).contains(document.activeElement));
const labelOf = (control) => `${control.tagName} ${control.ariaLabel ?? control.textContent.trim()}`;
let place = -1;
let kind = "";
let count = 0;
let name = "";
let focused = false;

document.addEventListener("htmx:before:swap", () => {
  const { activeElement } = document;
  focused = activeElement !== document.body;
  place = current();
  kind = place < 0 ? "" : itemOf(rows()[place]).tagName;
  count = rows().length;
  name = activeElement?.matches("a, button") ? labelOf(activeElement) : "";
});
document.addEventListener("htmx:after:swap", (event) => {
  const { ctx } = event.detail;
  if (isLive(ctx) || document.activeElement !== document.body) return;
  if (ctx.sourceEvent?.type === "load" && !focused) return; // no element of the page has had the focus yet
  const same = () => $$("main :is(a, button)").find((each) => each.offsetParent && labelOf(each) === name);
  const row = rows()[place] ?? rows().at(-1);
  const next = place < 0 ? name && same() : row && itemOf(row).tagName === kind && row;
  (next || $("#main")).focus({ preventScroll: true });
  // The list may be shorter now, and what the user reads next above the window or under its top bar.
  if (place >= 0 && rows().length < count) (next || $("main h1"))?.scrollIntoView({ block: "nearest" });
});

// A form that is refused: its first wrong field gets the focus, not the first one. The editor does so itself.
document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
  if (ctx.response?.status !== 422 || ctx.sourceEvent?.type !== "submit") return;
  const field = $$("main [aria-invalid=true]").find((each) => each.checkVisibility());
  if (field) ($("input:checked", field) ?? $("input", field) ?? field).focus(); // of radio buttons, the group is wrong
});

// Palette --------------------------------------------------------------------------------------

function openPalette() {
  const palette = $("#palette");
  if (!palette || palette.open) return;
  palette.showModal();
  const field = $("input", palette);
  field.select();
  field.dispatchEvent(new CustomEvent("palette-open"));
}
// htmx processes the page in a task of its own, and keys may be pressed before it.
document.addEventListener("htmx:after:process", ({ target }) => {
  if (target === document.body) $("#palette[open] input")?.dispatchEvent(new CustomEvent("palette-open"));
});

function choose(step) {
  const hits = $$("#palette-results [role=option]");
  if (!hits.length) return;
  const now = hits.findIndex((hit) => hit.ariaSelected === "true");
  const next = hits[(now + step + hits.length) % hits.length];
  hits.forEach((hit) => hit.setAttribute("aria-selected", String(hit === next)));
  $("#palette input").setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
}

// The user's most recent pages in this workspace, shown while the input is empty. They are stored
// in the browser until the user signs out.
const RECENT = `recent/${document.body.dataset.recents}`;
const RECENT_ICONS = { entry: "database", thread: "messages-square", run: "play", namespace: "layers" };
const recents = () => JSON.parse(localStorage.getItem(RECENT) ?? "[]");

{
  const heading = $("h1[data-recent]");
  if (heading) {
    const page = { url: location.pathname, label: heading.textContent.trim(), note: heading.dataset.recent };
    const others = recents().filter((each) => each.url !== page.url);
    localStorage.setItem(RECENT, JSON.stringify([page, ...others].slice(0, 7)));
  }
}

document.addEventListener("htmx:after:swap", () => {
  const results = $("#palette[open] #palette-results");
  if (!results || $("#palette input").value.trim() || $(".recent", results)) return;
  const model = $("a.hit", results);
  if (!model) return; // another region was swapped before the results arrived
  const items = recents().filter((each) => each.url !== location.pathname);
  results.prepend(
    ...items.map(({ url, label, note }, index) => {
      const hit = model.cloneNode(true);
      Object.assign(hit, { href: url, id: `recent-${index}`, className: "hit recent" });
      const [text, kind] = $$("span", hit);
      text.textContent = label;
      kind.textContent = `recent ${note}`;
      const use = $("use", hit);
      use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${RECENT_ICONS[note]}`));
      return hit;
    }),
  );
  $$("[role=option]", results).forEach((hit, index) => hit.setAttribute("aria-selected", String(!index)));
});
$("#sign-out")?.addEventListener("submit", () => {
  Object.keys(localStorage).filter((key) => key.startsWith("recent/")).forEach((key) => localStorage.removeItem(key));
  Object.keys(sessionStorage).filter((key) => key.startsWith("draft/")).forEach((key) => sessionStorage.removeItem(key));
});

function keyInPalette(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    $("#palette").close(); // a search field would only clear itself
  } else if (event.key === "Enter") {
    const hit = $("#palette-results [aria-selected=true]") ?? $("#palette-results [role=option]");
    if (!hit) return;
    event.preventDefault();
    hit.click();
  }
}

// Shortcuts ------------------------------------------------------------------------------------

let going = 0;

function step(direction) {
  const all = rows();
  if (!all.length) return;
  const next = all[Math.min(Math.max(current() + direction, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

// Focus the next action that opens a confirmation or a menu: the next one after the focus, so that it is the one
// of the selected row.
function reachAction() {
  const all = $$('main :is([hx-target="#dialog"], [data-actions])').filter((action) => action.offsetParent);
  const isLater = (each) => document.activeElement.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
  (all.find(isLater) ?? all[0])?.focus();
}

// Focus the button of the ticket selected by j and k; Enter then decides. A decision is final, and these
// letters also follow a slow g.
function reachDecision(action) {
  const row = document.activeElement?.closest("[data-ticket]");
  if (row) $(`button[value=${action}]`, row)?.focus();
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  a: () => reachDecision("resume"),
  r: () => reachDecision("cancel"),
  e: () => $("[data-edit]")?.click(),
  x: reachAction,
  u: () => $$("[data-undo] button").at(-1)?.click(),
  p: () => document.dispatchEvent(new CustomEvent("live-toggle")),
  ".": () => document.dispatchEvent(new CustomEvent("live-show")),
  "/": () => $("[data-filter]")?.focus(),
  "?": () => document.dispatchEvent(new CustomEvent("keys-show")),
};

const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select, .code, [contenteditable]";

// If single-key shortcuts are off, no other listener gets these keys. Space, Enter and the arrows remain.
document.addEventListener(
  "keydown",
  (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    const isOff = document.documentElement.dataset.shortcuts === "off";
    if (isOff && key.length === 1 && key !== " " && !ctrlKey && !metaKey && !altKey && !target.matches?.(FIELDS)) {
      event.stopImmediatePropagation();
    }
  },
  true,
);

document.addEventListener("keys-show", () => $("#keys")?.showModal());

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.target.closest?.("#palette")) {
    keyInPalette(event);
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && event.target.form) {
    event.target.form.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches?.(FIELDS)) {
    // The editor handles Escape itself (editor.js). Dialogs and menus close and return the focus, which the
    // browser does only for a menu that has it. Elsewhere Escape must not clear a search field and its filter.
    if (event.key === "Escape" && !event.target.closest(".code, dialog, [popover]")) {
      event.preventDefault();
      event.target.blur();
    }
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const way = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const neighbour = way && !event.target.closest?.("input, .scroll") && $(`main [data-stepper] [rel=${way}]`);
  if (neighbour) {
    event.preventDefault();
    neighbour.click();
    return;
  }
  if (going && Date.now() - going < 1200) {
    going = 0;
    const link = $(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
      return;
    }
  }
  going = event.key === "g" ? Date.now() : 0;
  if (Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

// Forms ----------------------------------------------------------------------------------------

document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-download]")) event.target.closest("dialog")?.close(); // the page stays
});
// A saved view stores the current query string, which htmx may have changed.
document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-view]")) event.target.elements.query.value = location.search.slice(1);
});
// Clicks ---------------------------------------------------------------------------------------

async function copy(button) {
  const { copyText, copy: from } = button.dataset;
  const text = copyText ?? (from ? $(from) : $("code", button.closest("figure"))).textContent;
  try {
    await navigator.clipboard.writeText(text);
    showToast({ text: "Copied", kind: "done" });
  } catch {
    showToast({ text: "The browser did not allow copying", kind: "failed" });
  }
}

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  if (at("[data-palette]") && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    openPalette();
  } else if (at("[data-does]")) {
    $("#me")?.hidePopover();
    $("#palette")?.close();
    document.dispatchEvent(new CustomEvent(at("[data-does]").dataset.does));
  } else if (at("#palette button.hit")) {
    $("#palette").close(); // its form is submitted nevertheless
  } else if (at("[data-add], [data-choose]")) {
    // Replaces the word that is being typed, or the text of a field for one name.
    const field = $("input", at(".field"));
    const { add, choose } = at("button").dataset;
    field.value = choose ?? `${field.value.replace(/\S+$/, "")}${add} `;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  } else if (at("[data-play]")) {
    play();
  } else if (at("[data-dismiss]")) {
    at("[data-toast]").remove();
  } else if (at("[data-copy], [data-copy-text]")) {
    copy(at("[data-copy], [data-copy-text]"));
  } else if (at("[data-close]") && at("dialog")) {
    event.preventDefault();
    at("dialog").close();
  } else if (event.target.matches("dialog")) {
    event.target.close(); // the backdrop
  }
});

// Sliders of revisions and steps: update the number beside them, and what is reached in the waterfall, without waiting for the server.
document.addEventListener("input", (event) => {
  if (event.target.type !== "range") return;
  const { max, value, dataset: { shows, marks } } = event.target;
  if (shows) $(shows).textContent = value;
  if (!marks) return;
  let reached = "";
  for (const row of $$(`${marks} > li`)) {
    const { step, at } = row.dataset;
    const isStep = at && step === value;
    row.toggleAttribute("data-later", Number(step) > Number(value));
    row[isStep ? "setAttribute" : "removeAttribute"]("aria-current", "step");
    if (isStep) reached = `, ${at}`;
  }
  event.target.setAttribute("aria-valuetext", `Step ${value} of ${max}${reached}`);
  showStep();
});

// Play: from step to step until the last one, from the first if the last is shown. Every swap replaces the
// button, so the timer is not in the page.
const PLAY_EVERY = 1200;
let playing = 0;

const playedSlider = () => $("main [data-stepper]:has([data-play]) input[type=range]");

function setStep(slider, step) {
  slider.value = step;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}

function play() {
  const slider = playedSlider();
  if (playing || !slider) return stopPlaying();
  if (slider.value === slider.max) setStep(slider, slider.min);
  playing = setInterval(() => {
    const current = playedSlider();
    if (current?.form.matches(".htmx-request")) return undefined; // the step is not shown yet
    if (!current || current.value === current.max) return stopPlaying();
    return setStep(current, Number(current.value) + 1);
  }, PLAY_EVERY);
  return showPlaying();
}

function stopPlaying() {
  clearInterval(playing);
  playing = 0;
  showPlaying();
}

function showPlaying() {
  const button = $("[data-play]");
  button?.setAttribute("aria-pressed", String(Boolean(playing)));
}
document.addEventListener("htmx:after:swap", showPlaying);

function showStep() {
  const row = $(".waterfall > [aria-current]");
  const list = row?.parentElement;
  if (list) list.scrollTop = row.offsetTop - (list.clientHeight - row.offsetHeight) / 2;
}
document.addEventListener("htmx:after:swap", showStep);
showStep();

// Narrow windows do not show all tabs.
function showTab() {
  for (const tab of $$(".tabs [aria-current]")) {
    const tabs = tab.closest(".tabs");
    const hidden = tab.getBoundingClientRect().right - tabs.getBoundingClientRect().right;
    if (hidden > 0) tabs.scrollLeft += hidden + tab.offsetWidth / 2;
  }
}
document.addEventListener("htmx:after:swap", ({ detail }) => isLive(detail.ctx) || showTab());
showTab();
