/** A message table in the console: its connections and the data shared by all viewers. */
import { type Database, type Logger, RowpostError, type TableLayout } from "rowpost";
import type { AlertStore, MessageAdmin, OperationsStore, OutboxStatus, TableEstimate } from "rowpost/admin";
import { createQueue, type Queue } from "rowpost/queue";
import { type Firing, readFiring } from "./alerts/known.ts";
import { Problem } from "./http/problem.ts";
import { createOperations, type Operations } from "./operations/operations.ts";
import { createShared, type Shared } from "./shared-answer.ts";

/** A message table to show. */
export interface SourceOptions {
  /** Name in addresses: letters, digits, `-`, `_` and `.`. */
  readonly name: string;
  /** Stays open when the console is closed. */
  readonly database: Database;
  /** Default: the layout of `rowpost migrate`. */
  readonly layout?: TableLayout | undefined;
}

export interface Snapshot {
  readonly status: OutboxStatus;
  readonly estimate: TableEstimate;
  /** Also undefined without the right or the tables. */
  readonly firing: Firing | undefined;
  /** ISO 8601 UTC. */
  readonly asOf: string;
}

export interface Source {
  readonly name: string;
  readonly database: Database;
  readonly layout: TableLayout;
  /** For reads that use an index. */
  readonly reads: MessageAdmin;
  readonly changes: MessageAdmin;
  readonly operations: OperationsStore;
  /** For the audit and the size of the table. */
  readonly records: OperationsStore;
  readonly alerts: AlertStore;
  readonly bulk: Operations;
  /** The message queue beside the table; created at the first use. */
  queue(): Queue;
  /** At most two seconds old, shared by all viewers. */
  readonly snapshot: Shared<Snapshot>;
  /** Runs slow reads on a separate connection; at most four wait for each. */
  search<T>(work: (admin: MessageAdmin) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A page searches for at most five seconds; longer statements are aborted. */
const STATEMENT_TIMEOUT_MS = 5_000;
const SNAPSHOT_MS = 2_000;
const SEARCHES = 2;
const MOST_WAITING = 5;

/** Connects at the first use. */
export function createSource(
  { database, layout = database.defaultLayout, name }: SourceOptions,
  logger: Logger,
): Source {
  const options = { layout, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  const reads = database.messageAdmin(options);
  const changes = database.messageAdmin(options);
  const operations = database.operations(options);
  // Separate from the sessions, which every request needs, so that a slow read of the audit blocks
  // no request.
  const records = database.operations(options);
  const many = database.messageAdmin(options);
  const bulk = createOperations(many, logger);
  const alerts = database.alerts(options);
  let queue: Queue | undefined;
  const lanes = Array.from({ length: SEARCHES }, () => ({ admin: database.messageAdmin(options), waiting: 0 }));
  const snapshot = createShared(SNAPSHOT_MS, async (): Promise<Snapshot> => {
    const asOf = new Date().toISOString();
    const [status, estimate] = [await reads.status(), await records.estimate()];
    // Without alerts the messages are still shown; the page of alerts has the reason.
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
