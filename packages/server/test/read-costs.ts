/** What each statement of the console's reads costs, told by the server that ran it. */
import type { Database, Session } from "../../rowpost/src/databases/database.ts";
import type { QueryResult, Statement } from "../../rowpost/src/transactions/executor.ts";
import { faults } from "../../rowpost/test/databases/plans.ts";

export interface Cost {
  readonly name: string;
  readonly text: string;
  /** Entries of tables and indexes that were read; undefined: SQLite does not count them. */
  readonly rows: number | undefined;
  /** What is wrong with its plan; looked at only while `plans` is set. */
  readonly faults: readonly string[];
}

/** Filled by the sessions of {@link countedConnect}. */
export interface CostLog {
  readonly costs: Cost[];
  plans: boolean;
}

/** The same connections; each read on a session of these purposes is measured on that session. */
export function countedConnect(
  connect: Database["connect"],
  log: CostLog,
  purposes: readonly string[] = ["tool"],
): Database["connect"] {
  return async (options) => {
    const session = await connect(options);
    if (!purposes.includes(options.purpose)) return session;
    const total = isMysql(session) ? await handlerReads(session) : 0;
    // The counters are read from a table too, which counts.
    const idle = isMysql(session) ? (await handlerReads(session)) - total : 0;
    const measuring = { idle, log, total: total + idle };
    return new Proxy(session, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        if (property === "run") return (statement: Statement) => measured(target, statement, measuring);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

interface Measuring {
  readonly log: CostLog;
  /** What it costs to read the counters. */
  readonly idle: number;
  /** As they were last. */
  total: number;
}

async function measured(session: Session, statement: Statement, measuring: Measuring): Promise<QueryResult> {
  const { log } = measuring;
  // What changes something is not for PostgreSQL to do twice.
  if (!/^\s*(SELECT|WITH|\()/i.test(statement.text)) return await session.run(statement);
  const result = await session.run(statement);
  const rows = isMysql(session) ? await readSince(session, measuring) : await rowsOfPlan(session, statement);
  const product = session.server.product === "mariadb" ? "mysql" : session.server.product;
  const found = log.plans ? await faults(product, session, statement) : [];
  // What looking at the plan read is not the statement's.
  if (isMysql(session) && log.plans) measuring.total = await handlerReads(session);
  log.costs.push({ name: statement.name, text: statement.text, rows, faults: found });
  return result;
}

async function readSince(session: Session, measuring: Measuring): Promise<number> {
  const before = measuring.total;
  measuring.total = await handlerReads(session);
  return measuring.total - before - measuring.idle;
}

function isMysql({ server }: Session): boolean {
  return server.product === "mariadb" || server.product === "mysql";
}

async function handlerReads(session: Session): Promise<number> {
  const { rows } = await session.run({ name: "reads", text: "SHOW SESSION STATUS LIKE 'Handler_read%'", params: [] });
  return rows.reduce((sum, row) => sum + Number(row["Value"]), 0);
}

/** A node of PostgreSQL's plan as it was run. */
interface RunNode {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly Plans?: readonly RunNode[];
}

async function rowsOfPlan(session: Session, { params, text }: Statement): Promise<number | undefined> {
  if (session.server.product !== "postgres") return undefined;
  const { rows } = await session.run({ name: "analyzed", text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, params });
  const plan = rows[0]?.["QUERY PLAN"];
  const [{ Plan: root }] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ Plan: RunNode }];
  return readBy(root);
}

function readBy(node: RunNode): number {
  const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  const own = node["Relation Name"] === undefined ? 0 : (node["Actual Rows"] + removed) * node["Actual Loops"];
  return (node.Plans ?? []).reduce((sum, inner) => sum + readBy(inner), own);
}
