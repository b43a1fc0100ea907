/**
 * Moving finished messages away (rule: checked-move): lock with the state, copy, delete, all in one
 * transaction of the flow.
 */
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

  /**
   * When the row got into this state: its own column where the layout has one, else its last
   * change.
   */
  function since(finished: "sent" | "consumed"): string {
    const property = finished === "sent" ? "sentAt" : "consumedAt";
    return names.has(property) ? `COALESCE(${column(property)}, ${column("gmtModified")})` : column("gmtModified");
  }

  return {
    /**
     * Looks at the next LIMIT rows of (state, NULL) by id and locks those of them that are old
     * enough, so its work is bounded also where none is. SKIP LOCKED: a row that somebody holds is
     * left for the next time. next_retry_at NULL is checked again under the lock.
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

    /** Reads `rows` entries of the index, and no row; no lock. */
    passFinished: ({ state: finished, afterId, rows }) => ({
      name: "passFinished",
      text: `SELECT ${column("id")} AS id FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${finishedRows(finished)} AND ${column("id")} > ? ORDER BY ${column("id")} LIMIT 1 OFFSET ${whole(rows - 1)}`,
      params: [afterId],
    }),

    /** The rows are locked by lockFinished or lockRows in the same transaction. */
    copyToArchive: (ids) => ({
      name: "copyToArchive",
      text: `INSERT INTO ${names.archive} (${copied.map(quoteName).join(", ")}, archived_at)
  SELECT ${copied.map((name) => `m.${quoteName(name)}`).join(", ")}, ${COMPANION_NOW}
  FROM ${idRows} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id`,
      params: [`[${ids.join(",")}]`],
    }),

    /** As copyToArchive; what was copied is what is deleted. */
    deleteRows: (ids) => ({
      name: "deleteRows",
      text: `DELETE m FROM ${idRows} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id`,
      params: [`[${ids.join(",")}]`],
    }),

    /** Locks rows of the archive, in the order of their age; nothing else writes old ones. */
    purgeArchive: ({ olderThanMs, limit }) => ({
      name: "purgeArchive",
      text: `DELETE FROM ${names.archive} WHERE archived_at <= ${COMPANION_NOW} - INTERVAL ? * 1000 MICROSECOND ORDER BY archived_at LIMIT ${whole(limit)}`,
      params: [olderThanMs],
    }),
  };
}
