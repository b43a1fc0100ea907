/**
 * Reads waiting messages and their predecessors. In WAL mode readers neither wait nor block others.
 */
import type { Statement } from "../../transactions/executor.ts";
import type { RelayStatements, TopicsRequest } from "../sql/statements.ts";
import { jsonIds, msSince, type Names, NOW } from "./names.ts";

export function scanStatements(
  names: Names,
): Pick<
  RelayStatements,
  "scan" | "scanTopics" | "readBodies" | "nextTopics" | "keyQueues" | "readRows" | "lockFreeRows"
> {
  const scan = scanText(names);
  const keyQueues = { open: keyQueuesText(names, false), failed: keyQueuesText(names, true) };
  const readRows = readRowsText(names);
  const { id, state, topic } = names.column;
  const readBodies = `SELECT CAST(m.${id} AS TEXT) AS id, ${names.body} AS message_body FROM ${names.table} AS m WHERE m.${id} IN (SELECT value FROM json_each(?))`;
  // min over a range of the index on waiting rows by topic: one lookup per topic. likely() keeps
  // the planner off the state index: 12 ms at 40,000.
  const nextTopics = `SELECT (SELECT min(m.${topic}) FROM ${names.table} AS m WHERE likely(m.${state} = ${names.state("pending")}) AND m.${topic} > known.value) AS topic
FROM json_each(?) AS known`;
  return {
    // One shard (rule: sqlite-handle): a request for shards comes from its owner.
    scan: ({ afterId, bodyLimit, immediateLimit, dueLimit }) => ({
      name: "scan",
      text: scan,
      params: [bodyLimit, afterId, immediateLimit, bodyLimit, dueLimit],
    }),
    scanTopics: (request) => scanTopics(names, request),
    readBodies: (ids) => ({ name: "readBodies", text: readBodies, params: [jsonIds(ids)] }),
    nextTopics: (after) => ({ name: "nextTopics", text: nextTopics, params: [JSON.stringify(after)] }),
    keyQueues: ({ keys, failedBlocks }) => ({
      name: "keyQueues",
      text: failedBlocks ? keyQueues.failed : keyQueues.open,
      params: [`[${keys.map(({ orderingKey, upToId }) => `[${JSON.stringify(orderingKey)},${upToId}]`).join(",")}]`],
    }),
    readRows: (ids) => ({ name: "readRows", text: readRows, params: [jsonIds(ids)] }),
    // SQLite has no row locks.
    lockFreeRows: (ids) => ({ name: "lockFreeRows", text: readRows, params: [jsonIds(ids)] }),
  };
}

/** Sent before: a resend, outside its key's order (rule: key-order). */
function resend(names: Names): string {
  const proof = names.column.sentAt ?? names.column.messageId;
  return proof === undefined ? "0" : `m.${proof} IS NOT NULL`;
}

/**
 * Earliest time it could be sent. Without deliver_at, next_retry_at of a row never tried is its
 * delay (rule: delay-is-not-retry).
 */
function firstDueAt(names: Names): string {
  const { gmtCreate, deliverAt, nextRetryAt, retryCount } = names.column;
  const delay =
    deliverAt === undefined ? `CASE WHEN COALESCE(m.${retryCount}, 0) = 0 THEN m.${nextRetryAt} END` : `m.${deliverAt}`;
  return `max(m.${gmtCreate}, COALESCE(${delay}, ''))`;
}

/** One parameter: the largest body that is returned. */
function scannedColumns(names: Names, due: string): string {
  const column = names.column;
  // Bytes: LENGTH of a text counts characters.
  const bytes = `LENGTH(CAST(m.${column.messageBody} AS BLOB))`;
  const optional = (name: string | undefined, otherwise: string): string =>
    name === undefined ? otherwise : `m.${name}`;
  return `CAST(m.${column.id} AS TEXT) AS id, 0 AS shard, m.${column.messageType} AS message_type, m.${column.messageKey} AS message_key,
    m.${column.topic} AS topic, CASE WHEN ${bytes} <= ? THEN ${names.body} END AS message_body, ${names.headers ?? "NULL"} AS headers,
    ${optional(column.contentType, "NULL")} AS content_type, ${optional(column.orderingKey, "NULL")} AS ordering_key,
    ${names.retryCount} AS retry_count, ${names.tokenColumns}, ${resend(names)} AS resend,
    ${msSince(firstDueAt(names))} AS waiting_ms, ${due} AS due, ${bytes} AS body_bytes`;
}

/**
 * Two walks along the index (state, next_retry_at), to which SQLite adds the id: waiting rows by
 * id, due rows by time. Each ends after LIMIT rows (rule: bounded-scan). A row with only deliver_at
 * set, by plain SQL, is left out until it is due.
 */
function scanText(names: Names): string {
  const { id, state, nextRetryAt } = names.column;
  return `SELECT * FROM (
  SELECT ${scannedColumns(names, "0")}
  FROM ${names.table} AS m
  WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} IS NULL AND m.${id} > CAST(? AS INTEGER)${notDelayed(names)}${names.ofTopics}
  ORDER BY m.${id}
  LIMIT ?)
UNION ALL
SELECT * FROM (
  SELECT ${scannedColumns(names, "1")}
  FROM ${names.table} AS m
  WHERE m.${state} = ${names.state("pending")} AND m.${nextRetryAt} <= ${NOW}${names.ofTopics}
  ORDER BY m.${nextRetryAt}, m.${id}
  LIMIT ?)`;
}

function notDelayed({ column: { deliverAt } }: Names): string {
  return deliverAt === undefined ? "" : `\n    AND (m.${deliverAt} IS NULL OR m.${deliverAt} <= ${NOW})`;
}

/**
 * The same two walks per topic, along the partial index on waiting rows by topic. They find ids
 * only; the rows are read by id.
 */
function scanTopics(names: Names, { bodyLimit, topics }: TopicsRequest): Statement {
  const { id, state, topic, nextRetryAt } = names.column;
  const ofTopic = `m.${state} = ${names.state("pending")} AND m.${topic} = ?`;
  const walks: string[] = [];
  const params: unknown[] = [];
  for (const one of topics) {
    if (one.immediateLimit > 0) {
      walks.push(`SELECT * FROM (SELECT m.${id} AS id, 0 AS due FROM ${names.table} AS m
  WHERE ${ofTopic} AND m.${nextRetryAt} IS NULL AND m.${id} > CAST(? AS INTEGER)${notDelayed(names)}
  ORDER BY m.${id}
  LIMIT ?)`);
      params.push(one.topic, one.afterId, one.immediateLimit);
    }
    if (one.dueLimit > 0) {
      walks.push(`SELECT * FROM (SELECT m.${id} AS id, 1 AS due FROM ${names.table} AS m
  WHERE ${ofTopic} AND m.${nextRetryAt} <= ${NOW}
  ORDER BY m.${nextRetryAt}, m.${id}
  LIMIT ?)`);
      params.push(one.topic, one.dueLimit);
    }
  }
  return {
    name: "scanTopics",
    text: `SELECT ${scannedColumns(names, "walked.due")}
FROM (
${walks.join("\nUNION ALL\n")}) AS walked
CROSS JOIN ${names.table} AS m ON m.${id} = walked.id`,
    params: [bodyLimit, ...params],
  };
}

/**
 * For each key, the rows that may stand before its scanned ones (rule: key-order), by the index on
 * keyed rows.
 */
function keyQueuesText(names: Names, failedBlocks: boolean): string {
  const { id, state, orderingKey, nextRetryAt, messageType } = names.column;
  if (orderingKey === undefined) return "SELECT NULL AS ordering_key, NULL AS id WHERE ? IS NULL";
  const states = failedBlocks
    ? names.state("pending", "sending", "failed", "suspended")
    : names.state("pending", "sending", "suspended");
  return `SELECT m.${orderingKey} AS ordering_key, CAST(m.${id} AS TEXT) AS id, m.${state} AS state,
  m.${state} = ${names.state("pending")} AND (m.${nextRetryAt} IS NULL OR m.${nextRetryAt} <= ${NOW}) AS due,
  ${resend(names)} AS resend, ${names.retryCount} AS retry_count, m.${messageType} AS message_type
FROM (SELECT value ->> 0 AS ordering_key, value ->> 1 AS up_to_id FROM json_each(?)) AS wanted
CROSS JOIN ${names.table} AS m ON m.${orderingKey} = wanted.ordering_key AND m.${id} <= wanted.up_to_id
WHERE m.${orderingKey} IS NOT NULL AND m.${state} IN (${states})
ORDER BY m.${orderingKey}, m.${id}`;
}

function readRowsText(names: Names): string {
  const { id, state } = names.column;
  return `SELECT CAST(m.${id} AS TEXT) AS id, m.${state} AS state, ${names.tokenColumns}
FROM ${names.table} AS m
WHERE m.${id} IN (SELECT value FROM json_each(?))`;
}
