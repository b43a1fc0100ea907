/** Messages that wait for a confirmation. Nothing here locks. */
import type { UnconfirmedStatements } from "../sql/unconfirmed-statements.ts";
import { whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

export function unconfirmedStatements(names: MysqlNames): UnconfirmedStatements {
  const { column, confirmations, messages, nowMs, state, tableKey } = names;
  const [id, time, type] = [column("id"), column("nextRetryAt"), column("messageType")];
  const counted = (condition: string, limit: number): string =>
    `(SELECT ${type} AS message_type FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${column("state")} = ${state("sent")} AND ${time} ${condition} LIMIT ${whole(limit)}) AS c`;
  return {
    /** A range of the index on the state and the time, in its order. */
    unconfirmed: (limit) => ({
      name: "unconfirmed",
      text: `SELECT ${id} AS id FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${column("state")} = ${state("sent")} AND ${time} IS NOT NULL ORDER BY ${time} LIMIT ${whole(limit)}`,
      params: [],
    }),

    countUnconfirmed: (limit) => ({
      name: "countUnconfirmed",
      text: `SELECT c.message_type AS message_type, 1 AS overdue, COUNT(*) AS count FROM ${counted(`<= ${nowMs}`, limit)} GROUP BY c.message_type
UNION ALL
SELECT c.message_type, 0, COUNT(*) FROM ${counted(`> ${nowMs}`, limit)} GROUP BY c.message_type
ORDER BY overdue DESC, count DESC, message_type`,
      params: [],
    }),

    confirmedBy: (ids) => ({
      name: "confirmedBy",
      text: `SELECT CAST(c.message AS CHAR) AS id, c.consumer AS consumer FROM ${confirmations} AS c
  WHERE c.table_name = ? AND c.message IN (${ids.join(", ")})`,
      params: [tableKey],
    }),

    lastConsumers: (limit) => ({
      name: "lastConsumers",
      text: `SELECT DISTINCT ${type} AS message_type, c.consumer AS consumer
  FROM (SELECT message, consumer FROM ${confirmations} WHERE table_name = ? ORDER BY confirmed_at DESC LIMIT ${whole(limit)}) AS c
  JOIN ${messages} AS m ON ${id} = c.message`,
      params: [tableKey],
    }),
  };
}
