import { inspect } from "node:util";
import type { LoggerService } from "@nestjs/common";
import { describeError, type Logger } from "rowpost";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Adapts Nest's logger, with pino or winston behind it: one line, with the fields after the text.
 */
export function fromNestLogger(logger: LoggerService): Logger {
  return {
    debug: (message, fields) => logger.debug?.(line(message, fields)),
    info: (message, fields) => logger.log(line(message, fields)),
    warn: (message, fields) => logger.warn(line(message, fields)),
    error: (message, fields) => logger.error(line(message, fields), ...stackOf(fields)),
  };
}

function line(message: string, fields: Fields = {}): string {
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${text(value)}`);
  return [message, ...shown].join(" ");
}

function text(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(describeError(value));
  return typeof value === "string" ? JSON.stringify(value) : inspect(value, { breakLength: Number.POSITIVE_INFINITY });
}

/** Nest prints a stack below the line. */
function stackOf(fields: Fields = {}): readonly string[] {
  const { error } = fields;
  return error instanceof Error && error.stack !== undefined ? [error.stack] : [];
}
