/**
 * Runs the statements of one enqueue or inbox handling in the call's transaction or not at all:
 * without an await the transaction may end meanwhile, and another begin on the same connection
 * (rule: ended-transaction).
 */
import { randomBytes } from "node:crypto";
import { DatabaseUnavailableError, TransactionRequiredError } from "../../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "../../transactions/executor.ts";
import type { EnqueueStatements, TransactionCheck } from "./statements.ts";

/**
 * Throws `TransactionRequiredError`, and writes nothing, if the call's transaction is missing or
 * has ended.
 */
export type Send = (make: (check: TransactionCheck) => Statement) => Promise<QueryResult>;

export interface CallParts {
  readonly statements: { readonly enqueue: Pick<EnqueueStatements, "markTransaction"> };
  /** Error for a call outside its transaction, if it is not an enqueue. */
  readonly outside?: ((cause?: unknown) => TransactionRequiredError) | undefined;
  /** Whether this is the INSERT's error outside a transaction. */
  readonly isOutsideTransaction?: ((error: unknown) => boolean) | undefined;
  /** Longest wait for a handle that may never answer; default {@link SILENT_MS}. */
  readonly silentMs?: number | undefined;
  /** The problem, if this is the error of the session check (rule: exact-text). */
  readonly unfitSession?: ((error: unknown) => Error | undefined) | undefined;
}

/**
 * postgres.js never answers a statement sent after the end of its transaction. A slower statement
 * fails too, and its transaction must be rolled back.
 */
const SILENT_MS = 30_000;

const PROCESS = randomBytes(9).toString("base64url");
let calls = 0;

/**
 * Only the first statement asks; later ones check by themselves. If the driver knows, nothing is
 * awaited before the first one, which so keeps the call's place on the connection.
 */
export function callIn(parts: CallParts, tx: Executor, later: boolean): Send {
  calls += 1;
  const mark = `${PROCESS}-${calls}`;
  const outside = parts.outside ?? outsideTransaction;
  if (tx.inTransaction === undefined) return (make) => run(parts, tx, make({ asked: false, mark, isOwn: true }));
  const statement = parts.statements.enqueue.markTransaction?.(mark);
  const leaveMark = async (): Promise<unknown> => statement && (await tx.run(statement));
  let marking = later && statement !== undefined ? leaveMark() : undefined;
  marking?.catch(() => undefined);
  let begun = false;
  let isFree = false;

  async function begin(known: boolean | undefined | Promise<boolean>): Promise<void> {
    if (statement !== undefined && known !== true) marking ??= leaveMark();
    if ((await known) === false) throw outside();
    await marking;
  }

  return async (make) => {
    const first = !begun;
    begun = true;
    const known = first || isFree ? tx.inTransaction?.() : true;
    if (known === false) throw outside();
    if (!first || (known === true && marking === undefined)) {
      isFree ||= first;
      const running = run(parts, tx, make({ asked: !first, mark }));
      return await (first || tx.pipelines !== true ? running : unlessSilent(running, parts));
    }
    const beginning = begin(known);
    if (tx.pipelines !== true) await beginning;
    const [result] = await Promise.all([run(parts, tx, make({ asked: true, mark })), beginning]);
    return result;
  };
}

async function unlessSilent<T>(running: Promise<T>, { silentMs = SILENT_MS }: CallParts): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(silent(silentMs)), silentMs);
  });
  try {
    return await Promise.race([running, silence]);
  } finally {
    clearTimeout(timer);
  }
}

function silent(ms: number): DatabaseUnavailableError {
  return new DatabaseUnavailableError(
    `postgres.js gave no answer within ${ms / 1000} s, as for what comes behind the end of its transaction: put await before the call. If the transaction is open, roll it back`,
  );
}

async function run(parts: CallParts, tx: Executor, statement: Statement): Promise<QueryResult> {
  try {
    return await tx.run(statement);
  } catch (error) {
    if (parts.isOutsideTransaction?.(error) === true) throw (parts.outside ?? outsideTransaction)(error);
    throw parts.unfitSession?.(error) ?? error;
  }
}

export function outsideTransaction(cause?: unknown): TransactionRequiredError {
  return new TransactionRequiredError(
    "the connection is in no transaction, or no longer in the one of this call: a message is written in the transaction of the business change, or it may be published without it. " +
      "Begin one, or use outbox.transaction(); if you have begun one, it ended before this enqueue: put await before outbox.enqueue. Nothing was written.",
    { cause },
  );
}
