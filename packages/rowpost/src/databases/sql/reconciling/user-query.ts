/**
 * Inserts the times into an operator's query, as literals made from numbers. Parameters would mix
 * with the query's question marks, and drivers disagree about those within texts.
 */
import { ConfigurationError } from "../../../runtime/errors.ts";

const TIME = /:(from|to)\b/y;
/** Not preceded by a character that could belong to it. */
const PARAMETER = /(?<![\w$])\$\d+/y;

export interface NamedTimes {
  readonly from: boolean;
  readonly to: boolean;
}

export function namedTimes(query: string, opaque: RegExp): NamedTimes {
  const named = { from: false, to: false };
  putTimes(query, opaque, (name) => {
    named[name] = true;
    return "";
  });
  return named;
}

/**
 * The query with `put` in place of `:from` and `:to` outside texts, names and comments. Throws
 * `ConfigurationError` for a second statement, an unbalanced closing parenthesis, a comment that
 * may be code, and a parameter.
 */
export function putTimes(query: string, opaque: RegExp, put: (name: "from" | "to") => string): string {
  const text = query.trim().replace(/;$/, "");
  let written = "";
  let depth = 0;
  for (let place = 0; place < text.length; ) {
    const skipped = at(opaque, text, place);
    if (skipped === undefined && text.startsWith("/*", place)) throw new ConfigurationError(ODD_COMMENT);
    const parameter = skipped === undefined ? at(PARAMETER, text, place) : undefined;
    if (parameter !== undefined) throw new ConfigurationError(noParameter(parameter));
    const time = skipped === undefined ? at(TIME, text, place) : undefined;
    const taken = skipped ?? time ?? text.charAt(place);
    written += time === undefined ? taken : put(time === ":from" ? "from" : "to");
    place += taken.length;
    if (taken === "(") depth += 1;
    if (taken === ")") depth -= 1;
    if (taken === ";" || depth < 0) throw new ConfigurationError(NOT_ONE);
  }
  if (text === "" || depth !== 0) throw new ConfigurationError(NOT_ONE);
  return written;
}

/** PostgreSQL would take it for a parameter of the surrounding statement. */
function noParameter(parameter: string): string {
  return `the query has the parameter ${parameter}, and nothing gives it a value: write the value itself, and :from and :to for the window`;
}

const NOT_ONE =
  "the query must be one SELECT that returns message_key, such as: SELECT order_no AS message_key FROM orders WHERE paid_at >= :from AND paid_at < :to";
const ODD_COMMENT =
  "the query has a comment that the database may run, or whose end cannot be told, such as /*! ... */; take it out";

function at(pattern: RegExp, text: string, place: number): string | undefined {
  pattern.lastIndex = place;
  return pattern.exec(text)?.[0];
}

/** Wall clock of a zone. Throws `ConfigurationError` for an unknown zone. */
export function wallClockOf(epochMs: number, timeZone: string): string {
  try {
    const format = new Intl.DateTimeFormat("sv-SE", {
      timeZone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hourCycle: "h23",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      fractionalSecondDigits: 3,
    });
    return format.format(epochMs).replace(",", ".");
  } catch (error) {
    throw new ConfigurationError(
      `${JSON.stringify(timeZone)} is no time zone; expected a name such as Asia/Shanghai, or +08:00`,
      { cause: error },
    );
  }
}
