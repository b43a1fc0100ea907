/** Log lines of the relay: JSON by pino, or for people on a terminal. */
import { styleText } from "node:util";
import { type DestinationStream, destination, pino, stdTimeFunctions } from "pino";
import type { Logger } from "rowpost";
import { type CommandContext, redact } from "./context.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Options of {@link createLog}. */
export interface LogOptions {
  readonly level: LogLevel;
  /** `json`: one object a line, for log collectors; `pretty`: for people. */
  readonly format: "json" | "pretty";
}

/**
 * Logs to standard error, since the broker stdout: uses standard output. Synchronous, so that a
 * line before a crash is not lost.
 */
export function createLog(context: CommandContext, options: LogOptions): Logger {
  const stream: DestinationStream =
    options.format === "json"
      ? withoutSecrets(context, destination({ dest: 2, sync: true }))
      : { write: (line) => void context.stderr.write(`${redact(context, prettyLine(line, context.colors))}\n`) };
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  return {
    debug: (message, fields) => log.debug(fields ?? {}, message),
    info: (message, fields) => log.info(fields ?? {}, message),
    warn: (message, fields) => log.warn(fields ?? {}, message),
    error: (message, fields) => log.error(fields ?? {}, message),
  };
}

function withoutSecrets(context: CommandContext, stream: DestinationStream): DestinationStream {
  return { write: (line) => stream.write(redact(context, line)) };
}

const LEVEL_COLORS: Readonly<Record<string, "gray" | "green" | "yellow" | "red">> = {
  debug: "gray",
  info: "green",
  warn: "yellow",
  error: "red",
};

/** `08:15:30.123 WARN  a message failed  id=4711 reason="HTTP_400: no such order"` */
function prettyLine(line: string, colors: boolean): string {
  const { level = "", time = "", msg = "", ...fields } = JSON.parse(line) as Record<string, unknown>;
  const name = String(level).toUpperCase().padEnd(5);
  const color = LEVEL_COLORS[String(level)];
  const rest = Object.entries(fields)
    .map(([key, value]) => ` ${key}=${fieldText(value)}`)
    .join("");
  return `${clockText(String(time))} ${colors && color !== undefined ? styleText(color, name) : name} ${String(msg)} ${rest}`;
}

function fieldText(value: unknown): string {
  if (typeof value === "string") return /^[\w:./@+-]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value);
}

/** Local time of day with milliseconds. */
function clockText(iso: string): string {
  const at = new Date(iso);
  const two = (number: number): string => String(number).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}
