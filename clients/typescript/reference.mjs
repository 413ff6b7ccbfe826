// Writes docs/reference/typescript.md from the signatures and doc comments in src; with --check only says whether it is current.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const source = new URL("src/", import.meta.url);
const api = new URL("../../docs/reference/api/", import.meta.url);
const target = new URL("../../docs/reference/typescript.md", import.meta.url);
const LONGEST = 110;

const PREFACE = `
# TypeScript client

The methods of \`state = Commonhold.fromEnv()\`. [The TypeScript client](../guides/typescript.md) shows how to use them.

- \`namespace\` is a name or a key of \`profileKey\`. In \`read\`, \`write\`, \`edit\` and \`register\`, \`key\` is a key of \`profileKey\`, and \`scope\` is the key of the
  entry: a string, such as one of \`StateScope\`.
- A method that returns \`Paged\` sends nothing until it is awaited or iterated: \`await\` returns one page, and \`for await\` reads all pages.
- The members of the results are those of the [REST API](api/index.md): [Results](#results) links them. Times are RFC 3339 strings. Options that are times
  also accept a \`Date\`.
- Each problem of the API is a class of [Errors](#errors). A wrong argument throws \`TypeError\`, and nothing is sent.

## Options of calls

The methods below list their own options. These have the same meaning everywhere:

`;

// Options that many methods have and that their lists only name.
const COMMON = {
  dry_run: ["boolean", "Validate and count, but change nothing. The result has `dry_run: true`."],
  limit: ["number", "Items per page, at most 200. Default: 50."],
  cursor: ["string", "Position to continue from: `next_cursor` of the previous page."],
  order: ['"asc" \\| "desc"', "`desc` begins with the newest or last item. Default: the order that the description of the method names."],
  created_after: ["string \\| Date", "Only items created at this time or later."],
  created_before: ["string \\| Date", "Only items created before this time."],
};
const SENT = ["Sending", "Writing", "Guarded"];
// Types that only the declarations of other types use.
const HELPERS = ["Body", "Query", ...SENT];

const configuration = ts.readConfigFile(fileURLToPath(new URL("tsconfig.json", import.meta.url)), ts.sys.readFile).config;
const { options } = ts.parseJsonConfigFileContent(configuration, ts.sys, fileURLToPath(new URL(".", import.meta.url)));
const entry = fileURLToPath(new URL("index.ts", source));
const agentkit = fileURLToPath(new URL("agentkit.ts", source));
const program = ts.createProgram([entry, agentkit, fileURLToPath(new URL("agent-kit.d.ts", source))], options);
const checker = program.getTypeChecker();
const undocumented = [];

/** What a module exports, by name, in order. */
function exportsOf(path) {
  const found = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)));
  const resolved = found.map((each) => (each.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(each) : each));
  return new Map(resolved.filter((each) => !isInternal(each)).map((each) => [each.name, each]));
}

const declarationOf = (symbol) => symbol.declarations.at(-1);
const isInternal = (symbol) => symbol.getJsDocTags(checker).some(({ name }) => name === "internal");

/** The doc comment. Those of openapi.ts are tags. */
function about(symbol) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  const tag = symbol.getJsDocTags(checker).find(({ name }) => name === "description");
  return (text || ts.displayPartsToString(tag?.text ?? [])).trim();
}

function required(name, symbol) {
  const text = about(symbol);
  if (!text) undocumented.push(name);
  return text;
}

const oneLine = (text) => text.replace(/\s+/g, " ").trim();
const typeText = (node) => oneLine(node.getText().replace(/\/\*\*.*?\*\//gs, ""));

/** The type of a member: of alternatives as they are declared, because the compiler sorts them by where else it has read them. */
function typeOf(symbol, node) {
  const declared = symbol.declarations?.[0]?.type?.getText() ?? "";
  if (/^("[^"]*"( \| )?)+(null)?$/.test(declared)) return declared;
  const type = checker.getTypeOfSymbolAtLocation(symbol, node);
  const bound = checker.getBaseConstraintOfType(checker.getNonNullableType(type));
  const isParameter = checker.getNonNullableType(type).flags & ts.TypeFlags.TypeParameter;
  const flags = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope;
  const printed = checker.typeToString(isParameter && bound?.flags & ts.TypeFlags.Union ? bound : type, node, flags);
  const text = oneLine(printed).replace(/ \| undefined\b|\bundefined \| /g, "").replace(/^\((\(.*)\)$/, "$1").replace(/\bJson\b/g, "object");
  return text.length > LONGEST ? "object" : text;
}

// Methods and functions ------------------------------------------------------------------------

function isOptions(parameter) {
  const type = checker.getTypeAtLocation(parameter);
  return !parameter.dotDotDotToken && (Boolean(type.getProperty("signal")) || /Options\b|Filters\b/.test(parameter.type?.getText() ?? ""));
}

function nameOf(parameter) {
  if (ts.isIdentifier(parameter.name)) return parameter.name.text;
  return /\bFilters\b/.test(parameter.type.getText()) ? "filters" : "options";
}

function parameterText(parameter) {
  const optional = parameter.initializer || parameter.questionToken ? "?" : "";
  const type = isOptions(parameter) ? "" : `: ${typeText(parameter.type)}`;
  return `${parameter.dotDotDotToken ? "..." : ""}${nameOf(parameter)}${optional}${type}`;
}

function signature(name, node) {
  const types = node.typeParameters?.length ? `<${node.typeParameters.map(typeText).join(", ")}>` : "";
  const result = node.type ? `: ${typeText(node.type)}` : "";
  const parameters = node.parameters.map(parameterText);
  const line = `${name}${types}(${parameters.join(", ")})${result}`;
  if (line.length <= LONGEST) return line;
  return `${name}${types}(\n${parameters.map((each) => `  ${each},\n`).join("")})${result}`;
}

/** The options of a method: its own as a list, and the names of the common ones. */
function optionList(parameter) {
  const name = `\`${nameOf(parameter)}\`:`;
  const declared = parameter.type.getText();
  if (declared === "Partial<ClientOptions>") return `${name} those of \`new Commonhold\`.`;
  const members = checker.getPropertiesOfType(checker.getNonNullableType(checker.getTypeAtLocation(parameter)));
  const isPaged = members.some((each) => each.name === "cursor");
  const isCommon = (each) =>
    (each.name in COMMON && (each.name !== "limit" || isPaged)) || SENT.includes(each.declarations?.[0]?.parent?.name?.text);
  const own = members.filter((each) => !isCommon(each) && !isInternal(each)).map((each) => member(each, parameter));
  const common = members.filter(isCommon).map((each) => `\`${each.name}\``).join(", ");
  if (!own.length) return `${name} ${common}.`;
  return `${name}\n\n${own.join("\n")}${common && `\n- and ${common}`}`;
}

function member(symbol, node) {
  const optional = symbol.flags & ts.SymbolFlags.Optional ? "" : ", required";
  const text = oneLine(required(symbol.name, symbol));
  return `- \`${symbol.name}\` (\`${typeOf(symbol, node)}\`${optional}): ${text}`;
}

function method(name, node, text) {
  const lists = node.parameters.filter(isOptions).map(optionList);
  return section(3, name, `\`\`\`text\n${signature(name, node)}\n\`\`\``, text, ...lists);
}

const section = (level, title, ...parts) => [`${"#".repeat(level)} ${title}`, ...parts].filter(Boolean).join("\n\n");

/** The public methods of a class. */
function methodsOf(node) {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return node.members.filter(
    (each) =>
      ts.isMethodDeclaration(each) &&
      ts.isIdentifier(each.name) &&
      !(ts.getCombinedModifierFlags(each) & hidden) &&
      !isInternal(checker.getSymbolAtLocation(each.name)),
  );
}

function methodSections(prefix, node) {
  return methodsOf(node).map((each) => {
    const name = `${prefix}.${each.name.text}`;
    return method(name, each, required(name, checker.getSymbolAtLocation(each.name)));
  });
}

/** The sections of the class of the client: a comment such as `// Entries ------` in it begins each. */
function clientSections(node) {
  const parts = [];
  for (const each of node.members) {
    const heading = /\/\/ ([^\n]+?) -{5,}/.exec(each.getFullText().slice(0, each.getStart() - each.getFullStart()));
    if (heading) parts.push(section(2, heading[1]));
    if (ts.isConstructorDeclaration(each)) {
      parts.push(method("new Commonhold", each, about(checker.getSymbolAtLocation(node.name))));
    } else if (methodsOf({ members: [each] }).length) {
      const name = `${ts.getCombinedModifierFlags(each) & ts.ModifierFlags.Static ? "Commonhold" : "state"}.${each.name.text}`;
      parts.push(method(name, each, required(name, checker.getSymbolAtLocation(each.name))));
    }
  }
  return parts;
}

/** `state.threads` and the others: readonly members that are objects with methods. */
function groupSections(node) {
  return node.members.filter((each) => ts.isPropertyDeclaration(each) && each.initializer).flatMap((each) => {
    const group = checker.getTypeAtLocation(each).symbol;
    const title = each.name.text.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    const heading = section(2, title[0].toUpperCase() + title.slice(1), about(group));
    return [heading, ...methodSections(`state.${each.name.text}`, declarationOf(group))];
  });
}

// Other exports --------------------------------------------------------------------------------

function classSection(name, symbol) {
  const node = declarationOf(symbol);
  const instance = name[0].toLowerCase() + name.slice(1);
  return [section(3, name, required(name, symbol)), ...methodSections(instance, node).map((each) => `#${each}`)].join("\n\n");
}

/** `StateScope`: an object of functions. */
function objectSection(name, symbol) {
  const members = checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol)).map((each) => {
    const { parameters } = declarationOf(each).initializer;
    return `- \`${name}.${each.name}(${parameters.map((one) => one.getText()).join(", ")})\`: ${required(`${name}.${each.name}`, each)}`;
  });
  return section(3, name, required(name, symbol), members.join("\n"));
}

function typeSection(name, symbol) {
  const node = declarationOf(symbol);
  if (ts.isTypeAliasDeclaration(node)) {
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    if (node.typeParameters || !(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection))) {
      return section(3, name, required(name, symbol), `\`\`\`text\n${node.getText().replace(/^export /, "")}\n\`\`\``);
    }
  }
  const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).filter((each) => !isInternal(each));
  return section(3, name, required(name, symbol), members.map((each) => member(each, node)).join("\n"));
}

const table = (head, rows) => [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
const cell = (text) => oneLine(text).replace(/\|/g, "\\|");

/** The members that a class adds to its base. */
function fieldsOf(symbol) {
  const fields = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).filter((each) => {
    const isOwn = ts.findAncestor(each.valueDeclaration, ts.isClassDeclaration) === declarationOf(symbol);
    return isOwn && each.name !== "name" && !ts.isMethodDeclaration(each.valueDeclaration);
  });
  return fields.map((each) => `\`${each.name}\``).join(", ");
}

/** The classes of problems, with the types that select them. */
function errorTable(classes) {
  const text = readFileSync(new URL("problems.ts", source), "utf8");
  const slugs = new Map([...text.matchAll(/^ {2}"?([a-z][\w-]*)"?: ([A-Z]\w+),$/gm)].map(([, slug, name]) => [name, slug]));
  return table(
    ["Class", "Subclass of", "Problem type", "Meaning", "Members"],
    classes.map((symbol) => {
      const base = ts.getEffectiveBaseTypeNode(declarationOf(symbol)).expression.text;
      const slug = slugs.get(symbol.name);
      return [`\`${symbol.name}\``, `\`${base}\``, slug ? `[${slug}](../problems.md#${slug})` : "", cell(required(symbol.name, symbol)), fieldsOf(symbol)];
    }),
  );
}

/** The pages of the REST API that describe a schema, by its name. */
function schemaPages() {
  const names = [...readFileSync(new URL("index.md", api), "utf8").matchAll(/\]\((\w[\w-]*\.md)\)/g)].map(([, name]) => name);
  const pages = new Map();
  for (const page of names) {
    for (const [, schema] of readFileSync(new URL(page, api), "utf8").matchAll(/^### (\w+)$/gm)) {
      if (!pages.has(schema)) pages.set(schema, page);
    }
  }
  return pages;
}

/** The schema of the API that a type is. */
const schemaOf = (symbol) => /^export type \w+(?:<[^>]*>)? = (?:Omit<)?Schemas\["(\w+)"\]/.exec(declarationOf(symbol).getText())?.[1];

function resultTable(types, components) {
  const pages = schemaPages();
  const schemas = checker.getTypeOfSymbol(checker.getDeclaredTypeOfSymbol(components).getProperty("schemas"));
  return table(
    ["Type", "Description", "Members"],
    types.map((symbol) => {
      const schema = schemaOf(symbol);
      const page = pages.get(schema);
      const text = about(symbol) || about(schemas.getProperty(schema));
      return [`\`${symbol.name}\``, cell(text), `[${schema}](api/${page}#${schema.toLowerCase()})`];
    }),
  );
}

function page() {
  const found = exportsOf(entry);
  const take = (test) => {
    const taken = [...found.values()].filter(test);
    for (const each of taken) found.delete(each.name);
    return taken;
  };
  const has = (flag) => (symbol) => Boolean(symbol.flags & flag);
  const client = declarationOf(found.get("Commonhold"));
  const calls = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(found.get("Guarded")));
  const components = found.get("components");
  const apart = new Set(["components", "operations", "paths", "Commonhold", ...HELPERS]);
  const groups = new Set(client.members.filter(ts.isPropertyDeclaration).map((each) => checker.getTypeAtLocation(each).symbol?.name));
  take(({ name }) => apart.has(name) || groups.has(name));
  take(({ name }) => /Options$|^Filters$/.test(name)); // listed where they are used
  const errors = take((symbol) => declarationOf(symbol).getSourceFile().fileName.endsWith("/problems.ts") && has(ts.SymbolFlags.Class)(symbol));
  const classes = take(has(ts.SymbolFlags.Class));
  const functions = take(has(ts.SymbolFlags.Function));
  const histories = [...exportsOf(agentkit).values()].filter(has(ts.SymbolFlags.Function));
  const scopes = take(({ name }) => name === "StateScope");
  const results = take((symbol) => has(ts.SymbolFlags.TypeAlias)(symbol) && schemaOf(symbol));
  const others = take(has(ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias));
  const constants = take(() => true);

  const rows = [
    ...calls.map((each) => [`\`${each.name}\``, `\`${typeOf(each, client)}\``, cell(about(each))]),
    ...Object.entries(COMMON).map(([name, [type, text]]) => [`\`${name}\``, `\`${type}\``, text]),
  ];
  const parts = [
    PREFACE.trim(),
    table(["Option", "Type", "Meaning"], rows),
    "In TypeScript, `Sending` is the type of `signal`, `Writing` adds `reason` and `idempotency_key`, and `Guarded` adds `if_version`.",
    section(2, "The client"),
    ...clientSections(client),
    ...groupSections(client),
    section(2, "Keys, lists and watches"),
    ...functions.map((each) => method(each.name, declarationOf(each), required(each.name, each))),
    ...scopes.map((each) => objectSection(each.name, each)),
    ...classes.map((each) => classSection(each.name, each)),
    section(2, "AgentKit", "In `@commonhold/client/agentkit`."),
    ...histories.map((each) => method(each.name, declarationOf(each), required(each.name, each))),
    section(2, "Errors", "All are subclasses of `CommonholdError`."),
    errorTable(errors),
    section(2, "Results", "`T` is the type of the value."),
    resultTable(results, components),
    section(2, "Types"),
    ...constants.map((each) => section(3, each.name, required(each.name, each), `\`\`\`text\n${declarationOf(each).getText()}\n\`\`\``)),
    ...others.map((each) => typeSection(each.name, each)),
  ];
  if (undocumented.length) throw new Error(`without a doc comment: ${undocumented.join(", ")}`);
  return `\n${parts.join("\n\n")}\n`;
}

/** Of the sources and the page: tests/clients/test_typescript.py checks it without Node. */
function hash(text) {
  const names = readdirSync(source).filter((name) => name.endsWith(".ts")).sort();
  const files = [...names.map((name) => new URL(name, source)), new URL(import.meta.url)];
  const sum = createHash("sha256");
  for (const file of files) sum.update(readFileSync(file));
  return sum.update(text).digest("hex");
}

const body = page();
const text = `<!-- Generated by \`make client-types\` from the source of the client. sha256 of both: ${hash(body)} -->\n${body}`;

if (!process.argv.includes("--check")) {
  writeFileSync(target, text);
} else if (readFileSync(target, "utf8") !== text) {
  console.error("docs/reference/typescript.md is not generated from this source: run `make client-types`");
  process.exit(1);
}
