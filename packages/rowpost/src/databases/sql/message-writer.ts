/**
 * Enqueue on any SQL database: one INSERT in the user's transaction, and what to do when a message
 * is there already.
 */
import type { EncodedMessage, EnqueueStatus, MessageWriter } from "../../outbox/message-writer.ts";
import {
  DuplicateMessageError,
  InvalidMessageError,
  type RowpostError,
  SchemaError,
  TransactionRequiredError,
} from "../../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "../../transactions/executor.ts";
import type { TableLayout } from "./layout.ts";
import { type Row, text } from "./rows.ts";
import type { DialectStatements } from "./statements.ts";

/** What a dialect brings to the writer. */
export interface WriterParts {
  readonly layout: TableLayout;
  readonly statements: Pick<DialectStatements, "facts" | "enqueue">;
  /** Is this error a violated unique key, however an ORM has wrapped it? */
  readonly isDuplicate: (error: unknown) => boolean;
  /** Has the server, or may it have, rolled the whole transaction back with this error? */
  readonly endsTransaction?: ((error: unknown) => boolean) | undefined;
  /** Is it what the INSERT answers outside a transaction? */
  readonly isOutsideTransaction?: ((error: unknown) => boolean) | undefined;
  /** Is it what the check of the session answers (rule: exact-text)? Then what is wrong with it. */
  readonly unfitSession?: ((error: unknown) => Error | undefined) | undefined;
  /** What the tables or the rights on them lack, as an error of ours; undefined for others. */
  readonly lackOf: (error: unknown, statement: string) => RowpostError | undefined;
}

export function createMessageWriter(parts: WriterParts): MessageWriter {
  return {
    async insert(tx, messages, { duplicates }) {
      if (messages.length === 0) return [];
      for (const message of messages) checkColumns(parts.layout, message);
      await requireTransaction(tx);
      const first = new Map<string, EncodedMessage>();
      for (const message of messages) {
        const identity = identityOf(message);
        if (!first.has(identity)) first.set(identity, message);
      }
      if (duplicates === "throw" && first.size < messages.length) throw new DuplicateMessageError(repeated(messages));

      const there = await insertNew(parts, tx, [...first.values()], duplicates).catch((error: unknown) => {
        throw parts.lackOf(error, "enqueue") ?? error;
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

    async undo(tx, messages, error) {
      if (messages.length === 0 || parts.endsTransaction?.(error) === true) return;
      await requireTransaction(tx);
      await tx.run(parts.statements.enqueue.deleteIdentities(messages));
    },
  };
}

/** Type and key cannot hold NUL: it separates them. */
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

/** Inserts those that are not in the table, and returns the identities that were. */
function insertNew(
  parts: WriterParts,
  tx: Executor,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore",
): Promise<ReadonlySet<string>> {
  const insert = parts.statements.facts.insertReportsDuplicates ? insertReporting : insertOrLookUp;
  return insert(parts, tx, messages, duplicates);
}

/** The INSERT skips duplicates and returns what it inserted. */
async function insertReporting(
  parts: WriterParts,
  tx: Executor,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore",
): Promise<ReadonlySet<string>> {
  const { enqueue } = parts.statements;
  const { rows } = await runChecked(parts, tx, enqueue.insert(messages));
  if (rows.length === messages.length) return new Set();
  const inserted = new Set(rows.map((row) => identityOf(storedIdentity(row))));
  let rest = messages.filter((message) => !inserted.has(identityOf(message)));
  let stored = await findStored(parts, tx, rest);
  if (stored.length < rest.length) {
    // The row in the way was removed meanwhile: once more.
    const again = await runChecked(parts, tx, enqueue.insert(rest));
    for (const row of again.rows) inserted.add(identityOf(storedIdentity(row)));
    rest = messages.filter((message) => !inserted.has(identityOf(message)));
    if (rest.length === 0) return new Set();
    stored = await findStored(parts, tx, rest);
  }
  const unwritten = stored.length < rest.length;
  if (unwritten || duplicates === "throw") {
    const undone = messages.filter((message) => inserted.has(identityOf(message)));
    if (undone.length > 0) await tx.run(enqueue.deleteIdentities(undone));
    throw unwritten ? notWritten(rest) : new DuplicateMessageError(rest.map(({ type, key }) => ({ type, key })));
  }
  refuseFolded(rest, stored);
  return new Set(rest.map(identityOf));
}

/** Called a duplicate, the message would be lost: there is no other one of its identity. */
function notWritten(messages: readonly EncodedMessage[]): SchemaError {
  return new SchemaError(
    `the INSERT wrote nothing for ${messages.map(identityOf).join(", ").replaceAll("\0", ":")}, and no such row can be seen: ` +
      "a trigger of the table swallows it, or row-level security hides a row with this type and key. Nothing of this call is in the table.",
  );
}

/**
 * A duplicate fails the whole INSERT, of which nothing stays; which ones they are is looked up, and
 * the others are inserted again. Those that are to be ignored are looked for first: the INSERT then
 * fails only for what was committed after this transaction's snapshot, or meanwhile.
 */
async function insertOrLookUp(
  parts: WriterParts,
  tx: Executor,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore",
): Promise<ReadonlySet<string>> {
  const there = new Set(duplicates === "ignore" ? await lookFirst(parts, tx, messages) : []);
  let left = messages.filter((message) => !there.has(identityOf(message)));
  let fruitless = 0;
  while (left.length > 0) {
    try {
      const { affected } = await runChecked(parts, tx, parts.statements.enqueue.insert(left));
      if (affected === 0) throw outsideTransaction();
      return there;
    } catch (error) {
      if (!parts.isDuplicate(error)) throw error;
      const stored = await findStored(parts, tx, left);
      // The row in the way was removed meanwhile: once more. Else two of this call are one to the
      // table, or another unique key was meant.
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
 * Those of ours that are in the table, byte for byte, as far as this transaction sees them: one
 * that only a collation takes for ours, and one that was committed after the snapshot, is left to
 * the INSERT. Looked up once more under lock: the snapshot may hold a row that is gone, and SET
 * TRANSACTION may have made the read a dirty one, of a row that is then rolled back; called a
 * duplicate, the message would be lost.
 */
async function lookFirst(
  parts: WriterParts,
  tx: Executor,
  messages: readonly EncodedMessage[],
): Promise<ReadonlySet<string>> {
  const { enqueue } = parts.statements;
  if (enqueue.seeIdentities === undefined) return new Set();
  const { rows } = await runChecked(parts, tx, enqueue.seeIdentities(messages));
  const seen = new Set(rows.map((row) => identityOf(storedIdentity(row))));
  const found = messages.filter((message) => seen.has(identityOf(message)));
  return new Set(found.length === 0 ? [] : (await findStored(parts, tx, found)).map(identityOf));
}

async function runChecked(parts: WriterParts, tx: Executor, statement: Statement): Promise<QueryResult> {
  try {
    return await tx.run(statement);
  } catch (error) {
    if (parts.isOutsideTransaction?.(error) === true) throw outsideTransaction(error);
    throw parts.unfitSession?.(error) ?? error;
  }
}

interface Identity {
  readonly type: string;
  readonly key: string;
}

/**
 * A handle of the user's may rename columns, to camelCase or PascalCase: these aliases have nothing
 * to rename but the case of their letters.
 */
function storedIdentity(row: Row): Identity {
  const fields = Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));
  return { type: text(fields, "messagetype"), key: text(fields, "messagekey") };
}

async function findStored(
  parts: WriterParts,
  tx: Executor,
  messages: readonly EncodedMessage[],
): Promise<readonly Identity[]> {
  const { rows } = await tx.run(parts.statements.enqueue.findIdentities(messages));
  return rows.map(storedIdentity);
}

/**
 * A stored identity that none of ours equals byte for byte was found by a collation that folds
 * case, accents or trailing blanks: it is a different message, and reporting ours as a duplicate
 * would lose it without a word (rule: exact-bytes).
 */
function refuseFolded(messages: readonly EncodedMessage[], stored: readonly Identity[]): void {
  const ours = new Set(messages.map(identityOf));
  const folded = stored.filter((each) => !ours.has(identityOf(each)));
  if (folded.length > 0) throw new DuplicateMessageError(folded);
}

/**
 * Messages that equal an earlier one of the call but for case, accents, width or trailing blanks.
 * Which of these a collation folds is the table's affair; asked only after the database has refused
 * the call and no stored row explains it.
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

/**
 * Asked before the INSERT where the engine has no way to say it in SQL; free where the driver
 * knows.
 */
async function requireTransaction(tx: Executor): Promise<void> {
  if (tx.inTransaction === undefined) return;
  if (!(await tx.inTransaction())) throw outsideTransaction();
}

function outsideTransaction(cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    "the connection is in no transaction: a message is written in the transaction of the business change, or it may be published without it. " +
      "Begin one, or use outbox.transaction(); if you have begun one, it ended before this enqueue: put await before outbox.enqueue. Nothing was written.",
    { cause },
  );
}

/**
 * A column that the table does not have cannot be left out in silence: the consumer would miss what
 * it says.
 */
function checkColumns(layout: TableLayout, message: EncodedMessage): void {
  const { columns } = layout;
  const missing =
    message.headers !== null && columns.headers === undefined
      ? "headers"
      : message.orderingKey !== null && columns.orderingKey === undefined
        ? "ordering key"
        : message.contentType !== null && columns.contentType === undefined
          ? "content type"
          : undefined;
  if (missing !== undefined) {
    throw new InvalidMessageError(
      `${message.type}:${message.key} has a ${missing}, and the table of the layout ${layout.name} has no column for it`,
    );
  }
}
