// The JSON editor over a textarea[data-editor], which remains the form's field. Without this file,
// or if the value is too large, the textarea is the editor. The server validates the text.

const MOST = 1_000_000; // characters; beyond this, typing would be slow
const PAUSE = 400; // ms without a keystroke before the text is validated

// In the field of an editor, or beside a form.
const showCheck = (element, text) => {
  const line = element.closest(".field, [data-preview]")?.querySelector("[data-check-says]");
  if (line) line.textContent = text;
};

let looks; // one theme for all editors
function look(cm) {
  if (looks) return looks;
  const { EditorView, HighlightStyle, syntaxHighlighting, tags } = cm;
  const colours = HighlightStyle.define([
    { tag: tags.propertyName, color: "var(--accent)" },
    { tag: tags.string, color: "var(--ok)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
    { tag: tags.invalid, color: "var(--bad)" },
  ]);
  const theme = EditorView.theme({
    "&": { border: "1px solid var(--edge)", borderRadius: "6px", backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12.5px" },
    "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "2px" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", maxHeight: "65vh", overflow: "auto" },
    ".cm-content, .cm-gutter": { minHeight: "calc(min(var(--rows), 13) * 1.6em)" },
    ".cm-content": { caretColor: "var(--text)" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--muted)", border: "0", borderRadius: "6px 0 0 6px" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in oklab, var(--accent-soft) 45%, transparent)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in oklab, var(--accent) 28%, transparent)" },
    ".cm-foldPlaceholder": { backgroundColor: "var(--accent-soft)", border: "0", color: "var(--accent)" },
    ".cm-tooltip, .cm-panels": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
    ".cm-tooltip": { borderRadius: "6px" },
    ".cm-completionInfo-left-narrow, .cm-completionInfo-right-narrow": { visibility: "hidden" }, // would hide the list
    ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--text)" },
    ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600", color: "var(--accent)" },
    ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
    ".cm-tooltip.cm-completionInfo, .cm-tooltip-hover": { fontFamily: "var(--sans)", padding: "6px 10px", maxWidth: "min(26rem, 90vw)" },
    ".cm-title": { fontWeight: "600" },
    ".cm-text": { whiteSpace: "pre-line" },
    ".cm-fact": { color: "var(--muted)", overflowWrap: "anywhere" },
    ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
    ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
    ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", backgroundColor: "var(--bad-soft)" },
    ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)", backgroundColor: "var(--warn-soft)" },
    "& .cm-changedLine.cm-changedLine, & .cm-inlineChangedLine": { backgroundColor: "color-mix(in oklab, var(--ok-soft) 60%, transparent)" },
    "& .cm-changedText.cm-changedText": { background: "var(--ok-soft)" },
    "& .cm-deletedChunk.cm-deletedChunk": { backgroundColor: "color-mix(in oklab, var(--bad-soft) 60%, transparent)", paddingLeft: "6px" },
    "& .cm-deletedChunk .cm-deletedText.cm-deletedText": { background: "var(--bad-soft)" },
    ".cm-deletedChunk .cm-chunkButtons button": { font: "inherit", color: "var(--text)", background: "var(--surface)", border: "1px solid var(--line)", borderRadius: "4px", padding: "0 8px", minHeight: "24px" },
    "& .cm-collapsedLines.cm-collapsedLines": { color: "var(--muted)", background: "var(--sunken)" },
    ".cm-panels input, .cm-panels button": { font: "inherit", color: "inherit", background: "var(--sunken)", border: "1px solid var(--edge)", borderRadius: "4px" },
  });
  looks = [theme, syntaxHighlighting(colours)];
  return looks;
}

// All editors of a page share one style sheet. Firefox applies rules that are added to it later, such as
// those of the search panel, only where it is adopted again.
let rules = 0;
function adoptNewRules(root) {
  const [sheet] = root.adoptedStyleSheets;
  if (sheet.cssRules.length === rules) return;
  rules = sheet.cssRules.length;
  for (const { shadowRoot } of document.querySelectorAll(".code")) {
    if (!shadowRoot) continue;
    shadowRoot.adoptedStyleSheets = [];
    shadowRoot.adoptedStyleSheets = [sheet];
  }
}

function diagnostics(marks, length) {
  return marks
    .filter((mark) => mark.start !== undefined)
    .map((mark) => ({
      from: Math.min(mark.start, length),
      to: Math.min(mark.end, length),
      severity: mark.clash ? "warning" : "error",
      message: mark.pointer ? `${mark.pointer}: ${mark.message}` : mark.message,
    }));
}

function describeCheck({ message, errors }) {
  if (!message) return "Valid: matches the schema.";
  const [first] = errors;
  if (!first) return `${message}.`;
  const place = [first.line && `line ${first.line}`, first.pointer].filter(Boolean).join(", ");
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return `${message}: ${place ? `${place}: ` : ""}${first.message}${more}.`;
}

// Insert text typed over a selection by the editor: Chromium itself would add inline styles to
// joined lines, which violates the CSP. Only Chromium has root.getSelection.
function typeOver(event, view) {
  const selection = view.root.getSelection?.();
  if (event.inputType !== "insertText" || !event.data || !selection || selection.isCollapsed) return false;
  const ends = [
    view.posAtDOM(selection.anchorNode, selection.anchorOffset),
    view.posAtDOM(selection.focusNode, selection.focusOffset),
  ];
  const from = Math.min(...ends);
  view.dispatch({
    changes: { from, to: Math.max(...ends), insert: event.data },
    selection: { anchor: from + event.data.length },
    userEvent: "input.type",
    scrollIntoView: true,
  });
  event.preventDefault();
  return true;
}

// Validate the form of an element on the server after a pause in typing. Only the newest response is
// shown.
function checker(element, form, show) {
  let timer = 0;
  let newest = 0;
  return () => {
    clearTimeout(timer);
    if (!element.dataset.check) return;
    // Responses to earlier requests are outdated now and would revert a choice.
    const number = (newest += 1);
    timer = setTimeout(async () => {
      try {
        const response = await fetch(element.dataset.check, { method: "POST", body: new FormData(form) });
        if (!response.ok) return;
        const found = await response.json();
        if (number === newest && element.isConnected) show(found);
      } catch {
        showCheck(element, "Not checked: the server did not respond.");
      }
    }, PAUSE);
  };
}

// The JSON beside a form: what is typed into one of them appears in the other after a pause. Until then, and while
// the text has no form, the text is what is saved.
async function mountBeside(pane) {
  pane.dataset.mounted = "yes";
  const shown = pane.querySelector("pre");
  const area = document.createElement("textarea");
  const draft = document.querySelector("[data-beside] textarea").value; // restored by drafts.js
  Object.assign(area, { value: draft || shown.textContent, rows: 13, hidden: true });
  Object.assign(area.dataset, { check: pane.dataset.check, label: shown.getAttribute("aria-label"), schema: "#schema" });
  const body = document.createElement("div");
  body.className = "body";
  body.append(area);
  shown.after(body);
  await mount(area, follow);
  shown.remove();
}

// Whether a form has other values than the page has given it.
function isTyped(form) {
  const given = form.cloneNode(true);
  given.reset();
  const [now, before] = [form, given].map((each) => new URLSearchParams(new FormData(each)).toString());
  return now !== before;
}

function follow(form, check) {
  const text = form.querySelector("[data-beside]");
  const fields = form.querySelector("[data-fields]");
  const field = text.querySelector("textarea");
  const send = (isText) => {
    text.disabled = !isText;
    form.elements.held.disabled = isText;
    if (!isText) field.value = "";
  };
  send(field.value !== "");
  form.addEventListener("input", ({ target }) => {
    if (text.contains(target)) return;
    if (fields.contains(target)) send(false);
    check();
  });
  // A restored draft, or what was typed before this file was loaded.
  if ("unsaved" in form.dataset || isTyped(form)) check();
  return {
    typed(value) {
      field.value = value;
      send(true);
      field.dispatchEvent(new Event("input", { bubbles: true })); // drafts.js
    },
    checked({ form: html }) {
      if (!html) return;
      fields.innerHTML = html;
      form.dataset.unsaved = "";
      send(false);
    },
  };
}

async function mount(area, join) {
  area.dataset.mounted = "yes";
  const form = area.form ?? document.querySelector("form[data-guard]");
  if (area.value.length > MOST) {
    showCheck(area, "This value is larger than 1 MB, so it is edited as plain text and checked when you save.");
    return;
  }
  const urls = document.querySelector("script[data-codemirror]").dataset;
  const schema = document.querySelector(area.dataset.schema || null)?.textContent;
  const [cm, { suggest }, { tools }] = await Promise.all([import(urls.codemirror), import(urls.suggestions), import(urls.tools)]);
  if (!area.isConnected) return;
  const { EditorState, EditorView, keymap } = cm;
  const label = document.querySelector(`label[for="${area.id}"]`);
  // In a shadow root CodeMirror uses constructed style sheets, which the CSP allows.
  const host = document.createElement("div");
  host.className = "code";
  host.style.setProperty("--rows", area.rows);
  const root = host.attachShadow({ mode: "open" });
  // The stored text; a page that does not name it shows it in the field itself.
  const original = area.dataset.original && (document.querySelector(area.dataset.original)?.textContent ?? area.defaultValue);
  const above = tools(cm, original, (text) => showCheck(area, text));
  area.after(above.bar, host);

  const check = checker(area, form, (found) => {
    beside?.checked(found);
    resolve(found);
    const clashes = [];
    cm.forEachDiagnostic(view.state, (mark, from, to) => {
      if (mark.severity === "warning") clashes.push({ ...mark, from, to });
    });
    const marks = [...clashes, ...diagnostics(found.errors, view.state.doc.length)];
    view.dispatch(cm.setDiagnostics(view.state, marks));
    showCheck(area, describeCheck(found));
  });
  // The conflict page: show the text with the choices, and the choices that manual edits changed.
  const resolve = ({ value, kept = [], clashes = [] }) => {
    const places = document.querySelectorAll('input[name="clash"]');
    clashes.forEach((clash, index) => { places[index].value = clash; });
    kept.forEach((side, index) => {
      const radio = side && document.querySelector(`[name="keep-${index}"][value="${side}"]`);
      if (radio) radio.checked = true;
    });
    if (value === undefined || value === area.value) return;
    shows = true;
    const before = area.value;
    const limit = Math.min(before.length, value.length);
    let start = 0;
    while (start < limit && before[start] === value[start]) start += 1;
    let end = 0;
    while (end < limit - start && before.at(-1 - end) === value.at(-1 - end)) end += 1;
    view.dispatch({ changes: { from: start, to: before.length - end, insert: value.slice(start, value.length - end) } });
    shows = false;
  };
  const save = () => {
    form.requestSubmit();
    return true;
  };
  const leave = () => {
    document.querySelector("[data-leave]")?.click();
    return true;
  };
  let shows = false; // text of the server, not of the user
  const beside = join?.(form, check);
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        cm.lineNumbers(),
        cm.foldGutter(),
        cm.lintGutter(),
        cm.history(),
        cm.drawSelection(),
        cm.indentOnInput(),
        cm.bracketMatching(),
        cm.closeBrackets(),
        cm.highlightActiveLine(),
        cm.highlightActiveLineGutter(),
        cm.highlightSelectionMatches(),
        cm.json(),
        // Precedes the default keymap, whose Mod-Enter inserts a line. Tab is not bound, so that it
        // leaves the editor.
        keymap.of([{ key: "Mod-Enter", run: save }]),
        keymap.of([...cm.closeBracketsKeymap, ...cm.searchKeymap, ...cm.lintKeymap, ...cm.foldKeymap, ...cm.historyKeymap, ...cm.defaultKeymap]),
        keymap.of([{ key: "Escape", run: leave }]),
        EditorView.lineWrapping,
        EditorView.domEventHandlers({ beforeinput: typeOver }),
        EditorView.contentAttributes.of({
          tabindex: "0",
          "aria-label": label?.textContent.trim() ?? area.dataset.label ?? "Value",
          "aria-describedby": area.getAttribute("aria-describedby") ?? "",
        }),
        EditorView.updateListener.of((update) => {
          adoptNewRules(root);
          if (!update.docChanged) return;
          area.value = update.state.doc.toString();
          if (beside && shows) return;
          if (beside) beside.typed(area.value);
          else area.dispatchEvent(new Event("input", { bubbles: true })); // drafts.js
          check();
        }),
        ...above.extensions,
        ...(schema ? suggest(cm, schema) : []),
        ...look(cm),
      ],
    }),
  });
  above.attach(view);
  // The choices are outside the form element, but are submitted with it.
  document.querySelector(".clashes")?.addEventListener("change", check);
  const marks = JSON.parse(area.dataset.marks || "[]");
  view.dispatch(cm.setDiagnostics(view.state, diagnostics(marks, view.state.doc.length)));
  area.hidden = true;
  area.required = false; // the browser cannot point at a hidden field; the server can
  label?.addEventListener("click", () => view.focus());
  if (area.autofocus) {
    const first = marks.find((mark) => mark.start !== undefined);
    if (first) view.dispatch({ selection: { anchor: Math.min(first.start, view.state.doc.length) }, scrollIntoView: true });
    view.focus();
  }
}

const mountAll = () => {
  for (const area of document.querySelectorAll("[data-editor]:not([data-mounted])")) mount(area);
  for (const pane of document.querySelectorAll("[data-preview]:not([data-mounted])")) mountBeside(pane);
};

document.addEventListener("htmx:after:swap", mountAll);
document.addEventListener("keydown", (event) => {
  const form = document.querySelector("form[data-guard]");
  if (!form || document.querySelector("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "s") {
    event.preventDefault();
    form.requestSubmit();
  } else if (event.key === "Escape" && !event.defaultPrevented && event.target.matches("body, main, [data-editor]")) {
    document.querySelector("[data-leave]")?.click();
  }
});
mountAll();
