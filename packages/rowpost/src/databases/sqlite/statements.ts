import { messageTable } from "../sql/cold-table.ts";
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
import { tableWords } from "./words.ts";

/** Builds the texts once; calls add only parameters. */
export const createStatements: CreateStatements = (layout, topics) => {
  const names = createNames(layout, topics);
  return {
    facts: {
      shardCount: ONE_SHARD,
      insertReportsDuplicates: true,
      listsInFlight: false,
    },
    admin: adminStatements(names),
    enqueue: enqueueStatements(names),
    confirm: confirmStatements(names),
    housekeeping: housekeepingStatements(names),
    leases: leaseStatements(names),
    relay: { ...claimStatements(names), ...scanStatements(names), ...settleStatements(names) },
    schema: schemaStatements(names),
    table: messageTable(tableWords(names)),
  };
};
