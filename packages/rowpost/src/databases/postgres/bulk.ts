/** Bulk operations: what is planned, who works on it, and what became of it. */
import { bulkCalls, type ForgottenTexts, type PlannedTexts, type WorkedTexts } from "../sql/bulk-calls.ts";
import { type BulkStatements, HISTORY_MS, PREVIEW_MS } from "../sql/bulk-statements.ts";
import { after, isoText, msBetween, type Names, NOW } from "./names.ts";

export function bulkStatements(names: Names): BulkStatements {
  return bulkCalls({ ...planned(names), ...worked(names), ...forgotten(names) });
}

function planned(names: Names): PlannedTexts {
  const { operationBatchTable, operationTable, tableKey } = names;
  const fields = `o.id, o.kind, o.state, o.filter, o.max_id AS max_id, o.planned_id AS planned_id, o.total, o.changed, o.conflicts, o.vanished,
  o.rate, o.author, o.reason, o.via, o.error, ${isoText("o.created_at")} AS created_at, ${isoText("o.started_at")} AS started_at,
  ${isoText("o.ended_at")} AS ended_at, ${msBetween(NOW, "o.until_at")} AS until_in_ms`;
  return {
    // A row of its own, with those of addBatch; none is there if we die before the commit.
    addOperation: `INSERT INTO ${operationTable} (id, table_name, kind, state, filter, max_id, planned_id, total, author, created_at)
VALUES ($1, ${tableKey}, $2, 'preview', $3, $4::bigint, $5::bigint, $6, $7, ${NOW})`,
    // A row of its own, in the transaction that adds or holds the operation.
    addBatch: `INSERT INTO ${operationBatchTable} (operation_id, number, messages) VALUES ($1, $2, $3)`,
    readOperation: `SELECT ${fields}
FROM ${operationTable} o WHERE o.id = $1 AND o.table_name = ${tableKey}`,
    listOperations: `SELECT ${fields}
FROM ${operationTable} o WHERE o.table_name = ${tableKey} AND o.state <> 'preview' ORDER BY o.created_at DESC LIMIT $1::bigint`,
    // Locks its one row. Of two at once the later one finds it started.
    startOperation: `UPDATE ${operationTable} SET state = 'running', reason = $1, via = $2, rate = $3, started_at = ${NOW}, until_at = ${after("$4::bigint")}
WHERE id = $5 AND table_name = ${tableKey} AND state = 'preview' AND author = $6 AND created_at > ${ago(PREVIEW_MS)}`,
    // Locks its one row: a batch that runs ends before it, and the next one sees the new state.
    moveOperation: (
      from,
      isOver,
    ) => `UPDATE ${operationTable} SET state = $1, owner = NULL, error = $2, ended_at = ${isOver ? NOW : "NULL"}
WHERE id = $3 AND table_name = ${tableKey} AND state IN (${from})`,
    // In the transaction that holds the operation, with its batch.
    planOperation: `UPDATE ${operationTable} SET planned_id = $1::bigint, total = total + $2 WHERE id = $3`,
  };
}

function worked(names: Names): WorkedTexts {
  const { operationBatchTable, operationConflictTable, operationTable, tableKey } = names;
  return {
    runningOperations: `SELECT id FROM ${operationTable} WHERE table_name = ${tableKey} AND state = 'running' AND (owner = $1 OR owner IS NULL OR lease_until < ${NOW})
ORDER BY created_at LIMIT 100`,
    // Locks its one row until the end of the batch: nobody else works on it, pauses or cancels it
    // meanwhile. If we die, the batch is rolled back, and another worker has it after the lease.
    holdOperation: `UPDATE ${operationTable} SET owner = $1, lease_until = ${after("$2::bigint")}
WHERE id = $3 AND state = 'running' AND (owner = $4 OR owner IS NULL OR lease_until < ${NOW})`,
    readBatch: `SELECT number, messages FROM ${operationBatchTable} WHERE operation_id = $1 ORDER BY number LIMIT 1`,
    // In the transaction of the batch, whose operation is locked; the two that follow too.
    deleteBatch: `DELETE FROM ${operationBatchTable} WHERE operation_id = $1 AND number = $2`,
    // As deleteBatch.
    countOperation: `UPDATE ${operationTable} SET changed = changed + $1, conflicts = conflicts + $2, vanished = vanished + $3 WHERE id = $4`,
    // As deleteBatch.
    addConflicts: `INSERT INTO ${operationConflictTable} (operation_id, message, state)
SELECT $1, j.id, j.state FROM json_to_recordset($2::json) AS j (id bigint, state text)`,
    readConflicts: `SELECT message AS id, state FROM ${operationConflictTable} WHERE operation_id = $1 AND message > $2::bigint ORDER BY message LIMIT $3::bigint`,
  };
}

function forgotten(names: Names): ForgottenTexts {
  const { operationBatchTable, operationConflictTable, operationTable, tableKey } = names;
  return {
    // Locks them: one that is being started meanwhile is waited for, and then is no preview.
    lapsedOperations: `SELECT id FROM ${operationTable} WHERE table_name = ${tableKey} AND ((state = 'preview' AND created_at < ${ago(PREVIEW_MS)}) OR ended_at < ${ago(HISTORY_MS)})
ORDER BY id LIMIT 100 FOR UPDATE`,
    // Of an operation that is locked; the two that follow too.
    deleteBatches: `DELETE FROM ${operationBatchTable} WHERE operation_id = $1`,
    // As deleteBatches.
    deleteConflicts: `DELETE FROM ${operationConflictTable} WHERE operation_id = $1`,
    // As deleteBatches.
    deleteOperation: `DELETE FROM ${operationTable} WHERE id = $1`,
  };
}

function ago(ms: number): string {
  return `${NOW} - interval '${ms} milliseconds'`;
}

/** Several message tables may share these: what is there already stays. */
export function bulkTables({ operationBatchTable, operationConflictTable, operationTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${operationTable} (
  id char(36) COLLATE "C" PRIMARY KEY,
  table_name varchar(160) COLLATE "C" NOT NULL,
  kind varchar(16) COLLATE "C" NOT NULL,
  state varchar(16) COLLATE "C" NOT NULL,
  filter text NOT NULL,
  max_id bigint NOT NULL,
  planned_id bigint,
  total bigint NOT NULL,
  changed bigint NOT NULL DEFAULT 0,
  conflicts bigint NOT NULL DEFAULT 0,
  vanished bigint NOT NULL DEFAULT 0,
  rate integer NOT NULL DEFAULT 1000,
  author varchar(64) COLLATE "C" NOT NULL,
  reason varchar(1024) NOT NULL DEFAULT '',
  via varchar(16) COLLATE "C",
  error varchar(1024),
  owner char(36) COLLATE "C",
  lease_until timestamptz(3),
  until_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  started_at timestamptz(3),
  ended_at timestamptz(3)
)`,
    `CREATE TABLE IF NOT EXISTS ${operationBatchTable} (
  operation_id char(36) COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  messages text NOT NULL,
  PRIMARY KEY (operation_id, number)
)`,
    `CREATE TABLE IF NOT EXISTS ${operationConflictTable} (
  operation_id char(36) COLLATE "C" NOT NULL,
  message bigint NOT NULL,
  state varchar(16) COLLATE "C" NOT NULL,
  PRIMARY KEY (operation_id, message)
)`,
    `COMMENT ON TABLE ${operationTable} IS 'changes of many messages by hand'`,
    `COMMENT ON TABLE ${operationBatchTable} IS 'what is left to be changed'`,
    `COMMENT ON TABLE ${operationConflictTable} IS 'what was left as it was'`,
  ];
}
