/**
 * A database server (or file) that the benchmarks run on: opened by URL, with a database of its own
 * that is dropped at the end, bare driver connections for the raw limits, bulk loading, and the
 * counters that the measurements read.
 */
import type { MeterSources } from "../measure/meter.ts";

/** Names that stand in the results. */
export type Product = "mariadb" | "mysql" | "postgres" | "sqlite";

/** A statement with its parameters, as the library's own builders return it. */
export interface BareStatement {
  readonly name: string;
  readonly text: string;
  readonly params: readonly unknown[];
}

/** Answer of a bare statement. */
export interface BareAnswer {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly affected: number;
}

/** One connection of the bare driver. Statements are prepared once and run one after another. */
export interface BareConnection {
  run(statement: BareStatement): Promise<BareAnswer>;
  /** BEGIN, COMMIT and the like: not prepared. */
  simple(text: string): Promise<void>;
  close(): Promise<void>;
}

/** What a bulk-loaded row looks like. */
export type RowKind =
  /** pending, to be sent at once. */
  | "waiting"
  /** sent long ago, with a receipt. */
  | "finished"
  /** pending, deliver_at and next_retry_at in an hour. */
  | "delayed"
  /** failed, slow retry in an hour. */
  | "failed"
  /** finished, one in 400 failed for good, a second apart: the last one is of now. */
  | "history";

/** Rows of a big table. */
export const HISTORY_ROWS = 2_000_000;

/** Rows to load: keys are numbered from `first`, so that loads do not collide. */
export interface LoadRequest {
  readonly kind: RowKind;
  readonly count: number;
  readonly first: number;
  /** Default `orders`. */
  readonly topic?: string;
  /** Default: none. */
  readonly orderingKey?: string;
  /** Length of each body. Default {@link BODY_BYTES}. */
  readonly bodyBytes?: number;
  /**
   * All rows become visible at once, with fresh statistics where the engine can make them before
   * the commit. Default: one transaction for each statement.
   */
  readonly oneTransaction?: boolean;
}

/** A database made for one run of the benchmarks. */
export interface BenchDatabase extends MeterSources {
  readonly product: Product;
  /** Version as the server tells it, for the results. */
  readonly version: string;
  /** URL of this database, as `--database` takes it; for relays in other processes. */
  readonly url: string;
  /** Placeholder of the n-th parameter, from 1. */
  placeholder(position: number): string;
  /**
   * Opens one more bare connection: with the settings of the relay's sessions, or as a program
   * would.
   */
  connect(as: "relay" | "program"): Promise<BareConnection>;
  /** Runs statements without parameters, for tables and clean-up. */
  script(text: string): Promise<void>;
  /** First column of the first row as a number. */
  number(text: string): Promise<number>;
  /** The statement counter also counts what this object itself runs. */
  readonly countsControl: boolean;
  load(request: LoadRequest): Promise<void>;
  /** Empties the local message table. */
  clear(): Promise<void>;
  /**
   * Fresh statistics and no left-over work of the last run: VACUUM ANALYZE, ANALYZE TABLE, a
   * checkpoint.
   */
  tidy(): Promise<void>;
  /** Drops the database and closes what this object opened. */
  drop(): Promise<void>;
}

/** Length of a message body in bytes, by the issue that asked for these figures. */
export const BODY_BYTES = 400;

/**
 * Rows of one INSERT … SELECT: large enough to be quick, small enough for an undo log that stays in
 * memory.
 */
const ROWS_PER_LOAD = 10_000;

/** Bytes of bodies in one INSERT … SELECT. */
const BYTES_PER_LOAD = 16_000_000;

/**
 * Columns of a loaded row that only some loads have, with their values as SQL. `createdAt`: that of
 * the row `n` where the row `last` is of now.
 */
export function optionalValues(
  { kind, first, count, orderingKey }: LoadRequest,
  createdAt: (last: number) => string,
): Readonly<Record<string, string>> {
  return {
    ...(kind === "history" ? { gmt_create: createdAt(first + count - 1) } : {}),
    ...(orderingKey === undefined ? {} : { ordering_key: `'${orderingKey}'` }),
  };
}

/** Splits a load into statements. */
export function loadSteps(request: LoadRequest): { readonly first: number; readonly count: number }[] {
  const steps: { first: number; count: number }[] = [];
  const byBytes = Math.ceil(BYTES_PER_LOAD / (request.bodyBytes ?? BODY_BYTES));
  const rows = Math.min(ROWS_PER_LOAD, byBytes);
  for (let done = 0; done < request.count; done += rows) {
    steps.push({ first: request.first + done, count: Math.min(rows, request.count - done) });
  }
  return steps;
}

/** Name of a database of this process. `suffix` tells several apart. */
export function temporaryName(suffix: string): string {
  return `rowpost_bench_${process.pid}${suffix}`;
}
