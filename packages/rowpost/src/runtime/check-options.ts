/**
 * Checks options of every factory: an unknown name would be ignored, and a wrong kind would show
 * only at the first message. No text repeats a value, which may be a password.
 */
import { ConfigurationError } from "./errors.ts";

/** A result of `typeof`, `array`, or anything. */
type Kind = "string" | "number" | "boolean" | "function" | "object" | "array" | "any";

/** One of several. */
type Kinds = readonly Kind[];

/** An object from another factory: one of its members, and its origin. */
interface Made {
  readonly has: string;
  readonly from: string;
  /** Reported before unknown names. */
  readonly needed?: true;
}

/** One entry per option, enforced by the compiler. */
export type OptionKinds<Options> = { readonly [Name in keyof Options]-?: Kind | Kinds | Made };

/** A database object that has the given port. */
export function databaseWith(port: string): Made {
  return {
    needed: true,
    has: port,
    from: "made by mysql({ pool }) of rowpost/mysql, or by mariadb(), postgres() or sqlite() of the entries of these names",
  };
}

export const LAYOUT: Made = {
  has: "columns",
  from: "an object: tLocalMessageLayout, messageTableLayout, or what createLayout makes",
};

export const BROKER: Made = {
  needed: true,
  has: "publish",
  from: "made by an adapter, such as kafka({ brokers }) or memory()",
};

/**
 * Refuses a value that is no options object, unknown names and wrong kinds. `what` names the
 * object. Throws {@link ConfigurationError}.
 */
export function checkOptions<Options extends object>(what: string, given: Options, kinds: OptionKinds<Options>): void {
  for (const [name, kind] of Object.entries<Kind | Kinds | Made>(kinds)) {
    if (typeof kind !== "object" || !("needed" in kind)) continue;
    if (isObject(given) && isMade(Reflect.get(given, name), kind)) continue;
    throw new ConfigurationError(`${what} takes { ${name} }, ${kind.from}`);
  }
  if (!isObject(given) || Array.isArray(given)) {
    throw new ConfigurationError(`${what}: takes an object of options, not ${nameOf(given)}`);
  }
  refuseUnknown(what, given, Object.keys(kinds));
  for (const [name, kind] of Object.entries<Kind | Kinds | Made>(kinds)) {
    const value: unknown = Reflect.get(given, name);
    if (value === undefined) continue;
    if (typeof kind === "object" && "has" in kind) {
      if (isMade(value, kind)) continue;
      const told = typeof value === "string" ? JSON.stringify(value) : nameOf(value);
      throw new ConfigurationError(`${what}: ${name} is ${told}; it must be ${kind.from}`);
    }
    if (!kindsOf(kind).some((each) => isKind(value, each))) {
      throw new ConfigurationError(`${what}: ${name} must be ${wordsFor(kind)}, not ${nameOf(value)}`);
    }
  }
}

/** Refuses unknown names and suggests the nearest. Throws {@link ConfigurationError}. */
export function refuseUnknown(what: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const nearest = nearestOf(unknown, known);
  const question = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  throw new ConfigurationError(`${what}: "${unknown}" is not an option (${known.join(", ")})${question}`);
}

/** Throws {@link ConfigurationError}, which names the option, for any other value. */
export function oneOf<Value>(name: string, value: Value, known: readonly Value[]): Value {
  if (known.includes(value)) return value;
  const words = known.filter((each) => each !== undefined).map((each) => JSON.stringify(each));
  throw new ConfigurationError(`${name} must be ${words.join(" or ")}, not ${String(value)}`);
}

function isMade(value: unknown, { has }: Made): boolean {
  return isObject(value) && Reflect.get(value, has) !== undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function kindsOf(kind: Kind | Kinds): Kinds {
  return typeof kind === "string" ? [kind] : kind;
}

function isKind(value: unknown, kind: Kind): boolean {
  if (kind === "any") return true;
  if (kind === "array") return Array.isArray(value);
  return kind === "object" ? isObject(value) && !Array.isArray(value) : typeof value === kind;
}

const WORDS: Readonly<Record<Kind, string>> = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  function: "a function",
  object: "an object",
  array: "an array",
  any: "anything",
};

function wordsFor(kind: Kind | Kinds): string {
  return kindsOf(kind)
    .map((each) => WORDS[each])
    .join(" or ");
}

function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value !== "object") return typeof value === "boolean" ? String(value) : `a ${typeof value}`;
  const name = value.constructor?.name;
  return name === undefined || name === "Object" ? "a plain object" : `an object of the class ${name}`;
}

/** A wrong guess is worse than none. */
function nearestOf(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  const near = known
    .map((each) => ({ each, distance: distanceOf(wanted, each.toLowerCase()) }))
    .filter(({ each, distance }) => distance <= Math.max(2, Math.ceil(Math.min(each.length, name.length) / 3)))
    .sort((left, right) => left.distance - right.distance);
  return near[0]?.each;
}

/** Edit distance; a name that contains the other is near. */
function distanceOf(left: string, right: string): number {
  if (left.length >= 4 && right.length >= 4 && (left.includes(right) || right.includes(left))) return 1;
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let index = 0; index < left.length; index++) {
    const next = [index + 1];
    for (let place = 0; place < right.length; place++) {
      const change = (row[place] ?? 0) + (left[index] === right[place] ? 0 : 1);
      next.push(Math.min(change, (row[place + 1] ?? 0) + 1, (next[place] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
