/**
 * Checks whether a message fits the table's columns. Needed only in MySQL and MariaDB sessions
 * without a strict sql_mode, where the server silently alters values (rule: exact-text).
 */
import { bareType, bytesOf } from "../../message/binary-body.ts";
import type { EncodedMessage } from "../../outbox/message-writer.ts";
import { ConfigurationError, describeError, InvalidMessageError } from "../../runtime/errors.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { lowerCased, type Row, text, textOrNull } from "./rows.ts";

interface Room {
  readonly characters: number | null;
  readonly bytes: number | null;
  /** Null for JSON and binary columns. */
  readonly charset: string | null;
  readonly isTimestamp: boolean;
}

export interface TableRoom {
  readonly database: string;
  /** By name in lower case. */
  readonly columns: ReadonlyMap<string, Room>;
}

const VALUES: readonly [
  name: string,
  column: keyof LayoutColumns,
  value: (message: EncodedMessage) => string | null,
][] = [
  ["type", "messageType", ({ type }) => type],
  ["key", "messageKey", ({ key }) => key],
  ["topic", "topic", ({ topic }) => topic],
  ["body", "messageBody", ({ body }) => body],
  ["headers", "headers", ({ headers }) => headers],
  ["content type", "contentType", ({ contentType }) => contentType],
  ["ordering key", "orderingKey", ({ orderingKey }) => orderingKey],
  ["createdBy", "createdBy", ({ createdBy }) => createdBy],
  ["createdBy", "updatedBy", ({ createdBy }) => createdBy],
];

/**
 * Message and field with the letter that a character set lacks. `letter`: "" if the server does not
 * name it; then the columns are checked, if `room` is known.
 */
export function letterLacking(
  { columns }: TableLayout,
  messages: readonly EncodedMessage[],
  { cause, letter, room }: { letter: string; room: TableRoom | undefined; cause: unknown },
): InvalidMessageError | undefined {
  const said = describeError(cause);
  const found = messages.flatMap((message) =>
    VALUES.flatMap(([field, property, read]) => {
      const column = columns[property] ?? "";
      const charset = room?.columns.get(column.toLowerCase())?.charset ?? null;
      const value = read(message) ?? "";
      const lacked = letter === "" ? lackedBy(charset, value) : value.includes(letter) ? letter : undefined;
      if (lacked === undefined) return [];
      return [
        { field, lacked, message, isNamed: [`\`${column}\``, `'${column}'`].some((name) => said.includes(name)) },
      ];
    }),
  );
  const first = found.find(({ isNamed }) => isNamed) ?? found[0];
  return first && letterRefused(`${first.message.type}:${first.message.key}: the ${first.field}`, first.lacked, cause);
}

/** `holder`: the field with the letter. */
export function letterRefused(holder: string, letter: string, cause: unknown): InvalidMessageError {
  return new InvalidMessageError(
    `${holder} has the letter ${letter}, which the character set of the database or column lacks: take other letters, or a database in UTF-8 (PostgreSQL: ENCODING 'UTF8', MySQL: utf8mb4). Nothing was written.`,
    { cause },
  );
}

/** Last second of a 32-bit TIMESTAMP. */
const TIMESTAMP_END_MS = 2_147_483_647_000;

/** The session silently alters values that do not fit. */
export class LenientSessionError extends ConfigurationError {}

/**
 * Parses rows of `readRoom`, whose columns a user's handle may have renamed; undefined without a
 * row.
 */
export function tableRoom(rows: readonly Row[]): TableRoom | undefined {
  const columns = new Map<string, Room>();
  let database: string | undefined;
  for (const row of rows.map(lowerCased)) {
    database = text(row, "databasename");
    const count = (alias: string): number | null => (row[alias] === null ? null : Number(row[alias]));
    columns.set(text(row, "columnname").toLowerCase(), {
      characters: count("characters"),
      bytes: count("bytes"),
      charset: textOrNull(row, "charsetname"),
      isTimestamp: text(row, "datatype") === "timestamp",
    });
  }
  return database === undefined ? undefined : { database, columns };
}

/** Throws `InvalidMessageError` for a message that the table would alter. */
export function requireRoom(layout: TableLayout, { columns }: TableRoom, message: EncodedMessage): void {
  const refuse = (what: string): never => {
    throw new InvalidMessageError(
      `${message.type}:${message.key}: ${what}, and without STRICT_TRANS_TABLES in the sql_mode of the connection the server would store something else and say nothing. Nothing was written.`,
    );
  };
  const isBinary = layout.bodyType === "binary";
  // One character per byte.
  const body = isBinary ? bytesOf(message).toString("ascii") : message.body;
  const contentType = isBinary ? bareType(message) : message.contentType;
  for (const [name, property, read] of VALUES) {
    const column = layout.columns[property];
    const value = read({ ...message, body, contentType });
    const found = column === undefined ? undefined : columns.get(column.toLowerCase());
    if (found === undefined || value === null) continue;
    const { bytes, characters, charset } = found;
    if (characters !== null && value.length > characters && Array.from(value).length > characters) {
      refuse(`the ${name} is longer than the ${characters} characters of the column ${column}`);
    }
    if (bytes !== null && Buffer.byteLength(value) > bytes) {
      refuse(`the ${name} is longer than the ${bytes} bytes of the column ${column}`);
    }
    if (lackedBy(charset, value) !== undefined)
      refuse(`the column ${column} is in ${charset}, which lacks letters of the ${name}`);
  }
  const at = message.deliverAtMs ?? Date.now() + (message.delayMs ?? 0);
  for (const column of [layout.columns.deliverAt, layout.columns.nextRetryAt]) {
    const found = column === undefined ? undefined : columns.get(column.toLowerCase());
    if (found?.isTimestamp === true && at > TIMESTAMP_END_MS) {
      refuse(`the column ${column} is a TIMESTAMP, which ends in 2038, before the delay does`);
    }
  }
}

/** A letter of `value` that the character set lacks; for an unknown set, any non-ASCII letter. */
export function lackedBy(charset: string | null, value: string): string | undefined {
  if (charset === null || charset === "utf8mb4") return undefined;
  const lacked = charset.startsWith("utf8")
    ? /[\u{10000}-\u{10ffff}]/u
    : charset === "latin1" // latin1 of the MySQL family is Windows-1252.
      ? /[^\0-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]/u
      : /[^\t\n\r\x20-\x7e]/u;
  return lacked.exec(value)?.[0];
}
