/**
 * Pages of messages that match a filter, and the indexes on their states. No statement here locks.
 */
import type { MessageState } from "../../message/states.ts";
import { joined, part, plain, type Sql } from "../sql/cold.ts";
import type { MessageTable, TableWords, Way } from "../sql/cold-table.ts";
import { whereOf } from "../sql/insight/find.ts";

/**
 * Rows without a time and with one are in different partial indexes, `sending` rows in one. The
 * default table indexes those without a time by state in id order.
 */
export function waysTo({ column, layout, state: literal }: MessageTable, state: MessageState): readonly Way[] {
  const is = part`${column("state")} = ${literal(state)}`;
  const time = column("nextRetryAt");
  const inIdOrder = layout.name === "default";
  if (state === "sending") return [{ where: is, inIdOrder }];
  return [
    { where: part`${is} AND ${time} IS NULL`, inIdOrder },
    { where: part`${is} AND ${time} IS NOT NULL`, inIdOrder: false },
  ];
}

export const page: TableWords["page"] = (table, { along, archived, limit, match, newestFirst }, where) => {
  const { column, has, messages, of, state } = table;
  const fields = part`${column("id")} AS id, ${has("lockVersion") ? column("lockVersion") : part`0`} AS lock_version${plain(archived ? ", m.archived_at::text AS archived_at" : "")}`;
  const from = part`FROM ${of(archived)} AS m`;
  const order = plain(newestFirst ? "DESC" : "ASC");
  const atOrder = archived ? part`, m.archived_at ${order}` : part``;
  const { states } = match;
  if (along !== "states" || states === undefined) {
    const conditions =
      states === undefined ? where : [...where, part`${column("state")} IN (${joined(states.map(state), ", ")})`];
    // Otherwise the planner walks the table in id order to find the first rows soon.
    if (match.keyPrefix !== undefined && along === "names")
      return part`WITH found AS MATERIALIZED (
  SELECT ${fields} ${from}${whereOf(conditions)}
)
SELECT m.* FROM found AS m ORDER BY m.id ${order}${atOrder} LIMIT ${limit}`;
    return part`SELECT ${fields} ${from}${whereOf(conditions)}
ORDER BY ${column("id")} ${order}${atOrder} LIMIT ${limit}`;
  }
  // MATERIALIZED, because the planner does not know how rare a state is and would walk the table by
  // id. Finds ids first, in an index with the states.
  const found = states
    .flatMap((each) => table.waysTo(each))
    .map(({ inIdOrder, where: way }): Sql => {
      // Elsewhere the planner would walk the table in that order too, without a time limit.
      const inOrder = inIdOrder ? part` ORDER BY ${column("id")} ${order} LIMIT ${limit}` : part``;
      return part`  (SELECT ${column("id")} AS id ${from} WHERE ${joined([way, ...where], " AND ")}${inOrder})`;
    });
  return part`WITH found AS MATERIALIZED (
${joined(found, "\n  UNION ALL\n")}
)
SELECT ${fields} FROM (SELECT id FROM found ORDER BY id ${order} LIMIT ${limit}) AS f
JOIN ${messages} AS m ON ${column("id")} = f.id
ORDER BY ${column("id")} ${order}`;
};
