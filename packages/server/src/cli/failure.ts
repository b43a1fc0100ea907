import { CommanderError } from "commander";
import { ConfigurationError, describeError, RowpostError } from "rowpost";
import { type CommandContext, type ExitCode, redact } from "../context.ts";
import { CommandFailure, InputError } from "../failure.ts";

/** The library refused a name or a message before any SQL. */
const INPUT_CODES: ReadonlySet<string> = new Set(["INVALID_NAME", "INVALID_MESSAGE"]);

/** Prints the error as one line (with the stack when `verbose`) and returns the exit code. */
export function reportFailure(context: CommandContext, error: unknown, verbose: boolean): ExitCode {
  // commander has printed its own line; asking for help or the version is no failure.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const isInput =
    error instanceof InputError ||
    error instanceof ConfigurationError ||
    (error instanceof RowpostError && INPUT_CODES.has(error.code));
  // A driver's code says most; our errors are sentences.
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

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").trim();
}
