/**
 * MikroORM 6 and 7: the `em` of `transactional`, or after `begin`. Uses its Knex (version 6) or
 * Kysely (version 7) transaction, because `em.execute` writes parameters into the text, even into
 * quoted text.
 */
import type { DialectName } from "../databases/database.ts";
import type { Executor } from "./executor.ts";
import { knexExecutor } from "./knex.ts";
import { kyselyExecutor } from "./kysely.ts";
import { hasMethods, refusal, type Shape, shapeOf } from "./shape.ts";

/** Returns undefined for anything but a MikroORM entity manager. */
export function mikroOrmExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (!hasMethods(handle, "getTransactionContext", "getConnection", "persist")) return undefined;
  const context = shapeOf(contextOf(handle as unknown as { getTransactionContext(): unknown }));
  const executor = context && (knexExecutor(context, dialect) ?? kyselyExecutor(context, dialect));
  if (executor === undefined) {
    throw refusal(
      "a MikroORM entity manager outside of a transaction",
      "use em.transactional(async (em) => …) and pass its em",
    );
  }
  return { ...executor, kind: "mikro-orm" };
}

/** The global entity manager throws. */
function contextOf(em: { getTransactionContext(): unknown }): unknown {
  try {
    return em.getTransactionContext();
  } catch {
    return undefined;
  }
}
