/**
 * All statements for MySQL and MariaDB; what only one of the two understands stands in executable
 * comments.
 */
import type { CreateStatements } from "../sql/statements.ts";
import { adminStatements } from "./admin.ts";
import { claimStatements } from "./claim.ts";
import { confirmStatements } from "./confirm.ts";
import { enqueueStatements } from "./enqueue.ts";
import { housekeepingStatements } from "./housekeeping.ts";
import { leaseStatements } from "./leases.ts";
import { createNames } from "./names.ts";
import { scanStatements } from "./scan.ts";
import { schemaStatements } from "./schema.ts";
import { settleStatements } from "./settle.ts";

export const createStatements: CreateStatements = (layout) => {
  const names = createNames(layout);
  return {
    facts: { insertReportsDuplicates: false, listsInFlight: true, shardCount: 16 },
    schema: schemaStatements(names),
    enqueue: enqueueStatements(names),
    confirm: confirmStatements(names),
    leases: leaseStatements(names),
    relay: { ...scanStatements(names), ...claimStatements(names), ...settleStatements(names) },
    housekeeping: housekeepingStatements(names),
    admin: adminStatements(names),
  };
};
