/** Reading: what waits, and what stands in front of it. No locks; one snapshot each, READ COMMITTED. */
import type { RelayStatements } from "../sql/statements.ts";
import { epochMs, msSince, type Names, NOW, numberArray, textArray } from "./names.ts";

/** Statements that read messages for the relay. */
export function scanStatements(
  names: Names,
): Pick<RelayStatements, "scan" | "keyQueues" | "readRows" | "lockFreeRows"> {
  const body = `m.${names.column.messageBody}`;
  const texts = {
    all: scanText(names, body),
    some: scanText(names, `CASE WHEN ${names.shard} = ANY ($4::integer[]) THEN ${body} END`),
  };
  const keyQueues = { open: keyQueuesText(names, false), failed: keyQueuesText(names, true) };
  const readRows = readRowsText(names);
  const lockFreeRows = lockFreeRowsText(names);
  return {
    scan(request) {
      const { shards, afterId, immediateLimit, dueLimit } = request;
      const limits = [afterId, immediateLimit, dueLimit];
      if (shards === undefined) return { name: "scan", text: texts.all, params: limits };
      return { name: "scan", text: texts.some, params: [...limits, numberArray(shards)] };
    },
    keyQueues({ keys, failedBlocks }) {
      return {
        name: "keyQueues",
        text: failedBlocks ? keyQueues.failed : keyQueues.open,
        params: [textArray(keys.map((key) => key.orderingKey)), numberArray(keys.map((key) => key.upToId))],
      };
    },
    readRows(ids) {
      return { name: "readRows", text: readRows, params: [numberArray(ids)] };
    },
    lockFreeRows(ids) {
      return { name: "lockFreeRows", text: lockFreeRows, params: [numberArray(ids)] };
    },
  };
}

/** It was sent before: a resend, outside its key's order (rule R1). */
function resend(names: Names): string {
  const proof = names.column.sentAt ?? names.column.messageId;
  return proof === undefined ? "0" : `CASE WHEN m.${proof} IS NULL THEN 0 ELSE 1 END`;
}

/** When it could first be sent. Without deliver_at, next_retry_at of a row never tried is its delay (rule R10). */
function firstDueAt(names: Names): string {
  const { gmtCreate, deliverAt, nextRetryAt, retryCount } = names.column;
  if (deliverAt !== undefined) return `GREATEST(m.${gmtCreate}, m.${deliverAt})`;
  return `GREATEST(m.${gmtCreate}, CASE WHEN COALESCE(m.${retryCount}, 0) = 0 THEN m.${nextRetryAt} END)`;
}

function scannedColumns(names: Names, body: string, due: 0 | 1): string {
  const column = names.column;
  const optional = (name: string | undefined, otherwise: string): string =>
    name === undefined ? otherwise : `m.${name}`;
  const deliverAtMs = column.deliverAt === undefined ? "NULL::bigint" : epochMs(`m.${column.deliverAt}`);
  return `m.${column.id} AS id, ${names.shard} AS shard, m.${column.messageType} AS message_type, m.${column.messageKey} AS message_key,
    m.${column.topic} AS topic, ${body} AS message_body, ${optional(column.headers, "NULL::text")} AS headers,
    ${optional(column.contentType, "NULL::text")} AS content_type, ${optional(column.orderingKey, "NULL::text")} AS ordering_key,
    m.${column.retryCount} AS retry_count, ${optional(column.deliveryCount, "0")} AS delivery_count,
    ${optional(column.lockVersion, "0::bigint")} AS lock_version, ${deliverAtMs} AS deliver_at_ms, ${resend(names)} AS resend,
    ${msSince(firstDueAt(names))} AS waiting_ms, ${due} AS due`;
}

/**
 * Two walks, each along a partial index that is in the order of its ORDER BY, so that each ends after LIMIT rows whatever else is in the
 * table: the waiting rows by id, and the rows whose time has come by time. A row of a shard that is not asked for takes its place in the
 * LIMIT and comes back without its body (rule R12): the walk stays bounded, and the sweep knows how far it went. A program that inserts with
 * plain SQL may have set deliver_at alone; such a row is waiting, and is left out here until it is due.
 */
function scanText(names: Names, body: string): string {
  const { id, state, nextRetryAt, deliverAt } = names.column;
  const notDelayed = deliverAt === undefined ? "" : `\n    AND (m.${deliverAt} IS NULL OR m.${deliverAt} <= ${NOW})`;
  return `SELECT waiting.* FROM (
  (SELECT ${scannedColumns(names, body, 0)}
  FROM ${names.table} m
  WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} IS NULL AND m.${id} > $1::bigint${notDelayed}
  ORDER BY m.${id}
  LIMIT $2::bigint)
  UNION ALL
  (SELECT ${scannedColumns(names, body, 1)}
  FROM ${names.table} m
  WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} <= ${NOW}
  ORDER BY m.${nextRetryAt}, m.${id}
  LIMIT $3::bigint)) waiting`;
}

/**
 * For each key the rows that may stand in front of its scanned ones (rule R1), by the index on unfinished keyed rows. The index lists the same
 * four states as this statement at its widest, so that the planner can prove that it holds them all. No COLLATE: a parameter takes the column's
 * collation, ours or that of a user's own table, and with it the index; every deterministic collation is equal by bytes (rule R7).
 */
function keyQueuesText(names: Names, failedBlocks: boolean): string {
  const { id, state, orderingKey, nextRetryAt, retryCount, messageType } = names.column;
  if (orderingKey === undefined) {
    return `SELECT NULL::text AS ordering_key, NULL::bigint AS id WHERE false AND $1::text IS NOT NULL AND $2::text IS NOT NULL`;
  }
  const states = failedBlocks
    ? names.state("pending", "sending", "failed", "suspended")
    : names.state("pending", "sending", "suspended");
  return `SELECT m.${orderingKey} AS ordering_key, m.${id} AS id, m.${state} AS state,
  CASE WHEN m.${state} = ${names.state("pending")} AND (m.${nextRetryAt} IS NULL OR m.${nextRetryAt} <= ${NOW}) THEN 1 ELSE 0 END AS due,
  ${resend(names)} AS resend, m.${retryCount} AS retry_count, m.${messageType} AS message_type
FROM unnest($1::text[], $2::bigint[]) AS wanted (ordering_key, up_to_id)
JOIN ${names.table} m ON m.${orderingKey} = wanted.ordering_key AND m.${id} <= wanted.up_to_id
WHERE m.${orderingKey} IS NOT NULL AND m.${state} IN (${states})
ORDER BY m.${orderingKey}, m.${id}`;
}

/** The lock that an UPDATE takes anyway; whoever waits for it waits for this short transaction. */
function lockFreeRowsText(names: Names): string {
  const { id } = names.column;
  return `SELECT m.${id} AS id
FROM ${names.table} m
WHERE m.${id} = ANY ($1::bigint[])
ORDER BY m.${id}
FOR NO KEY UPDATE SKIP LOCKED`;
}

function readRowsText(names: Names): string {
  const { id, state, deliveryCount, lockVersion } = names.column;
  return `SELECT m.${id} AS id, m.${state} AS state,
  ${deliveryCount === undefined ? "0" : `m.${deliveryCount}`} AS delivery_count,
  ${lockVersion === undefined ? "0::bigint" : `m.${lockVersion}`} AS lock_version
FROM ${names.table} m
WHERE m.${id} = ANY ($1::bigint[])`;
}
