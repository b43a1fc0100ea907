import { messageTable } from "../sql/cold-table.ts";
import type { CreateStatements } from "../sql/statements.ts";
import { adminStatements } from "./admin.ts";
import { claimStatements } from "./claim.ts";
import { confirmStatements } from "./confirm.ts";
import { enqueueStatements } from "./enqueue.ts";
import { housekeepingStatements } from "./housekeeping.ts";
import { leaseStatements } from "./leases.ts";
import { createNames, type Names, SHARDS } from "./names.ts";
import { scanStatements } from "./scan.ts";
import { schemaStatements } from "./schema.ts";
import { settleStatements } from "./settle.ts";
import { tableWords } from "./words.ts";

/** Builds the texts once; calls add only parameters. */
export const createStatements: CreateStatements = (layout, topics) => {
  const names: Names = createNames(layout, topics);
  return {
    relay: { ...scanStatements(names), ...claimStatements(names), ...settleStatements(names) },
    facts: {
      insertReportsDuplicates: true,
      listsInFlight: true,
      shardCount: SHARDS,
    },
    leases: leaseStatements(names),
    housekeeping: housekeepingStatements(names),
    enqueue: enqueueStatements(names),
    confirm: confirmStatements(names),
    admin: adminStatements(names),
    schema: schemaStatements(names),
    table: messageTable(tableWords(names)),
  };
};
