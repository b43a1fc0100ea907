/** Messages that wait for a confirmation. Nothing here locks. */
import type { UnconfirmedStatements } from "../sql/unconfirmed-statements.ts";
import { jsonIds, type Names, NOW } from "./names.ts";

export function unconfirmedStatements(names: Names): UnconfirmedStatements {
  const sent = `m.${names.column.state} = ${names.state("sent")}`;
  const { id, messageType, nextRetryAt } = names.column;
  const { confirmationTable, table, tableKey } = names;
  const counted = (condition: string): string =>
    `(SELECT m.${messageType} AS message_type FROM ${table} AS m WHERE ${sent} AND m.${nextRetryAt} ${condition} LIMIT ?) AS c`;
  return {
    /** A range of the index on the state and the time, in its order. */
    unconfirmed: (limit) => ({
      name: "unconfirmed",
      text: `SELECT CAST(m.${id} AS TEXT) AS id FROM ${table} AS m
WHERE ${sent} AND m.${nextRetryAt} IS NOT NULL ORDER BY m.${nextRetryAt} LIMIT ?`,
      params: [limit],
    }),

    countUnconfirmed: (limit) => ({
      name: "countUnconfirmed",
      text: `SELECT c.message_type AS message_type, 1 AS overdue, count(*) AS count FROM ${counted(`<= ${NOW}`)} GROUP BY c.message_type
UNION ALL
SELECT c.message_type, 0, count(*) FROM ${counted(`> ${NOW}`)} GROUP BY c.message_type
ORDER BY overdue DESC, count DESC, message_type`,
      params: [limit, limit],
    }),

    confirmedBy: (ids) => ({
      name: "confirmedBy",
      text: `SELECT CAST(c.message AS TEXT) AS id, c.consumer AS consumer FROM ${confirmationTable} AS c
WHERE c.table_name = ${tableKey} AND c.message IN (SELECT value FROM json_each(?))`,
      params: [jsonIds(ids)],
    }),

    lastConsumers: (limit) => ({
      name: "lastConsumers",
      text: `SELECT DISTINCT m.${messageType} AS message_type, c.consumer AS consumer
FROM (SELECT message, consumer FROM ${confirmationTable} WHERE table_name = ${tableKey} ORDER BY confirmed_at DESC LIMIT ?) AS c
JOIN ${table} AS m ON m.${id} = c.message`,
      params: [limit],
    }),
  };
}
