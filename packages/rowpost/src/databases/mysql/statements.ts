/**
 * All statements for MySQL and MariaDB. Syntax of only one of the two is in executable comments.
 */
import { messageTable } from "../sql/cold-table.ts";
import type { CreateStatements } from "../sql/statements.ts";
import { adminStatements } from "./admin.ts";
import { claimStatements } from "./claim.ts";
import { confirmStatements } from "./confirm.ts";
import { enqueueStatements } from "./enqueue.ts";
import { housekeepingStatements } from "./housekeeping.ts";
import { leaseStatements } from "./leases.ts";
import { createNames, type MysqlNames } from "./names.ts";
import { scanStatements } from "./scan.ts";
import { schemaStatements } from "./schema.ts";
import { settleStatements } from "./settle.ts";
import { tableWords } from "./words.ts";

export const createStatements: CreateStatements = (layout, topics) => {
  const names: MysqlNames = createNames(layout, topics);
  return {
    schema: schemaStatements(names),
    facts: { insertReportsDuplicates: false, listsInFlight: true, shardCount: 16 },
    table: messageTable(tableWords(names)),
    enqueue: enqueueStatements(names),
    confirm: confirmStatements(names),
    leases: leaseStatements(names),
    relay: { ...scanStatements(names), ...claimStatements(names), ...settleStatements(names) },
    housekeeping: housekeepingStatements(names),
    admin: adminStatements(names),
  };
};
