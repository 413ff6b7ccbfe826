// What a JSON Schema says about a place in a JSON text: completions and descriptions for the editor.
// Patterns of the schema are not executed, because a slow one would block the page. The server
// validates; what is not understood here is not suggested.

const MOST = 100; // subschemas that apply to one place, and values that a description lists
const BRANCHES = ["allOf", "anyOf", "oneOf"];
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const own = (object, key) => (isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined);

function follow(root, reference) {
  if (typeof reference !== "string" || !reference.startsWith("#")) return undefined;
  let place = root;
  try {
    for (const part of decodeURIComponent(reference.slice(1)).split("/").slice(1)) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      place = Array.isArray(place) ? place[key] : own(place, key);
    }
  } catch {
    return undefined; // malformed escapes
  }
  return reference === "#" || reference.startsWith("#/") ? place : undefined;
}

// The schemas with all those that they refer to or combine.
function expand(root, schemas) {
  const found = new Set();
  const add = (schema) => {
    if (!isObject(schema) || found.has(schema) || found.size >= MOST) return;
    found.add(schema);
    add(follow(root, schema.$ref));
    for (const name of BRANCHES) if (Array.isArray(schema[name])) schema[name].forEach(add);
    add(schema.then);
    add(schema.else);
  };
  schemas.forEach(add);
  return [...found];
}

function descend(schema, step) {
  if (typeof step === "string") return own(schema.properties, step) ?? schema.additionalProperties;
  const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  return step < first.length ? first[step] : schema.items;
}

// The schemas of the value at a path.
const schemasAt = (root, path) =>
  path.reduce((schemas, step) => expand(root, schemas.map((schema) => descend(schema, step))), expand(root, [root]));

const nameOf = (state, property) => {
  try {
    return String(JSON.parse(state.sliceDoc(property.firstChild.from, property.firstChild.to)));
  } catch {
    return "";
  }
};

// The path of a node's value: that of a Property leads to the property's value.
function pathOf(state, node, position) {
  const path = [];
  for (let each = node; each; each = each.parent) {
    if (each.name === "Property") path.unshift(nameOf(state, each));
    if (each.name === "Array") {
      let index = 0;
      for (let child = each.firstChild; child; child = child.nextSibling) {
        if (/^(Object|Array|String|Number|True|False|Null)$/.test(child.name) && child.to < position) index += 1;
      }
      path.unshift(index);
    }
  }
  return path;
}

const union = (schemas, name) => [...new Set(schemas.flatMap((schema) => schema[name] ?? []).map(String))];

function facts(schemas) {
  const values = (name) => schemas.filter((schema) => Object.hasOwn(schema, name)).map((schema) => schema[name]);
  const show = (value) => {
    const text = JSON.stringify(value);
    return text.length > 60 ? `${text.slice(0, 60)}…` : text;
  };
  const limits = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "minProperties", "maxProperties"];
  const choices = [...values("enum").flat(), ...values("const")];
  return [
    ["type", union(schemas, "type").join(" or ")],
    ["one of", choices.slice(0, MOST).map(show).join(", ")],
    ["default", values("default").slice(0, 1).map(show).join("")],
    ["examples", values("examples").flat().slice(0, 3).map(show).join(", ")],
    ...limits.map((name) => [name, [...new Set(values(name).map(String))].join(", ")]),
    ["deprecated", values("deprecated").includes(true) ? "yes" : ""],
  ].filter(([, text]) => text);
}

// What the schemas say, as an element; null if they say nothing.
function describe(schemas) {
  const box = document.createElement("div");
  const add = (text, className) => {
    const line = document.createElement("div");
    line.className = className;
    line.textContent = text;
    box.append(line);
  };
  for (const text of union(schemas, "title").slice(0, 3)) add(text, "cm-title");
  for (const text of union(schemas, "description").slice(0, 3)) add(text, "cm-text");
  for (const [name, text] of facts(schemas)) add(`${name}: ${text}`, "cm-fact");
  return box.childElementCount ? box : null;
}

// The text that begins a value, and where in it the cursor goes.
function beginning(schemas) {
  const given = schemas.find((schema) => Object.hasOwn(schema, "const") || Object.hasOwn(schema, "default"));
  if (given) return [JSON.stringify(given.const ?? given.default), 0];
  const types = union(schemas, "type");
  const text = types.length === 1 ? { object: "{}", array: "[]", string: '""' }[types[0]] : undefined;
  return text ? [text, -1] : ["", 0];
}

// Put a text in place of the word, whose rest is behind the cursor, and the cursor into it.
const replace = (insert, cursor, rest) => (view, option, from, to) => view.dispatch({
  changes: { from, to: to + rest, insert },
  selection: { anchor: from + cursor },
  userEvent: "input.complete",
  scrollIntoView: true,
});

function propertyOptions(root, state, object, path, word) {
  const schemas = schemasAt(root, path);
  const required = new Set(union(schemas, "required"));
  const taken = new Set();
  for (let child = object.firstChild; child; child = child.nextSibling) {
    if (child.name === "Property" && !(child.from <= word.from && word.from < child.firstChild.to)) taken.add(nameOf(state, child));
  }
  const names = union(schemas.map((schema) => ({ names: isObject(schema.properties) ? Object.keys(schema.properties) : [] })), "names");
  const rest = state.sliceDoc(word.to, word.to + 1000);
  return names.filter((name) => !taken.has(name)).map((name) => {
    const about = schemasAt(root, [...path, name]);
    const [value, shift] = /^\s*:/.test(rest) ? [null, 0] : beginning(about);
    const text = JSON.stringify(name);
    const comma = /^\s*"/.test(rest) && value !== null ? "," : "";
    const insert = value === null ? text : `${text}: ${value}${comma}`;
    return {
      label: text,
      displayLabel: name,
      detail: [union(about, "type").join(" or "), required.has(name) && "required"].filter(Boolean).join(", "),
      info: () => describe(about),
      boost: required.has(name) ? 1 : 0,
      apply: replace(insert, insert.length - comma.length + shift, word.rest),
    };
  });
}

function valueOptions(root, path, word) {
  const schemas = schemasAt(root, path);
  const types = union(schemas, "type");
  const values = schemas.flatMap((schema) => [
    ...(Array.isArray(schema.enum) ? schema.enum : []),
    ...["const", "default"].filter((name) => Object.hasOwn(schema, name)).map((name) => schema[name]),
    ...(Array.isArray(schema.examples) ? schema.examples : []),
  ]);
  if (types.includes("boolean")) values.push(true, false);
  if (types.includes("null")) values.push(null);
  const texts = [...new Set(values.map((value) => JSON.stringify(value)))];
  const apply = (text) => replace(text, text.length, word.rest);
  return texts.map((text) => ({ label: text, info: () => describe(schemas), apply: apply(text) }));
}

// The syntax tree as far as a position, or null if the request was cancelled. The editor parses for 20 ms
// after a key, and continues later: until then, there is no node at the end of a long text.
async function treeTo(cm, context, position) {
  for (;;) {
    const tree = cm.ensureSyntaxTree(context.state, position, 20);
    if (tree || context.aborted) return tree;
    await new Promise((resolve) => setTimeout(resolve));
  }
}

// The node of the string or name that contains the position, or the word before it.
function wordAt(tree, state, position) {
  const node = tree.resolveInner(position, -1);
  if (/^(String|PropertyName)$/.test(node.name)) {
    if (node.from >= position || position >= node.to) return null;
    return { from: node.from, to: node.to, rest: node.to - position };
  }
  const line = state.doc.lineAt(position);
  const before = line.text.slice(Math.max(0, position - line.from - 1000), position - line.from);
  return { from: position - /"?[\w.+-]*$/.exec(before)[0].length, to: position, rest: 0 };
}

async function complete(cm, root, context) {
  const { state, pos, explicit } = context;
  const tree = await treeTo(cm, context, pos);
  const word = tree && wordAt(tree, state, pos);
  if (!word || (!explicit && word.from === pos)) return null;
  const before = state.sliceDoc(Math.max(0, word.from - 1000), word.from);
  const end = word.from - before.length + before.trimEnd().length;
  const sign = state.sliceDoc(end - 1, end);
  let node = sign ? tree.resolveInner(end, -1) : null;
  const kinds = sign === ":" ? ["Property"] : ["Object", "Array"];
  while (node && !kinds.includes(node.name)) node = node.parent;
  if (sign && (!node || !"{[:,".includes(sign))) return null;
  const path = pathOf(state, node, word.from);
  const options = node?.name === "Object" ? propertyOptions(root, state, node, path, word) : valueOptions(root, path, word);
  const typed = state.sliceDoc(word.from, word.to);
  const isComplete = options.some((option) => option.label === typed);
  if (!options.length || (isComplete && !explicit)) return null;
  return { from: word.from, options, filter: !isComplete, validFor: /^"?[^"\n]*$/ };
}

function hover(cm, root, { state }, position, side) {
  const node = cm.syntaxTree(state).resolveInner(position, side);
  if (!/^(PropertyName|String|Number|True|False|Null)$/.test(node.name)) return null;
  const dom = describe(schemasAt(root, pathOf(state, node, node.from)));
  return dom && { pos: node.from, end: node.to, create: () => ({ dom }) };
}

// The extensions for a schema as text; none if it says nothing about values.
export function suggest(cm, text) {
  const root = JSON.parse(text);
  if (!isObject(root)) return [];
  // Escape closes an open list, but not one that may open: then it leaves the editor.
  const close = (view) => cm.completionStatus(view.state) === "active" && cm.closeCompletion(view);
  const keys = cm.completionKeymap.map((binding) => (binding.key === "Escape" ? { key: "Escape", run: close } : binding));
  return [
    cm.autocompletion({ override: [(context) => complete(cm, root, context)], icons: false, defaultKeymap: false }),
    cm.Prec.highest(cm.keymap.of(keys)),
    cm.hoverTooltip((view, position, side) => hover(cm, root, view, position, side)),
  ];
}
