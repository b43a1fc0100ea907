/** Pages of messages that match a filter. No statement here locks. */
import { joined, part, plain, type Sql, textOf } from "../sql/cold.ts";
import type { TableWords } from "../sql/cold-table.ts";
import { whereOf } from "../sql/insight/find.ts";
import type { FindRequest } from "../sql/insight/requests.ts";

/**
 * Index hints: the optimizer does not know how rare a state or reason is, and for names or keys
 * would walk the table in id order.
 */
const HINTS: Readonly<Record<FindRequest["along"], string>> = {
  ids: " FORCE INDEX (PRIMARY)",
  states: " IGNORE INDEX (PRIMARY)",
  names: " IGNORE INDEX (PRIMARY)",
  keys: " IGNORE INDEX (PRIMARY)",
};

/** Finds the ids first, so that rows off the page are read only in an index with state and id. */
export const page: TableWords["page"] = (table, { along, archived, limit, match, newestFirst }, where) => {
  const { column, has, name, of, state } = table;
  const states = match.states?.map(state);
  const conditions = states === undefined ? where : [...where, part`${column("state")} IN (${joined(states, ", ")})`];
  const direction = plain(newestFirst ? "DESC" : "ASC");
  const order = part`ORDER BY ${column("id")} ${direction}${archived ? part`, m.archived_at ${direction}` : part``}`;
  const ifArchived = (text: string): Sql => plain(archived ? text : "");
  return part`SELECT ${textOf(name("id"))} AS id, ${has("lockVersion") ? textOf(name("lockVersion")) : part`0`} AS lock_version${ifArchived(", CAST(m.archived_at AS CHAR) AS archived_at")}
FROM (SELECT ${column("id")} AS id${ifArchived(", m.archived_at")} FROM ${of(archived)} AS m${plain(match.ids === undefined ? HINTS[along] : "")}${whereOf(conditions)}
  ${order} LIMIT ${limit}) AS f
STRAIGHT_JOIN ${of(archived)} AS m FORCE INDEX (PRIMARY) ON ${column("id")} = f.id${ifArchived(" AND m.archived_at = f.archived_at")}
${order}`;
};
