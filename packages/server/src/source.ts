/** A message table that the console shows: its connections, and what all viewers share. */
import { type Database, type Logger, RowpostError, type TableLayout } from "rowpost";
import type { AlertStore, MessageAdmin, OperationsStore, OutboxStatus, TableEstimate } from "rowpost/admin";
import { createQueue, type Queue } from "rowpost/queue";
import { type Firing, readFiring } from "./alerts/known.ts";
import { Problem } from "./http/problem.ts";
import { createOperations, type Operations } from "./operations/operations.ts";
import { createShared, type Shared } from "./shared-answer.ts";

/** What is shown. */
export interface SourceOptions {
  /** In addresses: letters, digits, `-`, `_` and `.`. */
  readonly name: string;
  /** Stays open when the console is closed. */
  readonly database: Database;
  /** Default: that of a table which `rowpost migrate` makes. */
  readonly layout?: TableLayout | undefined;
}

/** The table as it was at an instant. */
export interface Snapshot {
  readonly status: OutboxStatus;
  readonly estimate: TableEstimate;
  /** Undefined also when a right on them is missing, or their tables are. */
  readonly firing: Firing | undefined;
  /** ISO 8601 UTC. */
  readonly asOf: string;
}

export interface Source {
  readonly name: string;
  readonly database: Database;
  readonly layout: TableLayout;
  /** For what an index leads to. */
  readonly reads: MessageAdmin;
  readonly changes: MessageAdmin;
  readonly operations: OperationsStore;
  /** For reading the audit, and the size of the table. */
  readonly records: OperationsStore;
  readonly alerts: AlertStore;
  /** Changes of many messages, of this process. */
  readonly bulk: Operations;
  /** The message queue stored beside the table, if there is one; made at the first use. */
  queue(): Queue;
  /** At most two seconds old, read once for all who look. */
  readonly snapshot: Shared<Snapshot>;
  /** Runs what may take long, on a connection beside the others; at most four wait for each. */
  search<T>(work: (admin: MessageAdmin) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A page looks for five seconds at most; a statement that takes longer is given up. */
const STATEMENT_TIMEOUT_MS = 5_000;
const SNAPSHOT_MS = 2_000;
const SEARCHES = 2;
const MOST_WAITING = 5;

/** Opens nothing before the first use. */
export function createSource(
  { database, layout = database.defaultLayout, name }: SourceOptions,
  logger: Logger,
): Source {
  const options = { layout, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  const reads = database.messageAdmin(options);
  const changes = database.messageAdmin(options);
  const operations = database.operations(options);
  // Apart from the sessions, which every request needs: a long look at the audit holds nobody up.
  const records = database.operations(options);
  const many = database.messageAdmin(options);
  const bulk = createOperations(many, logger);
  const alerts = database.alerts(options);
  let queue: Queue | undefined;
  const lanes = Array.from({ length: SEARCHES }, () => ({ admin: database.messageAdmin(options), waiting: 0 }));
  const snapshot = createShared(SNAPSHOT_MS, async (): Promise<Snapshot> => {
    const asOf = new Date().toISOString();
    const [status, estimate] = [await reads.status(), await records.estimate()];
    // Whoever cannot read them sees the messages all the same; the page of alerts says why.
    const firing = await readFiring(alerts).catch((error: unknown) => {
      if (error instanceof RowpostError && !error.retriable) return undefined;
      throw error;
    });
    return { status, estimate, firing, asOf };
  });
  return {
    name,
    database,
    layout,
    reads,
    changes,
    operations,
    records,
    bulk,
    alerts,
    snapshot,
    queue() {
      queue ??= createQueue({ database, producerGroup: "rowpost-console" });
      return queue;
    },
    async search(work) {
      const lane = lanes.reduce((least, each) => (each.waiting < least.waiting ? each : least));
      if (lane.waiting >= MOST_WAITING)
        throw new Problem("rate-limited", "too many searches at once; try again", { headers: { "retry-after": "2" } });
      lane.waiting += 1;
      try {
        return await work(lane.admin);
      } finally {
        lane.waiting -= 1;
      }
    },
    async close() {
      await bulk.close();
      await queue?.close();
      await Promise.all(
        [reads, changes, many, operations, records, alerts, ...lanes.map(({ admin }) => admin)].map((each) =>
          each.close(),
        ),
      );
    },
  };
}
