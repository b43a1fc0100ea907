/** What operators look at. Nothing here locks, and each statement but one reads few rows. */
import { BEHIND_BASE } from "../sql/behind.ts";
import type { FindRequest, InsightStatements } from "../sql/insight-statements.ts";
import type { LayoutColumns } from "../sql/layout.ts";
import { type FindWords, idConditions, listStatements, prefixRange, whereText } from "../sql/message-list.ts";
import { isoText, whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";
import { unconfirmedStatements } from "./unconfirmed.ts";

export function insightStatements(names: MysqlNames): InsightStatements {
  const { column, messages, state } = names;
  const id = column("id");
  const tableOf = (archived: boolean): string => (archived ? names.archive : messages);
  const words = findWords(names);
  return {
    ...countStatements(names),
    ...unconfirmedStatements(names),
    ...listStatements(words),
    ...timeStatements(names),

    readMessages: ({ archived, bodies, ids }) => ({
      name: "readMessages",
      text: `SELECT ${[...summaryFields(names), ...(bodies ? bodyFields(names) : [])].join(",\n    ")}${archivedAt(archived)}
  FROM ${tableOf(archived)} AS m FORCE INDEX (PRIMARY) WHERE ${words.idIn(id, ids)}`,
      params: [],
    }),

    chunkEnd: ({ archived, newestFirst, rows, ...range }) => ({
      name: "chunkEnd",
      text: `SELECT ${id} AS id FROM ${tableOf(archived)} AS m FORCE INDEX (PRIMARY)${whereText(idConditions(id, range))}
ORDER BY ${id} ${newestFirst ? "DESC" : "ASC"} LIMIT 1 OFFSET ${whole(rows - 1)}`,
      params: [],
    }),

    // MIN of a range of the unique key is one look into it.
    nextType: ({ after, archived }) => ({
      name: "nextType",
      text: `SELECT MIN(${column("messageType")}) AS message_type FROM ${tableOf(archived)} AS m WHERE ${column("messageType")} > ?`,
      params: [after],
    }),

    placeOf: (of) => ({
      name: "placeOf",
      text: `SELECT ${names.shardOf} AS shard, ${names.iso(names.nowMs)} AS clock, ${msUntil(names, column("nextRetryAt"))} AS due_in_ms,
    ${names.has("deliverAt") ? msUntil(names, column("deliverAt")) : "NULL"} AS deliver_in_ms
  FROM ${messages} AS m WHERE ${id} = ${of}`,
      params: [],
    }),

    readChanges: ({ id: changed, limit }) => ({
      name: "readChanges",
      text: `SELECT CONCAT(LEFT(DATE_FORMAT(made_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') AS made_at, author, action, reason, ids, details
  FROM ${names.audit} WHERE table_name = ? AND first_id <= ${changed} AND last_id >= ${changed} ORDER BY id DESC LIMIT ${whole(limit)}`,
      params: [names.tableKey],
    }),

    oldestDue() {
      const first = (since: string, where: string, order: string): string =>
        `(SELECT ${id} AS id, ${column("topic")} AS topic, TIMESTAMPDIFF(MICROSECOND, ${since}, ${names.nowMs}) DIV 1000 AS waiting_ms
  FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${column("state")} = ${state("pending")} AND ${where} ORDER BY ${order} LIMIT 1)`;
      const time = column("nextRetryAt");
      return {
        name: "oldestDue",
        text: `${first(column("gmtCreate"), `${time} IS NULL`, id)}
UNION ALL
${first(time, `${time} <= ${names.nowMs}`, time)}`,
        params: [],
      };
    },
  };
}

function msUntil({ nowMs }: MysqlNames, instant: string): string {
  return `TIMESTAMPDIFF(MICROSECOND, ${nowMs}, ${instant}) DIV 1000`;
}

/** From an instant to an id: see ids-by-time.ts. */
function timeStatements(
  names: MysqlNames,
): Pick<InsightStatements, "createdFrom" | "createdOfLastArchived" | "idBounds"> {
  const { column } = names;
  const id = column("id");
  const tableOf = (archived: boolean): string => (archived ? names.archive : names.messages);
  return {
    idBounds: ({ archived }) => ({
      name: "idBounds",
      text: `SELECT MIN(${id}) AS first_id, MAX(${id}) AS last_id FROM ${tableOf(archived)} AS m`,
      params: [],
    }),

    createdFrom: ({ archived, ids }) => ({
      name: "createdFrom",
      text: ids
        .map(
          (each) => `(SELECT ${id} AS id, ${names.iso(column("gmtCreate"))} AS gmt_create
  FROM ${tableOf(archived)} AS m FORCE INDEX (PRIMARY) WHERE ${id} >= ${each} ORDER BY ${id} LIMIT ${archived ? 2 : 1})`,
        )
        .join("\nUNION ALL\n"),
      params: [],
    }),

    createdOfLastArchived: (limit) => ({
      name: "createdOfLastArchived",
      text: `SELECT ${id} AS id, ${names.iso(column("gmtCreate"))} AS gmt_create
  FROM ${tableOf(true)} AS m FORCE INDEX (idx_archived_at) ORDER BY m.archived_at DESC LIMIT ${whole(limit)}`,
      params: [],
    }),
  };
}

function countStatements(names: MysqlNames): Pick<InsightStatements, "countStates" | "countByState" | "countWaiting"> {
  const { column, messages, state } = names;
  const time = column("nextRetryAt");
  const waiting = (where: string, limit: number, fields = "1 AS one"): string =>
    `(SELECT ${fields} FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${column("state")} = ${state("pending")} AND ${where}${names.ofTopics} LIMIT ${whole(limit)}) AS c`;
  const delayed = names.has("deliverAt")
    ? `COALESCE(${column("deliverAt")} > ${names.nowMs}, FALSE)`
    : `COALESCE(${column("retryCount")}, 0) = 0`;
  return {
    /** Ranges of the index on the state and the time; of those that wait also the rows. */
    countWaiting: (limit) => ({
      name: "countWaiting",
      text: `SELECT 'due' AS kind, COUNT(*) AS count, NULL AS next_in_ms FROM ${waiting(`${time} IS NULL`, limit)}
UNION ALL
SELECT 'due', COUNT(*), NULL FROM ${waiting(`${time} <= ${names.nowMs}`, limit)}
UNION ALL
SELECT IF(c.held, 'delayed', 'backoff'), COUNT(*), MIN(c.in_ms) FROM ${waiting(`${time} > ${names.nowMs} AND ${time} < '${BEHIND_BASE}'`, limit, `${delayed} AS held, ${msUntil(names, time)} AS in_ms`)} GROUP BY c.held
UNION ALL
SELECT 'behind', COUNT(*), NULL FROM ${waiting(`${time} >= '${BEHIND_BASE}'`, limit)}`,
      params: [],
    }),

    /** Reads the index on the state and no row. */
    countStates: ({ limit, states }) => ({
      name: "countStates",
      text: states
        .map(
          (each) => `SELECT ${state(each)} AS state, COUNT(*) AS count FROM (
  SELECT 1 AS one FROM ${messages} AS m IGNORE INDEX (PRIMARY) WHERE ${column("state")} = ${state(each)}${names.ofTopics} LIMIT ${whole(limit)}) AS c`,
        )
        .join("\nUNION ALL\n"),
      params: [],
    }),

    countByState: () => ({
      name: "countByState",
      text: `SELECT ${column("topic")} AS topic, ${column("state")} AS state, COUNT(*) AS count,
    TIMESTAMPDIFF(MICROSECOND, MIN(${column("gmtCreate")}), ${names.nowMs}) DIV 1000 AS oldest_age_ms
  FROM ${messages} AS m GROUP BY ${column("topic")}, ${column("state")} ORDER BY topic, state`,
      params: [],
    }),
  };
}

function findWords(names: MysqlNames): FindWords {
  const { column, has, messages, select } = names;
  const stateIn: FindWords["stateIn"] = (states) => `${column("state")} IN (${names.states(states)})`;
  // Told which way to go: the optimizer does not know how rare a state or a reason is.
  const hint: Readonly<Record<FindRequest["along"], string>> = {
    ids: " FORCE INDEX (PRIMARY)",
    states: " IGNORE INDEX (PRIMARY)",
    // Or it walks the table in the order of ids, to have a page soon.
    names: " IGNORE INDEX (PRIMARY)",
    keys: " IGNORE INDEX (PRIMARY)",
  };
  return {
    stateIn,
    tableOf: (archived) => (archived ? names.archive : messages),
    openKey: has("openKey") ? column("openKey") : has("orderingKey") ? column("orderingKey") : undefined,
    column: (property) => (has(property) ? column(property) : undefined),
    place: () => "?",
    idIn: (name, ids) => `${name} IN (${ids.length === 0 ? "NULL" : ids.join(", ")})`,
    asInstant: (place) => names.fromEpochMs(place),
    contains: (name, place) => `LOCATE(${place}, ${name}) > 0`,
    // The order of a folding collation is another one than that of bytes. Where the column compares
    // bytes, LIKE misses characters behind U+FFFF on MariaDB 10.11: its range ends there.
    beginsWith: (name, prefix, bind) =>
      names.layout.name === "default"
        ? prefixRange(name, prefix, bind)
        : `${name} LIKE ${bind(`${prefix.replace(/[%_!]/g, "!$&")}%`)} ESCAPE '!'`,
    select({ along, archived, limit, match, newestFirst }, where) {
      const conditions = match.states === undefined ? where : [...where, stateIn(match.states)];
      const direction = newestFirst ? "DESC" : "ASC";
      const order = `ORDER BY ${column("id")} ${direction}${archived ? `, m.archived_at ${direction}` : ""}`;
      const [at, same] = archived ? [", m.archived_at", " AND m.archived_at = f.archived_at"] : ["", ""];
      const table = archived ? names.archive : messages;
      // The ids first: an index that has the state and the id is then all that is read of the
      // rows that do not come on the page.
      return `SELECT ${column("id")} AS id, ${select("lockVersion", "lock_version", "0")}${archivedAt(archived)}
FROM (SELECT ${column("id")} AS id${at} FROM ${table} AS m${match.ids === undefined ? hint[along] : ""}${whereText(conditions)}
  ${order} LIMIT ${whole(limit)}) AS f
STRAIGHT_JOIN ${table} AS m FORCE INDEX (PRIMARY) ON ${column("id")} = f.id${same}
${order}`;
    },
  };
}

/** As a further field, of the archive only. */
function archivedAt(archived: boolean): string {
  return archived ? ", CAST(m.archived_at AS CHAR) AS archived_at" : "";
}

/** Fields of MessageSummary in snake_case; instants as ISO texts. */
function summaryFields(names: MysqlNames): string[] {
  const { column, select } = names;
  const instant = (property: keyof LayoutColumns, alias: string): string =>
    `${names.has(property) ? names.iso(column(property)) : "NULL"} AS ${alias}`;
  return [
    `${column("id")} AS id`,
    `${column("messageType")} AS message_type`,
    `${column("messageKey")} AS message_key`,
    `${column("topic")} AS topic`,
    `${column("state")} AS state`,
    select("contentType", "content_type", "NULL"),
    select("orderingKey", "ordering_key", "NULL"),
    `${column("retryCount")} AS retry_count`,
    select("deliveryCount", "delivery_count", "0"),
    instant("deliverAt", "deliver_at"),
    // A time that tells of a head is no time of any zone.
    `IF(${column("nextRetryAt")} >= '${BEHIND_BASE}', ${isoText(column("nextRetryAt"))}, ${names.iso(column("nextRetryAt"))}) AS next_retry_at`,
    instant("lastRetryAt", "last_retry_at"),
    `${column("failReason")} AS fail_reason`,
    select("messageId", "message_id", "NULL"),
    select("lockVersion", "lock_version", "0"),
    instant("sentAt", "sent_at"),
    instant("consumedAt", "consumed_at"),
    select("createdBy", "created_by", "NULL"),
    select("updatedBy", "updated_by", "NULL"),
    instant("gmtCreate", "gmt_create"),
    instant("gmtModified", "gmt_modified"),
  ];
}

function bodyFields({ body, headers }: MysqlNames): string[] {
  return [`${body} AS message_body`, headers];
}
