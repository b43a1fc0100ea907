/**
 * Limits a log: of each sentence, topic and cause the first lines per minute, then the number of
 * the others.
 */
import { type Clock, createSystemClock, type Timer } from "./clock.ts";
import { describeError } from "./errors.ts";
import type { LogFields, Logger } from "./logger.ts";

/** Lines of one kind per minute; the others are counted. */
const LINES = 5;
const WINDOW_MS = 60_000;
/** Beyond this many kinds per minute the cause is ignored. */
const MOST_KINDS = 1_000;

type Level = "warn" | "error";

interface Kind {
  readonly level: Level;
  readonly message: string;
  count: number;
  last: LogFields;
}

/** Its timers keep no process alive. */
export function fewLines(logger: Logger, clock: Clock = createSystemClock({ unref: true })): Logger {
  const kinds = new Map<string, Kind>();
  let endsMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  function endWindow(): void {
    timer?.cancel();
    timer = undefined;
    endsMs = Number.NEGATIVE_INFINITY;
    for (const { count, last, level, message } of kinds.values())
      if (count > LINES) logger[level](message, { ...last, more: count - LINES, withinMs: WINDOW_MS });
    kinds.clear();
  }

  function log(level: Level, message: string, fields: LogFields = {}): void {
    if (clock.monotonicMs() >= endsMs) {
      endWindow();
      endsMs = clock.monotonicMs() + WINDOW_MS;
    }
    const kind = kindOf({ level, message, fields });
    kind.count += 1;
    kind.last = fields;
    if (kind.count <= LINES) logger[level](message, fields);
    else timer ??= clock.setTimer(endWindow, endsMs - clock.monotonicMs());
  }

  function kindOf({ fields, level, message }: { level: Level; message: string; fields: LogFields }): Kind {
    const of = fields["topic"] ?? fields["type"];
    const about = `${message}\n${typeof of === "string" ? of : ""}\n`;
    const exact = about + causeOf(fields);
    const key = kinds.has(exact) || kinds.size < MOST_KINDS ? exact : about;
    const known = kinds.get(key) ?? { level, message, count: 0, last: fields };
    kinds.set(key, known);
    return known;
  }

  return {
    debug: (message, fields) => logger.debug(message, fields),
    info: (message, fields) => logger.info(message, fields),
    warn: (message, fields) => log("warn", message, fields),
    error: (message, fields) => log("error", message, fields),
  };
}

/** Without varying ids and numbers. */
function causeOf({ error, reason }: LogFields): string {
  const words = typeof reason === "string" ? reason : error === undefined ? "" : describeError(error);
  return words.replace(/[0-9a-f-]*\d[0-9a-f-]*/gi, "#").slice(0, 100);
}
