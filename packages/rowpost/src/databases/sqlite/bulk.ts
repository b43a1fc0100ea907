/** Bulk operations: what is planned, who works on it, and what became of it. */
import { bulkCalls, type ForgottenTexts, type PlannedTexts, type WorkedTexts } from "../sql/bulk-calls.ts";
import { type BulkStatements, HISTORY_MS, PREVIEW_MS } from "../sql/bulk-statements.ts";
import { after, before, isoText, msSince, type Names, NOW } from "./names.ts";

export function bulkStatements(names: Names): BulkStatements {
  return bulkCalls({ ...worked(names), ...planned(names), ...forgotten(names) });
}

function worked(names: Names): WorkedTexts {
  const { operationBatchTable, operationConflictTable, operationTable, tableKey } = names;
  return {
    runningOperations: `SELECT id FROM ${operationTable} WHERE table_name = ${tableKey} AND state = 'running' AND (owner = ? OR owner IS NULL OR lease_until < ${NOW})
ORDER BY created_at LIMIT 100`,
    holdOperation: `UPDATE ${operationTable} SET owner = ?, lease_until = ${after("?")}
WHERE id = ? AND state = 'running' AND (owner = ? OR owner IS NULL OR lease_until < ${NOW})`,
    readBatch: `SELECT number, messages FROM ${operationBatchTable} WHERE operation_id = ? ORDER BY number LIMIT 1`,
    deleteBatch: `DELETE FROM ${operationBatchTable} WHERE operation_id = ? AND number = ?`,
    countOperation: `UPDATE ${operationTable} SET changed = changed + ?, conflicts = conflicts + ?, vanished = vanished + ? WHERE id = ?`,
    addConflicts: `INSERT INTO ${operationConflictTable} (operation_id, message, state)
SELECT ?, CAST(json_extract(j.value, '$.id') AS INTEGER), json_extract(j.value, '$.state') FROM json_each(?) AS j`,
    readConflicts: `SELECT CAST(message AS TEXT) AS id, state FROM ${operationConflictTable} WHERE operation_id = ? AND message > ? ORDER BY message LIMIT ?`,
  };
}

function planned(names: Names): PlannedTexts {
  const { operationBatchTable, operationTable, tableKey } = names;
  const fields = `o.id, o.kind, o.state, o.filter, CAST(o.max_id AS TEXT) AS max_id, CAST(o.planned_id AS TEXT) AS planned_id, o.total, o.changed, o.conflicts, o.vanished,
  o.rate, o.author, o.reason, o.via, o.error, ${isoText("o.created_at")} AS created_at, ${isoText("o.started_at")} AS started_at,
  ${isoText("o.ended_at")} AS ended_at, -${msSince("o.until_at")} AS until_in_ms`;
  return {
    addOperation: `INSERT INTO ${operationTable} (id, table_name, kind, state, filter, max_id, planned_id, total, author, created_at)
VALUES (?, ${tableKey}, ?, 'preview', ?, ?, ?, ?, ?, ${NOW})`,
    addBatch: `INSERT INTO ${operationBatchTable} (operation_id, number, messages) VALUES (?, ?, ?)`,
    readOperation: `SELECT ${fields}
FROM ${operationTable} AS o WHERE o.id = ? AND o.table_name = ${tableKey}`,
    listOperations: `SELECT ${fields}
FROM ${operationTable} AS o WHERE o.table_name = ${tableKey} AND o.state <> 'preview' ORDER BY o.created_at DESC LIMIT ?`,
    startOperation: `UPDATE ${operationTable} SET state = 'running', reason = ?, via = ?, rate = ?, started_at = ${NOW}, until_at = ${after("?")}
WHERE id = ? AND table_name = ${tableKey} AND state = 'preview' AND author = ? AND created_at > ${ago(PREVIEW_MS)}`,
    moveOperation: (
      from,
      isOver,
    ) => `UPDATE ${operationTable} SET state = ?, owner = NULL, error = ?, ended_at = ${isOver ? NOW : "NULL"}
WHERE id = ? AND table_name = ${tableKey} AND state IN (${from})`,
    planOperation: `UPDATE ${operationTable} SET planned_id = ?, total = total + ? WHERE id = ?`,
  };
}

function forgotten(names: Names): ForgottenTexts {
  const { operationBatchTable, operationConflictTable, operationTable, tableKey } = names;
  return {
    lapsedOperations: `SELECT id FROM ${operationTable} WHERE table_name = ${tableKey} AND ((state = 'preview' AND created_at < ${ago(PREVIEW_MS)}) OR ended_at < ${ago(HISTORY_MS)})
ORDER BY id LIMIT 100`,
    deleteBatches: `DELETE FROM ${operationBatchTable} WHERE operation_id = ?`,
    deleteConflicts: `DELETE FROM ${operationConflictTable} WHERE operation_id = ?`,
    deleteOperation: `DELETE FROM ${operationTable} WHERE id = ?`,
  };
}

function ago(ms: number): string {
  return before(String(ms));
}

/** Several message tables may share these: what is there already stays. */
export function bulkTables({ operationBatchTable, operationConflictTable, operationTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${operationTable} (
  id TEXT PRIMARY KEY,
  table_name TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  filter TEXT NOT NULL,
  max_id INTEGER NOT NULL,
  planned_id INTEGER,
  total INTEGER NOT NULL,
  changed INTEGER NOT NULL DEFAULT 0,
  conflicts INTEGER NOT NULL DEFAULT 0,
  vanished INTEGER NOT NULL DEFAULT 0,
  rate INTEGER NOT NULL DEFAULT 1000,
  author TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  via TEXT,
  error TEXT,
  owner TEXT,
  lease_until TEXT,
  until_at TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  ended_at TEXT
)`,
    `CREATE TABLE IF NOT EXISTS ${operationBatchTable} (
  operation_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  messages TEXT NOT NULL,
  PRIMARY KEY (operation_id, number)
)`,
    `CREATE TABLE IF NOT EXISTS ${operationConflictTable} (
  operation_id TEXT NOT NULL,
  message INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (operation_id, message)
)`,
  ];
}
