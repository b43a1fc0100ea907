/**
 * The logger port. Silent unless the user hands one in; pino and console fit after a line of
 * adapting.
 */

/** Values beside a log line. An `error` field may hold an Error. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where log lines go. The message is a fixed English sentence; what varies stands in the fields.
 * Must not throw.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/**
 * The default: says nothing. A library that prints to a terminal it was not given is a nuisance.
 */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function ignore(): void {}
