// Unsaved input: the browser asks before a page with a changed form[data-guard] is left, and what is
// typed into a form[data-draft] is kept until it is saved, also if the page is loaded again or the
// session ends. It is stored in the tab, never on the server, and without passwords.

const PREFIX = "draft/";
const PAUSE = 500; // ms without input before it is stored
// The keys "." and ".." of entries are in the query string (web/addresses.py).
const entryKey = () => new URLSearchParams(location.search).get("key") ?? "";
const page = () => `${PREFIX}${document.body.dataset.recents}/${location.pathname}${entryKey()}`;
const $ = (selector) => document.querySelector(selector);
const forget = () => sessionStorage.removeItem(page());

const isTick = (field) => /^(checkbox|radio)$/.test(field.type);
const fieldsOf = (form) => [...form.elements].filter((each) => each.name && !/^(csrfmiddlewaretoken|page_workspace)$/.test(each.name) && !/^(submit|button|fieldset)$/.test(each.type));
function isTyped(field) {
  if (isTick(field)) return field.checked !== field.defaultChecked;
  if (field.options) return field.value !== ([...field.options].find((each) => each.defaultSelected) ?? field.options[0])?.value;
  return field.value !== field.defaultValue;
}
const isUnsaved = (form) => "unsaved" in form.dataset || fieldsOf(form).some(isTyped);

// Leaving ----------------------------------------------------------------------------------------

addEventListener("beforeunload", (event) => {
  if ([...document.querySelectorAll("form[data-guard]")].some(isUnsaved) && !$("form[data-sent]")) event.preventDefault();
});
document.addEventListener("submit", ({ target }) => {
  if (!target.matches("[data-guard]")) return;
  store(); // the response may replace the form before the next pause
  target.dataset.sent = "yes";
});
// Not saved after an error response, no response, or a redirect to the login page.
const notSent = () => $("form[data-sent]")?.removeAttribute("data-sent");
document.addEventListener("htmx:error", notSent);
document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
  const { response, sourceElement } = ctx;
  const next = response?.headers.get("HX-Location") ?? response?.headers.get("HX-Redirect");
  const isSaved = response?.status < 400 && next && !next.startsWith("/login");
  if (isSaved && sourceElement.matches?.("form[data-draft], #merge")) forget();
  else if (!isSaved && sourceElement.matches?.("form")) notSent(); // ignore responses to checks that arrive while the form is being saved
});

let leaves = false; // a user who cancels discards the draft, unless the browser's question keeps the page

document.addEventListener("click", ({ target }) => {
  if (target.closest?.("[data-discard]")) {
    document.querySelectorAll("form[data-guard]").forEach((form) => (form.dataset.sent = "yes")); // do not ask
    forget();
  }
  leaves ||= Boolean(target.closest?.("[data-leave]"));
});

// Drafts -----------------------------------------------------------------------------------------

const kept = (form) => fieldsOf(form).filter((field) => field.type !== "password");
const nameOf = (field) => (isTick(field) ? `${field.name}=${field.value}` : field.name);
// A list has only its options, and an input only values of its type.
function accepts(field, value) {
  const copy = field.cloneNode(true);
  copy.value = value;
  return copy.value === value;
}
const isOf = (field, [name, value]) => name === nameOf(field) && (isTick(field) || accepts(field, value));
let timer = 0;
let touched = false;

function store() {
  clearTimeout(timer);
  const form = $("form[data-draft]");
  if (!form || form.dataset.sent || !(touched || leaves) || $("[data-outdated]")) return; // that draft would be replaced
  const draft = kept(form).map((field) => [nameOf(field), isTick(field) ? field.checked : field.value]);
  try {
    if (leaves || !isUnsaved(form)) forget();
    else sessionStorage.setItem(page(), JSON.stringify(draft));
  } catch {
    // The storage is full: the browser still asks before the page is left.
  }
}

function restore() {
  const form = $("form[data-draft]:not([data-restored])");
  if (!form) return;
  form.dataset.restored = "";
  const text = sessionStorage.getItem(page());
  if (!text || "unsaved" in form.dataset) return;
  const draft = JSON.parse(text);
  const fields = kept(form);
  // Typed in the other view of the value, its form or its text.
  const isForm = draft.some(([name]) => name === "held");
  const url = new URL(location);
  url.searchParams.set("as", isForm ? "form" : "json");
  if (isForm !== Boolean(form.elements.held) && url.href !== location.href) {
    location.replace(url);
    return;
  }
  if (draft.length !== fields.length || !fields.every((field, index) => isOf(field, draft[index]))) return offerOutdated(form, draft);
  draft.forEach(([, value], index) => (fields[index][isTick(fields[index]) ? "checked" : "value"] = value));
  form.dataset.unsaved = "";
  showBanner(form, "#restored-template");
}

function reload(form) {
  form.dataset.sent = "yes"; // do not ask, and do not store it again
  location.reload();
}

function showBanner(form, template) {
  const banner = $(template).content.firstElementChild.cloneNode(true);
  banner.querySelector("[data-forget]").addEventListener("click", () => {
    forget();
    reload(form);
  });
  form.prepend(banner);
  return banner;
}

// The form has other fields or options than when the draft was typed, for example because a schema was changed. The user
// chooses: what belongs to its fields is restored, and the rest is shown.
function offerOutdated(form, draft) {
  const banner = showBanner(form, "#outdated-template");
  const rest = [...draft];
  const fitting = kept(form).map((field) => {
    const index = rest.findIndex((each) => isOf(field, each));
    return index < 0 ? [nameOf(field), isTick(field) ? field.checked : field.value] : rest.splice(index, 1)[0];
  });
  const lines = rest.filter(([name, value]) => value && name !== "held").map(([name, value]) => `${name}: ${value}`);
  banner.querySelector("pre").textContent = lines.join("\n");
  banner.querySelector("[data-rest]").hidden = !lines.length;
  banner.querySelector("[data-restore]").addEventListener("click", () => {
    sessionStorage.setItem(page(), JSON.stringify(fitting));
    reload(form);
  });
}

for (const event of ["input", "change"]) {
  document.addEventListener(event, ({ target }) => {
    if (!target.form?.matches("[data-draft]")) return;
    leaves = false;
    touched = true;
    clearTimeout(timer);
    timer = setTimeout(store, PAUSE);
  });
}
addEventListener("pagehide", store);
document.addEventListener("htmx:after:swap", restore);
restore();
