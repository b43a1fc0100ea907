/** What operators look at. Nothing here locks, and each statement but one reads few rows. */
import type { MessageState } from "../../message/states.ts";
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
import { listedColumns, literal } from "../sql/sql-names.ts";
import { instant, isoText, msBetween, msSince, type Names, NOW, numberArray } from "./names.ts";
import { unconfirmedStatements } from "./unconfirmed.ts";

export function insightStatements(names: Names): InsightStatements {
  const { deliverAt, gmtCreate, id, messageType, nextRetryAt, state, topic } = names.column;
  const tableOf = (archived: boolean): string => (archived ? names.archive : names.table);
  const words = findWords(names);
  const columns = (bodies: boolean): string =>
    listedColumns(names, { id: (column) => column, instant: isoText, bodies });
  return {
    ...countStatements(names),
    ...unconfirmedStatements(names),
    ...listStatements(words),
    ...timeStatements(names),

    readMessages: ({ archived, bodies, ids }) => ({
      name: "readMessages",
      text: `SELECT ${columns(bodies)}${archivedAt(archived)} FROM ${tableOf(archived)} m WHERE m.${id} = ANY ($1::bigint[])`,
      params: [numberArray(ids)],
    }),

    chunkEnd: ({ archived, newestFirst, rows, ...range }) => ({
      name: "chunkEnd",
      text: `SELECT m.${id} AS id FROM ${tableOf(archived)} m${whereText(idConditions(`m.${id}`, range))}
ORDER BY m.${id} ${newestFirst ? "DESC" : "ASC"} OFFSET ${rows - 1} LIMIT 1`,
      params: [],
    }),

    // MIN of a range of the unique key is one look into it.
    nextType: ({ after, archived }) => ({
      name: "nextType",
      text: `SELECT MIN(m.${messageType}) AS message_type FROM ${tableOf(archived)} m WHERE m.${messageType} > $1::text`,
      params: [after],
    }),

    placeOf: (of) => ({
      name: "placeOf",
      text: `SELECT ${names.shard} AS shard, ${isoText(NOW)} AS clock, ${msBetween(NOW, `m.${nextRetryAt}`)} AS due_in_ms,
  ${deliverAt === undefined ? "NULL::bigint" : msBetween(NOW, `m.${deliverAt}`)} AS deliver_in_ms
FROM ${names.table} m WHERE m.${id} = $1::bigint`,
      params: [of],
    }),

    readChanges: ({ id: changed, limit }) => ({
      name: "readChanges",
      text: `SELECT ${isoText("made_at")} AS made_at, author, action, reason, ids, details
FROM ${names.auditTable} WHERE table_name = ${names.tableKey} AND first_id <= $1::bigint AND last_id >= $1::bigint ORDER BY id DESC LIMIT $2::bigint`,
      params: [changed, limit],
    }),

    oldestDue() {
      const first = (since: string, where: string, order: string): string =>
        `(SELECT m.${id} AS id, m.${topic} AS topic, ${msSince(since)} AS waiting_ms FROM ${names.table} m
  WHERE m.${state} = ${names.state("pending")} AND ${where} ORDER BY ${order} LIMIT 1)`;
      const time = `m.${nextRetryAt}`;
      return {
        name: "oldestDue",
        text: `${first(`m.${gmtCreate}`, `${time} IS NULL`, `m.${id}`)}
UNION ALL
${first(time, `${time} <= ${NOW}`, `m.${state}, ${time}, m.${id}`)}`,
        params: [],
      };
    },
  };
}

/** Rows without a time and with one stand in different partial indexes, `sending` ones in one. */
function branches(names: Names, state: MessageState): readonly string[] {
  const { nextRetryAt, state: column } = names.column;
  const is = `m.${column} = ${names.state(state)}`;
  if (state === "sending") return [is];
  return [`${is} AND m.${nextRetryAt} IS NULL`, `${is} AND m.${nextRetryAt} IS NOT NULL`];
}

/** Rows without a time are in indexes of the default table in the order of ids, by state. */
function inIdOrder(names: Names, branch: string): boolean {
  return names.layout.name === "default" && !branch.endsWith("IS NOT NULL");
}

/** From an instant to an id: see ids-by-time.ts. */
function timeStatements(names: Names): Pick<InsightStatements, "createdFrom" | "createdOfLastArchived" | "idBounds"> {
  const { gmtCreate, id } = names.column;
  const tableOf = (archived: boolean): string => (archived ? names.archive : names.table);
  return {
    idBounds: ({ archived }) => ({
      name: "idBounds",
      text: `SELECT min(m.${id}) AS first_id, max(m.${id}) AS last_id FROM ${tableOf(archived)} m`,
      params: [],
    }),

    createdFrom: ({ archived, ids }) => ({
      name: "createdFrom",
      text: `SELECT found.id, found.gmt_create FROM unnest($1::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT m.${id} AS id, ${isoText(`m.${gmtCreate}`)} AS gmt_create FROM ${tableOf(archived)} m
  WHERE m.${id} >= wanted.id ORDER BY m.${id} LIMIT ${archived ? 2 : 1}) found`,
      params: [numberArray(ids)],
    }),

    createdOfLastArchived: (limit) => ({
      name: "createdOfLastArchived",
      text: `SELECT m.${id} AS id, ${isoText(`m.${gmtCreate}`)} AS gmt_create FROM ${tableOf(true)} m
ORDER BY m.archived_at DESC LIMIT $1::bigint`,
      params: [limit],
    }),
  };
}

function countStatements(names: Names): Pick<InsightStatements, "countStates" | "countByState" | "countWaiting"> {
  const { deliverAt, gmtCreate, nextRetryAt, retryCount, state, topic } = names.column;
  const time = `m.${nextRetryAt}`;
  const waiting = (where: string, fields = "1"): string =>
    `(SELECT ${fields} FROM ${names.table} m WHERE m.${state} = ${names.state("pending")} AND ${where}${names.ofTopics} LIMIT $1::bigint) c`;
  const base = instant(literal(BEHIND_BASE));
  const delayed =
    deliverAt === undefined ? `COALESCE(m.${retryCount}, 0) = 0` : `COALESCE(m.${deliverAt} > ${NOW}, false)`;
  return {
    countWaiting: (limit) => ({
      name: "countWaiting",
      text: `SELECT 'due' AS kind, count(*) AS count, NULL::bigint AS next_in_ms FROM ${waiting(`${time} IS NULL`)}
UNION ALL
SELECT 'due', count(*), NULL FROM ${waiting(`${time} <= ${NOW}`)}
UNION ALL
SELECT CASE WHEN c.held THEN 'delayed' ELSE 'backoff' END, count(*), min(c.in_ms) FROM ${waiting(`${time} > ${NOW} AND ${time} < ${base}`, `${delayed} AS held, ${msBetween(NOW, time)} AS in_ms`)} GROUP BY c.held
UNION ALL
SELECT 'behind', count(*), NULL FROM ${waiting(`${time} >= ${base}`)}`,
      params: [limit],
    }),
    countStates({ limit, states, toSort = false }) {
      const counted = states
        .flatMap((each) => branches(names, each).map((where) => ({ value: names.state(each), where })))
        .filter(({ where }) => !(toSort && inIdOrder(names, where)))
        .map(
          ({ value, where }) =>
            `SELECT ${value} AS state, count(*) AS count FROM (SELECT 1 FROM ${names.table} m WHERE ${where}${names.ofTopics} LIMIT $1::bigint) counted`,
        );
      const none = "SELECT 0 AS state, 0 AS count WHERE $1::bigint < 0";
      return { name: "countStates", text: counted.join("\nUNION ALL\n") || none, params: [limit] };
    },
    countByState: () => ({
      name: "countByState",
      text: `SELECT m.${topic} AS topic, m.${state} AS state, count(*) AS count, ${msSince(`min(m.${gmtCreate})`)} AS oldest_age_ms
FROM ${names.table} m
GROUP BY m.${topic}, m.${state}`,
      params: [],
    }),
  };
}

/** As a further field, of the archive only. */
function archivedAt(archived: boolean): string {
  return archived ? ", m.archived_at::text AS archived_at" : "";
}

function findWords(names: Names): FindWords {
  const { id, state } = names.column;
  const fields = `m.${id} AS id, ${names.version} AS lock_version`;
  const stateIn: FindWords["stateIn"] = (states) => `m.${state} IN (${names.state(...states)})`;
  return {
    stateIn,
    ...plainWords(names),
    place: (number) => `$${number}`,
    idIn: (column, ids) => `${column} = ANY ('${numberArray(ids)}'::bigint[])`,
    asInstant: (place) => `to_timestamp(${place}::float8 / 1000)`,
    contains: (column, place) => `position(${place} IN ${column}) > 0`,
    // Of another collation of somebody's own table this finds the same, without its index.
    beginsWith: (column, prefix, bind) => prefixRange(`${column} COLLATE "C"`, prefix, bind),
    select({ along, archived, limit, match, newestFirst }, where) {
      const from = `FROM ${archived ? names.archive : names.table} m`;
      const order = newestFirst ? "DESC" : "ASC";
      const atOrder = archived ? `, m.archived_at ${order}` : "";
      const states = match.states;
      if (along !== "states" || states === undefined) {
        const conditions = states === undefined ? where : [...where, stateIn(states)];
        // Or it would walk the table in the order of ids, to find the first rows soon.
        if (match.keyPrefix !== undefined && along === "names")
          return `WITH found AS MATERIALIZED (
  SELECT ${fields}${archivedAt(archived)} ${from}${whereText(conditions)}
)
SELECT m.* FROM found m ORDER BY m.id ${order}${atOrder} LIMIT ${limit}`;
        return `SELECT ${fields}${archivedAt(archived)} ${from}${whereText(conditions)}\nORDER BY m.${id} ${order}${atOrder} LIMIT ${limit}`;
      }
      // MATERIALIZED: the planner does not know how rare a state is, and would walk the table in
      // the order of ids to find the first rows soon. The ids first: an index has the states too.
      const found = states
        .flatMap((each) => branches(names, each))
        .map((branch) => {
          // Elsewhere the planner would walk the table in that order too, with no limit of time.
          const inOrder = inIdOrder(names, branch) ? ` ORDER BY m.${id} ${order} LIMIT ${limit}` : "";
          return `  (SELECT m.${id} AS id ${from} WHERE ${[branch, ...where].join(" AND ")}${inOrder})`;
        });
      return `WITH found AS MATERIALIZED (\n${found.join("\n  UNION ALL\n")}
)
SELECT ${fields} FROM (SELECT id FROM found ORDER BY id ${order} LIMIT ${limit}) f
JOIN ${names.table} m ON m.${id} = f.id
ORDER BY m.${id} ${order}`;
    },
  };
}
