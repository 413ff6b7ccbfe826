/** Equal as JSON. */
export function same(left: unknown, right: unknown): boolean {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((each, n) => same(each, right[n]));
  }
  if (isObject(left) && isObject(right)) {
    const names = Object.keys(left);
    return (
      names.length === Object.keys(right).length &&
      names.every((name) => Object.hasOwn(right, name) && same(left[name], right[name]))
    );
  }
  return left === right;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const PLAIN = new Set(["Object", "Array", "Number", "String", "Boolean"]);

/**
 * The JSON of a value. A member that is undefined is absent. Throws TypeError, with a JSON Pointer, for values that
 * `JSON.stringify` would refuse, drop or silently change, such as NaN, a Map or a Promise.
 */
export function stringify(value: unknown): string | undefined {
  const open: { name: string; value: unknown }[] = [];
  return JSON.stringify(value, function (this: Record<string, unknown>, name: string, each: unknown) {
    while (open.length && open.at(-1)!.value !== this) open.pop();
    const reason = open.some((outer) => isContainer(each) && outer.value === each)
      ? "contains itself"
      : unfit(this[name], each, open.length > 0 && !Array.isArray(this));
    if (reason) {
      const names = [...open.slice(1).map((outer) => outer.name), ...(open.length ? [name] : [])];
      const pointer = names.map((step) => `/${step.replace(/~/g, "~0").replace(/\//g, "~1")}`).join("");
      throw new TypeError(`${pointer || "the value"} ${reason}`);
    }
    if (isContainer(each)) open.push({ name, value: each });
    return each;
  });
}

/** Why a value has no JSON. `each` is `original`, or what its toJSON returned. */
function unfit(original: unknown, each: unknown, optional: boolean): string | undefined {
  if (each === undefined) return optional ? undefined : "is undefined, which JSON does not have: use null";
  if (typeof each === "function" || typeof each === "symbol") return `is a ${typeof each}, which JSON does not have`;
  if (typeof each === "bigint") return "is a BigInt, which JSON does not have: use a number or a string";
  if (typeof each === "number" && !Number.isFinite(each)) return `is ${each}, which JSON does not have: use null or a string`;
  if (original instanceof Date && Number.isNaN(original.getTime())) return "is an invalid Date";
  if (!isContainer(each)) return undefined;
  const kind = Object.prototype.toString.call(each).slice(8, -1);
  if (PLAIN.has(kind)) return undefined;
  if (kind === "Promise") return "is a Promise: await it first";
  return `is of the type ${kind}, which JSON does not have: convert it to an object, an array or a string`;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/**
 * The first number of a JSON text that is another one after it has been read and written by JavaScript: an integer
 * beyond 2⁵³, more decimals than a double has, or one beyond 1.8e308.
 */
export function lostNumber(text: string): string | undefined {
  for (let at = 0; ; ) {
    const quote = text.indexOf('"', at);
    const numbers = text.slice(at, quote < 0 ? undefined : quote).match(/-?\d[\d.eE+-]*/g);
    const lost = numbers?.find((each) => !isKept(each));
    if (lost !== undefined || quote < 0) return lost;
    at = endOfString(text, quote);
  }
}

function isKept(literal: string): boolean {
  const value = Number(literal);
  if (/^-?\d+$/.test(literal)) return Number.isSafeInteger(value) || String(value) === literal;
  const digits = significant(literal);
  // Some programs write 17 digits of each double.
  return [String(value), value.toPrecision(17)].some((each) => significant(each) === digits);
}

/** The digits of a number and their exponent, the same for all notations of it. */
function significant(literal: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short && `${sign}${short}e${Number(exponent) - fraction.length + digits.length - short.length}`;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
}

/** A wrong argument in a message: long ones are cut, and it does not throw. */
export function shown(value: unknown): string {
  if (isContainer(value)) return Array.isArray(value) ? "an array" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Throws a TypeError if `given` is not an object. `{ ...text }` would send a member for each character of a string. */
export function requireObject(what: string, given: unknown): void {
  if (isObject(given) && !Object.hasOwn(given, "0")) return;
  const value = isObject(given) ? "a string or an array" : shown(given);
  throw new TypeError(`${what} must be an object, not ${value}`);
}

/** Throws a TypeError for a misspelled option, which would have no effect. */
export function refuseOthers(what: string, given: object, names: readonly string[], known = names.join(", ")): void {
  const others = Object.keys(given).filter((name) => !names.includes(name));
  if (others.length) throw new TypeError(`unknown option of ${what}: ${others.join(", ")}. Known options: ${known}.`);
}
