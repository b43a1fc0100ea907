/** pg (node-postgres): clients, alone or from a pool. */
import { createHash } from "node:crypto";
import { TransactionLostError } from "../runtime/errors.ts";
import type { Executor, Statement } from "./executor.ts";
import { type OwnConnection, USER_STATEMENT } from "./own-transaction.ts";
import { askByLock, sayingWhenFailed } from "./pg-status.ts";
import { hasMethods, queryResult, refusal, type Shape } from "./shape.ts";

interface Result {
  readonly rows: unknown;
  readonly rowCount: number | null;
  readonly command: string;
}

interface Client {
  query(text: string, values?: readonly unknown[]): Promise<Result>;
  query(config: { readonly name: string; readonly text: string; readonly values: readonly unknown[] }): Promise<Result>;
  release?(broken: boolean): void;
  on(event: "error", listener: () => void): unknown;
  off(event: "error", listener: () => void): unknown;
  /**
   * Since pg 8.18: I = none, T = in a transaction, E = in a failed one. Null before the first
   * answer.
   */
  getTransactionStatus?(): "I" | "T" | "E" | null;
  /** No statement is running or waiting. Missing on native clients. */
  readonly readyForQuery?: boolean;
}

/** How statements reach PostgreSQL. */
export interface PostgresOptions {
  /**
   * Keeps rowpost's own statements prepared on each connection: a transaction with one message
   * takes a third less time (3,000 instead of 2,200 a second on 8 connections). Default false:
   * behind a pooler in transaction mode without prepared statements (PgBouncer before 1.21, or with
   * max_prepared_statements = 0) the next transaction uses another server connection and fails.
   */
  readonly prepare?: boolean | undefined;
}

/** Returns undefined for anything but a pg client. */
export function pgExecutor(handle: Shape, options: PostgresOptions): Executor | undefined {
  const client = recognize(handle);
  return client && executorOf(client, options);
}

function isPool(handle: Shape): boolean {
  return hasMethods(handle, "connect", "query", "end") && typeof handle["totalCount"] === "number";
}

function recognize(handle: Shape): Client | undefined {
  if (isPool(handle)) {
    throw refusal(
      "a pg pool",
      "take a client with pool.connect(), BEGIN on it and pass the client, or use outbox.transaction(pool, …)",
    );
  }
  if (!hasMethods(handle, "query", "connect") || !("connectionParameters" in handle)) return undefined;
  if (handle["_ending"] === true || handle["_queryable"] === false) {
    throw refusal("a closed or lost pg client", "take a new one, BEGIN on it and pass it");
  }
  return handle as unknown as Client;
}

/** `onAnswer` gets each answer; a text with several statements has several. */
function executorOf(
  client: Client,
  options: PostgresOptions,
  onAnswer?: (answer: Result | readonly Result[]) => void,
): Executor {
  return {
    kind: "pg",
    run: async ({ name, params, text }: Statement) => {
      // With separate text and values pg copies no configuration object, which saves 2 us a
      // statement.
      const answer = await (options.prepare === true && name !== USER_STATEMENT
        ? client.query({ name: preparedName(text), text, values: params })
        : client.query(text, params));
      onAnswer?.(answer);
      const { rowCount, rows } = answer;
      return queryResult(rows, rowCount ?? undefined);
    },
    inTransaction: () => knownOpen(client),
  };
}

const preparedNames = new Map<string, string>();

/**
 * Derived from the text, so that two tables, versions or processes behind one pooler never share a
 * name.
 */
function preparedName(text: string): string {
  let name = preparedNames.get(text);
  if (name === undefined) {
    name = `rowpost_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
    preparedNames.set(text, name);
  }
  return name;
}

/**
 * The status is that of the last answer. While a statement is pending, perhaps a ROLLBACK, it says
 * nothing about later ones.
 */
function knownOpen(client: Client): boolean | undefined {
  if (client.readyForQuery !== true) return undefined;
  const status = client.getTransactionStatus?.() ?? undefined;
  return status && status !== "I";
}

async function isOpen(client: Client): Promise<boolean> {
  return knownOpen(client) ?? (await askByLock((text) => client.query(text)));
}

/** A pg pool or idle client for our own transaction; undefined for anything else. */
export async function openPg(handle: Shape, options: PostgresOptions): Promise<OwnConnection | undefined> {
  if (isPool(handle)) {
    const client = await (handle as unknown as { connect(): Promise<Client> }).connect();
    return own(client, options);
  }
  const client = recognize(handle);
  if (client === undefined) return undefined;
  if (await isOpen(client)) {
    // BEGIN would only warn, and our COMMIT would commit the user's transaction.
    throw refusal("a pg client with a transaction of its own", "pass it to outbox.enqueue, or pass the pool here");
  }
  return own(client, options);
}

function own(client: Client, options: PostgresOptions): OwnConnection {
  // A client outside its pool emits "error" when it loses its connection, which ends the process
  // without a listener.
  const heard = (): void => {};
  client.on("error", heard);
  /** Before pg 8.18: a statement ended the transaction or rolled back to a savepoint. */
  let mayBeOver = false;
  const look = (answer: Result | readonly Result[]): void => {
    mayBeOver ||= [answer].flat().some(({ command }) => /^(?:COMMIT|ROLLBACK|PREPARE)/.test(command));
  };
  const onAnswer = client.getTransactionStatus === undefined ? look : undefined;
  return {
    executor: sayingWhenFailed(executorOf(client, options, onAnswer)),
    begin: () => client.query("BEGIN"),
    commit: async () => {
      // PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK, without an error
      // (rule: ended-transaction).
      const { command } = await client.query("COMMIT");
      if (command !== "COMMIT") {
        throw new TransactionLostError(
          "a statement of this transaction had failed, so PostgreSQL rolled it back instead of committing; run it again from the start",
        );
      }
    },
    rollback: () => client.query("ROLLBACK"),
    // A failed transaction has not ended: the user may roll back to a savepoint, and until then the
    // server refuses every statement.
    ended: async (afterError) => {
      if (client.getTransactionStatus !== undefined) return client.getTransactionStatus() === "I";
      if (!afterError && !mayBeOver) return false;
      mayBeOver = false;
      return !(await isOpen(client).catch(() => true));
    },
    release: (broken) => {
      client.off("error", heard);
      client.release?.(broken);
    },
  };
}
