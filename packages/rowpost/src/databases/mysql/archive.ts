/** Moves finished messages away in one transaction of the flow (rule: checked-move). */
import { ENGINE_COLUMNS } from "../sql/layouts.ts";
import type { HousekeepingStatements } from "../sql/statements.ts";
import { COMPANION_NOW, whole } from "./clock.ts";
import { type MysqlNames, quoteName } from "./names.ts";

export function archiveStatements(
  names: MysqlNames,
): Pick<HousekeepingStatements, "lockFinished" | "passFinished" | "copyToArchive" | "deleteRows" | "purgeArchive"> {
  const { column, messages, state, layout } = names;
  const copied = Object.entries(layout.columns)
    .filter(([property, name]) => !ENGINE_COLUMNS.has(property) && name !== undefined)
    .map(([, name]) => String(name));
  const idRows = "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j";

  const finishedRows = (finished: "sent" | "consumed"): string =>
    `${column("state")} = ${state(finished)} AND ${column("nextRetryAt")} IS NULL`;

  /** When the row reached this state: its own column, else its last change. */
  function since(finished: "sent" | "consumed"): string {
    const property = finished === "sent" ? "sentAt" : "consumedAt";
    return names.has(property) ? `COALESCE(${column(property)}, ${column("gmtModified")})` : column("gmtModified");
  }

  return {
    /**
     * Reads the next LIMIT rows of (state, NULL) by id, which bounds the work, and locks old enough
     * ones. SKIP LOCKED leaves locked rows for the next run. next_retry_at NULL is checked again
     * under the lock.
     */
    lockFinished: ({ state: finished, olderThanMs, afterId, limit }) => ({
      name: "lockFinished",
      text: `SELECT ${column("id")} AS id
  FROM (SELECT ${column("id")} AS id FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${finishedRows(finished)} AND ${column("id")} > ? ORDER BY ${column("id")} LIMIT ${whole(limit)}) AS c
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = c.id
  WHERE ${finishedRows(finished)}
    AND ${since(finished)} <= ${names.nowMs} - INTERVAL ? * 1000 MICROSECOND${names.ofTopics}
  FOR UPDATE SKIP LOCKED`,
      params: [afterId, olderThanMs],
    }),

    /** Reads `rows` index entries and no row. No lock. */
    passFinished: ({ state: finished, afterId, rows }) => ({
      name: "passFinished",
      text: `SELECT ${column("id")} AS id FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${finishedRows(finished)} AND ${column("id")} > ? ORDER BY ${column("id")} LIMIT 1 OFFSET ${whole(rows - 1)}`,
      params: [afterId],
    }),

    /** lockFinished or lockRows has locked the rows. */
    copyToArchive: (ids) => ({
      name: "copyToArchive",
      text: `INSERT INTO ${names.archive} (${copied.map(quoteName).join(", ")}, archived_at)
  SELECT ${copied.map((name) => `m.${quoteName(name)}`).join(", ")}, ${COMPANION_NOW}
  FROM ${idRows} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id`,
      params: [`[${ids.join(",")}]`],
    }),

    /** Locked like copyToArchive, so exactly the copied rows are deleted. */
    deleteRows: (ids) => ({
      name: "deleteRows",
      text: `DELETE m FROM ${idRows} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id`,
      params: [`[${ids.join(",")}]`],
    }),

    /** Locks rows of the archive from the oldest on. No other statement writes old ones. */
    purgeArchive: ({ olderThanMs, limit }) => ({
      name: "purgeArchive",
      text: `DELETE FROM ${names.archive} WHERE archived_at <= ${COMPANION_NOW} - INTERVAL ? * 1000 MICROSECOND ORDER BY archived_at LIMIT ${whole(limit)}`,
      params: [olderThanMs],
    }),
  };
}
