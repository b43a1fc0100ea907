/** Columns of a message table in design order, for dialects that make the table from the layout. */
import type { SqlNames } from "./sql-names.ts";

export interface ColumnTypes {
  /** Compared byte for byte (rule: exact-bytes). */
  identity(length: number): string;
  varchar(length: number): string;
  readonly text: string;
  readonly integer: string;
  readonly bigint: string;
  readonly instant: string;
  readonly smallint: string;
  readonly now: string;
}

/** `name type …` of every column except the id. */
export function messageColumns(names: SqlNames, types: ColumnTypes): readonly string[] {
  const { column, layout } = names;
  const { limits } = layout;
  const { bigint, instant, integer, text } = types;
  const state = typeof layout.states.pending === "string" ? types.identity(32) : types.smallint;
  const author = `${types.varchar(limits.createdBy)} NOT NULL DEFAULT ''`;
  const written = `${instant} NOT NULL DEFAULT ${types.now}`;
  return present([
    [column.messageType, `${types.identity(limits.type)} NOT NULL`],
    [column.messageKey, `${types.identity(limits.key)} NOT NULL`],
    [column.topic, `${types.identity(limits.topic)} NOT NULL`],
    [column.messageBody, `${text} NOT NULL`],
    [column.headers, text],
    [column.contentType, types.varchar(64)],
    [column.orderingKey, types.identity(limits.orderingKey)],
    [column.state, `${state} NOT NULL DEFAULT ${names.state("pending")}`],
    [column.retryCount, `${integer} NOT NULL DEFAULT 0`],
    [column.deliveryCount, `${integer} NOT NULL DEFAULT 0`],
    [column.deliverAt, instant],
    [column.nextRetryAt, instant],
    [column.lastRetryAt, instant],
    [column.failReason, types.varchar(layout.failReasonLength)],
    [column.messageId, types.varchar(layout.messageIdLength)],
    [column.lockVersion, `${bigint} NOT NULL DEFAULT 0`],
    [column.sentAt, instant],
    [column.consumedAt, instant],
    [column.createdBy, author],
    [column.updatedBy, author],
    [column.gmtCreate, written],
    [column.gmtModified, written],
  ]).map(([name, type]) => `${name} ${type}`);
}

/** The same for the archive, which also accepts NULLs that other DDL allowed. */
export function archivedColumns(names: SqlNames, types: ColumnTypes): readonly string[] {
  return messageColumns(names, types).map((column) => column.replace(" NOT NULL", ""));
}

/** Entries whose column the layout has. */
export function present(
  pairs: readonly (readonly [string | undefined, string])[],
): readonly (readonly [column: string, value: string])[] {
  return pairs.flatMap(([column, value]) => (column === undefined ? [] : [[column, value] as const]));
}
