/**
 * The clock of a message table. The server writes and compares every instant; the client sends only
 * durations.
 */
import type { TableLayout } from "../sql/layout.ts";

/** The companion tables use UTC, whatever clock the message table uses. */
export const COMPANION_NOW = "UTC_TIMESTAMP(3)";

const EPOCH_START = "TIMESTAMP'1970-01-01 00:00:00'";

export interface ClockWords {
  /** Current time in the precision of the message table. */
  readonly now: string;
  /** Current time in milliseconds, for comparing and subtracting. */
  readonly nowMs: string;
  /** Instant that many milliseconds from now (an SQL expression), never earlier. */
  readonly later: (milliseconds: string) => string;
  readonly ago: (milliseconds: number) => string;
  /** An instant, or deliver_at if that is later (rule: delay-is-not-retry). */
  readonly notBeforeDelivery: (instant: string) => string;
  /**
   * next_retry_at for a row that may be sent at once: deliver_at if in the future (rule:
   * delay-is-not-retry), else NULL.
   */
  readonly atOnce: string;
  /** Formats an instant as ISO 8601 UTC text with milliseconds. */
  readonly iso: (expression: string) => string;
  /** Converts a UTC instant to one of the message table. */
  readonly ofUtc: (expression: string) => string;
}

/** Formats a UTC instant with milliseconds as ISO 8601 text. */
export function isoText(expression: string): string {
  return `CONCAT(LEFT(DATE_FORMAT(${expression}, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z')`;
}

export function utcOfEpochMs(expression: string): string {
  return `${EPOCH_START} + INTERVAL (${expression}) * 1000 MICROSECOND`;
}

/**
 * Wall clock of a zone for a UTC instant, never reached early. In the hour that a zone repeats in
 * autumn, the plain conversion of the second pass matches during the first already. So the result
 * is the later of that and the wall clock one hour before plus one hour: the row waits for the end
 * of the second pass. Contains `utc`, and its parameters, twice.
 */
export function wallClockOnce(utc: string, zone: string): string {
  const wall = (instant: string): string => `CONVERT_TZ(${instant}, '+00:00', ${zone})`;
  return `GREATEST(${wall(utc)}, ${wall(`${utc} - INTERVAL 1 HOUR`)} + INTERVAL 1 HOUR)`;
}

export function clockWords(layout: TableLayout, deliverAt: string | undefined): ClockWords {
  const utc = layout.clock === "utc";
  const nowMs = utc ? "UTC_TIMESTAMP(3)" : "NOW(3)";
  const nowSeconds = utc ? "UTC_TIMESTAMP()" : "NOW()";
  const ahead = (milliseconds: string): string =>
    layout.fractionDigits === 3
      ? `UTC_TIMESTAMP(3) + INTERVAL (${milliseconds}) * 1000 MICROSECOND`
      : // MySQL rounds a fraction, MariaDB cuts it off; the next second is never early on either.
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
 * Whole number as a literal, for LIMITs and shard lists, where the optimizer must see the value.
 */
export function whole(value: number): string {
  return String(Math.max(0, Math.trunc(value)));
}

/**
 * Prefix for an UPDATE or DELETE with a join in a user's session: with sql_safe_updates MariaDB
 * refuses one that reads a whole table, JSON_TABLE included.
 */
export const NOT_SAFE = "/*M! SET STATEMENT sql_safe_updates = 0 FOR */ ";
