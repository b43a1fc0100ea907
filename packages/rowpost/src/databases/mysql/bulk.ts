/** Bulk operations: what is planned, who works on it, and what became of it. */
import { type BulkStatements, HISTORY_MS, PREVIEW_MS } from "../sql/bulk-statements.ts";
import { COMPANION_NOW, isoText, whole } from "./clock.ts";
import { type MysqlNames, TABLE_OPTIONS } from "./names.ts";

export function bulkStatements(names: MysqlNames): BulkStatements {
  return { ...planned(names), ...worked(names), ...forgotten(names) };
}

type Planned =
  | ("addOperation" | "addBatch" | "readOperation" | "listOperations" | "startOperation" | "moveOperation")
  | "planOperation";
type Forgotten = "lapsedOperations" | "deleteBatches" | "deleteConflicts" | "deleteOperation";

function planned({ operationBatches, operations, tableKey }: MysqlNames): Pick<BulkStatements, Planned> {
  const fields = `o.id AS id, o.kind AS kind, o.state AS state, o.filter AS filter, o.max_id AS max_id, o.planned_id AS planned_id,
    o.total AS total, o.changed AS changed, o.conflicts AS conflicts, o.vanished AS vanished, o.rate AS rate,
    o.author AS author, o.reason AS reason, o.via AS via, o.error AS error, ${isoText("o.created_at")} AS created_at,
    ${isoText("o.started_at")} AS started_at, ${isoText("o.ended_at")} AS ended_at,
    TIMESTAMPDIFF(MICROSECOND, ${COMPANION_NOW}, o.until_at) DIV 1000 AS until_in_ms`;
  return {
    /** A row of its own, with those of addBatch; none is there if we die before the commit. */
    addOperation: ({ author, filter, id, kind, maxId, plannedId, total }) => ({
      name: "addOperation",
      text: `INSERT INTO ${operations} (id, table_name, kind, state, filter, max_id, planned_id, total, author, created_at)
  VALUES (?, ?, ?, 'preview', ?, ?, ?, ?, LEFT(?, 64), ${COMPANION_NOW})`,
      params: [id, tableKey, kind, filter, maxId, plannedId, total, author],
    }),

    /** A row of its own, in the transaction that adds or holds the operation. */
    addBatch: ({ id, messages, number }) => ({
      name: "addBatch",
      text: `INSERT INTO ${operationBatches} (operation_id, number, messages) VALUES (?, ?, ?)`,
      params: [id, number, messages],
    }),

    readOperation: (id) => ({
      name: "readOperation",
      text: `SELECT ${fields}
  FROM ${operations} AS o WHERE o.id = ? AND o.table_name = ?`,
      params: [id, tableKey],
    }),

    listOperations: (limit) => ({
      name: "listOperations",
      text: `SELECT ${fields}
  FROM ${operations} AS o WHERE o.table_name = ? AND o.state <> 'preview' ORDER BY o.created_at DESC LIMIT ${whole(limit)}`,
      params: [tableKey],
    }),

    /** Locks its one row. Of two at once the later one finds it started. */
    startOperation: ({ action: { author, reason, via }, id, rate, untilMs }) => ({
      name: "startOperation",
      text: `UPDATE ${operations} SET state = 'running', reason = ?, via = ?, rate = ?, started_at = ${COMPANION_NOW},
    until_at = ${untilMs === null ? "NULL" : `${COMPANION_NOW} + INTERVAL ${whole(untilMs)} * 1000 MICROSECOND`}
  WHERE id = ? AND table_name = ? AND state = 'preview' AND author = LEFT(?, 64) AND created_at > ${ago(PREVIEW_MS)}`,
      params: [reason, via ?? null, rate, id, tableKey, author],
    }),

    /** Locks its one row: a batch that runs ends before it, and the next one sees the new state. */
    moveOperation: ({ error, from, id, to }) => ({
      name: "moveOperation",
      text: `UPDATE ${operations} SET state = ?, owner = NULL, error = LEFT(?, 1024),
    ended_at = ${to === "running" || to === "paused" ? "NULL" : COMPANION_NOW}
  WHERE id = ? AND table_name = ? AND state IN (${from.map((state) => `'${state}'`).join(", ")})`,
      params: [to, error, id, tableKey],
    }),

    /** In the transaction that holds the operation, with its batch. */
    planOperation: ({ count, id, plannedId }) => ({
      name: "planOperation",
      text: `UPDATE ${operations} SET planned_id = ?, total = total + ? WHERE id = ?`,
      params: [plannedId, count, id],
    }),
  };
}

function worked(names: MysqlNames): Omit<BulkStatements, Planned | Forgotten> {
  const { operationBatches, operationConflicts, operations, tableKey } = names;
  return {
    runningOperations: (owner) => ({
      name: "runningOperations",
      text: `SELECT id FROM ${operations} WHERE table_name = ? AND state = 'running' AND (owner = ? OR owner IS NULL OR lease_until < ${COMPANION_NOW})
  ORDER BY created_at LIMIT 100`,
      params: [tableKey, owner],
    }),

    /**
     * Locks its one row until the end of the batch: nobody else works on it, pauses or cancels it
     * meanwhile. If we die, the batch is rolled back, and another worker has it after the lease.
     */
    holdOperation: ({ id, leaseMs, owner }) => ({
      name: "holdOperation",
      text: `UPDATE ${operations} SET owner = ?, lease_until = ${COMPANION_NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND
  WHERE id = ? AND state = 'running' AND (owner = ? OR owner IS NULL OR lease_until < ${COMPANION_NOW})`,
      params: [owner, id, owner],
    }),

    readBatch: (id) => ({
      name: "readBatch",
      text: `SELECT number, messages FROM ${operationBatches} WHERE operation_id = ? ORDER BY number LIMIT 1`,
      params: [id],
    }),

    /** In the transaction of the batch, whose operation is locked; the two that follow too. */
    deleteBatch: ({ id, number }) => ({
      name: "deleteBatch",
      text: `DELETE FROM ${operationBatches} WHERE operation_id = ? AND number = ?`,
      params: [id, number],
    }),

    /** As deleteBatch. */
    countOperation: ({ changed, conflicts, id, vanished }) => ({
      name: "countOperation",
      text: `UPDATE ${operations} SET changed = changed + ?, conflicts = conflicts + ?, vanished = vanished + ? WHERE id = ?`,
      params: [changed, conflicts, vanished, id],
    }),

    /** As deleteBatch. */
    addConflicts: ({ conflicts, id }) => ({
      name: "addConflicts",
      text: `INSERT INTO ${operationConflicts} (operation_id, message, state)
  SELECT ?, j.message, j.state FROM JSON_TABLE(?, '$[*]' COLUMNS (message BIGINT PATH '$.id', state VARCHAR(16) PATH '$.state')) AS j`,
      params: [id, JSON.stringify(conflicts)],
    }),

    readConflicts: ({ afterId, id, limit }) => ({
      name: "readConflicts",
      text: `SELECT message AS id, state FROM ${operationConflicts} WHERE operation_id = ? AND message > ? ORDER BY message LIMIT ${whole(limit)}`,
      params: [id, afterId],
    }),
  };
}

function forgotten(names: MysqlNames): Pick<BulkStatements, Forgotten> {
  const { operationBatches, operationConflicts, operations, tableKey } = names;
  return {
    /** Locks them: one that is being started meanwhile is waited for, and then is no preview. */
    lapsedOperations: () => ({
      name: "lapsedOperations",
      text: `SELECT id FROM ${operations} WHERE table_name = ? AND ((state = 'preview' AND created_at < ${ago(PREVIEW_MS)}) OR ended_at < ${ago(HISTORY_MS)})
  ORDER BY id LIMIT 100 FOR UPDATE`,
      params: [tableKey],
    }),

    /** Of an operation that is locked; the two that follow too. */
    deleteBatches: (id) => ({
      name: "deleteBatches",
      text: `DELETE FROM ${operationBatches} WHERE operation_id = ?`,
      params: [id],
    }),

    /** As deleteBatches. */
    deleteConflicts: (id) => ({
      name: "deleteConflicts",
      text: `DELETE FROM ${operationConflicts} WHERE operation_id = ?`,
      params: [id],
    }),

    /** As deleteBatches. */
    deleteOperation: (id) => ({
      name: "deleteOperation",
      text: `DELETE FROM ${operations} WHERE id = ?`,
      params: [id],
    }),
  };
}

function ago(ms: number): string {
  return `${COMPANION_NOW} - INTERVAL ${whole(ms)} * 1000 MICROSECOND`;
}

/** Several message tables may share these: what is there already stays. */
export function bulkTables({ operationBatches, operationConflicts, operations }: MysqlNames): readonly string[] {
  const id = (name: string): string => `${name} CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL`;
  return [
    `CREATE TABLE IF NOT EXISTS ${operations} (
  ${id("id")},
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'retry, resend, suspend, resume, archive, delete',
  state VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'preview, running, paused, done, cancelled, failed',
  filter MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'JSON: which messages were asked for',
  max_id BIGINT NOT NULL COMMENT 'messages behind it came later',
  planned_id BIGINT NULL COMMENT 'looked for up to here; NULL = all were found',
  total BIGINT NOT NULL COMMENT 'messages that were found',
  changed BIGINT NOT NULL DEFAULT 0,
  conflicts BIGINT NOT NULL DEFAULT 0 COMMENT 'changed by somebody else since',
  vanished BIGINT NOT NULL DEFAULT 0,
  rate INT NOT NULL DEFAULT 1000 COMMENT 'messages a second at most',
  author VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  reason VARCHAR(1024) CHARACTER SET utf8mb4 NOT NULL DEFAULT '',
  via VARCHAR(16) CHARACTER SET ascii NULL COMMENT 'console, api',
  error VARCHAR(1024) CHARACTER SET utf8mb4 NULL,
  owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'who works on it',
  lease_until DATETIME(3) NULL COMMENT 'UTC',
  until_at DATETIME(3) NULL COMMENT 'UTC; how long its messages are suspended',
  created_at DATETIME(3) NOT NULL COMMENT 'UTC',
  started_at DATETIME(3) NULL COMMENT 'UTC',
  ended_at DATETIME(3) NULL COMMENT 'UTC',
  PRIMARY KEY (id),
  KEY idx_created_at (table_name, created_at)
) ${TABLE_OPTIONS} COMMENT='changes of many messages by hand'`,
    `CREATE TABLE IF NOT EXISTS ${operationBatches} (
  ${id("operation_id")},
  number BIGINT NOT NULL,
  messages MEDIUMTEXT CHARACTER SET ascii NOT NULL COMMENT 'JSON: id and lock_version of each, as they were found',
  PRIMARY KEY (operation_id, number)
) ${TABLE_OPTIONS} COMMENT='what is left to be changed'`,
    `CREATE TABLE IF NOT EXISTS ${operationConflicts} (
  ${id("operation_id")},
  message BIGINT NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'that it was found in',
  PRIMARY KEY (operation_id, message)
) ${TABLE_OPTIONS} COMMENT='what was left as it was'`,
  ];
}
