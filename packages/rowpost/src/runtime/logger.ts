/** The logger port. Pino and console need one line of adapting. */
import { formatWithOptions } from "node:util";

/** Values beside a log line. An `error` field may hold an Error. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Destination of log lines. The message is a fixed English sentence; variable parts are in the
 * fields. Must not throw.
 */
export interface Logger {
  /** For developers. */
  debug(message: string, fields?: LogFields): void;
  /** Starts, stops and takeovers. */
  info(message: string, fields?: LogFields): void;
  /** Works, but needs attention. */
  warn(message: string, fields?: LogFields): void;
  /** Requires action. */
  error(message: string, fields?: LogFields): void;
}

/** Discards everything. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/**
 * The default: warnings and errors, one line each on standard error, so that problems show without
 * a configured log.
 */
export const stderrLogger: Logger = {
  debug: ignore,
  info: ignore,
  warn: (message, fields) => console.warn(line("WARN", message, fields)),
  error: (message, fields) => console.error(line("ERROR", message, fields)),
};

/** `rowpost WARN a message failed { id: '4711', reason: 'HTTP_400: no such order' }` */
function line(level: string, message: string, fields: LogFields = {}): string {
  const rest = Object.keys(fields).length === 0 ? [] : [fields];
  return formatWithOptions(
    { breakLength: Number.POSITIVE_INFINITY, depth: 4 },
    "rowpost %s %s",
    level,
    message,
    ...rest,
  );
}

function ignore(): void {}
