/** Explains a failed connection to the author of the address. */
import { codesOf } from "../../runtime/away.ts";
import {
  ConfigurationError,
  DatabaseUnavailableError,
  describeError,
  type RowpostError,
} from "../../runtime/errors.ts";

/** MySQL's numbers, SQLSTATEs, and system codes. */
const NO_DATABASE = new Set(["1049", "3D000"]);
const NO_ACCESS = new Set(["1044", "1045", "1698", "28000", "28P01"]);
const NO_HOST = new Set(["ENOTFOUND", "EAI_AGAIN"]);
const NO_SERVER = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH"]);
/** mariadb has a number for it; pg has words. */
const NO_ANSWER = new Set(["ETIMEDOUT", "45012"]);

/**
 * Translates a driver's error while connecting to `label`, an address without a password; undefined
 * for other errors.
 */
export function connectFailure(error: unknown, label: string): RowpostError | undefined {
  const codes = codesOf(error);
  const code = (set: ReadonlySet<string>): string | undefined => codes.find((each) => set.has(each));
  if (code(NO_DATABASE) !== undefined) {
    const [, server, name] = /^(.*[^/])\/([^/]+)$/.exec(label) ?? [];
    const create = name === undefined ? "create it first" : `create it first (CREATE DATABASE ${name})`;
    return new ConfigurationError(
      `there is no database ${name ?? "of this name"} on ${server ?? label} (${describeError(error)}); ${create}`,
      { cause: error },
    );
  }
  if (code(NO_ACCESS) !== undefined) {
    return new ConfigurationError(
      `${label} refuses this user or password (${describeError(error)}); in a URL a password is percent-encoded, and rowpost's commands also take it from ROWPOST_DATABASE_PASSWORD`,
      { cause: error },
    );
  }
  const host = code(NO_HOST);
  if (host !== undefined) {
    return new DatabaseUnavailableError(`the host of ${label} is not known (${host}); check its name`, {
      cause: error,
    });
  }
  const server = code(NO_SERVER);
  if (server !== undefined) {
    return new DatabaseUnavailableError(
      `no database answers at ${label} (${server}); is it running, and are host and port right?`,
      { cause: error },
    );
  }
  const timedOut = error instanceof Error && /timeout expired/.test(error.message);
  if (!timedOut && code(NO_ANSWER) === undefined) return undefined;
  return new DatabaseUnavailableError(
    `no database answers at ${label} (${describeError(error)}); is it running, are host and port right, and is it the port of this kind of database? Another kind waits as well`,
    { cause: error },
  );
}
