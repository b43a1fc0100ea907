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
  /** An instant of the message table from one in UTC. */
  readonly ofUtc: (expression: string) => string;
}

/** A UTC instant with milliseconds as ISO 8601 text. */
export function isoText(expression: string): string {
  return `CONCAT(LEFT(DATE_FORMAT(${expression}, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z')`;
}

/** Epoch milliseconds as a UTC instant. */
export function utcOfEpochMs(expression: string): string {
  return `${EPOCH_START} + INTERVAL (${expression}) * 1000 MICROSECOND`;
}

/**
 * The wall clock of a zone at a UTC instant that a row waits for: one that the wall clock does not
 * show before. In the hour that a zone repeats in autumn, the plain conversion of its second pass
 * was shown in the first one already. So what an hour before has, an hour later, counts too: the
 * row waits for the end of the second pass. Everywhere else both are the same, or the first is
 * later. `utc` stands in it twice, and with it its parameters.
 */
export function wallClockOnce(utc: string, zone: string): string {
  const wall = (instant: string): string => `CONVERT_TZ(${instant}, '+00:00', ${zone})`;
  return `GREATEST(${wall(utc)}, ${wall(`${utc} - INTERVAL 1 HOUR`)} + INTERVAL 1 HOUR)`;
}

export function clockWords(layout: TableLayout, deliverAt: string | undefined): ClockWords {
  const utc = layout.clock === "utc";
  const nowMs = utc ? "UTC_TIMESTAMP(3)" : "NOW(3)";
  const nowSeconds = utc ? "UTC_TIMESTAMP()" : "NOW()";
  /** In UTC. */
  const ahead = (milliseconds: string): string =>
    layout.fractionDigits === 3
      ? `UTC_TIMESTAMP(3) + INTERVAL (${milliseconds}) * 1000 MICROSECOND`
      : // MySQL rounds a fraction to the nearest second and MariaDB cuts it off; the next whole second is never early on either.
        `UTC_TIMESTAMP() + INTERVAL CEIL((MICROSECOND(UTC_TIMESTAMP(3)) + (${milliseconds}) * 1000) / 1000000) SECOND`;
  const toUtc = (expression: string): string =>
    utc ? expression : `CONVERT_TZ(${expression}, @@session.time_zone, '+00:00')`;
  return {
    now: layout.fractionDigits === 3 ? nowMs : nowSeconds,
    nowMs,
    later: (milliseconds) => (utc ? ahead(milliseconds) : wallClockOnce(ahead(milliseconds), "@@session.time_zone")),
    ago: (milliseconds) => `${nowMs} - INTERVAL ${whole(milliseconds)} * 1000 MICROSECOND`,
    notBeforeDelivery: (instant) =>
      deliverAt === undefined ? instant : `GREATEST(COALESCE(${deliverAt}, ${instant}), ${instant})`,
    atOnce: deliverAt === undefined ? "NULL" : `IF(${deliverAt} > ${nowMs}, ${deliverAt}, NULL)`,
    iso: (expression) => isoText(toUtc(expression)),
    ofUtc: (expression) => (utc ? expression : `CONVERT_TZ(${expression}, '+00:00', @@global.time_zone)`),
  };
}

/**
 * A whole number as a literal: LIMITs and lists of shards, so that the optimizer sees the value and
 * no driver sends it as text.
 */
export function whole(value: number): string {
  return String(Math.max(0, Math.trunc(value)));
}

/**
 * Before an UPDATE or DELETE of a join that may run in a session of the user's. With
 * sql_safe_updates MariaDB refuses each that reads one of its tables as a whole, JSON_TABLE too.
 */
export const NOT_SAFE = "/*M! SET STATEMENT sql_safe_updates = 0 FOR */ ";
