/** What is told when a command fails: one line and an exit code. */
import { CommanderError } from "commander";
import { ConfigurationError, describeError, RowpostError } from "rowpost";
import { InputError } from "./arguments.ts";
import { type CommandContext, type ExitCode, redact } from "./context.ts";

/** An error whose message is already the line to print; exit code 1. */
export class CommandFailure extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CommandFailure";
  }
}

/** The library refused a name or a message before any SQL. */
const INPUT_CODES: ReadonlySet<string> = new Set(["INVALID_NAME", "INVALID_MESSAGE"]);

/**
 * Prints what went wrong, as one line (with the stack when `verbose`), and returns the exit code.
 */
export function reportFailure(context: CommandContext, error: unknown, verbose: boolean): ExitCode {
  // commander has printed its own line; asking for help or the version is no failure.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const isInput =
    error instanceof InputError ||
    error instanceof ConfigurationError ||
    (error instanceof RowpostError && INPUT_CODES.has(error.code));
  // A driver's error says most by its code; ours are sentences.
  const isSentence = isInput || error instanceof CommandFailure || error instanceof RowpostError;
  const text = isSentence ? error.message : describeError(error);
  context.stderr.write(`rowpost: ${oneLine(redact(context, text))}\n`);
  if (verbose) {
    for (let each: unknown = error; each instanceof Error; each = each.cause) {
      context.stderr.write(`${redact(context, each.stack ?? each.message)}\n`);
    }
  }
  return isInput ? 2 : 1;
}

/** Texts of servers may have several lines. */
function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").trim();
}

/**
 * Codes of the servers' and the system's errors, found wherever a driver or rowpost has put the
 * original one: SQLSTATE or MySQL's number as text, ECONNREFUSED and its like.
 */
export function errorCodes(error: unknown, depth = 0): readonly string[] {
  if (typeof error !== "object" || error === null || depth > 5) return [];
  const { code, errno, cause, errors } = error as Record<"code" | "errno" | "cause" | "errors", unknown>;
  const own = [code, errno].filter((value) => typeof value === "string" || typeof value === "number").map(String);
  // Node gathers the failures of several addresses of one host (::1 and 127.0.0.1) in an
  // AggregateError.
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [...own, ...inner.flatMap((each) => errorCodes(each, depth + 1))];
}
