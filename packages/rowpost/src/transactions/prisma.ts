/** Prisma 5 to 7: the `tx` of an interactive `$transaction`. */
import type { DialectName } from "../databases/database.ts";
import { askServer } from "./ask-server.ts";
import type { Executor } from "./executor.ts";
import { hasMethods, queryResult, refusal, returnsRows, type Shape } from "./shape.ts";

interface Tx {
  $executeRawUnsafe(text: string, ...params: readonly unknown[]): Promise<number>;
  $queryRawUnsafe(text: string, ...params: readonly unknown[]): Promise<unknown>;
}

/** A Prisma transaction client as an executor; undefined for anything else. */
export function prismaExecutor(handle: Shape, dialect: DialectName): Executor | undefined {
  if (!hasMethods(handle, "$executeRawUnsafe", "$queryRawUnsafe")) return undefined;
  // The client of a transaction has no $connect; $transaction may be there, for nested ones.
  if (hasMethods(handle, "$connect")) {
    throw refusal("a Prisma client", "use prisma.$transaction(async (tx) => …) and pass its tx");
  }
  const tx = handle as unknown as Tx;
  return {
    kind: "prisma",
    run: async ({ params, text }) => {
      if (returnsRows(text)) return queryResult(await tx.$queryRawUnsafe(text, ...params), undefined);
      return queryResult(undefined, await tx.$executeRawUnsafe(text, ...params));
    },
    inTransaction: () =>
      askServer(dialect, {
        run: (text) => (returnsRows(text) ? tx.$queryRawUnsafe(text) : tx.$executeRawUnsafe(text)),
        owner: handle["_originalClient"],
        prepares: true,
      }),
  };
}
