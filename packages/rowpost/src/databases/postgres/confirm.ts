/** Reports of consumers, in users' transactions. */
import { confirmCalls } from "../sql/calls.ts";
import type { ConfirmStatements } from "../sql/confirm-statements.ts";
import { type Names, NOW, numberArray, textArray } from "./names.ts";
import { unknownStatements } from "./unknown.ts";

export function confirmStatements(names: Names): ConfirmStatements {
  const calls = confirmCalls(confirmTexts(names), {
    identity: ({ type, key }) => ({ type, key }),
    ids: numberArray,
    pairs: (pairs) => [numberArray(pairs.map(([id]) => id)), textArray(pairs.map(([, text]) => text))],
  });
  return {
    ...calls,
    ...unknownStatements(names),

    /*
     * Locks the rows in id order, like all statements. A row changed during the wait has a new
     * place and stays; the count shows it, and lockIdentities finds it. By places and from arrays,
     * 500 rows reach 0.92 of the rate of a bare UPDATE; by ids and from JSON 0.83 (PostgreSQL 15).
     * Not for a user's own table, where partitions may share places. If we die right after it, the
     * transaction rolls back, and the consumer confirms again.
     */
    confirmIdentities: names.layout.name === "default" ? confirmByPlace(names) : undefined,
  };
}

function confirmByPlace(names: Names): ConfirmStatements["confirmIdentities"] {
  const { column, table } = names;
  const { id, messageKey, messageType } = column;
  const text = `UPDATE ${table} m
SET ${consumeOf(names)}
WHERE m.ctid = ANY (ARRAY(
  SELECT m.ctid FROM unnest($1::text[], $2::text[]) AS wanted (type, key)
  JOIN ${table} m ON m.${messageType} = wanted.type AND m.${messageKey} = wanted.key
  WHERE ${openOf(names)}
  ORDER BY m.${id}
  FOR UPDATE OF m)) AND ${openOf(names)}`;
  return (list) => ({
    name: "confirmIdentities",
    text,
    params: [textArray(list.map(({ type }) => type)), textArray(list.map(({ key }) => key))],
  });
}

function openOf(names: Names): string {
  return `m.${names.column.state} IN (${names.from("confirm")}, ${names.from("confirmOvertakes")})`;
}

function consumeOf(names: Names): string {
  const { nextRetryAt, state } = names.column;
  const consumedAt = names.set("consumedAt", names.written("consumedAt", NOW));
  return `${state} = ${names.state("consumed")}, ${nextRetryAt} = NULL${consumedAt}${changed(names)}`;
}

/** `names.changed` for a session of the user's. */
function changed(names: Names): string {
  const version = names.set("lockVersion", `COALESCE(m.${names.column.lockVersion}, 0) + 1`);
  return `${version}${names.set("gmtModified", names.written("gmtModified", NOW))}`;
}

function confirmTexts(names: Names) {
  const { archive, column, confirmationTable, table, tableKey } = names;
  const { failReason, id, messageKey, messageType, nextRetryAt, state } = column;
  const open = openOf(names);
  const consume = consumeOf(names);
  const wanted = "json_to_recordset($1::text::json) AS wanted (type text, key text)";
  const same = `m.${messageType} = wanted.type AND m.${messageKey} = wanted.key`;
  const lock = (
    from: string,
    order: string,
  ): string => `SELECT m.${id}::text AS id, m.${messageType}::text COLLATE "C" AS messagetype, m.${messageKey}::text COLLATE "C" AS messagekey,
  m.${state}::text AS state, ${names.read("deliveryCount", "0")} AS deliverycount
FROM ${wanted} JOIN ${from} m ON ${same}
ORDER BY ${order}
FOR UPDATE OF m`;
  return {
    /* Locks the rows until the transaction ends. */
    lockIdentities: { messages: lock(table, `m.${id}`), archive: lock(archive, `m.archived_at, m.${id}`) },

    /* lockIdentities has locked the rows. */
    confirmRows: `UPDATE ${table} m
SET ${consume}
WHERE m.${id} = ANY ($1::bigint[]) AND ${open}`,

    /* lockIdentities has locked the rows. */
    confirmArchived: `UPDATE ${archive} m
SET ${consume}
FROM ${wanted}
WHERE ${same} AND ${open}`,

    /*
     * A new row version, so that a parallel confirmation with an older snapshot fails instead of
     * missing this one.
     */
    touchRows: `UPDATE ${table} m
SET ${changed(names).slice(2)}
WHERE m.${id} = ANY ($1::bigint[])`,

    /* lockIdentities has locked the rows. */
    reportFailed: `UPDATE ${table} m
SET ${failReason} = reported.reason, ${nextRetryAt} = ${names.written("nextRetryAt", NOW)}${changed(names)}
FROM unnest($1::bigint[], $2::text[]) AS reported (id, reason)
WHERE m.${id} = reported.id AND m.${state} = ${names.state("sent")}`,

    /* lockIdentities holds the messages, so no other transaction adds the same rows. */
    addConfirmations: `INSERT INTO ${confirmationTable} (table_name, message, consumer, confirmed_at)
SELECT ${tableKey}, added.id, added.consumer, ${NOW}
FROM unnest($1::bigint[], $2::text[]) AS added (id, consumer)
ON CONFLICT (table_name, message, consumer) DO NOTHING`,

    /* No lock: the messages are locked, and their earlier holders have committed. */
    readConfirmations: `SELECT c.message::text AS id, c.consumer::text COLLATE "C" AS consumer
FROM ${confirmationTable} c
WHERE c.table_name = ${tableKey} AND c.message = ANY ($1::bigint[])`,

    /*
     * Locks old entries, which no statement changes. If we die right after it, the expired entries
     * are gone.
     */
    forgetConfirmations: `DELETE FROM ${confirmationTable} WHERE ctid = ANY (ARRAY(
  SELECT c.ctid FROM ${confirmationTable} c
  WHERE c.table_name = ${tableKey} AND c.confirmed_at <= ${NOW} - $1::bigint * interval '1 millisecond'
  ORDER BY c.confirmed_at LIMIT $2::bigint))`,
  };
}
