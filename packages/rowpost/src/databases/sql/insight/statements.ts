/**
 * Operators' views. No locks, and each statement reads a bounded number of rows, except
 * `countByState`, which a person must request.
 */
import type { MessageState } from "../../../message/states.ts";
import { BEHIND_BASE } from "../behind.ts";
import {
  branch,
  by,
  type Cold,
  cold,
  decimal,
  id as idOf,
  instant,
  iso,
  joined,
  notById,
  part,
  plain,
  type Sql,
  textOf,
} from "../cold.ts";
import type { MessageTable } from "../cold-table.ts";
import { INSTANTS, WHOLE } from "../sql-names.ts";
import { idConditions, whereOf } from "./find.ts";
import type { IdRange } from "./requests.ts";

interface Archived {
  readonly archived: boolean;
}

/**
 * Aliases of `MessageSummary` in snake_case, `state` raw; with `bodies` also message_body and
 * headers, for the archive also archived_at as in `find`. In any order.
 */
export function readMessages(
  table: MessageTable,
  { archived, bodies, ids }: Archived & { readonly ids: readonly string[]; readonly bodies: boolean },
): Cold {
  const { name, of, words } = table;
  const at = archived ? part`, ${textOf("m.archived_at")} AS archived_at` : part``;
  return cold("readMessages")`SELECT ${joined(listed(table, bodies), ",\n  ")}${at}
FROM ${of(archived)} AS m${by("PRIMARY")} WHERE ${plain(words.idIn(name("id"), ids))}`;
}

/** Columns of row `m` under their property's name in snake_case, as rows.ts reads them. */
function listed({ clock, columns, layout, name, stored, words }: MessageTable, bodies: boolean): Sql[] {
  return columns.flatMap((property) => {
    const alias = plain(property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
    const column = name(property);
    if (property === "messageBody" || property === "headers")
      return bodies ? [part`${plain(stored[property] ?? column)} AS ${alias}`] : [];
    if (WHOLE.has(property)) return [part`${textOf(column)} AS ${alias}`];
    // A time that stands for a head belongs to no zone.
    if (property === "nextRetryAt" && layout.clock !== "utc")
      return [
        part`CASE WHEN ${plain(column)} >= ${instant(BEHIND_BASE)} THEN ${plain(words.iso(column))} ELSE ${clock.iso(column)} END AS ${alias}`,
      ];
    return [part`${INSTANTS.has(property) ? clock.iso(column) : plain(column)} AS ${alias}`];
  });
}

/**
 * Alias: id, of the last of that many rows in this direction; no row if there are fewer. Walks the
 * primary key.
 */
export function chunkEnd(
  table: MessageTable,
  {
    archived,
    newestFirst,
    rows,
    ...range
  }: IdRange & Archived & { readonly newestFirst: boolean; readonly rows: number },
): Cold {
  const { column, name, of } = table;
  return cold(
    "chunkEnd",
  )`SELECT ${textOf(name("id"))} AS id FROM ${of(archived)} AS m${by("PRIMARY")}${whereOf(idConditions(table, range))}
ORDER BY ${column("id")} ${plain(newestFirst ? "DESC" : "ASC")} LIMIT 1 OFFSET ${rows - 1}`;
}

/** Alias: message_type, the next after this one; NULL for none. One lookup in the unique key. */
export function nextType(
  { column, of }: MessageTable,
  { after, archived }: Archived & { readonly after: string },
): Cold {
  return cold(
    "nextType",
  )`SELECT MIN(${column("messageType")}) AS message_type FROM ${of(archived)} AS m WHERE ${column("messageType")} > ${after}`;
}

/**
 * Aliases: first_id last_id, NULL in an empty table. Two lookups, because SQLite walks the table
 * for one.
 */
export function idBounds({ name, of }: MessageTable, { archived }: Archived): Cold {
  const bound = (which: string): Sql => part`SELECT ${textOf(`${which}(${name("id")})`)} FROM ${of(archived)} AS m`;
  return cold("idBounds")`SELECT (${bound("MIN")}) AS first_id, (${bound("MAX")}) AS last_id`;
}

/**
 * Aliases: id gmt_create, of the first row at or after each of these ids; for the archive the first
 * two, which may share the id.
 */
export function createdFrom(
  { clock, column, name, of }: MessageTable,
  { archived, ids }: Archived & { readonly ids: readonly string[] },
): Cold {
  const first = (
    id: string,
  ): Sql => part`SELECT ${textOf(name("id"))} AS id, ${clock.iso(name("gmtCreate"))} AS gmt_create
  FROM ${of(archived)} AS m${by("PRIMARY")} WHERE ${column("id")} >= ${plain(decimal(id))} ORDER BY ${column("id")} LIMIT ${archived ? 2 : 1}`;
  return cold("createdFrom")`${joined(
    ids.map((id) => branch(first(id))),
    "\nUNION ALL\n",
  )}`;
}

/** Aliases: id gmt_create, of the last archived rows. */
export function createdOfLastArchived({ clock, name, of }: MessageTable, limit: number): Cold {
  return cold("createdOfLastArchived")`SELECT ${textOf(name("id"))} AS id, ${clock.iso(name("gmtCreate"))} AS gmt_create
FROM ${of(true)} AS m${by("idx_archived_at")} ORDER BY m.archived_at DESC LIMIT ${limit}`;
}

/**
 * Aliases: state count. At most about `limit` each; a state may come in several rows. With `toSort`
 * counts only those that a page must sort, if an index has the others in id order. Reads only
 * indexes.
 */
export function countStates(
  { messages, ofTopics, state, waysTo }: MessageTable,
  {
    limit,
    states,
    toSort = false,
  }: { readonly states: readonly MessageState[]; readonly limit: number; readonly toSort?: boolean },
): Cold {
  const counted = states.flatMap((each) =>
    waysTo(each)
      .filter(({ inIdOrder }) => !(toSort && inIdOrder))
      .map(
        ({ where }) => part`SELECT ${state(each)} AS state, COUNT(*) AS count FROM (
  SELECT 1 AS one FROM ${messages} AS m${notById} WHERE ${where}${ofTopics} LIMIT ${limit}) AS c`,
      ),
  );
  const none = part`SELECT 0 AS state, 0 AS count`;
  return cold("countStates")`${counted.length === 0 ? none : joined(counted, "\nUNION ALL\n")}`;
}

/** Aliases: topic state count oldest_age_ms, over all states. Reads the whole table. */
export function countByState({ clock, column, messages, name }: MessageTable): Cold {
  return cold(
    "countByState",
  )`SELECT ${column("topic")} AS topic, ${column("state")} AS state, COUNT(*) AS count, ${clock.msSince(`MIN(${name("gmtCreate")})`)} AS oldest_age_ms
FROM ${messages} AS m GROUP BY ${column("topic")}, ${column("state")} ORDER BY topic, state`;
}

/**
 * Aliases: kind count next_in_ms, of pending messages: `backoff`, `delayed`, `due` or `behind`; at
 * most about `limit` each; a kind may come in several rows. Reads ranges of the index on state and
 * time, and the rows of waiting messages.
 */
export function countWaiting(table: MessageTable, limit: number): Cold {
  const { clock, column, has, messages, name, ofTopics, state } = table;
  const time = column("nextRetryAt");
  const behind = instant(BEHIND_BASE);
  const waiting = (where: Sql, fields: Sql = part`1 AS one`): Sql =>
    part`(SELECT ${fields} FROM ${messages} AS m${notById} WHERE ${column("state")} = ${state("pending")} AND ${where}${ofTopics} LIMIT ${limit}) AS c`;
  const held = has("deliverAt")
    ? part`COALESCE(${column("deliverAt")} > ${clock.now}, FALSE)`
    : part`COALESCE(${column("retryCount")}, 0) = 0`;
  const later = part`${time} > ${clock.now} AND ${time} < ${behind}`;
  return cold(
    "countWaiting",
  )`SELECT CASE WHEN c.held THEN 'delayed' ELSE 'backoff' END AS kind, COUNT(*) AS count, MIN(c.in_ms) AS next_in_ms
FROM ${waiting(later, part`${held} AS held, ${clock.msUntil(name("nextRetryAt"))} AS in_ms`)} GROUP BY c.held
UNION ALL
SELECT 'due', COUNT(*), NULL FROM ${waiting(part`${time} IS NULL`)}
UNION ALL
SELECT 'due', COUNT(*), NULL FROM ${waiting(part`${time} <= ${clock.now}`)}
UNION ALL
SELECT 'behind', COUNT(*), NULL FROM ${waiting(part`${time} >= ${behind}`)}`;
}

/** Aliases: shard, clock (ISO text), due_in_ms, deliver_in_ms (NULL: no such time). */
export function placeOf({ clock, column, has, messages, name, shard }: MessageTable, id: string): Cold {
  const delivery = has("deliverAt") ? clock.msUntil(name("deliverAt")) : part`NULL`;
  return cold(
    "placeOf",
  )`SELECT ${shard} AS shard, ${clock.isoNow} AS clock, ${clock.msUntil(name("nextRetryAt"))} AS due_in_ms, ${delivery} AS deliver_in_ms
FROM ${messages} AS m WHERE ${column("id")} = ${idOf(id)}`;
}

/**
 * Aliases: made_at (ISO text) author action reason ids details. The newest `limit` changes by hand
 * that may include this message; `ids` tells.
 */
export function readChanges(
  { companions, key }: MessageTable,
  { id, limit }: { readonly id: string; readonly limit: number },
): Cold {
  return cold(
    "readChanges",
  )`SELECT ${iso("a.made_at")} AS made_at, a.author AS author, a.action AS action, a.reason AS reason, a.ids AS ids, a.details AS details
FROM ${companions.audit} AS a WHERE a.table_name = ${key} AND a.first_id <= ${idOf(id)} AND a.last_id >= ${idOf(id)} ORDER BY a.id DESC LIMIT ${limit}`;
}

/** Aliases: id topic waiting_ms. At most two rows: the first without a time, the first due. */
export function oldestDue({ clock, column, messages, name, state }: MessageTable): Cold {
  const first = (since: "gmtCreate" | "nextRetryAt", where: Sql, order: Sql): Sql =>
    part`SELECT ${textOf(name("id"))} AS id, ${column("topic")} AS topic, ${clock.msSince(name(since))} AS waiting_ms
  FROM ${messages} AS m${notById} WHERE ${column("state")} = ${state("pending")} AND ${column("nextRetryAt")} ${where} ORDER BY ${order} LIMIT 1`;
  return cold("oldestDue")`${branch(first("gmtCreate", part`IS NULL`, column("id")))}
UNION ALL
${branch(first("nextRetryAt", part`<= ${clock.now}`, part`${column("nextRetryAt")}, ${column("id")}`))}`;
}

/** Alias: id, of messages in `sent` with a deadline, earliest first. */
export function listUnconfirmed({ column, messages, name, state }: MessageTable, limit: number): Cold {
  return cold("unconfirmed")`SELECT ${textOf(name("id"))} AS id FROM ${messages} AS m${notById}
WHERE ${column("state")} = ${state("sent")} AND ${column("nextRetryAt")} IS NOT NULL ORDER BY ${column("nextRetryAt")}, ${column("id")} LIMIT ${limit}`;
}

/**
 * Aliases: message_type overdue (1: past its deadline) count, of at most `limit` overdue messages
 * and as many others.
 */
export function countUnconfirmed({ clock, column, messages, state }: MessageTable, limit: number): Cold {
  const counted = (compared: string): Sql =>
    part`(SELECT ${column("messageType")} AS message_type FROM ${messages} AS m${notById}
  WHERE ${column("state")} = ${state("sent")} AND ${column("nextRetryAt")} ${plain(compared)} ${clock.now} LIMIT ${limit}) AS c GROUP BY c.message_type`;
  return cold(
    "countUnconfirmed",
  )`SELECT c.message_type AS message_type, 1 AS overdue, COUNT(*) AS count FROM ${counted("<=")}
UNION ALL
SELECT c.message_type, 0, COUNT(*) FROM ${counted(">")}
ORDER BY overdue DESC, count DESC, message_type`;
}

/** Aliases: id consumer. Confirmations of these messages. */
export function confirmedBy({ companions, key, words }: MessageTable, ids: readonly string[]): Cold {
  return cold(
    "confirmedBy",
  )`SELECT ${textOf("c.message")} AS id, c.consumer AS consumer FROM ${companions.confirmation} AS c
WHERE c.table_name = ${key} AND ${plain(words.idIn("c.message", ids))}`;
}

/** Aliases: message_type consumer, unique pairs of the last `limit` confirmations. */
export function lastConsumers({ column, companions, key, messages }: MessageTable, limit: number): Cold {
  return cold("lastConsumers")`SELECT DISTINCT ${column("messageType")} AS message_type, c.consumer AS consumer
FROM (SELECT l.message, l.consumer FROM ${companions.confirmation} AS l WHERE l.table_name = ${key} ORDER BY l.confirmed_at DESC LIMIT ${limit}) AS c
JOIN ${messages} AS m ON ${column("id")} = c.message`;
}
