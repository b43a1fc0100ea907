import { joined, part, plain, textOf } from "../sql/cold.ts";
import type { TableWords } from "../sql/cold-table.ts";
import { whereOf } from "../sql/insight/find.ts";

export const page: TableWords["page"] = (table, { along, archived, limit, match, newestFirst }, where) => {
  const { column, has, name, of, state } = table;
  const states = match.states?.map(state);
  const conditions = states === undefined ? where : [...where, part`${column("state")} IN (${joined(states, ", ")})`];
  // The + keeps the planner from choosing the index by the id order. Entries of one key are in that
  // order.
  const order = plain(along === "ids" || along === "keys" ? name("id") : `+${name("id")}`);
  const direction = plain(newestFirst ? "DESC" : "ASC");
  const from = part`FROM ${of(archived)} AS m`;
  // Uses only the index, which has all rowids; otherwise an analyzed table would be walked.
  const isByPrefix = along === "names" && match.keyPrefix !== undefined;
  const found = isByPrefix ? [part`m.rowid IN (SELECT m.rowid ${from}${whereOf(conditions)})`] : conditions;
  return part`SELECT ${textOf(name("id"))} AS id, ${has("lockVersion") ? textOf(name("lockVersion")) : part`0`} AS lock_version${plain(archived ? ", m.archived_at AS archived_at" : "")}
${from}${whereOf(found)}
ORDER BY ${order} ${direction}${archived ? part`, m.archived_at ${direction}` : part``} LIMIT ${limit}`;
};
