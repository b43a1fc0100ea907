/** Cost of held back rows while nothing happens, which must be nothing. */
import { rounded } from "../measure/statistics.ts";
import type { RelayProcess } from "../relay/processes.ts";
import type { BenchDatabase } from "../servers/server.ts";

/** Server counters; null if unknown. */
interface Counts {
  readonly atMs: number;
  /** Rows updated and read by the engine. PostgreSQL: of this table, others: of all. */
  readonly updated: number | null;
  readonly read: number | null;
  readonly statements: number;
}

/** Per second. */
export interface Upkeep {
  /** Changes of held back rows by their versions: exact on every database. */
  readonly changes: number | null;
  readonly figures: Readonly<Record<string, number | null>>;
}

const SETTLING_MS = 2_000;
const QUIET_MS = 10_000;

/** Measures ten seconds without new messages. `heldBack`: condition of the held back rows. */
export async function measureUpkeep(database: BenchDatabase, relay: RelayProcess, heldBack: string): Promise<Upkeep> {
  const changesText = `SELECT COALESCE(SUM(lock_version), 0) FROM local_message WHERE ${heldBack}`;
  await new Promise((resolve) => setTimeout(resolve, SETTLING_MS));
  // The sum of versions reads every row, so it stays outside the span of the engine's counters.
  const changesBefore = await database.number(changesText);
  const before = await countsOf(database, relay);
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  const after = await countsOf(database, relay);
  const seconds = (after.atMs - before.atMs) / 1000;
  const changes = (await database.number(changesText)) - changesBefore;
  const each = (name: "updated" | "read" | "statements"): number | null => {
    const [from, to] = [before[name], after[name]];
    return from === null || to === null ? null : rounded((to - from) / seconds, 1);
  };
  return {
    changes: rounded(changes / seconds, 1),
    figures: { "rows updated/s": each("updated"), "rows read/s": each("read"), "statements/s": each("statements") },
  };
}

async function countsOf(database: BenchDatabase, relay: RelayProcess): Promise<Counts> {
  const { statements: ofRelay } = await relay.report();
  const statements = database.countsControl ? await database.statements() : ofRelay;
  return { atMs: performance.now(), ...(await engineCounts(database)), statements };
}

async function engineCounts(database: BenchDatabase): Promise<Pick<Counts, "updated" | "read">> {
  const handlers = (table: string, pattern: string): string =>
    `SELECT SUM(VARIABLE_VALUE) FROM ${table} WHERE VARIABLE_NAME LIKE '${pattern}'`;
  const patterns = { updated: "Handler_update", read: "Handler_read%" } as const;
  const columns = { updated: "n_tup_upd", read: "idx_tup_fetch + seq_tup_read" } as const;
  const texts = {
    mariadb: (what: "updated" | "read") => handlers("information_schema.GLOBAL_STATUS", patterns[what]),
    mysql: (what: "updated" | "read") => handlers("performance_schema.global_status", patterns[what]),
    postgres: (what: "updated" | "read") =>
      `SELECT ${columns[what]} FROM pg_stat_user_tables WHERE relname = 'local_message'`,
    sqlite: undefined,
  }[database.product];
  if (texts === undefined) return { updated: null, read: null };
  return { updated: await database.number(texts("updated")), read: await database.number(texts("read")) };
}
