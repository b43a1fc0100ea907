/**
 * An operator's name or reason may have a letter that the database's encoding lacks. It is written
 * in ASCII then: nobody who is called at night is refused for a letter.
 */
import { inAscii } from "../../runtime/ascii.ts";
import { clip } from "./rows.ts";

const AUTHOR_LENGTH = 64;
/** What carries an author and a reason among the values of a call, beside the call's own. */
const CARRIERS: ReadonlySet<string> = new Set(["action", "note", "filter"]);

/**
 * The same store; a call that the database refuses for a row is made once more with author and
 * reason in ASCII, other letters as \uXXXX. What was refused was rolled back. `reasonLength`: what
 * its tables take.
 */
export function inPlainWordsIfRefused<Store extends object>(
  store: Store,
  { isRowRefused, reasonLength }: { isRowRefused: (error: unknown) => boolean; reasonLength: number },
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
      return answer.catch((error: unknown) => {
        const again = given.map(plain);
        if (!isRowRefused(error) || again.every((each, index) => each === given[index])) throw error;
        return method(...again);
      });
    };
  const entries = Object.entries(store).map(([name, value]) => [
    name,
    typeof value === "function" ? repeating(value) : value,
  ]);
  return Object.fromEntries(entries) as Store;
}

function isText(value: unknown, length: number | undefined): value is string {
  return length !== undefined && typeof value === "string";
}

/** The same where nothing has to be replaced. */
function ascii(text: string, length: number | undefined): string {
  const replaced = inAscii(text);
  return replaced === text ? text : clip(replaced, length ?? AUTHOR_LENGTH);
}
