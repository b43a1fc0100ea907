import { bareType } from "../../message/binary-body.ts";
import { BINARY_CONTENT_TYPE } from "../../message/content-type.ts";
import type { EncodedMessage, EnqueueCall, EnqueueStatus, MessageWriter } from "../../outbox/message-writer.ts";
import {
  DuplicateMessageError,
  InvalidMessageError,
  type RowpostError,
  SchemaError,
  TransactionRequiredError,
} from "../../runtime/errors.ts";
import type { Executor, QueryResult } from "../../transactions/executor.ts";
import { LenientSessionError, letterLacking, requireRoom, type TableRoom, tableRoom } from "./column-room.ts";
import { type CallParts, callIn, outsideTransaction, type Send } from "./enqueue-call.ts";
import type { TableLayout } from "./layout.ts";
import { lowerCased, type Row, text } from "./rows.ts";
import type { DialectStatements } from "./statements.ts";

export interface WriterParts extends CallParts {
  readonly layout: TableLayout;
  readonly statements: Pick<DialectStatements, "facts" | "enqueue">;
  /** Whether this error is a violated unique key, however an ORM has wrapped it. */
  readonly isDuplicate: (error: unknown) => boolean;
  /** Whether this error rolled, or may have rolled, the whole transaction back. */
  readonly endsTransaction?: ((error: unknown) => boolean) | undefined;
  /** The letter that the database cannot hold, if that is the error; "" if it does not name it. */
  readonly lackedLetter?: ((error: unknown) => string | undefined) | undefined;
  /** Our error for missing tables, columns or privileges; undefined for others. */
  readonly lackOf: (error: unknown, statement: string) => RowpostError | undefined;
}

export function createMessageWriter(given: WriterParts): MessageWriter {
  const parts: Parts = { ...given, room: {} };
  const begin = (tx: Executor, { later }: { readonly later: boolean }): EnqueueCall =>
    createCall(parts, callIn(parts, tx, later));
  return { begin, insert: (tx, messages, options) => begin(tx, { later: false }).insert(messages, options) };
}

interface Parts extends WriterParts {
  /** What the columns hold, known after a lenient session; and whether a unique key was seen. */
  readonly room: { known?: TableRoom | undefined; hasKey?: true };
}

function createCall(parts: Parts, send: Send): EnqueueCall {
  return {
    async insert(messages, { duplicates }) {
      if (messages.length === 0) return [];
      for (const message of messages) checkColumns(parts.layout, message);
      const first = new Map<string, EncodedMessage>();
      for (const message of messages) {
        const identity = identityOf(message);
        if (!first.has(identity)) first.set(identity, message);
      }
      if (duplicates === "throw" && first.size < messages.length) throw new DuplicateMessageError(repeated(messages));

      const there = await insertNew(parts, send, [...first.values()], duplicates).catch(async (error: unknown) => {
        throw parts.lackOf(error, "enqueue") ?? (await withLetter(parts, send, messages, error)) ?? error;
      });
      if (there.size === 0 && first.size === messages.length) return messages.map(() => "enqueued");
      const seen = new Set<string>();
      return messages.map((message): EnqueueStatus => {
        const identity = identityOf(message);
        if (there.has(identity) || seen.has(identity)) return "duplicate";
        seen.add(identity);
        return "enqueued";
      });
    },

    async undo(messages, error) {
      if (messages.length === 0 || parts.endsTransaction?.(error) === true) return;
      // They ended with their transaction, and a DELETE now would run in another one.
      if (error instanceof TransactionRequiredError) return;
      await send((check) => parts.statements.enqueue.deleteIdentities(messages, check));
    },
  };
}

/** Undefined: no letter was refused. */
async function withLetter(
  { lackedLetter, layout, statements }: Parts,
  send: Send,
  messages: readonly EncodedMessage[],
  cause: unknown,
): Promise<InvalidMessageError | undefined> {
  const letter = lackedLetter?.(cause);
  if (letter === undefined) return undefined;
  const { readRoom } = statements.enqueue;
  const read = letter === "" && readRoom !== undefined ? await send(readRoom).catch(() => undefined) : undefined;
  return letterLacking(layout, messages, { letter, room: tableRoom(read?.rows ?? []), cause });
}

/** Type and key cannot contain NUL, so it separates them. */
function identityOf(message: { readonly type: string; readonly key: string }): string {
  return `${message.type}\0${message.key}`;
}

function repeated(messages: readonly EncodedMessage[]): EncodedMessage[] {
  const seen = new Set<string>();
  return messages.filter((message) => {
    const identity = identityOf(message);
    if (seen.has(identity)) return true;
    seen.add(identity);
    return false;
  });
}

/** Inserts the missing messages and returns the identities that existed. */
function insertNew(
  parts: Parts,
  send: Send,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore",
): Promise<ReadonlySet<string>> {
  const insert = parts.statements.facts.insertReportsDuplicates ? insertReporting : insertOrLookUp;
  return insert(parts, send, messages, duplicates);
}

/** The INSERT skips duplicates and returns the inserted rows. */
async function insertReporting(
  parts: Parts,
  send: Send,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore",
): Promise<ReadonlySet<string>> {
  const { enqueue } = parts.statements;
  const { rows } = await send((check) => enqueue.insert(messages, check));
  if (rows.length === messages.length) return new Set();
  const inserted = new Set(rows.map((row) => identityOf(storedIdentity(row))));
  let rest = messages.filter((message) => !inserted.has(identityOf(message)));
  let stored = await findStored(parts, send, rest);
  if (stored.length < rest.length) {
    // The conflicting row was removed meanwhile: tries once more.
    const again = await send((check) => enqueue.insert(rest, check));
    for (const row of again.rows) inserted.add(identityOf(storedIdentity(row)));
    rest = messages.filter((message) => !inserted.has(identityOf(message)));
    if (rest.length === 0) return new Set();
    stored = await findStored(parts, send, rest);
  }
  const unwritten = stored.length < rest.length;
  if (unwritten || duplicates === "throw") {
    const undone = messages.filter((message) => inserted.has(identityOf(message)));
    if (undone.length > 0) await send((check) => enqueue.deleteIdentities(undone, check));
    throw unwritten ? notWritten(rest) : new DuplicateMessageError(rest.map(({ type, key }) => ({ type, key })));
  }
  refuseFolded(rest, stored);
  return new Set(rest.map(identityOf));
}

/** There is no other message with this identity, so reporting a duplicate would lose this one. */
function notWritten(messages: readonly EncodedMessage[]): SchemaError {
  return new SchemaError(
    `the INSERT wrote nothing for ${messages.map(identityOf).join(", ").replaceAll("\0", ":")}, and no such row can be seen: ` +
      "a trigger of the table swallows it, or row-level security hides a row with this type and key. Nothing of this call is in the table.",
  );
}

/**
 * A duplicate fails the whole INSERT; duplicates are then looked up, and the rest is inserted
 * again. Ignored duplicates are looked up first, so the INSERT fails only for rows committed after
 * this transaction's snapshot or meanwhile.
 */
async function insertOrLookUp(
  parts: Parts,
  send: Send,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore",
): Promise<ReadonlySet<string>> {
  const there = new Set(duplicates === "ignore" ? await lookFirst(parts, send, messages) : []);
  let left = messages.filter((message) => !there.has(identityOf(message)));
  let fruitless = 0;
  while (left.length > 0) {
    try {
      const { affected } = await insertFitting(parts, send, left);
      if (affected === 0) throw outsideTransaction();
      return there;
    } catch (error) {
      if (!parts.isDuplicate(error)) throw error;
      const stored = await findStored(parts, send, left);
      // The conflicting row was removed meanwhile: tries once more. Otherwise two messages of this
      // call collide, or another unique key is violated.
      if (stored.length === 0 && fruitless > 0) {
        const folded = foldedTogether(left);
        throw folded.length > 0 ? new DuplicateMessageError(folded, { cause: error }) : error;
      }
      if (stored.length === 0) fruitless += 1;
      else if (duplicates === "throw") throw new DuplicateMessageError(stored, { cause: error });
      refuseFolded(left, stored);
      for (const each of stored) there.add(identityOf(each));
      left = left.filter((message) => !there.has(identityOf(message)));
    }
  }
  return there;
}

/**
 * A session without a strict sql_mode refuses the INSERT. Then the columns are read, once per
 * database, and all values checked before sending.
 */
async function insertFitting(parts: Parts, send: Send, messages: readonly EncodedMessage[]): Promise<QueryResult> {
  const { layout, room, statements } = parts;
  const insert = (): Promise<QueryResult> => {
    const { known } = room;
    if (known !== undefined) for (const message of messages) requireRoom(layout, known, message);
    const looksForKey = room.hasKey !== true;
    return send((check) => statements.enqueue.insert(messages, { ...check, fitsIn: known?.database, looksForKey }));
  };
  try {
    const inserted = await insert();
    room.hasKey = true;
    return inserted;
  } catch (error) {
    const { readRoom } = statements.enqueue;
    if (!(error instanceof LenientSessionError) || readRoom === undefined) throw error;
    const { rows } = await send(readRoom);
    room.known = tableRoom(rows);
    if (room.known === undefined) throw error;
    return await insert();
  }
}

/**
 * Our messages already in the table, byte for byte, as this transaction sees them; other rows are
 * left to the INSERT. Looked up again under lock: the snapshot may hold a deleted row, or a dirty
 * read (SET TRANSACTION) one that is rolled back, and reporting a duplicate would lose the message.
 */
async function lookFirst(parts: Parts, send: Send, messages: readonly EncodedMessage[]): Promise<ReadonlySet<string>> {
  const { seeIdentities } = parts.statements.enqueue;
  if (seeIdentities === undefined) return new Set();
  const { rows } = await send((check) => seeIdentities(messages, check));
  const seen = new Set(rows.map((row) => identityOf(storedIdentity(row))));
  const found = messages.filter((message) => seen.has(identityOf(message)));
  return new Set(found.length === 0 ? [] : (await findStored(parts, send, found)).map(identityOf));
}

interface Identity {
  readonly type: string;
  readonly key: string;
}

function storedIdentity(row: Row): Identity {
  const fields = lowerCased(row);
  return { type: text(fields, "messagetype"), key: text(fields, "messagekey") };
}

async function findStored(parts: Parts, send: Send, messages: readonly EncodedMessage[]): Promise<readonly Identity[]> {
  const { rows } = await send((check) => parts.statements.enqueue.findIdentities(messages, check));
  if (rows.some((row) => Object.values(row).includes(null))) throw outsideTransaction();
  return rows.map(storedIdentity);
}

/**
 * A stored identity unlike all of ours was found by a collation that folds case, accents or
 * trailing blanks. Reporting ours as a duplicate of that message would silently lose it (rule:
 * exact-bytes).
 */
function refuseFolded(messages: readonly EncodedMessage[], stored: readonly Identity[]): void {
  const ours = new Set(messages.map(identityOf));
  const folded = stored.filter((each) => !ours.has(identityOf(each)));
  if (folded.length > 0) throw new DuplicateMessageError(folded);
}

/**
 * Messages that equal an earlier one of the call except for case, accents, width or trailing
 * blanks. Used only if the database refused the call and no stored row explains it, because folding
 * depends on the table.
 */
function foldedTogether(messages: readonly EncodedMessage[]): readonly Identity[] {
  const seen = new Set<string>();
  return messages.flatMap(({ type, key }) => {
    const folded = [type, key]
      .map((text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trimEnd())
      .join("\0");
    if (seen.has(folded)) return [{ type, key }];
    seen.add(folded);
    return [];
  });
}

/** A missing column cannot be ignored, or the consumer would miss its value. */
function checkColumns(layout: TableLayout, message: EncodedMessage): void {
  const { columns } = layout;
  // A column of bytes stores no content type and detects JSON from the content.
  const isPlain =
    message.contentType === null || (layout.bodyType === "binary" && bareType(message) === BINARY_CONTENT_TYPE);
  const missing =
    message.headers !== null && columns.headers === undefined
      ? "headers"
      : message.orderingKey !== null && columns.orderingKey === undefined
        ? "ordering key"
        : !isPlain && columns.contentType === undefined
          ? "content type"
          : undefined;
  if (missing !== undefined) {
    throw new InvalidMessageError(
      `${message.type}:${message.key} has a ${missing}, and the table of the layout ${layout.name} has no column for it`,
    );
  }
}
