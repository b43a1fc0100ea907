/** What operators look at. Nothing here locks, and each statement but one reads few rows. */
import { BEHIND_BASE } from "../sql/behind.ts";
import type { InsightStatements } from "../sql/insight-statements.ts";
import {
  type FindWords,
  idConditions,
  listStatements,
  plainWords,
  prefixRange,
  whereText,
} from "../sql/message-list.ts";
import { listedColumns } from "../sql/sql-names.ts";
import { isoText, jsonIds, msSince, type Names, NOW } from "./names.ts";
import { unconfirmedStatements } from "./unconfirmed.ts";

const textOfId = (column: string): string => `CAST(${column} AS TEXT)`;

export function insightStatements(names: Names): InsightStatements {
  const words = findWords(names);
  const { deliverAt, gmtCreate, id, messageType, nextRetryAt, state, topic } = names.column;
  const tableOf = (archived: boolean): string => (archived ? names.archive : names.table);
  const columns = (bodies: boolean): string => listedColumns(names, { id: textOfId, instant: isoText, bodies });
  return {
    readMessages: ({ archived, bodies, ids }) => ({
      name: "readMessages",
      text: `SELECT ${columns(bodies)}${archivedAt(archived)} FROM ${tableOf(archived)} AS m WHERE m.${id} IN (SELECT value FROM json_each(?))`,
      params: [jsonIds(ids)],
    }),

    chunkEnd: ({ archived, newestFirst, rows, ...range }) => ({
      name: "chunkEnd",
      text: `SELECT ${textOfId(`m.${id}`)} AS id FROM ${tableOf(archived)} AS m${whereText(idConditions(`m.${id}`, range))}
ORDER BY m.${id} ${newestFirst ? "DESC" : "ASC"} LIMIT 1 OFFSET ${rows - 1}`,
      params: [],
    }),

    // MIN of a range of the unique key is one look into it.
    nextType: ({ after, archived }) => ({
      name: "nextType",
      text: `SELECT MIN(m.${messageType}) AS message_type FROM ${tableOf(archived)} AS m WHERE m.${messageType} > ?`,
      params: [after],
    }),

    placeOf: (of) => ({
      name: "placeOf",
      text: `SELECT 0 AS shard, ${isoText("'now'")} AS clock, -${msSince(`m.${nextRetryAt}`)} AS due_in_ms,
  ${deliverAt === undefined ? "NULL" : `-${msSince(`m.${deliverAt}`)}`} AS deliver_in_ms
FROM ${names.table} AS m WHERE m.${id} = ${of}`,
      params: [],
    }),

    readChanges: ({ id: changed, limit }) => ({
      name: "readChanges",
      text: `SELECT ${isoText("made_at")} AS made_at, author, action, reason, ids, details
FROM ${names.auditTable} WHERE table_name = ${names.tableKey} AND first_id <= ${changed} AND last_id >= ${changed} ORDER BY id DESC LIMIT ${limit}`,
      params: [],
    }),

    oldestDue() {
      const first = (since: string, where: string, order: string): string =>
        `SELECT * FROM (SELECT ${textOfId(`m.${id}`)} AS id, m.${topic} AS topic, ${msSince(since)} AS waiting_ms FROM ${names.table} AS m
  WHERE m.${state} = ${names.state("pending")} AND ${where} ORDER BY ${order} LIMIT 1)`;
      const time = `m.${nextRetryAt}`;
      return {
        name: "oldestDue",
        text: `${first(`m.${gmtCreate}`, `${time} IS NULL`, `m.${id}`)}
UNION ALL
${first(time, `${time} <= ${NOW}`, time)}`,
        params: [],
      };
    },

    ...countStatements(names),
    ...unconfirmedStatements(names),
    ...listStatements(words),
    ...timeStatements(names),
  };
}

function countStatements(names: Names): Pick<InsightStatements, "countStates" | "countByState" | "countWaiting"> {
  const { deliverAt, gmtCreate, nextRetryAt, retryCount, state, topic } = names.column;
  const time = `m.${nextRetryAt}`;
  const waiting = (where: string, limit: number, fields = "1"): string =>
    `(SELECT ${fields} FROM ${names.table} AS m WHERE m.${state} = ${names.state("pending")} AND ${where}${names.ofTopics} LIMIT ${limit}) AS c`;
  const delayed = deliverAt === undefined ? `COALESCE(m.${retryCount}, 0) = 0` : `COALESCE(m.${deliverAt} > ${NOW}, 0)`;
  return {
    countWaiting: (limit) => ({
      name: "countWaiting",
      text: `SELECT 'due' AS kind, count(*) AS count, NULL AS next_in_ms FROM ${waiting(`${time} IS NULL`, limit)}
UNION ALL
SELECT 'due', count(*), NULL FROM ${waiting(`${time} <= ${NOW}`, limit)}
UNION ALL
SELECT CASE WHEN c.held THEN 'delayed' ELSE 'backoff' END, count(*), min(c.in_ms) FROM ${waiting(`${time} > ${NOW} AND ${time} < '${BEHIND_BASE}'`, limit, `${delayed} AS held, -${msSince(time)} AS in_ms`)} GROUP BY c.held
UNION ALL
SELECT 'behind', count(*), NULL FROM ${waiting(`${time} >= '${BEHIND_BASE}'`, limit)}`,
      params: [],
    }),
    countStates: ({ limit, states }) => ({
      name: "countStates",
      text: states
        .map(
          (each) =>
            `SELECT ${names.state(each)} AS state, count(*) AS count FROM (SELECT 1 FROM ${names.table} AS m WHERE m.${state} = ${names.state(each)}${names.ofTopics} LIMIT ${limit})`,
        )
        .join("\nUNION ALL\n"),
      params: [],
    }),
    countByState: () => ({
      name: "countByState",
      text: `SELECT m.${topic} AS topic, m.${state} AS state, count(*) AS count, ${msSince(`min(m.${gmtCreate})`)} AS oldest_age_ms
FROM ${names.table} AS m
GROUP BY m.${topic}, m.${state}`,
      params: [],
    }),
  };
}

/** As a further field, of the archive only. */
function archivedAt(archived: boolean): string {
  return archived ? ", m.archived_at AS archived_at" : "";
}

function findWords(names: Names): FindWords {
  const { id, state } = names.column;
  const stateIn: FindWords["stateIn"] = (states) => `m.${state} IN (${names.state(...states)})`;
  return {
    stateIn,
    ...plainWords(names),
    place: () => "?",
    idIn: (column, ids) => `${column} IN (${ids.join(", ")})`,
    asInstant: (place) => `strftime('%Y-%m-%d %H:%M:%f', ${place} / 1000.0, 'unixepoch')`,
    contains: (column, place) => `instr(${column}, ${place}) > 0`,
    beginsWith: prefixRange,
    select({ along, archived, limit, match, newestFirst }, where) {
      const conditions = match.states === undefined ? where : [...where, stateIn(match.states)];
      // The + keeps the order of ids from choosing the way; entries of one key are in that order.
      const order = along === "ids" || along === "keys" ? `m.${id}` : `+m.${id}`;
      const direction = newestFirst ? "DESC" : "ASC";
      const atOrder = archived ? `, m.archived_at ${direction}` : "";
      const from = `FROM ${archived ? names.archive : names.table} AS m`;
      // In the index alone, which has all rowids: an analyzed table would be walked else.
      const isByPrefix = along === "names" && match.keyPrefix !== undefined;
      const found = isByPrefix ? [`m.rowid IN (SELECT m.rowid ${from}${whereText(conditions)})`] : conditions;
      return `SELECT CAST(m.${id} AS TEXT) AS id, ${names.version} AS lock_version${archivedAt(archived)}
${from}${whereText(found)}
ORDER BY ${order} ${direction}${atOrder} LIMIT ${limit}`;
    },
  };
}

/** From an instant to an id: see ids-by-time.ts. */
function timeStatements({
  archive,
  column: { gmtCreate, id },
  table,
}: Names): Pick<InsightStatements, "createdFrom" | "createdOfLastArchived" | "idBounds"> {
  const tableOf = (archived: boolean): string => (archived ? archive : table);
  return {
    // Two look-ups: min and max in one SELECT would walk the table.
    idBounds: ({ archived }) => ({
      name: "idBounds",
      text: `SELECT ${textOfId(`(SELECT min(${id}) FROM ${tableOf(archived)})`)} AS first_id,
  ${textOfId(`(SELECT max(${id}) FROM ${tableOf(archived)})`)} AS last_id`,
      params: [],
    }),

    // All rows of the id, of which an archive may have several.
    createdFrom: ({ archived, ids }) => ({
      name: "createdFrom",
      text: `SELECT ${textOfId(`m.${id}`)} AS id, ${isoText(`m.${gmtCreate}`)} AS gmt_create
FROM json_each(?) AS wanted
JOIN ${tableOf(archived)} AS m ON m.${id} = (SELECT min(n.${id}) FROM ${tableOf(archived)} AS n WHERE n.${id} >= wanted.value)`,
      params: [jsonIds(ids)],
    }),

    createdOfLastArchived: (limit) => ({
      name: "createdOfLastArchived",
      text: `SELECT ${textOfId(`m.${id}`)} AS id, ${isoText(`m.${gmtCreate}`)} AS gmt_create
FROM ${tableOf(true)} AS m ORDER BY m.archived_at DESC LIMIT ${limit}`,
      params: [],
    }),
  };
}
