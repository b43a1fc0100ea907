/**
 * MikroORM 6 and 7: the `em` of `transactional`, or after `begin`. Its transaction context is a
 * Knex transaction in version 6 and a Kysely transaction in version 7; that is used as it is,
 * because `em.execute` writes the parameters into the text itself, also into quoted text.
 */
import type { DialectName } from "../databases/database.ts";
import type { Executor } from "./executor.ts";
import { knexExecutor } from "./knex.ts";
import { kyselyExecutor } from "./kysely.ts";
import { hasMethods, refusal, type Shape, shapeOf } from "./shape.ts";

/** A MikroORM entity manager as an executor; undefined for anything else. */
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

/** The global entity manager refuses to be asked. */
function contextOf(em: { getTransactionContext(): unknown }): unknown {
  try {
    return em.getTransactionContext();
  } catch {
    return undefined;
  }
}
