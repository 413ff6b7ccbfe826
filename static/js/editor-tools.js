// The bar above the JSON editor: format the text, compare it with the stored text, search in it.

const WIDTH = 88; // characters of a list on one line, as the server writes them (templatetags/json_html.py)
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

// The text with one member per line; short lists of scalars stay on one line. Numbers keep their spelling.
// Throws a SyntaxError if the text is not JSON.
export function format(text) {
  JSON.parse(text);
  const tokens = text.match(TOKEN);
  let at = 0;
  const items = (close, read) => {
    const found = [];
    at += 1;
    while (tokens[at] !== close) {
      found.push(read());
      if (tokens[at] === ",") at += 1;
    }
    at += 1;
    return found;
  };
  const value = (indent) => {
    const inner = `${indent}  `;
    const start = at;
    const lines = (open, found, close) => (found.length ? `${open}\n${found.map((each) => inner + each).join(",\n")}\n${indent}${close}` : open + close);
    if (tokens[at] === "{") {
      const members = items("}", () => {
        const name = tokens[at];
        at += 2;
        return `${name}: ${value(inner)}`;
      });
      return lines("{", members, "}");
    }
    if (tokens[at] === "[") {
      const found = items("]", () => value(inner));
      const line = found.join(", ");
      const isFlat = !tokens.slice(start + 1, at - 1).some((token) => "[{".includes(token));
      return isFlat && line.length <= WIDTH ? `[${line}]` : lines("[", found, "]");
    }
    at += 1;
    return tokens[at - 1];
  };
  return value("");
}

function button(text, title, act) {
  const control = document.createElement("button");
  Object.assign(control, { type: "button", className: "btn", textContent: text, title });
  control.addEventListener("click", act);
  return control;
}

// `original` is the text to compare with, undefined without one. `report` shows a message below the editor.
export function tools(cm, original, report) {
  const merge = new cm.Compartment();
  const compare = cm.unifiedMergeView({
    original: original ?? "",
    gutter: false,
    syntaxHighlightDeletions: true,
    collapseUnchanged: { margin: 3, minSize: 8 },
    // The original is what is stored: a change can be reverted, but "accepting" it would do nothing.
    mergeControls: (type, action) => {
      const revert = button("Revert", "use the stored text here", action);
      revert.hidden = type === "accept";
      return revert;
    },
  });
  let showing = false;
  const bar = document.createElement("div");
  bar.className = "row editor-bar";

  const formatAll = (view) => {
    try {
      const text = format(view.state.doc.toString());
      if (text !== view.state.doc.toString()) {
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, userEvent: "input.format" });
      }
    } catch {
      report("Not formatted: the text is not valid JSON.");
    }
    return true;
  };
  const toggle = (view) => {
    if (original === undefined) return false;
    showing = !showing;
    view.dispatch({ effects: merge.reconfigure(showing ? compare : []) });
    changes.setAttribute("aria-pressed", String(showing));
    return true;
  };
  let view = null;
  const changes = button("Show changes", "Compare with the stored text (Shift Alt D); F7 goes to the next change", () => toggle(view));
  changes.setAttribute("aria-pressed", "false");
  const next = (step) => (target) => showing && step(target);

  return {
    bar,
    extensions: [
      merge.of([]),
      cm.keymap.of([
        { key: "Shift-Alt-f", run: formatAll },
        { key: "Shift-Alt-d", run: toggle },
        { key: "F7", run: next(cm.goToNextChunk), shift: next(cm.goToPreviousChunk) },
      ]),
    ],
    attach(mounted) {
      view = mounted;
      bar.append(button("Format", "Indent the text (Shift Alt F)", () => formatAll(view)));
      if (original !== undefined) bar.append(changes);
      bar.append(button("Find", "Find and replace (Ctrl F)", () => cm.openSearchPanel(view)));
    },
  };
}
