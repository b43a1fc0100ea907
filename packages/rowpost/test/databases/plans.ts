/** Plans, and the rows that a server reads, for the tests of what statements cost. */
import { expect } from "vitest";
import type { Database, DialectName, Session } from "../../src/databases/database.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { Executor, Statement } from "../../src/transactions/executor.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";

/** What comes out may be sorted: ten batches of the tests. */
const MOST_SORTED = 1_000;

/** Rows numbered from 1 as `n`, for FROM. */
export function numbersTo(dialect: DialectName, count: number): string {
  return {
    mysql: `(SELECT (a.n - 1) * 448 + b.n AS n FROM ${series(447)} AS a JOIN ${series(448)} AS b) AS numbers WHERE n <= ${count}`,
    postgres: `generate_series(1, ${count}) AS numbers (n) WHERE true`,
    sqlite: `(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count}) SELECT n FROM s) AS numbers WHERE true`,
  }[dialect];
}

/** Numbers from 1, in MySQL's words. */
function series(length: number): string {
  return `JSON_TABLE(CONCAT('[0', REPEAT(',0', ${length - 1}), ']'), '$[*]' COLUMNS (n FOR ORDINALITY))`;
}

export async function analyze(dialect: DialectName, session: Session): Promise<void> {
  const text = dialect === "mysql" ? "ANALYZE TABLE local_message" : "ANALYZE";
  await session.run({ name: "analyze", text, params: [] });
}

/** A migrated database with one session of a relay's. */
export interface MigratedDatabase {
  readonly database: Database;
  readonly session: Session;
  readonly close: () => Promise<void>;
}

export async function openMigrated(harness: StoreHarness): Promise<MigratedDatabase> {
  const database = await harness.createDatabase();
  await migrate(database, { layout: harness.layout });
  const session = await database.connect({ purpose: "relay" });
  return {
    database,
    session,
    close: async () => {
      await session.close();
      await database.close();
      await harness.close?.();
    },
  };
}

/** A server's words for the plan: lines of SQLite, rows of MySQL, or PostgreSQL's tree of nodes. */
export type Explained<Node> =
  | { readonly dialect: "sqlite"; readonly details: readonly string[] }
  | { readonly dialect: "postgres"; readonly root: Node }
  | { readonly dialect: "mysql"; readonly steps: readonly Readonly<Record<string, unknown>>[] };

export async function explained<Node>(
  dialect: DialectName,
  session: Session,
  { text, params }: Statement,
): Promise<Explained<Node>> {
  const explain = async (words: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    (await session.run({ name: "explain", text: text.replace(/^(\/\*M!.*?\*\/ )?/, `$1${words} `), params })).rows;
  if (dialect === "sqlite") {
    return { dialect, details: (await explain("EXPLAIN QUERY PLAN")).map((row) => String(row["detail"])) };
  }
  if (dialect === "mysql") return { dialect, steps: await explain("EXPLAIN FORMAT = TRADITIONAL") };
  const [row] = await explain("EXPLAIN (FORMAT JSON)");
  const plan = row?.["QUERY PLAN"];
  const [{ Plan: root }] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ Plan: Node }];
  return { dialect, root };
}

/** What is wrong with the plan. */
export async function faults(dialect: DialectName, session: Session, statement: Statement): Promise<string[]> {
  const plan = await explained<PlanNode>(dialect, session, statement);
  if (plan.dialect === "sqlite") {
    const { details } = plan;
    return details.filter((detail) => /^SCAN (m|local_message)$|TEMP B-TREE FOR (?!GROUP)/.test(detail));
  }
  if (plan.dialect === "postgres") return planFaults(plan.root);
  return plan.steps.flatMap((step) => {
    const { Extra: extra, table, type } = step;
    if (table !== "m" && table !== "local_message") return [];
    const bad = type === "ALL" || type === "index" || /filesort|temporary/.test(String(extra));
    return bad ? [JSON.stringify(step)] : [];
  });
}

/** A node of PostgreSQL's plan, as far as it is looked at. */
interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Sort Key"?: readonly string[];
  readonly "Plan Rows": number;
  readonly Plans?: readonly PlanNode[];
}

/** Indexes of unfinished rows: to walk one from its beginning is what it is for. */
const WALKED = /^local_message_(waiting|sending|unknown|timed|resting|ordered)/;

function planFaults(node: PlanNode): string[] {
  const own: string[] = [];
  const type = node["Node Type"];
  const ofMessages = node["Relation Name"] === "local_message";
  const walksIndex = /Index/.test(type) && node["Index Cond"] === undefined && !WALKED.test(node["Index Name"] ?? "");
  if (ofMessages && (type === "Seq Scan" || walksIndex)) own.push(`${type} of ${node["Index Name"] ?? "the table"}`);
  if (type === "Sort" && node["Plan Rows"] > MOST_SORTED) own.push(`Sort by ${node["Sort Key"]?.join(", ")}`);
  return [...own, ...(node.Plans ?? []).flatMap(planFaults)];
}

class Undo extends Error {}

/**
 * Rows that the server read for the statement, by its own counters. What it changed is rolled back.
 */
export async function rowsRead(dialect: DialectName, session: Session, statement: Statement): Promise<number> {
  const ask = async (tx: Executor, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    (await tx.run({ name: "counters", text, params: [] })).rows;
  const total = async (tx: Executor): Promise<number> => {
    const rows =
      dialect === "mysql"
        ? await ask(tx, "SHOW SESSION STATUS LIKE 'Handler_read%'")
        : await ask(
            tx,
            `SELECT seq_tup_read + idx_tup_fetch AS "Value" FROM pg_stat_xact_user_tables WHERE relname = 'local_message'`,
          );
    return rows.reduce((sum, row) => sum + Number(row["Value"]), 0);
  };
  let read = 0;
  const counting = session.transaction(async (tx) => {
    const before = await total(tx);
    await tx.run(statement);
    read = (await total(tx)) - before;
    throw new Undo();
  });
  await expect(counting).rejects.toThrow(Undo);
  return read;
}
