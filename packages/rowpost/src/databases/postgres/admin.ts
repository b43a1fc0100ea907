/** What a person does by hand: look at messages, retry, suspend, resume. */
import { operatorCalls } from "../sql/calls.ts";
import { type ListWords, listStatement } from "../sql/message-list.ts";
import { listedColumns } from "../sql/sql-names.ts";
import type { AdminStatements } from "../sql/statements.ts";
import { after, isoText, msSince, type Names, NOW, numberArray } from "./names.ts";

/** Statements of the operator's port. */
export function adminStatements(names: Names): AdminStatements {
  const { suspensionTable, table, tableKey } = names;
  const { failReason, gmtCreate, id, state, topic } = names.column;
  const words: ListWords = {
    columns: listedColumns(names, { id: (column) => column, instant: isoText }),
    encodeIds: numberArray,
    place: (number) => `$${number}`,
    asId: (place) => `${place}::bigint`,
    asInstant: (place) => `${place}::timestamptz`,
    idIn: (column, place) => `${column} = ANY (${place}::bigint[])`,
    contains: (column, place) => `position(${place} IN ${column}) > 0`,
  };
  const calls = operatorCalls(
    names,
    {
      // Everything is counted, because a person asked: 200 ms for a million rows. The relay's
      // gauges are bounded instead.
      countByState: `SELECT m.${topic} AS topic, m.${state} AS state, count(*) AS count, ${msSince(`min(m.${gmtCreate})`)} AS oldest_age_ms
FROM ${table} m
GROUP BY m.${topic}, m.${state}`,
      // Held until the change that follows in the same transaction; in id order, like everything
      // else that locks several messages.
      lockRows: `SELECT m.${id} AS id, m.${state} AS state, ${names.read("lockVersion", "0::bigint")} AS lock_version
FROM ${table} m
WHERE m.${id} = ANY ($1::bigint[])
ORDER BY m.${id}
FOR UPDATE OF m`,
      ...changeTexts(names),
      // Locks its one rule. Relays read it at their next heartbeat.
      putSuspension: `INSERT INTO ${suspensionTable} (table_name, scope, value, reason, author, ends_at, gmt_create)
VALUES (${tableKey}, $1, $2, $3, $4, ${after("$5::bigint")}, ${NOW})
ON CONFLICT (table_name, scope, value)
DO UPDATE SET reason = EXCLUDED.reason, author = EXCLUDED.author, ends_at = EXCLUDED.ends_at, gmt_create = EXCLUDED.gmt_create`,
      // Locks its one rule; the messages under it are resumed by the statements after it.
      deleteSuspension: `DELETE FROM ${suspensionTable} WHERE table_name = ${tableKey} AND scope = $1 AND value = $2`,
      listSuspendedBy: `SELECT m.${id} AS id FROM ${table} m
WHERE m.${state} = ${names.state("suspended")} AND starts_with(m.${failReason}, $1)
ORDER BY m.${id}
LIMIT $2::bigint`,
    },
    numberArray,
  );
  return { ...calls, list: (request) => listStatement(names, request, words) };
}

/**
 * The rows are locked by lockRows already; the states are looked at once more because a statement
 * must not depend on another's care. Values: $1 reason, $2 author where the layout has updated_by,
 * then the milliseconds of a suspension, then the ids.
 */
function changeTexts(names: Names): Readonly<Record<"operatorRetry" | "suspendRows" | "resumeRows", string>> {
  const { failReason, id, nextRetryAt, retryCount, state } = names.column;
  const next = names.column.updatedBy === undefined ? 2 : 3;
  const change = (set: string, from: string, ids: number): string => `UPDATE ${names.table} m
SET ${set}, ${failReason} = $1::text${names.set("updatedBy", "$2::text")}${names.changed}
WHERE m.${id} = ANY ($${ids}::bigint[]) AND m.${state} IN (${from})`;
  const pending = `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingNow}`;
  return {
    operatorRetry: change(
      `${pending}, ${retryCount} = 0${names.set("deliveryCount", "0")}`,
      names.from("operatorRetry"),
      next,
    ),
    suspendRows: `${change(
      `${state} = ${names.state("suspended")}, ${nextRetryAt} = ${after(`$${next}::bigint`)}`,
      names.from("suspend"),
      next + 1,
    )}${names.notDelayed}`,
    resumeRows: change(pending, names.from("resume"), next),
  };
}
