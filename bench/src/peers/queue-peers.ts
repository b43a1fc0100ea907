import { nodeDriver, type Peer } from "./peers.ts";

export interface QueuePeer extends Peer {
  /** Each message is stored once and read by several groups. */
  readonly hasGroups: boolean;
  /** Environment variables required by its driver, with their meaning. */
  readonly needs: Readonly<Record<string, string>>;
}

/** Some run on Node 22 only, which their driver brings. */
const NODE_22 = "node_modules/node22/bin/node";
const common = { databases: ["postgres"], hasGroups: false, needs: {} } as const;

export const QUEUE_PEERS: readonly QueuePeer[] = [
  {
    ...common,
    name: "graphile-worker",
    version: "0.18.0",
    messages: 30_000,
    command: nodeDriver("graphile-worker", NODE_22),
    settings: "24 jobs at once, local queue of 500, completed in batches",
  },
  {
    ...common,
    name: "pg-boss",
    version: "12.38.0",
    messages: 30_000,
    command: nodeDriver("pg-boss", NODE_22),
    settings: "batches of 500, 2 workers, burst when a batch is full",
  },
  {
    ...common,
    name: "pgmq",
    version: "1.5.1 (SQL)",
    messages: 50_000,
    command: nodeDriver("pgmq"),
    needs: { ROWPOST_BENCH_PGMQ: "pgmq-extension/sql/pgmq.sql of its repository" },
    settings: "reads of 500, deleted as a batch; no record is left",
  },
  {
    ...common,
    name: "PgQue",
    version: "0.2.0 (SQL)",
    messages: 50_000,
    command: nodeDriver("pgque"),
    hasGroups: true,
    needs: { ROWPOST_BENCH_PGQUE: "sql/pgque.sql of its repository" },
    settings: "a tick every 10 ms; no record is left",
  },
  {
    ...common,
    name: "BullMQ",
    version: "6.7.0",
    messages: 20_000,
    command: nodeDriver("bullmq"),
    needs: { ROWPOST_BENCH_REDIS: "the address of a Redis, such as redis://127.0.0.1:6379" },
    settings: "on Redis, 100 jobs at once, finished ones removed",
  },
];
