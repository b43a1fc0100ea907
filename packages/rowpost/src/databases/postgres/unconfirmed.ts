/** Messages that wait for a confirmation. Nothing here locks. */
import type { UnconfirmedStatements } from "../sql/unconfirmed-statements.ts";
import { type Names, NOW, numberArray } from "./names.ts";

export function unconfirmedStatements(names: Names): UnconfirmedStatements {
  const { confirmationTable, table, tableKey } = names;
  const { id, messageType, nextRetryAt, state } = names.column;
  const sent = `m.${state} = ${names.state("sent")}`;
  const counted = (condition: string): string =>
    `(SELECT m.${messageType} AS message_type FROM ${table} m WHERE ${sent} AND m.${nextRetryAt} ${condition} LIMIT $1::bigint) c`;
  return {
    /** A range of the index on timed rows, in its order. */
    unconfirmed: (limit) => ({
      name: "unconfirmed",
      text: `SELECT m.${id} AS id FROM ${table} m
WHERE ${sent} AND m.${nextRetryAt} IS NOT NULL ORDER BY m.${nextRetryAt}, m.${id} LIMIT $1::bigint`,
      params: [limit],
    }),

    countUnconfirmed: (limit) => ({
      name: "countUnconfirmed",
      text: `SELECT c.message_type, 1 AS overdue, count(*) AS count FROM ${counted(`<= ${NOW}`)} GROUP BY c.message_type
UNION ALL
SELECT c.message_type, 0, count(*) FROM ${counted(`> ${NOW}`)} GROUP BY c.message_type
ORDER BY overdue DESC, count DESC, message_type`,
      params: [limit],
    }),

    confirmedBy: (ids) => ({
      name: "confirmedBy",
      text: `SELECT c.message AS id, c.consumer FROM ${confirmationTable} c
WHERE c.table_name = ${tableKey} AND c.message = ANY ($1::bigint[])`,
      params: [numberArray(ids)],
    }),

    lastConsumers: (limit) => ({
      name: "lastConsumers",
      text: `SELECT DISTINCT m.${messageType} AS message_type, c.consumer
FROM (SELECT l.message, l.consumer FROM ${confirmationTable} l WHERE l.table_name = ${tableKey} ORDER BY l.confirmed_at DESC LIMIT $1::bigint) c
JOIN ${table} m ON m.${id} = c.message`,
      params: [limit],
    }),
  };
}
