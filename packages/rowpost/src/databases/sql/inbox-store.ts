import type {
  EarlierHandling,
  HandlingRow,
  HandlingsRequest,
  InboxStore,
  InboxStoreOptions,
  SeenHandling,
} from "../../inbox/store.ts";
import {
  ConfigurationError,
  DatabaseConflictError,
  describeError,
  SchemaError,
  TransactionLostError,
  TransactionRequiredError,
} from "../../runtime/errors.ts";
import type { Executor, QueryResult } from "../../transactions/executor.ts";
import type { Database } from "../database.ts";
import { LenientSessionError } from "./column-room.ts";
import { type CallParts, callIn } from "./enqueue-call.ts";
import type { InboxDialect, InboxStatements } from "./inbox-statements.ts";
import { createLayout } from "./layouts.ts";
import { printMigrations, runMigrations } from "./migrate.ts";
import { integer, lowerCased, type Row, text, textOrNull } from "./rows.ts";

export interface InboxParts extends Pick<CallParts, "isOutsideTransaction" | "unfitSession"> {
  readonly dialect: InboxDialect;
  readonly connect: Database["connect"];
  /** Whether this error is a violated unique key, however an ORM has wrapped it. */
  readonly isDuplicate: (error: unknown) => boolean;
}

export function createInboxStore(parts: InboxParts, options: InboxStoreOptions): InboxStore {
  const statements = parts.dialect.createStatements(createLayout(options));
  const meaning = (error: unknown, what: string): unknown => meant(parts, error, what);
  return {
    record: (tx, row) =>
      record(parts, statements, tx, row).catch((error: unknown) => {
        throw meaning(error, `${row.type}:${row.key} for the consumer ${row.consumer}`);
      }),
    within: (tx, on, depth, work) =>
      tx.behindSavepoint?.(work) ?? behindSavepoint(parts, tx, `rowpost_inbox_${depth}`, () => work(on)),
    async forget(request) {
      const session = await parts.connect({ purpose: "tool" });
      try {
        return (await session.run(statements.forgetHandlings(request))).affected;
      } finally {
        await session.close();
      }
    },
    handlings: (request, each) =>
      readHandlings(parts, statements, request, each).catch((error: unknown) => {
        throw meaning(error, "handlings");
      }),
    migrate: () => runMigrations(parts, statements.schema),
    isWaitOver: (error) => parts.dialect.isWaitOver(error),
    print: () => printMigrations(statements.schema.migrations),
    meaning,
  };
}

const PAGE = 1_000;

async function readHandlings(
  { connect }: InboxParts,
  statements: InboxStatements,
  request: HandlingsRequest,
  each: (page: readonly SeenHandling[]) => Promise<void>,
): Promise<void> {
  const session = await connect({ purpose: "tool" });
  try {
    for (let after: SeenHandling | undefined; ; ) {
      const { rows } = await session.run(statements.readHandlings({ ...request, after, limit: PAGE }));
      const page = rows.map(seenHandling);
      await each(page);
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  } finally {
    await session.close();
  }
}

function seenHandling(row: Row): SeenHandling {
  return {
    consumer: text(row, "consumer"),
    type: text(row, "type"),
    key: text(row, "key"),
    handledAt: text(row, "handledat"),
    handledBy: text(row, "handledby"),
    messageId: textOrNull(row, "messageid"),
  };
}

async function record(
  parts: InboxParts,
  statements: InboxStatements,
  tx: Executor,
  row: HandlingRow,
): Promise<EarlierHandling | undefined> {
  const { isOutsideTransaction, unfitSession } = parts;
  const send = callIn({ statements: { enqueue: statements }, outside, isOutsideTransaction, unfitSession }, tx, false);
  for (let again = false; ; again = true) {
    const isNew = await send((check) => statements.record(row, check)).then(wasWritten, (error: unknown) => {
      if (parts.isDuplicate(error)) return false;
      throw error;
    });
    if (isNew) return undefined;
    const [found] = (await send((check) => statements.readHandling(row, check))).rows;
    if (found !== undefined) return earlier(lowerCased(found));
    // The conflicting row was removed meanwhile: tries once more.
    if (again) throw new SchemaError(UNSEEN);
  }
}

const UNSEEN =
  "the INSERT into the table of the inbox wrote nothing, and no row with this identity can be seen: a trigger of the table swallows it, another unique key refuses it, or row-level security hides it. Nothing was handled.";

function wasWritten({ affected, rows }: QueryResult): boolean {
  return rows.length > 0 || affected > 0;
}

function earlier(row: Row): EarlierHandling {
  if (row["handledat"] === null) throw outside();
  return {
    handledAt: text(row, "handledat"),
    handledBy: text(row, "handledby"),
    messageId: textOrNull(row, "messageid"),
    attempt: row["attempt"] === null ? null : integer(row, "attempt"),
  };
}

/**
 * Where a SAVEPOINT outside a transaction is ignored, the next INSERT reports it. The name varies
 * only within a transaction, to keep the texts few.
 */
async function behindSavepoint<T>(
  { dialect }: InboxParts,
  tx: Executor,
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  const run = (verb: string): Promise<unknown> => tx.run({ name: "savepoint", text: `${verb} ${name}`, params: [] });
  if (dialect.savepointBegins === true && (await tx.inTransaction?.()) === false) throw outside();
  await run("SAVEPOINT").catch((error: unknown) => {
    throw dialect.isSavepointGone(error) ? outside(error) : error;
  });
  try {
    const result = await work();
    await run("RELEASE SAVEPOINT");
    return result;
  } catch (error) {
    if (dialect.isSavepointGone(error)) throw ended(error);
    // A failed rollback means that the whole transaction is gone already.
    await run("ROLLBACK TO SAVEPOINT")
      .then(() => run("RELEASE SAVEPOINT"))
      .catch(() => undefined);
    throw error;
  }
}

function outside(cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    "the connection is in no transaction, or no longer in the one of this call: begin one, or pass the database itself, and inbox.handle begins its own; if you have begun one, it ended before: put await before inbox.handle. Nothing was written.",
    { cause },
  );
}

function ended(cause: unknown): TransactionLostError {
  return new TransactionLostError(
    "the transaction ended while its message was being handled: a COMMIT, a ROLLBACK or DDL in the handler, a deadlock whose error it has caught, or an await that is missing. Let the message come again",
    { cause },
  );
}

function meant({ dialect }: InboxParts, error: unknown, what: string): unknown {
  if (error instanceof LenientSessionError) {
    return new ConfigurationError(
      "the sql_mode of this connection has no STRICT_TRANS_TABLES, so that the server may cut a key and take it for another one's: set the mode. Nothing was written.",
      { cause: error },
    );
  }
  const meaning = dialect.translateError(error, "inbox");
  if (meaning instanceof DatabaseConflictError) {
    return new DatabaseConflictError(
      `inbox: ${what}: another delivery is being handled, or a transaction was in the way (${describeError(error)}). Roll back, do not acknowledge the message, and let it come again`,
      { cause: error },
    );
  }
  if (meaning instanceof SchemaError && meaning !== error) {
    return new SchemaError(
      `inbox: ${describeError(error)}; inbox.migrate() makes the table, inbox.migrate({ print: true }) gives its SQL`,
      { cause: error },
    );
  }
  return meaning;
}
