/** The logger port. Pino and console fit after a line of adapting. */
import { formatWithOptions } from "node:util";

/** Values beside a log line. An `error` field may hold an Error. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where log lines go. The message is a fixed English sentence; what varies stands in the fields.
 * Must not throw.
 */
export interface Logger {
  /** What only a developer wants to know. */
  debug(message: string, fields?: LogFields): void;
  /** Starts, stops and takeovers. */
  info(message: string, fields?: LogFields): void;
  /** Works, but somebody should know. */
  warn(message: string, fields?: LogFields): void;
  /** Somebody has to act. */
  error(message: string, fields?: LogFields): void;
}

/** Says nothing. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/**
 * The default: warnings and errors, each a line on standard error. Of trouble somebody has to hear,
 * also in a program that has set up no log.
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
