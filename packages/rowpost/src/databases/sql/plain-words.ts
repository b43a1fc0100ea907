/**
 * Writes an operator's name or reason in ASCII if the database's encoding lacks a letter, so that
 * nobody on call is refused. Values that select messages stay, and the error names the letter.
 */
import { inAscii } from "../../runtime/ascii.ts";
import type { InvalidMessageError } from "../../runtime/errors.ts";
import { lackedBy, letterRefused } from "./column-room.ts";
import { clip } from "./rows.ts";

const AUTHOR_LENGTH = 64;
/** Values of a call that carry an author and a reason, beside the call's own. */
const CARRIERS: ReadonlySet<string> = new Set(["action", "note", "filter"]);

/**
 * The same store. A call whose row the database refuses is repeated with author and reason in
 * ASCII, other letters as \uXXXX. `reasonLength`: what its tables hold.
 */
export function inPlainWordsIfRefused<Store extends object>(
  store: Store,
  {
    isRowRefused,
    lackedLetter,
    reasonLength,
  }: {
    isRowRefused: (error: unknown) => boolean;
    lackedLetter?: ((error: unknown) => string | undefined) | undefined;
    reasonLength: number;
  },
): Store {
  const lengths: Readonly<Record<string, number>> = { author: AUTHOR_LENGTH, reason: reasonLength };
  const plain = (given: unknown): unknown => {
    if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
    const changed = Object.entries(given).flatMap(([name, value]): [string, unknown][] => {
      const length = lengths[name];
      const other = CARRIERS.has(name) ? plain(value) : isText(value, length) ? ascii(value, length) : value;
      return other === value ? [] : [[name, other]];
    });
    return changed.length === 0 ? given : { ...given, ...Object.fromEntries(changed) };
  };
  const repeating =
    (method: (...given: unknown[]) => unknown) =>
    (...given: unknown[]): unknown => {
      const answer = method(...given);
      if (!(answer instanceof Promise)) return answer;
      const again = given.map(plain);
      const refuse = (error: unknown): never => {
        throw refusedLetter(again, lackedLetter?.(error), error) ?? error;
      };
      return answer.catch((error: unknown) => {
        if (!isRowRefused(error) || again.every((each, index) => each === given[index])) return refuse(error);
        return (method(...again) as Promise<unknown>).catch(refuse);
      });
    };
  const entries = Object.entries(store).map(([name, value]) => [
    name,
    typeof value === "function" ? repeating(value) : value,
  ]);
  return Object.fromEntries(entries) as Store;
}

/** The value with the letter; for "", the first with a letter that few character sets have. */
export function refusedLetter(
  given: unknown,
  letter: string | undefined,
  cause: unknown,
): InvalidMessageError | undefined {
  const look = (value: unknown, name: string): InvalidMessageError | undefined => {
    if (typeof value === "string") {
      const lacked = letter === "" ? (lackedBy("latin1", value) ?? lackedBy("ascii", value)) : letter;
      return lacked !== undefined && value.includes(lacked) ? letterRefused(`the ${name}`, lacked, cause) : undefined;
    }
    if (typeof value !== "object" || value === null) return undefined;
    for (const [property, each] of Object.entries(value)) {
      const found = look(each, Array.isArray(value) ? name : property);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return letter === undefined ? undefined : look(given, "value");
}

function isText(value: unknown, length: number | undefined): value is string {
  return length !== undefined && typeof value === "string";
}

/** Returns the same text if it is ASCII already. */
function ascii(text: string, length: number | undefined): string {
  const replaced = inAscii(text);
  return replaced === text ? text : clip(replaced, length ?? AUTHOR_LENGTH);
}
