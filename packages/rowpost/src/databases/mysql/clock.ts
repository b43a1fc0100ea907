/**
 * The clock of a message table in SQL. Every instant is written and compared by the server; only
 * durations come from the client.
 */
import type { TableLayout } from "../sql/layout.ts";

/** The companion tables are in UTC, whatever the clock of the message table is. */
export const COMPANION_NOW = "UTC_TIMESTAMP(3)";

const EPOCH_START = "TIMESTAMP'1970-01-01 00:00:00'";

export interface ClockWords {
  /** Now, in the precision of the message table. */
  readonly now: string;
  /** Now in milliseconds, for comparing and subtracting. */
  readonly nowMs: string;
  /**
   * The instant that many milliseconds from now (an SQL expression); never earlier, also where the
   * column has whole seconds.
   */
  readonly later: (milliseconds: string) => string;
  /** The instant that many milliseconds ago. */
  readonly ago: (milliseconds: number) => string;
  /** An instant, or deliver_at when that is later (rule: delay-is-not-retry). */
  readonly notBeforeDelivery: (instant: string) => string;
  /**
   * Value for next_retry_at of a row that may go at once: deliver_at when that is still ahead
   * (rule: delay-is-not-retry), else NULL.
   */
  readonly atOnce: string;
  /** Instant as ISO 8601 UTC text with milliseconds. */
  readonly iso: (expression: string) => string;
  /** An instant of the message table from epoch milliseconds. */
  readonly fromEpochMs: (expression: string) => string;
}

export function clockWords(layout: TableLayout, deliverAt: string | undefined): ClockWords {
  const utc = layout.clock === "utc";
  const nowMs = utc ? "UTC_TIMESTAMP(3)" : "NOW(3)";
  const nowSeconds = utc ? "UTC_TIMESTAMP()" : "NOW()";
  const toUtc = (expression: string): string =>
    utc ? expression : `CONVERT_TZ(${expression}, @@session.time_zone, '+00:00')`;
  return {
    now: layout.fractionDigits === 3 ? nowMs : nowSeconds,
    nowMs,
    later: (milliseconds) =>
      layout.fractionDigits === 3
        ? `${nowMs} + INTERVAL (${milliseconds}) * 1000 MICROSECOND`
        : // MySQL rounds a fraction to the nearest second and MariaDB cuts it off; the next whole second is never early on either.
          `${nowSeconds} + INTERVAL CEIL((MICROSECOND(${nowMs}) + (${milliseconds}) * 1000) / 1000000) SECOND`,
    ago: (milliseconds) => `${nowMs} - INTERVAL ${whole(milliseconds)} * 1000 MICROSECOND`,
    notBeforeDelivery: (instant) =>
      deliverAt === undefined ? instant : `GREATEST(COALESCE(${deliverAt}, ${instant}), ${instant})`,
    atOnce: deliverAt === undefined ? "NULL" : `IF(${deliverAt} > ${nowMs}, ${deliverAt}, NULL)`,
    iso: (expression) => `CONCAT(LEFT(DATE_FORMAT(${toUtc(expression)}, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z')`,
    fromEpochMs: (expression) => {
      const instant = `${EPOCH_START} + INTERVAL (${expression}) * 1000 MICROSECOND`;
      return utc ? instant : `CONVERT_TZ(${instant}, '+00:00', @@global.time_zone)`;
    },
  };
}

/**
 * A whole number as a literal: LIMITs and lists of shards, so that the optimizer sees the value and
 * no driver sends it as text.
 */
export function whole(value: number): string {
  return String(Math.max(0, Math.trunc(value)));
}
