/**
 * TypeORM 0.3 and 1: the `EntityManager` of `transaction`, and a `QueryRunner` after
 * `startTransaction`.
 */
import type { DialectName } from "../databases/database.ts";
import { askServer } from "./ask-server.ts";
import type { Executor } from "./executor.ts";
import { finished, hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

interface Structured {
  readonly raw: unknown;
  readonly records: unknown;
  readonly affected?: number;
}

interface QueryRunner {
  /** The data source: `connection` until version 1, `dataSource` since. */
  readonly connection?: unknown;
  readonly dataSource?: unknown;
  query(text: string, params: readonly unknown[], structured: true): Promise<Structured>;
}

/** Returns undefined for anything but a TypeORM entity manager or query runner. */
export function typeormExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  const shape = queryRunnerOf(handle);
  if (shape === undefined) return undefined;
  if (shape["isReleased"] === true || shape["isTransactionActive"] !== true) {
    throw refusal(
      "a TypeORM query runner with no transaction",
      "call startTransaction() first, and await outbox.enqueue before commitTransaction()",
    );
  }
  const runner = shape as unknown as QueryRunner;
  async function send(text: string, params: readonly unknown[]): Promise<Structured> {
    try {
      return await runner.query(text, params, true);
    } catch (error) {
      // It was released while the statement was under way.
      throw shape?.["isReleased"] === true ? finished("TypeORM transaction", error) : error;
    }
  }
  return {
    kind: "typeorm",
    run: async ({ params, text }) => {
      const { affected, records } = await send(text, params);
      return queryResult(records, affected);
    },
    inTransaction: () =>
      askServer(dialect, {
        run: (text) => send(text, []),
        owner: runner.dataSource ?? runner.connection,
        okPacket: (answer) => shapeOf(answer)?.["raw"],
      }),
  };
}

const INSTEAD = "use dataSource.transaction(async (manager) => …) and pass its manager";

function queryRunnerOf(handle: Shape): Shape | undefined {
  if (hasMethods(handle, "startTransaction", "commitTransaction", "query", "release")) return handle;
  if (hasMethods(handle, "createQueryRunner", "getRepository", "initialize"))
    throw refusal("a TypeORM data source", INSTEAD);
  if (
    !hasMethods(handle, "query", "getRepository", "transaction") ||
    !("connection" in handle || "dataSource" in handle)
  ) {
    return undefined;
  }
  const runner = shapeOf(handle["queryRunner"]);
  if (runner === undefined) throw refusal("a TypeORM entity manager outside of a transaction", INSTEAD);
  return runner;
}
