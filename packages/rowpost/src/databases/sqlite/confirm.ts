/** Reports of consumers, in users' transactions. The first write locks the whole file. */
import { allowedFrom } from "../../message/states.ts";
import { confirmCalls } from "../sql/calls.ts";
import type { ConfirmStatements } from "../sql/confirm-statements.ts";
import { before, jsonIds, type Names, NOW } from "./names.ts";
import { unknownStatements } from "./unknown.ts";

const OPEN = [...allowedFrom("confirm"), ...allowedFrom("confirmOvertakes")] as const;

export function confirmStatements(names: Names): ConfirmStatements {
  const calls = confirmCalls(confirmTexts(names), {
    identity: ({ type, key }) => [type, key],
    ids: jsonIds,
    pairs: (pairs) => [`[${pairs.map(([id, text]) => `[${id},${JSON.stringify(text)}]`).join(",")}]`],
  });
  return { ...calls, ...unknownStatements(names) };
}

function confirmTexts(names: Names) {
  const { archive, column, confirmationTable, table, tableKey } = names;
  const { failReason, id, messageKey, messageType, nextRetryAt, state } = column;
  const consume = `${state} = ${names.state("consumed")}, ${nextRetryAt} = NULL${names.set("consumedAt", NOW)}${names.changed}`;
  const open = names.isIn(...OPEN);
  const wanted =
    "(SELECT json_extract(value, '$[0]') AS type, json_extract(value, '$[1]') AS key FROM json_each(?)) AS wanted";
  const same = `m.${messageType} = wanted.type AND m.${messageKey} = wanted.key`;
  const pairs = "SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS text FROM json_each(?)";
  const look = (
    from: string,
    order: string,
  ): string => `SELECT CAST(m.${id} AS TEXT) AS id, m.${messageType} AS messagetype, m.${messageKey} AS messagekey,
  m.${state} AS state, ${names.read("deliveryCount", "0")} AS deliverycount
FROM ${wanted} CROSS JOIN ${from} AS m ON ${same}
ORDER BY ${order}`;
  return {
    confirmIdentities: `UPDATE ${table} AS m
SET ${consume}
FROM ${wanted}
WHERE ${same} AND ${open}`,
    lockIdentities: { messages: look(table, `m.${id}`), archive: look(archive, `m.archived_at, m.${id}`) },
    confirmRows: `UPDATE ${table} AS m
SET ${consume}
WHERE m.${id} IN (SELECT value FROM json_each(?)) AND ${open}`,
    confirmArchived: `UPDATE ${archive} AS m
SET ${consume}
FROM ${wanted}
WHERE ${same} AND ${open}`,
    touchRows: `UPDATE ${table} AS m
SET ${names.changed.slice(2)}
WHERE m.${id} IN (SELECT value FROM json_each(?))`,
    reportFailed: `UPDATE ${table} AS m
SET ${failReason} = reported.text, ${nextRetryAt} = ${NOW}${names.changed}
FROM (${pairs}) AS reported
WHERE m.${id} = reported.id AND ${names.isIn("sent")}`,
    // "WHERE true" keeps the parser from reading ON CONFLICT as a join condition.
    addConfirmations: `INSERT INTO ${confirmationTable} (table_name, message, consumer, confirmed_at)
SELECT ${tableKey}, added.id, added.text, ${NOW}
FROM (${pairs}) AS added
WHERE true
ON CONFLICT (table_name, message, consumer) DO NOTHING`,
    readConfirmations: `SELECT CAST(c.message AS TEXT) AS id, c.consumer AS consumer
FROM json_each(?) AS asked
CROSS JOIN ${confirmationTable} AS c ON c.table_name = ${tableKey} AND c.message = asked.value`,
    forgetConfirmations: `DELETE FROM ${confirmationTable} WHERE (table_name, message, consumer) IN (
  SELECT table_name, message, consumer FROM ${confirmationTable}
  WHERE table_name = ${tableKey} AND confirmed_at <= ${before("?")}
  ORDER BY confirmed_at LIMIT ?)`,
  };
}
