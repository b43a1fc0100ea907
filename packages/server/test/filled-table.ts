/** A table of 200,000 messages of which each is known: what the nth holds is a function of n. */
import type { DialectName, Session } from "../../rowpost/src/databases/database.ts";
import { defaultLayout, tableKey } from "../../rowpost/src/databases/sql/layouts.ts";
import { analyze, numbersTo } from "../../rowpost/test/databases/plans.ts";

export const ROWS = 200_000;
/** The last rows are not finished. */
const UNFINISHED = 16_000;
/** Rows of the archive, with the ids before those of the table. */
export const ARCHIVED = 20_000;
/** Entries of the audit. */
export const AUDITED = 20_000;
export const CREATED_FROM = Date.UTC(2026, 9, 1);
/** From one row to the next. */
const STEP_MS = 10_000;
const TYPES = ["order.created", "order.paid", "stock.moved"] as const;

export interface KnownRow {
  readonly id: number;
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  readonly orderingKey: string;
  readonly state: "pending" | "sending" | "sent" | "failed" | "suspended";
  readonly reason: string | undefined;
  readonly createdMs: number;
}

/** The row with this id, of the table or its archive. */
export function knownRow(id: number): KnownRow {
  const state = stateOf(id);
  return {
    id,
    state,
    key: `k-${id}`,
    topic: `t${id % 20}`,
    orderingKey: `o${id % 1_000}`,
    type: TYPES[id % 3] ?? "",
    reason: state === "failed" ? `HTTP_503: host ${id % 7} is away` : undefined,
    createdMs: CREATED_FROM + id * STEP_MS,
  };
}

function stateOf(id: number): KnownRow["state"] {
  if (id <= ARCHIVED + ROWS - UNFINISHED) return "sent";
  return ({ 1: "sending", 2: "failed", 3: "suspended" } as const)[id % 20] ?? "pending";
}

/** Into a table that is migrated and empty; each of the first messages was changed by hand once. */
export async function fillTable(dialect: DialectName, session: Session): Promise<void> {
  const run = (text: string) => session.run({ name: "fill", text, params: [] });
  const text = (left: string, right: string) =>
    dialect === "mysql" ? `CONCAT('${left}', ${right})` : `'${left}' || (${right})`;
  const created = {
    mysql: `TIMESTAMP '2026-10-01 00:00:00.000' + INTERVAL id * ${STEP_MS / 1_000} SECOND`,
    postgres: `timestamptz '2026-10-01 00:00:00Z' + id * ${STEP_MS / 1_000} * interval '1 second'`,
    sqlite: `strftime('%Y-%m-%d %H:%M:%f', '2026-10-01', (id * ${STEP_MS / 1_000}) || ' seconds')`,
  }[dialect];
  const state = `CASE WHEN id <= ${ARCHIVED + ROWS - UNFINISHED} THEN 2 ELSE CASE id % 20 WHEN 1 THEN 1 WHEN 2 THEN 3 WHEN 3 THEN 5 ELSE 0 END END`;
  const type = `CASE id % 3 WHEN 0 THEN '${TYPES[0]}' WHEN 1 THEN '${TYPES[1]}' ELSE '${TYPES[2]}' END`;
  const columns =
    "id, message_type, message_key, topic, message_body, state, ordering_key, fail_reason, gmt_create, gmt_modified";
  const values = `id, ${type}, ${text("k-", "id")}, ${text("t", "id % 20")}, '{}', ${state}, ${text("o", "id % 1000")},
  CASE WHEN id > ${ARCHIVED + ROWS - UNFINISHED} AND id % 20 = 2 THEN ${dialect === "mysql" ? "CONCAT('HTTP_503: host ', id % 7, ' is away')" : "'HTTP_503: host ' || (id % 7) || ' is away'"} END,
  ${created}, ${created}`;
  const idText = dialect === "mysql" ? "CONCAT('[', id, ']')" : "'[' || id || ']'";
  const numbers = (from: number, count: number) =>
    `(SELECT n + ${from} AS id FROM ${numbersTo(dialect, count)}${dialect === "mysql" ? " ORDER BY n" : ""}) AS filled`;
  await run(`INSERT INTO local_message (${columns}) SELECT ${values} FROM ${numbers(ARCHIVED, ROWS)}`);
  await run(
    `INSERT INTO local_message_archive (${columns}, archived_at) SELECT ${values}, ${created} FROM ${numbers(0, ARCHIVED)}`,
  );
  await run(`INSERT INTO local_message_audit (table_name, made_at, author, action, reason, changed, first_id, last_id, ids)
SELECT '${tableKey(defaultLayout)}', ${created}, ${text("user-", "id % 20")}, 'retry', 'again', 1, id, id, ${idText}
FROM ${numbers(ARCHIVED, AUDITED)}`);
  if (dialect === "postgres")
    await run(`SELECT setval(pg_get_serial_sequence('local_message', 'id'), ${ARCHIVED + ROWS})`);
  await analyze(dialect, session);
}
