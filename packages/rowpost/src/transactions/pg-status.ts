/**
 * Whether a PostgreSQL connection is in a transaction block. No expression tells:
 * transaction_timestamp() and statement_timestamp() differ outside one too if a statement has
 * parameters, because Parse and Bind each set the latter.
 */
import { TransactionLostError } from "../runtime/errors.ts";
import type { Executor } from "./executor.ts";
import { shapeOf } from "./shape.ts";

/** SQLSTATE of a statement allowed in a transaction block only. */
const NO_TRANSACTION = "25P01";
/** SQLSTATE of every statement in a failed transaction. */
const FAILED_TRANSACTION = "25P02";

/**
 * One round trip. LOCK TABLE is refused outside a transaction block. Inside it takes, until the
 * transaction ends, the weakest lock on a catalog table that each statement reads anyway; only a
 * VACUUM FULL of the catalog would wait.
 */
export async function askByLock(run: (text: string) => Promise<unknown>): Promise<boolean> {
  try {
    await run("LOCK TABLE pg_catalog.pg_class IN ACCESS SHARE MODE");
    return true;
  } catch (error) {
    if (hasSqlState(error, NO_TRANSACTION)) return false;
    throw error;
  }
}

/**
 * The same executor with a clear error: after a failed statement PostgreSQL refuses all others
 * until a rollback (rule: ended-transaction).
 */
export function sayingWhenFailed(executor: Executor): Executor {
  const run: Executor["run"] = (statement) => executor.run(statement).catch(rethrow);
  return {
    ...executor,
    run,
    askServer: () => askByLock((text) => run({ name: "askServer", text, params: [] })),
  };
}

function rethrow(error: unknown): never {
  if (!hasSqlState(error, FAILED_TRANSACTION)) throw error;
  throw new TransactionLostError(
    "a statement of this transaction has failed before, so PostgreSQL takes no other one: roll back and run it again from the start",
    { cause: error },
  );
}

/** Looks through the wrappers that ORMs put around a server error. */
function hasSqlState(error: unknown, state: string, depth = 0): boolean {
  const shape = shapeOf(error);
  if (shape === undefined || depth > 4) return false;
  if (shape["code"] === state || shape["originalCode"] === state) return true;
  return ["cause", "driverError", "meta", "driverAdapterError"].some((name) =>
    hasSqlState(shape[name], state, depth + 1),
  );
}
