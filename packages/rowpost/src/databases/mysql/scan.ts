/** Finding waiting messages: the scan, and the queues of ordering keys. Plain reads in READ COMMITTED; they lock nothing and wait for nobody. */
import type { MessageState } from "../../message/states.ts";
import type { RelayStatements } from "../sql/statements.ts";
import { whole } from "./clock.ts";
import { BYTES_COLLATION, type MysqlNames, ORDERING_KEY_INDEX } from "./names.ts";

/** Up to this many ordering keys are looked up by ranges. */
const FEW_KEYS = 16;

export function scanStatements(names: MysqlNames): Pick<RelayStatements, "scan" | "keyQueues"> {
  const { column, select, messages, state } = names;
  const resend = names.has("sentAt")
    ? `(${column("sentAt")} IS NOT NULL)`
    : names.has("messageId")
      ? `(${column("messageId")} IS NOT NULL)`
      : "0";
  const isDue = `(${column("nextRetryAt")} IS NULL OR ${column("nextRetryAt")} <= ${names.nowMs})`;

  const notDelayed = names.has("deliverAt")
    ? `\n    AND (${column("deliverAt")} IS NULL OR ${column("deliverAt")} <= ${names.nowMs})`
    : "";

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
     * shard that is not asked for comes back without its body. A program that inserts with plain SQL may have set deliver_at alone; such a row
     * is waiting, and is left out of the immediate branch until it is due.
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
  WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} IS NULL AND ${column("id")} > ?${notDelayed}
  ORDER BY ${column("id")} LIMIT ${whole(immediateLimit)})`;
      if (dueLimit <= 0) return { name: "scan", text: immediate, params: [afterId] };
      if (immediateLimit <= 0) return { name: "scan", text: due, params: [] };
      return { name: "scan", text: `${due}\nUNION ALL\n${immediate}`, params: [afterId] };
    },

    /**
     * For each key the rows that can stand before its candidates (rule R1): unfinished, id <= the key's largest candidate.
     *
     * Few keys: ranges of (ordering_key, state, id), which touch exactly those rows, however long the queue of the key is. Many keys: the
     * optimizer takes longer over the ranges than the read takes (333 keys, MariaDB 10.11: 41 ms against 35; MySQL 9: 129 against 53), so they
     * come as a JSON_TABLE; that reads every entry of (key, state) and skips those behind up_to_id.
     */
    keyQueues({ keys, failedBlocks }) {
      // Without ordering keys there are no queues; the flow does not ask.
      if (!names.has("orderingKey")) {
        return { name: "keyQueues", text: `SELECT NULL AS ordering_key FROM ${messages} AS m WHERE FALSE`, params: [] };
      }
      const states: readonly MessageState[] = failedBlocks
        ? ["pending", "sending", "suspended", "failed"]
        : ["pending", "sending", "suspended"];
      const selected = `${column("orderingKey")} AS ordering_key, ${column("id")} AS id, ${column("state")} AS state,
    (${column("state")} = ${state("pending")} AND ${isDue}) AS due, ${resend} AS resend,
    ${column("retryCount")} AS retry_count, ${column("messageType")} AS message_type`;
      const order = `ORDER BY ${column("orderingKey")}, ${column("id")}`;
      if (keys.length <= FEW_KEYS) {
        const range = `(${column("orderingKey")} = ? AND ${column("state")} IN (${names.states(states)}) AND ${column("id")} <= ?)`;
        return {
          name: "keyQueues",
          text: `SELECT ${selected}
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${keys.map(() => range).join("\n    OR ")}
  ${order}`,
          params: keys.flatMap(({ orderingKey, upToId }) => [orderingKey, upToId]),
        };
      }
      // JSON_TABLE's text has the collation of the column, else MySQL refuses the comparison (errno 1267) or uses no index. `+ 0` keeps MySQL
      // from planning the read anew for each key ("range checked for each record"), and FORCE INDEX from reading the whole table into a hash
      // join, which MySQL 9 does while it has no statistics.
      const encoded = keys.flatMap(({ orderingKey, upToId }) =>
        states.map((each) => `[${JSON.stringify(orderingKey)},${upToId},${JSON.stringify(names.layout.states[each])}]`),
      );
      const forced = names.layout.name === "default" ? ` FORCE INDEX (${ORDERING_KEY_INDEX})` : "";
      const stateType = typeof names.layout.states.pending === "number" ? "INT" : "VARCHAR(32) CHARACTER SET utf8mb4";
      return {
        name: "keyQueues",
        text: `SELECT ${selected}
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
      ordering_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION} PATH '$[0]', up_to_id BIGINT PATH '$[1]', state ${stateType} PATH '$[2]')) AS j
  STRAIGHT_JOIN ${messages} AS m${forced} ON ${column("orderingKey")} = j.ordering_key AND ${column("state")} = j.state
  WHERE ${column("id")} + 0 <= j.up_to_id
  ${order}`,
        params: [`[${encoded.join(",")}]`],
      };
    },
  };
}
