/** All statements of this dialect for one layout. */
import type { CreateStatements } from "../sql/statements.ts";
import { adminStatements } from "./admin.ts";
import { claimStatements } from "./claim.ts";
import { confirmStatements } from "./confirm.ts";
import { enqueueStatements } from "./enqueue.ts";
import { housekeepingStatements } from "./housekeeping.ts";
import { leaseStatements } from "./leases.ts";
import { createNames, ONE_SHARD } from "./names.ts";
import { scanStatements } from "./scan.ts";
import { schemaStatements } from "./schema.ts";
import { settleStatements } from "./settle.ts";

/** Builds the texts once; what the functions add per call are parameters. */
export const createStatements: CreateStatements = (layout) => {
  const names = createNames(layout);
  return {
    facts: {
      insertReportsDuplicates: true,
      listsInFlight: false,
      shardCount: ONE_SHARD,
    },
    admin: adminStatements(names),
    enqueue: enqueueStatements(names),
    confirm: confirmStatements(names),
    housekeeping: housekeepingStatements(names),
    leases: leaseStatements(names),
    relay: { ...claimStatements(names), ...scanStatements(names), ...settleStatements(names) },
    schema: schemaStatements(names),
  };
};
