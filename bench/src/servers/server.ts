/**
 * A database server or file for the benchmarks: opened by URL, with its own database that is
 * dropped at the end, bare driver connections for the raw limits, bulk loading, and counters.
 */
import type { MeterSources } from "../measure/meter.ts";

export type Product = "mariadb" | "mysql" | "postgres" | "sqlite";

export interface BareStatement {
  readonly name: string;
  readonly text: string;
  readonly params: readonly unknown[];
}

export interface BareAnswer {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly affected: number;
}

/** One bare driver connection. Statements are prepared once and run one after another. */
export interface BareConnection {
  run(statement: BareStatement): Promise<BareAnswer>;
  /** BEGIN, COMMIT and so on: not prepared. */
  simple(text: string): Promise<void>;
  close(): Promise<void>;
}

/** Kind of a bulk-loaded row. */
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

export const HISTORY_ROWS = 2_000_000;

/** Keys are numbered from `first`, so that loads do not collide. */
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
   * All rows become visible at once, with fresh statistics if the engine can make them before the
   * commit. Default: one transaction for each statement.
   */
  readonly oneTransaction?: boolean;
}

export interface BenchDatabase extends MeterSources {
  readonly product: Product;
  /** Version reported by the server, for the results. */
  readonly version: string;
  /** URL of this database, as for `--database`; for relays in other processes. */
  readonly url: string;
  /** Placeholder of the n-th parameter, from 1. */
  placeholder(position: number): string;
  /**
   * Opens another bare connection: with the settings of the relay's sessions, or as a program
   * would.
   */
  connect(as: "relay" | "program"): Promise<BareConnection>;
  /** Runs statements without parameters, for tables and clean-up. */
  script(text: string): Promise<void>;
  number(text: string): Promise<number>;
  /** The statement counter includes this object's own statements. */
  readonly countsControl: boolean;
  load(request: LoadRequest): Promise<void>;
  clear(): Promise<void>;
  /**
   * Refreshes statistics and finishes leftover work of the last run: VACUUM ANALYZE, ANALYZE TABLE,
   * a checkpoint.
   */
  tidy(): Promise<void>;
  /** Drops the database and closes everything this object opened. */
  drop(): Promise<void>;
}

/** Bytes of a message body, by the definition of the figures. */
export const BODY_BYTES = 400;

/** Rows of one INSERT … SELECT: large enough to be fast, small enough for an undo log in memory. */
const ROWS_PER_LOAD = 10_000;

/** Bytes of bodies in one INSERT … SELECT. */
const BYTES_PER_LOAD = 16_000_000;

/**
 * Columns that only some loads have, with their values as SQL. `createdAt`: that of row `n` if row
 * `last` is of now.
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

export function loadSteps(request: LoadRequest): { readonly first: number; readonly count: number }[] {
  const steps: { first: number; count: number }[] = [];
  const byBytes = Math.ceil(BYTES_PER_LOAD / (request.bodyBytes ?? BODY_BYTES));
  const rows = Math.min(ROWS_PER_LOAD, byBytes);
  for (let done = 0; done < request.count; done += rows) {
    steps.push({ first: request.first + done, count: Math.min(rows, request.count - done) });
  }
  return steps;
}

/** Name of a database of this process. `suffix` distinguishes several. */
export function temporaryName(suffix: string): string {
  return `rowpost_bench_${process.pid}${suffix}`;
}
