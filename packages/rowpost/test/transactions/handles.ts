/** What the tests need of a driver or ORM. */

/**
 * Work in a transaction: `tx` is the handle as the driver or ORM gives it, `insertOrder` writes a
 * business row its own way.
 */
export type TransactionWork = (tx: unknown, insertOrder: (id: string) => Promise<unknown>) => Promise<void>;

/** A driver or ORM, connected. */
export interface Handles {
  /** Pool, client, data source: what is no transaction. */
  readonly root: unknown;
  /** Begins the driver's or ORM's own way, commits, and rolls back when the work throws. */
  transaction(work: TransactionWork): Promise<void>;
  /** A handle of the right kind with no transaction, where there is such a thing. */
  withoutTransaction?(work: (handle: unknown) => Promise<void>): Promise<void>;
  /** A connection that was closed before the work, where there is such a thing. */
  closed?(work: (handle: unknown) => Promise<void>): Promise<void>;
  close(): Promise<unknown>;
}

/** A program changes its mind. */
export class Rollback extends Error {}

/**
 * Calls what nobody awaits in a transaction that is rolled back, up to four turns later, and begins
 * the next one behind it. Resolves to the call, or its error, once both are over.
 */
export async function rolledBackUnder(
  handles: Pick<Handles, "transaction">,
  {
    key,
    round,
    call,
  }: { readonly key: string; readonly round: number; readonly call: (tx: unknown) => Promise<unknown> },
): Promise<{ readonly outcome: Promise<unknown> }> {
  let outcome: Promise<unknown> = Promise.resolve();
  const rolledBack = handles.transaction(async (tx, insertOrder) => {
    if (round % 2 === 0) await insertOrder(key);
    outcome = call(tx).catch((error: unknown) => error);
    for (let turn = 0; turn < round % 5; turn += 1) await Promise.resolve();
    throw new Rollback();
  });
  await rolledBack.then(
    () => {
      throw new Error("it was committed");
    },
    (error: unknown) => {
      if (!(error instanceof Rollback)) throw error;
    },
  );
  // The next user of the connection.
  await handles.transaction(async (_, insertOrder) => void (await insertOrder(`next-${key}`)));
  return { outcome };
}

/** How to connect. */
export interface Target {
  readonly dialect: "mysql" | "postgres";
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** The business row's INSERT with the dialect's placeholder. */
  readonly insertOrder: string;
  /** Called by drivers that report each statement that they send (postgres.js). */
  readonly onStatement: () => void;
}

/** Connects a driver or ORM to a server. */
export type Connect = (target: Target) => Promise<Handles>;

/** The parts of a URL. */
export function targetOf(given: string, onStatement: () => void): Target {
  const url = given.replace(/^mariadb:/, "mysql:");
  const { hostname, pathname, port, protocol, username } = new URL(url);
  const dialect = protocol === "mysql:" ? "mysql" : "postgres";
  return {
    dialect,
    url,
    host: hostname,
    port: Number(port),
    user: username,
    database: pathname.slice(1),
    insertOrder: `INSERT INTO orders (id) VALUES (${dialect === "mysql" ? "?" : "$1"})`,
    onStatement,
  };
}

/** A connection that has to be bracketed by hand. */
export interface Bracketed {
  readonly handle: unknown;
  begin(): Promise<unknown>;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  insertOrder(id: string): Promise<unknown>;
  release(): unknown;
}

/** `transaction` and `withoutTransaction` of a driver that gives connections. */
export function bracketing(take: () => Promise<Bracketed>): Pick<Handles, "transaction" | "withoutTransaction"> {
  return {
    async transaction(work) {
      const connection = await take();
      try {
        await connection.begin();
        await work(connection.handle, (id) => connection.insertOrder(id));
        await connection.commit();
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        await connection.release();
      }
    },
    async withoutTransaction(work) {
      const connection = await take();
      try {
        await work(connection.handle);
      } finally {
        await connection.release();
      }
    },
  };
}
