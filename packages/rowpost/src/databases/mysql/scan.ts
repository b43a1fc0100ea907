/** Finding waiting messages: the scan, and the queues of ordering keys. Plain reads in READ COMMITTED; they lock nothing and wait for nobody. */
import type { RelayStatements } from "../sql/statements.ts";
import { BYTES_COLLATION, type MysqlNames, whole } from "./names.ts";

export function scanStatements(names: MysqlNames): Pick<RelayStatements, "scan" | "keyQueues"> {
  const { column, select, messages, state } = names;
  const resend = names.has("sentAt")
    ? `(${column("sentAt")} IS NOT NULL)`
    : names.has("messageId")
      ? `(${column("messageId")} IS NOT NULL)`
      : "0";
  const isDue = `(${column("nextRetryAt")} IS NULL OR ${column("nextRetryAt")} <= ${names.nowMs})`;

  function fields(body: string, since: string): string {
    return `${column("id")} AS id, ${names.shardOf} AS shard, ${column("messageType")} AS message_type, ${column("messageKey")} AS message_key,
    ${column("topic")} AS topic, ${body} AS message_body, ${select("headers", "headers", "NULL")}, ${select("contentType", "content_type", "NULL")},
    ${select("orderingKey", "ordering_key", "NULL")}, ${column("retryCount")} AS retry_count, ${select("deliveryCount", "delivery_count", "0")},
    ${select("lockVersion", "lock_version", "0")}, ${names.has("deliverAt") ? names.epochMs(column("deliverAt")) : "NULL"} AS deliver_at_ms,
    ${resend} AS resend, TIMESTAMPDIFF(MICROSECOND, ${since}, ${names.nowMs}) DIV 1000 AS waiting_ms`;
  }

  return {
    /**
     * Two branches off one index, (state, next_retry_at) and the id that InnoDB adds: due rows in the order of their time, immediate rows in
     * the order of their ids. IGNORE INDEX (PRIMARY) because the optimizer otherwise walks the primary key for ORDER BY id, through every
     * finished row, when its statistics say that waiting rows are many. Each branch examines LIMIT rows and no more (rule R12); a row of a
     * shard that is not asked for comes back without its body.
     */
    scan({ shards, afterId, immediateLimit, dueLimit }) {
      const body =
        shards === undefined
          ? column("messageBody")
          : `IF(${names.shardOf} IN (${shards.length === 0 ? "-1" : shards.map(whole).join(", ")}), ${column("messageBody")}, NULL)`;
      const due = `(SELECT ${fields(body, column("nextRetryAt"))}, 1 AS due
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} <= ${names.nowMs}
  ORDER BY ${column("nextRetryAt")}, ${column("id")} LIMIT ${whole(dueLimit)})`;
      const immediate = `(SELECT ${fields(body, column("gmtCreate"))}, 0 AS due
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} IS NULL AND ${column("id")} > ?
  ORDER BY ${column("id")} LIMIT ${whole(immediateLimit)})`;
      if (dueLimit <= 0) return { name: "scan", text: immediate, params: [afterId] };
      if (immediateLimit <= 0) return { name: "scan", text: due, params: [] };
      return { name: "scan", text: `${due}\nUNION ALL\n${immediate}`, params: [afterId] };
    },

    /**
     * For each key the rows that can stand before its candidates (rule R1): range reads on (ordering_key, state), id <= the key's largest
     * candidate. JSON_TABLE's text has the collation of the column, else MySQL refuses the comparison (errno 1267) or uses no index.
     */
    keyQueues({ keys, failedBlocks }) {
      const unfinished = names.states(
        failedBlocks ? ["pending", "sending", "suspended", "failed"] : ["pending", "sending", "suspended"],
      );
      return {
        name: "keyQueues",
        text: `SELECT ${column("orderingKey")} AS ordering_key, ${column("id")} AS id, ${column("state")} AS state,
    (${column("state")} = ${state("pending")} AND ${isDue}) AS due, ${resend} AS resend,
    ${column("retryCount")} AS retry_count, ${column("messageType")} AS message_type
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
      ordering_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION} PATH '$[0]', up_to_id BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN ${messages} AS m ON ${column("orderingKey")} = j.ordering_key
  WHERE ${column("state")} IN (${unfinished}) AND ${column("id")} <= j.up_to_id
  ORDER BY ${column("orderingKey")}, ${column("id")}`,
        params: [`[${keys.map(({ orderingKey, upToId }) => `[${JSON.stringify(orderingKey)},${upToId}]`).join(",")}]`],
      };
    },
  };
}
