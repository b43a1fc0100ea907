/**
 * Finds waiting messages, over all topics or by topic, and the queues of ordering keys. Plain reads
 * in READ COMMITTED without locks.
 */
import type { MessageState } from "../../message/states.ts";
import type { ScanRequest } from "../../relay/store.ts";
import type { RelayStatements } from "../sql/statements.ts";
import { whole } from "./clock.ts";
import { BYTES_COLLATION, type MysqlNames, OPEN_KEY_INDEX, UNFINISHED } from "./names.ts";

/** Up to this many ordering keys are looked up by ranges. */
const FEW_KEYS = 16;

type Scans = "scan" | "scanTopics" | "readBodies" | "nextTopics";
type Rows = "readRows" | "lockFreeRows";

export function scanStatements(names: MysqlNames): Pick<RelayStatements, Scans | Rows | "keyQueues"> {
  return { ...scans(names), ...rows(names), keyQueues: (request) => keyQueues(names, request) };
}

function scans(names: MysqlNames): Pick<RelayStatements, Scans> {
  const { column, select, messages, state } = names;
  const notDelayed = names.has("deliverAt")
    ? `\n    AND (${column("deliverAt")} IS NULL OR ${column("deliverAt")} <= ${names.nowMs})`
    : "";

  /**
   * Leaves out a body that is not requested or too large, though its page is read. The length is
   * free; selecting the body by it adds 0.3 ms to the 2.6 of a scan of 500 rows of 400 bytes, and
   * 2.4 to the 3.5 for 4,000 bytes (MariaDB 10.11).
   */
  function fields({ shards, bodyLimit }: Pick<ScanRequest, "shards" | "bodyLimit">): string {
    const bytes = `OCTET_LENGTH(${names.body})`;
    const ours = shards === undefined ? "" : `${names.shardOf} IN (${["-1", ...shards.map(whole)].join(", ")})`;
    const fits = `${bytes} <= ${whole(bodyLimit)}`;
    const body = `IF(${ours === "" ? fits : `${ours} AND ${fits}`}, ${names.body}, NULL)`;
    return `${column("id")} AS id, ${names.shardOf} AS shard, ${column("messageType")} AS message_type, ${column("messageKey")} AS message_key,
    ${column("topic")} AS topic, ${body} AS message_body, ${names.headers ?? "NULL"} AS headers, ${select("contentType", "content_type", "NULL")},
    ${select("orderingKey", "ordering_key", "NULL")}, ${column("retryCount")} AS retry_count,
    ${names.tokenColumns},
    ${resend(names)} AS resend, TIMESTAMPDIFF(MICROSECOND, ${firstDueAt(names)}, ${names.nowMs}) DIV 1000 AS waiting_ms,
    ${ours === "" ? bytes : `IF(${ours}, ${bytes}, 0)`} AS body_bytes`;
  }

  return {
    /**
     * Two branches on (state, next_retry_at) plus InnoDB's id: due rows by time, immediate rows by
     * id. IGNORE INDEX (PRIMARY), because with many waiting rows the optimizer walks the primary
     * key through every finished row. Each branch examines at most LIMIT rows (rule: bounded-scan);
     * a row of another shard comes back without its body. A row with only deliver_at set, by plain
     * SQL, is left out of the immediate branch until it is due.
     */
    scan(request) {
      const { afterId, immediateLimit, dueLimit } = request;
      const due = `(SELECT ${fields(request)}, 1 AS due
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} <= ${names.nowMs}${names.ofTopics}
  ORDER BY ${column("nextRetryAt")}, ${column("id")} LIMIT ${whole(dueLimit)})`;
      const immediate = `(SELECT ${fields(request)}, 0 AS due
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} IS NULL AND ${column("id")} > ?${notDelayed}${names.ofTopics}
  ORDER BY ${column("id")} LIMIT ${whole(immediateLimit)})`;
      if (dueLimit <= 0) return { name: "scan", text: immediate, params: [afterId] };
      if (immediateLimit <= 0) return { name: "scan", text: due, params: [] };
      return { name: "scan", text: `${due}\nUNION ALL\n${immediate}`, params: [afterId] };
    },

    /**
     * The same two branches per topic, on an index on the topics of waiting rows or (state, topic).
     * They find ids in the index alone; with all fields in 40 branches, parsing would take longer
     * than running. One branch per constant topic, because a join with a topic list read the whole
     * index.
     */
    scanTopics({ topics, ...request }) {
      const due = `SELECT ${column("id")} AS id, 1 AS due FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${waitingTopic(names, "= ?")} AND ${column("nextRetryAt")} <= ${names.nowMs}
    ORDER BY ${column("nextRetryAt")}, ${column("id")} LIMIT `;
      const immediate = `SELECT ${column("id")} AS id, 0 AS due FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${waitingTopic(names, "= ?")} AND ${column("nextRetryAt")} IS NULL AND ${column("id")} > ?${notDelayed}
    ORDER BY ${column("id")} LIMIT `;
      const branches: string[] = [];
      const params: string[] = [];
      for (const { topic, afterId, immediateLimit, dueLimit } of topics) {
        if (dueLimit > 0) {
          branches.push(`(${due}${whole(dueLimit)})`);
          params.push(topic);
        }
        if (immediateLimit > 0) {
          branches.push(`(${immediate}${whole(immediateLimit)})`);
          params.push(topic, afterId);
        }
      }
      return {
        name: "scanTopics",
        text: `SELECT ${fields(request)}, p.due AS due
  FROM (${branches.join("\n  UNION ALL\n  ")}) AS p
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = p.id`,
        params,
      };
    },

    readBodies: (ids) => ({
      name: "readBodies",
      text: `SELECT ${column("id")} AS id, ${names.body} AS message_body FROM ${names.byId} WHERE ${column("id")} IN (${ids.join(", ")})`,
      params: [],
    }),

    /** MIN over a range of (state, topic) is one index lookup. */
    nextTopics: (after) => ({
      name: "nextTopics",
      text: after
        .map(
          () =>
            `SELECT MIN(${names.has("waitingTopic") ? column("waitingTopic") : column("topic")}) AS topic FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${waitingTopic(names, "> ?")}`,
        )
        .join("\nUNION ALL "),
      params: after,
    }),
  };
}

/** Condition that the row waits and its topic meets `condition`. */
function waitingTopic({ column, has, state }: MysqlNames, condition: string): string {
  if (has("waitingTopic")) return `${column("waitingTopic")} ${condition}`;
  return `${column("state")} = ${state("pending")} AND ${column("topic")} ${condition}`;
}

function rows(names: MysqlNames): Pick<RelayStatements, Rows> {
  const { column } = names;
  return {
    readRows(ids) {
      return {
        name: "readRows",
        text: `SELECT ${column("id")} AS id, ${column("state")} AS state, ${names.tokenColumns}
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id`,
        params: [`[${ids.join(",")}]`],
      };
    },

    /** Exclusive locks on existing rows, held for this short transaction. */
    lockFreeRows(ids) {
      return {
        name: "lockFreeRows",
        text: `SELECT ${column("id")} AS id FROM ${names.byId} WHERE ${column("id")} IN (${ids.join(", ")}) FOR UPDATE SKIP LOCKED`,
        params: [],
      };
    },
  };
}

/** Sent before: a resend, outside its key's order (rule: key-order). */
function resend({ column, has }: MysqlNames): string {
  const proof = has("sentAt") ? column("sentAt") : has("messageId") ? column("messageId") : undefined;
  return proof === undefined ? "0" : `(${proof} IS NOT NULL)`;
}

/**
 * Earliest time it could be sent. Without deliver_at, next_retry_at of a row never tried is its
 * delay (rule: delay-is-not-retry).
 */
function firstDueAt({ column, has }: MysqlNames): string {
  const delay = has("deliverAt")
    ? column("deliverAt")
    : `IF(COALESCE(${column("retryCount")}, 0) = 0, ${column("nextRetryAt")}, NULL)`;
  return `GREATEST(${column("gmtCreate")}, COALESCE(${delay}, ${column("gmtCreate")}))`;
}

/**
 * For each key, the unfinished rows up to its largest candidate id (rule: key-order). Uses the
 * column for keys of unfinished rows if the table has it, else (ordering_key, state).
 *
 * Few keys are read by exact ranges. For many keys the optimizer takes longer over the ranges than
 * the read itself (333 keys, MariaDB 10.11: 41 ms against 35; MySQL 9: 129 against 53), so they
 * come as a JSON_TABLE, which reads every entry of the key and skips those behind up_to_id.
 */
function keyQueues(
  names: MysqlNames,
  { keys, failedBlocks }: Parameters<RelayStatements["keyQueues"]>[0],
): ReturnType<RelayStatements["keyQueues"]> {
  const { column, messages, state } = names;
  // Without ordering keys there are no queues, and the flow does not ask.
  if (!names.has("orderingKey")) {
    return { name: "keyQueues", text: `SELECT NULL AS ordering_key FROM ${messages} AS m WHERE FALSE`, params: [] };
  }
  const select = `SELECT ${column("orderingKey")} AS ordering_key, ${column("id")} AS id, ${column("state")} AS state,
    (${column("state")} = ${state("pending")} AND (${column("nextRetryAt")} IS NULL OR ${column("nextRetryAt")} <= ${names.nowMs})) AS due, ${resend(names)} AS resend,
    ${column("retryCount")} AS retry_count, ${column("messageType")} AS message_type`;
  const order = `ORDER BY ${column("orderingKey")}, ${column("id")}`;
  const states = UNFINISHED.filter((each) => failedBlocks || each !== "failed");
  const key = column(names.has("openKey") ? "openKey" : "orderingKey");
  if (keys.length <= FEW_KEYS) {
    const range = `(${key} = ? AND ${column("state")} IN (${names.states(states)}) AND ${column("id")} <= ?)`;
    return {
      name: "keyQueues",
      text: `${select}
  FROM ${messages} AS m IGNORE INDEX (PRIMARY)
  WHERE ${keys.map(() => range).join("\n    OR ")}
  ${order}`,
      params: keys.flatMap(({ orderingKey, upToId }) => [orderingKey, upToId]),
    };
  }
  const wanted = wantedKeys(names, keys, states);
  // `+ 0` keeps MySQL from planning the read anew for each key ("range checked for each record").
  // FORCE INDEX keeps MySQL 9 without statistics from hashing the whole table.
  const forced = names.layout.name === "default" ? ` FORCE INDEX (${OPEN_KEY_INDEX})` : "";
  return {
    name: "keyQueues",
    text: `${select}
  FROM ${wanted.source}
  STRAIGHT_JOIN ${messages} AS m${forced} ON ${key} = j.ordering_key AND ${column("state")} ${wanted.state}
  WHERE ${column("id")} + 0 <= j.up_to_id
  ${order}`,
    params: [wanted.param],
  };
}

/**
 * Keys as a JSON_TABLE, combined with their states if the index includes the state. The text needs
 * the column's collation; otherwise MySQL refuses the comparison (errno 1267) or uses no index.
 */
function wantedKeys(
  names: MysqlNames,
  keys: Parameters<RelayStatements["keyQueues"]>[0]["keys"],
  states: readonly MessageState[],
): { readonly source: string; readonly state: string; readonly param: string } {
  const source = (more: string): string => `JSON_TABLE(?, '$[*]' COLUMNS (
      ordering_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION} PATH '$[0]', up_to_id BIGINT PATH '$[1]'${more})) AS j`;
  const encode = (one: (typeof keys)[number], more = ""): string =>
    `[${JSON.stringify(one.orderingKey)},${one.upToId}${more}]`;
  if (names.has("openKey")) {
    const param = `[${keys.map((one) => encode(one)).join(",")}]`;
    return { source: source(""), state: `IN (${names.states(states)})`, param };
  }
  const type = typeof names.layout.states.pending === "number" ? "INT" : "VARCHAR(32) CHARACTER SET utf8mb4";
  const rows = keys.flatMap((one) =>
    states.map((each) => encode(one, `,${JSON.stringify(names.layout.states[each])}`)),
  );
  return { source: source(`, state ${type} PATH '$[2]'`), state: "= j.state", param: `[${rows.join(",")}]` };
}
