/** Prisma 5 to 7: the `tx` of an interactive `$transaction`. */
import type { DialectName } from "../databases/database.ts";
import { ConfigurationError } from "../runtime/errors.ts";
import { askServer } from "./ask-server.ts";
import type { Executor } from "./executor.ts";
import { finished, hasMethods, queryResult, refusal, returnsRows, type Shape, shapeOf } from "./shape.ts";

interface Tx {
  $executeRawUnsafe(text: string, ...params: readonly unknown[]): Promise<number>;
  $queryRawUnsafe(text: string, ...params: readonly unknown[]): Promise<unknown>;
}

type Nested = <T>(work: (inner: unknown) => Promise<T>) => Promise<T>;

/** Returns undefined for anything but a Prisma transaction client. */
export function prismaExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (!hasMethods(handle, "$executeRawUnsafe", "$queryRawUnsafe")) return undefined;
  // A transaction's client has no $connect, but may have $transaction for nested ones.
  if (hasMethods(handle, "$connect")) {
    throw refusal("a Prisma client", "use prisma.$transaction(async (tx) => …) and pass its tx");
  }
  const tx = handle as unknown as Tx;
  /** Rows, or the count of a statement without rows. */
  async function send(text: string, params: readonly unknown[]): Promise<unknown> {
    try {
      return await (returnsRows(text) ? tx.$queryRawUnsafe(text, ...params) : tx.$executeRawUnsafe(text, ...params));
    } catch (error) {
      throw shapeOf(error)?.["code"] === ENDED ? finished("Prisma transaction", error) : error;
    }
  }
  /** MySQL 8 and 9 refuse SAVEPOINT as a prepared statement, and Prisma prepares every one. */
  async function behindSavepoint<T>(work: (inner: unknown) => Promise<T>): Promise<T> {
    if (hasMethods(handle, "$transaction")) {
      // Prisma does not notice by itself that the transaction has ended.
      await send("SELECT 1", []);
      return await (handle as unknown as { $transaction: Nested }).$transaction(work);
    }
    throw new ConfigurationError(
      "this Prisma can set no savepoint on MySQL: use Prisma 7, or pass the database to inbox.handle instead of the tx. Nothing was written.",
    );
  }
  return {
    kind: "prisma",
    run: async ({ params, text }) => {
      const answer = await send(text, params);
      return queryResult(answer, Array.isArray(answer) ? undefined : answer);
    },
    inTransaction: () => askServer(dialect, { run: (text) => send(text, []), owner: handle["_originalClient"] }),
    ...(dialect === "mysql" ? { behindSavepoint } : {}),
  };
}

/** Prisma's code for a transaction that it has ended, even by time-out. */
const ENDED = "P2028";
