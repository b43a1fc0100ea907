/** Messages that match a filter. No statement here locks. */
import { type Cold, cold, decimal, joined, part, plain, type Sql } from "../cold.ts";
import type { MessageTable } from "../cold-table.ts";
import type { LayoutColumns } from "../layout.ts";
import type { FindRequest, IdRange, KeyCount } from "./requests.ts";

export function idConditions({ name }: MessageTable, { highId, lowId }: IdRange): Sql[] {
  return [
    ...(lowId === undefined ? [] : [plain(`${name("id")} >= ${decimal(lowId)}`)]),
    ...(highId === undefined ? [] : [plain(`${name("id")} <= ${decimal(highId)}`)]),
  ];
}

/** ` WHERE … AND …` or "". */
export function whereOf(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? plain("") : part`\nWHERE ${joined(conditions, " AND ")}`;
}

function beginsWith({ layout, name, words }: MessageTable, prefix: string): Sql {
  return words.beginsWith(name("messageKey"), prefix, layout.name === "default");
}

/**
 * Aliases: id lock_version, for the archive also archived_at as text. In id order; rows with the
 * same id by archived_at.
 */
export function find(table: MessageTable, request: FindRequest): Cold {
  const { createdAfter, createdBefore, failReasonContains, ids, key, keyPrefix, orderingKey, topic, types } =
    request.match;
  const { clock, column, has, name, words } = table;
  const where = idConditions(table, request);
  const equals = (property: keyof LayoutColumns, value: string | undefined): void => {
    if (value !== undefined) where.push(part`${has(property) ? column(property) : part`NULL`} = ${value}`);
  };
  const instant = (text: string): Sql => plain(clock.instant(Date.parse(text)));
  if (ids !== undefined) where.push(plain(words.idIn(name("id"), ids)));
  if (types !== undefined) where.push(part`${column("messageType")} IN (${joined(types, ", ")})`);
  equals("messageKey", key);
  if (keyPrefix !== undefined) where.push(beginsWith(table, keyPrefix));
  equals("topic", topic);
  equals(request.along === "keys" && has("openKey") ? "openKey" : "orderingKey", orderingKey);
  if (failReasonContains !== undefined)
    where.push(part`${plain(words.indexOf)}(${column("failReason")}, ${failReasonContains}) > 0`);
  if (createdAfter !== undefined) where.push(part`${column("gmtCreate")} > ${instant(createdAfter)}`);
  if (createdBefore !== undefined) where.push(part`${column("gmtCreate")} < ${instant(createdBefore)}`);
  return cold("find")`${table.page(table, request, where)}`;
}

/**
 * Alias: count, of messages of these types with this key prefix, at most `limit` per type. The
 * order makes it a walk of the index on type and key, which ends at the limit.
 */
export function countKeys(table: MessageTable, { archived, keyPrefix, limit, types }: KeyCount): Cold {
  const [type, key] = [table.column("messageType"), table.column("messageKey")];
  const ofEach = types.map(
    (each) => part`SELECT one FROM (SELECT 1 AS one FROM ${table.of(archived)} AS m
  WHERE ${type} = ${each} AND ${beginsWith(table, keyPrefix)} ORDER BY ${key} LIMIT ${limit}) AS k`,
  );
  return cold("countKeys")`SELECT COUNT(*) AS count FROM (${joined(ofEach, "\nUNION ALL\n")}) AS c`;
}
