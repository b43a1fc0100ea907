/** All statements of this dialect for one layout. */
import type { TableLayout } from "../sql/layout.ts";
import type { DialectStatements } from "../sql/statements.ts";
import { adminStatements } from "./admin.ts";
import { claimStatements } from "./claim.ts";
import { enqueueStatements } from "./enqueue.ts";
import { housekeepingStatements } from "./housekeeping.ts";
import { leaseStatements } from "./leases.ts";
import { createNames, SHARDS } from "./names.ts";
import { scanStatements } from "./scan.ts";
import { schemaStatements } from "./schema.ts";
import { settleStatements } from "./settle.ts";

/** Builds the texts once; what the functions add per call are parameters. */
export function createStatements(layout: TableLayout): DialectStatements {
  const names = createNames(layout);
  return {
    facts: {
      insertReportsDuplicates: true,
      /*
       * There is no expression for "in a transaction block". transaction_timestamp() and statement_timestamp() differ outside of one as well,
       * as soon as a statement has parameters: the protocol's Parse, Bind and Execute each set the statement's time (seen on 15).
       */
      insertChecksTransaction: false,
      shardCount: SHARDS,
    },
    relay: { ...scanStatements(names), ...claimStatements(names), ...settleStatements(names) },
    leases: leaseStatements(names),
    housekeeping: housekeepingStatements(names),
    enqueue: enqueueStatements(names),
    admin: adminStatements(names),
    schema: schemaStatements(names),
  };
}
