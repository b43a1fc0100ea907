/**
 * Reads waiting messages and their predecessors. No locks; one snapshot per statement, READ
 * COMMITTED.
 */

import { literal } from "../sql/sql-names.ts";
import type { RelayStatements, TopicsRequest } from "../sql/statements.ts";
import { isWaiting, msSince, type Names, NOW, numberArray, textArray } from "./names.ts";

export function scanStatements(
  names: Names,
): Pick<
  RelayStatements,
  "scan" | "scanTopics" | "readBodies" | "nextTopics" | "keyQueues" | "readRows" | "lockFreeRows"
> {
  const texts = {
    all: scanText(names, { bodyLimit: "$4::bigint" }),
    some: scanText(names, { bodyLimit: "$4::bigint", shards: "$5::integer[]" }),
  };
  const readBodies = readBodiesText(names);
  const nextTopics = nextTopicsText(names);
  const keyQueues = { open: keyQueuesText(names, false), failed: keyQueuesText(names, true) };
  const readRows = readRowsText(names);
  const lockFreeRows = lockFreeRowsText(names);
  return {
    scan(request) {
      const { shards, afterId, bodyLimit, immediateLimit, dueLimit } = request;
      const limits = [afterId, immediateLimit, dueLimit, bodyLimit];
      if (shards === undefined) return { name: "scan", text: texts.all, params: limits };
      return { name: "scan", text: texts.some, params: [...limits, numberArray(shards)] };
    },
    scanTopics: (request) => ({ name: "scanTopics", text: scanTopicsText(names, request), params: [] }),
    readBodies: (ids) => ({ name: "readBodies", text: readBodies, params: [numberArray(ids)] }),
    nextTopics: (after) => ({ name: "nextTopics", text: nextTopics, params: [textArray(after)] }),
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

/** Sent before: a resend, outside its key's order (rule: key-order). */
function resend(names: Names): string {
  const proof = names.column.sentAt ?? names.column.messageId;
  return proof === undefined ? "0" : `CASE WHEN m.${proof} IS NULL THEN 0 ELSE 1 END`;
}

/**
 * Earliest time it could be sent. Without deliver_at, next_retry_at of a row never tried is its
 * delay (rule: delay-is-not-retry).
 */
function firstDueAt(names: Names): string {
  const { gmtCreate, deliverAt, nextRetryAt, retryCount } = names.column;
  if (deliverAt !== undefined) return `GREATEST(m.${gmtCreate}, m.${deliverAt})`;
  return `GREATEST(m.${gmtCreate}, CASE WHEN COALESCE(m.${retryCount}, 0) = 0 THEN m.${nextRetryAt} END)`;
}

/** SQL on which the body depends. `shards`: undefined = all. */
interface BodyWords {
  readonly bodyLimit: string;
  readonly shards?: string | undefined;
}

/**
 * The length is read without the value, even for TOAST: a scan of 500 rows of 400 or 4,000 bytes is
 * no slower.
 */
function scannedColumns(names: Names, { bodyLimit, shards }: BodyWords, due: string): string {
  const column = names.column;
  const bytes = `octet_length(${names.layout.bodyType === "binary" ? `m.${column.messageBody}` : names.body})`;
  const ours = shards === undefined ? "" : `${names.shard} = ANY (${shards})`;
  const fits = `${ours === "" ? "" : `${ours} AND `}${bytes} <= ${bodyLimit}`;
  const optional = (name: string | undefined, otherwise: string): string =>
    name === undefined ? otherwise : `m.${name}`;
  return `m.${column.id} AS id, ${names.shard} AS shard, m.${column.messageType} AS message_type, m.${column.messageKey} AS message_key,
    m.${column.topic} AS topic, CASE WHEN ${fits} THEN ${names.body} END AS message_body, ${names.headers ?? "NULL::text"} AS headers,
    ${optional(column.contentType, "NULL::text")} AS content_type, ${optional(column.orderingKey, "NULL::text")} AS ordering_key,
    m.${column.retryCount} AS retry_count, ${names.tokenColumns}, ${resend(names)} AS resend,
    ${msSince(firstDueAt(names))} AS waiting_ms, ${due} AS due,
    ${ours === "" ? bytes : `CASE WHEN ${ours} THEN ${bytes} ELSE 0 END`} AS body_bytes`;
}

/**
 * Two walks, waiting rows by id and due rows by time, each along a partial index in its order, so
 * each ends after LIMIT rows. A row of another shard counts toward the LIMIT and comes back without
 * its body (rule: bounded-scan), so the sweep knows how far the walk went. A row with only
 * deliver_at set, by plain SQL, is left out until it is due.
 */
function scanText(names: Names, body: BodyWords): string {
  const { id, state, nextRetryAt } = names.column;
  return `SELECT waiting.* FROM (
  (SELECT ${scannedColumns(names, body, "0")}
  FROM ${names.table} m
  WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} IS NULL AND m.${id} > $1::bigint${notDelayed(names)}${names.ofTopics}
  ORDER BY m.${id}
  LIMIT $2::bigint)
  UNION ALL
  (SELECT ${scannedColumns(names, body, "1")}
  FROM ${names.table} m
  WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} <= ${NOW}${names.ofTopics}
  ORDER BY m.${nextRetryAt}, m.${id}
  LIMIT $3::bigint)) waiting`;
}

function notDelayed({ column: { deliverAt } }: Names): string {
  return deliverAt === undefined ? "" : `\n    AND (m.${deliverAt} IS NULL OR m.${deliverAt} <= ${NOW})`;
}

/**
 * The same two walks per topic, along the partial index on waiting rows by topic. They find ids;
 * the rows are read by id. Rows without a time are ordered by (next_retry_at, id), which keeps the
 * planner off the primary key. Topics and limits are constants: a prepared plan for any topic would
 * walk all due rows.
 */
function scanTopicsText(names: Names, { bodyLimit, shards, topics }: TopicsRequest): string {
  const { id, topic, nextRetryAt } = names.column;
  const ofTopic = (value: string): string => `${isWaiting(names)} AND m.${topic} = ${literal(value)}`;
  const walk = (due: 0 | 1, where: string, limit: number): string => `(SELECT m.${id} AS id, ${due} AS due
  FROM ${names.table} m
  WHERE ${where}
  ORDER BY m.${nextRetryAt}, m.${id}
  LIMIT ${Math.trunc(limit)})`;
  const walks = topics.flatMap((one) => [
    ...(one.immediateLimit > 0
      ? [
          walk(
            0,
            `${ofTopic(one.topic)} AND m.${nextRetryAt} IS NULL AND m.${id} > ${one.afterId}${notDelayed(names)}`,
            one.immediateLimit,
          ),
        ]
      : []),
    ...(one.dueLimit > 0 ? [walk(1, `${ofTopic(one.topic)} AND m.${nextRetryAt} <= ${NOW}`, one.dueLimit)] : []),
  ]);
  const ours = shards === undefined ? undefined : literal(numberArray(shards)).concat("::integer[]");
  return `SELECT ${scannedColumns(names, { bodyLimit: String(Math.trunc(bodyLimit)), shards: ours }, "walked.due")}
FROM (
${walks.join("\nUNION ALL\n")}) walked
JOIN ${names.table} m ON m.${id} = walked.id`;
}

function readBodiesText(names: Names): string {
  const { id } = names.column;
  return `SELECT m.${id} AS id, ${names.body} AS message_body
FROM ${names.table} m
WHERE m.${id} = ANY ($1::bigint[])`;
}

/** min over a range of the index on waiting rows by topic: one lookup per topic. */
function nextTopicsText(names: Names): string {
  const { topic } = names.column;
  return `SELECT next.topic
FROM unnest($1::text[]) AS known (topic)
CROSS JOIN LATERAL (
  SELECT min(m.${topic}) AS topic FROM ${names.table} m WHERE ${isWaiting(names)} AND m.${topic} > known.topic) next`;
}

/**
 * For each key, the rows that may stand before its scanned ones (rule: key-order). The index lists
 * the same four states as this statement at its widest, so the planner can prove that it applies.
 * No COLLATE: a parameter takes the column's collation, and so its index; every deterministic
 * collation compares equal by bytes (rule: exact-bytes).
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

/** Takes the same lock as an UPDATE, for this short transaction only. */
function lockFreeRowsText(names: Names): string {
  const { id } = names.column;
  return `SELECT m.${id} AS id
FROM ${names.table} m
WHERE m.${id} = ANY ($1::bigint[])
ORDER BY m.${id}
FOR NO KEY UPDATE SKIP LOCKED`;
}

function readRowsText(names: Names): string {
  const { id, state } = names.column;
  return `SELECT m.${id} AS id, m.${state} AS state, ${names.tokenColumns}
FROM ${names.table} m
WHERE m.${id} = ANY ($1::bigint[])`;
}
