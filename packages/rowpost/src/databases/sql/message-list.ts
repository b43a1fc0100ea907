/**
 * The list that operators look at, newest first: a WHERE from the filter's fields, for dialects
 * with any placeholders.
 */
import type { Statement } from "../../transactions/executor.ts";
import type { EncodeIds } from "./calls.ts";
import type { SqlNames } from "./sql-names.ts";
import type { AdminStatements } from "./statements.ts";

/** What a dialect has its own words for. */
export interface ListWords {
  /** Everything that rows.ts reads. */
  readonly columns: string;
  readonly encodeIds: EncodeIds;
  /** Placeholder of the nth value, from 1. */
  place(number: number): string;
  asId(place: string): string;
  asInstant(place: string): string;
  idIn(column: string, place: string): string;
  contains(column: string, place: string): string;
}

type ListRequest = Parameters<AdminStatements["list"]>[0];

/**
 * A page of messages by the primary key. Reads no more than its limit where the filter is met
 * often; a rare one is looked for to the end.
 */
export function listStatement(names: SqlNames, request: ListRequest, words: ListWords): Statement {
  const { archived, beforeId, filter, limit } = request;
  const { column } = names;
  const params: unknown[] = [];
  const where: string[] = [];
  const bind = (value: unknown): string => words.place(params.push(value));
  const equals = (name: string | undefined, value: string | undefined): void => {
    if (value !== undefined) where.push(name === undefined ? "false" : `m.${name} = ${bind(value)}`);
  };
  const { createdAfter, createdBefore, failReasonContains, ids, states } = filter;
  if (ids !== undefined) where.push(words.idIn(`m.${column.id}`, bind(words.encodeIds(ids))));
  equals(column.messageType, filter.type);
  equals(column.messageKey, filter.key);
  equals(column.topic, filter.topic);
  equals(column.orderingKey, filter.orderingKey);
  if (states !== undefined)
    where.push(states.length === 0 ? "false" : `m.${column.state} IN (${names.state(...states)})`);
  if (failReasonContains !== undefined) where.push(words.contains(`m.${column.failReason}`, bind(failReasonContains)));
  if (createdAfter !== undefined) where.push(`m.${column.gmtCreate} > ${words.asInstant(bind(createdAfter))}`);
  if (createdBefore !== undefined) where.push(`m.${column.gmtCreate} < ${words.asInstant(bind(createdBefore))}`);
  if (beforeId !== undefined) where.push(`m.${column.id} < ${words.asId(bind(beforeId))}`);
  return {
    name: "list",
    text: `SELECT ${words.columns}
FROM ${archived ? names.archive : names.table} AS m${where.length === 0 ? "" : `\nWHERE ${where.join(" AND ")}`}
ORDER BY m.${column.id} DESC
LIMIT ${bind(limit)}`,
    params,
  };
}
